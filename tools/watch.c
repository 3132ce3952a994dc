#include "watch.h"

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
