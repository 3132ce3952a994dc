/* What holds for every command. */
#include "cli.h"

SUITE(common);

static const char *const commands[] = {
#define GS_COMMAND(name, help) #name,
#include "commands.def"
#undef GS_COMMAND
};
#define COMMANDS (sizeof commands / sizeof commands[0])

Test(common, help_lists_every_command) {
  result_t r = sh("$G --help");
  STATUS(r, 0);
  for (size_t i = 0; i < COMMANDS; i++) HAS(r.out, commands[i]);
  cr_assert_str_eq(r.err, "");
}

Test(common, every_command_has_help_with_an_example) {
  for (size_t i = 0; i < COMMANDS; i++) {
    char usage[64];
    result_t r = sh("$G %s --help", commands[i]);
    STATUS(r, 0);
    snprintf(usage, sizeof usage, "usage: gemmshim %s", commands[i]);
    HAS(r.out, usage);
    HAS(r.out, "example");
  }
}

Test(common, no_command_and_unknown_commands_are_usage_errors) {
  result_t none = sh("$G"), unknown = sh("$G frobnicate");
  STATUS(none, GS_EXIT_USAGE);
  HAS(none.err, "usage: gemmshim COMMAND");
  STATUS(unknown, GS_EXIT_USAGE);
  HAS(unknown.err, "\"frobnicate\" is not a command");
}

Test(common, unknown_options_are_usage_errors) {
  for (size_t i = 0; i < COMMANDS; i++) {
    result_t r = sh("$G %s --frobnicate", commands[i]);
    STATUS(r, GS_EXIT_USAGE);
    HAS(r.err, "--frobnicate");
    HAS(r.err, "--help");
    cr_assert(lines_of(r.err) == 1, "%s", r.err);
  }
}

Test(common, options_without_their_value_are_usage_errors) {
  static const char *const lines[] = {"run -o",        "run --sample", "report --by",
                                      "report --plot", "compare -n",   "compare --metric"};
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    result_t r = sh("$G %s", lines[i]);
    STATUS(r, GS_EXIT_USAGE);
    HAS(r.err, "needs a value");
  }
}

Test(common, values_out_of_range_are_usage_errors) {
  static const char *const lines[] = {"run --sample -1 -- true",
                                      "run --sample 1e3 -- true",
                                      "report --top 0 x",
                                      "report --top 5x x",
                                      "report --by size x",
                                      "compare -n 0 -- true",
                                      "compare -n '' -- true",
                                      "compare --warmup -1 -- true",
                                      "compare --seed 99999999999 -- true",
                                      "report --json --csv x",
                                      "compare --higher -- true",
                                      "compare --metric 'x([0-9]' -- true",
                                      "compare --metric 'x' -- true",
                                      "compare --higher --lower --metric '(x)' -- true"};
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    result_t r = sh("$G %s", lines[i]);
    cr_assert(r.status == GS_EXIT_USAGE && lines_of(r.err) == 1, "%s: %d, %s", lines[i], r.status, r.err);
  }
}

Test(common, missing_subjects_are_usage_errors) {
  static const char *const lines[] = {"run",
                                      "run --",
                                      "run -- ''",
                                      "compare",
                                      "report",
                                      "table",
                                      "table check",
                                      "table frobnicate x",
                                      "table show a b",
                                      "options x",
                                      "doctor app",
                                      "doctor 1 2",
                                      "doctor 0"};
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    result_t r = sh("$G %s", lines[i]);
    cr_assert(r.status == GS_EXIT_USAGE && lines_of(r.err) == 1, "%s: %d, %s", lines[i], r.status, r.err);
  }
}

Test(common, a_full_disk_behind_stdout_is_a_failure) {
  if (!exists("/dev/full")) cr_skip_test("no /dev/full");
  result_t r = sh("$G options > /dev/full");
  STATUS(r, GS_EXIT_FALSE);
  HAS(r.err, "could not be written");
}

Test(common, options_in_three_forms) {
  result_t text = sh("$G options"), markdown = sh("$G options --markdown"), machine = sh("$G options --json");
  STATUS(text, 0);
  STATUS(markdown, 0);
  STATUS(machine, 0);
  cJSON *list = json(machine.out), *option;
  cr_assert(cJSON_GetArraySize(list) > 5);
  cJSON_ArrayForEach(option, list) {
    HAS(text.out, string_at(option, "name"));
    HAS(markdown.out, string_at(option, "name"));
    HAS(text.out, string_at(option, "help"));
    cr_assert(strncmp(string_at(option, "name"), "GEMMSHIM_", 9) == 0);
  }
  cr_assert(lines_of(markdown.out) == cJSON_GetArraySize(list) + 2);
}
