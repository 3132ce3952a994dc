/* Floor 1. What kernels there are: their ids, what they support, how they are launched, and the machine code
 * of those built into the library. */
#include <limits.h>
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
typedef struct {
  int16_t bm, bn, bk;
  uint8_t stages, warps, align;
} tile_t;

static const tile_t tiles[] = {
#define GS_MMA(...) {__VA_ARGS__},
#include "mma.def"
#undef GS_MMA
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
#define GS_MMA(...)                                                                                                                      \
  __asm__(".pushsection .rodata\n.balign 16\n"                                                                                           \
          ".globl gs_fatbin_" GS_TEXT(GS_TILE_NAME(__VA_ARGS__)) "\n.hidden gs_fatbin_" GS_TEXT(                                         \
              GS_TILE_NAME(                                                                                                              \
                  __VA_ARGS__)) "\n"                                                                                                     \
                                "gs_fatbin_" GS_TEXT(GS_TILE_NAME(__VA_ARGS__)) ":\n.incbin \"" GS_FATBINS "/mma_" GS_TEXT(GS_TILE_NAME( \
                                    __VA_ARGS__)) ".fatbin\"\n"                                                                          \
                                                  ".globl gs_fatbin_end_" GS_TEXT(GS_TILE_NAME(                                          \
                                                      __VA_ARGS__)) "\n"                                                                 \
                                                                    ".hidden gs_fatbin_end_" GS_TEXT(GS_TILE_NAME(                       \
                                                                        __VA_ARGS__)) "\n"                                               \
                                                                                      "gs_fatbin_"                                       \
                                                                                      "end_" GS_TEXT(GS_TILE_NAME(                       \
                                                                                          __VA_ARGS__)) ":"                              \
                                                                                                        "\n"                             \
                                                                                                        ".p"                             \
                                                                                                        "op"                             \
                                                                                                        "se"                             \
                                                                                                        "ct"                             \
                                                                                                        "io"                             \
                                                                                                        "n"                              \
                                                                                                        "\n");                           \
  extern const char GS_JOIN(gs_fatbin_, GS_TILE_NAME(__VA_ARGS__))[] __attribute__((visibility("hidden")));                              \
  extern const char GS_JOIN(gs_fatbin_end_, GS_TILE_NAME(__VA_ARGS__))[]                                                                 \
      __attribute__((visibility("hidden")));
#include "mma.def"
#undef GS_MMA

static const struct {
  const char *begin, *end;
} images[] = {
#define GS_MMA(...)                                                                                          \
  {GS_JOIN(gs_fatbin_, GS_TILE_NAME(__VA_ARGS__)), GS_JOIN(gs_fatbin_end_, GS_TILE_NAME(__VA_ARGS__))},
#include "mma.def"
#undef GS_MMA
};

int gs_shipped_count(void) {
  return TILES * INSTANCES;
}

gs_kernel_t gs_shipped_at(int index) {
  const tile_t *t = &tiles[index / INSTANCES];
  const instance_t *i = &instances[index % INSTANCES];
  return (gs_kernel_t){GS_FAMILY_MMA, i->ab_type, i->d_type, i->transa, i->transb, t->stages,
                       t->warps,      t->align,   t->bm,     t->bn,     t->bk};
}

_Static_assert(sizeof(gs_kernel_t) == 8 + 3 * sizeof(int16_t), "gs_kernel_t has padding: compare by field");

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
  return snprintf(buffer, size, "%s_%s_%s_%s%s_%dx%dx%d_s%d_w%d%s", family_names[k->family],
                  gs_type_names[k->ab_type], gs_type_names[k->d_type], gs_op_names[k->transa],
                  gs_op_names[k->transb], k->bm, k->bn, k->bk, k->stages, k->warps,
                  k->align == 2 ? "_v2" : "");
}

