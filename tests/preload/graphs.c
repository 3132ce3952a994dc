/* graphs MODE [N]: what programs do with CUDA graphs, each result checked. Prints "wrong: N" and
 *   update      an executable graph takes over what a later capture holds; "kept: 1", "freed: 1"
 *   unseen N    one executable graph updated N times by turns: a product that may be served, one that has no row; by a
 *               function that was looked up, and
 *   seen N      by its name, where a CUDA runtime is mapped
 *   again N     N captures, replays and destructions; "grown: 0" pieces of memory, graphs and user objects; "latest: N" us
 *   together N  graphs of one stream replayed N times at once from several threads
 *   many N      N sizes captured while nearly all memory is taken, as vLLM starts; "taken: BYTES" since then */
#include "client.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static CUstream stream;

static void *look_up(const char *name) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void *found = driver ? dlsym(driver, name) : NULL;
  must(found == NULL, name);
  return found;
}

static void *workspace_of_last_launch(void) {
  sim_launch_t launch;
  gs_params_t params;
  must(!((sim_last_launch_t *)look_up("sim_last_launch"))(&launch), "a launch");
  memcpy(&params, launch.params, sizeof params);
  return params.workspace;
}

static CUgraph capture(const simple_t *s) {
  CUgraph graph;
  MUST(cublasSetStream(s->handle, (cudaStream_t)stream));
  MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  MUST(simple_call(s));
  MUST(cuStreamEndCapture(stream, &graph));
  return graph;
}

static CUgraphExec capture_exec(const simple_t *s) {
  CUgraphExec exec;
  CUgraph graph = capture(s);
  MUST(cuGraphInstantiate(&exec, graph, 0));
  MUST(cuGraphDestroy(graph));
  return exec;
}

/* Over a result that was cleared. */
static int wrong_replay(CUgraphExec exec, CUstream on, const simple_t *s) {
  MUST(cuMemsetD8((CUdeviceptr)s->c, 0xff, (size_t)(2 * 128 * s->n)));
  MUST(cuGraphLaunch(exec, on));
  MUST(cuStreamSynchronize(on));
  return !simple_right(s);
}

static int update(void) {
  simple_t a = simple_open(8), b = simple_open(8);
  CUgraphExecUpdateResultInfo info;
  CUgraphExec exec = capture_exec(&a);
  void *first = workspace_of_last_launch();
  int wrong = wrong_replay(exec, stream, &a);
  CUgraph second = capture(&b);
  void *held = workspace_of_last_launch();
  MUST(cuGraphExecUpdate(exec, second, &info));
  MUST(cuGraphDestroy(second));
  CUgraph third = capture(&a);
  printf("kept: %d\nfreed: %d\n", workspace_of_last_launch() != held, workspace_of_last_launch() == first);
  wrong += wrong_replay(exec, stream, &b);
  MUST(cuGraphDestroy(third));
  MUST(cuGraphExecDestroy(exec));
  return wrong;
}

static int mixed(int times, __typeof__(&cuGraphExecUpdate) update) {
  simple_t s[2] = {simple_open(77), simple_open(8)};
  CUgraphExec exec = capture_exec(&s[0]);
  int wrong = wrong_replay(exec, stream, &s[0]);
  for (int i = 1; i <= times; i++) {
    CUgraphExecUpdateResultInfo info;
    CUgraph next = capture(&s[i % 2]);
    MUST(update(exec, next, &info));
    MUST(cuGraphDestroy(next));
    wrong += wrong_replay(exec, stream, &s[i % 2]);
  }
  MUST(cuGraphExecDestroy(exec));
  return wrong;
}

static int unseen(int times) {
  return mixed(times, (__typeof__(&cuGraphExecUpdate))look_up("cuGraphExecUpdate_v2"));
}

static int seen(int times) {
  must(!dlopen("libcudart.so.13", RTLD_NOW), "loading a CUDA runtime");
  return mixed(times, cuGraphExecUpdate);
}

