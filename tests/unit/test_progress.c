/* Progress where lines stay: at most one a minute, and none of a process that another one speaks for. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <math.h>
#include <stdio.h>

#include "progress.h"

/* As if the command had begun two minutes ago. */
static gs_progress_t old(void) {
  gs_progress_t progress = {.begun = gs_seconds() - 120, .shown = gs_seconds() - GS_PROGRESS_PLAIN - 1};
  return progress;
}

Test(progress, a_plain_line_a_minute, .init = cr_redirect_stderr) {
  gs_progress_t progress = old(), fresh = gs_progress_begin();
  gs_progress_show(&fresh, 0.5, "too early");
  gs_progress_show(&progress, 0.25, "3 of 12");
  gs_progress_show(&progress, 0.5, "too early");
  gs_progress_clear(&progress);
  progress = old();
  gs_progress_show_left(&progress, 0.75, 7, "9 of 12");
  progress = old();
  gs_progress_show_left(&progress, 0.75, NAN, "9 of 12");
  fflush(stderr);
  cr_assert_stderr_eq_str("gemmshim: 25%, 360 s left: 3 of 12\n"
                          "gemmshim: 75%, 7 s left: 9 of 12\ngemmshim: 75%: 9 of 12\n");
}

Test(progress, who_is_spoken_for_says_nothing, .init = cr_redirect_stderr) {
  gs_progress_t progress = old();
  gs_progress_leave();
  gs_progress_show(&progress, 0.25, "3 of 12");
  gs_progress_clear(&progress);
  fputs("end\n", stderr);
  fflush(stderr);
  cr_assert_stderr_eq_str("end\n");
}
