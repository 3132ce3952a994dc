/* Floor 4. The exported cublas* symbols: each describes its call and lets dispatch decide. Beside them, what a
 * look-up by handle is given in their place.
 */
#include <stddef.h>
#include <string.h>

#include "clusters.h"
#include "dispatch.h"
#include "hash.h"
#include "lt.h"
#include "options.h"

/* cuBLAS calls its own public functions (an int8 cublasGemmEx ends in cublasLtMatmul): inside a call that is
 * forwarded, or served by one of its algorithms, nothing is counted or served. */
static __thread int inside __attribute__((tls_model("initial-exec")));

/* 1 + the index of the real library that the call in progress is for, where it came by a look-up's function:
 * the caller's own links then say nothing. */
static __thread int via __attribute__((tls_model("initial-exec")));

static const gs_real_t *real_for(const void *return_address) {
  if (__builtin_expect(!via, 1)) return gs_real_of(return_address);
  const gs_real_t *real = gs_real_at(via - 1);
  via = 0;
  gs_clusters_unseen();
  return real;
}

static bool passes(const gs_real_t *real, const void *handle) {
  if (inside || !handle || gs_option(GS_OPT_OFF)) return true;
  gs_dispatch_ready(real);
  return false;
}

/* A hook whose calls are served but for comparing also has the library write its result elsewhere first. */
#define SHADOW(name, arguments, result)                                                                      \
  if (__builtin_expect(call.shadow != NULL, 0)) do {                                                         \
      void *own = result;                                                                                    \
      result = call.shadow;                                                                                  \
      cublasStatus_t of_shadow = real->name arguments;                                                       \
      result = own;                                                                                          \
      served = gs_call_shadowed(&call, of_shadow);                                                           \
  } while (0)
#define HOOK(name, parameters, arguments, describe) HOOK_(name, parameters, arguments, describe, )
#define HOOK_SERVED(name, parameters, arguments, describe, out)                                              \
  HOOK_(name, parameters, arguments, describe, SHADOW(name, arguments, out))
#define HOOK_(name, parameters, arguments, describe, shadow)                                                 \
  __attribute__((visibility("default"))) cublasStatus_t name parameters {                                    \
    const gs_real_t *real = real_for(__builtin_return_address(0));                                           \
    if (!real || !real->name) return CUBLAS_STATUS_NOT_INITIALIZED;                                          \
    if (passes(real, handle)) return real->name arguments;                                                   \
    gs_call_t call = {.real = real, .algorithm = CUBLAS_GEMM_DEFAULT};                                       \
    describe;                                                                                                \
    inside++;                                                                                                \
    bool served = gs_call_begin(&call);                                                                      \
    shadow;                                                                                                  \
    cublasStatus_t status = served ? CUBLAS_STATUS_SUCCESS : real->name arguments;                           \
    inside--;                                                                                                \
    if (!served) gs_call_end(&call);                                                                         \
    return status;                                                                                           \
  }                                                                                                          \
  extern __typeof__(name) name##_own __attribute__((alias(#name), visibility("hidden")));                    \
  static cublasStatus_t name##_via_0 parameters {                                                            \
    via = 1;                                                                                                 \
    return name##_own arguments;                                                                             \
  }                                                                                                          \
  static cublasStatus_t name##_via_1 parameters {                                                            \
    via = 2;                                                                                                 \
    return name##_own arguments;                                                                             \
  }

static void set_shape(gs_call_t *call, cublasHandle_t handle, gs_entry_t entry, cublasOperation_t transa,
                      cublasOperation_t transb, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb,
                      int64_t ldc) {
  gs_gemm_t *g = &call->gemm;
  call->handle = handle;
  g->entry = (uint8_t)entry;
  g->transa = (uint8_t)gs_op_of_cublas(transa), g->transb = (uint8_t)gs_op_of_cublas(transb);
  g->m = m, g->n = n, g->k = k;
  g->lda = lda, g->ldb = ldb, g->ldc = g->ldd = ldc;
  g->batch = 1;
}

