#define _GNU_SOURCE
#include "tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "algos.h"
#include "extras.h"
#include "orders.h"
#include "rank.h"

const char *const gs_tune_verdict_names[] = {"win", "tie", "loss", "WRONG", "none"};

#define OF_FAMILY     3  /* candidates of each family, at least */
#define NARROW        32 /* n up to which all kernels of family direct are candidates */
#define BEYOND        8  /* algorithms that the heuristic did not offer, measured */
#define ALGOS_KEPT    3  /* after the second heat; as many of those offered join */
#define WITH_SIBLINGS 4  /* of our kernels then: others of their tiles join */
#define FINALISTS     2  /* of large products, in their best orders of tiles */
#define LARGE_US      20
#define ALL           GS_RACE_CONTENDERS_MAX
#define TWICE         2.0 /* times what it must beat, in a first round: out */
#define NEAR          1.25 /* after the second heat; after the third, where orders of tiles may still help ... */
#define NEARER        1.1
#define NEAREST       1.05 /* ... and before the proof */
#define REACH         1.6 /* predicted to take more than that many times what the library takes: not measured, ... */
#define REACH_US      10 /* ... where the library takes so long; else: */
#define REACH_FAR     3.0

#define CLEAR 1.02 /* an interval wholly beyond it, or below its inverse, needs no more rounds */
#define PROOF_SECONDS                                                                                        \
  0.05 /* of one contender on the gpu clock, unless that is less than GS_TUNE_ROUNDS_CLEAR */
#define WALL_SECONDS 0.02 /* likewise */

/* ---- who takes part ---- */

static gs_contender_t kernel_contender(int index, int split_k, int raster, double predicted_us) {
  return (gs_contender_t){.kind = GS_BY_KERNEL,
                          .index = index,
                          .split_k = split_k,
                          .raster = raster,
                          .predicted_us = predicted_us};
}

static gs_contender_t algo_contender(const gs_algo_t *algo, int split_k) {
  return (gs_contender_t){.kind = GS_BY_ALGO, .algo = *algo, .split_k = split_k, .raster = 1};
}

static void enter_row(gs_race_t *race, const gs_row_t *row) {
  if (gs_row_supports(row, &race->bench->gemm) != GS_REASON_SERVED) return;
  gs_race_enter(race, row->by_library ? algo_contender(&row->algo, row->split_k)
                                      : kernel_contender(row->index, row->split_k, row->raster, 0));
}

/* Once, and as long as there is room. */
static void add(gs_candidate_t *best, int *count, const gs_candidate_t *candidate) {
  for (int i = 0; i < *count; i++)
    if (best[i].index == candidate->index && best[i].split_k == candidate->split_k) return;
  if (*count < GS_TUNE_CANDIDATES_MAX) best[(*count)++] = *candidate;
}

/* The kernel at its best split, or, at another place, at that many splits further down. */
static void add_split(const gs_gpu_t *gpu, int index, int place, const gs_rank_for_t *to,
                      gs_candidate_t *best, int *count) {
  gs_candidate_t own[GS_TUNE_SPLITS];
  if (gs_rank_splits(gpu, index, to, own, GS_TUNE_SPLITS) > place) add(best, count, &own[place]);
}

/* Every kernel's best split before any kernel's second best. */
static void add_each(const gs_gpu_t *gpu, const gs_pool_t *each, const gs_rank_for_t *to,
                     gs_candidate_t *best, int *count) {
  for (int place = 0; place < GS_TUNE_SPLITS; place++)
    for (int i = 0; i < each->count; i++) add_split(gpu, each->indices[i], place, to, best, count);
}

/* How the families stand to each other is what the model knows least: each has its first few measured. */
static void add_families(const gs_gpu_t *gpu, const gs_pool_t *pool, const gs_rank_for_t *to,
                         gs_candidate_t *best, int *count) {
  for (int family = 0; family < GS_FAMILY_COUNT; family++) {
    gs_candidate_t own[OF_FAMILY];
    int found = gs_rank_family(gpu, pool, (gs_family_t)family, to, own, OF_FAMILY);
    for (int i = 0; i < found; i++) add(best, count, &own[i]);
  }
}

