#define _GNU_SOURCE
#include "run.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <glob.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARIES BUILD "/sim/driver:" BUILD "/sim/cuda13:" BUILD "/sim/cuda12"

void folder_make(char path[128]) {
  snprintf(path, 128, "/tmp/gemmshim-test-XXXXXX");
  cr_assert_not_null(mkdtemp(path), "no folder in /tmp");
}

void folder_remove(const char *path) {
  DIR *folder = opendir(path);
  if (!folder) return;
  for (struct dirent *entry; (entry = readdir(folder));) {
    char name[512];
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    if (unlink(name)) folder_remove(name);
  }
  closedir(folder);
  rmdir(path);
}

void file_write(const char *folder, const char *name, const char *text, char path[256]) {
  snprintf(path, 256, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  cr_assert_not_null(file, "%s", path);
  cr_assert(fputs(text, file) >= 0);
  cr_assert_eq(fclose(file), 0);
}

static char *read_all(const char *folder, const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "r");
  cr_assert_not_null(file, "%s", path);
  char *text = NULL;
  size_t room = 0;
  if (getdelim(&text, &room, '\0', file) < 0) {
    free(text);
    text = strdup("");
  }
  fclose(file);
  cr_assert_not_null(text);
  return text;
}

static void set(const char *name, const char *value) {
  if (setenv(name, value, 1)) _exit(126);
}

/* In the child: the environment of a user, and nothing that the test itself was run with. */
static void prepare(const setup_t *setup, const char *folder) {
  char path[256];
  snprintf(path, sizeof path, "%s/calls", folder);
  if (mkdir(path, 0700)) _exit(126);
  set("GEMMSHIM_CALLS", path);
  set("HOME", folder);
  unsetenv("XDG_CONFIG_HOME");
  set("LD_LIBRARY_PATH", setup->libraries ? setup->libraries : LIBRARIES);
  set("ASAN_OPTIONS", "detect_leaks=0");
  if (setup->table) set("GEMMSHIM_TABLE", setup->table);
  char preload[1024];
  snprintf(preload, sizeof preload, "%s%s%s", PRELOAD, setup->also ? ":" : "",
           setup->also ? setup->also : "");
  if (!setup->bare) set("LD_PRELOAD", preload);
  for (int i = 0; setup->environment[i]; i++)
    if (putenv((char *)(uintptr_t)setup->environment[i])) _exit(126);
  snprintf(path, sizeof path, "%s/out", folder);
  int out = open(path, O_WRONLY | O_CREAT, 0600);
  snprintf(path, sizeof path, "%s/err", folder);
  int err = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) _exit(126);
}

run_t run(const setup_t *setup, const char *const arguments[]) {
  run_t r = {.status = -1};
  char program[256];
  int status;
  folder_make(r.folder);
  snprintf(program, sizeof program, strchr(arguments[0], '/') ? "%s" : BUILD "/tests/preload/%s",
           arguments[0]);
  cr_assert_eq(access(program, X_OK), 0, "%s is not there", program);
  fflush(NULL);
  pid_t pid = fork();
  cr_assert(pid >= 0);
  if (pid == 0) {
    prepare(setup, r.folder);
    execv(program, (char *const *)(uintptr_t)arguments);
    _exit(127);
  }
  cr_assert_eq(waitpid(pid, &status, 0), pid);
  r.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  r.pid = pid;
  r.out = read_all(r.folder, "out");
  r.err = read_all(r.folder, "err");
  return r;
}

void run_free(run_t *r) {
  folder_remove(r->folder);
  free(r->out);
  free(r->err);
}

static int64_t sum(const gs_counts_t shard[GS_SHARDS], int reason) {
  uint64_t total = 0;
  for (int s = 0; s < GS_SHARDS; s++)
    for (int i = 0; i < GS_REASON_COUNT; i++)
      if (reason == RUN_ANY || reason == i) total += shard[s].calls[i];
  return (int64_t)total;
}

static int64_t count_file(const char *path, int entry, int reason, long pid) {
  gs_histogram_file_t header;
  gs_slot_t slot;
  FILE *file = fopen(path, "rb");
  cr_assert_not_null(file, "%s", path);
  cr_assert_eq(fread(&header, sizeof header, 1, file), 1u, "%s is cut short", path);
  cr_assert_eq(memcmp(header.magic, GS_HISTOGRAM_MAGIC, sizeof header.magic), 0);
  cr_assert_eq(header.slot_bytes, sizeof slot);
  bool wanted = pid == RUN_ANY || pid == header.pid;
  int64_t total = wanted && entry == RUN_ANY ? sum(header.overflow, reason) : 0;
  for (uint32_t i = 0; i < header.capacity; i++) {
    cr_assert_eq(fread(&slot, sizeof slot, 1, file), 1u, "%s is cut short", path);
    if (wanted && slot.ready && (entry == RUN_ANY || entry == slot.gemm.entry))
      total += sum(slot.shard, reason);
  }
  fclose(file);
  return total;
}

