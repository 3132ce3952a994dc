/* replays API MODE [N]: products in graphs that are launched, each graph's last result checked. API: runtime, thread (the
 * runtime's functions for per-thread default streams), driver, or unseen (the runtime's, looked up by handle). Products a
 * (n = 8) and b (n = 77); prints "wrong: N" and what launches ran of each, "a: N", "b: N". Modes:
 *   plain     3 a and 1 b, launched N times
 *   update    an executable graph takes over another's products, and keeps them where an update fails
 *   nested    a graph that launches one of its own
 *   parts     a clone, and a graph put together of others
 *   broken    a capture that comes to nothing, then one of a
 *   into      a captured into a graph that was there, b into one of its own: nobody knows of a
 *   again     N captures of a, each launched once
 *   threads   four threads launch graphs of a and b N times each
 * As a shared object, replays_run(N) is plain, by the runtime that the object links; replays_jump(0) launches once. */
#include "client.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* As programs of every major see them, whatever our toolkit's header says. */
#define RUNTIME(name, parameters) extern int runtime_##name parameters __asm__("cuda" #name);
RUNTIME(StreamBeginCapture, (CUstream, int))
RUNTIME(StreamBeginCapture_ptsz, (CUstream, int))
RUNTIME(StreamBeginCaptureToGraph, (CUstream, CUgraph, const void *, const void *, size_t, int))
RUNTIME(StreamEndCapture, (CUstream, CUgraph *))
RUNTIME(StreamEndCapture_ptsz, (CUstream, CUgraph *))
RUNTIME(GraphInstantiate, (CUgraphExec *, CUgraph, void *, char *, size_t))
RUNTIME(GraphLaunch, (CUgraphExec, CUstream))
RUNTIME(GraphLaunch_ptsz, (CUgraphExec, CUstream))
RUNTIME(GraphExecUpdate, (CUgraphExec, CUgraph, void *))
RUNTIME(GraphExecDestroy, (CUgraphExec))
RUNTIME(GraphDestroy, (CUgraph))
RUNTIME(GraphClone, (CUgraph *, CUgraph))
RUNTIME(GraphAddChildGraphNode, (CUgraphNode *, CUgraph, const void *, size_t, CUgraph))

enum { GLOBAL = 0, THREADS = 4 };

/* As CUDA 11 has it, which the stand-in of major 12 holds us to; later majors know nothing of the last two. */
static int instantiate(CUgraphExec *exec, CUgraph graph) {
  static char log[77];
  return runtime_GraphInstantiate(exec, graph, NULL, log, sizeof log);
}

#ifndef REPLAYS_PLUGIN
static int instantiate_by_driver(CUgraphExec *exec, CUgraph graph) {
  return (int)cuGraphInstantiate(exec, graph, 0);
}
#endif

typedef struct {
  const char *name;
  int (*begin)(CUstream, int), (*end)(CUstream, CUgraph *), (*instantiate)(CUgraphExec *, CUgraph);
  int (*launch)(CUgraphExec, CUstream), (*update)(CUgraphExec, CUgraph, void *);
  int (*destroy_exec)(CUgraphExec), (*destroy)(CUgraph), (*clone)(CUgraph *, CUgraph);
  int (*add)(CUgraphNode *, CUgraph, const void *, size_t, CUgraph);
  int (*begin_into)(CUstream, CUgraph, const void *, const void *, size_t, int);
} api_t;

static api_t api = {"runtime",
                    runtime_StreamBeginCapture,
                    runtime_StreamEndCapture,
                    instantiate,
                    runtime_GraphLaunch,
                    runtime_GraphExecUpdate,
                    runtime_GraphExecDestroy,
                    runtime_GraphDestroy,
                    runtime_GraphClone,
                    runtime_GraphAddChildGraphNode,
                    runtime_StreamBeginCaptureToGraph};

static CUstream stream;
static simple_t a, b;
static long ran_a, ran_b; /* what a histogram should know of */

static void calls(int times_a, int times_b) {
  for (int i = 0; i < times_a; i++) MUST(simple_call(&a));
  for (int i = 0; i < times_b; i++) MUST(simple_call(&b));
}

static CUgraph capture(int times_a, int times_b) {
  CUgraph graph;
  MUST(api.begin(stream, GLOBAL));
  calls(times_a, times_b);
  MUST(api.end(stream, &graph));
  return graph;
}

