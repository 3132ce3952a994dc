/* early [--times N] [--deep K]: a served product may begin before the kernel ahead of it has ended (GEMMSHIM_EARLY), and
 * that must not show. Products that read what whatever is ahead of them on their stream writes, at its very end, or write what
 * that reads, in each way in which one follows the other: as an ordinary CUDA program that knows nothing of gemmshim. Every
 * result must be, bit by bit, what the same calls leave with a wait between them. Prints TAP, a line a way. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "product.h"

enum { SIDE = 1024, N = 8 };
#define SMALL ((size_t)SIDE * N * 2) /* bytes of B, and of D */
#define LARGE ((size_t)SIDE * SIDE * 2)

static int times = 20, deep = 32768; /* k of the large product: 0.2 ms of an H200 */

/* A large product that cuBLAS computes, and a small one, SIDE x N x SIDE, that follows it. spare: another. */
static product_t large, small, spare;
static CUstream own, blocking, other;
static CUgraphExec graph;
static CUevent event;

static void large_on(CUstream stream) {
  product_call_with(&large, stream, CUBLAS_GEMM_ALGO0_TENSOR_OP);
}

/* ---- ways: large ahead, small behind ---- */

static void same_stream(void) {
  large_on(own);
  product_call(&small, own);
}
static void legacy_stream(void) {
  large_on(NULL);
  product_call(&small, NULL);
}
static void thread_stream(void) {
  large_on(CU_STREAM_PER_THREAD);
  product_call(&small, CU_STREAM_PER_THREAD);
}
/* The kernel ahead on the stream is one that ended long before. */
static void legacy_behind_blocking(void) {
  product_call(&spare, NULL);
  large_on(blocking);
  product_call(&small, NULL);
}
static void blocking_behind_legacy(void) {
  product_call(&spare, blocking);
  large_on(NULL);
  product_call(&small, blocking);
}
static void event_between(void) {
  large_on(other);
  MUST(cuEventRecord(event, other));
  product_call(&spare, own);
  MUST(cuStreamWaitEvent(own, event, 0));
  product_call(&small, own);
}
static void behind_a_graph(void) {
  MUST(cuGraphLaunch(graph, own));
  product_call(&small, own);
}
static void behind_a_copy(void) {
  large_on(own);
  MUST(cuMemcpyDtoDAsync(spare.c, small.b, SMALL, own));
  product_call(&small, own);
}
/* Which waits for the large one, and is waited for. */
static void behind_ours(void) {
  large_on(own);
  product_call(&spare, own);
  product_call(&small, own);
}

static const struct {
  const char *name;
  void (*go)(void);
} ways[] = {{"same stream", same_stream},
            {"legacy stream", legacy_stream},
            {"a thread's stream", thread_stream},
            {"legacy stream behind a blocking one", legacy_behind_blocking},
            {"blocking stream behind the legacy one", blocking_behind_legacy},
            {"an event of another stream", event_between},
            {"behind a graph", behind_a_graph},
            {"behind a copy", behind_a_copy},
            {"behind one of ours", behind_ours}};

/* ---- what is compared ---- */

typedef struct {
  CUdeviceptr at;
  size_t bytes;
  char *wanted, *got;
} result_t;

static result_t result_of(CUdeviceptr at, size_t bytes) {
  result_t r = {at, bytes, malloc(bytes), malloc(bytes)};
  MUST(!r.wanted || !r.got);
  MUST(cuMemcpyDtoH(r.wanted, at, bytes));
  return r;
}

static bool as_wanted(const result_t *r) {
  MUST(cuMemcpyDtoH(r->got, r->at, r->bytes));
  return !memcmp(r->got, r->wanted, r->bytes);
}

/* small reads the last columns of what large writes. */
static bool reads_late(void (*go)(void), const result_t *d) {
  MUST(cuMemsetD8(large.c, 0, LARGE));
  product_clear(&small);
  MUST(cuCtxSynchronize());
  go();
  MUST(cuCtxSynchronize());
  return as_wanted(d);
}

