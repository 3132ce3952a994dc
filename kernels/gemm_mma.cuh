/* Families mma and wgmma: D = epilogue(alpha op(A) op(B) + beta C), by mma.sync, sm_80 and up, or with GS_IS_WGMMA by
 * wgmma, sm_90a alone. The includer sets
 * - GS_BM GS_BN GS_BK: tile, m, n, k in elements (multiples of 16, 16, 32)
 * - GS_STAGES: k-tiles in flight, 2 or more
 * - GS_WARPS: 1 or more
 * - GS_ALIGN: bytes that addresses and leading dimensions divide by: 16, or 2 (loads by way of registers)
 * and calls gs_mma with its own constants for types and layout; everything is inlined, so that branches on
 * them vanish.
 *
 * The transposed product is computed: the instruction's 16 rows run along n and its 8 columns along m, so
 * that a thread's accumulators lie in pairs along D's contiguous direction.
 *
 * Where k ends inside a k-tile, or the last row of m or n inside a chunk, the last k-tile goes first: the main
 * loop then copies whole 16-byte chunks, and asks nothing about k. Rows beyond m or n are not zeroed but read from
 * elsewhere inside, or not copied: what they add up to is never stored. Only along k is zero-filling needed.
 *
 * Split-K: without a workspace (sm_90) the parts of a tile are a cluster, whose blocks send their sums to each
 * other's shared memory; with one, the last block to arrive adds up what all left there. The order of
 * summation is fixed. */
#ifndef GS_GEMM_MMA_CUH
#define GS_GEMM_MMA_CUH

#ifdef GS_IS_WGMMA
#include "wgmma_multiply.cuh"
#else
#include "mma_multiply.cuh"
#endif

GS_DEVICE void gs_mma(const gs_params_t *p, int type, int d_type, int transa, int transb) {
  gs_await_stream();
  const unsigned shared = gs_shared_address();
  gs_spot_t spot = gs_find_spot(p, transa, transb);
  gs_acc_t acc;
  gs_bias_t bias;
  gs_multiply(p, &spot, type, d_type, transa, transb, shared, bias, acc);
  if (spot.plain) {
    gs_store_straight(p, &spot, d_type, bias, acc);
    return;
  }
#if GS_CLUSTERS
  if (gs_in_cluster(p)) {
    gs_send_parts(&spot, p->split_k, shared + GS_RING_BYTES, acc);
    gs_finish_part(p, &spot, d_type, shared + GS_RING_BYTES);
    return;
  }
#endif
  if (p->split_k > 1 && !gs_gather_parts(p, &spot, acc)) return;
  gs_finish(p, &spot, d_type, shared, acc);
}

#endif
