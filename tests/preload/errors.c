/* Calls that cuBLAS refuses, or answers without computing, one after another; prints each status and what
 * became of C, to be compared with and without the preload. */
#include "client.h"

#include <math.h>
#include <string.h>

enum { SIDE = 16 };

typedef struct {
  const char *name;
  int m, n, k, lda, ldb, ldc, transa;
  float alpha, beta;
  cudaDataType_t type;
  cublasComputeType_t compute;
  cublasGemmAlgo_t algo;
} request_t;

#define PLAIN                                                                                                \
  .m = SIDE, .n = SIDE, .k = SIDE, .lda = SIDE, .ldb = SIDE, .ldc = SIDE, .alpha = 1, .beta = 0.5f,          \
  .type = CUDA_R_16F, .compute = CUBLAS_COMPUTE_32F, .algo = CUBLAS_GEMM_DEFAULT

#pragma GCC diagnostic ignored "-Woverride-init"
static const request_t requests[] = {
    {"plain", PLAIN},
    {"m is 0", PLAIN, .m = 0},
    {"n is 0", PLAIN, .n = 0},
    {"k is 0: C is scaled", PLAIN, .k = 0},
    {"alpha is 0: C is scaled", PLAIN, .alpha = 0},
    {"alpha and beta are 0: C is cleared", PLAIN, .alpha = 0, .beta = 0},
    {"m is negative", PLAIN, .m = -1},
    {"n is negative", PLAIN, .n = -1},
    {"k is negative", PLAIN, .k = -1},
    {"lda is too small", PLAIN, .lda = SIDE - 1},
    {"ldb is too small", PLAIN, .ldb = 0},
    {"ldc is too small", PLAIN, .ldc = 1},
    {"the operation does not exist", PLAIN, .transa = 7},
    {"the type does not exist", PLAIN, .type = (cudaDataType_t)99},
    {"the compute type does not exist", PLAIN, .compute = (cublasComputeType_t)1},
    {"an explicit algorithm", PLAIN, .algo = CUBLAS_GEMM_ALGO2},
    {"autotuning", PLAIN, .algo = (cublasGemmAlgo_t)999},
    {"pedantic", PLAIN, .compute = CUBLAS_COMPUTE_32F_PEDANTIC},
    {"alpha is NaN", PLAIN, .alpha = NAN},
    {"beta is infinite", PLAIN, .beta = INFINITY},
};

static void ask(cublasHandle_t handle, const request_t *r) {
  void *a = device_values(CUDA_R_16F, SIDE * SIDE, 1), *b = device_values(CUDA_R_16F, SIDE * SIDE, 2);
  void *c = device_values(CUDA_R_16F, SIDE * SIDE, 3);
  uint16_t result[SIDE * SIDE];
  cublasStatus_t status =
      cublasGemmEx(handle, (cublasOperation_t)r->transa, CUBLAS_OP_N, r->m, r->n, r->k, &r->alpha, a, r->type,
                   r->lda, b, r->type, r->ldb, &r->beta, c, r->type, r->ldc, r->compute, r->algo);
  MUST(cuMemcpyDtoH(result, (CUdeviceptr)c, sizeof result));
  unsigned sum = 0;
  for (int i = 0; i < SIDE * SIDE; i++) sum = sum * 31 + result[i];
  printf("%s: status %d, C %08x\n", r->name, (int)status, sum);
  device_free(a);
  device_free(b);
  device_free(c);
}

int main(void) {
  cublasHandle_t handle;
  const float one = 1;
  MUST(cublasCreate(&handle));
  for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) ask(handle, &requests[i]);
  printf("no handle: status %d\n", (int)cublasGemmEx(NULL, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, NULL,
                                                     CUDA_R_16F, 1, NULL, CUDA_R_16F, 1, &one, NULL,
                                                     CUDA_R_16F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  printf("no alpha: status %d\n", (int)cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, NULL, NULL,
                                                    CUDA_R_16F, 1, NULL, CUDA_R_16F, 1, &one, NULL,
                                                    CUDA_R_16F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  printf("no handle, single precision: status %d\n",
         (int)cublasSgemm(NULL, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, NULL, 1, NULL, 1, &one, NULL, 1));
  return 0;
}
