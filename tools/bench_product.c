#define _GNU_SOURCE
#include "bench_product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"

#define WARM_SECONDS  0.002 /* before each product; the first time longer */
#define COLD_SECONDS  0.3
#define HEAT_ROUNDS   3 /* that find the heuristic's best choice, and the best foreign kernel, after one ... */
#define HEAT_WITHIN   1.25 /* ... in which the others take longer by this */
#define CLOCK_SECONDS 0.05 /* of one contender on one clock: rounds are cut for long products */
#define ROUNDS_MIN    9    /* but not below this */
#define FOREIGN_MAX   64   /* that do one product */

/* One layout: a view of the bench's operands, and cuBLASLt's choices for it. */
typedef struct lane {
  gs_bench_t view;
  gs_lt_t lt, door_lt; /* the real one's, and the same through the door */
  const gs_door_t *door;
  gs_tally_t before;
  uint64_t calls; /* made through the door */
} lane_t;

/* What an entrant calls. */
typedef struct {
  lane_t *lane;
  enum { BY_DOOR_GEMM_EX, BY_DOOR_LT, BY_GEMM_EX, BY_LT, BY_FOREIGN } by;
  int candidate;
  const gs_foreign_t *foreign;
} caller_t;

typedef struct {
  caller_t caller;
  gs_entrant_t entrant;
} runner_t;

typedef struct {
  gs_measure_t *measure;
  gs_contest_t contest;
  lane_t lane[GS_LAYOUT_COUNT];
  /* AUTO here is the best of the heuristic's other choices; NULL: does not run. */
  runner_t *runner[GS_LAYOUT_COUNT][GS_RUNNER_COUNT];
  runner_t *foreign, *trains[2]; /* the best of them; the library's and our fastest as trains */
  gs_bench_row_t *row;
} race_t;

static bool call(void *self, int copy) {
  const caller_t *caller = self;
  lane_t *lane = caller->lane;
  const gs_gemm_t *g = &lane->view.gemm;
  lane->calls += caller->by == BY_DOOR_GEMM_EX || caller->by == BY_DOOR_LT;
  gs_operands_t o = gs_bench_operands(&lane->view, copy);
  switch (caller->by) {
  case BY_DOOR_GEMM_EX:
    return gs_cublas_gemm(&lane->door->cublas, g, &o) == CUBLAS_STATUS_SUCCESS;
  case BY_DOOR_LT:
    return gs_lt_matmul(&lane->door_lt, caller->candidate, g, &o) == CUBLAS_STATUS_SUCCESS;
  case BY_GEMM_EX:
    return gs_cublas_gemm(lane->view.cublas, g, &o) == CUBLAS_STATUS_SUCCESS;
  case BY_LT:
    return gs_lt_matmul(&lane->lt, caller->candidate, g, &o) == CUBLAS_STATUS_SUCCESS;
  case BY_FOREIGN:
    return gs_foreign_call(caller->foreign, g, &o);
  }
  return false;
}

/* NULL where it refuses the product. */
static runner_t *enter(race_t *race, caller_t caller, bool train) {
  runner_t *runner = calloc(1, sizeof *runner);
  if (!runner) return NULL;
  runner->caller = caller;
  runner->entrant = (gs_entrant_t){.call = call, .self = &runner->caller, .train = train};
  gs_phase_t before = gs_watch(&race->measure->watch, GS_PHASE_RECORD);
  bool ready = gs_entrant_ready(&race->contest, &runner->entrant);
  gs_watch(&race->measure->watch, before);
  if (ready) return runner;
  free(runner);
  return NULL;
}

static void leave(runner_t *runner) {
  if (!runner) return;
  gs_entrant_done(&runner->entrant);
  free(runner);
}

static double us_of(const runner_t *runner, gs_clock_kind_t clock) {
  return runner ? gs_entrant_us(&runner->entrant, clock) : INFINITY;
}

