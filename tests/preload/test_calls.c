/* Calls: what is served is right, what is forwarded arrives as it was sent. */
#include "run.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shapes.h"

static char folder[128], table[256];

/* A row for each layout, type pair and shape of shapes.h, with whatever kernel is shipped for it. */
static char *grid_rows(void) {
  static char text[64 << 10];
  char id[GS_KERNEL_ID_MAX];
  size_t length = (size_t)snprintf(text, sizeof text, "%s", TABLE_HEADER(SIM_GPU_NAME, "13.1.0"));
  for (int l = 0; l < LENGTH(layouts); l++)
    for (int t = 0; t < LENGTH(type_pairs); t++)
      for (int s = 0; s < LENGTH(shapes); s++) {
        kernel_shipped(id, layouts[l], type_pairs[t].ab, type_pairs[t].d, shapes[s].even ? 16 : 2);
        length +=
            (size_t)snprintf(text + length, sizeof text - length,
                             "%c\t%c\t%d\t%d\t%s\t%s\t32f\tdefault\tsingle\t%d\t%d\t%s\t1\t1\t8\t10\t0\t0\n",
                             layouts[l][0] - 32, layouts[l][1] - 32, shapes[s].m, shapes[s].k,
                             type_pairs[t].ab, type_pairs[t].d, shapes[s].n, shapes[s].n, id);
      }
  cr_assert_lt(length, sizeof text);
  return text;
}

/* TN 64 x 16 x 64 with every epilogue, as one product and as a batch, and with half scalars. */
static char *edge_rows(void) {
  static const char *const epilogues[] = {"default", "relu", "bias", "relu_bias", "gelu", "gelu_bias"};
  static char text[4 << 10];
  size_t length = (size_t)snprintf(text, sizeof text, "%s", TABLE_HEADER(SIM_GPU_NAME, "13.1.0"));
#define EDGE_ROW(compute, epilogue, batch)                                                                   \
  length +=                                                                                                  \
      (size_t)snprintf(text + length, sizeof text - length,                                                  \
                       "T\tN\t64\t64\tf16\tf16\t%s\t%s\t%s\t1\t32\tmma_f16_f16_tn_64x64x64_s4_w4\t1\t1\t8\t" \
                       "10\t0\t0\n",                                                                         \
                       compute, epilogue, batch)
  for (int e = 0; e < LENGTH(epilogues); e++) EDGE_ROW("32f", epilogues[e], "single");
  EDGE_ROW("32f", "default", "strided:2"); /* lt.c */
  EDGE_ROW("32f", "default", "strided:3"); /* special.c */
  EDGE_ROW("16f", "default", "single");
  cr_assert_lt(length, sizeof text);
  return text;
}

static void setup(void) {
  folder_make(folder);
  file_write(folder, "edge.table", edge_rows(), table);
}

static void teardown(void) {
  folder_remove(folder);
}

TestSuite(calls, .init = setup, .fini = teardown, .timeout = 120);

Test(calls, C1_C3_C6_grid_is_served_and_right) {
  char grid[256];
  file_write(folder, "grid.table", grid_rows(), grid);
  run_t r = RUN(WITH(.table = grid), "serve");
  int64_t products = run_number(&r, "products");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(products, LENGTH(layouts) * LENGTH(type_pairs) * LENGTH(shapes) * 16);
  cr_expect_eq(RUN_SERVED(&r), products, "%ld of %ld served: %s", (long)RUN_SERVED(&r), (long)products,
               r.err);
  run_free(&r);
}

Test(calls, every_entry_and_its_twin_arrives_as_sent) {
  run_t r = RUN(WITH(.table = table), "entries");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(run_number(&r, "altered"), 0);
  cr_expect_eq(RUN_CALLS(&r), run_number(&r, "calls"));
  cr_expect_eq(RUN_SERVED(&r), 0);
  for (int entry = 0; entry < GS_ENTRY_COUNT; entry++) {
    int64_t calls = run_count(&r, entry, RUN_ANY, RUN_ANY);
    cr_expect_eq(calls, entry == GS_ENTRY_LT_MATMUL ? 1 : 2, "entry %d counted %ld times", entry,
                 (long)calls);
  }
  int64_t counted_only = 0;
#define X(name, text) counted_only += run_count(&r, GS_ENTRY_##name, GS_REASON_ENTRY, RUN_ANY);
  GS_ENTRIES_COUNTED(X)
#undef X
  cr_expect_eq(counted_only, RUN_CALLS(&r) - 7, "4 served entry points, 3 of them with a twin");
  run_free(&r);
}

