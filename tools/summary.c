/* Totals, ceiling and verdicts; see summary.h. */
#include "summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

gs_totals_t gs_totals(const gs_calls_t *set) {
  gs_totals_t t = {.window_s = set->window_s};
  double timed = 0, servable_untimed = 0; /* calls */
  for (int r = 0; r < GS_REASON_COUNT; r++) t.by_reason[r] = set->overflow[r];
  for (const gs_shape_t *call = set->calls; call; call = call->hh.next) {
    uint64_t count = gs_call_count(call), runs = gs_call_runs(call);
    double us = gs_call_us(call);
    bool servable = gs_call_servable(call);
    t.shapes++;
    for (int r = 0; r < GS_REASON_COUNT; r++) t.by_reason[r] += call->calls[r];
    t.untold += call->untold;
    t.captured += call->captured;
    t.traced += call->traced;
    t.replays += call->replays;
    t.samples += call->samples;
    t.us += us;
    t.served_us += us * (double)gs_call_served(call) / (double)(count ? count : 1);
    if (us > 0) timed += (double)runs;
    if (us > 0 && servable) t.servable_us += us;
    if (us <= 0) t.untimed += runs;
    if (us <= 0 && servable) servable_untimed += (double)runs;
  }
  if (timed > 0) t.servable_us += servable_untimed * t.us / timed;
  t.calls = t.untold;
  for (int r = 0; r < GS_REASON_COUNT; r++) t.calls += t.by_reason[r];
  t.served = t.by_reason[GS_REASON_SERVED];
  return t;
}

static double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

gs_ceiling_t gs_ceiling(const gs_totals_t *t, int processes) {
  gs_ceiling_t c = {0};
  if (t->calls == 0)
    snprintf(c.why, sizeof c.why, "no products were seen");
  else if (t->captured > t->traced)
    snprintf(c.why, sizeof c.why,
             "%.0f%% of the products were captured into CUDA graphs, whose replays hide them",
             ceil(percent((double)(t->captured - t->traced), (double)t->calls)));
  else if (t->samples == 0)
    snprintf(c.why, sizeof c.why, "no timed samples");
  else if (processes == 0)
    snprintf(c.why, sizeof c.why, ".calls files do not hold the elapsed time; histograms do");
  else if (t->window_s <= 0)
    snprintf(c.why, sizeof c.why,
             "the products lie within a few milliseconds; let the program run for longer");
  else {
    c.known = true;
    c.share = fmin(t->servable_us / 1e6 / t->window_s, 1);
    c.value = c.share < 1 ? 1 / (1 - c.share) : INFINITY;
  }
  return c;
}

void gs_ceiling_format(char *buffer, size_t size, const gs_ceiling_t *c, const gs_totals_t *t) {
  if (!c->known)
    snprintf(buffer, size, "ceiling unknown: %s", c->why);
  else if (c->value <= GS_CEILING_WORTHLESS)
    snprintf(buffer, size,
             "ceiling %.2fx: stop here, products that gemmshim can compute take only %.1f%% of the %.3g s "
             "from the "
             "first to the last product",
             c->value, 100 * c->share, t->window_s);
  else {
    char value[32] = "above 100x";
    if (c->value <= 100) snprintf(value, sizeof value, "%.2fx", c->value);
    snprintf(
        buffer, size,
        "ceiling %s: products that gemmshim can compute take %.1f%% of the %.3g s from the first to the last "
        "product",
        value, 100 * c->share, t->window_s);
  }
}

int gs_reasons_by_count(const gs_totals_t *t, gs_reason_t order[GS_REASON_COUNT]) {
  int count = 0;
  for (int r = GS_REASON_SERVED + 1; r < GS_REASON_COUNT; r++) {
    if (!t->by_reason[r]) continue;
    int place = count++;
    for (; place > 0 && t->by_reason[order[place - 1]] < t->by_reason[r]; place--)
      order[place] = order[place - 1];
    order[place] = (gs_reason_t)r;
  }
  return count;
}

void gs_totals_print(FILE *file, const char *prefix, const gs_totals_t *t, int most_reasons) {
  gs_reason_t order[GS_REASON_COUNT];
  int reasons = gs_reasons_by_count(t, order);
  char time[64] = "GPU time unknown";
  if (t->us > 0) snprintf(time, sizeof time, "%.1f%% of their GPU time", percent(t->served_us, t->us));
  fprintf(file,
          "%s%" PRIu64 " products of %" PRIu64 " shapes; gemmshim served %" PRIu64
          " (%.1f%% of the calls, %s)\n",
          prefix, t->calls, t->shapes, t->served, percent((double)t->served, (double)t->calls), time);
  if (t->captured) {
    char replays[64];
    gs_replays_format(replays, sizeof replays, t->captured, t->traced, t->replays);
    fprintf(file, "%s%" PRIu64 " of them were captured into CUDA graphs; products run by replays: %s\n",
            prefix, t->captured, replays);
  }
  for (int i = 0; i < reasons && i < most_reasons; i++)
    fprintf(file, "%sforwarded %" PRIu64 " (%.1f%%) %s: %s\n", prefix, t->by_reason[order[i]],
            percent((double)t->by_reason[order[i]], (double)t->calls), gs_reason_names[order[i]],
            gs_reason_texts[order[i]]);
  if (t->untold)
    fprintf(file, "%sforwarded %" PRIu64 " (%.1f%%) for reasons that .calls files do not keep\n", prefix,
            t->untold, percent((double)t->untold, (double)t->calls));
}

void gs_replays_format(char *buffer, size_t size, uint64_t captured, uint64_t traced, uint64_t replays) {
  if (captured && !traced)
    snprintf(buffer, size, "unknown");
  else
    snprintf(buffer, size, "%s%" PRIu64, traced < captured ? "at least " : "", replays);
}

void gs_call_verdict(char *buffer, size_t size, const gs_shape_t *call) {
  uint64_t count = gs_call_count(call), served = gs_call_served(call);
  const char *kernel = call->kernel[0] ? call->kernel : "gemmshim";
  gs_reason_t reason = gs_call_reason(call);
  const char *why = reason == GS_REASON_COUNT ? "" : gs_reason_names[reason];
  const char *colon = *why ? ": " : "";
  if (served == count)
    snprintf(buffer, size, "%s", kernel);
  else if (served == 0)
    snprintf(buffer, size, "library%s%s", colon, why);
  else
    snprintf(buffer, size, "%s %.0f%%, library%s%s", kernel, percent((double)served, (double)count), colon,
             why);
}
