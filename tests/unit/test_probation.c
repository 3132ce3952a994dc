/* The rule of a trial in place: its critical values are those of the Mann-Whitney distribution. */
#include <criterion/criterion.h>

#include "probation.h"
#include "stats.h"

/* In how many orders of n and m values exactly u pairs stand the other way round. */
static double orders(int n, int m, int u) {
  static double known[17][17][257];
  static char seen[17][17][257];
  if (u < 0) return 0;
  if (n == 0 || m == 0) return u == 0;
  if (!seen[n][m][u]) {
    seen[n][m][u] = 1;
    known[n][m][u] = orders(n - 1, m, u - m) + orders(n, m - 1, u);
  }
  return known[n][m][u];
}

static double p_of(int n, int pairs) {
  double few = 0, all = 0;
  for (int u = 0; u <= n * n; u++) all += orders(n, n, u);
  for (int u = 0; u <= pairs; u++) few += orders(n, n, u);
  return few / all;
}

/* n times a side of which the kernel is slower in so many pairs. */
static gs_trial_verdict_t judge(int n, int pairs) {
  float library[16], kernel[16];
  for (int j = 0; j < n; j++) library[j] = 10.0f + (float)j;
  for (int i = 0; i < n; i++) {
    int above = pairs < n ? pairs : n; /* of the library's times, this one is above so many */
    kernel[i] = 9.5f + (float)above;
    pairs -= above;
  }
  return gs_probation_judge(library, kernel, n);
}

Test(probation, critical_values_hold_the_error_below_one_percent) {
  double wins = 0;
  for (int n = 1; n <= GS_TRIAL_SAMPLES; n++) {
    int most = -1;
    while (most < n * n && judge(n, most + 1) == GS_TRIAL_WON) most++;
    if (n != 8 && n != 12 && n != 16) {
      cr_expect_eq(most, -1, "%d times are not looked at", n);
      continue;
    }
    wins += p_of(n, most);
    cr_expect_lt(p_of(n, most), 0.0034);
    cr_expect_geq(p_of(n, most + 1), 0.0034, "at %d times %d pairs more could win", n, 1);
  }
  cr_expect_lt(wins, 0.01, "%g", wins);
}

Test(probation, losers_lose_early_and_undecided_means_library) {
  cr_expect_eq(judge(4, 16), GS_TRIAL_LOST);
  cr_expect_eq(judge(4, 15), GS_TRIAL_OPEN);
  cr_expect_eq(judge(8, 32), GS_TRIAL_OPEN);
  cr_expect_eq(judge(8, 60), GS_TRIAL_LOST);
  cr_expect_eq(judge(16, 58), GS_TRIAL_LOST);
  float same[GS_TRIAL_SAMPLES] = {0};
  cr_expect_eq(gs_probation_judge(same, same, 8), GS_TRIAL_OPEN);
  cr_expect_eq(gs_probation_judge(same, same, 16), GS_TRIAL_LOST);
}

/* The whole of the rule on random times: equals win in at most 1 of 100 trials, 20% faster ones in nearly all. */
Test(probation, error_rates_of_whole_trials) {
  gs_random_t random = {42};
  for (int faster = 0; faster < 2; faster++) {
    int won = 0, trials = 4000;
    for (int t = 0; t < trials; t++) {
      float us[2][GS_TRIAL_SAMPLES];
      gs_trial_verdict_t verdict = GS_TRIAL_OPEN;
      for (int n = 1; verdict == GS_TRIAL_OPEN; n++) {
        for (int side = 0; side < 2; side++)
          us[side][n - 1] =
              (side && faster ? 8.0f : 10.0f) + 1e-6f * (float)gs_random_below(&random, 2000000);
        verdict = gs_probation_judge(us[0], us[1], n);
      }
      won += verdict == GS_TRIAL_WON;
    }
    if (faster)
      cr_expect_gt(won, trials * 99 / 100, "%d of %d", won, trials);
    else
      cr_expect_leq(won, trials / 100, "%d of %d", won, trials);
  }
}
