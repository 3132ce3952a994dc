/* Family mma: D = epilogue(alpha op(A) op(B) + beta C) by mma.sync, sm_80 and up. The includer sets
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
 * loop then copies whole 16-byte chunks without a predicate. Rows beyond m or n are not zeroed but read from
 * the last legal row: what they add up to is never stored. Only along k is zero-filling needed.
 *
 * Split-K: without a workspace (sm_90) the parts of a tile are a cluster, whose blocks send their sums to each
 * other's shared memory; with one, the last block to arrive adds up what all left there. The order of
 * summation is fixed. */
#ifndef GS_GEMM_MMA_CUH
#define GS_GEMM_MMA_CUH

#include "mma_finish.cuh"
#include "mma_loader.cuh"

GS_DEVICE void gs_step(gs_acc_t acc, int type, unsigned rows[GS_N16][4], unsigned columns[GS_M16][4]) {
#pragma unroll
  for (int i = 0; i < GS_N16; ++i) {
#pragma unroll
    for (int f = 0; f < GS_M8; ++f) {
      if (type == GS_E_BF16)
        gs_mma_bf16(acc[i][f], rows[i], columns[f / 2] + f % 2 * 2);
      else
        gs_mma_f16(acc[i][f], rows[i], columns[f / 2] + f % 2 * 2);
    }
  }
}

/* acc += op(A) op(B) over this block's k-tiles, one at least. */
GS_DEVICE void gs_multiply(const gs_params_t *p, gs_spot_t *spot, int type, int d_type, int transa,
                           int transb, unsigned shared, gs_acc_t acc) {
  const int kmajor_a = transa, kmajor_b = !transb;
  const int k0 = spot->first * GS_BK, ahead = spot->tiles - 1;
  const char *base_a = (const char *)p->a, *base_b = (const char *)p->b;
  if (p->stride_a)
    base_a += blockIdx.z * p->stride_a * 2; /* else there is no need to wait for the block's z */
  if (p->stride_b) base_b += blockIdx.z * p->stride_b * 2;
  gs_loader_t a, b;
  gs_loader_init(&a, GS_BM, kmajor_a, spot->a, p->lda, spot->m, p->m, shared);
  gs_loader_init(&b, GS_BN, kmajor_b, spot->b, p->ldb, spot->n, p->n, shared + GS_A_BYTES);

  if (gs_rarely(spot->ragged)) {
    gs_fetch_ragged(&a, GS_BM, kmajor_a, 0, ahead * a.step, k0 + ahead * GS_BK, p->k);
    gs_fetch_ragged(&b, GS_BN, kmajor_b, 0, ahead * b.step, k0 + ahead * GS_BK, p->k);
  } else {
    gs_fetch(&a, GS_BM, kmajor_a, 0);
    gs_fetch(&b, GS_BN, kmajor_b, 0);
  }
  gs_deposit(&a, GS_BM, 0);
  gs_deposit(&b, GS_BN, 0);
  gs_copy_commit();
#pragma unroll 1 /* code that was never run has to be fetched first: a loop is faster than its copies */
  for (int s = 1; s < gs_min(spot->tiles, GS_STAGES - 1); ++s) {
    gs_fetch(&a, GS_BM, kmajor_a, s * GS_STAGE_BYTES);
    gs_fetch(&b, GS_BN, kmajor_b, s * GS_STAGE_BYTES);
    gs_deposit(&a, GS_BM, s * GS_STAGE_BYTES);
    gs_deposit(&b, GS_BN, s * GS_STAGE_BYTES);
    gs_copy_commit();
  }
  spot->plain = gs_opaque(gs_is_plain(p, spot, d_type)); /* what it reads of p is near when the end comes */

  unsigned at_m[GS_ADDRESSES], at_n[GS_ADDRESSES];
  gs_addresses(at_m, GS_BM, kmajor_a, 0, spot->warp_m, GS_M16, shared);
  gs_addresses(at_n, GS_BN, kmajor_b, 1, spot->warp_n, GS_N16, shared + GS_A_BYTES);

  unsigned rows[2][GS_N16][4], columns[2][GS_M16][4];
  unsigned reads = 0, writes = (GS_STAGES - 1) * GS_STAGE_BYTES; /* stages, as byte offsets */
  int left = spot->tiles, unfetched = spot->tiles - (GS_STAGES - 1);

  if (unfetched < 0)
    gs_copy_wait(0); /* fewer groups than the ring has room for */
  else
    gs_copy_wait(GS_STAGES - 2);
  gs_sync();
  gs_fragments(rows[0], at_n, GS_BN, kmajor_b, GS_N16, reads, 0);
  gs_fragments(columns[0], at_m, GS_BM, kmajor_a, GS_M16, reads, 0);
#pragma unroll 1
  for (;;) {
    const int fetching = unfetched-- > 0;
#pragma unroll
    for (int ks = 0; ks < GS_KS - 1; ++ks) {
      gs_fragments(rows[(ks + 1) % 2], at_n, GS_BN, kmajor_b, GS_N16, reads, ks + 1);
      gs_fragments(columns[(ks + 1) % 2], at_m, GS_BM, kmajor_a, GS_M16, reads, ks + 1);
      if (ks == 0 && fetching) gs_fetch(&a, GS_BM, kmajor_a, writes);
      if (ks == (GS_KS > 2) && fetching) gs_fetch(&b, GS_BN, kmajor_b, writes);
      if (ks == (GS_KS > 2)) gs_copy_commit();
      gs_step(acc, type, rows[ks % 2], columns[ks % 2]);
    }
    if (--left == 0) break;
    if (fetching) {
      gs_deposit(&a, GS_BM, writes);
      gs_deposit(&b, GS_BN, writes);
    }
    /* The next stage has landed, and nobody reads the one before it any more. */
    gs_copy_wait(GS_STAGES - 2);
    gs_sync();
    reads = reads == GS_RING_BYTES - GS_STAGE_BYTES ? 0 : reads + GS_STAGE_BYTES;
    writes = writes == GS_RING_BYTES - GS_STAGE_BYTES ? 0 : writes + GS_STAGE_BYTES;
    gs_fragments(rows[0], at_n, GS_BN, kmajor_b, GS_N16, reads, 0);
    gs_fragments(columns[0], at_m, GS_BM, kmajor_a, GS_M16, reads, 0);
    gs_step(acc, type, rows[1], columns[1]);
  }
  gs_step(acc, type, rows[1], columns[1]);
}

GS_DEVICE void gs_mma(const gs_params_t *p, int type, int d_type, int transa, int transb) {
  const unsigned shared = gs_shared_address();
  gs_spot_t spot = gs_find_spot(p, transa, transb);
  gs_acc_t acc;
#pragma unroll
  for (int i = 0; i < GS_N16 * GS_M8; ++i) {
#pragma unroll
    for (int r = 0; r < 4; ++r) acc[i / GS_M8][i % GS_M8][r] = 0.0f;
  }
  if (spot.tiles > 0) gs_multiply(p, &spot, type, d_type, transa, transb, shared, acc);
  if (spot.plain) {
    gs_store_straight(p, &spot, d_type, acc);
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
