/* Kernels that lie beside their table: served from there, and refused for every reason that there is. */
#include "run.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXTRA  BUILD "/tests/preload/extra.cubin" /* of KERNEL */
#define KERNEL "mma_f16_f16_tn_48x64x32_s3_w2"
#define OTHER  "mma_f16_f16_tn_48x32x32_s3_w2" /* which it does not hold */

#define ROW(lo, hi, kernel)                                                                                  \
  "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t" lo "\t" hi "\t" kernel "\t1\t1\t8\t10\t0\t0\n"

static char folder[128], table[256], cubin[512];

__attribute__((format(printf, 1, 2))) static void shell(const char *format, ...) {
  char command[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(command, sizeof command, format, args);
  va_end(args);
  cr_assert_eq(system(command), 0, "%s", command);
}

/* Puts the cubin beside a table whose one row names it as kernel. */
static void lay_out(const char *kernel) {
  char hash[17], text[1024];
  FILE *pipe = popen("sha256sum < " EXTRA, "r");
  cr_assert(pipe && fgets(hash, sizeof hash, pipe) && strlen(hash) == 16);
  pclose(pipe);
  snprintf(text, sizeof text, TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW("1", "64", "%s-%s"), kernel, hash);
  file_write(folder, "extra.table", text, table);
  snprintf(cubin, sizeof cubin, "%s.d/%s-%s.cubin", table, kernel, hash);
  shell("mkdir -p %s.d && cp " EXTRA " %s && chmod 644 %s", table, cubin, cubin);
}

static void setup(void) {
  folder_make(folder);
  lay_out(KERNEL);
}
static void teardown(void) {
  folder_remove(folder);
}
TestSuite(extras, .init = setup, .fini = teardown, .timeout = 120);

static void expect_served(void) {
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_LOG=2"}), "plain", "3");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(run_number(&r, "wrong"), 0);
  cr_expect_eq(RUN_SERVED(&r), 3, "%s", r.err);
  cr_expect_eq(run_lines(r.err, ": kernel " KERNEL), 3, "%s", r.err);
  run_free(&r);
}

/* The row is refused in a line that says where and why, and its calls are forwarded. */
static void expect_refused(const char *why) {
  run_t r = RUN(WITH(.table = table), "plain", "3");
  char line[1024];
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(run_number(&r, "failed"), 0);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_NO_ROW, RUN_ANY), 3, "%s", r.err);
  snprintf(line, sizeof line, "extra.table:8: %s: %s; run gemmshim tune again", cubin, why);
  cr_expect_eq(run_lines(r.err, line), 1, "no '%s' in: %s", line, r.err);
  run_free(&r);
}

Test(extras, what_lies_beside_its_table_is_served) {
  expect_served();
  cr_assert_eq(chmod(cubin, 0400), 0);
  expect_served();
}

/* It may come of a build whose kernels do not wait for what is ahead of them. */
Test(extras, S1_never_begins_before_what_is_ahead_has_ended) {
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_EARLY=1"}), "places", "exact");
  cr_expect_eq(RUN_SERVED(&r), 15, "%s", r.err);
  cr_expect_eq(run_number(&r, "early"), 0, "%s", r.out);
  run_free(&r);
}

Test(extras, captured_at_first_use_it_is_served_too) {
  static const char *const modes[] = {"global", "thread_local", "relaxed"};
  for (int i = 0; i < 3; i++) {
    run_t r = RUN(WITH(.table = table), "graph", modes[i]);
    cr_expect_eq(r.status, 0, "%s: %s", modes[i], r.err);
    cr_expect_eq(RUN_SERVED(&r), 3, "%s: %s", modes[i], r.err);
    run_free(&r);
  }
}

Test(extras, links_are_followed_to_a_file_of_ours) {
  shell("mv %s %s/elsewhere && ln -s %s/elsewhere %s", cubin, folder, folder, cubin);
  expect_served();
  shell("mv %s.d %s/data && ln -s data %s.d", table, folder, table); /* as a ConfigMap's volume is laid out */
  expect_served();
  shell("chmod o+w %s/elsewhere", folder);
  expect_refused("others may write it: chmod go-w");
  shell("rm %s/elsewhere", folder);
  expect_refused("No such file or directory");
}

Test(extras, a_changed_byte_is_refused) {
  FILE *file = fopen(cubin, "r+");
  cr_assert(file && fseek(file, 1000, SEEK_SET) == 0 && fputc('x', file) == 'x' && fclose(file) == 0);
  expect_refused("its content is not what the row was measured with");
}

Test(extras, a_cut_file_is_refused) {
  cr_assert_eq(truncate(cubin, 1000), 0);
  expect_refused("its content is not what the row was measured with");
  cr_assert_eq(truncate(cubin, 0), 0);
  expect_refused("its content is not what the row was measured with");
}

Test(extras, what_others_may_write_is_refused) {
  static const mode_t modes[] = {0664, 0646, 0666};
  for (int i = 0; i < 3; i++) {
    cr_assert_eq(chmod(cubin, modes[i]), 0);
    expect_refused("others may write it: chmod go-w");
  }
}

Test(extras, another_users_file_is_refused) {
  if (chown(cubin, 12345, 12345) != 0) cr_skip_test("only root can give files away");
  expect_refused("belongs to another user");
}

Test(extras, what_is_no_file_is_refused) {
  shell("rm %s && mkdir %s", cubin, cubin);
  expect_refused("not a regular file");
  shell("rmdir %s && mkfifo %s", cubin, cubin);
  expect_refused("not a regular file");
  shell("rm %s", cubin);
  expect_refused("No such file or directory");
}

Test(extras, too_large_a_file_is_refused) {
  cr_assert_eq(truncate(cubin, (4 << 20) + 1), 0);
  expect_refused("too large");
}

Test(extras, a_cubin_without_the_kernel_is_forwarded) {
  lay_out(OTHER);
  run_t r = RUN(WITH(.table = table), "plain", "3");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_LOAD_FAILED, RUN_ANY), 3, "%s", r.err);
  cr_expect_eq(run_lines(r.err, "kernel " OTHER ": the driver says CUDA_ERROR_NOT_FOUND"), 1, "%s", r.err);
  run_free(&r);
}

Test(extras, one_refused_row_leaves_the_others) {
  char line[256];
  FILE *more = fopen(table, "a");
  snprintf(line, sizeof line, ROW("65", "90", "%s"), "mma_f16_f16_tn_64x64x64_s4_w4");
  cr_assert(more && fputs(line, more) >= 0 && fclose(more) == 0 && unlink(cubin) == 0);
  run_t r = RUN(WITH(.table = table), "graph", "global"); /* n is 8, and 77 */
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_NO_ROW, RUN_ANY), 3, "%s", r.err);
  cr_expect_eq(RUN_SERVED(&r), 3, "%s", r.err);
  run_free(&r);
}
