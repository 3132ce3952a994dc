#define _GNU_SOURCE
#include "fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "gs_table.h"
#include "output.h"
#include "points.h"
#include "progress.h"
#include "rank.h"
#include "tools.h"

#define TILES_MAX 512
#define ROUNDS    5

/* A tile, and the sums of the logarithms of what it took over what was predicted: whole, and with k split. */
typedef struct {
  gs_kernel_t tile;
  double sum[2];
  int count[2];
} tile_t;

static tile_t tiles[TILES_MAX];
static int tile_count;
static bool in_use; /* not while the model is being fitted */
static tile_t families[GS_FAMILY_COUNT];

static gs_kernel_t tile_of(const gs_kernel_t *k) {
  gs_kernel_t tile = *k;
  tile.ab_type = tile.d_type = GS_TYPE_F16;
  tile.transa = GS_OP_T, tile.transb = GS_OP_N;
  return tile;
}

static tile_t *find(const gs_kernel_t *tile) {
  for (int i = 0; i < tile_count; i++)
    if (!memcmp(&tiles[i].tile, tile, sizeof *tile)) return &tiles[i];
  return NULL;
}

double gs_fit_factor(const gs_kernel_t *k, int split_k) {
  if (!in_use) return 1;
  gs_kernel_t tile = tile_of(k);
  const tile_t *known = find(&tile);
  int split = split_k > 1;
  if (!known || !known->count[split]) known = &families[k->family];
  return known->count[split] ? exp(known->sum[split] / known->count[split]) : 1;
}

static void add(const gs_kernel_t *tile, int split, double factor) {
  tile_t *known = find(tile), *family = &families[tile->family];
  if (!known && tile_count < TILES_MAX) {
    known = &tiles[tile_count++];
    *known = (tile_t){.tile = *tile};
  }
  if (!known || !(factor > 0) || !isfinite(factor)) return;
  known->sum[split] += log(factor), known->count[split]++;
  family->sum[split] += log(factor), family->count[split]++;
}

void gs_fit_add(const gs_kernel_t *k, int split_k, double predicted_us, double us) {
  gs_kernel_t tile = tile_of(k);
  add(&tile, split_k > 1, us / predicted_us);
}

void gs_fit_clear(void) {
  tile_count = 0, in_use = false;
  memset(families, 0, sizeof families);
}

/* ---- kept ---- */

static bool file_of(const char *gpu, bool make, char *path, size_t size) {
  char slug[64], folder[4096];
  gs_gpu_slug(gpu, slug, sizeof slug);
  return gs_cache_path(make, folder, sizeof folder) &&
         (size_t)snprintf(path, size, "%s/%s.model", folder, slug) < size;
}

int gs_fit_load(const char *gpu) {
  char path[4200], line[256], id[GS_KERNEL_ID_MAX];
  double factor[2];
  gs_fit_clear();
  FILE *file = file_of(gpu, false, path, sizeof path) ? fopen(path, "re") : NULL;
  while (file && fgets(line, sizeof line, file)) {
    gs_kernel_t k;
    if (sscanf(line, "%63s %lf %lf", id, &factor[0], &factor[1]) != 3 || !gs_kernel_parse(id, &k)) continue;
    for (int split = 0; split < 2; split++)
      if (factor[split] > 0) add(&k, split, factor[split]);
  }
  if (file) fclose(file);
  in_use = tile_count > 0;
  return tile_count;
}

bool gs_fit_save(const char *gpu, char *path, size_t size) {
  gs_output_t output;
  if (!file_of(gpu, true, path, size)) {
    gs_say("neither XDG_CACHE_HOME nor HOME is an absolute path where what was fitted could be kept");
    return false;
  }
  if (!gs_output_open(&output, path)) return false;
  fprintf(output.file,
          "# %s: what kernels take, over what the cost model predicts: whole, k split (0: not measured)\n",
          gpu);
  for (int i = 0; i < tile_count; i++) {
    char id[GS_KERNEL_ID_MAX];
    double factor[2];
    gs_kernel_format(id, sizeof id, &tiles[i].tile);
    for (int split = 0; split < 2; split++)
      factor[split] = tiles[i].count[split] ? exp(tiles[i].sum[split] / tiles[i].count[split]) : 0;
    fprintf(output.file, "%s\t%.4f\t%.4f\n", id, factor[0], factor[1]);
  }
  in_use = tile_count > 0;
  return gs_output_commit(&output);
}

