#define _GNU_SOURCE
#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

gs_driver_tools_t gs_driver_tools;

static const struct {
  const char *symbol;
  size_t offset;
} tool_symbols[] = {
#define GS_DRIVER(function, symbol)          {symbol, offsetof(gs_driver_tools_t, function)},
#define GS_DRIVER_OPTIONAL(function, symbol) /* of no use to them */
#include "driver.def"
#include "driver_tools.def"
#undef GS_DRIVER_OPTIONAL
#undef GS_DRIVER
};

static const struct {
  CUdevice_attribute attribute;
  size_t offset;
  int otherwise; /* where the driver does not say: an sm_80's */
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, offsetof(gs_gpu_t, l2_bytes), 40 << 20},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, offsetof(gs_gpu_t, clock_khz), 1410000},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, offsetof(gs_gpu_t, memory_khz), 1215000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, offsetof(gs_gpu_t, memory_bits), 5120},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, offsetof(gs_gpu_t, sm_registers), 64 << 10},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, offsetof(gs_gpu_t, sm_smem), 164 << 10},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, offsetof(gs_gpu_t, sm_threads), 2048},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, offsetof(gs_gpu_t, sm_blocks), 32},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, offsetof(gs_gpu_t, block_smem), 1 << 10},
};

bool gs_gpu_note(gs_gpu_t *gpu, CUresult result, const char *what) {
  if (result == CUDA_SUCCESS || !gs_gpu_ok(gpu)) return gs_gpu_ok(gpu);
  gpu->error = result;
  snprintf(gpu->fault, sizeof gpu->fault, "%s: the driver says %s", what, gs_cuda_error(result));
  return false;
}

bool gs_gpu_forgive(gs_gpu_t *gpu) {
  if (gs_driver_tools.cuCtxSynchronize() != CUDA_SUCCESS) return false;
  gpu->error = CUDA_SUCCESS;
  gpu->fault[0] = 0;
  return true;
}

static gs_status_t find_driver(gs_gpu_t *gpu) {
  gs_status_t status = gs_driver_find(true);
  if (status == GS_NOT_FOUND)
    snprintf(
        gpu->fault, sizeof gpu->fault,
        "libcuda.so.1 is not on the library path: install the NVIDIA driver, or set LD_LIBRARY_PATH to it");
  if (status == GS_UNSUPPORTED)
    snprintf(gpu->fault, sizeof gpu->fault, "the CUDA driver is older than 12.0: a newer one is needed");
  if (status != GS_OK) return status;
  void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  for (size_t i = 0; i < sizeof tool_symbols / sizeof *tool_symbols; i++) {
    void *function = dlsym(handle, tool_symbols[i].symbol);
    if (!function) {
      snprintf(gpu->fault, sizeof gpu->fault, "the CUDA driver lacks %s: a newer one is needed",
               tool_symbols[i].symbol);
      return GS_UNSUPPORTED;
    }
    *(void **)((char *)&gs_driver_tools + tool_symbols[i].offset) = function;
  }
  return GS_OK;
}

static void read_attributes(gs_gpu_t *gpu) {
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
    int *value = (int *)((char *)gpu + attributes[i].offset);
    if (gs_driver_tools.cuDeviceGetAttribute(value, attributes[i].attribute, gpu->device.handle) !=
        CUDA_SUCCESS)
      *value = attributes[i].otherwise;
  }
}

