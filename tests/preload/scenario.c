/* scenario: one call or two of each kind, each checked: by kernels with and without workspace, by an algorithm of
 * cuBLASLt, forwarded; batches; scalars on the device; cublasLtMatmul; another stream; captured and replayed. A call
 * that answers with a stand-in's injected status is made again, once. Prints "wrong: N" and "verbatim: N". */
#include "client.h"

#include <string.h>

#define HALF CUDA_R_16F

enum { M = 128, K = 128, N = 64, BATCH = 2 };

static cublasHandle_t handle;
static void *a, *b, *c, *before;
static float *scalars; /* 1 and 0, on the device */
static cublasLtMatmulDesc_t desc;
static cublasLtMatrixLayout_t la, lb, lc;
static int wrong, verbatim;
static const float one = 1, zero = 0;

static const int64_t elements = BATCH * M * N;

typedef cublasStatus_t call_t(int n);

static cublasStatus_t gemm(int n, const void *alpha, const void *beta) {
  return cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, M, n, K, alpha, a, HALF, K, b, HALF, K, beta, c, HALF,
                      M, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static cublasStatus_t plain(int n) {
  return gemm(n, &one, &zero);
}

static cublasStatus_t on_device(int n) {
  MUST(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  cublasStatus_t status = gemm(n, &scalars[0], &scalars[1]);
  MUST(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  return status;
}

static cublasStatus_t batched(int n) {
  return cublasGemmStridedBatchedEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, M, n, K, &one, a, HALF, K, 0, b, HALF,
                                    K, (long long)K * n, &zero, c, HALF, M, (long long)M * n, BATCH,
                                    CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static cublasStatus_t lt(int n) {
  uint64_t columns = (uint64_t)n;
  MUST(cublasLtMatrixLayoutSetAttribute(lb, CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof columns));
  MUST(cublasLtMatrixLayoutSetAttribute(lc, CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof columns));
  return cublasLtMatmul((cublasLtHandle_t)handle, desc, &one, a, la, b, lb, &zero, c, lc, c, lc, NULL, NULL,
                        0, NULL);
}

static cublasStatus_t on_stream(int n, bool captured) {
  CUstream stream;
  CUgraph graph;
  CUgraphExec exec;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cublasSetStream(handle, (cudaStream_t)stream));
  if (captured) MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  cublasStatus_t status = plain(n);
  if (captured) {
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
  }
  MUST(cuStreamSynchronize(stream));
  if (captured) {
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
  }
  MUST(cublasSetStream(handle, NULL));
  MUST(cuStreamDestroy(stream));
  return status;
}

static cublasStatus_t elsewhere(int n) {
  return on_stream(n, false);
}

static cublasStatus_t captured(int n) {
  return on_stream(n, true);
}

static void ask(call_t *call, int n, int batch) {
  MUST(cuMemcpyHtoD((CUdeviceptr)c, before, (size_t)elements * 2));
  cublasStatus_t status = call(n);
  if (status == CUBLAS_STATUS_INTERNAL_ERROR || (int)status == 999) {
    verbatim++;
    MUST(cuMemcpyHtoD((CUdeviceptr)c, before, (size_t)elements * 2));
    status = call(n);
  }
  must((int)status, "a call");
  product_t p = {.transa = true,
                 .m = M,
                 .n = n,
                 .k = K,
                 .batch = batch,
                 .lda = K,
                 .ldb = K,
                 .ldc = M,
                 .ldd = M,
                 .stride_b = batch > 1 ? (int64_t)K * n : 0,
                 .stride_c = batch > 1 ? (int64_t)M * n : 0,
                 .stride_d = batch > 1 ? (int64_t)M * n : 0,
                 .a_type = HALF,
                 .b_type = HALF,
                 .c_type = HALF,
                 .d_type = HALF,
                 .a = a,
                 .b = b,
                 .c = c,
                 .d = c,
                 .alpha = 1};
  wrong += !is_right(&p, before, (int64_t)M * n * batch);
}

int main(void) {
  static const struct {
    call_t *call;
    int n, batch;
  } calls[] = {{plain, 8, 1},      {plain, 8, 1},       {plain, 40, 1},     {plain, 40, 1},
               {plain, 16, 1},     {plain, 16, 1},      {plain, 63, 1},     {on_device, 8, 1},
               {on_device, 16, 1}, {batched, 8, BATCH}, {batched, 8, 2},    {lt, 8, 1},
               {lt, 8, 1},         {lt, 16, 1},         {elsewhere, 40, 1}, {captured, 8, 1},
               {captured, 40, 1},  {captured, 40, 1},   {plain, 40, 1}};
  const float values[] = {1, 0};
  cublasOperation_t t = CUBLAS_OP_T;
  verbatim = cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS;
  if (verbatim) MUST(cublasCreate(&handle));
  a = device_values(HALF, M * K, 1);
  b = device_values(HALF, BATCH * K * N, 2);
  c = device_values(HALF, elements, 3);
  scalars = device_values(CUDA_R_32F, 2, 4);
  MUST(cuMemcpyHtoD((CUdeviceptr)scalars, values, sizeof values));
  before = malloc((size_t)elements * 2);
  must(!before, "malloc");
  memset(before, 0xff, (size_t)elements * 2);
  MUST(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  MUST(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &t, sizeof t));
  MUST(cublasLtMatrixLayoutCreate(&la, HALF, K, M, K));
  MUST(cublasLtMatrixLayoutCreate(&lb, HALF, K, 8, K));
  MUST(cublasLtMatrixLayoutCreate(&lc, HALF, M, 8, M));
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) ask(calls[i].call, calls[i].n, calls[i].batch);
  printf("wrong: %d\nverbatim: %d\n", wrong, verbatim);
  return 0;
}
