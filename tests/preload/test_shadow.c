/* GEMMSHIM_VERIFY: served calls compared with the library's result, where SIM_WRONG makes kernels wrong. */
#include "run.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#define ROW(m, k)                                                                                            \
  "T\tN\t" m "\t" k                                                                                          \
  "\tf16\tf16\t32f\tdefault\tsingle\t1\t64\tmma_f16_f16_tn_64x64x64_s4_w4\t1\t1\t8\t10\t0\t0\n"
#define EACH "GEMMSHIM_VERIFY=1"

static char folder[128], table[256];

static void setup(void) {
  folder_make(folder);
  file_write(folder, "t.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW("16", "16") ROW("128", "128"),
             table);
}

static void teardown(void) {
  folder_remove(folder);
}

TestSuite(shadow, .init = setup, .fini = teardown, .timeout = 120);

static void fared_well(run_t *r) {
  cr_expect_eq(r->status, 0, "exit status %d: %s", r->status, r->err);
  cr_expect_eq(run_number(r, "wrong"), 0, "%s", r->err);
  run_free(r);
}

/* The last comparison is still on its way when the program ends. */
Test(shadow, right_results_stay_served) {
  run_t r =
      RUN(WITH(.table = table, .environment = {EACH, "GEMMSHIM_LOG=1"}), "probe", "16", "4", "16", "50");
  gs_slot_t slot = run_slot(&r);
  cr_expect_eq(RUN_SERVED(&r), 50);
  cr_expect(slot.compared == 49 && slot.off == 0 && slot.worst_off < 1, "%lu, %g",
            (unsigned long)slot.compared, (double)slot.worst_off);
  cr_expect_eq(run_lines(r.err, "49 calls compared with cuBLAS's, 0 off, 0 not comparable"), 1, "%s", r.err);
  fared_well(&r);
}

Test(shadow, one_call_in_so_many) {
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_VERIFY=10"}), "probe", "16", "4", "16", "95");
  cr_expect_eq(RUN_SERVED(&r), 95);
  cr_expect_eq(run_slot(&r).compared, 10);
  fared_well(&r);
}

Test(shadow, off_compares_nothing) {
  run_t r =
      RUN(WITH(.table = table, .environment = {"SIM_WRONG=mma_*:all:0.1"}), "probe", "16", "4", "16", "9");
  cr_expect_eq(RUN_SERVED(&r), 9);
  cr_expect_eq(run_slot(&r).compared, 0);
  cr_expect_eq(run_number(&r, "wrong"), 1, "the stand-in's kernel was right");
  run_free(&r);
}

/* As wrong as sums in fp16, one element only, a NaN: said once, and the row is never launched again. */
Test(shadow, wrong_results_retire_their_row) {
  static const struct {
    const char *wrong;
    float off; /* at least */
  } cases[] = {{"SIM_WRONG=mma_*:all:0.002", 1},
               {"SIM_WRONG=mma_*:last:0.5", 10},
               {"SIM_WRONG=mma_*:last:nan", 1e30f}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run_t r =
        RUN(WITH(.table = table, .environment = {EACH, cases[i].wrong}), "probe", "128", "8", "128", "30");
    gs_slot_t slot = run_slot(&r);
    cr_expect_eq(RUN_SERVED(&r), 1, "%s: %ld served", cases[i].wrong, (long)RUN_SERVED(&r));
    cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_WRONG, RUN_ANY), 29);
    cr_expect(slot.compared == 1 && slot.off == 1 && slot.worst_off > cases[i].off, "%g",
              (double)slot.worst_off);
    cr_expect_eq(run_lines(r.err, "the row is retired"), 1, "%s", r.err);
    cr_expect_eq(run_lines(r.err, "mma_f16_f16_tn_64x64x64_s4_w4 is "), 1);
    fared_well(&r);
  }
}

/* serve.c: every layout, type pair, leading dimension and scalar, each result checked by the client too. C is read
 * by beta in place, so the library must have had its own copy. */
