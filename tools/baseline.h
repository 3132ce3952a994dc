/* The real cuBLAS and cuBLASLt, loaded at run time and never linked: what kernels are measured against. */
#ifndef GS_BASELINE_H
#define GS_BASELINE_H

#include <cublasLt.h>
#include <cublas_api.h>

#include "gpu.h"
#include "library.h"

#define GS_CUBLAS_FUNCTIONS(X)                                                                               \
  X(cublasCreate_v2)                                                                                         \
  X(cublasDestroy_v2)                                                                                        \
  X(cublasSetStream_v2)                                                                                      \
  X(cublasSetWorkspace_v2)                                                                                   \
  X(cublasGetProperty)                                                                                       \
  X(cublasGemmEx)                                                                                            \
  X(cublasGemmStridedBatchedEx)
#define GS_CUBLASLT_FUNCTIONS(X)                                                                             \
  X(cublasLtCreate)                                                                                          \
  X(cublasLtDestroy)                                                                                         \
  X(cublasLtMatmul)                                                                                          \
  X(cublasLtMatmulDescCreate)                                                                                \
  X(cublasLtMatmulDescDestroy)                                                                               \
  X(cublasLtMatmulDescSetAttribute)                                                                          \
  X(cublasLtMatrixLayoutCreate)                                                                              \
  X(cublasLtMatrixLayoutDestroy)                                                                             \
  X(cublasLtMatrixLayoutSetAttribute)                                                                        \
  X(cublasLtMatmulPreferenceCreate)                                                                          \
  X(cublasLtMatmulPreferenceDestroy)                                                                         \
  X(cublasLtMatmulPreferenceSetAttribute)                                                                    \
  X(cublasLtMatmulAlgoGetHeuristic)                                                                          \
  X(cublasLtMatmulAlgoGetIds)                                                                                \
  X(cublasLtMatmulAlgoInit)                                                                                  \
  X(cublasLtMatmulAlgoCapGetAttribute)                                                                       \
  X(cublasLtMatmulAlgoCheck)

#define GS_CUBLAS_WORKSPACE (32u << 20) /* bytes: what cuBLAS itself takes on Hopper */

typedef struct {
#define X(name) __typeof__(&name) name;
  GS_CUBLAS_FUNCTIONS(X)
  GS_CUBLASLT_FUNCTIONS(X)
#undef X
  const gs_real_t *real; /* the same library, as the preloaded one knows it */
  char path[512];        /* of libcublas */
  int version[3];
  gs_gpu_t *gpu;
  cublasHandle_t handle;
  cublasLtHandle_t lt;
  CUdeviceptr workspace;
} gs_cublas_t;

/* Loads cuBLAS from path; without one (NULL), from the library path, then the python3 on PATH and its
 * packages, then the CUDA toolkit. Handles run on gpu's stream with their own workspace. Where it fails,
 * fault says why and what to do. */
gs_status_t gs_cublas_open(gs_cublas_t *cublas, gs_gpu_t *gpu, const char *path, char *fault, size_t size);
void gs_cublas_close(gs_cublas_t *cublas);

/* The library's status for g on these operands, alpha 1 and beta 0: cublasGemmEx, or its strided batched
 * sister; GS_EPILOGUE_DEFAULT only. */
cublasStatus_t gs_cublas_gemm(const gs_cublas_t *cublas, const gs_gemm_t *g, const gs_operands_t *o);

/* cublasLtMatmul for one product and the algorithms that its heuristic offers. */
#define GS_LT_CANDIDATES_MAX 100
typedef struct {
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t a, b, d;
  cublasLtMatmulHeuristicResult_t candidates[GS_LT_CANDIDATES_MAX];
  int count; /* of candidates, the heuristic's first choice first */
  const gs_cublas_t *cublas;
} gs_lt_t;

/* bias: device memory, read by the bias epilogues. count stays 0 where cuBLASLt does not know g. */
void gs_lt_open(gs_lt_t *lt, const gs_cublas_t *cublas, const gs_gemm_t *g, const void *bias);
void gs_lt_close(gs_lt_t *lt);
cublasStatus_t gs_lt_matmul(const gs_lt_t *lt, int candidate, const gs_gemm_t *g, const gs_operands_t *o);

#endif