static void set_types(gs_gemm_t *g, cudaDataType a, cudaDataType b, cudaDataType c,
                      cublasComputeType_t compute) {
  g->a_type = (uint8_t)gs_type_of_cuda(a), g->b_type = (uint8_t)gs_type_of_cuda(b);
  g->c_type = g->d_type = (uint8_t)gs_type_of_cuda(c);
  g->compute = (uint8_t)gs_compute_of_cublas(compute);
}

static void set_operands(gs_call_t *call, const void *a, const void *b, void *c, const void *alpha,
                         const void *beta) {
  call->at = (gs_operands_t){.a = a, .b = b, .c = c, .d = c, .alpha = alpha, .beta = beta};
  call->gemm.align = gs_align_of(&call->at);
}

static void set_batch(gs_gemm_t *g, gs_batch_t kind, int64_t batch) {
  g->batch_kind = (uint8_t)kind;
  g->batch = batch > INT32_MAX ? INT32_MAX : batch < 0 ? 0 : (int32_t)batch; /* 0 and less: cuBLAS answers */
}

static void set_strides(gs_gemm_t *g, long long a, long long b, long long c, int64_t batch) {
  set_batch(g, GS_BATCH_STRIDED, batch);
  g->stride_a = a, g->stride_b = b, g->stride_c = g->stride_d = c;
}

/* What every product with a handle has. */
#define SHAPE_PARAMETERS(INT)                                                                                \
  cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INT m, INT n, INT k
#define SHAPE_ARGUMENTS  handle, transa, transb, m, n, k
#define SET_SHAPE(entry) set_shape(&call, handle, GS_ENTRY_##entry, transa, transb, m, n, k, lda, ldb, ldc)

/* ---- served ---- */

#define GEMM_EX(suffix, INT)                                                                                 \
  HOOK_SERVED(                                                                                               \
      cublasGemmEx##suffix,                                                                                  \
      (SHAPE_PARAMETERS(INT), const void *alpha, const void *A, cudaDataType Atype, INT lda, const void *B,  \
       cudaDataType Btype, INT ldb, const void *beta, void *C, cudaDataType Ctype, INT ldc,                  \
       cublasComputeType_t compute, cublasGemmAlgo_t algo),                                                  \
      (SHAPE_ARGUMENTS, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc, compute, algo),            \
      {                                                                                                      \
        SET_SHAPE(GEMM_EX);                                                                                  \
        set_types(&call.gemm, Atype, Btype, Ctype, compute);                                                 \
        set_operands(&call, A, B, C, alpha, beta);                                                           \
        call.algorithm = algo;                                                                               \
      },                                                                                                     \
      C)
GEMM_EX(, int)
GEMM_EX(_64, int64_t)

#define GEMM_STRIDED_BATCHED_EX(suffix, INT)                                                                 \
  HOOK_SERVED(                                                                                               \
      cublasGemmStridedBatchedEx##suffix,                                                                    \
      (SHAPE_PARAMETERS(INT), const void *alpha, const void *A, cudaDataType Atype, INT lda,                 \
       long long int strideA, const void *B, cudaDataType Btype, INT ldb, long long int strideB,             \
       const void *beta, void *C, cudaDataType Ctype, INT ldc, long long int strideC, INT batch,             \
       cublasComputeType_t compute, cublasGemmAlgo_t algo),                                                  \
      (SHAPE_ARGUMENTS, alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB, beta, C, Ctype, ldc, strideC, \
       batch, compute, algo),                                                                                \
      {                                                                                                      \
        SET_SHAPE(GEMM_STRIDED_BATCHED_EX);                                                                  \
        set_types(&call.gemm, Atype, Btype, Ctype, compute);                                                 \
        set_operands(&call, A, B, C, alpha, beta);                                                           \
        set_strides(&call.gemm, strideA, strideB, strideC, batch);                                           \
        call.algorithm = algo;                                                                               \
      },                                                                                                     \
      C)
GEMM_STRIDED_BATCHED_EX(, int)
GEMM_STRIDED_BATCHED_EX(_64, int64_t)

/* No algorithm that splits k can use less: who passes it (vLLM's batch invariance does) wants one order of summation. */
#define TINY_WORKSPACE 4096 /* bytes */

