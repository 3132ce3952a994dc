/* Families mma, wgmma and strip: operands from global into shared memory, and from there into fragments. */
#ifndef GS_MMA_LOADER_CUH
#define GS_MMA_LOADER_CUH

#include "mma_tile.cuh"

/* One operand's way into shared memory. tile (BM or BN) and kmajor (memory runs along k) are constants. */
typedef struct {
  const char *base;            /* the next k-tile: the same for all threads, so that it is kept once a warp */
  long long step;              /* bytes from one k-tile to the next */
  unsigned from[GS_COPIES];    /* this thread's chunks in it */
  int left;                    /* along m or n, from its first chunk to the last place inside */
  unsigned to;                 /* place of its first chunk in stage 0; the others follow at equal distances */
  int mn0, mn;                 /* where the tile begins, where the matrix ends */
  int width;                   /* GS_ALIGN 2: bytes that one load may take */
  unsigned held[GS_COPIES][4]; /* GS_ALIGN 2: loaded, not yet stored */
} gs_loader_t;

GS_DEVICE void gs_place_of(int tile, int kmajor, unsigned at, int *row, int *chunk) {
  const int extent = kmajor ? GS_BK : tile, rows = kmajor ? tile : GS_BK, per_row = GS_PANEL(extent) / 8;
  const unsigned line = at / per_row;
  *row = extent == GS_PANEL(extent) ? line : line % rows;
  *chunk = extent == GS_PANEL(extent) ? at % per_row : line / rows * per_row + at % per_row;
}

GS_DEVICE void gs_place(int tile, int kmajor, int j, int *row, int *chunk) {
  gs_place_of(tile, kmajor, threadIdx.x + j * GS_THREADS, row, chunk);
}

/* How far along m or n chunk j lies from the thread's first: a constant. */
GS_DEVICE int gs_apart(int tile, int kmajor, int j) {
  int row, chunk;
  gs_place_of(tile, kmajor, j * GS_THREADS, &row, &chunk);
  return kmajor ? row : chunk * 8;
}

GS_DEVICE int gs_has_chunk(int tile, int j) {
  const int chunks = tile * GS_BK / 8;
  return (j + 1) * GS_THREADS <= chunks || (int)threadIdx.x + j * GS_THREADS < chunks;
}

/* First element along m or n of a chunk, moved back to the matrix's last chunk where it lies outside. */
GS_DEVICE int gs_chunk_mn(const gs_loader_t *l, int chunk) {
  return gs_min(l->mn0 + chunk * 8, (l->mn - 1) & ~7);
}

/* Where row lies beyond the last one, another that is inside: if all of these read the same one, blocks would queue for its
 * line in the second-level cache. (Twice the last one fits: m and n are at most 2^30.) */
GS_DEVICE int gs_mirrored(int row, int last) {
  return gs_min(row, gs_max(2 * last - row, 0));
}

/* What lies beyond the matrix along m or n is read from elsewhere inside, or, where spared, not at all. What is opaque here
 * would be computed again in every round of the main loop. */
GS_DEVICE void gs_loader_init(gs_loader_t *l, int tile, int kmajor, int spared, const char *base, int ld,
                              int mn0, int mn, unsigned to) {
  const unsigned ld_bytes = ld * 2u;
  const int last = mn - 1 - mn0;
  int row, chunk;
  gs_place(tile, kmajor, 0, &row, &chunk);
  l->to = gs_opaque(to + gs_chunk_offset(kmajor ? GS_BK : tile, kmajor ? tile : GS_BK, row, chunk));
  l->step = kmajor ? GS_BK * 2 : (long long)ld_bytes * GS_BK;
  l->mn0 = mn0;
  l->mn = mn;
  l->left = spared ? gs_opaque(last - (kmajor ? row : chunk * 8)) : tile;
  l->base = base + (kmajor ? (unsigned)mn0 * (unsigned long long)ld_bytes : mn0 * 2ull);
#pragma unroll
  for (int j = 0; j * GS_THREADS < tile * GS_BK / 8; ++j) {
    gs_place(tile, kmajor, j, &row, &chunk);
    unsigned from = kmajor ? (spared ? row : gs_mirrored(row, last)) * ld_bytes + chunk * 16
                           : row * ld_bytes + (gs_chunk_mn(l, chunk) - mn0) * 2;
    l->from[j] = gs_opaque(from);
  }
  if (GS_ALIGN < 16) {
    int bits = (int)(unsigned long long)base | ld * 2;
    l->width = bits & 2 ? 2 : bits & 4 ? 4 : 8;
  }
}