/* How fast a tile reads A, the model does not know to a few percent, and narrow products are little else. */
static void add_narrow(const gs_gpu_t *gpu, const gs_pool_t *pool, const gs_rank_for_t *to,
                       gs_candidate_t *best, int *count) {
  for (int i = 0; i < pool->count; i++)
    if (gs_kernel_at(pool->indices[i]).family == GS_FAMILY_DIRECT)
      add_split(gpu, pool->indices[i], 0, to, best, count);
}

/* Small products are predicted less well than large ones. */
static bool out_of_reach(double us, double library_us) {
  return us > library_us * (library_us > REACH_US ? REACH : REACH_FAR);
}

/* The model's candidates. Where not even the first is predicted to come near the library, that one alone, so that the
 * loss is a measured one. */
static void enter_kernels(gs_race_t *race, const gs_tune_options_t *options) {
  gs_bench_t *bench = race->bench;
  gs_candidate_t best[GS_TUNE_CANDIDATES_MAX];
  const gs_rank_for_t to = {&bench->gemm, options->split_max, GS_BENCH_WORKSPACE};
  double library_us = gs_contender_us(gs_race_fastest(&race->theirs));
  int count = gs_rank(bench->gpu, options->pool, &to, best, options->candidates);
  if (count) add_families(bench->gpu, options->pool, &to, best, &count);
  if (count && bench->gemm.n <= NARROW) add_narrow(bench->gpu, options->pool, &to, best, &count);
  for (int i = 1; i < count && !options->out_of_reach; i++)
    if (out_of_reach(best[i].us, library_us)) best[i--] = best[--count];
  if (options->each) add_each(bench->gpu, options->each, &to, best, &count);
  for (int i = 0; i < count; i++) {
    gs_kernel_t kernel = gs_kernel_at(best[i].index);
    int raster = gs_order_guess(bench->gpu, &kernel, &bench->gemm);
    gs_race_enter(race, kernel_contender(best[i].index, best[i].split_k, raster, best[i].us));
  }
}

static void enter_beyond(gs_race_t *race) {
  gs_algos_t algos[BEYOND];
  gs_watch(&race->watch, GS_PHASE_SEARCH);
  int count = gs_algos_beyond(&race->bench->lt, &race->bench->gemm, algos, BEYOND);
  for (int i = 0; i < count; i++) gs_race_enter(race, algo_contender(&algos[i].algo, algos[i].split_k));
}

static void enter_library(gs_race_t *race) {
  if (race->bench->gemm.epilogue == GS_EPILOGUE_DEFAULT)
    gs_race_enter(race, (gs_contender_t){.kind = GS_BY_GEMM_EX});
  for (int i = 0; i < race->bench->lt.count; i++)
    gs_race_enter(race, (gs_contender_t){.kind = GS_BY_LT, .index = i});
}

/* The fastest that the heuristic offered, as a row would name them, where programs could gain by them. */
static void enter_offered(gs_race_t *race) {
  gs_algos_t offered;
  const gs_contender_t *called = gs_race_called(race);
  for (int i = 0, entered = 0; called && i < race->theirs.count && entered < ALGOS_KEPT; i++) {
    const gs_contender_t *one = race->theirs.at[i];
    if (one->kind != GS_BY_LT || gs_contender_us(one) > NEAREST * gs_contender_us(called)) continue;
    if (!gs_algos_offered(&race->bench->lt, one->index, &offered)) continue;
    gs_race_enter(race, algo_contender(&offered.algo, offered.split_k));
    entered++;
  }
}

static bool was_measured(const gs_race_t *race, const gs_contender_t *one) {
  for (int i = 0; i < race->count; i++)
    if (race->all[i].kind == GS_BY_KERNEL && race->all[i].index == one->index &&
        race->all[i].split_k == one->split_k)
      return true;
  return false;
}

/* One part of k more and one less, for the kernel that leads. */
static void enter_splits(gs_race_t *race, const gs_tune_options_t *options) {
  if (!race->kernels.count) return;
  gs_contender_t lead = *race->kernels.at[0];
  gs_kernel_t kernel = gs_kernel_at(lead.index);
  const gs_gemm_t *g = &race->bench->gemm;
  int most = gs_kernel_split_max(&kernel, race->bench->gpu->device.sm);
  if (options->split_max < most) most = options->split_max;
  for (int split = lead.split_k - 1; split <= lead.split_k + 1; split += 2) {
    gs_contender_t one = kernel_contender(lead.index, split, lead.raster, lead.predicted_us);
    bool possible = split >= 1 && split <= most && (int64_t)(split - 1) * kernel.bk < g->k;
    if (possible && !was_measured(race, &one)) gs_race_enter(race, one);
  }
}

