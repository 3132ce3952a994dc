#include "bench_claims.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gs_reason.h"

#define X(name, text) text,
const char *const gs_class_names[GS_CLASS_COUNT] = {GS_CLASSES(X)};
#undef X

double gs_class_of(gs_class_t class, const gs_gemm_t *g) {
  int64_t least = g->m < g->n ? g->m : g->n;
  if (g->k < least) least = g->k;
  switch (class) {
  case GS_CLASS_FLOPS:
    return pow(10, floor(log10(gs_gemm_flops(g)) + 1e-9)); /* 1e6 itself belongs to 1e6 */
  case GS_CLASS_SIDE:
    return ldexp(1, ilogb((double)least));
  case GS_CLASS_SMALL:
    return gs_gemm_flops(g) < GS_CLASS_SMALL_FLOPS;
  default:
    return 0;
  }
}

int gs_class_values(const gs_bench_set_t *set, gs_class_t class, double *values, int limit) {
  int count = 0;
  for (int i = 0; i < set->count; i++) {
    if (!gs_bench_row_ok(&set->rows[i])) continue;
    double value = gs_class_of(class, &set->rows[i].gemm);
    int at = 0;
    while (at < count && values[at] < value) at++;
    if ((at < count && values[at] == value) || count == limit) continue;
    memmove(values + at + 1, values + at, (size_t)(count++ - at) * sizeof *values);
    values[at] = value;
  }
  return count;
}

gs_claim_t gs_claim_of(const double *ratios, int count) {
  gs_claim_t claim = {.count = count, .mean = NAN, .geomean = {NAN, NAN, NAN}, .p = NAN};
  size_t n = (size_t)count;
  if (!count) return claim;
  double *logs = malloc(2 * n * sizeof *logs), *zeros = logs + n;
  if (!logs) abort(); /* a tool, and a few kilobytes */
  claim.best = claim.worst = ratios[0];
  for (size_t i = 0; i < n; i++) {
    logs[i] = log(ratios[i]), zeros[i] = 0;
    if (ratios[i] > claim.best) claim.best = ratios[i];
    if (ratios[i] < claim.worst) claim.worst = ratios[i];
  }
  claim.mean = gs_mean(ratios, n);
  claim.deviation = gs_deviation(ratios, n);
  claim.geomean = gs_geomean_interval(ratios, n, 1);
  claim.p = gs_wilcoxon(logs, zeros, n);
  free(logs);
  return claim;
}

gs_claim_t gs_bench_claim(const gs_bench_set_t *set, const gs_subject_t *s) {
  double *ratios = malloc((size_t)(set->count + 1) * sizeof *ratios);
  int count = 0, wins = 0, ties = 0, losses = 0;
  if (!ratios) abort();
  for (int i = 0; i < set->count; i++) {
    gs_interval_t r = set->rows[i].ratio[s->clock][s->rival][s->layout];
    if (!gs_bench_row_ok(&set->rows[i]) || !(r.value > 0)) continue;
    if (gs_class_of(s->class, &set->rows[i].gemm) != s->value) continue;
    ratios[count++] = r.value;
    wins += r.lo > 1;
    losses += r.hi < 1;
    ties += r.lo <= 1 && r.hi >= 1;
  }
  gs_claim_t claim = gs_claim_of(ratios, count);
  claim.wins = wins, claim.ties = ties, claim.losses = losses;
  free(ratios);
  return claim;
}

static void tell_verdict(const gs_bench_set_t *set, const char *verdict, void (*f)(void *, const char *, int),
                         void *context) {
  int products = 0;
  for (int i = 0; i < set->count; i++)
    for (int l = 0; l < GS_LAYOUT_COUNT; l++) products += !strcmp(set->rows[i].door[l].verdict, verdict);
  if (products) f(context, verdict, products);
}

void gs_bench_verdicts(const gs_bench_set_t *set, void (*f)(void *, const char *, int), void *context) {
  for (int r = 0; r < GS_REASON_COUNT; r++) tell_verdict(set, gs_reason_names[r], f, context);
  tell_verdict(set, GS_NOT_COUNTED, f, context);
}
