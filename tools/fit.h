/* How the cost model is off on a GPU, tile by tile: factors fitted from products that were measured there, kept in
 * $XDG_CACHE_HOME/gemmshim (else ~/.cache/gemmshim) as GPU.model, a kernel a line. */
#ifndef GS_FIT_H
#define GS_FIT_H

#include <signal.h>

#include "bench.h"

/* What predictions for this tile, of whatever types and layout, are multiplied by: split apart from whole. The mean of
 * its family where the tile itself was not measured, 1 where none was. */
double gs_fit_factor(const gs_kernel_t *k, int split_k);

/* One measurement; us over predicted_us says how far off the model was. */
void gs_fit_add(const gs_kernel_t *k, int split_k, double predicted_us, double us);
void gs_fit_clear(void);

/* Takes over what is kept for the GPU, and puts it to use; how many tiles, 0: nothing is. */
int gs_fit_load(const char *gpu);
/* Keeps what was added, and puts it to use; false: said. path receives the file's name. */
bool gs_fit_save(const char *gpu, char *path, size_t size);

/* Measures every shipped tile on a few products and keeps the factors; an exit status. */
int gs_fit(gs_bench_t *bench, const volatile sig_atomic_t *stopped);

#endif
