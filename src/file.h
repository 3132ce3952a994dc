/* Floor 0. Whole files into memory. */
#ifndef GS_FILE_H
#define GS_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Reads a regular file of at most bytes_max, following links; ours: only one that belongs to this user or root
 * and that nobody else may write. The result is malloc'ed, with a NUL behind it; NULL, and a static text in
 * why, where it cannot be had. A FIFO does not block. */
char *gs_file_read(const char *path, size_t bytes_max, bool ours, size_t *length, const char **why);

/* A new file of mode 0600 in folder, of this host, process and moment, so that no two are ever one; never through a
 * link. Its descriptor and path; -1 and errno. */
int gs_file_create(const char *folder, const char *suffix, char *path, size_t size);

#endif
