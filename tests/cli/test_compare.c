/* gemmshim compare, on programs whose "speed" depends on the mode alone. */
#include "cli.h"

#include <unistd.h>

SUITE(compare);

/* Prints the mode that it was started in. */
static const char mode_script[] = "#!/bin/sh\n"
                                  "case \"$LD_PRELOAD|$GEMMSHIM_OFF\" in\n"
                                  "*libgemmshim.so*'|1') mode=pass-through ;;\n"
                                  "*libgemmshim.so*'|') mode=on ;;\n"
                                  "'|') mode=off ;;\n"
                                  "*) mode=strange ;;\n"
                                  "esac\n"
                                  "echo $mode >> modes\n";

static void write_script(const char *name, const char *rest) {
  char text[2048];
  int length = snprintf(text, sizeof text, "%s%s", mode_script, rest);
  write_file(name, text, (size_t)length);
  cr_assert(sh("chmod +x %s", name).status == 0);
}

/* 100 without the library and when switched off, 200 with it. */
static const char twice[] = "test $mode = on && echo speed 200 || echo speed 100\n";

Test(compare, each_mode_once_a_round_in_its_environment) {
  write_script("app", twice);
  result_t r = sh("GEMMSHIM_OFF=1 $G compare -n 6 --warmup 1 --metric 'speed ([0-9]+)' -- ./app");
  STATUS(r, 0);
  STATUS(sh("test $(wc -l < modes) = 21"), 0);
  for (int round = 0; round < 7; round++)
    STATUS(sh("sed -n '%d,%dp' modes | sort | tr '\\n' ' ' | grep -qx 'off on pass-through '", 3 * round + 1,
              3 * round + 3),
           0);
}

Test(compare, order_is_drawn_anew_and_repeats_with_its_seed) {
  write_script("app", twice);
  STATUS(sh("$G compare -n 12 --seed 5 --metric '([0-9]+)' -- ./app > /dev/null; mv modes first"), 0);
  STATUS(sh("$G compare -n 12 --seed 5 --metric '([0-9]+)' -- ./app > /dev/null; cmp modes first"), 0);
  result_t r = sh("paste -d' ' - - - < first | sort -u | wc -l");
  cr_assert(atoi(r.out) > 2, "%s orders in 13 rounds", r.out);
}

Test(compare, a_gain_is_found_and_the_cost_is_noise) {
  write_script("app", twice);
  result_t r = sh("$G compare -n 5 --metric 'speed ([0-9]+)' -- ./app");
  STATUS(r, 0);
  HAS(r.out, "speed ([0-9]+): higher is better; 5 rounds, seed ");
  HAS(r.out, "2.0000 [2.0000, 2.0000]  2.000x faster");
  HAS(r.out, "1.0000 [1.0000, 1.0000]  no difference beyond noise (the cost of being there)");
  HAS(r.err, "run 18 of 18 (6 rounds, 1 of them warm-up), 100%");
}

Test(compare, lower_is_better_when_said) {
  write_script("app", twice);
  HAS(sh("$G compare -n 5 --lower --metric 'speed ([0-9]+)' -- ./app").out, "2.000x slower");
}

Test(compare, json) {
  write_script("app", twice);
  result_t r = sh("$G compare -n 5 --seed 9 --json --metric 'speed ([0-9]+)' -- ./app 'a \"b\"'");
  STATUS(r, 0);
  cJSON *root = json(r.out);
  cr_assert(number_at(root, "rounds") == 5 && number_at(root, "seed") == 9);
  cr_assert(number_at(root, "off.median") == 100 && number_at(root, "on.median") == 200);
  cr_assert(number_at(root, "on.ratio") == 2 && number_at(root, "on.ratio_lo") == 2);
  cr_assert(number_at(root, "on.speedup") == 2 && number_at(root, "passthrough.ratio") == 1);
  cr_assert(cJSON_GetArraySize(json_at(root, "on.values")) == 5);
  cr_assert_str_eq(string_at(root, "command.1"), "a \"b\"");
  cr_assert(cJSON_IsTrue(json_at(root, "complete")));
}

Test(compare, noise_is_called_noise) { /* the same scatter, whatever the mode; the seed fixes the order */
  write_script("app", "n=$(wc -l < modes)\necho $((1000 + n * 37 % 101))\n");
  result_t r = sh("$G compare -n 15 --seed 1 --metric '([0-9]+)' -- ./app");
  STATUS(r, 0);
  cr_assert(lines_of(r.out) == 5, "%s", r.out);
  LACKS(r.out, "faster");
  LACKS(r.out, "slower");
  HAS(strstr(r.out, "\non "), "no difference beyond noise");
}

Test(compare, few_rounds_decide_nothing) {
  write_script("app", twice);
  result_t r = sh("$G compare -n 4 --json --metric '([0-9]+)' -- ./app");
  cJSON *root = json(r.out);
  cr_assert(cJSON_IsNull(json_at(root, "on.ratio_lo")));
  HAS(string_at(root, "on.verdict"), "undecided: fewer than 5 rounds");
}

