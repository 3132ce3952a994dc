/* The cost model's corrections: by tile, for every type and layout, whole and split apart; kept and read back. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache.h"
#include "fit.h"

static char folder[] = "/tmp/gs_fit.XXXXXX";

Test(fit, factors_are_means_by_tile_and_are_kept) {
  char path[4200];
  gs_kernel_t k, other, direct;
  cr_assert(mkdtemp(folder));
  setenv("XDG_CACHE_HOME", folder, 1);
  cr_assert(gs_kernel_parse("mma_f16_f16_tn_128x64x32_s4_w4", &k));
  cr_assert(gs_kernel_parse("mma_bf16_f32_nn_64x64x64_s4_w4", &other));
  cr_assert(gs_kernel_parse("direct_f16_f16_tn_16x16_u4_w4", &direct));
  cr_assert_eq(gs_fit_load("A GPU"), 0);
  gs_fit_add(&k, 1, 10, 20);
  gs_fit_add(&k, 1, 10, 5);
  gs_fit_add(&k, 1, 10, 40);
  gs_fit_add(&k, 4, 10, 30);
  cr_assert_float_eq(gs_fit_factor(&k, 1), 1, 1e-9, "while it is being fitted the model is the plain one");
  cr_assert(gs_fit_save("A GPU", path, sizeof path));
  for (int round = 0; round < 2; round++) {
    cr_assert_float_eq(gs_fit_factor(&k, 1), 1.5874, 1e-3);
    cr_assert_float_eq(gs_fit_factor(&k, 8), 3, 1e-3);
    k.ab_type = GS_TYPE_BF16, k.transa = GS_OP_N;
    cr_assert_float_eq(gs_fit_factor(&k, 1), 1.5874, 1e-3, "of other types and layouts too");
    cr_assert_float_eq(gs_fit_factor(&other, 1), 1.5874, 1e-3, "an unknown tile has its family's mean");
    cr_assert_float_eq(gs_fit_factor(&direct, 1), 1, 1e-9, "an unknown family has none");
    cr_assert_eq(gs_fit_load("A GPU"), 1);
    cr_assert(gs_kernel_parse("mma_f16_f16_tn_128x64x32_s4_w4", &k));
  }
  cr_assert_eq(gs_fit_load("Another GPU"), 0);
  cr_assert_float_eq(gs_fit_factor(&k, 1), 1, 1e-9);
  unlink(path);
}

static mode_t mode_of(const char *path) {
  struct stat info;
  cr_assert(stat(path, &info) == 0, "%s", path);
  return info.st_mode & 0777;
}

/* Whoever comes first makes the folder; the cache of kernels takes none that others may write. */
Test(fit, its_folder_is_the_caches_and_nobody_elses) {
  char path[4200], command[64];
  gs_kernel_t k;
  cr_assert(mkdtemp(folder) && chdir(folder) == 0);
  setenv("HOME", folder, 1);
  setenv("XDG_CACHE_HOME", "relative", 1); /* is to be ignored */
  umask(0002);
  cr_assert(gs_kernel_parse("mma_f16_f16_tn_128x64x32_s4_w4", &k));
  gs_fit_add(&k, 1, 10, 20);
  cr_assert(gs_fit_save("A GPU", path, sizeof path));
  cr_assert(!strncmp(path, folder, strlen(folder)) && access("relative", F_OK) != 0, "%s", path);
  cr_assert_eq(mode_of(".cache"), 0700);
  cr_assert_eq(mode_of(".cache/gemmshim"), 0700);
  cr_assert(gs_cache_look());
  unsetenv("HOME");
  cr_assert_not(gs_fit_save("A GPU", path, sizeof path));
  snprintf(command, sizeof command, "rm -rf %s", folder);
  cr_assert_eq(system(command), 0);
}
