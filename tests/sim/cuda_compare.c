/* Stand-in libcuda: what the kernels compare_* compute, by their description in gs_compare.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "gs_compare.h"
#include "gs_gemm.h"
#include "reference.h"

typedef struct {
  gs_compare_params_t params;
  cudaDataType_t type;
  unsigned batch;
} work_t;

static double step_at(cudaDataType_t type, double x) {
  int fraction = type == CUDA_R_16F    ? 10
                 : type == CUDA_R_16BF ? 7
                                       : 23,
      lowest = type == CUDA_R_16F ? -14 : -126;
  int exponent = x == 0 ? lowest : ilogb(x);
  return scalbn(1, (exponent < lowest ? lowest : exponent) - fraction);
}

static void add(gs_compare_result_t *r, cudaDataType_t type, double d, double reference) {
  double largest = type == CUDA_R_16F ? 65440 : 3.35e38, step = step_at(type, reference);
  if (!isfinite(d) || !isfinite(reference)) {
    bool edge = fmin(fabs(d), fabs(reference)) >= largest && signbit(d) == signbit(reference);
    r->misfits += !(isnan(d) && isnan(reference)) && !edge;
    return;
  }
  r->error2 += (d - reference) * (d - reference);
  r->step2 += step * step;
  r->reference2 += reference * reference;
  r->max_error = fmaxf(r->max_error, (float)fabs(d - reference));
  r->max_reference = fmaxf(r->max_reference, (float)fabs(reference));
}

static void compute(const void *argument) {
  const work_t *work = argument;
  const gs_compare_params_t *p = &work->params;
  for (long long z = 0; z < work->batch; z++)
    for (long long j = 0; j < p->n; j++)
      for (long long i = 0; i < p->m; i++) {
        long long at = z * p->stride + j * p->ld + i;
        add(p->result, work->type, value_load(work->type, p->d, at),
            value_load(work->type, p->reference, at));
      }
}

bool driver_is_compare(const char *id, gs_type_t *type) {
  static const gs_type_t types[] = {GS_TYPE_F16, GS_TYPE_BF16, GS_TYPE_F32};
  for (int i = 0; i < 3; i++) {
    char text[32];
    snprintf(text, sizeof text, "compare_%s", gs_type_names[types[i]]);
    *type = types[i];
    if (!strcmp(text, id)) return true;
  }
  return false;
}

CUresult driver_compare(gs_type_t type, const sim_launch_t *launch, const gs_compare_params_t *p) {
  if (launch->block[0] != GS_COMPARE_THREADS || launch->smem || !launch->grid[0])
    return CUDA_ERROR_INVALID_VALUE;
  work_t work = {.params = *p,
                 .type = type == GS_TYPE_F16    ? CUDA_R_16F
                         : type == GS_TYPE_BF16 ? CUDA_R_16BF
                                                : CUDA_R_32F,
                 .batch = launch->grid[2]};
  return sim_nocompute() ? CUDA_SUCCESS : sim_enqueue(launch->stream, 0, compute, &work, sizeof work);
}
