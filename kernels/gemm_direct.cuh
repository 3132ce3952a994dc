/* Family direct: D = epilogue(alpha op(A) op(B) + beta C) for products that are small or narrow, sm_80 and
 * up. Operands go straight from global memory into the fragments of mma.sync; shared memory only adds up,
 * once. The includer sets GS_BM GS_BN   a block's tile: 8, 16, 32 or 64 elements of m and of n GS_STAGES
 * chunks of 32 k that each warp keeps in flight GS_WARPS      a power of two; all work on the same tile, each
 * on its share of k GS_SWAP       0: n runs along the instruction's 16 rows, m along its 8 columns; 1: the
 * other way round, for n of 8 or less and calls gs_direct with its own constants for types and layout.
 *
 * The order of k. The sum does not care in which slot of the instruction an element of k sits, as long as
 * both operands agree. Lane (g, t) = (lane / 4, lane % 4) takes k = 8t .. 8t + 7 of a chunk: the first four
 * fill its slots 2t, 2t + 1, 2t + 8, 2t + 9 in one step, the others in a second one. Where memory runs along
 * k, that is one load of 16 bytes a row. The order of m and n. Of an extent of 8h elements lane g takes g * h
 * .. g * h + h - 1, one in each of h fragments. Where memory runs along m or n, that is one load of 2h bytes
 * for each k, and a byte permutation pairs neighbours in k. Results of a thread lie together along m in
 * either case.
 *
 * Rows beyond m or n are read from the last legal place: what they add up to is never stored. A last chunk
 * in which k ends, or whose last row a whole load would overrun, is loaded element by element.
 *
 * split_k blocks (1 .. 8) of one tile form a cluster: each adds up its own warps and sends its sums to
 * the block that finishes them. All sums are added in a fixed order. */
#ifndef GS_GEMM_DIRECT_CUH
#define GS_GEMM_DIRECT_CUH

#include "common.cuh"

enum {
  GS_HM = GS_BM / 8,
  GS_HN = GS_BN / 8,
  GS_HR = GS_SWAP ? GS_HM : GS_HN, /* of the operand along the instruction's rows, two to a fragment */
  GS_HC = GS_SWAP ? GS_HN : GS_HM,
  GS_THREADS = GS_WARPS * 32,
  /* Chunks that a warp takes in a row. Two share a line of 128 bytes where memory runs along k, which counts
   * for weights that come from far away; one by one, fewer warps idle when k is short. */
  GS_RUN = GS_SWAP ? 2 : 1,
  GS_ROUND = GS_STAGES * GS_WARPS,       /* chunks between a stage's use and its next */
  GS_RESULTS = GS_BM * GS_BN / 32,       /* a thread's */
  GS_SPAN = GS_SWAP ? GS_HM : 2 * GS_HM, /* of these lie together in D */
  GS_ITEM = GS_SPAN % 4 == 0 && GS_RESULTS / 4 >= GS_WARPS ? 4 : 2, /* are finished together */
  GS_ITEMS = GS_RESULTS / GS_ITEM,
  GS_SHARE = GS_ITEMS > GS_WARPS ? GS_ITEMS / GS_WARPS : 1, /* items that a thread finishes, at most */
  GS_PLANE = 32 * GS_ITEM * 4,                              /* bytes of one item of all lanes */
  GS_SLICES_BYTES = GS_WARPS > 1 ? GS_WARPS *GS_ITEMS *GS_PLANE : 0,
};

GS_ASSERT((GS_HM & (GS_HM - 1)) == 0 && GS_HM >= 2 && GS_HM <= 8, "m of the tile: 16, 32 or 64");
GS_ASSERT((GS_HN & (GS_HN - 1)) == 0 && GS_HN <= 8 && GS_HR % 2 == 0, "n of the tile: 8 .. 64, 16 as rows");
GS_ASSERT((GS_WARPS & (GS_WARPS - 1)) == 0 && GS_STAGES % GS_RUN == 0, "warps or stages");
GS_ASSERT(GS_SLICES_BYTES == GS_DIRECT_SLICES(GS_BM, GS_BN, GS_WARPS), "the host asks for another size");
GS_ASSERT((GS_ITEMS + 7) * GS_PLANE <= GS_DIRECT_SUMS(GS_BM, GS_BN), "the host asks for another size");

/* Words that a lane's part of a chunk of h * 8 rows takes. */
#define GS_WORDS(h) ((h) == 1 ? 8 : 4 * (h))

