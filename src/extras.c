#include "extras.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  gs_kernel_t kernel;
  void *image;
  size_t size;
} gs_extra_t;

static gs_extra_t extras[GS_EXTRAS_MAX];
static int extra_count;

int gs_kernel_count(void) {
  return gs_shipped_count() + extra_count;
}

gs_kernel_t gs_kernel_at(int index) {
  int shipped = gs_shipped_count();
  return index < shipped ? gs_shipped_at(index) : extras[index - shipped].kernel;
}

const void *gs_kernel_image(int index, size_t *size) {
  int shipped = gs_shipped_count();
  if (index < shipped) return gs_shipped_image(gs_shipped_image_index(index), size);
  *size = extras[index - shipped].size;
  return extras[index - shipped].image;
}

static bool is_same(const gs_extra_t *extra, const gs_kernel_t *k, const void *image, size_t size) {
  return !memcmp(&extra->kernel, k, sizeof *k) && extra->size == size && !memcmp(extra->image, image, size);
}

int gs_extra_add(const gs_kernel_t *k, void *image, size_t size) {
  for (int i = 0; i < extra_count; i++)
    if (is_same(&extras[i], k, image, size)) {
      if (image != extras[i].image) free(image);
      return gs_shipped_count() + i;
    }
  if (extra_count == GS_EXTRAS_MAX) return -1;
  extras[extra_count] = (gs_extra_t){*k, image, size};
  return gs_shipped_count() + extra_count++;
}
