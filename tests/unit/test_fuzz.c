/* The corpus of tests/fuzz, each file through its target: what once broke a promise keeps being tried. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "../fuzz/targets.h"

static void replay(const char *name, int target(const uint8_t *, size_t), int least) {
  char path[512];
  int files = 0;
  cr_redirect_stderr();
  snprintf(path, sizeof path, "tests/fuzz/%s", name);
  DIR *folder = opendir(path);
  cr_assert_not_null(folder, "%s: run from the top of the tree", path);
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "tests/fuzz/%s/%s", name, entry->d_name);
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(1 << 20);
    cr_assert(file && data, "%s", path);
    size_t size = fread(data, 1, 1 << 20, file);
    fclose(file);
    target(data, size);
    for (size_t cut = 1; cut < 8; cut++) target(data, size * cut / 8); /* cut short, too */
    free(data);
    files++;
  }
  closedir(folder);
  cr_assert_geq(files, least);
}

Test(fuzz, T2_tables) {
  replay("table", fuzz_table, 4);
}
Test(fuzz, calls) {
  replay("calls", fuzz_calls, 3);
}
Test(fuzz, operands) {
  replay("operands", fuzz_operands, 5);
}
Test(fuzz, options) {
  replay("options", fuzz_options, 2);
}
