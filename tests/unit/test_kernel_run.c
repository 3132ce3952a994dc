/* Every shipped kernel's own source, run on the CPU (kernels/emulate.h) and checked against double. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emulate.h"
#include "gs_kernel.h"

typedef struct {
  const char *what;
  int m, n, k;
  int pad;    /* added to every leading dimension */
  int offset; /* elements by which every matrix begins later than aligned */
  int batch, split_k, raster, epilogue;
  float alpha, beta;
  bool device_scalars;
  int odd_c; /* added to the leading dimension of C and D */
} case_t;

/* One operand with a guard of NaN around every column and batch entry. */
typedef struct {
  unsigned char *memory, *at;
  int rows, columns, ld, bytes;
  long long stride;
  size_t size;
} matrix_t;

static unsigned random_state;
static int random_int(int span) { /* -span .. span */
  random_state = random_state * 1664525u + 1013904223u;
  return (int)(random_state >> 8) % (2 * span + 1) - span;
}

static unsigned narrow(int type, float v) {
  unsigned bits;
  if (type == GS_TYPE_BF16) {
    memcpy(&bits, &v, 4);
    return bits >> 16; /* exact for the small integers used here */
  }
  _Float16 half = (_Float16)v;
  unsigned short short_bits;
  memcpy(&short_bits, &half, 2);
  return short_bits;
}

static double widen(int type, const unsigned char *at) {
  unsigned bits = 0;
  float v;
  if (type == GS_TYPE_F32) {
    memcpy(&v, at, 4);
  } else if (type == GS_TYPE_BF16) {
    memcpy((unsigned char *)&bits + 2, at, 2);
    memcpy(&v, &bits, 4);
  } else {
    _Float16 half;
    memcpy(&half, at, 2);
    v = half;
  }
  return v;
}

/* odd: added to the leading dimension after it was rounded up to what 16-byte loads need. */
static matrix_t matrix_make(int type, int rows, int columns, int batch, const case_t *c, int odd, int span) {
  matrix_t x = {.rows = rows, .columns = columns, .bytes = gs_type_bytes[type]};
  x.ld = rows + c->pad;
  if (c->offset == 0) x.ld = ((x.ld + 7) & ~7) + odd;
  x.stride = (long long)x.ld * columns + (c->offset ? 1 : 8);
  x.size = (size_t)(x.stride * batch) * (size_t)x.bytes;
  x.memory = aligned_alloc(64, (x.size + 64 + 127) & ~(size_t)63);
  x.at = x.memory + (size_t)c->offset * (size_t)x.bytes;
  memset(x.memory, 0xff, x.size + 64);
  if (span == 0) return x;
  for (int z = 0; z < batch; ++z)
    for (int j = 0; j < columns; ++j)
      for (int i = 0; i < rows; ++i) {
        float v = (float)random_int(span);
        unsigned char *to = x.at + (size_t)(z * x.stride + (long long)j * x.ld + i) * (size_t)x.bytes;
        unsigned bits = type == GS_TYPE_F32 ? 0 : narrow(type, v);
        memcpy(to, type == GS_TYPE_F32 ? (void *)&v : (void *)&bits, (size_t)x.bytes);
      }
  return x;
}

static const unsigned char *matrix_at(const matrix_t *x, int z, int i, int j) {
  return x->at + (z * x->stride + (long long)j * x->ld + i) * x->bytes;
}

/* Bytes up to the last element: what may be read. */
static gs_range_t matrix_range(const matrix_t *x, int batch, bool writable) {
  long long elements = (batch - 1) * x->stride + (long long)(x->columns - 1) * x->ld + x->rows;
  return (gs_range_t){x->at, (size_t)(elements * x->bytes), writable};
}

static double activate(int epilogue, double x) {
  if (epilogue == GS_EPILOGUE_RELU || epilogue == GS_EPILOGUE_RELU_BIAS) return x < 0 ? 0 : x;
  if (epilogue == GS_EPILOGUE_GELU || epilogue == GS_EPILOGUE_GELU_BIAS)
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  return x;
}

