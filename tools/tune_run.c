#include "tune_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "progress.h"
#include "search.h"
#include "tools.h"
#include "tune_text.h"

#define CHOICES 256 /* of the library, remembered by n */

/* What is at work: the run, and the key at hand. */
typedef struct {
  const gs_run_t *run;
  gs_bench_t *bench;
  gs_draft_t *draft;
  gs_journal_t *journal;
  cJSON *results;
  gs_tally_t tally;
  gs_progress_t progress;
  int done, total;      /* products */
  const gs_gemm_t *key; /* the first product of the key */
  int count;            /* of its products, which follow it */
  struct {
    int n;
    uint64_t choice;
  } choices[CHOICES];
} gs_work_t;

static bool over(const gs_work_t *work) {
  return *work->run->stopped || !work->tally.written || !gs_gpu_ok(work->bench->gpu) ||
         (work->run->budget && gs_seconds() - work->progress.begun > (double)work->run->budget);
}

/* Tells whoever started this tuner, too. */
static void tell_standing(const gs_work_t *work) {
  gs_standing_t *standing = work->run->standing;
  if (!standing) return;
  standing->won = work->tally.count[GS_TUNE_WIN];
  standing->best = work->tally.best;
  standing->done = work->done;
  standing->total = work->total;
}

/* ---- one product ---- */

/* Kernels of the space among our contenders, where that is asked for. */
static gs_tuned_t tune_among(gs_work_t *work, const gs_gemm_t *g, const gs_tune_options_t *options) {
  gs_tune_options_t own = *options;
  gs_pools_t *pools = work->run->pools;
  gs_pool_t each = {0};
  const gs_rank_for_t to = {g, options->split_max, GS_BENCH_WORKSPACE};
  if (work->run->search && !own.row) {
    gs_pool_tally_t tally =
        gs_search(&each, &pools->made, work->bench->gpu, &to, work->run->search, work->run->stopped);
    pools->tally.compiled += tally.compiled, pools->tally.refused += tally.refused;
  }
  for (int i = 0; i < pools->named.count; i++) gs_pool_add(&each, pools->named.indices[i]);
  own.pool = &pools->ranked, own.each = &each;
  gs_tuned_t tuned = gs_tune(work->bench, g, &own);
  gs_watch_add(&work->tally.watch, &tuned.watch);
  gs_pool_free(&each);
  return tuned;
}

static void show(gs_work_t *work, const gs_gemm_t *g, const char *how) {
  char what[256], point[128];
  tell_standing(work);
  gs_tune_point(point, sizeof point, g);
  snprintf(what, sizeof what, "%d of %d%s, %s; %d won, best %.2fx", work->done + 1, work->total, how, point,
           work->tally.count[GS_TUNE_WIN], work->tally.best);
  gs_progress_show(&work->progress, (double)work->done / work->total, what);
}

/* Tunes a product that was asked for, and tells what came of it. */
static gs_tuned_t tune_one(gs_work_t *work, const gs_gemm_t *g) {
  gs_tune_options_t options = work->run->tune;
  bool tell = work->run->all;
  cJSON *all = tell && work->results ? cJSON_CreateArray() : NULL;
  options.measured = !tell ? NULL : all ? gs_tune_json_contender : gs_tune_print_contender;
  options.context = all ? (void *)all : &work->progress;
  show(work, g, "");
  gs_tuned_t tuned = tune_among(work, g, &options);
  work->done++;
  work->tally.count[tuned.verdict]++;
  if (tuned.verdict == GS_TUNE_WIN && tuned.ratio.value > work->tally.best)
    work->tally.best = tuned.ratio.value;
  gs_progress_clear(&work->progress);
  if (!work->results) {
    gs_tune_print(&tuned);
    fflush(stdout);
    return tuned;
  }
  cJSON *entry = gs_tune_json(&tuned);
  if (all) cJSON_AddItemToObject(entry, "all", all);
  cJSON_AddItemToArray(work->results, entry);
  return tuned;
}

/* ---- one key: what claims.h asks ---- */

/* The key's product at another n; one that was asked for has the leading dimensions of its call. */
static gs_gemm_t product_at(const gs_work_t *work, int n) {
  gs_gemm_t g = *work->key;
  for (int i = 0; i < work->count; i++)
    if (work->key[i].n == n) return work->key[i];
  bool follows = g.transb != GS_OP_N && (g.ldb == g.n || g.ldb < n);
  g.n = n;
  if (follows) g.ldb = n;
  return g;
}

static bool best(void *context, int n, gs_row_t *row) {
  gs_work_t *work = context;
  if (over(work)) return false;
  gs_gemm_t g = product_at(work, n);
  gs_tuned_t tuned = tune_one(work, &g);
  *row = tuned.row;
  return tuned.verdict == GS_TUNE_WIN;
}

