/* Family mma: D = epilogue(alpha op(A) op(B) + beta C) by mma.sync, sm_80 and up. The includer sets
 *   GS_BM GS_BN GS_BK   tile: m, n, k in elements (multiples of 16, 16, 32)
 *   GS_STAGES           k-tiles in flight, 2 or more
 *   GS_WARPS            2 or more
 *   GS_ALIGN            bytes that addresses and leading dimensions divide by: 16, or 2 (loads by way of
 * registers) and calls gs_mma with its own constants for types and layout; everything is inlined, so that
 * branches on them vanish.
 *
 * The transposed product is computed: the instruction's 16 rows run along n and its 8 columns along m, so
 * that a thread's accumulators lie in pairs along D's contiguous direction.
 *
 * The last k-tile is the only ragged one, and it goes first: the main loop then copies whole 16-byte chunks
 * without a predicate. Rows beyond m or n are not zeroed but read from the last legal row: what they
 * add up to is never stored. Only along k is zero-filling needed. */
#ifndef GS_GEMM_MMA_CUH
#define GS_GEMM_MMA_CUH

#include "common.cuh"

/* The warp arrangement whose warp tiles (multiples of 16) are the squarest; on a tie, long in m. */
#define GS_FITS(n) (GS_WARPS % (n) == 0 && GS_BN % (16 * (n)) == 0 && GS_BM * (n) % (16 * GS_WARPS) == 0)
#define GS_COST(n) (GS_FITS(n) ? GS_BM * (n) / GS_WARPS + GS_BN / (n) : 1 << 20)

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
  GS_A_BYTES = GS_BM * GS_BK * 2,
  GS_STAGE_BYTES = GS_A_BYTES + GS_BN * GS_BK * 2,
  GS_RING_BYTES = GS_STAGES * GS_STAGE_BYTES,
  GS_COPIES = ((GS_BM > GS_BN ? GS_BM : GS_BN) * GS_BK / 8 + GS_THREADS - 1) / GS_THREADS,
  /* Epilogue: every warp stages fp32 rows of its tile, 16 n at a time or as many as the ring has room for;
   * the pitch puts 4 consecutive rows into distinct banks. */
  GS_PITCH = (GS_WM + 8) * 4,
  GS_ROOM = GS_RING_BYTES / (GS_WARPS * 16 * GS_PITCH),
  GS_SLOTS = GS_N16 <= GS_ROOM                          ? GS_N16
             : GS_N16 % 2 == 0 && GS_N16 / 2 <= GS_ROOM ? GS_N16 / 2
                                                        : 1,
  GS_ITEMS = GS_SLOTS * GS_WM / 16, /* chunks of 8 that a lane stores in one pass */
  GS_GROUP = GS_ITEMS % 4 == 0   ? 4
             : GS_ITEMS % 2 == 0 ? 2
                                 : 1,
};

GS_ASSERT(GS_COST(GS_WARPS_N) < 1 << 20, "no arrangement of these warps covers the tile");
GS_ASSERT(GS_BK % 32 == 0 && GS_STAGES >= 2 && GS_ROOM >= 1, "tile, stages or staging room");
GS_ASSERT(GS_THREADS / 8 % (GS_PANEL(GS_BK) / 8) == 0, "a thread's chunks must share their permutation");
GS_ASSERT(GS_THREADS / 8 % (GS_PANEL(GS_BM) / 8) == 0, "a thread's chunks must share their permutation");
GS_ASSERT(GS_THREADS / 8 % (GS_PANEL(GS_BN) / 8) == 0, "a thread's chunks must share their permutation");
GS_ASSERT(GS_RING_BYTES == GS_MMA_SMEM(GS_BM, GS_BN, GS_BK, GS_STAGES), "the host asks for another size");

/* One operand's way into shared memory. tile (BM or BN) and kmajor (memory runs along k) are constants. */
typedef struct {
  const char *from[GS_COPIES]; /* this thread's chunks in the next k-tile */
  long long step;              /* bytes from one k-tile to the next */
  unsigned to;                 /* place of its first chunk in stage 0; the others follow at equal distances */
  int mn0, mn;                 /* where the tile begins, where the matrix ends */
  int width;                   /* GS_ALIGN 2: bytes that one load may take */
  unsigned held[GS_COPIES][4]; /* GS_ALIGN 2: loaded, not yet stored */
} gs_loader_t;

