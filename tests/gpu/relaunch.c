/* relaunch [--times N] M N K...: rows of cuBLASLt's own algorithms whose launches gemmshim learns and makes itself
 * (src/relaunch.h): products of whole numbers by cublasGemmEx, again and again, into one place and another, on two
 * streams, by two threads on one stream, and in graphs that are replayed. Every result must be, bit by bit, what
 * cuBLAS makes of it when asked for another algorithm. Prints TAP, one line a product. */
#include "product.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 3, IN_A_GRAPH = 300 /* more than one memset clears */ };

static int times = 40;

/* One product into several places. */
typedef struct {
  product_t at[PLACES];
  size_t bytes;
  char *wanted, *got;
} work_t;

static bool right(const work_t *w, int place) {
  MUST(cuMemcpyDtoH(w->got, w->at[place].c, w->bytes));
  return !memcmp(w->got, w->wanted, w->bytes);
}

static bool all_right(const work_t *w, const char *what) {
  for (int i = 0; i < PLACES; i++)
    if (!right(w, i)) return printf("# %s, place %d\n", what, i), false;
  return true;
}

static void clear_all(const work_t *w) {
  for (int i = 0; i < PLACES; i++) product_clear(&w->at[i]);
  MUST(cuStreamSynchronize(NULL));
}

static bool eager(const work_t *w) {
  CUstream streams[2] = {stream_open(), stream_open()};
  clear_all(w);
  for (int i = 0; i < times * PLACES; i++) product_call(&w->at[i % PLACES], streams[i % PLACES & 1]);
  for (int i = 0; i < 2; i++) MUST(cuStreamSynchronize(streams[i]));
  for (int i = 0; i < 2; i++) MUST(cuStreamDestroy(streams[i]));
  return all_right(w, "eager");
}

static bool replayed(const work_t *w) {
  CUgraph graph;
  CUgraphExec exec;
  CUstream stream = stream_open();
  bool good = true;
  MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (int i = 0; i < IN_A_GRAPH; i++) product_call(&w->at[i % PLACES], stream);
  MUST(cuStreamEndCapture(stream, &graph));
  MUST(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3 && good; i++) {
    clear_all(w);
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    good = all_right(w, "replayed");
  }
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
  MUST(cuStreamDestroy(stream));
  return good;
}

static CUcontext context;
static CUstream shared;

/* With a handle of its own, as threads have, on a stream that they share. */
static void *call_again(void *product) {
  product_t mine = *(product_t *)product;
  MUST(cuCtxSetCurrent(context));
  MUST(cublasCreate(&mine.handle));
  for (int i = 0; i < times; i++) product_call(&mine, shared);
  MUST(cuStreamSynchronize(shared));
  MUST(cublasDestroy(mine.handle));
  return NULL;
}

static bool by_threads(work_t *w) {
  pthread_t threads[PLACES];
  shared = stream_open();
  MUST(cuCtxGetCurrent(&context));
  clear_all(w);
  for (int i = 0; i < PLACES; i++) MUST(pthread_create(&threads[i], NULL, call_again, &w->at[i]));
  for (int i = 0; i < PLACES; i++) MUST(pthread_join(threads[i], NULL));
  MUST(cuStreamDestroy(shared));
  return all_right(w, "threads");
}

static bool check(int m, int n, int k) {
  work_t w = {.bytes = (size_t)m * (size_t)n * 2};
  w.at[0] = product_open(m, n, k, m + n + k);
  for (int i = 1; i < PLACES; i++) w.at[i] = product_beside(&w.at[0], n);
  w.wanted = malloc(w.bytes), w.got = malloc(w.bytes);
  MUST(!w.wanted || !w.got);
  product_clear(&w.at[0]);
  product_call_with(&w.at[0], NULL, CUBLAS_GEMM_ALGO0_TENSOR_OP);
  MUST(cuStreamSynchronize(NULL));
  MUST(cuMemcpyDtoH(w.wanted, w.at[0].c, w.bytes));
  bool good = eager(&w) && replayed(&w) && by_threads(&w);
  for (int i = PLACES - 1; i >= 0; i--) product_close(&w.at[i]);
  free(w.wanted);
  free(w.got);
  return good;
}

int main(int argc, char **argv) {
  int first = 1, wrong = 0, count = 0;
  cublasHandle_t starts; /* the driver */
  MUST(cublasCreate(&starts));
  if (argc > 2 && !strcmp(argv[1], "--times")) times = atoi(argv[2]), first = 3;
  for (int i = first; i + 2 < argc; i += 3) {
    bool good = check(atoi(argv[i]), atoi(argv[i + 1]), atoi(argv[i + 2]));
    printf("%s %d - %sx%sx%s\n", good ? "ok" : "not ok", ++count, argv[i], argv[i + 1], argv[i + 2]);
    wrong += !good;
  }
  printf("1..%d\n", count);
  MUST(cublasDestroy(starts));
  return wrong || !count;
}
