#define _GNU_SOURCE
#include "dump.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "file.h"
#include "histogram.h"
#include "log.h"
#include "options.h"

#define APART    256 /* bytes, between what is copied */
#define PAGE     4096
#define HEAD_MAX 8192

/* One tensor; rows 0: it is not there. */
typedef struct {
  const char *name;
  uint8_t type; /* gs_type_t */
  int64_t rows, columns, ld, stride, batch;
  const char *lowest;          /* address on the device */
  size_t bytes, offset, first; /* from there; in memory; of the first element behind that */
} gs_part_t;

enum { A, B, C, D, REFERENCE, BIAS, PARTS };

static atomic_bool taken, over; /* over: there is a file, or there can be none */
/* Written by who has taken it. */
static struct {
  bool fits;
  gs_part_t parts[PARTS];
  float host_scalars[2]; /* alpha, beta */
  size_t scalars;        /* where they lie in memory; 0: on the host */
  size_t bytes;
} held;
/* Locked by the driver for one context. Grows by doubling; what it grew out of stays, because letting go of locked
 * memory may wait for the device. */
static char *memory;
static size_t room;
static unsigned long long context;

bool gs_dump_wanted(void) {
  return *gs_option_text(GS_OPT_DUMP) && !atomic_load_explicit(&over, memory_order_relaxed);
}

void gs_dump_drop(void) {
  atomic_store(&taken, false);
}

void gs_dump_fork(void) {
  atomic_store(&over, true);
}

/* ---- what there is to copy ---- */

static void add(gs_part_t *part, const char *name, int type, const void *base, int64_t rows, int64_t columns,
                int64_t ld, int64_t stride, int64_t batch) {
  int64_t bytes = gs_type_bytes[type], far = stride * (batch - 1) * bytes;
  *part = (gs_part_t){.name = name,
                      .type = (uint8_t)type,
                      .rows = rows,
                      .columns = columns,
                      .ld = ld,
                      .stride = stride,
                      .batch = batch,
                      .lowest = (const char *)base + (far < 0 ? far : 0),
                      .first = (size_t)(far < 0 ? -far : 0),
                      .bytes = (size_t)(((columns - 1) * ld + rows) * bytes + (far < 0 ? -far : far)),
                      .offset = held.bytes};
  held.bytes += (part->bytes + APART - 1) / APART * APART;
}

static bool reads_c(const gs_call_t *call) {
  return call->at.c && (call->device_scalars || held.host_scalars[1] != 0);
}

static void lay_out(const gs_call_t *call, const void *reference) {
  const gs_gemm_t *g = &call->gemm;
  const gs_operands_t *at = &call->at;
  bool ta = g->transa != GS_OP_N, tb = g->transb != GS_OP_N;
  memset(&held, 0, sizeof held);
  if (!call->device_scalars) {
    memcpy(&held.host_scalars[0], at->alpha, sizeof(float));
    memcpy(&held.host_scalars[1], at->beta, sizeof(float));
  }
  add(&held.parts[A], "a", g->a_type, at->a, ta ? g->k : g->m, ta ? g->m : g->k, g->lda, g->stride_a,
      g->batch);
  add(&held.parts[B], "b", g->b_type, at->b, tb ? g->n : g->k, tb ? g->k : g->n, g->ldb, g->stride_b,
      g->batch);
  if (reads_c(call)) add(&held.parts[C], "c", g->c_type, at->c, g->m, g->n, g->ldc, g->stride_c, g->batch);
  add(&held.parts[D], "d", g->d_type, at->d, g->m, g->n, g->ldd, g->stride_d, g->batch);
  add(&held.parts[REFERENCE], "reference", g->d_type, reference, g->m, g->n, g->ldd, g->stride_d, g->batch);
  if (gs_epilogue_has_bias(g->epilogue))
    add(&held.parts[BIAS], "bias", g->d_type, at->bias, g->m, 1, g->m, 0, 1);
  if (call->device_scalars) held.scalars = held.bytes, held.bytes += APART;
}

static const gs_part_t nothing; /* rows 0 */

static size_t size_of(const gs_part_t *part) {
  return (size_t)(part->rows * part->columns * part->batch) * gs_type_bytes[part->type];
}

