#include "progress.h"

#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static bool left_to_another;

double gs_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

gs_progress_t gs_progress_begin(void) {
  gs_progress_t progress = {.begun = gs_seconds(), .terminal = isatty(STDERR_FILENO)};
  if (!progress.terminal) progress.shown = progress.begun; /* what takes less than a minute leaves no line */
  return progress;
}

void gs_progress_leave(void) {
  left_to_another = true;
}

/* In one write, since others may write to the same terminal. */
void gs_progress_show_left(gs_progress_t *progress, double part, double left, const char *what) {
  char time[32] = "";
  double now = gs_seconds();
  if (left_to_another || now - progress->shown < (progress->terminal ? 0.1 : GS_PROGRESS_PLAIN)) return;
  progress->shown = now;
  if (isfinite(left)) snprintf(time, sizeof time, ", %.0f s left", left);
  fprintf(stderr, progress->terminal ? "\r\033[K%3.0f%%%s: %s" : "gemmshim: %.0f%%%s: %s\n", 100 * part, time,
          what);
}

void gs_progress_show(gs_progress_t *progress, double part, const char *what) {
  double gone = gs_seconds() - progress->begun;
  gs_progress_show_left(progress, part, part > 0 && gone > 1 ? gone / part - gone : NAN, what);
}

void gs_progress_clear(const gs_progress_t *progress) {
  if (progress->terminal && (progress->shown > 0 || left_to_another)) fputs("\r\033[K", stderr);
  /* The other one may show it again before what is printed now: to be cleared by the same write. */
  if (left_to_another && isatty(STDOUT_FILENO)) fputs("\r\033[K", stdout);
}
