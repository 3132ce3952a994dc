#define _GNU_SOURCE
#include "gs_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extras.h"
#include "file.h"

#define HASH_FUNCTION(key, length, out) ((out) = gs_key_hash(key, length))
static unsigned gs_key_hash(const void *key, size_t length);
#define HASH_NONFATAL_OOM          1 /* else uthash ends the process */
#define uthash_nonfatal_oom(added) (oom = true)
#include <uthash.h>

#define FILE_BYTES_MAX (64 << 20)

/* All rows of one key: rows[first .. first + count), by rising n. */
typedef struct {
  gs_key_t key;
  int first, count;
  UT_hash_handle hh;
} gs_bucket_t;

struct gs_table {
  gs_table_header_t header;
  gs_row_t *rows;
  int row_count, row_room, refused;
  uint64_t digest;
  gs_bucket_t *buckets; /* an array, which the hash links */
  gs_bucket_t *by_key;
};

/* What a reader carries along: where it is, whom to tell, how many faults so far. */
typedef struct {
  const char *file;
  int line;
  gs_say_t say;
  void *context;
  int faults;
  unsigned seen; /* header keys, a bit each */
} gs_reader_t;

static unsigned gs_key_hash(const void *key, size_t length) {
  uint64_t words[2] = {0, 0};
  memcpy(words, key, length);
  uint64_t hash = (words[0] ^ words[1] * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
  return (unsigned)(hash >> 32);
}
_Static_assert(sizeof(gs_key_t) == 16, "hashed as two words, without padding");

__attribute__((format(printf, 2, 3))) static void fault(gs_reader_t *reader, const char *format, ...) {
  char what[448], line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  snprintf(line, sizeof line, "%s:%d: %s", reader->file, reader->line, what);
  if (reader->say) reader->say(reader->context, line);
  reader->faults++;
}

/* ---- header ---- */

#define HEADER_KEYS(X) X(format) X(gpu) X(arch) X(sms) X(cublas) X(method) X(date) X(predicted)
#define X(name)        HEADER_##name,
enum { HEADER_KEYS(X) HEADER_COUNT };
#undef X
static const char *const header_keys[] = {
#define X(name) #name,
    HEADER_KEYS(X)
#undef X
};

static bool copy_text(char *to, size_t size, const char *from) {
  return *from && (size_t)snprintf(to, size, "%s", from) < size;
}

static bool header_value(gs_table_header_t *h, int key, const char *value) {
  int end = 0, format;
  switch (key) {
  case HEADER_format:
    return sscanf(value, "%d%n", &format, &end) == 1 && !value[end] && format == GS_TABLE_FORMAT;
  case HEADER_gpu:
    return copy_text(h->gpu, sizeof h->gpu, value);
  case HEADER_arch:
    return copy_text(h->arch, sizeof h->arch, value) && strncmp(value, "sm_", 3) == 0;
  case HEADER_sms:
    return sscanf(value, "%d%n", &h->sms, &end) == 1 && !value[end] && h->sms > 0;
  case HEADER_cublas:
    return sscanf(value, "%d.%d.%d%n", &h->cublas[0], &h->cublas[1], &h->cublas[2], &end) == 3 && !value[end];
  case HEADER_method:
    return copy_text(h->method, sizeof h->method, value);
  case HEADER_date:
    return copy_text(h->date, sizeof h->date, value);
  default:
    h->predicted = strcmp(value, "yes") == 0;
    return h->predicted || strcmp(value, "no") == 0;
  }
}

static void read_header(gs_table_t *table, gs_reader_t *reader, char *line) {
  char *colon = strchr(line, ':');
  *colon = '\0';
  char *value = colon + 1 + strspn(colon + 1, " \t");
  int key = gs_name_index(line, header_keys, HEADER_COUNT);
  if (key < 0)
    fault(reader, "unknown header '%.32s'; write a newer format's table with a newer gemmshim", line);
  else if (reader->seen & 1u << key)
    fault(reader, "header '%s' stands twice; keep one", line);
  else if (!header_value(&table->header, key, value))
    fault(reader, "header '%s: %.64s' is not valid%s", line, value,
          key == HEADER_format ? "; this gemmshim reads format 1" : "; see include/gs_table.h");
  if (key >= 0) reader->seen |= 1u << key;
}

static bool header_complete(gs_reader_t *reader) {
  int before = reader->faults;
  for (int key = 0; key < HEADER_predicted; key++)
    if (!(reader->seen & 1u << key))
      fault(reader, "header '%s' is missing above the first row", header_keys[key]);
  return reader->faults == before;
}

int gs_table_header_format(char *buffer, size_t size, const gs_table_header_t *h) {
  return snprintf(
      buffer, size,
      "format: %d\ngpu: %s\narch: %s\nsms: %d\ncublas: %d.%d.%d\nmethod: %s\ndate: %s\npredicted: %s\n",
      GS_TABLE_FORMAT, h->gpu, h->arch, h->sms, h->cublas[0], h->cublas[1], h->cublas[2], h->method, h->date,
      h->predicted ? "yes" : "no");
}

/* ---- rows ---- */

static bool int_field(const char *text, int64_t lo, int64_t hi, int64_t *value) {
  char *end;
  errno = 0;
  *value = strtoll(text, &end, 10);
  return errno == 0 && end != text && !*end && *value >= lo && *value <= hi;
}

static bool us_field(const char *text, bool may_be_zero, float *value) {
  char *end;
  *value = strtof(text, &end);
  /* A nanosecond is the last digit that a row has. */
  return end != text && !*end && (*value >= 0.001f || (may_be_zero && *value >= 0)) && *value < 1e9f;
}

/* The gemm that a row describes at one n, packed: what its kernel must support. */
static gs_gemm_t row_gemm(const gs_row_t *row, int64_t n) {
  const gs_key_t *key = &row->key;
  gs_gemm_t g = {
      .transa = key->transa, .transb = key->transb, .a_type = key->ab_type, .b_type = key->ab_type};
  g.c_type = g.d_type = key->d_type;
  g.compute = key->compute, g.epilogue = key->epilogue;
  g.batch_kind = key->batch ? GS_BATCH_STRIDED : GS_BATCH_SINGLE, g.batch = key->batch ? key->batch : 1;
  g.align = 16, g.m = key->m, g.n = n, g.k = key->k;
  int64_t wide = 16 * (((g.m > g.n ? g.m : g.n) > g.k ? (g.m > g.n ? g.m : g.n) : g.k) / 16 + 1);
  g.lda = g.ldb = g.ldc = g.ldd = wide;
  return g;
}

/* "single", or "strided:" and how many products. */
static bool batch_field(gs_reader_t *reader, const char *text, uint16_t *batch) {
  static const char strided[] = "strided";
  const size_t length = sizeof strided - 1;
  int64_t count = 0;
  if (strcmp(text, strided) == 0)
    return fault(reader, "batch 'strided' does not say how many products, as in strided:12; put the number "
                         "that was measured, or run gemmshim tune again"),
           false;
  bool many = strncmp(text, strided, length) == 0 && text[length] == ':';
  if (many ? !int_field(text + length + 1, 1, GS_ROW_BATCH_MAX, &count) : strcmp(text, "single") != 0)
    return fault(reader, "batch '%.32s' is neither single nor strided:1 to strided:%d", text,
                 GS_ROW_BATCH_MAX),
           false;
  *batch = (uint16_t)count;
  return true;
}

/* Says what is wrong with the row's fields; true when nothing is. */
static bool read_fields(gs_reader_t *reader, char *const field[], int count, gs_row_t *row) {
#define NAME(index, member, names, count, what)                                                              \
  do {                                                                                                       \
    int found = gs_name_index(field[index], names, count);                                                   \
    if (found < 0) return fault(reader, "unknown %s '%.32s'", what, field[index]), false;                    \
    row->key.member = (uint8_t)found;                                                                        \
  } while (0)
#define INT(index, member, lo, hi, what)                                                                     \
  do {                                                                                                       \
    int64_t value;                                                                                           \
    if (!int_field(field[index], lo, hi, &value))                                                            \
      return fault(reader, "%s '%.32s' is not a number from %d to %d", what, field[index], lo, hi), false;   \
    row->member = (__typeof__(row->member))value;                                                            \
  } while (0)
#define US(index, member, zero, what)                                                                        \
  if (!us_field(field[index], zero, &row->member))                                                           \
  return fault(reader, "%s '%.32s' is not a time in us", what, field[index]), false
  for (int i = 0; i < 2; i++)
    if (field[i][0] && !field[i][1]) field[i][0] |= 32; /* N or n */
  NAME(0, transa, gs_op_names, GS_OP_C, "transa (N or T)");
  NAME(1, transb, gs_op_names, GS_OP_C, "transb (N or T)");
  INT(2, key.m, 1, INT32_MAX, "m");
  INT(3, key.k, 1, INT32_MAX, "k");
  NAME(4, ab_type, gs_type_names, GS_TYPE_COUNT, "type");
  NAME(5, d_type, gs_type_names, GS_TYPE_COUNT, "type");
  NAME(6, compute, gs_compute_names, GS_COMPUTE_COUNT, "compute type");
  NAME(7, epilogue, gs_epilogue_names, GS_EPILOGUE_COUNT, "epilogue");
  if (!batch_field(reader, field[8], &row->key.batch)) return false;
  INT(9, n_lo, 1, INT32_MAX, "n_lo");
  INT(10, n_hi, 1, INT32_MAX, "n_hi");
  INT(12, split_k, 1, 64, "split_k");
  INT(13, raster, 1, 1024, "raster");
  US(14, us, false, "time");
  US(15, library_us, false, "library time");
  US(16, wall_us, true, "wall time");
  US(17, library_wall_us, true, "library wall time");
  if (count == GS_ROW_FIELDS_MAX) {
    US(18, server_us, false, "server time");
    US(19, library_server_us, false, "library server time");
  }
#undef NAME
#undef INT
#undef US
  if (row->n_lo > row->n_hi)
    return fault(reader, "interval of n %d..%d is empty", row->n_lo, row->n_hi), false;
  return true;
}

static bool read_algo(gs_reader_t *reader, const char *id, gs_row_t *row) {
  if (!gs_algo_parse(id, &row->algo))
    return fault(reader, "'%.64s' is not a cuBLASLt algorithm as include/gs_algo.h spells it", id), false;
  row->by_library = true;
  row->index = -1;
  if (!gs_algo_exact(&row->algo))
    return fault(reader, "algorithm %.64s rounds partial sums (r%u); r0 or r2 is wanted", id,
                 row->algo.reduction),
           false;
  gs_gemm_t g = row_gemm(row, row->n_hi);
  gs_reason_t reason = gs_algo_supports(&g);
  if (reason == GS_REASON_SERVED && row->raster == 1) return true;
  fault(reader, "algorithm %.64s cannot serve this row: %s", id,
        reason == GS_REASON_SERVED ? "its raster must be 1" : gs_reason_texts[reason]);
  return false;
}

/* Shipped, or beside the table. */
static bool find_kernel(gs_reader_t *reader, const char *id, gs_row_t *row) {
  char why[384];
  uint64_t code;
  if (gs_extra_parse(id, &row->kernel, &code)) {
    row->index = gs_extra_load(reader->file, &row->kernel, code, why, sizeof why);
    if (row->index < 0) fault(reader, "%s; run gemmshim tune again", why);
    return row->index >= 0;
  }
  if (!gs_kernel_parse(id, &row->kernel)) return fault(reader, "'%.64s' is not a kernel id", id), false;
  row->index = gs_shipped_find(&row->kernel);
  if (row->index < 0) fault(reader, "kernel %.64s is not in this build; run gemmshim tune again", id);
  return row->index >= 0;
}

static bool read_kernel(const gs_table_t *table, gs_reader_t *reader, const char *id, gs_row_t *row) {
  if (strncmp(id, "lt_", 3) == 0) return read_algo(reader, id, row);
  if (!find_kernel(reader, id, row)) return false;
  int most = gs_kernel_split_max(&row->kernel, atoi(table->header.arch + 3));
  if (row->split_k > most)
    return fault(reader, "kernel %.64s splits k at most %d times on %s, not %d", id, most, table->header.arch,
                 row->split_k),
           false;
  gs_gemm_t g = row_gemm(row, row->n_hi);
  gs_reason_t reason = gs_kernel_supports(&row->kernel, &g);
  if (reason != GS_REASON_SERVED)
    return fault(reader, "kernel %.64s cannot serve this row: %s", id, gs_reason_texts[reason]), false;
  return true;
}

static gs_status_t read_row(gs_table_t *table, gs_reader_t *reader, char *line) {
  char *field[GS_ROW_FIELDS_MAX + 1];
  int count = 0;
  for (char *next = line; next && count <= GS_ROW_FIELDS_MAX; count++) field[count] = strsep(&next, "\t");
  gs_row_t row = {.line = reader->line};
  if (count != GS_ROW_FIELDS && count != GS_ROW_FIELDS_MAX) {
    fault(reader, "%s than the %d tab-separated fields of a row", count < GS_ROW_FIELDS ? "fewer" : "more",
          GS_ROW_FIELDS);
  } else if (read_fields(reader, field, count, &row) && read_kernel(table, reader, field[11], &row)) {
    if (table->row_count == table->row_room) {
      int room = table->row_room ? 2 * table->row_room : 256;
      gs_row_t *rows = realloc(table->rows, (size_t)room * sizeof *rows);
      if (!rows) return GS_NOMEM;
      table->rows = rows, table->row_room = room;
    }
    table->rows[table->row_count++] = row;
    return GS_OK;
  }
  table->refused++;
  return GS_OK;
}

/* ---- the whole ---- */

static int by_key_and_n(const void *left, const void *right) {
  const gs_row_t *a = left, *b = right;
  int order = memcmp(&a->key, &b->key, sizeof a->key);
  if (order) return order;
  return a->n_lo != b->n_lo ? (a->n_lo > b->n_lo) - (a->n_lo < b->n_lo) : a->line - b->line;
}

/* Sorts, refuses rows that overlap an earlier one of their key, and links each key's rows. */
static gs_status_t index_rows(gs_table_t *table, gs_reader_t *reader) {
  int kept = 0, buckets = 0;
  bool oom = false;
  if (table->row_count == 0) return GS_OK;
  qsort(table->rows, (size_t)table->row_count, sizeof *table->rows, by_key_and_n);
  for (int i = 0; i < table->row_count; i++) {
    gs_row_t *row = &table->rows[i], *last = kept ? &table->rows[kept - 1] : NULL;
    if (last && memcmp(&last->key, &row->key, sizeof row->key) == 0 && last->n_hi >= row->n_lo) {
      reader->line = row->line;
      fault(reader, "interval of n overlaps that of line %d for the same key; keep one", last->line);
      table->refused++;
      continue;
    }
    table->rows[kept++] = *row;
  }
  table->row_count = kept;
  table->buckets = calloc((size_t)kept, sizeof *table->buckets);
  if (!table->buckets) return GS_NOMEM;
  for (int i = 0; i < kept; i++) {
    if (i > 0 && memcmp(&table->rows[i - 1].key, &table->rows[i].key, sizeof(gs_key_t)) == 0) {
      table->buckets[buckets - 1].count++;
      continue;
    }
    gs_bucket_t *bucket = &table->buckets[buckets++];
    bucket->key = table->rows[i].key, bucket->first = i, bucket->count = 1;
    HASH_ADD(hh, table->by_key, key, sizeof bucket->key, bucket);
  }
  return oom ? GS_NOMEM : GS_OK;
}

/* One line of the file, with its NUL and without its end. Rows begin with an operation and a tab; all else
 * but comments is a header. */
static gs_status_t read_line(gs_table_t *table, gs_reader_t *reader, char *line, size_t length) {
  if (strlen(line) != length) return fault(reader, "a NUL byte: this is not a table"), GS_SYNTAX;
  while (length && line[length - 1] == '\r') line[--length] = '\0';
  if (!*line || *line == '#') return GS_OK;
  if (!strchr(line, '\t') && strchr(line, ':')) {
    read_header(table, reader, line);
    return reader->faults ? GS_SYNTAX : GS_OK;
  }
  if (!table->row_count && !table->refused && !header_complete(reader)) return GS_SYNTAX;
  gs_status_t status = read_row(table, reader, line);
  if (status == GS_OK && reader->faults > GS_TABLE_FAULTS_MAX) {
    fault(reader, "too many faults; the file is refused");
    return GS_SYNTAX;
  }
  return status;
}

static uint64_t digest_of(const char *text, size_t length) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
  return hash;
}

