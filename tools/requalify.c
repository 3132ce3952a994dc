#include "requalify.h"

#include <stdlib.h>

#include "points.h"

static double gain_us(const gs_row_t *row) {
  return (double)(row->library_us - row->us);
}

static int by_value(const void *left, const void *right) {
  const gs_duty_t *x = left, *y = right;
  if (x->called_us != y->called_us) return x->called_us < y->called_us ? 1 : -1;
  double a = gain_us(x->row), b = gain_us(y->row);
  return a != b ? (a < b ? 1 : -1) : x->row->line - y->row->line;
}

static void add_calls(gs_duty_t *duties, const gs_table_t *table, const gs_calls_t *calls) {
  for (const gs_shape_t *shape = calls->calls; shape; shape = shape->hh.next) {
    const gs_row_t *row = gs_table_find(table, &shape->gemm);
    if (!row) continue;
    duties[row - gs_table_row(table, 0)].called_us += (double)gs_call_count(shape) * (double)row->library_us;
  }
}

gs_duty_t *gs_duties(const gs_table_t *table, const gs_calls_t *calls) {
  int rows = gs_table_rows(table);
  gs_duty_t *duties = calloc((size_t)rows + 1, sizeof *duties);
  if (!duties) return NULL;
  for (int i = 0; i < rows; i++) duties[i] = (gs_duty_t){.row = gs_table_row(table, i)};
  if (calls) add_calls(duties, table, calls);
  qsort(duties, (size_t)rows, sizeof *duties, by_value);
  return duties;
}

/* ---- one row: what claims.h asks ---- */

typedef struct {
  gs_bench_t *bench;
  const gs_row_t *old;
  const gs_tune_options_t *options;
  const volatile sig_atomic_t *stopped;
  gs_requalified_t *done;
} gs_work_t;

static bool over(const gs_work_t *work) {
  if (!*work->stopped && gs_gpu_ok(work->bench->gpu)) return false;
  work->done->complete = false;
  return true;
}

/* A fault before all else. */
static bool is_worse(const gs_tuned_t *x, const gs_tuned_t *y) {
  if (x->verdict == y->verdict) return x->ratio.value < y->ratio.value;
  return y->verdict != GS_TUNE_WRONG && (x->verdict == GS_TUNE_WRONG || x->verdict > y->verdict);
}

/* row: what alone is measured; NULL: whatever the cost model names. */
static gs_tuned_t measure(gs_work_t *work, int n, const gs_row_t *row) {
  gs_tune_options_t options = *work->options;
  gs_gemm_t g = gs_points_keyed(&work->old->key, n);
  gs_requalified_t *done = work->done;
  options.row = row;
  gs_tuned_t tuned = gs_tune(work->bench, &g, &options);
  if (done->points++ == 0 || is_worse(&tuned, &done->worst)) done->worst = tuned;
  return tuned;
}

static bool best(void *context, int n, gs_row_t *row) {
  gs_work_t *work = context;
  if (over(work)) return false;
  gs_tuned_t tuned = measure(work, n, work->old->by_library ? NULL : work->old);
  *row = tuned.row;
  return tuned.verdict == GS_TUNE_WIN;
}

static bool holds(void *context, int n, gs_row_t *row) {
  gs_work_t *work = context;
  if (over(work)) return false;
  gs_tuned_t tuned = measure(work, n, row);
  if (tuned.verdict != GS_TUNE_WIN) return false;
  gs_row_take_times(row, &tuned.row);
  return true;
}

static uint64_t library(void *context, int n) {
  gs_work_t *work = context;
  gs_gemm_t g = gs_points_keyed(&work->old->key, n);
  return gs_tune_library(work->bench, &g);
}

gs_requalified_t gs_requalify(gs_bench_t *bench, const gs_row_t *row, const gs_tune_options_t *options,
                              const volatile sig_atomic_t *stopped) {
  gs_requalified_t done = {.complete = true};
  gs_work_t work = {bench, row, options, stopped, &done};
  const gs_oracle_t oracle = {&work, best, holds, library};
  int ns[GS_CLAIM_STOPS_MAX];
  done.count = gs_claim(&oracle, ns, gs_claim_stops(&oracle, row->n_lo, row->n_hi, ns), done.rows);
  if (!gs_gpu_ok(bench->gpu)) done.complete = false;
  if (done.points && done.worst.verdict == GS_TUNE_WRONG) done.count = 0;
  done.whole = done.count == 1 && done.rows[0].n_lo == row->n_lo && done.rows[0].n_hi == row->n_hi;
  return done;
}
