/* Measures the rows of a table anew, on the GPU and cuBLAS at hand. */
#ifndef GS_REQUALIFY_H
#define GS_REQUALIFY_H

#include "calls.h"
#include "tune.h"

/* One row to measure, and what speaks for measuring it early. */
typedef struct {
  const gs_row_t *row;
  double called_us; /* the library's time for the calls that a .calls file has of it; 0: none */
} gs_duty_t;

/* All rows of the table, those called for longest first, then by what a call gains; calls may be NULL. Freed by
 * the caller; NULL without memory. */
gs_duty_t *gs_duties(const gs_table_t *table, const gs_calls_t *calls);

typedef struct {
  gs_tuned_t tuned; /* of the n that did worst; its row claims the old row's interval */
  int points;       /* values of n measured: the interval's ends and one inside, until one does not win */
} gs_requalified_t;

/* Whether the row's kernel wins at the ends of its interval and inside. An algorithm of the library, which every
 * build numbers anew, is looked for again among all contenders, at the interval's beginning, and claims that. */
gs_requalified_t gs_requalify(gs_bench_t *bench, const gs_duty_t *duty, const gs_tune_options_t *options);

#endif
