/* The model of family mma. A multiprocessor walks its share of blocks in waves; one k-tile of a block takes as long as the
 * slowest of
 *   arithmetic        bm * bn * bk multiply-adds, 1024 a clock (mma.sync, sm_80 and up)
 *   tile loads        (bm + bn) * bk elements through L2, 64 bytes a clock
 *   fragment loads    each warp re-reads its rows and columns from shared memory, 128 bytes a clock
 * shared by the blocks that run together, but never less than a load's latency over the k-tiles in flight.
 * The whole takes at least the time that all operands need from memory; splitting k adds the traffic of
 * partial sums.
 * Family wgmma. The same, but that the products read shared memory themselves, and that a load under way takes longer
 * than the products of a k-tile in all but the largest tiles.
 * Family direct. The warps of a block share its chunks of 32 k, each with some in flight: a load's latency
 * for the first of them, then its share of it for every further one, or what multiplying takes where that is
 * more; the sums of all warps go through shared memory once, those of all blocks of a cluster once more. A
 * multiprocessor takes in no more than its share of what the second-level cache gives.
 * Family rows. A block's lanes share its loads of A: a latency for each round of those in flight, and a turn for each of
 * them and of B's. A multiprocessor takes in no more than the caches give, B once a row. What it computes is hidden
 * for the first column, and comes on top for every further one.
 * Family strip. A slice after another: what is loaded and stored for it through the second-level cache, shared by the blocks that
 * run together, but never less than it takes a block alone.
 * The constants were fitted to 14,120 times of 134 products (small ones of the grid, layers with n of 1 to 64), measured on
 * an H200 in 2026-11, so that the best is among the dozen that the models name: what it names costs 0.2% on average, 11% at
 * most; the first name alone 12%. Those of wgmma to 888 times of 21 products with n of 16 and more: of the first 4 it names
 * the best costs 0.3% on average, 4% at most. Those of rows to 1,458 times of
 * 18 products with n of 1, 2 and 4: of the first 3 shipped kernels it names the best costs 0.2% on average, 1.4% at most.
 * Those of strip were guessed: 192 times of 42 products with k of 64 and 128 are 14% off on average, from 0.6 to 1.4. */
#include "rank.h"

#include <math.h>

#include "fit.h"
#include "space.h"

#define FMA_PER_CLOCK        740.0 /* of mma.sync's 1024, with the rest of the loop */
#define L2_BYTES_PER_CLOCK   71.0
#define SMEM_BYTES_PER_CLOCK 103.0
#define LOAD_CLOCKS          1120.0 /* of a load from memory, with others under way */
#define STEP_CLOCKS          30.0   /* at least, for 16 of k: fragments, mma, their latency */
#define BARRIER_CLOCKS       27.0
#define BLOCK_CLOCKS         3000.0 /* to start, fill the pipeline, and store */
#define LAUNCH_US            1.19
#define SPLIT_US             7.5  /* last arriver: counters, a second pass */
#define CLUSTER_US           1.27 /* instead, where the parts of k are a cluster */
#define MEMORY_SHARE         0.71 /* of the nominal bandwidth */

#define WGMMA_FMA_PER_CLOCK 1400.0 /* of wgmma's 2048 */
#define WGMMA_LOAD_CLOCKS   2180.0 /* of a k-tile, over those in flight but two */
#define WGMMA_BLOCK_CLOCKS  4730.0
/* From 8192x8192x1024 and 8192x2048x512 by 128x64x64_s2_w4: 270 and 37.6 us. */
#define WGMMA_LEAST_IN_FLIGHT 1.25

#define STRIP_BYTES_PER_CLOCK 36.0
#define STRIP_SLICE_CLOCKS    700.0
#define STRIP_SLOW_CLOCKS     5000.0 /* of a slice that is not stored straight */
#define STRIP_BLOCK_CLOCKS    3000.0

#define DIRECT_CLOCKS     1377.0 /* of a block: to start, multiply the last chunk, reduce, store */
#define DIRECT_LAUNCH_US  1.63
#define DIRECT_MMA_CLOCKS 36.0 /* of one instruction of a warp, with what it needs around it */

