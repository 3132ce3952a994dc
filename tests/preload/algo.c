/* algo WAY: the same product four times by cublasGemmEx, or by cublasLtMatmul of lt.c's making; then a product
 * that splits k on the same stream. Prints which of cublasLt's algorithms ran last ("algo", "tile", "splits"; -1:
 * none was named), how often it was asked about ("checks") and called ("matmuls"). WAY is plain, device (scalars),
 * captured (a graph of two products, launched three times), many (of each 300, on two streams), once (the first call is
 * checked before any other), elsewhere (another context's calls first), scaled (alpha is 2 in half of the calls), odd
 * (addresses that divide by 2 alone), explicit (algorithms of cublasGemmEx are compared first). */
#include "client.h"

#include <dlfcn.h>
#include <string.h>

static void *lt_function(const char *name) {
  void *library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_NOLOAD);
  must(library == NULL, "finding the stand-in");
  void *function = dlsym(library, name);
  must(function == NULL, name);
  return function;
}

static int attribute(cublasLtMatmulAlgoConfigAttributes_t id) {
  cublasLtMatmulAlgo_t algo;
  int32_t value = -1;
  size_t written;
  sim_last_algo_t *last = (sim_last_algo_t *)lt_function("sim_last_algo");
  if (last(algo.data)) MUST(cublasLtMatmulAlgoConfigGetAttribute(&algo, id, &value, sizeof value, &written));
  return value;
}

static void on_device(simple_t *s) {
  float scalars[2] = {1, 0};
  float *device = device_values(CUDA_R_32F, 2, 1);
  MUST(cuMemcpyHtoD((CUdeviceptr)device, scalars, sizeof scalars));
  MUST(cublasSetPointerMode(s->handle, CUBLAS_POINTER_MODE_DEVICE));
  MUST(cublasGemmEx(s->handle, CUBLAS_OP_T, CUBLAS_OP_N, 128, s->n, 128, device, s->a, CUDA_R_16F, 128, s->b,
                    CUDA_R_16F, 128, device + 1, s->c, CUDA_R_16F, 128, CUBLAS_COMPUTE_32F,
                    CUBLAS_GEMM_DEFAULT));
  MUST(cublasSetPointerMode(s->handle, CUBLAS_POINTER_MODE_HOST));
  device_free(device);
}

static void asking_for(const simple_t *s, cublasGemmAlgo_t algo) {
  const float one = 1, zero = 0;
  MUST(cublasGemmEx(s->handle, CUBLAS_OP_T, CUBLAS_OP_N, 128, s->n, 128, &one, s->a, CUDA_R_16F, 128, s->b,
                    CUDA_R_16F, 128, &zero, s->c, CUDA_R_16F, 128, CUBLAS_COMPUTE_32F, algo));
}

static void comparing(const simple_t *s) {
  static const cublasGemmAlgo_t asked[] = {CUBLAS_GEMM_DEFAULT, CUBLAS_GEMM_ALGO0,
                                           CUBLAS_GEMM_ALGO0,   CUBLAS_GEMM_DEFAULT_TENSOR_OP,
                                           CUBLAS_GEMM_ALGO1,   CUBLAS_GEMM_DEFAULT};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) asking_for(s, asked[i]);
}

static void elsewhere(void) {
  CUcontext first, other;
  MUST(cuCtxGetCurrent(&first));
  MUST(cuCtxCreate(&other, NULL, 0, 0));
  simple_t s = simple_open(16);
  for (int i = 0; i < 2; i++) MUST(simple_call(&s));
  must(!simple_right(&s), "another context's product");
  MUST(cuCtxSetCurrent(first));
}

static void scaled(simple_t s) {
  for (int i = 0; i < 4; i++) {
    s.alpha = i % 2 ? 1 : 2;
    MUST(simple_call(&s));
    must(!simple_right(&s), "a scaled product");
  }
}

/* That many calls, captured; the graph is launched three times, and its last result must be right each time. */
static void capture_of(const simple_t *s, CUstream stream, int calls) {
  CUgraph graph;
  CUgraphExec exec;
  MUST(cublasSetStream(s->handle, (cudaStream_t)stream));
  MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (int i = 0; i < calls; i++) MUST(simple_call(s));
  MUST(cuStreamEndCapture(stream, &graph));
  MUST(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; i++) {
    MUST(cuMemsetD8((CUdeviceptr)s->c, 0xff, (size_t)(128 * s->n) * 2));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    must(!simple_right(s), "a replayed product");
  }
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
}

static void captured(const simple_t *s) {
  CUstream stream;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  capture_of(s, stream, 2);
}

static void many(const simple_t *s) {
  CUstream streams[2];
  for (int i = 0; i < 2; i++) MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 600; i++) {
    MUST(cublasSetStream(s->handle, (cudaStream_t)streams[i & 1]));
    MUST(simple_call(s));
  }
  for (int i = 0; i < 2; i++) capture_of(s, streams[i], 300);
}

static void once(const simple_t *s) {
  MUST(simple_call(s));
  must(!simple_right(s), "the first product");
}

int main(int argc, char **argv) {
  const char *way = argc > 1 ? argv[1] : "";
  simple_t s = simple_open(16), splitting = simple_open(40);
  if (!strcmp(way, "captured")) captured(&s);
  if (!strcmp(way, "many")) many(&s);
  if (!strcmp(way, "once")) once(&s);
  if (!strcmp(way, "scaled")) scaled(s);
  if (!strcmp(way, "elsewhere")) elsewhere();
  if (!strcmp(way, "device")) on_device(&s);
  if (!strcmp(way, "explicit")) comparing(&s);
  if (!strcmp(way, "odd")) s.a = (char *)device_values(CUDA_R_16F, 128 * 128 + 1, 1) + 2;
  for (int i = 0; i < 4; i++) MUST(simple_call(&s));
  int algo = attribute(CUBLASLT_ALGO_CONFIG_ID), tile = attribute(CUBLASLT_ALGO_CONFIG_TILE_ID);
  bool right = simple_right(&s);
  splitting.handle = s.handle;
  MUST(simple_call(&splitting)); /* the stand-in stops where its counters are not zero */
  printf("algo: %d\ntile: %d\nsplits: %d\n", algo, tile, attribute(CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
  sim_calls_t *calls = (sim_calls_t *)lt_function("sim_calls");
  printf("checks: %d\n", (int)calls("cublasLtMatmulAlgoCheck"));
  printf("matmuls: %d\n", (int)calls("cublasLtMatmul"));
  return right && simple_right(&splitting) ? 0 : 1;
}