static int again(int times) {
  sim_live_t *live = (sim_live_t *)look_up("sim_live");
  sim_latest_us_t *latest_us = (sim_latest_us_t *)look_up("sim_latest_us");
  simple_t s = simple_open(8);
  uint64_t settled = 0;
  int wrong = 0;
  for (int i = 0; i < times; i++) {
    CUgraphExec exec = capture_exec(&s);
    if (i % 100 == 0) wrong += wrong_replay(exec, stream, &s);
    MUST(cuGraphExecDestroy(exec));
    if (i == 9) settled = live();
  }
  const long long latest = (long long)latest_us();
  printf("grown: %lld\nlatest: %lld\n", (long long)(live() - settled), latest);
  return wrong;
}

enum { THREADS = 4 };
static struct {
  simple_t s;
  CUgraphExec exec;
  CUcontext context;
  int times, wrong;
} users[THREADS];

static void *replay(void *index) {
  int i = (int)(intptr_t)index;
  CUstream own;
  MUST(cuCtxSetCurrent(users[i].context));
  MUST(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
  for (int time = 0; time < users[i].times; time++)
    users[i].wrong += wrong_replay(users[i].exec, own, &users[i].s);
  return NULL;
}

static int together(int times) {
  pthread_t threads[THREADS];
  int wrong = 0;
  for (int i = 0; i < THREADS; i++) {
    users[i].s = simple_open(8);
    users[i].times = times;
    users[i].exec = capture_exec(&users[i].s);
    MUST(cuCtxGetCurrent(&users[i].context));
  }
  for (int i = 0; i < THREADS; i++)
    must(pthread_create(&threads[i], NULL, replay, (void *)(intptr_t)i), "a thread");
  for (int i = 0; i < THREADS; i++) {
    must(pthread_join(threads[i], NULL), "a thread");
    wrong += users[i].wrong;
  }
  return wrong;
}

static int many(int sizes) {
  enum { MOST = 64, LEFT = 40 << 20 };
  static simple_t s[MOST];
  static CUgraphExec exec[MOST];
  size_t before, after, total;
  CUdeviceptr ballast;
  int wrong = 0;
  must(sizes > MOST, "the number of sizes");
  for (int i = 0; i < sizes; i++) s[i] = simple_open(i + 1);
  MUST(cuMemGetInfo(&before, &total));
  MUST(cuMemAlloc(&ballast, before - LEFT));
  MUST(cuMemGetInfo(&before, &total));
  for (int i = sizes; i-- > 0;) {
    MUST(simple_call(&s[i])); /* to warm up, on the legacy stream */
    exec[i] = capture_exec(&s[i]);
  }
  MUST(cuMemGetInfo(&after, &total));
  for (int i = 0; i < sizes; i++) wrong += wrong_replay(exec[i], stream, &s[i]);
  printf("taken: %lld\n", (long long)(before - after));
  /* When the graphs are gone, a stream that comes new finds room again. */
  CUstream fresh;
  for (int i = 0; i < sizes; i++) MUST(cuGraphExecDestroy(exec[i]));
  MUST(cuStreamCreate(&fresh, CU_STREAM_NON_BLOCKING));
  MUST(cublasSetStream(s[0].handle, (cudaStream_t)fresh));
  for (int i = 0; i < 7; i++) MUST(simple_call(&s[0]));
  return wrong;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  int times = argc > 2 ? atoi(argv[2]) : 0;
  simple_t starts_the_driver = simple_open(1);
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  int wrong = !strcmp(argv[1], "update")   ? update()
              : !strcmp(argv[1], "unseen") ? unseen(times)
              : !strcmp(argv[1], "seen")   ? seen(times)
              : !strcmp(argv[1], "again")  ? again(times)
              : !strcmp(argv[1], "many")   ? many(times)
                                           : together(times);
  simple_close(&starts_the_driver);
  printf("wrong: %d\n", wrong);
  return wrong != 0;
}
