/* One GPU for the tools, over the driver API. The first error stays in gs_gpu_t: every later call returns
 * at once, so that a sequence of calls is checked once, at its end. */
#ifndef GS_GPU_H
#define GS_GPU_H

#include "device.h"

/* What the tools ask of the driver, and what the library does. */
typedef struct {
#define GS_DRIVER(function, symbol)          __typeof__(&function) function;
#define GS_DRIVER_OPTIONAL(function, symbol) /* of no use to them */
#include "driver.def"
#include "driver_tools.def"
#undef GS_DRIVER_OPTIONAL
#undef GS_DRIVER
} gs_driver_tools_t;

extern gs_driver_tools_t gs_driver_tools;

typedef struct {
  gs_device_t device;
  CUcontext context; /* the device's primary one, which cuBLAS uses too */
  CUstream stream;
  CUevent begin, end;
  int l2_bytes, clock_khz, memory_khz, memory_bits;             /* memory moves 2 bits a line and clock */
  int sm_registers, sm_smem, sm_threads, sm_blocks, block_smem; /* block_smem: reserved by the system */
  CUresult error;
  char fault[256]; /* what failed; empty while nothing did */
} gs_gpu_t;

/* GS_NOT_FOUND, GS_UNSUPPORTED, GS_DRIVER: gpu->fault says what is missing and what to do. */
gs_status_t gs_gpu_open(gs_gpu_t *gpu, int ordinal);
void gs_gpu_close(gs_gpu_t *gpu);

static inline bool gs_gpu_ok(const gs_gpu_t *gpu) {
  return gpu->error == CUDA_SUCCESS;
}
/* Notes a driver call's result; what names the call. Returns gs_gpu_ok. */
bool gs_gpu_note(gs_gpu_t *gpu, CUresult result, const char *what);
/* Calls the driver unless an earlier call failed, and notes the result under the function's name. */
#define GS_GPU_TRY(gpu, name, ...)                                                                           \
  gs_gpu_note(gpu, gs_gpu_ok(gpu) ? gs_driver_tools.name(__VA_ARGS__) : (gpu)->error, #name)
/* Forgets an error that left the context whole (a refused launch or allocation); false where it did not. */
bool gs_gpu_forgive(gs_gpu_t *gpu);

/* Memory; 0 on failure. gs_gpu_free accepts 0. */
CUdeviceptr gs_gpu_alloc(gs_gpu_t *gpu, size_t bytes);
void gs_gpu_free(gs_gpu_t *gpu, CUdeviceptr address);
void gs_gpu_write(gs_gpu_t *gpu, CUdeviceptr to, const void *from, size_t bytes);
void gs_gpu_read(gs_gpu_t *gpu, void *to, CUdeviceptr from, size_t bytes);
void gs_gpu_fill(gs_gpu_t *gpu, CUdeviceptr to, int byte, size_t bytes);
void gs_gpu_sync(gs_gpu_t *gpu);

/* Launches on gpu->stream. */
void gs_gpu_launch(gs_gpu_t *gpu, CUkernel kernel, const gs_launch_t *launch, void **arguments);

/* What a kernel needs, as it was compiled; 0 where the driver does not say. */
typedef struct {
  int registers, smem_static, local; /* local: bytes of stack and spills a thread */
  int blocks_per_sm;                 /* that fit at once, for this launch */
} gs_gpu_needs_t;
/* The blocks of that launch that fit one multiprocessor. */
int gs_gpu_fitting(const gs_gpu_t *gpu, int registers, int smem_static, const gs_launch_t *launch);
gs_gpu_needs_t gs_gpu_needs(const gs_gpu_t *gpu, CUkernel kernel, const gs_launch_t *launch);
/* Clusters of this launch that the whole GPU holds at once; 0: the driver does not say. Multiprocessors come in clusters'
 * reach of 16 or 18, and not every H200 has them in the same lots. */
int gs_gpu_clusters(const gs_gpu_t *gpu, CUkernel kernel, const gs_launch_t *launch);

/* A kernel's argument for g on these operands. Scalars are read from host memory (float), or taken from
 * device memory where device_scalars is set. */
gs_params_t gs_gpu_params(const gs_gemm_t *g, const gs_operands_t *o, int split_k, int raster,
                          CUdeviceptr workspace, bool device_scalars);

/* Records what enqueue puts on gpu->stream as a graph; NULL where it, or the driver, refuses. */
typedef bool (*gs_enqueue_t)(void *context);
CUgraphExec gs_gpu_capture(gs_gpu_t *gpu, gs_enqueue_t enqueue, void *context);
/* Replays it once, alone; microseconds between two events. */
double gs_gpu_replay(gs_gpu_t *gpu, CUgraphExec graph);

static inline void *gs_gpu_pointer(CUdeviceptr address) {
  return (void *)(uintptr_t)address;
}

#endif
