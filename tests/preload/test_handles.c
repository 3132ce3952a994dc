/* libgemmshim-handles.so: look-ups by handle are reached, and no other look-up notices. */
#include "run.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#define ROW                                                                                                  \
  "T\tN\t128\t128\tf16\tf16\t32f\tdefault\tsingle\t1\t64\tmma_f16_f16_tn_64x64x64_s4_"                       \
  "w4\t1\t1\t8\t10\t0\t0\n"

#define CLIENTS BUILD "/tests/preload/"
#define SHIM    BUILD "/libgemmshim.so"
#define HANDLES BUILD "/libgemmshim-handles.so"
/* For LD_PRELOAD, each beginning with what a sanitizer must have first. */
#define USUAL "LD_PRELOAD=" FIRST SHIM ":" HANDLES

static char folder[128], table[256], table12[256];

static void setup(void) {
  folder_make(folder);
  file_write(folder, "sim.table", TABLE_HEADER(SIM_GPU_NAME, "13.1.0") ROW, table);
  file_write(folder, "sim12.table", TABLE_HEADER(SIM_GPU_NAME, "12.8.0") ROW, table12);
}

static void teardown(void) {
  folder_remove(folder);
}

TestSuite(traps, .init = setup, .fini = teardown, .timeout = 120);

Test(traps, L6_lookups_by_handle_are_reached) {
  run_t bare = RUN(WITH(.bare = true), "lookup", "gemm:13:5");
  cr_expect(strstr(bare.out, "libcublas.so.13: libcublas.so.13\n"), "%s", bare.out);
  run_fared(&bare, 0, 0);
  run_t r = RUN(WITH(.table = table, .environment = {USUAL}), "lookup", "gemm:13:5");
  cr_expect(strstr(r.out, "libcublas.so.13: libgemmshim.so\n"), "%s", r.out);
  run_fared(&r, 5, 5);
}

Test(traps, L6_without_the_hook_they_are_not) {
  run_t r = RUN(WITH(.table = table), "lookup", "gemm:13:5");
  run_fared(&r, 0, 0);
}

Test(traps, L6_jax_looks_cublasLtMatmul_up) {
  run_t r = RUN(WITH(.table = table, .environment = {USUAL}), "lookup", "lt:13:5");
  cr_expect_eq(run_count(&r, GS_ENTRY_LT_MATMUL, GS_REASON_SERVED, RUN_ANY), 5);
  run_fared(&r, 5, 5);
}

Test(traps, L6_ctypes) {
  run_t r =
      RUN(WITH(.table = table, .environment = {USUAL}), "/usr/bin/env", "python3", "tests/preload/lookup.py");
  if (r.status == 127) cr_skip_test("no python3 here");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_str_eq(r.out, "status: 0\n");
  cr_expect_eq(RUN_SERVED(&r), 1);
  run_free(&r);
}

Test(traps, L6_other_lookups_keep_their_caller) {
  static const char *const preloads[] = {USUAL, "LD_PRELOAD=" FIRST SHIM ":" CLIENTS "handles-O0.so",
                                         "LD_PRELOAD=" FIRST HANDLES};
  run_t bare = RUN(WITH(.bare = true), "scopes", CLIENTS "scope-local.so");
  cr_expect(strstr(bare.out, "next: 13\ndefault: 4\nby handle: 4\nhidden: 0\nmissing: 0, "), "%s", bare.out);
  for (size_t i = 0; i < sizeof preloads / sizeof *preloads; i++) {
    run_t r = RUN(WITH(.environment = {preloads[i]}), "scopes", CLIENTS "scope-local.so");
    cr_expect_eq(r.status, 0, "%s", r.err);
    cr_expect_str_eq(r.out, bare.out, "%s: %s", preloads[i], r.out);
    run_free(&r);
  }
  run_free(&bare);
}

Test(traps, L6_unoptimised) {
  run_t r = RUN(WITH(.table = table, .environment = {"LD_PRELOAD=" FIRST SHIM ":" CLIENTS "handles-O0.so"}),
                "lookup", "gemm:13:5", "lt:13:2");
  run_fared(&r, 7, 7);
}

Test(traps, L6_in_either_order_or_alone) {
  run_t turned =
      RUN(WITH(.table = table, .environment = {"LD_PRELOAD=" FIRST HANDLES ":" SHIM}), "lookup", "gemm:13:5");
  run_fared(&turned, 5, 5);
  run_t alone = RUN(WITH(.environment = {"LD_PRELOAD=" FIRST HANDLES}), "lookup", "gemm:13:5");
  run_fared(&alone, 0, 0);
}

