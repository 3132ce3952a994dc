#define _GNU_SOURCE
#include "baseline.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_library.h"

static const struct {
  const char *name;
  size_t offset;
  bool lt;
} functions[] = {
#define X(name) {#name, offsetof(gs_cublas_t, name), false},
    GS_CUBLAS_FUNCTIONS(X)
#undef X
#define X(name) {#name, offsetof(gs_cublas_t, name), true},
        GS_CUBLASLT_FUNCTIONS(X)
#undef X
};

/* ---- finding the library ---- */

/* cuBLASLt first, from the same folder, so that the cuBLAS there does not bring another one in. */
static void *load_beside(const char *path) {
  char lt[PATH_MAX];
  const char *name = strrchr(path, '/'), *suffix = strstr(name ? name : path, ".so");
  int folder = name ? (int)(name + 1 - path) : 0;
  if (snprintf(lt, sizeof lt, "%.*slibcublasLt%s", folder, path, suffix ? suffix : ".so") < (int)sizeof lt)
    dlopen(lt, RTLD_NOW);
  return dlopen(path, RTLD_NOW);
}

static void *load(const char *path) {
  return path ? load_beside(path) : gs_cuda_library("libcublas", load_beside);
}

static bool bind(gs_cublas_t *cublas, void *handle, bool lt, char *fault, size_t size) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (functions[i].lt != lt) continue;
    void *function = handle ? dlsym(handle, functions[i].name) : NULL;
    if (!function) {
      snprintf(fault, size, "%s is not to be had from this cuBLAS: version 12 or newer is needed",
               functions[i].name);
      return false;
    }
    *(void **)((char *)cublas + functions[i].offset) = function;
  }
  return true;
}

static bool bind_both(gs_cublas_t *cublas, void *handle, char *fault, size_t size) {
  char lt[32];
  Dl_info info;
  if (!bind(cublas, handle, false, fault, size)) return false;
  for (int part = 0; part < 3; part++)
    cublas->cublasGetProperty((libraryPropertyType)(MAJOR_VERSION + part), &cublas->version[part]);
  if (dladdr((void *)(uintptr_t)cublas->cublasGemmEx, &info) && info.dli_fname)
    snprintf(cublas->path, sizeof cublas->path, "%s", info.dli_fname);
  snprintf(lt, sizeof lt, "libcublasLt.so.%d", cublas->version[0]);
  cublas->real = gs_real_of((const void *)(uintptr_t)cublas->cublasGemmEx);
  return bind(cublas, dlopen(lt, RTLD_NOW | RTLD_NOLOAD), true, fault, size);
}

gs_status_t gs_cublas_open(gs_cublas_t *cublas, gs_gpu_t *gpu, const char *path, char *fault, size_t size) {
  *cublas = (gs_cublas_t){.gpu = gpu};
  void *handle = load(path);
  if (!handle) {
    if (path)
      snprintf(fault, size, "%s cannot be loaded: %s", path, dlerror());
    else
      snprintf(fault, size,
               "no libcublas.so.13 or .12 found: set LD_LIBRARY_PATH to it, or use --cublas FILE");
    return GS_NOT_FOUND;
  }
  if (!bind_both(cublas, handle, fault, size)) return GS_UNSUPPORTED;
  cublas->workspace = gs_gpu_alloc(gpu, GS_CUBLAS_WORKSPACE);
  cublasStatus_t status = cublas->cublasCreate_v2(&cublas->handle);
  if (status == CUBLAS_STATUS_SUCCESS) status = cublas->cublasLtCreate(&cublas->lt);
  if (status == CUBLAS_STATUS_SUCCESS) status = cublas->cublasSetStream_v2(cublas->handle, gpu->stream);
  if (status == CUBLAS_STATUS_SUCCESS)
    status =
        cublas->cublasSetWorkspace_v2(cublas->handle, gs_gpu_pointer(cublas->workspace), GS_CUBLAS_WORKSPACE);
  if (status == CUBLAS_STATUS_SUCCESS && gs_gpu_ok(gpu)) return GS_OK;
  snprintf(fault, size, "%s does not start: cuBLAS status %d", cublas->path, (int)status);
  return GS_DRIVER;
}

