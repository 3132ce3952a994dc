/* Guard pages: device memory that lies between addresses which are mapped to nothing, so that what reads or writes beside
 * it ends in CUDA_ERROR_ILLEGAL_ADDRESS (CUDA driver API, Virtual Memory Management). */
#ifndef GS_FENCE_H
#define GS_FENCE_H

#include "gpu.h"

typedef struct {
  CUdeviceptr reserved, at; /* addresses; what is mapped of them */
  size_t reserved_bytes, bytes;
} gs_fence_t;

typedef enum { GS_FENCE_FIRST, GS_FENCE_LAST } gs_fence_end_t;

/* Copies what lies at from, in device memory, to the first or the last addresses that leave the same rest to 16 as
 * from does; all others of the fence get the byte. Grows it as needed. The copy's address, or 0: gpu->fault says why. */
CUdeviceptr gs_fence_place(gs_gpu_t *gpu, gs_fence_t *fence, gs_fence_end_t end, CUdeviceptr from,
                           size_t bytes, int byte);

#endif
