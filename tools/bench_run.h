/* The measuring process of `bench`: it has the library preloaded and runs under the command that made it, which
 * goes on where a product, or a foreign kernel, ends it. */
#ifndef GS_BENCH_RUN_H
#define GS_BENCH_RUN_H

#include "contest.h"
#include "points.h"

typedef struct {
  gs_points_t points;
  const char *output, *cublas, *peer;
  bool clocks[GS_CLOCK_COUNT], again, busy_ok;
  long rounds, rate, device, budget, seed, sample; /* budget, sample 0: no limit */
} gs_bench_options_t;

#define GS_BENCH_LOST 5 /* exit status: the GPU's context is lost, a fresh process can go on */

/* The file in folder that holds the product at hand, as gs_gemm_format writes it. */
#define GS_BENCH_AT "at"

/* Measures what the output lacks; folder is GEMMSHIM_CALLS and holds nothing else. Returns an exit status. */
int gs_bench_run(const gs_bench_options_t *options, const char *folder);

#endif
