/* special: calls at the edge of what kernels take, each checked: the 64-bit twins, half scalars, strides of
 * zero and backwards, overlaps, a pointer aligned to 2 bytes. What comment says is who should compute it. */
#include "client.h"

#include <string.h>

cublasStatus_t cublasHgemm(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *,
                           const void *, int, const void *, int, const void *, void *, int);
cublasStatus_t cublasHgemm_64(cublasHandle_t, cublasOperation_t, cublasOperation_t, int64_t, int64_t, int64_t,
                              const void *, const void *, int64_t, const void *, int64_t, const void *,
                              void *, int64_t);

enum { M = 64, N = 16, K = 64, BATCH = 3 };

#define HALF     CUDA_R_16F
#define SHAPE    CUBLAS_OP_T, CUBLAS_OP_N, M, N, K
#define COMPUTED CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT

static cublasHandle_t handle;
static const float one = 1, zero = 0;
static unsigned char before[2 * BATCH * M * N];

static product_t product(int batch, int64_t stride_a, int64_t stride_b, int64_t stride_c) {
  product_t p = {.transa = true,
                 .m = M,
                 .n = N,
                 .k = K,
                 .batch = batch,
                 .lda = K,
                 .ldb = K,
                 .ldc = M,
                 .ldd = M,
                 .stride_a = stride_a,
                 .stride_b = stride_b,
                 .stride_c = stride_c,
                 .stride_d = stride_c,
                 .a_type = HALF,
                 .b_type = HALF,
                 .c_type = HALF,
                 .d_type = HALF,
                 .alpha = 1};
  p.a = device_values(HALF, BATCH * M * K + 8, 1);
  p.b = device_values(HALF, BATCH * N * K + 8, 2);
  p.c = p.d = device_values(HALF, BATCH * M * N, 3);
  MUST(cuMemcpyDtoH(before, (CUdeviceptr)p.d, sizeof before));
  return p;
}

static void check(const product_t *p, const char *what) {
  must(!is_right(p, before, BATCH * M * N), what);
}

static void gemm(const product_t *p) {
  MUST(cublasGemmEx(handle, SHAPE, &one, p->a, HALF, K, p->b, HALF, K, &zero, p->d, HALF, M, COMPUTED));
}

static void strided(const product_t *p) {
  MUST(cublasGemmStridedBatchedEx(handle, SHAPE, &one, p->a, HALF, K, p->stride_a, p->b, HALF, K, p->stride_b,
                                  &zero, p->d, HALF, M, p->stride_c, (int)p->batch, COMPUTED));
}

static void wide(void) {
  product_t p = product(1, 0, 0, 0);
  MUST(cublasGemmEx_64(handle, SHAPE, &one, p.a, HALF, K, p.b, HALF, K, &zero, p.d, HALF, M,
                       COMPUTED)); /* kernel */
  check(&p, "GemmEx_64");
  p = product(BATCH, M * K, N * K, M * N);
  MUST(cublasGemmStridedBatchedEx_64(handle, SHAPE, &one, p.a, HALF, K, M * K, p.b, HALF, K, N * K, &zero,
                                     p.d, HALF, M, M * N, BATCH, COMPUTED)); /* kernel */
  check(&p, "GemmStridedBatchedEx_64");
}

static void half_scalars(void) {
  const uint16_t two = 0x4000, half = 0x3800;
  product_t p = product(1, 0, 0, 0);
  p.alpha = 2;
  p.beta = 0.5;
  MUST(cublasHgemm(handle, SHAPE, &two, p.a, K, p.b, K, &half, p.d, M)); /* kernel */
  check(&p, "Hgemm");
  p = product(1, 0, 0, 0);
  p.alpha = 2;
  p.beta = 0.5;
  MUST(cublasHgemm_64(handle, SHAPE, &two, p.a, K, p.b, K, &half, p.d, M)); /* kernel */
  check(&p, "Hgemm_64");
}

static void batches(void) {
  product_t p = product(BATCH, M * K, N * K, M * N);
  strided(&p); /* kernel */
  check(&p, "strided batch");
  p = product(BATCH, M * K, 0, M * N);
  strided(&p); /* kernel */
  check(&p, "one B for all");
  p = product(BATCH, 0, N * K, M * N);
  strided(&p); /* kernel */
  check(&p, "one A for all");
  p = product(BATCH, -M * K, N * K, M * N);
  p.a = (const char *)p.a + 2 * 2 * M * K;
  strided(&p); /* kernel */
  check(&p, "A backwards");
  p = product(BATCH, M * K, -N * K, M * N);
  p.b = (const char *)p.b + 2 * 2 * N * K;
  strided(&p); /* kernel */
  check(&p, "B backwards");
  p = product(BATCH, -M * K, -N * K, M * N);
  p.a = (const char *)p.a + 2 * 2 * M * K, p.b = (const char *)p.b + 2 * 2 * N * K;
  strided(&p); /* kernel */
  check(&p, "both backwards");
  p = product(BATCH, M * K, N * K, 0);
  strided(&p); /* library: each product writes the same C */
}

static void addresses(void) {
  product_t p = product(1, 0, 0, 0);
  p.a = (const char *)p.a + 2;
  gemm(&p); /* library: less aligned than the kernel wants */
  check(&p, "A at an odd address");
  p = product(1, 0, 0, 0);
  p.d = (void *)(uintptr_t)p.b;
  gemm(&p); /* library: C lies over B */
}

int main(void) {
  MUST(cublasCreate(&handle));
  wide();
  half_scalars();
  batches();
  addresses();
  return 0;
}