gs_status_t gs_table_parse(const char *text, size_t length, const char *file, gs_say_t say, void *context,
                           gs_table_t **out) {
  gs_reader_t reader = {.file = file, .say = say, .context = context};
  gs_table_t *table = calloc(1, sizeof *table);
  char *copy = malloc(length + 1);
  gs_status_t status = table && copy ? GS_OK : GS_NOMEM;
  if (status == GS_OK) {
    memcpy(copy, text, length);
    copy[length] = '\0';
    table->digest = digest_of(text, length);
  }
  for (char *line = copy, *end = copy + length; status == GS_OK && line < end;) {
    char *stop = memchr(line, '\n', (size_t)(end - line));
    if (!stop) stop = end;
    *stop = '\0';
    reader.line++;
    status = read_line(table, &reader, line, (size_t)(stop - line));
    line = stop + 1;
  }
  if (status == GS_OK && !table->row_count && !table->refused && !header_complete(&reader))
    status = GS_SYNTAX;
  if (status == GS_OK) status = index_rows(table, &reader);
  free(copy);
  if (status != GS_OK) gs_table_free(table), table = NULL;
  *out = table;
  return status;
}

gs_status_t gs_table_load(const char *file, gs_say_t say, void *context, gs_table_t **out) {
  const char *why;
  size_t length;
  char *text = gs_file_read(file, FILE_BYTES_MAX, false, &length, &why), line[512];
  *out = NULL;
  if (!text) {
    snprintf(line, sizeof line, "%s: cannot be read: %s", file, why);
    if (say) say(context, line);
    return GS_IO;
  }
  gs_status_t status = gs_table_parse(text, length, file, say, context, out);
  free(text);
  return status;
}

