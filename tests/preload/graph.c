/* graph MODE: captures calls, half of them of a shape without a row, and replays the graph
 * over fresh inputs; MODE is global, thread_local or relaxed. Prints "wrong: N". */
#include "client.h"

#include <string.h>

enum { CALLS = 3, REPLAYS = 4 };

static const struct {
  const char *name;
  CUstreamCaptureMode mode;
} modes[] = {{"global", CU_STREAM_CAPTURE_MODE_GLOBAL},
             {"thread_local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
             {"relaxed", CU_STREAM_CAPTURE_MODE_RELAXED}};

static CUgraphExec capture(CUstream stream, CUstreamCaptureMode mode, const simple_t products[2]) {
  CUgraph graph;
  CUgraphExec exec;
  MUST(cuStreamBeginCapture(stream, mode));
  for (int i = 0; i < CALLS; i++)
    for (int p = 0; p < 2; p++) MUST(simple_call(&products[p]));
  MUST(cuStreamEndCapture(stream, &graph));
  MUST(cuGraphInstantiate(&exec, graph, 0));
  MUST(cuGraphDestroy(graph));
  return exec;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (!strcmp(argv[1], modes[i].name)) mode = modes[i].mode;
  simple_t products[2] = {simple_open(8), simple_open(77)};
  CUstream stream;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int p = 0; p < 2; p++) MUST(cublasSetStream(products[p].handle, (cudaStream_t)stream));
  CUgraphExec exec = capture(stream, mode, products);
  int wrong = 0;
  for (int i = 0; i < REPLAYS; i++) {
    for (int p = 0; p < 2; p++) {
      void *fresh = device_values(CUDA_R_16F, 128 * products[p].n, (unsigned)(10 + i));
      MUST(cuMemcpyDtoD((CUdeviceptr)products[p].b, (CUdeviceptr)fresh, (size_t)(2 * 128 * products[p].n)));
      device_free(fresh);
    }
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    for (int p = 0; p < 2; p++) wrong += !simple_right(&products[p]);
  }
  MUST(cuGraphExecDestroy(exec));
  printf("wrong: %d\n", wrong);
  return wrong != 0;
}
