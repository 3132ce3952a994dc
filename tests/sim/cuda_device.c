/* Stand-in libcuda: start-up, devices, contexts, memory. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define MEMORY_BYTES (64ull << 30) /* of a device, as told to cuMemGetInfo */

pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
_Thread_local CUcontext driver_current;

static atomic_bool started;
static atomic_ullong last_id, used_bytes;
static struct CUctx_st primary[SIM_DEVICES_MAX];

unsigned long long driver_next_id(void) {
  return atomic_fetch_add(&last_id, 1) + 1;
}

CUresult driver_ready(void) {
  return atomic_load(&started) ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult driver_ready_with_context(void) {
  DRIVER_TRY(driver_ready());
  return driver_current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static int device_count(void) {
  const char *text = getenv("SIM_DEVICES");
  int count = text ? atoi(text) : 1;
  return count < 0 ? 0 : count > SIM_DEVICES_MAX ? SIM_DEVICES_MAX : count;
}

static CUresult check_device(CUdevice device) {
  DRIVER_TRY(driver_ready());
  return device >= 0 && device < device_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

SIM_EXPORT CUresult cuInit(unsigned flags) {
  SIM_ENTER(flags);
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (!device_count()) return CUDA_ERROR_NO_DEVICE;
  atomic_store(&started, true);
  return CUDA_SUCCESS;
}

static const struct {
  CUresult code;
  const char *name, *text;
} errors[] = {
#define ERROR(code, text)                                                                                    \
  { code, #code, text }
    ERROR(CUDA_SUCCESS, "no error"),
    ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(CUDA_ERROR_NO_DEVICE, "no device is there"),
    ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image for this device"),
    ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capture"),
    ERROR(CUDA_ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded in a capture"),
#undef ERROR
};

static CUresult error_field(CUresult error, const char **out, bool name) {
  *out = NULL;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == error) {
      *out = name ? errors[i].name : errors[i].text;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

SIM_EXPORT CUresult cuGetErrorName(CUresult error, const char **out) {
  return error_field(error, out, true);
}
SIM_EXPORT CUresult cuGetErrorString(CUresult error, const char **out) {
  return error_field(error, out, false);
}

SIM_EXPORT CUresult cuDriverGetVersion(int *version) {
  SIM_ENTER(version);
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

/* NVRTC calls this where it finds a driver, and would crash without. */
SIM_EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *id) {
  SIM_ENTER(table, id);
  *table = NULL;
  return CUDA_ERROR_NOT_SUPPORTED;
}

SIM_EXPORT CUresult cuDeviceGetCount(int *count) {
  SIM_ENTER(count);
  DRIVER_TRY(driver_ready());
  *count = device_count();
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  SIM_ENTER(device, ordinal);
  DRIVER_TRY(check_device(ordinal));
  *device = ordinal;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  SIM_ENTER(name, size, device);
  DRIVER_TRY(check_device(device));
  const char *text = getenv("SIM_GPU");
  snprintf(name, (size_t)size, "%s", text ? text : "gemmshim CPU stand-in");
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceGetPCIBusId(char *bus, int size, CUdevice device) {
  SIM_ENTER(bus, size, device);
  DRIVER_TRY(check_device(device));
  snprintf(bus, (size_t)size, "00000000:%02X:00.0", (unsigned)device);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  static const struct {
    CUdevice_attribute attribute;
    int value;
  } known[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 << 10},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
  };
  SIM_ENTER(value, attribute, device);
  DRIVER_TRY(check_device(device));
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].attribute == attribute) {
      *value = known[i].value;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

static void context_open(CUcontext context, CUdevice device) {
  context->id = driver_next_id();
  context->device = device;
  CUstream special[] = {&context->legacy, &context->per_thread};
  for (int i = 0; i < 2; i++) {
    special[i]->context = context;
    special[i]->id = driver_next_id();
    pthread_mutex_init(&special[i]->order, NULL);
  }
}

SIM_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  SIM_ENTER(context, device);
  DRIVER_TRY(check_device(device));
  pthread_mutex_lock(&driver_lock);
  CUcontext found = &primary[device];
  if (!found->id) context_open(found, device);
  found->retained++;
  pthread_mutex_unlock(&driver_lock);
  *context = found;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  SIM_ENTER(device);
  DRIVER_TRY(check_device(device));
  pthread_mutex_lock(&driver_lock);
  CUresult result = primary[device].retained ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  if (result == CUDA_SUCCESS) primary[device].retained--;
  pthread_mutex_unlock(&driver_lock);
  return result;
}

SIM_EXPORT CUresult cuCtxCreate(CUcontext *context, CUctxCreateParams *params, unsigned flags,
                                CUdevice device) {
  SIM_ENTER(context, params, flags, device);
  DRIVER_TRY(check_device(device));
  CUcontext made = calloc(1, sizeof *made);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  context_open(made, device);
  driver_current = *context = made;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxDestroy(CUcontext context) {
  SIM_ENTER(context);
  DRIVER_TRY(driver_ready());
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (driver_current == context) driver_current = NULL;
  free(context);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
  SIM_ENTER(context);
  DRIVER_TRY(driver_ready());
  *context = driver_current;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  SIM_ENTER(context);
  DRIVER_TRY(driver_ready());
  driver_current = context;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
  SIM_ENTER(device);
  DRIVER_TRY(driver_ready_with_context());
  *device = driver_current->device;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
  SIM_ENTER(context, id);
  DRIVER_TRY(driver_ready_with_context());
  *id = (context ? context : driver_current)->id;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxSynchronize(void) {
  SIM_ENTER(0);
  DRIVER_TRY(driver_ready_with_context());
  return driver_unsafe();
}

/* New memory is all ones, NaN in every floating type, so that reading what was never written shows. */
SIM_EXPORT CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes) {
  SIM_ENTER(pointer, bytes);
  DRIVER_TRY(driver_ready_with_context());
  DRIVER_TRY(driver_unsafe());
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  void *memory;
  if (posix_memalign(&memory, 256, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  memset(memory, 0xff, bytes);
  atomic_fetch_add(&used_bytes, malloc_usable_size(memory));
  *pointer = (CUdeviceptr)memory;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemFree(CUdeviceptr pointer) {
  SIM_ENTER(pointer);
  DRIVER_TRY(driver_ready_with_context());
  DRIVER_TRY(driver_unsafe());
  atomic_fetch_sub(&used_bytes, malloc_usable_size((void *)pointer));
  free((void *)pointer);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemGetInfo(size_t *free_bytes, size_t *total) {
  SIM_ENTER(free_bytes, total);
  DRIVER_TRY(driver_ready_with_context());
  *total = MEMORY_BYTES;
  *free_bytes = MEMORY_BYTES - atomic_load(&used_bytes);
  return CUDA_SUCCESS;
}

static CUresult copy(void *to, const void *from, size_t bytes) {
  DRIVER_TRY(driver_ready_with_context());
  DRIVER_TRY(driver_unsafe());
  memcpy(to, from, bytes);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
  SIM_ENTER(to, from, bytes);
  return copy((void *)to, from, bytes);
}

SIM_EXPORT CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
  SIM_ENTER(to, from, bytes);
  return copy(to, (const void *)from, bytes);
}

SIM_EXPORT CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  SIM_ENTER(to, from, bytes);
  return copy((void *)to, (const void *)from, bytes);
}

SIM_EXPORT CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  SIM_ENTER(to, value, count);
  DRIVER_TRY(driver_ready_with_context());
  DRIVER_TRY(driver_unsafe());
  memset((void *)to, value, count);
  return CUDA_SUCCESS;
}

typedef struct {
  void *to;
  int value;
  size_t count;
} fill_t;

static void fill(const void *argument) {
  const fill_t *f = argument;
  memset(f->to, f->value, f->count);
}

SIM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  SIM_ENTER(to, value, count, stream);
  fill_t f = {.to = (void *)to, .value = value, .count = count};
  return sim_enqueue(stream, fill, &f, sizeof f);
}
