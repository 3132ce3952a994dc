#define _GNU_SOURCE
#include "standing.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

gs_standing_t *gs_standing_open(int fd) {
  void *memory = mmap(NULL, sizeof(gs_standing_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

gs_standing_t *gs_standing_make(int *fd) {
  *fd = memfd_create("standing", MFD_CLOEXEC);
  gs_standing_t *made = *fd >= 0 && ftruncate(*fd, sizeof *made) == 0 ? gs_standing_open(*fd) : NULL;
  if (made || *fd < 0) return made;
  close(*fd);
  *fd = -1;
  return NULL;
}
