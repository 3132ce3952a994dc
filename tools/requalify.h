/* Measures the rows of a table anew, on the GPU and cuBLAS at hand. */
#ifndef GS_REQUALIFY_H
#define GS_REQUALIFY_H

#include <signal.h>

#include "calls.h"
#include "claims.h"
#include "tune.h"

/* One row to measure, and what speaks for measuring it early. */
typedef struct {
  const gs_row_t *row;
  double called_us; /* the library's time for the calls that a .calls file has of it; 0: none */
} gs_duty_t;

/* All rows of the table, those called for longest first, then by what a call gains; calls may be NULL. Freed by
 * the caller; NULL without memory. */
gs_duty_t *gs_duties(const gs_table_t *table, const gs_calls_t *calls);

/* What is left of a row's interval of n, after the proof that a tuner asks for (claims.h). */
typedef struct {
  gs_row_t rows[GS_CLAIM_STOPS_MAX]; /* by rising n; none where a kernel failed the gate anywhere */
  int count;
  bool complete;    /* else it was stopped, or the GPU was lost, and nothing is known */
  bool whole;       /* one of them claims all of the old row's interval */
  gs_tuned_t worst; /* of the n that did worst */
  int points;       /* n measured */
} gs_requalified_t;

/* Where the row's kernel wins, in its interval of n. An algorithm of the library, which every build numbers anew, is
 * looked for again among all contenders. */
gs_requalified_t gs_requalify(gs_bench_t *bench, const gs_row_t *row, const gs_tune_options_t *options,
                              const volatile sig_atomic_t *stopped);

#endif
