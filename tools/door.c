#define _GNU_SOURCE
#include "door.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a program that links cuBLAS would call. */
static void *bound(const char *name) {
  Dl_info info;
  void *function = dlsym(RTLD_DEFAULT, name);
  const char *file = function && dladdr(function, &info) ? strrchr(info.dli_fname, '/') : NULL;
  return file && !strcmp(file, "/libgemmshim.so") ? function : NULL;
}

bool gs_door_is_open(void) {
  return bound("cublasGemmEx") != NULL;
}

static bool enter(gs_door_t *door) {
  gs_cublas_t *cublas = &door->cublas;
  *(void **)&cublas->cublasGemmEx = bound("cublasGemmEx");
  *(void **)&cublas->cublasGemmStridedBatchedEx = bound("cublasGemmStridedBatchedEx");
  *(void **)&cublas->cublasLtMatmul = bound("cublasLtMatmul");
  return cublas->cublasGemmEx && cublas->cublasGemmStridedBatchedEx && cublas->cublasLtMatmul;
}

/* Most programs have a CUDA runtime, which tells the library that updates of graphs are seen (src/clusters.h): one of the same
 * place as cuBLAS, of this process's path, or none. */
static void map_runtime(const char *cublas) {
  static const char *const names[] = {"libcudart.so.13", "libcudart.so.12"};
  const char *slash = strrchr(cublas, '/');
  char path[PATH_MAX];
  for (int i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%.*s%s", i < 2 && slash ? (int)(slash + 1 - cublas) : 0, cublas,
             names[i % 2]);
    if (dlopen(path, RTLD_NOW)) return;
  }
}

/* No sides: cuBLAS has nothing to do, and the library counts it. */
static void knock(const gs_door_t *door) {
  gs_gemm_t empty = {.a_type = GS_TYPE_F16,
                     .b_type = GS_TYPE_F16,
                     .c_type = GS_TYPE_F16,
                     .d_type = GS_TYPE_F16,
                     .compute = GS_COMPUTE_32F,
                     .batch = 1,
                     .lda = 1,
                     .ldb = 1,
                     .ldd = 1};
  gs_cublas_gemm(&door->cublas, &empty, &(gs_operands_t){0});
}

static const void *map(const char *path, size_t *bytes) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  void *memory = fstat(fd, &info) == 0 && (size_t)info.st_size > sizeof(gs_histogram_file_t)
                     ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0)
                     : MAP_FAILED;
  close(fd);
  *bytes = (size_t)info.st_size;
  return memory == MAP_FAILED ? NULL : memory;
}

static bool find_counts(gs_door_t *door, const char *folder) {
  char own[PATH_MAX];
  glob_t found;
  snprintf(own, sizeof own, "%s/*-%ld-*" GS_HISTOGRAM_SUFFIX, folder, (long)getpid());
  if (glob(own, 0, NULL, &found) != 0) return false;
  door->counts = map(found.gl_pathv[0], &door->bytes);
  unlink(found.gl_pathv[0]); /* both mappings stay, and a killed process leaves nothing behind */
  globfree(&found);
  const gs_histogram_file_t *counts = door->counts;
  return counts && counts->slot_bytes == sizeof(gs_slot_t) && counts->reasons == GS_REASON_COUNT &&
         door->bytes >= sizeof *counts + counts->capacity * sizeof(gs_slot_t);
}

bool gs_door_open(gs_door_t *door, const gs_cublas_t *real, const char *folder, char *fault, size_t size) {
  *door = (gs_door_t){.cublas = *real};
  if (!enter(door)) {
    snprintf(fault, size, "libgemmshim.so was not loaded into this process: is LD_PRELOAD obeyed here?");
    return false;
  }
  map_runtime(real->path);
  knock(door);
  if (find_counts(door, folder)) return true;
  snprintf(fault, size, "the library left no histogram in %s: is there room, and is it of the same build?",
           folder);
  return false;
}

void gs_door_close(gs_door_t *door) {
  if (door->counts) munmap((void *)door->counts, door->bytes);
  *door = (gs_door_t){0};
}

gs_tally_t gs_door_tally(const gs_door_t *door, const gs_gemm_t *g) {
  gs_tally_t tally = {0};
  const gs_slot_t *slots = (const gs_slot_t *)(door->counts + 1);
  for (uint32_t i = 0; i < door->counts->capacity; i++) {
    const gs_slot_t *slot = &slots[i];
    const gs_gemm_t *of = &slot->gemm;
    if (!__atomic_load_n(&slot->ready, __ATOMIC_ACQUIRE) || of->m != g->m || of->n != g->n || of->k != g->k ||
        of->transa != g->transa || of->transb != g->transb)
      continue;
    for (int s = 0; s < GS_SHARDS; s++)
      for (int r = 0; r < GS_REASON_COUNT; r++)
        tally.calls[r] += __atomic_load_n(&slot->shard[s].calls[r], __ATOMIC_RELAXED);
    if (slot->named == 2 && slot->kernel[0]) memcpy(tally.kernel, slot->kernel, sizeof tally.kernel);
  }
  return tally;
}
