/* Families mma, wgmma and strip: from accumulators to D, by way of the other parts of k where it is split. */
#ifndef GS_MMA_FINISH_CUH
#define GS_MMA_FINISH_CUH

#include "mma_tile.cuh"

/* A straight ending stores 16 bytes a lane: of four fragments where the tile has so many and D is of two bytes, else 8. */
GS_DEVICE int gs_by_quads(int d_type) {
  return GS_M8 % 4 == 0 && gs_bytes(d_type) == 2;
}

/* Whether a tile may be stored straight: all of its m inside, no beta, D and bias aligned. */
GS_DEVICE int gs_is_plain(const gs_params_t *p, const gs_spot_t *spot, int d_type) {
  const unsigned bits = (unsigned)(unsigned long long)p->d | (unsigned)(unsigned long long)p->bias |
                        ((unsigned)p->ldd | (unsigned)p->stride_d) * gs_bytes(d_type);
  return (spot->m + GS_BM <= p->m) & (p->split_k == 1) & !p->beta_ptr & (p->beta == 0.0f) &
         (bits % (gs_by_quads(d_type) ? 16 : 8) == 0);
}

/* Of each fragment the bias of this thread's two columns, as it lies in memory. */
typedef unsigned gs_bias_t[GS_M8][2];

/* Few sums leave registers for the bias to wait in; elsewhere it is fetched when the sums are there. */
enum { GS_BIAS_EARLY = GS_N16 * GS_M8 <= 8 };

GS_DEVICE void gs_fetch_bias(const gs_params_t *p, const gs_spot_t *spot, int d_type, gs_bias_t bias) {
  const int m = spot->m + spot->warp_m + threadIdx.x % 4 * 2;
  const char *from = (const char *)p->bias + m * (long long)gs_bytes(d_type);
#pragma unroll
  for (int f = 0; f < GS_M8; ++f) {
    bias[f][0] = bias[f][1] = 0;
    if (!(spot->plain & gs_has_bias(p->epilogue))) continue;
    if (d_type == GS_E_F32)
      gs_load_b64(from + f * 32, bias[f]);
    else
      bias[f][0] = gs_load_b32(from + f * 16);
  }
}

/* acc = the epilogue's activation of alpha * acc + bias. */
GS_DEVICE void gs_apply_epilogue(const gs_params_t *p, int d_type, float alpha, const gs_bias_t bias,
                                 gs_acc_t acc) {
#pragma unroll
  for (int i = 0; i < GS_N16 * GS_M8; ++i) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const unsigned *raw = bias[i % GS_M8];
      float *v = &acc[i / GS_M8][i % GS_M8][r];
      *v = alpha * *v + (d_type == GS_E_F32 ? gs_float(raw[r % 2]) : gs_widen(d_type, raw[0] >> r % 2 * 16));
    }
  }
  if (p->epilogue == GS_EPI_BIAS) return;
#pragma unroll
  for (int i = 0; i < GS_N16 * GS_M8 * 4; ++i) {
    float *v = &acc[i / 4 / GS_M8][i / 4 % GS_M8][i % 4];
    *v = gs_activate(p->epilogue, *v);
  }
}

/* Quads of sums that are read together: more would not fit the registers beside the sums. */
enum { GS_TOGETHER = GS_N16 * GS_M8 % 16 == 0 ? 16 : GS_N16 * GS_M8 };

/* Split-K by way of the workspace. Every block leaves its fp32 sums there; the last one to arrive at a tile
 * adds them up in the order of the parts, so that the result does not depend on who came last. Nobody waits.
 * Returns true for that last block. Layout: GS_SPLIT_COUNTERS counters, then [tile][part][BM * BN] sums. */