/* Kernels of its tile with other stages and warps, of which the model knows least. */
static void enter_siblings(gs_race_t *race, const gs_pool_t *pool, const gs_contender_t *of) {
  gs_kernel_t kernel = gs_kernel_at(of->index);
  for (int i = 0; i < pool->count; i++) {
    gs_kernel_t other = gs_kernel_at(pool->indices[i]);
    gs_contender_t one = kernel_contender(pool->indices[i], of->split_k, of->raster, of->predicted_us);
    bool sibling = other.family == kernel.family && other.bm == kernel.bm && other.bn == kernel.bn &&
                   other.bk == kernel.bk && other.swap == kernel.swap;
    if (sibling && gs_kernel_supports(&other, &race->bench->gemm) == GS_REASON_SERVED &&
        !was_measured(race, &one))
      gs_race_enter(race, one);
  }
}

/* Those of the fastest few that are left. */
static void enter_all_siblings(gs_race_t *race, const gs_pool_t *pool) {
  int left = race->kernels.count; /* who enters comes behind them */
  for (int i = 0; i < left && i < WITH_SIBLINGS; i++) enter_siblings(race, pool, race->kernels.at[i]);
}

static void enter_orders(gs_race_t *race, const gs_contender_t *of) {
  gs_kernel_t kernel = gs_kernel_at(of->index);
  for (int i = 0; i < GS_ORDERS && gs_order_differs(&kernel, &race->bench->gemm, i); i++)
    if (gs_orders[i] != of->raster)
      gs_race_enter(race, kernel_contender(of->index, of->split_k, gs_orders[i], of->predicted_us));
}

/* Other orders of the tiles, for all kernels that are left: what large tiles gain by them decides between these. */
static void enter_rasters(gs_race_t *race) {
  int left = race->kernels.count;
  for (int i = 0; i < left; i++) enter_orders(race, race->kernels.at[i]);
}

/* ---- who wins ---- */

/* One of ours against one of theirs. */
typedef struct {
  gs_contender_t *ours, *theirs;
  gs_interval_t gpu, wall; /* theirs over ours */
  gs_gate_t gate;
  double library_error; /* -1: it does not matter */
} gs_claim_t;

static gs_claim_t claim(gs_contender_t *ours, gs_contender_t *theirs) {
  gs_claim_t claim = {.ours = ours, .theirs = theirs, .library_error = -1};
  if (ours) claim.gpu = gs_entrant_ratio(&theirs->entrant, &ours->entrant, GS_CLOCK_GPU);
  return claim;
}

/* What lets a claim stand; rival: the fastest of the library's algorithms, if any. */
typedef bool gs_test_t(gs_claim_t *claim, gs_contender_t *rival);

static bool wins(gs_claim_t *claim, gs_contender_t *rival) {
  (void)rival;
  return claim->gpu.lo > 1;
}

/* And no algorithm of the library is so much faster still that the row should be its own. */
static bool wins_alone(gs_claim_t *claim, gs_contender_t *rival) {
  if (!wins(claim, rival)) return false;
  if (!rival || gs_contender_us(rival) >= gs_contender_us(claim->ours)) return true;
  return gs_entrant_ratio(&claim->ours->entrant, &rival->entrant, GS_CLOCK_GPU).lo <= 1;
}

/* No loss on the gpu clock, and less time for the host. */
static bool wins_by_wall(gs_claim_t *claim, gs_contender_t *rival) {
  (void)rival;
  if (claim->gpu.hi < 1 || !(claim->gpu.lo > GS_TUNE_TIE_LO)) return false;
  claim->wall = gs_entrant_ratio(&claim->theirs->entrant, &claim->ours->entrant, GS_CLOCK_WALL);
  return claim->wall.lo > GS_TUNE_WALL_LO;
}

/* How they do at a quiet server, for whoever reads the row. */
static void serve(gs_race_t *race, const gs_claim_t *claim, int arrivals) {
  gs_watch(&race->watch, GS_PHASE_SERVER);
  gs_bench_server(race->bench, (gs_contender_t *[]){claim->ours, claim->theirs}, 2, arrivals);
}

