/* The products to tune, gathered from the command line and from files; each key (a strided batch's number of products is part of it) and n once. */
#ifndef GS_POINTS_H
#define GS_POINTS_H

#include "gs_table.h"
#include "layers.h"

typedef struct {
  gs_gemm_t *items; /* owned */
  int count, room;
} gs_points_t;

/* "TNx4096x8x4096*12:f16_f16": transa transb, m, n (or several: 1,8,64), k, "*" and the number of products in a
 * strided batch (or several; a single product where left out), type of A and B, type of D (f16_f16 where left out),
 * and ":bias" or another epilogue. False, and a static text in why. */
bool gs_points_shape(gs_points_t *points, const char *text, const char **why);
/* What a program called and kernels can serve, costliest first; false where the file cannot be read (said).
 */
bool gs_points_calls(gs_points_t *points, const char *path);
/* The layers of a file (layers.h), each at every n (or those of its own) and for every pair of types
 * ("f16_f16,bf16_bf16"). False: said. */
bool gs_points_models(gs_points_t *points, const char *path, const gs_ns_t *ns, const char *types);
/* Every row-major M, N, K among sizes: NN and TN side by side, for every pair of types. False: said. */
#define GS_GRID_SIZES "64,128,256,512,1024,2048,4096,8192,12288,16384"
bool gs_points_grid(gs_points_t *points, const gs_ns_t *sizes, const char *types);
/* What a table's rows claim: each at both ends of its interval of n and in the middle. */
bool gs_points_rows(gs_points_t *points, const gs_table_t *table);
/* A product without gaps, as frameworks call them. */
gs_gemm_t gs_points_packed(gs_op_t transa, gs_op_t transb, int64_t m, int64_t n, int64_t k, gs_type_t ab,
                           gs_type_t d, gs_epilogue_t epilogue);
/* The same of a row's key. */
gs_gemm_t gs_points_keyed(const gs_key_t *key, int64_t n);
/* Whether rows for one could be for the other, were their n the same. */
bool gs_points_same_key(const gs_gemm_t *x, const gs_gemm_t *y);
/* Adds a product, unless it is there; false without memory (said). */
bool gs_points_add(gs_points_t *points, const gs_gemm_t *g);
bool gs_points_has(const gs_points_t *points, const gs_gemm_t *g);
/* Puts the products of a key side by side, by rising n; keys stay in the order in which they came. */
void gs_points_by_key(gs_points_t *points);

/* One of several that share the work; of is 0 where there is one only. */
typedef struct {
  int i, of; /* 1..of */
} gs_shard_t;
/* "2/8" */
bool gs_shard_read(gs_shard_t *shard, const char *text);
/* The part that a batch system hands out: an array of Slurm, else the ranks of MPI; unchanged without one. */
void gs_shard_default(gs_shard_t *shard);
/* Leaves every of'th key, from the i'th on, of products by key. */
void gs_points_shard(gs_points_t *points, gs_shard_t shard);
void gs_points_free(gs_points_t *points);

/* "f16_f16"; false where it is not a pair that a shipped kernel computes. */
bool gs_pair_read(const char *text, gs_type_t *ab, gs_type_t *d);

#endif
