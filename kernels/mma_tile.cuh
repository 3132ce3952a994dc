/* Families mma, wgmma and strip: what follows from the tile's constants, and where a block works. */
#ifndef GS_MMA_TILE_CUH
#define GS_MMA_TILE_CUH

#include "common.cuh"

/* The warp arrangement whose warp tiles (multiples of 16) are the squarest; on a tie, long in m. Of wgmma every warp has 16 of
 * n, as the instruction has it. */
#ifdef GS_IS_WGMMA
#define GS_FITS(n) (GS_BN == 16 * (n) && GS_WARPS % (n) == 0)
#else
#define GS_FITS(n) (GS_WARPS % (n) == 0 && GS_BN % (16 * (n)) == 0 && GS_BM * (n) % (16 * GS_WARPS) == 0)
#endif
#define GS_COST(n) (GS_FITS(n) ? GS_BM * (n) / GS_WARPS + GS_BN / (n) : 1 << 20)

/* Slices of GS_BN columns in a block's tile: family strip computes one after another. */
#ifndef GS_SLICES
#define GS_SLICES 1
#endif

enum {
  GS_THREADS = GS_WARPS * 32,
  GS_WARPS_12 = GS_COST(1) < GS_COST(2) ? 1 : 2,
  GS_WARPS_48 = GS_COST(4) < GS_COST(8) ? 4 : 8,
  GS_WARPS_N = GS_COST(GS_WARPS_12) < GS_COST(GS_WARPS_48) ? GS_WARPS_12 : GS_WARPS_48,
  GS_WARPS_M = GS_WARPS / GS_WARPS_N,
  GS_WM = GS_BM / GS_WARPS_M, /* warp tile */
  GS_WN = GS_BN / GS_WARPS_N,
  GS_M8 = GS_WM / 8,
  GS_M16 = GS_WM / 16,
  GS_N16 = GS_WN / 16,
  GS_KS = GS_BK / 16, /* instruction steps in a k-tile */
  GS_BUFFERS =
      GS_N16 * GS_M8 > 32 ? 1 : 2, /* of fragments: beside more than 128 sums there is no room for two */
  GS_A_BYTES = GS_BM * GS_BK * 2,
  GS_B_BYTES = GS_BN * GS_BK * 2,
/* Columns beyond the last one are not copied: a predicate for each copy, which pays where they are few. */
#ifdef GS_IS_WGMMA
  GS_SPARED = 0,
#else
  GS_SPARED = GS_ALIGN == 16 && GS_BN <= 32 && GS_BN <= GS_BM,
#endif
#ifdef GS_IS_STRIP /* a ring for B alone, behind A */
  GS_STAGE_BYTES = GS_B_BYTES,
  GS_RING_BYTES = GS_A_BYTES + GS_STAGES * GS_STAGE_BYTES,
  GS_HOST_BYTES = GS_STRIP_SMEM(GS_BM, GS_BK, GS_STAGES),
#else
  GS_STAGE_BYTES = GS_A_BYTES + GS_B_BYTES,
  GS_RING_BYTES = GS_STAGES * GS_STAGE_BYTES,
  GS_HOST_BYTES = GS_MMA_SMEM(GS_BM, GS_BN, GS_BK, GS_STAGES),
#endif
  GS_COPIES = ((GS_BM > GS_BN ? GS_BM : GS_BN) * GS_BK / 8 + GS_THREADS - 1) / GS_THREADS,
  /* Epilogue: fp32 sums in the ring's place, [n][m], all 16-row steps of a warp in one pass if there is
   * room; the pitch puts 4 consecutive rows into distinct banks. */
  GS_PITCH = GS_MMA_PITCH(GS_BM),
  GS_ROOM = GS_RING_BYTES / (GS_WARPS_N * 16 * GS_PITCH),
  GS_SLOTS = GS_N16 <= GS_ROOM                          ? GS_N16
             : GS_N16 % 2 == 0 && GS_N16 / 2 <= GS_ROOM ? GS_N16 / 2
                                                        : 1,
  GS_ROWS = GS_WARPS_N * GS_SLOTS * 16, /* of one pass */
  GS_ITEMS = GS_ROWS * (GS_BM / 4),     /* of four elements, that are stored together */
  GS_BATCH = GS_ITEMS % (4 * GS_THREADS) == 0   ? 4
             : GS_ITEMS % (2 * GS_THREADS) == 0 ? 2
                                                : 1, /* items of a thread that are read together */
};

GS_ASSERT(GS_COST(GS_WARPS_N) < 1 << 20, "no arrangement of these warps covers the tile");
GS_ASSERT(GS_KS % 2 == 0 && GS_STAGES >= 2 && GS_ROOM >= 1, "tile, stages or room");
GS_ASSERT(GS_THREADS / 8 % (GS_PANEL(GS_BK) / 8) == 0, "a thread's chunks must share their permutation");
GS_ASSERT(GS_THREADS / 8 % (GS_PANEL(GS_BM) / 8) == 0, "a thread's chunks must share their permutation");
GS_ASSERT(GS_THREADS / 8 % (GS_PANEL(GS_BN) / 8) == 0, "a thread's chunks must share their permutation");
GS_ASSERT((int)GS_RING_BYTES == (int)GS_HOST_BYTES, "the host asks for another size");

typedef float gs_acc_t[GS_N16][GS_M8][4];

