/* See bisect.h. */
#include "bisect.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  int *items, *count;
  int *part; /* room for a part of them */
  gs_try_t *check;
  void *context;
  bool stopped;
} work_t;

/* Part i of so many, or all but that. */
static int take(const work_t *w, int parts, int i, bool others) {
  int from = (int)((long)*w->count * i / parts), to = (int)((long)*w->count * (i + 1) / parts), taken = 0;
  for (int item = 0; item < *w->count; item++)
    if ((item >= from && item < to) != others) w->part[taken++] = w->items[item];
  return taken;
}

/* Goes on with the first part, or rest, that fails by itself. */
static bool narrow(work_t *w, int parts, bool others) {
  for (int i = 0; i < parts && !w->stopped; i++) {
    int taken = take(w, parts, i, others);
    gs_outcome_t outcome = w->check(w->context, w->part, taken);
    w->stopped = outcome == GS_STOPPED;
    if (outcome != GS_FAILS) continue;
    memcpy(w->items, w->part, (size_t)taken * sizeof *w->items);
    *w->count = taken;
    return true;
  }
  return false;
}

bool gs_bisect(int *items, int *count, gs_try_t *check, void *context) {
  work_t w = {items, count, malloc((size_t)*count * sizeof *items), check, context, false};
  if (!w.part) abort();
  for (int parts = 2; *count >= 2 && !w.stopped;) {
    if (narrow(&w, parts, false))
      parts = 2;
    else if (parts > 2 && narrow(&w, parts, true))
      parts = parts > 3 ? parts - 1 : 2;
    else if (parts >= *count)
      break;
    else
      parts = 2 * parts < *count ? 2 * parts : *count;
  }
  free(w.part);
  return !w.stopped;
}