/* One operand's way in. h and kmajor (memory runs along k) are constants at every use. */
typedef struct {
  const char *from[8]; /* this lane's part of the next round: of each row if kmajor, else of k = 8t */
  int ld;              /* not kmajor: elements from one k to the next */
  int inside;          /* not kmajor: elements of m or n that a load may take */
} gs_reader_t;

GS_DEVICE int gs_lane_g(void) {
  return threadIdx.x / 4 % 8;
}
GS_DEVICE int gs_lane_t(void) {
  return threadIdx.x % 4;
}

GS_DEVICE void gs_reader_init(gs_reader_t *r, int h, int kmajor, const char *base, int ld, int mn0, int mn,
                              int k0) {
  const int k = k0 + gs_lane_t() * 8, first = mn0 + gs_lane_g() * h, at = gs_min(first, (mn - 1) & ~(h - 1));
  r->ld = ld;
  r->inside = mn - at;
  if (kmajor) {
#pragma unroll
    for (int i = 0; i < h; ++i)
      r->from[i] = base + (long long)gs_min(first + i, mn - 1) * (ld * 2LL) + k * 2LL;
  } else {
    r->from[0] = base + at * 2LL + k * (ld * 2LL);
  }
}

/* Where the chunk of stage s lies from that of stage 0, in chunks. */
GS_DEVICE int gs_chunk_place(int s) {
  return s / GS_RUN * GS_RUN * GS_WARPS + s % GS_RUN;
}

GS_DEVICE void gs_load_row(int h, const char *at, unsigned *v) {
  if (h == 1) v[0] = gs_once_b16(at);
  if (h == 2) v[0] = gs_once_b32(at);
  if (h == 4) gs_once_b64(at, v);
  if (h == 8) gs_once_b128(at, v);
}

/* The chunk of stage s, whole. */
GS_DEVICE void gs_fetch(const gs_reader_t *r, int h, int kmajor, int s, unsigned *v) {
  if (kmajor) {
#pragma unroll
    for (int i = 0; i < h; ++i) gs_once_b128(r->from[i] + gs_chunk_place(s) * 64, v + 4 * i);
  } else {
    const long long ld =
        gs_opaque(r->ld); /* else the products below are kept in registers, two for each load */
#pragma unroll
    for (int i = 0; i < 8; ++i)
      gs_load_row(h, r->from[0] + (gs_chunk_place(s) * 32 + i) * 2 * ld, v + i * GS_WORDS(h) / 8);
  }
}

GS_DEVICE void gs_advance(gs_reader_t *r, int h, int kmajor) {
  if (kmajor) {
#pragma unroll
    for (int i = 0; i < h; ++i) r->from[i] += GS_ROUND * 64;
  } else {
    r->from[0] += GS_ROUND * 32 * 2LL * r->ld;
  }
}

/* count elements of 2 bytes, of which the first `inside` are there; the rest is zero. */
GS_DEVICE void gs_load_singly(const char *at, int count, int inside, unsigned *v) {
#pragma unroll
  for (int e = 0; e < count; ++e) {
    unsigned bits = e < inside ? gs_once_b16(at + 2 * e) : 0;
    v[e / 2] = e % 2 ? v[e / 2] | bits << 16 : bits;
  }
}

/* A chunk of which this lane may read k_left elements of k, negative where it is beyond the end. */
GS_DEVICE void gs_fetch_ragged(const gs_reader_t *r, int h, int kmajor, int k_left, unsigned *v) {
  if (kmajor) {
#pragma unroll
    for (int i = 0; i < h; ++i) {
      if (k_left >= 8)
        gs_once_b128(r->from[i], v + 4 * i);
      else
        gs_load_singly(r->from[i], 8, k_left, v + 4 * i);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const char *at = r->from[0] + i * 2LL * r->ld;
      if (i < k_left && h <= r->inside)
        gs_load_row(h, at, v + i * GS_WORDS(h) / 8);
      else
        gs_load_singly(at, h, i < k_left ? r->inside : 0, v + i * GS_WORDS(h) / 8);
    }
  }
}

/* Of row i the elements 2w and 2w + 1 of this lane's eight. */
GS_DEVICE unsigned gs_pair(const unsigned *v, int h, int kmajor, int i, int w) {
  if (kmajor) return v[4 * i + w];
  if (h == 1) return gs_low_halves(v[2 * w], v[2 * w + 1]);
  unsigned x = v[2 * w * h / 2 + i / 2], y = v[(2 * w + 1) * h / 2 + i / 2];
  return i % 2 ? gs_high_halves(x, y) : gs_low_halves(x, y);
}

