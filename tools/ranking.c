#include "ranking.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "extras.h"
#include "orders.h"
#include "progress.h"
#include "race.h"
#include "tools.h"
#include "tune_text.h"

#define SCREEN_ROUNDS 3    /* of everyone, one after the other, ... */
#define HOPELESS      2    /* but for whom one round puts at so many times the choice */
#define SCREEN_WITHIN 1.25 /* times the best of them: other orders of tiles are tried */
#define FINALISTS     12   /* race the choice, ... */
#define FINAL_ROUNDS  15   /* ... in so many rounds */

/* Everyone who was screened, and how long each took. */
typedef struct {
  gs_contender_t *items;
  double *us;
  int count, room;
  double hopeless_us;
} gs_field_t;

typedef struct {
  gs_gemm_t gemm;
  int searched;                  /* kernels, splits and orders */
  gs_contender_t *chosen, *best; /* of the race */
  double ratio;                  /* chosen over best */
} gs_found_t;

static bool put(gs_field_t *field, gs_contender_t contender, double us) {
  if (field->count == field->room) {
    int room = field->room ? 2 * field->room : 256;
    gs_contender_t *items = realloc(field->items, (size_t)room * sizeof *items);
    if (items) field->items = items;
    double *times = realloc(field->us, (size_t)room * sizeof *times);
    if (times) field->us = times;
    if (!items || !times) return gs_say("out of memory"), false;
    field->room = room;
  }
  field->us[field->count] = us;
  field->items[field->count++] = contender;
  return true;
}

/* Microseconds, and the contender as it was before it ran; infinite where it cannot compute the product. */
static double screen(gs_bench_t *bench, gs_contender_t contender, double hopeless_us) {
  gs_contender_t *runner = &contender;
  double us = INFINITY;
  if (gs_bench_ready(bench, runner)) {
    gs_bench_gpu(bench, &runner, 1, 1);
    if (gs_contender_us(runner) <= hopeless_us) gs_bench_gpu(bench, &runner, 1, SCREEN_ROUNDS - 1);
    us = gs_contender_us(runner);
  }
  gs_bench_done(runner);
  return us;
}

static bool add(gs_field_t *field, gs_bench_t *bench, int index, int split_k, int raster) {
  gs_contender_t one = {.kind = GS_BY_KERNEL, .index = index, .split_k = split_k, .raster = raster};
  double us = screen(bench, one, field->hopeless_us);
  return isinf(us) || put(field, one, us);
}

static double least(const gs_field_t *field) {
  double us = INFINITY;
  for (int i = 0; i < field->count; i++) us = fmin(us, field->us[i]);
  return us;
}

/* Every kernel that computes the product, in every number of parts of at least one k-tile. */
static bool screen_splits(gs_field_t *field, gs_bench_t *bench, const gs_tune_options_t *options,
                          const volatile sig_atomic_t *stopped) {
  bool fine = true;
  for (int i = 0; i < options->pool->count && fine; i++) {
    int index = options->pool->indices[i];
    gs_kernel_t kernel = gs_kernel_at(index);
    int most = gs_kernel_split_max(&kernel, bench->gpu->device.sm);
    if (most > options->split_max) most = options->split_max;
    if (gs_kernel_supports(&kernel, &bench->gemm) != GS_REASON_SERVED) continue;
    for (int split = 1; split <= most && (int64_t)(split - 1) * kernel.bk < bench->gemm.k && fine; split++)
      fine = !*stopped && add(field, bench, index, split, 1);
  }
  return fine;
}

/* Other orders of the tiles of whoever came near the best. */
static bool screen_rasters(gs_field_t *field, gs_bench_t *bench, const volatile sig_atomic_t *stopped) {
  double limit = SCREEN_WITHIN * least(field);
  bool fine = true;
  for (int i = 0, count = field->count; i < count; i++) {
    gs_kernel_t kernel = gs_kernel_at(field->items[i].index);
    for (int r = 1;
         r < GS_ORDERS && gs_order_differs(&kernel, &bench->gemm, r) && field->us[i] <= limit && fine; r++)
      fine = !*stopped && add(field, bench, field->items[i].index, field->items[i].split_k, gs_orders[r]);
  }
  return fine;
}

static bool same(const gs_contender_t *x, const gs_contender_t *y) {
  return x->index == y->index && x->split_k == y->split_k && x->raster == y->raster;
}

/* Enters the fastest of those that were screened, but for the choice, which is there. */
static void enter_finalists(gs_race_t *race, gs_field_t *field, const gs_contender_t *chosen) {
  for (int n = 0; n < FINALISTS && n < field->count; n++) {
    int best = n;
    for (int i = n; i < field->count; i++)
      if (field->us[i] < field->us[best]) best = i;
    if (!same(&field->items[best], chosen)) gs_race_enter(race, field->items[best]);
    field->items[best] = field->items[n], field->us[best] = field->us[n];
  }
}

