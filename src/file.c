#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What is wrong with an open file; the one that was opened is judged, whatever its name leads to by now. */
static const char *judge(int fd, size_t bytes_max, bool ours, size_t *size) {
  struct statx info; /* statx, because fstat is newer than glibc 2.28 */
  if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE | STATX_UID | STATX_SIZE, &info) != 0)
    return strerror(errno);
  if (!S_ISREG(info.stx_mode)) return "not a regular file";
  if (ours && info.stx_uid != 0 && info.stx_uid != geteuid()) return "belongs to another user";
  if (ours && info.stx_mode & (S_IWGRP | S_IWOTH)) return "others may write it: chmod go-w";
  if (info.stx_size > bytes_max) return "too large";
  *size = info.stx_size;
  return NULL;
}

char *gs_file_read(const char *path, size_t bytes_max, bool ours, size_t *length, const char **why) {
  char *bytes = NULL;
  size_t size = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  *why = fd < 0 ? strerror(errno) : judge(fd, bytes_max, ours, &size);
  if (!*why && !(bytes = malloc(size + 1))) *why = "out of memory";
  for (*length = 0; !*why && *length < size;) {
    ssize_t got = read(fd, bytes + *length, size - *length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) *why = strerror(errno);
    if (got <= 0) break;
    *length += (size_t)got;
  }
  if (fd >= 0) close(fd);
  if (*why) {
    free(bytes);
    return NULL;
  }
  bytes[*length] = '\0';
  return bytes;
}

int gs_file_create(const char *folder, const char *suffix, char *path, size_t size) {
  char host[64] = "host";
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  gethostname(host, sizeof host - 1);
  for (char *c = host; *c; c++)
    if (*c == '/') *c = '-';
  int length =
      snprintf(path, size, "%s/%s-%ld-%llu%s", folder, host, (long)getpid(),
               (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec, suffix);
  if (length < 0 || (size_t)length >= size) return errno = ENAMETOOLONG, -1;
  return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}
