/* gemmshim requalify on the CPU stand-ins, of which SIM_US makes either side the slower one. */
#include "cli.h"

SUITE(requalify);

#define ON_SIM  "LD_LIBRARY_PATH=$SIM "
#define WINNING ON_SIM "SIM_CLOCK=set SIM_US='cublas*:20,lt_*:20," ALL_OURS("4") "' "
#define LOSING  ON_SIM "SIM_CLOCK=set SIM_US='cublas*:4,lt_*:4," ALL_OURS("20") "' "
#define USERS   ".config/gemmshim/gemmshim-cpu-stand-in.table"

#define ROW(m, times)                                                                                        \
  "T\tN\t" m "\t16\tf16\tf16\t32f\tdefault\tsingle\t4\t4\tmma_f16_f16_tn_64x64x64_s4_w4\t1\t1\t" times       \
  "\t0\t0\n"

static void table(const char *path, const char *gpu, const char *arch, const char *cublas, const char *rows) {
  char text[4096];
  snprintf(text, sizeof text,
           "format: 1\ngpu: %s\narch: %s\nsms: 132\ncublas: %s\nmethod: fixture\ndate: 2026-11-29\n%s", gpu,
           arch, cublas, rows);
  write_file(path, text, strlen(text));
}
#define HERE "gemmshim CPU stand-in", "sm_90"

/* What became of ten calls of a shape, as a verdict of the histogram. */
static double calls_with(const char *environment, int m, const char *verdict) {
  result_t r = sh(ON_SIM "%s $G run --keep kept -o probe.calls -- " GS_BUILD
                         "/tests/preload/probe %d 4 16 10 && $G report --json kept; rm -rf kept",
                  environment, m);
  STATUS(r, 0);
  char path[64];
  snprintf(path, sizeof path, "verdicts.%s", verdict);
  const char *begin = strchr(r.out, '{');
  cr_assert(begin && strstr(r.out, "wrong: 0"), "%s%s", r.out, r.err);
  cJSON *verdicts = json_at(json(begin), "verdicts");
  cJSON *count = cJSON_GetObjectItemCaseSensitive(verdicts, verdict);
  return count ? count->valuedouble : 0;
}

Test(requalify, a_siblings_table_serves_after_it) {
  table("t.table", "NVIDIA H1000", "sm_90", "13.1.0", ROW("16", "8\t10"));
  cr_assert_eq(calls_with("GEMMSHIM_TABLE=$PWD/t.table", 16, "unproven"), 10);
  result_t r = sh(WINNING "$G requalify t.table");
  STATUS(r, 0);
  HAS(r.out, "1 won, 0 tied, 0 lost");
  HAS(r.out, USERS ": 1 rows");
  STATUS(sh("$G table check " USERS " | grep -q '1 proven on gemmshim CPU stand-in with cuBLAS 13.1.0'"), 0);
  cr_assert_eq(calls_with("", 16, "served"), 10);
  result_t again = sh(WINNING "$G requalify");
  STATUS(again, 0);
  HAS(again.err, "nothing to do");
}

Test(requalify, predicted_rows_are_measured_and_losers_left_out) {
  table("t.table", HERE, "13.1.0", "predicted: yes\n" ROW("16", "8\t10"));
  result_t r = sh(LOSING "$G requalify --json -o new.table t.table");
  STATUS(r, 0);
  cJSON *root = json(r.out);
  cr_assert_str_eq(string_at(root, "measured.0.verdict"), "loss");
  cr_assert(number_at(root, "measured.0.ratio") < 1 && number_at(root, "measured.0.before") > 1.2);
  cr_assert_eq(number_at(root, "rows"), 0);
  cr_assert(!exists("new.table") && !exists(USERS));
}

/* Another build of this major: what serves by its margin must not stop serving meanwhile. */
Test(requalify, rows_with_a_margin_stay_until_measured) {
  STATUS(sh("mkdir -p .config/gemmshim"), 0);
  table(USERS, HERE, "13.0.0", ROW("16", "9.9\t10") ROW("32", "5\t10") ROW("48", "9.8\t10"));
  cr_assert_eq(calls_with("", 32, "served"), 10);
  cr_assert_eq(calls_with("", 16, "unproven"), 10);
  STATUS(sh("cp " USERS
            " before; printf 'cublasGemmEx\\tt\\tn\\t16\\t4\\t16\\t16\\t16\\t16\\t16\\tf16\\tf16\\tf16\\tf16"
            "\\t32f\\tdefault\\tsingle\\t1\\t0\\t0\\t0\\t0\\t16\\t100\\t0\\t1\\t0\\n' > app.calls"),
         0);
  result_t r =
      sh(ON_SIM "SIM_US='cublas*:400,lt_*:400' $G requalify --calls app.calls --budget 1"); /* slow */
  STATUS(r, 0);
  HAS(r.out, "win   TN 16x4x16 "); /* the one that is called goes first */
  HAS(r.err, "the budget of 1 s is spent");
  HAS(r.err, "kept as");
  STATUS(sh("cmp before " USERS ".old"), 0);
  cr_assert_eq(calls_with("", 16, "served"), 10);
  cr_assert_eq(calls_with("", 32, "served"), 10);
  result_t rest = sh(ON_SIM "SIM_CLOCK=set SIM_US='cublas*:20,lt_*:20,*mma_*:10' $G requalify " USERS ".old");
  STATUS(rest, 0);
  HAS(rest.out, "2 won, 0 tied, 0 lost, 0 failed the gate, 0 not measurable, 1 measured before, 0 left");
  HAS(rest.out, ": 3 rows");
}

