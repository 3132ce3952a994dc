/* What whole models would gain: each layer weighted by its share of a step's time. */
#ifndef GS_BENCH_MODELS_H
#define GS_BENCH_MODELS_H

#include "bench_file.h"

#define GS_MODEL_LOSSES_MAX 8

/* A model of the layers' file at one n, for one type of D: over the layers that the set knows, but those
 * aside, and with a batch or an n of their own, which do not come once a token. */
typedef struct {
  char name[64];       /* of the layers, up to their last _ */
  int n;               /* tokens: 1, 8, 64 a decode step, 2048 a prefill */
  gs_type_t type;      /* of A and B */
  int layers, missing; /* in the sums; not measured at this n */
  /* Sum of the library's times over the sum of ours, on the gpu and the wall clock. NAN without any. */
  double asked[GS_CLOCK_COUNT]; /* of what a program calls: cublasGemmEx, or cublasLtMatmul for an epilogue */
  double best[GS_CLOCK_COUNT];  /* of cuBLASLt's best */
  int losses;                   /* layers whose interval against cuBLASLt's best lies below 1, gpu clock */
  char lost[GS_MODEL_LOSSES_MAX][64];
  double lost_ratio[GS_MODEL_LOSSES_MAX];
} gs_model_t;

/* Calls f for each model, n and type that the set has layers of; false (said) where the file cannot be read. */
bool gs_bench_models(const gs_bench_set_t *set, const char *path,
                     void (*f)(void *context, const gs_model_t *model), void *context);

#endif
