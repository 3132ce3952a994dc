#define _GNU_SOURCE
#include "cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init" /* the defaults come first */
const gs_case_t gs_cases[] = {
#define GS_CASE GS_CASE_INIT
#include "cases.def"
#undef GS_CASE
};
#pragma GCC diagnostic pop
const int gs_case_count = sizeof gs_cases / sizeof *gs_cases;

static int lesser(int a, int b) {
  return a < b ? a : b;
}

/* ---- layout ---- */

static int64_t leading(const gs_case_t *from, int64_t rows, gs_type_t type, gs_ld_t odd_from) {
  int64_t unit = 16 / gs_type_bytes[type];
  if (from->ld >= odd_from) return rows + 2 - rows % 2 + 1;
  int64_t aligned = (rows + unit - 1) / unit * unit;
  return from->ld == GS_LD_PADDED ? aligned + unit * (1 + rows % 4) : aligned;
}

static void shape(gs_trial_t *trial, gs_type_t ab, gs_type_t d, gs_op_t transa, gs_op_t transb, bool small) {
  const gs_case_t *from = trial->from;
  gs_gemm_t *g = &trial->gemm;
  *g = (gs_gemm_t){.entry = GS_ENTRY_LT_MATMUL,
                   .transa = transa,
                   .transb = transb,
                   .a_type = ab,
                   .b_type = ab,
                   .c_type = d,
                   .d_type = d,
                   .compute = GS_COMPUTE_32F,
                   .epilogue = from->epilogue,
                   .batch_kind = from->batch > 1 ? GS_BATCH_STRIDED : GS_BATCH_SINGLE,
                   .batch = from->batch,
                   .m = small ? lesser(from->m, 70 + from->m % 8) : from->m,
                   .n = small ? lesser(from->n, 54 + from->n % 8) : from->n,
                   .k = small ? lesser(from->k, 584 + from->k % 8) : from->k};
  int64_t a_columns = transa == GS_OP_N ? g->k : g->m, b_columns = transb == GS_OP_N ? g->n : g->k;
  g->lda = leading(from, transa == GS_OP_N ? g->m : g->k, ab, GS_LD_ODD);
  g->ldb = leading(from, transb == GS_OP_N ? g->k : g->n, ab, GS_LD_ODD);
  g->ldc = g->ldd = leading(from, g->m, d, GS_LD_ODD_D);
  if (from->batch > 1) {
    g->stride_a = g->lda * (a_columns + 1);
    g->stride_b = from->broadcast_b ? 0 : g->ldb * (b_columns + 2);
    g->stride_c = g->stride_d = g->ldd * (g->n + 1);
  }
}

/* Appends an operand behind a margin: columns of rows elements in each of batch entries. */
static void append(gs_trial_t *trial, gs_operand_t which, gs_type_t type, int64_t rows, int64_t columns,
                   int64_t ld, int64_t stride, size_t misalignment) {
  int64_t before_last = stride * (trial->gemm.batch - 1) + ld * (columns - 1), elements = before_last + rows;
  size_t at = trial->bytes + GS_TRIAL_MARGIN + misalignment;
  trial->operands[which] = (gs_extent_t){at, (size_t)elements * gs_type_bytes[type]};
  trial->bytes = (at + (size_t)(before_last + ld) * gs_type_bytes[type] + 255) / 256 * 256;
}

static void place(gs_trial_t *trial) {
  const gs_gemm_t *g = &trial->gemm;
  size_t off = trial->from->ld == GS_LD_ODD ? gs_type_bytes[g->d_type] : 0;
  bool ta = g->transa != GS_OP_N, tb = g->transb != GS_OP_N;
  append(trial, GS_OPERAND_A, g->a_type, ta ? g->k : g->m, ta ? g->m : g->k, g->lda, g->stride_a, off);
  append(trial, GS_OPERAND_B, g->b_type, tb ? g->n : g->k, tb ? g->k : g->n, g->ldb, g->stride_b, off);
  append(trial, GS_OPERAND_BIAS, g->d_type, g->m, 1, g->m, 0, off);
  append(trial, GS_OPERAND_ALPHA, GS_TYPE_F32, 1, 1, 1, 0, 0);
  append(trial, GS_OPERAND_BETA, GS_TYPE_F32, 1, 1, 1, 0, 0);
  append(trial, GS_OPERAND_C, g->d_type, g->m, g->n, g->ldd, g->stride_d, off);
  trial->d_region = trial->bytes;
  append(trial, GS_OPERAND_D, g->d_type, g->m, g->n, g->ldd, g->stride_d, off);
  trial->bytes += GS_TRIAL_MARGIN;
  trial->d_region_bytes = trial->bytes - trial->d_region;
  if (trial->from->in_place) trial->operands[GS_OPERAND_C] = trial->operands[GS_OPERAND_D];
}