gs_status_t gs_gpu_open(gs_gpu_t *gpu, int ordinal) {
  *gpu = (gs_gpu_t){0};
  gs_status_t status = find_driver(gpu);
  if (status != GS_OK) return status;
  int count = 0;
  if (gs_driver_tools.cuInit(0) != CUDA_SUCCESS || gs_driver_tools.cuDeviceGetCount(&count) != CUDA_SUCCESS ||
      count < 1) {
    snprintf(gpu->fault, sizeof gpu->fault, "the CUDA driver sees no GPU: try nvidia-smi");
    return GS_NOT_FOUND;
  }
  if (ordinal >= count) {
    snprintf(gpu->fault, sizeof gpu->fault, "device %d does not exist: there are %d, counted from 0", ordinal,
             count);
    return GS_NOT_FOUND;
  }
  if (gs_device_describe(ordinal, &gpu->device) != GS_OK) {
    snprintf(gpu->fault, sizeof gpu->fault, "device %d does not say what it is", ordinal);
    return GS_DRIVER;
  }
  if (!gs_device_arch(gpu->device.sm)) {
    snprintf(gpu->fault, sizeof gpu->fault, "%s is of compute capability %d.%d, but " GS_DEVICE_ARCHS,
             gpu->device.name, gpu->device.sm / 10, gpu->device.sm % 10);
    return GS_UNSUPPORTED;
  }
  read_attributes(gpu);
  GS_GPU_TRY(gpu, cuDevicePrimaryCtxRetain, &gpu->context, gpu->device.handle);
  GS_GPU_TRY(gpu, cuCtxSetCurrent, gpu->context);
  GS_GPU_TRY(gpu, cuStreamCreate, &gpu->stream, CU_STREAM_DEFAULT);
  GS_GPU_TRY(gpu, cuEventCreate, &gpu->begin, CU_EVENT_DEFAULT);
  GS_GPU_TRY(gpu, cuEventCreate, &gpu->end, CU_EVENT_DEFAULT);
  return gs_gpu_ok(gpu) ? GS_OK : GS_DRIVER;
}

void gs_gpu_close(gs_gpu_t *gpu) {
  if (!gpu->context) return;
  if (gpu->begin) gs_driver_tools.cuEventDestroy(gpu->begin);
  if (gpu->end) gs_driver_tools.cuEventDestroy(gpu->end);
  if (gpu->stream) gs_driver_tools.cuStreamDestroy(gpu->stream);
  gs_driver_tools.cuDevicePrimaryCtxRelease(gpu->device.handle);
  gpu->context = NULL;
}

CUdeviceptr gs_gpu_alloc(gs_gpu_t *gpu, size_t bytes) {
  CUdeviceptr address = 0;
  return GS_GPU_TRY(gpu, cuMemAlloc, &address, bytes) ? address : 0;
}

void gs_gpu_free(gs_gpu_t *gpu, CUdeviceptr address) {
  if (address) GS_GPU_TRY(gpu, cuMemFree, address);
}

void gs_gpu_write(gs_gpu_t *gpu, CUdeviceptr to, const void *from, size_t bytes) {
  if (bytes) GS_GPU_TRY(gpu, cuMemcpyHtoD, to, from, bytes);
}

void gs_gpu_read(gs_gpu_t *gpu, void *to, CUdeviceptr from, size_t bytes) {
  if (bytes) GS_GPU_TRY(gpu, cuMemcpyDtoH, to, from, bytes);
}

void gs_gpu_fill(gs_gpu_t *gpu, CUdeviceptr to, int byte, size_t bytes) {
  if (bytes) GS_GPU_TRY(gpu, cuMemsetD8, to, (unsigned char)byte, bytes);
}

void gs_gpu_sync(gs_gpu_t *gpu) {
  GS_GPU_TRY(gpu, cuStreamSynchronize, gpu->stream);
}

void gs_gpu_launch(gs_gpu_t *gpu, CUkernel kernel, const gs_launch_t *launch, void **arguments) {
  const gs_manner_t usual = {0};
  CUlaunchConfig config;
  CUlaunchAttribute attributes[GS_LAUNCH_ATTRIBUTES];
  gs_launch_config(launch, usual, gpu->stream, &config, attributes);
  if (gs_launch_is_plain(launch, usual))
    GS_GPU_TRY(gpu, cuLaunchKernel, (CUfunction)kernel, launch->grid[0], launch->grid[1], launch->grid[2],
               launch->block, 1, 1, launch->smem, gpu->stream, arguments, NULL);
  else
    GS_GPU_TRY(gpu, cuLaunchKernelEx, &config, (CUfunction)kernel, arguments, NULL);
}

static int attribute_of(const gs_gpu_t *gpu, CUkernel kernel, CUfunction_attribute attribute) {
  int value = 0;
  gs_driver_tools.cuKernelGetAttribute(&value, attribute, kernel, gpu->device.handle); /* else 0 */
  return value;
}

