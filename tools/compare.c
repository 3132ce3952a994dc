/* Shows a comparison as text and as JSON; see compare.h. */
#include "compare.h"

#include <math.h>
#include <stdio.h>

#include "json.h"

static gs_interval_t ratio_to_off(const gs_comparison_t *c, gs_mode_t mode) {
  return gs_ratio_of_medians(c->values[mode], c->values[GS_MODE_OFF], c->done, c->seed);
}

/* Above 1 is faster, whichever way the metric points. */
static double speedup(const gs_comparison_t *c, double ratio) {
  return c->higher_is_better ? ratio : 1 / ratio;
}

static void verdict(char *buffer, size_t size, const gs_comparison_t *c, gs_interval_t ratio) {
  double gain = speedup(c, ratio.value);
  if (isnan(ratio.lo))
    snprintf(buffer, size, "undecided: fewer than %d rounds", GS_INTERVAL_PAIRS_MIN);
  else if (ratio.lo <= 1 && ratio.hi >= 1)
    snprintf(buffer, size, "no difference beyond noise");
  else
    snprintf(buffer, size, "%.3fx %s", gain > 1 ? gain : 1 / gain, gain > 1 ? "faster" : "slower");
}

void gs_comparison_text(const gs_comparison_t *c) {
  printf("%s: %s is better; %zu rounds, seed %llu%s\n", c->metric ? c->metric : "wall time in s",
         c->higher_is_better ? "higher" : "lower", c->done, (unsigned long long)c->seed,
         c->complete ? "" : "; stopped early");
  if (!c->done) {
    puts("no round was complete: nothing to compare");
    return;
  }
  printf("%-13s %12s  %s\n", "", "median", "ratio to off, 95% interval");
  for (int mode = 0; mode < GS_MODE_COUNT; mode++) {
    printf("%-13s %12.6g", gs_mode_names[mode], gs_median(c->values[mode], c->done));
    if (mode != GS_MODE_OFF) {
      gs_interval_t r = ratio_to_off(c, (gs_mode_t)mode);
      char text[64], interval[64] = "";
      verdict(text, sizeof text, c, r);
      if (!isnan(r.lo)) snprintf(interval, sizeof interval, " [%.4f, %.4f]", r.lo, r.hi);
      printf("  %.4f%s  %s%s", r.value, interval, text,
             mode == GS_MODE_PASSTHROUGH ? " (the cost of being there)" : "");
    }
    putchar('\n');
  }
}

static void add_number(cJSON *object, const char *name, double value) {
  if (isfinite(value))
    cJSON_AddNumberToObject(object, name, value);
  else
    cJSON_AddNullToObject(object, name);
}

static cJSON *json_mode(const gs_comparison_t *c, gs_mode_t mode) {
  cJSON *object = cJSON_CreateObject();
  if (c->done) add_number(object, "median", gs_median(c->values[mode], c->done));
  if (c->done && mode != GS_MODE_OFF) {
    gs_interval_t r = ratio_to_off(c, mode);
    char text[64];
    verdict(text, sizeof text, c, r);
    add_number(object, "ratio", r.value);
    add_number(object, "ratio_lo", r.lo);
    add_number(object, "ratio_hi", r.hi);
    add_number(object, "speedup", speedup(c, r.value));
    cJSON_AddStringToObject(object, "verdict", text);
  }
  cJSON_AddItemToObject(object, "values", cJSON_CreateDoubleArray(c->values[mode], (int)c->done));
  return object;
}

void gs_comparison_json(const gs_comparison_t *c) {
  cJSON *root = cJSON_CreateObject(), *command = cJSON_AddArrayToObject(root, "command");
  for (char **word = c->command; *word; word++) cJSON_AddItemToArray(command, cJSON_CreateString(*word));
  cJSON_AddStringToObject(root, "metric", c->metric ? c->metric : "wall time in s");
  cJSON_AddStringToObject(root, "better", c->higher_is_better ? "higher" : "lower");
  cJSON_AddNumberToObject(root, "rounds", (double)c->done);
  cJSON_AddNumberToObject(root, "seed", (double)c->seed);
  cJSON_AddBoolToObject(root, "complete", c->complete);
  cJSON_AddItemToObject(root, "off", json_mode(c, GS_MODE_OFF));
  cJSON_AddItemToObject(root, "passthrough", json_mode(c, GS_MODE_PASSTHROUGH));
  cJSON_AddItemToObject(root, "on", json_mode(c, GS_MODE_ON));
  gs_json_print(root);
}
