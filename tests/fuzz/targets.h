/* What is fuzzed: each takes any bytes, and ends the process where a promise is broken. `make fuzz` runs them under
 * libFuzzer, the unit tests over the corpus in the folders beside this file. */
#ifndef GS_FUZZ_TARGETS_H
#define GS_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

/* A table's text. Rows that are taken are of kernels that can serve them, do not overlap, and read back as themselves;
 * faults are said with file and line. */
int fuzz_table(const uint8_t *data, size_t size);
/* A .calls file or a histogram; after an H, the slots of one. What is read can be written, and reads back as the same products and counts. */
int fuzz_calls(const uint8_t *data, size_t size);
/* Lines NAME=value, as the environment gives them. Numbers stay within their ranges. */
int fuzz_options(const uint8_t *data, size_t size);
/* What GEMMSHIM_DUMP leaves: judged, or refused. */
int fuzz_operands(const uint8_t *data, size_t size);

#endif
