/* Statistics of measurements; see stats.h. */
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64 (Steele, Lea, Flood 2014). */
uint64_t gs_random_next(gs_random_t *random) {
  uint64_t z = random->state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

uint64_t gs_random_below(gs_random_t *random, uint64_t limit) {
  return (uint64_t)((unsigned __int128)gs_random_next(random) * limit >> 64);
}

void gs_random_shuffle(gs_random_t *random, int *x, size_t n) {
  for (size_t i = n; i > 1; i--) {
    size_t other = gs_random_below(random, i);
    int swap = x[i - 1];
    x[i - 1] = x[other], x[other] = swap;
  }
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double quantile_sorted(const double *sorted, size_t n, double q) {
  double place = q * (double)(n - 1);
  size_t below = (size_t)place;
  if (below + 1 >= n) return sorted[n - 1];
  return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

static double *allocated(size_t n) {
  double *x = malloc(n * sizeof *x);
  if (!x) abort(); /* a tool, and a few kilobytes */
  return x;
}

double gs_quantile(const double *x, size_t n, double q) {
  double *sorted = allocated(n);
  memcpy(sorted, x, n * sizeof *x);
  qsort(sorted, n, sizeof *sorted, by_value);
  double value = quantile_sorted(sorted, n, q);
  free(sorted);
  return value;
}

double gs_median(const double *x, size_t n) {
  return gs_quantile(x, n, 0.5);
}

double gs_mean(const double *x, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += x[i];
  return sum / (double)n;
}

double gs_deviation(const double *x, size_t n) {
  double mean = gs_mean(x, n), sum = 0;
  for (size_t i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
  return n > 1 ? sqrt(sum / (double)(n - 1)) : 0;
}

double gs_geomean(const double *x, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += log(x[i]);
  return exp(sum / (double)n);
}

/* Values in order, and where in that order each of the original ones stands. */
typedef struct {
  double *sorted;
  size_t *rank, *times; /* times: how often each sorted one was picked */
} gs_ranked_t;

static gs_ranked_t ranked(const double *x, size_t n) {
  gs_ranked_t r = {allocated(n), (size_t *)allocated(n), (size_t *)allocated(n)};
  memcpy(r.sorted, x, n * sizeof *x);
  qsort(r.sorted, n, sizeof *x, by_value);
  for (size_t i = 0; i < n; i++) {
    double *at = bsearch(&x[i], r.sorted, n, sizeof *x, by_value); /* of equal ones any will do */
    r.rank[i] = (size_t)(at - r.sorted);
  }
  return r;
}

static void ranked_free(gs_ranked_t *r) {
  free(r->sorted), free(r->rank), free(r->times);
}

/* The median of the n values that were picked. */
static double picked_median(const gs_ranked_t *r, size_t n) {
  size_t below = (n - 1) / 2, above = n / 2, seen = 0, i = 0;
  while (seen + r->times[i] <= below) seen += r->times[i++];
  double low = r->sorted[i];
  while (seen + r->times[i] <= above) seen += r->times[i++];
  return low + 0.5 * (r->sorted[i] - low);
}
_Static_assert(sizeof(size_t) == sizeof(double), "one way to allocate both");

static double resampled_ratio(gs_ranked_t *x, gs_ranked_t *y, size_t n, gs_random_t *random) {
  memset(x->times, 0, n * sizeof *x->times);
  memset(y->times, 0, n * sizeof *y->times);
  for (size_t i = 0; i < n; i++) {
    size_t pick = gs_random_below(random, n);
    x->times[x->rank[pick]]++, y->times[y->rank[pick]]++;
  }
  return picked_median(x, n) / picked_median(y, n);
}

/* Sets the ends of the interval to the 2.5% and 97.5% quantiles of the resampled values, which it sorts. */
static void percentiles(gs_interval_t *interval, double *resampled) {
  qsort(resampled, GS_RESAMPLES, sizeof *resampled, by_value);
  interval->lo = quantile_sorted(resampled, GS_RESAMPLES, 0.025);
  interval->hi = quantile_sorted(resampled, GS_RESAMPLES, 0.975);
}

gs_interval_t gs_ratio_of_medians(const double *x, const double *y, size_t n, uint64_t seed) {
  gs_interval_t interval = {gs_median(x, n) / gs_median(y, n), NAN, NAN};
  if (n < GS_INTERVAL_PAIRS_MIN) return interval;
  double *ratios = allocated(GS_RESAMPLES);
  gs_ranked_t of_x = ranked(x, n), of_y = ranked(y, n);
  gs_random_t random = {seed};
  for (int i = 0; i < GS_RESAMPLES; i++) ratios[i] = resampled_ratio(&of_x, &of_y, n, &random);
  percentiles(&interval, ratios);
  free(ratios), ranked_free(&of_x), ranked_free(&of_y);
  return interval;
}

gs_interval_t gs_geomean_interval(const double *x, size_t n, uint64_t seed) {
  gs_interval_t interval = {gs_geomean(x, n), NAN, NAN};
  if (n < GS_INTERVAL_PAIRS_MIN) return interval;
  double *means = allocated(GS_RESAMPLES), *logs = allocated(n);
  gs_random_t random = {seed};
  for (size_t i = 0; i < n; i++) logs[i] = log(x[i]);
  for (int i = 0; i < GS_RESAMPLES; i++) {
    double sum = 0;
    for (size_t pick = 0; pick < n; pick++) sum += logs[gs_random_below(&random, n)];
    means[i] = exp(sum / (double)n);
  }
  percentiles(&interval, means);
  free(means), free(logs);
  return interval;
}

static int by_magnitude(const void *a, const void *b) {
  double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
  return (x > y) - (x < y);
}

double gs_wilcoxon(const double *x, const double *y, size_t n) {
  double *difference = allocated(n);
  size_t count = 0;
  for (size_t i = 0; i < n; i++)
    if (x[i] != y[i]) difference[count++] = x[i] - y[i];
  qsort(difference, count, sizeof *difference, by_magnitude);

  double positive = 0, ties = 0; /* sum of ranks; sum of t^3 - t over groups of t equal magnitudes */
  for (size_t lo = 0, hi; lo < count; lo = hi) {
    for (hi = lo; hi < count && fabs(difference[hi]) == fabs(difference[lo]);) hi++;
    double rank = ((double)lo + 1 + (double)hi) / 2, group = (double)(hi - lo);
    for (size_t i = lo; i < hi; i++) positive += difference[i] > 0 ? rank : 0;
    ties += group * group * group - group;
  }
  free(difference);
  if (!count) return 1;
  double c = (double)count, mean = c * (c + 1) / 4;
  double variance = c * (c + 1) * (2 * c + 1) / 24 - ties / 48;
  return erfc(fabs(positive - mean) / sqrt(2 * variance));
}
