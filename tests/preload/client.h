/* Shared by the client programs, which know cuBLAS and the driver and nothing of gemmshim. */
#ifndef GS_TESTS_CLIENT_H
#define GS_TESTS_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>

#include "reference.h"
#include "sim.h"

/* Ends the program with exit status 3 and a line. */
void must(int status, const char *what);
#define MUST(call) must((int)(call), #call)

/* Memory of the device, filled with small values of the type, the same for the same seed. */
void *device_values(cudaDataType_t type, int64_t count, unsigned seed);
void device_free(void *memory);

/* Whether d, which the GPU wrote, is what the reference makes of before, a copy of d's memory as it was, of
 * elements in all: within the rounding of its type inside the m x n, untouched outside. Says what is not. */
bool is_right(const product_t *p, const void *before, int64_t elements);

/* The product that the simplest clients ask for: TN, half in, half out, m = k = 128, beta 0. */
typedef struct {
  cublasHandle_t handle;
  void *a, *b, *c;
  int n;
  float alpha; /* 1 */
} simple_t;
simple_t simple_open(int n);
cublasStatus_t simple_call(const simple_t *s);
bool simple_right(const simple_t *s); /* of the last call */
void simple_close(simple_t *s);

#endif