/* Runs them; returns the fastest. */
static runner_t *heat(race_t *race, runner_t **runners, int count, int rounds) {
  gs_entrant_t *entrants[count + 1];
  runner_t *best = NULL;
  for (int i = 0; i < count; i++) entrants[i] = &runners[i]->entrant;
  if (count > 1) gs_contest_run(&race->contest, GS_CLOCK_GPU, entrants, count, rounds);
  for (int i = 0; i < count; i++)
    if (!best || us_of(runners[i], GS_CLOCK_GPU) < us_of(best, GS_CLOCK_GPU)) best = runners[i];
  return best;
}

/* The fastest of several that just entered stays, its samples forgotten. */
static runner_t *best_of(race_t *race, runner_t **runners, int count) {
  gs_phase_t before = gs_watch(&race->measure->watch, GS_PHASE_HEATS);
  runner_t *best = heat(race, runners, count, 1);
  int left = 0;
  for (int i = 0; i < count; i++)
    if (us_of(runners[i], GS_CLOCK_GPU) <= HEAT_WITHIN * us_of(best, GS_CLOCK_GPU))
      runners[left++] = runners[i];
    else
      leave(runners[i]);
  best = heat(race, runners, left, HEAT_ROUNDS);
  for (int i = 0; i < left; i++)
    if (runners[i] != best) leave(runners[i]);
  if (best) gs_entrant_forget(&best->entrant);
  gs_watch(&race->measure->watch, before);
  return best;
}

/* ---- who runs ---- */

static void open_lane(race_t *race, gs_layout_t layout, const gs_gemm_t *g, bool first) {
  gs_measure_t *measure = race->measure;
  lane_t *lane = &race->lane[layout];
  lane->view = measure->bench;
  lane->view.gemm = *g;
  lane->door = &measure->door;
  lane->before = gs_door_tally(&measure->door, g);
  if (first)
    lane->lt = measure->bench.lt;
  else
    gs_lt_open(&lane->lt, measure->bench.cublas, g, gs_bench_operands(&measure->bench, 0).bias);
  lane->door_lt = lane->lt;
  lane->door_lt.cublas = &measure->door.cublas;
}

/* As a program would ask for it: cublasGemmEx cannot do what follows the product. */
static bool by_lt(const gs_gemm_t *g) {
  return g->entry == GS_ENTRY_LT_MATMUL || g->epilogue != GS_EPILOGUE_DEFAULT;
}

static void enter_lane(race_t *race, gs_layout_t layout) {
  lane_t *lane = &race->lane[layout];
  const gs_gemm_t *g = &lane->view.gemm;
  runner_t **runner = race->runner[layout], *others[GS_LT_CANDIDATES_MAX];
  bool has_gemm_ex = g->epilogue == GS_EPILOGUE_DEFAULT;
  caller_t again = {lane, has_gemm_ex ? BY_GEMM_EX : BY_LT, 0, NULL};
  int count = 0;
  runner[GS_RUNNER_OURS] =
      enter(race, (caller_t){lane, by_lt(g) ? BY_DOOR_LT : BY_DOOR_GEMM_EX, 0, NULL}, false);
  if (race->measure->again) runner[GS_RUNNER_AGAIN] = enter(race, again, false);
  if (has_gemm_ex) runner[GS_RUNNER_GEMM_EX] = enter(race, (caller_t){lane, BY_GEMM_EX, 0, NULL}, false);
  if (lane->lt.count) runner[GS_RUNNER_LT] = enter(race, (caller_t){lane, BY_LT, 0, NULL}, false);
  if (runner[GS_RUNNER_OURS])
    gs_entrant_warm(&race->contest, &runner[GS_RUNNER_OURS]->entrant,
                    race->measure->bench.warm ? WARM_SECONDS : COLD_SECONDS);
  race->measure->bench.warm = true;
  for (int i = 1; i < lane->lt.count && !*race->contest.stop; i++) {
    runner_t *other = enter(race, (caller_t){lane, BY_LT, i, NULL}, false);
    if (other) others[count++] = other;
  }
  runner[GS_RUNNER_AUTO] = best_of(race, others, count);
  race->row->door[layout].candidates = lane->lt.count;
}

