/* Floor 2. Times calls by pairs of events on their own streams, without waiting: results are fetched when a
 * later timed call passes by. */
#ifndef GS_CLOCK_H
#define GS_CLOCK_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether this thread's next call is 1 in GEMMSHIM_SAMPLE; counts the call. */
bool gs_clock_due(void);
/* Receives what a pair measured, ns = 0 where it could not; under the clock's lock, which it must not want. */
typedef void gs_clock_sink_t(void *context, int tag, uint64_t ns);
/* Records the first event; returns a token for gs_clock_stop, or -1 (all pairs in flight, driver refused). */
int gs_clock_start(CUstream stream, gs_clock_sink_t *sink, void *context, int tag);
void gs_clock_stop(int token, CUstream stream);
/* Instead of stopping it: the sink gets nothing. */
void gs_clock_cancel(int token);
/* Fetches what has been measured meanwhile in the current context. */
void gs_clock_poll(void);
/* In a forked child: forgets the parent's events. */
void gs_clock_fork(void);

#endif
