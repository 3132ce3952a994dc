/* What goes wrong around the library: it says so in a line, and the program does not notice. */
#include "run.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROW                                                                                                  \
  "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t1\t64\tmma_f16_f16_tn_64x64x64_s4_"                       \
  "w4\t1\t1\t8\t10\t0\t0\n"

static char folder[128], table[256];

static void setup(void) {
  folder_make(folder);
  file_write(folder, "sim.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW, table);
}

static void teardown(void) {
  folder_remove(folder);
}

TestSuite(faults, .init = setup, .fini = teardown, .timeout = 120);

/* The program fared well, and of what the library said count lines hold part. */
static void expect(run_t *r, int64_t served, int count, const char *part) {
  cr_expect_eq(r->status, 0, "exit status %d: %s", r->status, r->err);
  cr_expect_eq(run_number(r, "failed"), 0);
  cr_expect_eq(RUN_SERVED(r), served, "%ld served: %s", (long)RUN_SERVED(r), r->err);
  cr_expect_eq(run_lines(r->err, part), count, "'%s' %d times in: %s", part, run_lines(r->err, part), r->err);
  run_free(r);
}

Test(faults, C15_refused_launch_is_forwarded_and_the_row_retired) {
  run_t r = RUN(WITH(.table = table, .environment = {"SIM_FAIL=cuLaunchKernel:3=701"}), "plain", "6");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_LAUNCH_FAILED, RUN_ANY), 4,
               "the third call and what follows");
  expect(&r, 2, 0, "client");
}

Test(faults, S2_a_broken_capture_does_not_retire_the_row) {
  run_t r = RUN(WITH(.table = table, .environment = {"SIM_FAIL=cuLaunchKernel:3=901"}), "plain", "6");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_CAPTURE, RUN_ANY), 1);
  expect(&r, 5, 0, "retired");
}

Test(faults, C15_library_errors_come_back_verbatim) {
  run_t r = RUN(WITH(.environment = {"SIM_FAIL=cublasGemmEx:2=13"}), "plain", "3");
  cr_expect(strstr(r.out, "status: 13\nfailed: 1\n"), "%s", r.out);
  cr_expect_eq(RUN_CALLS(&r), 3);
  run_free(&r);
}

Test(faults, kernel_that_does_not_load_is_forwarded) {
  run_t r = RUN(WITH(.table = table, .environment = {"SIM_FAIL=cuLibraryLoadData:*=209"}), "plain", "4");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_LOAD_FAILED, RUN_ANY), 4);
  expect(&r, 0, 1, "CUDA_ERROR_NO_BINARY_FOR_GPU");
}

Test(faults, shared_memory_that_is_not_granted_is_forwarded) {
  run_t r = RUN(WITH(.table = table, .environment = {"SIM_FAIL=cuKernelSetAttribute:*=1"}), "plain", "4");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_LOAD_FAILED, RUN_ANY), 4);
  expect(&r, 0, 1, "CUDA_ERROR_INVALID_VALUE");
}

Test(faults, driver_without_library_loading) {
  run_t r =
      RUN(WITH(.table = table, .libraries = BUILD "/sim/driver-old:" BUILD "/sim/cuda13"), "plain", "4");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_NOT_READY, RUN_ANY), 4);
  expect(&r, 0, 0, "CUDA_ERROR");
}

Test(faults, handle_that_does_not_tell_its_stream) {
  run_t r = RUN(WITH(.table = table, .environment = {"SIM_FAIL=cublasGetStream_v2:*=14"}), "plain", "4");
  expect(&r, 0, 0, "gemmshim");
}

Test(faults, T1_table_for_a_sibling_gpu_is_unproven) {
  run_t r = RUN(WITH(.table = table, .environment = {"SIM_GPU=NVIDIA H100"}), "plain", "4");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_UNPROVEN, RUN_ANY), 4);
  cr_expect_eq(run_lines(r.err, "run gemmshim requalify"), 1, "%s", r.err);
  expect(&r, 0, 1, "sim.table");
}

Test(faults, T1_table_for_another_architecture) {
  char other[256];
  file_write(folder, "ampere.table",
             "format: 1\ngpu: NVIDIA A100\narch: sm_80\nsms: 108\ncublas: 13.1.0\nmethod: fixture\n"
             "date: 2026-11-29\n" ROW,
             other);
  run_t r = RUN(WITH(.table = other), "plain", "4");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_NO_TABLE, RUN_ANY), 4);
  expect(&r, 0, 1, "ampere.table");
}

