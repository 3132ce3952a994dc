#define _GNU_SOURCE
#include "bench_row.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define X(name, text) text,
const char *const gs_layout_names[GS_LAYOUT_COUNT + 1] = {GS_LAYOUTS(X) "max"};
const char *const gs_runner_names[GS_RUNNER_COUNT] = {GS_RUNNERS(X)};
const char *const gs_rival_names[GS_RIVAL_COUNT] = {GS_RIVALS(X)};
#undef X

gs_layout_t gs_layout_of(const gs_gemm_t *g) {
  return g->transa == GS_OP_N ? GS_LAYOUT_NN : GS_LAYOUT_TN;
}

bool gs_gemm_turned(const gs_gemm_t *x, const gs_gemm_t *y) {
  gs_gemm_t turned = *x;
  if (x->transa == y->transa || x->batch != 1) return false;
  if (x->lda != (x->transa == GS_OP_N ? x->m : x->k)) return false;
  turned.transa = y->transa;
  turned.lda = y->transa == GS_OP_N ? x->m : x->k;
  return !memcmp(&turned, y, sizeof turned);
}

/* ---- the columns: visited in their order by whatever names, writes or reads them ---- */

typedef struct {
  void (*text)(void *context, const char *name, char *value, size_t size);
  void (*number)(void *context, const char *name, double *value);
  void *context;
} visitor_t;

__attribute__((format(printf, 3, 4))) static void number(const visitor_t *v, double *value,
                                                         const char *format, ...) {
  char name[64];
  va_list args;
  va_start(args, format);
  vsnprintf(name, sizeof name, format, args);
  va_end(args);
  v->number(v->context, name, value);
}

static void interval(const visitor_t *v, gs_interval_t *value, const char *name) {
  number(v, &value->value, "%s", name);
  number(v, &value->lo, "%s_lo", name);
  number(v, &value->hi, "%s_hi", name);
}

static void visit_door(const visitor_t *v, gs_bench_door_t *door, const char *layout) {
  char name[64];
  snprintf(name, sizeof name, "%s_verdict", layout);
  v->text(v->context, name, door->verdict, sizeof door->verdict);
  number(v, &door->served, "%s_served", layout);
  snprintf(name, sizeof name, "%s_kernel", layout);
  v->text(v->context, name, door->kernel, sizeof door->kernel);
  number(v, &door->candidates, "%s_candidates", layout);
}

static void visit_clock(const visitor_t *v, gs_bench_row_t *row, int clock) {
  const char *c = gs_clock_kind_names[clock];
  for (int l = 0; l < GS_LAYOUT_COUNT; l++)
    for (int x = 0; x < GS_RUNNER_COUNT; x++)
      number(v, &row->us[clock][l][x], "%s_%s_%s", c, gs_layout_names[l], gs_runner_names[x]);
  for (int b = 0; b < GS_RIVAL_COUNT; b++)
    for (int l = 0; l <= GS_LAYOUT_MAX; l++) {
      char name[64];
      snprintf(name, sizeof name, "%s_%s_%s", c, gs_rival_names[b], gs_layout_names[l]);
      interval(v, &row->ratio[clock][b][l], name);
    }
}

static void visit_peer(const visitor_t *v, gs_bench_peer_t *peer, const char *clock) {
  char name[64];
  number(v, &peer->us, "%s_peer", clock);
  number(v, &peer->library_us, "%s_peer_library", clock);
  number(v, &peer->ours_us, "%s_peer_ours", clock);
  snprintf(name, sizeof name, "%s_peer_ratio", clock);
  interval(v, &peer->ratio, name);
}

static void visit(const visitor_t *v, gs_bench_row_t *row, char *product, size_t product_size) {
  v->text(v->context, "product", product, product_size);
  v->text(v->context, "status", row->status, sizeof row->status);
  number(v, &row->flops, "flops");
  number(v, &row->copies, "copies");
  number(v, &row->rounds, "rounds");
  for (int l = 0; l < GS_LAYOUT_COUNT; l++) visit_door(v, &row->door[l], gs_layout_names[l]);
  for (int c = 0; c < GS_CLOCK_COUNT; c++) visit_clock(v, row, c);
  v->text(v->context, "peer", row->peer_name, sizeof row->peer_name);
  for (int c = 0; c < GS_CLOCK_COUNT; c++) visit_peer(v, &row->peer[c], gs_clock_kind_names[c]);
}