GS_DEVICE void gs_place(int tile, int kmajor, int j, int *row, int *chunk) {
  const int extent = kmajor ? GS_BK : tile, rows = kmajor ? tile : GS_BK, per_row = GS_PANEL(extent) / 8;
  unsigned at = threadIdx.x + j * GS_THREADS, line = at / per_row;
  *row = extent == GS_PANEL(extent) ? line : line % rows;
  *chunk = extent == GS_PANEL(extent) ? at % per_row : line / rows * per_row + at % per_row;
}

GS_DEVICE int gs_has_chunk(int tile, int j) {
  const int chunks = tile * GS_BK / 8;
  return (j + 1) * GS_THREADS <= chunks || (int)threadIdx.x + j * GS_THREADS < chunks;
}

/* First element along m or n of a chunk, moved back to the matrix's last chunk where it lies outside. */
GS_DEVICE int gs_chunk_mn(const gs_loader_t *l, int chunk) {
  return gs_min(l->mn0 + chunk * 8, (l->mn - 1) & ~7);
}

GS_DEVICE void gs_loader_init(gs_loader_t *l, int tile, int kmajor, const char *base, int ld, int mn0, int mn,
                              int k0, unsigned to) {
  int row, chunk;
  gs_place(tile, kmajor, 0, &row, &chunk);
  l->to = to + gs_chunk_offset(kmajor ? GS_BK : tile, kmajor ? tile : GS_BK, row, chunk);
  l->step = kmajor ? GS_BK * 2 : (long long)ld * (GS_BK * 2);
  l->mn0 = mn0;
  l->mn = mn;
#pragma unroll
  for (int j = 0; j * GS_THREADS < tile * GS_BK / 8; ++j) {
    gs_place(tile, kmajor, j, &row, &chunk);
    long long at = kmajor ? (long long)gs_min(mn0 + row, mn - 1) * ld + k0 + chunk * 8
                          : (long long)(k0 + row) * ld + gs_chunk_mn(l, chunk);
    l->from[j] = base + at * 2;
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
      gs_copy16(l->to + stage + j * GS_THREADS * 16, l->from[j]);
    else
      gs_gather(l->from[j], gs_inside(l, tile, kmajor, j, 0, GS_BK), l->width, l->held[j]);
    l->from[j] += l->step;
  }
}

/* The same for the k-tile that lies `ahead` bytes further on and begins at k0; k may end inside it. */
GS_DEVICE void gs_fetch_ragged(gs_loader_t *l, int tile, int kmajor, unsigned stage, long long ahead, int k0,
                               int k) {
#pragma unroll
  for (int j = 0; j * GS_THREADS < tile * GS_BK / 8; ++j) {
    if (!gs_has_chunk(tile, j)) continue;
    int inside = gs_inside(l, tile, kmajor, j, k0, k);
    if (GS_ALIGN == 16)
      gs_copy_part(l->to + stage + j * GS_THREADS * 16, l->from[j] + ahead, gs_max(inside, 0) * 2);
    else
      gs_gather(l->from[j] + ahead, inside, l->width, l->held[j]);
  }
}

