/* Stand-in libcublasLt: handles, algorithms and the product. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lt_objects.h"
#include "record.h"

#define ALGORITHMS 6 /* all are like the first one, but for how fast SIM_US makes them */
#define OFFERED    4 /* by the heuristic */
#define TILES      3 /* of each: 64x64 + its number, and what follows */

static _Thread_local cublasLtMatmulAlgo_t last_algo;
static _Thread_local bool has_algo;

SIM_EXPORT int sim_last_algo(uint64_t algo[8]) {
  memcpy(algo, &last_algo, sizeof last_algo);
  return has_algo;
}

SIM_EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  SIM_ENTER(handle);
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = (cublasLtHandle_t)sim_handle_create();
  return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

SIM_EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  SIM_ENTER(handle);
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}

SIM_EXPORT size_t cublasLtGetVersion(void) {
  int parts[3];
  sim_version(parts);
  return (size_t)(parts[0] * 10000 + parts[1] * 100 + parts[2]);
}

SIM_EXPORT cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int *value) {
  SIM_ENTER(type, value);
  int parts[3];
  if (!value || (unsigned)type > PATCH_LEVEL) return CUBLAS_STATUS_INVALID_VALUE;
  sim_version(parts);
  *value = parts[type];
  return CUBLAS_STATUS_SUCCESS;
}

SIM_EXPORT const char *cublasLtGetStatusName(cublasStatus_t status) {
  return sim_status_name(status);
}
SIM_EXPORT const char *cublasLtGetStatusString(cublasStatus_t status) {
  return sim_status_text(status);
}

SIM_EXPORT cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute,
                                                 cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b,
                                                 cudaDataType_t c, cudaDataType_t d, int id,
                                                 cublasLtMatmulAlgo_t *algo) {
  SIM_ENTER(handle, compute, scale, a, b, c, d, id, algo);
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!algo || id < 0 || id >= ALGORITHMS) return CUBLAS_STATUS_INVALID_VALUE;
  memset(algo, 0, sizeof *algo);
  lt_algo_t *made = (lt_algo_t *)algo;
  *made = (lt_algo_t){.id = id, .tile = CUBLASLT_MATMUL_TILE_64x64 + (uint32_t)id, .splitk = 1};
  return CUBLAS_STATUS_SUCCESS;
}

SIM_EXPORT cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t handle, cublasComputeType_t compute,
                                                   cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b,
                                                   cudaDataType_t c, cudaDataType_t d, int wanted, int ids[],
                                                   int *count) {
  SIM_ENTER(handle, compute, scale, a, b, c, d, wanted, ids, count);
  if (!handle || wanted < 1 || !ids || !count) return CUBLAS_STATUS_INVALID_VALUE;
  for (*count = 0; *count < wanted && *count < ALGORITHMS; ++*count) ids[*count] = *count;
  return CUBLAS_STATUS_SUCCESS;
}

