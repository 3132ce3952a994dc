/* Candidates from the generated space (space.h), for one product at a time. */
#ifndef GS_SEARCH_H
#define GS_SEARCH_H

#include "rank.h"

#define GS_SEARCH         24 /* kernels, unless another number is asked for */
#define GS_SEARCH_MAX     1024
#define GS_SEARCH_OF_TILE 4 /* of one tile: those differ little */

/* Adds the wanted best of the space, by the cost model, to found; those that made lacks, which lives longer, are
 * compiled and join it. Where some are refused, the next best take their places, once. */
gs_pool_tally_t gs_search(gs_pool_t *found, gs_pool_t *made, const gs_gpu_t *gpu, const gs_rank_for_t *to,
                          int wanted, const volatile sig_atomic_t *stopped);

#endif
