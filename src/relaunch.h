/* Floor 3. A launch of the library's, learnt by heart. For one product, what an algorithm of cuBLASLt's puts on a
 * stream depends on addresses alone. So it is captured a few times over made-up ones, never to run, and every word of
 * its kernels' parameters that differs is put down to the address that it follows. From then on the same kernels, one or
 * two, go out with the same parameters by cuLaunchKernelEx: on an H200 machine that takes 3 us less of the host than
 * cublasLtMatmul. Where the algorithm clears a few bytes of workspace ahead of its kernel, which then counts tiles in
 * them, it gets bytes that are zero already, and the GPU is spared a memset a call too.
 *
 * What is not exactly that is not learnt, and goes on through the library: a third kernel, any other node, nodes that do
 * not wait for each other in one of the two ways known here, a word that follows no address, attributes of a launch that
 * are not known here; with a driver before CUDA 12.4, more than one node, or parameters that are given singly. */
#ifndef GS_RELAUNCH_H
#define GS_RELAUNCH_H

#include <cuda.h>
#include <stdbool.h>

#include "gs_gemm.h"

typedef struct gs_relaunch gs_relaunch_t;

/* Puts the product on a stream that is being captured, with scalars on the host; false where it refuses. */
typedef bool gs_relaunch_call_t(void *self, const gs_operands_t *at, void *workspace, CUstream stream);

/* What enqueue does with an alpha of 1, a beta of 0 and that many bytes of workspace, in the current context; NULL
 * where it cannot be learnt. Launches nothing. Where any capture is under way, only between gs_capture_relax and
 * gs_capture_restore. The caller frees it. */
gs_relaunch_t *gs_relaunch_learn(gs_relaunch_call_t *enqueue, void *self, size_t workspace_bytes);
void gs_relaunch_free(gs_relaunch_t *learnt);
/* How many were learnt in this process, of how many. */
void gs_relaunch_count(int *learnt, int *of);

/* Launches it on stream of the current context, the one it was learnt in. False where D is still to be computed: learnt is
 * NULL or fails, now or before, other scalars, no workspace. Scalars on the host. Thread-safe. */
bool gs_relaunch(gs_relaunch_t *learnt, const gs_operands_t *at, CUcontext context, CUstream stream);

#endif
