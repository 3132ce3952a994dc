/* Many kernels at once: the generator in as many processes as there are cores, so that a compiler that crashes
 * or does not end costs its own kernel only. */
#ifndef GS_COMPILE_H
#define GS_COMPILE_H

#include <signal.h>

#include "generate.h"
#include "progress.h"

#define GS_COMPILE_SECONDS 120 /* a kernel that takes longer is refused */

typedef struct {
  gs_kernel_t kernel;
  gs_status_t status; /* what gs_generate answered */
  gs_cubin_t cubin;
} gs_job_t;

/* Compiles every job's kernel for sm; each cubin is then the caller's. Where *stopped is set in between, the
 * rest is refused. Returns how many are GS_OK. */
int gs_compile(gs_job_t *jobs, int count, int sm, gs_progress_t *progress,
               const volatile sig_atomic_t *stopped);

#endif
