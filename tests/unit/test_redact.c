/* What may leave the machine. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "redact.h"

static void expect(const char *text, const char *wanted) {
  const gs_names_t names = {"node7.lab.example", "node7", "alice"};
  char *got;
  size_t size;
  FILE *file = open_memstream(&got, &size);
  gs_redact(file, &names, text);
  fclose(file);
  cr_expect_str_eq(got, wanted, "%s: %s", text, got);
  free(got);
}

Test(redact, paths_keep_their_last_part) {
  expect("/usr/lib/libcublas.so.13", ".../libcublas.so.13");
  expect("LIST=/a/b:/c/d/e:x", "LIST=.../b:.../e:x");
  expect("GPU 0: /home/alice/t.table (yours)", "GPU 0: .../t.table (yours)");
  expect("/top", "/top");
  expect("/home/alice/", ".../USER/");
}

Test(redact, names_are_left_out_as_whole_words) {
  expect("on node7.lab.example and node7, by alice", "on HOST and HOST, by USER");
  expect("malice, alices, node77, node7-2", "malice, alices, node77, node7-2");
  expect("../alice/app", "../USER/app");
  expect("/data/node7", ".../HOST");
}

Test(redact, all_else_stays) {
  expect("", "");
  expect("13 products, 12/13 served: a tie", "13 products, 12/13 served: a tie");
}
