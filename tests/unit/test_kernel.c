/* The kernels' registry, and the arithmetic that kernels share. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GS_EMULATE
#include "common.cuh"
#include "gs_kernel.h"

/* --- ids --- */
Test(kernel, every_shipped_id_reads_back) {
  cr_assert_geq(gs_shipped_count(), 10 * 16);
  for (int i = 0; i < gs_shipped_count(); ++i) {
    char id[GS_KERNEL_ID_MAX];
    gs_kernel_t k = gs_shipped_at(i), read;
    cr_assert_lt(gs_kernel_format(id, sizeof id, &k), (int)sizeof id);
    cr_assert(gs_kernel_parse(id, &read), "%s", id);
    cr_assert_eq(memcmp(&read, &k, sizeof k), 0, "%s", id);
    cr_assert_eq(gs_shipped_find(&read), i, "%s", id);
  }
}

Test(kernel, ids_spell_the_fields) {
  gs_kernel_t k;
  cr_assert(gs_kernel_parse("mma_bf16_f32_nt_64x32x64_s3_w2_v2", &k));
  cr_assert_eq(k.ab_type, GS_TYPE_BF16);
  cr_assert_eq(k.d_type, GS_TYPE_F32);
  cr_assert_eq(k.transa, GS_OP_N);
  cr_assert_eq(k.transb, GS_OP_T);
  cr_assert(k.bm == 64 && k.bn == 32 && k.bk == 64 && k.stages == 3 && k.warps == 2 && k.align == 2);
}

Test(kernel, ids_of_the_direct_family_spell_their_fields) {
  gs_kernel_t k;
  cr_assert(gs_kernel_parse("direct_f16_f32_tt_32x8_u4_w2_sw", &k));
  cr_assert(k.family == GS_FAMILY_DIRECT && k.ab_type == GS_TYPE_F16 && k.d_type == GS_TYPE_F32);
  cr_assert(k.transa == GS_OP_T && k.transb == GS_OP_T && k.align == 16);
  cr_assert(k.bm == 32 && k.bn == 8 && k.bk == 32 && k.stages == 4 && k.warps == 2 && k.swap == 1);
  cr_assert(gs_kernel_parse("direct_f16_f16_tn_32x16_u1_w1", &k) && k.swap == 0);
}

Test(kernel, ids_of_the_rows_family_spell_their_fields) {
  gs_kernel_t k;
  cr_assert(gs_kernel_parse("rows_bf16_f32_nt_4x2_u8_w16", &k));
  cr_assert(k.family == GS_FAMILY_ROWS && k.ab_type == GS_TYPE_BF16 && k.d_type == GS_TYPE_F32);
  cr_assert(k.transa == GS_OP_N && k.transb == GS_OP_T && k.align == 16 && k.swap == 0);
  cr_assert(k.bm == 4 && k.bn == 2 && k.bk == 256 && k.stages == 8 && k.warps == 16);
}

