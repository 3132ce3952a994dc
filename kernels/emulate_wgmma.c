/* What wgmma does, for the emulator: a product is computed when it is issued, or not before it is waited for. */
#include "emulate_wgmma.h"

#include <string.h>

#define GS_EMULATE
#include "common.cuh"

/* Bytes from the start of shared memory to element (mn, k) of a matrix that a descriptor names, as the PTX manual draws the
 * 128-byte swizzle. */
static unsigned element_at(unsigned long long matrix, int along_mn, unsigned mn, unsigned k) {
  unsigned start = (unsigned)(matrix & 0x3fff) * 16, leading = (unsigned)(matrix >> 16 & 0x3fff) * 16;
  unsigned stride = (unsigned)(matrix >> 32 & 0x3fff) * 16;
  unsigned at = along_mn ? start + mn / 64 * leading + k / 8 * stride + k % 8 * 128 + mn % 64 * 2
                         : start + mn / 8 * stride + mn % 8 * 128 + k * 2;
  if (matrix >> 62 != 1) gs_emulated_fault("a matrix in another swizzle than that of 128 bytes");
  return at ^ (at >> 7 & 7) << 4;
}

static float element(const gs_product_t *x, unsigned long long matrix, int along_mn, unsigned mn,
                     unsigned k) {
  unsigned short half;
  memcpy(&half, gs_emulated_shared(element_at(matrix, along_mn, mn, k) | gs_cluster_rank() << 24, 2), 2);
  return gs_widen(x->type, half);
}

/* This thread's share: rows lane / 4 and 8 below of its warp's 16, two neighbours of every 8 columns. */
static void multiply(const gs_product_t *x) {
  unsigned lane = gs_emulated_thread.x % 32, row = gs_emulated_thread.x / 32 % 4 * 16 + lane / 4;
  float rows[2][16];
  for (unsigned i = 0; i < 32; ++i)
    rows[i / 16][i % 16] = element(x, x->a, x->a_mn, row + i / 16 * 8, i % 16);
  for (unsigned c = 0; c < (unsigned)x->columns / 4; ++c) {
    float *d = &x->d[c / 2 * 4 + c % 2], sums[2] = {x->add ? d[0] : 0, x->add ? d[2] : 0};
    for (unsigned k = 0; k < 16; ++k) {
      float v = element(x, x->b, x->b_mn, c / 2 * 8 + lane % 4 * 2 + c % 2, k);
      sums[0] += rows[0][k] * v, sums[1] += rows[1][k] * v;
    }
    d[0] = sums[0], d[2] = sums[1];
  }
}

void gs_wgmma_fence(void) {}
void gs_wgmma_commit(void) {
  ++gs_emulated_products()->group;
}

void gs_emulated_wgmma(int type, float *d, int columns, unsigned long long a, unsigned long long b, int add,
                       int a_mn, int b_mn) {
  gs_products_t *products = gs_emulated_products();
  const gs_product_t product = {d, a, b, type, columns, add, a_mn, b_mn, products->group};
  if (gs_emulated_unfenced()) gs_emulated_fault("a product of what was copied without a fence");
  if (!gs_emulated_late())
    multiply(&product);
  else if (products->count == GS_PRODUCTS_MAX)
    gs_emulated_fault("more products in flight than the emulator holds");
  else
    products->items[products->count++] = product;
}

void gs_wgmma_wait(int pending) {
  gs_products_t *products = gs_emulated_products();
  int done = 0;
  while (done < products->count && products->items[done].group < products->group - pending)
    multiply(&products->items[done++]);
  products->count -= done;
  memmove(products->items, products->items + done, (size_t)products->count * sizeof *products->items);
}