/* How many histograms there are; adds up their calls where total is given. */
static int each_histogram(const run_t *r, int64_t *total, int entry, int reason, long pid) {
  char path[512];
  int files = 0;
  snprintf(path, sizeof path, "%s/calls", r->folder);
  DIR *folder = opendir(path);
  if (!folder) return 0;
  for (struct dirent *found; (found = readdir(folder));) {
    if (found->d_name[0] == '.') continue;
    files++;
    snprintf(path, sizeof path, "%s/calls/%s", r->folder, found->d_name);
    if (total) *total += count_file(path, entry, reason, pid);
  }
  closedir(folder);
  return files;
}

int64_t run_count(const run_t *r, int entry, int reason, long pid) {
  int64_t total = 0;
  each_histogram(r, &total, entry, reason, pid);
  return total;
}

int run_histograms(const run_t *r) {
  return each_histogram(r, NULL, RUN_ANY, RUN_ANY, RUN_ANY);
}

gs_slot_t run_slot(const run_t *r) {
  char pattern[256];
  glob_t found;
  gs_slot_t slot = {0};
  snprintf(pattern, sizeof pattern, "%s/calls/*" GS_HISTOGRAM_SUFFIX, r->folder);
  cr_assert_eq(glob(pattern, 0, NULL, &found), 0, "no histogram");
  FILE *file = fopen(found.gl_pathv[0], "rb");
  cr_assert(file && fseek(file, sizeof(gs_histogram_file_t), SEEK_SET) == 0);
  while (!slot.ready) cr_assert_eq(fread(&slot, sizeof slot, 1, file), 1u, "no shape");
  fclose(file);
  globfree(&found);
  return slot;
}

gs_slot_t run_slot_of(const run_t *r, int n) {
  char pattern[256];
  glob_t found = {0};
  gs_slot_t sum = {0}, slot;
  snprintf(pattern, sizeof pattern, "%s/calls/*" GS_HISTOGRAM_SUFFIX, r->folder);
  glob(pattern, 0, NULL, &found);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    FILE *file = fopen(found.gl_pathv[i], "rb");
    cr_assert(file && fseek(file, sizeof(gs_histogram_file_t), SEEK_SET) == 0);
    while (fread(&slot, sizeof slot, 1, file) == 1)
      if (slot.ready && slot.gemm.n == n)
        sum.captured += slot.captured, sum.traced += slot.traced, sum.replayed += slot.replayed;
    fclose(file);
  }
  globfree(&found);
  return sum;
}

int64_t run_number(const run_t *r, const char *name) {
  char mark[64];
  snprintf(mark, sizeof mark, "%s: ", name);
  const char *found = strstr(r->out, mark);
  return found ? strtoll(found + strlen(mark), NULL, 10) : -1;
}

int run_lines(const char *text, const char *part) {
  int lines = 0;
  for (const char *found = text; (found = strstr(found, part)); lines++) {
    found = strchr(found, '\n');
    if (!found) return lines + 1;
  }
  return lines;
}

void run_fared(run_t *r, int64_t calls, int64_t served) {
  cr_expect_eq(r->status, 0, "exit status %d: %s%s", r->status, r->out, r->err);
  cr_expect_eq(run_number(r, "wrong"), 0, "%s", r->out);
  cr_expect_eq(RUN_CALLS(r), calls, "%ld calls counted", (long)RUN_CALLS(r));
  cr_expect_eq(RUN_SERVED(r), served, "%ld calls served: %s", (long)RUN_SERVED(r), r->err);
  run_free(r);
}

void kernel_shipped(char id[GS_KERNEL_ID_MAX], const char *layout, const char *ab, const char *d, int align) {
  static const struct {
    int bm, bn, bk, stages, warps, align;
  } tiles[] = {
#define GS_MMA(...) {__VA_ARGS__},
#include "mma.def"
#undef GS_MMA
  };
  size_t i = 0;
  while (i < sizeof tiles / sizeof *tiles && tiles[i].align != align) i++;
  cr_assert_lt(i, sizeof tiles / sizeof *tiles, "no kernel for %d-byte alignment is shipped", align);
  snprintf(id, GS_KERNEL_ID_MAX, "mma_%s_%s_%s_%dx%dx%d_s%d_w%d%s", ab, d, layout, tiles[i].bm, tiles[i].bn,
           tiles[i].bk, tiles[i].stages, tiles[i].warps, align == 2 ? "_v2" : "");
}
