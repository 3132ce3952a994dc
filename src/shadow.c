#include "shadow.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "dump.h"
#include "histogram.h"
#include "log.h"
#include "options.h"
#include "workspace.h"

#define IN_FLIGHT   16
#define HEAD        256 /* bytes before the other result: the comparison's own */
#define BLOCKS_MOST 1024
#define PAGES       8
#define PAGE_BYTES  4096

/* One comparison on its way. */
typedef struct {
  _Atomic bool taken;
  bool dumped; /* copies of its operands are held */
  int slot;
  gs_gemm_t gemm;
  const gs_row_t *row;
  gs_row_state_t *state;
  const gs_compare_result_t *result;
} gs_check_t;

/* Where a context's comparisons come to, one result a check: memory of our own that the driver locks for it, so that
 * it stays when the context goes. */
typedef struct {
  unsigned long long context; /* its id */
  gs_compare_result_t *results;
} gs_page_t;
_Static_assert(IN_FLIGHT * sizeof(gs_compare_result_t) <= PAGE_BYTES, "a page for all checks");

static gs_check_t checks[IN_FLIGHT];
static gs_page_t pages[PAGES]; /* written by who holds busy */
static const gs_page_t *page;  /* of the call in progress */
static CUkernel kernels[GS_TYPE_COUNT];
static enum { UNKNOWN, USABLE, UNUSABLE } state; /* written once, by who holds busy */
/* One call at a time: two threads on one stream must not write the same memory between library and comparison. */
static _Atomic bool busy;
static bool dumping; /* the call in progress; by who holds busy */
static _Atomic int in_flight;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the tally */
static gs_shadow_tally_t tally = {.slot = -1};
static __thread unsigned calls __attribute__((tls_model("initial-exec")));

bool gs_shadow_due(void) {
  unsigned long every = (unsigned long)gs_option(GS_OPT_VERIFY);
  if (atomic_load_explicit(&in_flight, memory_order_relaxed)) gs_clock_poll();
  return calls++ % every == 0;
}

gs_shadow_tally_t gs_shadow_tally(void) {
  pthread_mutex_lock(&lock);
  gs_shadow_tally_t copy = tally;
  pthread_mutex_unlock(&lock);
  return copy;
}

static void leave_out(void) {
  pthread_mutex_lock(&lock);
  tally.left_out++;
  pthread_mutex_unlock(&lock);
}

/* ---- the judgement ---- */

static double step_at(const gs_gemm_t *g, double x) {
  int exponent, fraction = g->d_type == GS_TYPE_F16 ? 10 : g->d_type == GS_TYPE_BF16 ? 7 : 23;
  frexp(x, &exponent);
  int lowest = g->d_type == GS_TYPE_F16 ? -14 : -126;
  return ldexp(1, (x > 0 && exponent - 1 > lowest ? exponent - 1 : lowest) - fraction);
}

/* Two right results are up to one step apart: 0.4 of it on average over many elements, but where there are few, one of
 * them may take it all. */
double gs_shadow_judge(const gs_compare_result_t *r, const gs_gemm_t *g) {
  bool gelu = g->epilogue == GS_EPILOGUE_GELU || g->epilogue == GS_EPILOGUE_GELU_BIAS;
  double slack = gelu ? 4 : 1, noise = 0x1p-23 * (16 + (double)g->k / 8), largest = (double)r->max_reference;
  double step = step_at(g, largest);
  double mean2 = slack * slack * (0.5625 * r->step2 + step * step) + noise * noise * r->reference2;
  double most = slack * 4 * step + 8 * noise * largest;
  if (r->misfits) return INFINITY;
  double mean_off = r->error2 > 0 ? sqrt(r->error2 / mean2) : 0, one_off = (double)r->max_error / most;
  return mean_off > one_off ? mean_off : one_off;
}