/* Elements of chunk j that lie inside the matrix, in the k-tile that begins at k0: 8 at most, and less than 0
 * far outside. (Clamped here to 0 as well, ptxas 13.0 for sm_90 takes 0 for 8 where it tests for 8: it reads
 * the wrong predicate of its fused VIMNMX.RELU.) */
GS_DEVICE int gs_inside(const gs_loader_t *l, int tile, int kmajor, int j, int k0, int k) {
  int row, chunk;
  gs_place(tile, kmajor, j, &row, &chunk);
  if (kmajor) return gs_min(k - k0 - chunk * 8, 8);
  return k0 + row < k ? gs_min(l->mn - gs_chunk_mn(l, chunk), 8) : 0;
}

/* Loads of 2, 4 or 8 bytes: eight elements into v, those from `inside` on are zero. */
GS_DEVICE void gs_gather(const char *from, int inside, int width, unsigned v[4]) {
  if (inside == 8 && width == 8) {
    gs_load_b64(from, v);
    gs_load_b64(from + 8, v + 2);
  } else if (inside == 8 && width == 4) {
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = gs_load_b32(from + 4 * i);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      unsigned lo = 2 * i < inside ? gs_load_b16(from + 4 * i) : 0;
      unsigned hi = 2 * i + 1 < inside ? gs_load_b16(from + 4 * i + 2) : 0;
      v[i] = lo | hi << 16;
    }
  }
}

/* Starts the copy of the next k-tile into a stage. */
GS_DEVICE void gs_fetch(gs_loader_t *l, int tile, int kmajor, unsigned stage) {
#pragma unroll
  for (int j = 0; j * GS_THREADS < tile * GS_BK / 8; ++j) {
    if (!gs_has_chunk(tile, j)) continue;
    if (GS_ALIGN == 16)
      gs_copy16_if(gs_apart(tile, kmajor, j) <= l->left, l->to + stage + j * GS_THREADS * 16,
                   l->base + l->from[j]);
    else
      gs_gather(l->base + l->from[j], gs_inside(l, tile, kmajor, j, 0, GS_BK), l->width, l->held[j]);
  }
  l->base += l->step;
}

/* The same for the k-tile that lies `ahead` bytes further on and begins at k0; k may end inside it. */
GS_DEVICE void gs_fetch_ragged(gs_loader_t *l, int tile, int kmajor, unsigned stage, long long ahead, int k0,
                               int k) {
#pragma unroll
  for (int j = 0; j * GS_THREADS < tile * GS_BK / 8; ++j) {
    if (!gs_has_chunk(tile, j)) continue;
    int inside = gs_apart(tile, kmajor, j) <= l->left ? gs_inside(l, tile, kmajor, j, k0, k) : 0;
    if (GS_ALIGN == 16)
      gs_copy_part(l->to + stage + j * GS_THREADS * 16, l->base + ahead + l->from[j], gs_max(inside, 0) * 2);
    else
      gs_gather(l->base + ahead + l->from[j], inside, l->width, l->held[j]);
  }
}

/* GS_ALIGN 2: what was loaded goes into the stage. */
GS_DEVICE void gs_deposit(const gs_loader_t *l, int tile, unsigned stage) {
#pragma unroll
  for (int j = 0; j * GS_THREADS < tile * GS_BK / 8; ++j)
    if (GS_ALIGN < 16 && gs_has_chunk(tile, j))
      gs_shared_store_b128(l->to + stage + j * GS_THREADS * 16, l->held[j]);
}