/* Runs k on c, twice, with copies early and late; every element must be the double result, rounded. */
static void check_on(int sm, const gs_kernel_t *k, const case_t *c) {
  char id[GS_KERNEL_ID_MAX];
  gs_kernel_format(id, sizeof id, k);
  const bool ta = k->transa == GS_OP_T, tb = k->transb == GS_OP_T,
             bias = c->epilogue == GS_EPILOGUE_BIAS || c->epilogue == GS_EPILOGUE_RELU_BIAS ||
                    c->epilogue == GS_EPILOGUE_GELU_BIAS;
  random_state = 1;
  matrix_t a = matrix_make(k->ab_type, ta ? c->k : c->m, ta ? c->m : c->k, c->batch, c, 0, 2);
  matrix_t b = matrix_make(k->ab_type, tb ? c->n : c->k, tb ? c->k : c->n, c->batch, c, 0, 2);
  matrix_t in = matrix_make(k->d_type, c->m, c->n, c->batch, c, c->odd_c, c->beta != 0 ? 3 : 0);
  matrix_t v = matrix_make(k->d_type, c->m, 1, 1, c, 0, 4);
  float scalars[2] = {c->alpha, c->beta};

  gs_gemm_t g = {.entry = GS_ENTRY_LT_MATMUL,
                 .transa = k->transa,
                 .transb = k->transb,
                 .a_type = k->ab_type,
                 .b_type = k->ab_type,
                 .c_type = k->d_type,
                 .d_type = k->d_type,
                 .compute = GS_COMPUTE_32F,
                 .epilogue = (uint8_t)c->epilogue,
                 .batch_kind = c->batch > 1 ? GS_BATCH_STRIDED : GS_BATCH_SINGLE,
                 .align = c->offset ? gs_type_bytes[k->d_type] : 16,
                 .batch = c->batch,
                 .m = c->m,
                 .n = c->n,
                 .k = c->k,
                 .lda = a.ld,
                 .ldb = b.ld,
                 .ldc = in.ld,
                 .ldd = in.ld,
                 .stride_a = a.stride,
                 .stride_b = b.stride,
                 .stride_c = in.stride,
                 .stride_d = in.stride};
  cr_assert_eq(gs_kernel_supports(k, &g), GS_REASON_SERVED, "%s: %s", id, c->what);
  gs_launch_t launch = gs_kernel_launch(k, &g, c->split_k, sm);
  size_t workspace_bytes = gs_kernel_workspace(k, &g, c->split_k, sm);
  unsigned char *workspace = calloc(1, workspace_bytes + 16);
  unsigned char *first = NULL;

  for (int round = 0; round < 2; ++round) {
    matrix_t out = matrix_make(k->d_type, c->m, c->n, c->batch, c, c->odd_c, 0);
    gs_params_t p = {.a = a.at,
                     .b = b.at,
                     .c = c->beta != 0 ? in.at : NULL,
                     .d = out.at,
                     .bias = bias ? v.at : NULL,
                     .workspace = workspace_bytes ? workspace : NULL,
                     .alpha = c->device_scalars ? NAN : c->alpha,
                     .beta = c->device_scalars ? NAN : c->beta};
    if (c->device_scalars) p.alpha_ptr = &scalars[0], p.beta_ptr = &scalars[1];
    gs_kernel_params(&g, c->split_k, c->raster, &p);
    gs_range_t ranges[] = {matrix_range(&a, c->batch, false),  matrix_range(&b, c->batch, false),
                           matrix_range(&in, c->batch, false), matrix_range(&v, 1, false),
                           matrix_range(&out, c->batch, true), {workspace, workspace_bytes, true},
                           {scalars, sizeof scalars, false}};
    const gs_range_t *legal = ranges;
    int count = sizeof ranges / sizeof *ranges;
    if (c->alpha == 0) legal += 2, count -= 2; /* A and B are not read */
    gs_emulation_t how = {legal, count, .late = round == 0, .backward = round == 0};
    const char *fault = gs_emulate(k, &launch, &p, &how);
    cr_assert_null(fault, "%s: %s: %s", id, c->what, fault);
    for (unsigned i = 0; i < GS_SPLIT_COUNTERS && workspace_bytes; ++i)
      cr_assert_eq(((unsigned *)workspace)[i], 0u, "%s: %s: counter %u", id, c->what, i);

    /* What lies outside of D is as it was. */
    for (unsigned char *at = out.memory; at < out.memory + out.size + 64; ++at) {
      long long element = (at - out.at) / out.bytes;
      bool inside = at >= out.at && element / out.stride < c->batch && element % out.stride / out.ld < c->n &&
                    element % out.stride % out.ld < c->m;
      if (!inside) cr_assert_eq(*at, 0xff, "%s: %s: wrote outside, element %lld", id, c->what, element);
    }
    if (first) {
      cr_assert_eq(memcmp(first, out.memory, out.size), 0, "%s: %s: two runs differ", id, c->what);
      free(out.memory);
      continue;
    }
    for (int z = 0; z < c->batch; ++z)
      for (int j = 0; j < c->n; ++j)
        for (int i = 0; i < c->m; ++i) {
          double sum = 0, scale = k->d_type == GS_TYPE_F32   ? 1e-6
                                  : k->d_type == GS_TYPE_F16 ? 1.0 / 2048
                                                             : 1.0 / 256;
          for (int l = 0; l < c->k && c->alpha != 0; ++l)
            sum += widen(k->ab_type, ta ? matrix_at(&a, z, l, i) : matrix_at(&a, z, i, l)) *
                   widen(k->ab_type, tb ? matrix_at(&b, z, j, l) : matrix_at(&b, z, l, j));
          sum *= c->alpha;
          if (c->beta != 0) sum += c->beta * widen(k->d_type, matrix_at(&in, z, i, j));
          if (bias) sum += widen(k->d_type, matrix_at(&v, 0, i, 0));
          sum = activate(c->epilogue, sum);
          double got = widen(k->d_type, matrix_at(&out, z, i, j));
          cr_assert(fabs(got - sum) <= fabs(sum) * scale + 1e-6,
                    "%s: %s: D[%d, %d] of product %d is %g, not %g", id, c->what, i, j, z, got, sum);
        }
    first = out.memory;
  }
  free(first);
  free(workspace);
  free(a.memory);
  free(b.memory);
  free(in.memory);
  free(v.memory);
}