Test(shadow, nothing_changes_for_the_program) {
  static const char *const clients[] = {"serve", "special", "graph", "contexts"};
  for (int i = 0; i < 4; i++) {
    run_t plain = RUN(WITH(.table = table), clients[i]);
    run_t r = RUN(WITH(.table = table, .environment = {EACH}), clients[i]);
    cr_expect_eq(r.status, plain.status, "%s: %s", clients[i], r.err);
    cr_expect_str_eq(r.out, plain.out);
    cr_expect_eq(RUN_SERVED(&r), RUN_SERVED(&plain));
    cr_expect_eq(run_lines(r.err, "retired"), 0, "%s", r.err);
    run_free(&plain);
    run_free(&r);
  }
}

Test(shadow, never_under_capture) {
  run_t r = RUN(WITH(.table = table, .environment = {EACH, "GEMMSHIM_LOG=1"}), "probe", "16", "4", "16", "9",
                "capture");
  cr_expect_eq(RUN_SERVED(&r), 9);
  cr_expect_eq(run_lines(r.err, "0 calls compared with cuBLAS's, 0 off, 9 not comparable"), 1, "%s", r.err);
  fared_well(&r);
}

Test(shadow, explicit_algorithms_are_compared_too) {
  run_t r = RUN(WITH(.table = table, .environment = {EACH}), "probe", "16", "4", "16", "9", "algorithm");
  cr_expect_eq(RUN_SERVED(&r), 9);
  cr_expect_eq(run_slot(&r).compared, 8);
  fared_well(&r);
}

/* Without memory, driver or events there is no comparison, and nothing else is amiss. */
Test(shadow, what_cannot_be_compared_is_served_all_the_same) {
  static const char *const faults[] = {"GEMMSHIM_VRAM_MB=0",

                                       "SIM_FAIL=cuMemHostRegister_v2:*=1",
                                       "SIM_FAIL=cuEventCreate:*=2",
                                       "SIM_FAIL=cuEventRecord:*=700",
                                       "SIM_FAIL=cuMemcpyDtoHAsync_v2:*=700",
                                       "SIM_FAIL=cuCtxGetId:*=201",
                                       "SIM_FAIL=cuMemsetD8Async:*=700",
                                       "SIM_FAIL=cuEventElapsedTime:*=400",
                                       "SIM_FAIL=cuLibraryGetKernel:2=500"};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    run_t r = RUN(WITH(.table = table, .environment = {EACH, faults[i], "SIM_WRONG=none:all:1"}), "probe",
                  "16", "4", "16", "12");
    cr_expect_eq(RUN_SERVED(&r), 12, "%s: %ld served: %s", faults[i], (long)RUN_SERVED(&r), r.err);
    cr_expect_eq(run_slot(&r).compared, 0, "%s", faults[i]);
    fared_well(&r);
  }
}

Test(shadow, the_librarys_own_failure_says_nothing_of_the_kernel) {
  run_t r = RUN(WITH(.table = table, .environment = {EACH, "SIM_FAIL=cublasGemmEx:*=14"}), "probe", "16", "4",
                "16", "12");
  cr_expect_eq(RUN_SERVED(&r), 12);
  cr_expect_eq(run_slot(&r).compared, 0);
  fared_well(&r);
}

/* A refused launch after the library's turn: the call goes to the library, once, with its own arguments. */
Test(shadow, a_refused_launch_is_forwarded) {
  run_t r = RUN(WITH(.table = table, .environment = {EACH, "SIM_FAIL=cuLaunchKernel:3=701"}), "probe", "16",
                "4", "16", "12");
  cr_expect_eq(RUN_SERVED(&r), 1, "kernel, comparison, refused kernel");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_LAUNCH_FAILED, RUN_ANY), 11);
  fared_well(&r);
}

Test(shadow, S3_threads_on_one_stream_do_not_mix_results) {
  run_t r = RUN(WITH(.table = table, .environment = {EACH}), "threads", "16", "60");
  cr_expect_eq(RUN_SERVED(&r), 16 * 60);
  cr_expect_eq(run_slot(&r).off, 0, "%s", r.err);
  cr_expect_gt(run_slot(&r).compared, 0);
  fared_well(&r);
}
