/* The products that programs called, merged from histograms (gs_histogram.h) and .calls files.
 *
 * A .calls file is text: `#` lines are comments; every other line is a product as gs_gemm_format writes it,
 * then, tab-separated: calls, served calls, mean GPU microseconds of the sampled calls (0: none was sampled),
 * calls captured into CUDA graphs and, where it is known, how many products replays of these have run. A line of the
 * product alone is one call of which nothing else is known. */
#ifndef GS_CALLS_H
#define GS_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <uthash.h>

#include "gs_histogram.h"

/* More calls, or nanoseconds, than any program has: a file that holds more is damaged, and sums do not overflow. */
#define GS_COUNT_MAX (1ull << 50)

typedef struct {
  gs_gemm_t gemm;
  char kernel[GS_KERNEL_ID_MAX];   /* of the file that holds most of the served calls; may be empty */
  uint64_t calls[GS_REASON_COUNT]; /* by verdict */
  uint64_t untold;                 /* forwarded, from a .calls file, which keeps no reasons */
  uint64_t captured;               /* of all these, captured into a graph */
  uint64_t traced;                 /* of these, in graphs whose launches were seen */
  uint64_t replays;                /* products that these launches have run */
  uint64_t samples;                /* calls timed by event pairs; at least that many, from a .calls file */
  uint64_t timed; /* calls that timed_us stands for: those, not captured, of files with samples */
  double timed_us;
  uint64_t trials[GS_TRIAL_VERDICTS]; /* processes in which its row was on trial, by verdict */
  double trial_us[2];                 /* medians of the last that ended: library, kernel */
  uint64_t compared, off; /* served calls that GEMMSHIM_VERIFY compared with the library's result */
  double worst_off;       /* 1 is what rounding explains; INFINITY is possible */
  uint64_t kernel_calls;  /* served calls behind the choice of kernel */
  UT_hash_handle hh;
} gs_shape_t;

typedef struct {
  gs_shape_t *calls;                  /* a uthash, by gemm; gs_calls_sort orders it */
  uint64_t overflow[GS_REASON_COUNT]; /* of shapes that found no room in a histogram */
  int processes;                      /* histograms read */
  int active;                         /* those with at least one product */
  int files;                          /* read without fault, .calls files too */
  int faults;                         /* lines said about files or parts of files that could not be read */
  double window_s;                    /* from the first to the last product, added up over processes */
  /* Of the last process with products; empty when none. */
  char program[128], gpu[64], table[128];
  int cublas[3];
} gs_calls_t;

/* Adds a histogram, a .calls file, or every .gshist file of a folder. What cannot be read costs one line (a
 * .calls file: one for each faulty line) and is counted in faults; the rest is kept. */
void gs_calls_read(gs_calls_t *set, const char *path);
void gs_calls_free(gs_calls_t *set);

/* Writes the set as a .calls file; products with an empty side, which no kernel could compute, are left out.
 */
void gs_calls_write(FILE *file, const gs_calls_t *set);

typedef enum { GS_BY_TIME, GS_BY_COUNT } gs_order_t;
void gs_calls_sort(gs_calls_t *set, gs_order_t order); /* largest first */

uint64_t gs_call_count(const gs_shape_t *call);
static inline uint64_t gs_call_served(const gs_shape_t *call) {
  return call->calls[GS_REASON_SERVED];
}
/* Mean GPU microseconds of a call; 0 = not sampled. */
double gs_call_mean_us(const gs_shape_t *call);
/* Products that ran, as far as is known: calls that were not captured, and replays of those that were. */
uint64_t gs_call_runs(const gs_shape_t *call);
/* GPU microseconds of all of them; 0 = not sampled. */
double gs_call_us(const gs_shape_t *call);
/* The commonest verdict but SERVED; GS_REASON_COUNT where only a .calls file told of it, SERVED where none.
 */
gs_reason_t gs_call_reason(const gs_shape_t *call);
/* Whether one of the shipped kernels can compute it. */
bool gs_call_servable(const gs_shape_t *call);

/* Of calls_read's own floor: one histogram's bytes (its magic was seen; the file is at its start). */
void gs_histogram_merge(gs_calls_t *set, const char *path, FILE *file, uint64_t size);
gs_shape_t *gs_calls_entry(gs_calls_t *set, const gs_gemm_t *gemm); /* found, or added and zero */
__attribute__((format(printf, 2, 3))) void gs_calls_fault(gs_calls_t *set, const char *format, ...);

#endif
