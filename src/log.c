#define _GNU_SOURCE
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "options.h"

#define LINE_MAX_BYTES 1024

static int log_fd = -1;         /* -1: stderr, as it is at the time of writing */
static _Atomic uint64_t window; /* the second that written counts for, then lines written in it */
static _Atomic uint64_t suppressed;

/* GEMMSHIM_LOG_FILE with %p replaced by the process id. */
static bool expand_path(char *path, size_t size) {
  const char *template = gs_option_text(GS_OPT_LOG_FILE);
  const char *mark = strstr(template, "%p");
  int length =
      mark ? snprintf(path, size, "%.*s%ld%s", (int)(mark - template), template, (long)getpid(), mark + 2)
           : snprintf(path, size, "%s", template);
  return length >= 0 && (size_t)length < size;
}

void gs_log_open(void) {
  char path[512];
  log_fd = -1;
  if (!*gs_option_text(GS_OPT_LOG_FILE)) return;
  errno = ENAMETOOLONG;
  if (expand_path(path, sizeof path))
    log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (log_fd < 0)
    gs_log(GS_LOG_FAULT, "GEMMSHIM_LOG_FILE=%.200s: %s; logging to stderr", gs_option_text(GS_OPT_LOG_FILE),
           strerror(errno));
}

void gs_log_reopen(void) {
  if (log_fd < 0 || !strstr(gs_option_text(GS_OPT_LOG_FILE), "%p")) return;
  close(log_fd);
  gs_log_open();
}

int gs_log_wants(gs_log_level_t level) {
  return gs_option(GS_OPT_LOG) >= (long)level;
}

/* One line more in this second? Resets the count when the second changes. */
static int within_rate(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  uint64_t second = (uint64_t)now.tv_sec << 32, seen = atomic_load_explicit(&window, memory_order_relaxed);
  if ((seen & ~(uint64_t)UINT32_MAX) != second) {
    if (atomic_compare_exchange_strong(&window, &seen, second + 1)) return 1;
  }
  return (atomic_fetch_add(&window, 1) & UINT32_MAX) < (uint64_t)gs_option(GS_OPT_LOG_RATE);
}

static void write_line(const char *format, va_list arguments) {
  char line[LINE_MAX_BYTES];
  int error = errno, head = snprintf(line, sizeof line, "gemmshim[%ld]: ", (long)getpid());
  int body = vsnprintf(line + head, sizeof line - (size_t)head - 1, format, arguments);
  size_t length = (size_t)head + (body < 0 ? 0 : (size_t)body);
  if (length > sizeof line - 2) length = sizeof line - 2;
  line[length++] = '\n';
  if (write(log_fd < 0 ? STDERR_FILENO : log_fd, line, length) < 0) suppressed++;
  errno = error; /* the host must not see ours */
}

static void write_formatted(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}

void gs_log(gs_log_level_t level, const char *format, ...) {
  if (!gs_log_wants(level)) return;
  if (level == GS_LOG_CALL && !within_rate()) {
    atomic_fetch_add(&suppressed, 1);
    return;
  }
  uint64_t lost = atomic_exchange(&suppressed, 0);
  if (lost) write_formatted("%llu lines left out (GEMMSHIM_LOG_RATE)", (unsigned long long)lost);
  va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}
