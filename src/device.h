/* Floor 2. The CUDA driver in this process and its devices. */
#ifndef GS_DEVICE_H
#define GS_DEVICE_H

#include <cuda.h>

#include "gs_kernel.h"
#include "gs_table.h"

/* Version 2, whose arguments are the same in every toolkit's driver; cuda.h renames newer ones over it. */
CUresult gs_cuStreamGetCaptureInfo_v2(CUstream, CUstreamCaptureStatus *, cuuint64_t *id, CUgraph *,
                                      const CUgraphNode **dependencies, size_t *count);
/* Since CUDA 12.3; an edge as cuda.h's CUgraphEdgeData. */
typedef struct {
  unsigned char from_port, to_port, type, reserved[5];
} gs_edge_t;
CUresult gs_cuGraphNodeGetDependentNodes_v2(CUgraphNode, CUgraphNode *dependents, gs_edge_t *edges,
                                            size_t *count);
/* Since CUDA 12.4; CUDA_ERROR_INVALID_VALUE behind the last parameter. */
CUresult gs_cuKernelGetParamInfo(CUkernel, size_t index, size_t *offset, size_t *bytes);

/* The driver's functions; gs_driver_find fills them in from a libcuda.so.1 that is already mapped
 * (load = false: the library never brings CUDA into a process) or loads it (load = true: the tools). */
typedef struct {
#define GS_DRIVER(function, symbol)          __typeof__(&function) function;
#define GS_DRIVER_OPTIONAL(function, symbol) GS_DRIVER(function, symbol)
#include "driver.def"
#undef GS_DRIVER_OPTIONAL
#undef GS_DRIVER
} gs_driver_t;

extern gs_driver_t gs_driver;
gs_status_t gs_driver_find(bool load);
const char *gs_cuda_error(CUresult result); /* "CUDA_ERROR_..." */

/* Between the two, calls that a stream capture in progress anywhere in the process would forbid are allowed
 * in this thread, and leave the capture alone. False: the driver refused, and such calls must not be made. */
__attribute__((warn_unused_result)) bool gs_capture_relax(CUstreamCaptureMode *mode);
void gs_capture_restore(CUstreamCaptureMode mode);
/* A capture that is broken or may not hold what was asked: the program's affair, and no fault of a kernel's. */
static inline bool gs_is_of_capture(CUresult result) {
  return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

#define GS_DEVICES_MAX 64

typedef struct {
  CUdevice handle;
  char name[64];
  int sm; /* 90 for compute capability 9.0 */
  int sms;
} gs_device_t;

/* The architecture, 80 or 90, whose kernels a GPU runs; 0: none of ours. */
int gs_device_arch(int sm);
#define GS_DEVICE_ARCHS "kernels are made for GPUs 8.x and 9.0 alone" /* what to say of 0 */

/* Of device ordinal (as the driver counts them); GS_DRIVER when it cannot be asked. */
gs_status_t gs_device_describe(int ordinal, gs_device_t *device);

/* How a kernel of ours is launched, beside its grid. named: it says that it has clusters, though of one block. early: it may begin
 * before the kernel ahead of it has ended, whose end it waits for by itself (sm_90). */
typedef struct {
  bool named, early;
} gs_manner_t;
#define GS_LAUNCH_ATTRIBUTES 2

/* Whether cuLaunchKernel can say all of it. */
static inline bool gs_launch_is_plain(const gs_launch_t *launch, gs_manner_t manner) {
  return launch->cluster <= 1 && !manner.named && !manner.early;
}

static inline void gs_launch_early(CUlaunchAttribute *attribute) {
  attribute->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute->value.programmaticStreamSerializationAllowed = 1;
}

/* What cuLaunchKernelEx wants of that; the attributes must live as long as config. */
static inline void gs_launch_config(const gs_launch_t *launch, gs_manner_t manner, CUstream stream,
                                    CUlaunchConfig *config,
                                    CUlaunchAttribute attributes[GS_LAUNCH_ATTRIBUTES]) {
  unsigned count = 0;
  if (launch->cluster > 1 || manner.named)
    attributes[count++] =
        (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                            .value.clusterDim = {1, launch->cluster ? launch->cluster : 1, 1}};
  if (manner.early) gs_launch_early(&attributes[count++]);
  *config = (CUlaunchConfig){.gridDimX = launch->grid[0],
                             .gridDimY = launch->grid[1],
                             .gridDimZ = launch->grid[2],
                             .blockDimX = launch->block,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .sharedMemBytes = launch->smem,
                             .hStream = stream,
                             .attrs = attributes,
                             .numAttrs = count};
}

/* The driver's handle of a kernel (index as gs_kernel_at of extras.h), loaded on first use and made ready for
 * its shared memory on the device; NULL, once and for all, where the driver refuses. Thread-safe; lock-free
 * once loaded. The kernel runs in any context of any device that its cubin fits. */
CUkernel gs_device_kernel(int index, CUdevice device);

#endif