/* In memory and in the file, which has no gaps but repeats what a stride of 0 repeats. */
static bool is_small(void) {
  size_t written = 0;
  for (int i = 0; i < PARTS; i++) written += size_of(&held.parts[i]);
  return held.bytes <= GS_DUMP_BYTES_MAX && written <= GS_DUMP_BYTES_MAX;
}

static bool make_room(void) {
  size_t wanted = room ? room : 1 << 20;
  void *new = NULL;
  CUstreamCaptureMode mode;
  if (held.bytes <= room) return true;
  while (wanted < held.bytes) wanted *= 2;
  if (posix_memalign(&new, PAGE, wanted)) return false;
  bool locked = gs_capture_relax(&mode);
  if (locked) {
    locked = gs_driver.cuMemHostRegister(new, wanted, 0) == CUDA_SUCCESS;
    gs_capture_restore(mode);
  }
  if (!locked) return free(new), false;
  memory = new, room = wanted;
  return true;
}

static bool in_context(const gs_place_t *place) {
  unsigned long long id;
  if (gs_driver.cuCtxGetId(place->context, &id) != CUDA_SUCCESS) return false;
  if (!room) context = id;
  return context == id;
}

static void copy(const gs_part_t *part, CUstream stream) {
  if (!part->rows || !held.fits) return;
  held.fits = gs_driver.cuMemcpyDtoHAsync(memory + part->offset, (CUdeviceptr)part->lowest, part->bytes,
                                          stream) == CUDA_SUCCESS;
}

bool gs_dump_begin(const gs_call_t *call, const gs_place_t *place, const void *reference) {
  if (atomic_exchange(&taken, true)) return false;
  lay_out(call, reference);
  held.fits = is_small() && in_context(place) && make_room();
  copy(&held.parts[C], call->stream); /* before the kernel writes over it */
  return true;
}

void gs_dump_copy(const gs_call_t *call) {
  static const int rest[] = {A, B, D, REFERENCE, BIAS};
  for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) copy(&held.parts[rest[i]], call->stream);
  const void *const scalars[] = {call->at.alpha, call->at.beta};
  for (size_t i = 0; i < 2 && held.scalars && held.fits; i++)
    held.fits =
        gs_driver.cuMemcpyDtoHAsync(memory + held.scalars + i * sizeof(float), (CUdeviceptr)scalars[i],
                                    sizeof(float), call->stream) == CUDA_SUCCESS;
}

/* ---- the file ---- */

typedef struct {
  char text[HEAD_MAX];
  size_t length;
} gs_head_t;

/* What does not fit ends the text early, and the file is not written. */
__attribute__((format(printf, 2, 3))) static void put(gs_head_t *head, const char *format, ...) {
  va_list list;
  va_start(list, format);
  int length = vsnprintf(head->text + head->length, HEAD_MAX - head->length, format, list);
  va_end(list);
  head->length =
      length < 0 || head->length + (size_t)length >= HEAD_MAX ? HEAD_MAX : head->length + (size_t)length;
}

/* A string of the metadata, with what JSON wants escaped left out. */
static void put_text(gs_head_t *head, const char *name, const char *text) {
  put(head, ",\"%s\":\"", name);
  for (const char *c = text; *c; c++)
    if (*c == '\t')
      put(head, "\\t");
    else if (*c >= ' ' && *c != '"' && *c != '\\' && *c != 0x7f)
      put(head, "%c", *c);
  put(head, "\"");
}

static void describe(gs_head_t *head, const gs_gemm_t *g, const gs_row_t *row, double off,
                     const gs_compare_result_t *result) {
  char text[512];
  float scalars[2];
  const gs_histogram_file_t *process = gs_histogram_file();
  memcpy(scalars, held.scalars ? (const void *)(memory + held.scalars) : held.host_scalars, sizeof scalars);
  put(head, "{\"__metadata__\":{\"gemmshim\":\"" GS_VERSION "\"");
  gs_gemm_format(text, sizeof text, g);
  put_text(head, "product", text);
  gs_row_name(text, sizeof text, row);
  put_text(head, "row", text);
  put(head, ",\"alpha\":\"%.9g\",\"beta\":\"%.9g\",\"off\":\"%.6g\",\"largest_difference\":\"%.9g\"",
      (double)scalars[0], (double)scalars[1], off, (double)result->max_error);
  put(head, ",\"not_finite_in_one\":\"%llu\"", result->misfits);
  if (process) {
    put_text(head, "gpu", process->gpu);
    put(head, ",\"cublas\":\"%d.%d.%d\"", process->cublas[0], process->cublas[1], process->cublas[2]);
  }
  put(head, "}");
}

