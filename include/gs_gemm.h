/* What a caller asked of cuBLAS: gs_gemm_t, a plain value that is hashed and compared byte by byte
 * (zero it before filling it in), and where the matrices lie: gs_operands_t.
 *
 *   D (m x n) = epilogue(alpha * op(A) (m x k) * op(B) (k x n) + beta * C (m x n)), all column-major,
 * as in the cuBLAS manual, section "cublasGemmEx" and "cublasLtMatmul". Sizes, leading dimensions and
 * strides are in elements. */
#ifndef GS_GEMM_H
#define GS_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gs_status.h"

/* name, text, cudaDataType value (library_types.h), bytes an element */
#define GS_TYPES(X)                                                                                          \
  X(OTHER, "other", -1, 0)                                                                                   \
  X(F16, "f16", 2, 2)                                                                                        \
  X(BF16, "bf16", 14, 2)                                                                                     \
  X(F32, "f32", 0, 4)                                                                                        \
  X(F64, "f64", 1, 8)                                                                                        \
  X(I8, "i8", 3, 1)                                                                                          \
  X(I32, "i32", 10, 4)                                                                                       \
  X(E4M3, "e4m3", 28, 1)                                                                                     \
  X(E5M2, "e5m2", 29, 1)                                                                                     \
  X(C32, "c32", 4, 8)                                                                                        \
  X(C64, "c64", 5, 16)

/* name, text, cublasComputeType_t value (cublas_api.h) */
#define GS_COMPUTES(X)                                                                                       \
  X(OTHER, "other", -1)                                                                                      \
  X(16F, "16f", 64)                                                                                          \
  X(16F_PEDANTIC, "16f_pedantic", 65)                                                                        \
  X(32F, "32f", 68)                                                                                          \
  X(32F_PEDANTIC, "32f_pedantic", 69)                                                                        \
  X(32F_FAST_16F, "32f_fast_16f", 74)                                                                        \
  X(32F_FAST_16BF, "32f_fast_16bf", 75)                                                                      \
  X(32F_FAST_TF32, "32f_fast_tf32", 77)                                                                      \
  X(64F, "64f", 70)                                                                                          \
  X(64F_PEDANTIC, "64f_pedantic", 71)                                                                        \
  X(32I, "32i", 72)                                                                                          \
  X(32I_PEDANTIC, "32i_pedantic", 73)

/* name, text, cublasLtEpilogue_t value (cublasLt.h); GELU is cuBLASLt's tanh approximation */
#define GS_EPILOGUES(X)                                                                                      \
  X(DEFAULT, "default", 1)                                                                                   \
  X(RELU, "relu", 2)                                                                                         \
  X(BIAS, "bias", 4)                                                                                         \
  X(RELU_BIAS, "relu_bias", 6)                                                                               \
  X(GELU, "gelu", 32)                                                                                        \
  X(GELU_BIAS, "gelu_bias", 36)                                                                              \
  X(OTHER, "other", -1)

/* name, text, cublasOperation_t value */
#define GS_OPS(X) X(N, "n", 0) X(T, "t", 1) X(C, "c", 2) X(OTHER, "?", -1)

/* The interposed entry points: name, text. SERVED ones can reach a kernel; the rest are counted only. */
#define GS_ENTRIES_SERVED(X)                                                                                 \
  X(GEMM_EX, "cublasGemmEx")                                                                                 \
  X(GEMM_STRIDED_BATCHED_EX, "cublasGemmStridedBatchedEx")                                                   \
  X(HGEMM, "cublasHgemm")                                                                                    \
  X(LT_MATMUL, "cublasLtMatmul")
#define GS_ENTRIES_COUNTED(X)                                                                                \
  X(SGEMM, "cublasSgemm")                                                                                    \
  X(DGEMM, "cublasDgemm")                                                                                    \
  X(SGEMM_EX, "cublasSgemmEx")                                                                               \
  X(GEMM_BATCHED_EX, "cublasGemmBatchedEx")                                                                  \
  X(GEMM_GROUPED_BATCHED_EX, "cublasGemmGroupedBatchedEx")                                                   \
  X(HGEMM_BATCHED, "cublasHgemmBatched")                                                                     \
  X(SGEMM_BATCHED, "cublasSgemmBatched")                                                                     \
  X(DGEMM_BATCHED, "cublasDgemmBatched")                                                                     \
  X(HGEMM_STRIDED_BATCHED, "cublasHgemmStridedBatched")                                                      \
  X(SGEMM_STRIDED_BATCHED, "cublasSgemmStridedBatched")                                                      \
  X(DGEMM_STRIDED_BATCHED, "cublasDgemmStridedBatched")
#define GS_ENTRIES(X) GS_ENTRIES_SERVED(X) GS_ENTRIES_COUNTED(X)

