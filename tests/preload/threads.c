/* threads COUNT CALLS [streams|mixed]: that many threads, each with its own handle and matrices, calling at once on
 * one stream, or on a stream each; mixed: on one, every other with 40 columns instead of 8. */
#include "client.h"

#include <pthread.h>
#include <string.h>

static int calls;
static bool own_streams, mixed;
static pthread_barrier_t start;

static void *work(void *first_context) {
  intptr_t wrong = 0;
  MUST(cuCtxSetCurrent(first_context));
  static _Atomic unsigned seeds = 10;
  unsigned seed = seeds++;
  simple_t s = simple_open(mixed && seed % 2 ? 40 : 8);
  device_free(s.b); /* each thread has a product of its own, so that results that get mixed up show */
  s.b = device_values(CUDA_R_16F, 128 * s.n, seed);
  CUstream stream = NULL;
  if (own_streams) MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cublasSetStream(s.handle, (cudaStream_t)stream));
  pthread_barrier_wait(&start);
  for (int i = 0; i < calls; i++) MUST(simple_call(&s));
  wrong = !simple_right(&s);
  simple_close(&s);
  return (void *)wrong;
}

int main(int argc, char **argv) {
  enum { MOST = 64 };
  pthread_t threads[MOST];
  if (argc < 3) return 2;
  mixed = argc > 3 && !strcmp(argv[3], "mixed");
  own_streams = argc > 3 && !mixed;
  int count = atoi(argv[1]), wrong = 0;
  must(count < 1 || count > MOST, "the number of threads");
  calls = atoi(argv[2]);
  CUcontext context;
  simple_t s = simple_open(8); /* starts the driver */
  MUST(cuCtxGetCurrent(&context));
  must(pthread_barrier_init(&start, NULL, (unsigned)count), "the barrier");
  for (int i = 0; i < count; i++) must(pthread_create(&threads[i], NULL, work, context), "a thread");
  for (int i = 0; i < count; i++) {
    void *result;
    must(pthread_join(threads[i], &result), "a thread");
    wrong += result != NULL;
  }
  simple_close(&s);
  printf("wrong: %d\n", wrong);
  return wrong != 0;
}