typedef float gs_acc_t[GS_HR / 2][GS_HC][4];

/* acc += one chunk; r and c are what the operands along rows and columns loaded. */
GS_DEVICE void gs_step(gs_acc_t acc, int type, int kmajor_r, int kmajor_c, const unsigned *r,
                       const unsigned *c) {
#pragma unroll
  for (int w = 0; w < 4; w += 2) {
#pragma unroll
    for (int i = 0; i < GS_HR / 2; ++i) {
      const unsigned rows[4] = {
          gs_pair(r, GS_HR, kmajor_r, 2 * i, w), gs_pair(r, GS_HR, kmajor_r, 2 * i + 1, w),
          gs_pair(r, GS_HR, kmajor_r, 2 * i, w + 1), gs_pair(r, GS_HR, kmajor_r, 2 * i + 1, w + 1)};
#pragma unroll
      for (int j = 0; j < GS_HC; ++j) {
        const unsigned columns[2] = {gs_pair(c, GS_HC, kmajor_c, j, w),
                                     gs_pair(c, GS_HC, kmajor_c, j, w + 1)};
        if (type == GS_E_BF16)
          gs_mma_bf16(acc[i][j], rows, columns);
        else
          gs_mma_f16(acc[i][j], rows, columns);
      }
    }
  }
}

/* Where this block works. */
typedef struct {
  int m, n;   /* first element of its tile */
  int rank;   /* in its cluster */
  int first;  /* its chunks of k: all but the last one whole, */
  int whole;  /* this many; */
  int ragged; /* and, perhaps, one that is loaded element by element */
} gs_spot_t;

GS_DEVICE gs_spot_t gs_find_spot(const gs_params_t *p, int transa, int transb) {
  const int overruns = (!transa && p->m % GS_HM) || (transb && p->n % GS_HN);
  const int ragged = p->k % 32 || overruns;
  const int chunks = (p->k + 31u) / 32;
  gs_spot_t spot = {(int)blockIdx.x * GS_BM, (int)blockIdx.y * GS_BN, 0, 0, chunks - ragged, ragged};
#if GS_CLUSTERS
  if (p->split_k > 1) {
    spot.rank = gs_cluster_rank();
    spot.n = gs_cluster_y() * GS_BN;
    spot.first = gs_quotient(chunks * spot.rank, p->split_k);
    int end = gs_quotient(chunks * (spot.rank + 1), p->split_k);
    spot.ragged = ragged && end == chunks;
    spot.whole = end - spot.first - spot.ragged;
  }
#endif
  return spot;
}

/* How many of the block's whole chunks are this warp's. */
GS_DEVICE int gs_chunks_of(unsigned whole, int warp) {
  int count = whole / (GS_RUN * GS_WARPS) * GS_RUN;
  int rest = (int)(whole % (GS_RUN * GS_WARPS)) - warp * GS_RUN;
#pragma unroll
  for (int i = 0; i < GS_RUN; ++i) count += rest > i;
  return count;
}

