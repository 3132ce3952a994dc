#include "race.h"

#include <stdlib.h>
#include <string.h>

#define KEPT_OF_LIBRARY 3

bool gs_race_open(gs_race_t *race, gs_bench_t *bench, const gs_gemm_t *g) {
  *race = (gs_race_t){.bench = bench, .all = calloc(GS_RACE_CONTENDERS_MAX, sizeof *race->all)};
  return race->all && gs_bench_product(bench, g);
}

void gs_race_close(gs_race_t *race) {
  for (int i = 0; i < race->count; i++) gs_bench_done(&race->all[i]);
  free(race->all);
}

static gs_side_t *side_of(gs_race_t *race, gs_contender_kind_t kind) {
  return kind == GS_BY_KERNEL ? &race->kernels : kind == GS_BY_ALGO ? &race->algos : &race->theirs;
}

void gs_race_enter(gs_race_t *race, gs_contender_t contender) {
  if (race->count == GS_RACE_CONTENDERS_MAX) return;
  gs_contender_t *entered = &race->all[race->count];
  gs_side_t *side = side_of(race, contender.kind);
  *entered = contender;
  if (!gs_bench_ready(race->bench, entered)) {
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

static void cut(gs_side_t *side, int keep) {
  sort(side->at, side->count);
  if (side->count > keep) side->count = keep;
}

static bool is_called(const gs_contender_t *contender) {
  return contender->kind == GS_BY_GEMM_EX || (contender->kind == GS_BY_LT && contender->index == 0);
}

static void cut_theirs(gs_side_t *side) {
  int kept = 0;
  sort(side->at, side->count);
  for (int i = 0; i < side->count; i++)
    if (i < KEPT_OF_LIBRARY || is_called(side->at[i])) side->at[kept++] = side->at[i];
  side->count = kept;
}

void gs_race_heat(gs_race_t *race, int rounds, int keep_kernels, int keep_algos) {
  gs_contender_t *runners[GS_RACE_CONTENDERS_MAX];
  const gs_side_t *sides[] = {&race->kernels, &race->algos, &race->theirs};
  int count = 0;
  for (int s = 0; s < 3; s++)
    for (int i = 0; i < sides[s]->count; i++) runners[count++] = sides[s]->at[i];
  gs_bench_gpu(race->bench, runners, count, rounds);
  cut(&race->kernels, keep_kernels);
  cut(&race->algos, keep_algos);
  cut_theirs(&race->theirs);
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
