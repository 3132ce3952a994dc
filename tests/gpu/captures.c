/* captures [--times N] [--runtime] [MODE ...]: what frameworks do with CUDA graphs, contexts and devices, as an ordinary CUDA
 * program that knows nothing of gemmshim: products of small whole numbers, so that every right result is exact,
 * whoever computes it. Prints one line a mode (TAP), with what device memory grew by. Modes (all):
 *   global, thread, relaxed  N captures, each instantiated, replayed, checked and destroyed, in that capture mode
 *   update                   one executable graph updated by N captures
 *   mixed                    one executable graph updated from a product that may be served to two that only cuBLAS
 *                            computes, and back; made anew where the driver refuses
 *   together                 graphs of one stream replayed N times at once from four threads
 *   many                     51 sizes captured and replayed while 99% of the memory is taken
 *   devices, reset, green    each device in turn; device reset; a green context of half the SMs
 * --runtime: with a CUDA runtime mapped, as most programs have one */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "product.h"

enum { M = 512, K = 1024, SIZES = 51 };

static int times = 10000;
static CUcontext first_context;

/* ---- graphs ---- */

static CUgraph capture_with(const product_t *p, CUstream stream, CUstreamCaptureMode mode,
                            cublasGemmAlgo_t algorithm) {
  CUgraph graph;
  MUST(cuStreamBeginCapture(stream, mode));
  product_call_with(p, stream, algorithm);
  MUST(cuStreamEndCapture(stream, &graph));
  return graph;
}

static CUgraph capture(const product_t *p, CUstream stream, CUstreamCaptureMode mode) {
  return capture_with(p, stream, mode, CUBLAS_GEMM_DEFAULT);
}

static CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec exec;
  MUST(cuGraphInstantiate(&exec, graph, 0));
  MUST(cuGraphDestroy(graph));
  return exec;
}

/* Device memory, bytes, once things had settled: the driver itself takes some now and then, and how many blocks wait for
 * their graphs to end depends on when it tells of that; GEMMSHIM_VRAM_MB bounds them. One block lost a capture would be a
 * thousand times as much. */
static long long grown;
#define GROWTH_ALLOWED (40 << 20)

/* And the program's own memory, bytes: a user object or a node kept for each capture would show. */
static long long host_grown;
#ifdef __SANITIZE_ADDRESS__ /* which keeps what was freed */
#define HOST_GROWTH_ALLOWED (1LL << 40)
#else
#define HOST_GROWTH_ALLOWED (8 << 20)
#endif

static size_t resident(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return (size_t)pages * 4096;
}

static size_t settled, settled_host;
static void settle(void) {
  settled = memory_used(), settled_host = resident();
}
static void see_growth(void) {
  grown = (long long)(memory_used() - settled);
  host_grown = (long long)(resident() - settled_host);
}

