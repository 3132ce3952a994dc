#define _GNU_SOURCE
#include "gs_gemm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gs_reason.h"
#include "hash.h"

#define X(name, text, ...) text,
const char *const gs_type_names[GS_TYPE_COUNT] = {GS_TYPES(X)};
const char *const gs_compute_names[GS_COMPUTE_COUNT] = {GS_COMPUTES(X)};
const char *const gs_epilogue_names[GS_EPILOGUE_COUNT] = {GS_EPILOGUES(X)};
const char *const gs_op_names[GS_OP_COUNT] = {GS_OPS(X)};
const char *const gs_entry_names[GS_ENTRY_COUNT] = {GS_ENTRIES(X)};
const char *const gs_batch_names[GS_BATCH_COUNT] = {GS_BATCHES(X)};
const char *const gs_reason_names[GS_REASON_COUNT] = {GS_REASONS(X)};
#undef X
#define X(name, text, explanation) explanation,
const char *const gs_reason_texts[GS_REASON_COUNT] = {GS_REASONS(X)};
#undef X
#define X(name, text, value, bytes) bytes,
const uint8_t gs_type_bytes[GS_TYPE_COUNT] = {GS_TYPES(X)};
#undef X

int gs_name_index(const char *text, const char *const *names, int count) {
  for (int i = 0; i < count; i++)
    if (strcmp(text, names[i]) == 0) return i;
  return -1;
}

