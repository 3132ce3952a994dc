#define _GNU_SOURCE
#include "cuda_library.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int majors[] = {13, 12};
#define MAJORS (int)(sizeof majors / sizeof *majors)

typedef struct {
  const char *name;
  void *(*load)(const char *path);
} wanted_t;

static void *from_library_path(const wanted_t *wanted) {
  void *handle = NULL;
  for (int i = 0; i < MAJORS && !handle; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s.so.%d", wanted->name, majors[i]);
    handle = wanted->load(name);
  }
  return handle;
}

/* The first file that matches prefix/pattern/name.so.<major>. */
static void *from_folder(const wanted_t *wanted, const char *prefix, const char *pattern) {
  void *handle = NULL;
  for (int i = 0; i < MAJORS && !handle; i++) {
    char full[PATH_MAX];
    glob_t found;
    if (snprintf(full, sizeof full, "%s/%s/%s.so.%d", prefix, pattern, wanted->name, majors[i]) >=
        (int)sizeof full)
      continue;
    if (glob(full, 0, NULL, &found) == 0) {
      handle = wanted->load(found.gl_pathv[0]);
      globfree(&found);
    }
  }
  return handle;
}

/* Where pip and conda put it, under a prefix whose bin holds python3. */
static void *of_python(const wanted_t *wanted, const char *bin) {
  static const char *const patterns[] = {"lib/python3*/site-packages/nvidia/*/lib",
                                         "lib/python3*/dist-packages/nvidia/*/lib", "lib"};
  char program[PATH_MAX], prefix[PATH_MAX];
  if (snprintf(program, sizeof program, "%s/python3", bin) >= (int)sizeof program ||
      snprintf(prefix, sizeof prefix, "%s/..", bin) >= (int)sizeof prefix || access(program, X_OK) != 0)
    return NULL;
  void *handle = NULL;
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns && !handle; i++)
    handle = from_folder(wanted, prefix, patterns[i]);
  return handle;
}

static void *from_python(const wanted_t *wanted) {
  const char *path = getenv("PATH");
  char *list = path ? strdup(path) : NULL, *rest = list, *bin;
  void *handle = NULL;
  while (!handle && (bin = strsep(&rest, ":"))) handle = of_python(wanted, bin);
  free(list);
  return handle;
}

static void *from_toolkit(const wanted_t *wanted) {
  const char *home = getenv("CUDA_HOME");
  void *handle = home ? from_folder(wanted, home, "lib64") : NULL;
  return handle ? handle : from_folder(wanted, "/usr/local/cuda", "lib64");
}

void *gs_cuda_library(const char *name, void *(*load)(const char *path)) {
  const wanted_t wanted = {name, load};
  void *handle = from_library_path(&wanted);
  if (!handle) handle = from_python(&wanted);
  return handle ? handle : from_toolkit(&wanted);
}
