#include "library.h"

#include <stdlib.h>

#include "options.h"

#define X(name, text, value, ...) (cudaDataType_t) value,
static const cudaDataType_t cuda_types[] = {GS_TYPES(X)};
#undef X
#define X(name, text, value) value,
static const int32_t epilogues[] = {GS_EPILOGUES(X)};
static const int32_t ops[] = {GS_OPS(X)};
#undef X

static bool has_functions(const gs_real_t *real) {
  return real->cublasLtMatmul && real->cublasLtMatmulAlgoInit && real->cublasLtMatmulAlgoCheck &&
         real->cublasLtMatmulAlgoConfigSetAttribute && real->cublasLtMatmulAlgoConfigGetAttribute &&
         real->cublasLtMatmulAlgoCapGetAttribute && real->cublasLtMatmulDescInit_internal &&
         real->cublasLtMatmulDescSetAttribute && real->cublasLtMatrixLayoutInit_internal &&
         real->cublasLtMatrixLayoutSetAttribute;
}

static bool set(const gs_real_t *real, cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t id,
                const void *value, size_t size) {
  return real->cublasLtMatmulAlgoConfigSetAttribute(algo, id, value, size) == CUBLAS_STATUS_SUCCESS;
}

/* An attribute that an older library does not know may stay at 0. */
bool gs_library_algo(const gs_real_t *real, cublasLtHandle_t handle, const gs_gemm_t *g,
                     const gs_algo_t *algo, int split_k, cublasLtMatmulAlgo_t *made) {
  cudaDataType_t ab = cuda_types[g->a_type], cd = cuda_types[g->d_type];
  int32_t splits = split_k;
  if (!has_functions(real)) return false;
  if (real->cublasLtMatmulAlgoInit(handle, CUBLAS_COMPUTE_32F, CUDA_R_32F, ab, ab, cd, cd, algo->id, made) !=
      CUBLAS_STATUS_SUCCESS)
    return false;
  bool made_all = set(real, made, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits, sizeof splits);
#define X(letter, member, type, attribute)                                                                   \
  type member = (type)algo->member;                                                                          \
  made_all &= set(real, made, CUBLASLT_ALGO_CONFIG_##attribute, &member, sizeof member) || !member;
  GS_ALGO_ATTRIBUTES(X)
#undef X
  return made_all;
}

bool gs_library_read(const gs_real_t *real, const cublasLtMatmulAlgo_t *made, gs_algo_t *algo, int *split_k) {
  size_t written;
  int32_t splits = 0;
  if (!has_functions(real)) return false;
#define GET(attribute, into)                                                                                 \
  (real->cublasLtMatmulAlgoConfigGetAttribute(made, CUBLASLT_ALGO_CONFIG_##attribute, &(into), sizeof(into), \
                                              &written) == CUBLAS_STATUS_SUCCESS)
  *algo = (gs_algo_t){0};
  bool read = GET(ID, algo->id) && GET(SPLITK_NUM, splits);
#define X(letter, member, type, attribute)                                                                   \
  type member = 0;                                                                                           \
  if (GET(attribute, member)) algo->member = member;
  GS_ALGO_ATTRIBUTES(X)
#undef X
#undef GET
  *split_k = splits < 1 ? 1 : splits;
  return read;
}

/* ---- getting ready ---- */

static bool make_desc(gs_library_t *library, const gs_gemm_t *g, const void *bias, int device_scalars) {
  const gs_real_t *real = library->real;
  cublasLtMatmulDesc_t desc = &library->desc[device_scalars];
  int32_t mode = device_scalars ? CUBLASLT_POINTER_MODE_DEVICE : CUBLASLT_POINTER_MODE_HOST;
  const struct {
    cublasLtMatmulDescAttributes_t id;
    const void *value;
    size_t size;
  } wanted[] = {{CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode},
                {CUBLASLT_MATMUL_DESC_TRANSA, &ops[g->transa], sizeof ops[0]},
                {CUBLASLT_MATMUL_DESC_TRANSB, &ops[g->transb], sizeof ops[0]},
                {CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogues[g->epilogue], sizeof epilogues[0]},
                {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias}};
  size_t count = sizeof wanted / sizeof *wanted - !library->biased;
  bool made = real->cublasLtMatmulDescInit_internal(desc, sizeof *desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
              CUBLAS_STATUS_SUCCESS;
  for (size_t i = 0; i < count && made; i++)
    made = real->cublasLtMatmulDescSetAttribute(desc, wanted[i].id, wanted[i].value, wanted[i].size) ==
           CUBLAS_STATUS_SUCCESS;
  return made;
}

static bool make_layout(const gs_real_t *real, cublasLtMatrixLayout_t layout, const gs_gemm_t *g,
                        gs_type_t type, int64_t rows, int64_t columns, int64_t ld, int64_t stride) {
  if (real->cublasLtMatrixLayoutInit_internal(layout, sizeof *layout, cuda_types[type], (uint64_t)rows,
                                              (uint64_t)columns, ld) != CUBLAS_STATUS_SUCCESS)
    return false;
  if (g->batch_kind != GS_BATCH_STRIDED) return true;
  int32_t batch = g->batch;
  return real->cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                                sizeof batch) == CUBLAS_STATUS_SUCCESS &&
         real->cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                sizeof stride) == CUBLAS_STATUS_SUCCESS;
}

