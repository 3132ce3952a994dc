#define _GNU_SOURCE
#include "tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rank.h"

const char *const gs_tune_verdict_names[] = {"win", "tie", "loss", "WRONG", "none"};

static const int rasters[] = {2, 4, 8};
#define RASTERS (int)(sizeof rasters / sizeof *rasters)

#define CONTENDERS_MAX  (GS_TUNE_CANDIDATES_MAX + RASTERS + 1 + GS_LT_CANDIDATES_MAX) /* 1: cublasGemmEx */
#define KEPT_OF_LIBRARY 3
#define FIRST_ROUNDS    3
#define SECOND_ROUNDS   5

/* All contenders of one product, in one array, and those still in the race. */
typedef struct {
  gs_bench_t *bench;
  gs_contender_t *all;
  int count;
  gs_contender_t *ours[CONTENDERS_MAX], *theirs[CONTENDERS_MAX];
  int our_count, their_count;
} gs_race_t;

static void enter(gs_race_t *race, gs_contender_t contender) {
  gs_contender_t *entered = &race->all[race->count];
  *entered = contender;
  if (!gs_bench_ready(race->bench, entered)) {
    gs_bench_done(entered);
    return;
  }
  race->count++;
  if (contender.kind == GS_BY_KERNEL)
    race->ours[race->our_count++] = entered;
  else
    race->theirs[race->their_count++] = entered;
}

static void enter_ranked(gs_race_t *race, const gs_tune_options_t *options) {
  gs_bench_t *bench = race->bench;
  gs_candidate_t best[GS_TUNE_CANDIDATES_MAX];
  int count = gs_rank(bench->gpu, options->pool, &bench->gemm, options->split_max, GS_BENCH_WORKSPACE, best,
                      options->candidates);
  for (int i = 0; i < count; i++)
    enter(race, (gs_contender_t){.kind = GS_BY_KERNEL,
                                 .index = best[i].index,
                                 .split_k = best[i].split_k,
                                 .raster = 1,
                                 .predicted_us = best[i].us});
}

static void enter_all(gs_race_t *race, const gs_tune_options_t *options) {
  gs_bench_t *bench = race->bench;
  const gs_row_t *row = options->row;
  if (row && gs_kernel_supports(&row->kernel, &bench->gemm) == GS_REASON_SERVED)
    enter(race,
          (gs_contender_t){
              .kind = GS_BY_KERNEL, .index = row->index, .split_k = row->split_k, .raster = row->raster});
  if (!row) enter_ranked(race, options);
  if (bench->gemm.epilogue == GS_EPILOGUE_DEFAULT) enter(race, (gs_contender_t){.kind = GS_BY_GEMM_EX});
  for (int i = 0; i < bench->lt.count; i++) enter(race, (gs_contender_t){.kind = GS_BY_LT, .index = i});
}

static int by_time(const void *x, const void *y) {
  double a = gs_contender_us(*(gs_contender_t *const *)x), b = gs_contender_us(*(gs_contender_t *const *)y);
  return (a > b) - (a < b);
}

/* The library's slower ones go, but never cublasGemmEx, which is what programs call. */
static void cut_theirs(gs_race_t *race, int keep) {
  for (int i = keep; i < race->their_count; i++)
    if (race->theirs[i]->kind == GS_BY_GEMM_EX) race->theirs[keep - 1] = race->theirs[i];
  if (race->their_count > keep) race->their_count = keep;
}

/* One heat: everyone still in the race runs, then the slower are out. */
static void heat(gs_race_t *race, int rounds, int keep_ours) {
  gs_contender_t *both[2 * CONTENDERS_MAX];
  memcpy(both, race->ours, sizeof *both * (size_t)race->our_count);
  memcpy(both + race->our_count, race->theirs, sizeof *both * (size_t)race->their_count);
  gs_bench_gpu(race->bench, both, race->our_count + race->their_count, rounds);
  qsort(race->ours, (size_t)race->our_count, sizeof *race->ours, by_time);
  qsort(race->theirs, (size_t)race->their_count, sizeof *race->theirs, by_time);
  if (race->our_count > keep_ours) race->our_count = keep_ours;
  cut_theirs(race, KEPT_OF_LIBRARY);
}

