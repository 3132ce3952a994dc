/* The merged set of products, and .calls files; see calls.h. */
#define _GNU_SOURCE
#include "calls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools.h"

#define CALLS_FAULTS_MAX 20
#define LINE_MAX_BYTES   4096

static const char columns[] =
    "# gemmshim calls, format 1. Tab-separated: entry transa transb m n k lda ldb ldc ldd a_type b_type "
    "c_type d_type\n"
    "# compute epilogue batch_kind batch stride_a stride_b stride_c stride_d align  calls served mean_us "
    "captured [replays]\n"
    "# (mean_us: GPU time of the sampled calls, 0 = not sampled; captured: into CUDA graphs, whose replays "
    "ran so many; "
    "none: unknown)\n";

void gs_calls_fault(gs_calls_t *set, const char *format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  gs_say("%s", line);
  set->faults++;
}

gs_shape_t *gs_calls_entry(gs_calls_t *set, const gs_gemm_t *gemm) {
  gs_shape_t *call;
  HASH_FIND(hh, set->calls, gemm, sizeof *gemm, call);
  if (call) return call;
  call = calloc(1, sizeof *call);
  if (!call) abort(); /* a tool: nothing is lost but this report */
  call->gemm = *gemm;
  HASH_ADD(hh, set->calls, gemm, sizeof call->gemm, call);
  return call;
}

void gs_calls_free(gs_calls_t *set) {
  gs_shape_t *call, *next;
  HASH_ITER(hh, set->calls, call, next) {
    HASH_DEL(set->calls, call);
    free(call);
  }
}

uint64_t gs_call_count(const gs_shape_t *call) {
  uint64_t sum = call->untold;
  for (int i = 0; i < GS_REASON_COUNT; i++) sum += call->calls[i];
  return sum;
}

double gs_call_mean_us(const gs_shape_t *call) {
  return call->timed ? call->timed_us / (double)call->timed : 0;
}

uint64_t gs_call_runs(const gs_shape_t *call) {
  return gs_call_count(call) - call->captured + call->replays;
}

double gs_call_us(const gs_shape_t *call) {
  return gs_call_mean_us(call) * (double)gs_call_runs(call);
}

gs_reason_t gs_call_reason(const gs_shape_t *call) {
  gs_reason_t most = GS_REASON_SERVED;
  uint64_t calls = 0;
  for (int i = GS_REASON_SERVED + 1; i < GS_REASON_COUNT; i++)
    if (call->calls[i] > calls) calls = call->calls[i], most = (gs_reason_t)i;
  return call->untold > calls ? GS_REASON_COUNT : most;
}

bool gs_call_servable(const gs_shape_t *call) {
#define X(...) +1
  enum { SERVED_ENTRIES = 0 GS_ENTRIES_SERVED(X) };
#undef X
  if (call->gemm.entry >= SERVED_ENTRIES) return false;
  for (int i = 0; i < gs_shipped_count(); i++) {
    gs_kernel_t kernel = gs_shipped_at(i);
    if (gs_kernel_supports(&kernel, &call->gemm) == GS_REASON_SERVED) return true;
  }
  return false;
}

static int by_count(const gs_shape_t *a, const gs_shape_t *b) {
  uint64_t x = gs_call_count(a), y = gs_call_count(b);
  return (x < y) - (x > y);
}

static int by_time(const gs_shape_t *a, const gs_shape_t *b) {
  double x = gs_call_us(a), y = gs_call_us(b);
  return x != y ? (x < y) - (x > y) : by_count(a, b);
}

void gs_calls_sort(gs_calls_t *set, gs_order_t order) {
  int (*compare)(const gs_shape_t *, const gs_shape_t *) = order == GS_BY_TIME ? by_time : by_count;
  HASH_SORT(set->calls, compare);
}

static bool is_product(const gs_gemm_t *g) {
  return g->m > 0 && g->n > 0 && g->k > 0 && g->batch > 0;
}

void gs_calls_write(FILE *file, const gs_calls_t *set) {
  uint64_t left_out = 0;
  fputs(columns, file);
  for (const gs_shape_t *call = set->calls; call; call = call->hh.next) {
    char product[512];
    if (!is_product(&call->gemm)) {
      left_out += gs_call_count(call);
      continue;
    }
    gs_gemm_format(product, sizeof product, &call->gemm);
    fprintf(file, "%s\t%" PRIu64 "\t%" PRIu64 "\t%.3f\t%" PRIu64, product, gs_call_count(call),
            gs_call_served(call), gs_call_mean_us(call), call->captured);
    if (call->captured && call->traced == call->captured) fprintf(file, "\t%" PRIu64, call->replays);
    fputc('\n', file);
  }
  if (left_out) fprintf(file, "# left out: %" PRIu64 " calls with an empty or negative size\n", left_out);
}

/* What stands behind the product on a line. */
typedef struct {
  uint64_t calls, served, captured, replays;
  double us;
  bool traced;
} counts_t;

