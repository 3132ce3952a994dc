#include "contest.h"

#include <math.h>

#include "progress.h"

#define X(name, text) text,
const char *const gs_clock_kind_names[GS_CLOCK_COUNT] = {GS_CLOCKS(X)};
#undef X

#define IDLE_FILLS 24 /* before a train: longer on the GPU than the host takes to queue the train */

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

/* Events on the default stream wait for, and hold up, the streams that calls work on. */
static double train(const gs_contest_t *contest, const gs_entrant_t *entrant) {
  gs_gpu_t *gpu = contest->gpu;
  float ms = 0;
  int first = (int)gs_random_below(contest->random, (uint64_t)contest->copies);
  for (int i = 0; i < IDLE_FILLS; i++) gs_gpu_fill(gpu, contest->idle, 0, contest->idle_bytes);
  gs_gpu_note(gpu, gs_driver_tools.cuEventRecord(gpu->begin, NULL), "cuEventRecord");
  for (int i = 0; i < GS_CONTEST_TRAIN; i++) entrant->call(entrant->self, (first + i) % contest->copies);
  gs_gpu_note(gpu, gs_driver_tools.cuEventRecord(gpu->end, NULL), "cuEventRecord");
  gs_gpu_note(gpu, gs_driver_tools.cuCtxSynchronize(), "cuCtxSynchronize");
  gs_gpu_note(gpu, gs_driver_tools.cuEventElapsedTime(&ms, gpu->begin, gpu->end), "cuEventElapsedTime");
  return 1e3 * ms / GS_CONTEST_TRAIN;
}

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
    for (int i = 0; i < count && !*contest->stop && gs_gpu_ok(contest->gpu); i++) {
      gs_entrant_t *entrant = entrants[order[i]];
      double us = samplers[clock](contest, entrant);
      if (entrant->count[clock] < GS_CONTEST_ROUNDS_MAX) entrant->us[clock][entrant->count[clock]++] = us;
    }
  }
}

double gs_entrant_us(const gs_entrant_t *entrant, gs_clock_kind_t clock) {
  int count = entrant->count[clock];
  return count ? gs_median(entrant->us[clock], (size_t)count) : INFINITY;
}
