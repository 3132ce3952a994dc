/* Every call that the library makes of the driver, of cuBLAS and of the C library fails once, one in each run of
 * scenario.c: whatever it is, the program's results are right, and a status that it gets is cuBLAS's own. */
#include "run.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define KERNEL "mma_f16_f16_tn_64x64x64_s4_w4"
#define ROWS                                                                                                 \
  "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t8\t8\t" KERNEL "\t1\t1\t5\t10\t0\t0\n"                    \
  "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t40\t40\t" KERNEL "\t9\t1\t5\t10\t0\t0\n"                  \
  "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tstrided:2\t8\t8\t" KERNEL "\t1\t1\t5\t10\t0\t0\n"                 \
  "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t16\t16\tlt_3_t19_s0_r2_z0_c0_i0_h0\t4\t1\t5\t10\t0\t0\n"

static char folder[128], proven[256], unproven[256];

static void setup(void) {
  folder_make(folder);
  file_write(folder, "proven.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROWS, proven);
  file_write(folder, "unproven.table", TABLE_HEADER(SIM_GPU_NAME, "12.1.0") ROWS, unproven);
}

static void teardown(void) {
  folder_remove(folder);
}

TestSuite(sweep, .init = setup, .fini = teardown, .timeout = 1200);

enum { MOST = 3000 };

/* False: there was no nth call. */
static bool survives(run_t *r, const char *what, const char *said) {
  bool hit = strstr(r->err, said);
  cr_expect_eq(r->status, 0, "%s: status %d: %s", what, r->status, r->err);
  cr_expect_eq(run_number(r, "wrong"), 0, "%s: %s", what, r->err);
  cr_expect_leq(run_number(r, "verbatim"), 1, "%s: %s", what, r->err);
  run_free(r);
  return hit;
}

/* Runs until nothing fails any more; at least so many calls must have been there to fail. */
static void sweep(setup_t setup, const char *variable, const char *said, int least) {
  int n = 0, first = 0;
  while (setup.environment[first]) first++;
  bool hit = true;
  while (hit && n < MOST) {
    char fault[64];
    snprintf(fault, sizeof fault, "%s%d", variable, ++n);
    setup.environment[first] = fault;
    run_t r = RUN(&setup, "scenario");
    hit = survives(&r, fault, said);
  }
  cr_expect(n > least && n < MOST, "%s: %d calls", variable, n - 1);
}

#define PROVEN .table = proven
#define WATCHED                                                                                              \
  .table = proven, .environment = {"GEMMSHIM_VERIFY=1", "GEMMSHIM_DUMP=/nonexistent", "GEMMSHIM_LOG=2"}
#define SAMPLED   .table = proven, .environment = {"GEMMSHIM_SAMPLE=1"}
#define ON_TRIAL  .table = unproven, .environment = {"GEMMSHIM_UNPROVEN=probation"}
#define SIM_SAYS  "stand-in: "
#define LIBC_SAYS "faulty: "

Test(sweep, nothing_fails) {
  run_t r = RUN(WITH(PROVEN), "scenario");
  cr_expect_eq(RUN_SERVED(&r), 18, "%ld: all but n = 63: %s", (long)RUN_SERVED(&r), r.err);
  survives(&r, "nothing", "-");
}

Test(sweep, C15_driver) {
  sweep((setup_t){PROVEN}, "SIM_FAIL_OURS=cu:", SIM_SAYS, 100);
}

Test(sweep, C15_driver_with_comparisons) {
  sweep((setup_t){WATCHED}, "SIM_FAIL_OURS=cu:", SIM_SAYS, 150);
}

Test(sweep, C15_driver_with_samples) {
  sweep((setup_t){SAMPLED}, "SIM_FAIL_OURS=cu:", SIM_SAYS, 150);
}

Test(sweep, C15_driver_with_replays_counted) {
  sweep((setup_t){PROVEN, .also = BUILD "/libgemmshim-graphs.so"}, "SIM_FAIL_OURS=cu:", SIM_SAYS, 100);
}

Test(sweep, C15_driver_on_probation) {
  sweep((setup_t){ON_TRIAL}, "SIM_FAIL_OURS=cu:", SIM_SAYS, 100);
}

Test(sweep, C15_cublas) {
  sweep((setup_t){WATCHED}, "SIM_FAIL_OURS=cublas:", SIM_SAYS, 50);
}

Test(sweep, C15_cublasLt) {
  sweep((setup_t){WATCHED}, "SIM_FAIL_OURS=cublasLt:", SIM_SAYS, 100);
}

Test(sweep, T4_files_and_memory) {
  if (strlen(PRELOAD) != strlen(BUILD "/libgemmshim.so")) cr_skip_test("a sanitizer has its own malloc");
  sweep((setup_t){WATCHED, .also = BUILD "/tests/preload/faulty.so"}, "FAULTY=", LIBC_SAYS, 20);
}
