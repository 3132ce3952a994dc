/* The cache of compiled kernels; see cache.h. */
#define _GNU_SOURCE
#include "cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools.h"

uint64_t gs_fnv1a(uint64_t hash, const void *bytes, size_t count) {
  for (const unsigned char *at = bytes, *end = at + count; at < end; at++)
    hash = (hash ^ *at) * 0x100000001b3u;
  return hash;
}

/* What follows the cubin in a file. */
typedef struct {
  gs_cubin_needs_t needs;
  uint64_t checksum; /* of all before it */
} trailer_t;

static uint64_t checksum_of(const gs_cubin_t *cubin) {
  return gs_fnv1a(gs_fnv1a(GS_FNV_BEGIN, cubin->image, cubin->size), &cubin->needs, sizeof cubin->needs);
}

static void say_once(const char *what, const char *why) {
  static bool said;
  if (!said) gs_say("%s: kernels are not cached: %s", what, why);
  said = true;
}

bool gs_cache_path(bool make, char *path, size_t size) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int length = cache && *cache == '/' ? snprintf(path, size, "%s/gemmshim", cache)
               : home && *home == '/' ? snprintf(path, size, "%s/.cache/gemmshim", home)
                                      : -1;
  if (length < 0 || (size_t)length >= size) return false;
  for (char *slash = path; make && slash;) {
    slash = strchr(slash + 1, '/');
    if (slash) *slash = '\0';
    mkdir(path, 0700);
    if (slash) *slash = '/';
  }
  return true;
}

/* The folder, where nobody else can put a file into it; -1, said: there is none. */
static int cache_open(char *path, size_t size) {
  struct stat info;
  if (!gs_cache_path(true, path, size)) {
    *path = 0;
    say_once("XDG_CACHE_HOME and HOME", "neither is an absolute path of usual length: set one");
    return -1;
  }
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) {
    say_once(path, strerror(errno));
  } else if (fstat(folder, &info) || info.st_uid != geteuid() || info.st_mode & (S_IWGRP | S_IWOTH)) {
    say_once(path,
             "others may write there, or own it: chmod 700, or set XDG_CACHE_HOME to a folder of yours");
    close(folder);
    return -1;
  }
  return folder;
}

static bool read_all(int fd, char *to, size_t count) {
  while (count) {
    ssize_t got = read(fd, to, count);
    if (got <= 0) return false;
    to += got, count -= (size_t)got;
  }
  return true;
}

