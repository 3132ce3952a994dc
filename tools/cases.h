/* What verify puts every kernel through: cases.def lists the cases; a trial is one of them made real for a
 * pair of types and a layout, with its operands, what surrounds them, and the FP64 result. */
#ifndef GS_CASES_H
#define GS_CASES_H

#include "gate.h"
#include "gs_kernel.h"
#include "stats.h"

typedef enum {
  GS_DATA_NORMAL,   /* N(0,1), A times scale */
  GS_DATA_OUTLIERS, /* N(0,1)/16, 1% of A's columns (those of op(A), along k) times 64 */
  GS_DATA_INTEGERS, /* sums pass 2048 on odd values and cancel to a small integer: the result is exact */
  GS_DATA_SPECIALS, /* N(0,1) with a few NaN and infinities */
} gs_data_t;

typedef enum {
  GS_LD_ALIGNED, /* the rows rounded up to 16 bytes */
  GS_LD_PADDED,  /* 16 bytes to 64 bytes more */
  GS_LD_ODD_D,   /* aligned for A and B, odd for C and D */
  GS_LD_ODD,     /* odd numbers of elements, and addresses that are aligned to one element of D only */
} gs_ld_t;

typedef struct {
  const char *name;
  int m, n, k;
  int split_k, raster, batch;
  float alpha, beta, scale;
  uint8_t data, ld, epilogue; /* gs_data_t, gs_ld_t, GS_EPI_* */
  bool in_place;              /* C is D */
  bool unread_ab;             /* A and B are NaN, as C is wherever beta is 0: they are not to be read */
  bool device_scalars, broadcast_b;
  bool quick;
  bool
      shallow; /* for kernels of no more than one k-tile: others are put through the like of it in deeper ones */
} gs_case_t;

/* A case with its defaults first, then what it says otherwise: to be compiled without -Woverride-init. */
#define GS_CASE_INIT(NAME, M, N, K, ...)                                                                     \
  {.name = NAME,                                                                                             \
   .m = M,                                                                                                   \
   .n = N,                                                                                                   \
   .k = K,                                                                                                   \
   .split_k = 1,                                                                                             \
   .raster = 1,                                                                                              \
   .batch = 1,                                                                                               \
   .alpha = 1,                                                                                               \
   .scale = 1,                                                                                               \
   __VA_ARGS__},

extern const gs_case_t gs_cases[];
extern const int gs_case_count;

/* The operands of a trial, each from its first element to its last. */
typedef enum {
  GS_OPERAND_A,
  GS_OPERAND_B,
  GS_OPERAND_C,
  GS_OPERAND_D,
  GS_OPERAND_BIAS,
  GS_OPERAND_ALPHA,
  GS_OPERAND_BETA,
  GS_OPERAND_COUNT
} gs_operand_t;
typedef struct {
  size_t at, bytes; /* at: offset into the image */
} gs_extent_t;

/* One allocation holds all: margins, gaps and D are poisoned, so that a read outside shows as NaN and a
 * write outside as a changed byte. */
typedef struct {
  const gs_case_t *from;
  gs_gemm_t gemm;
  unsigned char *image; /* the allocation before a launch */
  size_t bytes;
  gs_extent_t operands[GS_OPERAND_COUNT];
  size_t d_region, d_region_bytes; /* what a launch may change, margins and gaps included */
  double *reference;               /* m x n x batch, without gaps; filled in by the caller */
} gs_trial_t;

/* Where an operand lies in the image. */
static inline void *gs_trial_at(const gs_trial_t *trial, gs_operand_t which) {
  return trial->image + trial->operands[which].at;
}

#define GS_TRIAL_MARGIN 4096 /* bytes */

/* small: sizes are cut for a slow stand-in of a GPU. False when memory ran out. */
bool gs_trial_make(gs_trial_t *trial, const gs_case_t *from, gs_type_t ab_type, gs_type_t d_type,
                   gs_op_t transa, gs_op_t transb, bool small, gs_random_t *random);
void gs_trial_free(gs_trial_t *trial);
/* The operands of a trial whose image lies at base, or each of which lies at its own address. */
gs_operands_t gs_trial_operands(const gs_trial_t *trial, const void *base);
gs_operands_t gs_trial_operands_at(const gs_trial_t *trial, const void *const at[GS_OPERAND_COUNT]);

/* Judges the allocation after a launch. Puts D's elements in after back to what they were, and so finds
 * every byte that was written outside them. NULL, or what is wrong (a static text). */
const char *gs_trial_judge(const gs_trial_t *trial, unsigned char *after, double library_error,
                           gs_gate_t *gate);

#endif