/* acc += op(A) op(B) over this warp's share of the block's chunks; nothing is read where alpha is 0. */
GS_DEVICE void gs_multiply(const gs_params_t *p, const gs_spot_t *spot, int type, int transa, int transb,
                           float alpha, gs_acc_t acc) {
  const int kmajor_a = transa, kmajor_b = !transb, warp = threadIdx.x / 32;
  const int kmajor_r = GS_SWAP ? kmajor_a : kmajor_b, kmajor_c = GS_SWAP ? kmajor_b : kmajor_a;
  const char *base_a = (const char *)p->a, *base_b = (const char *)p->b;
  if (p->stride_a) base_a += blockIdx.z * p->stride_a * 2;
  if (p->stride_b) base_b += blockIdx.z * p->stride_b * 2;
  const int k0 = (spot->first + warp * GS_RUN) * 32;
  unsigned v_a[GS_STAGES][GS_WORDS(GS_HM)], v_b[GS_STAGES][GS_WORDS(GS_HN)];
  gs_reader_t a, b;
#define GS_FETCH(s)   (gs_fetch(&a, GS_HM, kmajor_a, s, v_a[s]), gs_fetch(&b, GS_HN, kmajor_b, s, v_b[s]))
#define GS_STEP(a, b) gs_step(acc, type, kmajor_r, kmajor_c, GS_SWAP ? a : b, GS_SWAP ? b : a)

  gs_reader_init(&a, GS_HM, kmajor_a, base_a, p->lda, spot->m, p->m, k0);
  gs_reader_init(&b, GS_HN, kmajor_b, base_b, p->ldb, spot->n, p->n, k0);
  int left = alpha == 0.0f ? 0 : gs_chunks_of(spot->whole, warp);
#pragma unroll
  for (int s = 0; s < GS_STAGES; ++s)
    if (s < left) GS_FETCH(s);
#pragma unroll 1
  for (; left >= 2 * GS_STAGES; left -= GS_STAGES) {
    gs_advance(&a, GS_HM, kmajor_a);
    gs_advance(&b, GS_HN, kmajor_b);
#pragma unroll
    for (int s = 0; s < GS_STAGES; ++s) {
      GS_STEP(v_a[s], v_b[s]);
      GS_FETCH(s);
    }
  }
  gs_advance(&a, GS_HM, kmajor_a);
  gs_advance(&b, GS_HN, kmajor_b);
#pragma unroll 1
  for (; left > 0; left -= GS_STAGES) {
#pragma unroll
    for (int s = 0; s < GS_STAGES; ++s) {
      if (s < left) GS_STEP(v_a[s], v_b[s]);
      if (s + GS_STAGES < left) GS_FETCH(s);
    }
  }

  if (spot->ragged && (unsigned)spot->whole / GS_RUN % GS_WARPS == (unsigned)warp && alpha != 0.0f) {
    const int last = (spot->first + spot->whole) * 32, k_left = p->k - last - gs_lane_t() * 8;
    gs_reader_init(&a, GS_HM, kmajor_a, base_a, p->lda, spot->m, p->m, last);
    gs_reader_init(&b, GS_HN, kmajor_b, base_b, p->ldb, spot->n, p->n, last);
    gs_fetch_ragged(&a, GS_HM, kmajor_a, k_left, v_a[0]);
    gs_fetch_ragged(&b, GS_HN, kmajor_b, k_left, v_b[0]);
    GS_STEP(v_a[0], v_b[0]);
  }
#undef GS_FETCH
#undef GS_STEP
}

/* Result e of this thread; those of one span lie together along m. */
GS_DEVICE float gs_result(gs_acc_t acc, int e) {
  int line = e / GS_SPAN, at = e % GS_SPAN;
  return GS_SWAP ? acc[at / 2][line / 2][at % 2 * 2 + line % 2]
                 : acc[line / 2][at % GS_HM][line % 2 * 2 + at / GS_HM];
}

/* An item's first element of m and its element of n, in the tile. */
GS_DEVICE int gs_item_m(int item) {
  return (GS_SWAP ? gs_lane_g() : gs_lane_t()) * GS_SPAN + item * GS_ITEM % GS_SPAN;
}
GS_DEVICE int gs_item_n(int item) {
  int line = item * GS_ITEM / GS_SPAN;
  return GS_SWAP ? (gs_lane_t() * 2 + line % 2) * GS_HN + line / 2 : gs_lane_g() * GS_HN + line;
}

typedef float gs_items_t[GS_SHARE][4]; /* the first GS_ITEM are used */

GS_DEVICE void gs_put(unsigned to, const float v[4]) {
  if (GS_ITEM == 4) {
    const unsigned raw[4] = {gs_bits(v[0]), gs_bits(v[1]), gs_bits(v[2]), gs_bits(v[3])};
    gs_shared_store_b128(to, raw);
  } else {
    gs_shared_store_b64(to, v[0], v[1]);
  }
}

GS_DEVICE void gs_add(unsigned from, float v[4]) {
  float more[4];
  if (GS_ITEM == 4)
    gs_shared_load_f32x4(from, more);
  else
    gs_shared_load_f32x2(from, more);
#pragma unroll
  for (int e = 0; e < GS_ITEM; ++e) v[e] += more[e];
}

GS_DEVICE void gs_clear(gs_items_t v) {
#pragma unroll
  for (int e = 0; e < GS_SHARE * GS_ITEM; ++e) v[e / GS_ITEM][e % GS_ITEM] = 0.0f;
}

