/* The linker and the process: how programs come to cuBLAS, how they fork and how they end. */
#include "run.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The clients' simple product: TN, m = k = 128; what n may be is in the row. */
#define ROW                                                                                                  \
  "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t1\t64\tmma_f16_f16_tn_64x64x64_s4_"                       \
  "w4\t1\t1\t8\t10\t0\t0\n"
#define KERNEL "mma_f16_f16_tn_64x64x64_s4_w4"

#define PLUGIN(version) BUILD "/tests/preload/plugin-" version ".so:plugin_run:"

/* 9 parts are more than a cluster has: they meet in a workspace. */
#define SPLIT_ROW(parts)                                                                                     \
  "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t1\t64\tmma_f16_f16_tn_64x64x64_s4_"                       \
  "w4\t" parts "\t1\t8\t10\t0\t0\n"

static char folder[128], table[256], table12[256], split[256], cluster[256];

static void setup(void) {
  folder_make(folder);
  file_write(folder, "sim.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW, table);
  file_write(folder, "sim12.table", TABLE_HEADER(SIM_GPU_NAME, "12.8.0") ROW, table12);
  file_write(folder, "split.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") SPLIT_ROW("9"), split);
  file_write(folder, "cluster.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") SPLIT_ROW("8"), cluster);
}

static void teardown(void) {
  folder_remove(folder);
}

TestSuite(process, .init = setup, .fini = teardown, .timeout = 120);

/* It went well, and this many calls were counted and served. */
static void expect(run_t *r, int64_t calls, int64_t served) {
  cr_expect_eq(r->status, 0, "exit status %d: %s", r->status, r->err);
  cr_expect_eq(RUN_CALLS(r), calls, "%ld calls counted", (long)RUN_CALLS(r));
  cr_expect_eq(RUN_SERVED(r), served, "%ld calls served: %s", (long)RUN_SERVED(r), r->err);
  run_free(r);
}

Test(process, L1_plain_link) {
  run_t r = RUN(WITH(.table = table), "plain", "10");
  expect(&r, 10, 10);
}

Test(process, demo_is_served_by_the_table_beside_it) {
  run_t r = RUN(WITH(.table = "tests/sim/sim.table"), BUILD "/sim/demo");
  expect(&r, 13, 12);
}

Test(process, L1_plain_link_12) {
  run_t r = RUN(WITH(.table = table12), "plain-12", "10");
  expect(&r, 10, 10);
}

Test(process, T1_rows_of_another_major_are_not_served) {
  run_t r = RUN(WITH(.table = table), "plain-12", "3");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_UNPROVEN, RUN_ANY), 3);
  expect(&r, 3, 0);
}

Test(process, L2_rtld_local_plugin) {
  run_t r = RUN(WITH(.table = table), "host", PLUGIN("13") "4");
  expect(&r, 8, 8);
}

Test(process, L2_rtld_local_extension_over_a_library) {
  run_t r = RUN(WITH(.table = table), "host", BUILD "/tests/preload/extension.so:extension_run:4");
  expect(&r, 8, 8);
}

Test(process, L3_two_majors_in_one_process) {
  run_t r = RUN(WITH(.table = table), "host", PLUGIN("12") "3", PLUGIN("13") "5");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_UNPROVEN, RUN_ANY), 6,
               "major 12: the table was made with 13");
  expect(&r, 16, 10);
}

Test(process, L3_two_majors_in_the_other_order) {
  run_t r = RUN(WITH(.table = table12), "host", PLUGIN("13") "3", PLUGIN("12") "5");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_UNPROVEN, RUN_ANY), 6);
  expect(&r, 16, 10);
}

Test(process, L4_stub_with_cublas_names) {
  run_t r = RUN(WITH(.table = table), "host", "-g", BUILD "/tests/preload/libstub.so", PLUGIN("13") "4");
  expect(&r, 8, 8);
}

Test(process, L4_stub_is_all_that_the_program_links) {
  run_t r = RUN(WITH(.table = table), "host", PLUGIN("stub") "4");
  expect(&r, 8, 8);
}

Test(process, L4_forwarded_past_a_stub) {
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_SERVE=0"}), "host", "-g",
                BUILD "/tests/preload/libstub.so", PLUGIN("13") "4", PLUGIN("stub") "4");
  expect(&r, 16, 0);
}

