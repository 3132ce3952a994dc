/* The kernels' registry, and the kernels' own source run on the CPU (kernels/emulate.h). */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GS_EMULATE
#include "common.cuh"
#include "emulate.h"
#include "gs_kernel.h"

/* --- ids --- */
Test(kernel, every_shipped_id_reads_back) {
  cr_assert_geq(gs_shipped_count(), 10 * 16);
  for (int i = 0; i < gs_shipped_count(); ++i) {
    char id[GS_KERNEL_ID_MAX];
    gs_kernel_t k = gs_shipped_at(i), read;
    cr_assert_lt(gs_kernel_format(id, sizeof id, &k), (int)sizeof id);
    cr_assert(gs_kernel_parse(id, &read), "%s", id);
    cr_assert_eq(memcmp(&read, &k, sizeof k), 0, "%s", id);
    cr_assert_eq(gs_shipped_find(&read), i, "%s", id);
  }
}

Test(kernel, ids_spell_the_fields) {
  gs_kernel_t k;
  cr_assert(gs_kernel_parse("mma_bf16_f32_nt_64x32x64_s3_w2_v2", &k));
  cr_assert_eq(k.ab_type, GS_TYPE_BF16);
  cr_assert_eq(k.d_type, GS_TYPE_F32);
  cr_assert_eq(k.transa, GS_OP_N);
  cr_assert_eq(k.transb, GS_OP_T);
  cr_assert(k.bm == 64 && k.bn == 32 && k.bk == 64 && k.stages == 3 && k.warps == 2 && k.align == 2);
}

Test(kernel, malformed_ids_are_refused) {
  static const char *const ids[] = {"",
                                    "mma",
                                    "mma_f16_f16_tn",
                                    "mma_f16_f16_tn_128x64x32",
                                    "mma_f16_f16_tn_128x64x32_s4",
                                    "mma_f16_f16_tn_128x64x32_s4_w4_",
                                    "mma_f16_f16_tn_128x64x32_s4_w4_v4",
                                    "mma_f16_f16_tn_128x64x32_s4_w4 ",
                                    " mma_f16_f16_tn_128x64x32_s4_w4",
                                    "mma_f16_f16_tn_0128x64x32_s4_w4",
                                    "mma_f16_f16_tn_+128x64x32_s4_w4",
                                    "mma_f16_f16_tn_-128x64x32_s4_w4",
                                    "mma_f16_f16_tn_0x64x32_s4_w4",
                                    "mma_f16_f16_tn_99999x64x32_s4_w4",
                                    "mma_f16_f16_tn_128x60x32_s4_w4",
                                    "mma_f16_f16_tn_128x64x16_s4_w4",
                                    "mma_f16_f16_tn_128x64x32_s1_w4",
                                    "mma_f16_f16_tn_128x64x32_s4_w0",
                                    "mma_f16_f16_tn_128x64x32_s4_w400",
                                    "mma_f16_bf16_tn_128x64x32_s4_w4",
                                    "mma_f32_f32_tn_128x64x32_s4_w4",
                                    "mma_f16_f16_cn_128x64x32_s4_w4",
                                    "mma_f16_f16_t_128x64x32_s4_w4",
                                    "mmm_f16_f16_tn_128x64x32_s4_w4",
                                    "MMA_f16_f16_tn_128x64x32_s4_w4",
                                    "mma_f16_f16_tn_128 x64x32_s4_w4"};
  gs_kernel_t k;
  for (size_t i = 0; i < sizeof ids / sizeof *ids; ++i)
    cr_assert_not(gs_kernel_parse(ids[i], &k), "'%s'", ids[i]);
}

Test(kernel, every_shipped_kernel_has_its_image) {
  for (int i = 0; i < gs_shipped_count(); ++i) {
    size_t size = 0;
    int image = gs_shipped_image_index(i);
    cr_assert(image >= 0 && image < gs_shipped_image_count());
    const unsigned char *at = gs_shipped_image(image, &size);
    cr_assert_gt(size, (size_t)4096);
    /* A fatbin's magic number. */
    cr_assert(at[0] == 0x50 && at[1] == 0xed && at[2] == 0x55 && at[3] == 0xba, "image %d", image);
  }
}