/* The table that it writes is the one that is taken by itself next time. */
Test(requalify, a_run_cut_short_goes_on_with_what_is_left) {
#define SLOW ON_SIM "SIM_L2=4096 SIM_CLOCK=set SIM_US='cublas*:4,lt_*:4,*mma_*:90' "
  char rows[32 * sizeof ROW("16", "9.9\t10")] = "";
  for (int m = 1; m <= 30; m++)
    snprintf(rows + strlen(rows), sizeof rows - strlen(rows), ROW("%d", "9.9\t10"), 16 * m);
  table("t.table", HERE, "12.1.0", rows);
  result_t first = sh(SLOW "$G requalify --budget 1 -o new.table t.table");
  STATUS(first, 0);
  HAS(first.err, "are left; the same command goes on from here");
  cr_assert(!exists("new.table"), "all lost");
  result_t then = sh(SLOW "$G requalify -o new.table t.table");
  LACKS(then.out, " 0 measured before");
  HAS(then.out, " 0 left");
  STATUS(sh("! ls new.table*"), 0);
  STATUS(sh("mkdir -p .config/gemmshim && cp t.table " USERS), 0);
  result_t users = sh(SLOW "$G requalify --budget 1");
  HAS(users.err, "/" USERS ".old goes on from here");
}

/* ---- intervals of n ---- */

#define INTERVAL(lo, hi, what)                                                                               \
  "T\tN\t16\t16\tf16\tf16\t32f\tdefault\tsingle\t" lo "\t" hi "\t" what "\t1\t1\t8\t10\t0\t0\n"
#define KERNEL "mma_f16_f16_tn_64x64x64_s4_w4"
#define FASTER ON_SIM "SIM_CLOCK=set SIM_US='cublas*:90,lt_5:2,lt_*:90,*mma_*:4,direct_*:4' "

/* Neither the ends nor their middle would show it. */
Test(requalify, an_interval_is_split_where_the_library_changed) {
  table("t.table", HERE, "12.1.0", INTERVAL("1", "8", KERNEL) INTERVAL("20", "24", KERNEL));
  result_t r = sh("SIM_HEURISTIC=5@6-7 " FASTER "$G requalify -o new.table t.table");
  STATUS(r, 0);
  HAS(r.out, "part  TN 16x1..8x16 " KERNEL " 0.500x");
  HAS(r.out, "; claims 1..5, 8\n");
  HAS(r.out, "win   TN 16x20..24x16 " KERNEL " 22.500x");
  HAS(r.out, "2 won, 0 tied, 0 lost, 0 failed the gate, 0 not measurable, 0 measured before, 0 left; 1 won "
             "in a part");
  STATUS(sh("$G table check new.table && test \"$(grep '^T' new.table | cut -f10,11 | tr '\\t\\n' '- ')\" = "
            "'1-5 8-8 20-24 '"),
         0);
  HAS(sh("SIM_HEURISTIC=5@6-7 " FASTER "$G requalify -o new.table t.table").out, "2 measured before");
  result_t machine = sh("SIM_HEURISTIC=5@6-7 " FASTER "$G requalify --again --json -o new.table t.table");
  cJSON *root = json(machine.out);
  cr_assert_eq(number_at(root, "in_part"), 1);
  cr_assert(strstr(string_at(root, "measured.0.claims.1"), "single\t8\t8\t" KERNEL));
  cr_assert_gt(number_at(root, "measured.0.points"), 4);
}

/* What the library calls its algorithms changes with each build, so they are looked for; what is found has the interval
 * that it wins. */
Test(requalify, an_algorithm_is_looked_for_over_its_whole_interval) {
  table("t.table", HERE, "12.1.0", INTERVAL("1", "8", "lt_3_t19_s0_r0_z1_c0_i0_h0"));
  result_t r = sh(ON_SIM "SIM_CLOCK=set SIM_US='cublas*:90,lt_5:4,lt_*:90,*mma_*:90,direct_*:90' "
                         "$G requalify -o new.table t.table");
  STATUS(r, 0);
  HAS(r.out, "win   TN 16x1..8x16 lt_3_");
  STATUS(sh("test $(grep -c '^T' new.table) = 1 && grep -q \"$(printf '\\t1\\t8\\tlt_5_')\" new.table"), 0);
}

