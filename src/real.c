#define _GNU_SOURCE
#include "real.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compat.h"

static const struct {
  const char *symbol;
  size_t offset;
} symbols[] = {
#define GS_HOOKED(name) {#name, offsetof(gs_real_t, name)},
#define GS_ASKED(name)  {#name, offsetof(gs_real_t, name)},
#include "real.def"
#undef GS_HOOKED
#undef GS_ASKED
};

static gs_real_t reals[GS_REALS_MAX];
static _Atomic int real_count;
static pthread_mutex_t publishing = PTHREAD_MUTEX_INITIALIZER;
static __thread bool looking __attribute__((tls_model("initial-exec"))); /* this thread, for libraries */

/* What was found for a return address: address << 8 | index + 1 in one word, so that a reader needs no
 * lock. User addresses have 56 bits at most. */
#define CACHE_SIZE 256
static _Atomic uint64_t cache[CACHE_SIZE];

/* "libcublas.so.13", "libcublasLt.so.12", "libcublas-1f2e.so.12" (a repaired wheel) -> 13, 12, 12;
 * 0 where no number follows; -1 where the name is no cuBLAS. */
static int cublas_major(const char *path, bool lt) {
  const char *base = strrchr(path, '/'), *stem = lt ? "libcublasLt" : "libcublas";
  base = base ? base + 1 : path;
  size_t length = strlen(stem);
  if (strncmp(base, stem, length) != 0 || (base[length] != '.' && base[length] != '-')) return -1;
  const char *number = strstr(base, ".so.");
  return number ? atoi(number + 4) : strstr(base, ".so") ? 0 : -1;
}

typedef struct {
  char path[GS_REALS_MAX][256];
  int count;
} gs_mapped_t;

static int note_object(struct dl_phdr_info *info, size_t size, void *context) {
  gs_mapped_t *mapped = context;
  (void)size;
  bool ours = cublas_major(info->dlpi_name, false) >= 0 || cublas_major(info->dlpi_name, true) >= 0;
  if (ours && mapped->count < GS_REALS_MAX && strlen(info->dlpi_name) < sizeof mapped->path[0])
    strcpy(mapped->path[mapped->count++], info->dlpi_name);
  return 0;
}

static void ask_version(gs_real_t *real) {
  for (int i = 0; i < 3; i++) {
    if (real->cublasGetProperty)
      real->cublasGetProperty((libraryPropertyType)i, &real->version[i]);
    else if (real->cublasLtGetProperty)
      real->cublasLtGetProperty((libraryPropertyType)i, &real->version[i]);
  }
}

/* Takes the functions of a mapped library from its own handle, whose scope is that library and what it
 * needs: a libcublas so brings its libcublasLt along. The handle is kept: its code must stay. */
static bool read_library(const char *path, gs_real_t *real) {
  void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return false;
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
    *(void **)((char *)real + symbols[i].offset) = dlsym(handle, symbols[i].symbol);
  int major = cublas_major(path, false);
  real->major = major >= 0 ? major : cublas_major(path, true);
  snprintf(real->path, sizeof real->path, "%s", path);
  ask_version(real);
  return true;
}

/* A libcublasLt is known where its major is: its libcublas brought it. */
static bool is_known(const char *path, bool lt, int major) {
  for (int i = 0; i < atomic_load(&real_count); i++)
    if (strcmp(reals[i].path, path) == 0 || (lt && reals[i].major == major)) return true;
  return false;
}

/* Loader's locks are never asked for under this one: a constructor may call cuBLAS under them. */
static void publish(const gs_real_t *real, bool lt) {
  pthread_mutex_lock(&publishing);
  int count = atomic_load(&real_count);
  if (count < GS_REALS_MAX && !is_known(real->path, lt, real->major)) {
    reals[count] = *real;
    reals[count].index = count;
    atomic_store(&real_count, count + 1);
  }
  pthread_mutex_unlock(&publishing);
}

/* Adds what is mapped and not yet known: each libcublas, and a libcublasLt whose major came without one. */
static void find_libraries(void) {
  gs_mapped_t mapped = {.count = 0};
  looking = true;
  dl_iterate_phdr(note_object, &mapped);
  for (int lt = 0; lt < 2; lt++) {
    for (int i = 0; i < mapped.count; i++) {
      gs_real_t real = {.major = 0};
      int major = cublas_major(mapped.path[i], lt);
      if (major >= 0 && !is_known(mapped.path[i], lt, major) && read_library(mapped.path[i], &real))
        publish(&real, lt);
    }
  }
  looking = false;
}

/* ---- whom does a caller link? ---- */

typedef struct {
  const ElfW(Dyn) * dynamic;
  const char *strings;
} gs_object_t;

