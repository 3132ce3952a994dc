/* Floor 1. Kernels beyond the shipped ones: their machine code comes from a tuner's compiler, or from beside a
 * table. All that can run are counted through, the shipped ones first: an index below gs_shipped_count() is that
 * of gs_shipped_at. */
#ifndef GS_EXTRAS_H
#define GS_EXTRAS_H

#include "gs_kernel.h"

#define GS_EXTRAS_MAX      4096
#define GS_EXTRA_BYTES_MAX (4 << 20)  /* of a cubin */
#define GS_EXTRA_ALL_MAX   (64 << 20) /* of those that tables bring into a process */

/* Shipped and extra ones, so far. */
int gs_kernel_count(void);
gs_kernel_t gs_kernel_at(int index);
/* The fatbin or cubin that holds it; lives as long as the process. */
const void *gs_kernel_image(int index, size_t *size);
/* What tells an extra's machine code: the first 64 bits of its SHA-256. 0: shipped. */
uint64_t gs_kernel_code(int index);

/* Adds k, whose cubin image (malloc'ed) becomes the process's; returns its index. The same kernel with the same
 * machine code is added once. -1 where GS_EXTRAS_MAX are there already: image stays the caller's.
 * Readers need no lock; two threads must not add at once. */
int gs_extra_add(const gs_kernel_t *k, void *image, size_t size);

/* Tables name an extra, and its file beside them, by id and machine code: mma_f16_f16_tn_96x64x32_s4_w4-0123456789abcdef.
 * GS_EXTRA_NAME_MAX bytes hold it. As snprintf. */
#define GS_EXTRA_NAME_MAX (GS_KERNEL_ID_MAX + 17)
int gs_extra_format(char *buffer, size_t size, int index);
/* Reads a name; false where it is none. */
bool gs_extra_parse(const char *name, gs_kernel_t *k, uint64_t *code);
/* Adds the extra of that name from its file, which lies in TABLE.d beside the table: NAME.cubin. Only a file that
 * belongs to this user or root, that nobody else may write, and that holds that machine code is taken; links are
 * followed. Its index; -1, and why, where it is refused. */
int gs_extra_load(const char *table, const gs_kernel_t *k, uint64_t code, char *why, size_t size);
/* The path of that file, or with name NULL that of the folder; false where it does not fit. */
bool gs_extra_path(char *path, size_t size, const char *table, const char *name);

#endif
