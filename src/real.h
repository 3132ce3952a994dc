/* Floor 2. The real cuBLAS libraries in this process. They are found among the mapped objects, by name, and
 * their functions are taken from their own handles: RTLD_NEXT sees neither those loaded RTLD_LOCAL nor the
 * right one of two majors. */
#ifndef GS_REAL_H
#define GS_REAL_H

#include <cublasLt.h>
#include <cublas_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gs_status.h"

/* cublas_api.h declares these for C++ only, with __half for what is void here. */
#define GS_HALF_PROTOTYPES(suffix, INT)                                                                      \
  cublasStatus_t cublasHgemm##suffix(cublasHandle_t, cublasOperation_t, cublasOperation_t, INT, INT, INT,    \
                                     const void *, const void *, INT, const void *, INT, const void *,       \
                                     void *, INT);                                                           \
  cublasStatus_t cublasHgemmBatched##suffix(                                                                 \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, INT, INT, INT, const void *,                     \
      const void *const[], INT, const void *const[], INT, const void *, void *const[], INT, INT);            \
  cublasStatus_t cublasHgemmStridedBatched##suffix(                                                          \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, INT, INT, INT, const void *, const void *, INT,  \
      long long int, const void *, INT, long long int, const void *, void *, INT, long long int, INT);
GS_HALF_PROTOTYPES(, int)
GS_HALF_PROTOTYPES(_64, int64_t)

#if CUBLAS_VERSION <                                                                                         \
    120500 /* hooked all the same: the program may bring a newer library than our toolkit   \
                             */
#define GS_GROUPED_PROTOTYPE(suffix, INT)                                                                    \
  cublasStatus_t cublasGemmGroupedBatchedEx##suffix(                                                         \
      cublasHandle_t, const cublasOperation_t[], const cublasOperation_t[], const INT[], const INT[],        \
      const INT[], const void *, const void *const[], cudaDataType, const INT[], const void *const[],        \
      cudaDataType, const INT[], const void *, void *const[], cudaDataType, const INT[], INT, const INT[],   \
      cublasComputeType_t);
GS_GROUPED_PROTOTYPE(, int)
GS_GROUPED_PROTOTYPE(_64, int64_t)
#endif

typedef struct {
#define GS_HOOKED(name) __typeof__(&name) name;
#define GS_ASKED(name)  __typeof__(&name) name;
#include "real.def"
#undef GS_HOOKED
#undef GS_ASKED
  int version[3]; /* major, minor, patch */
  int major;      /* of the SONAME; 0 when it has none */
  int index;      /* 0 .. GS_REALS_MAX - 1, in the order of discovery */
  char path[256];
} gs_real_t;

#define GS_REALS_MAX 8

/* The library that the code at return_address would have called: the one that its object links (by SONAME
 * major), else the first that is mapped, else NULL (looked for again at the next call). Lock-free after an
 * address's first call; the result lives for ever. */
const gs_real_t *gs_real_of(const void *return_address);

/* After objects were unloaded: where they lay, others may come to lie that link another cuBLAS. */
void gs_real_forget_callers(void);

/* Where no cuBLAS is mapped: another object's function of that name, which is not our own. A stub's brings cuBLAS in, when
 * it is first called. NULL: there is none. */
void *gs_real_stub(const char *name, const void *own);

/* The library of that index, which must have been found. */
const gs_real_t *gs_real_at(int index);

/* Index of the library whose function at offset in gs_real_t is found; -1: none. Looks for libraries that were
 * mapped since; -1 also while this thread is finding them, whose own look-ups must not come back to it. */
int gs_real_defining(size_t offset, const void *found);

/* Whether any cuBLAS is mapped, called or not. */
bool gs_real_mapped(void);

#endif