Test(faults, T1_siblings_share_the_built_in_table_unproven) {
  run_t r = RUN(WITH(.environment = {"SIM_GPU=NVIDIA H200 NVL", "GEMMSHIM_LOG=1"}), "plain", "4");
  cr_expect_eq(run_lines(r.err, "table: built-in nvidia-h200 ("), 1, "%s", r.err);
  cr_expect_eq(run_lines(r.err, "made for"), 0, "nobody asked for it: %s", r.err);
  expect(&r, 0, 1, "4 products, 0 served");
}

/* What serves is a function of the table, the GPU and the cuBLAS build; the counts of the rest come with what
 * to do. */
Test(faults, T1_rows_are_proven_by_build_or_margin) {
  static const struct {
    const char *cublas, *times;
    int served;
  } cases[] = {{"SIM_CUBLAS_VERSION=13.1.0", "9.8\t10", 4},
               {"SIM_CUBLAS_VERSION=13.2.0", "9.8\t10", 0},
               {"SIM_CUBLAS_VERSION=13.2.0", "9\t10", 4},
               {"SIM_CUBLAS_VERSION=12.9.0", "5\t10", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[1024], path[256];
    snprintf(text, sizeof text,
             TABLE_HEADER(SIM_GPU_NAME, "13.1.0") "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t1\t64\t"
                                                  "mma_f16_f16_tn_64x64x64_s4_w4\t1\t1\t%s\t0\t0\n",
             cases[i].times);
    file_write(folder, "margin.table", text, path);
    run_t r = RUN(WITH(.table = path, .environment = {cases[i].cublas, "GEMMSHIM_LOG=1"}), "plain", "4");
    cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_UNPROVEN, RUN_ANY), 4 - cases[i].served, "case %zu", i);
    expect(&r, cases[i].served, cases[i].served ? 0 : 1, "4 forwarded: the row was not measured on this GPU");
  }
}

/* Replicas can be compared: the summary's digest is what `gemmshim table check` prints. */
Test(faults, T1_the_summary_names_the_digest) {
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_LOG=1"}), "plain", "1");
  unsigned long long hash = 0xcbf29ce484222325u;
  char digest[24];
  for (const char *c = TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW; *c; c++)
    hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
  snprintf(digest, sizeof digest, "(%016llx)", hash);
  expect(&r, 1, 1, digest);
}

Test(faults, no_table_for_this_gpu) {
  run_t r = RUN(WITH(.bare = false), "plain", "4");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_NO_TABLE, RUN_ANY), 4);
  expect(&r, 0, 0, "gemmshim");
}

Test(faults, T2_bad_row_costs_that_row_only) {
  char bad[256];
  file_write(folder, "bad.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") "T\tN\tmany\t128\n" ROW, bad);
  run_t r = RUN(WITH(.table = bad), "plain", "4");
  expect(&r, 4, 1, "bad.table:8: ");
}

Test(faults, rows_are_chosen_by_their_line) {
  static const struct {
    const char *rows;
    int served, lines;
  } cases[] = {{"GEMMSHIM_ROWS=8", 3, 0},
               {"GEMMSHIM_ROWS=1-7,9", 0, 0},
               {"GEMMSHIM_ROWS=2-20", 3, 0},
               {"GEMMSHIM_ROWS=all", 0, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run_t r = RUN(WITH(.table = table, .environment = {cases[i].rows}), "plain", "3");
    cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_SKIPPED, RUN_ANY), 3 - cases[i].served, "%s",
                 cases[i].rows);
    expect(&r, cases[i].served, cases[i].lines, "not a list of lines");
  }
}

Test(faults, T2_bad_tables_pass_through) {
  static const struct {
    const char *name, *text;
  } bad[] = {
      {"empty.table", ""},
      {"prose.table", "these are not the rows you are looking for\n"},
      {"version.table", "format: 99\n"},
      {"binary.table", "\x7f"
                       "ELF\x02\x01\x01\x03\xff\xfe"},
      {"cut.table", "format: 1\ngpu: gemmshim CPU sta"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char path[256];
    file_write(folder, bad[i].name, bad[i].text, path);
    run_t r = RUN(WITH(.table = path), "plain", "2");
    cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_NO_TABLE, RUN_ANY), 2, "%s", bad[i].name);
    cr_expect_geq(run_lines(r.err, bad[i].name), 1, "%s: not a word: %s", bad[i].name, r.err);
    expect(&r, 0, 0, "Segmentation");
  }
}

Test(faults, T2_what_is_no_file_passes_through) {
  char missing[256], fifo[256];
  snprintf(missing, sizeof missing, "%s/missing.table", folder);
  snprintf(fifo, sizeof fifo, "%s/fifo.table", folder);
  cr_assert_eq(mkfifo(fifo, 0600), 0);
  const char *const paths[] = {missing, folder, fifo, "/dev/zero"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    run_t r = RUN(WITH(.table = paths[i]), "plain", "2");
    cr_expect_geq(run_lines(r.err, paths[i]), 1, "%s: not a word: %s", paths[i], r.err);
    expect(&r, 0, 0, "Segmentation");
  }
}