/* Splits by a cluster, and where a kernel knows the other way, by a workspace too. */
static void check(const gs_kernel_t *k, const case_t *c) {
  check_on(90, k, c);
  if (c->split_k > 1 && k->family != GS_FAMILY_DIRECT) check_on(80, k, c);
}

/* What k is of those that end alike and that the kernel computes. */
static int depth_for(const gs_kernel_t *k, int depth) {
  int64_t most = gs_kernel_depth_max(k);
  return depth > most ? (int)((depth - 1) % most + 1) : depth;
}

/* A family of small blocks shows with a few of them what there is to see: one row or group of rows more than a block takes,
 * and columns enough for three blocks; one of long blocks with three of its slices, but that shorter ones come to several blocks. */
static case_t fewer(const case_t *c, const gs_kernel_t *k) {
  case_t x = *c;
  x.k = depth_for(k, x.k);
  if (gs_kernel_split_max(k, 90) == 1) x.split_k = 1;
  if (k->family == GS_FAMILY_STRIP && k->bn > 256) x.n = (x.n - 1) % 192 + 1;
  int rows = GS_ROWS_OF(k->bm, k->transa == GS_OP_T);
  if (k->family != GS_FAMILY_ROWS) return x;
  if (x.m > rows) x.m = rows + (x.m - rows) % 8 + 1;
  if (x.n > 5) x.n = 5 - x.n % 2;
  return x;
}

