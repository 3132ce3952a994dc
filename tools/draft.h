/* A table in the making. It is rewritten whole, by rename, whenever a row is settled, so that whatever ends
 * the tuner leaves a table with all rows found so far; one tuner at a time. */
#ifndef GS_DRAFT_H
#define GS_DRAFT_H

#include "gs_table.h"

typedef struct {
  gs_table_header_t header;
  gs_row_t *rows; /* sorted by key and n */
  int count, room;
  int lock; /* descriptor; -1: none */
  char path[4096], lock_path[4104];
} gs_draft_t;

/* Whether rows of one may stand under the header of the other: measured (or predicted) alike, on the same GPU with the
 * same cuBLAS. */
bool gs_same_origin(const gs_table_header_t *x, const gs_table_header_t *y);

/* Locks the table at path and takes over the rows that it has. False (said) where another tuner holds it,
 * where it is of another GPU or cuBLAS than header says, or where nothing can be written there. */
bool gs_draft_open(gs_draft_t *draft, const char *path, const gs_table_header_t *header);
/* The same, but what the table has is replaced. */
bool gs_draft_fresh(gs_draft_t *draft, const char *path, const gs_table_header_t *header);
void gs_draft_close(gs_draft_t *draft);

/* The row that claims g's n, or NULL; valid until the next change. */
const gs_row_t *gs_draft_find(const gs_draft_t *draft, const gs_gemm_t *g);
/* A row that claims any n of key from lo to hi, or NULL; likewise. */
const gs_row_t *gs_draft_claimed(const gs_draft_t *draft, const gs_key_t *key, int lo, int hi);
/* Adds a row that claims nothing another claims, for the next writing; false (said) without memory. */
bool gs_draft_carry(gs_draft_t *draft, const gs_row_t *row);
/* Adds a row in the place of whatever claims any of its n, for the next writing; false (said) without memory. */
bool gs_draft_put(gs_draft_t *draft, const gs_row_t *row);
/* Writes the table as it stands; false: said. */
bool gs_draft_write(gs_draft_t *draft);
/* Puts rows in the place of whatever claims any n of key from lo to hi, and writes the table where that changes it.
 * False (said) where it cannot be written. */
bool gs_draft_claim(gs_draft_t *draft, const gs_key_t *key, int lo, int hi, const gs_row_t *rows, int count);

#endif
