/* gemmshim verify --operands: judges what GEMMSHIM_DUMP left of a call (src/dump.h) against FP64, on the CPU. */
#ifndef GS_OPERANDS_H
#define GS_OPERANDS_H

#include <stdbool.h>

/* Prints who is how far off, and where most; an exit status: 0 gemmshim's result passes the gate, 1 it does not,
 * 3 the file cannot be read. */
int gs_verify_operands(const char *path, bool json);

#endif
