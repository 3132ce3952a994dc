/* All kernels of one tile, as mma.cu, strip.cu, direct.cu and rows.cu, compiled for the CPU. GS_NAME is family and tile. */
#ifdef GS_IS_DIRECT
#include "gemm_direct.cuh"
#define KERNEL gs_direct
#elif defined GS_IS_ROWS
#include "gemm_rows.cuh"
#define KERNEL gs_rows
#elif defined GS_IS_STRIP
#include "gemm_strip.cuh"
#define KERNEL gs_strip
#else
#include "gemm_mma.cuh"
#define KERNEL gs_mma
#endif
#include "instances.h"
#include "tiles.h"

/* One copy for all type pairs and layouts: what matters here is that it compiles fast. */
__attribute__((noinline)) static void kernel(const gs_params_t *p, int type, int d_type, int transa,
                                             int transb) {
  KERNEL(p, type, d_type, transa, transb);
}

#define X(ab, d, AB, D, ta, tb, transa, transb)                                                              \
  static void ab##_##d##_##ta##tb(const gs_params_t *p) {                                                    \
    kernel(p, GS_E_##AB, GS_E_##D, transa, transb);                                                          \
  }
GS_INSTANCES(X)
#undef X

/* In the order of the shipped list. */
extern void (*const GS_JOIN(gs_emulated_, GS_NAME)[])(const gs_params_t *);
void (*const GS_JOIN(gs_emulated_, GS_NAME)[])(const gs_params_t *) = {
#define X(ab, d, AB, D, ta, tb, transa, transb) ab##_##d##_##ta##tb,
    GS_INSTANCES(X)
#undef X
};
