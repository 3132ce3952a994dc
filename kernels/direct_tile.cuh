/* Family direct: what follows from the tile's constants, and where a block works. */
#ifndef GS_DIRECT_TILE_CUH
#define GS_DIRECT_TILE_CUH

#include "common.cuh"

enum {
  GS_HM = GS_BM / 8,
  GS_HN = GS_BN / 8,
  GS_HR = GS_SWAP ? GS_HM : GS_HN, /* of the operand along the instruction's rows, two to a fragment */
  GS_HC = GS_SWAP ? GS_HN : GS_HM,
  GS_THREADS = GS_WARPS * 32,
  /* Chunks that a warp's share is made of: two are a line of 128 bytes. */
  GS_PAIR = GS_SWAP ? 2 : 1,
  GS_RESULTS = GS_BM * GS_BN / 32,                                  /* a thread's */
  GS_SPAN = GS_SWAP ? GS_HM : 2 * GS_HM,                            /* of these lie together in D */
  GS_ITEM = GS_SPAN % 4 == 0 && GS_RESULTS / 4 >= GS_WARPS ? 4 : 2, /* are finished together */
  GS_ITEMS = GS_RESULTS / GS_ITEM,
  GS_SHARE = GS_ITEMS > GS_WARPS ? GS_ITEMS / GS_WARPS : 1, /* items that a thread finishes, at most */
  GS_PLANE = 32 * GS_ITEM * 4,                              /* bytes of one item of all lanes */
  /* Of products, by which of a pair's loads and which of its chunks they are of; where registers allow it (ptxas for sm_80
   * spills two). */
  GS_CHAINS = GS_SWAP && GS_RESULTS == 4 && (GS_CLUSTERS || GS_WARPS < 32) ? 4 : 1,
  /* Blocks that a multiprocessor is to have room for, where chunks are paired: ptxas misses it by a few registers. (With two
   * chunks under way, by too many for sm_80.) */
  GS_ROOM_WARPS = GS_STAGES > 2 ? 16
                  : GS_CLUSTERS ? 32
                                : 24,
  GS_BLOCKS = GS_CHAINS == 4 && GS_WARPS < GS_ROOM_WARPS ? GS_ROOM_WARPS / GS_WARPS : 1,
  GS_SLICES_BYTES = GS_WARPS > 1 ? GS_WARPS *GS_ITEMS *GS_PLANE : 0,
};

GS_ASSERT((GS_HM & (GS_HM - 1)) == 0 && GS_HM >= 2 && GS_HM <= 8, "m of the tile: 16, 32 or 64");
GS_ASSERT((GS_HN & (GS_HN - 1)) == 0 && GS_HN <= 8 && GS_HR % 2 == 0, "n of the tile: 8 .. 64, 16 as rows");
GS_ASSERT((GS_WARPS & (GS_WARPS - 1)) == 0 && GS_STAGES % GS_PAIR == 0, "warps or stages");
GS_ASSERT(GS_SLICES_BYTES == GS_DIRECT_SLICES(GS_BM, GS_BN, GS_WARPS), "the host asks for another size");
GS_ASSERT(GS_LANDING + (GS_ITEMS + 7) * GS_PLANE <= GS_DIRECT_SUMS(GS_BM, GS_BN),
          "the host asks for another size");

GS_DEVICE int gs_lane_g(void) {
  return threadIdx.x / 4 % 8;
}
GS_DEVICE int gs_lane_t(void) {
  return threadIdx.x % 4;
}

typedef float gs_acc_t[GS_HR / 2][GS_HC][4];
typedef gs_acc_t gs_chains_t[GS_CHAINS];

/* Where this block works. */
typedef struct {
  const char *a, *b; /* of its product */
  int m, n;          /* first element of its tile */
  int rank;          /* in its cluster, of p->split_k blocks */
  int first;         /* its chunks of k: */
  int whole;         /* this many, a multiple of GS_PAIR; */
  int ragged; /* and, perhaps, so many that are loaded row by row or element by element: GS_PAIR at most */
  int plain;  /* it ends with whole items and without beta, */
  int quick;  /* and nothing else that is rare has to be seen to after the products */
} gs_spot_t;

/* Moves the spot to its product and its part of k: what most calls do without, kept apart, since every instruction ahead of
 * the first load counts. */
GS_DEVICE void gs_find_special(const gs_params_t *p, gs_spot_t *spot) {
#if GS_CLUSTERS
  if (p->split_k > 1) {
    const int pairs = spot->whole / GS_PAIR;
    spot->rank = gs_cluster_rank();
    spot->n = gs_cluster_y() * GS_BN;
    spot->first = gs_quotient(pairs * spot->rank, p->split_k) * GS_PAIR;
    spot->whole = gs_quotient(pairs * (spot->rank + 1), p->split_k) * GS_PAIR - spot->first;
    if (spot->rank + 1 < p->split_k) spot->ragged = 0;
  }
#endif
  spot->a += blockIdx.z * p->stride_a * 2;
  spot->b += blockIdx.z * p->stride_b * 2;
  if (gs_scalar(p->alpha_ptr, p->alpha) == 0.0f) spot->whole = spot->ragged = 0; /* A and B are not read */
}

GS_DEVICE gs_spot_t gs_find_spot(const gs_params_t *p, int transa, int transb) {
  const int overruns = (!transa && p->m % GS_HM) || (transb && p->n % gs_max(GS_HN, 2));
  const unsigned chunks = (p->k + 31u) / 32, whole = chunks - (p->k % 32 || overruns);
  gs_spot_t spot = {0};
  spot.a = (const char *)p->a;
  spot.b = (const char *)p->b;
  spot.m = blockIdx.x * GS_BM;
  spot.n = blockIdx.y * GS_BN;
  spot.whole = whole / GS_PAIR * GS_PAIR;
  spot.ragged = chunks - spot.whole;
  return spot;
}

#endif
