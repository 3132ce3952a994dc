/* gemmshim run: what it does to the program and around it. */
#include "cli.h"

#include <unistd.h>

SUITE(run);

Test(run, exit_status_is_the_programs) {
  STATUS(sh("$G run -- sh -c 'exit 0'"), 0);
  STATUS(sh("$G run -- sh -c 'exit 7'"), 7);
  STATUS(sh("$G run -- sh -c 'kill -9 $$'"), 137);
  STATUS(sh("$G run -- sh -c 'kill -USR1 $$'"), 138);
}

Test(run, output_and_input_are_the_programs) {
  result_t r = sh("echo in | $G run -- sh -c 'cat; echo err >&2' 2> errors");
  STATUS(r, 0);
  cr_assert_str_eq(r.out, "in\n");
  HAS(sh("head -n 20 errors").out, "err\n");
}

Test(run, arguments_after_the_program_are_its_own) {
  result_t r = sh("$G run -- printf '%%s|' --help -o x -- y");
  STATUS(r, 0);
  cr_assert_str_eq(r.out, "--help|-o|x|--|y|");
  STATUS(sh("$G run printf -o"), 0); /* and without -- too */
}

Test(run, programs_that_are_not_there) {
  result_t none = sh("$G run -- no-such-program"), path = sh("$G run -- ./no-such-program"), folder, text;
  STATUS(none, GS_EXIT_NOT_FOUND);
  HAS(none.err, "no-such-program: not found on PATH");
  STATUS(path, GS_EXIT_NOT_FOUND);
  folder = sh("$G run -- /tmp");
  STATUS(folder, GS_EXIT_NOT_EXECUTABLE);
  write_file("text", "hello", 5);
  text = sh("$G run -- ./text");
  STATUS(text, GS_EXIT_NOT_EXECUTABLE);
  STATUS(sh("chmod +x text; $G run -- ./text"), GS_EXIT_NOT_EXECUTABLE); /* not a program either way */
}

Test(run, path_is_searched) {
  STATUS(sh("mkdir bin bin/tool; printf '#!/bin/sh\\nexit 21\\n' > tool; chmod +x tool"), 0);
  STATUS(sh("PATH=$PWD/bin:$PWD:$PATH $G run -- tool"), 21); /* a folder of that name is not the program */
  STATUS(sh("PATH=:/nonexistent $G run -- tool"), 21);       /* an empty entry is this folder */
}

#define BOTH GS_BUILD "/libgemmshim.so:" GS_BUILD "/libgemmshim-graphs.so"
Test(run, preload_is_put_in_front_of_what_is_there) {
  result_t r = sh("LD_PRELOAD=libdl.so.2 $G run -- printenv LD_PRELOAD");
  STATUS(r, 0);
  cr_assert_str_eq(r.out, BOTH ":libdl.so.2\n");
  r = sh("LD_PRELOAD=libdl.so.2 $G run --no-replays -- printenv LD_PRELOAD");
  cr_assert_str_eq(r.out, GS_BUILD "/libgemmshim.so:libdl.so.2\n");
  r = sh("LD_PRELOAD=\"libdl.so.2 $SHIM\" $G run -- printenv LD_PRELOAD"); /* once, though it is there */
  cr_assert_str_eq(r.out, BOTH ":libdl.so.2\n");
}

Test(run, sampling_is_16_unless_said) {
  cr_assert_str_eq(sh("$G run -- printenv GEMMSHIM_SAMPLE").out, "16\n");
  cr_assert_str_eq(sh("GEMMSHIM_SAMPLE=5 $G run -- printenv GEMMSHIM_SAMPLE").out, "5\n");
  cr_assert_str_eq(sh("GEMMSHIM_SAMPLE=5 $G run --sample 0 -- printenv GEMMSHIM_SAMPLE").out, "0\n");
}

Test(run, table_is_given_by_its_full_path) {
  write_file("t.table", "x", 1);
  result_t r = sh("$G run --table t.table -- printenv GEMMSHIM_TABLE"), none;
  STATUS(r, 0);
  cr_assert(r.out[0] == '/' && strstr(r.out, "/t.table\n"), "%s", r.out);
  none = sh("$G run --table none.table -- touch ran");
  STATUS(none, GS_EXIT_MACHINE);
  cr_assert(!exists("ran"));
}

Test(run, private_folder_is_private_and_goes) {
  result_t r =
      sh("mkdir tmp; TMPDIR=$PWD/tmp $G run -- sh -c 'stat -c %%a $GEMMSHIM_CALLS; ls tmp | wc -l'; ls tmp");
  STATUS(r, 0);
  cr_assert_str_eq(r.out, "700\n1\n");
}

