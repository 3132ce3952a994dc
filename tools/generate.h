/* The generator: any id that gs_kernel_parse reads, shipped or not, becomes a cubin. NVRTC compiles it from the
 * kernels' own sources, which this program carries; what would not run well is refused with the reason. */
#ifndef GS_GENERATE_H
#define GS_GENERATE_H

#include "gs_kernel.h"

/* What the compiler says of a kernel, a thread. */
typedef struct {
  int registers;
  int stack, spill_stores, spill_loads; /* bytes */
} gs_cubin_needs_t;

typedef struct {
  void *image; /* the cubin, owned (gs_cubin_free); NULL unless GS_OK. Its one symbol is the id. */
  size_t size;
  gs_cubin_needs_t needs; /* 0 registers: it was refused before it was compiled */
  unsigned smem;          /* bytes a block, dynamic; with k split where that takes more */
  bool cached;            /* it was not compiled, but found in the cache */
  char why[512];          /* one line, where the status is not GS_OK */
} gs_cubin_t;

#define GS_SMEM_EVERYWHERE (99 << 10)     /* bytes a block that every GPU from 8.0 on grants */
#define GS_GENERATE_CACHE  (256ull << 20) /* bytes of the cache, unless another bound is asked for */

/* Compiles id for sm 80 (sm_80) or 90 (sm_90a), or finds it in the cache (cache.h), which holds at most
 * cache_bytes afterwards. What needs more than a block may have, spills, or does not keep its sums in F32 is
 * refused.
 * GS_SYNTAX: not an id. GS_UNSUPPORTED: this kernel is refused. GS_NOT_FOUND: no NVRTC. GS_NOMEM. */
gs_status_t gs_generate(const char *id, int sm, uint64_t cache_bytes, gs_cubin_t *cubin);
/* Whether a block may have the shared memory that the kernel needs there, and its threads hold the sums. */
bool gs_generate_fits(const gs_kernel_t *kernel, int sm);
/* Loads NVRTC and looks at the cache, which processes forked afterwards need not do again; GS_NOT_FOUND: why. */
gs_status_t gs_generate_ready(char *why, size_t size);
/* Fills in why, as printf, and frees the image; returns status. */
__attribute__((format(printf, 3, 4))) gs_status_t gs_cubin_refuse(gs_cubin_t *cubin, gs_status_t status,
                                                                  const char *format, ...);
void gs_cubin_free(gs_cubin_t *cubin);

#endif
