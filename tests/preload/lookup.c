/* lookup [gemm|lt]:MAJOR:CALLS ...: links no cuBLAS; opens each library RTLD_LOCAL and looks its functions up by
 * handle, as Rust's libloading, ctypes and XLA do, before any call; then calls, in turn, and checks the results.
 * Prints "wrong: N", and for each library which object the looked-up product is in. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "client.h"

enum { SIDE = 128, N = 8, MOST = 4 };

typedef struct {
  int lt, major, calls;
  void *library;
#define FUNCTIONS(X)                                                                                         \
  X(cublasCreate_v2)                                                                                         \
  X(cublasGemmEx)                                                                                            \
  X(cublasLtCreate)                                                                                          \
  X(cublasLtMatmul)                                                                                          \
  X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutCreate)
#define X(name) __typeof__(&name) name;
  FUNCTIONS(X)
#undef X
} user_t;

/* The manual's way: clear the error, look up, ask for the error. */
static void *find(void *library, const char *name) {
  dlerror();
  void *found = dlsym(library, name);
  const char *why = dlerror();
  if (!found != (why != NULL)) exit(4);
  if (found && dlsym(library, name) != found) exit(5); /* the same answer again */
  return found;
}

static void open_library(user_t *user) {
  char name[64];
  snprintf(name, sizeof name, "libcublas%s.so.%d", user->lt ? "Lt" : "", user->major);
  user->library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (!user->library) fprintf(stderr, "lookup: %s\n", dlerror()), exit(3);
#define X(name) user->name = (__typeof__(&name))find(user->library, #name);
  FUNCTIONS(X)
#undef X
  Dl_info info;
  void *product = user->lt ? (void *)user->cublasLtMatmul : (void *)user->cublasGemmEx;
  if (!product || !dladdr(product, &info)) exit(6);
  const char *slash = strrchr(info.dli_fname, '/');
  printf("%s: %s\n", name, slash ? slash + 1 : info.dli_fname);
}

static void *memory(int64_t count, int seed) {
  uint16_t *made = aligned_alloc(256, (size_t)count * 2);
  for (int64_t i = 0; made && i < count; i++)
    value_store(CUDA_R_16F, made, i, (double)((i * 7 + seed) % 17 - 8) / 8);
  return made;
}

static int call_gemm(const user_t *user, const product_t *p) {
  const float one = 1, zero = 0;
  cublasHandle_t handle;
  return user->cublasCreate_v2(&handle) ||
         user->cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, SIDE, N, SIDE, &one, p->a, CUDA_R_16F, SIDE,
                            p->b, CUDA_R_16F, SIDE, &zero, p->d, CUDA_R_16F, SIDE, CUBLAS_COMPUTE_32F,
                            CUBLAS_GEMM_DEFAULT);
}

static int call_lt(const user_t *user, const product_t *p) {
  const float one = 1, zero = 0;
  const int32_t transposed = CUBLAS_OP_T;
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t a, b, c;
  return user->cublasLtCreate(&handle) ||
         user->cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F) ||
         user->cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                              sizeof transposed) ||
         user->cublasLtMatrixLayoutCreate(&a, CUDA_R_16F, SIDE, SIDE, SIDE) ||
         user->cublasLtMatrixLayoutCreate(&b, CUDA_R_16F, SIDE, N, SIDE) ||
         user->cublasLtMatrixLayoutCreate(&c, CUDA_R_16F, SIDE, N, SIDE) ||
         user->cublasLtMatmul(handle, operation, &one, p->a, a, p->b, b, &zero, p->d, c, p->d, c, NULL, NULL,
                              0, NULL);
}

static int wrong_call(const user_t *user, int seed) {
  product_t p = {.transa = true,
                 .m = SIDE,
                 .n = N,
                 .k = SIDE,
                 .batch = 1,
                 .lda = SIDE,
                 .ldb = SIDE,
                 .ldc = SIDE,
                 .ldd = SIDE,
                 .a_type = CUDA_R_16F,
                 .b_type = CUDA_R_16F,
                 .c_type = CUDA_R_16F,
                 .d_type = CUDA_R_16F,
                 .alpha = 1,
                 .a = memory(SIDE * SIDE, seed),
                 .b = memory(SIDE * N, seed + 1),
                 .d = memory(SIDE * N, seed + 2)};
  void *found = p.d;
  if (user->lt ? call_lt(user, &p) : call_gemm(user, &p)) return 1;
  p.d = memory(SIDE * N, 0);
  int wrong = !product_run(&p);
  for (int64_t i = 0; i < SIDE * N; i++) {
    double x = value_load(CUDA_R_16F, found, i), y = value_load(CUDA_R_16F, p.d, i);
    wrong |= !(fabs(x - y) <= 0x1.1p-10 * fmax(1, fabs(y)));
  }
  return wrong;
}

int main(int argc, char **argv) {
  user_t users[MOST] = {0};
  char kind[8];
  int count = argc - 1, wrong = 0;
  if (count < 1 || count > MOST) return 2;
  for (int i = 0; i < count; i++) {
    if (sscanf(argv[i + 1], "%7[^:]:%d:%d", kind, &users[i].major, &users[i].calls) != 3) return 2;
    users[i].lt = !strcmp(kind, "lt");
    open_library(&users[i]);
  }
  for (int round = 0; round < 64; round++)
    for (int i = 0; i < count; i++)
      if (round < users[i].calls) wrong += wrong_call(&users[i], round);
  printf("wrong: %d\n", wrong);
  return wrong != 0;
}
