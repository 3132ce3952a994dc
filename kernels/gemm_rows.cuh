/* Family rows: D = epilogue(alpha op(A) op(B) + beta C) for one or two columns of B, where A comes from memory once and
 * tensor cores would be idle but for that column: multiplied by FMA in fp32. Small blocks, many of them, with
 * next to nothing ahead of their first loads. The includer sets
 * - GS_BM: rows of A a block; where memory runs along m, groups of 8 rows
 * - GS_BN: columns of B a block, 1 or 2
 * - GS_STAGES: loads of A that each lane keeps in flight
 * - GS_WARPS: a power of two, GS_BM or more
 * and calls gs_rows with its own constants for types and layout.
 *
 * Where memory of A runs along k, GS_WARPS / GS_BM warps share a row, and each of their loads takes 512 bytes of it. Where it
 * runs along m, a load of a lane takes 8 rows at one k; neighbouring lanes have neighbouring groups, the block's lanes
 * share k.
 *
 * Sums are added in a fixed order: each lane its own, those of a warp by a butterfly, then the warps' through
 * shared memory. A column beyond n, or a row beyond m where memory runs along k, is read from the last legal place: what it
 * adds up to is never stored. */
#ifndef GS_GEMM_ROWS_CUH
#define GS_GEMM_ROWS_CUH

#include "common.cuh"

enum {
  GS_THREADS = GS_WARPS * 32,
  GS_LINE = GS_THREADS / GS_BM, /* threads of a row, or of a group of rows */
};

GS_ASSERT(GS_BM >= 1 && (GS_BM & (GS_BM - 1)) == 0 && (GS_WARPS & (GS_WARPS - 1)) == 0 && GS_BM <= GS_WARPS,
          "warps share a row evenly");
GS_ASSERT(GS_BN == 1 || GS_BN == 2, "columns: 1 or 2");

/* Where this block works. */
typedef struct {
  const char *a, *b; /* of its product */
  int m, n;          /* its first row and column */
  int k;             /* elements to add up */
} gs_spot_t;

/* Whether A and B are not to be read. */
GS_DEVICE int gs_reads_nothing(const gs_params_t *p) {
  return gs_rarely(p->special) && gs_scalar(p->alpha_ptr, p->alpha) == 0.0f;
}

GS_DEVICE gs_spot_t gs_find_spot(const gs_params_t *p, int transa) {
  gs_spot_t spot = {(const char *)p->a, (const char *)p->b, (int)blockIdx.x * GS_ROWS_OF(GS_BM, transa),
                    (int)blockIdx.y * GS_BN, p->k};
  if (gs_rarely(p->special)) {
    spot.a += blockIdx.z * p->stride_a * 2;
    spot.b += blockIdx.z * p->stride_b * 2;
    if (gs_reads_nothing(p)) spot.k = 0;
  }
  return spot;
}

/* The block's columns of B, of which one beyond the last is the last; step: bytes from one k to the next. */
typedef struct {
  const char *at[GS_BN];
  long long step;
} gs_columns_t;

GS_DEVICE gs_columns_t gs_find_columns(const gs_params_t *p, const gs_spot_t *spot, int transb) {
  gs_columns_t b;
  b.step = transb ? p->ldb * 2LL : 2;
#pragma unroll
  for (int n = 0; n < GS_BN; ++n)
    b.at[n] = spot->b + gs_min(spot->n + n, p->n - 1) * (transb ? 2LL : p->ldb * 2LL);
  return b;
}

/* Eight elements, `step` bytes from one to the next, of which the first count are there; the rest is zero. */
GS_DEVICE void gs_gather(const char *at, long long step, int count, unsigned v[4]) {
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const unsigned bits = e < count ? gs_load_b16(at + e * step) : 0;
    v[e / 2] = e % 2 ? v[e / 2] | bits << 16 : bits;
  }
}

/* sum + the products of eight pairs, in their order. */
GS_DEVICE float gs_dot(int type, const unsigned x[4], const unsigned y[4], float sum) {
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    sum += gs_widen(type, x[w] & 0xffff) * gs_widen(type, y[w] & 0xffff);
    sum += gs_widen(type, x[w] >> 16) * gs_widen(type, y[w] >> 16);
  }
  return sum;
}

/* This thread's row, or the last one: its elements of A. */
GS_DEVICE const char *gs_find_row(const gs_params_t *p, const gs_spot_t *spot, unsigned thread) {
  return spot->a + gs_min(spot->m + (int)(thread / GS_LINE), p->m - 1) * (p->lda * 2LL);
}

