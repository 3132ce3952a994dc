/* How a kernel's sums are kept, read from its PTX. The compiler that makes machine code of it keeps every
 * instruction's precision, so this needs no disassembler. */
#ifndef GS_PTX_H
#define GS_PTX_H

#include <stdbool.h>
#include <stddef.h>

/* True where tensor core instructions multiply (by_fma: FMA in F32 does), all of them with F32 accumulators, nothing else computes in 16 bits
 * or fewer, and nothing is added up in memory in whatever order. Else why names the instruction. */
bool gs_ptx_check(const char *ptx, bool by_fma, char *why, size_t size);

#endif