GS_DEVICE int gs_gather_parts(const gs_params_t *p, const gs_spot_t *spot, gs_acc_t acc) {
  const unsigned parts = p->split_k;
  unsigned *counter = (unsigned *)p->workspace + spot->tile;
  char *sums = (char *)p->workspace + GS_SPLIT_COUNTERS * 4 + threadIdx.x * 16 +
               (unsigned long long)spot->tile * parts * (GS_BM * GS_BN * 4);
  char *mine = sums + (unsigned long long)spot->part * (GS_BM * GS_BN * 4);
#pragma unroll
  for (int i = 0; i < GS_N16 * GS_M8; ++i) {
    unsigned raw[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) raw[r] = gs_bits(acc[i / GS_M8][i % GS_M8][r]);
    gs_store_b128(mine + i * GS_THREADS * 16, raw);
  }
  gs_sync();
  int last = threadIdx.x == 0 && gs_count_up(counter) == parts - 1;
  if (!gs_sync_or(last)) return 0;
  if (last) gs_store_b32(counter, 0);
  gs_clear(acc);
#pragma unroll 1
  for (unsigned s = 0; s < parts; ++s) {
#pragma unroll
    for (int first = 0; first < GS_N16 * GS_M8; first += GS_TOGETHER) {
      unsigned raw[GS_TOGETHER][4];
#pragma unroll
      for (int i = 0; i < GS_TOGETHER; ++i) gs_load_b128_fresh(sums + (first + i) * GS_THREADS * 16, raw[i]);
#pragma unroll
      for (int i = 0; i < GS_TOGETHER; ++i) {
#pragma unroll
        for (int r = 0; r < 4; ++r) acc[(first + i) / GS_M8][(first + i) % GS_M8][r] += gs_float(raw[i][r]);
      }
    }
    sums += GS_BM * GS_BN * 4;
  }
  return 1;
}

/* A pass's accumulators into shared memory. */
GS_DEVICE void gs_stage(unsigned shared, const gs_spot_t *spot, int pass, gs_acc_t acc) {
  const int lane = threadIdx.x % 32;
  const int row = spot->warp_n / GS_WN * (GS_SLOTS * 16) + lane / 4;
  const unsigned mine = shared + row * GS_PITCH + (spot->warp_m + lane % 4 * 2) * 4;
#pragma unroll
  for (int i = 0; i < GS_SLOTS; ++i) {
#pragma unroll
    for (int f = 0; f < GS_M8; ++f) {
      const float *v = acc[pass + i][f];
      unsigned to = mine + i * 16 * GS_PITCH + f * 32;
      gs_shared_store_b64(to, v[0], v[1]);
      gs_shared_store_b64(to + 8 * GS_PITCH, v[2], v[3]);
    }
  }
}

/* What the epilogue needs besides the sums. */
typedef struct {
  float alpha, beta;
  const char *c;
  char *d;
  int whole_c, whole_d, whole_bias; /* four elements may be moved at once */
} gs_ending_t;

GS_DEVICE int gs_whole_items(const void *base, int ld, long long stride, int type) {
  const unsigned bits =
      (unsigned)(unsigned long long)base | ((unsigned)ld | (unsigned)stride) * gs_bytes(type);
  return (bits & (4 * gs_bytes(type) - 1)) == 0;
}

GS_DEVICE gs_ending_t gs_ending(const gs_params_t *p, int d_type) {
  gs_ending_t e = {gs_scalar(p->alpha_ptr, p->alpha),
                   gs_scalar(p->beta_ptr, p->beta),
                   (const char *)p->c,
                   (char *)p->d,
                   gs_whole_items(p->c, p->ldc, p->stride_c, d_type),
                   gs_whole_items(p->d, p->ldd, p->stride_d, d_type),
                   gs_whole_items(p->bias, 0, 0, d_type)};
  if (p->stride_c) e.c += blockIdx.z * p->stride_c * gs_bytes(d_type);
  if (p->stride_d) e.d += blockIdx.z * p->stride_d * gs_bytes(d_type);
  return e;
}

/* Items of four elements along m, dealt to the threads in turn. Where those of a thread lie in the same columns, it
 * has one bias. */
enum { GS_ONE_BIAS = GS_THREADS % (GS_BM / 4) == 0 };

/* The bias of four elements from m on; zeros where there is none. */
GS_DEVICE void gs_load_bias(const gs_params_t *p, const gs_ending_t *e, int d_type, int m, float bias[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) bias[i] = 0.0f;
  if (gs_has_bias(p->epilogue))
    gs_load4(d_type, (const char *)p->bias + m * (long long)gs_bytes(d_type), e->whole_bias, p->m - m, bias);
}

