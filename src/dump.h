/* Floor 3. GEMMSHIM_DUMP=FOLDER, with GEMMSHIM_VERIFY: the first comparison that finds a row off leaves its operands and
 * both results in one new file there, in the safetensors format (8 bytes, the length of a JSON header; the header; the
 * elements): tensors a, b, c, bias (where they are read), d (gemmshim's) and reference (cuBLAS's), each by its columns
 * and without gaps, shape [batch, columns, rows]; in __metadata__ the product as gs_gemm_format writes it, the row, alpha,
 * beta, and how far off. `gemmshim verify --operands` judges it.
 *
 * Everything is copied to the host on the call's own stream, nobody waits, and comparisons come one at a time until
 * there is a file. Beyond GS_DUMP_BYTES_MAX, and in a second context, calls are compared without. */
#ifndef GS_DUMP_H
#define GS_DUMP_H

#include "gs_compare.h"
#include "launch.h"

#define GS_DUMP_BYTES_MAX (256u << 20)
#define GS_DUMP_SUFFIX    ".safetensors"

/* Whether a file is wanted, and there is none so far. */
bool gs_dump_wanted(void);
/* Before the call's kernel, of whose result the library's counterpart will lie at reference: copies C. False: an earlier
 * call's operands are still held. */
bool gs_dump_begin(const gs_call_t *call, const gs_place_t *place, const void *reference);
/* After both: copies the rest. */
void gs_dump_copy(const gs_call_t *call);
/* When the copies are there: writes the file; then, or instead, lets go of them. */
void gs_dump_write(const gs_gemm_t *g, const gs_row_t *row, double off, const gs_compare_result_t *result);
void gs_dump_drop(void);
/* In a forked child, whose parent's memory the driver does not know. */
void gs_dump_fork(void);

#endif