#define X(name, ...) GS_TYPE_##name,
typedef enum { GS_TYPES(X) GS_TYPE_COUNT } gs_type_t;
#undef X
#define X(name, ...) GS_COMPUTE_##name,
typedef enum { GS_COMPUTES(X) GS_COMPUTE_COUNT } gs_compute_t;
#undef X
#define X(name, ...) GS_EPILOGUE_##name,
typedef enum { GS_EPILOGUES(X) GS_EPILOGUE_COUNT } gs_epilogue_t;
#undef X
#define X(name, ...) GS_OP_##name,
typedef enum { GS_OPS(X) GS_OP_COUNT } gs_op_t;
#undef X
#define X(name, ...) GS_ENTRY_##name,
typedef enum { GS_ENTRIES(X) GS_ENTRY_COUNT } gs_entry_t;
#undef X
#define X(name, ...) +1
enum { GS_ENTRY_SERVED_COUNT = 0 GS_ENTRIES_SERVED(X) }; /* the served ones come first */
#undef X

/* How several products come in one call. */
#define GS_BATCHES(X) X(SINGLE, "single") X(STRIDED, "strided") X(ARRAY, "array") X(GROUPED, "grouped")
#define X(name, ...)  GS_BATCH_##name,
typedef enum { GS_BATCHES(X) GS_BATCH_COUNT } gs_batch_t;
#undef X

typedef struct {
  uint8_t entry;      /* gs_entry_t */
  uint8_t transa;     /* gs_op_t */
  uint8_t transb;     /* gs_op_t */
  uint8_t a_type;     /* gs_type_t */
  uint8_t b_type;     /* gs_type_t */
  uint8_t c_type;     /* gs_type_t of C */
  uint8_t d_type;     /* gs_type_t of D; that of C everywhere but in cublasLtMatmul */
  uint8_t compute;    /* gs_compute_t */
  uint8_t epilogue;   /* gs_epilogue_t */
  uint8_t batch_kind; /* gs_batch_t */
  uint8_t align;      /* bytes, a power of two, at most 16: what all operand addresses share; 0 = unknown */
  uint8_t reserved;
  int32_t batch; /* products; 1 unless batched */
  int64_t m, n, k;
  int64_t lda, ldb, ldc, ldd;
  int64_t stride_a, stride_b, stride_c, stride_d; /* between products; 0 where batch_kind is SINGLE */
} gs_gemm_t;

/* Addresses belong to the caller; alpha and beta point to host memory, or to device memory where
 * device_scalars is set, and hold a value of the call's scale type. */
typedef struct {
  const void *a, *b, *c;
  void *d;
  const void *bias; /* NULL without a bias epilogue; m elements of d's type */
  const void *alpha, *beta;
} gs_operands_t;

extern const char *const gs_type_names[GS_TYPE_COUNT];
extern const char *const gs_compute_names[GS_COMPUTE_COUNT];
extern const char *const gs_epilogue_names[GS_EPILOGUE_COUNT];
extern const char *const gs_op_names[GS_OP_COUNT];
extern const char *const gs_entry_names[GS_ENTRY_COUNT];
extern const char *const gs_batch_names[GS_BATCH_COUNT];
extern const uint8_t gs_type_bytes[GS_TYPE_COUNT];

/* Index of text among count names, or -1. */
int gs_name_index(const char *text, const char *const *names, int count);

/* From the values that cuBLAS uses; unknown ones become OTHER. */
gs_type_t gs_type_of_cuda(int value);
gs_compute_t gs_compute_of_cublas(int value);
gs_epilogue_t gs_epilogue_of_cublas(int value);
gs_op_t gs_op_of_cublas(int value);

static inline bool gs_epilogue_has_bias(gs_epilogue_t epilogue) {
  return epilogue == GS_EPILOGUE_BIAS || epilogue == GS_EPILOGUE_RELU_BIAS ||
         epilogue == GS_EPILOGUE_GELU_BIAS;
}

/* Largest power of two, at most 16, that divides every address given (NULL divides by all). */
uint8_t gs_align_of(const gs_operands_t *o);

uint64_t gs_gemm_hash(const gs_gemm_t *g);
static inline double gs_gemm_flops(const gs_gemm_t *g) {
  return 2.0 * (double)g->m * (double)g->n * (double)g->k * (double)g->batch;
}

/* One call as one line of a .calls file, the text that `run` writes and `tune`, `bench`, `report` read:
 *   entry transa transb m n k lda ldb ldc ldd a_type b_type c_type d_type compute epilogue
 *   batch_kind batch stride_a stride_b stride_c stride_d align
 * tab-separated, no newline. gs_gemm_format returns the length, as snprintf; gs_gemm_parse reads such a
 * line's leading GS_GEMM_FIELDS fields and says in why (a static text) what is wrong. */
#define GS_GEMM_FIELDS 23
int gs_gemm_format(char *buffer, size_t size, const gs_gemm_t *g);
gs_status_t gs_gemm_parse(const char *line, gs_gemm_t *g, const char **why);

/* For people: "cublasGemmEx TN 4096x8x4096 f16,f16->f16 32f ld 4096,4096,4096 align 16". */
int gs_gemm_describe(char *buffer, size_t size, const gs_gemm_t *g);

#endif