/* alpha * v + bias + beta * C, activated, goes to D at (m, n). */
GS_DEVICE void gs_finish_item(const gs_params_t *p, const gs_ending_t *e, int d_type, int m, int n,
                              const float bias[4], float v[4]) {
  const int bytes = gs_bytes(d_type), inside = p->m - m;
  if (inside <= 0 || n >= p->n) return;
#pragma unroll
  for (int i = 0; i < 4; ++i) v[i] = e->alpha * v[i] + bias[i];
  if (e->beta != 0.0f) {
    float c[4];
    gs_load4(d_type, e->c + ((long long)n * p->ldc + m) * bytes, e->whole_c, inside, c);
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] += e->beta * c[i];
  }
  if (p->epilogue != GS_EPI_DEFAULT && p->epilogue != GS_EPI_BIAS) {
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = gs_activate(p->epilogue, v[i]);
  }
  gs_store4(d_type, e->d + ((long long)n * p->ldd + m) * bytes, e->whole_d, inside, v);
}

#if GS_CLUSTERS
/* Every part sends each row of its sums to the part that finishes it. */
GS_DEVICE void gs_send_parts(const gs_spot_t *spot, unsigned splits, unsigned landing, gs_acc_t acc) {
  const unsigned lane = threadIdx.x % 32, rows = gs_rows_of(0, splits);
  const unsigned mine =
      landing + GS_LANDING + spot->part * rows * GS_PITCH + (spot->warp_m + lane % 4 * 2) * 4;
  gs_cluster_wait(); /* everyone has begun */
#pragma unroll
  for (int i = 0; i < 2 * GS_N16; ++i) {
    const unsigned row = spot->warp_n + i * 8 + lane / 4, of_owner = gs_quotient(row, splits);
#pragma unroll
    for (int f = 0; f < GS_M8; ++f)
      gs_send_f32x2(mine + of_owner * GS_PITCH + f * 32, landing, row - of_owner * splits,
                    acc[i / 2][f] + i % 2 * 2);
  }
}

/* Finishes this part's rows, summed over the parts in their order. */
GS_DEVICE void gs_finish_part(const gs_params_t *p, const gs_spot_t *spot, int d_type, unsigned landing) {
  const unsigned splits = p->split_k, rows = gs_rows_of(0, splits),
                 items = gs_rows_of(spot->part, splits) * (GS_BM / 4);
  const gs_ending_t ending = gs_ending(p, d_type);
  float bias[4];
  if (GS_ONE_BIAS) gs_load_bias(p, &ending, d_type, spot->m + threadIdx.x % (GS_BM / 4) * 4, bias);
  gs_landing_wait(landing);
#pragma unroll 1
  for (unsigned item = threadIdx.x; item < items; item += GS_THREADS) {
    const unsigned row = item / (GS_BM / 4), column = item % (GS_BM / 4) * 4;
    const unsigned from = landing + GS_LANDING + row * GS_PITCH + column * 4;
    float v[4], more[4];
    if (!GS_ONE_BIAS) gs_load_bias(p, &ending, d_type, spot->m + column, bias);
    gs_shared_load_f32x4(from, v);
#pragma unroll
    for (unsigned part = 1; part < GS_CLUSTER_MAX; ++part) {
      if (part >= splits) continue;
      gs_shared_load_f32x4(from + part * rows * GS_PITCH, more);
#pragma unroll
      for (int e = 0; e < 4; ++e) v[e] += more[e];
    }
    gs_finish_item(p, &ending, d_type, spot->m + column, spot->n + row * splits + spot->part, bias, v);
  }
}
#endif

/* The sums of all warps meet in shared memory, so that what lies together in D is stored together. */
GS_DEVICE void gs_finish(const gs_params_t *p, const gs_spot_t *spot, int d_type, unsigned shared,
                         gs_acc_t acc) {
  const gs_ending_t ending = gs_ending(p, d_type);
  float bias[GS_BATCH][4];
  if (GS_ONE_BIAS) gs_load_bias(p, &ending, d_type, spot->m + threadIdx.x % (GS_BM / 4) * 4, bias[0]);
  gs_sync(); /* the ring is free */
#pragma unroll
  for (int pass = 0; pass < GS_N16; pass += GS_SLOTS) {
    if (pass) gs_sync();
    gs_stage(shared, spot, pass, acc);
    gs_sync();
#pragma unroll 1
    for (int item = threadIdx.x; item < GS_ITEMS; item += GS_BATCH * GS_THREADS) {
      float v[GS_BATCH][4];
#pragma unroll
      for (int u = 0; u < GS_BATCH; ++u) {
        const int at = item + u * GS_THREADS;
        gs_shared_load_f32x4(shared + at / (GS_BM / 4) * GS_PITCH + at % (GS_BM / 4) * 16, v[u]);
        if (!GS_ONE_BIAS) gs_load_bias(p, &ending, d_type, spot->m + at % (GS_BM / 4) * 4, bias[u]);
      }
#pragma unroll
      for (int u = 0; u < GS_BATCH; ++u) {
        const int at = item + u * GS_THREADS, row = at / (GS_BM / 4);
        const int n = spot->n + row / (GS_SLOTS * 16) * GS_WN + pass * 16 + row % (GS_SLOTS * 16);
        gs_finish_item(p, &ending, d_type, spot->m + at % (GS_BM / 4) * 4, n, bias[GS_ONE_BIAS ? 0 : u],
                       v[u]);
      }
    }
  }
}