static int least(int a, int b) {
  return a < b ? a : b;
}

int gs_gpu_fitting(const gs_gpu_t *gpu, int registers, int smem_static, const gs_launch_t *launch) {
  /* Registers are handed out to a warp in lots of 8 a thread. */
  int of_block = (registers + 7) / 8 * 8 * (int)launch->block;
  int smem = smem_static + (int)launch->smem + gpu->block_smem;
  int fitting = least(gpu->sm_blocks, gpu->sm_threads / (int)launch->block);
  if (of_block) fitting = least(fitting, gpu->sm_registers / of_block);
  if (smem) fitting = least(fitting, gpu->sm_smem / smem);
  return fitting;
}

gs_gpu_needs_t gs_gpu_needs(const gs_gpu_t *gpu, CUkernel kernel, const gs_launch_t *launch) {
  gs_gpu_needs_t needs = {.registers = attribute_of(gpu, kernel, CU_FUNC_ATTRIBUTE_NUM_REGS),
                          .smem_static = attribute_of(gpu, kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
                          .local = attribute_of(gpu, kernel, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)};
  needs.blocks_per_sm = gs_gpu_fitting(gpu, needs.registers, needs.smem_static, launch);
  return needs;
}

int gs_gpu_clusters(const gs_gpu_t *gpu, CUkernel kernel, const gs_launch_t *launch) {
  CUlaunchConfig config;
  CUlaunchAttribute attributes[GS_LAUNCH_ATTRIBUTES];
  int count = 0;
  gs_launch_config(launch, (gs_manner_t){.named = true}, gpu->stream, &config, attributes);
  return gs_driver_tools.cuOccupancyMaxActiveClusters(&count, (CUfunction)kernel, &config) == CUDA_SUCCESS
             ? count
             : 0;
}

gs_params_t gs_gpu_params(const gs_gemm_t *g, const gs_operands_t *o, int split_k, int raster,
                          CUdeviceptr workspace, bool device_scalars) {
  gs_params_t p = {.a = o->a, .b = o->b, .c = o->c, .d = o->d, .bias = o->bias};
  p.workspace = workspace ? gs_gpu_pointer(workspace) : NULL;
  if (device_scalars)
    p.alpha_ptr = o->alpha, p.beta_ptr = o->beta;
  else
    p.alpha = *(const float *)o->alpha, p.beta = *(const float *)o->beta;
  gs_kernel_params(g, split_k, raster, &p);
  return p;
}

CUgraphExec gs_gpu_capture(gs_gpu_t *gpu, gs_enqueue_t enqueue, void *context) {
  CUgraph graph = NULL;
  CUgraphExec executable = NULL;
  if (!gs_gpu_ok(gpu) ||
      !gs_gpu_note(gpu, gs_driver.cuStreamBeginCapture(gpu->stream, CU_STREAM_CAPTURE_MODE_RELAXED),
                   "cuStreamBeginCapture"))
    return NULL;
  bool enqueued = enqueue(context);
  CUresult ended = gs_driver.cuStreamEndCapture(gpu->stream, &graph);
  if (enqueued && gs_gpu_note(gpu, ended, "cuStreamEndCapture"))
    GS_GPU_TRY(gpu, cuGraphInstantiateWithFlags, &executable, graph, 0);
  if (executable)
    GS_GPU_TRY(gpu, cuGraphUpload, executable, gpu->stream); /* else the first replay pays for it */
  if (graph) gs_driver.cuGraphDestroy(graph);
  return executable;
}

double gs_gpu_replay(gs_gpu_t *gpu, CUgraphExec graph) {
  float ms = 0;
  GS_GPU_TRY(gpu, cuEventRecord, gpu->begin, gpu->stream);
  GS_GPU_TRY(gpu, cuGraphLaunch, graph, gpu->stream);
  GS_GPU_TRY(gpu, cuEventRecord, gpu->end, gpu->stream);
  gs_gpu_sync(gpu);
  GS_GPU_TRY(gpu, cuEventElapsedTime, &ms, gpu->begin, gpu->end);
  return 1e3 * ms;
}
