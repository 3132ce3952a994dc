/* How a program reaches cuBLAS, as far as its files tell. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "doctor.h"
#include "elf_file.h"
#include "program.h"
#include "tools.h"

#define CLOSURE_MAX 512

static const char by_handle[] =
    "libgemmshim.so alone does not reach look-ups by dlopen and dlsym: gemmshim run --handles, or "
    "LD_PRELOAD=libgemmshim.so:libgemmshim-handles.so";

typedef struct {
  char *paths[CLOSURE_MAX]; /* the program, then what it needs, breadth first */
  int count;
} closure_t;

static bool is_cublas(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  return !strncmp(name, "libcublas.so", 12) || !strncmp(name, "libcublasLt.so", 14);
}

static void add_path(closure_t *closure, const char *path) {
  for (int i = 0; i < closure->count; i++)
    if (!strcmp(closure->paths[i], path)) return;
  if (closure->count == CLOSURE_MAX) return;
  closure->paths[closure->count++] = strdup(path);
}

/* cuBLAS's own needs are not followed. Returns whether cuBLAS is among those that the program is linked with.
 */
static bool follow(gs_findings_t *found, closure_t *closure) {
  bool linked = false;
  for (int i = 0; i < closure->count; i++) {
    gs_elf_t elf;
    if (is_cublas(closure->paths[i]) || !gs_elf_open(&elf, closure->paths[i])) continue;
    for (int n = 0; n < elf.needed_count; n++) {
      char path[PATH_MAX];
      bool resolved = gs_elf_resolve(&elf, elf.needed[n], path, sizeof path);
      if (resolved) add_path(closure, path);
      if (!resolved)
        gs_note(found, "program", "set LD_LIBRARY_PATH as the program's own start-up does",
                "%s needs %s, not found here", elf.path, elf.needed[n]);
      if (!is_cublas(elf.needed[n])) continue;
      gs_find(found, "program", GS_EXIT_OK, "",
              "%s is linked with %s: its calls are reached, unless it is loaded "
              "with RTLD_DEEPBIND",
              elf.path, elf.needed[n]);
      if (resolved) gs_find_cublas(found, path);
      linked = true;
    }
    gs_elf_close(&elf);
  }
  return linked;
}

/* Of a program that is not linked with cuBLAS: does it hold it, or open it? */
static bool find_hints(gs_findings_t *found, const closure_t *closure) {
  bool any = false;
  for (int i = 0; i < closure->count; i++) {
    gs_elf_t elf;
    if (!gs_elf_open(&elf, closure->paths[i])) continue;
    if (gs_elf_cublas(&elf).defines) {
      gs_find(found, "program", GS_EXIT_FALSE, "link it with the shared cuBLAS",
              "%s holds cuBLAS statically: out of a preload's reach", elf.path);
      any = true;
    } else if (gs_elf_names_cublas(&elf)) {
      gs_note(found, "program", by_handle, "%s opens cuBLAS at run time, by handle", elf.path);
      any = true;
    }
    gs_elf_close(&elf);
  }
  return any;
}

void gs_doctor_program(gs_findings_t *found, const char *name) {
  char path[PATH_MAX];
  gs_program_t program;
  closure_t closure = {0};
  if (gs_find_program(name, path, sizeof path) != 0) {
    gs_find(found, "program", GS_EXIT_MACHINE, "check its name and PATH", "%s: not found, or not executable",
            name);
    return;
  }
  gs_program_check(path, &program);
  if (program.verdict != GS_PROGRAM_FINE) gs_find(found, "program", GS_EXIT_FALSE, "", "%s", program.why);
  add_path(&closure, program.executed);
  if (!follow(found, &closure) && !find_hints(found, &closure))
    gs_note(found, "program", "start it and ask about the process: gemmshim doctor PID",
            "%s and what it is linked with do not mention cuBLAS; a plug-in (as of Python) may bring it",
            program.executed);
  for (int i = 0; i < closure.count; i++) free(closure.paths[i]);
}
