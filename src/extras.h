/* Floor 1. Kernels beyond the shipped ones: their machine code comes from a tuner's compiler. All that can run
 * are counted through, the shipped ones first: an index below gs_shipped_count() is that of gs_shipped_at. */
#ifndef GS_EXTRAS_H
#define GS_EXTRAS_H

#include "gs_kernel.h"

#define GS_EXTRAS_MAX 4096

/* Shipped and extra ones, so far. */
int gs_kernel_count(void);
gs_kernel_t gs_kernel_at(int index);
/* The fatbin or cubin that holds it; lives as long as the process. */
const void *gs_kernel_image(int index, size_t *size);

/* Adds k, whose cubin image (malloc'ed) becomes the process's; returns its index. The same kernel with the same
 * machine code is added once. -1 where GS_EXTRAS_MAX are there already: image stays the caller's.
 * Readers need no lock; two threads must not add at once. */
int gs_extra_add(const gs_kernel_t *k, void *image, size_t size);

#endif
