/* What libcublas and libcublasLt share: a cublasHandle_t may be passed as a cublasLtHandle_t. */
#ifndef GS_SIM_HANDLE_H
#define GS_SIM_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>

#include "reference.h"

#ifndef SIM_MAJOR
#error "build with -DSIM_MAJOR=12 or 13"
#endif

struct cublasContext {
  CUstream stream;
  cublasPointerMode_t pointer_mode;
  cublasMath_t math_mode;
  cublasAtomicsMode_t atomics_mode;
  int sm_count_target;
  int emulation_strategy;
  void *workspace;
  size_t workspace_bytes;
};

/* NULL when the driver does not start. The primary context of device 0 becomes current where none is. */
struct cublasContext *sim_handle_create(void);

#define SIM_COUNTER_BYTES 4
/* Computes on the stream, or not at all where SIM_NOCOMPUTE is set. name: whose time SIM_US sets. The workspace
 * is written to its end; SIM_COUNTER_BYTES of it are cleared, and then counted in. */
cublasStatus_t sim_product(CUstream stream, const product_t *product, const char *name, void *workspace,
                           size_t bytes);

/* Major, minor, patch: SIM_CUBLAS_VERSION, or 13.1.0, or 12.8.0. */
void sim_version(int version[3]);
const char *sim_status_name(cublasStatus_t status);
const char *sim_status_text(cublasStatus_t status);

/* The type of alpha and beta; -1: an unknown compute type. */
int sim_scale_type(cublasComputeType_t compute);

#endif