static gs_object_t object_of(const struct link_map *map) {
  gs_object_t object = {map->l_ld, NULL};
  for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++)
    if (d->d_tag == DT_STRTAB) object.strings = (const char *)d->d_un.d_ptr;
  /* The loader relocates this pointer in place; the vdso's, and some loaders', stay offsets. */
  if (object.strings && (uintptr_t)object.strings < map->l_addr) object.strings += map->l_addr;
  return object;
}

static const gs_real_t *real_of_major(int major) {
  for (int i = 0; i < atomic_load(&real_count); i++)
    if (reals[i].major == major) return &reals[i];
  return NULL;
}

static const struct link_map *map_of_soname(const struct link_map *any, const char *soname) {
  const struct link_map *map = any;
  while (map && map->l_prev) map = map->l_prev;
  for (; map; map = map->l_next) {
    const char *base = strrchr(map->l_name, '/');
    if (strcmp(base ? base + 1 : map->l_name, soname) == 0) return map;
  }
  return NULL;
}

/* Through DT_NEEDED, nearest first; depth bounds the walk where objects need each other. */
static const gs_real_t *real_needed_by(const struct link_map *map, int depth) {
  gs_object_t object = object_of(map);
  if (!object.dynamic || !object.strings) return NULL;
  for (const ElfW(Dyn) *d = object.dynamic; d->d_tag != DT_NULL; d++) {
    if (d->d_tag != DT_NEEDED) continue;
    const char *name = object.strings + d->d_un.d_val;
    int major = cublas_major(name, false) >= 0 ? cublas_major(name, false) : cublas_major(name, true);
    const gs_real_t *real = major >= 0 ? real_of_major(major) : NULL;
    if (real) return real;
  }
  for (const ElfW(Dyn) *d = object.dynamic; depth > 0 && d->d_tag != DT_NULL; d++) {
    if (d->d_tag != DT_NEEDED) continue;
    const struct link_map *needed = map_of_soname(map, object.strings + d->d_un.d_val);
    const gs_real_t *real = needed ? real_needed_by(needed, depth - 1) : NULL;
    if (real) return real;
  }
  return NULL;
}

static const gs_real_t *find(const void *return_address) {
  Dl_info info;
  struct link_map *map = NULL;
  const gs_real_t *real = NULL;
  find_libraries();
  if (dladdr1(return_address, &info, (void **)&map, RTLD_DL_LINKMAP) && map) real = real_needed_by(map, 4);
  if (!real && atomic_load(&real_count) > 0) real = &reals[0]; /* generated code, a look-up by hand */
  return real;
}

const gs_real_t *gs_real_of(const void *return_address) {
  uint64_t address = (uint64_t)(uintptr_t)return_address << 8;
  _Atomic uint64_t *entry = &cache[(uintptr_t)return_address * 0x9e3779b97f4a7c15u >> 56];
  uint64_t known = atomic_load_explicit(entry, memory_order_acquire);
  if ((known & ~(uint64_t)255) == address) return &reals[(known & 255) - 1];
  const gs_real_t *real = find(return_address);
  if (real) atomic_store_explicit(entry, address | (uint64_t)(real->index + 1), memory_order_release);
  return real;
}

void gs_real_forget_callers(void) {
  for (size_t i = 0; i < CACHE_SIZE; i++) atomic_store(&cache[i], 0);
}

void *gs_real_stub(const char *name, const void *own) {
  Dl_info info;
  struct link_map *map = NULL;
  void *found = NULL;
  looking = true;
  if (dladdr1(own, &info, (void **)&map, RTLD_DL_LINKMAP))
    while (map && map->l_prev) map = map->l_prev;
  for (; map && !found; map = map->l_next) {
    void *handle = *map->l_name ? dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!handle) continue;
    found = dlsym(handle, name);
    if (found == own) found = NULL;
    dlclose(handle); /* who called keeps it */
  }
  looking = false;
  return found;
}

const gs_real_t *gs_real_at(int index) {
  return &reals[index];
}

int gs_real_defining(size_t offset, const void *found) {
  if (looking) return -1;
  find_libraries();
  for (int i = 0; i < atomic_load(&real_count); i++)
    if (*(void **)((char *)&reals[i] + offset) == found) return i;
  return -1;
}

/* The loader's list shows only the namespace of the caller (dlmopen makes others). */
bool gs_real_mapped(void) {
  bool found = false;
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "re");
  while (maps && !found && fgets(line, sizeof line, maps)) {
    const char *path = strchr(line, '/');
    found = path && (cublas_major(path, false) >= 0 || cublas_major(path, true) >= 0);
  }
  if (maps) fclose(maps);
  return found;
}
