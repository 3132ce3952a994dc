/* What GEMMSHIM_VERIFY makes of differences. */
#include <criterion/criterion.h>
#include <math.h>

#include "gate.h"
#include "shadow.h"
#include "stats.h"

enum { COUNT = 4096, K = 4096 };

static double step_at(gs_type_t type, double x) {
  int fraction = type == GS_TYPE_F16 ? 10 : type == GS_TYPE_BF16 ? 7 : 23;
  return ldexp(1, (x == 0 ? -14 : ilogb(x)) - fraction);
}

/* Two results of normal sums: the library's and ours, each with an error of its own and rounded. */
static gs_compare_result_t results(gs_type_t type, double library_error, double our_error) {
  gs_compare_result_t r = {.error2 = 0};
  gs_random_t random = {7};
  for (int i = 0; i < COUNT; i++) {
    double u[3];
    for (int j = 0; j < 3; j++) {
      u[j] = 0; /* a sum of 12 evens is nearly normal */
      for (int l = 0; l < 12; l++) u[j] += (double)gs_random_below(&random, 1000001) * 1e-6;
      u[j] -= 6;
    }
    double exact = 64 * u[0];
    double theirs = gs_element_round(type, exact + 64 * library_error * u[1]);
    double ours = gs_element_round(type, exact + 64 * our_error * u[2]);
    double error = fabs(ours - theirs), step = step_at(type, theirs);
    r.error2 += error * error, r.step2 += step * step, r.reference2 += theirs * theirs;
    r.max_error = fmaxf(r.max_error, (float)error),
    r.max_reference = fmaxf(r.max_reference, (float)fabs(theirs));
  }
  return r;
}

static double judge(gs_type_t type, double library_error, double our_error) {
  gs_compare_result_t r = results(type, library_error, our_error);
  gs_gemm_t g = {.d_type = type, .a_type = type == GS_TYPE_F32 ? GS_TYPE_F16 : type, .k = K};
  return gs_shadow_judge(&r, &g);
}

/* Errors as measured on an H200 (KERNELS.md's gate): rounding alone, cuBLAS's split-K in fp16, sums in fp16. */
Test(shadow, good_results_pass_and_sums_in_fp16_do_not) {
  double right = judge(GS_TYPE_F16, 1e-6, 1e-6), split = judge(GS_TYPE_F16, 2e-4, 1e-6);
  double half = judge(GS_TYPE_F16, 1e-6, 1.1e-3);
  cr_expect(right < 0.5, "%g", right);
  cr_expect(split < 1 && split > right, "%g", split);
  cr_expect(half > 1, "%g", half);
  cr_expect(judge(GS_TYPE_BF16, 1e-6, 1e-6) < 0.5);
  cr_expect(judge(GS_TYPE_BF16, 1e-6, 1e-2) > 1);
  cr_expect(judge(GS_TYPE_F32, 1e-5, 1e-5) < 1);
  cr_expect(judge(GS_TYPE_F32, 1e-5, 1e-3) > 1);
}

/* Three elements, of which relu left one: the two results are neighbours. */
Test(shadow, one_step_in_one_of_few_elements_passes_and_three_do_not) {
  gs_gemm_t g = {.d_type = GS_TYPE_F16, .a_type = GS_TYPE_F16, .k = 40};
  gs_compare_result_t r = {.max_error = 0x1p-16f, .max_reference = 0.0157f};
  r.error2 = r.step2 = 0x1p-32, r.reference2 = 0.0157 * 0.0157;
  cr_expect(gs_shadow_judge(&r, &g) <= 1, "%g", gs_shadow_judge(&r, &g));
  r.max_error *= 3, r.error2 *= 9;
  cr_expect(gs_shadow_judge(&r, &g) > 1, "%g", gs_shadow_judge(&r, &g));
}

Test(shadow, one_element_is_enough) {
  gs_compare_result_t r = results(GS_TYPE_F16, 1e-6, 1e-6);
  gs_gemm_t g = {.d_type = GS_TYPE_F16, .a_type = GS_TYPE_F16, .k = K};
  r.max_error = 32; /* half of what is usual, in one of 4096 */
  cr_expect(gs_shadow_judge(&r, &g) > 1);
  r = results(GS_TYPE_F16, 1e-6, 1e-6);
  r.misfits = 1;
  cr_expect(isinf(gs_shadow_judge(&r, &g)));
}

Test(shadow, zeros_and_approximations) {
  gs_compare_result_t none = {.error2 = 0}, half = results(GS_TYPE_F16, 1e-6, 1.1e-3);
  gs_gemm_t g = {.d_type = GS_TYPE_F16, .a_type = GS_TYPE_F16, .k = K};
  cr_expect_eq(gs_shadow_judge(&none, &g), 0);
  g.epilogue = GS_EPILOGUE_GELU;
  cr_expect(gs_shadow_judge(&half, &g) < 1);
}
