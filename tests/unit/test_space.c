/* The generated space, and what is chosen from it. */
#include <criterion/criterion.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "generate.h"
#include "points.h"
#include "rank.h"
#include "space.h"

static gs_gemm_t product(int m, int n, int k) {
  return gs_points_packed(GS_OP_T, GS_OP_N, m, n, k, GS_TYPE_F16, GS_TYPE_F16, GS_EPILOGUE_DEFAULT);
}

typedef struct {
  gs_kernel_t *items;
  int count;
} points_t;

static void keep(void *context, const gs_kernel_t *kernel) {
  points_t *points = context;
  points->items = realloc(points->items, (size_t)(points->count + 1) * sizeof *kernel);
  points->items[points->count++] = *kernel;
}

static points_t space_of(const gs_gemm_t *g, int sm) {
  points_t points = {0};
  gs_space_visit(g, sm, keep, &points);
  return points;
}

static bool holds(const points_t *points, const gs_kernel_t *kernel) {
  for (int i = 0; i < points->count; i++)
    if (!memcmp(&points->items[i], kernel, sizeof *kernel)) return true;
  return false;
}

Test(space, its_points_are_kernels_that_serve_and_fit_each_once) {
  gs_gemm_t g = product(512, 64, 1024);
  points_t points = space_of(&g, 80);
  cr_assert_gt(points.count, 500);
  for (int i = 0; i < points.count; i++) {
    char id[GS_KERNEL_ID_MAX];
    gs_kernel_t *kernel = &points.items[i], read;
    gs_kernel_format(id, sizeof id, kernel);
    cr_assert(gs_kernel_parse(id, &read) && !memcmp(&read, kernel, sizeof read), "%s", id);
    cr_assert_eq(gs_kernel_supports(kernel, &g), GS_REASON_SERVED, "%s", id);
    cr_assert(gs_generate_fits(kernel, 80), "%s", id);
    cr_assert_eq(kernel->align, 16, "%s", id);
    for (int j = 0; j < i; j++) cr_assert(memcmp(&points.items[j], kernel, sizeof *kernel), "%s twice", id);
  }
  points_t more = space_of(&g, 90);
  cr_assert_gt(more.count, points.count, "blocks have more shared memory there");
  free(points.items);
  free(more.items);
}

/* Its axes go through what is shipped. */
Test(space, holds_every_shipped_kernel) {
  gs_gemm_t g = product(512, 64, 1024), odd = g;
  odd.align = 2;
  points_t aligned = space_of(&g, 90), unaligned = space_of(&odd, 90);
  int found = 0;
  for (int i = 0; i < gs_shipped_count(); i++) {
    char id[GS_KERNEL_ID_MAX];
    gs_kernel_t kernel = gs_shipped_at(i);
    gs_kernel_format(id, sizeof id, &kernel);
    if (gs_kernel_supports(&kernel, &g) != GS_REASON_SERVED) continue;
    bool any_address = gs_kernel_supports(&kernel, &odd) == GS_REASON_SERVED;
    cr_expect(holds(any_address ? &unaligned : &aligned, &kernel), "%s", id);
    found++;
  }
  cr_assert_gt(found, 10);
  free(aligned.items);
  free(unaligned.items);
}

/* The guess, against what the compiler says of a few. */
Test(space, guessed_registers_are_about_right) {
  static const char *const ids[] = {
      "mma_f16_f16_tn_48x64x32_s3_w2",     "mma_f16_f16_tn_96x128x32_s4_w4",
      "mma_f16_f16_tn_32x32x64_s4_w4",     "direct_f16_f16_tn_16x8_u4_w8_sw",
      "direct_f16_f16_tn_32x32_u2_w8",     "rows_f16_f16_tn_2x1_u4_w8",
      "rows_f16_f16_tn_4x2_u4_w4",         "rows_f16_f16_nn_4x1_u2_w8",
      "wgmma_f16_f16_tn_64x64x64_s8_w4",   "wgmma_f16_f16_nn_256x128x64_s4_w8",
      "strip_f16_f16_tn_128x256x64_s4_w4", "strip_f16_f16_nn_256x256x128_s3_w8"};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
    gs_kernel_t kernel;
    gs_cubin_t cubin;
    cr_assert(gs_kernel_parse(ids[i], &kernel));
    if (gs_generate(ids[i], 90, 0, &cubin) == GS_NOT_FOUND) cr_skip_test("%s", cubin.why);
    int guess = gs_space_registers(&kernel), real = cubin.needs.registers;
    cr_expect(real && abs(guess - real) <= 50, "%s: %d, guessed %d", ids[i], real, guess);
    gs_cubin_free(&cubin);
  }
  gs_kernel_t none = {
      .family = GS_FAMILY_MMA, .bm = 16, .bn = 16, .bk = 32, .stages = 2, .warps = 8, .align = 16};
  cr_assert_eq(gs_space_registers(&none), INT_MAX, "8 warps have no share of one tile of 16 x 16");
}