Test(process, L5_nested_lt_call_is_not_counted) {
  run_t r = RUN(WITH(.table = table), "nested");
  cr_expect_eq(run_count(&r, GS_ENTRY_LT_MATMUL, RUN_ANY, RUN_ANY), 0);
  cr_expect_eq(run_count(&r, GS_ENTRY_GEMM_EX, GS_REASON_TYPE, RUN_ANY), 1);
  expect(&r, 1, 0);
}

Test(process, L7_no_cuda_at_all) {
  run_t r = RUN(WITH(.libraries = "/nonexistent", .environment = {"GEMMSHIM_LOG=0"}), "/bin/true");
  cr_expect_str_empty(r.out);
  cr_expect_str_empty(r.err);
  cr_expect_eq(run_histograms(&r), 0, "a process without a call leaves no file");
  cr_expect_eq(r.status, 0);
  run_free(&r);
}

Test(process, L8_deep_binding_and_namespaces_are_told) {
  if (*FIRST) cr_skip_test("the address sanitizer refuses both");
  static const char *const ways[] = {"-d", "-n"};
  for (int i = 0; i < 2; i++) {
    run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_LOG=1"}), "host", ways[i], PLUGIN("13") "4");
    cr_expect_eq(run_lines(r.err, "cuBLAS is mapped, 0 calls seen"), 1, "%s: %s", ways[i], r.err);
    expect(&r, 0, 0);
  }
}

Test(process, S6_unloaded_and_loaded_again) {
  run_t r = RUN(WITH(.table = table), "host", "-u", PLUGIN("13") "4", PLUGIN("13") "3");
  expect(&r, 14, 14);
}

/* The second object comes to lie where the first one was, and links another major. */
Test(process, S6_another_object_at_the_same_address) {
  run_t r = RUN(WITH(.table = table), "host", "-u", PLUGIN("13") "4", PLUGIN("12") "3");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_UNPROVEN, RUN_ANY), 6, "major 12: the table is of 13");
  expect(&r, 14, 8);
}

Test(process, L9_nothing_is_printed_to_stdout) {
  run_t bare = RUN(WITH(.bare = true), "plain", "3");
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_LOG=2"}), "plain", "3");
  cr_expect_str_eq(r.out, bare.out);
  cr_expect_eq(run_lines(r.err, "cublasGemmEx TN 128x8x128"), 3, "%s", r.err);
  cr_expect_eq(run_lines(r.err, KERNEL), 3, "%s", r.err);
  run_free(&bare);
  expect(&r, 3, 3);
}

Test(process, L9_children_of_a_shell) {
  char command[512];
  snprintf(command, sizeof command, "%s/tests/preload/plain 2 && %s/tests/preload/plain 3", BUILD, BUILD);
  run_t r = RUN(WITH(.table = table), "/bin/sh", "-c", command);
  cr_expect_eq(run_histograms(&r), 2);
  expect(&r, 5, 5);
}

Test(process, L9_fork_without_exec) {
  run_t r = RUN(WITH(.table = table), "forker", "5", "7", "2");
  cr_expect_eq(run_histograms(&r), 2, "one file a process");
  cr_expect_eq(run_count(&r, RUN_ANY, RUN_ANY, r.pid), 7);
  cr_expect_eq(run_count(&r, RUN_ANY, RUN_ANY, (long)run_number(&r, "child")), 7);
  expect(&r, 14, 14);
}

Test(process, L9_fork_before_the_first_call) {
  run_t r = RUN(WITH(.table = table), "forker", "0", "7", "2");
  cr_expect_eq(run_count(&r, RUN_ANY, RUN_ANY, r.pid), 2);
  cr_expect_eq(run_count(&r, RUN_ANY, RUN_ANY, (long)run_number(&r, "child")), 7);
  expect(&r, 9, 9);
}

Test(process, L11_kill_switch) {
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_OFF=1", "GEMMSHIM_LOG=2"}), "plain", "3");
  cr_expect_eq(run_histograms(&r), 0);
  cr_expect_str_empty(r.err);
  expect(&r, 0, 0);
}

