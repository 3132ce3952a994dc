#define _GNU_SOURCE
#include "targets.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calls.h"
#include "gs_table.h"
#include "operands.h"
#include "options.h"
#include "tools.h"

static void hold(bool promise, const char *what) {
  if (promise) return;
  fprintf(stderr, "fuzz: %s\n", what);
  abort();
}

/* ---- tables ---- */

static void heed_fault(void *said, const char *line) {
  hold(strncmp(line, "file:", 5) == 0 && isdigit((unsigned char)line[5]), "a fault without its line");
  hold(strlen(line) < 512, "a fault too long to be said");
  ++*(int *)said;
}

static char *format(const gs_table_t *table, size_t *length) {
  size_t room = 2048 + 512 * (size_t)gs_table_rows(table);
  char *text = malloc(room);
  hold(text != NULL, "memory");
  *length = (size_t)gs_table_header_format(text, room, gs_table_header(table));
  for (int i = 0; i < gs_table_rows(table); i++) {
    *length += (size_t)gs_row_format(text + *length, room - *length, gs_table_row(table, i));
    text[(*length)++] = '\n';
    hold(*length < room, "a row longer than any");
  }
  return text;
}

/* The gemm at a row's own ends must find that row. */
static void find_own(const gs_table_t *table, const gs_row_t *row) {
  const gs_key_t *key = &row->key;
  gs_gemm_t g = {
      .transa = key->transa, .transb = key->transb, .a_type = key->ab_type, .b_type = key->ab_type};
  g.c_type = g.d_type = key->d_type;
  g.compute = key->compute, g.epilogue = key->epilogue;
  g.batch_kind = key->batch ? GS_BATCH_STRIDED : GS_BATCH_SINGLE, g.batch = key->batch ? key->batch : 1;
  g.m = key->m, g.k = key->k;
  g.n = row->n_lo;
  hold(gs_table_find(table, &g) == row, "a row is not found at its first n");
  g.n = row->n_hi;
  hold(gs_table_find(table, &g) == row, "a row is not found at its last n");
}

int fuzz_table(const uint8_t *data, size_t size) {
  gs_table_t *table, *again;
  size_t length, length_again;
  int said = 0;
  gs_status_t status = gs_table_parse((const char *)data, size, "file", heed_fault, &said, &table);
  hold((status == GS_OK) == (table != NULL), "a status without its table");
  hold(status == GS_OK || said || status == GS_NOMEM, "a refusal without a word");
  if (!table) return 0;
  hold(gs_table_refused(table) <= said, "a row refused without a word");
  for (int i = 0; i < gs_table_rows(table); i++) find_own(table, gs_table_row(table, i));
  char *text = format(table, &length);
  hold(gs_table_parse(text, length, "file", heed_fault, &said, &again) == GS_OK,
       "what was written is refused");
  hold(gs_table_rows(again) == gs_table_rows(table), "rows were lost in writing");
  char *text_again = format(again, &length_again);
  hold(length == length_again && memcmp(text, text_again, length) == 0, "writing twice differs");
  free(text), free(text_again);
  gs_table_free(again);
  gs_table_free(table);
  return 0;
}

/* ---- calls ---- */

/* A regular file without a name that others could guess. */
static int file_of(const void *data, size_t size, char path[64]) {
  int fd = memfd_create("fuzz", MFD_CLOEXEC);
  hold(fd >= 0 && write(fd, data, size) == (ssize_t)size, "a file in memory");
  snprintf(path, 64, "/proc/self/fd/%d", fd);
  return fd;
}

static uint64_t count_all(const gs_calls_t *set) {
  uint64_t sum = 0;
  for (const gs_shape_t *call = set->calls; call; call = call->hh.next) {
    hold(gs_call_count(call) >= gs_call_served(call) && gs_call_count(call) >= call->captured,
         "parts beyond the sum");
    hold(gs_call_mean_us(call) >= 0 && gs_call_us(call) >= 0, "time runs backwards");
    if (call->gemm.m > 0 && call->gemm.n > 0 && call->gemm.k > 0 && call->gemm.batch > 0)
      sum += gs_call_count(call);
  }
  return sum;
}

