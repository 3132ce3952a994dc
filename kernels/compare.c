#include "gs_compare.h"

__asm__(
    ".pushsection .rodata\n.balign 16\n.globl gs_compare_begin\n.hidden gs_compare_begin\ngs_compare_begin:\n"
    ".incbin \"" GS_FATBINS "/compare.fatbin\"\n"
    ".globl gs_compare_end\n.hidden gs_compare_end\ngs_compare_end:\n.popsection\n");
extern const char gs_compare_begin[] __attribute__((visibility("hidden")));
extern const char gs_compare_end[] __attribute__((visibility("hidden")));

const void *gs_compare_image(size_t *size) {
  *size = (size_t)(gs_compare_end - gs_compare_begin);
  return gs_compare_begin;
}
