/* Tunes many products into a table: key by key, so that rows may claim intervals of n. */
#ifndef GS_TUNE_RUN_H
#define GS_TUNE_RUN_H

#include <signal.h>

#include "draft.h"
#include "journal.h"
#include "json.h"
#include "points.h"
#include "standing.h"
#include "tune.h"

/* Our kernels that take part: those among which the cost model chooses, those that were named, and those of the
 * space that are compiled so far. */
typedef struct {
  gs_pool_t ranked, named, made;
  gs_pool_tally_t tally; /* of made */
} gs_pools_t;

typedef struct {
  gs_tune_options_t tune;
  long budget; /* seconds; 0: none */
  bool again;  /* also what the table has rows for */
  bool all;    /* tell of every contender */
  bool exact;  /* rows claim the n that were asked for, and nothing between */
  int search;  /* kernels of the space, a product */
  gs_pools_t *pools;
  gs_standing_t *standing; /* where to tell how far it is; NULL: nobody asks */
  const volatile sig_atomic_t *stopped;
} gs_run_t;

typedef struct {
  int count[GS_TUNE_NONE + 1];
  int kept;         /* of the table, or tried before */
  int samples;      /* products measured between those asked for */
  double best;      /* largest ratio of a win */
  gs_watch_t watch; /* of all of it; stopped */
  bool complete;    /* every product has its verdict */
  bool written;     /* no row was lost */
} gs_tally_t;

/* points: by key (gs_points_by_key). results: a cJSON array; NULL: lines on stdout. */
gs_tally_t gs_tune_run(const gs_run_t *run, const gs_points_t *points, gs_bench_t *bench, gs_draft_t *draft,
                       gs_journal_t *journal, cJSON *results);

#endif
