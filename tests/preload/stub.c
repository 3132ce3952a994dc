/* A library that exports cuBLAS's names itself and finds the real one by hand, as some frameworks do to load
 * it late. */
#include <cublas_v2.h>
#include <dlfcn.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static int calls;

EXPORT int stub_calls(void) {
  return calls;
}

static void *real(const char *name) {
  void *handle = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL);
  void *function = handle ? dlsym(handle, name) : NULL;
  if (!function) abort();
  return function;
}

EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  return ((__typeof__(&cublasCreate_v2))real("cublasCreate_v2"))(handle);
}

EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return ((__typeof__(&cublasDestroy_v2))real("cublasDestroy_v2"))(handle);
}

EXPORT cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
  return ((__typeof__(&cublasGetVersion_v2))real("cublasGetVersion_v2"))(handle, version);
}

EXPORT cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                   int m, int n, int k, const void *alpha, const void *A, cudaDataType a_type,
                                   int lda, const void *B, cudaDataType b_type, int ldb, const void *beta,
                                   void *C, cudaDataType c_type, int ldc, cublasComputeType_t compute,
                                   cublasGemmAlgo_t algo) {
  calls++;
  return ((__typeof__(&cublasGemmEx))real("cublasGemmEx"))(handle, transa, transb, m, n, k, alpha, A, a_type,
                                                           lda, B, b_type, ldb, beta, C, c_type, ldc, compute,
                                                           algo);
}
