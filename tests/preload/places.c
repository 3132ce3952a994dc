/* places MODE: products on other devices, in other contexts and after their end, each checked; "wrong: N".
 *   devices   one after another on every device, each with a handle of its own
 *   threads   one handle used from several threads in turn
 *   reset     calls, cudaDeviceReset, calls again, a few times
 *   contexts  contexts made, used and destroyed, one after another
 *   exact     on every kind of stream; the launch is on the stream that the handle holds
 *   streams   another stream, and a workspace, for the handle before each call; nobody writes into that workspace */
#include "client.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum { CALLS = 3 };

static int wrong_calls(const simple_t *s) {
  int wrong = 0;
  for (int i = 0; i < CALLS; i++) {
    MUST(cuMemsetD8((CUdeviceptr)s->c, 0xff, (size_t)(2 * 128 * s->n)));
    MUST(simple_call(s));
    wrong += !simple_right(s);
  }
  return wrong;
}

static int with_own_stream(void) {
  simple_t s = simple_open(8);
  CUstream stream;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cublasSetStream(s.handle, (cudaStream_t)stream));
  int wrong = wrong_calls(&s);
  simple_close(&s);
  MUST(cuStreamDestroy(stream));
  return wrong;
}

static int devices(void) {
  int count, wrong = 0;
  MUST(cuDeviceGetCount(&count));
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < count; i++) {
      CUcontext context;
      MUST(cuDevicePrimaryCtxRetain(&context, i));
      MUST(cuCtxSetCurrent(context));
      wrong += with_own_stream();
    }
  return wrong;
}

static int contexts(void) {
  int wrong = 0;
  for (int i = 0; i < 50; i++) {
    CUcontext context;
    MUST(cuCtxCreate(&context, NULL, 0, 0));
    wrong += with_own_stream();
    MUST(cuCtxDestroy(context));
  }
  return wrong;
}

static int reset(void) {
  int wrong = 0;
  for (int i = 0; i < 50; i++) {
    wrong += with_own_stream();
    MUST(cuDevicePrimaryCtxReset(0));
  }
  return wrong;
}

typedef struct {
  simple_t s;
  CUcontext context;
  int wrong;
} shared_t;

static void *use(void *argument) {
  shared_t *shared = argument;
  MUST(cuCtxSetCurrent(shared->context));
  shared->wrong += wrong_calls(&shared->s);
  return NULL;
}

static int threads(void) {
  shared_t shared = {.s = simple_open(8)};
  MUST(cuCtxGetCurrent(&shared.context));
  for (int i = 0; i < 8; i++) {
    pthread_t thread;
    must(pthread_create(&thread, NULL, use, &shared), "a thread");
    must(pthread_join(thread, NULL), "a thread");
  }
  return shared.wrong;
}

static int streams(void) {
  enum { STREAMS = 3, ROUNDS = 2000 };
  static unsigned char pattern[4 << 20], found[sizeof pattern];
  simple_t s = simple_open(8);
  CUstream stream[STREAMS];
  CUdeviceptr workspace;
  size_t first = 0, last, total;
  for (size_t i = 0; i < sizeof pattern; i++) pattern[i] = (unsigned char)(i % 251 + 1);
  MUST(cuMemAlloc(&workspace, sizeof pattern));
  MUST(cuMemcpyHtoD(workspace, pattern, sizeof pattern));
  for (int i = 0; i < STREAMS; i++) MUST(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < ROUNDS; i++) {
    MUST(cublasSetStream(s.handle, (cudaStream_t)stream[i % STREAMS]));
    MUST(cublasSetWorkspace(s.handle, (void *)workspace, sizeof pattern));
    MUST(simple_call(&s));
    if (i == STREAMS - 1) MUST(cuMemGetInfo(&first, &total));
  }
  MUST(cuMemGetInfo(&last, &total));
  MUST(cuCtxSynchronize());
  MUST(cuMemcpyDtoH(found, workspace, sizeof found));
  return !simple_right(&s) + (first != last) + (memcmp(found, pattern, sizeof found) != 0);
}

/* Also a handle that was never given a stream: the legacy one. Prints "early: N", of how many launches that they may begin
 * early was said. */
static int exact(void) {
  CUstream streams[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, NULL};
  simple_t s = simple_open(8);
  sim_launch_t launch;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  sim_last_launch_t *last = driver ? (sim_last_launch_t *)dlsym(driver, "sim_last_launch") : NULL;
  must(!last, "finding the stand-in driver");
  MUST(cuStreamCreate(&streams[3], CU_STREAM_NON_BLOCKING));
  int wrong = wrong_calls(&s) + !(last(&launch) && launch.stream == NULL), early = launch.early;
  for (int i = 0; i < 4; i++) {
    MUST(cublasSetStream(s.handle, (cudaStream_t)streams[i]));
    wrong += wrong_calls(&s) + !(last(&launch) && launch.stream == streams[i]);
    early += launch.early;
  }
  printf("early: %d\n", early);
  return wrong;
}

static const struct {
  const char *name;
  int (*run)(void);
} modes[] = {{"devices", devices},   {"threads", threads}, {"reset", reset},
             {"contexts", contexts}, {"streams", streams}, {"exact", exact}};

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  MUST(cuInit(0));
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(argv[1], modes[i].name)) continue;
    int wrong = modes[i].run();
    printf("wrong: %d\n", wrong);
    return wrong != 0;
  }
  return 2;
}
