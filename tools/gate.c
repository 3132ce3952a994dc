#include "gate.h"

#include <math.h>
#include <string.h>

/* Bits of the fraction, smallest and largest exponent of a normal number. */
typedef struct {
  int fraction, lowest, highest;
} gs_format_t;

static const gs_format_t formats[GS_TYPE_COUNT] = {
    [GS_TYPE_F16] = {10, -14, 15},
    [GS_TYPE_BF16] = {7, -126, 127},
    [GS_TYPE_F32] = {23, -126, 127},
};

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static double power_of_two(int exponent) {
  uint64_t bits = (uint64_t)(exponent + 1023) << 52;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

double gs_element_round(gs_type_t type, double value) {
  const gs_format_t *f = &formats[type];
  int exponent = (int)(bits_of(value) >> 52 & 0x7ff) - 1023;
  if (exponent == 1024 || value == 0) return value; /* NaN, Inf, 0 */
  int step = (exponent < f->lowest ? f->lowest : exponent) - f->fraction;
  /* A power of two scales exactly, and rint is the only rounding. */
  double rounded = rint(value * power_of_two(-step)) * power_of_two(step);
  return fabs(rounded) < power_of_two(f->highest + 1) ? rounded : copysign(INFINITY, value);
}

void gs_element_store(gs_type_t type, void *base, int64_t index, double value) {
  const gs_format_t *f = &formats[type];
  int exponent_bits = type == GS_TYPE_F16 ? 5 : 8;
  double rounded = gs_element_round(type, value), size = fabs(rounded);
  uint32_t sign = signbit(rounded) && !isnan(rounded), body;
  int exponent = (int)(bits_of(size) >> 52) - 1023;
  if (isnan(rounded))
    body = (1u << exponent_bits << f->fraction) - 1; /* quiet, as the hardware makes it */
  else if (isinf(rounded))
    body = ((1u << exponent_bits) - 1) << f->fraction;
  else if (exponent < f->lowest)
    body = (uint32_t)(size * power_of_two(f->fraction - f->lowest));
  else
    body = (uint32_t)(exponent - f->lowest + 1) << f->fraction |
           (uint32_t)(bits_of(size) >> (52 - f->fraction) & ((1u << f->fraction) - 1));
  uint32_t whole = sign << exponent_bits << f->fraction | body;
  if (type == GS_TYPE_F32)
    ((uint32_t *)base)[index] = whole;
  else
    ((uint16_t *)base)[index] = (uint16_t)whole;
}

double gs_element_load(gs_type_t type, const void *base, int64_t index) {
  if (type == GS_TYPE_F32) return ((const float *)base)[index];
  const gs_format_t *f = &formats[type];
  uint32_t whole = ((const uint16_t *)base)[index];
  uint32_t fraction = whole & ((1u << f->fraction) - 1), exponent = (whole & 0x7fff) >> f->fraction;
  double size;
  if (exponent == 0x7fffu >> f->fraction)
    size = fraction ? NAN : INFINITY;
  else if (exponent == 0)
    size = fraction * power_of_two(f->lowest - f->fraction);
  else
    size = (fraction | 1u << f->fraction) * power_of_two((int)exponent - 1 + f->lowest - f->fraction);
  return whole >> 15 ? -size : size;
}

static bool is_poison(gs_type_t type, const void *base, int64_t index) {
  if (type == GS_TYPE_F32) return ((const uint32_t *)base)[index] == UINT32_MAX;
  return ((const uint16_t *)base)[index] == UINT16_MAX;
}

/* Whether d is of the kind (NaN, +Inf, -Inf, finite) that the rounded reference is. */
static bool same_kind(double d, double rounded) {
  if (isfinite(rounded)) return isfinite(d);
  return isnan(rounded) ? isnan(d) : d == rounded;
}

void gs_gate_add(gs_gate_t *gate, gs_type_t type, const void *d, const double *reference, int64_t rows) {
  for (int64_t i = 0; i < rows; i++) {
    double value = gs_element_load(type, d, i), rounded = gs_element_round(type, reference[i]);
    bool unwritten = is_poison(type, d, i), misfit = !same_kind(value, rounded);
    if ((unwritten || misfit) && gate->unwritten + gate->misfits == 0) gate->row = i;
    gate->unwritten += unwritten;
    gate->misfits += misfit && !unwritten;
    if (unwritten || misfit || !isfinite(rounded)) continue;
    double off = value - reference[i], rounding = rounded - reference[i];
    gate->error2 += off * off;
    gate->rounding2 += rounding * rounding;
    gate->reference2 += reference[i] * reference[i];
    double floored = fabs(off) / fmax(1, 0.01 * fabs(reference[i]));
    if (floored > gate->worst) gate->worst = floored;
  }
  gate->count += rows;
}

double gs_gate_error(const gs_gate_t *gate) {
  if (gate->unwritten || gate->misfits) return INFINITY;
  if (gate->error2 == 0) return 0;
  return sqrt(gate->error2 / gate->reference2); /* infinite where the reference is all 0 */
}

double gs_gate_bound(const gs_gate_t *gate, gs_type_t type, int64_t k, double library_error) {
  const double unit = power_of_two(-23);
  if (type != GS_TYPE_F32) return gate->reference2 > 0 ? 1.1 * sqrt(gate->rounding2 / gate->reference2) : 0;
  if (library_error >= 0) return fmax(2 * library_error, unit);
  return unit * (8 + ceil((double)k / 16));
}

const char *gs_gate_fault(const gs_gate_t *gate, gs_gate_rule_t rule, gs_type_t type, int64_t k,
                          double library_error) {
  if (gate->count == 0) return "nothing was compared";
  if (gate->unwritten) return "an element was not written";
  if (gate->misfits) return "NaN or infinity where the reference has none, or the reverse";
  double error = gs_gate_error(gate);
  if (rule == GS_GATE_EXACT) return error == 0 ? NULL : "an exactly representable result is wrong";
  if (!(gate->worst <= 1)) return "an element is off by more than 1 and 1%";
  return error <= gs_gate_bound(gate, type, k, library_error) ? NULL
                                                              : "the relative error is above its bound";
}
