#include "race.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_OF_LIBRARY 3
#define HEAT_SECONDS    0.1 /* about; but ROUNDS_LEAST run at any rate */
#define ROUNDS_LEAST    2
#define CLOSE           1.1 /* times the fastest kernel: such a one may be faster in another order of tiles */

bool gs_race_open(gs_race_t *race, gs_bench_t *bench, const gs_gemm_t *g) {
  *race = (gs_race_t){.bench = bench, .all = calloc(GS_RACE_CONTENDERS_MAX, sizeof *race->all)};
  gs_watch(&race->watch, GS_PHASE_PREPARE);
  return race->all && gs_bench_product(bench, g);
}

void gs_race_close(gs_race_t *race) {
  gs_watch(&race->watch, GS_PHASE_RECORD);
  for (int i = 0; i < race->count; i++) gs_bench_done(&race->all[i]);
  free(race->all);
  gs_watch_stop(&race->watch);
}

static gs_side_t *side_of(gs_race_t *race, gs_contender_kind_t kind) {
  return kind == GS_BY_KERNEL ? &race->kernels : kind == GS_BY_ALGO ? &race->algos : &race->theirs;
}

void gs_race_enter(gs_race_t *race, gs_contender_t contender) {
  if (race->count == GS_RACE_CONTENDERS_MAX) return;
  gs_contender_t *entered = &race->all[race->count];
  gs_side_t *side = side_of(race, contender.kind);
  *entered = contender;
  gs_phase_t before = gs_watch(&race->watch, GS_PHASE_RECORD);
  bool ready = gs_bench_ready(race->bench, entered);
  gs_watch(&race->watch, before);
  if (!ready) {
    gs_bench_done(entered);
    return;
  }
  race->count++;
  side->at[side->count++] = entered;
}

static int by_time(const void *x, const void *y) {
  double a = gs_contender_us(*(gs_contender_t *const *)x), b = gs_contender_us(*(gs_contender_t *const *)y);
  return (a > b) - (a < b);
}

static void sort(gs_contender_t **at, int count) {
  qsort(at, (size_t)count, sizeof *at, by_time);
}

static bool is_called(const gs_contender_t *contender) {
  return contender->kind == GS_BY_GEMM_EX || (contender->kind == GS_BY_LT && contender->index == 0);
}

gs_contender_t *gs_race_fastest(const gs_side_t *side) {
  gs_contender_t *best = side->count ? side->at[0] : NULL;
  for (int i = 1; i < side->count; i++)
    if (gs_contender_us(side->at[i]) < gs_contender_us(best)) best = side->at[i];
  return best;
}

/* Leaves keep of them, and of those whoever takes no more than limit_us; least at any rate. */
static void cut(gs_side_t *side, int keep, double limit_us, int least) {
  sort(side->at, side->count);
  if (side->count > keep) side->count = keep;
  while (side->count > least && gs_contender_us(side->at[side->count - 1]) > limit_us) side->count--;
}

static void cut_theirs(gs_side_t *side, double limit_us) {
  int kept = 0;
  sort(side->at, side->count);
  for (int i = 0; i < side->count; i++)
    if (is_called(side->at[i]) || (i < KEPT_OF_LIBRARY && gs_contender_us(side->at[i]) <= limit_us))
      side->at[kept++] = side->at[i];
  side->count = kept;
}

int gs_race_runners(const gs_race_t *race, gs_contender_t *runners[GS_RACE_CONTENDERS_MAX]) {
  const gs_side_t *sides[] = {&race->kernels, &race->algos, &race->theirs};
  int count = 0;
  for (int s = 0; s < 3; s++)
    for (int i = 0; i < sides[s]->count; i++) runners[count++] = sides[s]->at[i];
  return count;
}

/* The largest products would take most of a tuner's time, and more rounds of theirs tell little. */
static int affordable(const gs_race_t *race, gs_contender_t *const *runners, int count, int rounds) {
  double us = 0;
  for (int i = 0; i < count; i++)
    if (runners[i]->entrant.count[GS_CLOCK_GPU]) us += gs_contender_us(runners[i]) * race->bench->calls;
  while (rounds > ROUNDS_LEAST && rounds * us > 1e6 * HEAT_SECONDS) rounds--;
  return rounds;
}

void gs_race_heat(gs_race_t *race, gs_heat_t heat) {
  gs_contender_t *runners[GS_RACE_CONTENDERS_MAX];
  int count = gs_race_runners(race, runners);
  gs_watch(&race->watch, GS_PHASE_HEATS);
  gs_bench_gpu(race->bench, runners, count, affordable(race, runners, count, heat.rounds));
  gs_contender_t *best = gs_race_fastest(&race->theirs), *called = gs_race_called(race);
  double best_us = best ? gs_contender_us(best) : INFINITY;
  double called_us = called ? gs_contender_us(called) : best_us;
  gs_contender_t *kernel = gs_race_fastest(&race->kernels);
  double near_us = kernel ? CLOSE * gs_contender_us(kernel) : 0;
  cut(&race->kernels, heat.kernels, fmax(heat.within * best_us, near_us), 1);
  cut(&race->algos, heat.algos, heat.within * called_us,
      !race->kernels.count); /* somebody is left to tell of */
  cut_theirs(&race->theirs, heat.within * best_us);
}

void gs_race_order(gs_race_t *race, gs_contender_t *order[GS_RACE_CONTENDERS_MAX]) {
  for (int i = 0; i < race->count; i++) order[i] = &race->all[i];
  sort(order, race->count);
}

static gs_contender_t *find(const gs_race_t *race, gs_contender_kind_t kind) {
  for (int i = 0; i < race->theirs.count; i++)
    if (race->theirs.at[i]->kind == kind && is_called(race->theirs.at[i])) return race->theirs.at[i];
  return NULL;
}

gs_contender_t *gs_race_first(const gs_race_t *race) {
  return find(race, GS_BY_LT);
}

gs_contender_t *gs_race_called(const gs_race_t *race) {
  gs_contender_t *gemm_ex = find(race, GS_BY_GEMM_EX);
  return gemm_ex && race->bench->gemm.entry != GS_ENTRY_LT_MATMUL ? gemm_ex : gs_race_first(race);
}