/* Sizes below are remainders: whole tiles are added to them. */
static case_t sized(const case_t *c, const gs_kernel_t *k, int tiles_m, int tiles_n, int tiles_k) {
  case_t x = *c;
  x.m += tiles_m * k->bm;
  x.n += tiles_n * k->bn;
  x.k += tiles_k * k->bk;
  return fewer(&x, k);
}

#define E(name) GS_EPILOGUE_##name

/* Warps that share a tile's k. */
static int sharers(const gs_kernel_t *k) {
  return k->family == GS_FAMILY_DIRECT ? k->warps : k->family == GS_FAMILY_ROWS ? k->warps / k->bm : 1;
}

/* Every tile in every layout. */
static const struct {
  case_t c;
  int tiles[3];
} shapes[] = {
    {{"one element", 1, 1, 1, 0, 0, 1, 1, 1, E(DEFAULT), 1, 0, false, 0}, {0, 0, 0}},
    {{"less than a tile", 13, 11, 30, 3, 0, 1, 1, 1, E(DEFAULT), 1, 0, false, 0}, {0, 0, 0}},
    {{"one whole tile, the ring filled twice", 0, 0, 0, 0, 0, 1, 1, 1, E(DEFAULT), 1, 0, false, 0},
     {1, 1, 0}},
    {{"tails of m and k", 7, 5, 18, 8, 0, 1, 1, 1, E(DEFAULT), 1, 0, false, 0}, {1, 0, 2}},
    {{"tails of n and k", 9, 3, 23, 0, 0, 1, 1, 1, E(DEFAULT), 1, 0, false, 0}, {0, 1, 2}},
    {{"tails of m and n, k whole", 9, 3, 0, 0, 0, 1, 1, 1, E(DEFAULT), 1, 0, false, 0}, {1, 1, 2}},
    {{"odd addresses", 1, 5, 11, 1, 1, 1, 1, 1, E(DEFAULT), 1, 0, false, 0}, {1, 0, 2}},
    {{"addresses of 4 bytes", 2, 34, 6, 2, 2, 1, 1, 1, E(DEFAULT), 1, 0, false, 0}, {0, 1, 1}},
    {{"addresses of 8 bytes", 12, 4, 4, 4, 4, 1, 1, 1, E(DEFAULT), 1, 0, false, 0}, {0, 1, 1}},
};

Test(kernel_run, C5_C6_computes_every_layout, .timeout = 600) {
  for (int i = 0; i < gs_shipped_count(); ++i) {
    gs_kernel_t k = gs_shipped_at(i);
    if (k.ab_type != GS_TYPE_F16 || k.d_type != GS_TYPE_F16) continue;
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; ++n) {
      const int *tiles = shapes[n].tiles;
      case_t c = sized(&shapes[n].c, &k, tiles[0], tiles[1], tiles[2]);
      if (c.k == 0) c.k = depth_for(&k, 2 * k.stages * k.bk * sharers(&k));
      if (k.align == 2 || !c.offset) check(&k, &c);
    }
  }
}