GS_DEVICE void gs_clear(gs_acc_t acc) {
#pragma unroll
  for (int i = 0; i < GS_N16 * GS_M8; ++i) {
#pragma unroll
    for (int r = 0; r < 4; ++r) acc[i / GS_M8][i % GS_M8][r] = 0.0f;
  }
}

/* Where this block works. */
typedef struct {
  const char *a, *b; /* of its product */
  int m, n;          /* first element of its tile */
  int warp_m;        /* first element of this warp's tile inside it */
  int warp_n;
  int part;         /* of p->split_k */
  int tile;         /* number of its tile, all products of a batch counted: with a workspace only */
  int first, tiles; /* its k-tiles */
  int k;            /* where k ends */
  int ragged;       /* the last of them is not to be copied in whole chunks */
  int plain;        /* the tile is stored straight from the accumulators */
} gs_spot_t;

/* Whether the parts of a tile are a cluster. */
GS_DEVICE int gs_in_cluster(const gs_params_t *p) {
  return GS_CLUSTERS && GS_MMA_CLUSTERS(GS_BM, GS_BN, GS_BK, GS_STAGES) && p->split_k > 1 && !p->workspace;
}

/* Row r of the tile (an element of n) is finished by part r % splits, as its row r / splits. */
GS_DEVICE unsigned gs_rows_of(unsigned part, unsigned splits) {
  return gs_quotient(GS_BN - part + splits - 1, splits);
}

/* raster tiles of m, then the next tile of n, until the group of tiles of m is done. */
GS_DEVICE void gs_walk(const gs_params_t *p, unsigned *tile_m, unsigned *tile_n) {
  const unsigned tiles_m = (p->m + GS_BM - 1u) / GS_BM, tiles_n = gridDim.x;
  const unsigned x = *tile_m * tiles_n + *tile_n, height = gs_min(p->raster, tiles_m);
  const unsigned group = gs_quotient(x, height * tiles_n), in_group = x - group * height * tiles_n;
  const unsigned rows = gs_min(height, tiles_m - group * height);
  *tile_n = gs_quotient(in_group, rows);
  *tile_m = group * height + in_group - *tile_n * rows;
}

/* What most calls do without: parts of k, another order of the tiles, products of a batch. Kept apart, since
 * every instruction ahead of the first load counts in a kernel of 2 us. Moves A and B to the block's product and part. */
GS_DEVICE void gs_find_special(const gs_params_t *p, int transa, int transb, gs_spot_t *spot,
                               unsigned *tile_m, unsigned *tile_n) {
  const unsigned splits = p->split_k, tiles_k = spot->tiles;
  if (splits > 1) {
#if GS_CLUSTERS
    if (gs_in_cluster(p)) {
      *tile_m = gs_cluster_y();
      spot->part = gs_cluster_rank();
      gs_landing_open(gs_shared_address() + GS_RING_BYTES,
                      splits * gs_rows_of(spot->part, splits) * (GS_BM * 4), threadIdx.x == 0);
      gs_cluster_arrive();
    } else
#endif
    {
      *tile_m = gs_quotient(blockIdx.y, splits);
      spot->part = blockIdx.y - *tile_m * splits;
      spot->tile = (blockIdx.z * gs_quotient(gridDim.y, splits) + *tile_m) * gridDim.x + *tile_n;
    }
    spot->first = gs_quotient(tiles_k * spot->part, splits);
    spot->tiles = (int)gs_quotient(tiles_k * (spot->part + 1), splits) - spot->first;
  }
  if (p->raster > 1) gs_walk(p, tile_m, tile_n);
  const long long k0 = spot->first * GS_BK;
  spot->a += (blockIdx.z * p->stride_a + k0 * (transa ? 1 : p->lda)) * 2;
  spot->b += (blockIdx.z * p->stride_b + k0 * (transb ? p->ldb : 1)) * 2;
  if (gs_scalar(p->alpha_ptr, p->alpha) == 0.0f) spot->tiles = 0; /* A and B are not read */
}

GS_DEVICE gs_spot_t gs_find_spot(const gs_params_t *p, int transa, int transb) {
  unsigned tile_m = blockIdx.y, tile_n = blockIdx.x, warp = threadIdx.x / 32 % GS_WARPS;
  gs_spot_t spot = {0};
  spot.a = (const char *)p->a;
  spot.b = (const char *)p->b;
  spot.k = p->k;
  spot.tiles = (p->k + GS_BK - 1u) / GS_BK;
  /* The last row of an operand along m or n may end before a whole chunk does. */
  spot.ragged = (unsigned)p->k % GS_BK | (transa ? 0 : p->m % 8u) | (transb ? p->n % 8u : 0);
  if (gs_rarely(p->special)) {
    const int tiles_k = spot.tiles;
    gs_find_special(p, transa, transb, &spot, &tile_m, &tile_n);
    if (spot.first + spot.tiles != tiles_k) spot.ragged = 0;
    if (spot.tiles == 0) { /* one that lies beyond the end of k: zeros, and nothing is read */
      spot.tiles = spot.ragged = 1;
      spot.k = 0;
    }
  }
  spot.m = tile_m * GS_BM;
  spot.n = tile_n * (GS_BN * GS_SLICES);
#ifdef GS_IS_WGMMA
  spot.warp_m = warp / GS_WARPS_N * GS_WM;
  spot.warp_n = warp % GS_WARPS_N * GS_WN;
#else
  spot.warp_m = warp % GS_WARPS_M * GS_WM;
  spot.warp_n = warp / GS_WARPS_M * GS_WN;
#endif
  return spot;
}

#endif