Test(faults, S4_a_refused_table_is_said_once_for_all_devices_of_a_model) {
  char path[256];
  file_write(folder, "twice.table", "format: 99\n", path);
  run_t r = RUN(WITH(.table = path, .environment = {"SIM_DEVICES=4"}), "plain", "2");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_NO_TABLE, RUN_ANY), 2);
  expect(&r, 0, 1, "twice.table");
}

Test(faults, S4_devices_of_a_model_share_its_table) {
  run_t r = RUN(WITH(.table = table, .environment = {"SIM_DEVICES=4"}), "plain", "3");
  expect(&r, 3, 0, "Segmentation");
}

Test(faults, C11_batch_invariant_settings_are_heeded) {
  static const struct {
    const char *cublas, *lt;
    int served;
  } cases[] = {{"CUBLAS_WORKSPACE_CONFIG=:16:8", "CUBLASLT_WORKSPACE_SIZE=1", 0},
               {"CUBLAS_WORKSPACE_CONFIG=:0:0", "CUBLASLT_WORKSPACE_SIZE=0", 0},
               {"CUBLAS_WORKSPACE_CONFIG=:4096:8", "CUBLASLT_WORKSPACE_SIZE=1", 3}, /* determinism only */
               {"CUBLAS_WORKSPACE_CONFIG=:16:8", "CUBLASLT_WORKSPACE_SIZE=4096", 3},
               {"GEMMSHIM_INVARIANT=1", "A=B", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run_t r = RUN(WITH(.table = table, .environment = {cases[i].cublas, cases[i].lt}), "plain", "3");
    cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_BATCH_INVARIANT, RUN_ANY), 3 - cases[i].served, "case %zu",
                 i);
    expect(&r, cases[i].served, 0, "Segmentation");
  }
}

/* Set from Python after the start: cuBLAS reads them when a handle is made, and so do we; what is once asked for stays. */
Test(faults, C11_settings_are_read_when_a_handle_is_made) {
  static const struct {
    const char *cublas, *lt;
    int served;
  } cases[] = {{"CUBLAS_WORKSPACE_CONFIG=:16:8", "CUBLASLT_WORKSPACE_SIZE=1", 2},
               {"CUBLAS_WORKSPACE_CONFIG=:0:0", "CUBLASLT_WORKSPACE_SIZE=0", 2},
               {"CUBLAS_WORKSPACE_CONFIG=:4096:8", "CUBLASLT_WORKSPACE_SIZE=1", 4}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run_t r = RUN(WITH(.table = table), "settings", cases[i].cublas, cases[i].lt);
    cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_BATCH_INVARIANT, RUN_ANY), 4 - cases[i].served, "case %zu",
                 i);
    run_fared(&r, 4, cases[i].served);
  }
}

Test(faults, bad_options_keep_their_defaults) {
  run_t r =
      RUN(WITH(.table = table, .environment = {"GEMMSHIM_OFF=yes", "GEMMSHIM_LOG=-1", "GEMMSHIM_SERVE=2",
                                               "GEMMSHIM_SHAPES=9999999999999999999", "GEMMSHIM_SAMPLE=1x",
                                               "GEMMSHIM_LOG_RATE="}),
          "plain", "3");
  cr_expect_eq(run_lines(r.err, "GEMMSHIM_OFF"), 1, "%s", r.err);
  cr_expect_eq(run_lines(r.err, "GEMMSHIM_LOG="), 1, "%s", r.err);
  cr_expect_eq(run_lines(r.err, "GEMMSHIM_SERVE"), 1, "%s", r.err);
  cr_expect_eq(run_lines(r.err, "GEMMSHIM_SHAPES"), 1, "%s", r.err);
  expect(&r, 3, 1, "GEMMSHIM_SAMPLE");
}

Test(faults, log_rate_is_kept) {
  run_t r =
      RUN(WITH(.table = table, .environment = {"GEMMSHIM_LOG=2", "GEMMSHIM_LOG_RATE=5"}), "plain", "200");
  int lines = run_lines(r.err, "cublasGemmEx");
  cr_expect(lines >= 5 && lines <= 50, "%d lines for 200 calls", lines);
  expect(&r, 200, 0, "Segmentation");
}

Test(faults, summary_is_ten_lines_at_most) {
  static const char *const clients[] = {"entries", "errors", "contexts", "special", "shapes"};
  for (size_t i = 0; i < sizeof clients / sizeof *clients; i++) {
    run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_LOG=1"}), clients[i], "300");
    int lines = run_lines(r.err, "gemmshim[");
    cr_expect(lines >= 2 && lines <= 10, "%s: %d lines: %s", clients[i], lines, r.err);
    run_free(&r);
  }
}

