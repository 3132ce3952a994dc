/* Family direct: sums over warps and over a cluster, and from them D. */
#ifndef GS_DIRECT_FINISH_CUH
#define GS_DIRECT_FINISH_CUH

#include "direct_tile.cuh"

/* Whether items are stored whole, all of the tile's m being inside, D and bias aligned, and without beta. */
GS_DEVICE int gs_is_plain(const gs_params_t *p, const gs_spot_t *spot, int d_type) {
  const unsigned bytes = gs_bytes(d_type);
  const unsigned bits = (unsigned)(unsigned long long)p->d | (unsigned)(unsigned long long)p->bias |
                        ((unsigned)p->ldd | (unsigned)p->stride_d) * bytes;
  return (spot->m + GS_BM <= p->m) & !p->beta_ptr & (p->beta == 0.0f) & (bits % (GS_ITEM * bytes) == 0);
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

/* Element e of an item as it was loaded. */
GS_DEVICE float gs_loaded(int type, const unsigned raw[4], int e) {
  return type == GS_E_F32 ? gs_float(raw[e]) : gs_widen(type, raw[e / 2] >> e % 2 * 16);
}

typedef float gs_items_t[GS_SHARE][4]; /* the first GS_ITEM are used */

/* The first of the items that this thread finishes, and how far apart they are. */
GS_DEVICE int gs_first_item(const gs_params_t *p, const gs_spot_t *spot, int *step) {
  *step = GS_WARPS * p->split_k;
  return spot->rank + p->split_k * (threadIdx.x / 32);
}

/* The bias of this thread's items, as it lies in memory. Where these are few it waits in registers. */
typedef unsigned gs_bias_t[GS_SHARE][4];
enum { GS_BIAS_EARLY = GS_SHARE <= 2 };

GS_DEVICE void gs_fetch_bias(const gs_params_t *p, const gs_spot_t *spot, int d_type, gs_bias_t bias) {
  int step, item = gs_first_item(p, spot, &step);
#pragma unroll
  for (int j = 0; j < GS_SHARE; ++j, item += step) {
#pragma unroll
    for (int e = 0; e < 4; ++e) bias[j][e] = 0;
    if (spot->plain & (item < GS_ITEMS) & gs_has_bias(p->epilogue))
      gs_load_item(d_type, (const char *)p->bias + (spot->m + gs_item_m(item)) * (long long)gs_bytes(d_type),
                   1, GS_ITEM, bias[j]);
  }
}

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
GS_DEVICE unsigned gs_items_of(unsigned rank, unsigned splits) {
  return gs_quotient(GS_ITEMS - rank + splits - 1, splits);
}

GS_DEVICE void gs_reduce_cluster(const gs_spot_t *spot, unsigned splits, unsigned shared, gs_items_t v) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32 * (GS_ITEM * 4);
  const unsigned landing = shared + GS_SLICES_BYTES, sums = landing + GS_LANDING,
                 items = gs_items_of(0, splits);
  gs_cluster_wait(); /* everyone has begun */
#pragma unroll
  for (int j = 0; j < GS_SHARE; ++j) {
    unsigned q = warp + j * GS_WARPS, of_owner = gs_quotient(q, splits), owner = q - of_owner * splits;
    if (q >= GS_ITEMS) continue;
    unsigned to = sums + (spot->rank * items + of_owner) * GS_PLANE + lane;
    if (GS_ITEM == 4)
      gs_send_f32x4(to, landing, owner, v[j]);
    else
      gs_send_f32x2(to, landing, owner, v[j]);
  }
  gs_landing_wait(landing);
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

/* For what the other blocks will send; under cover of the first loads. */
GS_DEVICE void gs_open_cluster(const gs_params_t *p, const gs_spot_t *spot, unsigned shared) {
#if GS_CLUSTERS
  const unsigned splits = p->split_k;
  if (gs_rarely(splits > 1)) {
    gs_landing_open(shared + GS_SLICES_BYTES, splits * gs_items_of(spot->rank, splits) * GS_PLANE,
                    threadIdx.x == 0);
    gs_cluster_arrive();
  }
#endif
}

/* Whether items of consecutive elements may be moved whole. */
GS_DEVICE int gs_whole_items(const void *base, int ld, long long stride, int type) {
  return (((unsigned)(unsigned long long)base | (unsigned)ld * gs_bytes(type) |
           (unsigned)stride * gs_bytes(type)) &
          (GS_ITEM * gs_bytes(type) - 1)) == 0;
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

/* Finishes and stores this thread's items. */
GS_DEVICE void gs_finish(const gs_params_t *p, const gs_spot_t *spot, int d_type, gs_items_t v) {
  const int bytes = gs_bytes(d_type);
  const float alpha = gs_scalar(p->alpha_ptr, p->alpha), beta = gs_scalar(p->beta_ptr, p->beta);
  int step;
  const int first = gs_first_item(p, spot, &step);
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
      for (int e = 0; e < GS_ITEM; ++e) v[j][e] += beta * gs_loaded(d_type, raw_c[j], e);
    }
    if (p->epilogue != GS_EPI_DEFAULT && p->epilogue != GS_EPI_BIAS) {
#pragma unroll
      for (int e = 0; e < GS_ITEM; ++e) v[j][e] = gs_activate(p->epilogue, v[j][e]);
    }
    gs_store_item(d_type, d + ((long long)n * p->ldd + m) * bytes, whole_d && m + GS_ITEM <= p->m, p->m - m,
                  v[j]);
  }
}

