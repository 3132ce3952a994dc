/* What the rows of `bench` add up to: claims over classes of products, each with the noise beside it. */
#ifndef GS_BENCH_CLAIMS_H
#define GS_BENCH_CLAIMS_H

#include "bench_file.h"

/* Classes of products: all; by the decade of their FLOPs; by the power of two at or below their smallest side; 1 below
 * GS_CLASS_SMALL_FLOPS, else 0. */
#define GS_CLASSES(X)        X(ALL, "all") X(FLOPS, "flops") X(SIDE, "smallest_side") X(SMALL, "below_1e8_flops")
#define GS_CLASS_SMALL_FLOPS 1e8
#define X(name, text)        GS_CLASS_##name,
typedef enum { GS_CLASSES(X) GS_CLASS_COUNT } gs_class_t;
#undef X
extern const char *const gs_class_names[GS_CLASS_COUNT];

/* A class's value of a product: 1e9, 64; 0 for ALL. */
double gs_class_of(gs_class_t class, const gs_gemm_t *g);
/* The values that occur in set, rising, at most limit; returns how many. */
int gs_class_values(const gs_bench_set_t *set, gs_class_t class, double *values, int limit);

typedef struct {
  gs_class_t class;
  double value;
  gs_clock_kind_t clock;
  gs_rival_t rival;
  int layout; /* gs_layout_t or GS_LAYOUT_MAX */
} gs_subject_t;

/* Of ratios, rival's time over ours: above 1 ours is faster. */
typedef struct {
  int count, wins, ties, losses; /* by the interval of each: above 1, holding it, below */
  double mean, deviation, best, worst;
  gs_interval_t geomean; /* bootstrap over products */
  double p;              /* Wilcoxon's signed-rank test that log ratios are symmetric about 0 */
} gs_claim_t;

gs_claim_t gs_bench_claim(const gs_bench_set_t *set, const gs_subject_t *subject);
/* The same of any ratios; no wins, ties or losses. */
gs_claim_t gs_claim_of(const double *ratios, int count);

/* How often each verdict came, over the layouts of all rows; calls f for each that did. */
void gs_bench_verdicts(const gs_bench_set_t *set, void (*f)(void *context, const char *verdict, int products),
                       void *context);

#endif
