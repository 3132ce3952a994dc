/* See cli.h. */
#define _GNU_SOURCE
#include "cli.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/gemmshim-cli.XXXXXX";

static char *read_all(FILE *file) {
  size_t size;
  rewind(file);
  fseek(file, 0, SEEK_END);
  size = (size_t)ftell(file);
  rewind(file);
  char *text = calloc(1, size + 1);
  cr_assert(text && fread(text, 1, size, file) == size);
  fclose(file);
  return text;
}

result_t sh(const char *format, ...) {
  char *command;
  va_list args;
  va_start(args, format);
  cr_assert(vasprintf(&command, format, args) > 0);
  va_end(args);
  FILE *out = tmpfile(), *err = tmpfile();
  cr_assert(out && err);
  pid_t child = fork();
  if (child == 0) {
    dup2(fileno(out), 1), dup2(fileno(err), 2);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(99);
  }
  int status = 0;
  cr_assert(child > 0 && waitpid(child, &status, 0) == child);
  free(command);
  int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return (result_t){code, read_all(out), read_all(err)};
}

void enter_folder(void) {
  cr_assert(mkdtemp(folder) && chdir(folder) == 0);
  setenv("G", GS_BUILD "/gemmshim", 1);
  setenv("SHIM", GS_BUILD "/libgemmshim.so", 1);
  setenv("DEMO", GS_BUILD "/sim/demo", 1);
  setenv("STATIC", GS_BUILD "/tests/cli/static", 1);
  setenv("TABLE", GS_SOURCE "/tests/sim/sim.table", 1);
  setenv("SIM", GS_BUILD "/sim/cuda13:" GS_BUILD "/sim/driver", 1);
  setenv("HOME", folder, 1); /* nobody's own tables */
  /* A sanitizer's report must not look like an answer; its runtime need not come first in a preload. */
  setenv("ASAN_OPTIONS", "exitcode=99:detect_leaks=0:verify_asan_link_order=0", 1);
  setenv("UBSAN_OPTIONS", "exitcode=99", 1);
  setenv("TSAN_OPTIONS", "exitcode=99", 1);
  static const char *const unset[] = {"XDG_CONFIG_HOME", "LD_PRELOAD",     "GEMMSHIM_OFF",
                                      "GEMMSHIM_TABLE",  "GEMMSHIM_CALLS", "GEMMSHIM_SAMPLE",
                                      "LD_LIBRARY_PATH"};
  for (size_t i = 0; i < sizeof unset / sizeof unset[0]; i++) unsetenv(unset[i]);
}

static int delete_one(const char *path, const struct stat *info, int kind, struct FTW *place) {
  (void)info, (void)kind, (void)place;
  return remove(path);
}

void leave_folder(void) {
  cr_assert(chdir("/") == 0);
  nftw(folder, delete_one, 16, FTW_DEPTH | FTW_PHYS);
}

int lines_of(const char *text) {
  int lines = 0;
  for (; *text; text++) lines += *text == '\n';
  return lines;
}

bool exists(const char *path) {
  return access(path, F_OK) == 0;
}

void write_file(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "w");
  cr_assert(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

cJSON *json(const char *text) {
  cJSON *root = cJSON_ParseWithOpts(text, NULL, true);
  cr_assert(root, "not JSON: %s", text);
  return root;
}

cJSON *json_at(const cJSON *root, const char *path) {
  char name[64];
  const cJSON *at = root;
  for (const char *rest = path; *rest;) {
    size_t length = strcspn(rest, ".");
    snprintf(name, sizeof name, "%.*s", (int)length, rest);
    at = cJSON_IsArray(at) ? cJSON_GetArrayItem(at, atoi(name)) : cJSON_GetObjectItemCaseSensitive(at, name);
    cr_assert(at, "%s: no %s", path, name);
    rest += length + (rest[length] == '.');
  }
  return (cJSON *)at;
}

double number_at(const cJSON *root, const char *path) {
  const cJSON *item = json_at(root, path);
  cr_assert(cJSON_IsNumber(item), "%s is not a number", path);
  return item->valuedouble;
}

const char *string_at(const cJSON *root, const char *path) {
  const cJSON *item = json_at(root, path);
  cr_assert(cJSON_IsString(item), "%s is not a text", path);
  return item->valuestring;
}

void histogram_init(histogram_t *h) {
  *h = (histogram_t){.header = {.version = GS_HISTOGRAM_VERSION,
                                .slot_bytes = sizeof(gs_slot_t),
                                .reasons = GS_REASON_COUNT,
                                .capacity = 64,
                                .pid = 1234,
                                .first_call_ns = 5000000000,
                                .last_call_ns = 6000000000,
                                .program = "/opt/app",
                                .gpu = "NVIDIA H200",
                                .table = "built-in nvidia-h200",
                                .cublas = {13, 1, 0},
                                .sampling = 16}};
  memcpy(h->header.magic, GS_HISTOGRAM_MAGIC, sizeof h->header.magic);
}

gs_slot_t *histogram_add(histogram_t *h, int n, gs_reason_t reason, uint64_t calls, double mean_us) {
  gs_gemm_t gemm = {.entry = GS_ENTRY_GEMM_EX,
                    .transa = GS_OP_T,
                    .a_type = GS_TYPE_F16,
                    .b_type = GS_TYPE_F16,
                    .c_type = GS_TYPE_F16,
                    .d_type = GS_TYPE_F16,
                    .compute = GS_COMPUTE_32F,
                    .align = 16,
                    .batch = 1,
                    .m = 1024,
                    .n = n,
                    .k = 512,
                    .lda = 512,
                    .ldb = 512,
                    .ldc = 1024,
                    .ldd = 1024};
  gs_slot_t *slot = h->slots;
  while (slot->ready && slot->gemm.n != n) slot++;
  slot->gemm = gemm;
  slot->hash = (uint64_t)n + 1; /* any but 0: taken */
  slot->ready = 1;
  slot->shard[n % GS_SHARDS].calls[reason] += calls;
  if (mean_us > 0) slot->samples = 4, slot->sampled_ns = (uint64_t)(4000 * mean_us);
  return slot;
}

void histogram_write(const histogram_t *h, const char *path) {
  write_file(path, h, sizeof *h);
}
