/* What a set of calls amounts to: totals, the ceiling, and the lines that `run` and `report` print. */
#ifndef GS_SUMMARY_H
#define GS_SUMMARY_H

#include "calls.h"

typedef struct {
  uint64_t shapes, calls, served, captured, traced, replays, untold;
  uint64_t by_reason[GS_REASON_COUNT]; /* overflow included */
  uint64_t samples;
  uint64_t untimed;   /* products that ran, of shapes that were never sampled */
  double us;          /* GPU time of the sampled shapes, replays included where they are seen */
  double served_us;   /* of this, what gemmshim computed */
  double servable_us; /* GPU time of the calls that a shipped kernel could compute, served or not; shapes
                         never sampled count at the mean of the others */
  double window_s;
} gs_totals_t;

gs_totals_t gs_totals(const gs_calls_t *set);

/* How much faster the whole could become if the products that gemmshim can compute took no time at all:
 * 1 / (1 - their share of the time from the first to the last product). */
typedef struct {
  bool known;
  double value; /* INFINITY where they fill the whole window */
  double share;
  char why[160]; /* where it is not known */
} gs_ceiling_t;

#define GS_CEILING_WORTHLESS 1.02

gs_ceiling_t gs_ceiling(const gs_totals_t *totals, int processes);
/* "ceiling 1.42x: ..." on one line, no newline. */
void gs_ceiling_format(char *buffer, size_t size, const gs_ceiling_t *ceiling, const gs_totals_t *totals);

/* Reasons other than SERVED with at least one call, most frequent first; returns how many. */
int gs_reasons_by_count(const gs_totals_t *totals, gs_reason_t order[GS_REASON_COUNT]);

/* Prints totals: what was seen, what was served, and the most frequent reasons why the rest was not, each
 * line after prefix. */
void gs_totals_print(FILE *file, const char *prefix, const gs_totals_t *totals, int most_reasons);
/* "12000", "at least 12000" where launches of some graphs were not seen, "unknown" where none were. */
void gs_replays_format(char *buffer, size_t size, uint64_t captured, uint64_t traced, uint64_t replays);

/* Who computed the shape and why: "mma_f16_...", "library: no_row", both where both did. */
void gs_call_verdict(char *buffer, size_t size, const gs_shape_t *call);

#endif
