/* libgemmshim-handles.so: dlsym, for programs that look cuBLAS up by handle. A look-up with an explicit handle
 * and the name of a cuBLAS function is made as asked; where it succeeds, libgemmshim.so says what to give
 * instead. Every other look-up is a jump to the next dlsym with stack and registers as they were: RTLD_NEXT and
 * RTLD_DEFAULT depend on who calls. dlvsym is left alone. No thread-local storage, and no sanitizer ever. */
#define _GNU_SOURCE
#define GS_DEFINES_DLSYM
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "compat.h"

typedef void *gs_dlsym_t(void *handle, const char *name);

/* In libgemmshim.so; NULL where that is not preloaded. */
void *gemmshim_lookup(const char *name, void *found) __attribute__((weak));

static _Atomic(gs_dlsym_t *) next;

static void *nothing(void *handle, const char *name) {
  (void)handle, (void)name;
  return NULL;
}

/* The dlsym after this one: another preload's, or the C library's, which only dlvsym finds without dlsym. */
static gs_dlsym_t *find_next(void) {
  static const char *const versions[] = {"GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34"};
  gs_dlsym_t *real = NULL, *after;
  for (size_t i = 0; !real && i < sizeof versions / sizeof *versions; i++)
    real = (gs_dlsym_t *)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  if (!real) return nothing;
  after = (gs_dlsym_t *)real(RTLD_NEXT, "dlsym");
  return after ? after : real;
}

static gs_dlsym_t *next_dlsym(void) {
  gs_dlsym_t *known = atomic_load_explicit(&next, memory_order_acquire);
  if (known) return known;
  known = find_next();
  atomic_store_explicit(&next, known, memory_order_release);
  return known;
}

static void *substituted(void *handle, const char *name) {
  void *found = next_dlsym()(handle, name);
  return found ? gemmshim_lookup(name, found) : NULL;
}

/* By hand: it runs before anything else does. */
static bool is_cublas(const char *name) {
  static const char prefix[] = "cublas";
  for (size_t i = 0; i < sizeof prefix - 1; i++)
    if (name[i] != prefix[i]) return false;
  return true;
}

/* Where dlsym, below, goes on. */
__attribute__((used, visibility("hidden"))) gs_dlsym_t *gs_handles_choose(void *handle, const char *name) {
  bool explicit = handle != RTLD_DEFAULT && handle != RTLD_NEXT;
  return explicit && name && gemmshim_lookup && is_cublas(name) ? substituted : next_dlsym();
}

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        "dlsym:\n"
        "  .cfi_startproc\n"
        "  endbr64\n"
        "  push %rdi\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  push %rsi\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  sub $8, %rsp\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  call gs_handles_choose\n"
        "  add $8, %rsp\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  pop %rsi\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  pop %rdi\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  jmp *%rax\n"
        "  .cfi_endproc\n"
        ".size dlsym, . - dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        "dlsym:\n"
        "  .cfi_startproc\n"
        "  hint #34\n" /* bti c */
        "  stp x29, x30, [sp, #-32]!\n"
        "  .cfi_adjust_cfa_offset 32\n"
        "  .cfi_rel_offset x29, 0\n"
        "  .cfi_rel_offset x30, 8\n"
        "  mov x29, sp\n"
        "  stp x0, x1, [sp, #16]\n"
        "  bl gs_handles_choose\n"
        "  mov x16, x0\n"
        "  ldp x0, x1, [sp, #16]\n"
        "  ldp x29, x30, [sp], #32\n"
        "  .cfi_adjust_cfa_offset -32\n"
        "  .cfi_restore x29\n"
        "  .cfi_restore x30\n"
        "  br x16\n"
        "  .cfi_endproc\n"
        ".size dlsym, . - dlsym\n");
#else
#error "libgemmshim-handles.so knows x86-64 and AArch64"
#endif
