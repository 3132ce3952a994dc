#define _GNU_SOURCE
#include "csv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools.h"

/* NULL, or what is wrong. The first line tells how many fields there are. */
static const char *add_line(gs_csv_t *csv, const char *line, int *lines) {
  int fields = 1;
  for (const char *c = line; *c; c++) fields += *c == ',';
  if (!*lines) csv->columns = fields;
  if (fields != csv->columns) return "it has another number of fields than the first line";
  char **cells = realloc(csv->cells, (size_t)(*lines + 1) * (size_t)fields * sizeof *cells),
       *copy = strdup(line);
  if (cells) csv->cells = cells;
  if (!cells || !copy) {
    free(copy);
    return "out of memory";
  }
  for (int i = 0; i < fields; i++) cells[*lines * fields + i] = strsep(&copy, ",");
  csv->rows = (*lines)++;
  return NULL;
}

bool gs_csv_read(gs_csv_t *csv, const char *path) {
  FILE *file = fopen(path, "re");
  char *line = NULL;
  size_t room = 0;
  int number = 0, lines = 0;
  const char *why = NULL;
  *csv = (gs_csv_t){0};
  if (!file) {
    gs_say("%s: cannot be read: %s", path, strerror(errno));
    return false;
  }
  while (!why && getline(&line, &room, file) >= 0) {
    number++;
    line[strcspn(line, "\r\n")] = '\0';
    if (line[0] && line[0] != '#') why = add_line(csv, line, &lines);
  }
  if (!why && ferror(file)) why = strerror(errno);
  if (!why && !lines) why = "it is empty";
  free(line);
  fclose(file);
  if (!why) return true;
  gs_say("%s:%d: %s", path, number, why);
  gs_csv_free(csv);
  return false;
}

void gs_csv_free(gs_csv_t *csv) {
  /* The first cell of a line is where its memory begins. */
  for (int line = 0; csv->cells && line <= csv->rows; line++) free(csv->cells[line * csv->columns]);
  free(csv->cells);
  *csv = (gs_csv_t){0};
}

int gs_csv_column(const gs_csv_t *csv, const char *name) {
  for (int i = 0; i < csv->columns; i++)
    if (!strcmp(csv->cells[i], name)) return i;
  return -1;
}

const char *gs_csv_text(const gs_csv_t *csv, int row, int column) {
  return csv->cells[(row + 1) * csv->columns + column];
}

double gs_csv_number(const gs_csv_t *csv, int row, int column) {
  if (column < 0) return NAN;
  const char *text = gs_csv_text(csv, row, column);
  char *end;
  double value = strtod(text, &end);
  return *text && !*end && isfinite(value) ? value : NAN;
}