static const gs_gpu_t h200 = {.device = {.sm = 90, .sms = 132},
                              .clock_khz = 1980000,
                              .memory_khz = 3201000,
                              .memory_bits = 6144,
                              .sm_registers = 64 << 10,
                              .sm_smem = 228 << 10,
                              .sm_threads = 2048,
                              .sm_blocks = 32,
                              .block_smem = 1 << 10};

Test(space, guesses_prefer_what_suits_the_product) {
  gs_gemm_t small = product(64, 64, 64), large = product(4096, 4096, 4096);
  gs_kernel_t narrow, wide,
      huge = {.family = GS_FAMILY_MMA, .bm = 256, .bn = 256, .bk = 64, .stages = 8, .warps = 8};
  const gs_rank_for_t to_small = {&small, 1, 0}, to_large = {&large, 1, 0};
  cr_assert(gs_kernel_parse("direct_f16_f16_tn_16x16_u2_w4", &narrow));
  cr_assert(gs_kernel_parse("mma_f16_f16_tn_128x128x32_s4_w4", &wide));
  cr_assert_lt(gs_rank_guess(&h200, &narrow, &to_small), gs_rank_guess(&h200, &wide, &to_small));
  cr_assert_lt(gs_rank_guess(&h200, &wide, &to_large), gs_rank_guess(&h200, &narrow, &to_large));
  huge.ab_type = huge.d_type = GS_TYPE_F16, huge.transa = GS_OP_T, huge.align = 16;
  cr_assert(isinf(gs_rank_guess(&h200, &huge, &to_large)), "its tiles do not fit the shared memory");
}

/* One column or two leave tensor cores idle, and leave early; for eight columns A is read four times. */
Test(space, rows_are_for_one_column_or_two) {
  static const struct {
    const char *id;
    int m, n, k;
    bool faster; /* than direct; as measured on an H200 */
  } cases[] = {{"rows_f16_f16_tn_4x1_u2_w8", 768, 1, 768, true},
               {"rows_f16_f16_tn_2x1_u4_w8", 4096, 1, 4096, true},
               {"rows_f16_f16_tn_2x1_u4_w8", 28672, 1, 4096, true},
               {"rows_f16_f16_tn_4x1_u2_w8", 151936, 1, 896, true},
               {"rows_f16_f16_tn_2x2_u1_w8", 768, 2, 768, true},
               {"rows_f16_f16_tn_2x2_u1_w8", 2304, 4, 768, false},
               {"rows_f16_f16_tn_2x2_u1_w8", 2048, 8, 2048, false},
               {"rows_f16_f16_tn_2x2_u2_w8", 4096, 8, 4096, false},
               {"rows_f16_f16_tn_4x2_u4_w4", 4096, 64, 4096, false}};
  gs_kernel_t rows, direct;
  cr_assert(gs_kernel_parse("direct_f16_f16_tn_16x8_u4_w8_sw", &direct));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gs_gemm_t g = product(cases[i].m, cases[i].n, cases[i].k);
    const gs_rank_for_t to = {&g, 1, 0};
    cr_assert(gs_kernel_parse(cases[i].id, &rows));
    double us = gs_rank_guess(&h200, &rows, &to), other = gs_rank_guess(&h200, &direct, &to);
    cr_expect_eq(us < other, cases[i].faster, "%d x %d x %d: %g us, direct %g", cases[i].m, cases[i].n,
                 cases[i].k, us, other);
  }
}