/* Every kernel meets two of these; every type pair and layout meets all of them with some tile. */
static const case_t arguments[] = {
    {"alpha, beta, gelu, bias", 70, 41, 100, 4, 0, 1, 1, 1, E(GELU_BIAS), 0.0625f, 2, false, 0},
    {"scalars in device memory, relu", 70, 41, 100, 0, 0, 1, 1, 3, E(RELU), -1.5f, -0.5f, true, 0},
    {"alpha 0 in device memory", 40, 41, 100, 0, 0, 1, 1, 1, E(RELU_BIAS), 0, 2, true, 0},
    {"batch, bias, raster", 70, 41, 40, 8, 0, 3, 1, 2, E(BIAS), 1, 0, false, 0},
    {"gelu, bias, all of m inside", 256, 9, 64, 0, 0, 1, 1, 1, E(GELU_BIAS), 0.0625f, 0, false, 0},
    {"split-K, relu, bias", 64, 21, 330, 8, 0, 1, 3, 1, E(RELU_BIAS), 0.5f, 0, false, 0},
    {"split-K, gelu", 70, 41, 330, 8, 0, 1, 3, 1, E(GELU), 0.0625f, 0, false, 0},
    {"split-K, batch, more splits than k-tiles", 33, 20, 70, 8, 0, 2, 5, 1, E(DEFAULT), 1, 1, false, 0},
    {"one column, whole rows of A", 45, 1, 640, 8, 0, 2, 1, 1, E(GELU_BIAS), 0.0625f, 0.5f, false, 0},
    {"one column, split-K", 45, 1, 1120, 0, 0, 1, 3, 1, E(DEFAULT), 1, 0, false, 1},
    {"odd leading dimension of C and D", 45, 33, 64, 0, 0, 1, 1, 2, E(RELU_BIAS), 2, -1, false, 1},
};

/* Blocks run to their end one after another, from the first on and from the last on (S7). */
Test(kernel_run, S7_C5_computes_every_type_and_argument, .timeout = 600) {
  const int cases = sizeof arguments / sizeof *arguments;
  for (int i = 0; i < gs_shipped_count(); ++i) {
    gs_kernel_t k = gs_shipped_at(i);
    for (int n = 0; n < 2; ++n) {
      case_t c = fewer(&arguments[(i / 16 * 2 + i + n) % cases], &k);
      check(&k, &c);
    }
  }
}

/* Every split of k that a cluster can make. */
Test(kernel_run, S7_clusters_add_up, .timeout = 600) {
  for (int i = 0, tried = 0; i < gs_shipped_count(); ++i) {
    gs_kernel_t k = gs_shipped_at(i);
    if (k.ab_type != GS_TYPE_BF16 || k.d_type != GS_TYPE_F32 || gs_kernel_split_max(&k, 90) == 1) continue;
    int split_k = 2 + tried++ % 7, depth = k.family == GS_FAMILY_DIRECT ? 32 * k.warps : k.bk;
    int most = (int)gs_kernel_depth_max(&k) - 24, uneven = 40 + depth * split_k;
    case_t c = {
        "clusters", 37 + k.bm - 16, 21, uneven < most ? uneven : most, 0, 0, 1, split_k, 1, E(BIAS), 0.5f,
        1,          false,          1};
    check(&k, &c);
  }
}

/* More parts than a cluster has: by a workspace, in a fixed order. Of two layouts, the small tiles, for the time it takes. */
Test(kernel_run, S7_C5_sixteen_parts_add_up, .timeout = 600) {
  int tried = 0;
  for (int i = 0; i < gs_shipped_count(); ++i) {
    gs_kernel_t k = gs_shipped_at(i);
    bool small = k.bm * k.bn <= 32 * 64, mixed = k.ab_type == GS_TYPE_F16 && k.d_type == GS_TYPE_F32;
    if (!small || !mixed || k.transb == GS_OP_T || gs_kernel_split_max(&k, 90) < GS_SPLIT_MAX) continue;
    int split_k = GS_SPLIT_MAX - tried++ % 8;
    case_t c = {"sixteen parts",
                37 + k.bm - 16,
                21,
                40 + k.bk * split_k,
                0,
                0,
                1,
                split_k,
                1,
                E(RELU_BIAS),
                0.5f,
                1,
                false,
                1};
    check(&k, &c);
  }
  cr_assert_gt(tried, 8);
}

