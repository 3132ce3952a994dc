/* What became of the products that a histogram, or a .calls file, tells of. */
#include <inttypes.h>

#include "advice.h"
#include "doctor.h"
#include "summary.h"
#include "tools.h"

enum { REASONS_SHOWN = 5 };

static void find_reasons(gs_findings_t *found, const gs_totals_t *totals) {
  gs_reason_t order[GS_REASON_COUNT];
  int reasons = gs_reasons_by_count(totals, order);
  for (int i = 0; i < reasons && i < REASONS_SHOWN; i++)
    gs_note(found, "calls", gs_reason_advice(order[i]), "%" PRIu64 " forwarded: %s: %s",
            totals->by_reason[order[i]], gs_reason_names[order[i]], gs_reason_texts[order[i]]);
  if (totals->untold)
    gs_note(found, "calls", "gemmshim run --keep FOLDER keeps histograms: ask about FOLDER",
            "%" PRIu64 " forwarded, for reasons that .calls files do not keep", totals->untold);
}

void gs_doctor_calls(gs_findings_t *found, const char *path) {
  gs_calls_t set = {0};
  gs_calls_read(&set, path);
  snprintf(found->calls, sizeof found->calls, "%s", path);
  gs_totals_t totals = gs_totals(&set);
  if (set.faults) {
    gs_find(found, "calls", GS_EXIT_FALSE, "name a histogram, a folder of them, or a .calls file",
            "%s: cannot be read as a whole", path);
  } else if (totals.calls) {
    gs_find(found, "calls", GS_EXIT_OK, "", "%" PRIu64 " products seen, %" PRIu64 " served", totals.calls,
            totals.served);
  } else {
    gs_note(found, "calls",
            "where it does multiply: cuBLAS may be loaded with RTLD_DEEPBIND, into another namespace "
            "(dlmopen), or "
            "looked up by handle (--handles)",
            "0 products seen so far");
  }
  if (totals.captured) {
    char replays[40];
    gs_replays_format(replays, sizeof replays, totals.captured, totals.traced, totals.replays);
    gs_note(found, "calls",
            "what was served when captured is served in every replay; replays are counted under gemmshim "
            "run, where "
            "the CUDA runtime is linked dynamically",
            "%" PRIu64 " of them were captured into CUDA graphs; products run by replays: %s",
            totals.captured, replays);
  }
  find_reasons(found, &totals);
  gs_calls_free(&set);
}