static void describe_lt(gs_call_t *call, const void *const object[5], const gs_operands_t *at,
                        const cublasLtMatmulAlgo_t *algo, cublasLtHandle_t handle, cudaStream_t stream,
                        bool tiny) {
  call->lt = handle;
  call->at = *at;
  call->stream = (CUstream)stream;
  gs_lt_describe(call, object);
  if (tiny && call->refusal == GS_REASON_SERVED) call->refusal = GS_REASON_BATCH_INVARIANT;
  if (algo) call->lt_algorithm = gs_hash_words((const uint64_t *)algo->data, sizeof algo->data / 8);
}

HOOK_SERVED(cublasLtMatmul,
            (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,
             cublasLtMatrixLayout_t Adesc, const void *B, cublasLtMatrixLayout_t Bdesc, const void *beta,
             const void *C, cublasLtMatrixLayout_t Cdesc, void *D, cublasLtMatrixLayout_t Ddesc,
             const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspaceSizeInBytes,
             cudaStream_t stream),
            (handle, desc, alpha, A, Adesc, B, Bdesc, beta, C, Cdesc, D, Ddesc, algo, workspace,
             workspaceSizeInBytes, stream),
            describe_lt(&call, (const void *[]){desc, Adesc, Bdesc, Cdesc, Ddesc},
                        &(gs_operands_t){.a = A, .b = B, .c = C, .d = D, .alpha = alpha, .beta = beta}, algo,
                        handle, stream, workspace != NULL && workspaceSizeInBytes < TINY_WORKSPACE),
            D)

/* ---- typed: T is float, double or, for __half, void ---- */

#define GEMM(name, suffix, INT, T, type, COMPUTE, entry)                                                     \
  HOOK(name##suffix,                                                                                         \
       (SHAPE_PARAMETERS(INT), const T *alpha, const T *A, INT lda, const T *B, INT ldb, const T *beta,      \
        T *C, INT ldc),                                                                                      \
       (SHAPE_ARGUMENTS, alpha, A, lda, B, ldb, beta, C, ldc), {                                             \
         SET_SHAPE(entry);                                                                                   \
         set_types(&call.gemm, type, type, type, COMPUTE);                                                   \
         set_operands(&call, A, B, C, alpha, beta);                                                          \
       })

