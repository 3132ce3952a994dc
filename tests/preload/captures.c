/* Graphs captured one after another from one stream: while both live they may replay at once, so they must
 * not share workspace; when one is gone its workspace may be used again. Prints "shared: N", "reused: N". */
#include "client.h"

#include <dlfcn.h>
#include <string.h>

static void *workspace_of_last_launch(void) {
  sim_launch_t launch;
  gs_params_t params;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  must(driver == NULL, "finding the stand-in driver");
  sim_last_launch_t *last = (sim_last_launch_t *)dlsym(driver, "sim_last_launch");
  must(!last || !last(&launch), "a launch");
  memcpy(&params, launch.params, sizeof params);
  return params.workspace;
}

static CUgraph capture(const simple_t *s, CUstream stream) {
  CUgraph graph;
  MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  MUST(simple_call(s));
  MUST(cuStreamEndCapture(stream, &graph));
  return graph;
}

int main(void) {
  simple_t s = simple_open(8);
  CUstream stream;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cublasSetStream(s.handle, (cudaStream_t)stream));
  MUST(simple_call(&s));
  void *eager = workspace_of_last_launch();
  CUgraph first = capture(&s, stream);
  void *of_first = workspace_of_last_launch();
  CUgraph second = capture(&s, stream);
  void *of_second = workspace_of_last_launch();
  must(!eager || !of_first || !of_second, "a workspace each");
  printf("shared: %d\n", eager == of_first || eager == of_second || of_first == of_second);
  MUST(cuGraphDestroy(first));
  CUgraph third = capture(&s, stream);
  printf("reused: %d\n", workspace_of_last_launch() == of_first);
  MUST(cuGraphDestroy(second));
  MUST(cuGraphDestroy(third));
  return 0;
}