static CUgraphExec exec_of(CUgraph graph) {
  CUgraphExec exec;
  MUST(api.instantiate(&exec, graph));
  MUST(api.destroy(graph));
  return exec;
}

static void launch(CUgraphExec exec, int times, int of_a, int of_b) {
  for (int i = 0; i < times; i++) MUST(api.launch(exec, stream));
  ran_a += (long)times * of_a, ran_b += (long)times * of_b;
}

static void plain(int times) {
  CUgraphExec exec = exec_of(capture(3, 1));
  launch(exec, times, 3, 1);
  MUST(api.destroy_exec(exec));
}

static void open_products(CUstream on) {
  stream = on;
  a = simple_open(8), b = simple_open(77);
  MUST(cublasSetStream(a.handle, (cudaStream_t)on));
  MUST(cublasSetStream(b.handle, (cudaStream_t)on));
}

#ifdef REPLAYS_PLUGIN
__attribute__((visibility("default"))) int replays_run(int times) {
  CUstream own;
  void *runtime = dlopen("libcudart.so." REPLAYS_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
  must(!runtime, "the runtime");
  uint64_t (*launches)(void) = (uint64_t(*)(void))dlsym(runtime, "sim_launches");
  uint64_t before = launches();
  simple_t starts_the_driver = simple_open(1);
  MUST(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
  open_products(own);
  plain(times);
  bool right = simple_right(&a) && simple_right(&b) && launches() - before == (uint64_t)times;
  dlclose(runtime);
  simple_close(&a), simple_close(&b), simple_close(&starts_the_driver);
  return right ? times : -1;
}

__attribute__((noinline)) static CUgraphExec one_a(void) {
  CUstream own;
  simple_t starts_the_driver = simple_open(1);
  MUST(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
  open_products(own);
  simple_close(&starts_the_driver);
  return exec_of(capture(1, 0));
}

/* Ends in a jump, where it is optimised, so that the runtime's caller seems to be who called this. */
__attribute__((visibility("default"))) int replays_jump(int nothing) {
  (void)nothing;
  return runtime_GraphLaunch(one_a(), stream);
}
#else

static void update(int times) {
  CUgraphExec exec = exec_of(capture(1, 1));
  CUgraph same = capture(2, 0), other = capture(0, 3);
  char info[64];
  launch(exec, times, 1, 1);
  MUST(api.update(exec, same, info));
  launch(exec, 3, 2, 0);
  must(api.update(exec, other, info) == 0, "an update that fails");
  launch(exec, 5, 2, 0);
  MUST(api.destroy(same));
  MUST(api.destroy(other));
  MUST(api.destroy_exec(exec));
}

static void nested(int times) {
  CUgraphExec inner = exec_of(capture(1, 0));
  CUgraph graph;
  MUST(api.begin(stream, GLOBAL));
  calls(1, 1);
  for (int i = 0; i < 2; i++) MUST(api.launch(inner, stream));
  MUST(api.end(stream, &graph));
  CUgraphExec outer = exec_of(graph);
  launch(outer, times, 3, 1);
  launch(inner, 1, 1, 0);
  MUST(api.destroy_exec(outer));
  MUST(api.destroy_exec(inner));
}

static void parts(int times) {
  CUgraph of_a = capture(2, 0), of_b = capture(0, 1), clone;
  CUgraphNode node;
  MUST(api.clone(&clone, of_a));
  MUST(api.add(&node, of_a, NULL, 0, of_b));
  MUST(api.destroy(of_b));
  CUgraphExec both = exec_of(of_a), alone = exec_of(clone);
  launch(both, times, 2, 1);
  launch(alone, 4, 2, 0);
  MUST(api.destroy_exec(both));
  MUST(api.destroy_exec(alone));
}

static void broken(int times) {
  CUgraph graph;
  CUdeviceptr memory;
  MUST(api.begin(stream, GLOBAL));
  calls(1, 1);
  must(cuMemAlloc(&memory, 16) == 0, "what a capture forbids");
  must(api.end(stream, &graph) == 0, "a broken capture");
  CUgraphExec exec = exec_of(capture(1, 0));
  launch(exec, times, 1, 0);
  MUST(api.destroy_exec(exec));
  calls(0, 1);
}

static void into(int times) {
  CUgraph graph = capture(0, 1), same;
  MUST(api.begin_into(stream, graph, NULL, NULL, 0, GLOBAL));
  calls(1, 0);
  MUST(api.end(stream, &same));
  CUgraphExec exec = exec_of(graph);
  launch(exec, times, 0, 1);
  MUST(api.destroy_exec(exec));
}

static void again(int times) {
  for (int i = 0; i < times; i++) {
    CUgraphExec exec = exec_of(capture(1, 0));
    launch(exec, 1, 1, 0);
    MUST(api.destroy_exec(exec));
  }
  calls(0, 1);
}

typedef struct {
  CUgraphExec exec;
  CUcontext context;
  int times;
} launcher_t;

static void *launches(void *argument) {
  const launcher_t *l = argument;
  CUstream own;
  MUST(cuCtxSetCurrent(l->context));
  MUST(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < l->times; i++) MUST(api.launch(l->exec, own));
  return NULL;
}

static void threads(int times) {
  pthread_t thread[THREADS];
  launcher_t launcher[THREADS];
  for (int i = 0; i < THREADS; i++) {
    simple_t *product = i > 0 ? &b : &a;
    *product = simple_open(product->n); /* each launcher writes a result of its own */
    MUST(cublasSetStream(product->handle, (cudaStream_t)stream));
    launcher[i] = (launcher_t){.exec = exec_of(capture(i == 0, i > 0)), .times = times};
    MUST(cuCtxGetCurrent(&launcher[i].context));
  }
  for (int i = 0; i < THREADS; i++)
    must(pthread_create(&thread[i], NULL, launches, &launcher[i]), "a thread");
  for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL), "a thread");
  for (int i = 0; i < THREADS; i++) MUST(api.destroy_exec(launcher[i].exec));
  ran_a += times, ran_b += 3 * times;
}

static void look_up_all(void) {
  void *runtime = dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD);
  must(!runtime, "the runtime");
  api.end = (int (*)(CUstream, CUgraph *))dlsym(runtime, "cudaStreamEndCapture");
  api.launch = (int (*)(CUgraphExec, CUstream))dlsym(runtime, "cudaGraphLaunch");
  must(!api.end || !api.launch, "its functions");
}

