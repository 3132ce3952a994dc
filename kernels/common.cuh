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

/* Eight elements as they lie in memory, 16-byte aligned: raw[0..3], or raw[0..7] for f32. */
GS_DEVICE void gs_load8(int type, const char *at, unsigned raw[8]) {
  gs_load_b128(at, raw);
  if (type == GS_E_F32) gs_load_b128(at + 16, raw + 4);
}

GS_DEVICE float gs_element(int type, const unsigned raw[8], int i) {
  return type == GS_E_F32 ? gs_float(raw[i]) : gs_widen(type, raw[i / 2] >> i % 2 * 16);
}

GS_DEVICE void gs_store8(int type, char *at, const float v[8]) {
  unsigned raw[8];
  if (type == GS_E_F32) {
#pragma unroll
    for (int i = 0; i < 8; ++i) raw[i] = gs_bits(v[i]);
    gs_store_b128(at + 16, raw + 4);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) raw[i] = gs_narrow2(type, v[2 * i], v[2 * i + 1]);
  }
  gs_store_b128(at, raw);
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
  return epilogue == GS_EPI_BIAS || epilogue == GS_EPI_RELU_BIAS || epilogue == GS_EPI_GELU_BIAS;
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
