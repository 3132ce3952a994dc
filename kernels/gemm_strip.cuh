/* Family strip, sm_90a: products whose k is at most the tile's, which are bound by what they store. A block keeps its rows
 * of A in shared memory and goes along n, 64 columns (a slice) at a time: the next slices of B are on their way while the
 * sums of one are stored. The includer sets what gemm_mma.cuh says, GS_BN to 64, GS_BK to no less than k, and
 * - GS_SLICES: slices of a block's tile, so that the tile is GS_BM x (64 GS_SLICES)
 * - GS_STAGES: slices of B that shared memory has room for, 2 or more
 * and calls gs_strip as gs_mma. k is never split. */
#ifndef GS_GEMM_STRIP_CUH
#define GS_GEMM_STRIP_CUH

#include "wgmma_multiply.cuh"

GS_ASSERT(GS_BN == GS_STRIP_BN, "a slice is as wide as the host thinks");

/* A, or a slice of B, whole: what of it lies beyond the matrix is zero along k, and anything along m and n. */
GS_DEVICE void gs_fetch_all(gs_loader_t *l, int tile, int kmajor, const gs_spot_t *spot) {
  if (gs_rarely(spot->ragged))
    gs_fetch_ragged(l, tile, kmajor, 0, 0, 0, spot->k);
  else
    gs_fetch(l, tile, kmajor, 0);
}

GS_DEVICE void gs_begin_rows(const gs_params_t *p, const gs_spot_t *spot, int kmajor_a, unsigned shared) {
  gs_loader_t a;
  gs_loader_init(&a, GS_BM, kmajor_a, 0, spot->a, p->lda, spot->m, p->m, shared);
  gs_fetch_all(&a, GS_BM, kmajor_a, spot);
}

/* Starts the copy of the slice that begins at n. b: where whole slices are, from one to the next. */
GS_DEVICE void gs_begin_slice(const gs_params_t *p, const gs_spot_t *spot, int kmajor_b, gs_loader_t *b,
                              int n, unsigned shared, unsigned stage) {
  if (gs_rarely(spot->ragged | (n + GS_BN > p->n))) {
    gs_loader_t last;
    gs_loader_init(&last, GS_BN, kmajor_b, 0, spot->b, p->ldb, n, p->n, shared + GS_A_BYTES + stage);
    gs_fetch_all(&last, GS_BN, kmajor_b, spot);
  } else {
    gs_fetch(b, GS_BN, kmajor_b, stage);
  }
}

/* Where tiles are not to be stored straight: a slice after the other, with nothing under way when the sums take the ring. */
GS_DEVICE void gs_strip_slowly(const gs_params_t *p, gs_spot_t *spot, int type, int d_type, int kmajor_a,
                               int kmajor_b, unsigned shared, unsigned at_m, unsigned at_n, int slices,
                               gs_acc_t acc) {
#pragma unroll 1
  for (int s = 0; s < slices; ++s, spot->n += GS_BN) {
    gs_loader_t b;
    gs_copy_wait(0);
    gs_fence_async();
    gs_sync(); /* the ring is free */
    gs_begin_rows(p, spot, kmajor_a, shared);
    gs_loader_init(&b, GS_BN, kmajor_b, 0, spot->b, p->ldb, spot->n, p->n, shared + GS_A_BYTES);
    gs_fetch_all(&b, GS_BN, kmajor_b, spot);
    gs_copy_commit();
    gs_copy_wait(0);
    gs_fence_async();
    gs_sync();
    gs_multiply_tile(type, kmajor_a, kmajor_b, at_m, at_n, 0, acc);
    gs_take_sums(acc);
    gs_finish(p, spot, d_type, shared, acc);
  }
}

GS_DEVICE void gs_strip(const gs_params_t *p, int type, int d_type, int transa, int transb) {
  gs_await_stream();
  const int kmajor_a = transa, kmajor_b = !transb;
  const unsigned shared = gs_shared_address();
  gs_spot_t spot = gs_find_spot(p, transa, transb);
  const int slices = gs_min(GS_SLICES, (p->n - spot.n + GS_BN - 1) / GS_BN);
  gs_loader_t b;
  gs_acc_t acc;
  gs_bias_t bias;
  unsigned reads = 0, writes = (GS_STAGES - 1) * GS_STAGE_BYTES; /* stages, as byte offsets */

  gs_begin_rows(p, &spot, kmajor_a, shared);
  gs_loader_init(&b, GS_BN, kmajor_b, 0, spot.b, p->ldb, spot.n, p->n, shared + GS_A_BYTES);
  b.step = kmajor_b ? p->ldb * (GS_BN * 2ll) : GS_BN * 2; /* to the next slice, not to the next k-tile */
#pragma unroll 1
  for (int s = 0; s < GS_STAGES - 1; ++s) {
    if (s < slices) gs_begin_slice(p, &spot, kmajor_b, &b, spot.n + s * GS_BN, shared, s * GS_STAGE_BYTES);
    gs_copy_commit();
  }
  spot.plain = gs_is_plain(p, &spot, d_type);
  if (GS_BIAS_EARLY) gs_fetch_bias(p, &spot, d_type, bias);

  const unsigned base = (shared & 0x3ffff) / 16;
  const unsigned at_m = base + gs_matrix_step(GS_BM, kmajor_a, spot.warp_m, 0), at_n = base + GS_A_BYTES / 16;
  if (!spot.plain) {
    gs_strip_slowly(p, &spot, type, d_type, kmajor_a, kmajor_b, shared, at_m, at_n, slices, acc);
    return;
  }
  const int last = spot.n + (slices - 1) * GS_BN;
#pragma unroll 1
  for (;; spot.n += GS_BN) {
    gs_copy_wait(GS_STAGES - 2);
    gs_fence_async();
    gs_sync(); /* this slice is there, and nobody reads the one before any more */
    gs_multiply_tile(type, kmajor_a, kmajor_b, at_m, at_n + reads / 16, 0, acc);
    const int next = spot.n + (GS_STAGES - 1) * GS_BN;
    if (next <= last) gs_begin_slice(p, &spot, kmajor_b, &b, next, shared, writes);
    gs_copy_commit();
    gs_take_sums(acc);
    gs_store_straight(p, &spot, d_type, bias, acc);
    if (spot.n == last) break;
    reads = reads == (GS_STAGES - 1) * GS_STAGE_BYTES ? 0 : reads + GS_STAGE_BYTES;
    writes = writes == (GS_STAGES - 1) * GS_STAGE_BYTES ? 0 : writes + GS_STAGE_BYTES;
  }
}

#endif