/* Faulty files are as good as none: the next write replaces them. Reading one makes it the latest used. */
static bool cache_read(int folder, const char *file, gs_cubin_t *cubin) {
  struct stat info;
  trailer_t trailer;
  int fd = openat(folder, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  bool sane = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > (off_t)sizeof trailer &&
              info.st_size < 64 << 20;
  if (sane && (cubin->image = malloc((size_t)info.st_size))) {
    cubin->size = (size_t)info.st_size - sizeof trailer;
    if (read_all(fd, cubin->image, (size_t)info.st_size)) {
      memcpy(&trailer, (char *)cubin->image + cubin->size, sizeof trailer);
      cubin->needs = trailer.needs;
      cubin->cached = trailer.checksum == checksum_of(cubin);
    }
  }
  if (cubin->cached)
    futimens(fd, NULL);
  else
    gs_cubin_free(cubin), cubin->needs = (gs_cubin_needs_t){0};
  close(fd);
  return cubin->cached;
}

static bool write_all(int fd, const char *from, size_t count) {
  while (count) {
    ssize_t put = write(fd, from, count);
    if (put < 0) return false;
    from += put, count -= (size_t)put;
  }
  return true;
}

static void cache_write(int folder, const char *path, const char *file, const gs_cubin_t *cubin) {
  char temporary[48];
  uint64_t unique = 0;
  const trailer_t trailer = {cubin->needs, checksum_of(cubin)};
  if (getrandom(&unique, sizeof unique, 0) < 0) unique = (uint64_t)getpid();
  snprintf(temporary, sizeof temporary, "%016llx.cubin.part", (unsigned long long)unique);
  int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool written = fd >= 0 && write_all(fd, cubin->image, cubin->size) &&
                 write_all(fd, (const char *)&trailer, sizeof trailer);
  int error = errno;
  if (fd >= 0 && close(fd) != 0 && written) written = false, error = errno;
  if (written && renameat(folder, temporary, folder, file) == 0) return;
  say_once(path, strerror(written ? errno : error));
  if (fd >= 0) unlinkat(folder, temporary, 0);
}

typedef struct {
  char name[NAME_MAX + 1];
  struct timespec used;
  uint64_t bytes;
} entry_t;

static int by_use(const void *x, const void *y) {
  const struct timespec *a = &((const entry_t *)x)->used, *b = &((const entry_t *)y)->used;
  return a->tv_sec != b->tv_sec ? (a->tv_sec > b->tv_sec) - (a->tv_sec < b->tv_sec)
                                : (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

/* Our files in the folder, in memory of the caller's. */
static entry_t *cache_list(int folder, size_t *count) {
  entry_t *entries = NULL;
  struct stat info;
  int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = again < 0 ? NULL : fdopendir(again);
  *count = 0;
  if (!stream && again >= 0) close(again);
  for (struct dirent *found; stream && (found = readdir(stream));) {
    if (fnmatch("*.cubin", found->d_name, 0) && fnmatch("*.cubin.part", found->d_name, 0)) continue;
    if (fstatat(folder, found->d_name, &info, AT_SYMLINK_NOFOLLOW) || S_ISDIR(info.st_mode)) continue;
    if ((*count & (*count - 1)) == 0) { /* full: 0, 1, 2, 4 ... entries */
      entry_t *more = realloc(entries, (*count ? *count * 2 : 1) * sizeof *entries);
      if (!more) break;
      entries = more;
    }
    entry_t *entry = &entries[(*count)++];
    snprintf(entry->name, sizeof entry->name, "%s", found->d_name);
    entry->used = info.st_mtim, entry->bytes = (uint64_t)info.st_size;
  }
  if (stream) closedir(stream);
  return entries;
}

/* Removes the longest unused files until the rest takes limit bytes or less. */
static void cache_trim(int folder, uint64_t limit, gs_cleaned_t *cleaned) {
  size_t count;
  uint64_t total = 0;
  entry_t *entries = cache_list(folder, &count);
  for (size_t i = 0; i < count; i++) total += entries[i].bytes;
  if (count) qsort(entries, count, sizeof *entries, by_use);
  for (size_t i = 0; i < count && (total > limit || limit == 0); i++) {
    if (unlinkat(folder, entries[i].name, 0)) continue;
    total -= entries[i].bytes;
    cleaned->files++, cleaned->bytes += entries[i].bytes;
  }
  free(entries);
}

bool gs_cache_read(const char *file, gs_cubin_t *cubin) {
  char path[PATH_MAX];
  int folder = cache_open(path, sizeof path);
  bool found = folder >= 0 && cache_read(folder, file, cubin);
  if (folder >= 0) close(folder);
  return found;
}

void gs_cache_write(const char *file, const gs_cubin_t *cubin, uint64_t limit) {
  gs_cleaned_t cleaned = {0};
  int folder = cache_open(cleaned.folder, sizeof cleaned.folder);
  if (folder < 0) return;
  cache_write(folder, cleaned.folder, file, cubin);
  cache_trim(folder, limit, &cleaned);
  close(folder);
}

bool gs_cache_look(void) {
  char path[PATH_MAX];
  int folder = cache_open(path, sizeof path);
  if (folder >= 0) close(folder);
  return folder >= 0;
}

bool gs_cache_clean(gs_cleaned_t *cleaned) {
  *cleaned = (gs_cleaned_t){0};
  int folder = cache_open(cleaned->folder, sizeof cleaned->folder);
  if (folder < 0) return false;
  cache_trim(folder, 0, cleaned);
  close(folder);
  return true;
}
