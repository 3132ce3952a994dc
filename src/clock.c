#include "clock.h"

#include <pthread.h>

#include "device.h"
#include "options.h"

#define PAIRS 64

typedef enum { FREE, STARTED, IN_FLIGHT } gs_pair_state_t;

static struct {
  CUevent first, second;
  CUcontext context;     /* events belong to one, and go with it */
  unsigned long long id; /* the context's: its handle may come to stand for another (cudaDeviceReset) */
  gs_clock_sink_t *sink;
  void *sink_context;
  int tag;
  gs_pair_state_t state;
} pairs[PAIRS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* timed calls alone take it */
static __thread unsigned calls __attribute__((tls_model("initial-exec")));

bool gs_clock_due(void) {
  long every = gs_option(GS_OPT_SAMPLE);
  return every && (calls++ + (unsigned long)every / 2) % (unsigned long)every == 0;
}

typedef struct {
  CUcontext handle;
  unsigned long long id;
} gs_current_t;

static void end(int pair, uint64_t ns) {
  pairs[pair].state = FREE;
  pairs[pair].sink(pairs[pair].sink_context, pairs[pair].tag, ns);
}

/* Asks the current context's events; forgets those of one that its handle stood for before. */
static void collect(const gs_current_t *current) {
  for (int i = 0; i < PAIRS; i++) {
    float ms;
    if (pairs[i].context != current->handle || pairs[i].state == STARTED) continue;
    if (pairs[i].id != current->id) {
      if (pairs[i].state == IN_FLIGHT) end(i, 0);
      pairs[i].context = NULL;
      continue;
    }
    if (pairs[i].state != IN_FLIGHT || gs_driver.cuEventQuery(pairs[i].second) == CUDA_ERROR_NOT_READY)
      continue;
    bool known = gs_driver.cuEventElapsedTime(&ms, pairs[i].first, pairs[i].second) == CUDA_SUCCESS;
    end(i, known && ms > 0 ? (uint64_t)((double)ms * 1e6) : 0);
  }
}

/* A free pair of the current context, its events made on first use; -1 where there is none. */
static int claim(const gs_current_t *current) {
  for (int i = 0; i < PAIRS; i++) {
    if (pairs[i].state != FREE || (pairs[i].context && pairs[i].id != current->id)) continue;
    if (!pairs[i].context) {
      if (gs_driver.cuEventCreate(&pairs[i].first, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return -1;
      if (gs_driver.cuEventCreate(&pairs[i].second, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return -1;
      pairs[i].context = current->handle;
      pairs[i].id = current->id;
    }
    return i;
  }
  return -1;
}

/* With the lock and a relaxed capture mode, since asking an event would break a capture elsewhere; false where
 * no context is current. */
static bool enter(gs_current_t *current, CUstreamCaptureMode *mode) {
  if (!gs_driver.cuCtxGetCurrent || gs_driver.cuCtxGetCurrent(&current->handle) != CUDA_SUCCESS ||
      !current->handle || gs_driver.cuCtxGetId(current->handle, &current->id) != CUDA_SUCCESS)
    return false;
  if (!gs_capture_relax(mode)) return false;
  pthread_mutex_lock(&lock);
  collect(current);
  return true;
}

int gs_clock_start(CUstream stream, gs_clock_sink_t *sink, void *context, int tag) {
  gs_current_t current = {NULL, 0};
  CUstreamCaptureMode mode;
  if (!enter(&current, &mode)) return -1;
  int pair = claim(&current);
  gs_capture_restore(mode);
  if (pair >= 0 && gs_driver.cuEventRecord(pairs[pair].first, stream) != CUDA_SUCCESS) pair = -1;
  if (pair >= 0) {
    pairs[pair].state = STARTED;
    pairs[pair].sink = sink, pairs[pair].sink_context = context, pairs[pair].tag = tag;
  }
  pthread_mutex_unlock(&lock);
  return pair;
}

void gs_clock_stop(int token, CUstream stream) {
  if (token < 0) return;
  pthread_mutex_lock(&lock);
  if (gs_driver.cuEventRecord(pairs[token].second, stream) == CUDA_SUCCESS)
    pairs[token].state = IN_FLIGHT;
  else
    end(token, 0);
  pthread_mutex_unlock(&lock);
}

void gs_clock_cancel(int token) {
  if (token < 0) return;
  pthread_mutex_lock(&lock);
  pairs[token].state = FREE;
  pthread_mutex_unlock(&lock);
}

void gs_clock_poll(void) {
  gs_current_t current = {NULL, 0};
  CUstreamCaptureMode mode;
  if (!enter(&current, &mode)) return;
  gs_capture_restore(mode);
  pthread_mutex_unlock(&lock);
}

void gs_clock_fork(void) {
  pthread_mutex_init(&lock, NULL);
  for (int i = 0; i < PAIRS; i++) pairs[i].state = FREE, pairs[i].context = NULL;
}
