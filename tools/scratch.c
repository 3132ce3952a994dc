#define _GNU_SOURCE
#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools.h"

static bool make_under(const char *parent, char *path, size_t size) {
  char made[PATH_MAX], real[PATH_MAX];
  return snprintf(made, sizeof made, "%s/gemmshim.XXXXXX", parent) < PATH_MAX && mkdtemp(made) &&
         realpath(made, real) && (size_t)snprintf(path, size, "%s", real) < size;
}

bool gs_scratch_make(char *path, size_t size, bool in_memory) {
  const char *wanted = getenv("TMPDIR"), *parent = wanted && *wanted ? wanted : "/tmp";
  if (in_memory && parent != wanted && make_under("/dev/shm", path, size)) return true;
  if (make_under(parent, path, size)) return true;
  gs_say("%s: no folder can be made there (%s): set TMPDIR", parent, strerror(errno));
  return false;
}

void gs_scratch_remove(const char *path) {
  DIR *listing = opendir(path);
  struct dirent *entry;
  while (listing && (entry = readdir(listing))) unlinkat(dirfd(listing), entry->d_name, 0);
  if (listing) closedir(listing);
  rmdir(path);
}
