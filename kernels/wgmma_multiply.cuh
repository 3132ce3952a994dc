/* Families wgmma and strip: a block's sums, by wgmma straight from the ring, whose panels of 64 elements are what the instruction
 * calls a 128-byte swizzle. Its 64 rows run along n, its columns along m: a thread's sums lie as in family mma. */
#ifndef GS_WGMMA_MULTIPLY_CUH
#define GS_WGMMA_MULTIPLY_CUH

#include "mma_finish.cuh"
#include "mma_loader.cuh"
#include "wgmma_ptx.cuh"

GS_ASSERT(GS_WARPS_N % 4 == 0 && GS_N16 == 1, "a warpgroup computes 64 columns of the tile");
GS_ASSERT(GS_BK % 64 == 0 && GS_WM % 64 == 0, "panels of 64");

/* A deep ring is filled again two stages behind the products, under their cover. A shallow one, which leaves room for more blocks
 * a multiprocessor, waits for the products of a stage before it fills that stage again: other blocks work meanwhile. */
#define GS_SHALLOW (GS_STAGES < 4)
#define GS_BEHIND  (GS_SHALLOW ? 0 : 2)
/* Groups of copies that need not have landed. */
#define GS_PENDING (GS_SHALLOW ? GS_STAGES - 1 : GS_STAGES - 4)

/* Blocks of a multiprocessor: where others are to work while one waits or stores, as many as registers (the sums, and some)
 * and shared memory allow. */
enum {
  GS_BY_REGISTERS = 65536 / (GS_BM * GS_BN + 56 * GS_THREADS),
  GS_BY_SHARED = (228 << 10) / (GS_RING_BYTES + 1024),
  GS_MANY = GS_BY_REGISTERS < GS_BY_SHARED ? GS_BY_REGISTERS : GS_BY_SHARED,
  GS_BLOCKS = (GS_SHALLOW || GS_SLICES > 1) && GS_MANY > 1 ? GS_MANY : 1,
};

/* Where k step ks of a stage begins, from element mn on, in units of 16 bytes. */
GS_DEVICE unsigned gs_matrix_step(int tile, int kmajor, int mn, int ks) {
  return (kmajor ? (ks / 4 * tile + mn) * 128 + ks % 4 * 32 : mn / 64 * (GS_BK * 128) + ks * 2048) / 16;
}

/* The rest of a matrix descriptor: 128-byte swizzle, 1,024 bytes from 8 rows to the next 8, and from 64 elements of m or n
 * to the next 64 where memory runs along them. */
#define GS_MATRIX (1ull << 62 | 64ull << 32 | (unsigned long long)(GS_BK * 128 / 16) << 16)

/* acc (+)= the products of a k-tile: of A from at_m on, of B from at_n on. */
GS_DEVICE void gs_multiply_tile(int type, int kmajor_a, int kmajor_b, unsigned at_m, unsigned at_n, int add,
                                gs_acc_t acc) {
  gs_wgmma_fence();
#pragma unroll
  for (int ks = 0; ks < GS_KS; ++ks)
    gs_wgmma(type, acc[0][0], GS_MATRIX | (at_n + gs_matrix_step(GS_BN, kmajor_b, 0, ks)),
             GS_MATRIX | (at_m + gs_matrix_step(GS_BM, kmajor_a, 0, ks)), ks > 0 || add, !kmajor_b,
             !kmajor_a);
  gs_wgmma_commit();
}

/* All products are there. */
GS_DEVICE void gs_take_sums(gs_acc_t acc) {
  gs_wgmma_wait(0);
#pragma unroll
  for (int i = 0; i < GS_M8 * 4; ++i) gs_keep(acc[0][i / 4][i % 4]);
}

/* acc = op(A) op(B) over this block's k-tiles, one at least. */
GS_DEVICE void gs_multiply(const gs_params_t *p, gs_spot_t *spot, int type, int d_type, int transa,
                           int transb, unsigned shared, gs_bias_t bias, gs_acc_t acc) {
  const int kmajor_a = transa, kmajor_b = !transb;
  gs_feed_t feed;
  gs_feed_begin(&feed, p, spot, kmajor_a, kmajor_b, shared, GS_BEHIND);
  spot->plain = gs_opaque(gs_is_plain(p, spot, d_type)); /* what it reads of p is near when the end comes */
  if (GS_BIAS_EARLY) gs_fetch_bias(p, spot, d_type, bias);

  const unsigned base = (shared & 0x3ffff) / 16; /* without the block's rank in its cluster */
  const unsigned at_m = base + gs_matrix_step(GS_BM, kmajor_a, spot->warp_m, 0);
  const unsigned at_n = base + GS_A_BYTES / 16 + gs_matrix_step(GS_BN, kmajor_b, spot->warp_n & ~63, 0);
  unsigned reads = 0, writes = 0; /* stages, as byte offsets */
  int left = spot->tiles;
  const unsigned unfetched = gs_max(left - GS_STAGES, 0);
  unsigned round = 0u - GS_BEHIND;

  if (left < GS_STAGES - GS_BEHIND)
    gs_copy_wait(0); /* fewer groups than the ring has room for */
  else
    gs_copy_wait(GS_STAGES - GS_BEHIND - 1);
  gs_fence_async();
  gs_sync();
#pragma unroll 1
  for (;;) {
    gs_multiply_tile(type, kmajor_a, kmajor_b, at_m + reads / 16, at_n + reads / 16, left != spot->tiles,
                     acc);
    if (--left == 0) break;
    if (GS_SHALLOW) {
      gs_wgmma_wait(0);
      gs_sync();
    } else { /* Under cover of the products: the next stage has landed, and nobody reads the last but one any more. */
      gs_copy_wait(GS_PENDING);
      gs_fence_async(); /* costs least ahead of new copies */
    }
    if (round < unfetched) {
      gs_fetch(&feed.a, GS_BM, kmajor_a, writes);
      gs_fetch(&feed.b, GS_BN, kmajor_b, writes);
      writes = writes == GS_RING_BYTES - GS_STAGE_BYTES ? 0 : writes + GS_STAGE_BYTES;
    }
    gs_copy_commit();
    ++round;
    if (GS_SHALLOW) {
      gs_copy_wait(GS_PENDING);
      gs_fence_async();
    } else {
      gs_wgmma_wait(1);
    }
    reads = reads == GS_RING_BYTES - GS_STAGE_BYTES ? 0 : reads + GS_STAGE_BYTES;
    gs_sync();
  }
  gs_take_sums(acc);
}

#endif
