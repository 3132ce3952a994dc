/* cuBLASLt's algorithms for one product, as attributes: those that its heuristic offers, and what the library's
 * own lists (cublasLtMatmulAlgoGetIds and the capabilities) hold beyond them. */
#ifndef GS_ALGOS_H
#define GS_ALGOS_H

#include "baseline.h"

typedef struct {
  gs_algo_t algo;
  int split_k;
  double score; /* waves begun for each that is filled: less is better */
} gs_algos_t;

/* The attributes of the heuristic's candidate; false where the library does not say them, or where it adds up in
 * less than fp32. */
bool gs_algos_offered(const gs_lt_t *lt, int candidate, gs_algos_t *out);
/* Which algorithm and tile the heuristic takes first, as one number; 0: none. Launches nothing. */
uint64_t gs_algos_first(const gs_lt_t *lt);
/* Writes the limit most promising algorithms that the heuristic did not offer and the library accepts; returns how
 * many there are. At most GS_ALGOS_CHECKS are asked about. */
#define GS_ALGOS_CHECKS 512
int gs_algos_beyond(const gs_lt_t *lt, const gs_gemm_t *g, gs_algos_t *best, int limit);

#endif
