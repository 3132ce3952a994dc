/* Products of small whole numbers, so that every right result is exact, whoever computes it: for programs that run on a
 * GPU as on the stand-ins, and know nothing of gemmshim. TN, half in, half out, D (m x n) = A (m x k) B (k x n). */
#ifndef GS_TESTS_PRODUCT_H
#define GS_TESTS_PRODUCT_H

#include <stdbool.h>

#include <cublas_v2.h>
#include <cuda.h>

/* Ends the program with exit status 3 and a line. */
void must(int status, const char *what, const char *file, int line);
#define MUST(call) must((int)(call), #call, __FILE__, __LINE__)

typedef struct {
  cublasHandle_t handle;
  CUdeviceptr a, b, c;
  int m, n, k, seed;
  bool shares; /* handle, A and B are another's */
} product_t;

product_t product_open(int m, int n, int k, int seed);
/* With the handle, the A and the first n columns of the B of another, and a C of its own. */
product_t product_beside(const product_t *first, int n);
void product_close(product_t *p);
/* algorithm: CUBLAS_GEMM_DEFAULT, or one that gemmshim leaves to cuBLAS. */
void product_call_with(const product_t *p, CUstream stream, cublasGemmAlgo_t algorithm);
void product_call(const product_t *p, CUstream stream);
void product_clear(const product_t *p);
/* Some elements of every column, which a wrong tile or split would miss. */
bool product_right(const product_t *p);

size_t memory_used(void); /* of the device, by all */
CUstream stream_open(void);
CUgraphExec capture_exec(const product_t *p, CUstream stream);
/* Over a result that was cleared. */
bool replay_right(CUgraphExec exec, CUstream stream, const product_t *p);

#endif