#define ROWS_CLOCKS          600.0 /* of a block: to start, reduce, store */
#define ROWS_ROUND_CLOCKS    500.0
#define ROWS_LOAD_CLOCKS     0.5  /* of a warp's load, of all that are in flight */
#define ROWS_COLUMN_CLOCKS   16.0 /* of what a warp loaded of A, by a column beyond the product's first */
#define ROWS_BYTES_PER_CLOCK 200.0
#define ROWS_LAUNCH_US       1.46

static const int splits[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64};
#define SPLITS (int)(sizeof splits / sizeof *splits)

static double ceil_div(double a, double b) {
  return ceil(a / b);
}

static double mma_tile_clocks(const gs_kernel_t *k, double together, double k_tiles) {
  (void)k_tiles;
  double side = sqrt(k->warps), bytes = gs_type_bytes[k->ab_type];
  double arithmetic = (double)k->bm * k->bn * k->bk / FMA_PER_CLOCK;
  double tile_loads = (double)(k->bm + k->bn) * k->bk * bytes / L2_BYTES_PER_CLOCK;
  double fragment_loads = side * (double)(k->bm + k->bn) * k->bk * bytes / SMEM_BYTES_PER_CLOCK;
  double shared = together * fmax(arithmetic, fmax(tile_loads, fragment_loads));
  double alone = fmax(LOAD_CLOCKS / (k->stages - 1), k->bk / 16.0 * STEP_CLOCKS + BARRIER_CLOCKS);
  return fmax(shared, alone);
}

static double partial_us(const gs_gpu_t *gpu, const gs_kernel_t *k, const gs_gemm_t *g, int split_k) {
  double l2_bytes_per_us = L2_BYTES_PER_CLOCK / 2 * gpu->device.sms * gpu->clock_khz * 1e-3;
  if (split_k == 1) return 0;
  if (gs_kernel_workspace(k, g, split_k, gpu->device.sm) == 0) return CLUSTER_US;
  return SPLIT_US + 8.0 * (double)g->m * (double)g->n * g->batch * split_k / l2_bytes_per_us;
}

/* A ring that is deeper than k has tiles is no better for it, and the shallowest still has more than one under way. */
static double wgmma_tile_clocks(const gs_kernel_t *k, double together, double k_tiles) {
  double arithmetic = (double)k->bm * k->bn * k->bk / WGMMA_FMA_PER_CLOCK;
  double in_flight = fmax(fmin(k->stages - 2, k_tiles), WGMMA_LEAST_IN_FLIGHT);
  return fmax(together * arithmetic, WGMMA_LOAD_CLOCKS / in_flight);
}

/* Blocks of a kernel that run at once: on a multiprocessor, on the GPU. */
typedef struct {
  int fitting;
  double room;
} gs_at_once_t;

/* Of one k-tile, where so many blocks run together and each has so many of them. */
typedef double gs_tile_clocks_t(const gs_kernel_t *k, double together, double k_tiles);

static double tiled_us(const gs_gpu_t *gpu, const gs_kernel_t *k, const gs_gemm_t *g, int split_k,
                       gs_at_once_t at_once, gs_tile_clocks_t *tile_clocks, double block_clocks) {
  double clocks_per_us = gpu->clock_khz * 1e-3;
  double tiles = ceil_div((double)g->m, k->bm) * ceil_div((double)g->n, k->bn) * g->batch;
  double k_tiles = ceil_div(ceil_div((double)g->k, k->bk), split_k);
  double blocks = ceil_div(tiles * split_k, gpu->device.sms); /* of one multiprocessor */
  double waves = ceil_div(tiles * split_k, at_once.room), together = fmin(blocks, at_once.fitting);
  return LAUNCH_US + partial_us(gpu, k, g, split_k) +
         waves * (k_tiles * tile_clocks(k, together, k_tiles) + block_clocks) / clocks_per_us;
}

