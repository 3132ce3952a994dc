/* Foreign kernels to be measured beside ours: every .so of a folder, with the one function of peer.h. */
#ifndef GS_FOREIGN_H
#define GS_FOREIGN_H

#include "gs_gemm.h"
#include "peer.h"

typedef struct {
  char name[64]; /* the file's, without .so */
  gs_peer_t run;
} gs_foreign_t;

typedef struct {
  gs_foreign_t *items; /* owned; by name */
  int count;
} gs_foreigners_t;

/* path: a folder, or one file. False (said) where it cannot be read, one of them cannot be loaded, or there is
 * none. */
bool gs_foreign_load(gs_foreigners_t *foreigners, const char *path);
void gs_foreign_free(gs_foreigners_t *foreigners);

/* Whether g is a product that the function's arguments can tell: packed fp16, not transposed in B. */
bool gs_foreign_fits(const gs_gemm_t *g);
/* The column-major product is the row-major one with the operands swapped: m and n change places, and so do A and
 * B. Both the peer's B and its transpose are at a: values do not matter for its time. False where it refuses. */
bool gs_foreign_call(const gs_foreign_t *foreign, const gs_gemm_t *g, const gs_operands_t *o);

#endif
