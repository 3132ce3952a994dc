/* Floor 3. How often captured products run: which products a capture, a graph and an executable graph hold, as
 * libgemmshim-graphs.so tells of them, and so what each launch adds to the histogram. Nothing is asked of CUDA but a
 * stream's capture, no graph is looked into or changed. Bounded: what finds no room counts as not traced, as do products
 * that are captured into a graph which was there before (bodies of conditional nodes). */
#ifndef GS_GRAPHS_H
#define GS_GRAPHS_H

#include <cuda.h>
#include <stdbool.h>

/* Whether someone tells; a product of the slot was captured on stream. */
bool gs_graphs_hooked(void);
void gs_graphs_captured(CUstream stream, int slot);
/* An object was unloaded. */
void gs_graphs_unloaded(void);
/* In a forked child, which has none of the parent's graphs. */
void gs_graphs_fork(void);

#endif
