/* How good the tuner's choice of a kernel is: against all shipped kernels in all splits of k, and the orders of tiles of
 * those that come near the best, measured. */
#ifndef GS_RANKING_H
#define GS_RANKING_H

#include <signal.h>

#include "json.h"
#include "points.h"
#include "tune.h"

#define GS_RANKING_CLOSE 1.03 /* times what the best of all takes: as good */

/* Searches count of the points, a random choice that is always the same, exhaustively; a line a product on stdout and
 * one in the end, or into results (an object; NULL: lines). What the cost model calls out of reach takes part too. An
 * exit status: GS_EXIT_FALSE where a choice is not close. */
int gs_ranking(gs_bench_t *bench, const gs_points_t *points, int count, const gs_tune_options_t *options,
               const volatile sig_atomic_t *stopped, cJSON *results);

#endif