static bool make_layouts(gs_library_t *library, const gs_gemm_t *g) {
  const gs_real_t *real = library->real;
  bool ta = g->transa != GS_OP_N, tb = g->transb != GS_OP_N;
  return make_layout(real, &library->a, g, g->a_type, ta ? g->k : g->m, ta ? g->m : g->k, g->lda,
                     g->stride_a) &&
         make_layout(real, &library->b, g, g->b_type, tb ? g->n : g->k, tb ? g->k : g->n, g->ldb,
                     g->stride_b) &&
         make_layout(real, &library->c, g, g->c_type, g->m, g->n, g->ldc, g->stride_c) &&
         make_layout(real, &library->d, g, g->d_type, g->m, g->n, g->ldd, g->stride_d);
}

/* The call's addresses share g->align bytes, 16 standing for that and more. */
static bool aligned(const gs_library_t *library, const gs_gemm_t *g) {
  static const cublasLtMatmulAlgoCapAttributes_t wanted[] = {
      CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES};
  for (int i = 0; i < 4; i++) {
    uint32_t bytes = 0;
    size_t written;
    if (library->real->cublasLtMatmulAlgoCapGetAttribute(&library->algo, wanted[i], &bytes, sizeof bytes,
                                                         &written) != CUBLAS_STATUS_SUCCESS ||
        bytes > g->align)
      return false;
  }
  return true;
}

static bool check(gs_library_t *library, cublasLtHandle_t handle, int device_scalars) {
  cublasLtMatmulHeuristicResult_t answer = {.state = CUBLAS_STATUS_NOT_SUPPORTED};
  if (library->real->cublasLtMatmulAlgoCheck(handle, &library->desc[device_scalars], &library->a, &library->b,
                                             &library->c, &library->d, &library->algo,
                                             &answer) != CUBLAS_STATUS_SUCCESS ||
      answer.state != CUBLAS_STATUS_SUCCESS)
    return false;
  library->workspace = answer.workspaceSize;
  return true;
}

gs_reason_t gs_library_prepare(gs_library_t *library, const gs_real_t *real, cublasLtHandle_t handle,
                               const gs_gemm_t *g, const gs_operands_t *at, const gs_algo_t *algo,
                               int split_k) {
  *library = (gs_library_t){.real = real, .biased = gs_epilogue_has_bias((gs_epilogue_t)g->epilogue)};
  library->refusal = gs_algo_supports(g);
  if (library->refusal != GS_REASON_SERVED) return library->refusal;
  library->refusal = GS_REASON_ALGORITHM_REFUSED;
  if (!gs_algo_exact(algo) || !gs_library_algo(real, handle, g, algo, split_k, &library->algo))
    return library->refusal;
  if (!make_desc(library, g, at->bias, 0) || !make_desc(library, g, at->bias, 1) || !make_layouts(library, g))
    return library->refusal;
  library->usable[0] = check(library, handle, 0);
  library->usable[1] = check(library, handle, 1);
  if (!library->usable[0] && !library->usable[1]) return library->refusal;
  return library->refusal = aligned(library, g) ? GS_REASON_SERVED : GS_REASON_ALIGNMENT;
}