/* Elements behind the last whole chunk, one for each of the first threads of a row. Nothing is kept for it. */
GS_DEVICE void gs_multiply_rest(const gs_params_t *p, const gs_spot_t *spot, int type, int transb,
                                float sums[GS_BN]) {
  const unsigned thread = (unsigned)gs_opaque((int)threadIdx.x);
  const int k = p->k / 8 * 8 + (int)(thread % GS_LINE);
  if (k >= p->k || gs_reads_nothing(p)) return;
  const gs_columns_t b = gs_find_columns(p, spot, transb);
  const float x = gs_widen(type, gs_load_b16(gs_find_row(p, spot, thread) + k * 2LL));
#pragma unroll
  for (int n = 0; n < GS_BN; ++n) sums[n] += x * gs_widen(type, gs_load_b16(b.at[n] + k * b.step));
}

/* Memory of A along k: this lane's share of its row, by chunks of 8 k. */
GS_DEVICE void gs_multiply_along_k(const gs_params_t *p, const gs_spot_t *spot, int type, int transb,
                                   float sums[GS_BN]) {
  const int first = threadIdx.x % GS_LINE;
  const char *a = gs_find_row(p, spot, threadIdx.x) + first * 16;
  gs_columns_t b = gs_find_columns(p, spot, transb);
#pragma unroll
  for (int n = 0; n < GS_BN; ++n) b.at[n] += first * 8 * b.step;
#pragma unroll 1
  for (int left = (int)((unsigned)spot->k / 8) - first; left > 0; left -= GS_LINE * GS_STAGES) {
    unsigned x[GS_STAGES][4], y[GS_STAGES][GS_BN][4];
#pragma unroll
    for (int s = 0; s < GS_STAGES; ++s)
      if (s * GS_LINE < left) gs_once_b128(a + s * GS_LINE * 16, x[s]);
#pragma unroll
    for (int s = 0; s < GS_STAGES * GS_BN; ++s) {
      const char *at = b.at[s % GS_BN] + s / GS_BN * GS_LINE * 8 * b.step;
      if (s / GS_BN * GS_LINE >= left) continue;
      if (transb)
        gs_gather(at, b.step, 8, y[s / GS_BN][s % GS_BN]);
      else
        gs_near_b128(at, y[s / GS_BN][s % GS_BN]);
    }
#pragma unroll
    for (int s = 0; s < GS_STAGES * GS_BN; ++s)
      if (s / GS_BN * GS_LINE < left)
        sums[s % GS_BN] = gs_dot(type, x[s / GS_BN], y[s / GS_BN][s % GS_BN], sums[s % GS_BN]);
    a += GS_LINE * GS_STAGES * 16;
#pragma unroll
    for (int n = 0; n < GS_BN; ++n) b.at[n] += GS_LINE * GS_STAGES * 8 * b.step;
  }
  if (gs_rarely(p->k % 8)) gs_multiply_rest(p, spot, type, transb, sums);
}

/* Memory of A along m: this lane's share of k of its group of 8 rows, of which fewer, or none, may be there. */
GS_DEVICE void gs_multiply_along_m(const gs_params_t *p, const gs_spot_t *spot, int type, int transb,
                                   float sums[GS_BN][8]) {
  const int m = spot->m + (int)(threadIdx.x % GS_BM) * 8, inside = p->m - m;
  const gs_columns_t b = gs_find_columns(p, spot, transb);
  for (int k = threadIdx.x / GS_BM; k < spot->k; k += GS_LINE * GS_STAGES) {
    unsigned x[GS_STAGES][4], y[GS_STAGES][GS_BN];
#pragma unroll
    for (int s = 0; s < GS_STAGES; ++s) {
      const int at = k + s * GS_LINE;
      const char *from = spot->a + (m + at * (long long)p->lda) * 2;
      if (at >= spot->k) continue;
      if (inside >= 8)
        gs_once_b128(from, x[s]);
      else
        gs_gather(from, 2, inside, x[s]);
    }
#pragma unroll
    for (int s = 0; s < GS_STAGES * GS_BN; ++s) {
      const int at = k + s / GS_BN * GS_LINE;
      if (at < spot->k) y[s / GS_BN][s % GS_BN] = gs_load_b16(b.at[s % GS_BN] + at * b.step);
    }
#pragma unroll
    for (int s = 0; s < GS_STAGES * GS_BN; ++s) {
      if (k + s / GS_BN * GS_LINE >= spot->k) continue;
      const float factor = gs_widen(type, y[s / GS_BN][s % GS_BN]);
#pragma unroll
      for (int e = 0; e < 8; ++e)
        sums[s % GS_BN][e] += gs_widen(type, x[s / GS_BN][e / 2] >> e % 2 * 16) * factor;
    }
  }
}

/* The sum of v over the lanes whose numbers differ in `first` and higher bits. */
GS_DEVICE float gs_sum_lanes(float v, int first) {
#pragma unroll
  for (int bits = 16; bits >= first; bits /= 2) v += gs_float(gs_swap_lanes(gs_bits(v), bits));
  return v;
}

