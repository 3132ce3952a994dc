/* runtime_errors: what a real CUDA runtime answers to calls of which each is wrong, without a GPU. Prints where the
 * functions come from, "bound: LIBRARY", and a line a function; of what it was asked last, "last: STATUS". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* As no toolkit's header has to have them. */
#define RUNTIME(name, parameters) extern int runtime_##name parameters __asm__("cuda" #name);
RUNTIME(StreamEndCapture, (void *, void *))
RUNTIME(StreamEndCapture_ptsz, (void *, void *))
RUNTIME(GraphInstantiate, (void *, void *, uint64_t))
RUNTIME(GraphInstantiateWithFlags, (void *, void *, uint64_t))
RUNTIME(GraphLaunch, (void *, void *))
RUNTIME(GraphLaunch_ptsz, (void *, void *))
RUNTIME(GraphExecUpdate, (void *, void *, void *))
RUNTIME(GraphExecDestroy, (void *))
RUNTIME(GraphDestroy, (void *))
RUNTIME(GraphClone, (void *, void *))
RUNTIME(GraphAddChildGraphNode, (void *, void *, void *, size_t, void *))
RUNTIME(GetLastError, (void))

int main(void) {
  char out[64];
  Dl_info info;
  if (!dladdr((void *)(uintptr_t)runtime_GraphLaunch, &info)) return 3;
  printf("bound: %s\n", strrchr(info.dli_fname, '/') + 1);
#define SHOW(name, ...) printf("%s: %d\n", #name, runtime_##name(__VA_ARGS__))
  SHOW(GraphDestroy, NULL);
  SHOW(GraphInstantiate, NULL, NULL, 0);
  SHOW(GraphInstantiateWithFlags, out, NULL, ~0ull);
  SHOW(GraphLaunch, NULL, NULL);
  SHOW(GraphLaunch_ptsz, NULL, NULL);
  SHOW(GraphExecUpdate, NULL, NULL, NULL);
  SHOW(GraphExecDestroy, NULL);
  SHOW(GraphClone, NULL, NULL);
  SHOW(GraphAddChildGraphNode, NULL, NULL, NULL, 0, NULL);
  SHOW(StreamEndCapture_ptsz, NULL, NULL);
  SHOW(StreamEndCapture, NULL, NULL);
  printf("last: %d\n", runtime_GetLastError());
  return 0;
}
