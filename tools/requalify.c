#include "requalify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

gs_requalified_t gs_requalify(gs_bench_t *bench, const gs_duty_t *duty, const gs_tune_options_t *options) {
  const gs_row_t *row = duty->row;
  gs_tune_options_t own = *options;
  const int64_t wanted[] = {row->n_lo, row->n_hi, (int64_t)sqrt((double)row->n_lo * row->n_hi)};
  gs_requalified_t worst = {.points = 0};
  own.row = row->by_library ? NULL : row;
  for (int i = 0; i < (row->by_library ? 1 : 3); i++) {
    if ((i > 0 && wanted[i] == wanted[0]) || (i > 1 && wanted[i] == wanted[1])) continue;
    gs_gemm_t g = gs_points_keyed(&row->key, wanted[i]);
    gs_tuned_t tuned = gs_tune(bench, &g, &own);
    bool first = worst.points++ == 0;
    if (first || tuned.verdict != GS_TUNE_WIN || tuned.ratio.value < worst.tuned.ratio.value)
      worst.tuned = tuned;
    if (tuned.verdict != GS_TUNE_WIN) break;
  }
  if (!row->by_library) worst.tuned.row.n_lo = row->n_lo, worst.tuned.row.n_hi = row->n_hi;
  return worst;
}
