/* D in double, one thread an element: the reference that other kernels are checked against on the GPU. It
 * shares no code with them but the conversion of elements. See gemm_ref.h. */
#include "common.cuh"

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
    double v = 0.0;
    for (long long l = 0; alpha != 0.0 && l < p->k; ++l)
      v += element(type, p->a, z * p->stride_a + (transa ? l + i * p->lda : i + l * p->lda)) *
           element(type, p->b, z * p->stride_b + (transb ? j + l * p->ldb : l + j * p->ldb));
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
