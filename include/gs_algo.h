/* A cuBLASLt algorithm, spelt by its attributes, so that a table can name it and the same library build can
 * make it again:
 *   lt_66_t20_s36_r0_z1_c4_i0_h12
 * the algorithm's number, then tile, stages, reduction scheme, swizzle, custom option, inner shape and cluster
 * shape, as cublasLt.h numbers them (CUBLASLT_ALGO_CONFIG_*). How often it splits k stands apart, in the row. */
#ifndef GS_ALGO_H
#define GS_ALGO_H

#include "gs_gemm.h"
#include "gs_reason.h"

/* letter in the text, member, type that cuBLASLt keeps it in, CUBLASLT_ALGO_CONFIG_* */
#define GS_ALGO_ATTRIBUTES(X)                                                                                \
  X("t", tile, uint32_t, TILE_ID)                                                                            \
  X("s", stages, uint32_t, STAGES_ID)                                                                        \
  X("r", reduction, uint32_t, REDUCTION_SCHEME)                                                              \
  X("z", swizzle, uint32_t, CTA_SWIZZLING)                                                                   \
  X("c", custom, uint32_t, CUSTOM_OPTION)                                                                    \
  X("i", inner, uint16_t, INNER_SHAPE_ID)                                                                    \
  X("h", cluster, uint16_t, CLUSTER_SHAPE_ID)

typedef struct {
  int32_t id;
#define X(letter, member, type, attribute) uint32_t member;
  GS_ALGO_ATTRIBUTES(X)
#undef X
} gs_algo_t; /* no padding: compared byte by byte */

/* Returns the length, as snprintf; GS_KERNEL_ID_MAX bytes are enough for what gs_algo_parse accepts. */
int gs_algo_format(char *buffer, size_t size, const gs_algo_t *algo);
/* Reads such a text, strictly: true only where formatting it again gives the same. */
bool gs_algo_parse(const char *text, gs_algo_t *algo);
/* Whether partial sums stay in the compute type: reduction schemes NONE and COMPUTE_TYPE. */
bool gs_algo_exact(const gs_algo_t *algo);
/* GS_REASON_SERVED where a row may hand g to cublasLtMatmul; the library itself may refuse it yet. */
gs_reason_t gs_algo_supports(const gs_gemm_t *g);

#endif
