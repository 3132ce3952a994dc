/* Family direct: D = epilogue(alpha op(A) op(B) + beta C) for products that are small or narrow, sm_80 and
 * up. Operands go straight from global memory into the fragments of mma.sync; shared memory only adds up,
 * once. The includer sets
 * - GS_BM GS_BN: a block's tile, 8, 16, 32 or 64 elements of m and of n
 * - GS_STAGES: chunks of 32 k that each warp keeps in flight
 * - GS_WARPS: a power of two; all work on the same tile, each on its share of k
 * - GS_SWAP: 0: n runs along the instruction's 16 rows, m along its 8 columns; 1: the other way round, for n
 *   of 8 or less
 * and calls gs_direct with its own constants for types and layout.
 *
 * The order of k. The sum does not care in which slot of the instruction an element of k sits, as long as
 * both operands agree. Lane (g, t) = (lane / 4, lane % 4) takes k = 8t .. 8t + 7 of a chunk: the first four
 * fill its slots 2t, 2t + 1, 2t + 8, 2t + 9 in one step, the others in a second one. Where memory runs along
 * k, that is one load of 16 bytes a row.
 *
 * Lines. That is 64 bytes of each of 8 rows a warp, half of their lines. So, in swapped tiles of 16 x 8 whose operands both lie
 * along k, two chunks are loaded together: lanes g and g ^ 1 share the rows of both, each takes one of the chunks, and a
 * load is 128 bytes of 4 rows. Its products with either chunk of B are kept apart: in half of the fragment's rows A and B are
 * of one chunk, and count. The others are of no use, and instructions of no account here.
 * A warp's chunks lie together, so that those that are under way at a time are spread over all of k: if warps took turns,
 * they would be at the same place of every row, a few of the memory's channels.
 *
 * The order of m and n. Of an extent of 8h elements lane g takes g * h
 * .. g * h + h - 1, one in each of h fragments. Where memory runs along m or n, that is one load of 2h bytes
 * for each k, and a byte permutation pairs neighbours in k; of an extent of 8 elements a lane loads two, for half of the k, and
 * movmatrix hands them to the lanes that multiply them. Results of a thread lie together along m in either case.
 *
 * Rows beyond m or n are read from the last legal place: what they add up to is never stored. A last chunk
 * in which k ends, or whose last row a whole load would overrun, is loaded element by element; one that is left without
 * the other of its pair, by itself.
 *
 * split_k blocks (1 .. 8) of one tile form a cluster: each adds up its own warps and sends its sums to
 * the block that finishes them. All sums are added in a fixed order. */
#ifndef GS_GEMM_DIRECT_CUH
#define GS_GEMM_DIRECT_CUH

#include "direct_finish.cuh"

/* Words that a lane's part of a chunk of h * 8 rows takes. */
#define GS_WORDS(h) (4 * (h))

/* One operand's way in. h, kmajor (memory runs along k) and paired are constants at every use. */
typedef struct {
  const char *from[16]; /* this lane's part of the next round: of each row if kmajor, else of its first k */
  int ld;               /* not kmajor: elements from one k to the next */
  int inside;           /* not kmajor: elements of m or n that a load may take */
} gs_reader_t;

/* Elements of m or n that are loaded at once where memory runs along them. */
GS_DEVICE int gs_together(int h) {
  return h == 1 ? 2 : h;
}

/* Of eight a lane loads two, of every other k, and a matrix of 8 x 8 is turned. */
GS_DEVICE int gs_is_turned(int h, int kmajor) {
  return h == 1 && !kmajor;
}

/* The first of a chunk's k that this lane loads. */
GS_DEVICE int gs_first_k(int h, int kmajor) {
  return gs_is_turned(h, kmajor) ? gs_lane_g() / 2 * 8 + gs_lane_g() % 2 : gs_lane_t() * 8;
}