Test(run, kept_folder_must_be_new_or_empty) {
  STATUS(sh("$G run --keep new -- true; test -d new"), 0);
  STATUS(sh("$G run --keep new -- true"), 0);
  result_t r = sh("touch new/mine; $G run --keep new -- touch ran");
  STATUS(r, GS_EXIT_MACHINE);
  HAS(r.err, "must be a new or an empty folder");
  cr_assert(!exists("ran") && exists("new/mine"));
}

Test(run, output_that_cannot_be_written_is_said_before_anything_runs) {
  STATUS(sh("mkdir out"), 0);
  static const char *const bad[] = {"out", "nowhere/x.calls", "/proc/x.calls"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    result_t r = sh("$G run -o %s -- touch ran", bad[i]);
    STATUS(r, GS_EXIT_MACHINE);
    HAS(r.err, bad[i]);
    cr_assert(!exists("ran"));
  }
}

Test(run, set_user_id_programs_are_refused) {
  if (geteuid() != 0) cr_skip_test("needs root to make one");
  result_t r = sh("cp $(command -v touch) suid; chown 1:1 suid; chmod u+s suid; $G run -- ./suid ran");
  STATUS(r, GS_EXIT_MACHINE);
  HAS(r.err, "loader ignores LD_PRELOAD");
  cr_assert(!exists("ran"));
}

Test(run, static_programs_run_with_a_warning) {
  result_t r = sh("$G run -- $STATIC");
  STATUS(r, 5);
  cr_assert_str_eq(r.out, "static\n");
  HAS(r.err, "statically linked");
  write_file("script", "#!" GS_BUILD "/tests/cli/static\n", strlen("#!" GS_BUILD "/tests/cli/static\n"));
  r = sh("chmod +x script; $G run -- ./script");
  STATUS(r, 5);
  HAS(r.err, "statically linked");
}

Test(run, other_machines_programs_are_judged_by_their_header) {
  result_t r = sh("cp /bin/true odd; printf '\\250' | dd of=odd bs=1 seek=18 conv=notrunc 2> /dev/null; "
                  "$G run -- ./odd");
  HAS(r.err, "made for another kind of machine");
  STATUS(r, GS_EXIT_NOT_EXECUTABLE);
}

Test(run, without_the_library_nothing_runs) {
  result_t r = sh("mkdir alone; cp $G alone/; alone/gemmshim run -- touch ran");
  STATUS(r, GS_EXIT_MACHINE);
  HAS(r.err, "libgemmshim.so is neither in");
  cr_assert(!exists("ran"));
}

Test(run, installed_layout_is_found) {
  STATUS(sh("mkdir -p p/bin p/lib; cp $G p/bin/; cp $SHIM ${SHIM%%.so}-graphs.so p/lib/; p/bin/gemmshim run "
            "-- printenv LD_PRELOAD"),
         0);
}

Test(run, a_path_that_the_loader_would_split_is_refused) {
  result_t r = sh("mkdir 'a b'; cp $G $SHIM ${SHIM%%.so}-graphs.so 'a b/'; 'a b/gemmshim' run -- touch ran");
  STATUS(r, GS_EXIT_MACHINE);
  HAS(r.err, "spaces and colons");
  cr_assert(!exists("ran"));
}

static void passes_signal(const char *name) {
  result_t r =
      sh("rm -f ready; $G run -- sh -c 'trap \"exit 9\" %s; touch ready; while :; do sleep 0.02; done' & "
         "while ! test -e ready; do sleep 0.02; done; kill -%s $!; wait $!",
         name, name);
  STATUS(r, 9);
}

Test(run, signals_are_passed_on) {
  passes_signal("TERM");
  passes_signal("HUP");
}

Test(run, handles_come_after_the_library) {
  result_t r = sh("LD_PRELOAD=/nowhere/a.so $G run --handles -- printenv LD_PRELOAD");
  STATUS(r, 0);
  char *shim = strstr(r.out, "/libgemmshim.so:"), *handles = strstr(r.out, "/libgemmshim-handles.so:");
  cr_assert(shim && handles && shim < handles && strstr(handles, ":/nowhere/a.so"), "%s", r.out);
  r = sh("mkdir alone; cp $G $SHIM alone/; alone/gemmshim run --handles -- touch ran");
  STATUS(r, GS_EXIT_MACHINE);
  HAS(r.err, "libgemmshim-handles.so is neither in");
  cr_assert(!exists("ran"));
}