Test(compare, wall_time_is_in_seconds) {
  write_script("app", "test $mode = on || sleep 0.2\n");
  result_t r = sh("$G compare -n 5 --warmup 0 --json -- ./app");
  STATUS(r, 0);
  cJSON *root = json(r.out);
  cr_assert(number_at(root, "off.median") >= 0.2 && number_at(root, "off.median") < 2);
  cr_assert(number_at(root, "on.ratio_hi") < 1);
  HAS(string_at(root, "on.verdict"), "faster");
  cr_assert_str_eq(string_at(root, "better"), "lower");
}

Test(compare, last_match_of_the_output_counts) {
  write_script("app", "echo 'x 5 x 6'\necho 'x 7 x 8'\necho done; echo 'x 9' >&2\n");
  cr_assert(number_at(json(sh("$G compare -n 1 --json --metric 'x ([0-9]+)' -- ./app").out), "off.median") ==
            8);
}

Test(compare, input_is_empty_and_output_is_not_shown) {
  write_script("app", "cat; echo 1\n");
  result_t r = sh("echo 5 | $G compare -n 1 --metric '([0-9]+)' -- ./app");
  STATUS(r, 0);
  LACKS(r.err, "standard output");
  HAS(r.out, "\noff                      1\n");
}

/* ---- what goes wrong: said, shown, and what was measured stays ---- */

Test(compare, a_failing_program_stops_it_and_rounds_are_kept) {
  write_script("app", "echo to stdout 1; echo to stderr >&2\ntest $(wc -l < modes) -lt 9 || exit 3\n");
  result_t r = sh("$G compare -n 50 --json --metric '([0-9]+)' -- ./app");
  STATUS(r, GS_EXIT_FALSE);
  HAS(r.err, "exit status 3");
  HAS(r.err, "to stdout 1");
  HAS(r.err, "to stderr");
  cJSON *root = json(r.out); /* a warm-up round, one that counts, and one that broke off */
  cr_assert(number_at(root, "rounds") == 1 && cJSON_IsFalse(json_at(root, "complete")));
  cr_assert(number_at(root, "off.median") == 1);
}

Test(compare, a_killed_program_is_a_failure) {
  write_script("app", "kill -9 $$\n");
  result_t r = sh("$G compare -- ./app");
  STATUS(r, GS_EXIT_FALSE);
  HAS(r.err, "exit status 137 (128 + signal)");
  HAS(r.out, "no round was complete");
}

Test(compare, long_output_of_a_failure_is_cut) {
  write_script("app", "seq 100000; exit 1\n");
  result_t r = sh("$G compare -- ./app");
  STATUS(r, GS_EXIT_FALSE);
  HAS(r.err, "(the end of it)");
  HAS(r.err, "100000\n");
  cr_assert(strlen(r.err) < 5000);
}

Test(compare, metrics_that_are_not_there_or_no_numbers) {
  write_script("app", "echo speed fast, zero 0, neg -1\n");
  result_t r = sh("$G compare --metric 'rate ([0-9]+)' -- ./app");
  STATUS(r, GS_EXIT_FALSE);
  HAS(r.err, "matches nothing");
  HAS(r.err, "speed fast");
  HAS(sh("$G compare --metric 'speed ([a-z]+)' -- ./app").err,
      "matched \"fast\", which is not a positive number");
  HAS(sh("$G compare --metric 'zero ([0-9]+)' -- ./app").err, "matched \"0\"");
  HAS(sh("$G compare --metric 'neg ([0-9-]+)' -- ./app").err, "matched \"-1\"");
}

Test(compare, interrupts_keep_what_was_measured) {
  write_script("app", "echo 1; sleep 0.02\n");
  result_t r = sh("$G compare -n 100000 --warmup 0 --metric '([0-9]+)' -- ./app > out & pid=$!; "
                  "while test \"$(wc -l < modes 2> /dev/null || echo 0)\" -lt 7; do sleep 0.02; done; "
                  "kill -TERM $pid; wait $pid");
  STATUS(r, GS_EXIT_FALSE);
  HAS(r.err, "interrupted by signal 15");
  HAS(sh("cat out").out, "stopped early");
  HAS(sh("cat out").out, "\non ");
}

Test(compare, programs_that_cannot_be_compared) {
  STATUS(sh("$G compare -- no-such-program"), GS_EXIT_NOT_FOUND);
  STATUS(sh("$G compare -- /tmp"), GS_EXIT_NOT_EXECUTABLE);
  if (geteuid() == 0)
    STATUS(sh("cp /bin/true suid; chown 1:1 suid; chmod u+s suid; $G compare -- ./suid"), GS_EXIT_MACHINE);
}

Test(compare, demo_on_the_stand_ins) {
  result_t r = sh(
      "LD_LIBRARY_PATH=$SIM $G compare -n 2 --warmup 0 --json --metric 'demo: ([0-9]+) products' -- $DEMO");
  STATUS(r, 0);
  cr_assert(number_at(json(r.out), "on.median") == 13);
}
