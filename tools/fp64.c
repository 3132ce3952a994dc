#include "fp64.h"

#include <stdio.h>

#include "gemm_ref.h"

bool gs_reference_open(gs_reference_t *reference, gs_gpu_t *gpu) {
  size_t size;
  *reference = (gs_reference_t){.gpu = gpu};
  return gs_gpu_ok(gpu) && gs_gpu_note(gpu,
                                       gs_driver.cuLibraryLoadData(&reference->library, gs_ref_image(&size),
                                                                   NULL, NULL, 0, NULL, NULL, 0),
                                       "loading the FP64 reference");
}

void gs_reference_close(gs_reference_t *reference) {
  if (reference->library) gs_driver_tools.cuLibraryUnload(reference->library);
  reference->library = NULL;
}

void gs_reference_run(gs_reference_t *reference, const gs_gemm_t *g, gs_params_t p) {
  CUkernel *kernel = &reference->kernels[g->a_type][g->c_type];
  char name[32];
  snprintf(name, sizeof name, "ref_%s_%s", gs_type_names[g->a_type], gs_type_names[g->c_type]);
  if (!gs_gpu_ok(reference->gpu)) return;
  if (!*kernel &&
      !gs_gpu_note(reference->gpu, gs_driver.cuLibraryGetKernel(kernel, reference->library, name), name))
    return;
  int transa = g->transa != GS_OP_N, transb = g->transb != GS_OP_N;
  gs_launch_t launch = {.grid = {(unsigned)((g->m * g->n + 127) / 128), 1, (unsigned)g->batch}, .block = 128};
  gs_gpu_launch(reference->gpu, *kernel, &launch, (void *[]){&p, &transa, &transb});
}
