/* Options and the log: defaults, legal values, refusals, where lines go and how many. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "options.h"

static void set(const char *name, const char *value) {
  setenv(name, value, 1);
  gs_options_read();
}

Test(options, defaults_hold_where_nothing_is_set) {
  gs_options_read();
  cr_assert_eq(gs_option(GS_OPT_SERVE), 1);
  cr_assert_eq(gs_option(GS_OPT_OFF), 0);
  cr_assert_str_eq(gs_option_text(GS_OPT_TABLE), "");
}

Test(options, every_default_is_within_its_own_range) {
  for (int i = 0; i < GS_OPT_COUNT; i++) {
    const gs_option_info_t *info = &gs_option_info[i];
    if (info->is_text) continue;
    char *end;
    if (info->words[0]) {
      cr_assert(!strcmp(info->initial, info->words[0]) || !strcmp(info->initial, info->words[1]));
      continue;
    }
    long value = strtol(info->initial, &end, 10);
    cr_assert(*end == '\0' && value >= info->lo && value <= info->hi, "%s=%s", info->name, info->initial);
  }
}

Test(options, a_legal_value_is_taken) {
  set("GEMMSHIM_SAMPLE", "16");
  cr_assert_eq(gs_option(GS_OPT_SAMPLE), 16);
}

static void refused(const char *name, const char *value, gs_option_t option, long kept) {
  cr_redirect_stderr();
  set(name, value);
  cr_assert_eq(gs_option(option), kept, "%s=%s", name, value);
  gs_log_open();
  gs_options_complain();
  char said[512] = "";
  FILE *out = cr_get_redirected_stderr();
  fflush(stderr);
  cr_assert(fgets(said, sizeof said, out), "nothing was said of %s=%s", name, value);
  cr_assert(strstr(said, name) && strstr(said, "not a number from"), "%s", said);
}

Test(options, out_of_range) {
  refused("GEMMSHIM_LOG", "7", GS_OPT_LOG, 0);
}
Test(options, not_a_number) {
  refused("GEMMSHIM_SHAPES", "many", GS_OPT_SHAPES, 4096);
}
Test(options, trailing_text) {
  refused("GEMMSHIM_SAMPLE", "16x", GS_OPT_SAMPLE, 0);
}
Test(options, beyond_long) {
  refused("GEMMSHIM_SAMPLE", "99999999999999999999999", GS_OPT_SAMPLE, 0);
}

static size_t lines_of(const char *path, char *last, size_t size) {
  FILE *file = fopen(path, "r");
  size_t lines = 0;
  char line[1200];
  cr_assert(file, "%s", path);
  while (fgets(line, sizeof line, file)) {
    lines++;
    snprintf(last, size, "%s", line);
  }
  fclose(file);
  return lines;
}

Test(log, goes_to_the_file_with_the_process_id) {
  char path[64], last[1200];
  set("GEMMSHIM_LOG_FILE", "/tmp/gs-log-test.%p");
  snprintf(path, sizeof path, "/tmp/gs-log-test.%ld", (long)getpid());
  gs_log_open();
  gs_log(GS_LOG_FAULT, "line %d", 7);
  cr_assert_eq(lines_of(path, last, sizeof last), 1);
  cr_assert(strstr(last, "]: line 7\n"), "%s", last);
  unlink(path);
}

Test(log, a_symbolic_link_is_not_followed) {
  cr_redirect_stderr();
  unlink("/tmp/gs-log-target");
  unlink("/tmp/gs-log-link");
  cr_assert_eq(symlink("/tmp/gs-log-target", "/tmp/gs-log-link"), 0);
  set("GEMMSHIM_LOG_FILE", "/tmp/gs-log-link");
  gs_log_open();
  gs_log(GS_LOG_FAULT, "hello");
  cr_assert_eq(access("/tmp/gs-log-target", F_OK), -1);
  unlink("/tmp/gs-log-link");
}

Test(log, levels_keep_lines_out) {
  set("GEMMSHIM_LOG", "1");
  cr_assert(gs_log_wants(GS_LOG_FAULT) && gs_log_wants(GS_LOG_SUMMARY) && !gs_log_wants(GS_LOG_CALL));
}

Test(log, lines_beyond_the_rate_are_counted) {
  char path[64], last[1200];
  snprintf(path, sizeof path, "/tmp/gs-log-rate.%ld", (long)getpid());
  setenv("GEMMSHIM_LOG", "2", 1);
  setenv("GEMMSHIM_LOG_RATE", "5", 1);
  set("GEMMSHIM_LOG_FILE", path);
  gs_log_open();
  for (int i = 0; i < 100; i++) gs_log(GS_LOG_CALL, "call %d", i);
  size_t lines = lines_of(path, last, sizeof last);
  cr_assert(lines >= 5 && lines <= 12, "%zu lines", lines); /* a second may have ended in between */
  gs_log(GS_LOG_FAULT, "a fault always comes through");
  lines_of(path, last, sizeof last);
  cr_assert(strstr(last, "always comes through"));
  unlink(path);
}

Test(log, a_long_line_is_cut_and_ends) {
  char path[64], last[1200], text[3000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  snprintf(path, sizeof path, "/tmp/gs-log-long.%ld", (long)getpid());
  set("GEMMSHIM_LOG_FILE", path);
  gs_log_open();
  gs_log(GS_LOG_FAULT, "%s", text);
  cr_assert_eq(lines_of(path, last, sizeof last), 1);
  cr_assert_eq(last[strlen(last) - 1], '\n');
  unlink(path);
}

Test(options, lists_of_numbers) {
  cr_expect_eq(gs_list_holds("12,20-31", 12), 1);
  cr_expect_eq(gs_list_holds("12,20-31", 20), 1);
  cr_expect_eq(gs_list_holds("12,20-31", 31), 1);
  cr_expect_eq(gs_list_holds("12,20-31", 13), 0);
  cr_expect_eq(gs_list_holds("", 1), 0);
  cr_expect_eq(gs_list_holds("7", 7), 1);
  static const char *const wrong[] = {"x", "3-", "5-4", "1;2", "-3", "1,,2", "1 2", "*"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    cr_expect_eq(gs_list_holds(wrong[i], 1), -1, "%s", wrong[i]);
}
