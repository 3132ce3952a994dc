/* GEMMSHIM_UNPROVEN=probation: rows measured with another cuBLAS, tried on the program's own calls. */
#include "run.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define ROW(m, k)                                                                                            \
  "T\tN\t" m "\t" k                                                                                          \
  "\tf16\tf16\t32f\tdefault\tsingle\t1\t64\tmma_f16_f16_tn_64x64x64_s4_w4\t1\t1\t8\t10\t0\t0\n"
#define ON_PROBATION "GEMMSHIM_UNPROVEN=probation"
#define KERNEL_SLOW  "SIM_US=mma_*:300"
#define LIBRARY_SLOW "SIM_US=cublas*:300,lt_*:300"

static char folder[128], table[256];

static void setup(void) {
  folder_make(folder);
  file_write(folder, "t.table", TABLE_HEADER(SIM_GPU_NAME, "12.1.0") ROW("16", "16") ROW("128", "128"),
             table);
}

static void teardown(void) {
  folder_remove(folder);
}

TestSuite(probation, .init = setup, .fini = teardown, .timeout = 120);

static void fared_well(run_t *r) {
  cr_expect_eq(r->status, 0, "exit status %d: %s", r->status, r->err);
  cr_expect_eq(run_number(r, "wrong"), 0, "%s", r->err);
  run_free(r);
}

/* Four slow times a side, and the untimed one, are enough, 16 the most where the machine is busy with other things;
 * however long the program goes on. */
Test(probation, a_slow_row_loses_and_is_never_called_again) {
  static const char *const calls[] = {"60", "600"};
  for (int i = 0; i < 2; i++) {
    run_t r = RUN(WITH(.table = table, .environment = {ON_PROBATION, KERNEL_SLOW}), "probe", "16", "4", "16",
                  calls[i]);
    gs_slot_t slot = run_slot(&r);
    cr_expect(RUN_SERVED(&r) >= 5 && RUN_SERVED(&r) <= 17, "%ld served", (long)RUN_SERVED(&r));
    cr_expect_gt(run_count(&r, RUN_ANY, GS_REASON_TRIAL_LOST, RUN_ANY), i ? 560 : 20);
    cr_expect_eq(slot.trial, GS_TRIAL_LOST);
    cr_expect(slot.trial_us[1] > 250 && slot.trial_us[0] < 250, "%g and %g", (double)slot.trial_us[0],
              (double)slot.trial_us[1]);
    fared_well(&r);
  }
}

Test(probation, a_fast_row_wins_and_serves_from_then_on) {
  run_t r =
      RUN(WITH(.table = table, .environment = {ON_PROBATION, LIBRARY_SLOW}), "probe", "16", "4", "16", "200");
  gs_slot_t slot = run_slot(&r);
  cr_expect_eq(slot.trial, GS_TRIAL_WON);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_TRIAL, RUN_ANY), 10,
               "9 of the library's turns, and one more");
  cr_expect_eq(RUN_SERVED(&r), 190);
  fared_well(&r);
}

Test(probation, unproven_rows_are_forwarded_unless_asked_for) {
  run_t r = RUN(WITH(.table = table, .environment = {LIBRARY_SLOW}), "probe", "16", "4", "16", "50");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_UNPROVEN, RUN_ANY), 50);
  cr_expect_eq(run_slot(&r).trial, GS_TRIAL_NONE);
  fared_well(&r);
}

Test(probation, a_short_program_leaves_it_open) {
  run_t r =
      RUN(WITH(.table = table, .environment = {ON_PROBATION, LIBRARY_SLOW}), "probe", "16", "4", "16", "9");
  cr_expect_eq(run_slot(&r).trial, GS_TRIAL_OPEN);
  cr_expect_eq(RUN_SERVED(&r), 4, "every other call");
  fared_well(&r);
}

Test(probation, never_under_capture_nor_with_an_explicit_algorithm) {
  static const char *const ways[] = {"capture", "algorithm"};
  for (int i = 0; i < 2; i++) {
    run_t r = RUN(WITH(.table = table, .environment = {ON_PROBATION, LIBRARY_SLOW}), "probe", "16", "4", "16",
                  "40", ways[i]);
    cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_UNPROVEN, RUN_ANY), 40, "%s", ways[i]);
    cr_expect_eq(RUN_SERVED(&r), 0);
    fared_well(&r);
  }
}

Test(probation, what_cannot_be_timed_or_launched_does_not_win) {
  static const struct {
    const char *fault;
    int served; /* at most */
    gs_trial_verdict_t verdict;
  } cases[] = {{"SIM_FAIL=cuEventRecord:*=700", 1, GS_TRIAL_OPEN},
               {"SIM_FAIL=cuEventCreate:*=2", 1, GS_TRIAL_OPEN},
               {"SIM_FAIL=cuEventElapsedTime:*=400", 2, GS_TRIAL_LOST},
               {"SIM_FAIL=cuEventQuery:*=600", 17, GS_TRIAL_OPEN},
               {"SIM_FAIL=cuLaunchKernel:3=701", 2, GS_TRIAL_LOST},
               {"SIM_FAIL=cuLibraryLoadData:*=209", 0, GS_TRIAL_LOST},
               {"SIM_FAIL=cuStreamIsCapturing:*=900", 0, GS_TRIAL_OPEN}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run_t r = RUN(WITH(.table = table, .environment = {ON_PROBATION, LIBRARY_SLOW, cases[i].fault}), "probe",
                  "16", "4", "16", "100");
    cr_expect_leq(RUN_SERVED(&r), cases[i].served, "%s: %ld served", cases[i].fault, (long)RUN_SERVED(&r));
    cr_expect_eq(run_slot(&r).trial, cases[i].verdict, "%s: %u", cases[i].fault, run_slot(&r).trial);
    fared_well(&r);
  }
}

/* Sampling takes its own pairs; a trial of 16 threads is still one trial. */
Test(probation, threads_share_a_trial) {
  run_t r = RUN(WITH(.table = table, .environment = {ON_PROBATION, "SIM_US=mma_*:3000", "GEMMSHIM_SAMPLE=3"}),
                "threads", "16", "40", "streams");
  cr_expect_eq(run_slot(&r).trial, GS_TRIAL_LOST);
  cr_expect_leq(RUN_SERVED(&r), 17, "%ld served", (long)RUN_SERVED(&r));
  fared_well(&r);
}

Test(probation, a_word_that_is_not_known_is_said) {
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_UNPROVEN=yes", LIBRARY_SLOW}), "probe", "16",
                "4", "16", "5");
  cr_expect_eq(run_lines(r.err, "GEMMSHIM_UNPROVEN=yes: neither forward nor probation"), 1, "%s", r.err);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_UNPROVEN, RUN_ANY), 5);
  fared_well(&r);
}
