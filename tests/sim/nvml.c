/* Stand-in libnvidia-ml: one GPU that is SIM_BUSY percent busy, with the process SIM_BUSY_PID. */
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static unsigned number(const char *name) {
  const char *text = getenv(name);
  return text ? (unsigned)atoi(text) : 0;
}

EXPORT int nvmlInit_v2(void) {
  return 0;
}
EXPORT int nvmlShutdown(void) {
  return 0;
}
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
  *device = (void *)bus;
  return 0;
}
EXPORT int nvmlDeviceGetUtilizationRates(void *device, unsigned used[2]) {
  (void)device;
  used[0] = used[1] = number("SIM_BUSY");
  return 0;
}

typedef struct {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
} process_t;

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_t *processes) {
  (void)device;
  *count = number("SIM_BUSY_PID") != 0;
  if (*count) processes[0] = (process_t){.pid = number("SIM_BUSY_PID")};
  return 0;
}