/* Of v[i] of the four lanes of a quad, lane i gets all, in the order of the lanes. */
GS_DEVICE void gs_turn_quad(unsigned v[4]) {
#pragma unroll
  for (int apart = 1; apart <= 2; ++apart) {
    const int high = threadIdx.x & apart;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      unsigned *low = &v[apart == 1 ? 2 * i : i], *up = low + apart;
      const unsigned theirs = gs_swap_lanes(high ? *low : *up, apart);
      *low = high ? theirs : *low;
      *up = high ? *up : theirs;
    }
  }
}

/* The commonest ending in the fewest instructions: sums from where they are. Lanes that are neighbours in m turn four
 * fragments, so that each stores 16 bytes and a quad two sectors, or swap halves of two, and store a sector. */
GS_DEVICE void gs_store_straight(const gs_params_t *p, const gs_spot_t *spot, int d_type, gs_bias_t bias,
                                 gs_acc_t acc) {
  const int bytes = gs_bytes(d_type), lane = threadIdx.x % 32, odd = lane % 2, wide = bytes == 4;
  const int quads = gs_by_quads(d_type);
  const int m = spot->m + spot->warp_m +
                (wide    ? lane % 4 * 2
                 : quads ? lane % 4 * 8
                         : odd * 8 + lane % 4 / 2 * 4);
  const unsigned n = spot->n + spot->warp_n + lane / 4, ld_bytes = p->ldd * (unsigned)bytes;
  float alpha = gs_scalar(p->alpha_ptr, p->alpha);
  char *d = (char *)p->d + m * (long long)bytes + n * (unsigned long long)ld_bytes;
  if (p->special) d += blockIdx.z * p->stride_d * bytes;
  if (gs_rarely(p->epilogue != GS_EPI_DEFAULT)) {
    if (!GS_BIAS_EARLY) gs_fetch_bias(p, spot, d_type, bias);
    gs_apply_epilogue(p, d_type, alpha, bias, acc);
    alpha = 1.0f;
  }
#pragma unroll
  for (int i = 0; i < 2 * GS_N16; ++i) {
#pragma unroll
    for (int f = 0; f < (quads ? GS_M8 : 0); f += 4) {
      unsigned raw[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float *v = acc[i / 2][f + j] + i % 2 * 2;
        raw[j] = gs_narrow2(d_type, alpha * v[0], alpha * v[1]);
      }
      gs_turn_quad(raw);
      if ((int)n + 8 * i < p->n) gs_store_b128(d + (unsigned long long)ld_bytes * (8 * i) + f * 16, raw);
    }
#pragma unroll
    for (int f = 0; f < (quads ? 0 : GS_M8); f += 2) {
      const float *v = acc[i / 2][f] + i % 2 * 2, *w = acc[i / 2][f + 1] + i % 2 * 2;
      char *to = d + (unsigned long long)ld_bytes * (8 * i) + f * 8 * bytes;
      const int inside = (int)n + 8 * i < p->n;
      if (wide) {
        const unsigned first[2] = {gs_bits(alpha * v[0]), gs_bits(alpha * v[1])};
        const unsigned second[2] = {gs_bits(alpha * w[0]), gs_bits(alpha * w[1])};
        if (inside) gs_store_b64(to, first);
        if (inside) gs_store_b64(to + 32, second);
      } else {
        const unsigned first = gs_narrow2(d_type, alpha * v[0], alpha * v[1]);
        const unsigned second = gs_narrow2(d_type, alpha * w[0], alpha * w[1]);
        const unsigned theirs = gs_swap_lanes(odd ? first : second, 1);
        const unsigned raw[2] = {odd ? theirs : first, odd ? second : theirs};
        if (inside) gs_store_b64(to, raw);
      }
    }
  }
}

#endif
