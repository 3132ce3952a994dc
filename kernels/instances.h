/* What every tile is built for: X(type of A and B, type of D, the same in capitals, op(A), op(B), transposed
 * or not), in the order of the shipped list. */
#ifndef GS_INSTANCES_H
#define GS_INSTANCES_H

#define GS_LAYOUTS(X, ab, d, AB, D)                                                                          \
  X(ab, d, AB, D, n, n, 0, 0)                                                                                \
  X(ab, d, AB, D, t, n, 1, 0)                                                                                \
  X(ab, d, AB, D, n, t, 0, 1)                                                                                \
  X(ab, d, AB, D, t, t, 1, 1)

#define GS_INSTANCES(X)                                                                                      \
  GS_LAYOUTS(X, f16, f16, F16, F16)                                                                          \
  GS_LAYOUTS(X, f16, f32, F16, F32)                                                                          \
  GS_LAYOUTS(X, bf16, bf16, BF16, BF16)                                                                      \
  GS_LAYOUTS(X, bf16, f32, BF16, F32)

#endif