static bool family_computes(int ab_type, int d_type) {
  for (int i = 0; i < INSTANCES; ++i)
    if (instances[i].ab_type == ab_type && instances[i].d_type == d_type) return true;
  return false;
}

bool gs_kernel_parse(const char *id, gs_kernel_t *k) {
  char family[8], ab[8], d[8], transa[2], transb[2], again[GS_KERNEL_ID_MAX];
  int bm, bn, bk, stages, warps, length = 0;
  if (sscanf(id, "%7[a-z]_%7[a-z0-9]_%7[a-z0-9]_%1[nt]%1[nt]_%4dx%4dx%4d_s%2d_w%2d%n", family, ab, d, transa,
             transb, &bm, &bn, &bk, &stages, &warps, &length) != 10)
    return false;
  int family_index = gs_name_index(family, family_names, GS_FAMILY_COUNT);
  int ab_type = gs_name_index(ab, gs_type_names, GS_TYPE_COUNT);
  int d_type = gs_name_index(d, gs_type_names, GS_TYPE_COUNT);
  if (family_index < 0 || ab_type < 0 || d_type < 0 || !family_computes(ab_type, d_type)) return false;
  if (bm < 16 || bm % 16 || bn < 16 || bn % 16 || bk < 32 || bk % 32 || stages < 2 || warps < 1 || warps > 32)
    return false;
  gs_kernel_t read = {(uint8_t)family_index,
                      (uint8_t)ab_type,
                      (uint8_t)d_type,
                      *transa == 't' ? GS_OP_T : GS_OP_N,
                      *transb == 't' ? GS_OP_T : GS_OP_N,
                      (uint8_t)stages,
                      (uint8_t)warps,
                      id[length] ? 2 : 16,
                      (int16_t)bm,
                      (int16_t)bn,
                      (int16_t)bk};
  gs_kernel_format(again, sizeof again, &read);
  if (strcmp(again, id)) return false;
  *k = read;
  return true;
}

/* --- calls --- */
#define SIZE_LIMIT (1 << 30) /* of m, n, k: tile origins stay within an int */
#define TILE_LIMIT (1 << 21) /* of tiles, and of k-tiles times splits: what gs_quotient divides exactly */

static int64_t tile_count(const gs_kernel_t *k, const gs_gemm_t *g) {
  return (g->m + k->bm - 1) / k->bm * ((g->n + k->bn - 1) / k->bn);
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
  if (g->d_type == GS_TYPE_F32 && g->k > GS_F32_DEPTH) return GS_REASON_KERNEL;
  if (g->m > SIZE_LIMIT || g->n > SIZE_LIMIT || g->k > SIZE_LIMIT || g->batch > USHRT_MAX)
    return GS_REASON_RANGE;
  if (g->lda > INT_MAX || g->ldb > INT_MAX || g->ldc > INT_MAX || g->ldd > INT_MAX) return GS_REASON_RANGE;
  if (tile_count(k, g) >= TILE_LIMIT) return GS_REASON_RANGE;
  return aligned(k, g) ? GS_REASON_SERVED : GS_REASON_ALIGNMENT;
}

gs_launch_t gs_kernel_launch(const gs_kernel_t *k, const gs_gemm_t *g, int split_k) {
  return (gs_launch_t){.grid = {(unsigned)tile_count(k, g), (unsigned)split_k, (unsigned)g->batch},
                       .block = k->warps * 32u,
                       .smem = (unsigned)GS_MMA_SMEM(k->bm, k->bn, k->bk, k->stages)};
}

size_t gs_kernel_workspace(const gs_kernel_t *k, const gs_gemm_t *g, int split_k) {
  int64_t all = tile_count(k, g) * g->batch;
  if (split_k == 1) return 0;
  if (all > GS_SPLIT_COUNTERS || split_k > GS_SPLIT_MAX) return SIZE_MAX;
  if ((g->k + k->bk - 1) / k->bk * split_k >= TILE_LIMIT) return SIZE_MAX;
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
}
