/* All kernels of one tile: type pairs x layouts. Compiled once for each line of mma.def, which the build
 * hands over as GS_TILE (the end of the id) and the constants of gemm_mma.cuh. */
#ifdef GS_IS_STRIP
#include "gemm_strip.cuh"
#else
#include "gemm_mma.cuh"
#endif
#include "instances.h"
#include "tiles.h"

#ifdef GS_IS_STRIP
#define GS_PREFIX strip_
#define GS_BODY   gs_strip
#elif defined GS_IS_WGMMA
#define GS_PREFIX wgmma_
#define GS_BODY   gs_mma
#else
#define GS_PREFIX mma_
#define GS_BODY   gs_mma
#endif
#define GS_INSTANCE(ab, d, AB, D, ta, tb, transa, transb)                                                    \
  extern "C" __global__ void __launch_bounds__(GS_WARPS * 32, GS_BLOCKS)                                     \
      GS_JOIN(GS_PREFIX, GS_JOIN(ab##_##d##_##ta##tb##_, GS_TILE))(const __grid_constant__ gs_params_t p) {  \
    GS_BODY(&p, GS_E_##AB, GS_E_##D, transa, transb);                                                        \
  }
GS_INSTANCES(GS_INSTANCE)