static void enter_foreign(race_t *race, gs_layout_t layout) {
  runner_t *all[FOREIGN_MAX];
  const gs_foreigners_t *foreigners = race->measure->foreigners;
  lane_t *lane = &race->lane[layout];
  int count = 0;
  if (!gs_foreign_fits(&lane->view.gemm)) return;
  for (int i = 0; i < foreigners->count && count < FOREIGN_MAX; i++) {
    runner_t *one = enter(race, (caller_t){lane, BY_FOREIGN, 0, &foreigners->items[i]}, true);
    if (one) all[count++] = one;
  }
  race->foreign = best_of(race, all, count);
}

/* ---- what they say ---- */

/* The faster of two on this clock; NULL where neither ran. */
static const runner_t *faster(const runner_t *x, const runner_t *y, gs_clock_kind_t clock) {
  if (!x || isinf(us_of(x, clock))) return y && !isinf(us_of(y, clock)) ? y : NULL;
  return us_of(y, clock) < us_of(x, clock) ? y : x;
}

static gs_interval_t ratio_of(const runner_t *x, const runner_t *y, gs_clock_kind_t clock) {
  return x && y ? gs_entrant_ratio(&x->entrant, &y->entrant, clock) : (gs_interval_t){NAN, NAN, NAN};
}

static const runner_t *runner_on(const race_t *race, int layout, gs_runner_t which, gs_clock_kind_t clock) {
  runner_t *const *runner = race->runner[layout];
  return which == GS_RUNNER_AUTO ? faster(runner[GS_RUNNER_LT], runner[GS_RUNNER_AUTO], clock)
                                 : runner[which];
}

/* Who stands above and below the line of a ratio. */
static void sides(const race_t *race, int rival, int layout, gs_clock_kind_t clock, const runner_t *side[2]) {
  static const gs_runner_t above[GS_RIVAL_COUNT] = {[GS_RIVAL_AA] = GS_RUNNER_AGAIN,
                                                    [GS_RIVAL_GEMM_EX] = GS_RUNNER_GEMM_EX,
                                                    [GS_RIVAL_LT] = GS_RUNNER_LT,
                                                    [GS_RIVAL_AUTO] = GS_RUNNER_AUTO};
  gs_runner_t below = GS_RUNNER_OURS;
  if (rival == GS_RIVAL_AA)
    below = race->runner[layout][GS_RUNNER_GEMM_EX] ? GS_RUNNER_GEMM_EX : GS_RUNNER_LT;
  side[0] = runner_on(race, layout, above[rival], clock);
  side[1] = runner_on(race, layout, below, clock);
}

static void fill_clock(race_t *race, gs_clock_kind_t clock) {
  gs_bench_row_t *row = race->row;
  for (int l = 0; l < GS_LAYOUT_COUNT; l++)
    for (int x = 0; x < GS_RUNNER_COUNT; x++) {
      double us = us_of(runner_on(race, l, (gs_runner_t)x, clock), clock);
      if (!isinf(us)) row->us[clock][l][x] = us;
    }
  for (int b = 0; b < GS_RIVAL_COUNT; b++) {
    const runner_t *side[GS_LAYOUT_COUNT][2];
    for (int l = 0; l < GS_LAYOUT_COUNT; l++) {
      sides(race, b, l, clock, side[l]);
      row->ratio[clock][b][l] = ratio_of(side[l][0], side[l][1], clock);
    }
    row->ratio[clock][b][GS_LAYOUT_MAX] =
        ratio_of(faster(side[GS_LAYOUT_NN][0], side[GS_LAYOUT_TN][0], clock),
                 faster(side[GS_LAYOUT_NN][1], side[GS_LAYOUT_TN][1], clock), clock);
  }
}

