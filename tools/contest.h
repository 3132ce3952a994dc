/* Calls timed against each other: interleaved in random order, round by round, on three clocks.
 *   gpu     time per call inside a replayed CUDA graph whose calls go round copies of the operands
 *   wall    host time of one call and a synchronise, on operands picked at random
 *   server  the same after an idle gap, exponentially distributed: Poisson arrivals at a quiet server */
#ifndef GS_CONTEST_H
#define GS_CONTEST_H

#include <signal.h>

#include "gpu.h"
#include "stats.h"

/* name; also in the names of columns */
#define GS_CLOCKS(X)  X(GPU, "gpu") X(WALL, "wall") X(SERVER, "server")
#define X(name, text) GS_CLOCK_##name,
typedef enum { GS_CLOCKS(X) GS_CLOCK_COUNT } gs_clock_kind_t;
#undef X
extern const char *const gs_clock_kind_names[GS_CLOCK_COUNT];

#define GS_CONTEST_ROUNDS_MAX 128
#define GS_CONTEST_RATE       1000 /* arrivals a second, unless others are asked for */
#define GS_CONTEST_TRAIN      32   /* calls; see gs_entrant_t */

typedef struct {
  /* Puts one call on the operands of that copy to work; false where it is refused. */
  bool (*call)(void *self, int copy);
  void *self;
  /* Works on the default stream, which cannot be captured: its gpu clock is the time per call of a train of
   * calls, queued while the GPU is kept busy so that the host's own time does not show. */
  bool train;
  CUgraphExec graph;
  double us[GS_CLOCK_COUNT][GS_CONTEST_ROUNDS_MAX];
  int count[GS_CLOCK_COUNT];
} gs_entrant_t;

/* Work that keeps the GPU busy while a train is queued: fills of memory that nobody needs. */
typedef struct {
  CUdeviceptr memory;
  int fills;
} gs_idle_t;
bool gs_idle_open(gs_idle_t *idle, gs_gpu_t *gpu);
void gs_idle_close(gs_idle_t *idle, gs_gpu_t *gpu);

typedef struct {
  gs_gpu_t *gpu;
  gs_random_t *random;
  int copies, calls;                 /* of the operands; in a graph */
  const gs_idle_t *idle;             /* for trains */
  double rate;                       /* arrivals a second, server clock */
  const volatile sig_atomic_t *stop; /* NULL: never */
} gs_contest_t;

/* Runs it once and records its graph; false where it refuses. */
bool gs_entrant_ready(const gs_contest_t *contest, gs_entrant_t *entrant);
void gs_entrant_done(gs_entrant_t *entrant);
/* Keeps the GPU busy with it until the clocks are up. */
void gs_entrant_warm(const gs_contest_t *contest, gs_entrant_t *entrant, double seconds);

/* Adds rounds samples to each, unless stopped or the GPU fails. */
void gs_contest_run(const gs_contest_t *contest, gs_clock_kind_t clock, gs_entrant_t **entrants, int count,
                    int rounds);

/* Throws its samples away: what chose it must not judge it. */
void gs_entrant_forget(gs_entrant_t *entrant);
/* Median microseconds; infinite where there is no sample. */
double gs_entrant_us(const gs_entrant_t *entrant, gs_clock_kind_t clock);
/* median(x) / median(y) with its interval; NAN where one has no sample. They ran in the same rounds, of which one may
 * have left early: then those rounds count. */
gs_interval_t gs_entrant_ratio(const gs_entrant_t *x, const gs_entrant_t *y, gs_clock_kind_t clock);

#endif
