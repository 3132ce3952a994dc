/* The grid of products that serve.c asks for, and its test puts into a table. */
#ifndef GS_TESTS_SHAPES_H
#define GS_TESTS_SHAPES_H

#include <stdbool.h>

/* even: sizes and leading dimensions of whole 16 bytes; else a kernel for 2-byte alignment is needed. */
static const struct {
  int m, n, k;
  bool even;
} shapes[] = {{64, 32, 64, true}, {40, 17, 24, true}, {136, 8, 128, true},
              {8, 1, 72, true},   {33, 7, 19, false}, {1, 3, 5, false}};

static const struct {
  const char *ab, *d; /* of A and B, of C and D */
} type_pairs[] = {{"f16", "f16"}, {"f16", "f32"}, {"bf16", "bf16"}, {"bf16", "f32"}};

static const char *const layouts[] = {"nn", "nt", "tn", "tt"};

#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))

#endif