cublasStatus_t gs_library_matmul(const gs_library_t *library, cublasLtHandle_t handle,
                                 const gs_operands_t *at, bool device_scalars, void *workspace,
                                 cudaStream_t stream) {
  const gs_real_t *real = library->real;
  cublasLtMatmulDescOpaque_t biased;
  const cublasLtMatmulDescOpaque_t *desc = &library->desc[device_scalars];
  if (library->biased) {
    biased = *desc;
    desc = &biased;
    if (real->cublasLtMatmulDescSetAttribute(&biased, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at->bias,
                                             sizeof at->bias) != CUBLAS_STATUS_SUCCESS)
      return CUBLAS_STATUS_INVALID_VALUE;
  }
#define READ_ONLY(type, object) ((type)(uintptr_t)(object)) /* the prototypes lack a const */
  return real->cublasLtMatmul(
      handle, READ_ONLY(cublasLtMatmulDesc_t, desc), at->alpha, at->a,
      READ_ONLY(cublasLtMatrixLayout_t, &library->a), at->b, READ_ONLY(cublasLtMatrixLayout_t, &library->b),
      at->beta, at->c ? at->c : at->d, READ_ONLY(cublasLtMatrixLayout_t, &library->c), at->d,
      READ_ONLY(cublasLtMatrixLayout_t, &library->d), &library->algo, workspace, library->workspace, stream);
#undef READ_ONLY
}

typedef struct {
  const gs_library_t *library;
  cublasLtHandle_t handle;
} gs_caller_t;

static bool enqueue(void *self, const gs_operands_t *at, void *workspace, CUstream stream) {
  const gs_caller_t *caller = self;
  return gs_library_matmul(caller->library, caller->handle, at, false, workspace, (cudaStream_t)stream) ==
         CUBLAS_STATUS_SUCCESS;
}

/* What is learnt over addresses that divide by 16 may not hold for others. */
void gs_library_learn(gs_library_t *library, cublasLtHandle_t handle, const gs_gemm_t *g, CUcontext current) {
  gs_caller_t caller = {library, handle};
  if (atomic_exchange(&library->asked, true) || !gs_option(GS_OPT_RELAUNCH) || !library->usable[0] ||
      g->align < 16)
    return;
  library->context = current;
  atomic_store_explicit(&library->learnt, gs_relaunch_learn(enqueue, &caller, library->workspace),
                        memory_order_release);
}

void gs_library_free(gs_library_t *library) {
  if (library) gs_relaunch_free(library->learnt);
  free(library);
}

/* ---- those of one product ---- */

static gs_library_t *find(gs_library_t *first, const gs_real_t *real, const gs_row_t *row, CUdevice device) {
  while (first && (first->real != real || first->row != row || first->device != device)) first = first->next;
  return first;
}

gs_library_t *gs_library_find(gs_libraries_t *libraries, const gs_real_t *real, const gs_row_t *row,
                              CUdevice device) {
  return find(atomic_load_explicit(libraries, memory_order_acquire), real, row, device);
}

gs_library_t *gs_library_of(gs_libraries_t *libraries, const gs_real_t *real, cublasLtHandle_t handle,
                            const gs_gemm_t *g, const gs_operands_t *at, const gs_row_t *row,
                            CUdevice device) {
  gs_library_t *first = atomic_load_explicit(libraries, memory_order_acquire);
  gs_library_t *library = find(first, real, row, device);
  if (library || !(library = malloc(sizeof *library))) return library;
  gs_library_prepare(library, real, handle, g, at, &row->algo, row->split_k);
  library->row = row;
  library->device = device;
  do {
    gs_library_t *others = find(first, real, row, device); /* another thread was here first */
    if (others) {
      gs_library_free(library);
      return others;
    }
    library->next = first;
  } while (!atomic_compare_exchange_strong(libraries, &first, library));
  return library;
}

void gs_libraries_free(gs_libraries_t *libraries) {
  for (gs_library_t *library = atomic_exchange(libraries, NULL), *next; library; library = next) {
    next = library->next;
    gs_library_free(library);
  }
}