static double mma_us(const gs_gpu_t *gpu, const gs_kernel_t *k, const gs_gemm_t *g, int split_k,
                     gs_at_once_t at_once) {
  return tiled_us(gpu, k, g, split_k, at_once, mma_tile_clocks, BLOCK_CLOCKS);
}

static double wgmma_us(const gs_gpu_t *gpu, const gs_kernel_t *k, const gs_gemm_t *g, int split_k,
                       gs_at_once_t at_once) {
  return tiled_us(gpu, k, g, split_k, at_once, wgmma_tile_clocks, WGMMA_BLOCK_CLOCKS);
}

static double direct_us(const gs_gpu_t *gpu, const gs_kernel_t *k, const gs_gemm_t *g, int split_k,
                        gs_at_once_t at_once) {
  double clocks_per_us = gpu->clock_khz * 1e-3;
  double tiles = ceil_div((double)g->m, k->bm) * ceil_div((double)g->n, k->bn) * g->batch;
  double chunks = ceil_div(ceil_div((double)g->k, k->bk), split_k);
  double blocks = ceil_div(tiles * split_k, gpu->device.sms);
  double waves = ceil_div(tiles * split_k, at_once.room);
  double together = k->swap ? 2 : 1; /* chunks that a share is made of */
  double of_warp = together * ceil_div(chunks, together * k->warps), behind = fmax(0, of_warp - k->stages);
  double instructions = k->bm * k->bn / 64.0; /* of a chunk */
  double chunk_clocks = fmax(LOAD_CLOCKS / k->stages, DIRECT_MMA_CLOCKS * instructions);
  double alone = DIRECT_CLOCKS + LOAD_CLOCKS + behind * chunk_clocks +
                 4.0 * k->bm * k->bn * k->warps / SMEM_BYTES_PER_CLOCK;
  double bytes = (double)(k->bm + k->bn) * k->bk * gs_type_bytes[k->ab_type] * chunks * blocks;
  double clocks = fmax(waves * alone, DIRECT_CLOCKS + LOAD_CLOCKS + bytes / L2_BYTES_PER_CLOCK);
  return DIRECT_LAUNCH_US + (split_k > 1 ? CLUSTER_US : 0) + clocks / clocks_per_us;
}

static double rows_us(const gs_gpu_t *gpu, const gs_kernel_t *k, const gs_gemm_t *g, int split_k,
                      gs_at_once_t at_once) {
  bool along_k = k->transa == GS_OP_T;
  double tiles =
      ceil_div((double)g->m, GS_ROWS_OF(k->bm, along_k)) * ceil_div((double)g->n, k->bn) * g->batch;
  double blocks = ceil_div(tiles * split_k, gpu->device.sms), waves = ceil_div(tiles * split_k, at_once.room);
  double loads = k->bm * ceil_div((double)g->k, along_k ? 8 : 1); /* of A, by lanes of a block */
  double rounds = ceil_div(loads, k->warps * 32.0 * k->stages);
  double in_flight = fmin(blocks, at_once.fitting) * k->warps * k->stages * (1 + k->bn);
  double alone = ROWS_CLOCKS + rounds * (ROWS_ROUND_CLOCKS + ROWS_LOAD_CLOCKS * in_flight);
  double bytes = blocks * loads * 16 * (along_k ? 1 + k->bn : 1 + k->bn / 8.0);
  double columns = ceil_div((double)g->n, k->bn) * k->bn - 1;
  double multiplying =
      columns * (double)g->m * (double)g->k * g->batch / 8 / 32 / gpu->device.sms * ROWS_COLUMN_CLOCKS;
  double together = ROWS_CLOCKS + ROWS_ROUND_CLOCKS + bytes / ROWS_BYTES_PER_CLOCK;
  return ROWS_LAUNCH_US + (fmax(waves * alone, together) + multiplying) / (gpu->clock_khz * 1e-3);
}

