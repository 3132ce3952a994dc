/* What a running process has mapped, and the calls in its histogram. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "elf_file.h"
#include "gs_histogram.h"
#include "tools.h"

typedef struct {
  bool shim, handles, cublas, importer;
  char histogram[PATH_MAX + 32];
} process_t;

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), tail = strlen(end);
  return length >= tail && !strcmp(text + length - tail, end);
}

/* Sees the file as the process does, whatever container it is in. */
static void path_of(char *buffer, size_t size, long pid, const char *path) {
  snprintf(buffer, size, "/proc/%ld/root%s", pid, path);
}

static void see_file(gs_findings_t *found, process_t *process, long pid, const char *path) {
  const char *name = strrchr(path, '/') + 1;
  char visible[PATH_MAX + 32];
  gs_elf_t elf;
  path_of(visible, sizeof visible, pid, path);
  if (!strcmp(name, GS_HANDLES)) {
    process->handles = true;
  } else if (!strcmp(name, GS_LIBRARY)) {
    process->shim = true;
  } else if (!strncmp(name, "libcublas.so", 12)) {
    process->cublas = true;
    gs_find_cublas(found, visible);
  } else if (ends_with(name, GS_HISTOGRAM_SUFFIX)) {
    snprintf(process->histogram, sizeof process->histogram, "%s", visible);
  } else if (strncmp(name, "libcublasLt.so", 14) && gs_elf_open(&elf, visible)) {
    gs_elf_cublas_t cublas = gs_elf_cublas(&elf);
    if (cublas.imports)
      gs_find(found, "process", GS_EXIT_OK, "", "%s is linked with cuBLAS: its calls can be reached", path);
    if (cublas.defines)
      gs_find(found, "process", GS_EXIT_FALSE, "link it with the shared cuBLAS",
              "%s holds cuBLAS statically: out of a preload's reach", path);
    process->importer |= cublas.imports;
    gs_elf_close(&elf);
  }
}

/* Every mapped file once: a file's mappings follow each other. */
static void read_maps(gs_findings_t *found, process_t *process, long pid, FILE *maps) {
  char *line = NULL, last[PATH_MAX] = "";
  size_t size = 0;
  while (getline(&line, &size, maps) > 0) {
    char *path = strchr(line, '/');
    line[strcspn(line, "\n")] = 0;
    if (!path || !strcmp(path, last)) continue;
    snprintf(last, sizeof last, "%s", path);
    see_file(found, process, pid, path);
  }
  free(line);
}

static void judge(gs_findings_t *found, const process_t *process, long pid) {
  if (process->shim)
    gs_find(found, "process", GS_EXIT_OK, "", "gemmshim is in process %ld", pid);
  else
    gs_find(found, "process", GS_EXIT_FALSE,
            "start it again: gemmshim run -- ..., or LD_PRELOAD=libgemmshim.so",
            "gemmshim is not in process %ld: it cannot be added to a running one", pid);
  if (!process->cublas)
    gs_note(found, "process", "ask again once it computes", "no cuBLAS is mapped (yet)");
  else if (!process->importer && process->handles)
    gs_find(found, "process", GS_EXIT_OK, "",
            "cuBLAS is looked up by handle, and " GS_HANDLES " is there to reach it");
  else if (!process->importer)
    gs_find(found, "process", GS_EXIT_FALSE,
            "reach look-ups by handle too: gemmshim run --handles, or "
            "LD_PRELOAD=" GS_LIBRARY ":" GS_HANDLES,
            "cuBLAS is mapped, but nothing is linked with it: it is looked up by handle");
  if (process->histogram[0])
    gs_doctor_calls(found, process->histogram);
  else if (process->shim)
    gs_note(found, "calls",
            process->cublas ? "start it by gemmshim run; where it multiplies unseen, cuBLAS was loaded with "
                              "RTLD_DEEPBIND or dlmopen"
                            : "start it with GEMMSHIM_CALLS=FOLDER, or by gemmshim run",
            "it keeps no histogram file, or has not called a product yet");
}

void gs_doctor_process(gs_findings_t *found, long pid) {
  char path[64];
  process_t process = {0};
  snprintf(path, sizeof path, "/proc/%ld/maps", pid);
  FILE *maps = fopen(path, "re");
  if (!maps) {
    gs_find(found, "process", GS_EXIT_MACHINE,
            errno == ENOENT ? "check the number" : "ask as its user, or as root", "%s: %s", path,
            errno == ENOENT ? "there is no such process" : strerror(errno));
    return;
  }
  read_maps(found, &process, pid, maps);
  fclose(maps);
  judge(found, &process, pid);
}
