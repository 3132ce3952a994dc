/* Stand-in libcuda: start-up, devices, contexts, memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
_Thread_local CUcontext driver_current;

static atomic_bool started;
static atomic_ullong last_id;
static struct CUctx_st primary[SIM_DEVICES_MAX];

#define CONTEXTS_MAX 64
static unsigned long long live_contexts[CONTEXTS_MAX]; /* their ids; 0: none */

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

int driver_sm(void) {
  const char *text = getenv("SIM_SM");
  return text ? atoi(text) : 90;
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
  const struct {
    CUdevice_attribute attribute;
    int value;
  } known[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, driver_sm() / 10},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, driver_sm() % 10},
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
  const char *l2 = getenv("SIM_L2");
  if (attribute == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE && l2) {
    *value = atoi(l2);
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].attribute == attribute) {
      *value = known[i].value;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

/* Under driver_lock. */
static void context_open(CUcontext context, CUdevice device) {
  int free = 0;
  while (live_contexts[free] && free < CONTEXTS_MAX - 1) free++;
  live_contexts[free] = context->id = driver_next_id();
  context->device = device;
  CUstream special[] = {&context->legacy, &context->per_thread};
  for (int i = 0; i < 2; i++) {
    special[i]->context = context;
    special[i]->id = driver_next_id();
    pthread_mutex_init(&special[i]->order, NULL);
  }
}

/* What was made in a context goes with it. */
static void context_close(CUcontext context) {
  pthread_mutex_lock(&driver_lock);
  for (int i = 0; i < CONTEXTS_MAX; i++)
    if (live_contexts[i] == context->id) live_contexts[i] = 0;
  pthread_mutex_unlock(&driver_lock);
  driver_memory_drop(context->id);
}

bool driver_context_lives(unsigned long long id) {
  bool lives = false;
  pthread_mutex_lock(&driver_lock);
  for (int i = 0; i < CONTEXTS_MAX; i++) lives |= live_contexts[i] == id;
  pthread_mutex_unlock(&driver_lock);
  return lives;
}

/* As cudaDeviceReset does: the handle stays, what it stands for is a new context. */
SIM_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  SIM_ENTER(device);
  DRIVER_TRY(check_device(device));
  CUcontext context = &primary[device];
  if (!context->id) return CUDA_SUCCESS;
  context_close(context);
  pthread_mutex_lock(&driver_lock);
  context_open(context, device);
  pthread_mutex_unlock(&driver_lock);
  return CUDA_SUCCESS;
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
  pthread_mutex_lock(&driver_lock);
  context_open(made, device);
  pthread_mutex_unlock(&driver_lock);
  driver_current = *context = made;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxDestroy(CUcontext context) {
  SIM_ENTER(context);
  DRIVER_TRY(driver_ready());
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (driver_current == context) driver_current = NULL;
  context_close(context);
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
