/* Floor 2. Times 1 call in GEMMSHIM_SAMPLE by a pair of events on the call's own stream, without waiting:
 * results are fetched when a later sample passes by. */
#ifndef GS_CLOCK_H
#define GS_CLOCK_H

#include <cuda.h>
#include <stdbool.h>

/* Whether this thread's next call is to be timed; counts the call. */
bool gs_clock_due(void);
/* Records the first event; returns a token for gs_clock_stop, or -1 (all pairs in flight, driver refused). */
int gs_clock_start(CUstream stream, int slot);
void gs_clock_stop(int token, CUstream stream);
/* In a forked child: forgets the parent's events. */
void gs_clock_fork(void);

#endif
