/* Stand-in libcublas: handles and their settings, and the products by way of one description. The entry
 * points themselves are in cublas_entries.h, once per width of an index. */
#include <stdlib.h>
#include <string.h>

#include "handle.h"
#include "record.h"

/* A setting of the handle: cublasSet<Name> and cublasGet<Name>. */
#define SETTING(set, get, type, field)                                                                       \
  SIM_EXPORT cublasStatus_t set(cublasHandle_t handle, type value) {                                         \
    SIM_ENTER(handle, value);                                                                                \
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;                                                       \
    handle->field = value;                                                                                   \
    return CUBLAS_STATUS_SUCCESS;                                                                            \
  }                                                                                                          \
  SIM_EXPORT cublasStatus_t get(cublasHandle_t handle, type *value) {                                        \
    SIM_ENTER(handle, value);                                                                                \
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;                                                       \
    if (!value) return CUBLAS_STATUS_INVALID_VALUE;                                                          \
    *value = (type)handle->field;                                                                            \
    return CUBLAS_STATUS_SUCCESS;                                                                            \
  }

SETTING(cublasSetStream_v2, cublasGetStream_v2, cudaStream_t, stream)
SETTING(cublasSetPointerMode_v2, cublasGetPointerMode_v2, cublasPointerMode_t, pointer_mode)
SETTING(cublasSetMathMode, cublasGetMathMode, cublasMath_t, math_mode)
SETTING(cublasSetAtomicsMode, cublasGetAtomicsMode, cublasAtomicsMode_t, atomics_mode)
SETTING(cublasSetSmCountTarget, cublasGetSmCountTarget, int, sm_count_target)
#if SIM_MAJOR >= 13
SETTING(cublasSetEmulationStrategy, cublasGetEmulationStrategy, cublasEmulationStrategy_t, emulation_strategy)
#endif

SIM_EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  SIM_ENTER(handle);
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = sim_handle_create();
  return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

SIM_EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  SIM_ENTER(handle);
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}

SIM_EXPORT cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
  SIM_ENTER(handle, workspace, bytes);
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

SIM_EXPORT cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
  SIM_ENTER(handle, version);
  int parts[3];
  sim_version(parts);
  *version = parts[0] * 10000 + parts[1] * 100 + parts[2];
  return CUBLAS_STATUS_SUCCESS;
}

SIM_EXPORT cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value) {
  SIM_ENTER(type, value);
  int parts[3];
  if (!value || (unsigned)type > PATCH_LEVEL) return CUBLAS_STATUS_INVALID_VALUE;
  sim_version(parts);
  *value = parts[type];
  return CUBLAS_STATUS_SUCCESS;
}

SIM_EXPORT const char *cublasGetStatusName(cublasStatus_t status) {
  return sim_status_name(status);
}
SIM_EXPORT const char *cublasGetStatusString(cublasStatus_t status) {
  return sim_status_text(status);
}

/* A call in one form: entry points fill in what they have. */
typedef struct {
  cublasHandle_t handle;
  int transa, transb;
  int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, batch;
  cudaDataType_t a_type, b_type, c_type;
  int scale_type; /* of *alpha and *beta; -1: the compute type is unknown */
  const void *alpha, *beta, *a, *b;
  void *c;
} request_t;

static bool is_op(int op) {
  return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}
static int64_t at_least_one(int64_t rows) {
  return rows > 1 ? rows : 1;
}