/* v = this thread's items warp, warp + GS_WARPS, ..., summed over the warps in their order. */
GS_DEVICE void gs_reduce_warps(gs_acc_t acc, unsigned shared, gs_items_t v) {
  const int warp = threadIdx.x / 32;
  const unsigned mine = shared + threadIdx.x % 32 * (GS_ITEM * 4);
#pragma unroll
  for (int q = 0; q < GS_ITEMS; ++q) {
    float own[4];
#pragma unroll
    for (int e = 0; e < GS_ITEM; ++e) {
      own[e] = gs_result(acc, q * GS_ITEM + e);
      if (GS_WARPS == 1) v[q % GS_SHARE][e] = own[e];
    }
    if (GS_WARPS > 1) gs_put(mine + (warp * GS_ITEMS + q) * GS_PLANE, own);
  }
  if (GS_WARPS > 1) {
    gs_sync();
    gs_clear(v);
  }
#pragma unroll
  for (int j = 0; j < GS_SHARE; ++j) {
#pragma unroll
    for (int w = 0; w < GS_WARPS; ++w)
      if (GS_WARPS > 1 && warp < GS_ITEMS)
        gs_add(mine + (w * GS_ITEMS + warp + j * GS_WARPS) * GS_PLANE, v[j]);
  }
}

#if GS_CLUSTERS
/* Item q of the tile is finished by block q % split_k of the cluster, as its item q / split_k. Everyone sends
 * its sums there; v = this thread's items of the block, summed over the blocks in their order. */
GS_DEVICE void gs_reduce_cluster(const gs_spot_t *spot, unsigned splits, unsigned shared, gs_items_t v) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32 * (GS_ITEM * 4);
  const unsigned sums = shared + GS_SLICES_BYTES, items = gs_quotient(GS_ITEMS + splits - 1, splits);
  gs_cluster_wait(); /* everyone has begun */
#pragma unroll
  for (int j = 0; j < GS_SHARE; ++j) {
    unsigned q = warp + j * GS_WARPS, of_owner = gs_quotient(q, splits), owner = q - of_owner * splits;
    if (q >= GS_ITEMS) continue;
    unsigned to = sums + (spot->rank * items + of_owner) * GS_PLANE + lane;
    if (GS_ITEM == 4)
      gs_remote_store_f32x4(to, owner, v[j]);
    else
      gs_remote_store_f32x2(to, owner, v[j]);
  }
  gs_cluster_arrive();
  gs_cluster_wait(); /* everything has arrived, and nobody touches another block any more */
  gs_clear(v);
#pragma unroll
  for (int j = 0; j < GS_SHARE; ++j) {
    unsigned q = warp + j * GS_WARPS;
    if (q >= items) continue;
#pragma unroll
    for (unsigned s = 0; s < GS_DIRECT_SPLITS; ++s)
      if (s < splits) gs_add(sums + (s * items + q) * GS_PLANE + lane, v[j]);
  }
}
#endif

/* Whether items of consecutive elements may be moved whole. */
GS_DEVICE int gs_whole_items(const void *base, int ld, long long stride, int type) {
  return (((unsigned)(unsigned long long)base | (unsigned)ld * gs_bytes(type) |
           (unsigned)stride * gs_bytes(type)) &
          (GS_ITEM * gs_bytes(type) - 1)) == 0;
}

GS_DEVICE void gs_load_item(int type, const char *at, int whole, int count, unsigned raw[4]) {
  const int bytes = gs_bytes(type);
  if (whole) {
    if (GS_ITEM * bytes == 4) raw[0] = gs_load_b32(at);
    if (GS_ITEM * bytes == 8) gs_load_b64(at, raw);
    if (GS_ITEM * bytes == 16) gs_load_b128(at, raw);
    return;
  }
#pragma unroll
  for (int e = 0; e < GS_ITEM; ++e) {
    unsigned bits = e >= count ? 0 : bytes == 4 ? gs_load_b32(at + e * 4) : gs_load_b16(at + e * 2);
    if (bytes == 4)
      raw[e] = bits;
    else
      raw[e / 2] = e % 2 ? raw[e / 2] | bits << 16 : bits;
  }
}

