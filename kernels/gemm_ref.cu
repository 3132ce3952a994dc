/* D in double, one thread an element: the reference that other kernels are checked against on the GPU. It
 * shares no code with them but the conversion of elements. See gemm_ref.h. */
#include "common.cuh"

#define GS_AT_ONCE 16 /* of k: loads in flight */

static __device__ double element(int type, const void *base, long long at) {
  return gs_load1(type, (const char *)base + at * gs_bytes(type));
}

static __device__ double activate(int epilogue, double x) {
  if (epilogue == GS_EPI_RELU || epilogue == GS_EPI_RELU_BIAS) return x < 0.0 ? 0.0 : x;
  if (epilogue == GS_EPI_GELU || epilogue == GS_EPI_GELU_BIAS)
    return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
  return x;
}

static __device__ void reference(const gs_params_t *p, int type, int d_type, int transa, int transb) {
  const double alpha = p->alpha_ptr ? *p->alpha_ptr : p->alpha, beta = p->beta_ptr ? *p->beta_ptr : p->beta;
  const long long count = (long long)p->m * p->n, stride = (long long)gridDim.x * blockDim.x;
  const long long z = blockIdx.z;
  for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += stride) {
    const long long i = at % p->m, j = at / p->m;
    const long long a_step = transa ? 1 : p->lda, b_step = transb ? p->ldb : 1;
    long long a_at = z * p->stride_a + (transa ? i * p->lda : i);
    long long b_at = z * p->stride_b + (transb ? j : j * p->ldb);
    double v = 0.0;
    int l = alpha != 0.0 ? 0 : p->k;
    for (; l + GS_AT_ONCE <= p->k; l += GS_AT_ONCE) { /* the wait for memory is all the time there is */
      double a[GS_AT_ONCE], b[GS_AT_ONCE];
#pragma unroll
      for (int e = 0; e < GS_AT_ONCE; ++e, a_at += a_step, b_at += b_step)
        a[e] = element(type, p->a, a_at), b[e] = element(type, p->b, b_at);
#pragma unroll
      for (int e = 0; e < GS_AT_ONCE; ++e) v += a[e] * b[e];
    }
    for (; l < p->k; ++l, a_at += a_step, b_at += b_step)
      v += element(type, p->a, a_at) * element(type, p->b, b_at);
    v *= alpha;
    if (beta != 0.0) v += beta * element(d_type, p->c, z * p->stride_c + i + j * p->ldc);
    if (gs_has_bias(p->epilogue)) v += element(d_type, p->bias, i);
    ((double *)p->d)[z * p->stride_d + i + j * p->ldd] = activate(p->epilogue, v);
  }
}

#define GS_REFERENCE(ab, d, AB, D)                                                                           \
  extern "C" __global__ void ref_##ab##_##d(const __grid_constant__ gs_params_t p, int transa, int transb) { \
    reference(&p, GS_E_##AB, GS_E_##D, transa, transb);                                                      \
  }
GS_REFERENCE(f16, f16, F16, F16)
GS_REFERENCE(f16, f32, F16, F32)
GS_REFERENCE(bf16, bf16, BF16, BF16)
GS_REFERENCE(bf16, f32, BF16, F32)
