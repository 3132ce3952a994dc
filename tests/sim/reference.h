/* The C reference: any product that the stand-ins know, summed in double precision and rounded once to the
 * type of D. Slow, complete, and independent of the library under test. */
#ifndef GS_SIM_REFERENCE_H
#define GS_SIM_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <library_types.h>

#include "gs_kernel.h"

/* One product or a strided batch of them, column-major, in cuBLAS's terms. The matrices belong to the caller
 * and are read and written by product_run alone. */
typedef struct {
  bool transa, transb; /* op is T or C; the types are real */
  char zeros[6];       /* no byte is left to chance: kernels' parameters are compared as such */
  int64_t m, n, k, batch;
  int64_t lda, ldb, ldc, ldd;                                  /* elements */
  int64_t stride_a, stride_b, stride_c, stride_d, stride_bias; /* elements */
  cudaDataType_t a_type, b_type, c_type, d_type, bias_type;
  cudaDataType_t scale_type; /* of *alpha_ptr and *beta_ptr */
  int epilogue;              /* GS_EPI_* */
  int zero;
  const void *a, *b, *c;
  void *d;
  const void *bias;
  double alpha, beta;
  const void *alpha_ptr, *beta_ptr; /* when not NULL, read by product_run instead of alpha, beta */
} product_t;

/* Whether every type is one that the reference can read and write. */
bool product_known(const product_t *p);
/* Computes it; false when memory ran out. */
bool product_run(const product_t *p);
/* Puts its result off by that part of itself, of every element or of the last one alone. */
void product_spoil(const product_t *p, double part, bool last_only);
/* The product that a kernel with these parameters computes, grid.z being batch. */
product_t product_of_kernel(const gs_kernel_t *kernel, const gs_params_t *params, int64_t batch);

size_t value_bytes(cudaDataType_t type); /* 0: not known here */
double value_load(cudaDataType_t type, const void *base, int64_t index);
/* Rounds to nearest even, once; integers saturate. */
void value_store(cudaDataType_t type, void *base, int64_t index, double value);

#endif
