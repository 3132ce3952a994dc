/* Rows that name one of cuBLASLt's own algorithms: served to every entry point, with this build alone, and only
 * where the library agrees. */
#include "run.h"

#include <criterion/criterion.h>
#include <stdio.h>

static char folder[128];

static void setup(void) {
  folder_make(folder);
}
static void teardown(void) {
  folder_remove(folder);
}
TestSuite(library, .init = setup, .fini = teardown, .timeout = 60);

/* The stand-in's algorithm 3 has the tiles 18 to 20; the second row is a kernel that splits k. */
static const char *table_of(const char *algo, int splits, const char *cublas) {
  static char path[256];
  char text[2048];
  snprintf(text, sizeof text,
           "format: 1\ngpu: " SIM_GPU_NAME "\narch: sm_90\nsms: 132\ncublas: %s\nmethod: fixture\n"
           "date: 2026-11-29\n"
           "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t1\t16\t%s\t%d\t1\t5\t10\t0\t0\n"
           "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t40\t40\tmma_f16_f16_tn_64x64x64_s4_"
           "w4\t9\t1\t5\t10\t0\t0\n"
           "T\tN\t64\t64\tf16\tf16\t32f\tbias\tsingle\t1\t64\t%s\t%d\t1\t5\t10\t0\t0\n"
           "T\tN\t64\t64\tf16\tf16\t32f\tdefault\tstrided:2\t1\t64\t%s\t%d\t1\t5\t10\t0\t0\n",
           cublas, algo, splits, algo, splits, algo, splits);
  file_write(folder, "algo.table", text, path);
  return path;
}

#define ALGO  "lt_3_t19_s0_r0_z1_c0_i0_h0"
#define SPLIT "lt_3_t19_s0_r2_z0_c0_i0_h0" /* of k, in four */

Test(library, a_row_serves_gemm_ex_by_the_algorithm_it_names) {
  run_t r = RUN(WITH(.table = table_of(ALGO, 1, "13.1.0")), "algo", "plain");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(RUN_SERVED(&r), 5, "%s", r.err);
  cr_expect_eq(RUN_CALLS(&r), 5, "our own call is not counted");
  cr_expect_eq(run_number(&r, "algo"), 3);
  cr_expect_eq(run_number(&r, "tile"), 19);
  cr_expect_eq(run_number(&r, "checks"), 2, "once for each scalar mode, then never again");
  run_free(&r);
}

Test(library, the_log_names_the_algorithm) {
  run_t r =
      RUN(WITH(.table = table_of(ALGO, 1, "13.1.0"), .environment = {"GEMMSHIM_LOG=2"}), "algo", "plain");
  cr_expect_eq(run_lines(r.err, "algorithm " ALGO), 4, "%s", r.err);
  run_free(&r);
}

Test(library, split_sums_leave_the_kernels_workspace_alone) {
  run_t r = RUN(WITH(.table = table_of(SPLIT, 4, "13.1.0")), "algo", "plain");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(RUN_SERVED(&r), 5);
  cr_expect_eq(run_number(&r, "splits"), 4);
  run_free(&r);
}

Test(library, its_workspace_counts_against_the_bound) {
  run_t r = RUN(WITH(.table = table_of(SPLIT, 4, "13.1.0"), .environment = {"GEMMSHIM_VRAM_MB=0"}), "algo",
                "plain");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_WORKSPACE, RUN_ANY), 5);
  run_free(&r);
}

Test(library, scalars_on_the_device_and_captures_are_served) {
  run_t device = RUN(WITH(.table = table_of(ALGO, 1, "13.1.0")), "algo", "device");
  run_t captured = RUN(WITH(.table = table_of(SPLIT, 4, "13.1.0")), "algo", "captured");
  cr_expect_eq(device.status, 0, "%s", device.err);
  cr_expect_eq(RUN_SERVED(&device), 6);
  cr_expect_eq(captured.status, 0, "%s", captured.err);
  cr_expect_eq(RUN_SERVED(&captured), 7);
  run_free(&device);
  run_free(&captured);
}

Test(library, less_aligned_operands_are_forwarded) {
  run_t r = RUN(WITH(.table = table_of(ALGO, 1, "13.1.0")), "algo", "odd");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_ALIGNMENT, RUN_ANY), 4);
  run_free(&r);
}

Test(library, another_build_forwards_however_wide_the_margin) {
  run_t r = RUN(WITH(.table = table_of(ALGO, 1, "13.1.1")), "algo", "plain");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_UNPROVEN, RUN_ANY), 4);
  cr_expect_eq(RUN_SERVED(&r), 1, "the kernel's row");
  cr_expect_eq(run_number(&r, "algo"), -1);
  run_free(&r);
}

