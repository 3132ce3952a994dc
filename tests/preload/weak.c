/* Asks for cuBLAS by a weak reference in a process that has none; calls it where it is there. */
#include <cublas_v2.h>
#include <stdio.h>

#pragma weak cublasGemmEx
#pragma weak cublasLtMatmul
#include <cublasLt.h>

int main(void) {
  if (!cublasGemmEx || !cublasLtMatmul) {
    puts("absent");
    return 0;
  }
  const float one = 1, zero = 0;
  int gemm = cublasGemmEx(NULL, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, NULL, CUDA_R_16F, 8, NULL,
                          CUDA_R_16F, 8, &zero, NULL, CUDA_R_16F, 8, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  int lt = cublasLtMatmul(NULL, NULL, &one, NULL, NULL, NULL, NULL, &zero, NULL, NULL, NULL, NULL, NULL, NULL,
                          0, NULL);
  printf("gemm: %d\nlt: %d\n", gemm, lt);
  return 0;
}