Test(faults, T5_tables_are_read_through_links) {
  char link[256];
  snprintf(link, sizeof link, "%s/linked.table", folder);
  cr_assert_eq(symlink(table, link), 0);
  run_t r = RUN(WITH(.table = link), "plain", "2");
  expect(&r, 2, 0, "gemmshim");
}

/* Two processes with the same number, as in two containers that share a folder. */
Test(faults, T5_two_processes_of_one_number_keep_two_histograms) {
  const char *const command[] = {"/usr/bin/unshare",           "--fork", "--pid",
                                 BUILD "/tests/preload/plain", "3",      NULL};
  if (geteuid() != 0 || access(command[0], X_OK)) cr_skip_test("needs root and unshare");
  char option[300];
  snprintf(option, sizeof option, "GEMMSHIM_CALLS=%s", folder);
  for (int i = 0; i < 2; i++) {
    run_t r = run(WITH(.table = table, .environment = {option}), command);
    if (r.status == 1) cr_skip_test("no namespaces here: %s", r.err);
    cr_expect_eq(r.status, 0, "%s", r.err);
    run_free(&r);
  }
  glob_t found;
  char pattern[300];
  snprintf(pattern, sizeof pattern, "%s/*-1-*.gshist", folder);
  cr_expect_eq(glob(pattern, 0, NULL, &found), 0);
  cr_expect_eq(found.gl_pathc, 2u);
  globfree(&found);
}

Test(faults, log_file_of_the_process) {
  char option[300], path[300];
  snprintf(option, sizeof option, "GEMMSHIM_LOG_FILE=%s/log-%%p", folder);
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_LOG=2", option}), "plain", "2");
  snprintf(path, sizeof path, "%s/log-%ld", folder, r.pid);
  cr_expect_eq(access(path, R_OK), 0, "%s is not there", path);
  expect(&r, 2, 0, "gemmshim");
}

Test(faults, unwritable_log_file) {
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_LOG=1", "GEMMSHIM_LOG_FILE=/nonexistent/log"}),
                "plain", "2");
  expect(&r, 2, 1, "GEMMSHIM_LOG_FILE");
}

Test(faults, T4_unwritable_histogram_folder) {
  static const char *const folders[] = {"GEMMSHIM_CALLS=/nonexistent/folder", "GEMMSHIM_CALLS=/dev/null",
                                        "GEMMSHIM_CALLS=/proc"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    run_t r = RUN(WITH(.table = table, .environment = {folders[i], "GEMMSHIM_LOG=1"}), "plain", "3");
    cr_expect_eq(run_lines(r.err, "3 products, 3 served"), 1, "still counted in memory: %s", r.err);
    expect(&r, 0, 1, folders[i]);
  }
}

Test(faults, T5_log_file_does_not_follow_links) {
  char option[300], target[256], link[256];
  file_write(folder, "precious", "", target);
  snprintf(link, sizeof link, "%s/log", folder);
  cr_assert_eq(symlink(target, link), 0);
  snprintf(option, sizeof option, "GEMMSHIM_LOG_FILE=%s", link);
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_LOG=1", option}), "plain", "1");
  struct stat after;
  cr_assert_eq(stat(target, &after), 0);
  cr_expect_eq(after.st_size, 0, "the link was followed");
  expect(&r, 1, 1, option);
}

Test(faults, T4_full_disk) {
  char option[300];
  if (geteuid() != 0 || mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k"))
    cr_skip_test("a small tmpfs can be mounted by root only");
  snprintf(option, sizeof option, "GEMMSHIM_CALLS=%s", folder);
  run_t r = RUN(WITH(.environment = {option, "GEMMSHIM_LOG=1"}), "plain", "3");
  cr_expect_eq(umount(folder), 0);
  cr_expect_eq(run_lines(r.err, "3 products"), 1, "still counted in memory: %s", r.err);
  expect(&r, 0, 1, "No space left on device");
}

Test(faults, more_shapes_than_the_histogram_holds) {
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_SHAPES=64"}), "shapes", "300");
  cr_expect_eq(RUN_CALLS(&r), 300);
  expect(&r, 64, 0, "gemmshim");
}

Test(faults, S8_sampling_costs_no_result) {
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_SAMPLE=1"}), "plain", "50");
  expect(&r, 50, 0, "gemmshim");
}

Test(faults, failing_events_cost_no_result) {
  run_t r = RUN(WITH(.table = table,
                     .environment = {"GEMMSHIM_SAMPLE=1", "SIM_FAIL=cuEventCreate:*=2,cuEventRecord:*=700"}),
                "plain", "20");
  cr_expect_eq(RUN_SERVED(&r), 20);
  cr_expect_eq(r.status, 0);
  run_free(&r);
}