/* NULL when that is fine, else what is wrong. */
static const char *read_counts(const char *line, counts_t *c) {
  const char *rest = line;
  int numbers, end = 0;
  for (int i = 0; i < GS_GEMM_FIELDS && rest; i++) rest = strchr(rest, '\t') ? strchr(rest, '\t') + 1 : NULL;
  *c = (counts_t){.calls = 1};
  if (!rest) return NULL;
  if (strchr(rest, '-')) return "a count is negative";
  numbers = sscanf(rest, "%" SCNu64 "\t%" SCNu64 "\t%lf\t%" SCNu64 "%n\t%" SCNu64 "%n", &c->calls, &c->served,
                   &c->us, &c->captured, &end, &c->replays, &end);
  if (numbers < 4 || rest[end])
    return "what follows the product is not four numbers (calls, served, mean_us, captured) or five "
           "(replays)";
  if (c->calls < 1 || c->served > c->calls || c->captured > c->calls)
    return "served or captured is more than calls";
  if (c->calls > GS_COUNT_MAX || c->replays > GS_COUNT_MAX) return "more calls than any program makes";
  if (!(c->us >= 0 && c->us < 1e12)) return "mean_us is not a number";
  c->traced = numbers == 5;
  return NULL;
}

static const char *add_line(gs_calls_t *set, const char *line) {
  gs_gemm_t gemm;
  counts_t c;
  const char *why = NULL;
  if (gs_gemm_parse(line, &gemm, &why) != GS_OK) return why;
  if ((why = read_counts(line, &c))) return why;
  gs_shape_t *call = gs_calls_entry(set, &gemm);
  call->calls[GS_REASON_SERVED] += c.served;
  call->untold += c.calls - c.served;
  call->captured += c.captured;
  call->traced += c.traced ? c.captured : 0;
  call->replays += c.replays;
  if (c.us > 0) {
    call->samples++;
    call->timed += c.calls - c.captured;
    call->timed_us += c.us * (double)(c.calls - c.captured);
  }
  return NULL;
}

static void merge_text(gs_calls_t *set, const char *path, FILE *file) {
  char line[LINE_MAX_BYTES];
  int number = 0, faults = 0, products = 0;
  while (fgets(line, sizeof line, file)) {
    size_t length = strlen(line);
    number++;
    if (!length || (line[length - 1] != '\n' && !feof(file))) {
      gs_calls_fault(
          set, "%s:%d: neither a histogram nor a .calls file (binary, or a line over %d bytes); skipped",
          path, number, LINE_MAX_BYTES - 1);
      return;
    }
    line[strcspn(line, "\r\n")] = 0;
    if (!line[0] || line[0] == '#') continue;
    const char *why = add_line(set, line);
    if (!why) {
      products++;
      continue;
    }
    gs_calls_fault(set, "%s:%d: %s; the line is left out: correct it, or let `gemmshim run` write the file",
                   path, number, why);
    if (++faults == CALLS_FAULTS_MAX) {
      gs_calls_fault(set, "%s:%d: %d faults: is this a .calls file? the rest is left out", path, number,
                     faults);
      return;
    }
  }
  if (ferror(file))
    gs_calls_fault(set, "%s: cannot be read: %s", path, strerror(errno));
  else if (!products && !faults)
    gs_calls_fault(set, "%s: no product in it", path);
  else
    set->files++;
}

static void merge_folder(gs_calls_t *set, const char *path) {
  struct dirent **names;
  int count = scandir(path, &names, NULL, alphasort), found = 0;
  if (count < 0) {
    gs_calls_fault(set, "%s: cannot be listed: %s", path, strerror(errno));
    return;
  }
  for (int i = 0; i < count; i++) {
    size_t length = strlen(names[i]->d_name), suffix = strlen(GS_HISTOGRAM_SUFFIX);
    char file[4096];
    if (length > suffix && !strcmp(names[i]->d_name + length - suffix, GS_HISTOGRAM_SUFFIX)) {
      snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
      gs_calls_read(set, file);
      found++;
    }
    free(names[i]);
  }
  free(names);
  if (!found) gs_calls_fault(set, "%s: no histogram (*%s) in this folder", path, GS_HISTOGRAM_SUFFIX);
}

static bool is_binary(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)text[i] < ' ' && !memchr("\t\r\n", text[i], 3)) return true;
  return false;
}

void gs_calls_read(gs_calls_t *set, const char *path) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */
  if (fd < 0 || fstat(fd, &info) < 0) {
    gs_calls_fault(set, "%s: cannot be opened: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return;
  }
  if (S_ISDIR(info.st_mode)) {
    close(fd);
    merge_folder(set, path);
    return;
  }
  if (!S_ISREG(info.st_mode) || info.st_size == 0) {
    gs_calls_fault(set, "%s: %s; skipped", path,
                   info.st_size ? "not a regular file" : "empty, or not a regular file");
    close(fd);
    return;
  }
  char head[LINE_MAX_BYTES];
  FILE *file = fdopen(fd, "r");
  size_t length = fread(head, 1, sizeof head, file), magic = strlen(GS_HISTOGRAM_MAGIC);
  bool histogram = length >= magic && !memcmp(head, GS_HISTOGRAM_MAGIC, magic);
  rewind(file);
  if (histogram)
    gs_histogram_merge(set, path, file, (uint64_t)info.st_size);
  else if (is_binary(head, length))
    gs_calls_fault(set, "%s: neither a histogram nor a .calls file; skipped", path);
  else
    merge_text(set, path, file);
  fclose(file);
}