GS_DEVICE void gs_reader_init(gs_reader_t *r, int h, int kmajor, int paired, const char *base, int ld,
                              int mn0, int mn, int k0) {
  const int odd = paired ? gs_lane_g() % 2 : 0;
  const unsigned ld_bytes = ld * 2u, k = k0 + gs_first_k(h, kmajor) + odd * 32;
  const int first = mn0 + (gs_is_turned(h, kmajor) ? gs_lane_t() * 2 : (gs_lane_g() - odd) * h);
  const int at = gs_min(first, (mn - 1) & ~(gs_together(h) - 1));
  r->ld = ld;
  r->inside = mn - at;
  if (kmajor) {
#pragma unroll
    for (int i = 0; i < h << paired; ++i)
      r->from[i] = base + k * 2LL + (unsigned)gs_min(first + i, mn - 1) * (unsigned long long)ld_bytes;
  } else {
    r->from[0] = base + at * 2LL + k * (unsigned long long)ld_bytes;
  }
}

GS_DEVICE void gs_load_row(int h, const char *at, unsigned *v) {
  if (h == 2) v[0] = gs_once_b32(at);
  if (h == 4) gs_once_b64(at, v);
  if (h == 8) gs_once_b128(at, v);
}

/* The chunk of stage s, whole; paired: half of the rows of two chunks. shared: other blocks want it too. */
GS_DEVICE void gs_fetch(const gs_reader_t *r, int h, int kmajor, int paired, int shared, int s, unsigned *v) {
  const int row = paired ? s % 2 * h : 0, chunk = paired ? s - s % 2 : s;
  if (kmajor) {
#pragma unroll
    for (int i = 0; i < h; ++i) {
      const char *at = r->from[row + i] + chunk * 64;
      if (shared)
        gs_near_b128(at, v + 4 * i);
      else
        gs_once_b128(at, v + 4 * i);
    }
  } else {
    const long long ld =
        gs_opaque(r->ld); /* else the products below are kept in registers, two for each load */
#pragma unroll
    for (int i = 0; i < 8; i += gs_together(h) / h)
      gs_load_row(gs_together(h), r->from[0] + (chunk * 32 + i) * 2 * ld, v + i * h / 2);
  }
}

