/* All kernels of one tile: type pairs x layouts. Compiled once for each line of direct.def, which the build
 * hands over as GS_TILE (the end of the id) and the constants of gemm_direct.cuh. */
#include "gemm_direct.cuh"
#include "instances.h"
#include "tiles.h"

#define GS_INSTANCE(ab, d, AB, D, ta, tb, transa, transb)                                                    \
  extern "C" __global__ void __launch_bounds__(GS_WARPS * 32, transa && !transb ? GS_BLOCKS : 1)             \
      GS_JOIN(direct_##ab##_##d##_##ta##tb##_, GS_TILE)(const __grid_constant__ gs_params_t p) {             \
    gs_direct(&p, GS_E_##AB, GS_E_##D, transa, transb);                                                      \
  }
GS_INSTANCES(GS_INSTANCE)