Test(process, L14_weak_reference_without_cublas) {
  run_t bare = RUN(WITH(.bare = true), "weak");
  run_t r = RUN(WITH(.table = table), "weak");
  cr_expect_str_eq(bare.out, "absent\n");
  cr_expect_str_eq(r.out, "gemm: 1\nlt: 1\n"); /* CUBLAS_STATUS_NOT_INITIALIZED */
  run_free(&bare);
  expect(&r, 0, 0);
}

Test(process, T4_underscore_exit) {
  run_t r = RUN(WITH(.table = table), "plain", "6", "_exit");
  expect(&r, 6, 6);
}

Test(process, T4_sigkill) {
  run_t r = RUN(WITH(.table = table), "plain", "6", "kill");
  cr_expect_eq(r.status, 128 + SIGKILL);
  cr_expect_eq(RUN_SERVED(&r), 6);
  run_free(&r);
}

Test(process, T4_abort) {
  run_t r = RUN(WITH(.table = table), "plain", "6", "abort");
  cr_expect_eq(r.status, 128 + SIGABRT);
  cr_expect_eq(RUN_SERVED(&r), 6);
  run_free(&r);
}

Test(process, S3_two_threads) {
  run_t r = RUN(WITH(.table = table), "threads", "2", "500");
  expect(&r, 1000, 1000);
}

Test(process, S3_sixteen_threads) {
  run_t r = RUN(WITH(.table = table), "threads", "16", "100");
  expect(&r, 1600, 1600);
}

Test(process, S3_sixteen_threads_forwarded) {
  run_t r = RUN(WITH(.table = table, .environment = {"GEMMSHIM_SERVE=0"}), "threads", "16", "100");
  expect(&r, 1600, 0);
}

/* The stand-in's split-K kernels stop the program when they find their counters dirty or in use. */
Test(process, S3_split_k_on_one_stream) {
  run_t r = RUN(WITH(.table = split), "threads", "4", "100");
  expect(&r, 400, 400);
}

Test(process, S3_split_k_on_several_streams) {
  run_t r = RUN(WITH(.table = split), "threads", "4", "100", "streams");
  expect(&r, 400, 400);
}

Test(process, S2_split_k_under_capture) {
  run_t r = RUN(WITH(.table = split), "graph", "global");
  expect(&r, 6, 3);
}

Test(process, S2_captures_share_no_workspace) {
  run_t r = RUN(WITH(.table = split), "captures");
  cr_expect_eq(run_number(&r, "shared"), 0);
  cr_expect_eq(run_number(&r, "reused"), 1);
  expect(&r, 4, 4);
}

Test(process, S8_workspace_bound) {
  run_t r = RUN(WITH(.table = split, .environment = {"GEMMSHIM_VRAM_MB=0"}), "plain", "3");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_WORKSPACE, RUN_ANY), 3);
  expect(&r, 3, 0);
}

Test(process, S8_a_cluster_needs_no_workspace) { /* and more shared memory than a block without */
  run_t r = RUN(WITH(.table = cluster, .environment = {"GEMMSHIM_VRAM_MB=0"}), "plain", "3");
  expect(&r, 3, 3);
}

Test(process, overhead_measures_what_it_says) {
  enum { ROUNDS = 10, CALLS = 64 };
  run_t r = RUN(WITH(.table = table, .environment = {"SIM_NOCOMPUTE=1"}), BUILD "/tests/overhead/overhead",
                "--rounds", "10");
  int64_t each = (ROUNDS + 1) * CALLS; /* one to warm up */
  cr_expect_eq(run_count(&r, GS_ENTRY_GEMM_EX, GS_REASON_SERVED, RUN_ANY), each);
  cr_expect_eq(run_count(&r, GS_ENTRY_GEMM_EX, GS_REASON_NO_ROW, RUN_ANY), each);
  cr_expect_eq(run_count(&r, GS_ENTRY_LT_MATMUL, GS_REASON_SERVED, RUN_ANY), each);
  cr_expect_eq(run_count(&r, GS_ENTRY_LT_MATMUL, GS_REASON_NO_ROW, RUN_ANY), each);
  const char *forwarded = strstr(r.out, "\nforwarded "), *served = strstr(r.out, " ns\nserved ");
  cr_expect(forwarded && served > forwarded, "%s", r.out);
  expect(&r, 4 * each, 2 * each);
}
