/* What a tuner has tried, won or not, beside its table: FILE.tried, a product a line. It is there while the work is
 * not complete, so that the next run goes on where this one ended, whatever ended it. */
#ifndef GS_JOURNAL_H
#define GS_JOURNAL_H

#include <stdio.h>

#include "gs_table.h"
#include "points.h"

typedef struct {
  char path[4104];
  gs_points_t tried;
  FILE *file; /* opened by the first gs_journal_add */
  char head[192];
} gs_journal_t;

/* Reads what an unfinished run for the same GPU and cuBLAS left beside the table; anything else is put aside. */
void gs_journal_open(gs_journal_t *journal, const char *table, const gs_table_header_t *header);
bool gs_journal_has(const gs_journal_t *journal, const gs_gemm_t *g);
/* False (said) where it cannot be written. */
bool gs_journal_add(gs_journal_t *journal, const gs_gemm_t *g);
/* complete: everything was tried, and the file is not wanted any more. */
void gs_journal_close(gs_journal_t *journal, bool complete);

#endif
