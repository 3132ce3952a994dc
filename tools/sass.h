/* How a kernel's sums are kept, read from its machine code: a second look where NVIDIA's disassembler is at hand. */
#ifndef GS_SASS_H
#define GS_SASS_H

#include <stdbool.h>
#include <stddef.h>

/* False, and why, where a tensor core instruction of the cubin does not accumulate in F32, or none is there (by_fma: no
 * FMA in F32 is). True
 * where they all do, and where nvdisasm is neither on the PATH nor in CUDA_HOME/bin. */
bool gs_sass_check(const void *cubin, size_t size, bool by_fma, char *why, size_t why_size);

#endif
