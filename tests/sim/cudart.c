/* Stand-in libcudart: what a program needs of the runtime to capture and launch graphs. As the real one does, it finds the
 * driver's functions by handle, and a graph of one API is a graph of the other. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#include "record.h"

/* Declared here as the callers of each major see them; graphs and streams are the driver's. */
typedef struct CUstream_st *stream_t;
typedef void *graph_t;

static void *driver(const char *name) {
  static _Atomic(void *) handle;
  if (!handle) handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void *found = handle ? dlsym(handle, name) : NULL;
  if (!found) abort();
  return found;
}

static atomic_ulong launches;

#define PER_THREAD(stream)            ((stream) ? (stream) : (stream_t)2)
#define FORWARD(function, types, ...) ((int(*) types)driver(#function))(__VA_ARGS__)

#define ON_STREAM(suffix, STREAM)                                                                            \
  SIM_EXPORT int cudaStreamBeginCapture##suffix(stream_t stream, int mode) {                                 \
    return FORWARD(cuStreamBeginCapture_v2, (stream_t, int), STREAM(stream), mode);                          \
  }                                                                                                          \
  SIM_EXPORT int cudaStreamEndCapture##suffix(stream_t stream, graph_t *graph) {                             \
    return FORWARD(cuStreamEndCapture, (stream_t, graph_t *), STREAM(stream), graph);                        \
  }                                                                                                          \
  SIM_EXPORT int cudaGraphLaunch##suffix(graph_t exec, stream_t stream) {                                    \
    atomic_fetch_add(&launches, 1);                                                                          \
    return FORWARD(cuGraphLaunch, (graph_t, stream_t), exec, STREAM(stream));                                \
  }
#define AS_IT_IS(stream) stream
ON_STREAM(, AS_IT_IS)
ON_STREAM(_ptsz, PER_THREAD)

SIM_EXPORT int cudaStreamBeginCaptureToGraph(stream_t stream, graph_t graph, const void *dependencies,
                                             const void *data, size_t count, int mode) {
  return FORWARD(cuStreamBeginCaptureToGraph, (stream_t, graph_t, const void *, const void *, size_t, int),
                 stream, graph, dependencies, data, count, mode);
}

/* The last argument must arrive: 12 has the five of CUDA 11 here, of which that is the size of a log. */
#if SIM_MAJOR == 12
SIM_EXPORT int cudaGraphInstantiate(graph_t *exec, graph_t graph, void *node, char *log, size_t size) {
  (void)node;
  if (size != 77 || !log) return 1;
  return FORWARD(cuGraphInstantiateWithFlags, (graph_t *, graph_t, unsigned long long), exec, graph, 0);
}
#else
SIM_EXPORT int cudaGraphInstantiate(graph_t *exec, graph_t graph, unsigned long long flags) {
  return FORWARD(cuGraphInstantiateWithFlags, (graph_t *, graph_t, unsigned long long), exec, graph, flags);
}
#endif

SIM_EXPORT int cudaGraphClone(graph_t *clone, graph_t graph) {
  return FORWARD(cuGraphClone, (graph_t *, graph_t), clone, graph);
}

SIM_EXPORT int cudaGraphAddChildGraphNode(void **node, graph_t graph, const void *dependencies, size_t count,
                                          graph_t child) {
  return FORWARD(cuGraphAddChildGraphNode, (void **, graph_t, const void *, size_t, graph_t), node, graph,
                 dependencies, count, child);
}

SIM_EXPORT int cudaGraphExecUpdate(graph_t exec, graph_t graph, void *info) {
  return FORWARD(cuGraphExecUpdate_v2, (graph_t, graph_t, void *), exec, graph, info);
}

SIM_EXPORT int cudaGraphExecDestroy(graph_t exec) {
  return FORWARD(cuGraphExecDestroy, (graph_t), exec);
}

SIM_EXPORT int cudaGraphDestroy(graph_t graph) {
  return FORWARD(cuGraphDestroy, (graph_t), graph);
}

/* Calls of cudaGraphLaunch that came here rather than to another runtime. */
SIM_EXPORT uint64_t sim_launches(void) {
  return atomic_load(&launches);
}
