/* All kernels of one tile, as mma.cu, compiled for the CPU. */
#include "gemm_mma.cuh"
#include "instances.h"
#include "tiles.h"

/* One copy for all type pairs and layouts: what matters here is that it compiles fast. */
__attribute__((noinline)) static void mma(const gs_params_t *p, int type, int d_type, int transa,
                                          int transb) {
  gs_mma(p, type, d_type, transa, transb);
}

#define X(ab, d, AB, D, ta, tb, transa, transb)                                                              \
  static void ab##_##d##_##ta##tb(const gs_params_t *p) {                                                    \
    mma(p, GS_E_##AB, GS_E_##D, transa, transb);                                                             \
  }
GS_INSTANCES(X)
#undef X

/* In the order of the shipped list. */
extern void (*const GS_JOIN(gs_emulated_, GS_TILE)[])(const gs_params_t *);
void (*const GS_JOIN(gs_emulated_, GS_TILE)[])(const gs_params_t *) = {
#define X(ab, d, AB, D, ta, tb, transa, transb) ab##_##d##_##ta##tb,
    GS_INSTANCES(X)
#undef X
};
