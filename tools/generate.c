/* Ids to cubins: NVRTC, the judgement of what it made, and the cache; see generate.h. */
#define _GNU_SOURCE
#include "generate.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <nvrtc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools.h"

/* --- the sources, put into .rodata by the assembler: the families' own first, in the order of gs_family_t --- */
#define SOURCES(X)                                                                                           \
  X(mma, "kernels/mma.cu")                                                                                   \
  X(direct, "kernels/direct.cu")                                                                             \
  X(gemm_mma, "kernels/gemm_mma.cuh")                                                                        \
  X(gemm_direct, "kernels/gemm_direct.cuh")                                                                  \
  X(common, "kernels/common.cuh")                                                                            \
  X(ptx, "kernels/ptx.cuh")                                                                                  \
  X(tiles, "kernels/tiles.h")                                                                                \
  X(gs_kernel, "include/gs_kernel.h")

#define X(name, path)                                                                                        \
  __asm__(".pushsection .rodata\n.globl gs_source_" #name "\n.hidden gs_source_" #name "\ngs_source_" #name  \
          ":\n.incbin \"" path "\"\n.byte 0\n.popsection\n");                                                \
  extern const char gs_source_##name[] __attribute__((visibility("hidden")));
SOURCES(X)
#undef X

static const char *const source_texts[] = {
#define X(name, path) gs_source_##name,
    SOURCES(X)
#undef X
};
static const char *const source_paths[] = {
#define X(name, path) path,
    SOURCES(X)
#undef X
};

enum { SOURCE_COUNT = sizeof source_texts / sizeof *source_texts, OPTIONS_MAX = 12, REGISTERS_MAX = 255 };

static const struct arch {
  int sm;
  const char *name;
  unsigned smem; /* bytes that a block may ask for */
} archs[] = {{80, "sm_80", 163 << 10}, {90, "sm_90a", 227 << 10}};

/* --- NVRTC --- */
#define NVRTC_FUNCTIONS(X)                                                                                   \
  X(nvrtcVersion)                                                                                            \
  X(nvrtcGetErrorString)                                                                                     \
  X(nvrtcCreateProgram)                                                                                      \
  X(nvrtcCompileProgram)                                                                                     \
  X(nvrtcDestroyProgram)                                                                                     \
  X(nvrtcGetProgramLogSize)                                                                                  \
  X(nvrtcGetProgramLog)                                                                                      \
  X(nvrtcGetCUBINSize)                                                                                       \
  X(nvrtcGetCUBIN)

static struct {
  void *handle;
  int major, minor;
#define X(name) __typeof__(&name) name;
  NVRTC_FUNCTIONS(X)
#undef X
} nvrtc;

static void *nvrtc_load(void) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
  const char *home = getenv("CUDA_HOME");
  char path[PATH_MAX];
  void *handle = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names && !handle; i++) {
    handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    snprintf(path, sizeof path, "%s/lib64/%s", home ? home : "/usr/local/cuda", names[i]);
    if (!handle) handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  return handle;
}

