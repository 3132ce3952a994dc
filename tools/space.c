#include "space.h"

#include <limits.h>
#include <string.h>

#include "generate.h"

#define VALUES_MAX 12

/* A parameter, and the values that it may take; 0 ends them, but for the first. */
typedef struct {
  void (*set)(gs_kernel_t *kernel, int value);
  int values[VALUES_MAX];
} axis_t;

#define PARAMETERS(X) X(bm) X(bn) X(bk) X(stages) X(warps) X(align) X(swap)
#define X(name)                                                                                              \
  static void set_##name(gs_kernel_t *kernel, int value) {                                                   \
    kernel->name = (__typeof__(kernel->name))value;                                                          \
  }
PARAMETERS(X)
#undef X

static const axis_t mma_axes[] = {
    {set_bm, {16, 32, 48, 64, 80, 96, 128, 160, 192, 256}},
    {set_bn, {16, 32, 48, 64, 80, 96, 128, 160, 192, 256}},
    {set_bk, {32, 64, 128}},
    {set_stages, {2, 3, 4, 5, 6, 8, 12}},
    {set_warps, {1, 2, 4, 8}},
    {set_align, {16, 2}},
};
static const axis_t direct_axes[] = {
    {set_bm, {16, 32, 64}},
    {set_bn, {8, 16, 32, 64}},
    {set_bk, {32}},
    {set_stages, {1, 2, 3, 4, 6, 8}},
    {set_warps, {1, 2, 4, 8, 16, 32}},
    {set_align, {16}},
    {set_swap, {0, 1}},
};

static const axis_t wgmma_axes[] = {
    {set_bm, {64, 128, 192, 256}}, {set_bn, {64, 128}},
    {set_bk, {64, 128}},           {set_stages, {2, 3, 4, 5, 6, 8, 9, 10, 12, 13}},
    {set_warps, {4, 8}},           {set_align, {16}},
};

static const axis_t strip_axes[] = {
    {set_bm, {64, 128, 256}},      {set_bn, {128, 256, 512, 1024}},
    {set_bk, {64, 128, 192, 256}}, {set_stages, {2, 3, 4, 5}},
    {set_warps, {4, 8}},           {set_align, {16}},
};

static const axis_t rows_axes[] = {
    {set_bm, {1, 2, 4, 8}},
    {set_bn, {1, 2}},
    {set_bk, {GS_ROWS_BK}},
    {set_stages, {1, 2, 4, 8}},
    {set_warps, {1, 2, 4, 8, 16, 32}},
    {set_align, {16}},
};

static const struct {
  const axis_t *axes;
  int count;
} spaces[] = {
#define SPACE(axes)                                                                                          \
  { axes, sizeof axes / sizeof *axes }
    [GS_FAMILY_MMA] = SPACE(mma_axes),     [GS_FAMILY_DIRECT] = SPACE(direct_axes),
    [GS_FAMILY_WGMMA] = SPACE(wgmma_axes), [GS_FAMILY_ROWS] = SPACE(rows_axes),
    [GS_FAMILY_STRIP] = SPACE(strip_axes),
};
_Static_assert(sizeof spaces / sizeof *spaces == GS_FAMILY_COUNT, "a family without a space");

/* ---- registers ---- */

#define REGISTERS_SEEM 275 /* more than there are, since the guess may be that far off */

/* Whether the chunks of 8 along an extent, 8 of them in a panel at most, can be dealt out as gemm_mma.cuh does. */
static bool deals_out(int warps, int extent) {
  int chunks = extent % 64 == 0 ? 8 : extent % 32 == 0 ? 4 : 2;
  return 4 * warps % chunks == 0;
}

/* As gemm_mma.cuh shares the tile: warp tiles are multiples of 16, the squarest. The sums, two sets of fragments
 * or one, and addresses. */
static int mma_registers(const gs_kernel_t *k) {
  int best = INT_MAX, squarest = INT_MAX;
  if (!deals_out(k->warps, k->bm) || !deals_out(k->warps, k->bn) || !deals_out(k->warps, k->bk))
    return INT_MAX;
  for (int along_n = 1; along_n <= k->warps && along_n <= 8; along_n *= 2) {
    int along_m = k->warps / along_n, m = k->bm / along_m, n = k->bn / along_n;
    if (k->bm % (16 * along_m) || k->bn % (16 * along_n) || m + n >= squarest) continue;
    squarest = m + n;
    int sums = m * n / 32, sets = sums > 128 ? 1 : 2;
    best = 40 + sums + sets * (m / 8 * 2 + n / 16 * 4);
  }
  return best;
}

