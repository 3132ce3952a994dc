/* null_handle [LIBRARY ...]: calls with no handle, which the real cuBLAS refuses without a GPU; prints its statuses
 * and version, of the linked library, or of each one named, whose functions it looks up by handle. */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#include <stdio.h>

#define FUNCTIONS(X)                                                                                         \
  X(cublasGetProperty) X(cublasGemmEx) X(cublasGemmStridedBatchedEx) X(cublasSgemm_v2) X(cublasLtMatmul)
typedef struct {
#define X(name) __typeof__(&name) name;
  FUNCTIONS(X)
#undef X
} functions_t;

static void ask(const functions_t *f) {
  const float one = 1;
  int major = -1;
  int property = f->cublasGetProperty(MAJOR_VERSION, &major);
  printf("property: %d\nmajor: %d\n", property, major);
  printf("gemm: %d\n", (int)f->cublasGemmEx(NULL, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, NULL, CUDA_R_16F,
                                            8, NULL, CUDA_R_16F, 8, &one, NULL, CUDA_R_16F, 8,
                                            CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  printf("strided: %d\n",
         (int)f->cublasGemmStridedBatchedEx(NULL, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, NULL, CUDA_R_16F,
                                            8, 64, NULL, CUDA_R_16F, 8, 64, &one, NULL, CUDA_R_16F, 8, 64, 2,
                                            CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  printf("single: %d\n", (int)f->cublasSgemm_v2(NULL, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, NULL, 8, NULL,
                                                8, &one, NULL, 8));
  printf("lt: %d\n", (int)f->cublasLtMatmul(NULL, NULL, &one, NULL, NULL, NULL, NULL, &one, NULL, NULL, NULL,
                                            NULL, NULL, NULL, 0, NULL));
}

int main(int argc, char **argv) {
#define X(name) name,
  const functions_t linked = {FUNCTIONS(X)};
#undef X
  if (argc == 1) ask(&linked);
  for (int i = 1; i < argc; i++) {
    functions_t f;
    void *library = dlopen(argv[i], RTLD_LAZY | RTLD_LOCAL);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 3;
#define X(name)                                                                                              \
  if (!(f.name = (__typeof__(&name))dlsym(library, #name))) return 4;
    FUNCTIONS(X)
#undef X
    ask(&f);
  }
  return 0;
}
