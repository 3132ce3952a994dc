/* A number that a program prints, found by a regular expression. */
#ifndef GS_METRIC_H
#define GS_METRIC_H

#include <regex.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct {
  regex_t regex;
} gs_metric_t;

/* POSIX extended, with at least one group; NULL when it compiled, else why it did not. */
const char *gs_metric_compile(gs_metric_t *metric, const char *expression);
void gs_metric_free(gs_metric_t *metric);

/* The first group of the last match in the file, line by line from its start. NULL when *value is that, a
 * positive number; else what is wrong. */
const char *gs_metric_read(const gs_metric_t *metric, FILE *file, double *value);

#endif
