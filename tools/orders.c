#include "orders.h"

#include <math.h>

const int gs_orders[GS_ORDERS] = {1, 2, 4, 8};

bool gs_order_differs(const gs_kernel_t *k, const gs_gemm_t *g, int order) {
  return order == 0 ||
         (gs_kernel_has_raster(k) && g->m > (int64_t)k->bm * gs_orders[order - 1] && g->n > k->bn);
}

/* Elements of m and n, by one of k, that as many tiles as there are multiprocessors read in that order. */
static double read_together(const gs_gpu_t *gpu, const gs_kernel_t *k, const gs_gemm_t *g, int raster) {
  double tiles_n = ceil((double)g->n / k->bn), running = gpu->device.sms;
  double columns = fmin(ceil(running / raster), tiles_n), rows = fmax(raster, ceil(running / columns));
  return rows * k->bm + columns * k->bn;
}

int gs_order_guess(const gs_gpu_t *gpu, const gs_kernel_t *k, const gs_gemm_t *g) {
  double b_bytes = (double)g->n * (double)g->k * gs_type_bytes[g->b_type];
  int best = 0;
  if (b_bytes <= gpu->l2_bytes / 2.0) return gs_orders[0];
  for (int i = 1; i < GS_ORDERS && gs_order_differs(k, g, i); i++)
    if (read_together(gpu, k, g, gs_orders[i]) < read_together(gpu, k, g, gs_orders[best])) best = i;
  return gs_orders[best];
}