static void fill_door(race_t *race, gs_layout_t layout) {
  gs_tally_t now = gs_door_tally(&race->measure->door, &race->lane[layout].view.gemm);
  const gs_tally_t *before = &race->lane[layout].before;
  gs_bench_door_t *door = &race->row->door[layout];
  uint64_t total = 0, most = 0, served = 0;
  for (int r = 0; r < GS_REASON_COUNT; r++) {
    uint64_t calls = now.calls[r] - before->calls[r];
    total += calls;
    if (r == GS_REASON_SERVED) served = calls;
    if (calls > most) most = calls, snprintf(door->verdict, sizeof door->verdict, "%s", gs_reason_names[r]);
  }
  if (!total) snprintf(door->verdict, sizeof door->verdict, GS_NOT_COUNTED);
  /* cuBLAS may call its own public functions, and then finds the library's: no baseline to measure against. */
  if (total && total != race->lane[layout].calls)
    snprintf(race->row->status, sizeof race->row->status,
             "the library counted %lld calls more than were made",
             (long long)(total - race->lane[layout].calls));
  door->served = total ? (double)served / (double)total : 0;
  if (served) memcpy(door->kernel, now.kernel, sizeof door->kernel);
}

/* The library's fastest and ours beside the foreign kernel, timed as it is. */
static void race_foreign(race_t *race, gs_clock_kind_t clock, int rounds) {
  const runner_t *best[2] = {NULL, NULL};
  gs_entrant_t *entrants[3] = {&race->foreign->entrant};
  int count = 1;
  for (int l = 0; l < GS_LAYOUT_COUNT; l++) {
    best[0] = faster(best[0], runner_on(race, l, GS_RUNNER_GEMM_EX, clock), clock);
    best[0] = faster(best[0], runner_on(race, l, GS_RUNNER_AUTO, clock), clock);
    best[1] = faster(best[1], runner_on(race, l, GS_RUNNER_OURS, clock), clock);
  }
  for (int i = 0; i < 2; i++) {
    leave(race->trains[i]);
    race->trains[i] = best[i] ? enter(race, best[i]->caller, true) : NULL;
    if (race->trains[i]) entrants[count++] = &race->trains[i]->entrant;
  }
  race->foreign->entrant.count[clock] = 0;
  gs_contest_run(&race->contest, clock, entrants, count, rounds);
  gs_bench_peer_t *peer = &race->row->peer[clock];
  peer->us = us_of(race->foreign, clock);
  if (race->trains[0]) peer->library_us = us_of(race->trains[0], clock);
  if (race->trains[1]) peer->ours_us = us_of(race->trains[1], clock);
  peer->ratio = ratio_of(race->trains[0], race->foreign, clock);
}

/* ---- the race ---- */

/* us: of a sample of one contender, on the clock where it is longest. */
static int rounds_of(const race_t *race, double us) {
  int rounds = race->measure->rounds, fit = (int)(1e6 * CLOCK_SECONDS / us);
  int least = rounds < ROUNDS_MIN ? rounds : ROUNDS_MIN;
  return fit >= rounds ? rounds : fit > least ? fit : least;
}

static double replay_us(race_t *race, gs_entrant_t *entrant) {
  return gs_gpu_replay(race->measure->bench.gpu, entrant->graph);
}