/* A histogram with a header that fits this build, and slots of those bytes. */
static int histogram_of(const uint8_t *data, size_t size, char path[64]) {
  enum { SLOTS = 64 };
  static struct {
    gs_histogram_file_t header;
    gs_slot_t slots[SLOTS];
  } file;
  memset(&file, 0, sizeof file);
  memcpy(file.header.magic, GS_HISTOGRAM_MAGIC, sizeof file.header.magic);
  file.header.version = GS_HISTOGRAM_VERSION, file.header.slot_bytes = sizeof(gs_slot_t);
  file.header.reasons = GS_REASON_COUNT, file.header.capacity = SLOTS;
  memcpy(file.slots, data, size < sizeof file.slots ? size : sizeof file.slots);
  return file_of(&file, sizeof file, path);
}

int fuzz_calls(const uint8_t *data, size_t size) {
  char path[64], *text = NULL;
  size_t length = 0;
  gs_calls_t set = {0}, again = {0};
  int fd = size && *data == 'H' ? histogram_of(data + 1, size - 1, path) : file_of(data, size, path);
  gs_calls_read(&set, path);
  close(fd);
  uint64_t count = count_all(&set);
  FILE *file = open_memstream(&text, &length);
  hold(file != NULL, "memory");
  gs_calls_write(file, &set);
  hold(fclose(file) == 0, "writing");
  fd = file_of(text, length, path);
  gs_calls_read(&again, path);
  close(fd);
  /* A file without a product is no .calls file. */
  hold(!count || again.faults == 0, "what was written is refused");
  hold(count_all(&again) == count, "calls were lost in writing");
  free(text);
  gs_calls_free(&set);
  gs_calls_free(&again);
  return 0;
}

/* ---- options ---- */

static bool is_ours(const char *line) {
  for (int i = 0; i < GS_OPT_COUNT; i++) {
    size_t length = strlen(gs_option_info[i].name);
    if (!strncmp(line, gs_option_info[i].name, length) && line[length] == '=') return true;
  }
  return false;
}

int fuzz_options(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1);
  hold(text != NULL, "memory");
  memcpy(text, data, size);
  text[size] = '\0';
  for (int i = 0; i < GS_OPT_COUNT; i++) unsetenv(gs_option_info[i].name);
  char *rest = text;
  for (char *line; (line = strsep(&rest, "\n"));)
    if (is_ours(line)) *strchr(line, '=') = '\0', setenv(line, line + strlen(line) + 1, 1);
  gs_options_read();
  for (int i = 0; i < GS_OPT_COUNT; i++) {
    const gs_option_info_t *info = &gs_option_info[i];
    long value = gs_option((gs_option_t)i);
    hold(gs_option_text((gs_option_t)i) != NULL, "an option without a text");
    hold(info->is_text || (value >= info->lo && value <= info->hi), "a number beyond its range");
  }
  for (int i = 0; i < GS_OPT_COUNT; i++) unsetenv(gs_option_info[i].name);
  gs_options_read();
  free(text);
  return 0;
}

/* ---- dumped operands ---- */

int fuzz_operands(const uint8_t *data, size_t size) {
  static bool silent;
  char path[64];
  if (!silent) silent = freopen("/dev/null", "w", stdout);
  int fd = file_of(data, size, path);
  int status = gs_verify_operands(path, size % 2);
  close(fd);
  hold(status == GS_EXIT_OK || status == GS_EXIT_FALSE || status == GS_EXIT_MACHINE,
       "a status of no meaning");
  return 0;
}

#ifdef FUZZ_TARGET
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return FUZZ_TARGET(data, size);
}
#endif