static bool nvrtc_open(void) {
  if (nvrtc.handle) return true;
  void *handle = nvrtc_load();
  if (!handle) return false;
#define X(name)                                                                                              \
  if (!(nvrtc.name = (__typeof__(&name))dlsym(handle, #name))) return false;
  NVRTC_FUNCTIONS(X)
#undef X
  if (nvrtc.nvrtcVersion(&nvrtc.major, &nvrtc.minor) != NVRTC_SUCCESS) return false;
  nvrtc.handle = handle;
  return true;
}

__attribute__((format(printf, 3, 4))) static gs_status_t refuse(gs_cubin_t *cubin, gs_status_t status,
                                                                const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(cubin->why, sizeof cubin->why, format, args);
  va_end(args);
  gs_cubin_free(cubin);
  return status;
}

/* --- what NVRTC is given --- */
typedef struct {
  const char *text; /* the family's */
  char instances[160];
  char option_texts[OPTIONS_MAX][80];
  const char *options[OPTIONS_MAX];
  int option_count;
  char file[GS_KERNEL_ID_MAX + 48]; /* its name in the cache */
} request_t;

__attribute__((format(printf, 2, 3))) static void add_option(request_t *r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(r->option_texts[r->option_count], sizeof *r->option_texts, format, args);
  va_end(args);
  r->options[r->option_count] = r->option_texts[r->option_count];
  r->option_count++;
}

static uint64_t fnv1a(uint64_t hash, const void *bytes, size_t count) {
  for (const unsigned char *at = bytes, *end = at + count; at < end; at++)
    hash = (hash ^ *at) * 0x100000001b3u;
  return hash;
}
#define FNV_BEGIN 0xcbf29ce484222325u

static uint64_t hash_text(uint64_t hash, const char *text) {
  return fnv1a(hash, text, strlen(text) + 1);
}

static uint64_t request_hash(const request_t *r, const char *id) {
  uint64_t hash = hash_text(hash_text(FNV_BEGIN, GS_VERSION), id);
  const int version[] = {nvrtc.major, nvrtc.minor};
  hash = hash_text(fnv1a(hash, version, sizeof version), r->instances);
  for (int i = 0; i < r->option_count; i++) hash = hash_text(hash, r->options[i]);
  for (int i = 0; i < SOURCE_COUNT; i++) hash = hash_text(hash, source_texts[i]);
  return hash;
}

static void upper(char *to, const char *text) {
  do *to++ = (char)toupper((unsigned char)*text);
  while (*text++);
}

/* The constants are those that rules.mk hands to nvcc; instances.h is replaced by a list of the one instance. */
static void request_make(request_t *r, const char *id, const gs_kernel_t *k, const struct arch *arch) {
  const char *ab = gs_type_names[k->ab_type], *d = gs_type_names[k->d_type], *tile = id;
  char upper_ab[8], upper_d[8];
  for (int part = 0; part < 4; part++) tile = strchr(tile, '_') + 1;
  upper(upper_ab, ab), upper(upper_d, d);
  *r = (request_t){.text = source_texts[k->family]};
  snprintf(r->instances, sizeof r->instances, "#define GS_INSTANCES(X) X(%s, %s, %s, %s, %s, %s, %d, %d)\n",
           ab, d, upper_ab, upper_d, gs_op_names[k->transa], gs_op_names[k->transb], k->transa == GS_OP_T,
           k->transb == GS_OP_T);
  add_option(r, "--gpu-architecture=%s", arch->name);
  add_option(r, "--std=c++17");
  add_option(r, "--ptxas-options=-v");
  add_option(r, "-DGS_TILE=%s", tile);
  add_option(r, "-DGS_BM=%d", k->bm);
  add_option(r, "-DGS_BN=%d", k->bn);
  add_option(r, "-DGS_BK=%d", k->bk);
  add_option(r, "-DGS_STAGES=%d", k->stages);
  add_option(r, "-DGS_WARPS=%d", k->warps);
  add_option(r, "-DGS_ALIGN=%d", k->align);
  add_option(r, "-DGS_SWAP=%d", k->swap);
  snprintf(r->file, sizeof r->file, "%s-%s-%016llx.cubin", id, arch->name,
           (unsigned long long)request_hash(r, id));
}

/* --- what NVRTC answers --- */
/* A failed assertion says more than what else is wrong because of it. */
static gs_status_t refuse_by_log(gs_cubin_t *cubin, char *log, nvrtcResult result) {
  const char *found = strstr(log, "static assertion failed");
  if (!found) found = strstr(log, "error");
  if (!found) return refuse(cubin, GS_UNSUPPORTED, "NVRTC: %s", nvrtc.nvrtcGetErrorString(result));
  while (found > log && found[-1] != '\n') found--;
  return refuse(cubin, GS_UNSUPPORTED, "%.*s", (int)strcspn(found, "\n"), found);
}

static bool read_needs(const char *log, gs_cubin_needs_t *needs) {
  const char *line = strstr(log, " bytes stack frame"), *used = strstr(log, "Used ");
  if (!line || !used) return false;
  while (line > log && line[-1] != '\n') line--;
  return sscanf(line, "%*[^0-9]%d bytes stack frame, %d bytes spill stores, %d bytes spill loads",
                &needs->stack, &needs->spill_stores, &needs->spill_loads) == 3 &&
         sscanf(used, "Used %d registers", &needs->registers) == 1;
}

/* What follows the cubin in the cache; the image's memory has room for it. */
typedef struct {
  gs_cubin_needs_t needs;
  uint64_t checksum; /* of all before it */
} trailer_t;

static uint64_t checksum_of(const gs_cubin_t *cubin) {
  return fnv1a(fnv1a(FNV_BEGIN, cubin->image, cubin->size), &cubin->needs, sizeof cubin->needs);
}

static gs_status_t take_cubin(nvrtcProgram program, const char *log, gs_cubin_t *cubin) {
  nvrtcResult result = nvrtc.nvrtcGetCUBINSize(program, &cubin->size);
  if (result == NVRTC_SUCCESS && !(cubin->image = malloc(cubin->size + sizeof(trailer_t))))
    return refuse(cubin, GS_NOMEM, "out of memory");
  if (result == NVRTC_SUCCESS) result = nvrtc.nvrtcGetCUBIN(program, cubin->image);
  if (result != NVRTC_SUCCESS)
    return refuse(cubin, GS_UNSUPPORTED, "NVRTC: %s", nvrtc.nvrtcGetErrorString(result));
  if (!read_needs(log, &cubin->needs))
    return refuse(cubin, GS_UNSUPPORTED,
                  "NVRTC %d.%d does not say whether the kernel spills: a newer one is needed", nvrtc.major,
                  nvrtc.minor);
  return GS_OK;
}

static gs_status_t compile(const request_t *r, gs_cubin_t *cubin) {
  const char *texts[SOURCE_COUNT + 1] = {r->instances}, *names[SOURCE_COUNT + 1] = {"instances.h"};
  for (int i = 0; i < SOURCE_COUNT; i++)
    texts[i + 1] = source_texts[i], names[i + 1] = strrchr(source_paths[i], '/') + 1;
  nvrtcProgram program;
  nvrtcResult result =
      nvrtc.nvrtcCreateProgram(&program, r->text, "kernel.cu", SOURCE_COUNT + 1, texts, names);
  if (result != NVRTC_SUCCESS)
    return refuse(cubin, GS_UNSUPPORTED, "NVRTC: %s", nvrtc.nvrtcGetErrorString(result));
  result = nvrtc.nvrtcCompileProgram(program, r->option_count, r->options);
  size_t length = 0;
  nvrtc.nvrtcGetProgramLogSize(program, &length);
  char *log = calloc(length + 1, 1);
  if (log) nvrtc.nvrtcGetProgramLog(program, log);
  gs_status_t status = !log                      ? refuse(cubin, GS_NOMEM, "out of memory")
                       : result == NVRTC_SUCCESS ? take_cubin(program, log, cubin)
                                                 : refuse_by_log(cubin, log, result);
  free(log);
  nvrtc.nvrtcDestroyProgram(&program);
  return status;
}

/* --- the cache --- */
static void say_once(const char *what, const char *why) {
  static bool said;
  if (!said) gs_say("%s: kernels are not cached: %s", what, why);
  said = true;
}

static bool cache_path(char *path, size_t size) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char parent[PATH_MAX];
  if (cache && *cache == '/')
    snprintf(parent, sizeof parent, "%s", cache);
  else if (home && *home == '/')
    snprintf(parent, sizeof parent, "%s/.cache", home);
  else
    return false;
  mkdir(parent, 0700);
  return (size_t)snprintf(path, size, "%s/gemmshim", parent) < size;
}

/* The folder, where nobody else can put a file into it; -1, said: there is none. */
static int cache_open(char *path, size_t size) {
  struct stat info;
  *path = 0;
  if (!cache_path(path, size)) {
    say_once("XDG_CACHE_HOME and HOME", "neither is an absolute path of usual length: set one");
    return -1;
  }
  mkdir(path, 0700);
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
  memcpy((char *)cubin->image + cubin->size, &trailer, sizeof trailer);
  if (getrandom(&unique, sizeof unique, 0) < 0) unique = (uint64_t)getpid();
  snprintf(temporary, sizeof temporary, "%016llx.cubin.part", (unsigned long long)unique);
  int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool written = fd >= 0 && write_all(fd, cubin->image, cubin->size + sizeof trailer);
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

bool gs_generate_clean(gs_cleaned_t *cleaned) {
  *cleaned = (gs_cleaned_t){0};
  int folder = cache_open(cleaned->folder, sizeof cleaned->folder);
  if (folder < 0) return false;
  cache_trim(folder, 0, cleaned);
  close(folder);
  return true;
}

static gs_status_t compile_or_find(const request_t *r, uint64_t cache_bytes, gs_cubin_t *cubin) {
  gs_cleaned_t cleaned = {0};
  int folder = cache_open(cleaned.folder, sizeof cleaned.folder);
  gs_status_t status = folder >= 0 && cache_read(folder, r->file, cubin) ? GS_OK : compile(r, cubin);
  if (folder >= 0 && status == GS_OK && !cubin->cached) {
    cache_write(folder, cleaned.folder, r->file, cubin);
    cache_trim(folder, cache_bytes, &cleaned);
  }
  if (folder >= 0) close(folder);
  return status;
}

/* --- judgement --- */
/* fp32 accumulators of a thread: warps of mma share the tile, those of direct share k. */
static int accumulators(const gs_kernel_t *k) {
  return k->bm * k->bn / (k->family == GS_FAMILY_MMA ? k->warps * 32 : 32);
}

static gs_status_t judge_before(const gs_kernel_t *k, const struct arch *arch, gs_cubin_t *cubin) {
  const gs_gemm_t one = {.m = 1, .n = 1, .k = 1, .batch = 1};
  cubin->smem = gs_kernel_launch(k, &one, gs_kernel_split_max(k, arch->sm) > 1 ? 2 : 1).smem;
  if (cubin->smem > arch->smem)
    return refuse(cubin, GS_UNSUPPORTED,
                  "%u bytes of shared memory, but %s grants a block %u: fewer stages or a smaller tile",
                  cubin->smem, arch->name, arch->smem);
  if (accumulators(k) > REGISTERS_MAX)
    return refuse(cubin, GS_UNSUPPORTED,
                  "%d accumulators a thread, but it has %d registers: a smaller tile, or more warps",
                  accumulators(k), REGISTERS_MAX);
  return GS_OK;
}

static gs_status_t judge_after(gs_cubin_t *cubin) {
  const gs_cubin_needs_t *needs = &cubin->needs;
  if (!needs->stack && !needs->spill_stores && !needs->spill_loads) return GS_OK;
  return refuse(cubin, GS_UNSUPPORTED,
                "it spills: %d registers, %d bytes of stack, %d of spill stores, %d of spill loads a thread: "
                "a smaller tile, fewer stages or more warps",
                needs->registers, needs->stack, needs->spill_stores, needs->spill_loads);
}

gs_status_t gs_generate_ready(char *why, size_t size) {
  char folder[PATH_MAX];
  int cache = cache_open(folder, sizeof folder);
  if (cache >= 0) close(cache);
  if (nvrtc_open()) return GS_OK;
  snprintf(
      why, size,
      "NVRTC 12 or 13 is not to be found: install a CUDA toolkit and set CUDA_HOME, or put the folder of "
      "libnvrtc.so.13 into LD_LIBRARY_PATH");
  return GS_NOT_FOUND;
}

gs_status_t gs_generate(const char *id, int sm, uint64_t cache_bytes, gs_cubin_t *cubin) {
  gs_kernel_t kernel;
  request_t request;
  const struct arch *arch = sm == archs[0].sm ? &archs[0] : &archs[1];
  *cubin = (gs_cubin_t){0};
  if (arch->sm != sm) return refuse(cubin, GS_UNSUPPORTED, "sm %d: kernels are made for 80 and 90", sm);
  if (!gs_kernel_parse(id, &kernel))
    return refuse(cubin, GS_SYNTAX, "not the id of a kernel: see the ids that `gemmshim kernels` lists");
  gs_status_t status = judge_before(&kernel, arch, cubin);
  if (status != GS_OK) return status;
  char why[sizeof cubin->why];
  if (gs_generate_ready(why, sizeof why) != GS_OK) return refuse(cubin, GS_NOT_FOUND, "%s", why);
  request_make(&request, id, &kernel, arch);
  status = compile_or_find(&request, cache_bytes, cubin);
  return status == GS_OK ? judge_after(cubin) : status;
}

void gs_cubin_free(gs_cubin_t *cubin) {
  free(cubin->image);
  cubin->image = NULL;
  cubin->size = 0;
}
