/* Floor 3. A row whose winner is the library's own: a cuBLASLt algorithm other than the one it would have
 * chosen, made ready for one product and called with descriptors and workspace of ours. */
#ifndef GS_LIBRARY_H
#define GS_LIBRARY_H

#include <stdatomic.h>

#include "gs_table.h"
#include "real.h"
#include "relaunch.h"

typedef struct gs_library {
  struct gs_library *next; /* made for the same product */
  const gs_real_t *real;
  const gs_row_t *row;
  CUdevice device;
  gs_reason_t refusal; /* GS_REASON_SERVED: ready */
  bool usable[2];      /* with scalars on the host, on the device */
  bool biased;
  size_t workspace; /* bytes that it wants */
  cublasLtMatmulAlgo_t algo;
  cublasLtMatmulDescOpaque_t desc[2]; /* scalars on the host, on the device */
  cublasLtMatrixLayoutOpaque_t a, b, c, d;
  atomic_bool asked;               /* whether its launch can be learnt */
  CUcontext context;               /* where it was learnt: how much of the GPU there is may depend on it */
  _Atomic(gs_relaunch_t *) learnt; /* for gs_relaunch, there alone; NULL: the library has to launch it */
} gs_library_t;

/* Makes the algorithm of real from its attributes: cublasLtMatmulAlgoInit, then each is set. handle belongs to
 * the caller; g's types are what it is for. False where the library does not take them. */
bool gs_library_algo(const gs_real_t *real, cublasLtHandle_t handle, const gs_gemm_t *g,
                     const gs_algo_t *algo, int split_k, cublasLtMatmulAlgo_t *made);
/* Reads an algorithm's attributes; false where the library does not name them all. */
bool gs_library_read(const gs_real_t *real, const cublasLtMatmulAlgo_t *made, gs_algo_t *algo, int *split_k);

/* What one product's rows were made ready as; NULL: none yet. */
typedef _Atomic(gs_library_t *) gs_libraries_t;
/* The one of real and row on a device; NULL: none yet. */
gs_library_t *gs_library_find(gs_libraries_t *libraries, const gs_real_t *real, const gs_row_t *row,
                              CUdevice device);
/* The same, made ready where it is not yet, in the current context; NULL: out of memory. Lock-free. */
gs_library_t *gs_library_of(gs_libraries_t *libraries, const gs_real_t *real, cublasLtHandle_t handle,
                            const gs_gemm_t *g, const gs_operands_t *at, const gs_row_t *row,
                            CUdevice device);
void gs_libraries_free(gs_libraries_t *libraries);

/* Makes an algorithm ready for g, asking the library whether it can compute it (cublasLtMatmulAlgoCheck) and
 * how aligned operands must be. at: any operands of such a call. Launches nothing. */
gs_reason_t gs_library_prepare(gs_library_t *library, const gs_real_t *real, cublasLtHandle_t handle,
                               const gs_gemm_t *g, const gs_operands_t *at, const gs_algo_t *algo,
                               int split_k);
/* Learns its launch in the current context, once: whoever comes second finds it asked. As gs_relaunch_learn. */
void gs_library_learn(gs_library_t *library, cublasLtHandle_t handle, const gs_gemm_t *g, CUcontext current);
/* With what it learnt; of malloc, or NULL. */
void gs_library_free(gs_library_t *library);
/* Computes one product that it is ready for, with scalars where it is usable; workspace: library->workspace
 * bytes. Thread-safe. */
cublasStatus_t gs_library_matmul(const gs_library_t *library, cublasLtHandle_t handle,
                                 const gs_operands_t *at, bool device_scalars, void *workspace,
                                 cudaStream_t stream);

#endif