/* Both operands on their way. */
typedef struct {
  gs_loader_t a, b;
} gs_feed_t;

/* Starts the copies of as many k-tiles as the ring holds, a group each; the last `open` stages' are left to the next
 * commit. */
GS_DEVICE void gs_feed_begin(gs_feed_t *f, const gs_params_t *p, const gs_spot_t *spot, int kmajor_a,
                             int kmajor_b, unsigned shared, int open) {
  const int k0 = spot->first * GS_BK, ahead = spot->tiles - 1;
  gs_loader_init(&f->a, GS_BM, kmajor_a, 0, spot->a, p->lda, spot->m, p->m, shared);
  gs_loader_init(&f->b, GS_BN, kmajor_b, GS_SPARED, spot->b, p->ldb, spot->n, p->n, shared + GS_A_BYTES);
  if (gs_rarely(spot->ragged)) {
    gs_fetch_ragged(&f->a, GS_BM, kmajor_a, 0, ahead * f->a.step, k0 + ahead * GS_BK, spot->k);
    gs_fetch_ragged(&f->b, GS_BN, kmajor_b, 0, ahead * f->b.step, k0 + ahead * GS_BK, spot->k);
  } else {
    gs_fetch(&f->a, GS_BM, kmajor_a, 0);
    gs_fetch(&f->b, GS_BN, kmajor_b, 0);
  }
  gs_deposit(&f->a, GS_BM, 0);
  gs_deposit(&f->b, GS_BN, 0);
  gs_copy_commit();
#pragma unroll 1 /* code that was never run has to be fetched first: a loop is faster than its copies */
  for (int s = 1; s < gs_min(spot->tiles, GS_STAGES); ++s) {
    gs_fetch(&f->a, GS_BM, kmajor_a, s * GS_STAGE_BYTES);
    gs_fetch(&f->b, GS_BN, kmajor_b, s * GS_STAGE_BYTES);
    gs_deposit(&f->a, GS_BM, s * GS_STAGE_BYTES);
    gs_deposit(&f->b, GS_BN, s * GS_STAGE_BYTES);
    if (s < GS_STAGES - open) gs_copy_commit();
  }
}

/* A lane's ldmatrix addresses. In a k-major tile `at` holds one for each k step, and the next 16 rows lie a
 * constant further on; otherwise one for each 16 of m or n, and the next k step lies a constant further on.
 * rows: the operand fills the instruction's 16 rows, else its columns; that decides the order of the four
 * 8 x 8 matrices. */
enum {
  GS_ADDRESSES = GS_KS > GS_M16 ? (GS_KS > GS_N16 ? GS_KS : GS_N16) : (GS_M16 > GS_N16 ? GS_M16 : GS_N16)
};

GS_DEVICE void gs_addresses(unsigned at[GS_ADDRESSES], int tile, int kmajor, int rows, int mn, int steps,
                            unsigned base) {
  int lane = threadIdx.x % 32;
  int row = rows == kmajor ? lane % 16 : lane % 8 + lane / 16 * 8;
  int half = rows == kmajor ? lane / 16 : lane / 8 % 2;
#pragma unroll
  for (int i = 0; i < (kmajor ? GS_KS : steps); ++i)
    at[i] = gs_opaque(base + (kmajor ? gs_chunk_offset(GS_BK, tile, mn + row, i * 2 + half)
                                     : gs_chunk_offset(tile, GS_BK, row, mn / 8 + i * 2 + half)));
}

GS_DEVICE void gs_fragments(unsigned v[][4], const unsigned at[GS_ADDRESSES], int tile, int kmajor, int steps,
                            unsigned stage, int ks) {
  const int apart = 16 * 2 * GS_PANEL(kmajor ? GS_BK : tile);
#pragma unroll
  for (int i = 0; i < steps; ++i) {
    if (kmajor)
      gs_ldmatrix(at[ks] + stage + i * apart, v[i]);
    else
      gs_ldmatrix_trans(at[i] + stage + ks * apart, v[i]);
  }
}

#endif
