/* Driver and glibc; see machine.h. */
#define _GNU_SOURCE
#include "machine.h"

#include <cuda.h>
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdio.h>

#include "device.h"

static void *driver_function(const char *name) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* kept: the process is short-lived */
  return library ? dlsym(library, name) : NULL;
}

int gs_machine_driver(void) {
  int version = 0;
  __typeof__(&cuDriverGetVersion) get_version = driver_function("cuDriverGetVersion");
  return get_version && get_version(&version) == CUDA_SUCCESS ? version : 0;
}

int gs_machine_toolkit(void) {
  return CUDA_VERSION;
}

bool gs_machine_driver_fits(int driver) {
  return driver / 1000 >= CUDA_VERSION / 1000;
}

const char *gs_machine_init(void) {
  __typeof__(&cuInit) init = driver_function("cuInit");
  if (!init || gs_driver_find(true) != GS_OK) return "libcuda.so.1 is missing, or older than CUDA 12.0";
  CUresult result = init(0);
  return result == CUDA_SUCCESS ? NULL : gs_cuda_error(result);
}

bool gs_machine_glibc_fits(void) {
  int major = 0, minor = 0;
  if (sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) != 2) return false;
  return major > GS_GLIBC_MAJOR || (major == GS_GLIBC_MAJOR && minor >= GS_GLIBC_MINOR);
}
