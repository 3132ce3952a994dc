/* What depends on a call's operands: overlap, and half scalars. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "launch.h"

/* Addresses in elements of fp16, so that the cases read like matrices. */
static gs_operands_t at(intptr_t a, intptr_t b, intptr_t c, intptr_t d) {
  return (gs_operands_t){
      .a = (void *)(2 * a), .b = (void *)(2 * b), .c = (void *)(2 * c), .d = (void *)(2 * d)};
}

static gs_gemm_t square(int64_t size, int64_t ld) {
  gs_gemm_t g = {.a_type = GS_TYPE_F16, .b_type = GS_TYPE_F16, .c_type = GS_TYPE_F16, .d_type = GS_TYPE_F16};
  g.m = g.n = g.k = size, g.lda = g.ldb = g.ldc = g.ldd = ld, g.batch = 1;
  return g;
}

static bool overlaps(const gs_gemm_t *g, gs_operands_t o) {
  return gs_launch_overlaps(g, &o);
}

Test(launch, C7_the_result_may_not_touch_an_input) {
  gs_gemm_t g = square(8, 8); /* 64 elements each */
  cr_assert_not(overlaps(&g, at(1000, 2000, 3000, 3000)));
  cr_assert(overlaps(&g, at(3000, 2000, 0, 3000)));
  cr_assert(overlaps(&g, at(3063, 2000, 0, 3000)), "the last element of D is the first of A");
  cr_assert_not(overlaps(&g, at(3064, 2000, 0, 3000)));
  cr_assert(overlaps(&g, at(1000, 2937, 0, 3000)), "the last element of B is the first of D");
  cr_assert_not(overlaps(&g, at(1000, 2936, 0, 3000)));
}

Test(launch, C7_c_may_be_d_but_not_a_shifted_d) {
  gs_gemm_t g = square(8, 8);
  cr_assert_not(overlaps(&g, at(1000, 2000, 3000, 3000)));
  cr_assert(overlaps(&g, at(1000, 2000, 3001, 3000)));
  g.ldc = 16;
  cr_assert(overlaps(&g, at(1000, 2000, 3000, 3000)), "the same address with another ldc");
}

Test(launch, C7_batch_entries_lie_behind_or_beside_each_other) {
  gs_gemm_t g = square(8, 8);
  g.batch = 4, g.batch_kind = GS_BATCH_STRIDED, g.stride_a = g.stride_b = g.stride_c = g.stride_d = 64;
  cr_assert_not(overlaps(&g, at(1000, 2000, 3000, 3000)));
  g.stride_c = g.stride_d = 63;
  cr_assert(overlaps(&g, at(1000, 2000, 3000, 3000)));
  g.ldc = g.ldd = 32, g.stride_c = g.stride_d = 8; /* heads side by side */
  cr_assert_not(overlaps(&g, at(1000, 2000, 3000, 3000)));
  g.stride_c = g.stride_d = 7;
  cr_assert(overlaps(&g, at(1000, 2000, 3000, 3000)));
  g.stride_c = g.stride_d = 0;
  cr_assert(overlaps(&g, at(1000, 2000, 3000, 3000)), "every entry in the same place");
}

Test(launch, C7_negative_strides_reach_backwards) {
  gs_gemm_t g = square(8, 8);
  g.batch = 3, g.batch_kind = GS_BATCH_STRIDED, g.stride_a = -64, g.stride_b = 0,
  g.stride_c = g.stride_d = 64;
  cr_assert(overlaps(&g, at(3256, 2000, 0, 3000)), "A's later entries lie on D's");
  cr_assert_not(overlaps(&g, at(3400, 2000, 0, 3000)));
}

Test(launch, C2_halves_widen_exactly) {
  static const struct {
    uint16_t half;
    float value;
  } cases[] = {{0x3c00, 1},     {0xbc00, -1},       {0x0000, 0},        {0x3555, 0x1.554p-2f},
               {0x7bff, 65504}, {0x0001, 0x1p-24f}, {0x0400, 0x1p-14f}, {0x83ff, -0x1.ff8p-15f}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    cr_assert_eq(gs_float_of_half(cases[i].half), cases[i].value, "%04x", cases[i].half);
  cr_assert(isinf(gs_float_of_half(0x7c00)) && isnan(gs_float_of_half(0x7e00)));
  cr_assert(signbit(gs_float_of_half(0x8000)));
}