/* The sums, and what is under way of both operands: 16 bytes of 8 rows a lane and chunk. */
static int direct_registers(const gs_kernel_t *k) {
  if (k->swap && k->stages % 2) return INT_MAX; /* it takes chunks in pairs */
  int narrow = k->bn / 8 == 1 ? 8 : k->bn / 2;
  return 40 + 5 * (k->bm * k->bn / 32 + k->stages * (k->bm / 2 + narrow)) / 4;
}

/* The sums, addresses of copies, and the ending. */
static int wgmma_registers(const gs_kernel_t *k) {
  return 40 + 3 * k->bm * k->bn / (64 * k->warps) + (k->bm + k->bn) * k->bk / 8 / (32 * k->warps);
}

/* As of wgmma, of a slice. */
static int strip_registers(const gs_kernel_t *k) {
  gs_kernel_t slice = *k;
  slice.bn = GS_STRIP_BN;
  return wgmma_registers(&slice);
}

/* What is under way of both operands; 8 sums a column where memory of A runs along m. */
static int rows_registers(const gs_kernel_t *k) {
  return k->transa == GS_OP_T ? 16 + 4 * k->stages * (1 + k->bn) : 40 + 4 * k->stages + 8 * k->bn;
}

int gs_space_registers(const gs_kernel_t *k) {
  static int (*const guesses[])(const gs_kernel_t *) = {[GS_FAMILY_MMA] = mma_registers,
                                                        [GS_FAMILY_DIRECT] = direct_registers,
                                                        [GS_FAMILY_WGMMA] = wgmma_registers,
                                                        [GS_FAMILY_ROWS] = rows_registers,
                                                        [GS_FAMILY_STRIP] = strip_registers};
  _Static_assert(sizeof guesses / sizeof *guesses == GS_FAMILY_COUNT, "a family without a guess");
  return guesses[k->family](k);
}

/* ---- the walk ---- */

typedef struct {
  const gs_gemm_t *g;
  int sm;
  gs_point_t visit;
  void *context;
} walk_t;

static bool can_be_named(const gs_kernel_t *kernel) {
  char id[GS_KERNEL_ID_MAX];
  gs_kernel_t again;
  gs_kernel_format(id, sizeof id, kernel);
  return gs_kernel_parse(id, &again) && !memcmp(&again, kernel, sizeof again);
}

/* Where it could load 16 bytes at once, it is not worth its while to load less. */
static bool loads_too_little(const gs_kernel_t *kernel, const gs_gemm_t *g) {
  gs_kernel_t wide = *kernel;
  wide.align = 16;
  return kernel->align < 16 && gs_kernel_supports(&wide, g) == GS_REASON_SERVED;
}

static void walk(const walk_t *w, const gs_kernel_t *so_far, int axis) {
  const axis_t *axes = spaces[so_far->family].axes;
  if (axis < spaces[so_far->family].count) {
    for (int i = 0; i < VALUES_MAX && (i == 0 || axes[axis].values[i]); i++) {
      gs_kernel_t next = *so_far;
      axes[axis].set(&next, axes[axis].values[i]);
      walk(w, &next, axis + 1);
    }
    return;
  }
  if (gs_space_registers(so_far) <= REGISTERS_SEEM && gs_kernel_supports(so_far, w->g) == GS_REASON_SERVED &&
      !loads_too_little(so_far, w->g) && gs_generate_fits(so_far, w->sm) && can_be_named(so_far))
    w->visit(w->context, so_far);
}

void gs_space_visit(const gs_gemm_t *g, int sm, gs_point_t visit, void *context) {
  const walk_t w = {g, sm, visit, context};
  for (int family = 0; family < GS_FAMILY_COUNT; family++)
    walk(&w,
         &(gs_kernel_t){.family = (uint8_t)family,
                        .ab_type = g->a_type,
                        .d_type = g->d_type,
                        .transa = g->transa == GS_OP_N ? GS_OP_N : GS_OP_T,
                        .transb = g->transb == GS_OP_N ? GS_OP_N : GS_OP_T},
         0);
}
