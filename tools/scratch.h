/* A folder of our own for files that only live as long as a command. */
#ifndef GS_SCRATCH_H
#define GS_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Makes one under TMPDIR, else in memory (/dev/shm) where that is wanted and there, else under /tmp; false (said). */
bool gs_scratch_make(char *path, size_t size, bool in_memory);
/* Removes it with the files in it. */
void gs_scratch_remove(const char *path);

#endif
