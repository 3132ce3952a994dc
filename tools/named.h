/* Tables as the command line names them. */
#ifndef GS_NAMED_H
#define GS_NAMED_H

#include <stdio.h>

#include "gs_table.h"

/* Reads a file, or else the built-in table of that name; the table is the caller's. Faults of rows go to the
 * stream, a line each. Returns an exit status: GS_EXIT_FALSE where it is refused, GS_EXIT_MACHINE (said) where
 * there is none. */
int gs_named_table(const char *name, FILE *faults, gs_table_t **table);

#endif