#define GEMM_BATCHED(name, suffix, INT, T, type, COMPUTE, entry)                                             \
  HOOK(name##Batched##suffix,                                                                                \
       (SHAPE_PARAMETERS(INT), const T *alpha, const T *const A[], INT lda, const T *const B[], INT ldb,     \
        const T *beta, T *const C[], INT ldc, INT batch),                                                    \
       (SHAPE_ARGUMENTS, alpha, A, lda, B, ldb, beta, C, ldc, batch), {                                      \
         SET_SHAPE(entry##_BATCHED);                                                                         \
         set_types(&call.gemm, type, type, type, COMPUTE);                                                   \
         set_batch(&call.gemm, GS_BATCH_ARRAY, batch);                                                       \
       })

#define GEMM_STRIDED_BATCHED(name, suffix, INT, T, type, COMPUTE, entry)                                     \
  HOOK(name##StridedBatched##suffix,                                                                         \
       (SHAPE_PARAMETERS(INT), const T *alpha, const T *A, INT lda, long long int strideA, const T *B,       \
        INT ldb, long long int strideB, const T *beta, T *C, INT ldc, long long int strideC, INT batch),     \
       (SHAPE_ARGUMENTS, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batch), {           \
         SET_SHAPE(entry##_STRIDED_BATCHED);                                                                 \
         set_types(&call.gemm, type, type, type, COMPUTE);                                                   \
         set_operands(&call, A, B, C, alpha, beta);                                                          \
         set_strides(&call.gemm, strideA, strideB, strideC, batch);                                          \
       })

#define TYPED(suffix, INT)                                                                                   \
  GEMM(cublasHgemm, suffix, INT, void, CUDA_R_16F, CUBLAS_COMPUTE_16F, HGEMM)                                \
  GEMM(cublasSgemm_v2, suffix, INT, float, CUDA_R_32F, CUBLAS_COMPUTE_32F, SGEMM)                            \
  GEMM(cublasDgemm_v2, suffix, INT, double, CUDA_R_64F, CUBLAS_COMPUTE_64F, DGEMM)                           \
  GEMM_BATCHED(cublasHgemm, suffix, INT, void, CUDA_R_16F, CUBLAS_COMPUTE_16F, HGEMM)                        \
  GEMM_BATCHED(cublasSgemm, suffix, INT, float, CUDA_R_32F, CUBLAS_COMPUTE_32F, SGEMM)                       \
  GEMM_BATCHED(cublasDgemm, suffix, INT, double, CUDA_R_64F, CUBLAS_COMPUTE_64F, DGEMM)                      \
  GEMM_STRIDED_BATCHED(cublasHgemm, suffix, INT, void, CUDA_R_16F, CUBLAS_COMPUTE_16F, HGEMM)                \
  GEMM_STRIDED_BATCHED(cublasSgemm, suffix, INT, float, CUDA_R_32F, CUBLAS_COMPUTE_32F, SGEMM)               \
  GEMM_STRIDED_BATCHED(cublasDgemm, suffix, INT, double, CUDA_R_64F, CUBLAS_COMPUTE_64F, DGEMM)
TYPED(, int)
TYPED(_64, int64_t)

/* ---- handles: cuBLAS reads its environment when one is made ---- */

/* A program's first call: a stub may have to bring cuBLAS in before there is one. */
static cublasStatus_t create_by_stub(cublasHandle_t *handle) {
  __typeof__(&cublasCreate_v2) stub =
      inside ? NULL : (__typeof__(&cublasCreate_v2))gs_real_stub("cublasCreate_v2", (void *)cublasCreate_v2);
  if (!stub) return CUBLAS_STATUS_NOT_INITIALIZED;
  inside++;
  cublasStatus_t status = stub(handle);
  inside--;
  return status;
}

static cublasStatus_t create(const gs_real_t *real, cublasHandle_t *handle) {
  if (!gs_option(GS_OPT_OFF)) gs_dispatch_heed_environment();
  if (!real) return create_by_stub(handle);
  return real->cublasCreate_v2 ? real->cublasCreate_v2(handle) : CUBLAS_STATUS_NOT_INITIALIZED;
}

__attribute__((visibility("default"))) cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  return create(real_for(__builtin_return_address(0)), handle);
}
static cublasStatus_t cublasCreate_v2_via_0(cublasHandle_t *handle) {
  return create(gs_real_at(0), handle);
}
static cublasStatus_t cublasCreate_v2_via_1(cublasHandle_t *handle) {
  return create(gs_real_at(1), handle);
}

/* ---- counted only ---- */

#define SGEMM_EX(suffix, INT)                                                                                \
  HOOK(cublasSgemmEx##suffix,                                                                                \
       (SHAPE_PARAMETERS(INT), const float *alpha, const void *A, cudaDataType Atype, INT lda,               \
        const void *B, cudaDataType Btype, INT ldb, const float *beta, void *C, cudaDataType Ctype,          \
        INT ldc),                                                                                            \
       (SHAPE_ARGUMENTS, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc), {                        \
         SET_SHAPE(SGEMM_EX);                                                                                \
         set_types(&call.gemm, Atype, Btype, Ctype, CUBLAS_COMPUTE_32F);                                     \
         set_operands(&call, A, B, C, alpha, beta);                                                          \
       })
SGEMM_EX(, int)
SGEMM_EX(_64, int64_t)

#define GEMM_BATCHED_EX(suffix, INT)                                                                         \
  HOOK(cublasGemmBatchedEx##suffix,                                                                          \
       (SHAPE_PARAMETERS(INT), const void *alpha, const void *const A[], cudaDataType Atype, INT lda,        \
        const void *const B[], cudaDataType Btype, INT ldb, const void *beta, void *const C[],               \
        cudaDataType Ctype, INT ldc, INT batch, cublasComputeType_t compute, cublasGemmAlgo_t algo),         \
       (SHAPE_ARGUMENTS, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc, batch, compute, algo), {  \
         SET_SHAPE(GEMM_BATCHED_EX);                                                                         \
         set_types(&call.gemm, Atype, Btype, Ctype, compute);                                                \
         set_batch(&call.gemm, GS_BATCH_ARRAY, batch);                                                       \
       })
GEMM_BATCHED_EX(, int)
GEMM_BATCHED_EX(_64, int64_t)

/* Groups differ in shape: the first one stands for the call, all products of all groups are its batch. */
#define GEMM_GROUPED_BATCHED_EX(suffix, INT)                                                                 \
  static void describe_grouped##suffix(gs_call_t *call, cublasHandle_t handle,                               \
                                       const cublasOperation_t *transa, const cublasOperation_t *transb,     \
                                       const INT *m, const INT *n, const INT *k, const INT *lda,             \
                                       const INT *ldb, const INT *ldc, INT groups, const INT *sizes) {       \
    int64_t batch = 0;                                                                                       \
    bool given = groups > 0 && transa && transb && m && n && k && lda && ldb && ldc && sizes;                \
    for (INT i = 0; given && i < groups; i++) batch += sizes[i];                                             \
    if (given)                                                                                               \
      set_shape(call, handle, GS_ENTRY_GEMM_GROUPED_BATCHED_EX, transa[0], transb[0], m[0], n[0], k[0],      \
                lda[0], ldb[0], ldc[0]);                                                                     \
    else                                                                                                     \
      set_shape(call, handle, GS_ENTRY_GEMM_GROUPED_BATCHED_EX, CUBLAS_OP_N, CUBLAS_OP_N, 0, 0, 0, 0, 0, 0); \
    set_batch(&call->gemm, GS_BATCH_GROUPED, batch);                                                         \
  }                                                                                                          \
  HOOK(cublasGemmGroupedBatchedEx##suffix,                                                                   \
       (cublasHandle_t handle, const cublasOperation_t transa[], const cublasOperation_t transb[],           \
        const INT m[], const INT n[], const INT k[], const void *alpha, const void *const A[],               \
        cudaDataType Atype, const INT lda[], const void *const B[], cudaDataType Btype, const INT ldb[],     \
        const void *beta, void *const C[], cudaDataType Ctype, const INT ldc[], INT groups,                  \
        const INT sizes[], cublasComputeType_t compute),                                                     \
       (handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc, groups,   \
        sizes, compute),                                                                                     \
       {                                                                                                     \
         describe_grouped##suffix(&call, handle, transa, transb, m, n, k, lda, ldb, ldc, groups, sizes);     \
         set_types(&call.gemm, Atype, Btype, Ctype, compute);                                                \
       })