/* NULL, or what is wrong with the results of ours. */
static const char *judge(gs_race_t *race, gs_claim_t *claim) {
  const gs_gemm_t *g = &race->bench->gemm;
  gs_watch(&race->watch, GS_PHASE_GATE);
  claim->gate = gs_bench_gate(race->bench, claim->ours);
  if (g->d_type == GS_TYPE_F32) {
    gs_gate_t of_library = gs_bench_gate(race->bench, claim->theirs);
    if (isfinite(gs_gate_error(&of_library))) claim->library_error = gs_gate_error(&of_library);
  }
  return gs_gate_fault(&claim->gate, GS_GATE_ROUNDING, g->d_type, g->k, claim->library_error);
}

static void describe(gs_race_t *race, gs_tuned_t *tuned, const gs_claim_t *claim) {
  const gs_contender_t *ours = claim->ours, *theirs = claim->theirs;
  gs_row_t *row = &tuned->row;
  *row = (gs_row_t){.key = gs_key_of(&tuned->gemm),
                    .n_lo = (int32_t)tuned->gemm.n,
                    .n_hi = (int32_t)tuned->gemm.n,
                    .by_library = ours->kind == GS_BY_ALGO,
                    .index = ours->kind == GS_BY_ALGO ? -1 : ours->index,
                    .algo = ours->algo,
                    .split_k = (int16_t)ours->split_k,
                    .raster = (int16_t)ours->raster,
                    .us = (float)gs_contender_us(ours),
                    .library_us = (float)gs_contender_us(theirs),
                    .wall_us = (float)gs_entrant_us(&ours->entrant, GS_CLOCK_WALL),
                    .library_wall_us = (float)gs_entrant_us(&theirs->entrant, GS_CLOCK_WALL)};
  if (!row->by_library) row->kernel = gs_kernel_at(ours->index);
  const gs_gemm_t *g = &race->bench->gemm;
  tuned->ratio = claim->gpu;
  if (ours->entrant.count[GS_CLOCK_SERVER]) {
    row->server_us = (float)gs_entrant_us(&ours->entrant, GS_CLOCK_SERVER);
    row->library_server_us = (float)gs_entrant_us(&theirs->entrant, GS_CLOCK_SERVER);
  }
  gs_contender_name(tuned->library, sizeof tuned->library, theirs);
  for (int i = 0; i < race->theirs.count; i++)
    if (race->theirs.at[i]->kind == GS_BY_GEMM_EX) tuned->gemm_ex_us = gs_contender_us(race->theirs.at[i]);
  if (claim->gate.count) {
    tuned->error = gs_gate_error(&claim->gate);
    tuned->bound = gs_gate_bound(&claim->gate, g->d_type, g->k, claim->library_error);
  }
}

/* Whether more rounds could change what is said of it. */
static bool is_open(gs_contender_t *ours, gs_contender_t *theirs) {
  return claim(ours, theirs).gpu.hi >= 1 / CLEAR;
}

static bool has_won(gs_contender_t *ours, gs_contender_t *theirs, int rounds) {
  return ours && theirs && rounds >= GS_TUNE_ROUNDS_CLEAR && claim(ours, theirs).gpu.lo >= CLEAR;
}

/* The library's, and those of ours that are open; 0 where none of ours is, or the fastest has won. */
static int runners_left(const gs_race_t *race, int rounds, gs_contender_t **runners) {
  gs_contender_t *called = gs_race_called(race), *best = gs_race_fastest(&race->theirs);
  gs_contender_t *kernel = gs_race_fastest(&race->kernels), *algo = gs_race_fastest(&race->algos);
  bool leads = kernel && (!algo || gs_contender_us(kernel) <= gs_contender_us(algo));
  int count = 0, theirs = race->theirs.count;
  if (leads ? has_won(kernel, best, rounds) : has_won(algo, called, rounds)) return 0;
  for (int i = 0; i < race->kernels.count; i++)
    if (is_open(race->kernels.at[i], best)) runners[count++] = race->kernels.at[i];
  for (int i = 0; i < race->algos.count && called; i++)
    if (is_open(race->algos.at[i], called)) runners[count++] = race->algos.at[i];
  if (count) memcpy(&runners[count], race->theirs.at, sizeof *runners * (size_t)theirs);
  return count ? count + theirs : 0;
}

static int within(double value, int least, int most) {
  return value < least ? least : value > most ? most : (int)value;
}

