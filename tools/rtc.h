/* NVRTC, NVIDIA's run-time compiler, which is looked for when it is first needed. What it makes is checked: that
 * it says what the kernel needs, and that its instructions keep sums in F32 (ptx.h, sass.h). */
#ifndef GS_RTC_H
#define GS_RTC_H

#include "generate.h"

typedef struct {
  const char *text;
  const char *const *headers, *const *header_names;
  int header_count;
  const char *const *options;
  int option_count;
  bool by_fma; /* it multiplies by FMA in F32, without tensor cores */
} gs_source_t;

/* Loads it; GS_OK and its version, or GS_NOT_FOUND and what to do. */
gs_status_t gs_nvrtc_open(int version[2], char *why, size_t size);
/* Compiles for a GPU's architecture, as an option says (--gpu-architecture=sm_90a). GS_UNSUPPORTED, and cubin->why,
 * where that fails or a sum is not kept in F32; GS_NOMEM. Spills are in cubin->needs: no fault here. */
gs_status_t gs_nvrtc_compile(const gs_source_t *source, gs_cubin_t *cubin);

#endif
