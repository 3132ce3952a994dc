#define _GNU_SOURCE
#include "bench_joins.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "tools.h"

static bool sides(const gs_csv_t *csv, int column[3], const char *path) {
  static const char *const names[] = {"m", "n", "k"};
  for (int i = 0; i < 3; i++)
    if ((column[i] = gs_csv_column(csv, names[i])) < 0) {
      gs_say("%s: has no column %s", path, names[i]);
      return false;
    }
  return true;
}

/* The plain fp16 product of these row-major sizes. */
static const gs_bench_row_t *row_of(const gs_bench_set_t *set, double m, double n, double k) {
  for (int i = 0; i < set->count; i++) {
    const gs_gemm_t *g = &set->rows[i].gemm;
    if ((double)g->m == n && (double)g->n == m && (double)g->k == k && g->transb == GS_OP_N &&
        g->batch == 1 && g->a_type == GS_TYPE_F16 && g->d_type == GS_TYPE_F16 &&
        g->epilogue == GS_EPILOGUE_DEFAULT)
      return gs_bench_row_ok(&set->rows[i]) ? &set->rows[i] : NULL;
  }
  return NULL;
}

static double *numbers(int count) {
  double *x = malloc((size_t)(count + 1) * sizeof *x);
  if (!x) abort(); /* a tool, and a few kilobytes */
  return x;
}

/* ---- published ---- */

static const struct {
  const char *column;
  gs_clock_kind_t clock;
  gs_rival_t rival;
} published[] = {
    {"offline_cublas", GS_CLOCK_WALL, GS_RIVAL_GEMM_EX},
    {"offline_lt_heuristic", GS_CLOCK_WALL, GS_RIVAL_LT},
    {"offline_lt_autotune", GS_CLOCK_WALL, GS_RIVAL_AUTO},
    {"server_cublas", GS_CLOCK_SERVER, GS_RIVAL_GEMM_EX},
    {"server_lt_heuristic", GS_CLOCK_SERVER, GS_RIVAL_LT},
    {"server_lt_autotune", GS_CLOCK_SERVER, GS_RIVAL_AUTO},
};

static void join_column(const gs_bench_set_t *set, const gs_csv_t *csv, const int side[3], int which,
                        gs_joiner_t f, void *context) {
  int column = gs_csv_column(csv, published[which].column), kept = gs_csv_column(csv, "accumulator"),
      count = 0;
  double *theirs = numbers(csv->rows), *ours = numbers(csv->rows);
  for (int r = 0; r < csv->rows && column >= 0; r++) {
    const gs_bench_row_t *row = row_of(set, gs_csv_number(csv, r, side[0]), gs_csv_number(csv, r, side[1]),
                                       gs_csv_number(csv, r, side[2]));
    double speedup = gs_csv_number(csv, r, column);
    if (!row || !(speedup > 0) || (kept >= 0 && strcmp(gs_csv_text(csv, r, kept), "f32"))) continue;
    double own = row->ratio[published[which].clock][published[which].rival][GS_LAYOUT_MAX].value;
    if (!(own > 0)) continue;
    theirs[count] = speedup, ours[count++] = own;
  }
  if (count)
    f(context, &(gs_join_t){published[which].column, published[which].clock, published[which].rival,
                            gs_claim_of(theirs, count), gs_claim_of(ours, count)});
  free(theirs), free(ours);
}

bool gs_join_published(const gs_bench_set_t *set, const char *path, gs_joiner_t f, void *context) {
  gs_csv_t csv;
  int side[3];
  if (!gs_csv_read(&csv, path)) return false;
  bool known = sides(&csv, side, path);
  for (int i = 0; i < (int)(sizeof published / sizeof *published) && known; i++)
    join_column(set, &csv, side, i, f, context);
  gs_csv_free(&csv);
  return known;
}

/* ---- torch ---- */

/* By row of the set: microseconds in each layout. */
typedef struct {
  double us[GS_CLOCK_COUNT][GS_LAYOUT_COUNT];
} torch_row_t;

static void join_torch_row(const gs_bench_set_t *set, const gs_csv_t *csv, const int side[3], int r,
                           torch_row_t *torch) {
  const gs_bench_row_t *row = row_of(set, gs_csv_number(csv, r, side[0]), gs_csv_number(csv, r, side[1]),
                                     gs_csv_number(csv, r, side[2]));
  int layout_column = gs_csv_column(csv, "layout");
  int layout = layout_column < 0
                   ? -1
                   : gs_name_index(gs_csv_text(csv, r, layout_column), gs_layout_names, GS_LAYOUT_COUNT);
  if (!row || layout < 0) return;
  for (int c = 0; c < GS_CLOCK_COUNT; c++)
    torch[row - set->rows].us[c][layout] = gs_csv_number(csv, r, gs_csv_column(csv, gs_clock_kind_names[c]));
}

/* layout GS_LAYOUT_MAX: the faster of each. */
static double time_in(const double us[GS_LAYOUT_COUNT], int layout) {
  return layout < GS_LAYOUT_COUNT ? us[layout] : fmin(us[GS_LAYOUT_NN], us[GS_LAYOUT_TN]);
}

static gs_claim_t claim_torch(const gs_bench_set_t *set, const torch_row_t *torch, int clock, int layout) {
  double *ratios = numbers(set->count);
  int count = 0;
  for (int i = 0; i < set->count; i++) {
    double own[GS_LAYOUT_COUNT];
    for (int l = 0; l < GS_LAYOUT_COUNT; l++) own[l] = set->rows[i].us[clock][l][GS_RUNNER_OURS];
    double ratio = time_in(torch[i].us[clock], layout) / time_in(own, layout);
    if (ratio > 0) ratios[count++] = ratio;
  }
  gs_claim_t claim = gs_claim_of(ratios, count);
  free(ratios);
  return claim;
}

bool gs_join_torch(const gs_bench_set_t *set, const char *path, void (*f)(void *, const gs_torch_t *),
                   void *context) {
  gs_csv_t csv;
  int side[3];
  if (!gs_csv_read(&csv, path)) return false;
  bool known = sides(&csv, side, path);
  torch_row_t *torch = malloc((size_t)(set->count + 1) * sizeof *torch);
  if (!torch) abort();
  for (int i = 0; i < set->count; i++)
    for (int c = 0; c < GS_CLOCK_COUNT; c++)
      for (int l = 0; l < GS_LAYOUT_COUNT; l++) torch[i].us[c][l] = NAN;
  for (int r = 0; r < csv.rows && known; r++) join_torch_row(set, &csv, side, r, torch);
  for (int c = 0; c < GS_CLOCK_COUNT && known; c++)
    for (int l = 0; l <= GS_LAYOUT_MAX; l++) {
      gs_torch_t joined = {(gs_clock_kind_t)c, l, claim_torch(set, torch, c, l)};
      if (joined.claim.count) f(context, &joined);
    }
  free(torch);
  gs_csv_free(&csv);
  return known;
}
