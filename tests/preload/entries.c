/* Calls every entry point and its _64 twin once, with a shape that no table has, and asks the stand-in
 * whether it got the very arguments that were sent. Prints "calls: N" and "altered: N". */
#include "client.h"

#include <dlfcn.h>
#include <string.h>

#include "record.h"

static int calls, altered;

static void compare(const char *function, const uint64_t *sent, int count) {
  bool lt = !strncmp(function, "cublasLt", 8);
  sim_call_t got;
  void *library = dlopen(lt ? "libcublasLt.so.13" : "libcublas.so.13", RTLD_NOW | RTLD_NOLOAD);
  must(library == NULL, "finding the stand-in");
  sim_last_t *last = (sim_last_t *)dlsym(library, "sim_last");
  must(last == NULL, "finding sim_last");
  calls++;
  if (last(function, &got) && got.count == count && !memcmp(got.args, sent, (size_t)count * sizeof *sent))
    return;
  fprintf(stderr, "entries: %s: its arguments did not arrive as sent\n", function);
  altered++;
}

#define TEXT_OF(name) #name
#define SYMBOL(name)  TEXT_OF(name)
#define CALL(function, ...)                                                                                  \
  do {                                                                                                       \
    const uint64_t sent[] = {SIM_EXPAND(SIM_WORD(__VA_ARGS__))};                                             \
    MUST(function(__VA_ARGS__));                                                                             \
    compare(SYMBOL(function), sent, (int)(sizeof sent / sizeof *sent));                                      \
  } while (0)
#define BOTH(function, ...)                                                                                  \
  CALL(function, __VA_ARGS__);                                                                               \
  CALL(WIDE(function), __VA_ARGS__)
#define WIDE(function)  WIDE_(function)
#define WIDE_(function) function##_64

/* cublas_api.h declares those of half for C++ only. */
#define DECLARE_HALF(suffix, INT)                                                                            \
  cublasStatus_t cublasHgemm##suffix(cublasHandle_t, cublasOperation_t, cublasOperation_t, INT, INT, INT,    \
                                     const void *, const void *, INT, const void *, INT, const void *,       \
                                     void *, INT);                                                           \
  cublasStatus_t cublasHgemmBatched##suffix(cublasHandle_t, cublasOperation_t, cublasOperation_t, INT, INT,  \
                                            INT, const void *, const void *, INT, const void *, INT,         \
                                            const void *, void *, INT, INT);                                 \
  cublasStatus_t cublasHgemmStridedBatched##suffix(                                                          \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, INT, INT, INT, const void *, const void *, INT,  \
      long long, const void *, INT, long long, const void *, void *, INT, long long, INT);
DECLARE_HALF(, int)
DECLARE_HALF(_64, int64_t)

enum { M = 24, N = 5, K = 16, BATCH = 2, LDA = 32, LDB = 24, LDC = 40 };

static const long long stride_a = LDA * K, stride_b = LDB * N, stride_c = LDC * N;

typedef struct {
  void *a, *b, *c;                         /* one matrix, or a strided batch */
  void *as[BATCH], *bs[BATCH], *cs[BATCH]; /* the batch by pointers */
} operands_t;

static operands_t operands(cudaDataType_t type) {
  operands_t o = {.a = device_values(type, BATCH * stride_a, 1),
                  .b = device_values(type, BATCH * stride_b, 2),
                  .c = device_values(type, BATCH * stride_c, 3)};
  for (int i = 0; i < BATCH; i++) {
    o.as[i] = (char *)o.a + (size_t)(i * stride_a) * value_bytes(type);
    o.bs[i] = (char *)o.b + (size_t)(i * stride_b) * value_bytes(type);
    o.cs[i] = (char *)o.c + (size_t)(i * stride_c) * value_bytes(type);
  }
  return o;
}

#define OPS      CUBLAS_OP_N, CUBLAS_OP_N
#define SIZES    M, N, K
#define COMPUTED CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT

static void ex_entries(cublasHandle_t h) {
  const float alpha = 1, beta = 0.5f;
  const cudaDataType_t half = CUDA_R_16F;
  operands_t o = operands(half);
  BOTH(cublasGemmEx, h, OPS, SIZES, &alpha, o.a, half, LDA, o.b, half, LDB, &beta, o.c, half, LDC, COMPUTED);
  BOTH(cublasGemmStridedBatchedEx, h, OPS, SIZES, &alpha, o.a, half, LDA, stride_a, o.b, half, LDB, stride_b,
       &beta, o.c, half, LDC, stride_c, BATCH, COMPUTED);
  BOTH(cublasSgemmEx, h, OPS, SIZES, &alpha, o.a, half, LDA, o.b, half, LDB, &beta, o.c, half, LDC);
  BOTH(cublasGemmBatchedEx, h, OPS, SIZES, &alpha, (const void *const *)o.as, half, LDA,
       (const void *const *)o.bs, half, LDB, &beta, o.cs, half, LDC, BATCH, COMPUTED);
}