/* ---- data ---- */

#define POOL 65536
static double pool[POOL]; /* of N(0,1); drawn once, picked from at random */

static double normal(gs_random_t *random) {
  if (pool[0] == 0)
    for (int i = 0; i < POOL; i++) {
      double u = (double)(gs_random_next(random) >> 11) * 0x1p-53;
      double v = (double)(gs_random_next(random) >> 11) * 0x1p-53;
      pool[i] = sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
    }
  return pool[gs_random_next(random) >> 48];
}

/* The value of op(A) (i, l), or of op(B) (l, j) where of_b; before is the value at k - 1 - l, once l is past
 * the middle. */
static double draw(const gs_case_t *from, bool of_b, int64_t l, int64_t k, double before,
                   gs_random_t *random) {
  switch ((gs_data_t)from->data) {
  case GS_DATA_OUTLIERS:
    if (of_b) return normal(random);
    return normal(random) / 16 * (l % 100 == 37 ? 64 : 1);
  case GS_DATA_INTEGERS:
    if (2 * l < k)
      return of_b ? 1 + (double)gs_random_below(random, 3) : 1 + 2 * (double)gs_random_below(random, 4);
    if (of_b) return before;
    return (l % 13 ? 0 : (double)gs_random_below(random, 3) - 1) - before;
  case GS_DATA_NORMAL:
  case GS_DATA_SPECIALS:
    break;
  }
  return of_b ? normal(random) : from->scale * normal(random);
}

/* Fills op(X), rows along m or n, depth along k. */
static void fill_operand(gs_trial_t *trial, bool of_b, gs_random_t *random) {
  const gs_gemm_t *g = &trial->gemm;
  gs_type_t type = of_b ? g->b_type : g->a_type;
  int64_t rows = of_b ? g->n : g->m, ld = of_b ? g->ldb : g->lda, stride = of_b ? g->stride_b : g->stride_a;
  bool deep_columns = of_b ? g->transb == GS_OP_N : g->transa != GS_OP_N; /* k runs along a column */
  int64_t by_row = deep_columns ? ld : 1, by_l = deep_columns ? 1 : ld;
  void *base = gs_trial_at(trial, of_b ? GS_OPERAND_B : GS_OPERAND_A);
  if (trial->from->unread_ab) return; /* poison */
  for (int64_t z = 0; z < (stride ? g->batch : 1); z++)
    for (int64_t i = 0; i < rows; i++)
      for (int64_t l = 0; l < g->k; l++) {
        int64_t row = z * stride + i * by_row, mirror = g->k - 1 - l;
        double before = mirror < l ? gs_element_load(type, base, row + mirror * by_l) : 0;
        gs_element_store(type, base, row + l * by_l, draw(trial->from, of_b, l, g->k, before, random));
      }
}

/* NaN and infinities at corners, where rests of tiles are, and inside. */
static void place_specials(gs_trial_t *trial) {
  const gs_gemm_t *g = &trial->gemm;
  int64_t a_row = g->transa == GS_OP_N ? 1 : g->lda, a_l = g->transa == GS_OP_N ? g->lda : 1;
  int64_t b_col = g->transb == GS_OP_N ? g->ldb : 1, b_l = g->transb == GS_OP_N ? 1 : g->ldb;
  void *a = gs_trial_at(trial, GS_OPERAND_A), *b = gs_trial_at(trial, GS_OPERAND_B);
  gs_element_store(g->a_type, a, (g->m - 1) * a_row + (g->k - 1) * a_l, NAN);
  gs_element_store(g->a_type, a, 0, INFINITY);
  gs_element_store(g->a_type, a, g->m / 2 * a_row + (g->k - 1) * a_l, -INFINITY);
  gs_element_store(g->b_type, b, (g->n - 1) * b_col + (g->k - 1) * b_l, INFINITY);
  gs_element_store(g->b_type, b, g->n / 2 * b_col + g->k / 2 * b_l, NAN);
}

