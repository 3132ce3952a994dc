/* Statistics against values worked out by hand (shown beside each). */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "stats.h"

#define NEAR(actual, expected, within)                                                                       \
  cr_assert(fabs((actual) - (expected)) <= (within), #actual " is %.12g, not %.12g", (double)(actual),       \
            (double)(expected))

Test(stats, median_of_odd_even_and_one) {
  NEAR(gs_median((double[]){3, 1, 2}, 3), 2, 0);
  NEAR(gs_median((double[]){4, 1, 3, 2}, 4), 2.5, 0);
  NEAR(gs_median((double[]){7}, 1), 7, 0);
}

Test(stats, median_leaves_its_input_alone) {
  double x[] = {3, 1, 2};
  gs_median(x, 3);
  cr_assert(x[0] == 3 && x[1] == 1 && x[2] == 2);
}

Test(stats, quantiles_interpolate) {
  double x[] = {40, 10, 30, 20};
  NEAR(gs_quantile(x, 4, 0), 10, 0);
  NEAR(gs_quantile(x, 4, 1), 40, 0);
  NEAR(gs_quantile(x, 4, 0.25), 17.5, 1e-12); /* place 0.75: 10 + 0.75 * 10 */
  NEAR(gs_quantile(x, 4, 0.9), 37, 1e-12);    /* place 2.7: 30 + 0.7 * 10 */
}

Test(stats, geomean) {
  NEAR(gs_geomean((double[]){1, 4, 16}, 3), 4, 1e-12);
  NEAR(gs_geomean((double[]){0.5, 2}, 2), 1, 1e-12);
}

Test(stats, random_is_splitmix64) { /* the published first outputs for seed 1234567 */
  gs_random_t random = {1234567};
  cr_assert(gs_random_next(&random) == 6457827717110365317u);
  cr_assert(gs_random_next(&random) == 3203168211198807973u);
}

Test(stats, below_stays_below_and_reaches_all) {
  gs_random_t random = {1};
  int seen[3] = {0};
  for (int i = 0; i < 3000; i++) {
    uint64_t pick = gs_random_below(&random, 3);
    cr_assert(pick < 3);
    seen[pick]++;
  }
  /* 1000 each expected; 150 is 5.8 standard deviations (25.8) */
  for (int i = 0; i < 3; i++) cr_assert(abs(seen[i] - 1000) < 150, "%d of 3000 are %d", seen[i], i);
}

Test(stats, shuffle_reaches_every_order) {
  gs_random_t random = {7};
  int seen[27] = {0}, orders = 0;
  for (int i = 0; i < 200; i++) {
    int x[] = {0, 1, 2};
    gs_random_shuffle(&random, x, 3);
    cr_assert(x[0] + x[1] + x[2] == 3 && x[0] != x[1] && x[1] != x[2]);
    orders += !seen[9 * x[0] + 3 * x[1] + x[2]]++;
  }
  cr_assert(orders == 6, "%d of 6 orders", orders);
}

Test(stats, ratio_of_constants_is_exact) {
  double x[] = {2, 2, 2, 2, 2}, y[] = {4, 4, 4, 4, 4};
  gs_interval_t r = gs_ratio_of_medians(x, y, 5, 1);
  NEAR(r.value, 0.5, 0);
  NEAR(r.lo, 0.5, 0);
  NEAR(r.hi, 0.5, 0);
}

Test(stats,
     paired_rounds_cancel_drift) { /* every round is twice as slow as the last; the ratio is always 2 */
  double x[] = {2, 4, 8, 16, 32}, y[] = {1, 2, 4, 8, 16};
  gs_interval_t r = gs_ratio_of_medians(x, y, 5, 1);
  NEAR(r.value, 2, 0);
  NEAR(r.lo, 2, 0);
  NEAR(r.hi, 2, 0);
}

Test(stats, noise_holds_one_and_a_gain_does_not) {
  double a[] = {100, 103, 97, 101, 99, 102, 98, 100}, b[] = {101, 99, 100, 98, 103, 97, 102, 100}, c[8];
  gs_interval_t same = gs_ratio_of_medians(a, b, 8, 3);
  cr_assert(same.lo < 1 && same.hi > 1, "[%g, %g]", same.lo, same.hi);
  for (int i = 0; i < 8; i++) c[i] = 0.8 * a[i];
  gs_interval_t faster = gs_ratio_of_medians(c, b, 8, 3);
  NEAR(faster.value, 0.8, 1e-12);
  cr_assert(faster.hi < 0.9 && faster.lo > 0.7, "[%g, %g]", faster.lo, faster.hi);
}

Test(stats, same_seed_same_interval) {
  double x[] = {5, 9, 2, 7, 4, 8}, y[] = {3, 6, 5, 2, 9, 4};
  gs_interval_t one = gs_ratio_of_medians(x, y, 6, 11), two = gs_ratio_of_medians(x, y, 6, 11);
  cr_assert(!memcmp(&one, &two, sizeof one));
}

Test(stats, too_few_pairs_have_no_interval) {
  gs_interval_t r = gs_ratio_of_medians((double[]){1, 2, 3, 4}, (double[]){1, 2, 3, 4}, 4, 1);
  NEAR(r.value, 1, 0);
  cr_assert(isnan(r.lo) && isnan(r.hi));
}

Test(stats, wilcoxon_without_ties) {
  /* differences -1 2 3 4 5 6: W+ = 20, mean 10.5, variance 6*7*13/24 = 22.75, z = 1.991741 */
  double x[] = {0, 2, 3, 4, 5, 6}, y[] = {1, 0, 0, 0, 0, 0};
  NEAR(gs_wilcoxon(x, y, 6), 0.0463993, 1e-6);
}

Test(stats, wilcoxon_with_ties_and_equal_pairs) {
  /* differences 0 dropped; 1 1 -1 2: ranks 2 2 2 4, W+ = 8, mean 5, variance 4*5*9/24 - 24/48 = 7,
   * z = 1.133893 */
  double x[] = {5, 1, 1, 0, 2}, y[] = {5, 0, 0, 1, 0};
  NEAR(gs_wilcoxon(x, y, 5), 0.2568393, 1e-6);
}

Test(stats, wilcoxon_of_equal_pairs_is_one) {
  double x[] = {1, 2, 3};
  NEAR(gs_wilcoxon(x, x, 3), 1, 0);
}
