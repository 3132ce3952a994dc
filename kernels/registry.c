/* Floor 1. What kernels there are: their ids, what they support, how they are launched, and the machine code
 * of those built into the library. */
#include <stdio.h>
#include <string.h>

#include "gs_kernel.h"
#include "instances.h"
#include "tiles.h"

static const char *const family_names[] = {
#define X(name, text) text,
    GS_FAMILIES(X)
#undef X
};

/* --- the shipped list --- */
static const gs_kernel_t tiles[] = {
#define GS_SHIPPED(name, FAMILY, BM, BN, BK, STAGES, WARPS, ALIGN, SWAP)                                     \
  {.family = GS_FAMILY_##FAMILY,                                                                             \
   .bm = BM,                                                                                                 \
   .bn = BN,                                                                                                 \
   .bk = BK,                                                                                                 \
   .stages = STAGES,                                                                                         \
   .warps = WARPS,                                                                                           \
   .align = ALIGN,                                                                                           \
   .swap = SWAP},
#include "shipped.def"
};

typedef struct {
  uint8_t ab_type, d_type, transa, transb;
} instance_t;

static const instance_t instances[] = {
#define X(ab, d, AB, D, ta, tb, transa, transb)                                                              \
  {GS_TYPE_##AB, GS_TYPE_##D, transa ? GS_OP_T : GS_OP_N, transb ? GS_OP_T : GS_OP_N},
    GS_INSTANCES(X)
#undef X
};

enum { TILES = sizeof tiles / sizeof *tiles, INSTANCES = sizeof instances / sizeof *instances };

/* One fatbin a tile, put into .rodata by the assembler. GS_FATBINS is the folder, from the build. */
#define SYMBOL(name) ".globl " name "\n.hidden " name "\n" name ":\n"
#define INCBIN(name) ".incbin \"" GS_FATBINS "/" name ".fatbin\"\n"
#define ALIGNED      ".pushsection .rodata\n.balign 16\n"
#define EMBED(name)  EMBED_(GS_TEXT(name))
#define EMBED_(name)                                                                                         \
  __asm__(ALIGNED SYMBOL("gs_fatbin_" name) INCBIN(name) SYMBOL("gs_fatbin_end_" name) ".popsection\n");
#define GS_SHIPPED(name, ...)                                                                                \
  EMBED(name)                                                                                                \
  extern const char GS_JOIN(gs_fatbin_, name)[] __attribute__((visibility("hidden")));                       \
  extern const char GS_JOIN(gs_fatbin_end_, name)[] __attribute__((visibility("hidden")));
#include "shipped.def"

static const struct {
  const char *begin, *end;
} images[] = {
#define GS_SHIPPED(name, ...) {GS_JOIN(gs_fatbin_, name), GS_JOIN(gs_fatbin_end_, name)},
#include "shipped.def"
};

int gs_shipped_count(void) {
  return TILES * INSTANCES;
}

gs_kernel_t gs_shipped_at(int index) {
  gs_kernel_t k = tiles[index / INSTANCES];
  const instance_t *i = &instances[index % INSTANCES];
  k.ab_type = i->ab_type;
  k.d_type = i->d_type;
  k.transa = i->transa;
  k.transb = i->transb;
  return k;
}

_Static_assert(sizeof(gs_kernel_t) == 10 + 3 * sizeof(int16_t), "gs_kernel_t has padding: compare by field");

int gs_shipped_find(const gs_kernel_t *k) {
  for (int i = 0; i < gs_shipped_count(); ++i) {
    gs_kernel_t shipped = gs_shipped_at(i);
    if (!memcmp(&shipped, k, sizeof shipped)) return i;
  }
  return -1;
}

int gs_shipped_image_count(void) {
  return TILES;
}

int gs_shipped_image_index(int index) {
  return index / INSTANCES;
}

const void *gs_shipped_image(int image_index, size_t *size) {
  *size = (size_t)(images[image_index].end - images[image_index].begin);
  return images[image_index].begin;
}

/* --- ids --- */
int gs_kernel_format(char *buffer, size_t size, const gs_kernel_t *k) {
  char tile[40];
  if (k->family == GS_FAMILY_DIRECT)
    snprintf(tile, sizeof tile, "%dx%d_u%d_w%d%s", k->bm, k->bn, k->stages, k->warps, k->swap ? "_sw" : "");
  else if (k->family == GS_FAMILY_ROWS)
    snprintf(tile, sizeof tile, "%dx%d_u%d_w%d", k->bm, k->bn, k->stages, k->warps);
  else
    snprintf(tile, sizeof tile, "%dx%dx%d_s%d_w%d%s", k->bm, k->bn, k->bk, k->stages, k->warps,
             k->align == 2 ? "_v2" : "");
  return snprintf(buffer, size, "%s_%s_%s_%s%s_%s", family_names[k->family], gs_type_names[k->ab_type],
                  gs_type_names[k->d_type], gs_op_names[k->transa], gs_op_names[k->transb], tile);
}

static bool family_computes(int ab_type, int d_type) {
  for (int i = 0; i < INSTANCES; ++i)
    if (instances[i].ab_type == ab_type && instances[i].d_type == d_type) return true;
  return false;
}

/* A warpgroup takes 64 of n, and 64, 128 or 256 of m, out of panels of 64; the ring has room for its sums. */
static bool for_warpgroups(int bm, int bn, int bk, int stages, int warps) {
  int columns = bm * bn / (16 * warps);
  if (warps % 4 || bn % 64 || bk % 64 || bn / 16 > 8 || warps * 16 % bn || columns * 16 * warps != bm * bn ||
      GS_MMA_SMEM(bm, bn, bk, stages) < bn * GS_MMA_PITCH(bm))
    return false;
  return columns == 64 || columns == 128 || columns == 256;
}

/* As many of m for a warpgroup; a slice of n at a time, out of several. */
static bool for_strips(int bm, int bn, int bk, int stages, int warps) {
  int columns = 4 * bm / warps;
  if (warps % 4 || bn % GS_STRIP_BN || bn == GS_STRIP_BN || bk % 64 || columns * warps != 4 * bm ||
      GS_STRIP_SMEM(bm, bk, stages) < GS_STRIP_BN * GS_MMA_PITCH(bm))
    return false;
  return columns == 64 || columns == 128 || columns == 256;
}

/* The rest of an id, as far as it can be read: formatting it again shows whether that was all of it. */
static bool parse_tile(const char *text, gs_kernel_t *k) {
  int bm, bn, bk = 32, stages, warps, length = 0;
  if (k->family == GS_FAMILY_DIRECT) {
    if (sscanf(text, "%4dx%4d_u%2d_w%2d%n", &bm, &bn, &stages, &warps, &length) != 4) return false;
    if (bm < 16 || bm > 64 || bn < 8 || bn > 64 || (bm & (bm - 1)) || (bn & (bn - 1))) return false;
    if (stages < 1 || warps < 1 || warps > 32 || (warps & (warps - 1))) return false;
    k->align = 16;
    k->swap = text[length] != 0;
    if (!k->swap && bn < 16) return false;
  } else if (k->family == GS_FAMILY_ROWS) {
    if (sscanf(text, "%4dx%4d_u%2d_w%2d", &bm, &bn, &stages, &warps) != 4) return false;
    if (bm < 1 || (bm & (bm - 1)) || bn < 1 || bn > 2 || stages < 1) return false;
    if (warps < bm || warps > 32 || (warps & (warps - 1))) return false;
    bk = GS_ROWS_BK;
    k->align = 16;
  } else {
    if (sscanf(text, "%4dx%4dx%4d_s%2d_w%2d%n", &bm, &bn, &bk, &stages, &warps, &length) != 5) return false;
    if (bm < 16 || bm % 16 || bn < 16 || bn % 16 || bk < 32 || bk % 32) return false;
    if (stages < 2 || warps < 1 || warps > 32) return false;
    k->align = text[length] ? 2 : 16;
    if (k->family == GS_FAMILY_WGMMA && !for_warpgroups(bm, bn, bk, stages, warps)) return false;
    if (k->family == GS_FAMILY_STRIP && (k->align < 16 || !for_strips(bm, bn, bk, stages, warps)))
      return false;
  }
  k->bm = (int16_t)bm, k->bn = (int16_t)bn, k->bk = (int16_t)bk;
  k->stages = (uint8_t)stages, k->warps = (uint8_t)warps;
  return true;
}

bool gs_kernel_parse(const char *id, gs_kernel_t *k) {
  char family[8], ab[8], d[8], transa[2], transb[2], again[GS_KERNEL_ID_MAX];
  int length = 0;
  if (sscanf(id, "%7[a-z]_%7[a-z0-9]_%7[a-z0-9]_%1[nt]%1[nt]_%n", family, ab, d, transa, transb, &length) !=
          5 ||
      !length)
    return false;
  int family_index = gs_name_index(family, family_names, GS_FAMILY_COUNT);
  int ab_type = gs_name_index(ab, gs_type_names, GS_TYPE_COUNT);
  int d_type = gs_name_index(d, gs_type_names, GS_TYPE_COUNT);
  if (family_index < 0 || ab_type < 0 || d_type < 0 || !family_computes(ab_type, d_type)) return false;
  gs_kernel_t read = {.family = (uint8_t)family_index,
                      .ab_type = (uint8_t)ab_type,
                      .d_type = (uint8_t)d_type,
                      .transa = *transa == 't' ? GS_OP_T : GS_OP_N,
                      .transb = *transb == 't' ? GS_OP_T : GS_OP_N};
  if (!parse_tile(id + length, &read)) return false;
  gs_kernel_format(again, sizeof again, &read);
  if (strcmp(again, id)) return false;
  *k = read;
  return true;
}

/* --- calls --- */
#define SIZE_LIMIT (1 << 30) /* of m, n, k: tile origins stay within an int */
#define TILE_LIMIT (1 << 21) /* of tiles, and of k-tiles times splits: what gs_quotient divides exactly */
#define LD_LIMIT   (1 << 23) /* of lda and ldb: a tile's offsets in bytes stay within 32 bits */
#define GRID_LIMIT 65535     /* of blocks along y and z */

static int64_t tiles_m(const gs_kernel_t *k, const gs_gemm_t *g) {
  int rows = k->family == GS_FAMILY_ROWS ? GS_ROWS_OF(k->bm, k->transa == GS_OP_T) : k->bm;
  return (g->m + rows - 1) / rows;
}
static int64_t tiles_n(const gs_kernel_t *k, const gs_gemm_t *g) {
  return (g->n + k->bn - 1) / k->bn;
}
static int64_t tile_count(const gs_kernel_t *k, const gs_gemm_t *g) {
  return tiles_m(k, g) * tiles_n(k, g);
}

/* The parts of a split lie along y, with the tiles of n (direct) or m. */
static bool fits_grid(const gs_kernel_t *k, const gs_gemm_t *g) {
  if (k->family == GS_FAMILY_ROWS) return tiles_n(k, g) <= GRID_LIMIT;
  if (k->family != GS_FAMILY_DIRECT) return tile_count(k, g) < TILE_LIMIT && tiles_m(k, g) <= GRID_LIMIT;
  return tiles_n(k, g) * GS_DIRECT_SPLITS <= GRID_LIMIT && g->k / k->bk * GS_DIRECT_SPLITS < TILE_LIMIT;
}

/* cuBLAS answers these itself: nothing to compute, or an invalid argument. */
static bool degenerate(const gs_gemm_t *g) {
  if (g->transa == GS_OP_OTHER || g->transb == GS_OP_OTHER) return true;
  if (g->m <= 0 || g->n <= 0 || g->k <= 0 || g->batch <= 0) return true;
  int64_t rows_a = g->transa == GS_OP_N ? g->m : g->k, rows_b = g->transb == GS_OP_N ? g->k : g->n;
  return g->lda < rows_a || g->ldb < rows_b || g->ldc < g->m || g->ldd < g->m;
}

/* For real types the conjugate transpose is the transpose. */
static int op_of(int op) {
  return op == GS_OP_C ? GS_OP_T : op;
}

static bool aligned(const gs_kernel_t *k, const gs_gemm_t *g) {
  int elements = k->align / gs_type_bytes[k->ab_type];
  if (g->align < k->align || g->align < gs_type_bytes[k->d_type]) return false;
  int64_t bits = g->lda | g->ldb;
  if (g->batch > 1) bits |= g->stride_a | g->stride_b;
  return (bits & (elements - 1)) == 0;
}

int64_t gs_kernel_depth_max(const gs_kernel_t *k) {
  if (k->family == GS_FAMILY_STRIP) return k->bk;
  return k->d_type == GS_TYPE_F32 ? GS_F32_DEPTH : SIZE_LIMIT;
}

gs_reason_t gs_kernel_supports(const gs_kernel_t *k, const gs_gemm_t *g) {
  if (degenerate(g)) return GS_REASON_DEGENERATE;
  if (g->a_type != g->b_type || g->c_type != g->d_type || !family_computes(g->a_type, g->d_type))
    return GS_REASON_TYPE;
  bool half = g->compute == GS_COMPUTE_16F && g->a_type == GS_TYPE_F16 && g->d_type == GS_TYPE_F16;
  if (g->compute != GS_COMPUTE_32F && !half) return GS_REASON_TYPE;
  if (g->epilogue == GS_EPILOGUE_OTHER) return GS_REASON_EPILOGUE;
  if (g->batch_kind != GS_BATCH_SINGLE && g->batch_kind != GS_BATCH_STRIDED) return GS_REASON_KERNEL;
  if (g->a_type != k->ab_type || g->d_type != k->d_type) return GS_REASON_KERNEL;
  if (op_of(g->transa) != k->transa || op_of(g->transb) != k->transb) return GS_REASON_KERNEL;
  if (g->m > SIZE_LIMIT || g->n > SIZE_LIMIT || g->k > SIZE_LIMIT || g->batch > GRID_LIMIT)
    return GS_REASON_RANGE;
  if (g->lda > LD_LIMIT || g->ldb > LD_LIMIT || g->ldc >= SIZE_LIMIT || g->ldd >= SIZE_LIMIT)
    return GS_REASON_RANGE;
  if (g->k > gs_kernel_depth_max(k)) return GS_REASON_KERNEL;
  if (!fits_grid(k, g)) return GS_REASON_RANGE;
  return aligned(k, g) ? GS_REASON_SERVED : GS_REASON_ALIGNMENT;
}

bool gs_kernel_has_raster(const gs_kernel_t *k) {
  return k->family != GS_FAMILY_DIRECT && k->family != GS_FAMILY_ROWS;
}

bool gs_kernel_runs_on(const gs_kernel_t *k, int sm) {
  return sm == 90 || (k->family != GS_FAMILY_WGMMA && k->family != GS_FAMILY_STRIP);
}

/* By a cluster or by a workspace. */
static bool splits_either_way(const gs_kernel_t *k) {
  return k->family == GS_FAMILY_MMA || k->family == GS_FAMILY_WGMMA;
}

int gs_kernel_split_max(const gs_kernel_t *k, int sm) {
  if (!gs_kernel_runs_on(k, sm)) return 0;
  if (splits_either_way(k)) return GS_SPLIT_MAX;
  return k->family == GS_FAMILY_DIRECT && sm >= 90 ? GS_DIRECT_SPLITS : 1;
}

static bool in_cluster(const gs_kernel_t *k, int split_k, int sm) {
  if (split_k == 1 || split_k > GS_CLUSTER_MAX || sm < 90 || gs_kernel_split_max(k, sm) == 1) return false;
  return k->family == GS_FAMILY_DIRECT || GS_MMA_CLUSTERS(k->bm, k->bn, k->bk, k->stages);
}

gs_launch_t gs_kernel_launch(const gs_kernel_t *k, const gs_gemm_t *g, int split_k, int sm) {
  gs_launch_t launch = {.block = k->warps * 32u,
                        .cluster = in_cluster(k, split_k, sm) ? (unsigned)split_k : 1};
  int64_t across = tiles_m(k, g), along = tiles_n(k, g);
  if (k->family == GS_FAMILY_DIRECT) {
    launch.smem = (unsigned)GS_DIRECT_SLICES(k->bm, k->bn, k->warps);
    if (split_k > 1) launch.smem += (unsigned)GS_DIRECT_SUMS(k->bm, k->bn);
  } else if (k->family == GS_FAMILY_ROWS) {
    launch.smem = (unsigned)GS_ROWS_SMEM(k->bm, k->bn, k->warps, k->transa == GS_OP_T);
  } else {
    across = tiles_n(k, g), along = tiles_m(k, g);
    launch.smem = (unsigned)(k->family == GS_FAMILY_STRIP ? GS_STRIP_SMEM(k->bm, k->bk, k->stages)
                                                          : GS_MMA_SMEM(k->bm, k->bn, k->bk, k->stages));
    if (launch.cluster > 1) launch.smem += (unsigned)GS_MMA_SUMS(k->bm, k->bn);
  }
  launch.grid[0] = (unsigned)across;
  launch.grid[1] = (unsigned)along * (unsigned)split_k;
  launch.grid[2] = (unsigned)g->batch;
  return launch;
}

size_t gs_kernel_workspace(const gs_kernel_t *k, const gs_gemm_t *g, int split_k, int sm) {
  int64_t all = tile_count(k, g) * g->batch, tiles_k = (g->k + k->bk - 1) / k->bk;
  bool cluster = in_cluster(k, split_k, sm);
  if (split_k == 1) return 0;
  if (!splits_either_way(k)) return cluster ? 0 : SIZE_MAX;
  if (tiles_m(k, g) * split_k > GRID_LIMIT || tiles_k * split_k >= TILE_LIMIT) return SIZE_MAX;
  if (cluster) return 0;
  if (all > GS_SPLIT_COUNTERS || split_k > GS_SPLIT_MAX) return SIZE_MAX;
  return GS_SPLIT_COUNTERS * sizeof(unsigned) +
         (size_t)all * (size_t)split_k * (size_t)k->bm * (size_t)k->bn * sizeof(float);
}

void gs_kernel_params(const gs_gemm_t *g, int split_k, int raster, gs_params_t *p) {
  p->stride_a = g->stride_a;
  p->stride_b = g->stride_b;
  p->stride_c = g->stride_c;
  p->stride_d = g->stride_d;
  p->m = (int)g->m;
  p->n = (int)g->n;
  p->k = (int)g->k;
  p->lda = (int)g->lda;
  p->ldb = (int)g->ldb;
  p->ldc = (int)g->ldc;
  p->ldd = (int)g->ldd;
  p->split_k = split_k;
  p->raster = raster;
  p->epilogue = g->epilogue;
  p->special = g->batch > 1 || split_k > 1 || raster > 1 || p->alpha_ptr || p->alpha == 0;
}
