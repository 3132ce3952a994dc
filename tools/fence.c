#include "fence.h"

#define ALIGNMENT 16 /* of the widest load */

/* The pieces that the device maps memory in; 0: it maps none. */
static size_t unit_of(gs_gpu_t *gpu, const CUmemAllocationProp *properties) {
  size_t unit = 0;
  GS_GPU_TRY(gpu, cuMemGetAllocationGranularity, &unit, properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  return gs_gpu_ok(gpu) ? unit : 0;
}

static void fence_free(gs_gpu_t *gpu, gs_fence_t *fence) {
  if (fence->at) GS_GPU_TRY(gpu, cuMemUnmap, fence->at, fence->bytes);
  if (fence->reserved) GS_GPU_TRY(gpu, cuMemAddressFree, fence->reserved, fence->reserved_bytes);
  *fence = (gs_fence_t){0};
}

/* Memory for so many bytes, a unit of nothing on either side. It goes when it is unmapped. */
static void fence_make(gs_gpu_t *gpu, gs_fence_t *fence, size_t bytes) {
  const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu->device.handle};
  const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
  const CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle memory;
  size_t unit = unit_of(gpu, &properties);
  if (!unit) return;
  size_t whole = (bytes + unit - 1) / unit * unit;
  if (!GS_GPU_TRY(gpu, cuMemAddressReserve, &fence->reserved, whole + 2 * unit, 0, 0, 0)) return;
  fence->reserved_bytes = whole + 2 * unit;
  if (!GS_GPU_TRY(gpu, cuMemCreate, &memory, whole, &properties, 0)) return;
  if (GS_GPU_TRY(gpu, cuMemMap, fence->reserved + unit, whole, 0, memory, 0))
    fence->at = fence->reserved + unit, fence->bytes = whole;
  GS_GPU_TRY(gpu, cuMemRelease, memory);
  if (fence->at) GS_GPU_TRY(gpu, cuMemSetAccess, fence->at, fence->bytes, &access, 1);
}

CUdeviceptr gs_fence_place(gs_gpu_t *gpu, gs_fence_t *fence, gs_fence_end_t end, CUdeviceptr from,
                           size_t bytes, int byte) {
  size_t rest = from % ALIGNMENT, room = bytes + 2 * ALIGNMENT;
  if (fence->bytes < room) {
    fence_free(gpu, fence);
    fence_make(gpu, fence, room);
  }
  if (!gs_gpu_ok(gpu)) return 0;
  size_t last = (fence->bytes - bytes - rest) / ALIGNMENT * ALIGNMENT;
  CUdeviceptr to = fence->at + (end == GS_FENCE_LAST ? last : 0) + rest;
  gs_gpu_fill(gpu, fence->at, byte, fence->bytes);
  GS_GPU_TRY(gpu, cuMemcpyDtoD, to, from, bytes);
  return gs_gpu_ok(gpu) ? to : 0;
}