void gs_cublas_close(gs_cublas_t *cublas) {
  if (cublas->handle) cublas->cublasDestroy_v2(cublas->handle);
  if (cublas->lt) cublas->cublasLtDestroy(cublas->lt);
  if (cublas->workspace) gs_gpu_free(cublas->gpu, cublas->workspace);
  *cublas = (gs_cublas_t){0};
}

/* ---- calls ---- */

#define X(name, text, value, ...) (cudaDataType_t) value,
static const cudaDataType_t cuda_types[] = {GS_TYPES(X)};
#undef X
#define X(name, text, value) (cublasComputeType_t) value,
static const cublasComputeType_t computes[] = {GS_COMPUTES(X)};
#undef X
#define X(name, text, value) (cublasLtEpilogue_t) value,
static const cublasLtEpilogue_t epilogues[] = {GS_EPILOGUES(X)};
#undef X
#define X(name, text, value) (cublasOperation_t) value,
static const cublasOperation_t ops[] = {GS_OPS(X)};
#undef X

/* 1 and 0 in the scale type that the compute type implies. */
typedef struct {
  cudaDataType_t type;
  const void *one, *zero;
} gs_scalars_t;

static gs_scalars_t scalars_of(const gs_gemm_t *g) {
  static const uint16_t half_one = 0x3c00, half_zero = 0;
  static const float one = 1, zero = 0;
  if (g->compute == GS_COMPUTE_16F) return (gs_scalars_t){CUDA_R_16F, &half_one, &half_zero};
  return (gs_scalars_t){CUDA_R_32F, &one, &zero};
}

cublasStatus_t gs_cublas_gemm(const gs_cublas_t *cublas, const gs_gemm_t *g, const gs_operands_t *o) {
  gs_scalars_t scalars = scalars_of(g);
  int m = (int)g->m, n = (int)g->n, k = (int)g->k;
  if (g->batch_kind == GS_BATCH_STRIDED)
    return cublas->cublasGemmStridedBatchedEx(
        cublas->handle, ops[g->transa], ops[g->transb], m, n, k, scalars.one, o->a, cuda_types[g->a_type],
        (int)g->lda, g->stride_a, o->b, cuda_types[g->b_type], (int)g->ldb, g->stride_b, scalars.zero, o->d,
        cuda_types[g->d_type], (int)g->ldd, g->stride_d, g->batch, computes[g->compute], CUBLAS_GEMM_DEFAULT);
  return cublas->cublasGemmEx(cublas->handle, ops[g->transa], ops[g->transb], m, n, k, scalars.one, o->a,
                              cuda_types[g->a_type], (int)g->lda, o->b, cuda_types[g->b_type], (int)g->ldb,
                              scalars.zero, o->d, cuda_types[g->d_type], (int)g->ldd, computes[g->compute],
                              CUBLAS_GEMM_DEFAULT);
}

static cublasLtMatrixLayout_t layout(const gs_cublas_t *cublas, const gs_gemm_t *g, gs_type_t type,
                                     bool trans, int64_t rows, int64_t cols, int64_t ld, int64_t stride) {
  cublasLtMatrixLayout_t made = NULL;
  if (cublas->cublasLtMatrixLayoutCreate(&made, cuda_types[type], (uint64_t)(trans ? cols : rows),
                                         (uint64_t)(trans ? rows : cols), ld) != CUBLAS_STATUS_SUCCESS)
    return NULL;
  if (g->batch_kind == GS_BATCH_STRIDED) {
    cublas->cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &g->batch,
                                             sizeof g->batch);
    cublas->cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                             sizeof stride);
  }
  return made;
}

