/* Products drawn at random, each checked by random.c, and the memory around its result too. A million of them:
 * make random-calls. */
#include "run.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[128], table[256];

static void setup(void) {
  folder_make(folder);
  run_t rows = RUN(WITH(.bare = true), "random", "rows");
  static const char header[] = TABLE_HEADER(SIM_GPU_NAME, "13.1.0");
  char *text = malloc(strlen(rows.out) + sizeof header);
  cr_assert_not_null(text);
  strcpy(text, header);
  strcat(text, rows.out);
  file_write(folder, "random.table", text, table);
  free(text);
  run_free(&rows);
}

static void teardown(void) {
  folder_remove(folder);
}

TestSuite(random, .init = setup, .fini = teardown, .timeout = 300);

/* So many calls with what the option asks for; who served each is in a log that the program reads. */
static run_t logged(const char *count, const char *seed, const char *option) {
  char path[256], log[280];
  file_write(folder, "log", "", path);
  snprintf(log, sizeof log, "GEMMSHIM_LOG_FILE=%s", path);
  const setup_t setup = {.table = table,
                         .environment = {"GEMMSHIM_SHAPES=65536", "GEMMSHIM_VRAM_MB=256", "GEMMSHIM_LOG=2",
                                         "GEMMSHIM_LOG_RATE=1000000", log, option}};
  return RUN(&setup, "random", count, seed, path);
}

static void draws(const char *seed, const char *option) {
  run_t r = logged("20000", seed, option);
  cr_expect_eq(r.status, 0, "seed %s: %s", seed, r.err);
  cr_expect_eq(run_number(&r, "wrong"), 0);
  cr_expect_eq(run_number(&r, "loose"), 0);
  cr_expect_eq(run_number(&r, "refused"), 0);
  cr_expect_eq(run_number(&r, "leaked"), 0, "seed %s: %s", seed, r.out);
  cr_expect_eq(RUN_CALLS(&r), 20000);
  int64_t served = RUN_SERVED(&r);
  cr_expect(served > 6000 && served < 14000, "%ld served", (long)served);
  cr_expect_eq(run_number(&r, "ours"), served);
  cr_expect_gt(run_number(&r, "deep"), 10, "%s", r.out);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_KERNEL, RUN_ANY), 0,
               "what no kernel takes has a better reason");
  cr_expect_eq(run_lines(r.err, "gemmshim"), 0, "%s", r.err);
  run_free(&r);
}

Test(random, C3_C6_calls_are_right_and_write_nothing_else) {
  draws("1", "A=B");
  draws("2", "A=B");
}

Test(random, comparing_each_with_the_library_changes_nothing) {
  draws("3", "GEMMSHIM_VERIFY=1");
}

Test(random, sampling_each_changes_nothing) {
  draws("4", "GEMMSHIM_SAMPLE=1");
}

/* The check itself: a kernel that gets one element wrong is seen. */
Test(random, a_wrong_element_is_seen) {
  run_t r = RUN(WITH(.table = table, .environment = {"SIM_WRONG=mma_*:last:0.5"}), "random", "2000", "5");
  cr_expect_gt(run_number(&r, "wrong"), 200);
  run_free(&r);
}

/* So is one that is off by two roundings, which cuBLAS's may be. */
Test(random, a_loose_result_of_ours_is_seen) {
  run_t r = logged("2000", "5", "SIM_WRONG=mma_f16_f16_*:all:0.0015");
  cr_expect_gt(run_number(&r, "ours loose"), 20, "%s", r.out);
  cr_expect_eq(run_number(&r, "ours loose"), run_number(&r, "loose"));
  cr_expect_eq(run_number(&r, "wrong"), 0, "%s", r.err);
  cr_expect_eq(r.status, 1);
  run_free(&r);
}

/* And so are calls that leave memory behind. */
Test(random, what_leaks_is_seen) {
  if (*FIRST) cr_skip_test("a sanitizer's malloc keeps no such count");
  run_t r = RUN(WITH(.table = table), "random", "20000", "6", "leak");
  cr_expect_eq(run_number(&r, "device"), 10 << 20, "%s", r.out);
  cr_expect_geq(run_number(&r, "host"), 32000, "%s", r.out);
  cr_expect_gt(run_number(&r, "leaked"), 10 << 20);
  cr_expect_eq(r.status, 1);
  run_free(&r);
}
