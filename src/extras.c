#include "extras.h"

#include <elf.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "sha256.h"

#define CUDA_MACHINE 190 /* EM_CUDA, which older elf.h lack */

typedef struct {
  gs_kernel_t kernel;
  uint64_t code;
  void *image;
  size_t size;
} gs_extra_t;

static gs_extra_t extras[GS_EXTRAS_MAX];
static int extra_count;
static size_t loaded_bytes; /* of what tables brought */

int gs_kernel_count(void) {
  return gs_shipped_count() + extra_count;
}

gs_kernel_t gs_kernel_at(int index) {
  int shipped = gs_shipped_count();
  return index < shipped ? gs_shipped_at(index) : extras[index - shipped].kernel;
}

uint64_t gs_kernel_code(int index) {
  int shipped = gs_shipped_count();
  return index < shipped ? 0 : extras[index - shipped].code;
}

const void *gs_kernel_image(int index, size_t *size) {
  int shipped = gs_shipped_count();
  if (index < shipped) return gs_shipped_image(gs_shipped_image_index(index), size);
  *size = extras[index - shipped].size;
  return extras[index - shipped].image;
}

static uint64_t code_of(const void *image, size_t size) {
  uint32_t digest[8];
  gs_sha256(image, size, digest);
  return (uint64_t)digest[0] << 32 | digest[1];
}

/* Index of the extra, or -1. */
static int find(const gs_kernel_t *k, uint64_t code) {
  for (int i = 0; i < extra_count; i++)
    if (extras[i].code == code && !memcmp(&extras[i].kernel, k, sizeof *k)) return gs_shipped_count() + i;
  return -1;
}

int gs_extra_add(const gs_kernel_t *k, void *image, size_t size) {
  uint64_t code = code_of(image, size);
  int known = find(k, code);
  if (known >= 0) {
    free(image);
    return known;
  }
  if (extra_count == GS_EXTRAS_MAX) return -1;
  extras[extra_count] = (gs_extra_t){*k, code, image, size};
  return gs_shipped_count() + extra_count++;
}

/* ---- beside a table ---- */

int gs_extra_format(char *buffer, size_t size, int index) {
  char id[GS_KERNEL_ID_MAX];
  gs_kernel_t kernel = gs_kernel_at(index);
  gs_kernel_format(id, sizeof id, &kernel);
  return snprintf(buffer, size, "%s-%016" PRIx64, id, gs_kernel_code(index));
}

bool gs_extra_parse(const char *name, gs_kernel_t *k, uint64_t *code) {
  char id[GS_KERNEL_ID_MAX];
  const char *hash = strchr(name, '-');
  size_t length = hash ? (size_t)(hash - name) : 0;
  if (!hash || length >= sizeof id || strlen(hash + 1) != 16 || strspn(hash + 1, "0123456789abcdef") != 16)
    return false;
  memcpy(id, name, length);
  id[length] = '\0';
  *code = strtoull(hash + 1, NULL, 16);
  return gs_kernel_parse(id, k);
}

bool gs_extra_path(char *path, size_t size, const char *table, const char *name) {
  int length =
      name ? snprintf(path, size, "%s.d/%s.cubin", table, name) : snprintf(path, size, "%s.d", table);
  return length > 0 && (size_t)length < size;
}

static bool is_cubin(const void *image, size_t size) {
  const Elf64_Ehdr *header = image;
  return size > sizeof *header && !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
         header->e_machine == CUDA_MACHINE;
}

int gs_extra_load(const char *table, const gs_kernel_t *k, uint64_t code, char *why, size_t size) {
  char id[GS_KERNEL_ID_MAX], name[GS_EXTRA_NAME_MAX], path[PATH_MAX];
  const char *fault = "the name is too long";
  size_t length = 0;
  int known = find(k, code);
  if (known >= 0) return known;
  gs_kernel_format(id, sizeof id, k);
  snprintf(name, sizeof name, "%s-%016" PRIx64, id, code);
  char *image = gs_extra_path(path, sizeof path, table, name)
                    ? gs_file_read(path, GS_EXTRA_BYTES_MAX, true, &length, &fault)
                    : NULL;
  if (image) {
    fault = code_of(image, length) != code             ? "its content is not what the row was measured with"
            : !is_cubin(image, length)                 ? "not a cubin"
            : loaded_bytes + length > GS_EXTRA_ALL_MAX ? "more than 64 MiB of kernels beside tables"
            : (known = gs_extra_add(k, image, length)) < 0 ? "too many kernels beside tables"
                                                           : NULL;
    if (fault)
      free(image);
    else
      loaded_bytes += length;
  }
  if (known < 0) snprintf(why, size, "%s: %s", path, fault);
  return known;
}
