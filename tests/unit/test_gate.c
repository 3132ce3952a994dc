/* The judge must fail a product that was summed in 16 bits, and pass one summed in fp32. Both are computed
 * here as tensor cores do: 16 products at a time, exactly, then added to the accumulator, which is rounded.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "gate.h"

enum { M = 24, N = 20 };

typedef struct {
  gs_type_t ab, d, accumulator;
  int k, splits;
  gs_type_t partial; /* what the sum of a split is rounded to before it is added to the others */
  double scale;
  bool cancelling; /* integers whose partial sums pass 2048 and cancel */
} gs_product_t;

static uint64_t random_state;

static double uniform(void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
}
static double normal(void) {
  return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}
static int integer(int lo, int hi) {
  return lo + (int)(uniform() * (hi - lo + 1));
}

static void fill(const gs_product_t *p, double *a, double *b) {
  for (int l = 0; l < p->k; l++) {
    for (int i = 0; i < M; i++) {
      double mirrored = -a[i + (size_t)(p->k - 1 - l) * M] + (l % 13 == 0 ? integer(-1, 1) : 0);
      double value = !p->cancelling ? p->scale * normal() : l < p->k / 2 ? 2 * integer(0, 3) + 1 : mirrored;
      a[i + (size_t)l * M] = gs_element_round(p->ab, value);
    }
    for (int j = 0; j < N; j++) {
      double mirrored = b[(size_t)j * p->k + (p->k - 1 - l)];
      double value = !p->cancelling ? normal() : l < p->k / 2 ? integer(1, 3) : mirrored;
      b[(size_t)j * p->k + l] = gs_element_round(p->ab, value);
    }
  }
}

static double emulate(const gs_product_t *p, const double *a, const double *b, int i, int j) {
  int steps = (p->k + 15) / 16;
  double sum = 0;
  for (int split = 0; split < p->splits; split++) {
    double accumulator = 0;
    for (int s = steps * split / p->splits; s < steps * (split + 1) / p->splits; s++) {
      double step = accumulator;
      for (int l = 16 * s; l < 16 * s + 16 && l < p->k; l++)
        step += a[i + (size_t)l * M] * b[(size_t)j * p->k + l];
      accumulator = gs_element_round(p->accumulator, step);
    }
    sum = gs_element_round(GS_TYPE_F32, sum + gs_element_round(p->partial, accumulator));
  }
  return sum;
}

static gs_gate_t judge(gs_product_t p) {
  random_state = 42;
  double *a = malloc(sizeof(double) * M * (size_t)p.k), *b = malloc(sizeof(double) * N * (size_t)p.k);
  cr_assert(a && b);
  fill(&p, a, b);
  gs_gate_t gate = {0};
  for (int j = 0; j < N; j++) {
    float d[M];
    double reference[M] = {0};
    for (int i = 0; i < M; i++) {
      for (int l = 0; l < p.k; l++) reference[i] += a[i + (size_t)l * M] * b[(size_t)j * p.k + l];
      gs_element_store(p.d, d, i, emulate(&p, a, b, i, j));
    }
    gs_gate_add(&gate, p.d, d, reference, M);
  }
  free(a);
  free(b);
  return gate;
}

static const char *fault(gs_product_t p) {
  gs_gate_t gate = judge(p);
  return gs_gate_fault(&gate, p.cancelling ? GS_GATE_EXACT : GS_GATE_ROUNDING, p.d, p.k, -1);
}

static gs_product_t product(gs_type_t ab, gs_type_t d, gs_type_t accumulator, int k) {
  return (gs_product_t){ab, d, accumulator, k, .splits = 1, .partial = GS_TYPE_F32, .scale = 1};
}

static const gs_type_t pairs[][2] = {{GS_TYPE_F16, GS_TYPE_F16},
                                     {GS_TYPE_F16, GS_TYPE_F32},
                                     {GS_TYPE_BF16, GS_TYPE_BF16},
                                     {GS_TYPE_BF16, GS_TYPE_F32}};
static const int depths[] = {64, 1024, 8192};
static const double scales[] = {1, 16, 1.0 / 16};

/* The fault of the first product, over types, depths and scales, that passes (or fails) as it should not. */
static void expect(gs_type_t accumulator, int first_pair, int last_pair, bool pass) {
  for (int t = first_pair; t <= last_pair; t++)
    for (int d = 0; d < 3; d++)
      for (int s = 0; s < 3; s++) {
        gs_product_t p = product(pairs[t][0], pairs[t][1], accumulator, depths[d]);
        p.scale = scales[s];
        const char *why = fault(p);
        cr_assert(!why == pass, "types %d, k %d, scale %g: %s", t, p.k, p.scale, why ? why : "passes");
      }
}

Test(gate, fp32_accumulation_passes) {
  expect(GS_TYPE_F32, 0, 3, true);
}
Test(gate, fp16_accumulation_fails) {
  expect(GS_TYPE_F16, 0, 1, false);
}
Test(gate, bf16_accumulation_fails) {
  expect(GS_TYPE_BF16, 2, 3, false);
}

