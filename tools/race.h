/* Contenders for one product, raced in heats: the slower ones leave. */
#ifndef GS_RACE_H
#define GS_RACE_H

#include "bench.h"
#include "watch.h"

#define GS_RACE_CONTENDERS_MAX 256

typedef struct {
  gs_contender_t *at[GS_RACE_CONTENDERS_MAX];
  int count;
} gs_side_t;

typedef struct {
  gs_bench_t *bench;
  gs_watch_t watch;    /* runs as long as the race is open */
  gs_contender_t *all; /* GS_RACE_CONTENDERS_MAX; whoever was measured, in the race or out */
  int count;
  gs_side_t kernels; /* ours */
  gs_side_t algos;   /* the library's, as a row may name them */
  gs_side_t theirs;  /* what the library does by itself, or at an autotuner's bidding */
} gs_race_t;

/* False without memory, or where the GPU's does not hold the operands of g. */
bool gs_race_open(gs_race_t *race, gs_bench_t *bench, const gs_gemm_t *g);
void gs_race_close(gs_race_t *race);

/* Lets it take part where it can compute the product. */
void gs_race_enter(gs_race_t *race, gs_contender_t contender);
/* Everyone still in the race runs, so many rounds or as many as a tenth of a second has room for; then the slower are out: all but
 * so many of each side of ours, and whoever takes more than within times what it must beat, the library's fastest, or, for the
 * library's algorithms, what programs call. Never for that the fastest kernel and whoever is close to it, nor what programs
 * call: cublasGemmEx and the heuristic's first choice. */
typedef struct {
  int rounds, kernels, algos;
  double within;
} gs_heat_t;
void gs_race_heat(gs_race_t *race, gs_heat_t heat);
/* Everyone in the race, as one list; returns how many. */
int gs_race_runners(const gs_race_t *race, gs_contender_t *runners[GS_RACE_CONTENDERS_MAX]);
gs_contender_t *
gs_race_fastest(const gs_side_t *side); /* by the median of its samples; NULL: nobody is there */
/* All contenders ever measured, fastest first. */
void gs_race_order(gs_race_t *race, gs_contender_t *order[GS_RACE_CONTENDERS_MAX]);
/* What programs get without us, by the entry point of the product: cublasGemmEx, or, of cublasLtMatmul, the
 * heuristic's first choice. NULL: it does not compute the product. */
gs_contender_t *gs_race_called(const gs_race_t *race);
gs_contender_t *gs_race_first(const gs_race_t *race); /* the heuristic's first choice, or NULL */

#endif