/* ---- measured ---- */

/* Few tiles and deep, many tiles, weights from memory at few tokens, one k-tile. */
static const struct {
  int m, n, k;
} probes[] = {{256, 8, 1024},   {4096, 8, 4096},    {1024, 32, 4096},   {256, 256, 4096}, {512, 512, 512},
              {2048, 64, 2048}, {1024, 1024, 1024}, {4096, 1024, 1024}, {4096, 1024, 64}, {2048, 2048, 128}};
#define PROBES (int)(sizeof probes / sizeof *probes)

static gs_gemm_t probe(int i) {
  return gs_points_packed(GS_OP_T, GS_OP_N, probes[i].m, probes[i].n, probes[i].k, GS_TYPE_F16, GS_TYPE_F16,
                          GS_EPILOGUE_DEFAULT);
}

/* What one kernel takes; 0 where it refuses. */
static double measure(gs_bench_t *bench, int index, int split_k) {
  gs_contender_t *contender = calloc(1, sizeof *contender);
  if (!contender) return 0;
  *contender = (gs_contender_t){.kind = GS_BY_KERNEL, .index = index, .split_k = split_k, .raster = 1};
  double us = 0;
  if (gs_bench_ready(bench, contender)) {
    gs_bench_warm(bench, contender);
    gs_bench_gpu(bench, &contender, 1, ROUNDS);
    us = gs_contender_us(contender);
  }
  gs_bench_done(contender);
  free(contender);
  return us;
}

/* The kernel whole, and at its best split. */
static void fit_kernel(gs_bench_t *bench, int index) {
  gs_candidate_t best[2];
  const gs_rank_for_t whole = {&bench->gemm, 1, GS_BENCH_WORKSPACE},
                      any = {&bench->gemm, 16, GS_BENCH_WORKSPACE};
  int count = gs_rank_splits(bench->gpu, index, &whole, best, 1);
  if (count && gs_rank_splits(bench->gpu, index, &any, &best[1], 1) && best[1].split_k > 1) count++;
  gs_kernel_t k = gs_shipped_at(index);
  for (int i = 0; i < count; i++) {
    double us = measure(bench, index, best[i].split_k);
    if (us > 0 && gs_gpu_ok(bench->gpu)) gs_fit_add(&k, best[i].split_k, best[i].us, us);
  }
}

int gs_fit(gs_bench_t *bench, const volatile sig_atomic_t *stopped) {
  char path[4200];
  gs_progress_t progress = gs_progress_begin();
  gs_fit_clear();
  for (int i = 0; i < PROBES && !*stopped && gs_gpu_ok(bench->gpu); i++) {
    gs_gemm_t g = probe(i);
    if (!gs_bench_product(bench, &g)) continue;
    for (int k = 0; k < gs_shipped_count() && !*stopped; k++) {
      gs_kernel_t kernel = gs_shipped_at(k);
      gs_progress_show(&progress, (i + (double)k / gs_shipped_count()) / PROBES, "fitting the cost model");
      if (gs_kernel_runs_on(&kernel, bench->gpu->device.sm) &&
          gs_kernel_supports(&kernel, &g) == GS_REASON_SERVED)
        fit_kernel(bench, k);
    }
  }
  gs_progress_clear(&progress);
  if (*stopped || !gs_gpu_ok(bench->gpu)) {
    gs_say("%s: nothing was kept", *stopped ? "interrupted" : bench->gpu->fault);
    return *stopped ? 128 + *stopped : GS_EXIT_FALSE;
  }
  if (!tile_count) {
    gs_say("no kernel could be measured: nothing was kept");
    return GS_EXIT_FALSE;
  }
  if (!gs_fit_save(bench->gpu->device.name, path, sizeof path)) return GS_EXIT_FALSE;
  printf("%s: %d tiles on %d products\n", path, tile_count, PROBES);
  return GS_EXIT_OK;
}
