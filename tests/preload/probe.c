/* probe M N K COUNT [capture|algorithm|unchecked]: that many products TN, half in, half out, of one shape, each checked at the
 * end. capture: each into a graph of its own, which is replayed. algorithm: by cublasLtMatmul with the heuristic's
 * algorithm. unchecked: for a GPU. Prints
 * "failed: N" and "wrong: N". */
#include "client.h"

#include <string.h>

#define HALF CUDA_R_16F

static cublasHandle_t handle;
static int m, n, k, failed;
static void *a, *b, *c;
static const float one = 1, zero = 0;

static cublasStatus_t by_gemm_ex(void) {
  return cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &one, a, HALF, k, b, HALF, k, &zero, c, HALF,
                      m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static cublasStatus_t by_algorithm(void) {
  static cublasLtMatmulDesc_t desc;
  static cublasLtMatrixLayout_t la, lb, lc;
  static cublasLtMatmulHeuristicResult_t found;
  if (!desc) {
    cublasLtMatmulPreference_t preference;
    cublasOperation_t t = CUBLAS_OP_T;
    int count = 0;
    MUST(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    MUST(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &t, sizeof t));
    MUST(cublasLtMatrixLayoutCreate(&la, HALF, (uint64_t)k, (uint64_t)m, k));
    MUST(cublasLtMatrixLayoutCreate(&lb, HALF, (uint64_t)k, (uint64_t)n, k));
    MUST(cublasLtMatrixLayoutCreate(&lc, HALF, (uint64_t)m, (uint64_t)n, m));
    MUST(cublasLtMatmulPreferenceCreate(&preference));
    MUST(cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)handle, desc, la, lb, lc, lc, preference, 1, &found,
                                        &count));
    must(count != 1, "an algorithm");
    MUST(cublasLtMatmulPreferenceDestroy(preference));
  }
  return cublasLtMatmul((cublasLtHandle_t)handle, desc, &one, a, la, b, lb, &zero, c, lc, c, lc, &found.algo,
                        NULL, 0, NULL);
}

static cublasStatus_t captured(void) {
  CUstream stream;
  CUgraph graph;
  CUgraphExec exec;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cublasSetStream(handle, (cudaStream_t)stream));
  MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  cublasStatus_t status = by_gemm_ex();
  MUST(cuStreamEndCapture(stream, &graph));
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  MUST(cuGraphLaunch(exec, stream));
  MUST(cuStreamSynchronize(stream));
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
  MUST(cublasSetStream(handle, NULL));
  MUST(cuStreamDestroy(stream));
  return status;
}

int main(int argc, char **argv) {
  if (argc < 5) return 2;
  m = atoi(argv[1]), n = atoi(argv[2]), k = atoi(argv[3]);
  const char *way = argc > 5 ? argv[5] : "";
  MUST(cublasCreate(&handle));
  a = device_values(HALF, (int64_t)m * k, 1);
  b = device_values(HALF, (int64_t)n * k, 2);
  c = device_values(HALF, (int64_t)m * n, 3);
  int64_t elements = (int64_t)m * n;
  void *before = malloc((size_t)elements * 2);
  must(!before, "malloc");
  MUST(cuMemcpyDtoH(before, (CUdeviceptr)c, (size_t)elements * 2));
  for (int i = 0; i < atoi(argv[4]); i++)
    failed += !strcmp(way, "capture")     ? captured()
              : !strcmp(way, "algorithm") ? by_algorithm()
                                          : by_gemm_ex();
  product_t p = {.transa = true,
                 .m = m,
                 .n = n,
                 .k = k,
                 .batch = 1,
                 .lda = k,
                 .ldb = k,
                 .ldc = m,
                 .ldd = m,
                 .a_type = HALF,
                 .b_type = HALF,
                 .c_type = HALF,
                 .d_type = HALF,
                 .a = a,
                 .b = b,
                 .c = c,
                 .d = c,
                 .alpha = 1};
  bool checked = strcmp(way, "unchecked"); /* the reference is of this host, and slow */
  printf("failed: %d\nwrong: %d\n", failed, checked && !is_right(&p, before, elements));
  return failed != 0;
}
