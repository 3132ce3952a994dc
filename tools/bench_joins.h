/* Figures from elsewhere, beside those that `bench` measured, over the same products. */
#ifndef GS_BENCH_JOINS_H
#define GS_BENCH_JOINS_H

#include "bench_claims.h"

/* One column of a file of published speed-ups, and ours over the products that both know. */
typedef struct {
  const char *column; /* valid as long as the joiner runs */
  gs_clock_kind_t clock;
  gs_rival_t rival;
  gs_claim_t theirs, ours;
} gs_join_t;
typedef void (*gs_joiner_t)(void *context, const gs_join_t *join);

/* A file with columns m, n, k (row-major) and offline_X, server_X for X in cublas, lt_heuristic, lt_autotune:
 * speed-ups of somebody's kernels, in their own harness. Rows whose column accumulator does not say f32 are left
 * out. Calls f for each column that is there; false (said) where the file cannot be read. */
bool gs_join_published(const gs_bench_set_t *set, const char *path, gs_joiner_t f, void *context);

/* A file that tests/e2e/torch_matmul.py writes: columns m, n, k (row-major), layout (nn, tn), gpu, wall, server
 * (microseconds). Calls f for each clock and layout with claims of ours against it (theirs is empty). */
typedef struct {
  gs_clock_kind_t clock;
  int layout;
  gs_claim_t claim;
} gs_torch_t;
bool gs_join_torch(const gs_bench_set_t *set, const char *path,
                   void (*f)(void *context, const gs_torch_t *torch), void *context);

#endif
