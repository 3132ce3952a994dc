/* Judges a program by its file; see program.h. */
#define _GNU_SOURCE
#include "program.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "elf_file.h"

__attribute__((format(printf, 3, 4))) static void judge(gs_program_t *program, gs_program_verdict_t verdict,
                                                        const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(program->why, sizeof program->why, format, args);
  va_end(args);
  program->verdict = verdict;
}

/* In secure mode (AT_SECURE) the loader ignores a preload that is given by path. */
static bool runs_secure(const char *path) {
  struct stat info;
  if (stat(path, &info) != 0) return false;
  if ((info.st_mode & S_ISUID) && info.st_uid != getuid()) return true;
  if ((info.st_mode & S_ISGID) && (info.st_mode & S_IXGRP) && info.st_gid != getgid()) return true;
  return getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

static void check_elf(const gs_elf_t *elf, gs_program_t *program) {
  if (!elf->is_elf)
    judge(program, GS_PROGRAM_WARNS, "%s: neither an ELF program nor a script that names one", elf->path);
  else if (runs_secure(elf->path))
    judge(program, GS_PROGRAM_REFUSED,
          "%s: runs with another user's rights or with capabilities, so the loader ignores LD_PRELOAD: run a "
          "copy "
          "without the set-user-ID bit (cp), or preload where it is started without",
          elf->path);
  else if (!elf->is_native)
    judge(program, GS_PROGRAM_WARNS,
          "%s: made for another kind of machine than the library, which it cannot load", elf->path);
  else if (elf->interpreter && strstr(elf->interpreter, "ld-musl"))
    judge(program, GS_PROGRAM_REFUSED, "%s: uses musl's loader; the library needs glibc", elf->path);
  else if (!elf->interpreter)
    judge(program, GS_PROGRAM_WARNS,
          "%s: statically linked: no loader, so no preload; programs that it starts may still be reached",
          elf->path);
}

void gs_program_check(const char *path, gs_program_t *program) {
  gs_elf_t elf;
  *program = (gs_program_t){0};
  snprintf(program->executed, sizeof program->executed, "%s", path);
  for (int depth = 0; depth < 4; depth++) { /* the kernel follows interpreters of interpreters, five deep */
    if (!gs_elf_open(&elf, program->executed)) {
      judge(program, GS_PROGRAM_WARNS, "%s: cannot be examined: %s", program->executed, strerror(errno));
      return;
    }
    char interpreter[PATH_MAX];
    if (elf.is_elf || !gs_script_interpreter(&elf, interpreter, sizeof interpreter)) break;
    gs_elf_close(&elf);
    snprintf(program->executed, sizeof program->executed, "%s", interpreter);
  }
  check_elf(&elf, program);
  gs_elf_close(&elf);
}
