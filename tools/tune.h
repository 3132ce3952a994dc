/* Tunes one product: finds the kernel, or the algorithm of the library's own, that wins, proves it, and fills in
 * its row. */
#ifndef GS_TUNE_H
#define GS_TUNE_H

#include "bench.h"
#include "gs_table.h"
#include "pool.h"
#include "race.h"

#define GS_TUNE_CANDIDATES     12 /* of our kernels and splits, measured, unless more are asked for */
#define GS_TUNE_CANDIDATES_MAX 128
#define GS_TUNE_SPLITS         3  /* of k, of each kernel that the model does not choose */
#define GS_TUNE_ROUNDS         31 /* of the last comparison, ... */
#define GS_TUNE_ROUNDS_CLEAR   11 /* ... where these leave a doubt */
#define GS_TUNE_ARRIVALS       16 /* of a winner and the library on the server clock */

/* Host-bound programs feel the wall clock: a row is also won by a tie on the gpu clock, whose interval may not
 * begin below TIE_LO, and a win on the wall clock whose interval begins above WALL_LO, so that what gemmshim
 * itself costs a call does not eat it. */
#define GS_TUNE_TIE_LO  0.97
#define GS_TUNE_WALL_LO 1.03

/* Told of every contender that ran, fastest first, when a product is done. */
typedef void (*gs_measured_t)(void *context, const gs_contender_t *contender);

typedef struct {
  const gs_pool_t *pool; /* our kernels, of which the cost model names candidates */
  const gs_pool_t *each; /* of which each takes part, at its best GS_TUNE_SPLITS splits; NULL: none */
  int split_max, candidates;
  int arrivals;           /* of a winner on the server clock; 0: none */
  bool out_of_reach;      /* also kernels that the model says are */
  bool quick;             /* few rounds, to try things out; proves nothing */
  gs_measured_t measured; /* NULL: nobody is told */
  void *context;
  const gs_row_t
      *row; /* its kernel or algorithm alone is measured, at g's n; NULL: whatever the cost model names */
} gs_tune_options_t;

typedef enum {
  GS_TUNE_WIN, /* row is to be written: faster by a 95% interval, on the gpu clock or by_wall, and accurate */
  GS_TUNE_TIE, /* the interval holds 1 */
  GS_TUNE_LOSS,  /* the library is faster */
  GS_TUNE_WRONG, /* would have won, but failed the gate: a fault in a kernel */
  GS_TUNE_NONE,  /* no contender of ours, or none of the library's */
} gs_tune_verdict_t;

extern const char *const gs_tune_verdict_names[];

typedef struct {
  gs_tune_verdict_t verdict;
  gs_gemm_t gemm;
  gs_row_t row;        /* of the best kernel, won or not; not of NONE */
  bool by_wall;        /* won on the wall clock, tied on the gpu clock */
  gs_interval_t ratio; /* library over ours, gpu clock: for a kernel that of the library's best, for an
                                  * algorithm that of what programs get without it */
  double gemm_ex_us;   /* cublasGemmEx, gpu clock; 0: not asked (an epilogue) */
  char library[48];    /* the contender that library_us is of */
  int candidates, lt_candidates; /* measured */
  int rounds;                    /* of the last comparison */
  int copies;                    /* of the operands */
  double error, bound;           /* of the gate; WIN and WRONG only */
  char why[128];                 /* of WRONG and NONE */
  gs_watch_t watch;              /* stopped */
} gs_tuned_t;

/* Runs the heats: the fastest kernel is left in the race, and what may win, or must be beaten. Returns how many kernels
 * and splits took part. */
int gs_tune_select(gs_race_t *race, const gs_tune_options_t *options);

/* Of a table measured now on this GPU with this cuBLAS. */
gs_table_header_t gs_tune_header(const gs_gpu_t *gpu, const gs_cublas_t *cublas);

/* What the library's heuristic chooses for g, as one number. */
uint64_t gs_tune_library(gs_bench_t *bench, const gs_gemm_t *g);

gs_tuned_t gs_tune(gs_bench_t *bench, const gs_gemm_t *g, const gs_tune_options_t *options);

#endif
