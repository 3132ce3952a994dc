/* Floor 3. From a call to a decision: serve it with a kernel, or let it go on to cuBLAS. */
#ifndef GS_DISPATCH_H
#define GS_DISPATCH_H

#include <cuda.h>

#include "gs_gemm.h"
#include "gs_reason.h"
#include "gs_table.h"
#include "real.h"

/* One call, as a hook describes it; zero it first. */
typedef struct {
  gs_gemm_t gemm;
  gs_operands_t at;
  const gs_real_t *real;
  cublasHandle_t handle; /* NULL for cublasLtMatmul, which carries its own stream and scalar mode */
  cublasLtHandle_t lt;   /* cublasLtMatmul's; handle itself is one too */
  CUstream stream;       /* cublasLtMatmul's; else asked from the handle when it is needed */
  bool device_scalars;   /* cublasLtMatmul's; else likewise */
  int algorithm;         /* cublasGemmAlgo_t; 0 where there is none */
  uint64_t lt_algorithm; /* hash of an explicit cublasLtMatmulAlgo_t; 0 = none */
  gs_reason_t refusal;   /* set by the hook: why it can only be forwarded; GS_REASON_SERVED = nothing known */
  _Atomic int *known_slot; /* where the hook remembers this shape's slot + 1; NULL: it does not */
  /* dispatch's own */
  bool stream_known;
  int slot, clock;
  struct gs_probation *trial; /* this call is timed for it; NULL: none */
  int trial_clock;
  void *shadow; /* where the library is to write this call's result before the kernel runs; NULL: nowhere */
  bool shadow_done;    /* or not to be had */
  const gs_row_t *row; /* the row that was found, if any */
} gs_call_t;

/* When a handle is made, and on the first call: once the environment asks for one order of summation for every n, all
 * handles of the process get that. */
void gs_dispatch_heed_environment(void);
/* Reads tables and devices on the first call with a handle; then free. */
void gs_dispatch_ready(const gs_real_t *real);
/* True: the product was launched, the caller returns success. False: forward, then call gs_call_end. */
bool gs_call_begin(gs_call_t *call);
void gs_call_end(gs_call_t *call);
/* Where gs_call_begin said false and set call->shadow: the library wrote there, with this status. As gs_call_begin. */
bool gs_call_shadowed(gs_call_t *call, cublasStatus_t status);

void gs_dispatch_fork(void);    /* in a forked child */
void gs_dispatch_summary(void); /* ten lines at most, at GS_LOG_SUMMARY */

#endif