static void retire(const gs_check_t *check, const gs_compare_result_t *result, double off) {
  char shape[256], name[GS_KERNEL_ID_MAX];
  if (atomic_exchange(&check->state->retired, GS_REASON_WRONG)) return;
  gs_gemm_describe(shape, sizeof shape, &check->gemm);
  gs_row_name(name, sizeof name, check->row);
  gs_log(GS_LOG_FAULT,
         "%s: %s is %.3g times as far from cuBLAS's result as rounding explains (largest difference %.3g at "
         "most "
         "%.3g, %llu NaN or infinite in one alone); the row is retired, its calls are forwarded",
         shape, name, off, (double)result->max_error, (double)result->max_reference, result->misfits);
}

/* The clock's: the comparison is over; ns is 0 where the context went away or the driver failed. */
static void receive(void *context, int index, uint64_t ns) {
  gs_check_t *check = &checks[index];
  (void)context;
  if (ns) {
    const gs_compare_result_t *result = check->result;
    double off = gs_shadow_judge(result, &check->gemm);
    if (!(off <= 1)) retire(check, result, off);
    if (!(off <= 1) && check->dumped) gs_dump_write(&check->gemm, check->row, off, result);
    gs_histogram_checked(check->slot, (float)off);
    pthread_mutex_lock(&lock);
    tally.compared++;
    tally.off += !(off <= 1);
    if (tally.slot < 0 || off > tally.worst) tally.worst = off, tally.slot = check->slot;
    pthread_mutex_unlock(&lock);
  } else {
    leave_out();
  }
  if (check->dumped) gs_dump_drop();
  atomic_store(&check->taken, false);
  atomic_fetch_sub(&in_flight, 1);
}

/* ---- a call ---- */

static CUresult load(void) {
  static const gs_type_t types[] = {GS_TYPE_F16, GS_TYPE_BF16, GS_TYPE_F32};
  size_t size;
  CUlibrary library;
  CUresult result =
      gs_driver.cuLibraryLoadData(&library, gs_compare_image(&size), NULL, NULL, 0, NULL, NULL, 0);
  for (int i = 0; i < 3 && result == CUDA_SUCCESS; i++) {
    char name[32] = "compare_";
    strcat(name, gs_type_names[types[i]]);
    result = gs_driver.cuLibraryGetKernel(&kernels[types[i]], library, name);
  }
  return result;
}

static bool lock_page(gs_page_t *new) {
  void *memory = NULL;
  if (posix_memalign(&memory, PAGE_BYTES, PAGE_BYTES)) return false;
  CUstreamCaptureMode mode;
  bool locked = gs_capture_relax(&mode);
  if (locked) {
    locked = gs_driver.cuMemHostRegister(memory, PAGE_BYTES, 0) == CUDA_SUCCESS;
    gs_capture_restore(mode);
  }
  if (locked)
    new->results = memory;
  else
    free(memory);
  return locked;
}

static bool find_page(CUcontext context) {
  unsigned long long id;
  if (gs_driver.cuCtxGetId(context, &id) != CUDA_SUCCESS) return false;
  for (int i = 0; i < PAGES; i++) {
    page = &pages[i];
    if (pages[i].results && pages[i].context == id) return true;
    if (pages[i].results) continue;
    pages[i].context = id;
    return lock_page(&pages[i]);
  }
  return false;
}

static bool ready(void) {
  if (state == UNKNOWN) {
    CUstreamCaptureMode mode;
    if (!gs_capture_relax(&mode)) return false;
    CUresult result = load();
    gs_capture_restore(mode);
    state = result == CUDA_SUCCESS ? USABLE : UNUSABLE;
    if (state == UNUSABLE)
      gs_log(GS_LOG_FAULT, "GEMMSHIM_VERIFY: the driver says %s; nothing is compared", gs_cuda_error(result));
  }
  return state == USABLE;
}

/* Elements from D's first to its last. */
static size_t span_of(const gs_gemm_t *g) {
  return (size_t)(g->stride_d * (g->batch - 1) + (g->n - 1) * g->ldd + g->m) * gs_type_bytes[g->d_type];
}

/* cublasGemmEx reads C from where it writes D. */
static bool copies_c(const gs_call_t *call) {
  float beta = 0;
  if (!call->handle) return false; /* cublasLtMatmul has a C of its own */
  if (!call->device_scalars && call->at.beta) memcpy(&beta, call->at.beta, sizeof beta);
  return call->device_scalars || beta != 0;
}

