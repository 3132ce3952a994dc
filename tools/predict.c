#define _GNU_SOURCE
#include "predict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "csv.h"
#include "draft.h"
#include "points.h"
#include "rank.h"
#include "tools.h"

#define LEAD_WORTH 1.05 /* published leads below this may be noise */
#define SPLIT_MAX  16

const char gs_predict_names[] = "a100";

/* What the cost model asks of a GPU. Memory: HBM2e, two bits a line and clock, 2.04 TB/s. */
static const gs_gpu_t a100 = {.device = {.name = "NVIDIA A100-SXM4-80GB", .sm = 80, .sms = 108},
                              .l2_bytes = 40 << 20,
                              .clock_khz = 1410000,
                              .memory_khz = 1593000,
                              .memory_bits = 5120,
                              .sm_registers = 64 << 10,
                              .sm_smem = 164 << 10,
                              .sm_threads = 2048,
                              .sm_blocks = 32,
                              .block_smem = 1 << 10};

static gs_table_header_t header_of(const gs_gpu_t *gpu) {
  gs_table_header_t header = {.sms = gpu->device.sms, .predicted = true};
  time_t now = time(NULL);
  struct tm day;
  snprintf(header.gpu, sizeof header.gpu, "%s", gpu->device.name);
  snprintf(header.arch, sizeof header.arch, "sm_%d", gpu->device.sm);
  snprintf(header.method, sizeof header.method,
           "none was measured: cost model, tiles and leads (against cuBLASLt autotuning) of published "
           "kernels that "
           "accumulate in fp32");
  strftime(header.date, sizeof header.date, "%Y-%m-%d", gmtime_r(&now, &day));
  return header;
}

/* A row-major C[m x n] = A[m x k] B[k x n], B transposed: column-major, that is TN with m and n exchanged. */
static gs_gemm_t product_of(int64_t m, int64_t n, int64_t k) {
  return gs_points_packed(GS_OP_T, GS_OP_N, n, m, k, GS_TYPE_F16, GS_TYPE_F16, GS_EPILOGUE_DEFAULT);
}

/* Of the shipped kernels the one that the model prefers; bm, bn: of that tile alone, 0: of any. -1: none. */
static gs_candidate_t choose(const gs_gpu_t *gpu, const gs_gemm_t *g, int bm, int bn) {
  const gs_rank_for_t to = {g, SPLIT_MAX, GS_BENCH_WORKSPACE};
  gs_candidate_t best = {.index = -1, .us = INFINITY};
  for (int i = 0; i < gs_shipped_count(); i++) {
    gs_kernel_t k = gs_shipped_at(i);
    if (bm && (k.family != GS_FAMILY_MMA || k.bm != bm || k.bn != bn)) continue;
    if (!gs_kernel_runs_on(&k, gpu->device.sm) || gs_kernel_supports(&k, g) != GS_REASON_SERVED) continue;
    gs_candidate_t one = gs_rank_guessed(gpu, &k, &to);
    one.index = i;
    if (one.us < best.us) best = one;
  }
  return best;
}

typedef struct {
  int m, n, k, bm, bn, accumulator, lead;
} gs_columns_t;

static bool find_columns(const gs_csv_t *csv, const char *path, gs_columns_t *at) {
  const struct {
    const char *name;
    int *column;
  } wanted[] = {{"m", &at->m},
                {"n", &at->n},
                {"k", &at->k},
                {"bm", &at->bm},
                {"bn", &at->bn},
                {"accumulator", &at->accumulator},
                {"offline_lt_autotune", &at->lead}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    if ((*wanted[i].column = gs_csv_column(csv, wanted[i].name)) < 0) {
      gs_say("%s: has no column %s", path, wanted[i].name);
      return false;
    }
  return true;
}

static int whole(const gs_csv_t *csv, int row, int column) {
  double value = gs_csv_number(csv, row, column);
  return value >= 1 && value <= 1 << 30 ? (int)value : 0;
}

/* True: a row was added. False: the line is none that makes one; or, said, memory has run out. */
static bool add_line(gs_draft_t *draft, const gs_gpu_t *gpu, const gs_csv_t *csv, const gs_columns_t *at,
                     int line) {
  double lead = gs_csv_number(csv, line, at->lead);
  int m = whole(csv, line, at->m), n = whole(csv, line, at->n), k = whole(csv, line, at->k);
  if (strcmp(gs_csv_text(csv, line, at->accumulator), "f32") || !(lead >= LEAD_WORTH) || !m || !n || !k)
    return false;
  gs_gemm_t g = product_of(m, n, k);
  int bm = whole(csv, line, at->bn), bn = whole(csv, line, at->bm);
  gs_candidate_t best = bm && bn ? choose(gpu, &g, bm, bn) : (gs_candidate_t){.index = -1};
  if (best.index < 0) best = choose(gpu, &g, 0, 0);
  if (best.index < 0) return false;
  gs_row_t row = {.key = gs_key_of(&g),
                  .n_lo = (int32_t)g.n,
                  .n_hi = (int32_t)g.n,
                  .index = best.index,
                  .kernel = gs_shipped_at(best.index),
                  .split_k = (int16_t)best.split_k,
                  .raster = 1,
                  .us = (float)best.us,
                  .library_us = (float)(best.us * lead)};
  return gs_draft_carry(draft, &row);
}

int gs_predict(const char *gpu, const char *path, const char *output) {
  gs_csv_t csv;
  gs_draft_t draft;
  gs_columns_t at;
  if (strcmp(gpu, "a100") != 0) {
    gs_say("no constants are known of \"%s\": one of %s", gpu, gs_predict_names);
    return GS_EXIT_USAGE;
  }
  if (!gs_csv_read(&csv, path)) return GS_EXIT_MACHINE;
  gs_table_header_t header = header_of(&a100);
  int status = GS_EXIT_MACHINE;
  if (find_columns(&csv, path, &at) && gs_draft_fresh(&draft, output, &header)) {
    int added = 0;
    for (int line = 0; line < csv.rows; line++) added += add_line(&draft, &a100, &csv, &at, line);
    if (gs_draft_write(&draft)) {
      printf("%s: %d rows predicted from %d lines; none is measured\n", output, added, csv.rows);
      status = GS_EXIT_OK;
    }
    gs_draft_close(&draft);
  }
  gs_csv_free(&csv);
  return status;
}
