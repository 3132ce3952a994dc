/* Which kernels and splits of k are worth measuring for a product: a cost model orders them all. */
#ifndef GS_RANK_H
#define GS_RANK_H

#include "gpu.h"
#include "pool.h"

typedef struct {
  int index; /* as gs_kernel_at */
  int split_k;
  double us; /* predicted */
} gs_candidate_t;

typedef struct {
  const gs_gemm_t *gemm;
  int split_max;        /* of k */
  size_t workspace_max; /* bytes */
} gs_rank_for_t;

/* Writes the limit best candidates of the pool, best first; returns how many there are. */
int gs_rank(const gs_gpu_t *gpu, const gs_pool_t *pool, const gs_rank_for_t *to, gs_candidate_t *best,
            int limit);
/* The same of one family alone. */
int gs_rank_family(const gs_gpu_t *gpu, const gs_pool_t *pool, gs_family_t family, const gs_rank_for_t *to,
                   gs_candidate_t *best, int limit);
/* The same for one kernel: its best splits. */
int gs_rank_splits(const gs_gpu_t *gpu, int index, const gs_rank_for_t *to, gs_candidate_t *best, int limit);
/* What a kernel that is not compiled would take, at its best split; INFINITY where no block fits the GPU. */
gs_candidate_t gs_rank_guessed(const gs_gpu_t *gpu, const gs_kernel_t *k, const gs_rank_for_t *to);
double gs_rank_guess(const gs_gpu_t *gpu, const gs_kernel_t *k, const gs_rank_for_t *to);

#endif
