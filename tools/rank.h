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

/* Writes the limit best candidates of the pool for g, best first; returns how many there are. split_k goes up to
 * split_max, with workspace up to workspace_max bytes. */
int gs_rank(gs_gpu_t *gpu, const gs_pool_t *pool, const gs_gemm_t *g, int split_max, size_t workspace_max,
            gs_candidate_t *best, int limit);

#endif