/* One group of BATCH products; the arrays hold one entry a group. */
#define GROUPED(function, INT)                                                                               \
  do {                                                                                                       \
    const cublasOperation_t ops[] = {CUBLAS_OP_N};                                                           \
    const INT m[] = {M}, n[] = {N}, k[] = {K}, lda[] = {LDA}, ldb[] = {LDB}, ldc[] = {LDC},                  \
              size[] = {BATCH};                                                                              \
    CALL(function, h, ops, ops, m, n, k, &alpha, (const void *const *)o.as, CUDA_R_32F, lda,                 \
         (const void *const *)o.bs, CUDA_R_32F, ldb, &beta, o.cs, CUDA_R_32F, ldc, 1, size,                  \
         CUBLAS_COMPUTE_32F);                                                                                \
  } while (0)

static void grouped_entries(cublasHandle_t h) {
  const float alpha = 1, beta = 0.5f;
  operands_t o = operands(CUDA_R_32F);
  GROUPED(cublasGemmGroupedBatchedEx, int);
  GROUPED(cublasGemmGroupedBatchedEx_64, int64_t);
}

#define TYPED_ENTRIES(name, gemm, batched, strided, T, type, one, half)                                      \
  static void name(cublasHandle_t h) {                                                                       \
    const T alpha = one, beta = half;                                                                        \
    operands_t o = operands(type);                                                                           \
    BOTH(gemm, h, OPS, SIZES, &alpha, o.a, LDA, o.b, LDB, &beta, o.c, LDC);                                  \
    BOTH(strided, h, OPS, SIZES, &alpha, o.a, LDA, stride_a, o.b, LDB, stride_b, &beta, o.c, LDC, stride_c,  \
         BATCH);                                                                                             \
    BOTH(batched, h, OPS, SIZES, &alpha, (const void *)o.as, LDA, (const void *)o.bs, LDB, &beta,            \
         (void *)o.cs, LDC, BATCH);                                                                          \
  }
TYPED_ENTRIES(half_entries, cublasHgemm, cublasHgemmBatched, cublasHgemmStridedBatched, uint16_t, CUDA_R_16F,
              0x3c00, 0x3800)
TYPED_ENTRIES(single_entries, cublasSgemm, cublasSgemmBatched, cublasSgemmStridedBatched, float, CUDA_R_32F,
              1, 0.5f)
TYPED_ENTRIES(double_entries, cublasDgemm, cublasDgemmBatched, cublasDgemmStridedBatched, double, CUDA_R_64F,
              1, 0.5)

static void lt_entry(cublasHandle_t h) {
  const float alpha = 1, beta = 0.5f;
  operands_t o = operands(CUDA_R_16F);
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t a, b, c;
  CUdeviceptr workspace;
  cublasLtMatmulAlgo_t algo;
  MUST(cuMemAlloc(&workspace, 4096));
  MUST(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  MUST(cublasLtMatrixLayoutCreate(&a, CUDA_R_16F, M, K, LDA));
  MUST(cublasLtMatrixLayoutCreate(&b, CUDA_R_16F, K, N, LDB));
  MUST(cublasLtMatrixLayoutCreate(&c, CUDA_R_16F, M, N, LDC));
  MUST(cublasLtMatmulAlgoInit((cublasLtHandle_t)h, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F,
                              CUDA_R_16F, CUDA_R_16F, 1, &algo));
  CALL(cublasLtMatmul, (cublasLtHandle_t)h, operation, &alpha, o.a, a, o.b, b, &beta, o.c, c, o.c, c, &algo,
       (void *)workspace, 4096, NULL);
}

int main(void) {
  cublasHandle_t handle;
  MUST(cublasCreate(&handle));
  ex_entries(handle);
  grouped_entries(handle);
  half_entries(handle);
  single_entries(handle);
  double_entries(handle);
  lt_entry(handle);
  printf("calls: %d\naltered: %d\n", calls, altered);
  return altered != 0;
}
