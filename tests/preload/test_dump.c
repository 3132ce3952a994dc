/* GEMMSHIM_DUMP: what the first call that is off leaves, and that `gemmshim verify --operands` finds out who was. */
#include "run.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROW(m, k)                                                                                            \
  "T\tN\t" m "\t" k                                                                                          \
  "\tf16\tf16\t32f\tdefault\tsingle\t1\t64\tmma_f16_f16_tn_64x64x64_s4_w4\t1\t1\t8\t10\t0\t0\n"
#define EACH  "GEMMSHIM_VERIFY=1"
#define WRONG "SIM_WRONG=mma_*:all:0.1,direct_*:all:0.1"

static char folder[128], table[256], there[256], dump[300];

static void setup(void) {
  folder_make(folder);
  file_write(folder, "t.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW("128", "128"), table);
  snprintf(there, sizeof there, "%s/there", folder);
  snprintf(dump, sizeof dump, "GEMMSHIM_DUMP=%s", there);
  cr_assert_eq(mkdir(there, 0700), 0);
}

static void teardown(void) {
  folder_remove(folder);
}

TestSuite(dump, .init = setup, .fini = teardown, .timeout = 300);

/* How many files there are, the name of one, and away with them. */
static int files(char path[512]) {
  char pattern[300];
  glob_t found = {0};
  snprintf(pattern, sizeof pattern, "%s/*", there);
  glob(pattern, 0, NULL, &found);
  int count = (int)found.gl_pathc;
  if (count) snprintf(path, 512, "%s", found.gl_pathv[0]);
  globfree(&found);
  return count;
}

/* The line that verify --operands begins with that name. */
static bool says(const run_t *r, const char *name, const char *part) {
  char begin[32], line[512] = "";
  snprintf(begin, sizeof begin, "\n%s ", name);
  const char *found = strstr(r->out, begin);
  if (found) snprintf(line, sizeof line, "%.*s", (int)strcspn(found + 1, "\n"), found + 1);
  return strstr(line, part);
}

static run_t judged(const char *path) {
  return RUN(WITH(.bare = true), BUILD "/gemmshim", "verify", "--operands", path);
}

Test(dump, first_result_that_is_off_leaves_one_file) {
  char path[512];
  struct stat info;
  run_t r = RUN(WITH(.table = table, .environment = {EACH, dump, WRONG}), "probe", "128", "8", "128", "30");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(run_number(&r, "wrong"), 0, "%s", r.err);
  cr_assert_eq(files(path), 1, "%s", r.err);
  cr_expect_eq(run_lines(r.err, path), 1, "%s", r.err);
  cr_assert_eq(stat(path, &info), 0);
  cr_expect_eq(info.st_mode & 0777, 0600);
  cr_expect_lt(info.st_size, 45000, "%ld", (long)info.st_size);
  run_free(&r);
  r = judged(path);
  cr_expect_eq(r.status, 1, "%s%s", r.out, r.err);
  cr_expect(says(&r, "gemmshim", "FAIL") && !says(&r, "cublas", "FAIL"), "%s", r.out);
  cr_expect(strstr(r.out, "mma_f16_f16_tn_64x64x64_s4_w4 on " SIM_GPU_NAME ", cuBLAS 13.1.0"), "%s", r.out);
  run_free(&r);
}

/* Every layout, type, leading dimension, stride (negative ones too), kind of scalar and epilogue: cuBLAS's result is what FP64 makes of what
 * was copied, so it is what the call read. */
Test(dump, whatever_the_product) {
  run_t rows = RUN(WITH(.bare = true), "random", "rows");
  static const char header[] = TABLE_HEADER(SIM_GPU_NAME, "13.1.0");
  char *text = malloc(strlen(rows.out) + sizeof header), any[256], path[512];
  strcpy(text, header);
  strcat(text, rows.out);
  file_write(folder, "random.table", text, any);
  free(text);
  run_free(&rows);
  static const char *const rows_of[] = {"*strided*", "*bias*", "*gelu*", "*"};
  for (int i = 1; i <= 60; i++) {
    char seed[16], only[64];
    snprintf(seed, sizeof seed, "%d", i);
    snprintf(only, sizeof only, "GEMMSHIM_ONLY=%s", rows_of[i % 4]);
    const setup_t setup = {.table = any, .environment = {EACH, dump, WRONG, "GEMMSHIM_SHAPES=65536", only}};
    run_t r = RUN(&setup, "random", "400", seed);
    cr_assert_eq(files(path), 1, "seed %d: %s", i, r.err);
    run_free(&r);
    r = judged(path);
    cr_expect_eq(r.status, 1, "seed %d: %s%s", i, r.out, r.err);
    cr_expect(says(&r, "gemmshim", "FAIL") && !says(&r, "cublas", "FAIL"), "seed %d: %s", i, r.out);
    run_free(&r);
    unlink(path);
  }
}

Test(dump, right_results_leave_nothing) {
  char path[512];
  run_t plain = RUN(WITH(.table = table, .environment = {EACH}), "serve");
  run_t r = RUN(WITH(.table = table, .environment = {EACH, dump}), "serve");
  cr_expect_eq(r.status, plain.status);
  cr_expect_str_eq(r.out, plain.out);
  cr_expect_eq(RUN_SERVED(&r), RUN_SERVED(&plain));
  cr_expect_eq(files(path), 0);
  run_free(&plain);
  run_free(&r);
}

/* Nowhere to write, no memory to copy to, no copy: said once, and the row is retired all the same. */
Test(dump, without_a_file_the_row_is_retired_all_the_same) {
  static const char *const faults[][2] = {{"GEMMSHIM_DUMP=/nonexistent/folder", "no operands are written"},
                                          {"SIM_FAIL=cuMemHostRegister_v2:2=2", "were not copied"},
                                          {"SIM_FAIL=cuMemcpyDtoHAsync_v2:3=700", "were not copied"}};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    char path[512];
    run_t r = RUN(WITH(.table = table, .environment = {EACH, dump, WRONG, faults[i][0]}), "probe", "128", "8",
                  "128", "30");
    cr_expect_eq(r.status, 0, "%s", r.err);
    cr_expect_eq(run_number(&r, "wrong"), 0, "%s", r.err);
    cr_expect_eq(run_lines(r.err, faults[i][1]), 1, "%s: %s", faults[i][0], r.err);
    cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_WRONG, RUN_ANY), 29);
    cr_expect_eq(files(path), 0);
    run_free(&r);
  }
}

