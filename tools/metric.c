/* Finds a number in a program's output; see metric.h. */
#define _GNU_SOURCE
#include "metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

const char *gs_metric_compile(gs_metric_t *metric, const char *expression) {
  static char why[256];
  int error = regcomp(&metric->regex, expression, REG_EXTENDED);
  if (error) {
    regerror(error, &metric->regex, why, sizeof why);
    return why;
  }
  if (metric->regex.re_nsub > 0) return NULL;
  regfree(&metric->regex);
  return "it has no group (...) around the number";
}

void gs_metric_free(gs_metric_t *metric) {
  regfree(&metric->regex);
}

/* The last match of the line into text; false where there is none. */
static bool match_line(const gs_metric_t *metric, const char *line, char *text, size_t size) {
  regmatch_t match[2];
  bool found = false;
  for (int flags = 0; regexec(&metric->regex, line, 2, match, flags) == 0; flags = REG_NOTBOL) {
    if (match[1].rm_so >= 0) {
      snprintf(text, size, "%.*s", (int)(match[1].rm_eo - match[1].rm_so), line + match[1].rm_so);
      found = true;
    }
    if (!line[match[0].rm_eo]) break;
    line += match[0].rm_eo + (match[0].rm_eo == match[0].rm_so);
  }
  return found;
}

const char *gs_metric_read(const gs_metric_t *metric, FILE *file, double *value) {
  static char why[160];
  char *line = NULL, *end, text[64] = "";
  size_t size = 0;
  bool found = false;
  rewind(file);
  while (getline(&line, &size, file) > 0) {
    line[strcspn(line, "\n")] = 0;
    found |= match_line(metric, line, text, sizeof text);
  }
  free(line);
  if (!found) return "the metric's expression matches nothing in its standard output";
  *value = strtod(text, &end);
  if (end != text && !*end && isfinite(*value) && *value > 0) return NULL;
  snprintf(why, sizeof why, "the metric matched \"%s\", which is not a positive number", text);
  return why;
}
