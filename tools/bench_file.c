#define _GNU_SOURCE
#include "bench_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools.h"

/* ---- reading ---- */

static void add_header(gs_bench_set_t *set, const char *line) {
  size_t had = set->header ? strlen(set->header) : 0, more = strlen(line);
  char *header = realloc(set->header, had + more + 1);
  if (!header) abort(); /* a tool, and a few kilobytes */
  memcpy(header + had, line, more + 1);
  set->header = header;
}

static const char *add_row(gs_bench_set_t *set, char *line) {
  if (set->count == set->room) {
    int room = set->room ? 2 * set->room : 64;
    gs_bench_row_t *rows = realloc(set->rows, (size_t)room * sizeof *rows);
    if (!rows) return "out of memory";
    set->rows = rows, set->room = room;
  }
  const char *why = gs_bench_row_read(&set->rows[set->count], line);
  set->count += !why;
  return why;
}

/* NULL, or what is wrong. */
static const char *add_line(gs_bench_set_t *set, char *line, bool first_file, bool *columns) {
  if (line[0] == '#') {
    if (first_file && !*columns) add_header(set, line);
    return NULL;
  }
  if (*columns) return add_row(set, line);
  char *expected = gs_bench_columns();
  *columns = !strcmp(line, expected);
  free(expected);
  return *columns ? NULL : "these are not the columns that this version of gemmshim bench writes";
}

bool gs_bench_set_read(gs_bench_set_t *set, const char *path) {
  FILE *file = fopen(path, "re");
  char *line = NULL;
  size_t room = 0;
  int number = 0;
  bool first_file = !set->header, columns = false;
  const char *why = NULL;
  if (!file) {
    gs_say("%s: cannot be read: %s", path, strerror(errno));
    return false;
  }
  while (!why && getline(&line, &room, file) >= 0) {
    number++;
    why = add_line(set, line, first_file, &columns);
  }
  if (!why && ferror(file)) why = strerror(errno);
  free(line);
  fclose(file);
  if (why) gs_say("%s:%d: %s", path, number, why);
  return !why;
}

void gs_bench_set_free(gs_bench_set_t *set) {
  free(set->header), free(set->rows);
  *set = (gs_bench_set_t){0};
}

static bool holds(const gs_bench_row_t *row, const gs_gemm_t *g) {
  bool same = !memcmp(&row->gemm, g, sizeof *g);
  if (!same && !gs_gemm_turned(&row->gemm, g)) return false;
  return gs_bench_row_ok(row) ? row->door[gs_layout_of(g)].verdict[0] != '\0' : same;
}

const gs_bench_row_t *gs_bench_set_find(const gs_bench_set_t *set, const gs_gemm_t *g) {
  for (int i = 0; i < set->count; i++)
    if (holds(&set->rows[i], g)) return &set->rows[i];
  return NULL;
}

const char *gs_bench_header_get(const char *header, const char *key, char *buffer, size_t size) {
  size_t length = strlen(key);
  buffer[0] = '\0';
  for (const char *line = header; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
    if (!strncmp(line, "# ", 2) && !strncmp(line + 2, key, length) && !strncmp(line + 2 + length, ": ", 2)) {
      const char *value = line + 2 + length + 2;
      snprintf(buffer, size, "%.*s", (int)strcspn(value, "\n"), value);
      break;
    }
  return buffer;
}

/* ---- writing ---- */

/* Back to the end of the last whole line. */
static bool cut_torn_line(int fd) {
  off_t end = lseek(fd, 0, SEEK_END);
  char byte;
  for (off_t at = end; at > 0; at--) {
    if (pread(fd, &byte, 1, at - 1) != 1) return false;
    if (byte == '\n') return at == end || ftruncate(fd, at) == 0;
  }
  return end == 0 || ftruncate(fd, 0) == 0;
}

int gs_bench_file_lock(const char *path) {
  struct stat info;
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (fd >= 0 && (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))) {
    close(fd);
    fd = -1, errno = EINVAL;
  }
  if (fd < 0) {
    gs_say("%s: cannot be written: %s", path,
           errno == ELOOP || errno == EINVAL ? "it is no regular file" : strerror(errno));
    return -1;
  }
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 && cut_torn_line(fd)) return fd;
  gs_say("%s: %s", path,
         errno == EWOULDBLOCK ? "another gemmshim bench is writing it: wait for it, or name another with -o"
                              : strerror(errno));
  close(fd);
  return -1;
}

bool gs_bench_file_append(const char *path, const char *text) {
  size_t length = strlen(text);
  int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  off_t before = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
  ssize_t written = before < 0 ? -1 : write(fd, text, length);
  int error = written < 0 ? errno : ENOSPC;
  bool whole = written == (ssize_t)length;
  if (!whole && before >= 0 && ftruncate(fd, before) != 0) error = errno;
  if (fd >= 0 && close(fd) != 0) whole = false, error = errno;
  if (!whole) gs_say("%s: cannot be written: %s; what is in it stays", path, strerror(error));
  return whole;
}
