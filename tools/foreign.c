#define _GNU_SOURCE
#include "foreign.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools.h"

static bool load_one(gs_foreign_t *foreign, const char *file) {
  char *path = realpath(file, NULL); /* a name without a slash would be searched for */
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) gs_say("--peer %s: cannot be loaded (%s)", file, path ? dlerror() : strerror(errno));
  free(path);
  if (!library) return false;
  foreign->run = (gs_peer_t)dlsym(library, GS_PEER_SYMBOL);
  if (!foreign->run) gs_say("--peer %s: has no function " GS_PEER_SYMBOL " (gemmshim verify --help)", file);
  const char *name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
  snprintf(foreign->name, sizeof foreign->name, "%.*s", (int)(strlen(name) - strlen(".so")), name);
  return foreign->run != NULL;
}

bool gs_foreign_load(gs_foreigners_t *foreigners, const char *path) {
  struct stat info;
  char pattern[PATH_MAX];
  glob_t found = {0};
  *foreigners = (gs_foreigners_t){0};
  bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
  snprintf(pattern, sizeof pattern, "%s%s", path, folder ? "/*.so" : "");
  if (glob(pattern, 0, NULL, &found) != 0 || found.gl_pathc == 0) {
    gs_say("--peer %s: %s", path, folder ? "no .so is in it" : "cannot be read");
    globfree(&found);
    return false;
  }
  foreigners->items = calloc(found.gl_pathc, sizeof *foreigners->items);
  bool loaded = foreigners->items != NULL;
  for (size_t i = 0; i < found.gl_pathc && loaded; i++) {
    loaded = load_one(&foreigners->items[i], found.gl_pathv[i]);
    foreigners->count += loaded;
  }
  globfree(&found);
  return loaded;
}

void gs_foreign_free(gs_foreigners_t *foreigners) {
  free(foreigners->items); /* the code stays: it may have threads */
  *foreigners = (gs_foreigners_t){0};
}

bool gs_foreign_fits(const gs_gemm_t *g) {
  bool flat = g->transa == GS_OP_N;
  return g->a_type == GS_TYPE_F16 && g->b_type == GS_TYPE_F16 && g->d_type == GS_TYPE_F16 &&
         g->transb == GS_OP_N && g->epilogue == GS_EPILOGUE_DEFAULT && g->batch == 1 &&
         g->lda == (flat ? g->m : g->k) && g->ldb == g->k && g->ldd == g->m;
}

bool gs_foreign_call(const gs_foreign_t *foreign, const gs_gemm_t *g, const gs_operands_t *o) {
  return foreign->run(o->b, o->a, o->a, o->d, (int)g->n, (int)g->m, (int)g->k) == 0;
}
