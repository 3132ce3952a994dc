/* What an ELF file says of itself, read without running it: 64-bit little-endian files; of others only their
 * kind. Every offset is checked: the file may be anything. */
#ifndef GS_ELF_FILE_H
#define GS_ELF_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define GS_ELF_NEEDED_MAX 128

typedef struct {
  const unsigned char *data; /* mapped; gs_elf_close unmaps */
  size_t size;
  char path[PATH_MAX];
  bool is_elf, is_native;  /* native: for this machine, so that the preload can be loaded into it */
  bool is_dynamic;         /* has a loader (PT_INTERP) or is a shared object */
  const char *interpreter; /* NULL: static */
  const char *needed[GS_ELF_NEEDED_MAX]; /* sonames */
  int needed_count;
  const char *run_path; /* DT_RUNPATH, else DT_RPATH; may be NULL */
} gs_elf_t;

typedef struct {
  bool imports; /* an undefined cuBLAS matrix product: the loader binds it */
  bool defines; /* a defined one: cuBLAS itself, or linked in statically */
} gs_elf_cublas_t;

/* false when the file cannot be mapped (errno tells). A script opens with is_elf false. */
bool gs_elf_open(gs_elf_t *elf, const char *path);
void gs_elf_close(gs_elf_t *elf);

/* Its symbols of cuBLAS. */
gs_elf_cublas_t gs_elf_cublas(const gs_elf_t *elf);
/* Whether "libcublas" occurs anywhere: it is opened at run time, probably. Reads the whole file. */
bool gs_elf_names_cublas(const gs_elf_t *elf);

/* Where the loader would find soname for elf: run path, LD_LIBRARY_PATH, ld.so.cache, system folders. */
bool gs_elf_resolve(const gs_elf_t *elf, const char *soname, char *path, size_t size);

/* The program that a script's first line starts: its first word, or, where that is env, the next one, as PATH
 * finds it. False when it names none. */
bool gs_script_interpreter(const gs_elf_t *script, char *path, size_t size);

#endif