GS_DEVICE void gs_advance(gs_reader_t *r, int h, int kmajor, int paired) {
  if (kmajor) {
#pragma unroll
    for (int i = 0; i < h << paired; ++i) r->from[i] += GS_STAGES * 64;
  } else {
    r->from[0] += GS_STAGES * 32 * 2LL * r->ld;
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

/* A chunk in which k ends after `inside` elements. */
GS_DEVICE void gs_fetch_ragged(const gs_reader_t *r, int h, int kmajor, int inside, unsigned *v) {
  const int k_left = inside - gs_first_k(h, kmajor); /* for this lane; negative where it is beyond the end */
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
    for (int i = 0; i < 8; i += gs_together(h) / h) {
      const char *at = r->from[0] + i * 2LL * r->ld;
      if (i < k_left && gs_together(h) <= r->inside)
        gs_load_row(gs_together(h), at, v + i * h / 2);
      else
        gs_load_singly(at, gs_together(h), i < k_left ? r->inside : 0, v + i * h / 2);
    }
  }
}

/* Of row i the elements 2w and 2w + 1 of this lane's eight. */
GS_DEVICE unsigned gs_pair(const unsigned *v, int h, int kmajor, int i, int w) {
  if (kmajor) return v[4 * i + w];
  if (h == 1) return gs_transpose(v[w]);
  unsigned x = v[2 * w * h / 2 + i / 2], y = v[(2 * w + 1) * h / 2 + i / 2];
  return i % 2 ? gs_high_halves(x, y) : gs_low_halves(x, y);
}

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

/* chains += the pair of chunks of stages s and s + 1, each load of A with both chunks of B. */
GS_DEVICE void gs_step_pair(gs_chains_t chains, int type, const unsigned (*a)[GS_WORDS(GS_HM)],
                            const unsigned (*b)[GS_WORDS(GS_HN)]) {
#pragma unroll
  for (int i = 0; i < GS_CHAINS; ++i) gs_step(chains[i], type, 1, 1, a[i / 2], b[i % 2]);
}

/* Of the block's whole chunks this warp's: so many from *first on. */
GS_DEVICE int gs_share_of(const gs_spot_t *spot, unsigned warp, int *first) {
  const unsigned pairs = (unsigned)spot->whole / GS_PAIR, each = pairs / GS_WARPS, rest = pairs % GS_WARPS;
  *first = spot->first + (warp * each + gs_min(warp, rest)) * GS_PAIR;
  return (each + (warp < rest)) * GS_PAIR;
}

GS_DEVICE int gs_is_paired(int transa, int transb) {
  return GS_CHAINS == 4 && transa && !transb;
}

/* This warp's share of the block's whole chunks; what comes after the products is prepared under cover of the loads. */
GS_DEVICE void gs_multiply(const gs_params_t *p, gs_spot_t *spot, int type, int d_type, int transa,
                           int transb, unsigned shared, gs_bias_t bias, gs_chains_t chains) {
  const int kmajor_a = transa, kmajor_b = !transb, paired = gs_is_paired(transa, transb);
  const int kmajor_r = GS_SWAP ? kmajor_a : kmajor_b, kmajor_c = GS_SWAP ? kmajor_b : kmajor_a;
  unsigned v_a[GS_STAGES][GS_WORDS(GS_HM)], v_b[GS_STAGES][GS_WORDS(GS_HN)];
  gs_reader_t a = {0}, b = {0};
  int first, left = gs_share_of(spot, threadIdx.x / 32, &first);
#define GS_FETCH(s)                                                                                          \
  (gs_fetch(&a, GS_HM, kmajor_a, paired, 0, s, v_a[s]), gs_fetch(&b, GS_HN, kmajor_b, 0, 1, s, v_b[s]))
#define GS_FETCH_PAIR(s) (GS_FETCH(s), GS_PAIR == 2 ? GS_FETCH((s) + GS_PAIR - 1) : (void)0)
#define GS_STEP(s)                                                                                           \
  gs_step(chains[0], type, kmajor_r, kmajor_c, GS_SWAP ? v_a[s] : v_b[s], GS_SWAP ? v_b[s] : v_a[s])
#define GS_STEP_PAIR(s)                                                                                      \
  (paired         ? gs_step_pair(chains, type, v_a + (s), v_b + (s))                                         \
   : GS_PAIR == 2 ? (GS_STEP(s), GS_STEP((s) + GS_PAIR - 1))                                                 \
                  : GS_STEP(s))
#define GS_ADVANCE() (gs_advance(&a, GS_HM, kmajor_a, paired), gs_advance(&b, GS_HN, kmajor_b, 0))

  gs_reader_init(&a, GS_HM, kmajor_a, paired, spot->a, p->lda, spot->m, p->m, first * 32);
  gs_reader_init(&b, GS_HN, kmajor_b, 0, spot->b, p->ldb, spot->n, p->n, first * 32);
#pragma unroll
  for (int s = 0; s < GS_STAGES; s += GS_PAIR)
    if (s < left) GS_FETCH_PAIR(s);
  gs_open_cluster(p, spot, shared);
  spot->plain = gs_is_plain(p, spot, d_type); /* what it reads of p is near when the end comes */
  spot->quick = gs_opaque(spot->plain & !spot->ragged & (p->split_k == 1));
  if (GS_BIAS_EARLY) gs_fetch_bias(p, spot, d_type, bias);
#pragma unroll 1
  for (; left >= 2 * GS_STAGES; left -= GS_STAGES) {
    GS_ADVANCE();
#pragma unroll
    for (int s = 0; s < GS_STAGES; s += GS_PAIR) {
      GS_STEP_PAIR(s);
      GS_FETCH_PAIR(s);
    }
  }
  GS_ADVANCE();
#pragma unroll 1
  for (; left > 0; left -= GS_STAGES) {
#pragma unroll
    for (int s = 0; s < GS_STAGES; s += GS_PAIR) {
      if (s < left) GS_STEP_PAIR(s);
      if (s + GS_STAGES < left) GS_FETCH_PAIR(s);
    }
  }
#undef GS_FETCH
#undef GS_FETCH_PAIR
#undef GS_STEP
#undef GS_STEP_PAIR
#undef GS_ADVANCE
}

/* acc = the sum of the chains. Paired: a lane has its own rows' products in one chunk, its neighbour those in the other. */
GS_DEVICE void gs_join_chains(const gs_chains_t chains, int paired, gs_acc_t acc) {
  const int odd = gs_lane_g() % 2;
#pragma unroll
  for (int e = 0; e < GS_RESULTS; ++e) {
    const int i = e / (4 * GS_HC), j = e / 4 % GS_HC;
#define GS_OF(chain) chains[(chain) % GS_CHAINS][i][j][e % 4]
    acc[i][j][e % 4] = paired && odd ? GS_OF(3) : GS_OF(0);
    if (paired) acc[i][j][e % 4] += gs_float(gs_swap_lanes(gs_bits(odd ? GS_OF(1) : GS_OF(2)), 4));
#undef GS_OF
  }
}

/* The last chunks, which are not to be loaded whole: the last warps', who have the least to do. */
GS_DEVICE void gs_multiply_ragged(const gs_params_t *p, const gs_spot_t *spot, int type, int transa,
                                  int transb, gs_acc_t acc) {
  const int kmajor_a = transa, kmajor_b = !transb;
#pragma unroll 1
  for (int i = GS_WARPS - 1 - threadIdx.x / 32; i < spot->ragged; i += GS_WARPS) {
    const int at = (spot->first + spot->whole + i) * 32, inside = p->k - at;
    unsigned v_a[GS_WORDS(GS_HM)], v_b[GS_WORDS(GS_HN)];
    gs_reader_t a = {0}, b = {0};
    gs_reader_init(&a, GS_HM, kmajor_a, 0, spot->a, p->lda, spot->m, p->m, at);
    gs_reader_init(&b, GS_HN, kmajor_b, 0, spot->b, p->ldb, spot->n, p->n, at);
    gs_fetch_ragged(&a, GS_HM, kmajor_a, inside, v_a);
    gs_fetch_ragged(&b, GS_HN, kmajor_b, inside, v_b);
    gs_step(acc, type, GS_SWAP ? kmajor_a : kmajor_b, GS_SWAP ? kmajor_b : kmajor_a, GS_SWAP ? v_a : v_b,
            GS_SWAP ? v_b : v_a);
  }
}

GS_DEVICE void gs_direct(const gs_params_t *p, int type, int d_type, int transa, int transb) {
  gs_await_stream();
  const unsigned shared = gs_shared_address();
  const int paired = gs_is_paired(transa, transb);
  gs_spot_t spot = gs_find_spot(p, transa, transb);
  if (gs_rarely(p->special)) gs_find_special(p, &spot);
  gs_chains_t chains;
  gs_acc_t acc;
  gs_items_t v;
  gs_bias_t bias;
#pragma unroll
  for (int e = 0; e < GS_CHAINS * GS_RESULTS; ++e)
    chains[e / GS_RESULTS][e % GS_RESULTS / (4 * GS_HC)][e / 4 % GS_HC][e % 4] = 0.0f;
  gs_multiply(p, &spot, type, d_type, transa, transb, shared, bias, chains);
  if (spot.quick) { /* the same as below without what is rare, so that nothing has to be jumped over */
    gs_join_chains(chains, paired, acc);
    gs_reduce_warps(acc, shared, v);
    gs_finish_plain(p, &spot, d_type, bias, v);
    return;
  }
  gs_join_chains(chains, paired, acc);
  gs_multiply_ragged(p, &spot, type, transa, transb, acc);
  gs_reduce_warps(acc, shared, v);
#if GS_CLUSTERS
  if (p->split_k > 1) gs_reduce_cluster(&spot, p->split_k, shared, v);
#endif
  if (spot.plain)
    gs_finish_plain(p, &spot, d_type, bias, v);
  else
    gs_finish(p, &spot, d_type, v);
}

#endif
