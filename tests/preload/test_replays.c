/* libgemmshim-graphs.so: how often captured products run, and that nobody notices who counts. */
#include "run.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLIENTS BUILD "/tests/preload/"
#define SHIM    BUILD "/libgemmshim.so"
#define HANDLES BUILD "/libgemmshim-handles.so"
#define GRAPHS  BUILD "/libgemmshim-graphs.so"
#define USUAL   "LD_PRELOAD=" FIRST SHIM ":" GRAPHS
#define SERVED                                                                                               \
  TABLE_HEADER(SIM_GPU_NAME, "13.1.0")                                                                       \
  "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t1\t128\tmma_f16_f16_tn_64x64x64_s4_"                      \
  "w4\t1\t1\t8\t10\t0\t0\n"

static char folder[128], table[256];

static void setup(void) {
  folder_make(folder);
  file_write(folder, "a.table", SERVED, table);
}

static void teardown(void) {
  folder_remove(folder);
}

TestSuite(replays, .init = setup, .fini = teardown, .timeout = 120);

/* That each product of the program was run by launches as often as the program says, and all of it was traced. */
static void counted(const run_t *r, const char *what) {
  gs_slot_t a = run_slot_of(r, 8), b = run_slot_of(r, 77);
  cr_expect_eq(r->status, 0, "%s: exit status %d: %s%s", what, r->status, r->out, r->err);
  cr_expect_eq(run_number(r, "wrong"), 0, "%s: %s", what, r->err);
  cr_expect_eq((int64_t)a.replayed, run_number(r, "a"), "%s: a: %ld: %s", what, (long)a.replayed, r->out);
  cr_expect_eq((int64_t)b.replayed, run_number(r, "b"), "%s: b: %ld: %s", what, (long)b.replayed, r->out);
  cr_expect(a.captured && a.traced == a.captured && b.traced == b.captured, "%s: %ld of %ld, %ld of %ld",
            what, (long)a.traced, (long)a.captured, (long)b.traced, (long)b.captured);
}

Test(replays, S2_by_runtime_and_by_driver) {
  static const char *const apis[] = {"runtime", "thread", "driver"}, *const modes[] = {"plain", "update",
                                                                                       "nested", "parts"};
  for (size_t i = 0; i < sizeof apis / sizeof *apis; i++)
    for (size_t j = 0; j < sizeof modes / sizeof *modes; j++) {
      if (!strcmp(apis[i], "thread") && j > 0) continue;
      run_t r = RUN(WITH(.table = table, .environment = {USUAL}), "replays", apis[i], modes[j], "7");
      counted(&r, apis[i]);
      run_free(&r);
    }
}

Test(replays, S2_thousands_of_captures) {
  run_t r = RUN(WITH(.table = table, .environment = {USUAL}), "replays", "runtime", "again", "10000");
  counted(&r, "again");
  cr_expect_eq(run_slot_of(&r, 8).captured, 10000);
  run_free(&r);
}

Test(replays, S2_S3_launches_from_four_threads) {
  run_t r = RUN(WITH(.environment = {USUAL}), "replays", "runtime", "threads", "500");
  counted(&r, "threads");
  run_free(&r);
}

