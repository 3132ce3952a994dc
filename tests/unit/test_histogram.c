/* The counters: exact under threads, bounded in memory, whole in their file. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "histogram.h"
#include "options.h"

static void open_with(const char *shapes) {
  setenv("GEMMSHIM_SHAPES", shapes, 1);
  gs_options_read();
  gs_histogram_open();
}

static gs_gemm_t shape(int64_t n) {
  return (gs_gemm_t){.m = 64, .n = n, .k = 64, .batch = 1};
}

Test(histogram, a_shape_keeps_its_slot) {
  open_with("64");
  gs_gemm_t a = shape(1), b = shape(2);
  int slot = gs_histogram_slot(&a);
  cr_assert_geq(slot, 0);
  cr_assert_neq(gs_histogram_slot(&b), slot);
  cr_assert_eq(gs_histogram_slot(&a), slot);
  cr_assert_eq(memcmp(&gs_histogram_at(slot)->gemm, &a, sizeof a), 0);
}

Test(histogram, shapes_beyond_capacity_are_counted_together) {
  enum { SHAPES = 10000 };
  open_with("1024");
  cr_assert_eq(gs_histogram_capacity(), 1024);
  uint64_t in_slots = 0, beyond = 0;
  for (int n = 1; n <= SHAPES; n++) {
    gs_gemm_t g = shape(n);
    gs_histogram_count(gs_histogram_slot(&g), GS_REASON_NO_ROW);
  }
  for (int i = 0; i < gs_histogram_capacity(); i++)
    in_slots += gs_counts_sum(gs_histogram_at(i)->shard, GS_REASON_NO_ROW);
  beyond = gs_counts_sum(gs_histogram_file()->overflow, GS_REASON_NO_ROW);
  cr_assert_eq(in_slots + beyond, SHAPES);
  cr_assert_leq(in_slots, 1024);
  cr_assert_geq(in_slots, 900, "only %d of 1024 slots were used", (int)in_slots);
}

Test(histogram, ten_thousand_shapes_take_sixteen_megabytes_at_most) {
  size_t bytes = sizeof(gs_histogram_file_t) + 16384 * sizeof(gs_slot_t);
  cr_assert_leq(bytes, 17u << 20, "%zu bytes", bytes);
}

enum { THREADS = 8, EACH = 20000 };
static void *count_many(void *unused) {
  for (int i = 0; i < EACH; i++) {
    gs_gemm_t g = shape(1 + i % 7);
    int slot = gs_histogram_slot(&g);
    gs_histogram_count(slot, GS_REASON_SERVED);
    gs_histogram_name(slot, "mma_f16_f16_tn_64x32x64_s6_w4");
  }
  return unused;
}

Test(histogram, no_count_is_lost_between_threads) {
  open_with("64");
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, count_many, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  uint64_t total = 0;
  int used = 0;
  for (int i = 0; i < gs_histogram_capacity(); i++) {
    total += gs_counts_sum(gs_histogram_at(i)->shard, GS_REASON_SERVED);
    used += gs_histogram_at(i)->hash != 0;
    if (gs_histogram_at(i)->hash)
      cr_assert_str_eq(gs_histogram_at(i)->kernel, "mma_f16_f16_tn_64x32x64_s6_w4");
  }
  cr_assert_eq(total, THREADS * EACH);
  cr_assert_eq(used, 7);
}

Test(histogram, the_file_is_private_and_complete) {
  char folder[] = "/tmp/gs-histogram-XXXXXX", path[512] = "";
  cr_assert(mkdtemp(folder));
  setenv("GEMMSHIM_CALLS", folder, 1);
  open_with("64");
  cr_assert(gs_histogram_is_file());
  DIR *dir = opendir(folder);
  for (struct dirent *entry; (entry = readdir(dir));)
    if (strstr(entry->d_name, GS_HISTOGRAM_SUFFIX))
      snprintf(path, sizeof path, "%s/%.200s", folder, entry->d_name);
  closedir(dir);
  struct stat info;
  cr_assert_eq(stat(path, &info), 0);
  cr_assert_eq(info.st_mode & 0777, 0600);
  cr_assert_eq((size_t)info.st_size, sizeof(gs_histogram_file_t) + 64 * sizeof(gs_slot_t));
  unlink(path);
  rmdir(folder);
}
