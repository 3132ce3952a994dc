/* Streams, contexts, graphs and devices. The stand-in's split-K kernels stop the program when they find their
 * counters dirty or in use, or their workspace gone. */
#include "run.h"

#include <criterion/criterion.h>
#include <string.h>

#define ROW(split)                                                                                           \
  "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t1\t64\tmma_f16_f16_tn_64x64x64_s4_"                       \
  "w4\t" split "\t1\t8\t10\t0\t0\n"

static char folder[128], table[256], split[256], cluster[256];

static void setup(void) {
  folder_make(folder);
  file_write(folder, "sim.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW("1"), table);
  file_write(folder, "split.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW("9"),
             split); /* more parts than a cluster has: by a workspace */
  file_write(folder, "cluster.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW("8"), cluster);
}

static void teardown(void) {
  folder_remove(folder);
}

TestSuite(graphs, .init = setup, .fini = teardown, .timeout = 120);

Test(graphs, S2_update_of_an_executable_graph) {
  run_t r = RUN(WITH(.table = split), "graphs", "update");
  cr_expect_eq(run_number(&r, "kept"), 1, "what the update took over is still in use");
  cr_expect_eq(run_number(&r, "freed"), 1, "what it replaced is not");
  run_fared(&r, 3, 3);
}

/* The driver lets a node that says nothing of clusters keep its forerunner's, and then does not run it: be it ours behind
 * cuBLAS's or cuBLAS's behind ours. Where an update may pass unseen, our launches name theirs; else the update sees to it. */
Test(graphs, S2_an_update_from_cublas_to_us_and_back) {
  const char *const tables[] = {table, split, cluster};
  const struct {
    const char *mode, *cublas;
  } cases[] = {{"unseen", "SIM_CLUSTER=4"}, {"seen", "SIM_CLUSTER=4"}, {"seen", "SIM_CLUSTER=0"}};
  for (int i = 0; i < 9; i++) {
    run_t r = RUN(WITH(.table = tables[i % 3], .environment = {cases[i / 3].cublas}), "graphs",
                  cases[i / 3].mode, "50");
    cr_expect_eq(run_number(&r, "wrong"), 0, "%s %s, table %d: %s", cases[i / 3].mode, cases[i / 3].cublas,
                 i % 3, r.out);
    run_fared(&r, 51, 25);
  }
}

Test(graphs, S2_captured_again_thousands_of_times) {
  const char *const tables[] = {table, split};
  for (int i = 0; i < 2; i++) {
    run_t r = RUN(WITH(.table = tables[i]), "graphs", "again", "3000");
    cr_expect_eq(run_number(&r, "grown"), 0, "%s", r.out);
    run_fared(&r, 3000, 3000);
  }
}

/* A driver tells of a graph's end when it likes: rather than to record cuBLAS's kernels in one graph and ours in the next,
 * we wait a little. */
Test(graphs, S2_S8_captured_again_where_graphs_end_late) {
  for (int tries = 20; tries > 0; tries--) {
    run_t r = RUN(WITH(.table = split, .environment = {"GEMMSHIM_VRAM_MB=4", "SIM_LATE_US=300"}), "graphs",
                  "again", "300");
    /* We wait 2 ms. Where this machine made somebody later than that, nothing is to be learnt. */
    if (run_number(&r, "latest") < 1500) {
      run_fared(&r, 300, 300);
      return;
    }
    run_free(&r);
  }
  cr_skip_test("this machine is too busy to tell of a graph's end within 1.5 ms");
}

Test(graphs, S2_replays_at_once) {
  run_t r = RUN(WITH(.table = split), "graphs", "together", "100");
  run_fared(&r, 4, 4);
}

/* In thread-local and relaxed mode, and all graphs replayed at once: parts of k by a workspace, as a cluster, none. */
Test(graphs, S2_S3_captures_on_many_threads_at_once) {
  const char *const tables[] = {split, cluster, table};
  for (int i = 0; i < 3; i++) {
    run_t r = RUN(WITH(.table = tables[i], .environment = {"GEMMSHIM_VRAM_MB=24"}), "crowd", "8", "40");
    cr_expect_eq(run_number(&r, "grown"), 0, "%s", r.out);
    run_fared(&r, 8 * 40 * 3, 8 * 40 * 3);
  }
}

Test(graphs, S8_a_start_like_vllms_under_the_bound) {
  run_t r = RUN(WITH(.table = split, .environment = {"SIM_MEMORY_MB=128", "GEMMSHIM_VRAM_MB=8"}), "graphs",
                "many", "51");
  int64_t refused = run_count(&r, RUN_ANY, GS_REASON_WORKSPACE, RUN_ANY);
  cr_expect_eq(run_number(&r, "taken"), 8 << 20);
  cr_expect_eq(refused, 51 - 7, "8 MB are a block for the legacy stream and for 7 graphs: %ld",
               (long)refused);
  run_fared(&r, 109, 109 - refused);
}

/* 40 MB are left, and the bound is far above: the driver itself says no. */
Test(graphs, S8_no_memory_left) {
  run_t r = RUN(WITH(.table = split, .environment = {"SIM_MEMORY_MB=128", "GEMMSHIM_VRAM_MB=4096"}), "graphs",
                "many", "51");
  int64_t refused = run_count(&r, RUN_ANY, GS_REASON_WORKSPACE, RUN_ANY);
  cr_expect_gt(refused, 0);
  cr_expect_lt(refused, 51, "%ld", (long)refused);
  run_fared(&r, 109, 109 - refused);
}

Test(graphs, S1_the_handles_very_stream) {
  run_t r = RUN(WITH(.table = table), "places", "exact");
  run_fared(&r, 15, 15);
}

/* Where asked to, before what is ahead of them has ended, but for captured ones, which the stand-in refuses, those whose loads are not coherent,
 * and where there is no such thing. */
Test(graphs, S1_kernels_may_begin_early) {
#define EARLY_ROW(kernel)                                                                                    \
  "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t1\t64\t" kernel "\t1\t1\t8\t10\t0\t0\n"
#define ON(arch, kernel) TABLE_HEADER_OF(SIM_GPU_NAME, arch, "13.1.0") EARLY_ROW(kernel)
  static const struct {
    const char *text, *sm, *asked;
    int early;
  } cases[] = {{ON("sm_90", "mma_f16_f16_tn_64x64x64_s4_w4"), "SIM_SM=90", "GEMMSHIM_EARLY=1", 5},
               {ON("sm_90", "wgmma_f16_f16_tn_64x64x64_s8_w4"), "SIM_SM=90", "GEMMSHIM_EARLY=1", 5},
               {ON("sm_90", "mma_f16_f16_tn_64x64x64_s4_w4"), "SIM_SM=90", NULL, 0},
               {ON("sm_90", "direct_f16_f16_tn_16x8_u4_w8_sw"), "SIM_SM=90", "GEMMSHIM_EARLY=1", 0},
               {ON("sm_90", "rows_f16_f16_tn_2x1_u4_w8"), "SIM_SM=90", "GEMMSHIM_EARLY=1", 0},
               {ON("sm_80", "mma_f16_f16_tn_64x64x64_s4_w4"), "SIM_SM=80", "GEMMSHIM_EARLY=1", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    file_write(folder, "early.table", cases[i].text, table);
    run_t r = RUN(WITH(.table = table, .environment = {cases[i].sm, cases[i].asked}), "places", "exact");
    cr_expect_eq(run_number(&r, "early"), cases[i].early, "%d: %s", (int)i, r.out);
    run_fared(&r, 15, 15);
  }
  run_t r = RUN(WITH(.table = split, .environment = {"GEMMSHIM_EARLY=1"}), "captures");
  cr_expect_eq(RUN_SERVED(&r), 4, "%s", r.err);
  run_free(&r);
}

Test(graphs, S4_each_device_in_turn) {
  const char *const tables[] = {table, split};
  for (int i = 0; i < 2; i++) {
    run_t r = RUN(WITH(.table = tables[i], .environment = {"SIM_DEVICES=3"}), "places", "devices");
    run_fared(&r, 18, 18);
  }
}

Test(graphs, S4_one_handle_from_many_threads) {
  run_t r = RUN(WITH(.table = split), "places", "threads");
  run_fared(&r, 24, 24);
}

/* A block of a context that is gone is found when its handle comes again: under the address sanitizer none does. */
Test(graphs, S4_contexts_come_and_go) {
  const char *bound = strstr(FIRST, "libasan") ? "GEMMSHIM_VRAM_MB=64" : "GEMMSHIM_VRAM_MB=8";
  run_t r = RUN(WITH(.table = split, .environment = {"GEMMSHIM_SAMPLE=1", bound}), "places", "contexts");
  run_fared(&r, 150, 150);
}

/* Whoever serves: parts of k by a workspace, or an algorithm of cuBLASLt that has one. It is never the caller's. */
Test(graphs, S5_stream_and_workspace_set_before_each_call) {
  char algorithm[256];
  file_write(folder, "algorithm.table",
             TABLE_HEADER(SIM_GPU_NAME, "13.1.0") "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t1\t64\t"
                                                  "lt_3_t19_s0_r2_z0_c0_i0_h0\t4\t1\t5\t10\t0\t0\n",
             algorithm);
  const char *const tables[] = {split, algorithm};
  for (int i = 0; i < 2; i++) {
    run_t r = RUN(WITH(.table = tables[i]), "places", "streams");
    run_fared(&r, 2000, 2000);
  }
}

/* Workspace and events go with the context; more resets than the bound has blocks. */
Test(graphs, S6_device_reset) {
  static const char *const users_of_events[] = {"GEMMSHIM_SAMPLE=1", "GEMMSHIM_VERIFY=1"};
  for (int i = 0; i < 2; i++) {
    run_t r = RUN(WITH(.table = split, .environment = {users_of_events[i], "GEMMSHIM_VRAM_MB=8"}), "places",
                  "reset");
    run_fared(&r, 150, 150);
  }
}
