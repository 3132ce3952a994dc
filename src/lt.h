/* Floor 3. cublasLtMatmul's opaque descriptors: what do they ask? The answer is remembered by the
 * descriptors' own bytes, since asking costs half a microsecond. */
#ifndef GS_LT_H
#define GS_LT_H

#include "dispatch.h"

/* object: the descriptor, then the layouts of A, B, C, D. Fills in call->gemm, at.bias,
 * device_scalars and, where kernels cannot do what is asked, refusal. The descriptors stay the caller's and
 * are only read. */
void gs_lt_describe(gs_call_t *call, const void *const object[5]);
/* In a forked child, whose histogram starts anew. */
void gs_lt_fork(void);

#endif
