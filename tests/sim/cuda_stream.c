/* Stand-in libcuda: streams (work runs at once, in order), captures, events. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver.h"

struct CUevent_st {
  atomic_ullong ns; /* CLOCK_MONOTONIC at the last record; 0: none */
  atomic_bool captured;
  unsigned long long context; /* its id */
};

/* A real driver may do anything with an event that went with its context. */
static void check_event(CUevent event) {
  if (!driver_context_lives(event->context)) driver_stop("an event of a context that is gone");
}

static capture_t *captures; /* under driver_lock */
static atomic_int capture_count;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult driver_unsafe(void) {
  if (!atomic_load(&capture_count) || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  pthread_mutex_lock(&driver_lock);
  for (capture_t *c = captures; c; c = c->next) {
    bool of_all = c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    bool of_mine = c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && pthread_equal(c->owner, pthread_self());
    if (!of_all && !of_mine) continue;
    atomic_store(&c->invalid, true);
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  pthread_mutex_unlock(&driver_lock);
  return result;
}

CUresult driver_stream(CUstream handle, CUstream *stream) {
  DRIVER_TRY(driver_ready());
  bool special = !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  if (special) DRIVER_TRY(driver_ready_with_context());
  *stream = !special                         ? handle
            : handle == CU_STREAM_PER_THREAD ? &driver_current->per_thread
                                             : &driver_current->legacy;
  return CUDA_SUCCESS;
}

/* What the legacy stream answers while a stream that synchronises with it is capturing. */
static CUresult check_legacy(CUstream stream) {
  bool legacy = stream == &stream->context->legacy;
  return legacy && atomic_load(&stream->context->captures) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                                                           : CUDA_SUCCESS;
}

SIM_EXPORT CUresult sim_enqueue(CUstream handle, int cluster, sim_work_t *work, const void *argument,
                                size_t bytes) {
  CUstream stream;
  DRIVER_TRY(driver_stream(handle, &stream));
  DRIVER_TRY(check_legacy(stream));
  capture_t *capture = atomic_load(&stream->capture);
  if (capture && atomic_load(&capture->invalid)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture) return driver_graph_add(capture->graph, cluster, work, argument, bytes);
  pthread_mutex_lock(&stream->order);
  work(argument);
  pthread_mutex_unlock(&stream->order);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  SIM_ENTER(stream, flags);
  DRIVER_TRY(driver_ready_with_context());
  CUstream made = calloc(1, sizeof *made);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_init(&made->order, NULL);
  made->context = driver_current;
  made->id = driver_next_id();
  made->flags = flags;
  *stream = made;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuStreamDestroy(CUstream stream) {
  SIM_ENTER(stream);
  DRIVER_TRY(driver_ready());
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  free(stream);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuStreamSynchronize(CUstream handle) {
  SIM_ENTER(handle);
  CUstream stream;
  DRIVER_TRY(driver_stream(handle, &stream));
  capture_t *capture = atomic_load(&stream->capture);
  if (capture) atomic_store(&capture->invalid, true);
  return capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : driver_unsafe();
}

SIM_EXPORT CUresult cuStreamGetCtx(CUstream handle, CUcontext *context) {
  SIM_ENTER(handle, context);
  CUstream stream;
  DRIVER_TRY(driver_stream(handle, &stream));
  *context = stream->context;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuStreamGetId(CUstream handle, unsigned long long *id) {
  SIM_ENTER(handle, id);
  CUstream stream;
  DRIVER_TRY(driver_stream(handle, &stream));
  capture_t *capture = atomic_load(&stream->capture); /* as seen of driver 580 */
  if (capture) atomic_store(&capture->invalid, true);
  *id = stream->id;
  return capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

static CUstreamCaptureStatus status_of(capture_t *capture) {
  if (!capture) return CU_STREAM_CAPTURE_STATUS_NONE;
  return atomic_load(&capture->invalid) ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                        : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

SIM_EXPORT CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
  SIM_ENTER(handle, status);
  CUstream stream;
  DRIVER_TRY(driver_stream(handle, &stream));
  DRIVER_TRY(check_legacy(stream));
  capture_t *capture = atomic_load(&stream->capture);
  *status = status_of(capture);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
                                              CUgraph *graph, const CUgraphNode **dependencies,
                                              size_t *count) {
  SIM_ENTER(handle, status, id, graph, dependencies, count);
  CUstream stream;
  DRIVER_TRY(driver_stream(handle, &stream));
  DRIVER_TRY(check_legacy(stream));
  capture_t *capture = atomic_load(&stream->capture);
  *status = status_of(capture);
  if (!capture) return CUDA_SUCCESS;
  if (id) *id = capture->id;
  if (graph) *graph = capture->graph;
  if (dependencies) *dependencies = NULL; /* nodes run in the order of their making */
  if (count) *count = 0;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  SIM_ENTER(mode);
  CUstreamCaptureMode previous = thread_mode;
  thread_mode = *mode;
  *mode = previous;
  return CUDA_SUCCESS;
}

static CUresult begin(CUstream handle, CUgraph graph, CUstreamCaptureMode mode) {
  CUstream stream;
  DRIVER_TRY(driver_stream(handle, &stream));
  if (stream == &stream->context->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (atomic_load(&stream->capture)) return CUDA_ERROR_ILLEGAL_STATE;
  capture_t *capture = calloc(1, sizeof *capture);
  if (!capture) return CUDA_ERROR_OUT_OF_MEMORY;
  capture->graph = graph;
  capture->id = driver_next_id();
  capture->mode = mode;
  capture->owner = pthread_self();
  pthread_mutex_lock(&driver_lock);
  capture->next = captures;
  captures = capture;
  pthread_mutex_unlock(&driver_lock);
  if (!(stream->flags & CU_STREAM_NON_BLOCKING)) atomic_fetch_add(&stream->context->captures, 1);
  atomic_fetch_add(&capture_count, 1);
  atomic_store(&stream->capture, capture);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
  SIM_ENTER(handle, mode);
  CUgraph graph = driver_graph_new();
  CUresult result = graph ? begin(handle, graph, mode) : CUDA_ERROR_OUT_OF_MEMORY;
  if (graph && result != CUDA_SUCCESS) driver_graph_free(graph);
  return result;
}

#if CUDA_VERSION < 12030 /* a program may bring a newer runtime than our toolkit */
typedef void CUgraphEdgeData;
#endif
/* Into a graph that is there already; as everywhere here, nodes run in the order of their making. */
SIM_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph,
                                                const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                                                size_t count, CUstreamCaptureMode mode) {
  SIM_ENTER(handle, graph, dependencies, data, count, mode);
  return graph ? begin(handle, graph, mode) : CUDA_ERROR_INVALID_VALUE;
}

SIM_EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  SIM_ENTER(handle, graph);
  CUstream stream;
  DRIVER_TRY(driver_stream(handle, &stream));
  *graph = NULL;
  capture_t *capture = atomic_exchange(&stream->capture, NULL);
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  pthread_mutex_lock(&driver_lock);
  capture_t **link = &captures;
  while (*link != capture) link = &(*link)->next;
  *link = capture->next;
  pthread_mutex_unlock(&driver_lock);
  if (!(stream->flags & CU_STREAM_NON_BLOCKING)) atomic_fetch_sub(&stream->context->captures, 1);
  atomic_fetch_sub(&capture_count, 1);
  bool invalid = atomic_load(&capture->invalid);
  if (invalid) {
    driver_graph_free(capture->graph);
  } else {
    *graph = capture->graph;
  }
  free(capture);
  return invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags) {
  SIM_ENTER(event, flags);
  DRIVER_TRY(driver_ready_with_context());
  *event = calloc(1, sizeof **event);
  if (!*event) return CUDA_ERROR_OUT_OF_MEMORY;
  (*event)->context = driver_current->id;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuEventDestroy(CUevent event) {
  SIM_ENTER(event);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  free(event);
  return CUDA_SUCCESS;
}

static atomic_ullong set_ns = 1; /* the clock of SIM_CLOCK=set; 0 would be an event without a time */

static bool clock_is_set(void) {
  const char *text = getenv("SIM_CLOCK");
  return text && !strcmp(text, "set");
}

SIM_EXPORT void sim_take(double begin, double us) {
  if (clock_is_set())
    atomic_fetch_add(&set_ns, (unsigned long long)(1000 * us));
  else
    sim_wait(begin + us);
}

static unsigned long long clock_ns(void) {
  struct timespec now;
  if (clock_is_set()) return atomic_load(&set_ns);
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
}

SIM_EXPORT CUresult cuEventRecord(CUevent event, CUstream handle) {
  SIM_ENTER(event, handle);
  CUstream stream;
  DRIVER_TRY(driver_stream(handle, &stream));
  DRIVER_TRY(check_legacy(stream));
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  check_event(event);
  if (stream->context->id != event->context) return CUDA_ERROR_INVALID_HANDLE;
  atomic_store(&event->captured, atomic_load(&stream->capture) != NULL);
  atomic_store(&event->ns, clock_ns());
  return CUDA_SUCCESS;
}

static CUresult event_status(CUevent event) {
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  check_event(event);
  DRIVER_TRY(driver_unsafe());
  return atomic_load(&event->captured) ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuEventQuery(CUevent event) {
  SIM_ENTER(event);
  return event_status(event);
}

SIM_EXPORT CUresult cuEventSynchronize(CUevent event) {
  SIM_ENTER(event);
  return event_status(event);
}

/* Work has run before a call returns; a capture that another stream joins by an event is not for here. */
SIM_EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
  SIM_ENTER(handle, event, flags);
  CUstream stream;
  DRIVER_TRY(driver_stream(handle, &stream));
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  check_event(event);
  bool captures = atomic_load(&stream->capture) || atomic_load(&event->captured);
  return captures ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

static CUresult elapsed(float *ms, CUevent start, CUevent end) {
  DRIVER_TRY(event_status(start));
  DRIVER_TRY(event_status(end));
  unsigned long long from = atomic_load(&start->ns), to = atomic_load(&end->ns);
  if (!from || !to) return CUDA_ERROR_INVALID_HANDLE;
  *ms = (float)((double)(long long)(to - from) * 1e-6);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
  SIM_ENTER(ms, start, end);
  return elapsed(ms, start, end);
}

/* The symbol of the driver's first ABI: the same arguments. */
#undef cuEventElapsedTime
SIM_EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
  SIM_ENTER(ms, start, end);
  return elapsed(ms, start, end);
}
