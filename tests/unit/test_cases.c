/* verify's cases: that a right result passes every one of them, and that each kind of fault is seen. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "reference.h"

static const gs_case_t *case_named(const char *name) {
  for (int i = 0; i < gs_case_count; i++)
    if (!strcmp(gs_cases[i].name, name)) return &gs_cases[i];
  cr_assert_fail("no case %s", name);
  return NULL;
}

/* The trial's product on the CPU, into D of image, or without gaps as doubles into it. */
static void compute(const gs_trial_t *trial, unsigned char *image, double *doubles) {
  const gs_gemm_t *g = &trial->gemm;
  gs_operands_t o = gs_trial_operands(trial, image);
  gs_kernel_t kernel = {.ab_type = g->a_type, .d_type = g->d_type, .transa = g->transa, .transb = g->transb};
  gs_params_t p = {.a = o.a, .b = o.b, .c = o.c, .d = o.d, .bias = o.bias};
  gs_kernel_params(g, 1, 1, &p);
  p.alpha_ptr = o.alpha, p.beta_ptr = o.beta;
  product_t product = product_of_kernel(&kernel, &p, g->batch);
  if (doubles)
    product.d = doubles, product.d_type = CUDA_R_64F, product.ldd = g->m, product.stride_d = g->m * g->n;
  cr_assert(product_run(&product));
}

typedef struct {
  gs_trial_t trial;
  unsigned char *after;
} gs_done_t;

static gs_done_t done(const gs_case_t *from, gs_type_t ab, gs_type_t d, gs_op_t transa, gs_op_t transb) {
  gs_random_t random = {3};
  gs_done_t made;
  cr_assert(gs_trial_make(&made.trial, from, ab, d, transa, transb, true, &random));
  made.after = malloc(made.trial.bytes);
  memcpy(made.after, made.trial.image, made.trial.bytes);
  compute(&made.trial, made.after, NULL);
  compute(&made.trial, made.trial.image, made.trial.reference);
  return made;
}

static const char *verdict(gs_done_t *made) {
  gs_gate_t gate;
  return gs_trial_judge(&made->trial, made->after, -1, &gate);
}

static void drop(gs_done_t *made) {
  gs_trial_free(&made->trial);
  free(made->after);
}

Test(cases, a_right_result_passes_every_case) {
  const gs_type_t pairs[][2] = {{GS_TYPE_F16, GS_TYPE_F16}, {GS_TYPE_BF16, GS_TYPE_F32}};
  for (int i = 0; i < gs_case_count; i++)
    for (int t = 0; t < 2; t++)
      for (int layout = 0; layout < 4; layout++) {
        gs_done_t made = done(&gs_cases[i], pairs[t][0], pairs[t][1], layout & 1 ? GS_OP_T : GS_OP_N,
                              layout & 2 ? GS_OP_T : GS_OP_N);
        const char *why = verdict(&made);
        cr_expect_null(why, "%s, types %d, layout %d: %s", gs_cases[i].name, t, layout, why);
        drop(&made);
      }
}

/* One byte, two bytes: all that a kernel must not touch. */
static void expect_seen(const char *name, size_t (*where)(const gs_trial_t *), const char *what) {
  gs_done_t made = done(case_named(name), GS_TYPE_F16, GS_TYPE_F16, GS_OP_T, GS_OP_N);
  made.after[where(&made.trial)] ^= 0x11;
  cr_assert(verdict(&made), "%s: %s is not seen", name, what);
  drop(&made);
}

static size_t before_d(const gs_trial_t *t) {
  return t->operands[GS_OPERAND_D].at - 1;
}
static size_t in_gap(const gs_trial_t *t) {
  return t->operands[GS_OPERAND_D].at + 2 * (size_t)t->gemm.m;
}
static size_t after_d(const gs_trial_t *t) {
  return t->operands[GS_OPERAND_D].at + 2 * (size_t)(t->gemm.ldd * t->gemm.n);
}
static size_t in_a(const gs_trial_t *t) {
  return t->operands[GS_OPERAND_A].at;
}
static size_t in_c(const gs_trial_t *t) {
  return t->operands[GS_OPERAND_C].at;
}
static size_t between_batches(const gs_trial_t *t) {
  return t->operands[GS_OPERAND_D].at + 2 * (size_t)t->gemm.stride_d - 1;
}

