/* Floor 3. Serving one call: the conditions that depend on the call, and the kernel's launch. */
#ifndef GS_LAUNCH_H
#define GS_LAUNCH_H

#include <stdatomic.h>

#include "device.h"
#include "dispatch.h"
#include "library.h"

/* What is known of a table's row beside its text. */
typedef struct {
  int sm;                  /* architecture of the GPUs that it serves on */
  bool skipped;            /* by GEMMSHIM_ONLY or GEMMSHIM_SKIP */
  _Atomic uint8_t retired; /* why (gs_reason_t); 0: it is not */
} gs_row_state_t;

/* Where a call runs: its stream's context, which is the current one. */
typedef struct {
  CUcontext context;
  CUdevice device;
} gs_place_t;

/* Asks the handle for its stream, once a call; false where it will not say. */
bool gs_launch_stream(gs_call_t *call);
/* Handle modes, algorithm, stream, context: GS_REASON_SERVED and the place to run, else why not. */
gs_reason_t gs_launch_conditions(gs_call_t *call, gs_place_t *place);
/* Launches; GS_REASON_SERVED, or why nothing was. libraries: those of the call's product. */
gs_reason_t gs_launch_row(gs_call_t *call, const gs_row_t *row, gs_row_state_t *state,
                          const gs_place_t *place, gs_libraries_t *libraries);

/* IEEE half to float, for host scalars of COMPUTE_16F. */
float gs_float_of_half(uint16_t half);
/* Whether D overlaps A, B, another entry of its batch, or a C that is not exactly D. */
bool gs_launch_overlaps(const gs_gemm_t *g, const gs_operands_t *at);

#endif