/* Other orders of the tiles, for the kernel that leads. */
static void enter_rasters(gs_race_t *race) {
  gs_contender_t lead = *race->ours[0];
  gs_kernel_t kernel = gs_kernel_at(lead.index);
  const gs_gemm_t *g = &race->bench->gemm;
  for (int i = 0; i < RASTERS; i++) {
    if (g->m <= (int64_t)kernel.bm * rasters[i] / 2 || g->n <= kernel.bn) break; /* the same order again */
    enter(race, (gs_contender_t){.kind = GS_BY_KERNEL,
                                 .index = lead.index,
                                 .split_k = lead.split_k,
                                 .raster = rasters[i],
                                 .predicted_us = lead.predicted_us});
  }
}

static void judge(gs_race_t *race, gs_tuned_t *tuned, gs_contender_t *ours, gs_contender_t *library) {
  const gs_gemm_t *g = &race->bench->gemm;
  gs_gate_t gate = gs_bench_gate(race->bench, ours);
  double library_error = -1;
  if (g->d_type == GS_TYPE_F32) {
    gs_gate_t of_library = gs_bench_gate(race->bench, library);
    if (isfinite(gs_gate_error(&of_library))) library_error = gs_gate_error(&of_library);
  }
  const char *why = gs_gate_fault(&gate, GS_GATE_ROUNDING, g->d_type, g->k, library_error);
  tuned->error = gs_gate_error(&gate), tuned->bound = gs_gate_bound(&gate, g->d_type, g->k, library_error);
  if (!why) return;
  tuned->verdict = GS_TUNE_WRONG;
  snprintf(tuned->why, sizeof tuned->why, "%s", why);
}

/* The best kernel against the library's best, afresh: what chose them must not judge them. */
static void final(gs_race_t *race, gs_tuned_t *tuned, int rounds) {
  gs_contender_t *ours = race->ours[0], *library = race->theirs[0], *runners[1 + KEPT_OF_LIBRARY] = {ours};
  int count = 1;
  for (int i = 0; i < race->their_count; i++) runners[count++] = race->theirs[i];
  for (int i = 0; i < count; i++) runners[i]->gpu_count = 0;
  gs_bench_gpu(race->bench, runners, count, rounds);
  gs_bench_wall(race->bench, runners, count, rounds);
  if (!gs_gpu_ok(race->bench->gpu)) return;
  for (int i = 1; i < count; i++) {
    if (gs_contender_us(runners[i]) < gs_contender_us(library)) library = runners[i];
    if (runners[i]->kind == GS_BY_GEMM_EX) tuned->gemm_ex_us = gs_contender_us(runners[i]);
  }
  size_t n = (size_t)ours->gpu_count;
  tuned->ratio = gs_ratio_of_medians(library->gpu_us, ours->gpu_us, n, 1);
  tuned->row.us = (float)gs_contender_us(ours);
  tuned->row.library_us = (float)gs_contender_us(library);
  tuned->row.wall_us = (float)gs_median(ours->wall_us, n);
  tuned->row.library_wall_us = (float)gs_median(library->wall_us, n);
  gs_contender_name(tuned->library, sizeof tuned->library, library);
  tuned->verdict = tuned->ratio.lo > 1 ? GS_TUNE_WIN : tuned->ratio.hi < 1 ? GS_TUNE_LOSS : GS_TUNE_TIE;
  if (tuned->verdict == GS_TUNE_WIN) judge(race, tuned, ours, library);
}

