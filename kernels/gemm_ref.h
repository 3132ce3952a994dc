/* The FP64 reference on the GPU, for the tools only: slow, complete, every type pair. Its kernels
 *   ref_<type of A and B>_<type of C>   (ref_f16_f16, ref_f16_f32, ref_bf16_bf16, ref_bf16_f32)
 * take a gs_params_t and two ints, transa and transb (0 or 1). They read A, B, C, bias as a kernel of those
 * types does, and write D as double: d points to doubles, ldd and stride_d count doubles. Any
 * one-dimensional block and grid.x will do; grid.z is the batch. split_k, raster and workspace are ignored.
 */
#ifndef GS_GEMM_REF_H
#define GS_GEMM_REF_H

#include <stddef.h>

/* The fatbin; static storage. */
const void *gs_ref_image(size_t *size);

#endif
