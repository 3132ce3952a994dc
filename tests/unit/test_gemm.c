/* gs_gemm_t: its text form, its hash, its alignment; every name list against cuBLAS's own values. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <cublasLt.h>
#include <stdlib.h>

#include "gs_gemm.h"
#include "gs_reason.h"

static gs_gemm_t sample(void) {
  gs_gemm_t g = {.entry = GS_ENTRY_GEMM_EX, .transa = GS_OP_T, .a_type = GS_TYPE_F16, .b_type = GS_TYPE_F16};
  g.c_type = g.d_type = GS_TYPE_F32, g.compute = GS_COMPUTE_32F, g.batch = 1, g.align = 16;
  g.m = 4096, g.n = 8, g.k = 14336, g.lda = g.ldb = 14336, g.ldc = g.ldd = 4096;
  return g;
}

Test(gemm, a_line_reads_back_as_it_was) {
  gs_gemm_t g = sample(), back;
  const char *why;
  char line[512];
  g.stride_a = -7, g.stride_d = 1ll << 40, g.batch_kind = GS_BATCH_STRIDED, g.batch = 3;
  gs_gemm_format(line, sizeof line, &g);
  cr_assert_eq(gs_gemm_parse(line, &back, &why), GS_OK, "%s", why);
  cr_assert_eq(memcmp(&g, &back, sizeof g), 0);
}

Test(gemm, every_field_is_missed_when_missing) {
  gs_gemm_t g = sample(), back;
  const char *why;
  char line[512];
  gs_gemm_format(line, sizeof line, &g);
  int fields = 1;
  for (char *tab; (tab = strrchr(line, '\t')); fields++) {
    *tab = '\0';
    cr_assert_eq(gs_gemm_parse(line, &back, &why), GS_SYNTAX, "%s", line);
  }
  cr_assert_eq(fields, GS_GEMM_FIELDS);
}

Test(gemm, bad_fields_are_refused) {
  const char *bad[] = {
      "",
      "cublasNothing\tt\tn\t1\t1\t1\t1\t1\t1\t1\tf16\tf16\tf16\tf16\t32f\tdefault\tsingle\t1\t0\t0\t0\t0\t16",
      "cublasGemmEx\tt\tn\tx\t1\t1\t1\t1\t1\t1\tf16\tf16\tf16\tf16\t32f\tdefault\tsingle\t1\t0\t0\t0\t0\t16",
      "cublasGemmEx\tt\tn\t1\t0\t1\t1\t1\t1\t1\tf16\tf16\tf16\tf16\t32f\tdefault\tsingle\t1\t0\t0\t0\t0\t16",
      "cublasGemmEx\tt\tn\t1\t1\t1\t1\t1\t1\t1\tf16\tf16\tf16\tf16\t32f\tdefault\tsingle\t1\t0\t0\t0\t0\t30"
      "0"};
  gs_gemm_t g;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    const char *why = NULL;
    cr_assert_eq(gs_gemm_parse(bad[i], &g, &why), GS_SYNTAX, "%s", bad[i]);
    cr_assert_not_null(why);
  }
}

Test(gemm, the_hash_sees_every_field) {
  gs_gemm_t g = sample();
  uint64_t hash = gs_gemm_hash(&g);
  for (size_t byte = 0; byte < sizeof g; byte++) {
    gs_gemm_t other = g;
    ((unsigned char *)&other)[byte] ^= 1;
    cr_assert_neq(gs_gemm_hash(&other), hash, "byte %zu", byte);
  }
}

Test(gemm, hashes_of_a_grid_spread) {
  enum { BUCKETS = 4096 };
  static int bucket[BUCKETS];
  gs_gemm_t g = sample();
  int most = 0;
  for (g.m = 1; g.m <= 64; g.m++)
    for (g.n = 1; g.n <= 64; g.n++) {
      int *count = &bucket[gs_gemm_hash(&g) % BUCKETS];
      if (++*count > most) most = *count;
    }
  cr_assert_leq(most, 10, "%d of 4096 shapes share one of 4096 places", most);
}

Test(gemm, alignment_is_what_all_addresses_share) {
  gs_operands_t at = {.a = (void *)0x1000, .b = (void *)0x2000, .c = NULL, .d = (void *)0x3000};
  cr_assert_eq(gs_align_of(&at), 16);
  at.bias = (void *)0x1002;
  cr_assert_eq(gs_align_of(&at), 2);
  at.bias = (void *)0x1008;
  cr_assert_eq(gs_align_of(&at), 8);
}

Test(gemm, values_are_those_of_the_headers) {
  cr_assert_eq(gs_type_of_cuda(CUDA_R_16F), GS_TYPE_F16);
  cr_assert_eq(gs_type_of_cuda(CUDA_R_16BF), GS_TYPE_BF16);
  cr_assert_eq(gs_type_of_cuda(CUDA_R_32F), GS_TYPE_F32);
  cr_assert_eq(gs_type_of_cuda(CUDA_R_64F), GS_TYPE_F64);
  cr_assert_eq(gs_type_of_cuda(CUDA_R_8I), GS_TYPE_I8);
  cr_assert_eq(gs_type_of_cuda(CUDA_R_32I), GS_TYPE_I32);
  cr_assert_eq(gs_type_of_cuda(CUDA_R_8F_E4M3), GS_TYPE_E4M3);
  cr_assert_eq(gs_type_of_cuda(CUDA_R_8F_E5M2), GS_TYPE_E5M2);
  cr_assert_eq(gs_type_of_cuda(CUDA_C_32F), GS_TYPE_C32);
  cr_assert_eq(gs_type_of_cuda(CUDA_C_64F), GS_TYPE_C64);
  cr_assert_eq(gs_type_of_cuda(12345), GS_TYPE_OTHER);
#define SAME(name) cr_assert_eq(gs_compute_of_cublas(CUBLAS_COMPUTE_##name), GS_COMPUTE_##name)
  SAME(16F);
  SAME(16F_PEDANTIC);
  SAME(32F);
  SAME(32F_PEDANTIC);
  SAME(32F_FAST_16F);
  SAME(32F_FAST_16BF);
  SAME(32F_FAST_TF32);
  SAME(64F);
  SAME(64F_PEDANTIC);
  SAME(32I);
  SAME(32I_PEDANTIC);
#undef SAME
#define SAME(name) cr_assert_eq(gs_epilogue_of_cublas(CUBLASLT_EPILOGUE_##name), GS_EPILOGUE_##name)
  SAME(DEFAULT);
  SAME(RELU);
  SAME(BIAS);
  SAME(RELU_BIAS);
  SAME(GELU);
  SAME(GELU_BIAS);
#undef SAME
  cr_assert_eq(gs_epilogue_of_cublas(CUBLASLT_EPILOGUE_GELU_AUX), GS_EPILOGUE_OTHER);
  cr_assert_eq(gs_op_of_cublas(CUBLAS_OP_N), GS_OP_N);
  cr_assert_eq(gs_op_of_cublas(CUBLAS_OP_T), GS_OP_T);
  cr_assert_eq(gs_op_of_cublas(CUBLAS_OP_C), GS_OP_C);
  cr_assert_eq(gs_op_of_cublas(9), GS_OP_OTHER);
}

Test(gemm, every_reason_has_a_name_and_a_text) {
  for (int i = 0; i < GS_REASON_COUNT; i++) {
    cr_assert(gs_reason_names[i] && *gs_reason_names[i] && gs_reason_texts[i] && *gs_reason_texts[i]);
    cr_assert_eq(gs_name_index(gs_reason_names[i], gs_reason_names, GS_REASON_COUNT), i);
  }
}

Test(gemm, the_description_reads_well) {
  gs_gemm_t g = sample();
  char text[256];
  gs_gemm_describe(text, sizeof text, &g);
  cr_assert_str_eq(text,
                   "cublasGemmEx TN 4096x8x14336 f16,f16->f32 32f default ld 14336,14336,4096 align 16");
}