/* On the wall clock only those run that something may be said of. */
static void prove_by_wall(gs_race_t *race, double us, int rounds) {
  gs_contender_t *const all[] = {gs_race_fastest(&race->kernels), gs_race_fastest(&race->algos),
                                 gs_race_fastest(&race->theirs), gs_race_called(race)};
  gs_contender_t *runners[4];
  int count = 0;
  gs_watch(&race->watch, GS_PHASE_WALL);
  for (int i = 0; i < 4; i++)
    if (all[i] && (i < 3 || all[i] != all[2])) runners[count++] = all[i];
  gs_bench_wall(race->bench, runners, count, within(1e6 * WALL_SECONDS / us, GS_INTERVAL_PAIRS_MIN, rounds));
}

/* Both clocks afresh: what chose the runners must not judge them. Who has lost after a few rounds leaves, and who wins
 * clearly after some more; the others run all of them. Returns the rounds; 0: the GPU failed. */
static int prove(gs_race_t *race, const gs_tune_options_t *options) {
  static const int stages[] = {GS_INTERVAL_PAIRS_MIN, GS_TUNE_ROUNDS_CLEAR, GS_TUNE_ROUNDS};
  gs_contender_t *runners[GS_RACE_CONTENDERS_MAX];
  int count = gs_race_runners(race, runners), done = 0, left = count;
  double us = gs_contender_us(gs_race_fastest(&race->theirs)), replay_us = us * race->bench->calls;
  int most = within(1e6 * PROOF_SECONDS / replay_us, GS_TUNE_ROUNDS_CLEAR, GS_TUNE_ROUNDS);
  if (options->quick) most = GS_INTERVAL_PAIRS_MIN;
  gs_watch(&race->watch, GS_PHASE_GPU);
  for (int i = 0; i < count; i++) gs_entrant_forget(&runners[i]->entrant);
  for (int s = 0; left && done < most; s++) {
    int upto = stages[s] < most ? stages[s] : most;
    gs_bench_gpu(race->bench, runners, left, upto - done);
    done = upto;
    left = runners_left(race, done, runners);
  }
  prove_by_wall(race, us, done);
  return gs_gpu_ok(race->bench->gpu) ? done : 0;
}

/* A kernel must beat everything that the library can do; one of the library's algorithms what programs get
 * without it, and not lose to the heuristic's choice, since a row serves every entry point.
 * The gpu clock comes first, then the wall clock. An algorithm that fails the gate is out; a kernel that does is a
 * fault. */
static void decide(gs_race_t *race, gs_tuned_t *tuned, const gs_tune_options_t *options) {
  gs_contender_t *rival = gs_race_fastest(&race->algos), *called = gs_race_called(race),
                 *first = gs_race_first(race);
  gs_claim_t kernel = claim(gs_race_fastest(&race->kernels), gs_race_fastest(&race->theirs));
  gs_claim_t algo = claim(called ? rival : NULL, called), *won = NULL;
  if (algo.ours && first && first != called && claim(rival, first).gpu.hi < 1) algo.ours = NULL;
  const struct {
    gs_claim_t *claim;
    gs_test_t *stands;
  } order[] = {
      {&kernel, wins_alone}, {&algo, wins}, {&kernel, wins}, {&kernel, wins_by_wall}, {&algo, wins_by_wall}};
  const char *why = NULL;
  for (size_t i = 0; i < sizeof order / sizeof *order && !won; i++) {
    gs_claim_t *one = order[i].claim;
    if (!one->ours || !order[i].stands(one, rival)) continue;
    why = judge(race, one);
    if (!why || one == &kernel)
      won = one;
    else
      one->ours = NULL, why = NULL;
    tuned->by_wall = order[i].stands == wins_by_wall;
  }
  gs_claim_t *shown = won ? won : &kernel;
  if (!shown->ours)
    *shown = claim(rival, called ? called : gs_race_fastest(&race->theirs)); /* failed the gate, or lost */
  tuned->verdict = why ? GS_TUNE_WRONG : won ? GS_TUNE_WIN : shown->gpu.hi < 1 ? GS_TUNE_LOSS : GS_TUNE_TIE;
  if (tuned->verdict == GS_TUNE_WIN && options->arrivals && !options->quick)
    serve(race, shown, options->arrivals);
  describe(race, tuned, shown);
  if (why) snprintf(tuned->why, sizeof tuned->why, "%s", why);
}

