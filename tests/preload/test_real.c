/* The real cuBLAS, without a GPU: what binds to what, and whose errors come back. Every major that is here: the
 * toolkit's, and those that `make majors` fetched. */
#define _GNU_SOURCE
#include "run.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HANDLES "LD_PRELOAD=" PRELOAD ":" BUILD "/libgemmshim-handles.so"

static const char *const majors[] = {"11", "12", "13"};
enum { MAJORS = sizeof majors / sizeof *majors };

TestSuite(real, .timeout = 120);

/* The client that links that major, where it is here. */
static const char *client(int i) {
  static char path[128];
  snprintf(path, sizeof path, BUILD "/tests/preload/null_handle-%s", majors[i]);
  return access(path, X_OK) ? NULL : path;
}

#define EACH_MAJOR(i)                                                                                        \
  int tested = 0;                                                                                            \
  for (int i = 0; i < MAJORS; i++)                                                                           \
    if (client(i) && ++tested)
#define SOME_MAJOR                                                                                           \
  if (!tested) cr_skip_test("no real cuBLAS here: neither in the CUDA toolkit nor by make majors")

Test(real, L1_C15_errors_of_each_major_are_its_own) {
  EACH_MAJOR(i) {
    char version[32];
    run_t bare = RUN(WITH(.libraries = "", .bare = true), client(i));
    run_t r = RUN(WITH(.libraries = ""), client(i));
    snprintf(version, sizeof version, "major: %s\n", majors[i]);
    cr_expect(strstr(bare.out, version) && strstr(bare.out, "gemm: 1\n"), "cuBLAS itself says: %s", bare.out);
    cr_expect_str_eq(r.out, bare.out);
    cr_expect_eq(r.status, 0, "%s", r.err);
    run_free(&bare);
    run_free(&r);
  }
  SOME_MAJOR;
}

/* The loader's own word: versioned references of every major come to our unversioned functions. */
Test(real, L1_versioned_references_bind_to_ours) {
  EACH_MAJOR(i) {
    char wanted[160];
    run_t r = RUN(WITH(.libraries = "", .environment = {"LD_DEBUG=bindings", "LD_BIND_NOW=1"}), client(i));
    snprintf(wanted, sizeof wanted, "libgemmshim.so [0]: normal symbol `cublasGemmEx' [libcublas.so.%s]",
             majors[i]);
    cr_expect_eq(r.status, 0);
    cr_expect(strstr(r.err, wanted), "major %s is not bound to libgemmshim.so", majors[i]);
    run_free(&r);
  }
  SOME_MAJOR;
}

/* Every major that is here, looked up by one program that links none of the later ones. */
Test(real, L3_L6_all_majors_looked_up_in_one_process) {
  char paths[MAJORS][512];
  const char *arguments[MAJORS + 2] = {NULL};
  int count = 0;
  EACH_MAJOR(i) {
    char command[300];
    snprintf(command, sizeof command, "ldd %s | sed -n 's/.*libcublas\\.so.* => \\(.*\\) (.*/\\1/p'",
             client(i));
    FILE *pipe = popen(command, "r");
    cr_assert(pipe && fscanf(pipe, "%511s", paths[count]) == 1, "%s", command);
    pclose(pipe);
    if (!arguments[0]) arguments[0] = strdup(client(i));
    arguments[count + 1] = paths[count];
    count++;
  }
  SOME_MAJOR;
  run_t bare = run(WITH(.libraries = "", .bare = true), arguments);
  run_t r = run(WITH(.libraries = "", .environment = {HANDLES}), arguments);
  cr_expect_eq(run_lines(bare.out, "gemm: 1"), count, "%s", bare.out);
  cr_expect_str_eq(r.out, bare.out);
  cr_expect_eq(r.status, 0, "%s", r.err);
  run_free(&bare);
  run_free(&r);
}
