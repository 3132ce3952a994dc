/* Measures one product, or a pair that differs only in A's layout, against all baselines at once. */
#ifndef GS_BENCH_PRODUCT_H
#define GS_BENCH_PRODUCT_H

#include "bench.h"
#include "bench_row.h"
#include "door.h"
#include "foreign.h"
#include "watch.h"

typedef struct {
  const gs_gemm_t *of[GS_LAYOUT_COUNT]; /* by gs_layout_of; NULL: not wanted */
} gs_product_t;

typedef struct {
  gs_bench_t bench;
  gs_door_t door;
  const gs_foreigners_t *foreigners;
  gs_idle_t idle;                     /* open where there are foreigners */
  bool clocks[GS_CLOCK_COUNT], again; /* which to read; whether to measure the noise */
  int rounds;                         /* of each contender on each clock, fewer where they are long */
  double rate;                        /* arrivals a second */
  const volatile sig_atomic_t *stop;
  gs_watch_t watch;
} gs_measure_t;

/* False where it was stopped or the GPU is lost (bench.gpu); else the row, whose status may tell why the product
 * cannot be measured. */
bool gs_measure_product(gs_measure_t *measure, const gs_product_t *product, gs_bench_row_t *row);

#endif