Test(library, an_algorithm_that_the_library_refuses_is_forwarded) {
  run_t r = RUN(WITH(.table = table_of(ALGO, 1, "13.1.0"), .environment = {"SIM_REFUSE=3"}), "algo", "plain");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_ALGORITHM_REFUSED, RUN_ANY), 4);
  cr_expect_eq(run_number(&r, "algo"), -1);
  run_free(&r);
}

Test(library, a_failing_call_is_forwarded_and_its_row_retired) {
  run_t r = RUN(WITH(.table = table_of(ALGO, 1, "13.1.0"), .environment = {"SIM_FAIL=cublasLtMatmul:*=15"}),
                "algo", "plain");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_LAUNCH_FAILED, RUN_ANY), 4);
  cr_expect_eq(run_lines(r.err, "the row is retired"), 1, "%s", r.err);
  run_free(&r);
}

/* ---- launches that are learnt from a few captures (src/relaunch.h) ---- */

enum { SHOTS = 8 };

/* cublasLtMatmul was called so often in all; everything was served. */
static void served_by(setup_t setup, const char *way, const char *const *environment, int served,
                      int matmuls) {
  for (int i = 0; environment[i]; i++) setup.environment[i] = environment[i];
  run_t r = RUN(&setup, "algo", way);
  cr_expect_eq(r.status, 0, "%s %s: %s", way, environment[0], r.err);
  cr_expect_eq(RUN_SERVED(&r), served, "%s %s: %s", way, environment[0], r.err);
  cr_expect_eq(run_number(&r, "matmuls"), matmuls, "%s %s: %d", way, environment[0],
               (int)run_number(&r, "matmuls"));
  run_free(&r);
}
#define ENVIRONMENT(...) ((const char *const[]){__VA_ARGS__, NULL})
#define ONE_KERNEL       ((setup_t){.table = table_of(ALGO, 1, "13.1.0")})
#define TWO_KERNELS      ((setup_t){.table = table_of(SPLIT, 4, "13.1.0")})
#define SERVED_BY(way, served, matmuls, ...)                                                                 \
  served_by(ONE_KERNEL, way, ENVIRONMENT(__VA_ARGS__), served, matmuls)
#define SPLIT_SERVED_BY(way, served, matmuls, ...)                                                           \
  served_by(TWO_KERNELS, way, ENVIRONMENT(__VA_ARGS__), served, matmuls)
#define USUALLY "SIM_LAUNCH=none"

/* By the first call that is not captured. */
Test(library, a_launch_is_learnt_once_and_made_without_the_library) {
  SERVED_BY("plain", 5, SHOTS, USUALLY);
  SERVED_BY("captured", 7, 2 + SHOTS, USUALLY);
  SERVED_BY("many", 1205, SHOTS, USUALLY);
  SERVED_BY("plain", 5, SHOTS, USUALLY, "SIM_CLUSTER=0");
}

Test(library, a_counter_that_is_cleared_ahead_of_the_kernel_is_found_at_zero) {
  SERVED_BY("plain", 5, SHOTS, "SIM_LAUNCH=counter");
  SERVED_BY("captured", 7, 2 + SHOTS, "SIM_LAUNCH=counter");
  SERVED_BY("many", 1205, SHOTS, "SIM_LAUNCH=counter");
}

Test(library, parameters_that_come_singly_are_put_together) {
  SERVED_BY("plain", 5, SHOTS, "SIM_LAUNCH=singly");
  SERVED_BY("many", 1205, SHOTS, "SIM_LAUNCH=singly");
  SERVED_BY("plain", 5, SHOTS, "SIM_LAUNCH=singly,counter");
  SERVED_BY("plain", 5, SHOTS + 4, "SIM_LAUNCH=singly,secret");
  SERVED_BY("plain", 5, SHOTS + 4, "SIM_LAUNCH=singly,tail");
}

Test(library, both_kernels_of_a_split_are_launched) {
  SPLIT_SERVED_BY("plain", 5, SHOTS, "SIM_LAUNCH=split");
  SPLIT_SERVED_BY("plain", 5, SHOTS, "SIM_LAUNCH=split,early");
  SPLIT_SERVED_BY("plain", 5, SHOTS, "SIM_LAUNCH=split,singly");
  SPLIT_SERVED_BY("captured", 7, 2 + SHOTS, "SIM_LAUNCH=split");
  SPLIT_SERVED_BY("many", 1205, SHOTS, "SIM_LAUNCH=split");
  SPLIT_SERVED_BY("scaled", 9, SHOTS + 2, "SIM_LAUNCH=split");
  SPLIT_SERVED_BY("plain", 5, SHOTS + 4, "SIM_LAUNCH=split,secret");
  SPLIT_SERVED_BY("plain", 5, SHOTS + 4, "SIM_LAUNCH=split,tail");
}

