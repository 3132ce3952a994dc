/* gemmshim bisect, on the stand-ins: the check fails where the log names a kernel. */
#include "cli.h"

SUITE(bisect);

#define ON_SIM  "LD_LIBRARY_PATH=$SIM GEMMSHIM_LOG=2 "
#define NARROW  "mma_f16_f16_nn_64x32x64_s6_w4" /* the kernel of one row of sim.table */
#define BATCHED "mma_f16_f16_nn_32x32x64_s4_w4"

/* A check that fails where the demo was served by every one of these kernels. */
static void make_check(const char *first, const char *second) {
  char text[512];
  int length =
      snprintf(text, sizeof text, "#!/bin/sh\n$DEMO > out 2>&1\n! (grep -q '%s' out && grep -q '%s' out)\n",
               first, second);
  write_file("check", text, (size_t)length);
  STATUS(sh("chmod +x check"), 0);
}

Test(bisect, one_row_is_found) {
  make_check(NARROW, NARROW);
  result_t r = sh(ON_SIM "$G bisect --table $TABLE -- ./check");
  STATUS(r, 0);
  cr_assert(lines_of(r.out) == 1, "%s", r.out);
  HAS(r.out, "sim.table:");
  HAS(r.out, ": N N 128 512 f16 f16 32f default single 1 128 " NARROW);
  HAS(r.err, "run 2: 6 rows: fails");
  HAS(r.err, "delete these lines");
}

Test(bisect, rows_that_fail_only_together) {
  make_check(NARROW, BATCHED);
  result_t r = sh(ON_SIM "$G bisect --json --table $TABLE -- ./check");
  STATUS(r, 0);
  cJSON *root = json(r.out);
  cr_assert(cJSON_IsTrue(json_at(root, "complete")));
  cr_assert(number_at(root, "rows") == 6);
  cr_assert(cJSON_GetArraySize(json_at(root, "culprits")) == 1);
  cr_assert(cJSON_GetArraySize(json_at(root, "culprits.0")) == 2);
  HAS(string_at(root, "culprits.0.0.row"), BATCHED);
  HAS(string_at(root, "culprits.0.1.row"), NARROW);
}

Test(bisect, every_culprit_is_found) {
  write_file("check", "", 0);
  STATUS(sh("printf '#!/bin/sh\\n$DEMO > out 2>&1\\n! grep -q -e " NARROW " -e " BATCHED
            " out\\n' > check; chmod +x check"),
         0);
  cJSON *root = json(sh(ON_SIM "$G bisect --json --table $TABLE -- ./check").out);
  cr_assert(cJSON_GetArraySize(json_at(root, "culprits")) == 2, "%s", cJSON_Print(root));
}

Test(bisect, the_table_is_the_gpus_own_where_none_is_named) {
  make_check(NARROW, NARROW);
  STATUS(sh("mkdir -p .config/gemmshim; cp $TABLE .config/gemmshim/gemmshim-cpu-stand-in.table"), 0);
  result_t r = sh(ON_SIM "$G bisect -- ./check");
  STATUS(r, 0);
  HAS(r.out, ".config/gemmshim/gemmshim-cpu-stand-in.table:");
}

Test(bisect, nothing_to_find_is_said) {
  result_t passes = sh(ON_SIM "$G bisect --table $TABLE -- true");
  STATUS(passes, GS_EXIT_FALSE);
  HAS(passes.err, "passes with all rows");
  result_t fails = sh(ON_SIM "$G bisect --table $TABLE -- false");
  STATUS(fails, GS_EXIT_FALSE);
  HAS(fails.err, "no row's doing");
}

Test(bisect, what_is_missing_is_said) {
  STATUS(sh(ON_SIM "$G bisect --table nowhere -- true"), GS_EXIT_MACHINE);
  STATUS(sh(ON_SIM "$G bisect --table $TABLE -- no-such-check"), GS_EXIT_NOT_FOUND);
  STATUS(sh("$G bisect"), GS_EXIT_USAGE);
  result_t r = sh(ON_SIM "$G bisect -- true");
  STATUS(r, GS_EXIT_MACHINE);
  HAS(r.err, "no table");
}

Test(bisect, interrupts_keep_the_suspects) {
  make_check(NARROW, NARROW);
  STATUS(sh("sed -i '2i sleep 0.2' check"), 0);
  result_t r =
      sh(ON_SIM "$G bisect --json --table $TABLE -- ./check > got 2> said & pid=$!; while ! grep -q 'run 3' "
                "said; do sleep 0.02; done; kill -TERM $pid; wait $pid; status=$?; cat got; exit $status");
  STATUS(r, GS_EXIT_FALSE);
  cJSON *root = json(r.out);
  cr_assert(cJSON_IsFalse(json_at(root, "complete")));
  cr_assert(cJSON_GetArraySize(json_at(root, "culprits.0")) >= 1);
}