static bool holds(void *context, int n, gs_row_t *row) {
  gs_work_t *work = context;
  if (over(work)) return false;
  gs_gemm_t g = product_at(work, n);
  gs_tune_options_t options = work->run->tune;
  options.row = row;
  show(work, &g, " (a sample)");
  gs_tuned_t tuned = gs_tune(work->bench, &g, &options);
  gs_watch_add(&work->tally.watch, &tuned.watch);
  work->tally.samples++;
  if (tuned.verdict != GS_TUNE_WIN) return false;
  gs_row_take_times(row, &tuned.row);
  return true;
}

static uint64_t library(void *context, int n) {
  gs_work_t *work = context;
  if (work->choices[n % CHOICES].n == n) return work->choices[n % CHOICES].choice;
  gs_gemm_t g = product_at(work, n);
  uint64_t choice = gs_tune_library(work->bench, &g);
  work->choices[n % CHOICES].n = n, work->choices[n % CHOICES].choice = choice;
  return choice;
}

/* Writes what came of a stretch of the key's n. */
static void keep(gs_work_t *work, const int *ns, int count, const gs_row_t *rows, int made) {
  gs_key_t key = gs_key_of(work->key);
  gs_watch_t watch = {.since = 0};
  gs_watch(&watch, GS_PHASE_WRITE);
  if (!work->run->tune.quick && !over(work))
    work->tally.written = gs_draft_claim(work->draft, &key, ns[0], ns[count - 1], rows, made);
  else if (!work->run->tune.quick) /* cut short: what won stays, what was not reached too */
    for (int i = 0; i < made && work->tally.written; i++)
      work->tally.written = gs_draft_claim(work->draft, &key, rows[i].n_lo, rows[i].n_hi, &rows[i], 1);
  for (int i = 0; i < count && !work->run->tune.quick && work->tally.written && !over(work); i++) {
    gs_gemm_t g = product_at(work, ns[i]);
    work->tally.written = gs_journal_add(work->journal, &g);
  }
  gs_watch_stop(&watch);
  gs_watch_add(&work->tally.watch, &watch);
}

/* Settles a stretch of the key's n, of which no row of the table lies between. */
static void settle(gs_work_t *work, const int *ns, int count) {
  const gs_oracle_t oracle = {work, best, holds, library};
  gs_row_t *rows = malloc((size_t)(count + 1) * sizeof *rows);
  int made = rows && count ? gs_claim(&oracle, ns, count, rows) : 0;
  gs_progress_clear(&work->progress);
  for (int i = 0; i < made && count > 1 && !work->results; i++) gs_tune_print_claim(&rows[i]);
  if (rows && count) keep(work, ns, count, rows, made);
  free(rows);
}

static void tune_key(gs_work_t *work) {
  int *ns = malloc((size_t)work->count * sizeof *ns), count = 0;
  bool exact = work->run->exact || work->key->batch_kind != GS_BATCH_SINGLE;
  memset(work->choices, 0, sizeof work->choices);
  for (int i = 0; ns && i < work->count && !over(work); i++) {
    const gs_gemm_t *g = &work->key[i];
    bool kept = gs_journal_has(work->journal, g) || (!work->run->again && gs_draft_find(work->draft, g));
    if (kept || exact) settle(work, ns, count), count = 0;
    if (kept)
      work->tally.kept++, work->done++;
    else
      ns[count++] = (int)g->n;
  }
  settle(work, ns, count);
  free(ns);
}

gs_tally_t gs_tune_run(const gs_run_t *run, const gs_points_t *points, gs_bench_t *bench, gs_draft_t *draft,
                       gs_journal_t *journal, cJSON *results) {
  gs_work_t work = {.run = run,
                    .bench = bench,
                    .draft = draft,
                    .journal = journal,
                    .results = results,
                    .tally.written = true,
                    .progress = gs_progress_begin(),
                    .total = points->count};
  for (int i = 0; i < points->count && !over(&work); i += work.count) {
    work.key = &points->items[i];
    for (work.count = 1;
         i + work.count < points->count && gs_points_same_key(work.key, &work.key[work.count]);)
      work.count++;
    tune_key(&work);
  }
  gs_progress_clear(&work.progress);
  tell_standing(&work);
  work.tally.complete = !over(&work);
  if (!gs_gpu_ok(bench->gpu))
    gs_say("%s: the GPU's context is lost; run the same command again, it goes on from here",
           bench->gpu->fault);
  else if (!work.tally.complete && work.tally.written && !*run->stopped)
    gs_say("the budget of %ld s is spent: %d of %d products are left; the same command goes on from here",
           run->budget, points->count - work.done, points->count);
  return work.tally;
}
