/* Floor 3. GEMMSHIM_VERIFY=N: 1 served call in N is also computed by the library, into memory of our own and on the
 * call's own stream, and a kernel compares the two. Nobody waits: what it found is fetched when a later served call
 * passes by, and a row whose result was off is retired. Not under capture, not where the bound GEMMSHIM_VRAM_MB
 * leaves no room for another result (half of it at most goes into this), not for compute type 16f, where the library
 * itself is the less accurate one.
 *
 * A served call goes: gs_shadow_begin names memory; the hook has the library write there, before the kernel may
 * change C; the kernel is launched; gs_shadow_compare. */
#ifndef GS_SHADOW_H
#define GS_SHADOW_H

#include "gs_compare.h"
#include "launch.h"

/* Whether this thread's next served call is to be compared; counts the call, and fetches earlier results. */
bool gs_shadow_due(void);
/* Sets call->shadow, or leaves it NULL where the call cannot be compared. */
void gs_shadow_begin(gs_call_t *call, const gs_place_t *place);
/* After the kernel: compares, and judges the row when the GPU has done so. */
void gs_shadow_compare(gs_call_t *call, const gs_row_t *row, gs_row_state_t *state);
/* In any case, after gs_shadow_begin set call->shadow. */
void gs_shadow_end(gs_call_t *call);

/* How far two results are apart, 1 being the most that rounding and the order of sums explain: differences of 3/4
 * of a unit in the last place (root mean square; two results that are rounded well differ by 0.4 at most, sums
 * accumulated in fp16 by 1.5 and more), 4 units of the largest element in any one, each 4 times that where the
 * library's GELU is an approximation too; and what two sums of k products in fp32 may differ by, twice the gate's
 * bound (gate.h). Infinite where NaN or infinity stand in one alone. */
double gs_shadow_judge(const gs_compare_result_t *result, const gs_gemm_t *g);

/* What was compared so far. */
typedef struct {
  unsigned long long compared, off, left_out; /* left_out: due, but not comparable */
  double worst;                               /* of those that were not off, too */
  int slot;                                   /* of the worst; -1: none */
} gs_shadow_tally_t;
gs_shadow_tally_t gs_shadow_tally(void);
void gs_shadow_fork(void);

#endif