/* What is stored, and what of B is loaded for it, comes through the second-level cache. */
static double strip_us(const gs_gpu_t *gpu, const gs_kernel_t *k, const gs_gemm_t *g, int split_k,
                       gs_at_once_t at_once) {
  double tiles = ceil_div((double)g->m, k->bm) * ceil_div((double)g->n, k->bn) * g->batch * split_k;
  double slices = ceil_div(fmin((double)g->n, k->bn), GS_STRIP_BN);
  double waves = ceil_div(tiles, at_once.room);
  double together = fmin(ceil_div(tiles, gpu->device.sms), at_once.fitting);
  double bytes = (double)GS_STRIP_BN * (k->bk * gs_type_bytes[k->ab_type] + k->bm * gs_type_bytes[k->d_type]);
  double arithmetic = (double)GS_STRIP_BN * k->bm * k->bk / WGMMA_FMA_PER_CLOCK;
  double alone = g->m % k->bm ? STRIP_SLOW_CLOCKS : STRIP_SLICE_CLOCKS;
  double slice = fmax(alone, together * fmax(bytes / STRIP_BYTES_PER_CLOCK, arithmetic));
  return LAUNCH_US + waves * (slices * slice + STRIP_BLOCK_CLOCKS) / (gpu->clock_khz * 1e-3);
}

/* Operands and result pass the memory once, whoever computes. */
static double memory_us(const gs_gpu_t *gpu, const gs_gemm_t *g) {
  double ab = gs_type_bytes[g->a_type], d = gs_type_bytes[g->d_type];
  double m = (double)g->m, n = (double)g->n, depth = (double)g->k;
  double bytes = g->batch * (m * depth * ab + depth * n * ab + m * n * d);
  return bytes / (MEMORY_SHARE * gpu->memory_bits / 4.0 * gpu->memory_khz * 1e-3);
}

typedef double gs_model_t(const gs_gpu_t *, const gs_kernel_t *, const gs_gemm_t *, int split_k,
                          gs_at_once_t);
static gs_model_t *const models[] = {[GS_FAMILY_MMA] = mma_us,
                                     [GS_FAMILY_DIRECT] = direct_us,
                                     [GS_FAMILY_WGMMA] = wgmma_us,
                                     [GS_FAMILY_ROWS] = rows_us,
                                     [GS_FAMILY_STRIP] = strip_us};
_Static_assert(sizeof models / sizeof *models == GS_FAMILY_COUNT, "a family without a model");

static void insert(gs_candidate_t *best, int *count, int limit, gs_candidate_t candidate) {
  if (*count == limit && best[limit - 1].us <= candidate.us) return;
  int at = *count < limit ? (*count)++ : limit - 1;
  for (; at > 0 && best[at - 1].us > candidate.us; at--) best[at] = best[at - 1];
  best[at] = candidate;
}

#define KNOWN_MAX 4096

/* Clusters that run at once, asked once a kernel and size; this process ranks for one GPU. */
static int clusters_of(const gs_gpu_t *gpu, int index, CUkernel handle, const gs_launch_t *launch) {
  static short known[KNOWN_MAX][GS_CLUSTER_MAX + 1]; /* 1 + their number */
  if (index >= KNOWN_MAX) return gs_gpu_clusters(gpu, handle, launch);
  short *place = &known[index][launch->cluster];
  if (!*place) *place = (short)(1 + gs_gpu_clusters(gpu, handle, launch));
  return *place - 1;
}

/* index < 0: the kernel is not compiled, and clusters are taken to fit as blocks do. */
static gs_at_once_t at_once(const gs_gpu_t *gpu, const gs_kernel_t *k, int index, const gs_gemm_t *g,
                            int split_k, int fitting) {
  gs_at_once_t at_once = {fitting, (double)fitting * gpu->device.sms};
  gs_launch_t launch = gs_kernel_launch(k, g, split_k, gpu->device.sm);
  CUkernel handle = index >= 0 && launch.cluster > 1 ? gs_device_kernel(index, gpu->device.handle) : NULL;
  int clusters = handle ? clusters_of(gpu, index, handle, &launch) : 0;
  if (clusters > 0) at_once.room = clusters * (double)launch.cluster;
  return at_once;
}