/* What the columns of a block of rows, and chunks of k, end in. */
static const case_t few_columns[] = {
    {"one column, less than a chunk", 3, 1, 5, 0, 0, 1, 1, 1, E(DEFAULT), 1, 0, false, 0},
    {"one column, chunks and an element", 19, 1, 521, 8, 0, 2, 1, 1, E(BIAS), 1, 0.5f, true, 1},
    {"two columns, a round of all loads and more", 23, 2, 1103, 16, 0, 1, 1, 1, E(GELU), 0.0625f, 0, false,
     0},
    {"three columns, 7 elements left", 16, 3, 271, 0, 0, 2, 1, 1, E(RELU_BIAS), -1, 1, false, 1},
    {"two columns, alpha 0", 16, 2, 270, 0, 0, 1, 1, 1, E(RELU), 0, 2, true, 0},
};

Test(kernel_run, S7_C5_C6_rows_compute_every_type_and_layout, .timeout = 600) {
  int tried = 0;
  for (int i = 0; i < gs_shipped_count(); ++i) {
    gs_kernel_t k = gs_shipped_at(i);
    if (k.family != GS_FAMILY_ROWS) continue;
    for (size_t n = 0; n < sizeof few_columns / sizeof *few_columns; ++n, ++tried) check(&k, &few_columns[n]);
  }
  cr_assert_gt(tried, 16 * 5);
}

static const case_t unaligned[] = {
    {"odd addresses, beta, bias", 37, 29, 75, 1, 1, 2, 2, 1, E(BIAS), 1, 3, false, 0},
    {"odd addresses, bias", 64, 29, 40, 1, 1, 1, 1, 1, E(BIAS), 1, 0, false, 0},
    {"odd addresses, gelu", 70, 70, 100, 5, 3, 1, 1, 4, E(GELU), 0.125f, 0, false, 0},
};

Test(kernel_run, C6_computes_from_any_address, .timeout = 600) {
  for (int i = 0; i < gs_shipped_count(); ++i) {
    gs_kernel_t k = gs_shipped_at(i);
    for (size_t n = 0; n < sizeof unaligned / sizeof *unaligned; ++n)
      if (k.align == 2) check(&k, &unaligned[n]);
  }
}

typedef float value_t(int row, int l); /* of A's row, or of B's column */

enum { SPECIAL_M = 37, SPECIAL_N = 21, SPECIAL_LD = 152 };
static int special_k; /* even */

/* D[i, j] in half, of A[i, l] and B[l, j]; k is TN. */
static void run_values(const gs_kernel_t *k, value_t *a, value_t *b, double d[SPECIAL_N][SPECIAL_M]) {
  static _Alignas(64) unsigned short x[SPECIAL_LD * SPECIAL_M], y[SPECIAL_LD * SPECIAL_N];
  static _Alignas(64) unsigned short z[SPECIAL_N * (SPECIAL_M + 3)];
  special_k = gs_kernel_depth_max(k) < 150 ? (int)gs_kernel_depth_max(k) : 150;
  gs_gemm_t g = {.batch = 1,
                 .m = SPECIAL_M,
                 .n = SPECIAL_N,
                 .k = special_k,
                 .lda = SPECIAL_LD,
                 .ldb = SPECIAL_LD,
                 .ldc = SPECIAL_M + 3,
                 .ldd = SPECIAL_M + 3};
  memset(x, 0xff, sizeof x), memset(y, 0xff, sizeof y); /* what is no element is NaN */
  for (int l = 0; l < special_k; ++l) {
    for (int i = 0; i < SPECIAL_M; ++i) x[i * SPECIAL_LD + l] = (unsigned short)narrow(GS_TYPE_F16, a(i, l));
    for (int j = 0; j < SPECIAL_N; ++j) y[j * SPECIAL_LD + l] = (unsigned short)narrow(GS_TYPE_F16, b(j, l));
  }
  gs_params_t p = {.a = x, .b = y, .d = z, .alpha = 1};
  gs_kernel_params(&g, 1, 1, &p);
  gs_launch_t launch = gs_kernel_launch(k, &g, 1, 90);
  gs_range_t ranges[] = {{x, sizeof x - 4, false}, {y, sizeof y - 4, false}, {z, sizeof z, true}};
  cr_assert_null(gs_emulate(k, &launch, &p, &(gs_emulation_t){ranges, 3, .late = true}));
  for (int j = 0; j < SPECIAL_N; ++j)
    for (int i = 0; i < SPECIAL_M; ++i)
      d[j][i] = widen(GS_TYPE_F16, (const unsigned char *)&z[j * (SPECIAL_M + 3) + i]);
}

