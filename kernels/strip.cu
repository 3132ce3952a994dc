/* All kernels of one tile of family strip, a line of strip.def. */
#ifndef GS_IS_STRIP
#define GS_IS_STRIP
#endif
#include "wgmma.cu"
