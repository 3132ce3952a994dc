/* The orders in which a kernel's tiles are computed (raster of gs_params_t), where it has a choice. */
#ifndef GS_ORDERS_H
#define GS_ORDERS_H

#include "gpu.h"

#define GS_ORDERS 4
extern const int gs_orders[GS_ORDERS]; /* 1 first: along n alone */

/* Whether that raster computes the tiles of g in another order than the one before it in gs_orders. */
bool gs_order_differs(const gs_kernel_t *k, const gs_gemm_t *g, int order);
/* The raster to begin with: 1, but where B, which that reads again for every row of tiles, passes what the second-level cache
 * keeps, the one whose tiles that run together read the fewest rows and columns. */
int gs_order_guess(const gs_gpu_t *gpu, const gs_kernel_t *k, const gs_gemm_t *g);

#endif
