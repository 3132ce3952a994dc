/* The kernels that take part in tuning or verifying: shipped ones, and others that are compiled for it. */
#ifndef GS_POOL_H
#define GS_POOL_H

#include "compile.h"
#include "extras.h"
#include "points.h"

typedef struct {
  int *indices; /* as gs_kernel_at; owned */
  int count, room;
} gs_pool_t;

typedef struct {
  int sm;                               /* of the GPU: 80, 86, 90 ... */
  const gs_points_t *products;          /* NULL: any; else a tile stands for the kernels that these can use */
  const volatile sig_atomic_t *stopped; /* NULL: never */
} gs_pool_for_t;

bool gs_pool_add(gs_pool_t *pool, int index); /* once; false: out of memory, said */
/* Those that run on this architecture; 0: all. */
bool gs_pool_shipped(gs_pool_t *pool, int sm);
typedef struct {
  int compiled, refused; /* by the compiler, or for what it made */
  bool no_compiler;      /* said; what is not shipped was left out */
} gs_pool_tally_t;

/* Adds what count lists say: a list is a file of names, or names with commas between. A name is an id
 * (mma_f16_f16_tn_128x96x32_s4_w4), a tile (mma_128x96x32_s4_w4: of every type and layout), or a shell pattern
 * for ids of shipped kernels. What is not shipped is compiled; what is refused is said, counted, and left out.
 * GS_SYNTAX: not a name; GS_NOT_FOUND: nothing could be added, or no compiler for what is not shipped; GS_IO, GS_NOMEM:
 * said all. */
gs_status_t gs_pool_named(gs_pool_t *pool, char *const *lists, int count, const gs_pool_for_t *for_what,
                          gs_pool_tally_t *tally);
/* Compiles kernels and adds those that are good. Refusals are counted, and said where say is set. */
gs_pool_tally_t gs_pool_compile(gs_pool_t *pool, const gs_kernel_t *kernels, int count,
                                const gs_pool_for_t *for_what, bool say);
void gs_pool_free(gs_pool_t *pool);

#endif