static cublasStatus_t check(const request_t *r) {
  if (!r->handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!is_op(r->transa) || !is_op(r->transb)) return CUBLAS_STATUS_INVALID_VALUE;
  if (r->m < 0 || r->n < 0 || r->k < 0 || r->batch < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (r->lda < at_least_one(r->transa == CUBLAS_OP_N ? r->m : r->k) ||
      r->ldb < at_least_one(r->transb == CUBLAS_OP_N ? r->k : r->n) || r->ldc < at_least_one(r->m))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!r->alpha || !r->beta) return CUBLAS_STATUS_INVALID_VALUE;
  return r->scale_type < 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

static product_t product_of(const request_t *r) {
  bool on_device = r->handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
  product_t p = {
      .transa = r->transa != CUBLAS_OP_N,
      .transb = r->transb != CUBLAS_OP_N,
      .m = r->m,
      .n = r->n,
      .k = r->k,
      .batch = r->batch,
      .lda = r->lda,
      .ldb = r->ldb,
      .ldc = r->ldc,
      .ldd = r->ldc,
      .stride_a = r->stride_a,
      .stride_b = r->stride_b,
      .stride_c = r->stride_c,
      .stride_d = r->stride_c,
      .a_type = r->a_type,
      .b_type = r->b_type,
      .c_type = r->c_type,
      .d_type = r->c_type,
      .scale_type = (cudaDataType_t)r->scale_type,
      .a = r->a,
      .b = r->b,
      .c = r->c,
      .d = r->c,
  };
  if (on_device) {
    p.alpha_ptr = r->alpha;
    p.beta_ptr = r->beta;
  } else {
    p.alpha = value_load(p.scale_type, r->alpha, 0);
    p.beta = value_load(p.scale_type, r->beta, 0);
  }
  return p;
}

/* int8 goes the way of the real library: through the public cublasLtMatmul, which a preloaded library sees,
 * with descriptors on the stack and this handle cast. */
static cublasStatus_t run_int8(const request_t *r) {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t a, b, c;
  bool on_device = r->handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
  int32_t mode = on_device ? CUBLASLT_POINTER_MODE_DEVICE : CUBLASLT_POINTER_MODE_HOST;
  int32_t transa = r->transa, transb = r->transb;
  bool a_flat = r->transa == CUBLAS_OP_N, b_flat = r->transb == CUBLAS_OP_N;
  cublasStatus_t status = cublasLtMatmulDescInit(&operation, CUBLAS_COMPUTE_32I, CUDA_R_32I);
  const struct {
    cublasLtMatmulDescAttributes_t attribute;
    const int32_t *value;
  } settings[] = {{CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode},
                  {CUBLASLT_MATMUL_DESC_TRANSA, &transa},
                  {CUBLASLT_MATMUL_DESC_TRANSB, &transb}};
  for (size_t i = 0; !status && i < sizeof settings / sizeof *settings; i++)
    status =
        cublasLtMatmulDescSetAttribute(&operation, settings[i].attribute, settings[i].value, sizeof(int32_t));
  uint64_t m = (uint64_t)r->m, n = (uint64_t)r->n, k = (uint64_t)r->k;
  if (!status) status = cublasLtMatrixLayoutInit(&a, r->a_type, a_flat ? m : k, a_flat ? k : m, r->lda);
  if (!status) status = cublasLtMatrixLayoutInit(&b, r->b_type, b_flat ? k : n, b_flat ? n : k, r->ldb);
  if (!status) status = cublasLtMatrixLayoutInit(&c, r->c_type, m, n, r->ldc);
  if (status) return status;
  return cublasLtMatmul((cublasLtHandle_t)r->handle, &operation, r->alpha, r->a, &a, r->b, &b, r->beta, r->c,
                        &c, r->c, &c, NULL, NULL, 0, (cudaStream_t)r->handle->stream);
}

static cublasStatus_t run(const request_t *r) {
  cublasStatus_t status = check(r);
  if (status) return status;
  if (!r->m || !r->n || !r->batch) return CUBLAS_STATUS_SUCCESS;
  if (r->a_type == CUDA_R_8I && r->c_type == CUDA_R_32I && r->batch == 1) return run_int8(r);
  product_t p = product_of(r);
  return sim_product(r->handle->stream, &p, r->scale_type == CUDA_R_16F ? "cublasGemmEx_16f" : "cublasGemmEx",
                     NULL, 0);
}

/* One product per pointer of the arrays; "device" memory is host memory here. */
static cublasStatus_t run_array(const request_t *r, const void *const a[], const void *const b[],
                                void *const c[]) {
  cublasStatus_t status = check(r);
  for (int64_t i = 0; !status && i < r->batch; i++) {
    request_t one = *r;
    one.a = a[i];
    one.b = b[i];
    one.c = c[i];
    one.batch = 1;
    status = run(&one);
  }
  return status;
}

#define INDEX       int
#define WIDTH(name) name
#include "cublas_entries.h"
#undef INDEX
#undef WIDTH
#define INDEX       int64_t
#define WIDTH(name) name##_64
#include "cublas_entries.h"