/* Wider elements first, so that each tensor is aligned to its own. */
static void sort_parts(const gs_part_t *sorted[PARTS]) {
  int count = 0;
  for (int bytes = 4; bytes >= 2; bytes /= 2)
    for (int i = 0; i < PARTS; i++)
      if (gs_type_bytes[held.parts[i].type] == bytes) sorted[count++] = &held.parts[i];
  while (count < PARTS) sorted[count++] = &nothing;
}

static void describe_parts(gs_head_t *head, const gs_part_t *const parts[PARTS]) {
  static const char *const types[GS_TYPE_COUNT] = {
      [GS_TYPE_F16] = "F16", [GS_TYPE_BF16] = "BF16", [GS_TYPE_F32] = "F32"};
  size_t at = 0;
  for (int i = 0; i < PARTS; i++) {
    const gs_part_t *part = parts[i];
    if (!part->rows) continue;
    put(head, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld,%lld,%lld],\"data_offsets\":[%zu,%zu]}", part->name,
        types[part->type], (long long)part->batch, (long long)part->columns, (long long)part->rows, at,
        at + size_of(part));
    at += size_of(part);
  }
  put(head, "}");
  while (head->length % 8 && head->length < HEAD_MAX) put(head, " ");
}

static bool put_bytes(int fd, const void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t written = write(fd, (const char *)bytes + done, size - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += (size_t)written;
  }
  return true;
}

/* Columns without gaps by one write a matrix, others by one a column. */
static bool put_part(int fd, const gs_part_t *part) {
  int64_t bytes = gs_type_bytes[part->type];
  bool dense = part->ld == part->rows, fine = true;
  int64_t pieces = dense ? 1 : part->columns, rows = dense ? part->rows * part->columns : part->rows;
  const char *first = memory + part->offset + part->first;
  for (int64_t z = 0; z < part->batch && part->rows; z++)
    for (int64_t j = 0; j < pieces && fine; j++)
      fine = put_bytes(fd, first + (z * part->stride + j * part->ld) * bytes, (size_t)(rows * bytes));
  return fine;
}

static bool put_all(int fd, const gs_head_t *head, const gs_part_t *const parts[PARTS]) {
  unsigned char length[8];
  if (head->length == HEAD_MAX) return errno = EOVERFLOW, false;
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)(head->length >> 8 * i);
  bool fine = put_bytes(fd, length, sizeof length) && put_bytes(fd, head->text, head->length);
  for (int i = 0; i < PARTS && fine; i++) fine = put_part(fd, parts[i]);
  return fine;
}

void gs_dump_write(const gs_gemm_t *g, const gs_row_t *row, double off, const gs_compare_result_t *result) {
  static gs_head_t head;
  const gs_part_t *parts[PARTS];
  char path[512] = "";
  if (!held.fits) {
    gs_log(GS_LOG_FAULT,
           "GEMMSHIM_DUMP: the operands (%zu bytes) were not copied: beyond %u MiB, no memory, or another "
           "context's",
           held.bytes, GS_DUMP_BYTES_MAX >> 20);
    return;
  }
  if (atomic_exchange(&over, true)) return;
  head.length = 0;
  describe(&head, g, row, off, result);
  sort_parts(parts);
  describe_parts(&head, parts);
  int fd = gs_file_create(gs_option_text(GS_OPT_DUMP), GS_DUMP_SUFFIX, path, sizeof path);
  bool fine = fd >= 0 && put_all(fd, &head, parts);
  int error = errno;
  if (fd >= 0 && close(fd) != 0) fine = false;
  if (fine) {
    gs_log(GS_LOG_FAULT, "operands and both results: gemmshim verify --operands %s", path);
    return;
  }
  if (fd >= 0) unlink(path);
  gs_log(GS_LOG_FAULT, "GEMMSHIM_DUMP=%.200s: %s; no operands are written", gs_option_text(GS_OPT_DUMP),
         strerror(error));
}
