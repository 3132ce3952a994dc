#define _GNU_SOURCE
#include "sass.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool find_in(const char *folder, size_t length, char *path, size_t size) {
  snprintf(path, size, "%.*s/nvdisasm", (int)length, folder);
  return length > 0 && access(path, X_OK) == 0;
}

static bool find_disassembler(char *path, size_t size) {
  const char *home = getenv("CUDA_HOME"), *folders = getenv("PATH");
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%s/bin", home ? home : "/usr/local/cuda");
  bool found = find_in(folder, strlen(folder), path, size);
  while (!found && folders && *folders) {
    size_t length = strcspn(folders, ":");
    found = find_in(folders, length, path, size);
    folders += length + (folders[length] == ':');
  }
  return found && !strpbrk(path, "'\\"); /* it goes into a shell's line */
}

/* HMMA.16816.F32, HMMA.16816.F32.BF16, HGMMA.64x64x16.F32: the type of the sums comes last, or before that of the
 * factors. */
static bool sums_in_f32(const char *opcode) {
  const char *sums = strstr(opcode, ".F32");
  return sums && (!sums[4] || !strcmp(sums + 4, ".BF16"));
}

static bool read_listing(FILE *listing, bool by_fma, char *why, size_t size) {
  char *line = NULL, opcode[64];
  size_t room = 0;
  int multiplies = 0;
  bool right = true;
  while (getline(&line, &room, listing) >= 0) {
    const char *at = strstr(line, "HMMA."), *wide = strstr(line, "HGMMA.");
    multiplies += by_fma && strstr(line, "FFMA");
    if (!right || (!at && !(at = wide))) continue;
    multiplies += !by_fma;
    snprintf(opcode, sizeof opcode, "%.*s", (int)strcspn(at, " \t\r\n"), at);
    right = sums_in_f32(opcode);
    if (!right) snprintf(why, size, "wrong instruction %s: its sums are not kept in F32", opcode);
  }
  free(line);
  if (right && !multiplies)
    snprintf(why, size, "no %s in the machine code",
             by_fma ? "FMA in F32" : "instruction of the tensor cores");
  return right && multiplies;
}

bool gs_sass_check(const void *cubin, size_t size, bool by_fma, char *why, size_t why_size) {
  char path[PATH_MAX], command[PATH_MAX + 64];
  if (!find_disassembler(path, sizeof path)) return true;
  int file = memfd_create("cubin", MFD_CLOEXEC);
  bool right = file >= 0 && write(file, cubin, size) == (ssize_t)size;
  snprintf(command, sizeof command, "'%s' -c /proc/%d/fd/%d 2>&1", path, (int)getpid(), file);
  FILE *listing = right ? popen(command, "re") : NULL;
  if (listing) {
    right = read_listing(listing, by_fma, why, why_size);
    /* One that fails says nothing of the kernel. */
    if (pclose(listing) != 0) right = true;
  }
  if (file >= 0) close(file);
  return right || !listing;
}
