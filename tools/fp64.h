/* The FP64 reference kernels (kernels/gemm_ref.cu) on one GPU. */
#ifndef GS_FP64_H
#define GS_FP64_H

#include "gpu.h"

typedef struct {
  gs_gpu_t *gpu;
  CUlibrary library;
  CUkernel kernels[GS_TYPE_COUNT][GS_TYPE_COUNT]; /* by type of A and B, type of C; loaded on first use */
} gs_reference_t;

/* False where the driver refuses them: gpu->fault says why. */
bool gs_reference_open(gs_reference_t *reference, gs_gpu_t *gpu);
void gs_reference_close(gs_reference_t *reference);

/* Computes g in double precision, on gpu->stream. p as for a kernel, but p.d points to doubles: g->ldd and
 * g->stride_d count those. */
void gs_reference_run(gs_reference_t *reference, const gs_gemm_t *g, gs_params_t p);

#endif