Test(gate, split_k_in_fp32_passes_and_in_16_bits_fails) {
  for (int t = 0; t < 4; t++) {
    gs_product_t p = product(pairs[t][0], pairs[t][1], GS_TYPE_F32, 4096);
    p.splits = 4;
    cr_assert_null(fault(p));
    p.partial = p.ab;
    cr_assert(fault(p), "types %d: partial sums rounded to 16 bits pass", t);
  }
}

Test(gate, cancelling_integers_are_exact_in_fp32_only) {
  for (int t = 0; t < 4; t++) {
    gs_product_t p = product(pairs[t][0], pairs[t][1], GS_TYPE_F32, 2048);
    p.cancelling = true;
    cr_assert_null(fault(p));
    p.accumulator = p.ab;
    cr_assert(fault(p), "types %d: a 16-bit sum is exact", t);
  }
}

Test(gate, f32_is_held_to_twice_the_library) {
  gs_gate_t gate = judge(product(GS_TYPE_F16, GS_TYPE_F32, GS_TYPE_F32, 4096));
  double error = gs_gate_error(&gate);
  cr_assert_gt(error, 0);
  /* Neighbours of half the error: below it fails, above it passes, and 0 stands for one unit of fp32. */
  cr_assert_null(gs_gate_fault(&gate, GS_GATE_ROUNDING, GS_TYPE_F32, 4096, error / 1.9));
  cr_assert(error < 0x1p-23 || gs_gate_fault(&gate, GS_GATE_ROUNDING, GS_TYPE_F32, 4096, error / 2.1));
}

/* One column against itself, with one element replaced. */
static const char *with_element(gs_type_t type, double element, double reference_element) {
  double reference[4] = {1, -2, reference_element, 4};
  float d[4];
  for (int i = 0; i < 4; i++) gs_element_store(type, d, i, reference[i]);
  gs_element_store(type, d, 2, element);
  gs_gate_t gate = {0};
  gs_gate_add(&gate, type, d, reference, 4);
  return gs_gate_fault(&gate, GS_GATE_ROUNDING, type, 16, -1);
}

Test(gate, C4_nan_and_infinity_only_where_they_belong) {
  const gs_type_t types[] = {GS_TYPE_F16, GS_TYPE_BF16, GS_TYPE_F32};
  for (int t = 0; t < 3; t++) {
    cr_assert_null(with_element(types[t], 3, 3));
    cr_assert_null(with_element(types[t], NAN, NAN));
    cr_assert_null(with_element(types[t], -INFINITY, -INFINITY));
    cr_assert(with_element(types[t], NAN, 3));
    cr_assert(with_element(types[t], 3, NAN));
    cr_assert(with_element(types[t], INFINITY, -INFINITY));
    cr_assert(with_element(types[t], INFINITY, 3));
    cr_assert(with_element(types[t], 0, INFINITY));
  }
  cr_assert_null(with_element(GS_TYPE_F16, INFINITY, 70000), "fp16 overflows where the reference does");
}

Test(gate, poison_is_unwritten_even_where_nan_is_due) {
  double reference[2] = {NAN, 1};
  uint16_t d[2] = {0xffff, 0x3c00};
  gs_gate_t gate = {0};
  gs_gate_add(&gate, GS_TYPE_F16, d, reference, 2);
  cr_assert_eq(gate.unwritten, 1);
  cr_assert(gs_gate_fault(&gate, GS_GATE_ROUNDING, GS_TYPE_F16, 16, -1));
}

Test(gate, nothing_compared_is_no_pass) {
  gs_gate_t gate = {0};
  cr_assert(gs_gate_fault(&gate, GS_GATE_EXACT, GS_TYPE_F16, 16, -1));
}

Test(gate, elements_round_once_to_even) {
  /* 2049 lies between 2048 and 2050, and just above it in double only: one rounding goes up, two go down. */
  cr_assert_eq(gs_element_round(GS_TYPE_F16, 2049), 2048);
  cr_assert_eq(gs_element_round(GS_TYPE_F16, 2049 + 1e-9), 2050);
  cr_assert_eq(gs_element_round(GS_TYPE_F16, 2051), 2052);
  cr_assert_eq(gs_element_round(GS_TYPE_F16, 65519), 65504);
  cr_assert(isinf(gs_element_round(GS_TYPE_F16, 65520)));
  cr_assert_eq(gs_element_round(GS_TYPE_F16, ldexp(1, -25)), 0);
  cr_assert_eq(gs_element_round(GS_TYPE_F16, ldexp(1.5, -25)), ldexp(1, -24));
  cr_assert_eq(gs_element_round(GS_TYPE_BF16, 257), 256);
}

Test(gate, every_16_bit_pattern_survives_a_round_trip) {
  const gs_type_t types[] = {GS_TYPE_F16, GS_TYPE_BF16};
  for (int t = 0; t < 2; t++)
    for (uint32_t bits = 0; bits < 65536; bits++) {
      uint16_t from = (uint16_t)bits, to;
      double value = gs_element_load(types[t], &from, 0);
      gs_element_store(types[t], &to, 0, value);
      cr_assert(isnan(value) ? isnan(gs_element_load(types[t], &to, 0)) : from == to,
                "type %d: %04x became %04x", types[t], from, to);
    }
}
