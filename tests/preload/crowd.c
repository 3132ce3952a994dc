/* crowd THREADS ROUNDS: in each round every thread captures GRAPHS graphs of a product each on one stream of its own, thread by
 * thread in thread-local or relaxed mode, then all replay at once, each a graph of its own and one of each of its next
 * neighbours, so that what one stream captured runs on several threads; then the results are checked. Prints "wrong: N", and "grown: N", the pieces of memory, graphs and user objects there are more than after the
 * first rounds. */
#include "client.h"

#include <dlfcn.h>
#include <pthread.h>

enum { MOST = 32, GRAPHS = 3, WARM = 3 };

static pthread_barrier_t barrier;
static CUcontext context;
static int rounds;
static sim_live_t *live;
static uint64_t settled, at_the_end;

typedef struct {
  int index, wrong;
  simple_t s[GRAPHS];
  CUstream stream[GRAPHS];
  CUgraphExec exec[GRAPHS];
} member_t;
static member_t members[MOST];
static int count;

static CUgraphExec capture(const member_t *m, const simple_t *s) {
  CUstreamCaptureMode mode =
      m->index % 2 ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  CUgraph graph;
  CUgraphExec exec;
  MUST(cuStreamBeginCapture(m->stream[0], mode));
  MUST(simple_call(s));
  MUST(cuStreamEndCapture(m->stream[0], &graph));
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  MUST(cuGraphDestroy(graph));
  return exec;
}

static void take_part(member_t *m) {
  for (int i = 0; i < GRAPHS; i++) m->exec[i] = capture(m, &m->s[i]);
  for (int i = 0; i < GRAPHS; i++)
    MUST(cuMemsetD8((CUdeviceptr)m->s[i].c, 0xff, 2 * 128 * (size_t)m->s[i].n));
  MUST(cuCtxSynchronize());
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < GRAPHS; i++) MUST(cuGraphLaunch(members[(m->index + i) % count].exec[i], m->stream[i]));
  for (int i = 0; i < GRAPHS; i++) MUST(cuStreamSynchronize(m->stream[i]));
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < GRAPHS; i++) m->wrong += !simple_right(&m->s[i]);
  for (int i = 0; i < GRAPHS; i++) MUST(cuGraphExecDestroy(m->exec[i]));
}

static void *work(void *member) {
  member_t *m = member;
  MUST(cuCtxSetCurrent(context));
  for (int i = 0; i < GRAPHS; i++) {
    m->s[i] = simple_open(8 + i);
    device_free(m->s[i].b); /* a product of its own: results that get mixed up show */
    m->s[i].b = device_values(CUDA_R_16F, 128 * m->s[i].n, (unsigned)(10 + GRAPHS * m->index + i));
    MUST(cuStreamCreate(&m->stream[i], CU_STREAM_NON_BLOCKING));
    MUST(cublasSetStream(m->s[i].handle, (cudaStream_t)m->stream[0]));
  }
  for (int round = 0; round < rounds; round++) {
    take_part(m);
    pthread_barrier_wait(&barrier);
    if (m->index == 0 && round == WARM) settled = live();
    if (m->index == 0 && round == rounds - 1) at_the_end = live();
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t threads[MOST];
  if (argc < 3) return 2;
  int wrong = 0;
  count = atoi(argv[1]);
  rounds = atoi(argv[2]);
  must(count < 1 || count > MOST || rounds <= WARM, "the numbers of threads and rounds");
  simple_t starts_the_driver = simple_open(1);
  MUST(cuCtxGetCurrent(&context));
  live = (sim_live_t *)dlsym(RTLD_DEFAULT, "sim_live");
  must(!live, "finding the stand-in driver");
  must(pthread_barrier_init(&barrier, NULL, (unsigned)count), "the barrier");
  for (int i = 0; i < count; i++) {
    members[i].index = i;
    must(pthread_create(&threads[i], NULL, work, &members[i]), "a thread");
  }
  for (int i = 0; i < count; i++) {
    must(pthread_join(threads[i], NULL), "a thread");
    wrong += members[i].wrong;
  }
  simple_close(&starts_the_driver);
  printf("wrong: %d\ngrown: %lld\n", wrong, (long long)(at_the_end - settled));
  return wrong != 0;
}