/* Unknown is unknown: not traced, and no replay. */
Test(replays, what_is_not_seen_is_not_traced) {
  static const struct {
    const char *environment, *api;
  } cases[] = {{USUAL, "unseen"}, {"LD_PRELOAD=" FIRST SHIM, "runtime"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run_t r = RUN(WITH(.environment = {cases[i].environment}), "replays", cases[i].api, "plain", "7");
    gs_slot_t a = run_slot_of(&r, 8);
    cr_expect_eq(r.status, 0, "%s", r.err);
    cr_expect(a.captured == 3 && a.traced == 0 && a.replayed == 0, "%s: %ld, %ld, %ld", cases[i].api,
              (long)a.captured, (long)a.traced, (long)a.replayed);
    run_free(&r);
  }
}

Test(replays, S2_a_broken_capture_is_not_traced) {
  run_t r = RUN(WITH(.environment = {USUAL}), "replays", "runtime", "broken", "7");
  gs_slot_t a = run_slot_of(&r, 8), b = run_slot_of(&r, 77);
  cr_expect(a.captured == 2 && a.traced == 1 && a.replayed == 7, "%ld, %ld", (long)a.traced,
            (long)a.replayed);
  cr_expect(b.captured == 1 && b.traced == 0 && b.replayed == 0, "%ld, %ld", (long)b.traced,
            (long)b.replayed);
  run_free(&r);
}

Test(replays, captures_into_another_graph_are_not_traced) {
  run_t r = RUN(WITH(.environment = {USUAL}), "replays", "runtime", "into", "7");
  gs_slot_t a = run_slot_of(&r, 8), b = run_slot_of(&r, 77);
  cr_expect(a.captured == 1 && a.traced == 0 && a.replayed == 0, "%ld, %ld", (long)a.traced,
            (long)a.replayed);
  cr_expect(b.traced == 1, "%ld", (long)b.traced);
  run_free(&r);
}

/* Each object's calls come to the runtime that it links, whichever was loaded first; the stand-in of 12 wants all five
 * arguments of its cudaGraphInstantiate. */
Test(replays, L3_two_runtimes_in_one_process) {
  static const char *const objects[] = {CLIENTS "replays-12.so:replays_run:3",
                                        CLIENTS "replays-13.so:replays_run:5"};
  for (int first = 0; first < 2; first++)
    for (int unloaded = 0; unloaded < 2; unloaded++) {
      run_t r = unloaded ? RUN(WITH(.environment = {USUAL}), "host", "-u", objects[first], objects[!first])
                         : RUN(WITH(.environment = {USUAL}), "host", objects[first], objects[!first]);
      cr_expect_eq(r.status, 0, "%s", r.err);
      cr_expect_eq(run_slot_of(&r, 8).replayed, 2 * 3 * (3 + 5), "%ld", (long)run_slot_of(&r, 8).replayed);
      cr_expect_eq(run_slot_of(&r, 8).traced, 2 * 3 * 2);
      run_free(&r);
    }
}

Test(replays, L2_a_runtime_loaded_local_or_global) {
  run_t r = RUN(WITH(.environment = {USUAL}), "host", "-g", BUILD "/sim/cuda13/libcudart.so.13",
                CLIENTS "replays-12.so:replays_run:3", CLIENTS "replays-13.so:replays_run:5");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(run_slot_of(&r, 8).replayed, 2 * 3 * (3 + 5), "%ld", (long)run_slot_of(&r, 8).replayed);
  run_free(&r);
}

/* Who calls is found by the return address, which is another object's where a call ends in a jump: here one's that
 * knows of no runtime. */
Test(replays, L2_a_caller_that_cannot_be_told) {
  run_t r = RUN(WITH(.environment = {USUAL}), "host", CLIENTS "replays-13.so:replays_jump:0");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(run_slot_of(&r, 8).replayed, 2);
  run_free(&r);
}

/* The toolkit's own runtime, without a GPU. */
Test(replays, L1_C15_a_real_runtime_answers_as_without_us) {
  if (access(CLIENTS "runtime_errors", X_OK))
    cr_skip_test("no CUDA runtime was here when the tests were built");
  run_t bare = RUN(WITH(.bare = true, .libraries = "/nonexistent"), "runtime_errors");
  run_t r = RUN(WITH(.libraries = "/nonexistent", .environment = {USUAL}), "runtime_errors");
  cr_expect_eq(bare.status, 0, "%s", bare.err);
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect(strstr(bare.out, "bound: libcudart.so"), "%s", bare.out);
  cr_expect(strstr(r.out, "bound: libgemmshim-graphs.so\n"), "%s", r.out);
  cr_expect_str_eq(strchr(r.out, '\n'), strchr(bare.out, '\n'));
  run_free(&bare);
  run_free(&r);
}

Test(replays, L12_in_any_order_and_with_the_hook_of_look_ups) {
  static const char *const preloads[] = {"LD_PRELOAD=" FIRST GRAPHS ":" SHIM,
                                         "LD_PRELOAD=" FIRST SHIM ":" HANDLES ":" GRAPHS,
                                         "LD_PRELOAD=" FIRST GRAPHS ":" HANDLES ":" SHIM};
  for (size_t i = 0; i < sizeof preloads / sizeof *preloads; i++) {
    run_t r = RUN(WITH(.table = table, .environment = {preloads[i]}), "replays", "runtime", "update", "7");
    counted(&r, preloads[i]);
    run_free(&r);
  }
}

/* Alone, without a runtime, without a driver, switched off, under a program that has nothing to do with CUDA. */
Test(replays, L7_L11_where_there_is_nothing_to_count) {
  run_t alone = RUN(WITH(.environment = {"LD_PRELOAD=" FIRST GRAPHS}), "replays", "runtime", "nested", "7");
  cr_expect_eq(alone.status, 0, "%s", alone.err);
  run_free(&alone);
  run_t off = RUN(WITH(.environment = {USUAL, "GEMMSHIM_OFF=1"}), "replays", "runtime", "nested", "7");
  cr_expect_eq(off.status, 0, "%s", off.err);
  cr_expect_eq(run_number(&off, "wrong"), 0);
  run_free(&off);
  run_t no_cuda = RUN(WITH(.libraries = "/nonexistent", .environment = {USUAL}), "/bin/true");
  cr_expect_eq(no_cuda.status, 0, "%d: %s", no_cuda.status, no_cuda.err);
  cr_expect_str_empty(no_cuda.err);
  run_free(&no_cuda);
}

Test(replays, statuses_and_results_are_those_without_us) {
  static const char *const modes[] = {"plain", "update", "nested", "parts", "broken", "into"};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    run_t bare = RUN(WITH(.bare = true), "replays", "runtime", modes[i], "3");
    run_t r = RUN(WITH(.table = table, .environment = {USUAL}), "replays", "runtime", modes[i], "3");
    cr_expect_eq(r.status, bare.status);
    cr_expect_str_eq(r.out, bare.out);
    run_free(&bare);
    run_free(&r);
  }
}
