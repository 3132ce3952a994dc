/* The names that lines of mma.def, wgmma.def, direct.def and rows.def give their tiles, as tokens and as text: 128x64x32_s4_w4,
 * 16x8_u4_w8_sw. */
#ifndef GS_TILES_H
#define GS_TILES_H

#define GS_ALIGN_16
#define GS_ALIGN_2 _v2
#define GS_MMA_TILE(bm, bn, bk, stages, warps, align)                                                        \
  GS_MMA_TILE_(bm, bn, bk, stages, warps, GS_ALIGN_##align)
#define GS_MMA_TILE_(bm, bn, bk, stages, warps, suffix)  GS_MMA_TILE__(bm, bn, bk, stages, warps, suffix)
#define GS_MMA_TILE__(bm, bn, bk, stages, warps, suffix) bm##x##bn##x##bk##_s##stages##_w##warps##suffix

#define GS_SWAP_0
#define GS_SWAP_1                                       _sw
#define GS_DIRECT_TILE(bm, bn, stages, warps, swap)     GS_DIRECT_TILE_(bm, bn, stages, warps, GS_SWAP_##swap)
#define GS_DIRECT_TILE_(bm, bn, stages, warps, suffix)  GS_DIRECT_TILE__(bm, bn, stages, warps, suffix)
#define GS_DIRECT_TILE__(bm, bn, stages, warps, suffix) bm##x##bn##_u##stages##_w##warps##suffix

#define GS_ROWS_TILE(bm, bn, stages, warps) bm##x##bn##_u##stages##_w##warps

#define GS_TEXT(text)  GS_TEXT_(text)
#define GS_TEXT_(text) #text
#define GS_JOIN(a, b)  GS_JOIN_(a, b)
#define GS_JOIN_(a, b) a##b

#endif
