/* A preload that makes the nth call fail (FAULTY=n) which libgemmshim makes of the C library's functions below, and
 * says so on stderr. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_ulong calls;

static bool fails(const void *caller, const char *name) {
  static __thread bool asking;
  Dl_info info;
  const char *wanted = getenv("FAULTY");
  if (!wanted || asking) return false;
  asking = true;
  bool ours = dladdr(caller, &info) && strstr(info.dli_fname, "libgemmshim.so");
  asking = false;
  if (!ours || atomic_fetch_add(&calls, 1) + 1 != strtoul(wanted, NULL, 10)) return false;
  syscall(SYS_write, 2, "faulty: ", 8);
  syscall(SYS_write, 2, name, strlen(name));
  syscall(SYS_write, 2, " fails\n", 7);
  return true;
}
#define FAILS(error) (fails(__builtin_return_address(0), __func__) && (errno = (error), true))

int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  int mode = flags & O_CREAT ? va_arg(list, int) : 0;
  va_end(list);
  return FAILS(EMFILE) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t read(int fd, void *buffer, size_t size) {
  return FAILS(EIO) ? -1 : syscall(SYS_read, fd, buffer, size);
}

ssize_t write(int fd, const void *buffer, size_t size) {
  return FAILS(ENOSPC) ? -1 : syscall(SYS_write, fd, buffer, size);
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  return FAILS(ENOMEM) ? MAP_FAILED
                       : (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

int posix_fallocate(int fd, off_t offset, off_t length) {
  if (FAILS(ENOSPC)) return ENOSPC;
  return syscall(SYS_fallocate, fd, 0, offset, length) ? errno : 0;
}

int statx(int folder, const char *path, int flags, unsigned mask, struct statx *info) {
  return FAILS(EIO) ? -1 : (int)syscall(SYS_statx, folder, path, flags, mask, info);
}

void *malloc(size_t size) {
  return FAILS(ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  return FAILS(ENOMEM) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
  return FAILS(ENOMEM) ? NULL : __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  return FAILS(ENOMEM) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
  if (FAILS(ENOMEM)) return ENOMEM;
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}
