/* Family mma: a block's sums, by mma.sync from fragments that ldmatrix takes out of the ring. */
#ifndef GS_MMA_MULTIPLY_CUH
#define GS_MMA_MULTIPLY_CUH

#include "mma_finish.cuh"
#include "mma_loader.cuh"

enum { GS_BLOCKS = 1 }; /* of a multiprocessor, at least */

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

/* acc = op(A) op(B) over this block's k-tiles, one at least. */
GS_DEVICE void gs_multiply(const gs_params_t *p, gs_spot_t *spot, int type, int d_type, int transa,
                           int transb, unsigned shared, gs_bias_t bias, gs_acc_t acc) {
  const int kmajor_a = transa, kmajor_b = !transb;
  /* How the tile is stored is found out under cover of the loads, but where that would cost a spill. */
  const int late = GS_N16 * GS_M8 >= 32 && kmajor_a == kmajor_b;
  gs_feed_t feed;
  gs_feed_begin(&feed, p, spot, kmajor_a, kmajor_b, shared, 1);
  if (!late) spot->plain = gs_opaque(gs_is_plain(p, spot, d_type)); /* what it reads of p is near then */
  if (GS_BIAS_EARLY) gs_fetch_bias(p, spot, d_type, bias);

  gs_clear(acc);
  unsigned at_m[GS_ADDRESSES], at_n[GS_ADDRESSES];
  gs_addresses(at_m, GS_BM, kmajor_a, 0, spot->warp_m, GS_M16, shared);
  gs_addresses(at_n, GS_BN, kmajor_b, 1, spot->warp_n, GS_N16, shared + GS_A_BYTES);

  unsigned rows[GS_BUFFERS][GS_N16][4], columns[GS_BUFFERS][GS_M16][4];
  unsigned reads = 0, writes = 0; /* stages, as byte offsets */
  int left = spot->tiles, unfetched = left - GS_STAGES, fetching = 0;
#define GS_READ(ks)                                                                                          \
  (gs_fragments(rows[(ks) % GS_BUFFERS], at_n, GS_BN, kmajor_b, GS_N16, reads, ks),                          \
   gs_fragments(columns[(ks) % GS_BUFFERS], at_m, GS_BM, kmajor_a, GS_M16, reads, ks))
#define GS_STEP(ks) gs_step(acc, type, rows[(ks) % GS_BUFFERS], columns[(ks) % GS_BUFFERS])

  if (left < GS_STAGES - 1)
    gs_copy_wait(0); /* fewer groups than the ring has room for */
  else
    gs_copy_wait(GS_STAGES - 2);
  gs_sync();
  GS_READ(0);
#pragma unroll 1
  for (;;) {
#pragma unroll
    for (int ks = 0; ks < GS_KS - 1; ++ks) {
      if (GS_BUFFERS > 1) GS_READ(ks + 1);
      if (ks == 0 && fetching) gs_fetch(&feed.a, GS_BM, kmajor_a, writes);
      if (ks == (GS_KS > 2) && fetching) gs_fetch(&feed.b, GS_BN, kmajor_b, writes);
      if (ks == (GS_KS > 2)) gs_copy_commit();
      GS_STEP(ks);
      if (GS_BUFFERS == 1) GS_READ(ks + 1);
    }
    if (--left == 0) break;
    if (fetching) {
      gs_deposit(&feed.a, GS_BM, writes);
      gs_deposit(&feed.b, GS_BN, writes);
    }
    if (GS_BUFFERS == 1) GS_STEP(GS_KS - 1);
    /* The next stage has landed, and nobody reads this one any more. */
    gs_copy_wait(GS_STAGES - 2);
    gs_sync();
    fetching = unfetched-- > 0;
    writes = reads;
    reads = reads == GS_RING_BYTES - GS_STAGE_BYTES ? 0 : reads + GS_STAGE_BYTES;
    GS_READ(0);
    if (GS_BUFFERS > 1) GS_STEP(GS_KS - 1);
  }
  GS_STEP(GS_KS - 1);
  if (late) spot->plain = gs_is_plain(p, spot, d_type);
#undef GS_READ
#undef GS_STEP
}

#endif
