/* Tables of tuned kernels: text, one row a line.
 *
 *   # comment
 *   format: 1                          header, `key: value` lines before the first row; all are required
 *   gpu: NVIDIA H200                   but note:
 *   arch: sm_90
 *   sms: 132
 *   cublas: 13.1.0
 *   method: gpu clock, ...             how the rows were measured, free text
 *   date: 2026-11-29
 *   predicted: yes                     optional: nothing here was measured, no row is proven
 *   T N 4096 4096 f16 f16 32f default single 1 16 mma_f16_f16_tn_64x32x64_s6_w4 1 1 5.10 5.92 9.1 15.2
 *
 * A row's tab-separated fields: transa transb m k, type of A and B, type of C and D, compute type, epilogue,
 * batch, n_lo n_hi (the interval of n it claims, both ends included), kernel id, split_k, raster,
 * us and library us (gpu clock), wall us and library wall us (0: not measured); and, where it was measured, server us
 * and library server us (wall, at Poisson arrivals).
 *
 * The batch is "single", or "strided:12" for a strided batch of 12 products: a row serves that number alone, since
 * who wins depends on it as on n. (Tables from before that say "strided": such rows are refused, the others stay.)
 *
 * In the place of a kernel id a row may name an algorithm of cuBLASLt (gs_algo.h), which serves cublasGemmEx too:
 *   T N 4096 4096 f16 f16 32f default single 8 8 lt_66_t20_s36_r0_z1_c4_i0_h12 1 1 5.10 5.92 9.1 15.2
 * split_k is then the algorithm's own and raster is 1. Algorithms are numbered anew in every build: such a row is
 * proven for the build of the header alone, and the library is asked again when the row is first used. Reduction
 * schemes other than NONE and COMPUTE_TYPE, which round partial sums, are refused, as is 16f.
 *
 * Or a kernel that is not shipped, by its id and the first 64 bits of its machine code's SHA-256:
 *   ... mma_f16_f16_tn_96x64x32_s4_w4-0123456789abcdef ...
 * The cubin lies beside the table: app.table.d/mma_f16_f16_tn_96x64x32_s4_w4-0123456789abcdef.cubin for app.table.
 * It must be a regular file (links are followed) of at most 4 MiB that belongs to the user or root, that nobody
 * else may write, and that has this content; else the row is refused. A table and its folder move together:
 * gemmshim table copy does it. */
#ifndef GS_TABLE_H
#define GS_TABLE_H

#include "gs_algo.h"
#include "gs_kernel.h"

#define GS_TABLE_FORMAT   1
#define GS_ROW_FIELDS     18
#define GS_ROW_FIELDS_MAX 20         /* with the times at a server */
#define GS_ROW_BATCH_MAX  UINT16_MAX /* as many as the grid of a kernel has room for */

typedef struct {
  uint8_t transa, transb, ab_type, d_type, compute, epilogue;
  uint16_t batch; /* products of a strided batch; 0: a single product */
  int32_t m, k;
} gs_key_t; /* zeroed, then filled in; compared byte by byte */

typedef struct {
  gs_key_t key;
  int32_t n_lo, n_hi;
  bool by_library;    /* algo computes it, else kernel */
  gs_kernel_t kernel; /* zero where by_library */
  int32_t index;      /* of the kernel, as gs_kernel_at of extras.h; -1 where by_library */
  gs_algo_t algo;
  int16_t split_k, raster;
  float us, library_us;                                         /* gpu clock */
  float wall_us, library_wall_us, server_us, library_server_us; /* 0: not measured */
  int32_t line;                                                 /* in the file, from 1 */
} gs_row_t;

typedef struct {
  char gpu[64];
  char arch[8]; /* "sm_90" */
  int sms;
  int cublas[3]; /* major, minor, patch */
  char method[160];
  char date[16];
  bool predicted;
} gs_table_header_t;

typedef struct gs_table gs_table_t; /* frozen after loading: any number of readers, no lock */

/* Receives one line a fault: "file:line: what, why, what to do". */
typedef void (*gs_say_t)(void *context, const char *line);

/* Parses length bytes of text. A faulty row is refused with a line to say, and the others stay; a faulty
 * header, or more than GS_TABLE_FAULTS_MAX faults, refuses the file (GS_SYNTAX, GS_MISMATCH).
 * *out belongs to the caller: gs_table_free. */
#define GS_TABLE_FAULTS_MAX 20
gs_status_t gs_table_parse(const char *text, size_t length, const char *file, gs_say_t say, void *context,
                           gs_table_t **out);
/* The same from a regular file of at most 64 MiB (GS_IO, said, for anything else). */
gs_status_t gs_table_load(const char *file, gs_say_t say, void *context, gs_table_t **out);
void gs_table_free(gs_table_t *table);

const gs_table_header_t *gs_table_header(const gs_table_t *table);
int gs_table_rows(const gs_table_t *table);
const gs_row_t *gs_table_row(const gs_table_t *table, int index);
/* FNV-1a of the text as it was read: with the GPU and the cuBLAS build, all that decides what serves. */
uint64_t gs_table_digest(const gs_table_t *table);
/* How many rows were refused while reading. */
int gs_table_refused(const gs_table_t *table);

/* Of a product that a row can be for: single, or a strided batch of 1 to GS_ROW_BATCH_MAX. */
gs_key_t gs_key_of(const gs_gemm_t *g);
/* The row whose interval holds g's n, or NULL. */
const gs_row_t *gs_table_find(const gs_table_t *table, const gs_gemm_t *g);

/* Whether a row of a table of this GPU model may serve with this cuBLAS: measured with this very build, or
 * (kernels) won by 10% or more with another build of the same major. */
bool gs_row_proven(const gs_table_header_t *header, const gs_row_t *row, const int cublas[3]);

/* What computes it: a kernel's id, or an algorithm's text. GS_KERNEL_ID_MAX bytes hold it. */
int gs_row_name(char *buffer, size_t size, const gs_row_t *row);
/* Its batch, as the text has it: "single", "strided:12". 16 bytes hold it. */
int gs_row_batch(char *buffer, size_t size, const gs_row_t *row);
/* Whether its kernel lies beside the table. */
bool gs_row_is_extra(const gs_row_t *row);
/* GS_REASON_SERVED where the row's kernel or algorithm may serve g, else why not. */
gs_reason_t gs_row_supports(const gs_row_t *row, const gs_gemm_t *g);
int gs_row_format(char *buffer, size_t size, const gs_row_t *row); /* no newline; as snprintf */
int gs_table_header_format(char *buffer, size_t size, const gs_table_header_t *header);

/* The tables built into the library, by name ("nvidia-h200"). */
int gs_builtin_table_count(void);
const char *gs_builtin_table(int index, const char **name, size_t *length);

/* "NVIDIA H200" -> "nvidia-h200": the file name of a GPU's table, without ".table". */
void gs_gpu_slug(const char *gpu, char *slug, size_t size);

#endif
