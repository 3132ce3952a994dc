/* Where the loader would find a shared object; see elf_file.h, and the manual page ld.so(8). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_file.h"

#define CACHE "/etc/ld.so.cache"

/* glibc's cache file, format 1.1 (glibc 2.2 and newer), which all of today's writers produce. */
typedef struct {
  char magic[20]; /* "glibc-ld.so.cache1.1" */
  uint32_t count, strings_length, unused[5];
} cache_header_t;
typedef struct {
  int32_t flags;
  uint32_t name, path; /* offsets from the header */
  uint32_t os_version;
  uint64_t hwcap;
} cache_entry_t;

static bool usable(const char *path) {
  gs_elf_t elf;
  if (!gs_elf_open(&elf, path)) return false;
  bool native = elf.is_native;
  gs_elf_close(&elf);
  return native;
}

/* The NUL-ended text at offset, or NULL where it is not inside. */
static const char *text_in(const char *data, size_t size, uint32_t offset) {
  return offset < size && memchr(data + offset, 0, size - offset) ? data + offset : NULL;
}

static bool in_cache_data(const char *data, size_t size, const char *soname, char *path, size_t path_size) {
  const cache_header_t *header = (const cache_header_t *)data;
  const cache_entry_t *entries = (const cache_entry_t *)(header + 1);
  if (size < sizeof *header || memcmp(header->magic, "glibc-ld.so.cache1.1", sizeof header->magic))
    return false;
  if (header->count > (size - sizeof *header) / sizeof *entries) return false;
  for (uint32_t i = 0; i < header->count; i++) {
    const char *name = text_in(data, size, entries[i].name), *found = text_in(data, size, entries[i].path);
    if (!name || !found || strcmp(name, soname)) continue;
    if ((size_t)snprintf(path, path_size, "%s", found) < path_size && usable(path)) return true;
  }
  return false;
}

static bool in_cache(const char *soname, char *path, size_t path_size) {
  struct stat info;
  bool found = false;
  int fd = open(CACHE, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  if (fstat(fd, &info) == 0 && info.st_size > 0) {
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data != MAP_FAILED) {
      found = in_cache_data(data, (size_t)info.st_size, soname, path, path_size);
      munmap(data, (size_t)info.st_size);
    }
  }
  close(fd);
  return found;
}

/* One of a colon-separated list of folders; $ORIGIN stands for the folder of the object that asks. */
static bool in_folders(const char *folders, const gs_elf_t *elf, const char *soname, char *path,
                       size_t size) {
  static const char *const origins[] = {"$ORIGIN", "${ORIGIN}"};
  char origin[PATH_MAX] = ".";
  if (elf && realpath(elf->path, origin)) *strrchr(origin, '/') = 0;
  for (const char *folder = folders; folder && *folder;) {
    size_t length = strcspn(folder, ":"), skip = 0;
    for (size_t i = 0; i < 2; i++)
      if (!strncmp(folder, origins[i], strlen(origins[i]))) skip = strlen(origins[i]);
    int written =
        snprintf(path, size, "%s%.*s/%s", skip ? origin : "", (int)(length - skip), folder + skip, soname);
    if (length && (size_t)written < size && usable(path)) return true;
    folder += length + (folder[length] == ':');
  }
  return false;
}

bool gs_elf_resolve(const gs_elf_t *elf, const char *soname, char *path, size_t size) {
  static const char system_folders[] = "/lib64:/usr/lib64:/lib:/usr/lib";
  if (strchr(soname, '/')) return (size_t)snprintf(path, size, "%s", soname) < size && usable(path);
  return in_folders(elf ? elf->run_path : NULL, elf, soname, path, size) ||
         in_folders(getenv("LD_LIBRARY_PATH"), elf, soname, path, size) || in_cache(soname, path, size) ||
         in_folders(system_folders, NULL, soname, path, size);
}
