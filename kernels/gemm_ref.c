#include "gemm_ref.h"

__asm__(".pushsection .rodata\n.balign 16\n.globl gs_ref_begin\n.hidden gs_ref_begin\ngs_ref_begin:\n"
        ".incbin \"" GS_FATBINS "/gemm_ref.fatbin\"\n"
        ".globl gs_ref_end\n.hidden gs_ref_end\ngs_ref_end:\n.popsection\n");
extern const char gs_ref_begin[] __attribute__((visibility("hidden")));
extern const char gs_ref_end[] __attribute__((visibility("hidden")));

const void *gs_ref_image(size_t *size) {
  *size = (size_t)(gs_ref_end - gs_ref_begin);
  return gs_ref_begin;
}
