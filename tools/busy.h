/* Whether someone else is using a GPU, asked of the driver's management library (libnvidia-ml.so.1). Where that
 * library is missing or does not say, as in a MIG instance, nobody is. */
#ifndef GS_BUSY_H
#define GS_BUSY_H

#include "gpu.h"

#define GS_BUSY_PERCENT 5 /* of the time a kernel ran, from which on measurements would suffer */

/* Ask before the GPU gets work from here. True: who says how busy it is, and with which processes; then
 * it took two seconds. */
bool gs_gpu_busy(const gs_gpu_t *gpu, char *who, size_t size);

/* The same, said in a line with what to do about it. */
bool gs_gpu_refused_as_busy(const gs_gpu_t *gpu);

#endif