/* Position of a cuBLAS value in its list; switches, because this runs on every call. */
/* clang-format off */
#define OF_VALUE(function, type, prefix, LIST)                                                               \
  type function(int value) {                                                                                 \
    switch (value) { LIST(CASE_##prefix) }                                                                   \
    return GS_##prefix##_OTHER;                                                                              \
  }
#define CASE_TYPE(name, text, value, ...) case value: return GS_TYPE_##name;
#define CASE_COMPUTE(name, text, value)   case value: return GS_COMPUTE_##name;
#define CASE_EPILOGUE(name, text, value)  case value: return GS_EPILOGUE_##name;
#define CASE_OP(name, text, value)        case value: return GS_OP_##name;
OF_VALUE(gs_type_of_cuda, gs_type_t, TYPE, GS_TYPES)
OF_VALUE(gs_compute_of_cublas, gs_compute_t, COMPUTE, GS_COMPUTES)
OF_VALUE(gs_epilogue_of_cublas, gs_epilogue_t, EPILOGUE, GS_EPILOGUES)
OF_VALUE(gs_op_of_cublas, gs_op_t, OP, GS_OPS)
/* clang-format on */

uint8_t gs_align_of(const gs_operands_t *o) {
  uintptr_t bits =
      (uintptr_t)o->a | (uintptr_t)o->b | (uintptr_t)o->c | (uintptr_t)o->d | (uintptr_t)o->bias | 16;
  return (uint8_t)(bits & -bits);
}

uint64_t gs_gemm_hash(const gs_gemm_t *g) {
  uint64_t words[(sizeof *g + 15) / 16 * 2] = {0};
  memcpy(words, g, sizeof *g);
  return gs_hash_words(words, sizeof words / sizeof *words);
}

/* The fields of a .calls line, in order: NAME(member, names, count) or INT(member). */
/* clang-format off */
#define GS_GEMM_FIELD_LIST(NAME, INT)                                                                        \
  NAME(entry, gs_entry_names, GS_ENTRY_COUNT)                                                                \
  NAME(transa, gs_op_names, GS_OP_COUNT)                                                                     \
  NAME(transb, gs_op_names, GS_OP_COUNT)                                                                     \
  INT(m) INT(n) INT(k) INT(lda) INT(ldb) INT(ldc) INT(ldd)                                                   \
  NAME(a_type, gs_type_names, GS_TYPE_COUNT)                                                                 \
  NAME(b_type, gs_type_names, GS_TYPE_COUNT)                                                                 \
  NAME(c_type, gs_type_names, GS_TYPE_COUNT)                                                                 \
  NAME(d_type, gs_type_names, GS_TYPE_COUNT)                                                                 \
  NAME(compute, gs_compute_names, GS_COMPUTE_COUNT)                                                          \
  NAME(epilogue, gs_epilogue_names, GS_EPILOGUE_COUNT)                                                       \
  NAME(batch_kind, gs_batch_names, GS_BATCH_COUNT)                                                           \
  INT(batch) INT(stride_a) INT(stride_b) INT(stride_c) INT(stride_d) INT(align)
/* clang-format on */

int gs_gemm_format(char *buffer, size_t size, const gs_gemm_t *g) {
#define NAME(member, names, count) "%s\t"
#define INT(member)                "%" PRId64 "\t"
  static const char format[] = GS_GEMM_FIELD_LIST(NAME, INT);
#undef NAME
#undef INT
#define NAME(member, names, count) , names[g->member]
#define INT(member)                , (int64_t)g->member
  char text[512];
  int length = snprintf(text, sizeof text, format GS_GEMM_FIELD_LIST(NAME, INT));
#undef NAME
#undef INT
  return snprintf(buffer, size, "%.*s", length - 1, text); /* without the last tab */
}

/* Copies the next tab-separated field of *line to field; false at the line's end or when too long. */
static bool next_field(const char **line, char *field, size_t size) {
  size_t length = strcspn(*line, "\t\n\r");
  if (length == 0 || length >= size) return false;
  memcpy(field, *line, length);
  field[length] = '\0';
  *line += length + ((*line)[length] == '\t');
  return true;
}

static bool int_of(const char *text, int64_t *value) {
  char *end;
  errno = 0;
  *value = strtoll(text, &end, 10);
  return errno == 0 && end != text && *end == '\0';
}

gs_status_t gs_gemm_parse(const char *line, gs_gemm_t *g, const char **why) {
  char field[32];
  int64_t value;
  int index;
  memset(g, 0, sizeof *g);
#define NAME(member, names, count)                                                                           \
  if (!next_field(&line, field, sizeof field)) return *why = "field '" #member "' is missing", GS_SYNTAX;    \
  if ((index = gs_name_index(field, names, count)) < 0)                                                      \
    return *why = "field '" #member "' is not a name that gemmshim knows", GS_SYNTAX;                        \
  g->member = (uint8_t)index;
#define INT(member)                                                                                          \
  if (!next_field(&line, field, sizeof field)) return *why = "field '" #member "' is missing", GS_SYNTAX;    \
  if (!int_of(field, &value)) return *why = "field '" #member "' is not a number", GS_SYNTAX;                \
  g->member = (__typeof__(g->member))value;                                                                  \
  if ((int64_t)g->member != value) return *why = "field '" #member "' is out of range", GS_SYNTAX;
  GS_GEMM_FIELD_LIST(NAME, INT)
#undef NAME
#undef INT
  if (g->m < 1 || g->n < 1 || g->k < 1 || g->batch < 1) return *why = "a size is below 1", GS_SYNTAX;
  return GS_OK;
}

int gs_gemm_describe(char *buffer, size_t size, const gs_gemm_t *g) {
  char batch[64] = "", ops[3] = {gs_op_names[g->transa][0], gs_op_names[g->transb][0], 0};
  for (char *c = ops; *c; c++)
    if (*c >= 'a') *c -= 'a' - 'A';
  if (g->batch_kind != GS_BATCH_SINGLE)
    snprintf(batch, sizeof batch, " %s batch %d", gs_batch_names[g->batch_kind], g->batch);
  return snprintf(buffer, size,
                  "%s %s %" PRId64 "x%" PRId64 "x%" PRId64 " %s,%s->%s %s %s ld %" PRId64 ",%" PRId64
                  ",%" PRId64 "%s align %d",
                  gs_entry_names[g->entry], ops, g->m, g->n, g->k, gs_type_names[g->a_type],
                  gs_type_names[g->b_type], gs_type_names[g->d_type], gs_compute_names[g->compute],
                  gs_epilogue_names[g->epilogue], g->lda, g->ldb, g->ldd, batch, g->align);
}