GEMM_GROUPED_BATCHED_EX(, int)
GEMM_GROUPED_BATCHED_EX(_64, int64_t)

/* ---- looked up by handle ---- */

#define VIAS 2 /* libraries whose look-ups are answered with our functions; any further one keeps its own */

static const struct {
  const char *name;
  size_t of_real;
  void *via[VIAS];
} looked_up[] = {
#define GS_HOOKED(name) {#name, offsetof(gs_real_t, name), {name##_via_0, name##_via_1}},
#define GS_ASKED(name)
#include "real.def"
#undef GS_HOOKED
#undef GS_ASKED
};

/* What libgemmshim-handles.so gives a program whose look-up of name found a function: our own for it where that
 * is a real cuBLAS's, else found. The same for every look-up of it. */
__attribute__((visibility("default"))) void *gemmshim_lookup(const char *name, void *found);
void *gemmshim_lookup(const char *name, void *found) {
  size_t i = 0;
  while (i < sizeof looked_up / sizeof *looked_up && strcmp(looked_up[i].name, name) != 0) i++;
  if (i == sizeof looked_up / sizeof *looked_up || gs_option(GS_OPT_OFF)) return found;
  int real = gs_real_defining(looked_up[i].of_real, found);
  return real >= 0 && real < VIAS ? looked_up[i].via[real] : found;
}
