/* The emulator's products of warpgroups (emulate_wgmma.c), and what they need to know of it. */
#ifndef GS_EMULATE_WGMMA_H
#define GS_EMULATE_WGMMA_H

#include <stdbool.h>

enum { GS_PRODUCTS_MAX = 32 };

/* One thread's share of a product. */
typedef struct {
  float *d;
  unsigned long long a, b; /* matrix descriptors */
  int type, columns, add, a_mn, b_mn, group;
} gs_product_t;

/* Those of a thread that are under way; group is the open one. */
typedef struct {
  int group, count;
  gs_product_t items[GS_PRODUCTS_MAX];
} gs_products_t;

/* Of the thread that runs. */
gs_products_t *gs_emulated_products(void);
/* Whether a thread of its block met the others without having made its copies visible to products. */
bool gs_emulated_unfenced(void);
bool gs_emulated_late(void); /* nothing happens before it is waited for */
void gs_emulated_fault(const char *what);

#endif