Test(calls, C3_C15_errors_and_answers_are_cublas_own) {
  run_t bare = RUN(WITH(.bare = true), "errors");
  run_t r = RUN(WITH(.table = table), "errors");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect(strstr(bare.out, "no handle: status 1\n"), "%s", bare.out);
  cr_expect_str_eq(r.out, bare.out);
  run_free(&bare);
  run_free(&r);
}

Test(calls, C7_C8_special_calls) {
  run_t r = RUN(WITH(.table = table), "special");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(RUN_SERVED(&r), 10, "%ld: 2 wide, 2 half, 6 batches", (long)RUN_SERVED(&r));
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_OVERLAP, RUN_ANY), 2);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_ALIGNMENT, RUN_ANY), 1);
  run_free(&r);
}

/* special.c calls batches of 3: rows that were measured at other numbers leave them to cuBLAS. */
Test(calls, batches_of_another_number_are_forwarded) {
  char text[4 << 10], other[256];
  strcpy(text, edge_rows());
  memcpy(strstr(text, "strided:3"), "strided:4", 9);
  file_write(folder, "other.table", text, other);
  run_t r = RUN(WITH(.table = other), "special");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(RUN_SERVED(&r), 3, "%ld: 1 wide, 2 half", (long)RUN_SERVED(&r));
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_NO_ROW, RUN_ANY), 8, "1 wide, 7 batches");
  run_free(&r);
}

/* What one cublasLtMatmul of lt.c meets: a reason, with whatever status cuBLAS gives. */
typedef struct {
  char name[24];
  int reason;
  int64_t calls;
} lt_case_t;

static lt_case_t lt_cases[] = {
    {"plain", GS_REASON_SERVED, 1},
    {"relu", GS_REASON_SERVED, 1},
    {"bias", GS_REASON_SERVED, 1},
    {"relu_bias", GS_REASON_SERVED, 1},
    {"gelu", GS_REASON_SERVED, 1},
    {"gelu_bias", GS_REASON_SERVED, 1},
    {"beta", GS_REASON_SERVED, 1},
    {"device_scalars", GS_REASON_SERVED, 1},
    {"out_of_place", GS_REASON_SERVED, 1},
    {"workspace", GS_REASON_SERVED, 1},
    {"tiny_workspace", GS_REASON_BATCH_INVARIANT, 1},
    {"no_c", GS_REASON_SERVED, 1},
    {"strided", GS_REASON_SERVED, 1},
    {"aux", GS_REASON_ATTRIBUTE, 1},
    {"gradient", GS_REASON_EPILOGUE, 1},
    {"vector_scalars", GS_REASON_SCALARS, 1},
    {"amax", GS_REASON_ATTRIBUTE, 1},
    {"scale", GS_REASON_ATTRIBUTE, 1},
    {"scale_mode", GS_REASON_ATTRIBUTE, 1},
    {"fast_accumulation", GS_REASON_ATTRIBUTE, 1},
    {"sm_target", GS_REASON_ATTRIBUTE, 1},
    {"bias_type", GS_REASON_EPILOGUE, 1},
    {"bias_missing", GS_REASON_EPILOGUE, 1},
    {"unnamed", GS_REASON_ATTRIBUTE, 1},
    {"emulation", GS_REASON_ATTRIBUTE, 1},
    {"pedantic", GS_REASON_TYPE, 1},
    {"emulated", GS_REASON_TYPE, 1},
    {"order", GS_REASON_ATTRIBUTE, 1},
    {"plane", GS_REASON_ATTRIBUTE, 1},
    {"mismatch", GS_REASON_DEGENERATE, 1},
    {"no_operation", GS_REASON_DEGENERATE, 1},
    {"no_layout", GS_REASON_DEGENERATE, 1},
    {"no_handle", RUN_ANY, 0},
};

ParameterizedTestParameters(calls, C10_C12_lt_attributes) {
  return cr_make_param_array(lt_case_t, lt_cases, sizeof lt_cases / sizeof *lt_cases);
}