static void run(race_t *race, const gs_product_t *product) {
  static const gs_phase_t phases[GS_CLOCK_COUNT] = {
      [GS_CLOCK_GPU] = GS_PHASE_GPU, [GS_CLOCK_WALL] = GS_PHASE_WALL, [GS_CLOCK_SERVER] = GS_PHASE_SERVER};
  gs_entrant_t *entrants[GS_LAYOUT_COUNT * GS_RUNNER_COUNT];
  int count = 0, first = GS_LAYOUT_COUNT;
  for (int l = GS_LAYOUT_COUNT - 1; l >= 0; l--)
    if (product->of[l]) enter_lane(race, (gs_layout_t)l), first = l;
  if (race->measure->foreigners->count && !*race->contest.stop) enter_foreign(race, (gs_layout_t)first);
  for (int l = 0; l < GS_LAYOUT_COUNT; l++)
    for (int x = 0; x < GS_RUNNER_COUNT; x++)
      if (race->runner[l][x]) entrants[count++] = &race->runner[l][x]->entrant;
  if (!race->runner[first][GS_RUNNER_OURS]) {
    snprintf(race->row->status, sizeof race->row->status, "cuBLAS refuses it");
    return;
  }
  int rounds = rounds_of(race, replay_us(race, &race->runner[first][GS_RUNNER_OURS]->entrant));
  race->row->rounds = rounds;
  for (int c = 0; c < GS_CLOCK_COUNT && !*race->contest.stop; c++) {
    if (!race->measure->clocks[c]) continue;
    gs_watch(&race->measure->watch, phases[c]);
    gs_contest_run(&race->contest, (gs_clock_kind_t)c, entrants, count, rounds);
    if (*race->contest.stop || !gs_gpu_ok(race->contest.gpu)) return;
    fill_clock(race, (gs_clock_kind_t)c);
    if (race->foreign) race_foreign(race, (gs_clock_kind_t)c, rounds);
  }
  if (race->foreign)
    snprintf(race->row->peer_name, sizeof race->row->peer_name, "%s", race->foreign->caller.foreign->name);
  for (int l = 0; l < GS_LAYOUT_COUNT; l++)
    if (product->of[l]) fill_door(race, (gs_layout_t)l);
}

static void clear(race_t *race, gs_layout_t first) {
  for (int l = 0; l < GS_LAYOUT_COUNT; l++) {
    for (int x = 0; x < GS_RUNNER_COUNT; x++) leave(race->runner[l][x]);
    if (l != (int)first && race->lane[l].lt.cublas) gs_lt_close(&race->lane[l].lt);
  }
  leave(race->foreign);
  for (int i = 0; i < 2; i++) leave(race->trains[i]);
}

bool gs_measure_product(gs_measure_t *measure, const gs_product_t *product, gs_bench_row_t *row) {
  gs_bench_t *bench = &measure->bench;
  gs_layout_t first = product->of[GS_LAYOUT_NN] ? GS_LAYOUT_NN : GS_LAYOUT_TN;
  *row = gs_bench_row(product->of[first], "ok");
  gs_watch(&measure->watch, GS_PHASE_PREPARE);
  if (!gs_bench_product(bench, product->of[first])) {
    *row = gs_bench_row(product->of[first], "the GPU's memory does not hold its operands");
    return gs_gpu_ok(bench->gpu) || gs_gpu_forgive(bench->gpu);
  }
  race_t *race = calloc(1, sizeof *race);
  if (!race) abort(); /* a tool, and a few kilobytes */
  race->measure = measure, race->row = row;
  race->contest = (gs_contest_t){.gpu = bench->gpu,
                                 .random = &bench->random,
                                 .copies = bench->copies,
                                 .calls = bench->calls,
                                 .idle = &measure->idle,
                                 .rate = measure->rate,
                                 .stop = measure->stop};
  row->copies = bench->copies;
  for (int l = 0; l < GS_LAYOUT_COUNT; l++)
    if (product->of[l]) open_lane(race, (gs_layout_t)l, product->of[l], l == (int)first);
  run(race, product);
  gs_watch(&measure->watch, GS_PHASE_RECORD);
  clear(race, first);
  free(race);
  if (gs_gpu_ok(bench->gpu)) return !*measure->stop;
  *row = gs_bench_row(product->of[first], bench->gpu->fault);
  return gs_gpu_forgive(bench->gpu);
}
