/* The judge: compares a product D with its FP64 reference, element by element. Pure CPU, no GPU needed.
 * Zero a gs_gate_t, add columns to it, then ask for the verdict. */
#ifndef GS_GATE_H
#define GS_GATE_H

#include "gs_gemm.h"

/* All bits set: a NaN in every floating type, and one that no arithmetic produces. Outputs are filled with
 * it before a kernel runs, so that an element left unwritten is told from a NaN that was computed. */
#define GS_POISON_BYTE 0xff

typedef struct {
  double error2, rounding2, reference2; /* sums of squares: D - C64, rounded C64 - C64, C64 */
  double worst;                         /* largest |D - C64| / max(1, |C64| / 100); 1 is the floor */
  int64_t count;
  int64_t unwritten; /* elements that still hold the poison */
  int64_t misfits;   /* elements that are NaN or infinite where C64 is not, or the reverse */
  int64_t row;       /* of the first element that is unwritten or a misfit */
} gs_gate_t;

typedef enum { GS_GATE_ROUNDING, GS_GATE_EXACT } gs_gate_rule_t;

/* Judges one column: rows elements of D, and as many doubles. */
void gs_gate_add(gs_gate_t *gate, gs_type_t type, const void *d, const double *reference, int64_t rows);

double gs_gate_error(const gs_gate_t *gate); /* relative, Frobenius; infinite where any element misfits */

/* The largest error that passes. For a 16-bit type 1.1 times that of rounding the reference to it. For f32
 * twice the library's own error on these inputs; where it was not measured (library_error < 0), one unit in
 * the last place of fp32 for each 16-deep step of the sum and 8 more: the tensor cores truncate there, and a
 * 16-bit accumulator is a hundred times worse. No bound lies below one such unit. */
double gs_gate_bound(const gs_gate_t *gate, gs_type_t type, int64_t k, double library_error);

/* NULL where D passes, else what is wrong (a static text). GS_GATE_EXACT: the error must be 0. */
const char *gs_gate_fault(const gs_gate_t *gate, gs_gate_rule_t rule, gs_type_t type, int64_t k,
                          double library_error);

/* One element of f16, bf16 or f32, widened. */
double gs_element_load(gs_type_t type, const void *base, int64_t index);
/* Rounds to nearest, ties to even, once. */
void gs_element_store(gs_type_t type, void *base, int64_t index, double value);
double gs_element_round(gs_type_t type, double value);

#endif