Test(kernel, malformed_ids_are_refused) {
  static const char *const ids[] = {"",
                                    "mma",
                                    "mma_f16_f16_tn",
                                    "mma_f16_f16_tn_128x64x32",
                                    "mma_f16_f16_tn_128x64x32_s4",
                                    "mma_f16_f16_tn_128x64x32_s4_w4_",
                                    "mma_f16_f16_tn_128x64x32_s4_w4_v4",
                                    "mma_f16_f16_tn_128x64x32_s4_w4 ",
                                    " mma_f16_f16_tn_128x64x32_s4_w4",
                                    "mma_f16_f16_tn_0128x64x32_s4_w4",
                                    "mma_f16_f16_tn_+128x64x32_s4_w4",
                                    "mma_f16_f16_tn_-128x64x32_s4_w4",
                                    "mma_f16_f16_tn_0x64x32_s4_w4",
                                    "mma_f16_f16_tn_99999x64x32_s4_w4",
                                    "mma_f16_f16_tn_128x60x32_s4_w4",
                                    "mma_f16_f16_tn_128x64x16_s4_w4",
                                    "mma_f16_f16_tn_128x64x32_s1_w4",
                                    "mma_f16_f16_tn_128x64x32_s4_w0",
                                    "mma_f16_f16_tn_128x64x32_s4_w400",
                                    "mma_f16_bf16_tn_128x64x32_s4_w4",
                                    "mma_f32_f32_tn_128x64x32_s4_w4",
                                    "mma_f16_f16_cn_128x64x32_s4_w4",
                                    "mma_f16_f16_t_128x64x32_s4_w4",
                                    "mmm_f16_f16_tn_128x64x32_s4_w4",
                                    "MMA_f16_f16_tn_128x64x32_s4_w4",
                                    "mma_f16_f16_tn_128 x64x32_s4_w4",
                                    "mma_f16_f16_tn_16x16_u4_w4",
                                    "direct_f16_f16_tn_",
                                    "direct_f16_f16_tn_64x64x32_s4_w4",
                                    "direct_f16_f16_tn_16x16_u4_w4_",
                                    "direct_f16_f16_tn_16x16_u4_w4_swx",
                                    "direct_f16_f16_tn_16x8_u4_w4",
                                    "direct_f16_f16_tn_24x16_u4_w4",
                                    "direct_f16_f16_tn_128x16_u4_w4",
                                    "direct_f16_f16_tn_16x16_u0_w4",
                                    "direct_f16_f16_tn_16x16_u4_w3",
                                    "direct_f16_f16_tn_ 16x16_u4_w4",
                                    "rows_f16_f16_tn_2x1x32_s2_w4",
                                    "rows_f16_f16_tn_0x1_u2_w4",
                                    "rows_f16_f16_tn_3x1_u2_w4",
                                    "rows_f16_f16_tn_2x3_u2_w4",
                                    "rows_f16_f16_tn_2x1_u0_w4",
                                    "rows_f16_f16_tn_2x1_u2_w6",
                                    "rows_f16_f16_tn_8x1_u2_w4",
                                    "rows_f16_f16_tn_2x1_u2_w64",
                                    "rows_f16_f16_tn_2x1_u2_w4_sw"};
  gs_kernel_t k;
  for (size_t i = 0; i < sizeof ids / sizeof *ids; ++i)
    cr_assert_not(gs_kernel_parse(ids[i], &k), "'%s'", ids[i]);
}

Test(kernel, every_shipped_kernel_has_its_image) {
  for (int i = 0; i < gs_shipped_count(); ++i) {
    size_t size = 0;
    int image = gs_shipped_image_index(i);
    cr_assert(image >= 0 && image < gs_shipped_image_count());
    const unsigned char *at = gs_shipped_image(image, &size);
    cr_assert_gt(size, (size_t)4096);
    /* A fatbin's magic number. */
    cr_assert(at[0] == 0x50 && at[1] == 0xed && at[2] == 0x55 && at[3] == 0xba, "image %d", image);
  }
}

/* --- what is supported --- */
static gs_kernel_t kernel_of(const char *id) {
  gs_kernel_t k;
  cr_assert(gs_kernel_parse(id, &k), "%s", id);
  return k;
}

static gs_gemm_t plain_call(void) {
  return (gs_gemm_t){.entry = GS_ENTRY_GEMM_EX,
                     .transa = GS_OP_T,
                     .transb = GS_OP_N,
                     .a_type = GS_TYPE_F16,
                     .b_type = GS_TYPE_F16,
                     .c_type = GS_TYPE_F16,
                     .d_type = GS_TYPE_F16,
                     .compute = GS_COMPUTE_32F,
                     .align = 16,
                     .batch = 1,
                     .m = 100,
                     .n = 60,
                     .k = 40,
                     .lda = 40,
                     .ldb = 40,
                     .ldc = 100,
                     .ldd = 100};
}

