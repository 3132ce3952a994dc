/* Comparing two products on the GPU: the kernels compare_f16, compare_bf16, compare_f32, and their argument. One
 * header for the host's C and for nvcc. */
#ifndef GS_COMPARE_H
#define GS_COMPARE_H

/* All zero before the kernel adds to it. Sums of squares are over elements that are finite in both. */
typedef struct gs_compare_result {
  double error2;                  /* of the differences */
  double step2;                   /* of the type's unit in the last place, at the reference */
  double reference2;              /* of the reference */
  float max_error, max_reference; /* largest magnitudes; as unsigned, greater is greater */
  unsigned long long misfits;     /* elements that are NaN, or infinite, in one alone */
} gs_compare_result_t;

/* Column-major m x n times grid.z, both with the same leading dimension and stride, in elements. A block of
 * GS_COMPARE_THREADS; any grid.x will do. */
typedef struct gs_compare_params {
  const void *d, *reference;
  gs_compare_result_t *result;
  long long stride;
  int m, n, ld;
} gs_compare_params_t;

#define GS_COMPARE_THREADS 256

#if !defined(__CUDACC__)
#include <stddef.h>
/* The fatbin; static storage. */
const void *gs_compare_image(size_t *size);
#endif
#endif
