/* The cache of compiled kernels: $XDG_CACHE_HOME/gemmshim, else ~/.cache/gemmshim, one file a kernel, architecture
 * and source. Where it cannot be used, one line says so, once a process. */
#ifndef GS_CACHE_H
#define GS_CACHE_H

#include <limits.h>

#include "generate.h"

#define GS_FNV_BEGIN 0xcbf29ce484222325u
uint64_t gs_fnv1a(uint64_t hash, const void *bytes, size_t count);

/* The folder's path; make: it, and what is missing above it, is made for the user alone. False: neither variable is an
 * absolute path of usual length. */
bool gs_cache_path(bool make, char *path, size_t size);
/* Reads what is kept as file into cubin (image, size, needs, cached); false where there is nothing faultless. */
bool gs_cache_read(const char *file, gs_cubin_t *cubin);
/* Keeps cubin as file; afterwards the cache holds limit bytes at most, the longest unused files go first. */
void gs_cache_write(const char *file, const gs_cubin_t *cubin, uint64_t limit);
/* Whether it can be used. */
bool gs_cache_look(void);

typedef struct {
  int files;
  uint64_t bytes;
  char folder[PATH_MAX];
} gs_cleaned_t;

/* Empties it; false, and a line said, where it cannot be opened. */
bool gs_cache_clean(gs_cleaned_t *cleaned);

#endif