void gs_table_free(gs_table_t *table) {
  if (!table) return;
  HASH_CLEAR(hh, table->by_key);
  free(table->buckets);
  free(table->rows);
  free(table);
}

const gs_table_header_t *gs_table_header(const gs_table_t *table) {
  return &table->header;
}
int gs_table_rows(const gs_table_t *table) {
  return table->row_count;
}
const gs_row_t *gs_table_row(const gs_table_t *table, int index) {
  return &table->rows[index];
}
uint64_t gs_table_digest(const gs_table_t *table) {
  return table->digest;
}
int gs_table_refused(const gs_table_t *table) {
  return table->refused;
}

gs_key_t gs_key_of(const gs_gemm_t *g) {
  /* For real types C is T. */
  return (gs_key_t){.transa = g->transa == GS_OP_C ? GS_OP_T : g->transa,
                    .transb = g->transb == GS_OP_C ? GS_OP_T : g->transb,
                    .ab_type = g->a_type,
                    .d_type = g->d_type,
                    .compute = g->compute,
                    .epilogue = g->epilogue,
                    .batch = g->batch_kind == GS_BATCH_STRIDED ? (uint16_t)g->batch : 0,
                    .m = (int32_t)g->m,
                    .k = (int32_t)g->k};
}

static bool batch_fits(const gs_gemm_t *g) {
  return g->batch_kind == GS_BATCH_SINGLE ||
         (g->batch_kind == GS_BATCH_STRIDED && g->batch >= 1 && g->batch <= GS_ROW_BATCH_MAX);
}

const gs_row_t *gs_table_find(const gs_table_t *table, const gs_gemm_t *g) {
  if (!batch_fits(g) || g->m > INT32_MAX || g->n > INT32_MAX || g->k > INT32_MAX || g->a_type != g->b_type)
    return NULL;
  gs_key_t key = gs_key_of(g);
  gs_bucket_t *bucket;
  HASH_FIND(hh, table->by_key, &key, sizeof key, bucket);
  for (int i = 0; bucket && i < bucket->count; i++) {
    const gs_row_t *row = &table->rows[bucket->first + i];
    if (g->n >= row->n_lo && g->n <= row->n_hi) return row;
  }
  return NULL;
}
