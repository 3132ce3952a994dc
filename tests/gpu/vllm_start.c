/* vllm_start [--m N] [--k N] [--allow MIB]: two processes of one GPU that start as vLLM does: 51 sizes (1, 2, 4, then 8 to 384 in
 * steps of 8), each called once to warm up and then captured, the largest first, while 99% of the device's memory is in use;
 * every graph is replayed and its result checked; at last, with next to nothing left, each size is called on a stream
 * that nobody has used. An ordinary CUDA program that knows nothing of gemmshim. --m, --k: of all products (512, 1024); --allow:
 * what device memory may grow by meanwhile (no limit). TAP on stdout, the last line "# grown: BYTES". */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "product.h"

enum { SIZES = 51, PROCESSES = 2, SECONDS = 100, LEAST = 32 << 20 };

/* What the processes share. */
static struct shared {
  pthread_barrier_t barrier;
  size_t used, total, grown;                   /* bytes */
  int wrong[PROCESSES], last_wrong[PROCESSES]; /* of the sizes */
} * shared;

static int m = 512, k = 1024;

static int size_at(int index) {
  return index < 3 ? 1 << index : 8 * (index - 2);
}

/* All of them are as far. */
static void meet(void) {
  int status = pthread_barrier_wait(&shared->barrier);
  MUST(status == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : status);
}

/* Takes memory until so much is left, in pieces, because there may be no room for one; what is in use then. */
static size_t fill(size_t leave) {
  size_t left, total, piece = (size_t)1 << 30;
  CUdeviceptr ballast;
  MUST(cuMemGetInfo(&left, &total));
  while (left > leave && piece >= 64 << 10) {
    if (piece > left - leave || cuMemAlloc(&ballast, piece) != CUDA_SUCCESS) piece /= 2;
    MUST(cuMemGetInfo(&left, &total));
  }
  return total - left;
}

static void start(int process) {
  product_t p[SIZES];
  CUgraphExec exec[SIZES];
  CUcontext context;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  CUstream stream = stream_open(), fresh = stream_open();
  product_t weights = product_open(m, size_at(SIZES - 1), k, 10 * process);
  for (int i = 0; i < SIZES; i++) p[i] = product_beside(&weights, size_at(i));
  /* The explicit algorithm is cuBLAS's own call, whose kernels are so loaded before memory is gone. */
  for (int i = SIZES; i-- > 0;) product_call_with(&p[i], stream, CUBLAS_GEMM_ALGO0_TENSOR_OP);
  product_call_with(&p[0], fresh, CUBLAS_GEMM_ALGO0_TENSOR_OP);
  MUST(cuStreamSynchronize(fresh));
  MUST(cuStreamSynchronize(stream));
  meet();
  size_t one_percent = 0, total;
  MUST(cuMemGetInfo(&one_percent, &total));
  if (process == 0) shared->used = fill(total / 100), shared->total = total;
  meet();
  for (int i = SIZES; i-- > 0;) {
    product_call(&p[i], stream);
    exec[i] = capture_exec(&p[i], stream);
  }
  for (int i = 0; i < SIZES; i++) shared->wrong[process] += !replay_right(exec[i], stream, &p[i]);
  meet();
  if (process == 0) shared->grown = memory_used() - shared->used;
  meet();
  if (process == 0) fill(total / 1000 < LEAST ? total / 1000 : LEAST);
  meet();
  for (int i = 0; i < SIZES; i++) {
    product_clear(&p[i]);
    MUST(cuStreamSynchronize(NULL));
    product_call(&p[i], fresh);
    MUST(cuStreamSynchronize(fresh));
    shared->last_wrong[process] += !product_right(&p[i]) + !replay_right(exec[i], stream, &p[i]);
  }
  meet();
}

static int count, failed;
__attribute__((format(printf, 2, 3))) static void judge(bool fine, const char *format, ...) {
  va_list list;
  failed += !fine;
  printf("%s %d - ", fine ? "ok" : "not ok", ++count);
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
  putchar('\n');
}

int main(int argc, char **argv) {
  long allowed = -1;
  pid_t child[PROCESSES];
  pthread_barrierattr_t attributes;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--m")) m = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--k")) k = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--allow")) allowed = atol(argv[i + 1]) << 20;
  }
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MUST(shared == MAP_FAILED);
  MUST(pthread_barrierattr_init(&attributes));
  MUST(pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
  MUST(pthread_barrier_init(&shared->barrier, &attributes, PROCESSES));
  for (int i = 0; i < PROCESSES; i++) {
    child[i] = fork();
    MUST(child[i] < 0);
    if (child[i]) continue;
    alarm(SECONDS); /* where the other one is gone */
    start(i);
    exit(0);
  }
  for (int i = 0; i < PROCESSES; i++) {
    int status = 0;
    MUST(waitpid(child[i], &status, 0) < 0);
    judge(!status, "process %d: %s %d", i, WIFSIGNALED(status) ? "ended by signal" : "exit status",
          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    judge(!status && !shared->wrong[i], "process %d: %d sizes captured and replayed, %d wrong", i, SIZES,
          shared->wrong[i]);
    judge(!status && !shared->last_wrong[i],
          "process %d: as many called and replayed with no memory left, %d wrong", i, shared->last_wrong[i]);
  }
  double part = shared->total ? 100.0 * (double)shared->used / (double)shared->total : 0;
  judge(part >= 98.9, "%.1f%% of the memory was in use", part);
  judge(allowed < 0 || (long long)shared->grown <= allowed, "device memory grew by %lld KiB",
        (long long)shared->grown >> 10);
  printf("1..%d\n# grown: %lld\n", count, (long long)shared->grown);
  return failed != 0;
}
