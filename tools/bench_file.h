/* The CSV of `bench`: "# key: value" lines that say what was measured where and how, the columns, then a row a
 * product. Rows are only ever appended, each by one write, so that whatever ends the run leaves those that are
 * done; a run that finds a file goes on with it. */
#ifndef GS_BENCH_FILE_H
#define GS_BENCH_FILE_H

#include <stdbool.h>

#include "bench_row.h"

typedef struct {
  char *header;         /* its # lines; owned */
  gs_bench_row_t *rows; /* owned */
  int count, room;
} gs_bench_set_t;

/* Adds the rows of a file; false (said) where it cannot be read or a line is faulty. The header is the first
 * file's. */
bool gs_bench_set_read(gs_bench_set_t *set, const char *path);
void gs_bench_set_free(gs_bench_set_t *set);
/* The row in which g was measured, alone or in a pair, or was found not to be measurable; NULL: none. */
const gs_bench_row_t *gs_bench_set_find(const gs_bench_set_t *set, const gs_gemm_t *g);
/* The value of "# key: value" in a header, or "" (a copy in buffer). */
const char *gs_bench_header_get(const char *header, const char *key, char *buffer, size_t size);

/* Opens or makes the file for one process at a time: a descriptor, or -1 (said). A line that a killed run left
 * unfinished is cut off. Links are not followed. */
int gs_bench_file_lock(const char *path);
/* Appends whole lines; false (said) where they cannot all be written, and then none is. */
bool gs_bench_file_append(const char *path, const char *text);

#endif
