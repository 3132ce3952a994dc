/* What ptx.cuh and CUDA offer a kernel, for the CPU: the families compile as C on top of it. */
#ifndef GS_EMULATE_PTX_H
#define GS_EMULATE_PTX_H

#include <math.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunknown-pragmas" /* unroll */
#define GS_DEVICE static inline
#define GS_ASSERT _Static_assert

typedef struct {
  unsigned x, y, z;
} gs_index_t;

/* Of the thread that runs. */
extern gs_index_t gs_emulated_thread, gs_emulated_block, gs_emulated_grid;
#define threadIdx gs_emulated_thread
#define blockIdx  gs_emulated_block
#define gridDim   gs_emulated_grid

unsigned gs_shared_address(void);

/* Ahead of it this thread may touch no global memory. */
void gs_await_stream(void);
/* Checked against the launch's ranges. */
void gs_emulated_load(const void *at, void *v, unsigned bytes);
void gs_emulated_store(void *at, const void *v, unsigned bytes);
/* Bytes of shared memory, checked too. */
void *gs_emulated_shared(unsigned address, unsigned bytes);

void gs_copy_part(unsigned to, const void *from, int bytes);
void gs_copy_commit(void);
void gs_copy_wait(int pending);
void gs_ldmatrix(unsigned from, unsigned v[4]);
void gs_ldmatrix_trans(unsigned from, unsigned v[4]);
void gs_mma_f16(float acc[4], const unsigned rows[4], const unsigned columns[2]);
void gs_mma_bf16(float acc[4], const unsigned rows[4], const unsigned columns[2]);
void gs_fence_async(void);
void gs_wgmma_fence(void);
void gs_wgmma_commit(void);
void gs_wgmma_wait(int pending);
/* gs_wgmma, of so many columns. */
void gs_emulated_wgmma(int type, float *d, int columns, unsigned long long a, unsigned long long b, int add,
                       int a_mn, int b_mn);
void gs_sync(void);
int gs_sync_or(int flag);
/* What each lane of the warp calls it with. */
void gs_emulated_lanes(unsigned v, unsigned of[32]);
void gs_sync_warp(void);
unsigned gs_count_up(unsigned *counter);

#define GS_CLUSTERS 1
unsigned gs_cluster_rank(void);
unsigned gs_cluster_y(void);
void gs_cluster_arrive(void);
void gs_cluster_wait(void);
void gs_landing_open(unsigned landing, unsigned bytes, int mine);
void gs_landing_wait(unsigned landing);
void gs_send_f32x2(unsigned to, unsigned landing, unsigned rank, const float v[2]);
void gs_send_f32x4(unsigned to, unsigned landing, unsigned rank, const float v[4]);

GS_DEVICE void gs_copy16_if(int wanted, unsigned to, const void *from) {
  if (wanted) gs_copy_part(to, from, 16);
}

GS_DEVICE float gs_float(unsigned bits) {
  float v;
  memcpy(&v, &bits, 4);
  return v;
}

GS_DEVICE unsigned gs_bits(float v) {
  unsigned bits;
  memcpy(&bits, &v, 4);
  return bits;
}

GS_DEVICE int gs_opaque(int v) {
  return v;
}
GS_DEVICE unsigned gs_swap_lanes(unsigned v, int bits) {
  unsigned of[32];
  gs_emulated_lanes(v, of);
  return of[threadIdx.x % 32 ^ (unsigned)bits];
}

GS_DEVICE unsigned gs_transpose(unsigned v) {
  const unsigned column = threadIdx.x % 32 / 4, row = threadIdx.x % 4 * 2, shift = column % 2 * 16;
  unsigned of[32];
  gs_emulated_lanes(v, of);
  return (of[row * 4 + column / 2] >> shift & 0xffff) | of[row * 4 + 4 + column / 2] >> shift << 16;
}

GS_DEVICE unsigned gs_low_halves(unsigned x, unsigned y) {
  return (x & 0xffff) | y << 16;
}
GS_DEVICE unsigned gs_high_halves(unsigned x, unsigned y) {
  return x >> 16 | (y & 0xffff0000);
}

