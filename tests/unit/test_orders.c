/* The order of tiles that a product is first measured in. */
#include <criterion/criterion.h>

#include "orders.h"

static gs_kernel_t kernel_of(const char *id) {
  gs_kernel_t k;
  cr_assert(gs_kernel_parse(id, &k), "%s", id);
  return k;
}

static gs_gemm_t product(int64_t m, int64_t n, int64_t k) {
  return (gs_gemm_t){.m = m, .n = n, .k = k, .batch = 1, .a_type = GS_TYPE_F16, .b_type = GS_TYPE_F16};
}

Test(orders, only_what_passes_the_cache_is_begun_in_another_order) {
  static const struct {
    const char *kernel;
    int64_t m, n, k;
    int raster;
  } cases[] = {
      {"wgmma_f16_f16_nn_128x128x64_s6_w8", 1024, 16384, 2048, 8}, /* all of m at once, B once */
      {"wgmma_f16_f16_nn_128x64x64_s2_w4", 8192, 8192, 1024, 1},   /* B stays */
      {"wgmma_f16_f16_nn_128x128x64_s6_w8", 8192, 8192, 8192, 8},
      {"wgmma_f16_f16_nn_128x128x64_s6_w8", 128, 16384, 8192, 1}, /* one tile of m: no other order */
      {"wgmma_f16_f16_nn_128x128x64_s6_w8", 300, 16384, 8192, 4}, /* three: 8 would be the same as 4 */
      {"direct_f16_f16_tn_16x16_u4_w8", 1024, 16384, 2048, 1},    /* which has no choice */
  };
  const gs_gpu_t gpu = {.device.sms = 132, .l2_bytes = 50 << 20};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gs_kernel_t k = kernel_of(cases[i].kernel);
    gs_gemm_t g = product(cases[i].m, cases[i].n, cases[i].k);
    int raster = gs_order_guess(&gpu, &k, &g);
    cr_expect_eq(raster, cases[i].raster, "%d: %d", (int)i, raster);
  }
}

Test(orders, differ_until_all_tiles_of_m_are_taken) {
  gs_kernel_t k = kernel_of("wgmma_f16_f16_nn_128x128x64_s6_w8");
  gs_gemm_t g = product(384, 4096, 64), narrow = product(384, 128, 64);
  const bool wanted[GS_ORDERS] = {true, true, true, false};
  for (int i = 0; i < GS_ORDERS; i++) {
    cr_expect_eq(gs_order_differs(&k, &g, i), wanted[i], "raster %d", gs_orders[i]);
    cr_expect_eq(gs_order_differs(&k, &narrow, i), i == 0, "raster %d", gs_orders[i]);
  }
}
