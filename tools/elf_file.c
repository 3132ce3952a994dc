/* Reads ELF files; see elf_file.h. */
#define _GNU_SOURCE
#include "elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"

#if defined __x86_64__
#define MACHINE EM_X86_64
#elif defined __aarch64__
#define MACHINE EM_AARCH64
#endif

/* count things of bytes each at offset, or NULL where they are not all inside the file. */
static const void *at(const gs_elf_t *elf, uint64_t offset, uint64_t bytes, uint64_t count) {
  if (offset > elf->size || (bytes && count > (elf->size - offset) / bytes)) return NULL;
  return elf->data + offset;
}

/* A NUL-ended text inside the file, or NULL. */
static const char *text_at(const gs_elf_t *elf, uint64_t offset) {
  if (offset >= elf->size || !memchr(elf->data + offset, 0, elf->size - offset)) return NULL;
  return (const char *)elf->data + offset;
}

static const Elf64_Phdr *segments(const gs_elf_t *elf, int *count) {
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)elf->data;
  *count = header->e_phnum;
  if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phoff % 8) return *count = 0, NULL;
  const Elf64_Phdr *found = at(elf, header->e_phoff, sizeof *found, header->e_phnum);
  if (!found) *count = 0;
  return found;
}

static uint64_t offset_of_address(const gs_elf_t *elf, uint64_t address) {
  int count;
  const Elf64_Phdr *p = segments(elf, &count);
  for (int i = 0; i < count; i++)
    if (p[i].p_type == PT_LOAD && address >= p[i].p_vaddr && address - p[i].p_vaddr < p[i].p_filesz)
      return address - p[i].p_vaddr + p[i].p_offset;
  return UINT64_MAX;
}

static void read_dynamic(gs_elf_t *elf, const Elf64_Phdr *segment) {
  uint64_t count = segment->p_filesz / sizeof(Elf64_Dyn), strings = UINT64_MAX;
  const Elf64_Dyn *d = segment->p_offset % 8 ? NULL : at(elf, segment->p_offset, sizeof *d, count);
  if (!d) return;
  for (uint64_t i = 0; i < count && d[i].d_tag != DT_NULL; i++)
    if (d[i].d_tag == DT_STRTAB) strings = offset_of_address(elf, d[i].d_un.d_ptr);
  if (strings == UINT64_MAX) return;
  for (uint64_t i = 0; i < count && d[i].d_tag != DT_NULL; i++) {
    const char *text = d[i].d_un.d_val < elf->size ? text_at(elf, strings + d[i].d_un.d_val) : NULL;
    if (!text) continue;
    if (d[i].d_tag == DT_NEEDED && elf->needed_count < GS_ELF_NEEDED_MAX)
      elf->needed[elf->needed_count++] = text;
    if (d[i].d_tag == DT_RUNPATH || (d[i].d_tag == DT_RPATH && !elf->run_path)) elf->run_path = text;
  }
}

static bool is_product(const char *name) {
  return !strncmp(name, "cublas", 6) && (strstr(name, "emm") || !strcmp(name, "cublasLtMatmul"));
}

/* Looks through one symbol table (section) for matrix products of cuBLAS. */
static void read_symbols(const gs_elf_t *elf, const Elf64_Shdr *sections, int section_count,
                         const Elf64_Shdr *table, gs_elf_cublas_t *cublas) {
  uint64_t count = table->sh_size / sizeof(Elf64_Sym);
  const Elf64_Sym *symbols = table->sh_offset % 8 ? NULL : at(elf, table->sh_offset, sizeof *symbols, count);
  if (!symbols || (int64_t)table->sh_link >= section_count) return;
  uint64_t strings = sections[table->sh_link].sh_offset;
  for (uint64_t i = 0; i < count; i++) {
    const char *name = strings < elf->size ? text_at(elf, strings + symbols[i].st_name) : NULL;
    if (!name || !is_product(name)) continue;
    if (symbols[i].st_shndx == SHN_UNDEF)
      cublas->imports = true;
    else if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC)
      cublas->defines = true;
  }
}

gs_elf_cublas_t gs_elf_cublas(const gs_elf_t *elf) {
  gs_elf_cublas_t cublas = {0};
  if (!elf->is_native) return cublas;
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)elf->data;
  int count = header->e_shnum;
  if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff % 8) return cublas;
  const Elf64_Shdr *sections = at(elf, header->e_shoff, sizeof *sections, header->e_shnum);
  for (int i = 0; sections && i < count; i++)
    if (sections[i].sh_type == SHT_DYNSYM || sections[i].sh_type == SHT_SYMTAB)
      read_symbols(elf, sections, count, &sections[i], &cublas);
  return cublas;
}

bool gs_elf_names_cublas(const gs_elf_t *elf) {
  return memmem(elf->data, elf->size, "libcublas", strlen("libcublas")) != NULL;
}

static void read_elf(gs_elf_t *elf) {
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)elf->data;
  elf->is_elf = elf->size >= sizeof *header && !memcmp(elf->data, ELFMAG, SELFMAG);
  elf->is_native = elf->is_elf && header->e_ident[EI_CLASS] == ELFCLASS64 &&
                   header->e_ident[EI_DATA] == ELFDATA2LSB && header->e_machine == MACHINE;
  if (!elf->is_native) return;
  int count;
  const Elf64_Phdr *p = segments(elf, &count);
  for (int i = 0; i < count; i++) {
    if (p[i].p_type == PT_INTERP) elf->interpreter = text_at(elf, p[i].p_offset);
    if (p[i].p_type == PT_DYNAMIC) read_dynamic(elf, &p[i]);
  }
  elf->is_dynamic = elf->interpreter || elf->needed_count;
}

bool gs_elf_open(gs_elf_t *elf, const char *path) {
  struct stat info;
  memset(elf, 0, sizeof *elf);
  snprintf(elf->path, sizeof elf->path, "%s", path);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_size == 0) {
    close(fd);
    errno = EINVAL;
    return false;
  }
  void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (data == MAP_FAILED) return false;
  elf->data = data;
  elf->size = (size_t)info.st_size;
  read_elf(elf);
  return true;
}

void gs_elf_close(gs_elf_t *elf) {
  if (elf->data) munmap((void *)elf->data, elf->size);
  elf->data = NULL;
}

bool gs_script_interpreter(const gs_elf_t *script, char *path, size_t size) {
  char line[256] = "", *rest = line, *word;
  size_t length = script->size < sizeof line ? script->size : sizeof line - 1;
  if (length < 3 || memcmp(script->data, "#!", 2)) return false;
  memcpy(line, script->data + 2, length - 2);
  line[strcspn(line, "\r\n")] = 0;
  do word = strsep(&rest, " \t");
  while (word && !*word);
  if (!word) return false;
  const char *slash = strrchr(word, '/');
  char *next = rest && slash && !strcmp(slash, "/env") ? strsep(&rest, " \t") : NULL;
  if (next && *next && *next != '-') return gs_find_program(next, path, size) == 0;
  return (size_t)snprintf(path, size, "%s", word) < size;
}
