/* Calls with no handle, which the real cuBLAS refuses without a GPU; prints its statuses and version. */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <stdio.h>

int main(void) {
  const float one = 1;
  int major = -1;
  int property = cublasGetProperty(MAJOR_VERSION, &major);
  printf("property: %d\nmajor: %d\n", property, major);
  printf("gemm: %d\n", (int)cublasGemmEx(NULL, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, NULL, CUDA_R_16F, 8,
                                         NULL, CUDA_R_16F, 8, &one, NULL, CUDA_R_16F, 8, CUBLAS_COMPUTE_32F,
                                         CUBLAS_GEMM_DEFAULT));
  printf("strided: %d\n",
         (int)cublasGemmStridedBatchedEx(NULL, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, NULL, CUDA_R_16F, 8,
                                         64, NULL, CUDA_R_16F, 8, 64, &one, NULL, CUDA_R_16F, 8, 64, 2,
                                         CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  printf("single: %d\n",
         (int)cublasSgemm(NULL, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, NULL, 8, NULL, 8, &one, NULL, 8));
  printf("lt: %d\n", (int)cublasLtMatmul(NULL, NULL, &one, NULL, NULL, NULL, NULL, &one, NULL, NULL, NULL,
                                         NULL, NULL, NULL, 0, NULL));
  return 0;
}