static void forget(void *context, const char *name, double *value) {
  (void)context, (void)name;
  *value = NAN;
}

static void skip(void *context, const char *name, char *value, size_t size) {
  (void)context, (void)name, (void)value, (void)size;
}

gs_bench_row_t gs_bench_row(const gs_gemm_t *g, const char *status) {
  gs_bench_row_t row = {.gemm = *g};
  visit(&(visitor_t){skip, forget, NULL}, &row, (char[1]){0}, 1);
  snprintf(row.status, sizeof row.status, "%s", status);
  row.flops = gs_gemm_flops(g);
  return row;
}

bool gs_bench_row_ok(const gs_bench_row_t *row) {
  return !strcmp(row->status, "ok");
}

/* ---- as text ---- */

static void name_text(void *context, const char *name, char *value, size_t size) {
  (void)value, (void)size;
  fprintf(context, "%s%s", strcmp(name, "product") ? "," : "", name);
}

static void name_number(void *context, const char *name, double *value) {
  (void)value;
  fprintf(context, ",%s", name);
}

static void write_text(void *context, const char *name, char *value, size_t size) {
  (void)size;
  if (strcmp(name, "product")) fputc(',', context);
  for (; *value; value++) fputc(strchr(",\"\r\n", *value) ? ';' : *value, context);
}

static void write_number(void *context, const char *name, double *value) {
  (void)name;
  fputc(',', context);
  if (isfinite(*value)) fprintf(context, "%.6g", *value);
}

static char *line_of(void (*text)(void *, const char *, char *, size_t),
                     void (*number)(void *, const char *, double *), gs_bench_row_t *row) {
  char product[512], *line = NULL;
  size_t length;
  FILE *memory = open_memstream(&line, &length);
  if (!memory) abort(); /* a tool, and a few kilobytes */
  gs_gemm_format(product, sizeof product, &row->gemm);
  for (char *c = product; *c; c++)
    if (*c == '\t') *c = ' ';
  visit(&(visitor_t){text, number, memory}, row, product, sizeof product);
  fputc('\n', memory);
  if (fclose(memory) != 0) abort();
  return line;
}

char *gs_bench_columns(void) {
  return line_of(name_text, name_number, &(gs_bench_row_t){0});
}

char *gs_bench_row_text(const gs_bench_row_t *row) {
  gs_bench_row_t copy = *row;
  return line_of(write_text, write_number, &copy);
}

typedef struct {
  char *rest; /* NULL after the last field */
  const char *why;
} reading_t;

static char *next(reading_t *r) {
  char *field = strsep(&r->rest, ",");
  if (!field) r->why = "it has too few fields";
  return field;
}

static void read_text(void *context, const char *name, char *value, size_t size) {
  reading_t *r = context;
  char *field = next(r);
  (void)name;
  if (field && (size_t)snprintf(value, size, "%s", field) >= size) r->why = "a text is too long";
}

static void read_number(void *context, const char *name, double *value) {
  reading_t *r = context;
  char *field = next(r), *end;
  (void)name;
  *value = NAN;
  if (!field || !*field) return;
  *value = strtod(field, &end);
  if (*end || !isfinite(*value)) r->why = "a field is not a number";
}

const char *gs_bench_row_read(gs_bench_row_t *row, char *line) {
  char product[512];
  reading_t r = {line, NULL};
  const char *why;
  line[strcspn(line, "\r\n")] = '\0';
  *row = (gs_bench_row_t){0};
  visit(&(visitor_t){read_text, read_number, &r}, row, product, sizeof product);
  if (r.why) return r.why;
  if (r.rest) return "it has too many fields";
  for (char *c = product; *c; c++)
    if (*c == ' ') *c = '\t';
  return gs_gemm_parse(product, &row->gemm, &why) == GS_OK ? NULL : why;
}
