/* All kernels of one tile of family wgmma, a line of wgmma.def: family mma but for the products. */
#ifndef GS_IS_WGMMA
#define GS_IS_WGMMA
#endif
#include "mma.cu"