/* The sum of what `parts` warps have left for a result, in their order; results of one warp lie together. */
GS_DEVICE float gs_sum_parts(unsigned shared, int parts, int results, int result) {
  float v = 0.0f;
#pragma unroll
  for (int w = 0; w < parts; ++w) v += gs_shared_load_f32(shared + (w * results + result) * 4);
  return v;
}

/* The bias of row m as it lies in memory; 0 where there is none. Asked for while sums are added up: ahead of the first
 * loads of A it would be in their way. */
GS_DEVICE unsigned gs_fetch_bias(const gs_params_t *p, int d_type, int m) {
  const char *at = (const char *)p->bias + m * (long long)gs_bytes(d_type);
  unsigned bias = 0;
  if (gs_has_bias(p->epilogue) & (m < p->m)) bias = d_type == GS_E_F32 ? gs_load_b32(at) : gs_load_b16(at);
  return bias;
}

GS_DEVICE void gs_finish(const gs_params_t *p, int d_type, int m, int n, unsigned bias, float v) {
  const int bytes = gs_bytes(d_type);
  const float beta = gs_scalar(p->beta_ptr, p->beta);
  if (m >= p->m || n >= p->n) return;
  v = gs_scalar(p->alpha_ptr, p->alpha) * v + (d_type == GS_E_F32 ? gs_float(bias) : gs_widen(d_type, bias));
  if (beta != 0.0f)
    v += beta * gs_load1(d_type,
                         (const char *)p->c + (blockIdx.z * p->stride_c + n * (long long)p->ldc + m) * bytes);
  gs_store1(d_type, (char *)p->d + (blockIdx.z * p->stride_d + n * (long long)p->ldd + m) * bytes,
            gs_activate(p->epilogue, v));
}

GS_DEVICE void gs_rows_along_k(const gs_params_t *p, const gs_spot_t *spot, int type, int d_type,
                               int transb) {
  enum { PARTS = GS_WARPS / GS_BM, RESULTS = GS_BM * GS_BN };
  const unsigned shared = gs_shared_address();
  const unsigned thread = threadIdx.x, lane = thread % 32, row = thread / GS_LINE, part = thread / 32 % PARTS;
  float sums[GS_BN] = {0.0f};
  gs_multiply_along_k(p, spot, type, transb, sums);
  const unsigned bias = gs_fetch_bias(p, d_type, spot->m + (PARTS == 1 ? row : thread / GS_BN));
#pragma unroll
  for (int n = 0; n < GS_BN; ++n) sums[n] = gs_sum_lanes(sums[n], 1);
  if (PARTS == 1) {
    if (lane < GS_BN) gs_finish(p, d_type, spot->m + row, spot->n + lane, bias, sums[lane ? GS_BN - 1 : 0]);
  } else {
    if (lane == 0) {
#pragma unroll
      for (int n = 0; n < GS_BN; ++n)
        gs_shared_store_f32(shared + (part * RESULTS + row * GS_BN + n) * 4, sums[n]);
    }
    gs_sync();
    if (thread < RESULTS)
      gs_finish(p, d_type, spot->m + thread / GS_BN, spot->n + thread % GS_BN, bias,
                gs_sum_parts(shared, PARTS, RESULTS, thread));
  }
}

GS_DEVICE void gs_rows_along_m(const gs_params_t *p, const gs_spot_t *spot, int type, int d_type,
                               int transb) {
  enum { ROWS = 8 * GS_BM, RESULTS = ROWS * GS_BN };
  const unsigned shared = gs_shared_address();
  const unsigned thread = threadIdx.x, lane = thread % 32;
  float sums[GS_BN][8] = {{0.0f}};
  gs_multiply_along_m(p, spot, type, transb, sums);
  const unsigned bias = gs_fetch_bias(p, d_type, spot->m + thread % ROWS);
#pragma unroll
  for (int e = 0; e < 8 * GS_BN; ++e) {
    const float v = gs_sum_lanes(sums[e / 8][e % 8], GS_BM);
    if (lane < GS_BM)
      gs_shared_store_f32(shared + (thread / 32 * RESULTS + e / 8 * ROWS + lane * 8 + e % 8) * 4, v);
  }
  gs_sync();
  if (thread < RESULTS)
    gs_finish(p, d_type, spot->m + thread % ROWS, spot->n + thread / ROWS, bias,
              gs_sum_parts(shared, GS_WARPS, RESULTS, thread));
}

GS_DEVICE void gs_rows(const gs_params_t *p, int type, int d_type, int transa, int transb) {
  gs_await_stream();
  const gs_spot_t spot = gs_find_spot(p, transa);
  if (transa)
    gs_rows_along_k(p, &spot, type, d_type, transb);
  else
    gs_rows_along_m(p, &spot, type, d_type, transb);
}

#endif
