#include "gs_algo.h"

#include <stdio.h>
#include <string.h>

#define MEMBERS 7
#define X(...)  +1
_Static_assert((GS_ALGO_ATTRIBUTES(X)) == MEMBERS, "one field for each");
#undef X

#define X(letter, ...) "_" letter "%u"
#define GS_ALGO_TEXT   "lt_%d" GS_ALGO_ATTRIBUTES(X)
static const char text_format[] = GS_ALGO_TEXT;
#undef X

int gs_algo_format(char *buffer, size_t size, const gs_algo_t *algo) {
#define X(letter, member, ...) , algo->member
  return snprintf(buffer, size, text_format, algo->id GS_ALGO_ATTRIBUTES(X));
#undef X
}

bool gs_algo_parse(const char *text, gs_algo_t *algo) {
  gs_algo_t read;
  char again[64];
#define X(letter, member, ...) , &read.member
  if (sscanf(text, text_format, &read.id GS_ALGO_ATTRIBUTES(X)) != 1 + MEMBERS || read.id < 0) return false;
#undef X
  if (gs_algo_format(again, sizeof again, &read) >= (int)sizeof again || strcmp(again, text) != 0)
    return false;
  *algo = read;
  return true;
}

/* CUBLASLT_REDUCTION_SCHEME_NONE and _COMPUTE_TYPE. */
bool gs_algo_exact(const gs_algo_t *algo) {
  return algo->reduction == 0 || algo->reduction == 2;
}

gs_reason_t gs_algo_supports(const gs_gemm_t *g) {
  int64_t rows_a = g->transa == GS_OP_N ? g->m : g->k, rows_b = g->transb == GS_OP_N ? g->k : g->n;
  if (g->transa == GS_OP_OTHER || g->transb == GS_OP_OTHER) return GS_REASON_DEGENERATE;
  if (g->m <= 0 || g->n <= 0 || g->k <= 0 || g->batch <= 0) return GS_REASON_DEGENERATE;
  if (g->lda < rows_a || g->ldb < rows_b || g->ldc < g->m || g->ldd < g->m) return GS_REASON_DEGENERATE;
  bool half = g->a_type == GS_TYPE_F16 || g->a_type == GS_TYPE_BF16;
  if (!half || g->a_type != g->b_type || g->c_type != g->d_type) return GS_REASON_TYPE;
  /* COMPUTE_16F would add up in half. */
  if ((g->d_type != g->a_type && g->d_type != GS_TYPE_F32) || g->compute != GS_COMPUTE_32F)
    return GS_REASON_TYPE;
  if (g->epilogue == GS_EPILOGUE_OTHER) return GS_REASON_EPILOGUE;
  return g->batch_kind == GS_BATCH_SINGLE || g->batch_kind == GS_BATCH_STRIDED ? GS_REASON_SERVED
                                                                               : GS_REASON_KERNEL;
}