/* GS_ALIGN 2: what was loaded goes into the stage. */
GS_DEVICE void gs_deposit(const gs_loader_t *l, int tile, unsigned stage) {
#pragma unroll
  for (int j = 0; j * GS_THREADS < tile * GS_BK / 8; ++j)
    if (GS_ALIGN < 16 && gs_has_chunk(tile, j))
      gs_shared_store_b128(l->to + stage + j * GS_THREADS * 16, l->held[j]);
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
    at[i] = base + (kmajor ? gs_chunk_offset(GS_BK, tile, mn + row, i * 2 + half)
                           : gs_chunk_offset(tile, GS_BK, row, mn / 8 + i * 2 + half));
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

typedef float gs_acc_t[GS_N16][GS_M8][4];

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

/* Where this block works. */
typedef struct {
  int m, n;   /* first element of its tile */
  int warp_m; /* first element of this warp's tile inside it */
  int warp_n;
  int first, tiles; /* its k-tiles */
} gs_spot_t;

GS_DEVICE gs_spot_t gs_find_spot(const gs_params_t *p) {
  unsigned tiles_m = (p->m + GS_BM - 1u) / GS_BM, tiles_n = (p->n + GS_BN - 1u) / GS_BN;
  unsigned tile_m, tile_n, x = blockIdx.x;
  if (p->raster == 1) {
    tile_m = gs_quotient(x, tiles_n);
    tile_n = x - tile_m * tiles_n;
  } else {
    unsigned height = gs_min(p->raster, tiles_m), group = gs_quotient(x, height * tiles_n);
    unsigned in_group = x - group * height * tiles_n, rows = gs_min(height, tiles_m - group * height);
    tile_n = gs_quotient(in_group, rows);
    tile_m = group * height + in_group - tile_n * rows;
  }
  unsigned tiles_k = (p->k + GS_BK - 1u) / GS_BK, first = 0, end = tiles_k;
  if (p->split_k > 1) {
    first = gs_quotient(tiles_k * blockIdx.y, p->split_k);
    end = gs_quotient(tiles_k * (blockIdx.y + 1), p->split_k);
  }
  int warp = threadIdx.x / 32;
  gs_spot_t spot = {(int)tile_m * GS_BM,       (int)tile_n * GS_BN, warp % GS_WARPS_M * GS_WM,
                    warp / GS_WARPS_M * GS_WN, (int)first,          (int)(end - first)};
  return spot;
}

/* acc += op(A) op(B) over this block's k-tiles, one at least. */
GS_DEVICE void gs_multiply(const gs_params_t *p, const gs_spot_t *spot, int type, int transa, int transb,
                           unsigned shared, gs_acc_t acc) {
  const int kmajor_a = transa, kmajor_b = !transb;
  const int k0 = spot->first * GS_BK, ahead = spot->tiles - 1;
  gs_loader_t a, b;
  gs_loader_init(&a, GS_BM, kmajor_a, (const char *)p->a + blockIdx.z * p->stride_a * 2, p->lda, spot->m,
                 p->m, k0, shared);
  gs_loader_init(&b, GS_BN, kmajor_b, (const char *)p->b + blockIdx.z * p->stride_b * 2, p->ldb, spot->n,
                 p->n, k0, shared + GS_A_BYTES);

  gs_fetch_ragged(&a, GS_BM, kmajor_a, 0, ahead * a.step, k0 + ahead * GS_BK, p->k);
  gs_fetch_ragged(&b, GS_BN, kmajor_b, 0, ahead * b.step, k0 + ahead * GS_BK, p->k);
  gs_deposit(&a, GS_BM, 0);
  gs_deposit(&b, GS_BN, 0);
  gs_copy_commit();
#pragma unroll
  for (int s = 1; s < GS_STAGES - 1; ++s) {
    if (s < spot->tiles) {
      gs_fetch(&a, GS_BM, kmajor_a, s * GS_STAGE_BYTES);
      gs_fetch(&b, GS_BN, kmajor_b, s * GS_STAGE_BYTES);
      gs_deposit(&a, GS_BM, s * GS_STAGE_BYTES);
      gs_deposit(&b, GS_BN, s * GS_STAGE_BYTES);
    }
    gs_copy_commit();
  }

  unsigned at_m[GS_ADDRESSES], at_n[GS_ADDRESSES];
  gs_addresses(at_m, GS_BM, kmajor_a, 0, spot->warp_m, GS_M16, shared);
  gs_addresses(at_n, GS_BN, kmajor_b, 1, spot->warp_n, GS_N16, shared + GS_A_BYTES);

  unsigned rows[2][GS_N16][4], columns[2][GS_M16][4];
  unsigned reads = 0, writes = (GS_STAGES - 1) * GS_STAGE_BYTES; /* stages, as byte offsets */
  int left = spot->tiles, unfetched = spot->tiles - (GS_STAGES - 1);

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

/* Split-K. Every block leaves its fp32 sums in the workspace; the last one to arrive at a tile adds them up
 * in the order of the splits, so that the result does not depend on who came last. Nobody waits. Returns
 * true for that last block. Layout: GS_SPLIT_COUNTERS counters, then [tile][split][BM * BN] sums. */
GS_DEVICE int gs_reduce(const gs_params_t *p, gs_acc_t acc) {
  unsigned tile = blockIdx.z * gridDim.x + blockIdx.x, splits = p->split_k;
  unsigned *counter = (unsigned *)p->workspace + tile;
  char *sums = (char *)p->workspace + GS_SPLIT_COUNTERS * 4 + threadIdx.x * 16 +
               (unsigned long long)tile * splits * (GS_BM * GS_BN * 4);
  char *mine = sums + (unsigned long long)blockIdx.y * (GS_BM * GS_BN * 4);
#pragma unroll
  for (int i = 0; i < GS_N16 * GS_M8; ++i) {
    unsigned raw[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) raw[r] = gs_bits(acc[i / GS_M8][i % GS_M8][r]);
    gs_store_b128(mine + i * GS_THREADS * 16, raw);
  }
  gs_sync();
  int last = threadIdx.x == 0 && gs_count_up(counter) == splits - 1;
  if (!gs_sync_or(last)) return 0;
  if (last) gs_store_b32(counter, 0);
#pragma unroll
  for (int i = 0; i < GS_N16 * GS_M8; ++i) {
#pragma unroll
    for (int r = 0; r < 4; ++r) acc[i / GS_M8][i % GS_M8][r] = 0.0f;
  }
#pragma unroll 1
  for (unsigned s = 0; s < splits; ++s) {
    unsigned raw[GS_N16 * GS_M8][4];
#pragma unroll
    for (int i = 0; i < GS_N16 * GS_M8; ++i) gs_load_b128_fresh(sums + i * GS_THREADS * 16, raw[i]);
#pragma unroll
    for (int i = 0; i < GS_N16 * GS_M8; ++i) {
#pragma unroll
      for (int r = 0; r < 4; ++r) acc[i / GS_M8][i % GS_M8][r] += gs_float(raw[i][r]);
    }
    sums += GS_BM * GS_BN * 4;
  }
  return 1;
}

/* The rest of a chunk of eight, or all of one that cannot be stored whole. */
GS_DEVICE void gs_store_singly(const gs_params_t *p, int d_type, float beta, const char *c, char *d,
                               unsigned from, int count) {
#pragma unroll 1
  for (int e = 0; e < count; ++e) {
    float v = gs_shared_load_f32(from + e * 4);
    if (beta != 0.0f) v += beta * gs_load1(d_type, c + e * gs_bytes(d_type));
    gs_store1(d_type, d + e * gs_bytes(d_type), gs_activate(p->epilogue, v));
  }
}

GS_DEVICE int gs_whole_chunks(const void *base, int ld, long long stride, int type) {
  return (((unsigned)(unsigned long long)base | (unsigned)ld * gs_bytes(type) |
           (unsigned)stride * gs_bytes(type)) &
          15) == 0;
}

/* alpha * acc + bias goes through shared memory, each warp its own part, so that eight elements that lie
 * together in D meet in one lane, which adds beta * C, activates, converts and stores them. */
GS_DEVICE void gs_finish(const gs_params_t *p, const gs_spot_t *spot, int d_type, float alpha, float beta,
                         unsigned shared, gs_acc_t acc) {
  const int bytes = gs_bytes(d_type), lane = threadIdx.x % 32, m0 = spot->m + spot->warp_m;
  const unsigned stage = shared + threadIdx.x / 32 * (GS_SLOTS * 16 * GS_PITCH);
  const unsigned mine = stage + lane / 4 * GS_PITCH + lane % 4 * 8;
  const char *c = (const char *)p->c + blockIdx.z * p->stride_c * bytes;
  char *d = (char *)p->d + blockIdx.z * p->stride_d * bytes;
  const int whole_d = gs_whole_chunks(p->d, p->ldd, p->stride_d, d_type);
  const int whole_c = gs_whole_chunks(p->c, p->ldc, p->stride_c, d_type);
  const int whole = whole_d && (beta == 0.0f || whole_c);

  gs_sync(); /* the ring is free */
#pragma unroll
  for (int pass = 0; pass < GS_N16; pass += GS_SLOTS) {
    const int n0 = spot->n + spot->warp_n + pass * 16;
#pragma unroll
    for (int f = 0; f < GS_M8; ++f) {
      int m = m0 + f * 8 + lane % 4 * 2;
      float bias0 = 0.0f, bias1 = 0.0f;
      if (gs_has_bias(p->epilogue)) {
        if (m < p->m) bias0 = gs_load1(d_type, (const char *)p->bias + (long long)m * bytes);
        if (m + 1 < p->m) bias1 = gs_load1(d_type, (const char *)p->bias + (long long)(m + 1) * bytes);
      }
#pragma unroll
      for (int i = 0; i < GS_SLOTS; ++i) {
        const float *v = acc[pass + i][f];
        unsigned to = mine + i * 16 * GS_PITCH + f * 32;
        gs_shared_store_b64(to, alpha * v[0] + bias0, alpha * v[1] + bias1);
        gs_shared_store_b64(to + 8 * GS_PITCH, alpha * v[2] + bias0, alpha * v[3] + bias1);
      }
    }
    gs_sync_warp();
#pragma unroll 1
    for (int item = 0; item < GS_ITEMS; item += GS_GROUP) {
      unsigned c_raw[GS_GROUP][8];
      if (beta != 0.0f && whole) {
#pragma unroll
        for (int u = 0; u < GS_GROUP; ++u) {
          int at = (item + u) * 32 + lane, m = m0 + at % GS_M8 * 8, n = n0 + at / GS_M8;
          if (m + 8 <= p->m && n < p->n) gs_load8(d_type, c + ((long long)n * p->ldc + m) * bytes, c_raw[u]);
        }
      }
#pragma unroll
      for (int u = 0; u < GS_GROUP; ++u) {
        int at = (item + u) * 32 + lane, m = m0 + at % GS_M8 * 8, n = n0 + at / GS_M8;
        if (m >= p->m || n >= p->n) continue;
        unsigned from = stage + at / GS_M8 * GS_PITCH + at % GS_M8 * 32;
        char *to = d + ((long long)n * p->ldd + m) * bytes;
        if (!whole || m + 8 > p->m) {
          gs_store_singly(p, d_type, beta, c + ((long long)n * p->ldc + m) * bytes, to, from,
                          gs_min(p->m - m, 8));
          continue;
        }
        float v[8];
        gs_shared_load_f32x4(from, v);
        gs_shared_load_f32x4(from + 16, v + 4);
        if (beta != 0.0f) {
#pragma unroll
          for (int e = 0; e < 8; ++e) v[e] += beta * gs_element(d_type, c_raw[u], e);
        }
        if (p->epilogue != GS_EPI_DEFAULT && p->epilogue != GS_EPI_BIAS) {
#pragma unroll
          for (int e = 0; e < 8; ++e) v[e] = gs_activate(p->epilogue, v[e]);
        }
        gs_store8(d_type, to, v);
      }
    }
    gs_sync_warp(); /* before the next pass overwrites the staging */
  }
}

GS_DEVICE void gs_mma(const gs_params_t *p, int type, int d_type, int transa, int transb) {
  const unsigned shared = gs_shared_address();
  gs_spot_t spot = gs_find_spot(p);
  float alpha = p->alpha_ptr ? gs_float(gs_load_b32(p->alpha_ptr)) : p->alpha;
  float beta = p->beta_ptr ? gs_float(gs_load_b32(p->beta_ptr)) : p->beta;
  gs_acc_t acc;
#pragma unroll
  for (int i = 0; i < GS_N16 * GS_M8; ++i) {
#pragma unroll
    for (int r = 0; r < 4; ++r) acc[i / GS_M8][i % GS_M8][r] = 0.0f;
  }
  if (alpha != 0.0f && spot.tiles > 0) gs_multiply(p, &spot, type, transa, transb, shared, acc);
  if (p->split_k > 1 && !gs_reduce(p, acc)) return;
  gs_finish(p, &spot, d_type, alpha, beta, shared, acc);
}

#endif
