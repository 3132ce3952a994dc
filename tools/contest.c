#include "contest.h"

#include <math.h>
#include <string.h>

#include "progress.h"

#define X(name, text) text,
const char *const gs_clock_kind_names[GS_CLOCK_COUNT] = {GS_CLOCKS(X)};
#undef X

#define IDLE_BYTES (64u << 20)
#define IDLE_US    500 /* longer than the host takes to queue a train */
#define IDLE_TRIES 8

static void synchronise(const gs_contest_t *contest, const gs_entrant_t *entrant) {
  if (entrant->train)
    gs_gpu_note(contest->gpu, gs_driver_tools.cuCtxSynchronize(), "cuCtxSynchronize");
  else
    gs_gpu_sync(contest->gpu);
}

typedef struct {
  const gs_contest_t *contest;
  gs_entrant_t *entrant;
} recording_t;

static bool record(void *context) {
  recording_t *r = context;
  for (int i = 0; i < r->contest->calls; i++)
    if (!r->entrant->call(r->entrant->self, i % r->contest->copies)) return false;
  return true;
}

bool gs_entrant_ready(const gs_contest_t *contest, gs_entrant_t *entrant) {
  gs_gpu_t *gpu = contest->gpu;
  if (!gs_gpu_ok(gpu)) return false;
  /* The first call loads code, which a capture must not. */
  bool ran = entrant->call(entrant->self, 0);
  synchronise(contest, entrant);
  if (ran && gs_gpu_ok(gpu) && !entrant->train)
    entrant->graph = gs_gpu_capture(gpu, record, &(recording_t){contest, entrant});
  if (ran && gs_gpu_ok(gpu) && (entrant->graph || entrant->train)) return true;
  if (!gs_gpu_ok(gpu)) gs_gpu_forgive(gpu);
  return false;
}

void gs_entrant_done(gs_entrant_t *entrant) {
  if (entrant->graph) gs_driver_tools.cuGraphExecDestroy(entrant->graph);
  entrant->graph = NULL;
}

void gs_entrant_warm(const gs_contest_t *contest, gs_entrant_t *entrant, double seconds) {
  for (double end = gs_seconds() + seconds; gs_seconds() < end && gs_gpu_ok(contest->gpu);)
    gs_gpu_replay(contest->gpu, entrant->graph);
}

/* ---- trains ---- */

/* Microseconds between two events on the default stream, which waits for the streams that calls work on. */
static void begin(gs_gpu_t *gpu) {
  gs_gpu_note(gpu, gs_driver_tools.cuEventRecord(gpu->begin, NULL), "cuEventRecord");
}
static double end(gs_gpu_t *gpu) {
  float ms = 0;
  gs_gpu_note(gpu, gs_driver_tools.cuEventRecord(gpu->end, NULL), "cuEventRecord");
  gs_gpu_note(gpu, gs_driver_tools.cuCtxSynchronize(), "cuCtxSynchronize");
  gs_gpu_note(gpu, gs_driver_tools.cuEventElapsedTime(&ms, gpu->begin, gpu->end), "cuEventElapsedTime");
  return 1e3 * ms;
}

static void fill(const gs_idle_t *idle, gs_gpu_t *gpu, int times) {
  for (int i = 0; i < times; i++) gs_gpu_fill(gpu, idle->memory, 0, IDLE_BYTES);
}

bool gs_idle_open(gs_idle_t *idle, gs_gpu_t *gpu) {
  *idle = (gs_idle_t){.memory = gs_gpu_alloc(gpu, IDLE_BYTES)};
  fill(idle, gpu, IDLE_TRIES);
  begin(gpu);
  fill(idle, gpu, IDLE_TRIES);
  double us = end(gpu) / IDLE_TRIES;
  idle->fills = us > 1 ? (int)ceil(IDLE_US / us) : IDLE_US;
  return gs_gpu_ok(gpu);
}

void gs_idle_close(gs_idle_t *idle, gs_gpu_t *gpu) {
  gs_gpu_free(gpu, idle->memory);
  *idle = (gs_idle_t){0};
}

static double train(const gs_contest_t *contest, const gs_entrant_t *entrant) {
  gs_gpu_t *gpu = contest->gpu;
  int first = (int)gs_random_below(contest->random, (uint64_t)contest->copies);
  fill(contest->idle, gpu, contest->idle->fills);
  begin(gpu);
  for (int i = 0; i < GS_CONTEST_TRAIN; i++) entrant->call(entrant->self, (first + i) % contest->copies);
  return end(gpu) / GS_CONTEST_TRAIN;
}

/* ---- clocks ---- */

static double replay(const gs_contest_t *contest, const gs_entrant_t *entrant) {
  if (entrant->train) return train(contest, entrant);
  return gs_gpu_replay(contest->gpu, entrant->graph) / contest->calls;
}

static double call_and_wait(const gs_contest_t *contest, const gs_entrant_t *entrant) {
  int copy = (int)gs_random_below(contest->random, (uint64_t)contest->copies);
  double begin = gs_seconds();
  entrant->call(entrant->self, copy);
  synchronise(contest, entrant);
  return 1e6 * (gs_seconds() - begin);
}

/* The host spins meanwhile, so that only the GPU goes to rest. */
static double arrive(const gs_contest_t *contest, const gs_entrant_t *entrant) {
  double u = (double)(gs_random_next(contest->random) >> 11) * 0x1p-53;
  for (double due = gs_seconds() - log(1 - u) / contest->rate; gs_seconds() < due;) continue;
  return call_and_wait(contest, entrant);
}

static double (*const samplers[GS_CLOCK_COUNT])(const gs_contest_t *, const gs_entrant_t *) = {
    [GS_CLOCK_GPU] = replay, [GS_CLOCK_WALL] = call_and_wait, [GS_CLOCK_SERVER] = arrive};

void gs_contest_run(const gs_contest_t *contest, gs_clock_kind_t clock, gs_entrant_t **entrants, int count,
                    int rounds) {
  int order[count];
  for (int i = 0; i < count; i++) order[i] = i;
  for (int round = 0; round < rounds; round++) {
    gs_random_shuffle(contest->random, order, (size_t)count);
    for (int i = 0; i < count && !(contest->stop && *contest->stop) && gs_gpu_ok(contest->gpu); i++) {
      gs_entrant_t *entrant = entrants[order[i]];
      double us = samplers[clock](contest, entrant);
      if (entrant->count[clock] < GS_CONTEST_ROUNDS_MAX) entrant->us[clock][entrant->count[clock]++] = us;
    }
  }
}

void gs_entrant_forget(gs_entrant_t *entrant) {
  memset(entrant->count, 0, sizeof entrant->count);
}

double gs_entrant_us(const gs_entrant_t *entrant, gs_clock_kind_t clock) {
  int count = entrant->count[clock];
  return count ? gs_median(entrant->us[clock], (size_t)count) : INFINITY;
}

gs_interval_t gs_entrant_ratio(const gs_entrant_t *x, const gs_entrant_t *y, gs_clock_kind_t clock) {
  int rounds = x->count[clock] < y->count[clock] ? x->count[clock] : y->count[clock];
  if (!rounds) return (gs_interval_t){NAN, NAN, NAN};
  return gs_ratio_of_medians(x->us[clock], y->us[clock], (size_t)rounds, 1);
}
