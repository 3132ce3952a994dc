/* gemmshim tune on several stand-ins of a GPU: one line for all, and nothing lost however they end. */
#include "tuner.h"

SUITE(fleet);

Test(fleet, every_gpu_tunes_its_share_and_the_tables_are_joined) {
#define THREE "SIM_DEVICES=3 " ON_SIM WIN
  result_t r = sh(THREE FEW KEYS "--shape NNx32x8x16");
  STATUS(r, 0);
  HAS(r.err, "3 GPUs, ");
  HAS(r.out, "t.table: 4 rows from 3 tables");
  cr_assert_eq(rows("t.table"), 4);
  cr_assert(!exists("t.1-of-3.table") && !exists("t.2-of-3.table"));
  result_t more = sh(THREE FEW KEYS "--shape NNx32x8,9x16");
  STATUS(more, 0);
  cr_assert_eq(rows("t.table"), 5, "%s%s", more.out, more.err);
  STATUS(sh(THREE FEW "--again --exact --shape NNx32x8x16"), 0);
  cr_assert_eq(rows("t.table"), 5);
  result_t lost = sh("SIM_DEVICES=3 " ON_SIM LOSE FEW "--exact --shape TNx64x8x16");
  STATUS(lost, 0);
}

#define TWO "SIM_DEVICES=2 " ON_SIM WIN
#define LONG                                                                                                 \
  "--exact --shape TNx16x1,2,3,4,5,6,7,8,9,10,11,12x16 --shape NNx16x1,2,3,4,5,6,7,8,9,10,11,12x16 "

/* script gives it a terminal. A verdict's line begins where the one that rewrites itself was cleared. */
Test(fleet, a_fleet_shows_one_line_for_all) {
  result_t r = sh("export " TWO "; script -qec \"" FEW LONG "\" /dev/null < /dev/null"),
           bare = sh(TWO FEW LONG "--again");
  STATUS(r, 0);
  HAS(r.out, "\r\033[K  0%: 0 of 24 on 2 GPUs; 0 won, best 0.00x");
  HAS(r.out, " s left: ");
  int least = 0, done = 0, shown = 0; /* it grows, and counts both: either has 12 */
  for (const char *at = r.out; (at = strstr(at, " of 24 on 2 GPUs; ")); at++, shown++) {
    cr_assert_eq(sscanf(at, " of 24 on 2 GPUs; %d won, best", &done), 1);
    cr_assert_geq(done, least);
    least = done;
  }
  cr_assert(shown > 3 && done > 12 && done <= 24, "%d lines, the last of %d", shown, done);
  HAS(r.out, " won, best 22.50x");
  for (const char *at = r.out; (at = strstr(at, "win   ")); at++)
    cr_assert(at - r.out > 3 && !strncmp(at - 3, "\033[K", 3), "%.40s", at - 20);
  STATUS(bare, 0);
  LACKS(bare.err, "%");
  LACKS(bare.err, "\r");
}

#define UNTIL_TWO_WON                                                                                        \
  "for i in $(seq 300); do [ \"$(grep -c ^win lines)\" -ge 2 ] && break; sleep 0.1; done; "

Test(fleet, a_fleet_that_is_ended_keeps_what_is_done) {
  result_t r = sh(TWO FEW LONG "> lines 2>&1 & " UNTIL_TWO_WON "kill -TERM $!; wait $!");
  STATUS(r, 128 + 15);
  int had = rows("t.table");
  cr_assert(had >= 2 && had < 24, "%d rows", had);
  STATUS(sh("$G table check t.table && ! ls *.lock"), 0);
  result_t rest = sh(TWO FEW LONG);
  STATUS(rest, 0);
  HAS(rest.err, "t.table has rows for ");
  cr_assert_eq(rows("t.table"), 24, "%s%s", rest.out, rest.err);
  cr_assert(!exists("t.1-of-2.table") && !exists("t.2-of-2.table"));
}

/* What the killed one cannot join, the next run does; its tuners end with it, one that was about to begin a little later: no lock
 * for a second says that all have. */
Test(fleet, a_fleet_that_is_killed_goes_on_where_it_was) {
  result_t r =
      sh(TWO FEW LONG "> lines 2>&1 & " UNTIL_TWO_WON "kill -9 $!; wait $!; "
                      "for i in $(seq 100); do ls *.lock > /dev/null 2>&1 && calm=0 || calm=$((calm + 1)); "
                      "[ $calm -ge 10 ] && break; sleep 0.1; done; "
                      "! ls *.lock && grep -c ^win lines");
  STATUS(r, 0);
  cr_assert(atoi(r.out) < 24 && !exists("t.table"));
  result_t rest = sh(TWO FEW LONG);
  STATUS(rest, 0);
  LACKS(rest.out, "24 won");
  cr_assert_eq(rows("t.table"), 24, "%s%s", rest.out, rest.err);
}