/* open, write, malloc fail in turn: a file is whole, or there is none. */
Test(dump, T4_a_file_is_whole_or_not_there) {
  if (strlen(PRELOAD) != strlen(BUILD "/libgemmshim.so")) cr_skip_test("a sanitizer has its own malloc");
  bool hit = true;
  int n = 0, none = 0;
  while (hit && n < 300) {
    char fault[32], path[512];
    snprintf(fault, sizeof fault, "FAULTY=%d", ++n);
    run_t r = RUN(WITH(.table = table, .also = BUILD "/tests/preload/faulty.so",
                       .environment = {EACH, dump, WRONG, fault}),
                  "probe", "128", "8", "128", "30");
    cr_expect_eq(r.status, 0, "%s: %s", fault, r.err);
    hit = strstr(r.err, "faulty: ");
    bool written = files(path);
    none += strstr(r.err, "no operands are written") != NULL;
    run_free(&r);
    if (!written) continue;
    r = judged(path);
    cr_expect_eq(r.status, 1, "%s: %s", fault, r.err);
    run_free(&r);
    unlink(path);
  }
  cr_expect(none >= 3 && n < 300, "%d of %d", none, n);
}

Test(dump, T5_what_is_no_dump_is_refused) {
  char path[512], command[1600];
  run_t r = RUN(WITH(.table = table, .environment = {EACH, dump, WRONG}), "probe", "128", "8", "128", "30");
  cr_assert_eq(files(path), 1);
  run_free(&r);
  static const char *const edits[] = {"head -c 20000 %s > %s.x",
                                      "head -c 100 %s > %s.x",
                                      ": %s; : > %s.x",
                                      "sed 's/128/999/' %s > %s.x",
                                      "sed 's/\"F16\"/\"F32\"/' %s > %s.x",
                                      "tr '{' '[' < %s > %s.x",
                                      "sed 's/\"a\"/\"A\"/' %s > %s.x",
                                      "tail -c 3000 %s > %s.x",
                                      "rm -f %s.x; : %s"};
  for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
    snprintf(command, sizeof command, edits[i], path, path);
    cr_assert_eq(system(command), 0, "%s", command);
    snprintf(command, sizeof command, "%s.x", path);
    r = judged(command);
    cr_expect_eq(r.status, 3, "%s: %d: %s", edits[i], r.status, r.err);
    run_free(&r);
  }
}