static void ask_heuristic(gs_lt_t *lt, const gs_gemm_t *g) {
  static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  const gs_cublas_t *cublas = lt->cublas;
  cublasLtMatmulPreference_t preference;
  size_t workspace = GS_CUBLAS_WORKSPACE;
  /* gs_gemm_t counts to 16; what is at least that aligned lies on 256 bytes in every allocator. */
  uint32_t alignment = g->align && g->align < 16 ? g->align : 256;
  if (cublas->cublasLtMatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS) return;
  cublas->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &workspace, sizeof workspace);
  for (int i = 0; i < 4; i++)
    cublas->cublasLtMatmulPreferenceSetAttribute(preference, alignments[i], &alignment, sizeof alignment);
  if (cublas->cublasLtMatmulAlgoGetHeuristic(cublas->lt, lt->desc, lt->a, lt->b, lt->d, lt->d, preference,
                                             GS_LT_CANDIDATES_MAX, lt->candidates,
                                             &lt->count) != CUBLAS_STATUS_SUCCESS)
    lt->count = 0;
  cublas->cublasLtMatmulPreferenceDestroy(preference);
}

void gs_lt_open(gs_lt_t *lt, const gs_cublas_t *cublas, const gs_gemm_t *g, const void *bias) {
  *lt = (gs_lt_t){.cublas = cublas};
  if (cublas->cublasLtMatmulDescCreate(&lt->desc, computes[g->compute], scalars_of(g).type) !=
      CUBLAS_STATUS_SUCCESS)
    return;
  const struct {
    cublasLtMatmulDescAttributes_t attribute;
    const void *value;
    size_t size;
  } wanted[] = {
      {CUBLASLT_MATMUL_DESC_TRANSA, &ops[g->transa], sizeof ops[0]},
      {CUBLASLT_MATMUL_DESC_TRANSB, &ops[g->transb], sizeof ops[0]},
      {CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogues[g->epilogue], sizeof epilogues[0]},
      {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias},
  };
  /* The bias comes last: cublasLtMatmul refuses a pointer that the epilogue has no use for. */
  size_t count = sizeof wanted / sizeof *wanted - !gs_epilogue_has_bias((gs_epilogue_t)g->epilogue);
  for (size_t i = 0; i < count; i++)
    cublas->cublasLtMatmulDescSetAttribute(lt->desc, wanted[i].attribute, wanted[i].value, wanted[i].size);
  lt->a = layout(cublas, g, g->a_type, g->transa != GS_OP_N, g->m, g->k, g->lda, g->stride_a);
  lt->b = layout(cublas, g, g->b_type, g->transb != GS_OP_N, g->k, g->n, g->ldb, g->stride_b);
  lt->d = layout(cublas, g, g->d_type, false, g->m, g->n, g->ldd, g->stride_d);
  if (lt->a && lt->b && lt->d) ask_heuristic(lt, g);
}

void gs_lt_close(gs_lt_t *lt) {
  const cublasLtMatrixLayout_t layouts[] = {lt->a, lt->b, lt->d}; /* C is D */
  for (int i = 0; i < 3; i++)
    if (layouts[i]) lt->cublas->cublasLtMatrixLayoutDestroy(layouts[i]);
  if (lt->desc) lt->cublas->cublasLtMatmulDescDestroy(lt->desc);
}

cublasStatus_t gs_lt_matmul(const gs_lt_t *lt, int candidate, const gs_gemm_t *g, const gs_operands_t *o) {
  const gs_cublas_t *cublas = lt->cublas;
  gs_scalars_t scalars = scalars_of(g);
  return cublas->cublasLtMatmul(cublas->lt, lt->desc, scalars.one, o->a, lt->a, o->b, lt->b, scalars.zero,
                                o->d, lt->d, o->d, lt->d, &lt->candidates[candidate].algo,
                                gs_gpu_pointer(cublas->workspace), GS_CUBLAS_WORKSPACE, cublas->gpu->stream);
}
