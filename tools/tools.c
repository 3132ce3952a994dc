/* What the commands share; see tools.h. */
#define _GNU_SOURCE
#include "tools.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void gs_say(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("gemmshim: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
}

void gs_say_line(void *context, const char *line) {
  (void)context;
  gs_say("%s", line);
}

int gs_usage(char **argv, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "gemmshim %s: ", argv[0]);
  vfprintf(stderr, format, args);
  fprintf(stderr, "; see: gemmshim %s --help\n", argv[0]);
  va_end(args);
  return GS_EXIT_USAGE;
}

int gs_usage_option(char **argv, int answer) {
  const char *what = answer == ':' ? "needs a value" : "is not an option here, or takes no value";
  bool is_long = strncmp(argv[optind - 1], "--", 2) == 0;
  if (!is_long && optopt > 0 && optopt < 128) return gs_usage(argv, "-%c %s", optopt, what);
  return gs_usage(argv, "%s %s", argv[optind - 1], what);
}

int gs_help(const char *text) {
  fputs(text, stdout);
  return GS_EXIT_OK;
}

bool gs_read_long(const char *text, long lo, long hi, long *value) {
  char *end;
  errno = 0;
  long read = strtol(text, &end, 10);
  if (errno || end == text || *end || read < lo || read > hi) return false;
  *value = read;
  return true;
}

bool gs_library_path(const char *name, char *path, size_t size) {
  static const char *const places[] = {"", "../lib/"};
  char folder[PATH_MAX], joined[PATH_MAX + 32], real[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  if (length < 0) {
    gs_say("/proc/self/exe cannot be read (%s), so the library cannot be found: mount /proc",
           strerror(errno));
    return false;
  }
  folder[length] = 0;
  *strrchr(folder, '/') = 0;
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    snprintf(joined, sizeof joined, "%s/%s%s", folder, places[i], name);
    if (realpath(joined, real) && (size_t)snprintf(path, size, "%s", real) < size) return true;
  }
  gs_say("%s is neither in %s nor in %s/../lib: build or install it again", name, folder, folder);
  return false;
}