/* What takes long enough for the GPU to throttle its clock runs at another speed after a few rounds than at first. */
static bool is_large(const gs_race_t *race) {
  return gs_contender_us(gs_race_fastest(&race->theirs)) > LARGE_US;
}

int gs_tune_select(gs_race_t *race, const gs_tune_options_t *options) {
  enter_library(race);
  if (!race->theirs.count) return 0;
  gs_bench_warm(race->bench, race->theirs.at[0]);
  gs_race_heat(race, (gs_heat_t){1, ALL, ALL, TWICE});
  gs_watch(&race->watch, GS_PHASE_PREPARE);
  if (options->row)
    enter_row(race, options->row);
  else
    enter_kernels(race, options), enter_beyond(race);
  int candidates = race->kernels.count;
  gs_race_heat(race, (gs_heat_t){1, ALL, ALL, TWICE});
  gs_race_heat(race, (gs_heat_t){2, (candidates + 1) / 2, ALGOS_KEPT, NEAR});
  if (options->row) return candidates;
  enter_offered(race);
  enter_splits(race, options);
  enter_all_siblings(race, options->pool);
  const bool large = is_large(race);
  gs_race_heat(race, (gs_heat_t){3, large ? 4 : 3, 2, NEARER});
  enter_rasters(race);
  if (race->kernels.count > 1)
    gs_race_heat(race, (gs_heat_t){large ? 4 : 3, large ? FINALISTS : 1, 2, NEAREST});
  if (race->kernels.count > 1) gs_race_heat(race, (gs_heat_t){6, 1, 2, NEAREST});
  return candidates;
}

static void run(gs_race_t *race, gs_tuned_t *tuned, const gs_tune_options_t *options) {
  tuned->candidates = gs_tune_select(race, options);
  tuned->lt_candidates = race->bench->lt.count;
  if (!race->theirs.count)
    snprintf(tuned->why, sizeof tuned->why, "cuBLAS refuses it");
  else if (!race->kernels.count && !race->algos.count)
    snprintf(tuned->why, sizeof tuned->why, "nothing of ours can compute it");
  else if ((tuned->rounds = prove(race, options)))
    decide(race, tuned, options);
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
           "replayed graphs, operands rotate; %d to %d interleaved rounds against cublasGemmEx and all "
           "cuBLASLt offers; "
           "gpu clock, or a tie there and wall; server: %d/s",
           GS_TUNE_ROUNDS_CLEAR, GS_TUNE_ROUNDS, GS_CONTEST_RATE);
  strftime(header->date, sizeof header->date, "%Y-%m-%d", gmtime_r(&now, &day));
  return filled;
}

gs_tuned_t gs_tune(gs_bench_t *bench, const gs_gemm_t *g, const gs_tune_options_t *options) {
  gs_tuned_t tuned = {.verdict = GS_TUNE_NONE, .gemm = *g};
  gs_contender_t *order[GS_RACE_CONTENDERS_MAX];
  gs_race_t race;
  if (!gs_race_open(&race, bench, g)) {
    snprintf(tuned.why, sizeof tuned.why, "memory does not hold its operands");
    if (!gs_gpu_ok(bench->gpu)) gs_gpu_forgive(bench->gpu);
  } else {
    tuned.copies = bench->copies;
    run(&race, &tuned, options);
    gs_race_order(&race, order);
    for (int i = 0; i < race.count && options->measured; i++) options->measured(options->context, order[i]);
    if (!gs_gpu_ok(bench->gpu)) {
      tuned.verdict = GS_TUNE_NONE;
      snprintf(tuned.why, sizeof tuned.why, "%.120s", bench->gpu->fault);
    }
  }
  gs_race_close(&race);
  tuned.watch = race.watch;
  if (!gs_gpu_ok(bench->gpu)) gs_gpu_forgive(bench->gpu);
  return tuned;
}

uint64_t gs_tune_library(gs_bench_t *bench, const gs_gemm_t *g) {
  gs_lt_t lt;
  gs_lt_open(&lt, bench->cublas, g, gs_gpu_pointer(bench->cublas->workspace)); /* a bias, wherever it lies */
  uint64_t choice = gs_algos_first(&lt);
  gs_lt_close(&lt);
  return choice;
}
