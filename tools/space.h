/* The generated space: what kernels could be made, by the axes along which their parameters go. */
#ifndef GS_SPACE_H
#define GS_SPACE_H

#include "gs_kernel.h"

typedef void (*gs_point_t)(void *context, const gs_kernel_t *kernel);

/* Visits every kernel that could compute g on a GPU of architecture sm (80, 90 ...): those whose ids can be read,
 * whose shared memory a block may have there, which the registers seem to hold. The compiler may still refuse one. */
void gs_space_visit(const gs_gemm_t *g, int sm, gs_point_t visit, void *context);

/* Registers that a thread will take, about, going by those of the shipped kernels; INT_MAX where its warps cannot
 * share the work. */
int gs_space_registers(const gs_kernel_t *kernel);

#endif
