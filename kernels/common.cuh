/* What every kernel family shares: types, element conversion, activation, the layout of a tile in shared
 * memory. Plain C that both nvcc and NVRTC take as CUDA, and gcc as C: without a GPU the same source runs on
 * emulate_ptx.h. */
#ifndef GS_COMMON_CUH
#define GS_COMMON_CUH

#include "gs_kernel.h"

#ifdef GS_EMULATE
#include "emulate_ptx.h"
#else
#include "ptx.cuh"
#endif

/* Element types: constants at every use, so that branches on them vanish. */
#define GS_E_F16  0
#define GS_E_BF16 1
#define GS_E_F32  2

/* What follows a rare condition is laid out of the way. */
#define gs_rarely(condition) __builtin_expect((condition) != 0, 0)

GS_DEVICE int gs_min(int a, int b) {
  return a < b ? a : b;
}
GS_DEVICE int gs_max(int a, int b) {
  return a > b ? a : b;
}

GS_DEVICE int gs_bytes(int type) {
  return type == GS_E_F32 ? 4 : 2;
}

GS_DEVICE float gs_widen(int type, unsigned bits) {
  return type == GS_E_BF16 ? gs_float(bits << 16) : gs_widen_f16(bits & 0xffff);
}

/* lo in the lower half, rounded to nearest even. */
GS_DEVICE unsigned gs_narrow2(int type, float lo, float hi) {
  return type == GS_E_BF16 ? gs_narrow2_bf16(lo, hi) : gs_narrow2_f16(lo, hi);
}

GS_DEVICE float gs_load1(int type, const char *at) {
  return type == GS_E_F32 ? gs_float(gs_load_b32(at)) : gs_widen(type, gs_load_b16(at));
}

GS_DEVICE void gs_store1(int type, char *at, float v) {
  if (type == GS_E_F32)
    gs_store_b32(at, gs_bits(v));
  else
    gs_store_b16(at, gs_narrow2(type, v, 0.0f) & 0xffff);
}

/* A scalar that the caller holds in device memory, or gave by value. */
GS_DEVICE float gs_scalar(const float *at, float value) {
  return at ? gs_float(gs_load_b32(at)) : value;
}

/* Four elements, at once if whole, else as many as lie inside. */
GS_DEVICE void gs_load4(int type, const char *at, int whole, int inside, float v[4]) {
  if (whole && inside >= 4) {
    unsigned raw[4];
    if (type == GS_E_F32)
      gs_load_b128(at, raw);
    else
      gs_load_b64(at, raw);
#pragma unroll
    for (int e = 0; e < 4; ++e)
      v[e] = type == GS_E_F32 ? gs_float(raw[e]) : gs_widen(type, raw[e / 2] >> e % 2 * 16);
    return;
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) v[e] = e < inside ? gs_load1(type, at + e * gs_bytes(type)) : 0.0f;
}

GS_DEVICE void gs_store4(int type, char *at, int whole, int inside, const float v[4]) {
  if (whole && inside >= 4) {
    if (type == GS_E_F32) {
      const unsigned raw[4] = {gs_bits(v[0]), gs_bits(v[1]), gs_bits(v[2]), gs_bits(v[3])};
      gs_store_b128(at, raw);
    } else {
      const unsigned raw[2] = {gs_narrow2(type, v[0], v[1]), gs_narrow2(type, v[2], v[3])};
      gs_store_b64(at, raw);
    }
    return;
  }
#pragma unroll
  for (int e = 0; e < 4; ++e)
    if (e < inside) gs_store1(type, at + e * gs_bytes(type), v[e]);
}

/* GELU in its tanh form, 0.5 x (1 + tanh(u)), is x / (1 + exp(-2u)): no cancellation, any x, NaN stays. */
GS_DEVICE float gs_activate(int epilogue, float x) {
  if (epilogue == GS_EPI_RELU || epilogue == GS_EPI_RELU_BIAS) return x < 0.0f ? 0.0f : x;
  if (epilogue == GS_EPI_GELU || epilogue == GS_EPI_GELU_BIAS) {
    float u = x * (0.7978845608f + 0.0356774081f * x * x);
    return gs_divide(x, 1.0f + gs_exp2(-2.8853900818f * u));
  }
  return x;
}

GS_DEVICE int gs_has_bias(int epilogue) {
  return (epilogue == GS_EPI_BIAS) | (epilogue == GS_EPI_RELU_BIAS) | (epilogue == GS_EPI_GELU_BIAS);
}

/* A tile in shared memory is cut along its contiguous direction into panels of 64, 32 or 16 elements, rows
 * of 128, 64 or 32 bytes. Inside a panel the 16-byte chunks of a row are permuted by exclusive or with the
 * number of its 128-byte line, so that the 8 rows of any ldmatrix phase fall into distinct banks. */
#define GS_PANEL(extent) ((extent) % 64 == 0 ? 64 : (extent) % 32 == 0 ? 32 : 16)

/* Byte offset of a chunk (8 elements) of a row in a tile of rows x extent elements. */
GS_DEVICE unsigned gs_chunk_offset(int extent, int rows, int row, int chunk) {
  int per_row = GS_PANEL(extent) / 8, per_line = 8 / per_row;
  int panel = chunk / per_row, place = chunk % per_row ^ row / per_line % per_row;
  return (unsigned)((panel * rows + row) * per_row + place) * 16;
}

#endif