/* The tuner's choice, then the search, then both in one race. False: nothing can compute it, or stopped. */
static bool search(gs_race_t *race, const gs_tune_options_t *options, const volatile sig_atomic_t *stopped,
                   gs_found_t *found) {
  gs_field_t field = {.count = 0};
  gs_contender_t *runners[GS_RACE_CONTENDERS_MAX];
  gs_tune_select(race, options);
  found->chosen = gs_race_fastest(&race->kernels);
  if (found->chosen) field.hopeless_us = HOPELESS * gs_contender_us(found->chosen);
  race->kernels.count = race->algos.count = race->theirs.count = 0;
  bool fine = found->chosen && screen_splits(&field, race->bench, options, stopped) &&
              screen_rasters(&field, race->bench, stopped);
  found->searched = field.count;
  if (fine) {
    enter_finalists(race, &field, found->chosen);
    race->kernels.at[race->kernels.count++] = found->chosen;
    int count = gs_race_runners(race, runners);
    for (int i = 0; i < count; i++) gs_entrant_forget(&runners[i]->entrant);
    gs_bench_gpu(race->bench, runners, count, FINAL_ROUNDS);
    found->best = gs_race_fastest(&race->kernels);
    found->ratio = gs_contender_us(found->chosen) / gs_contender_us(found->best);
  }
  free(field.items), free(field.us);
  return fine && gs_gpu_ok(race->bench->gpu);
}

/* ---- what is said ---- */

static void tell(const gs_found_t *found, cJSON *products) {
  char point[128], best[128], chosen[128];
  gs_tune_point(point, sizeof point, &found->gemm);
  gs_contender_name(best, sizeof best, found->best);
  gs_contender_name(chosen, sizeof chosen, found->chosen);
  double best_us = gs_contender_us(found->best), chosen_us = gs_contender_us(found->chosen);
  if (!products) {
    printf("%.3f  %-30s of %d: best %.2f us %s; chosen %.2f us %s\n", found->ratio, point, found->searched,
           best_us, best, chosen_us, chosen);
    fflush(stdout);
    return;
  }
  cJSON *one = cJSON_CreateObject();
  cJSON_AddStringToObject(one, "product", point);
  cJSON_AddNumberToObject(one, "searched", found->searched);
  cJSON_AddNumberToObject(one, "ratio", found->ratio);
  cJSON_AddStringToObject(one, "best", best);
  cJSON_AddNumberToObject(one, "best_us", best_us);
  cJSON_AddStringToObject(one, "chosen", chosen);
  cJSON_AddNumberToObject(one, "chosen_us", chosen_us);
  cJSON_AddItemToArray(products, one);
}

static int sum_up(const double *ratios, int count, int wanted, cJSON *results) {
  int close = 0;
  double worst = 1;
  for (int i = 0; i < count; i++) close += ratios[i] <= GS_RANKING_CLOSE, worst = fmax(worst, ratios[i]);
  double geomean = count ? gs_geomean(ratios, (size_t)count) : NAN;
  if (results) {
    cJSON_AddNumberToObject(results, "worst", worst);
    cJSON_AddNumberToObject(results, "geomean", geomean);
    cJSON_AddNumberToObject(results, "close", close);
  } else if (count) {
    printf("ranking: %d products searched, worst %.3f, geomean %.3f, %d within 3%% of the best of all\n",
           count, worst, geomean, close);
  }
  if (count < wanted) gs_say("%d of %d products were not searched", wanted - count, wanted);
  return close == wanted ? GS_EXIT_OK : GS_EXIT_FALSE;
}

int gs_ranking(gs_bench_t *bench, const gs_points_t *points, int count, const gs_tune_options_t *options,
               const volatile sig_atomic_t *stopped, cJSON *results) {
  int *order = malloc((size_t)points->count * sizeof *order), done = 0;
  double *ratios = malloc((size_t)points->count * sizeof *ratios);
  cJSON *products = results ? cJSON_AddArrayToObject(results, "products") : NULL;
  gs_progress_t progress = gs_progress_begin();
  gs_tune_options_t own = *options;
  gs_random_t random = {1};
  if (!order || !ratios) abort(); /* a tool, and a few kilobytes */
  own.out_of_reach = true;
  if (count > points->count) count = points->count;
  for (int i = 0; i < points->count; i++) order[i] = i;
  gs_random_shuffle(&random, order, (size_t)points->count);
  for (int i = 0; i < count && !*stopped && gs_gpu_ok(bench->gpu); i++) {
    gs_found_t found = {.gemm = points->items[order[i]]};
    gs_race_t race;
    char what[256], point[128];
    gs_tune_point(point, sizeof point, &found.gemm);
    snprintf(what, sizeof what, "%d of %d, %s: every kernel and split, orders of the best", i + 1, count,
             point);
    gs_progress_show(&progress, (double)i / count, what);
    bool searched = gs_race_open(&race, bench, &found.gemm) && search(&race, &own, stopped, &found);
    gs_progress_clear(&progress);
    if (searched) tell(&found, products), ratios[done++] = found.ratio;
    gs_race_close(&race);
    if (!gs_gpu_ok(bench->gpu)) gs_gpu_forgive(bench->gpu);
  }
  int status = sum_up(ratios, done, count, results);
  free(order), free(ratios);
  return *stopped ? 128 + *stopped : status;
}