/* --- what is supported --- */
static gs_kernel_t kernel_of(const char *id) {
  gs_kernel_t k;
  cr_assert(gs_kernel_parse(id, &k), "%s", id);
  return k;
}

static gs_gemm_t plain_call(void) {
  return (gs_gemm_t){.entry = GS_ENTRY_GEMM_EX,
                     .transa = GS_OP_T,
                     .transb = GS_OP_N,
                     .a_type = GS_TYPE_F16,
                     .b_type = GS_TYPE_F16,
                     .c_type = GS_TYPE_F16,
                     .d_type = GS_TYPE_F16,
                     .compute = GS_COMPUTE_32F,
                     .align = 16,
                     .batch = 1,
                     .m = 100,
                     .n = 60,
                     .k = 40,
                     .lda = 40,
                     .ldb = 40,
                     .ldc = 100,
                     .ldd = 100};
}

Test(kernel, supports_says_why_not) {
  gs_kernel_t k = kernel_of("mma_f16_f16_tn_64x64x64_s4_w4");
  gs_kernel_t v2 = kernel_of("mma_f16_f16_tn_64x64x32_s3_w4_v2"),
              out32 = kernel_of("mma_f16_f32_tn_64x64x64_s4_w4");
  gs_gemm_t g = plain_call();
  cr_assert_eq(gs_kernel_supports(&k, &g), GS_REASON_SERVED);
#define BUT(field, value, reason)                                                                            \
  do {                                                                                                       \
    gs_gemm_t other = g;                                                                                     \
    other.field = value;                                                                                     \
    cr_assert_eq(gs_kernel_supports(&k, &other), GS_REASON_##reason, #field " = " #value);                   \
  } while (0)
  BUT(transa, GS_OP_C, SERVED);
  BUT(transa, GS_OP_N, DEGENERATE); /* lda < m */
  BUT(transa, GS_OP_OTHER, DEGENERATE);
  BUT(m, 0, DEGENERATE);
  BUT(n, -1, DEGENERATE);
  BUT(k, 0, DEGENERATE);
  BUT(batch, 0, DEGENERATE);
  BUT(lda, 39, DEGENERATE);
  BUT(ldb, 39, DEGENERATE);
  BUT(ldc, 99, DEGENERATE);
  BUT(ldd, 99, DEGENERATE);
  BUT(a_type, GS_TYPE_BF16, TYPE);
  BUT(c_type, GS_TYPE_F32, TYPE);
  BUT(compute, GS_COMPUTE_16F, SERVED);
  BUT(compute, GS_COMPUTE_32F_PEDANTIC, TYPE);
  BUT(compute, GS_COMPUTE_64F, TYPE);
  BUT(epilogue, GS_EPILOGUE_GELU_BIAS, SERVED);
  BUT(epilogue, GS_EPILOGUE_OTHER, EPILOGUE);
  BUT(batch_kind, GS_BATCH_STRIDED, SERVED);
  BUT(batch_kind, GS_BATCH_ARRAY, KERNEL);
  BUT(n, INT64_C(1) << 40, RANGE);
  BUT(n, 1 << 30, RANGE); /* too many tiles */
  BUT(ldd, INT64_C(1) << 40, RANGE);
  BUT(batch, 65536, RANGE);
  BUT(align, 8, ALIGNMENT);
  BUT(align, 0, ALIGNMENT);
  BUT(lda, 44, ALIGNMENT);
  BUT(ldb, 41, ALIGNMENT);
  BUT(ldd, 101, SERVED);
#undef BUT
  gs_gemm_t batched = g;
  batched.batch_kind = GS_BATCH_STRIDED;
  batched.batch = 2;
  batched.stride_a = -4000;
  cr_assert_eq(gs_kernel_supports(&k, &batched), GS_REASON_SERVED);
  batched.stride_b = 2404;
  cr_assert_eq(gs_kernel_supports(&k, &batched), GS_REASON_ALIGNMENT);
  cr_assert_eq(gs_kernel_supports(&v2, &batched), GS_REASON_SERVED);
  g.align = 2;
  g.lda = 41;
  cr_assert_eq(gs_kernel_supports(&v2, &g), GS_REASON_SERVED);
  cr_assert_eq(gs_kernel_supports(&out32, &g), GS_REASON_KERNEL);
  g = plain_call();
  g.c_type = g.d_type = GS_TYPE_F32;
  cr_assert_eq(gs_kernel_supports(&out32, &g), GS_REASON_SERVED);
  g.compute = GS_COMPUTE_16F;
  cr_assert_eq(gs_kernel_supports(&out32, &g), GS_REASON_TYPE);
  g = plain_call();
  g.transa = GS_OP_N;
  g.lda = 104;
  cr_assert_eq(gs_kernel_supports(&k, &g), GS_REASON_KERNEL);
}

Test(kernel, launch_covers_the_result) {
  gs_kernel_t k = kernel_of("mma_f16_f16_tn_64x32x64_s4_w4");
  gs_gemm_t g = plain_call();
  g.batch = 3;
  gs_launch_t l = gs_kernel_launch(&k, &g, 5);
  cr_assert(l.grid[0] == 2 * 2 && l.grid[1] == 5 && l.grid[2] == 3 && l.block == 128);
  cr_assert_eq(l.smem, 4u * (64 + 32) * 64 * 2);
  cr_assert_eq(gs_kernel_workspace(&k, &g, 1), (size_t)0);
  cr_assert_eq(gs_kernel_workspace(&k, &g, 5), (size_t)(GS_SPLIT_COUNTERS * 4 + 12 * 5 * 64 * 32 * 4));
  cr_assert_eq(gs_kernel_workspace(&k, &g, GS_SPLIT_MAX + 1), SIZE_MAX);
  g.batch = 2000;
  cr_assert_eq(gs_kernel_workspace(&k, &g, 2), SIZE_MAX);
}

/* --- the tile in shared memory --- */
Test(kernel, permutation_is_one_to_one_and_free_of_bank_conflicts) {
  static const int extents[] = {16, 32, 48, 64, 96, 128, 160, 256}, heights[] = {16, 32, 64, 96, 256};
  for (size_t e = 0; e < sizeof extents / sizeof *extents; ++e)
    for (size_t h = 0; h < sizeof heights / sizeof *heights; ++h) {
      int chunks = extents[e] / 8, rows = heights[h];
      bool *taken = calloc((size_t)(rows * chunks), sizeof *taken);
      for (int row = 0; row < rows; ++row)
        for (int chunk = 0; chunk < chunks; ++chunk) {
          unsigned place = gs_chunk_offset(extents[e], rows, row, chunk) / 16;
          cr_assert_lt(place, (unsigned)(rows * chunks));
          cr_assert_not(taken[place], "%d x %d: row %d, chunk %d", rows, extents[e], row, chunk);
          taken[place] = true;
        }
      free(taken);
      for (int row = 0; row < rows; row += 8) /* what one phase of ldmatrix reads */
        for (int chunk = 0; chunk < chunks; ++chunk) {
          unsigned banks = 0;
          for (int i = 0; i < 8; ++i)
            banks |= 1u << gs_chunk_offset(extents[e], rows, row + i, chunk) / 16 % 8;
          cr_assert_eq(banks, 0xffu, "%d x %d: rows from %d, chunk %d", rows, extents[e], row, chunk);
        }
    }
}

Test(kernel, quotient_is_exact) {
  for (unsigned d = 1; d < 1u << 21; d += 1 + d / 50)
    for (unsigned x = d - 1; x < (1u << 21) - 2; x += d * (1 + (1u << 21) / d / 100))
      for (unsigned at = x; at < x + 3; ++at) cr_assert_eq(gs_quotient(at, d), at / d, "%u / %u", at, d);
}

/* --- the kernels themselves --- */
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
static void check(const gs_kernel_t *k, const case_t *c) {
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
  gs_launch_t launch = gs_kernel_launch(k, &g, c->split_k);
  size_t workspace_bytes = gs_kernel_workspace(k, &g, c->split_k);
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

/* Sizes below are remainders: whole tiles are added to them. */
static case_t sized(const case_t *c, const gs_kernel_t *k, int tiles_m, int tiles_n, int tiles_k) {
  case_t x = *c;
  x.m += tiles_m * k->bm;
  x.n += tiles_n * k->bn;
  x.k += tiles_k * k->bk;
  return x;
}

#define E(name) GS_EPILOGUE_##name

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
    {{"odd addresses", 1, 5, 11, 1, 1, 1, 1, 1, E(DEFAULT), 1, 0, false, 0}, {1, 0, 2}},
    {{"addresses of 4 bytes", 2, 34, 6, 2, 2, 1, 1, 1, E(DEFAULT), 1, 0, false, 0}, {0, 1, 1}},
    {{"addresses of 8 bytes", 12, 4, 4, 4, 4, 1, 1, 1, E(DEFAULT), 1, 0, false, 0}, {0, 1, 1}},
};

Test(kernel, computes_every_layout, .timeout = 600) {
  for (int i = 0; i < gs_shipped_count(); ++i) {
    gs_kernel_t k = gs_shipped_at(i);
    if (k.ab_type != GS_TYPE_F16 || k.d_type != GS_TYPE_F16) continue;
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; ++n) {
      const int *tiles = shapes[n].tiles;
      case_t c = sized(&shapes[n].c, &k, tiles[0], tiles[1], tiles[2]);
      if (c.k == 0) c.k = 2 * k.stages * k.bk;
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
    {"split-K, gelu", 70, 41, 330, 8, 0, 1, 3, 1, E(GELU), 0.0625f, 0, false, 0},
    {"split-K, batch, more splits than k-tiles", 33, 20, 70, 8, 0, 2, 5, 1, E(DEFAULT), 1, 1, false, 0},
    {"odd leading dimension of C and D", 45, 33, 64, 0, 0, 1, 1, 2, E(RELU_BIAS), 2, -1, false, 1},
};

Test(kernel, computes_every_type_and_argument, .timeout = 600) {
  const int cases = sizeof arguments / sizeof *arguments;
  for (int i = 0; i < gs_shipped_count(); ++i) {
    gs_kernel_t k = gs_shipped_at(i);
    for (int n = 0; n < 2; ++n) check(&k, &arguments[(i / 16 * 2 + i + n) % cases]);
  }
}

static const case_t unaligned[] = {
    {"odd addresses, beta, bias", 37, 29, 75, 1, 1, 2, 2, 1, E(BIAS), 1, 3, false, 0},
    {"odd addresses, gelu", 70, 70, 100, 5, 3, 1, 1, 4, E(GELU), 0.125f, 0, false, 0},
};

Test(kernel, computes_from_any_address, .timeout = 600) {
  for (int i = 0; i < gs_shipped_count(); ++i) {
    gs_kernel_t k = gs_shipped_at(i);
    for (size_t n = 0; n < sizeof unaligned / sizeof *unaligned; ++n)
      if (k.align == 2) check(&k, &unaligned[n]);
  }
}

Test(kernel, a_fault_is_noticed) { /* the emulator's own check: a range that is too short */
  gs_kernel_t k = gs_shipped_at(1);
  gs_gemm_t g = plain_call();
  unsigned short *x = aligned_alloc(64, 64 << 10);
  memset(x, 0, 64 << 10);
  gs_params_t p = {.a = x, .b = x + 8192, .d = x + 16384, .alpha = 1};
  gs_kernel_params(&g, 1, 1, &p);
  gs_launch_t launch = gs_kernel_launch(&k, &g, 1);
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
