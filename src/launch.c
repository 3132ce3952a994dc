#include "launch.h"

#include <math.h>
#include <string.h>

#include "clusters.h"
#include "log.h"
#include "options.h"
#include "workspace.h"

bool gs_launch_stream(gs_call_t *call) {
  if (call->handle && !call->stream_known) {
    if (call->real->cublasGetStream_v2(call->handle, &call->stream) != CUBLAS_STATUS_SUCCESS) return false;
    call->stream_known = true;
  }
  return true;
}

/* What a handle can carry that a kernel does not do; cublasLtMatmul says it all in its arguments. */
static gs_reason_t handle_modes(gs_call_t *call) {
  cublasMath_t math;
  cublasPointerMode_t pointer_mode;
  int sm_target = 0;
  const gs_real_t *real = call->real;
  if (!call->handle) return GS_REASON_SERVED;
  if (call->algorithm != CUBLAS_GEMM_DEFAULT && call->algorithm != CUBLAS_GEMM_DEFAULT_TENSOR_OP)
    return GS_REASON_ALGORITHM;
  if (real->cublasGetPointerMode_v2(call->handle, &pointer_mode) != CUBLAS_STATUS_SUCCESS)
    return GS_REASON_SCALARS;
  call->device_scalars = pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
  if (real->cublasGetMathMode(call->handle, &math) != CUBLAS_STATUS_SUCCESS) return GS_REASON_MATH_MODE;
  math &= ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION; /* ours never reduce in less than fp32 */
  if (math != CUBLAS_DEFAULT_MATH && math != CUBLAS_TENSOR_OP_MATH && math != CUBLAS_TF32_TENSOR_OP_MATH)
    return GS_REASON_MATH_MODE;
  if (real->cublasGetSmCountTarget && (real->cublasGetSmCountTarget(call->handle, &sm_target) || sm_target))
    return GS_REASON_MATH_MODE;
  return gs_launch_stream(call) ? GS_REASON_SERVED : GS_REASON_CONTEXT;
}

gs_reason_t gs_launch_conditions(gs_call_t *call, gs_place_t *place) {
  CUcontext of_stream = NULL;
  gs_reason_t reason = handle_modes(call);
  if (reason != GS_REASON_SERVED) return reason;
  if (gs_driver.cuCtxGetCurrent(&place->context) != CUDA_SUCCESS || !place->context) return GS_REASON_CONTEXT;
  bool named = call->stream && call->stream != CU_STREAM_LEGACY && call->stream != CU_STREAM_PER_THREAD;
  if (named &&
      (gs_driver.cuStreamGetCtx(call->stream, &of_stream) != CUDA_SUCCESS || of_stream != place->context))
    return GS_REASON_CONTEXT;
  return gs_driver.cuCtxGetDevice(&place->device) == CUDA_SUCCESS ? GS_REASON_SERVED : GS_REASON_CONTEXT;
}

/* ---- operands ---- */

typedef struct {
  intptr_t lo, hi; /* bytes; [lo, hi) */
} gs_span_t;

static gs_span_t span_of(const void *base, int64_t rows, int64_t columns, int64_t ld, int64_t stride,
                         int64_t batch, int64_t bytes) {
  gs_span_t span = {(intptr_t)base, (intptr_t)base + ((columns - 1) * ld + rows) * bytes};
  int64_t far = stride * (batch - 1) * bytes;
  *(far < 0 ? &span.lo : &span.hi) += far;
  return span;
}

static bool meet(gs_span_t x, gs_span_t y) {
  return x.lo < y.hi && y.lo < x.hi;
}

/* Entries of a batch lie apart where each begins behind the one before, or, as the heads of attention do,
 * side by side within one leading dimension. */
static bool batch_overlaps(const gs_gemm_t *g) {
  int64_t step = g->stride_d < 0 ? -g->stride_d : g->stride_d;
  bool behind = step >= (g->n - 1) * g->ldd + g->m;
  bool beside = step >= g->m && (g->batch - 1) * step + g->m <= g->ldd;
  return !behind && !beside;
}

bool gs_launch_overlaps(const gs_gemm_t *g, const gs_operands_t *at) {
  int64_t ab = gs_type_bytes[g->a_type], cd = gs_type_bytes[g->d_type];
  bool ta = g->transa != GS_OP_N, tb = g->transb != GS_OP_N;
  gs_span_t a = span_of(at->a, ta ? g->k : g->m, ta ? g->m : g->k, g->lda, g->stride_a, g->batch, ab);
  gs_span_t b = span_of(at->b, tb ? g->n : g->k, tb ? g->k : g->n, g->ldb, g->stride_b, g->batch, ab);
  gs_span_t d = span_of(at->d, g->m, g->n, g->ldd, g->stride_d, g->batch, cd);
  if (meet(a, d) || meet(b, d)) return true;
  if (g->batch > 1 && batch_overlaps(g)) return true;
  if (!at->c || (at->c == at->d && g->ldc == g->ldd && (g->batch == 1 || g->stride_c == g->stride_d)))
    return false;
  return meet(span_of(at->c, g->m, g->n, g->ldc, g->stride_c, g->batch, cd), d);
}