/* v = the epilogue's activation of alpha * v + bias. */
GS_DEVICE void gs_apply_epilogue(const gs_params_t *p, int d_type, float alpha, const gs_bias_t bias,
                                 gs_items_t v) {
#pragma unroll
  for (int i = 0; i < GS_SHARE * GS_ITEM; ++i) {
    float *at = &v[i / GS_ITEM][i % GS_ITEM];
    *at = alpha * *at + gs_loaded(d_type, bias[i / GS_ITEM], i % GS_ITEM);
  }
  if (p->epilogue == GS_EPI_BIAS) return;
#pragma unroll
  for (int i = 0; i < GS_SHARE * GS_ITEM; ++i) {
    float *at = &v[i / GS_ITEM][i % GS_ITEM];
    *at = gs_activate(p->epilogue, *at);
  }
}

/* Stores this thread's items of a plain tile, times alpha, in the fewest instructions. */
GS_DEVICE void gs_store_plain(const gs_params_t *p, const gs_spot_t *spot, int d_type, float alpha,
                              gs_items_t v) {
  const int bytes = gs_bytes(d_type);
  char *d = (char *)p->d;
  int step, item = gs_first_item(p, spot, &step);
  if (p->special) d += blockIdx.z * p->stride_d * bytes;
#pragma unroll
  for (int j = 0; j < GS_SHARE; ++j, item += step) {
    const int m = spot->m + gs_item_m(item);
    const unsigned n = spot->n + gs_item_n(item);
    if (item >= GS_ITEMS || (int)n >= p->n) continue;
#pragma unroll
    for (int e = 0; e < GS_ITEM; ++e) v[j][e] *= alpha;
    gs_store_item(d_type, d + m * (long long)bytes + n * (unsigned long long)(p->ldd * (unsigned)bytes), 1,
                  GS_ITEM, v[j]);
  }
}

/* As gs_finish, of a plain tile. */
GS_DEVICE void gs_finish_plain(const gs_params_t *p, const gs_spot_t *spot, int d_type, gs_bias_t bias,
                               gs_items_t v) {
  const float alpha = gs_scalar(p->alpha_ptr, p->alpha);
  if (p->epilogue == GS_EPI_DEFAULT) {
    gs_store_plain(p, spot, d_type, alpha, v);
    return;
  }
  if (!GS_BIAS_EARLY) gs_fetch_bias(p, spot, d_type, bias);
  gs_apply_epilogue(p, d_type, alpha, bias, v);
  gs_store_plain(p, spot, d_type, 1.0f, v);
}

#endif