static void describe_row(gs_tuned_t *tuned, const gs_contender_t *ours) {
  tuned->row.key = gs_key_of(&tuned->gemm);
  tuned->row.n_lo = tuned->row.n_hi = (int32_t)tuned->gemm.n;
  tuned->row.index = ours->index;
  tuned->row.kernel = gs_kernel_at(ours->index);
  tuned->row.split_k = (int16_t)ours->split_k;
  tuned->row.raster = (int16_t)ours->raster;
}

static void run(gs_race_t *race, gs_tuned_t *tuned, const gs_tune_options_t *options) {
  int rounds = options->quick ? GS_INTERVAL_PAIRS_MIN : GS_TUNE_ROUNDS;
  enter_all(race, options);
  tuned->candidates = race->our_count;
  tuned->lt_candidates = race->bench->lt.count;
  if (!race->our_count || !race->their_count) {
    snprintf(tuned->why, sizeof tuned->why, "%s",
             race->our_count ? "cuBLAS refuses it" : "no kernel can compute it");
    return;
  }
  gs_bench_warm(race->bench, race->theirs[0]);
  heat(race, FIRST_ROUNDS, (race->our_count + 1) / 2);
  if (!options->row) heat(race, SECOND_ROUNDS, 2), enter_rasters(race);
  if (race->our_count > 2) heat(race, SECOND_ROUNDS, 1);
  describe_row(tuned, race->ours[0]);
  final(race, tuned, rounds);
}

/* Fastest first. */
static void tell_all(gs_race_t *race, const gs_tune_options_t *options) {
  gs_contender_t *order[CONTENDERS_MAX];
  for (int i = 0; i < race->count; i++) order[i] = &race->all[i];
  qsort(order, (size_t)race->count, sizeof *order, by_time);
  for (int i = 0; i < race->count; i++) options->measured(options->context, order[i]);
}

gs_table_header_t gs_tune_header(const gs_gpu_t *gpu, const gs_cublas_t *cublas) {
  gs_table_header_t filled = {0}, *header = &filled;
  time_t now = time(NULL);
  struct tm day;
  snprintf(header->gpu, sizeof header->gpu, "%s", gpu->device.name);
  snprintf(header->arch, sizeof header->arch, "sm_%d", gpu->device.sm);
  header->sms = gpu->device.sms;
  memcpy(header->cublas, cublas->version, sizeof header->cublas);
  snprintf(header->method, sizeof header->method,
           "gpu clock, replayed graphs over rotating operands, medians of %d interleaved rounds against "
           "cublasGemmEx "
           "and all cuBLASLt candidates",
           GS_TUNE_ROUNDS);
  strftime(header->date, sizeof header->date, "%Y-%m-%d", gmtime_r(&now, &day));
  return filled;
}

gs_tuned_t gs_tune(gs_bench_t *bench, const gs_gemm_t *g, const gs_tune_options_t *options) {
  gs_tuned_t tuned = {.verdict = GS_TUNE_NONE, .gemm = *g};
  gs_race_t *race = calloc(1, sizeof *race);
  gs_contender_t *all = calloc(CONTENDERS_MAX, sizeof *all);
  if (!race || !all || !gs_bench_product(bench, g)) {
    snprintf(tuned.why, sizeof tuned.why, "memory does not hold its operands");
    if (!gs_gpu_ok(bench->gpu)) gs_gpu_forgive(bench->gpu);
  } else {
    tuned.copies = bench->copies;
    race->bench = bench, race->all = all;
    run(race, &tuned, options);
    if (options->measured) tell_all(race, options);
    for (int i = 0; i < race->count; i++) gs_bench_done(&all[i]);
    if (!gs_gpu_ok(bench->gpu)) {
      tuned.verdict = GS_TUNE_NONE;
      snprintf(tuned.why, sizeof tuned.why, "%.120s", bench->gpu->fault);
      gs_gpu_forgive(bench->gpu);
    }
  }
  free(all);
  free(race);
  return tuned;
}