Test(cases, C5_writes_outside_d_are_seen) {
  expect_seen("tails", before_d, "a write before D");
  expect_seen("tails", in_gap, "a write into the gap below a column");
  expect_seen("tails", after_d, "a write after D");
  expect_seen("tails", in_a, "a write to A");
  expect_seen("alpha_beta", in_c, "a write to C");
  expect_seen("batch_3", between_batches, "a write between two products of a batch");
}

Test(cases, an_unwritten_or_wrong_element_is_seen) {
  gs_done_t made = done(case_named("tails"), GS_TYPE_F16, GS_TYPE_F16, GS_OP_N, GS_OP_N);
  const gs_gemm_t *g = &made.trial.gemm;
  void *d = made.after + made.trial.operands[GS_OPERAND_D].at;
  int64_t last = (g->n - 1) * g->ldd + g->m - 1;
  double right = gs_element_load(GS_TYPE_F16, d, last);
  memset((uint16_t *)d + last, GS_POISON_BYTE, 2);
  unsigned char *copy = malloc(made.trial.bytes); /* judging puts D back */
  memcpy(copy, made.after, made.trial.bytes);
  cr_assert(verdict(&made));
  memcpy(made.after, copy, made.trial.bytes);
  gs_element_store(GS_TYPE_F16, d, last, right + 8);
  cr_assert(verdict(&made));
  memcpy(made.after, copy, made.trial.bytes);
  gs_element_store(GS_TYPE_F16, d, last, right);
  cr_assert_null(verdict(&made));
  free(copy);
  drop(&made);
}

Test(cases, C3_C5_what_is_not_to_be_read_is_nan) {
  gs_done_t made = done(case_named("device_alpha_0"), GS_TYPE_F16, GS_TYPE_F16, GS_OP_N, GS_OP_N);
  cr_assert(isnan(gs_element_load(GS_TYPE_F16, gs_trial_at(&made.trial, GS_OPERAND_A), 0)));
  drop(&made);
  made = done(case_named("tails"), GS_TYPE_F16, GS_TYPE_F16, GS_OP_N, GS_OP_N);
  const gs_trial_t *t = &made.trial;
  cr_assert(isnan(gs_element_load(GS_TYPE_F16, gs_trial_at(t, GS_OPERAND_C), 0)), "C, where beta is 0");
  cr_assert(isnan(gs_element_load(GS_TYPE_F16, gs_trial_at(t, GS_OPERAND_A), -1)), "before A");
  cr_assert(isnan(gs_element_load(GS_TYPE_F16, gs_trial_at(t, GS_OPERAND_A), t->gemm.m)),
            "the gap below a column of A");
  cr_assert(isnan(gs_element_load(GS_TYPE_F16, gs_trial_at(t, GS_OPERAND_B), t->gemm.ldb * t->gemm.n)),
            "after B");
  drop(&made);
}

/* The full-size case, not the cut one: its partial sums must pass what fp16 holds exactly, and cancel. */
Test(cases, integers_pass_2048_and_cancel) {
  gs_random_t random = {5};
  gs_trial_t trial;
  cr_assert(gs_trial_make(&trial, case_named("integers"), GS_TYPE_F16, GS_TYPE_BF16, GS_OP_T, GS_OP_N, false,
                          &random));
  const gs_gemm_t *g = &trial.gemm;
  double sum = 0, largest = 0;
  int odd_past_2048 = 0;
  for (int64_t l = 0; l < g->k; l++) {
    sum += gs_element_load(GS_TYPE_F16, gs_trial_at(&trial, GS_OPERAND_A), l) *
           gs_element_load(GS_TYPE_F16, gs_trial_at(&trial, GS_OPERAND_B), l);
    odd_past_2048 += sum > 2048 && fmod(sum, 2) != 0;
    largest = fmax(largest, sum);
  }
  cr_assert_gt(largest, 4096);
  cr_assert_gt(odd_past_2048, 100);
  cr_assert_lt(fabs(sum), 256, "exact in bf16");
  gs_trial_free(&trial);
}
