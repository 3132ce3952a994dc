#define _GNU_SOURCE
#include "busy.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools.h"

#define LOOKS          9 /* all must find it busy: for a second they still see what has just ended */
#define LOOK_NS        250000000
#define PROCESSES_MAX  64
#define PROCESSES_SAID 4

/* nvml.h is not part of a toolkit that one needs; these are its declarations. */
typedef void *nvml_device_t;
typedef struct {
  unsigned gpu, memory; /* percent of the last sampling period */
} nvml_utilization_t;
typedef struct {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
} nvml_process_t;

typedef struct {
  int (*nvmlInit_v2)(void);
  int (*nvmlShutdown)(void);
  int (*nvmlDeviceGetHandleByPciBusId_v2)(const char *, nvml_device_t *);
  int (*nvmlDeviceGetUtilizationRates)(nvml_device_t, nvml_utilization_t *);
  int (*nvmlDeviceGetComputeRunningProcesses_v3)(nvml_device_t, unsigned *, nvml_process_t *);
} nvml_t;

static const struct {
  const char *name;
  size_t offset;
} functions[] = {
#define X(name)                                                                                              \
  { #name, offsetof(nvml_t, name) }
    X(nvmlInit_v2),
    X(nvmlShutdown),
    X(nvmlDeviceGetHandleByPciBusId_v2),
    X(nvmlDeviceGetUtilizationRates),
    X(nvmlDeviceGetComputeRunningProcesses_v3),
#undef X
};

static bool bind(nvml_t *nvml, void *library) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *function = dlsym(library, functions[i].name);
    if (!function) return false;
    *(void **)((char *)nvml + functions[i].offset) = function;
  }
  return true;
}

static unsigned percent(const nvml_t *nvml, nvml_device_t device) {
  unsigned least = 100;
  for (int look = 0; look < LOOKS && least >= GS_BUSY_PERCENT; look++) {
    nvml_utilization_t used;
    if (look) nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    if (nvml->nvmlDeviceGetUtilizationRates(device, &used)) return 0;
    if (used.gpu < least) least = used.gpu;
  }
  return least;
}

/* Appends "; process 123 (python3)" for each but this one; those of other containers show no name. */
static void name_processes(const nvml_t *nvml, nvml_device_t device, char *text, size_t size) {
  nvml_process_t processes[PROCESSES_MAX];
  unsigned count = PROCESSES_MAX;
  if (nvml->nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes)) return;
  for (unsigned i = 0, said = 0; i < count && said < PROCESSES_SAID; i++) {
    char path[32], name[32] = "of another container?";
    if (processes[i].pid == (unsigned)getpid()) continue;
    snprintf(path, sizeof path, "/proc/%u/comm", processes[i].pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(name, sizeof name, file)) name[strcspn(name, "\n")] = 0;
    if (file) fclose(file);
    size_t length = strlen(text);
    snprintf(text + length, size - length, "%s process %u (%s)", said++ ? "," : ";", processes[i].pid, name);
  }
}

static bool ask(const nvml_t *nvml, const gs_gpu_t *gpu, char *who, size_t size) {
  char bus[32];
  nvml_device_t device;
  if (gs_driver_tools.cuDeviceGetPCIBusId(bus, sizeof bus, gpu->device.handle) != CUDA_SUCCESS ||
      nvml->nvmlDeviceGetHandleByPciBusId_v2(bus, &device))
    return false;
  unsigned used = percent(nvml, device);
  if (used < GS_BUSY_PERCENT) return false;
  snprintf(who, size, "%s is %u%% busy with other work", gpu->device.name, used);
  name_processes(nvml, device, who, size);
  return true;
}

bool gs_gpu_busy(const gs_gpu_t *gpu, char *who, size_t size) {
  nvml_t nvml;
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  bool busy = false;
  if (library && bind(&nvml, library) && nvml.nvmlInit_v2() == 0) {
    busy = ask(&nvml, gpu, who, size);
    nvml.nvmlShutdown();
  }
  if (library) dlclose(library);
  return busy;
}

bool gs_gpu_refused_as_busy(const gs_gpu_t *gpu) {
  char who[512];
  if (!gs_gpu_busy(gpu, who, sizeof who)) return false;
  gs_say("%s: what is measured beside it is worth nothing; wait for it, choose another --device, or "
         "--busy-ok",
         who);
  return true;
}