static bool is_half_tn(const gs_kernel_t *k) {
  return k->ab_type == GS_TYPE_F16 && k->d_type == GS_TYPE_F16 && k->transa == GS_OP_T &&
         k->transb == GS_OP_N;
}

static float infinite_in_row_5(int row, int l) {
  return row == 5 && l == special_k - 1 ? INFINITY : 1;
}
static float nan_in_column_7(int column, int l) {
  return column == 7 && l == 3 ? NAN : 1;
}

Test(kernel_run, C4_nan_and_infinity_go_where_they_belong, .timeout = 600) {
  double d[SPECIAL_N][SPECIAL_M];
  for (int n = 0; n < gs_shipped_count(); ++n) {
    gs_kernel_t k = gs_shipped_at(n);
    if (!is_half_tn(&k)) continue;
    run_values(&k, infinite_in_row_5, nan_in_column_7, d);
    for (int j = 0; j < SPECIAL_N; ++j)
      for (int i = 0; i < SPECIAL_M; ++i)
        cr_assert(j == 7 ? isnan(d[j][i]) : d[j][i] == (i == 5 ? INFINITY : special_k),
                  "kernel %d: D[%d, %d] is %g", n, i, j, d[j][i]);
  }
}

static float large(int row, int l) {
  return (void)row, (void)l, 256;
}
static float large_both_ways(int column, int l) {
  return l < special_k / 2 ? 256 : l == special_k - 1 ? (float)column / 4 - 256 : -256;
}

/* Sums on the way reach 32 * 256 * 256 at least: in half they would be infinite. */
Test(kernel_run, C14_sums_beyond_half_precision_stay_finite, .timeout = 600) {
  double d[SPECIAL_N][SPECIAL_M];
  for (int n = 0; n < gs_shipped_count(); ++n) {
    gs_kernel_t k = gs_shipped_at(n);
    if (!is_half_tn(&k)) continue;
    run_values(&k, large, large_both_ways, d);
    for (int j = 0; j < SPECIAL_N; ++j)
      for (int i = 0; i < SPECIAL_M; ++i)
        cr_assert_eq(d[j][i], 64 * j, "kernel %d: D[%d, %d] is %g", n, i, j, d[j][i]);
  }
}

Test(kernel_run, a_fault_is_noticed) { /* the emulator's own check: a range that is too short */
  gs_kernel_t k = gs_shipped_at(1);
  gs_gemm_t g = {.batch = 1, .m = 100, .n = 60, .k = 40, .lda = 40, .ldb = 40, .ldc = 100, .ldd = 100};
  unsigned short *x = aligned_alloc(64, 64 << 10);
  memset(x, 0, 64 << 10);
  gs_params_t p = {.a = x, .b = x + 8192, .d = x + 16384, .alpha = 1};
  gs_kernel_params(&g, 1, 1, &p);
  gs_launch_t launch = gs_kernel_launch(&k, &g, 1, 90);
  gs_range_t ranges[] = {{p.a, 100 * 40 * 2, false}, {p.b, 60 * 40 * 2, false}, {p.d, 60 * 100 * 2, true}};
  gs_emulation_t how = {ranges, 3, .late = true};
  cr_assert_null(gs_emulate(&k, &launch, &p, &how));
  for (int i = 0; i < 3; ++i) {
    ranges[i].bytes -= 2;
    cr_assert_not_null(gs_emulate(&k, &launch, &p, &how), "range %d", i);
    ranges[i].bytes += 2;
  }
  free(x);
}