ParameterizedTest(lt_case_t *c, calls, C10_C12_lt_attributes) {
  setup(); /* parameterized tests do not inherit the suite's */
  run_t bare = RUN(WITH(.bare = true), "lt", c->name);
  run_t r = RUN(WITH(.table = table), "lt", c->name);
  cr_expect_eq(r.status, 0, "%s: %s", c->name, r.err);
  cr_expect_str_eq(r.out, bare.out, "%s: %s instead of %s", c->name, r.out, bare.out);
  cr_expect_eq(RUN_CALLS(&r), c->calls, "%s", c->name);
  cr_expect_eq(run_count(&r, GS_ENTRY_LT_MATMUL, c->reason, RUN_ANY), c->calls, "%s: another reason",
               c->name);
  run_free(&bare);
  run_free(&r);
  teardown();
}

Test(calls, C13_memo_follows_the_descriptor) {
  run_t r = RUN(WITH(.table = table), "lt", "memo");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_ATTRIBUTE, RUN_ANY), 1);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_ALIGNMENT, RUN_ANY), 2, "the bias, then A");
  cr_expect_eq(RUN_SERVED(&r), 5);
  run_free(&r);
}

Test(calls, C13_older_descriptor) {
  run_t r = RUN(WITH(.table = table, .environment = {"SIM_CUBLAS_VERSION=13.1.0"}), "lt-12", "bias");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(RUN_SERVED(&r), 1);
  run_free(&r);
}

Test(calls, C9_second_explicit_algorithm_means_autotuning) {
  run_t r = RUN(WITH(.table = table), "lt", "algorithms");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(RUN_SERVED(&r), 3);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_AUTOTUNING, RUN_ANY), 3);
  cr_expect_eq(run_lines(r.err, "a second explicit algorithm"), 0, "nothing is said unless asked");
  run_free(&r);
}

Test(calls, C9_a_shape_whose_caller_compares_is_named_once) {
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_LOG=2"}), "lt", "algorithms");
  cr_expect_eq(run_lines(r.err, "forwarded from now on"), 1, "%s", r.err);
  cr_expect_eq(run_lines(r.err, "library (autotuning)"), 3, "%s", r.err);
  run_free(&r);
}

/* Once: the call alone is forwarded. A second one: the shape is, from then on. */
Test(calls, C9_algorithms_of_gemm_ex) {
  char simple[256];
  file_write(folder, "explicit.table",
             TABLE_HEADER(SIM_GPU_NAME, "13.1.0") "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t1\t64\tmma"
                                                  "_f16_f16_tn_64x64x64_s4_w4\t1\t1\t8\t10\t0\t0\n",
             simple);
  run_t r = RUN(WITH(.table = simple), "algo", "explicit");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_ALGORITHM, RUN_ANY), 2);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_AUTOTUNING, RUN_ANY), 6,
               "ALGO1, the plain one behind it, and four more");
  cr_expect_eq(RUN_SERVED(&r), 3, "before, between, and another shape");
  run_free(&r);
}

#define SIMPLE_ROW                                                                                           \
  "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t1\t64\tmma_f16_f16_tn_64x64x64_s4_"                       \
  "w4\t1\t1\t8\t10\t0\t0\n"

Test(calls, S2_C2_captured_calls_replay) {
  static const char *const modes[] = {"global", "thread_local", "relaxed"};
  char simple[256];
  file_write(folder, "simple.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") SIMPLE_ROW, simple);
  for (int i = 0; i < LENGTH(modes); i++) {
    run_t r = RUN(WITH(.table = simple), "graph", modes[i]);
    cr_expect_eq(r.status, 0, "%s: %s", modes[i], r.err);
    cr_expect_eq(RUN_CALLS(&r), 6);
    cr_expect_eq(RUN_SERVED(&r), 3);
    run_free(&r);
  }
}

Test(calls, S2_sampling_survives_a_capture) {
  char simple[256];
  file_write(folder, "simple.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") SIMPLE_ROW, simple);
  run_t r = RUN(WITH(.table = simple, .environment = {"GEMMSHIM_SAMPLE=1"}), "graph", "global");
  cr_expect_eq(r.status, 0, "%s", r.err);
  run_free(&r);
}

Test(calls, S4_C10_contexts_and_modes) {
  char simple[256];
  file_write(folder, "simple.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") SIMPLE_ROW, simple);
  run_t bare = RUN(WITH(.bare = true), "contexts");
  run_t r = RUN(WITH(.table = simple), "contexts");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_str_eq(r.out, bare.out);
  cr_expect_eq(RUN_SERVED(&r), 3);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_CONTEXT, RUN_ANY), 1);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_MATH_MODE, RUN_ANY), 4);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_TYPE, RUN_ANY), 7, "pedantic, fast and emulated types");
  run_free(&bare);
  run_free(&r);
}
