#include "beside.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "extras.h"
#include "file.h"
#include "output.h"
#include "tools.h"

static bool is_there(const char *path, const void *image, size_t size) {
  const char *why;
  size_t length;
  char *found = gs_file_read(path, GS_EXTRA_BYTES_MAX, true, &length, &why);
  bool same = found && length == size && !memcmp(found, image, size);
  free(found);
  return same;
}

static bool put(const char *path, const void *image, size_t size) {
  gs_output_t output;
  if (!gs_output_open(&output, path)) return false;
  output.deny = S_IWGRP | S_IWOTH; /* else the library would not take it */
  fwrite(image, 1, size, output.file);
  return gs_output_commit(&output);
}

bool gs_beside_put(const char *table, const gs_row_t *row) {
  char name[GS_EXTRA_NAME_MAX], folder[PATH_MAX], path[PATH_MAX];
  size_t size;
  if (!gs_row_is_extra(row)) return true;
  const void *image = gs_kernel_image(row->index, &size);
  gs_extra_format(name, sizeof name, row->index);
  if (!gs_extra_path(folder, sizeof folder, table, NULL) || !gs_extra_path(path, sizeof path, table, name)) {
    gs_say("%.60s...: the path is too long", table);
    return false;
  }
  if (is_there(path, image, size)) return true;
  if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
    gs_say("%s: no folder for kernels can be made there: %s", folder, strerror(errno));
    return false;
  }
  return put(path, image, size);
}
