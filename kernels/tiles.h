/* The name that a line of mma.def gives its tile, as a token and as text: 128x64x32_s4_w4. */
#ifndef GS_TILES_H
#define GS_TILES_H

#define GS_SUFFIX_16
#define GS_SUFFIX_2 _v2
#define GS_TILE_NAME(bm, bn, bk, stages, warps, align)                                                       \
  GS_TILE_NAME_(bm, bn, bk, stages, warps, GS_SUFFIX_##align)
#define GS_TILE_NAME_(bm, bn, bk, stages, warps, suffix)  GS_TILE_NAME__(bm, bn, bk, stages, warps, suffix)
#define GS_TILE_NAME__(bm, bn, bk, stages, warps, suffix) bm##x##bn##x##bk##_s##stages##_w##warps##suffix

#define GS_TEXT(text)  GS_TEXT_(text)
#define GS_TEXT_(text) #text
#define GS_JOIN(a, b)  GS_JOIN_(a, b)
#define GS_JOIN_(a, b) a##b

#endif
