/* What `compare` measured, and how it is shown. */
#ifndef GS_COMPARE_H
#define GS_COMPARE_H

#include <stdbool.h>

#include "stats.h"

typedef enum { GS_MODE_OFF, GS_MODE_PASSTHROUGH, GS_MODE_ON, GS_MODE_COUNT } gs_mode_t;
extern const char *const gs_mode_names[GS_MODE_COUNT];

typedef struct {
  char **command;
  const char *metric; /* a regular expression; NULL: wall time in seconds */
  bool higher_is_better;
  uint64_t seed;
  size_t done; /* rounds: values[mode][0 .. done - 1] */
  double *values[GS_MODE_COUNT];
  bool complete; /* false: stopped by a failure or a signal */
} gs_comparison_t;

void gs_comparison_text(const gs_comparison_t *comparison);
void gs_comparison_json(const gs_comparison_t *comparison);

#endif