static bool eligible(const gs_call_t *call) {
  CUstreamCaptureStatus status;
  const gs_gemm_t *g = &call->gemm;
  return g->compute == GS_COMPUTE_32F && g->stride_d >= 0 && g->stride_c == g->stride_d && g->ldc == g->ldd &&
         gs_driver.cuStreamIsCapturing(call->stream, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_NONE;
}

void gs_shadow_begin(gs_call_t *call, const gs_place_t *place) {
  void *memory = NULL;
  if (atomic_exchange(&busy, true)) return leave_out();
  size_t bytes = span_of(&call->gemm);
  bool found = eligible(call) && ready() && find_page(place->context) &&
               gs_workspace_scratch(place->context, call->stream, HEAD + bytes, &memory) == GS_REASON_SERVED;
  CUdeviceptr other = (CUdeviceptr)memory + HEAD;
  if (found && gs_dump_wanted()) found = dumping = gs_dump_begin(call, place, (void *)other);
  if (found && copies_c(call))
    found = gs_driver.cuMemcpyDtoDAsync(other, (CUdeviceptr)call->at.d, bytes, call->stream) == CUDA_SUCCESS;
  if (found)
    call->shadow = (void *)other;
  else
    gs_shadow_end(call), leave_out();
}

void gs_shadow_end(gs_call_t *call) {
  if (dumping) gs_dump_drop();
  dumping = false;
  call->shadow = NULL;
  atomic_store(&busy, false);
}

static CUresult enqueue(const gs_call_t *call, gs_compare_result_t *result) {
  const gs_gemm_t *g = &call->gemm;
  CUdeviceptr head = (CUdeviceptr)call->shadow - HEAD;
  gs_compare_params_t p = {.d = call->at.d,
                           .reference = call->shadow,
                           .result = (gs_compare_result_t *)head,
                           .stride = g->stride_d,
                           .m = (int)g->m,
                           .n = (int)g->n,
                           .ld = (int)g->ldd};
  int64_t blocks = (g->m * g->n + 4 * GS_COMPARE_THREADS - 1) / (4 * GS_COMPARE_THREADS);
  void *arguments[] = {&p};
  CUresult status = gs_driver.cuMemsetD8Async(head, 0, sizeof *result, call->stream);
  if (status == CUDA_SUCCESS)
    status = gs_driver.cuLaunchKernel(
        (CUfunction)kernels[g->d_type], (unsigned)(blocks < BLOCKS_MOST ? blocks : BLOCKS_MOST), 1,
        (unsigned)g->batch, GS_COMPARE_THREADS, 1, 1, 0, call->stream, arguments, NULL);
  if (status == CUDA_SUCCESS)
    status = gs_driver.cuMemcpyDtoHAsync(result, head, sizeof *result, call->stream);
  return status;
}

static int take_check(void) {
  for (int i = 0; i < IN_FLIGHT; i++)
    if (!atomic_exchange(&checks[i].taken, true)) return i;
  return -1;
}

void gs_shadow_compare(gs_call_t *call, const gs_row_t *row, gs_row_state_t *row_state) {
  int index = take_check();
  if (index < 0) return leave_out();
  gs_check_t *check = &checks[index];
  gs_compare_result_t *result = &page->results[index];
  check->result = result;
  check->slot = call->slot, check->gemm = call->gemm, check->row = row, check->state = row_state;
  int token = gs_clock_start(call->stream, receive, NULL, index);
  if (token >= 0 && dumping) gs_dump_copy(call);
  if (token >= 0 && enqueue(call, result) == CUDA_SUCCESS) {
    check->dumped = dumping, dumping = false;
    atomic_fetch_add(&in_flight, 1);
    gs_clock_stop(token, call->stream);
    return;
  }
  gs_clock_cancel(token);
  atomic_store(&check->taken, false);
  leave_out();
}

void gs_shadow_fork(void) {
  pthread_mutex_init(&lock, NULL);
  memset(checks, 0, sizeof checks);
  tally = (gs_shadow_tally_t){.slot = -1};
  state = UNUSABLE; /* the child has no use of the parent's CUDA */
  busy = false;
  in_flight = 0;
  dumping = false;
  gs_dump_fork();
}