GS_DEVICE float gs_widen_f16(unsigned bits) {
  unsigned short half = (unsigned short)bits;
  _Float16 v;
  memcpy(&v, &half, 2);
  return v;
}

GS_DEVICE unsigned gs_narrow_f16(float v) {
  _Float16 half = (_Float16)v;
  unsigned short bits;
  memcpy(&bits, &half, 2);
  return bits;
}

GS_DEVICE unsigned gs_narrow_bf16(float v) {
  unsigned bits = gs_bits(v);
  return v != v ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

GS_DEVICE unsigned gs_narrow2_f16(float lo, float hi) {
  return gs_narrow_f16(lo) | gs_narrow_f16(hi) << 16;
}
GS_DEVICE unsigned gs_narrow2_bf16(float lo, float hi) {
  return gs_narrow_bf16(lo) | gs_narrow_bf16(hi) << 16;
}
GS_DEVICE float gs_exp2(float x) {
  return exp2f(x);
}
GS_DEVICE float gs_divide(float x, float y) {
  return x / y;
}

GS_DEVICE unsigned gs_quotient(unsigned x, unsigned d) {
  return (unsigned)(((float)x + 0.5f) * (1.0f / (float)d));
}

GS_DEVICE unsigned gs_load_b16(const void *at) {
  unsigned short v;
  gs_emulated_load(at, &v, 2);
  return v;
}

GS_DEVICE unsigned gs_load_b32(const void *at) {
  unsigned v;
  gs_emulated_load(at, &v, 4);
  return v;
}

GS_DEVICE void gs_load_b64(const void *at, unsigned v[2]) {
  gs_emulated_load(at, v, 8);
}
GS_DEVICE void gs_load_b128(const void *at, unsigned v[4]) {
  gs_emulated_load(at, v, 16);
}
GS_DEVICE void gs_load_b128_fresh(const void *at, unsigned v[4]) {
  gs_emulated_load(at, v, 16);
}
GS_DEVICE unsigned gs_once_b16(const void *at) {
  return gs_load_b16(at);
}
GS_DEVICE unsigned gs_once_b32(const void *at) {
  return gs_load_b32(at);
}
GS_DEVICE void gs_once_b64(const void *at, unsigned v[2]) {
  gs_load_b64(at, v);
}
GS_DEVICE void gs_once_b128(const void *at, unsigned v[4]) {
  gs_load_b128(at, v);
}
GS_DEVICE void gs_near_b128(const void *at, unsigned v[4]) {
  gs_load_b128(at, v);
}
GS_DEVICE void gs_store_b64(void *at, const unsigned v[2]) {
  gs_emulated_store(at, v, 8);
}
GS_DEVICE void gs_store_b128(void *at, const unsigned v[4]) {
  gs_emulated_store(at, v, 16);
}
GS_DEVICE void gs_store_b32(void *at, unsigned v) {
  gs_emulated_store(at, &v, 4);
}
GS_DEVICE void gs_store_b16(void *at, unsigned v) {
  unsigned short half = (unsigned short)v;
  gs_emulated_store(at, &half, 2);
}

GS_DEVICE void gs_shared_store_f32(unsigned to, float v) {
  memcpy(gs_emulated_shared(to, 4), &v, 4);
}
GS_DEVICE void gs_shared_store_b64(unsigned to, float x, float y) {
  float v[2] = {x, y};
  memcpy(gs_emulated_shared(to, 8), v, 8);
}
GS_DEVICE void gs_shared_store_b128(unsigned to, const unsigned v[4]) {
  memcpy(gs_emulated_shared(to, 16), v, 16);
}
GS_DEVICE void gs_shared_load_f32x2(unsigned from, float v[2]) {
  memcpy(v, gs_emulated_shared(from, 8), 8);
}
GS_DEVICE void gs_shared_load_f32x4(unsigned from, float v[4]) {
  memcpy(v, gs_emulated_shared(from, 16), 16);
}
GS_DEVICE float gs_shared_load_f32(unsigned from) {
  float v;
  memcpy(&v, gs_emulated_shared(from, 4), 4);
  return v;
}

#endif