Test(library, a_driver_that_cannot_tell_of_parameters_or_edges_leaves_them_to_the_library) {
  static const char older[] = BUILD "/sim/driver-12.0:" BUILD "/sim/cuda13";
  setup_t one = ONE_KERNEL;
  one.libraries = older;
  served_by(one, "plain", ENVIRONMENT(USUALLY), 5, SHOTS);
  served_by(one, "plain", ENVIRONMENT("SIM_LAUNCH=singly"), 5, 1 + 4);
  served_by(one, "plain", ENVIRONMENT("SIM_LAUNCH=counter"), 5, 1 + 4);
  setup_t two = TWO_KERNELS;
  two.libraries = older;
  served_by(two, "plain", ENVIRONMENT("SIM_LAUNCH=split"), 5, 1 + 4);
}

Test(library, what_cannot_be_learnt_goes_through_the_library) {
  SERVED_BY("plain", 5, 1 + 4, "SIM_LAUNCH=thrice");
  SERVED_BY("plain", 5, 1 + 4, "SIM_LAUNCH=apart");
  SPLIT_SERVED_BY("plain", 5, 1 + 4, "SIM_LAUNCH=split,ordered");
  SERVED_BY("plain", 5, 1 + 4, "SIM_LAUNCH=counter,singly,early");
  SPLIT_SERVED_BY("plain", 5, 1 + 4, "SIM_LAUNCH=split", "SIM_FAIL=cuGraphNodeGetDependentNodes_v2:1=402");
  SPLIT_SERVED_BY("plain", 5, 1 + 4, "SIM_LAUNCH=split", "SIM_FAIL=cuKernelGetParamInfo:3=999");
  SERVED_BY("plain", 5, SHOTS + 4, "SIM_LAUNCH=secret");
  SERVED_BY("plain", 5, SHOTS + 4, "SIM_LAUNCH=tail");
  SERVED_BY("plain", 5, 1 + 4, "SIM_LAUNCH=domain");
  SERVED_BY("plain", 5, 2 + 4, "SIM_LAUNCH=aligned");
  SPLIT_SERVED_BY("plain", 5, 2 + 4, "SIM_LAUNCH=split,aligned");
  SERVED_BY("plain", 5, 4, USUALLY, "GEMMSHIM_RELAUNCH=0");
  SERVED_BY("plain", 5, 1 + 4, USUALLY, "SIM_FAIL=cuStreamEndCapture:1=1");
}

Test(library, S4_what_one_context_learnt_is_not_for_another) {
  SERVED_BY("elsewhere", 7, SHOTS + 4, USUALLY);
}

Test(library, the_summary_tells_what_was_learnt) {
  run_t learnt =
      RUN(WITH(.table = table_of(ALGO, 1, "13.1.0"), .environment = {"GEMMSHIM_LOG=1"}), "algo", "plain");
  cr_expect_eq(run_lines(learnt.err, "of 1 algorithms of cuBLASLt, the launches of 1 were learnt"), 1, "%s",
               learnt.err);
  run_t without =
      RUN(WITH(.table = table_of(ALGO, 1, "13.1.0"), .environment = {"GEMMSHIM_LOG=1", "SIM_LAUNCH=thrice"}),
          "algo", "plain");
  cr_expect_eq(run_lines(without.err, "of 1 algorithms of cuBLASLt, the launches of 0 were learnt"), 1, "%s",
               without.err);
  run_free(&learnt);
  run_free(&without);
}

Test(library, other_scalars_go_through_the_library) {
  SERVED_BY("scaled", 9, SHOTS + 2, USUALLY);
  SERVED_BY("device", 6, SHOTS + 1, USUALLY);
}

Test(library, a_launch_that_fails_is_not_tried_again) {
  SERVED_BY("plain", 5, SHOTS + 4, USUALLY, "SIM_FAIL=cuLaunchKernelEx:1=1");
}

/* By its second kernel, the first one being under way, or in the graph; or by its first. */
Test(library, a_split_that_fails_is_computed_anew_and_not_tried_again) {
  SPLIT_SERVED_BY("once", 6, SHOTS + 5, "SIM_LAUNCH=split", "SIM_FAIL=cuLaunchKernelEx:2=1");
  SPLIT_SERVED_BY("plain", 5, SHOTS + 4, "SIM_LAUNCH=split", "SIM_FAIL=cuLaunchKernelEx:2=1");
  SPLIT_SERVED_BY("many", 1205, SHOTS + 604, "SIM_LAUNCH=split", "SIM_FAIL=cuLaunchKernelEx:1202=1");
  SPLIT_SERVED_BY("plain", 5, SHOTS + 4, "SIM_LAUNCH=split", "SIM_FAIL=cuLaunchKernelEx:1=1");
}

