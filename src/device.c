#define _GNU_SOURCE
#include "device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "compat.h"
#include "extras.h"
#include "log.h"

gs_driver_t gs_driver;

static const struct {
  const char *symbol;
  size_t offset;
  bool optional;
} driver_symbols[] = {
#define GS_DRIVER(function, symbol)          {symbol, offsetof(gs_driver_t, function), false},
#define GS_DRIVER_OPTIONAL(function, symbol) {symbol, offsetof(gs_driver_t, function), true},
#include "driver.def"
#undef GS_DRIVER_OPTIONAL
#undef GS_DRIVER
};

gs_status_t gs_driver_find(bool load) {
  void *handle = dlopen("libcuda.so.1", RTLD_NOW | (load ? 0 : RTLD_NOLOAD));
  if (!handle) return GS_NOT_FOUND;
  for (size_t i = 0; i < sizeof driver_symbols / sizeof *driver_symbols; i++) {
    void *function = dlsym(handle, driver_symbols[i].symbol);
    if (!function && !driver_symbols[i].optional)
      return GS_UNSUPPORTED; /* a driver before CUDA 12 has no cuLibraryLoadData */
    *(void **)((char *)&gs_driver + driver_symbols[i].offset) = function;
  }
  return GS_OK;
}

const char *gs_cuda_error(CUresult result) {
  const char *name = NULL;
  if (!gs_driver.cuGetErrorName || gs_driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
    return "an unknown CUDA error";
  return name;
}

bool gs_capture_relax(CUstreamCaptureMode *mode) {
  *mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  return gs_driver.cuThreadExchangeStreamCaptureMode(mode) == CUDA_SUCCESS;
}

void gs_capture_restore(CUstreamCaptureMode mode) {
  gs_driver.cuThreadExchangeStreamCaptureMode(&mode);
}

gs_status_t gs_device_describe(int ordinal, gs_device_t *device) {
  int major, minor;
  const struct {
    CUdevice_attribute attribute;
    int *value;
  } wanted[] = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
                {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &device->sms}};
  if (gs_driver.cuDeviceGet(&device->handle, ordinal) != CUDA_SUCCESS) return GS_DRIVER;
  if (gs_driver.cuDeviceGetName(device->name, sizeof device->name, device->handle) != CUDA_SUCCESS)
    return GS_DRIVER;
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    if (gs_driver.cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, device->handle) != CUDA_SUCCESS)
      return GS_DRIVER;
  device->sm = 10 * major + minor;
  return GS_OK;
}

int gs_device_arch(int sm) {
  return sm >= 80 && sm < 90 ? 80 : sm == 90 ? 90 : 0;
}

/* ---- kernels ---- */

typedef struct {
  _Atomic(CUkernel) handle;
  _Atomic uint64_t ready; /* a bit per device whose shared memory limit was raised */
  _Atomic bool refused;
} gs_loaded_t;

static gs_loaded_t *loaded;  /* one per kernel */
static CUlibrary *libraries; /* one per image: those of the shipped kernels, then one per extra */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static CUlibrary *library_of(int index) {
  int shipped = gs_shipped_count();
  return &libraries[index < shipped ? gs_shipped_image_index(index)
                                    : gs_shipped_image_count() + index - shipped];
}

/* Blocks that want more than 48 KB have to be announced: with the parts of k as a cluster, where they can be. */
static CUresult allow_smem(const gs_kernel_t *k, CUkernel kernel, CUdevice device) {
  const gs_gemm_t any = {.m = 1, .n = 1, .k = 1, .batch = 1};
  int major = 0;
  CUresult result =
      gs_driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  int smem = (int)gs_kernel_launch(k, &any, gs_kernel_split_max(k, 10 * major) > 1 ? 2 : 1, 10 * major).smem;
  if (result != CUDA_SUCCESS || smem <= 48 << 10) return result;
  return gs_driver.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, smem, kernel,
                                        device);
}

static CUresult load(int index, CUdevice device, CUkernel *kernel) {
  size_t size;
  char id[GS_KERNEL_ID_MAX];
  gs_kernel_t wanted = gs_kernel_at(index);
  CUlibrary *library = library_of(index);
  CUresult result = CUDA_SUCCESS;
  gs_kernel_format(id, sizeof id, &wanted);
  if (!*library)
    result =
        gs_driver.cuLibraryLoadData(library, gs_kernel_image(index, &size), NULL, NULL, 0, NULL, NULL, 0);
  if (result == CUDA_SUCCESS) result = gs_driver.cuLibraryGetKernel(kernel, *library, id);
  if (result == CUDA_SUCCESS) result = allow_smem(&wanted, *kernel, device);
  CUfunction function;
  if (result == CUDA_SUCCESS) result = gs_driver.cuKernelGetFunction(&function, *kernel); /* loads it now */
  if (result != CUDA_SUCCESS)
    gs_log(GS_LOG_FAULT, "kernel %s: the driver says %s; its rows are forwarded", id, gs_cuda_error(result));
  return result;
}

static CUkernel load_once(int index, CUdevice device) {
  CUkernel kernel = NULL;
  CUstreamCaptureMode mode;
  if (!gs_capture_relax(&mode)) return NULL;
  pthread_mutex_lock(&loading);
  if (!libraries) libraries = calloc((size_t)gs_shipped_image_count() + GS_EXTRAS_MAX, sizeof *libraries);
  if (!loaded)
    __atomic_store_n(&loaded, calloc((size_t)gs_shipped_count() + GS_EXTRAS_MAX, sizeof *loaded),
                     __ATOMIC_RELEASE);
  if (loaded && libraries && !loaded[index].refused) {
    gs_loaded_t *entry = &loaded[index];
    if (load(index, device, &kernel) == CUDA_SUCCESS) {
      atomic_store(&entry->handle, kernel);
      atomic_fetch_or(&entry->ready, 1ull << (device & 63));
    } else {
      kernel = NULL;
      entry->refused = true;
    }
  }
  pthread_mutex_unlock(&loading);
  gs_capture_restore(mode);
  return kernel;
}

CUkernel gs_device_kernel(int index, CUdevice device) {
  gs_loaded_t *all = __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
  if (all) {
    if (atomic_load_explicit(&all[index].refused, memory_order_relaxed)) return NULL;
    if (atomic_load_explicit(&all[index].ready, memory_order_acquire) & 1ull << (device & 63))
      return atomic_load_explicit(&all[index].handle, memory_order_relaxed);
  }
  return load_once(index, device);
}
