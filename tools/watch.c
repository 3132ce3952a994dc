#include "watch.h"

#include <stdio.h>

#include "progress.h"

#define X(name, text) text,
const char *const gs_phase_names[GS_PHASE_COUNT] = {GS_PHASES(X)};
#undef X

gs_phase_t gs_watch(gs_watch_t *watch, gs_phase_t phase) {
  gs_phase_t before = watch->phase;
  gs_watch_stop(watch);
  watch->since = gs_seconds();
  watch->phase = phase;
  return before;
}

void gs_watch_stop(gs_watch_t *watch) {
  if (watch->since > 0) watch->seconds[watch->phase] += gs_seconds() - watch->since;
  watch->since = 0;
}

void gs_watch_add(gs_watch_t *sum, const gs_watch_t *watch) {
  for (int p = 0; p < GS_PHASE_COUNT; p++) sum->seconds[p] += watch->seconds[p];
}

int gs_watch_text(char *buffer, size_t size, const gs_watch_t *watch) {
  int length = 0;
  for (int p = 0; p < GS_PHASE_COUNT; p++) {
    size_t left = (size_t)length < size ? size - (size_t)length : 0;
    if (watch->seconds[p] >= 0.1)
      length += snprintf(left ? buffer + length : NULL, left, "%s%s %.1f", length ? ", " : "",
                         gs_phase_names[p], watch->seconds[p]);
  }
  if (!length) length = snprintf(buffer, size, "none");
  return length;
}
