/* Statistics of measurements. Nothing here keeps its input in order or changes it; n is at least 1. */
#ifndef GS_STATS_H
#define GS_STATS_H

#include <stddef.h>
#include <stdint.h>

/* A small seeded generator: the same seed gives the same numbers everywhere. */
typedef struct {
  uint64_t state;
} gs_random_t;
uint64_t gs_random_next(gs_random_t *random);
/* Evenly distributed below limit, which is at least 1. */
uint64_t gs_random_below(gs_random_t *random, uint64_t limit);
void gs_random_shuffle(gs_random_t *random, int *x, size_t n);

/* Quantile q in [0, 1] of x, linear between the two nearest order statistics (R's type 7). */
double gs_quantile(const double *x, size_t n, double q);
double gs_median(const double *x, size_t n);
double gs_mean(const double *x, size_t n);
/* With n - 1 in the denominator; 0 for one value. */
double gs_deviation(const double *x, size_t n);
/* Of positive values. */
double gs_geomean(const double *x, size_t n);

typedef struct {
  double value, lo, hi; /* lo and hi are NAN where n is too small for an interval */
} gs_interval_t;

/* Fewer pairs than this say nothing about their spread. */
#define GS_INTERVAL_PAIRS_MIN 5
#define GS_RESAMPLES          2000

/* median(x) / median(y) with its 95% percentile bootstrap interval. x[i] and y[i] were measured in the same
 * round and are resampled together, so that drift from round to round cancels. */
gs_interval_t gs_ratio_of_medians(const double *x, const double *y, size_t n, uint64_t seed);

/* The geometric mean of x with its 95% percentile bootstrap interval over the values. */
gs_interval_t gs_geomean_interval(const double *x, size_t n, uint64_t seed);

/* Two-sided p-value of the Wilcoxon signed-rank test that x[i] and y[i] do not differ: normal approximation,
 * mean ranks for ties with their variance correction, equal pairs dropped, no continuity correction.
 * 1 where every pair is equal. */
double gs_wilcoxon(const double *x, const double *y, size_t n);

#endif
