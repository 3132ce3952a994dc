#define _GNU_SOURCE
#include "rtc.h"

#include <dlfcn.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_library.h"
#include "ptx.h"
#include "sass.h"

#define NVRTC_FUNCTIONS(X)                                                                                   \
  X(nvrtcVersion)                                                                                            \
  X(nvrtcGetErrorString)                                                                                     \
  X(nvrtcCreateProgram)                                                                                      \
  X(nvrtcCompileProgram)                                                                                     \
  X(nvrtcDestroyProgram)                                                                                     \
  X(nvrtcGetProgramLogSize)                                                                                  \
  X(nvrtcGetProgramLog)                                                                                      \
  X(nvrtcGetPTXSize)                                                                                         \
  X(nvrtcGetPTX)                                                                                             \
  X(nvrtcGetCUBINSize)                                                                                       \
  X(nvrtcGetCUBIN)

static struct {
  void *handle;
  int version[2];
#define X(name) __typeof__(&name) name;
  NVRTC_FUNCTIONS(X)
#undef X
} nvrtc;

static void *load(const char *path) {
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static bool find(void) {
  if (nvrtc.handle) return true;
  void *handle = gs_cuda_library("libnvrtc", load);
  if (!handle) return false;
#define X(name)                                                                                              \
  if (!(nvrtc.name = (__typeof__(&name))dlsym(handle, #name))) return false;
  NVRTC_FUNCTIONS(X)
#undef X
  if (nvrtc.nvrtcVersion(&nvrtc.version[0], &nvrtc.version[1]) != NVRTC_SUCCESS) return false;
  nvrtc.handle = handle;
  return true;
}

gs_status_t gs_nvrtc_open(int version[2], char *why, size_t size) {
  if (find()) {
    memcpy(version, nvrtc.version, sizeof nvrtc.version);
    return GS_OK;
  }
  snprintf(why, size,
           "NVRTC 12 or 13 is not to be found: install a CUDA toolkit and set CUDA_HOME, or PyTorch for the "
           "python3 on "
           "the PATH, or put the folder of libnvrtc.so.13 into LD_LIBRARY_PATH");
  return GS_NOT_FOUND;
}

/* ---- what it answers ---- */

static gs_status_t refuse_by(gs_cubin_t *cubin, nvrtcResult result) {
  return gs_cubin_refuse(cubin, GS_UNSUPPORTED, "NVRTC: %s", nvrtc.nvrtcGetErrorString(result));
}

/* A failed assertion says more than what else is wrong because of it. */
static gs_status_t refuse_by_log(gs_cubin_t *cubin, const char *log, nvrtcResult result) {
  const char *found = strstr(log, "static assertion failed");
  if (!found) found = strstr(log, "error");
  if (!found) return refuse_by(cubin, result);
  while (found > log && found[-1] != '\n') found--;
  return gs_cubin_refuse(cubin, GS_UNSUPPORTED, "%.*s", (int)strcspn(found, "\n"), found);
}

static bool read_needs(const char *log, gs_cubin_needs_t *needs) {
  const char *line = strstr(log, " bytes stack frame"), *used = strstr(log, "Used ");
  if (!line || !used) return false;
  while (line > log && line[-1] != '\n') line--;
  return sscanf(line, "%*[^0-9]%d bytes stack frame, %d bytes spill stores, %d bytes spill loads",
                &needs->stack, &needs->spill_stores, &needs->spill_loads) == 3 &&
         sscanf(used, "Used %d registers", &needs->registers) == 1;
}

/* One of the program's texts, or its cubin; NULL: why is in *result, or out of memory. */
static void *take(nvrtcProgram program, nvrtcResult (*size_of)(nvrtcProgram, size_t *),
                  nvrtcResult (*get)(nvrtcProgram, char *), size_t *size, nvrtcResult *result) {
  *size = 0;
  *result = size_of(program, size);
  char *bytes = *result == NVRTC_SUCCESS ? calloc(*size + 1, 1) : NULL;
  if (bytes) *result = get(program, bytes);
  if (*result == NVRTC_SUCCESS) return bytes;
  free(bytes);
  return NULL;
}

/* Whether sums are kept in F32: by what the machine code was made of and, where a disassembler is at hand, by
 * itself. */
static bool check_sums(nvrtcProgram program, bool by_fma, const gs_cubin_t *cubin, char *why, size_t size) {
  size_t length;
  nvrtcResult result;
  char *ptx = take(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, &length, &result);
  bool right = ptx && gs_ptx_check(ptx, by_fma, why, size);
  if (!ptx) snprintf(why, size, "NVRTC does not show its PTX: %s", nvrtc.nvrtcGetErrorString(result));
  free(ptx);
  return right && gs_sass_check(cubin->image, cubin->size, by_fma, why, size);
}

static gs_status_t take_cubin(nvrtcProgram program, bool by_fma, const char *log, gs_cubin_t *cubin) {
  char why[256];
  nvrtcResult result;
  cubin->image = take(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, &cubin->size, &result);
  if (result != NVRTC_SUCCESS) return refuse_by(cubin, result);
  if (!cubin->image) return gs_cubin_refuse(cubin, GS_NOMEM, "out of memory");
  if (!read_needs(log, &cubin->needs))
    return gs_cubin_refuse(cubin, GS_UNSUPPORTED,
                           "NVRTC %d.%d does not say whether the kernel spills: a newer one is needed",
                           nvrtc.version[0], nvrtc.version[1]);
  if (check_sums(program, by_fma, cubin, why, sizeof why)) return GS_OK;
  return gs_cubin_refuse(cubin, GS_UNSUPPORTED, "%s", why);
}

gs_status_t gs_nvrtc_compile(const gs_source_t *source, gs_cubin_t *cubin) {
  nvrtcProgram program;
  nvrtcResult result = nvrtc.nvrtcCreateProgram(&program, source->text, "kernel.cu", source->header_count,
                                                source->headers, source->header_names),
              compiled;
  size_t length;
  if (result != NVRTC_SUCCESS) return refuse_by(cubin, result);
  compiled = nvrtc.nvrtcCompileProgram(program, source->option_count, source->options);
  char *log = take(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, &length, &result);
  gs_status_t status = !log                        ? gs_cubin_refuse(cubin, GS_NOMEM, "out of memory")
                       : compiled == NVRTC_SUCCESS ? take_cubin(program, source->by_fma, log, cubin)
                                                   : refuse_by_log(cubin, log, compiled);
  free(log);
  nvrtc.nvrtcDestroyProgram(&program);
  return status;
}