Test(run, replays_are_counted_unless_told_otherwise) {
  static const char graphs[] = GS_BUILD "/tests/preload/replays runtime plain 7";
  result_t r = sh("LD_LIBRARY_PATH=$SIM $G run -o a.calls -- %s", graphs);
  STATUS(r, 0);
  HAS(r.err, "4 of them were captured into CUDA graphs; products run by replays: 28\n");
  HAS(r.err, "[3 captured, replays: 21]");
  r = sh("LD_LIBRARY_PATH=$SIM $G run --no-replays -o a.calls -- %s", graphs);
  STATUS(r, 0);
  HAS(r.err, "products run by replays: unknown\n");
}

Test(run, L6_look_ups_by_handle_are_seen_where_asked) {
  result_t r = sh("LD_LIBRARY_PATH=$SIM $G run -o a.calls -- " GS_BUILD "/tests/preload/lookup gemm:13:3");
  HAS(r.err, "try gemmshim run --handles");
  r = sh("LD_LIBRARY_PATH=$SIM $G run --handles -o a.calls -- " GS_BUILD "/tests/preload/lookup gemm:13:3");
  STATUS(r, 0);
  HAS(r.err, "3 products of 1 shapes");
}

Test(run, no_calls_are_explained_and_old_results_stay) {
  write_file("true.calls", "precious\n", 9);
  result_t r = sh("$G run -- true");
  STATUS(r, 0);
  HAS(r.err, "ceiling unknown: no products were seen");
  HAS(r.err, "0 calls seen; the likely causes:");
  HAS(r.err, "gemmshim doctor -- true");
  STATUS(sh("grep -q precious true.calls"), 0);
}

Test(run, without_a_driver_one_line_warns) {
  result_t r = sh("$G run -- true");
  if (sh("ldconfig -p | grep -q 'libcuda.so.1 '").status == 0) cr_skip_test("there is a driver here");
  HAS(r.err, "warning: no NVIDIA driver");
}

/* ---- with products: the demo on the stand-ins, which take long enough to be worth something ---- */

#define BUSY "SIM_US='cublas*:9000,lt_*:9000,mma_*:9000' "

Test(run, demo_is_seen_timed_and_written) {
  result_t r = sh(BUSY "LD_LIBRARY_PATH=$SIM $G run --sample 1 -o app.calls -- $DEMO");
  STATUS(r, 0);
  HAS(r.out, "demo: 13 products");
  cr_assert(strncmp(r.err, "gemmshim: ceiling ", strlen("gemmshim: ceiling ")) == 0, "%s", r.err);
  LACKS(r.err, "ceiling unknown");
  HAS(r.err, "13 products of 7 shapes; gemmshim served 0");
  HAS(r.err, "no_table: no table of tuned kernels fits this GPU");
  HAS(r.err, "next: gemmshim tune app.calls");
  HAS(r.err, "written: app.calls");
  cr_assert(lines_of(r.err) <= 12, "%s", r.err);
  cJSON *root = json(sh("$G report --json app.calls").out);
  cr_assert(number_at(root, "calls") == 13);
  cr_assert(number_at(root, "gpu_us") > 0);
}

Test(run, demo_is_served_with_a_table) {
  result_t r = sh(BUSY "LD_LIBRARY_PATH=$SIM $G run --sample 1 --table $TABLE --keep kept -- $DEMO");
  STATUS(r, 0);
  HAS(r.err, "gemmshim served 12 (92.3% of the calls");
  HAS(r.err, "gemmshim compare -- ");
  cJSON *root = json(sh("$G report --json kept").out);
  cr_assert(number_at(root, "served") == 12);
  cr_assert(number_at(root, "verdicts.entry") == 1);
  HAS(string_at(root, "table"), "sim.table");
}

Test(run, without_sampling_the_ceiling_is_unknown) {
  HAS(sh("LD_LIBRARY_PATH=$SIM $G run --sample 0 -- $DEMO").err, "ceiling unknown: no timed samples");
}

Test(run, switched_off_says_so) {
  result_t r = sh("LD_LIBRARY_PATH=$SIM GEMMSHIM_OFF=1 $G run -- $DEMO");
  STATUS(r, 0);
  HAS(r.err, "GEMMSHIM_OFF=1 is set");
  HAS(r.err, "0 calls seen");
}

Test(run, L9_children_are_counted_too) {
  result_t r = sh("LD_LIBRARY_PATH=$SIM $G run -o two.calls -- sh -c '$DEMO & $DEMO; wait'");
  STATUS(r, 0);
  HAS(r.err, "26 products of 7 shapes");
}
