/* int8: cuBLAS computes it through its own cublasLtMatmul. */
#include "client.h"

int main(void) {
  enum { SIDE = 32 };
  const int32_t alpha = 1, beta = 0;
  cublasHandle_t handle;
  MUST(cublasCreate(&handle));
  void *a = device_values(CUDA_R_8I, SIDE * SIDE, 1), *b = device_values(CUDA_R_8I, SIDE * SIDE, 2);
  void *c = device_values(CUDA_R_32I, SIDE * SIDE, 3);
  MUST(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, SIDE, SIDE, SIDE, &alpha, a, CUDA_R_8I, SIDE, b,
                    CUDA_R_8I, SIDE, &beta, c, CUDA_R_32I, SIDE, CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT));
  product_t p = {.transa = true,
                 .m = SIDE,
                 .n = SIDE,
                 .k = SIDE,
                 .batch = 1,
                 .lda = SIDE,
                 .ldb = SIDE,
                 .ldc = SIDE,
                 .ldd = SIDE,
                 .a_type = CUDA_R_8I,
                 .b_type = CUDA_R_8I,
                 .c_type = CUDA_R_32I,
                 .d_type = CUDA_R_32I,
                 .a = a,
                 .b = b,
                 .c = c,
                 .d = c,
                 .alpha = 1};
  int32_t before[SIDE * SIDE] = {0};
  return !is_right(&p, before, SIDE * SIDE);
}
