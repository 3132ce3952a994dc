/* A foreign kernel, put through the gate that our own kernels pass: `gemmshim verify --peer FILE.so`.
 *
 * FILE.so is a shared object that defines one function with C linkage:
 *
 *   int gemm_peer(const void *a, const void *b, const void *b_t, void *c, int m, int n, int k);
 *
 * It computes C = A B, all fp16 in device memory, row-major and without gaps: A is m x k, B is k x n, b_t is B
 * transposed (n x k), for kernels that want it so, and C is m x n. It reads and writes nothing else of the
 * caller's. It returns 0 when it has computed the product, or anything else where it does not do this shape.
 * It works on the legacy default stream of the current context, or synchronises itself; the caller
 * synchronises the context after it. */
#ifndef GS_PEER_H
#define GS_PEER_H

#include "verify.h"

#define GS_PEER_SYMBOL "gemm_peer"
typedef int (*gs_peer_t)(const void *a, const void *b, const void *b_t, void *c, int m, int n, int k);

#define GS_PEER_SHAPES_MAX 64
#define GS_PEER_SIZE_MAX   16384

typedef struct {
  int m, n, k;
} gs_peer_shape_t;

typedef struct {
  gs_peer_shape_t items[GS_PEER_SHAPES_MAX];
  int count;
} gs_peer_shapes_t;

/* Adds "MxNxK": multiples of 8, GS_PEER_SIZE_MAX at most; false where it is none, or there are too many. */
bool gs_peer_shape(gs_peer_shapes_t *shapes, const char *text);

/* Puts the peer in file through the cases of peer.def, or with shapes through every kind of data at those, in
 * child processes unless one_process, and prints a line a case, or JSON. Returns an exit status of tools.h. */
int gs_verify_peer(const char *file, const gs_peer_shapes_t *shapes, const gs_verify_options_t *options,
                   bool one_process, bool json);

#endif
