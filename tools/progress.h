/* How far a long command is, on stderr: one line that rewrites itself on a terminal; elsewhere, a line a minute. */
#ifndef GS_PROGRESS_H
#define GS_PROGRESS_H

#include <stdbool.h>

#define GS_PROGRESS_PLAIN 60 /* seconds between lines where they stay */

typedef struct {
  double begun, shown; /* seconds on the monotonic clock */
  bool terminal;
} gs_progress_t;

gs_progress_t gs_progress_begin(void);
/* part: 0 to 1 of the work. what: what is being done, for people. */
void gs_progress_show(gs_progress_t *progress, double part, const char *what);
/* The same, for who knows how many seconds are left; not finite: nobody does. */
void gs_progress_show_left(gs_progress_t *progress, double part, double left, const char *what);
/* Clears the line: before other output, and at the end. */
void gs_progress_clear(const gs_progress_t *progress);
/* Another process shows the line for this one, which from now on only clears it. */
void gs_progress_leave(void);
double gs_seconds(void); /* monotonic clock */

#endif
