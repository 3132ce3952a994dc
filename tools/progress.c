#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

double gs_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

gs_progress_t gs_progress_begin(void) {
  return (gs_progress_t){.begun = gs_seconds(), .terminal = isatty(STDERR_FILENO)};
}

void gs_progress_show(gs_progress_t *progress, double part, const char *what) {
  double now = gs_seconds(), gone = now - progress->begun;
  if (!progress->terminal || now - progress->shown < 0.1) return;
  progress->shown = now;
  fprintf(stderr, "\r\033[K%3.0f%%", 100 * part);
  if (part > 0 && gone > 1) fprintf(stderr, ", %.0f s left", gone / part - gone);
  fprintf(stderr, ": %s", what);
}

void gs_progress_clear(const gs_progress_t *progress) {
  if (progress->terminal && progress->shown > 0) fputs("\r\033[K", stderr);
}