Test(library, no_room_forwards) {
  static const char *const launches[] = {"SIM_LAUNCH=counter", "SIM_LAUNCH=split"};
  for (int i = 0; i < 2; i++) {
    setup_t setup = i ? TWO_KERNELS : ONE_KERNEL;
    setup.environment[0] = launches[i], setup.environment[1] = "GEMMSHIM_VRAM_MB=0";
    run_t r = RUN(&setup, "algo", "plain");
    cr_expect_eq(r.status, 0, "%s: %s", launches[i], r.err);
    cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_WORKSPACE, RUN_ANY), 5, "%s", launches[i]);
    run_free(&r);
  }
}

#define ROW_OF(columns, algo, splits)                                                                        \
  "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t" columns "\t" algo "\t" splits "\t1\t5\t10\t0\t0\n"
#define ROW_OF_ALGO  ROW_OF("1\t16", ALGO, "1")
#define ROW_OF_SPLIT ROW_OF("1\t16", SPLIT, "4")
#define ROW_OF_OURS  ROW_OF("40\t40", "mma_f16_f16_tn_64x64x64_s4_w4", "9")

static void threads_fare(const char *launch, const char *rows, const char *how) {
  static const char *const ways[] = {"4", "16"};
  char path[256];
  file_write(folder, "threads.table", rows, path);
  for (int i = 0; i < 2; i++) {
    run_t r = RUN(WITH(.table = path, .environment = {launch}), "threads", ways[i], "200", how);
    cr_expect_eq(r.status, 0, "%s: %s", ways[i], r.err);
    cr_expect_eq(RUN_SERVED(&r), RUN_CALLS(&r), "%s", ways[i]);
    run_free(&r);
  }
}

Test(library, S3_threads_on_one_stream_do_not_share_a_counter) {
  threads_fare("SIM_LAUNCH=counter", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW_OF_ALGO, NULL);
}

Test(library, S3_threads_on_one_stream_do_not_share_the_sums_of_a_split) {
  threads_fare("SIM_LAUNCH=split", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW_OF_SPLIT, NULL);
}

/* Which a kernel of ours has in the same workspace, whoever launches that split. */
Test(library, S3_threads_on_one_stream_do_not_write_into_a_split) {
  threads_fare("SIM_LAUNCH=split", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW_OF_SPLIT ROW_OF_OURS, "mixed");
  threads_fare("SIM_LAUNCH=split,secret", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW_OF_SPLIT ROW_OF_OURS,
               "mixed");
}

/* Where the GPU, or how much of it there is, may be another, it is learnt anew or left to the library. */
Test(library, S4_launches_are_learnt_by_device_and_for_one_context) {
  static const struct {
    const char *mode, *devices, *said;
    int calls;
  } cases[] = {
      {"devices", "SIM_DEVICES=3", "of 3 algorithms of cuBLASLt, the launches of 3 were learnt", 18},
      {"contexts", "SIM_DEVICES=1", "of 1 algorithms of cuBLASLt, the launches of 1 were learnt", 150},
      {"reset", "SIM_DEVICES=1", "of 1 algorithms of cuBLASLt, the launches of 1 were learnt", 150}};
  char path[256];
  file_write(folder, "places.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW_OF_ALGO, path);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run_t r = RUN(WITH(.table = path, .environment = {"SIM_LAUNCH=counter", "GEMMSHIM_LOG=1",
                                                      "GEMMSHIM_VRAM_MB=64", cases[i].devices}),
                  "places", cases[i].mode);
    cr_expect_eq(r.status, 0, "%s: %s", cases[i].mode, r.err);
    cr_expect_eq(RUN_SERVED(&r), cases[i].calls, "%s: %s", cases[i].mode, r.err);
    cr_expect_eq(run_lines(r.err, cases[i].said), 1, "%s: %s", cases[i].mode, r.err);
    run_free(&r);
  }
}

Test(library, cublasLtMatmul_is_served_too) {
  static const char *const cases[] = {"bias", "strided"};
  for (int i = 0; i < 2; i++) {
    run_t r = RUN(WITH(.table = table_of(ALGO, 1, "13.1.0")), "lt", cases[i]);
    cr_expect_eq(r.status, 0, "%s: %s", cases[i], r.err);
    cr_expect_eq(RUN_SERVED(&r), 1, "%s: %s", cases[i], r.err);
    run_free(&r);
  }
}