static int captures(CUstreamCaptureMode mode) {
  product_t p = product_open(M, 8, K, 1);
  CUstream stream = stream_open();
  int wrong = 0;
  for (int i = 0; i < times; i++) {
    CUgraphExec exec = instantiate(capture(&p, stream, mode));
    if (i % 100 == 0) wrong += !replay_right(exec, stream, &p);
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuGraphExecDestroy(exec));
    if (i == times / 10) settle();
  }
  see_growth();
  product_close(&p);
  MUST(cuStreamDestroy(stream));
  return wrong;
}
static int global(void) {
  return captures(CU_STREAM_CAPTURE_MODE_GLOBAL);
}
static int thread(void) {
  return captures(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}
static int relaxed(void) {
  return captures(CU_STREAM_CAPTURE_MODE_RELAXED);
}

static int update(void) {
  product_t p[2] = {product_open(M, 8, K, 1), product_open(M, 8, K, 5)};
  CUstream stream = stream_open();
  CUgraphExec exec = instantiate(capture(&p[0], stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  int wrong = 0;
  for (int i = 1; i <= times; i++) {
    CUgraphExecUpdateResultInfo info;
    CUgraph graph = capture(&p[i % 2], stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuGraphExecUpdate(exec, graph, &info));
    MUST(cuGraphDestroy(graph));
    if (i % 100 == 0 || i % 100 == 1) wrong += !replay_right(exec, stream, &p[i % 2]);
    if (i == times / 10) settle();
  }
  see_growth();
  MUST(cuGraphExecDestroy(exec));
  for (int i = 0; i < 2; i++) product_close(&p[i]);
  MUST(cuStreamDestroy(stream));
  return wrong;
}

/* The second and the third product name an algorithm, which leaves them to cuBLAS; the third is of one column. */
static int mixed(void) {
  enum { PRODUCTS = 3 };
  product_t p[PRODUCTS] = {product_open(M, 8, K, 1), product_open(M + 8, 8, K, 5), product_open(M, 1, K, 9)};
  CUstream stream = stream_open();
  CUgraphExec exec = NULL;
  int wrong = 0, updated = 0;
  for (int i = 0; i < times / 10; i++) {
    CUgraphExecUpdateResultInfo info;
    const product_t *next = &p[i % 2 ? 1 + i / 2 % 2 : 0];
    CUgraph graph = capture_with(next, stream, CU_STREAM_CAPTURE_MODE_GLOBAL,
                                 i % 2 ? CUBLAS_GEMM_ALGO0_TENSOR_OP : CUBLAS_GEMM_DEFAULT);
    if (exec && cuGraphExecUpdate(exec, graph, &info) == CUDA_SUCCESS) {
      MUST(cuGraphDestroy(graph));
      updated++;
    } else {
      if (exec) MUST(cuGraphExecDestroy(exec));
      exec = instantiate(graph);
    }
    wrong += !replay_right(exec, stream, next);
  }
  if (exec) MUST(cuGraphExecDestroy(exec));
  for (int i = 0; i < PRODUCTS; i++) product_close(&p[i]);
  MUST(cuStreamDestroy(stream));
  printf("# mixed: %d updates\n", updated);
  return updated ? wrong : wrong + 1;
}

enum { THREADS = 4 };
typedef struct {
  product_t p;
  CUgraphExec exec;
  int wrong;
} user_t;

static void *replays(void *argument) {
  user_t *user = argument;
  MUST(cuCtxSetCurrent(first_context));
  CUstream own = stream_open();
  for (int i = 0; i < times / 10; i++) {
    if (i % 50 == 0)
      user->wrong += !replay_right(user->exec, own, &user->p);
    else
      MUST(cuGraphLaunch(user->exec, own));
  }
  user->wrong += !replay_right(user->exec, own, &user->p);
  MUST(cuStreamDestroy(own));
  return NULL;
}

static int together(void) {
  static user_t users[THREADS];
  pthread_t threads[THREADS];
  CUstream stream = stream_open();
  int wrong = 0;
  for (int i = 0; i < THREADS; i++) {
    users[i].p = product_open(M, 8, K, 10 * i);
    users[i].exec = instantiate(capture(&users[i].p, stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  }
  for (int i = 0; i < THREADS; i++) MUST(pthread_create(&threads[i], NULL, replays, &users[i]));
  for (int i = 0; i < THREADS; i++) {
    MUST(pthread_join(threads[i], NULL));
    wrong += users[i].wrong;
    MUST(cuGraphExecDestroy(users[i].exec));
    product_close(&users[i].p);
  }
  MUST(cuStreamDestroy(stream));
  return wrong;
}

static int many(void) {
  static product_t p[SIZES];
  static CUgraphExec exec[SIZES];
  CUstream stream = stream_open();
  size_t left, total, before;
  CUdeviceptr ballast = 0;
  int wrong = 0;
  for (int i = 0; i < SIZES; i++) p[i] = product_open(M, i + 1, K, i);
  for (int i = 0; i < SIZES; i++) product_call(&p[i], NULL); /* cuBLAS's own workspaces */
  MUST(cuStreamSynchronize(NULL));
  MUST(cuMemGetInfo(&left, &total));
  if (left > total / 100) MUST(cuMemAlloc(&ballast, left - total / 100));
  before = memory_used();
  for (int i = SIZES; i-- > 0;) exec[i] = instantiate(capture(&p[i], stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (int i = 0; i < SIZES; i++) wrong += !replay_right(exec[i], stream, &p[i]);
  grown = (long long)(memory_used() - before);
  if (ballast) MUST(cuMemFree(ballast));
  for (int i = 0; i < SIZES; i++) {
    MUST(cuGraphExecDestroy(exec[i]));
    product_close(&p[i]);
  }
  MUST(cuStreamDestroy(stream));
  return wrong;
}

/* ---- places ---- */

static int a_few_calls(void) {
  product_t p = product_open(M, 8, K, 3);
  CUstream stream = stream_open();
  int wrong = 0;
  for (int i = 0; i < 3; i++) {
    product_clear(&p);
    MUST(cuStreamSynchronize(NULL));
    product_call(&p, stream);
    MUST(cuStreamSynchronize(stream));
    wrong += !product_right(&p);
  }
  product_close(&p);
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
      wrong += a_few_calls();
      MUST(cuDevicePrimaryCtxRelease(i));
    }
  MUST(cuCtxSetCurrent(first_context));
  return wrong;
}

static int reset(void) {
  int wrong = 0;
  for (int i = 0; i < 5; i++) {
    wrong += a_few_calls();
    MUST(cuDevicePrimaryCtxReset(0));
    MUST(cuDevicePrimaryCtxRetain(&first_context, 0));
    MUST(cuCtxSetCurrent(first_context));
  }
  return wrong + a_few_calls();
}

/* -1: this driver has none. */
static int green(void) {
#if CUDA_VERSION >= 12040
#define FIND(name) __typeof__(&name) find_##name = (__typeof__(&name))dlsym(RTLD_DEFAULT, #name)
  FIND(cuDeviceGetDevResource);
  FIND(cuDevSmResourceSplitByCount);
  FIND(cuDevResourceGenerateDesc);
  FIND(cuGreenCtxCreate);
  FIND(cuCtxFromGreenCtx);
  FIND(cuGreenCtxDestroy);
  if (!find_cuDeviceGetDevResource || !find_cuDevSmResourceSplitByCount || !find_cuDevResourceGenerateDesc ||
      !find_cuGreenCtxCreate || !find_cuCtxFromGreenCtx || !find_cuGreenCtxDestroy)
    return -1;
  CUdevResource all, part;
  CUdevResourceDesc description;
  CUgreenCtx made;
  CUcontext context;
  unsigned groups = 1;
  MUST(find_cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  MUST(find_cuDevSmResourceSplitByCount(&part, &groups, &all, NULL, 0, all.sm.smCount / 2));
  MUST(find_cuDevResourceGenerateDesc(&description, &part, 1));
  MUST(find_cuGreenCtxCreate(&made, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  MUST(find_cuCtxFromGreenCtx(&context, made));
  MUST(cuCtxSetCurrent(context));
  int wrong = a_few_calls();
  MUST(cuCtxSetCurrent(first_context));
  MUST(find_cuGreenCtxDestroy(made)); /* while it lives the context may not be reset */
  return wrong;
#else
  return -1;
#endif
}

static const struct {
  const char *name;
  int (*run)(void);
} modes[] = {{"global", global}, {"thread", thread},     {"relaxed", relaxed}, {"update", update},
             {"mixed", mixed},   {"together", together}, {"many", many},       {"devices", devices},
             {"green", green},   {"reset", reset}};

static bool asked(int argc, char **argv, const char *name) {
  bool any = false;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--times"))
      i++;
    else if (!strcmp(argv[i], "--runtime"))
      continue;
    else if (!strcmp(argv[i], name))
      return true;
    else
      any = true;
  }
  return !any;
}

int main(int argc, char **argv) {
  int failed = 0, count = 0;
  for (int i = 1; i + 1 < argc; i++)
    if (!strcmp(argv[i], "--times")) times = atoi(argv[i + 1]);
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--runtime") && !dlopen("libcudart.so.13", RTLD_NOW) &&
        !dlopen("libcudart.so.12", RTLD_NOW))
      return fprintf(stderr, "%s\n", dlerror()), 2;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&first_context, 0));
  MUST(cuCtxSetCurrent(first_context));
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (!asked(argc, argv, modes[i].name)) continue;
    grown = host_grown = 0;
    int wrong = modes[i].run();
    bool ok = wrong <= 0 && grown <= GROWTH_ALLOWED && host_grown <= HOST_GROWTH_ALLOWED;
    char found[48] = "right results";
    if (wrong > 0) snprintf(found, sizeof found, "%d wrong results", wrong);
    failed += !ok;
    printf("%s %d - %s: %s, device memory grew by %lld bytes, its own by %lld%s\n", ok ? "ok" : "not ok",
           ++count, modes[i].name, found, grown, host_grown,
           wrong < 0 ? " # SKIP this driver has no green contexts" : "");
    fflush(stdout);
  }
  printf("1..%d\n", count);
  return failed != 0;
}