/* Adds a candidate for every split that is worth it. */
static int rank_splits(const gs_gpu_t *gpu, const gs_kernel_t *k, int index, const gs_rank_for_t *to,
                       int fitting, gs_candidate_t *best, int count, int limit) {
  const gs_gemm_t *g = to->gemm;
  double least_us = memory_us(gpu, g);
  int most = gs_kernel_split_max(k, gpu->device.sm);
  if (to->split_max < most) most = to->split_max;
  for (int s = 0; s < SPLITS && splits[s] <= most; s++) {
    if (s && (splits[s] * 2 * k->bk > g->k ||
              gs_kernel_workspace(k, g, splits[s], gpu->device.sm) > to->workspace_max))
      break;
    double us = models[k->family](gpu, k, g, splits[s], at_once(gpu, k, index, g, splits[s], fitting)) *
                gs_fit_factor(k, splits[s]);
    insert(best, &count, limit, (gs_candidate_t){index, splits[s], hypot(us, least_us)});
  }
  return count;
}

/* Blocks of the kernel, which is loaded for that, that fit one multiprocessor; 0 where it cannot compute g. */
static int fitting_of(const gs_gpu_t *gpu, int index, const gs_gemm_t *g) {
  gs_kernel_t k = gs_kernel_at(index);
  if (gs_kernel_supports(&k, g) != GS_REASON_SERVED) return 0;
  CUkernel handle = gs_device_kernel(index, gpu->device.handle);
  gs_launch_t launch = gs_kernel_launch(&k, g, 1, gpu->device.sm);
  return handle ? gs_gpu_needs(gpu, handle, &launch).blocks_per_sm : 0;
}

/* family: GS_FAMILY_COUNT for all of them. */
static int rank(const gs_gpu_t *gpu, const gs_pool_t *pool, int family, const gs_rank_for_t *to,
                gs_candidate_t *best, int limit) {
  int count = 0;
  for (int i = 0; i < pool->count; i++) {
    gs_kernel_t k = gs_kernel_at(pool->indices[i]);
    if (family != GS_FAMILY_COUNT && k.family != family) continue;
    int fitting = fitting_of(gpu, pool->indices[i], to->gemm);
    if (fitting >= 1) count = rank_splits(gpu, &k, pool->indices[i], to, fitting, best, count, limit);
  }
  return count;
}

int gs_rank(const gs_gpu_t *gpu, const gs_pool_t *pool, const gs_rank_for_t *to, gs_candidate_t *best,
            int limit) {
  return rank(gpu, pool, GS_FAMILY_COUNT, to, best, limit);
}

int gs_rank_family(const gs_gpu_t *gpu, const gs_pool_t *pool, gs_family_t family, const gs_rank_for_t *to,
                   gs_candidate_t *best, int limit) {
  return rank(gpu, pool, (int)family, to, best, limit);
}

int gs_rank_splits(const gs_gpu_t *gpu, int index, const gs_rank_for_t *to, gs_candidate_t *best, int limit) {
  gs_kernel_t k = gs_kernel_at(index);
  int fitting = fitting_of(gpu, index, to->gemm);
  return fitting >= 1 ? rank_splits(gpu, &k, index, to, fitting, best, 0, limit) : 0;
}

gs_candidate_t gs_rank_guessed(const gs_gpu_t *gpu, const gs_kernel_t *k, const gs_rank_for_t *to) {
  gs_candidate_t best = {.index = -1, .split_k = 1, .us = INFINITY};
  gs_launch_t launch = gs_kernel_launch(k, to->gemm, 1, gpu->device.sm);
  int registers = gs_space_registers(k);
  int fitting = gs_gpu_fitting(gpu, registers < 255 ? registers : 255, 0, &launch);
  if (fitting >= 1) rank_splits(gpu, k, -1, to, fitting, &best, 0, 1);
  return best;
}

double gs_rank_guess(const gs_gpu_t *gpu, const gs_kernel_t *k, const gs_rank_for_t *to) {
  return gs_rank_guessed(gpu, k, to).us;
}