/* A handle of one library is a handle of that library's, whatever else is mapped. */
Test(traps, L3_two_majors_looked_up_in_one_process) {
  run_t r = RUN(WITH(.table = table, .environment = {USUAL}), "lookup", "gemm:12:3", "gemm:13:5", "lt:12:2");
  cr_expect_eq(run_count(&r, RUN_ANY, GS_REASON_UNPROVEN, RUN_ANY), 5, "major 12: the table is of 13");
  run_fared(&r, 10, 5);
  run_t other = RUN(WITH(.table = table12, .environment = {USUAL}), "lookup", "gemm:13:5", "gemm:12:3");
  cr_expect_eq(run_count(&other, RUN_ANY, GS_REASON_UNPROVEN, RUN_ANY), 5);
  run_fared(&other, 8, 3);
}

Test(traps, L3_one_major_linked_and_one_looked_up) {
  run_t r = RUN(WITH(.table = table, .environment = {USUAL}), "host", CLIENTS "plugin-12.so:plugin_run:3",
                CLIENTS "plugin-13.so:plugin_run:4");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(RUN_SERVED(&r), 8);
  run_free(&r);
}

Test(traps, L4_stub_that_looks_the_real_one_up) {
  run_t r = RUN(WITH(.table = table, .environment = {USUAL}), "host", "-g", CLIENTS "libstub.so",
                CLIENTS "plugin-13.so:plugin_run:4", CLIENTS "plugin-stub.so:plugin_run:4");
  cr_expect_eq(r.status, 0, "%s", r.err);
  cr_expect_eq(RUN_SERVED(&r), 16);
  run_free(&r);
}

Test(traps, L11_kill_switch_for_lookups) {
  run_t r = RUN(WITH(.table = table, .environment = {USUAL, "GEMMSHIM_OFF=1"}), "lookup", "gemm:13:5");
  cr_expect(strstr(r.out, "libcublas.so.13: libcublas.so.13\n"), "%s", r.out);
  run_fared(&r, 0, 0);
}

/* One that goes on to the next dlsym is passed by each look-up in either order; one that takes the C library's
 * hides what comes after it, and then cuBLAS itself answers. */
Test(traps, L12_another_dlsym_hook) {
  static const struct {
    const char *preload;
    int64_t calls;
    bool seen;
  } cases[] = {{USUAL ":" CLIENTS "hooker-chains.so", 5, true},
               {"LD_PRELOAD=" FIRST CLIENTS "hooker-chains.so:" SHIM ":" HANDLES, 5, true},
               {USUAL ":" CLIENTS "hooker-skips.so", 5, true},
               {"LD_PRELOAD=" FIRST CLIENTS "hooker-skips.so:" SHIM ":" HANDLES, 0, true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run_t r = RUN(WITH(.table = table, .environment = {cases[i].preload}), "lookup", "gemm:13:5");
    cr_expect_eq(strstr(r.err, "hooker: 0") == NULL, cases[i].seen, "%s: %s", cases[i].preload, r.err);
    run_fared(&r, cases[i].calls, cases[i].calls);
    run_t scopes = RUN(WITH(.environment = {cases[i].preload}), "scopes", CLIENTS "scope-local.so");
    cr_expect_eq(scopes.status, 0, "%s: %s", cases[i].preload, scopes.err);
    run_free(&scopes);
  }
}

/* Libraries of Debian that are preloaded for purposes of their own, and look symbols up while they start. */
static const struct {
  const char *package, *pattern, *setting;
} others[] = {{"libjemalloc2", "/usr/lib/*/libjemalloc.so.2", "MALLOC_CONF=background_thread:true"},
              {"libfaketime", "/usr/lib/*/faketime/libfaketime.so.1", "FAKETIME=-1d"}};

static void stacked_with(int other) {
  char first[1024], last[1024];
  glob_t found;
  if (glob(others[other].pattern, 0, NULL, &found)) cr_skip_test("needs Debian's %s", others[other].package);
  if (*FIRST) cr_skip_test("a sanitizer has interceptors of its own");
  snprintf(first, sizeof first, "LD_PRELOAD=%s:%s:%s", found.gl_pathv[0], SHIM, HANDLES);
  snprintf(last, sizeof last, "LD_PRELOAD=%s:%s:%s", SHIM, HANDLES, found.gl_pathv[0]);
  globfree(&found);
  const char *const orders[] = {first, last};
  for (int i = 0; i < 2; i++) {
    run_t r =
        RUN(WITH(.table = table, .environment = {orders[i], others[other].setting}), "lookup", "gemm:13:5");
    run_fared(&r, 5, 5);
    run_t linked = RUN(WITH(.table = table, .environment = {orders[i], others[other].setting}), "plain", "5");
    cr_expect_eq(RUN_SERVED(&linked), 5);
    cr_expect_eq(linked.status, 0, "%s", linked.err);
    run_free(&linked);
  }
}

Test(traps, L12_jemalloc) {
  stacked_with(0);
}

Test(traps, L12_libfaketime) {
  stacked_with(1);
}

Test(traps, L7_no_cuda_at_all_with_the_hook) {
  run_t r = RUN(WITH(.libraries = "/nonexistent", .environment = {USUAL}), "/bin/true");
  cr_expect_str_empty(r.out);
  cr_expect_str_empty(r.err);
  cr_expect_eq(r.status, 0);
  run_free(&r);
}