Test(kernel, C6_C8_supports_says_why_not) {
  gs_kernel_t k = kernel_of("mma_f16_f16_tn_64x64x64_s4_w4");
  gs_kernel_t v2 = kernel_of("mma_f16_f16_tn_64x64x32_s3_w4_v2"),
              out32 = kernel_of("mma_f16_f32_tn_64x64x64_s4_w4");
  gs_gemm_t g = plain_call();
  cr_assert_eq(gs_kernel_supports(&k, &g), GS_REASON_SERVED);
#define BUT(field, value, reason)                                                                            \
  do {                                                                                                       \
    gs_gemm_t other = g;                                                                                     \
    other.field = value;                                                                                     \
    cr_assert_eq(gs_kernel_supports(&k, &other), GS_REASON_##reason, #field " = " #value);                   \
  } while (0)
  BUT(transa, GS_OP_C, SERVED);
  BUT(transa, GS_OP_N, DEGENERATE); /* lda < m */
  BUT(transa, GS_OP_OTHER, DEGENERATE);
  BUT(m, 0, DEGENERATE);
  BUT(n, -1, DEGENERATE);
  BUT(k, 0, DEGENERATE);
  BUT(batch, 0, DEGENERATE);
  BUT(lda, 39, DEGENERATE);
  BUT(ldb, 39, DEGENERATE);
  BUT(ldc, 99, DEGENERATE);
  BUT(ldd, 99, DEGENERATE);
  BUT(a_type, GS_TYPE_BF16, TYPE);
  BUT(c_type, GS_TYPE_F32, TYPE);
  BUT(compute, GS_COMPUTE_16F, SERVED);
  BUT(compute, GS_COMPUTE_32F_PEDANTIC, TYPE);
  BUT(compute, GS_COMPUTE_64F, TYPE);
  BUT(epilogue, GS_EPILOGUE_GELU_BIAS, SERVED);
  BUT(epilogue, GS_EPILOGUE_OTHER, EPILOGUE);
  BUT(batch_kind, GS_BATCH_STRIDED, SERVED);
  BUT(batch_kind, GS_BATCH_ARRAY, KERNEL);
  BUT(n, INT64_C(1) << 40, RANGE);
  BUT(n, 1 << 30, RANGE); /* too many tiles */
  BUT(ldd, INT64_C(1) << 40, RANGE);
  BUT(batch, 65536, RANGE);
  BUT(align, 8, ALIGNMENT);
  BUT(align, 0, ALIGNMENT);
  BUT(lda, 44, ALIGNMENT);
  BUT(ldb, 41, ALIGNMENT);
  BUT(ldd, 101, SERVED);
#undef BUT
  gs_gemm_t batched = g;
  batched.batch_kind = GS_BATCH_STRIDED;
  batched.batch = 2;
  batched.stride_a = -4000;
  cr_assert_eq(gs_kernel_supports(&k, &batched), GS_REASON_SERVED);
  batched.stride_b = 2404;
  cr_assert_eq(gs_kernel_supports(&k, &batched), GS_REASON_ALIGNMENT);
  cr_assert_eq(gs_kernel_supports(&v2, &batched), GS_REASON_SERVED);
  g.align = 2;
  g.lda = 41;
  cr_assert_eq(gs_kernel_supports(&v2, &g), GS_REASON_SERVED);
  cr_assert_eq(gs_kernel_supports(&out32, &g), GS_REASON_KERNEL);
  g = plain_call();
  g.c_type = g.d_type = GS_TYPE_F32;
  cr_assert_eq(gs_kernel_supports(&out32, &g), GS_REASON_SERVED);
  g.k = g.lda = g.ldb = GS_F32_DEPTH;
  cr_assert_eq(gs_kernel_supports(&out32, &g), GS_REASON_SERVED);
  g.k = g.lda = g.ldb = GS_F32_DEPTH + 8;
  cr_assert_eq(gs_kernel_supports(&out32, &g), GS_REASON_KERNEL, "sums too deep for the gate");
  g = plain_call();
  g.c_type = g.d_type = GS_TYPE_F32;
  g.compute = GS_COMPUTE_16F;
  cr_assert_eq(gs_kernel_supports(&out32, &g), GS_REASON_TYPE);
  g = plain_call();
  g.transa = GS_OP_N;
  g.lda = 104;
  cr_assert_eq(gs_kernel_supports(&k, &g), GS_REASON_KERNEL);
}

Test(kernel, launch_covers_the_result) {
  gs_kernel_t k = kernel_of("mma_f16_f16_tn_64x32x64_s4_w4");
  gs_gemm_t g = plain_call();
  g.batch = 3;
  gs_launch_t l = gs_kernel_launch(&k, &g, 5, 80);
  cr_assert(l.grid[0] == 2 && l.grid[1] == 2 * 5 && l.grid[2] == 3 && l.block == 128 && l.cluster == 1);
  cr_assert_eq(l.smem, 4u * (64 + 32) * 64 * 2);
  cr_assert_eq(gs_kernel_workspace(&k, &g, 1, 80), (size_t)0);
  cr_assert_eq(gs_kernel_workspace(&k, &g, 5, 80), (size_t)(GS_SPLIT_COUNTERS * 4 + 12 * 5 * 64 * 32 * 4));
  cr_assert_eq(gs_kernel_workspace(&k, &g, GS_SPLIT_MAX + 1, 80), SIZE_MAX);
  g.batch = 2000;
  cr_assert_eq(gs_kernel_workspace(&k, &g, 2, 80), SIZE_MAX);
}

Test(kernel, clusters_split_k_without_a_workspace) {
  gs_kernel_t k = kernel_of("direct_f16_f16_tn_32x16_u4_w4"),
              mma = kernel_of("mma_f16_f16_tn_64x32x64_s4_w4");
  gs_gemm_t g = plain_call(); /* 100 x 60 */
  g.batch = 3;
  gs_launch_t l = gs_kernel_launch(&k, &g, 5, 90);
  cr_assert(l.grid[0] == 4 && l.grid[1] == 4 * 5 && l.grid[2] == 3 && l.block == 128 && l.cluster == 5);
  cr_assert_eq(l.smem, 4u * 32 * 16 * 4 + GS_DIRECT_SUMS(32, 16));
  cr_assert_eq(gs_kernel_launch(&k, &g, 1, 90).smem, 4u * 32 * 16 * 4);
  cr_assert_eq(gs_kernel_workspace(&k, &g, 8, 90), (size_t)0);
  cr_assert_eq(gs_kernel_workspace(&k, &g, 9, 90), SIZE_MAX);
  cr_assert_eq(gs_kernel_workspace(&mma, &g, 8, 90), (size_t)0);
  cr_assert_eq(gs_kernel_launch(&mma, &g, 8, 90).cluster, 8u);
  cr_assert_gt(gs_kernel_workspace(&mma, &g, 9, 90), (size_t)0);
  cr_assert_eq(gs_kernel_launch(&mma, &g, 9, 90).cluster, 1u);
  cr_assert(gs_kernel_split_max(&k, 80) == 1 && gs_kernel_split_max(&k, 89) == 1);
  cr_assert_eq(gs_kernel_split_max(&k, 90), GS_DIRECT_SPLITS);
  cr_assert_eq(gs_kernel_split_max(&mma, 80), GS_SPLIT_MAX);
  gs_gemm_t deep = plain_call(), tall = plain_call();
  deep.k = deep.lda = deep.ldb = 1 << 24; /* more k-tiles times parts than gs_quotient divides exactly */
  cr_assert_eq(gs_kernel_workspace(&mma, &deep, 8, 90), SIZE_MAX);
  tall.m = tall.ldc = tall.ldd = 1 << 20; /* along x: mma has its tiles of m along y */
  cr_assert_eq(gs_kernel_workspace(&k, &tall, 8, 90), (size_t)0);
  cr_assert_eq(gs_kernel_workspace(&mma, &tall, 8, 90), SIZE_MAX);
  g.n = 1 << 20; /* more blocks along y than a grid has */
  g.batch = 1;
  cr_assert_eq(gs_kernel_supports(&k, &g), GS_REASON_RANGE);
}

Test(kernel, strips_cover_what_is_no_deeper_than_they_are) {
  gs_kernel_t k = kernel_of("strip_f16_f16_tn_128x256x64_s4_w4"), other;
  gs_gemm_t g = plain_call(); /* 100 x 60 x 40 */
  g.m = g.ldc = g.ldd = 1000, g.n = 520, g.batch = 3;
  gs_launch_t l = gs_kernel_launch(&k, &g, 1, 90);
  cr_assert(l.grid[0] == 3 && l.grid[1] == 8 && l.grid[2] == 3 && l.block == 128 && l.cluster == 1);
  cr_assert_eq(l.smem, (128u + 4 * 64) * 64 * 2);
  cr_assert(gs_kernel_split_max(&k, 80) == 0 && gs_kernel_split_max(&k, 90) == 1);
  cr_assert(!gs_kernel_runs_on(&k, 80) && gs_kernel_runs_on(&k, 90) && gs_kernel_has_raster(&k));
  cr_assert_eq(gs_kernel_workspace(&k, &g, 1, 90), (size_t)0);
  cr_assert_eq(gs_kernel_workspace(&k, &g, 2, 90), SIZE_MAX);
  g.k = g.lda = g.ldb = 64;
  cr_assert_eq(gs_kernel_supports(&k, &g), GS_REASON_SERVED);
  g.k = g.lda = g.ldb = 72;
  cr_assert_eq(gs_kernel_supports(&k, &g), GS_REASON_KERNEL, "k is that of the tile at most");
  static const char *const none[] = {
      "strip_f16_f16_tn_128x256x64_s2_w4", /* no room for the sums */
      "strip_f16_f16_tn_128x64x64_s4_w4",  "strip_f16_f16_tn_128x192x32_s8_w4",
      "strip_f16_f16_tn_96x256x64_s4_w4",  "strip_f16_f16_tn_128x256x64_s4_w4_v2",
  };
  for (size_t i = 0; i < sizeof none / sizeof *none; ++i)
    cr_expect(!gs_kernel_parse(none[i], &other), "%s", none[i]);
}

/* Along x, where a grid is long: a vocabulary is 150,000 rows. */
Test(kernel, rows_are_covered_and_k_is_not_split) {
  gs_kernel_t along_k = kernel_of("rows_f16_f16_tn_2x2_u2_w8"),
              along_m = kernel_of("rows_f16_f16_nn_2x2_u2_w8"),
              alone = kernel_of("rows_f16_f16_tn_4x1_u2_w4");
  gs_gemm_t g = plain_call(); /* 100 x 60 */
  g.batch = 3;
  gs_launch_t l = gs_kernel_launch(&along_k, &g, 1, 90);
  cr_assert(l.grid[0] == 50 && l.grid[1] == 30 && l.grid[2] == 3 && l.block == 256 && l.cluster == 1);
  cr_assert_eq(l.smem, 8u * 2 * 4);
  cr_assert_eq(gs_kernel_launch(&alone, &g, 1, 90).smem, 0u);
  l = gs_kernel_launch(&along_m, &g, 1, 90);
  cr_assert(l.grid[0] == 7 && l.grid[1] == 30);
  cr_assert_eq(l.smem, 8u * 2 * 8 * 2 * 4);
  cr_assert(gs_kernel_split_max(&along_k, 80) == 1 && gs_kernel_split_max(&along_k, 90) == 1);
  cr_assert_eq(gs_kernel_workspace(&along_k, &g, 1, 90), (size_t)0);
  cr_assert_eq(gs_kernel_workspace(&along_k, &g, 2, 90), SIZE_MAX);
  g.m = g.ldc = g.ldd = 1 << 22;
  cr_assert_eq(gs_kernel_supports(&along_k, &g), GS_REASON_SERVED);
  g.n = 65535 * 2;
  cr_assert_eq(gs_kernel_supports(&along_k, &g), GS_REASON_SERVED);
  g.n++;
  cr_assert_eq(gs_kernel_supports(&along_k, &g), GS_REASON_RANGE);
}

Test(kernel, direct_kernels_need_no_more_shared_memory_than_every_block_has) {
  gs_gemm_t g = plain_call();
  for (int i = 0; i < gs_shipped_count(); ++i) {
    gs_kernel_t k = gs_shipped_at(i);
    if (k.family == GS_FAMILY_DIRECT)
      for (int s = 1; s <= GS_DIRECT_SPLITS; ++s)
        cr_assert_leq(gs_kernel_launch(&k, &g, s, 90).smem, 48u << 10);
  }
}

/* --- the tile in shared memory --- */
Test(kernel, permutation_is_one_to_one_and_free_of_bank_conflicts) {
  static const int extents[] = {16, 32, 48, 64, 96, 128, 160, 256}, heights[] = {16, 32, 64, 96, 256};
  for (size_t e = 0; e < sizeof extents / sizeof *extents; ++e)
    for (size_t h = 0; h < sizeof heights / sizeof *heights; ++h) {
      int chunks = extents[e] / 8, rows = heights[h];
      bool *taken = calloc((size_t)(rows * chunks), sizeof *taken);
      for (int row = 0; row < rows; ++row)
        for (int chunk = 0; chunk < chunks; ++chunk) {
          unsigned place = gs_chunk_offset(extents[e], rows, row, chunk) / 16;
          cr_assert_lt(place, (unsigned)(rows * chunks));
          cr_assert_not(taken[place], "%d x %d: row %d, chunk %d", rows, extents[e], row, chunk);
          taken[place] = true;
        }
      free(taken);
      for (int row = 0; row < rows; row += 8) /* what one phase of ldmatrix reads */
        for (int chunk = 0; chunk < chunks; ++chunk) {
          unsigned banks = 0;
          for (int i = 0; i < 8; ++i)
            banks |= 1u << gs_chunk_offset(extents[e], rows, row + i, chunk) / 16 % 8;
          cr_assert_eq(banks, 0xffu, "%d x %d: rows from %d, chunk %d", rows, extents[e], row, chunk);
        }
    }
}

Test(kernel, quotient_is_exact) {
  for (unsigned d = 1; d < 1u << 21; d += 1 + d / 50)
    for (unsigned x = d - 1; x < (1u << 21) - 2; x += d * (1 + (1u << 21) / d / 100))
      for (unsigned at = x; at < x + 3; ++at) cr_assert_eq(gs_quotient(at, d), at / d, "%u / %u", at, d);
}