float gs_float_of_half(uint16_t half) {
  int exponent = half >> 10 & 31, fraction = half & 1023;
  float magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                    : exponent == 0 ? ldexpf((float)fraction, -24)
                                    : ldexpf((float)(fraction + 1024), exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

/* Host scalars are read now; device ones by the kernel. Their type follows the compute type. */
static bool read_scalars(const gs_call_t *call, gs_params_t *p) {
  bool half = call->gemm.compute == GS_COMPUTE_16F;
  if (!call->at.alpha || !call->at.beta) return false;
  if (call->device_scalars) {
    p->alpha_ptr = call->at.alpha, p->beta_ptr = call->at.beta;
    return !half;
  }
  if (half) {
    uint16_t bits[2];
    memcpy(&bits[0], call->at.alpha, 2);
    memcpy(&bits[1], call->at.beta, 2);
    p->alpha = gs_float_of_half(bits[0]), p->beta = gs_float_of_half(bits[1]);
  } else {
    memcpy(&p->alpha, call->at.alpha, sizeof p->alpha);
    memcpy(&p->beta, call->at.beta, sizeof p->beta);
  }
  return p->alpha != 0;
}

/* Before the kernel ahead of it has ended, where that is asked for: a kernel of the program's own that begins so and does not wait
 * would hide those ahead of it from ours. Families direct and rows read operands by loads that are not coherent (ld.global.nc), for
 * which waiting for that end is no promise; an extra may come of a build whose kernels did not wait. */
static bool may_begin_early(const gs_row_t *row) {
  return gs_option(GS_OPT_EARLY) && row->index < gs_shipped_count() &&
         row->kernel.family != GS_FAMILY_DIRECT && row->kernel.family != GS_FAMILY_ROWS;
}

static CUresult launch(CUkernel kernel, const gs_launch_t *to, gs_manner_t manner, CUstream stream,
                       gs_params_t *p) {
  void *arguments[] = {p};
  CUlaunchConfig config;
  CUlaunchAttribute attributes[GS_LAUNCH_ATTRIBUTES];
  if (gs_launch_is_plain(to, manner))
    return gs_driver.cuLaunchKernel((CUfunction)kernel, to->grid[0], to->grid[1], to->grid[2], to->block, 1,
                                    1, to->smem, stream, arguments, NULL);
  gs_launch_config(to, manner, stream, &config, attributes);
  return gs_driver.cuLaunchKernelEx(&config, (CUfunction)kernel, arguments, NULL);
}

static void retire(const gs_row_t *row, gs_row_state_t *state, const char *why) {
  char name[GS_KERNEL_ID_MAX];
  if (atomic_exchange(&state->retired, GS_REASON_LAUNCH_FAILED)) return;
  gs_row_name(name, sizeof name, row);
  gs_log(GS_LOG_FAULT, "%s %s: launching it failed with %s; the row is retired, its calls are forwarded",
         row->by_library ? "algorithm" : "kernel", name, why);
}

static gs_reason_t launch_kernel(const gs_call_t *call, const gs_row_t *row, gs_row_state_t *state,
                                 const gs_place_t *place, gs_params_t *p) {
  const gs_gemm_t *g = &call->gemm;
  CUkernel kernel = gs_device_kernel(row->index, place->device);
  if (!kernel) return GS_REASON_LOAD_FAILED;
  size_t bytes = gs_kernel_workspace(&row->kernel, g, row->split_k, state->sm);
  gs_held_t held = {0};
  if (bytes) {
    gs_reason_t reason = gs_workspace(place->context, call->stream, bytes, &held);
    if (reason != GS_REASON_SERVED) return reason;
  }
  p->workspace = held.bytes;
  gs_kernel_params(g, row->split_k, row->raster, p);
  gs_launch_t to = gs_kernel_launch(&row->kernel, g, row->split_k, state->sm);
  gs_manner_t manner = gs_clusters_at_launch(state->sm, call->stream);
  manner.early = manner.early && may_begin_early(row);
  CUresult result = launch(kernel, &to, manner, call->stream, p);
  gs_workspace_let_go(&held);
  if (result == CUDA_SUCCESS) return GS_REASON_SERVED;
  /* A broken capture is the program's affair, and cuBLAS will meet it too: no fault of the row. */
  if (gs_is_of_capture(result)) return GS_REASON_CAPTURE;
  retire(row, state, gs_cuda_error(result));
  return GS_REASON_LAUNCH_FAILED;
}

/* A product's first call asks the library about its algorithm, which may load code. */
static gs_library_t *library_of(const gs_call_t *call, const gs_row_t *row, const gs_place_t *place,
                                cublasLtHandle_t handle, gs_libraries_t *libraries) {
  gs_library_t *library = gs_library_find(libraries, call->real, row, place->device);
  CUstreamCaptureMode mode;
  if (library || !gs_capture_relax(&mode)) return library;
  library = gs_library_of(libraries, call->real, handle, &call->gemm, &call->at, row, place->device);
  gs_capture_restore(mode);
  return library;
}

/* Once, and not for a captured call: what the library does for the first time may be more than a capture bears. A call
 * without a slot is prepared anew each time, which this would make dearer still. */
static gs_relaunch_t *learnt_of(const gs_call_t *call, const gs_place_t *place, gs_library_t *library,
                                cublasLtHandle_t handle) {
  CUstreamCaptureStatus status;
  CUstreamCaptureMode mode;
  if (!atomic_load_explicit(&library->asked, memory_order_relaxed) && call->slot >= 0 &&
      gs_driver.cuStreamIsCapturing(call->stream, &status) == CUDA_SUCCESS &&
      status == CU_STREAM_CAPTURE_STATUS_NONE && gs_capture_relax(&mode)) {
    gs_library_learn(library, handle, &call->gemm, place->context);
    gs_capture_restore(mode);
  }
  gs_relaunch_t *learnt = atomic_load_explicit(&library->learnt, memory_order_acquire);
  return learnt && library->context == place->context ? learnt : NULL;
}

static gs_reason_t launch_algo(const gs_call_t *call, const gs_row_t *row, gs_row_state_t *state,
                               const gs_place_t *place, gs_libraries_t *libraries) {
  cublasLtHandle_t handle = call->handle ? (cublasLtHandle_t)(void *)call->handle : call->lt;
  gs_library_t *library = library_of(call, row, place, handle, libraries);
  if (!library) return GS_REASON_LOAD_FAILED;
  if (library->refusal != GS_REASON_SERVED) return library->refusal;
  if (!library->usable[call->device_scalars]) return GS_REASON_SCALARS;
  /* Its kernels' clusters may be others than those of the program's own call. */
  gs_clusters_at_launch(state->sm, call->stream);
  if (!call->device_scalars &&
      gs_relaunch(learnt_of(call, place, library, handle), &call->at, place->context, call->stream))
    return GS_REASON_SERVED;
  gs_held_t held = {0};
  gs_reason_t reason = GS_REASON_SERVED;
  if (library->workspace) reason = gs_workspace_hold(place->context, call->stream, library->workspace, &held);
  if (reason != GS_REASON_SERVED) return reason;
  cublasStatus_t status = gs_library_matmul(library, handle, &call->at, call->device_scalars, held.bytes,
                                            (cudaStream_t)call->stream);
  gs_workspace_let_go(&held);
  if (status == CUBLAS_STATUS_SUCCESS) return GS_REASON_SERVED;
  /* Any other fault is the stream's or the context's, and the program's own call will meet it too. */
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE)
    retire(row, state,
           status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                                 : "CUBLAS_STATUS_INVALID_VALUE");
  return GS_REASON_LAUNCH_FAILED;
}

gs_reason_t gs_launch_row(gs_call_t *call, const gs_row_t *row, gs_row_state_t *state,
                          const gs_place_t *place, gs_libraries_t *libraries) {
  gs_params_t p = {.a = call->at.a, .b = call->at.b, .c = call->at.c, .d = call->at.d, .bias = call->at.bias};
  int retired = atomic_load_explicit(&state->retired, memory_order_relaxed);
  if (retired) return (gs_reason_t)retired;
  if (!read_scalars(call, &p)) return GS_REASON_SCALARS;
  gs_operands_t at = call->at;
  if (!p.beta_ptr && p.beta == 0)
    at.c = NULL; /* not read */
  else if (!at.c)
    return GS_REASON_DEGENERATE;
  if (gs_launch_overlaps(&call->gemm, &at)) return GS_REASON_OVERLAP;
  return row->by_library ? launch_algo(call, row, state, place, libraries)
                         : launch_kernel(call, row, state, place, &p);
}
