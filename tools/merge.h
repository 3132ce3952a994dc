/* Several tables of one GPU and cuBLAS as one. */
#ifndef GS_MERGE_H
#define GS_MERGE_H

#include <stdbool.h>

/* Adds the rows of count tables to the one at output, which is made where it is not there, by an atomic rename. Where
 * rows claim the same n the output's own stay, then those of the table that was named first, or, where replace is set,
 * those named last; how many were left out is said. Returns an exit status. */
int gs_merge(const char *output, char **tables, int count, bool replace);

#endif