Test(requalify, its_rows_tell_of_the_server_as_a_tuners_do) {
  table("t.table", HERE, "12.1.0", ROW("16", "8\t10"));
  STATUS(sh(WINNING "$G requalify -o new.table t.table"), 0);
  STATUS(sh("test \"$(grep '^T' new.table | awk -F'\\t' '{ print NF }')\" = 20"), 0);
}

Test(requalify, a_busy_gpu_is_named_and_left_alone) {
  table("t.table", HERE, "12.1.0", ROW("16", "8\t10"));
  result_t r = sh("SIM_BUSY=90 " WINNING "$G requalify -o new.table t.table");
  STATUS(r, 4);
  HAS(r.err, "90% busy with other work");
  HAS(r.err, "--busy-ok");
  cr_assert(!exists("new.table"));
  STATUS(sh("SIM_BUSY=90 " WINNING "$G requalify --busy-ok -o new.table t.table"), 0);
  cr_assert(exists("new.table"));
}

Test(requalify, a_batch_is_measured_as_what_it_is) {
  table("t.table", HERE, "12.1.0",
        "T\tN\t16\t16\tf16\tf16\t32f\tdefault\tstrided:12\t4\t4\t" KERNEL "\t1\t1\t8\t10\t0\t0\n");
  result_t r = sh(FASTER "$G requalify -o new.table t.table");
  STATUS(r, 0);
  HAS(r.out, "win   TN 16x4x16*12 ");
  STATUS(sh("grep -q 'strided:12' new.table"), 0);
}

Test(requalify, wrong_kernels_are_left_out) {
  table("t.table", HERE, "13.2.0", ROW("16", "9.9\t10"));
  result_t r = sh(WINNING "SIM_WRONG='mma_*:all:0.01' $G requalify -o new.table t.table");
  STATUS(r, 1);
  HAS(r.out, "1 failed the gate");
  cr_assert(!exists("new.table"));
}

Test(requalify, an_interrupt_keeps_what_is_done) {
  table("t.table", HERE, "12.1.0",
        ROW("16", "7\t10") ROW("32", "8\t10") ROW("48", "9\t10") ROW("64", "9\t10"));
  result_t r = sh("export " WINNING "; $G requalify -o new.table t.table & "
                  "while ! test -e new.table; do sleep 0.1; done; kill -TERM $!; wait $!");
  STATUS(r, 143);
  STATUS(sh("$G table check new.table"), 0);
  HAS(r.out, "new.table: ");
  cr_assert(!exists("new.table.lock"));
}

/* Files may grow to 512 bytes: the header and two rows. */
Test(requalify, a_full_disk_is_said_and_loses_nothing) {
  table("t.table", HERE, "12.1.0",
        ROW("16", "7\t10") ROW("32", "8\t10") ROW("48", "9\t10") ROW("64", "9\t10") ROW("80", "9\t10"));
  result_t r = sh("trap '' XFSZ; export " WINNING "; (ulimit -f 1; $G requalify -o new.table t.table; "
                  "echo status $?) 2>&1 | cat");
  HAS(r.out, "new.table: cannot be written: File too large");
  HAS(r.out, "status 1\n");
  int had = atoi(sh("$G table check new.table > /dev/null && grep -c ^T new.table").out);
  cr_assert(had >= 1 && had < 5, "%d", had);
  STATUS(sh("ls -A | grep -v -x -e t.table -e new.table -e 'new.table.*.tried'"), 1);
  result_t rest = sh(WINNING "$G requalify -o new.table t.table");
  STATUS(rest, 0);
  LACKS(rest.out, " 0 measured before");
  HAS(rest.out, "new.table: 5 rows");
  STATUS(sh("ls -A | grep -v -x -e t.table -e new.table"), 1);
}

Test(requalify, says_what_is_wrong) {
  table("t.table", HERE, "12.1.0", ROW("16", "7\t10"));
  table("ampere.table", "NVIDIA A100", "sm_80", "13.1.0", ROW("16", "7\t10"));
  static const struct {
    const char *arguments;
    int status;
    const char *said;
  } wrong[] = {{"", 3, "no table fits"},
               {"none.table", 3, "no built-in table has that name"},
               {"ampere.table", 3, "run gemmshim tune"},
               {"t.table t.table", 2, "one table at a time"},
               {"--budget no t.table", 2, "not a number of seconds"},
               {"--calls /nonexistent t.table", 3, "/nonexistent"},
               {"--device 9 t.table", 3, "does not exist"},
               {"--cublas /nonexistent.so t.table", 3, "cannot be loaded"},
               {"-o /proc/x.table t.table", 1, "/proc/x.table"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    result_t r = sh(ON_SIM "$G requalify --quick %s", wrong[i].arguments);
    STATUS(r, wrong[i].status);
    HAS(r.err, wrong[i].said);
  }
  STATUS(sh("LD_LIBRARY_PATH= $G requalify t.table"), 3);
  result_t home = sh(ON_SIM "HOME=/proc $G requalify --quick t.table");
  STATUS(home, 1);
  HAS(home.err, "name the table with -o");
}