GS_DEVICE void gs_store_item(int type, char *at, int whole, int count, const float v[4]) {
  const int bytes = gs_bytes(type);
  unsigned raw[4];
  if (whole) {
#pragma unroll
    for (int e = 0; e < GS_ITEM * bytes / 4; ++e)
      raw[e] = bytes == 4 ? gs_bits(v[e]) : gs_narrow2(type, v[2 * e % 4], v[(2 * e + 1) % 4]);
    if (GS_ITEM * bytes == 4) gs_store_b32(at, raw[0]);
    if (GS_ITEM * bytes == 8) gs_store_b64(at, raw);
    if (GS_ITEM * bytes == 16) gs_store_b128(at, raw);
    return;
  }
#pragma unroll
  for (int e = 0; e < GS_ITEM; ++e)
    if (e < count) gs_store1(type, at + e * bytes, v[e]);
}

/* Finishes and stores items first, first + step, ... */
GS_DEVICE void gs_finish(const gs_params_t *p, const gs_spot_t *spot, int d_type, float alpha, float beta,
                         int first, int step, gs_items_t v) {
  const int bytes = gs_bytes(d_type);
  const char *c = (const char *)p->c;
  char *d = (char *)p->d;
  if (p->stride_c) c += blockIdx.z * p->stride_c * bytes;
  if (p->stride_d) d += blockIdx.z * p->stride_d * bytes;
  const int whole_c = gs_whole_items(p->c, p->ldc, p->stride_c, d_type);
  const int whole_d = gs_whole_items(p->d, p->ldd, p->stride_d, d_type);
  unsigned raw_c[GS_SHARE][4];
  if (beta != 0.0f) {
#pragma unroll
    for (int j = 0; j < GS_SHARE; ++j) {
      int item = first + j * step, m = spot->m + gs_item_m(item), n = spot->n + gs_item_n(item);
      if (item >= GS_ITEMS || m >= p->m || n >= p->n) continue;
      gs_load_item(d_type, c + ((long long)n * p->ldc + m) * bytes, whole_c && m + GS_ITEM <= p->m, p->m - m,
                   raw_c[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < GS_SHARE; ++j) {
    int item = first + j * step, m = spot->m + gs_item_m(item), n = spot->n + gs_item_n(item);
    if (item >= GS_ITEMS || m >= p->m || n >= p->n) continue;
#pragma unroll
    for (int e = 0; e < GS_ITEM; ++e) v[j][e] *= alpha;
    if (gs_has_bias(p->epilogue)) {
#pragma unroll
      for (int e = 0; e < GS_ITEM; ++e)
        if (m + e < p->m) v[j][e] += gs_load1(d_type, (const char *)p->bias + (m + e) * (long long)bytes);
    }
    if (beta != 0.0f) {
#pragma unroll
      for (int e = 0; e < GS_ITEM; ++e)
        v[j][e] +=
            beta * (bytes == 4 ? gs_float(raw_c[j][e]) : gs_widen(d_type, raw_c[j][e / 2] >> e % 2 * 16));
    }
    if (p->epilogue != GS_EPI_DEFAULT && p->epilogue != GS_EPI_BIAS) {
#pragma unroll
      for (int e = 0; e < GS_ITEM; ++e) v[j][e] = gs_activate(p->epilogue, v[j][e]);
    }
    gs_store_item(d_type, d + ((long long)n * p->ldd + m) * bytes, whole_d && m + GS_ITEM <= p->m, p->m - m,
                  v[j]);
  }
}

GS_DEVICE void gs_direct(const gs_params_t *p, int type, int d_type, int transa, int transb) {
  const unsigned shared = gs_shared_address();
  gs_spot_t spot = gs_find_spot(p, transa, transb);
#if GS_CLUSTERS
  if (p->split_k > 1) gs_cluster_begin();
#endif
  float alpha = p->alpha_ptr ? gs_float(gs_load_b32(p->alpha_ptr)) : p->alpha;
  float beta = p->beta_ptr ? gs_float(gs_load_b32(p->beta_ptr)) : p->beta;
  gs_acc_t acc;
  gs_items_t v;
#pragma unroll
  for (int e = 0; e < GS_RESULTS; ++e) acc[e / (4 * GS_HC)][e / 4 % GS_HC][e % 4] = 0.0f;
  gs_multiply(p, &spot, type, transa, transb, alpha, acc);
  gs_reduce_warps(acc, shared, v);
  int first = threadIdx.x / 32, step = GS_WARPS;
#if GS_CLUSTERS
  if (p->split_k > 1) {
    gs_reduce_cluster(&spot, p->split_k, shared, v);
    first = spot.rank + p->split_k * first;
    step *= p->split_k;
  }
#endif
  gs_finish(p, &spot, d_type, alpha, beta, first, step, v);
}

#endif