SIM_EXPORT cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                            cublasLtMatmulAlgoCapAttributes_t attribute,
                                                            void *to, size_t size, size_t *written) {
  SIM_ENTER(algo, attribute, to, size, written);
  const lt_algo_t *a = (const lt_algo_t *)algo;
  uint32_t values[TILES] = {0};
  size_t count = 1;
  switch (attribute) {
  case CUBLASLT_ALGO_CAP_SPLITK_SUPPORT:
  case CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT:
    values[0] = 1;
    break;
  case CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK:
    values[0] = CUBLASLT_REDUCTION_SCHEME_MASK;
    break;
  case CUBLASLT_ALGO_CAP_TILE_IDS:
    for (count = 0; count < TILES; count++)
      values[count] = CUBLASLT_MATMUL_TILE_64x64 + (uint32_t)(a->id + (int)count);
    break;
  case CUBLASLT_ALGO_CAP_STAGES_IDS:
    values[0] = CUBLASLT_MATMUL_STAGES_32x4;
    break;
  case CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX:
    break;
  case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES:
  case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES:
  case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES:
  case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES:
    values[0] = 16;
    break;
  default:
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  size_t bytes = count * sizeof *values;
  if (written) *written = bytes;
  if (!size) return written ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
  if (!to || size < bytes) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(to, values, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

static const lt_operation_t *operation_of(cublasLtMatmulDesc_t desc) {
  return (const lt_operation_t *)desc;
}
static const lt_layout_t *layout_of(cublasLtMatrixLayout_t desc) {
  return (const lt_layout_t *)desc;
}

/* Whether op(matrix) is rows x cols and its columns do not overlap. */
static bool fits(const lt_layout_t *matrix, int op, uint64_t rows, uint64_t cols) {
  bool flat = op == CUBLAS_OP_N;
  return matrix->rows == (flat ? rows : cols) && matrix->cols == (flat ? cols : rows) &&
         matrix->ld >= (int64_t)matrix->rows;
}

static const struct {
  uint32_t epilogue;
  int kernel; /* GS_EPI_* */
  bool biased;
} epilogues[] = {
    {CUBLASLT_EPILOGUE_DEFAULT, GS_EPI_DEFAULT, false}, {CUBLASLT_EPILOGUE_RELU, GS_EPI_RELU, false},
    {CUBLASLT_EPILOGUE_BIAS, GS_EPI_BIAS, true},        {CUBLASLT_EPILOGUE_RELU_BIAS, GS_EPI_RELU_BIAS, true},
    {CUBLASLT_EPILOGUE_GELU, GS_EPI_GELU, false},       {CUBLASLT_EPILOGUE_GELU_BIAS, GS_EPI_GELU_BIAS, true},
};

static cublasStatus_t set_epilogue(product_t *p, const lt_operation_t *op) {
  for (size_t i = 0; i < sizeof epilogues / sizeof *epilogues; i++) {
    if (epilogues[i].epilogue != op->epilogue) continue;
    p->epilogue = epilogues[i].kernel;
    if (!epilogues[i].biased) return CUBLAS_STATUS_SUCCESS;
    p->bias = op->bias;
    p->bias_type = op->bias_data_type < 0 ? p->d_type : (cudaDataType_t)op->bias_data_type;
    p->stride_bias = op->bias_batch_stride;
    return p->bias ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

/* What the stand-in does not compute is refused rather than ignored. */
static bool is_plain(const lt_operation_t *op, const lt_layout_t *const matrices[4]) {
  for (int i = 0; i < 4; i++)
    if (matrices[i]->order != CUBLASLT_ORDER_COL || matrices[i]->plane_offset) return false;
  return op->pointer_mode <= CUBLASLT_POINTER_MODE_DEVICE && op->transc == CUBLAS_OP_N && !op->amax_d &&
         !op->aux;
}

static cublasStatus_t product_of(product_t *p, const lt_operation_t *op, const lt_layout_t *a,
                                 const lt_layout_t *b, const lt_layout_t *c, const lt_layout_t *d) {
  const lt_layout_t *const matrices[4] = {a, b, c, d};
  uint64_t k = op->transa == CUBLAS_OP_N ? a->cols : a->rows;
  *p = (product_t){
      .transa = op->transa != CUBLAS_OP_N,
      .transb = op->transb != CUBLAS_OP_N,
      .m = (int64_t)d->rows,
      .n = (int64_t)d->cols,
      .k = (int64_t)k,
      .batch = d->batch_count,
      .lda = a->ld,
      .ldb = b->ld,
      .ldc = c->ld,
      .ldd = d->ld,
      .stride_a = a->batch_stride,
      .stride_b = b->batch_stride,
      .stride_c = c->batch_stride,
      .stride_d = d->batch_stride,
      .a_type = (cudaDataType_t)a->type,
      .b_type = (cudaDataType_t)b->type,
      .c_type = (cudaDataType_t)c->type,
      .d_type = (cudaDataType_t)d->type,
      .scale_type = (cudaDataType_t)op->scale_type,
  };
  if (!fits(a, op->transa, d->rows, k) || !fits(b, op->transb, k, d->cols) ||
      !fits(c, CUBLAS_OP_N, d->rows, d->cols) || !fits(d, CUBLAS_OP_N, d->rows, d->cols))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (sim_scale_type((cublasComputeType_t)op->compute_type) < 0 || !is_plain(op, matrices))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return set_epilogue(p, op);
}

/* What the heuristic offers in that place. */
static int offered_at(int place, int64_t n) {
  const char *set = getenv("SIM_HEURISTIC");
  int id, lo, hi;
  bool here = set && sscanf(set, "%d@%d-%d", &id, &lo, &hi) == 3 && n >= lo && n <= hi;
  return here ? (place ? place - 1 : id) : place;
}

SIM_EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                                         cublasLtMatmulDesc_t operation,
                                                         cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                         cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                         cublasLtMatmulPreference_t preference, int wanted,
                                                         cublasLtMatmulHeuristicResult_t results[],
                                                         int *count) {
  SIM_ENTER(handle, operation, a, b, c, d, preference, wanted, results, count);
  product_t p;
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!operation || !a || !b || !c || !d || !preference || wanted < 1 || !results || !count)
    return CUBLAS_STATUS_INVALID_VALUE;
  *count = 0;
  cublasStatus_t status =
      product_of(&p, operation_of(operation), layout_of(a), layout_of(b), layout_of(c), layout_of(d));
  if (status) return status;
  for (; *count < wanted && *count < OFFERED; ++*count) {
    cublasLtMatmulHeuristicResult_t *result = &results[*count];
    *result = (cublasLtMatmulHeuristicResult_t){.state = CUBLAS_STATUS_SUCCESS, .wavesCount = 1};
    cublasLtMatmulAlgoInit(handle, (cublasComputeType_t)operation_of(operation)->compute_type, p.scale_type,
                           p.a_type, p.b_type, p.c_type, p.d_type, offered_at(*count, p.n), &result->algo);
  }
  return CUBLAS_STATUS_SUCCESS;
}

static bool algo_valid(const cublasLtMatmulAlgo_t *algo) {
  const lt_algo_t *a = (const lt_algo_t *)algo;
  const char *refused = getenv("SIM_REFUSE");
  if (refused && atoi(refused) == a->id) return false;
  uint32_t first = CUBLASLT_MATMUL_TILE_64x64 + (uint32_t)a->id;
  bool whole = a->splitk <= 1 ? !a->reduction : a->reduction != CUBLASLT_REDUCTION_SCHEME_NONE;
  return a->id >= 0 && a->id < ALGORITHMS && a->tile >= first && a->tile < first + TILES && whole;
}

/* Room for the sums of every part of k, or for a counter. */
static size_t workspace_of(const cublasLtMatmulAlgo_t *algo, const product_t *p) {
  const lt_algo_t *a = (const lt_algo_t *)algo;
  if (sim_launches_by("counter")) return SIM_COUNTER_BYTES;
  return a->splitk > 1 ? (size_t)(a->splitk * p->m * p->n * p->batch) * sizeof(float) : 0;
}

SIM_EXPORT cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                                  cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                  cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                  const cublasLtMatmulAlgo_t *algo,
                                                  cublasLtMatmulHeuristicResult_t *result) {
  SIM_ENTER(handle, operation, a, b, c, d, algo, result);
  product_t p;
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!operation || !a || !b || !c || !d || !algo || !result || !algo_valid(algo))
    return CUBLAS_STATUS_INVALID_VALUE;
  cublasStatus_t status =
      product_of(&p, operation_of(operation), layout_of(a), layout_of(b), layout_of(c), layout_of(d));
  *result = (cublasLtMatmulHeuristicResult_t){
      .algo = *algo, .state = status, .wavesCount = 1, .workspaceSize = workspace_of(algo, &p)};
  return status;
}

static void set_scalars(product_t *p, const lt_operation_t *op, const void *alpha, const void *beta) {
  if (op->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE) {
    p->alpha_ptr = alpha;
    p->beta_ptr = beta;
  } else {
    p->alpha = value_load(p->scale_type, alpha, 0);
    p->beta = value_load(p->scale_type, beta, 0);
  }
}

SIM_EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                         const void *alpha, const void *A, cublasLtMatrixLayout_t a,
                                         const void *B, cublasLtMatrixLayout_t b, const void *beta,
                                         const void *C, cublasLtMatrixLayout_t c, void *D,
                                         cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
                                         void *workspace, size_t bytes, cudaStream_t stream) {
  SIM_ENTER(handle, operation, alpha, A, a, B, b, beta, C, c, D, d, algo, workspace, bytes, stream);
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!operation || !a || !b || !c || !d || !alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
  has_algo = algo != NULL;
  if (algo) last_algo = *algo;
  if (algo && !algo_valid(algo)) return CUBLAS_STATUS_NOT_SUPPORTED;
  product_t p;
  cublasStatus_t status =
      product_of(&p, operation_of(operation), layout_of(a), layout_of(b), layout_of(c), layout_of(d));
  if (status) return status;
  set_scalars(&p, operation_of(operation), alpha, beta);
  p.a = A;
  p.b = B;
  p.c = C;
  p.d = D;
  if (p.beta != 0 && !C) return CUBLAS_STATUS_INVALID_VALUE;
  size_t wanted = algo ? workspace_of(algo, &p) : 0;
  if (wanted > bytes) return CUBLAS_STATUS_INVALID_VALUE;
  char name[16];
  snprintf(name, sizeof name, "lt_%d%s", algo ? (int)((const lt_algo_t *)algo)->id : 0,
           p.scale_type == CUDA_R_16F ? "_16f" : "");
  return sim_product((CUstream)stream, &p, name, workspace, wanted);
}
