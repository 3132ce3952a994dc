/* Floor 3. GEMMSHIM_UNPROVEN=probation: whether an unproven row's kernel beats the library for one shape is found
 * out on the program's own calls, each of which runs once, by the library and by the kernel in turn. Each is timed
 * by events on its own stream; the first of each side is not, since it may load code. A call under capture or with
 * an explicit algorithm takes no part.
 *
 * The rule: after 8, 12 and 16 timed calls a side the ranks of all times decide (Mann-Whitney, one-sided, p below
 * 0.0034 at each look, 1% in all). The kernel has won where its times rank that low. It has lost where the library's
 * do, already at 4 a side where all of the library's are lower, or where 16 leave it open. So a kernel that is
 * slower is called 17 times at most. Times include the GPU's wait for the host, which the program feels as well. */
#ifndef GS_PROBATION_H
#define GS_PROBATION_H

#include "dispatch.h"
#include "gs_histogram.h"

#define GS_TRIAL_SAMPLES 16 /* a side */

typedef struct gs_probation gs_probation_t;

gs_probation_t *gs_probation_open(int slot); /* never freed; NULL without memory */
/* Whose turn the call is: GS_REASON_SERVED, the kernel's; else why it is the library's. Then call->trial is set
 * where the call is timed. */
gs_reason_t gs_probation_turn(gs_probation_t *trial, gs_call_t *call);
/* The call is over. */
void gs_probation_end(gs_call_t *call);
/* The kernel did not run after all: it was not its turn, or, where loading or launching it failed, it lost. */
void gs_probation_cancel(gs_call_t *call, gs_reason_t why);

/* The rule: what n times a side say, GS_TRIAL_OPEN where nothing yet. */
gs_trial_verdict_t gs_probation_judge(const float *library_us, const float *kernel_us, int n);

#endif
