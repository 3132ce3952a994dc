/* Small comma-separated files with a line of column names: no quotes, # comments are skipped. */
#ifndef GS_CSV_H
#define GS_CSV_H

#include <stdbool.h>

typedef struct {
  char **cells; /* columns names, then rows * columns texts; owned, with text */
  int columns, rows;
} gs_csv_t;

/* False (said) where it cannot be read or a line has another number of fields. */
bool gs_csv_read(gs_csv_t *csv, const char *path);
void gs_csv_free(gs_csv_t *csv);

int gs_csv_column(const gs_csv_t *csv, const char *name); /* -1: none */
const char *gs_csv_text(const gs_csv_t *csv, int row, int column);
double gs_csv_number(const gs_csv_t *csv, int row, int column); /* NAN where it is none, or column is -1 */

#endif