static void fill_c(gs_trial_t *trial, gs_random_t *random) {
  const gs_gemm_t *g = &trial->gemm;
  void *c = gs_trial_at(trial, GS_OPERAND_C);
  for (int64_t z = 0; z < g->batch; z++)
    for (int64_t j = 0; j < g->n; j++)
      for (int64_t i = 0; i < g->m; i++)
        gs_element_store(g->d_type, c, z * g->stride_d + j * g->ldd + i, normal(random));
}

bool gs_trial_make(gs_trial_t *trial, const gs_case_t *from, gs_type_t ab_type, gs_type_t d_type,
                   gs_op_t transa, gs_op_t transb, bool small, gs_random_t *random) {
  *trial = (gs_trial_t){.from = from};
  shape(trial, ab_type, d_type, transa, transb, small);
  place(trial);
  const gs_gemm_t *g = &trial->gemm;
  trial->image = malloc(trial->bytes);
  trial->reference = malloc(sizeof(double) * (size_t)(g->m * g->n * g->batch));
  if (!trial->image || !trial->reference) {
    gs_trial_free(trial);
    return false;
  }
  memset(trial->image, GS_POISON_BYTE, trial->bytes);
  fill_operand(trial, false, random);
  fill_operand(trial, true, random);
  if (from->data == GS_DATA_SPECIALS) place_specials(trial);
  if (from->beta != 0) fill_c(trial, random);
  for (int64_t i = 0; i < g->m; i++)
    gs_element_store(d_type, gs_trial_at(trial, GS_OPERAND_BIAS), i, normal(random));
  memcpy(gs_trial_at(trial, GS_OPERAND_ALPHA), &from->alpha, sizeof from->alpha);
  memcpy(gs_trial_at(trial, GS_OPERAND_BETA), &from->beta, sizeof from->beta);
  return true;
}

void gs_trial_free(gs_trial_t *trial) {
  free(trial->image);
  free(trial->reference);
  *trial = (gs_trial_t){0};
}

gs_operands_t gs_trial_operands_at(const gs_trial_t *trial, const void *const at[GS_OPERAND_COUNT]) {
  bool device = trial->from->device_scalars;
  return (gs_operands_t){.a = at[GS_OPERAND_A],
                         .b = at[GS_OPERAND_B],
                         .c = at[GS_OPERAND_C],
                         .d = (void *)(uintptr_t)at[GS_OPERAND_D],
                         .bias = at[GS_OPERAND_BIAS],
                         .alpha = device ? at[GS_OPERAND_ALPHA] : &trial->from->alpha,
                         .beta = device ? at[GS_OPERAND_BETA] : &trial->from->beta};
}

gs_operands_t gs_trial_operands(const gs_trial_t *trial, const void *base) {
  const void *at[GS_OPERAND_COUNT];
  for (int i = 0; i < GS_OPERAND_COUNT; i++) at[i] = (const char *)base + trial->operands[i].at;
  return gs_trial_operands_at(trial, at);
}

/* ---- verdict ---- */

const char *gs_trial_judge(const gs_trial_t *trial, unsigned char *after, double library_error,
                           gs_gate_t *gate) {
  const gs_gemm_t *g = &trial->gemm;
  size_t column_bytes = (size_t)g->m * gs_type_bytes[g->d_type];
  *gate = (gs_gate_t){0};
  for (int64_t z = 0; z < g->batch; z++)
    for (int64_t j = 0; j < g->n; j++) {
      size_t at = trial->operands[GS_OPERAND_D].at +
                  (size_t)(z * g->stride_d + j * g->ldd) * gs_type_bytes[g->d_type];
      gs_gate_add(gate, g->d_type, after + at, trial->reference + (z * g->n + j) * g->m, g->m);
      memcpy(after + at, trial->image + at, column_bytes);
    }
  if (memcmp(after, trial->image, trial->bytes) != 0) return "memory outside the result was written";
  gs_gate_rule_t rule = trial->from->data == GS_DATA_INTEGERS ? GS_GATE_EXACT : GS_GATE_ROUNDING;
  return gs_gate_fault(gate, rule, g->d_type, g->k, library_error);
}