static CUdeviceptr kept; /* of large's B, what small is made to write over */

/* small writes over the last columns that large reads. */
static bool writes_late(void (*go)(void), const result_t *d) {
  MUST(cuMemcpyDtoD(small.c, kept, SMALL));
  MUST(cuCtxSynchronize());
  go();
  MUST(cuCtxSynchronize());
  return as_wanted(d);
}

/* ---- many of ours, each of which reads what the one before wrote ---- */

/* A moves every row of B by one. */
static bool chain_right(void) {
  const int chain = 50 * times;
  product_t first = product_open(SIDE, N, SIDE, 3), p[2] = {first, product_beside(&first, N)};
  uint16_t *host = calloc(LARGE, 1), *b = malloc(SMALL), *c = malloc(SMALL);
  MUST(!host || !b || !c);
  for (int i = 0; i < SIDE; i++) host[i * SIDE + (i + 1) % SIDE] = 0x3c00; /* 1 */
  MUST(cuMemcpyHtoD(first.a, host, LARGE));
  MUST(cuMemcpyDtoH(b, first.b, SMALL));
  p[1].b = p[0].c;
  product_call(&p[0], own);
  product_t back = p[0];
  back.b = p[1].c;
  for (int i = 1; i < chain; i++) product_call(i % 2 ? &p[1] : &back, own);
  MUST(cuStreamSynchronize(own));
  MUST(cuMemcpyDtoH(c, p[1].c, SMALL));
  bool right = true;
  for (int j = 0; j < N && right; j++)
    for (int i = 0; i < SIDE && right; i++) right = c[j * SIDE + i] == b[j * SIDE + (i + chain) % SIDE];
  product_close(&p[1]);
  product_close(&first);
  free(host);
  free(b);
  free(c);
  return right;
}

/* ---- */

static int count, wrong;
static void tell(bool right, const char *what, const char *way) {
  printf("%s %d - %s%s%s\n", right ? "ok" : "not ok", ++count, what, *way ? ": " : "", way);
  wrong += !right;
}

static void check_all(bool (*check)(void (*)(void), const result_t *), const result_t *d, const char *what) {
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    bool right = true;
    for (int j = 0; j < times && right; j++) right = check(ways[i].go, d);
    tell(right, what, ways[i].name);
  }
}

static void open_all(void) {
  large = product_open(SIDE, SIDE, deep, 1);
  small = product_open(SIDE, N, SIDE, 2);
  spare = product_beside(&small, N);
  MUST(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CUgraph captured;
  MUST(cuStreamBeginCapture(own, CU_STREAM_CAPTURE_MODE_GLOBAL));
  large_on(own);
  MUST(cuStreamEndCapture(own, &captured));
  MUST(cuGraphInstantiate(&graph, captured, 0));
  MUST(cuGraphDestroy(captured));
}

int main(int argc, char **argv) {
  cublasHandle_t starts; /* the driver */
  MUST(cublasCreate(&starts));
  for (int i = 1; i + 1 < argc; i += 2) *(strcmp(argv[i], "--deep") ? &times : &deep) = atoi(argv[i + 1]);
  open_all();

  CUdeviceptr b = small.b, c = small.c;
  small.b = large.c + LARGE - SMALL;
  large_on(own);
  MUST(cuCtxSynchronize());
  product_call(&small, own);
  MUST(cuCtxSynchronize());
  result_t of_small = result_of(c, SMALL), of_large = result_of(large.c, LARGE);
  check_all(reads_late, &of_small, "reads what is written ahead");

  kept = c;
  small.b = b;
  small.c = large.b + (size_t)SIDE * (size_t)deep * 2 - SMALL;
  MUST(cuMemcpyDtoD(kept, small.c, SMALL));
  check_all(writes_late, &of_large, "writes what is read ahead");

  bool right = true;
  for (int i = 0; i < times && right; i++) right = chain_right();
  tell(right, "many of ours, each behind another", "");
  printf("1..%d\n", count);
  return wrong || !count;
}
