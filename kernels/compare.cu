/* Differences of a product and the library's, summed up; see gs_compare.h. Atomics order the sums at random, which
 * nothing but the last digits of a judgement depends on. */
#include "common.cuh"
#include "gs_compare.h"

/* Bits of the fraction, smallest exponent of a normal number, what is as good as infinite. */
#define FRACTION(type) ((type) == GS_E_F16 ? 10 : (type) == GS_E_BF16 ? 7 : 23)
#define LOWEST(type)   ((type) == GS_E_F16 ? -14 : -126)
#define HUGE_OF(type)  ((type) == GS_E_F16 ? 65440.0f : (type) == GS_E_BF16 ? 3.35e38f : 3.4e38f)

static __device__ float step_of(int type, float x) {
  int exponent = (int)(gs_bits(x) >> 23 & 255) - 127;
  return ldexpf(1.0f, gs_max(exponent, LOWEST(type)) - FRACTION(type));
}

static __device__ double sum_of_block(double x) {
  __shared__ double of_warp[GS_COMPARE_THREADS / 32];
  for (int lanes = 16; lanes; lanes /= 2) x += __shfl_down_sync(0xffffffff, x, lanes);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  for (int w = 1; threadIdx.x == 0 && w < GS_COMPARE_THREADS / 32; ++w) x += of_warp[w];
  return x;
}

/* Of values that are not negative. */
static __device__ float max_of_block(float x) {
  __shared__ float of_warp[GS_COMPARE_THREADS / 32];
  for (int lanes = 16; lanes; lanes /= 2) x = fmaxf(x, __shfl_down_sync(0xffffffff, x, lanes));
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  for (int w = 1; threadIdx.x == 0 && w < GS_COMPARE_THREADS / 32; ++w) x = fmaxf(x, of_warp[w]);
  return x;
}

static __device__ void compare(const gs_compare_params_t *p, int type) {
  const long long count = (long long)p->m * p->n, hop = (long long)gridDim.x * GS_COMPARE_THREADS;
  const long long base = (long long)blockIdx.z * p->stride;
  double error2 = 0, step2 = 0, reference2 = 0, misfits = 0;
  float max_error = 0, max_reference = 0;
  for (long long at = (long long)blockIdx.x * GS_COMPARE_THREADS + threadIdx.x; at < count; at += hop) {
    const long long place = (base + at / p->m * p->ld + at % p->m) * gs_bytes(type);
    const float d = gs_load1(type, (const char *)p->d + place);
    const float r = gs_load1(type, (const char *)p->reference + place);
    if (!isfinite(d) || !isfinite(r)) {
      /* Next to the largest number one of the two may be rounded to infinity. */
      const bool edge = fminf(fabsf(d), fabsf(r)) >= HUGE_OF(type) && d > 0 == r > 0;
      misfits += !(isnan(d) && isnan(r)) && !edge;
      continue;
    }
    const float error = fabsf(d - r), step = step_of(type, r);
    error2 += (double)error * error;
    step2 += (double)step * step;
    reference2 += (double)r * r;
    max_error = fmaxf(max_error, error);
    max_reference = fmaxf(max_reference, fabsf(r));
  }
  error2 = sum_of_block(error2);
  step2 = sum_of_block(step2);
  reference2 = sum_of_block(reference2);
  misfits = sum_of_block(misfits);
  max_error = max_of_block(max_error);
  max_reference = max_of_block(max_reference);
  if (threadIdx.x) return;
  atomicAdd(&p->result->error2, error2);
  atomicAdd(&p->result->step2, step2);
  atomicAdd(&p->result->reference2, reference2);
  atomicMax((unsigned *)&p->result->max_error, gs_bits(max_error));
  atomicMax((unsigned *)&p->result->max_reference, gs_bits(max_reference));
  if (misfits > 0) atomicAdd(&p->result->misfits, (unsigned long long)misfits);
}

#define GS_COMPARE(name, type)                                                                               \
  extern "C" __global__ void __launch_bounds__(GS_COMPARE_THREADS)                                           \
      compare_##name(const __grid_constant__ gs_compare_params_t p) {                                        \
    compare(&p, type);                                                                                       \
  }
GS_COMPARE(f16, GS_E_F16)
GS_COMPARE(bf16, GS_E_BF16)
GS_COMPARE(f32, GS_E_F32)
