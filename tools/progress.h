/* How far a long command is, on stderr: one line that rewrites itself, on a terminal only. */
#ifndef GS_PROGRESS_H
#define GS_PROGRESS_H

#include <stdbool.h>

typedef struct {
  double begun, shown; /* seconds on the monotonic clock */
  bool terminal;
} gs_progress_t;

gs_progress_t gs_progress_begin(void);
/* part: 0 to 1 of the work. what: what is being done, for people. */
void gs_progress_show(gs_progress_t *progress, double part, const char *what);
/* Clears the line: before other output, and at the end. */
void gs_progress_clear(const gs_progress_t *progress);
double gs_seconds(void); /* monotonic clock */

#endif