static int begin_by_driver(CUstream on, int mode) {
  return (int)cuStreamBeginCapture(on, (CUstreamCaptureMode)mode);
}

#define BY_DRIVER(member, function) api.member = (__typeof__(api.member))(void *)(uintptr_t)function
static void choose(const char *name) {
  if (!strcmp(name, "unseen")) look_up_all();
  if (!strcmp(name, "thread"))
    api.begin = runtime_StreamBeginCapture_ptsz, api.end = runtime_StreamEndCapture_ptsz,
    api.launch = runtime_GraphLaunch_ptsz;
  if (strcmp(name, "driver") != 0) return;
  api.begin = begin_by_driver, api.instantiate = instantiate_by_driver;
  BY_DRIVER(end, cuStreamEndCapture);
  BY_DRIVER(launch, cuGraphLaunch);
  BY_DRIVER(update, cuGraphExecUpdate);
  BY_DRIVER(destroy_exec, cuGraphExecDestroy);
  BY_DRIVER(destroy, cuGraphDestroy);
  BY_DRIVER(clone, cuGraphClone);
  BY_DRIVER(add, cuGraphAddChildGraphNode);
}

static const struct {
  const char *name;
  void (*run)(int times);
} modes[] = {{"plain", plain},   {"update", update}, {"nested", nested}, {"parts", parts},
             {"broken", broken}, {"into", into},     {"again", again},   {"threads", threads}};

int main(int argc, char **argv) {
  CUstream own = NULL;
  if (argc != 4) return 2;
  simple_t starts_the_driver = simple_open(1);
  choose(argv[1]);
  if (strcmp(argv[1], "thread") != 0) MUST(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
  open_products(own);
  if (!own) { /* stream 0 of these functions, as cuBLAS names it */
    MUST(cublasSetStream(a.handle, (cudaStream_t)CU_STREAM_PER_THREAD));
    MUST(cublasSetStream(b.handle, (cudaStream_t)CU_STREAM_PER_THREAD));
  }
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (!strcmp(argv[2], modes[i].name)) modes[i].run(atoi(argv[3]));
  int wrong = !simple_right(&a) + (strcmp(argv[2], "again") && !simple_right(&b));
  simple_close(&starts_the_driver);
  printf("wrong: %d\na: %ld\nb: %ld\n", wrong, ran_a, ran_b);
  return wrong != 0;
}
#endif
