/* A shared object that links cuBLAS and is loaded at run time, as a Python extension is. */
#include "client.h"

#define EXPORT __attribute__((visibility("default")))

/* Calls made right; -1 when one was not. */
EXPORT int plugin_run(int calls) {
  simple_t s = simple_open(8);
  for (int i = 0; i < calls; i++)
    if (simple_call(&s) != CUBLAS_STATUS_SUCCESS || !simple_right(&s)) return -1;
  simple_close(&s);
  return calls;
}

EXPORT int plugin_version(void) {
  int version;
  cublasHandle_t handle;
  MUST(cublasCreate(&handle));
  MUST(cublasGetVersion(handle, &version));
  MUST(cublasDestroy(handle));
  return version;
}
