/* Files that the tools write: whole or not at all. The text goes to a temporary file beside the path, which
 * takes the path's place by rename. Links are never followed, and only regular files are replaced. */
#ifndef GS_OUTPUT_H
#define GS_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct {
  FILE *file;
  mode_t
      deny; /* permissions that it will not have, beside those of the umask; may be set before it is committed */
  char path[PATH_MAX], temporary[PATH_MAX + 16];
} gs_output_t;

/* Whether a file can be put there, before the work that makes its content; says why not. */
bool gs_output_check(const char *path);
bool gs_output_open(gs_output_t *output, const char *path); /* says why not */
/* Puts the file in its place; on failure says why, and the temporary file is gone. */
bool gs_output_commit(gs_output_t *output);
void gs_output_drop(gs_output_t *output);

#endif
