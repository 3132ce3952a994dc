/* random COUNT SEED [backwards]: products drawn at random over entry points, layouts, types, sizes even and odd, leading
 * dimensions, alignments, scalars of either memory, batches, epilogues and streams; each checked against the
 * reference, and every byte around C. Prints "calls: N", "wrong: N", "loose: N". On stand-ins or on a GPU.
 * backwards: batches of A and B go by negative strides.
 * random rows: prints rows of a table that serves many of them. */
#include "client.h"

#include <math.h>
#include <string.h>

#include "tiles.h"

/* cuBLAS adds up parts of k in 16 bits: two in 50,000 of its results were off by more than one rounding (H200, 13.1).
 * Ours are not: on stand-ins none may be. */
#define LOOSE 3

enum { SIDE = 40, BATCH = 3, GUARD = 64, ROOM = 4 * SIDE * (SIDE + 24) * BATCH };

static const int sizes[] = {1, 3, 8, 16, 17, 24, 32, SIDE};
static const struct {
  const char *ab_name, *d_name;
  cudaDataType_t ab, d;
} types[] = {{"f16", "f16", CUDA_R_16F, CUDA_R_16F},
             {"f16", "f32", CUDA_R_16F, CUDA_R_32F},
             {"bf16", "bf16", CUDA_R_16BF, CUDA_R_16BF},
             {"bf16", "f32", CUDA_R_16BF, CUDA_R_32F}};
static const struct {
  const char *name;
  cublasLtEpilogue_t value;
  int gs;
  bool bias;
} epilogues[] = {{"default", CUBLASLT_EPILOGUE_DEFAULT, GS_EPI_DEFAULT, false},
                 {"relu", CUBLASLT_EPILOGUE_RELU, GS_EPI_RELU, false},
                 {"bias", CUBLASLT_EPILOGUE_BIAS, GS_EPI_BIAS, true},
                 {"relu_bias", CUBLASLT_EPILOGUE_RELU_BIAS, GS_EPI_RELU_BIAS, true},
                 {"gelu", CUBLASLT_EPILOGUE_GELU, GS_EPI_GELU, false},
                 {"gelu_bias", CUBLASLT_EPILOGUE_GELU_BIAS, GS_EPI_GELU_BIAS, true}};
#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))

static bool backwards;
static uint64_t state;
static int below(int limit) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int)((state >> 33) % (uint64_t)limit);
}
static int one_of(const int *values, int count) {
  return values[below(count)];
}

/* ---- the table ---- */

typedef struct {
  const char *family, *tile;
  int align;
  bool narrow, splits; /* for a few columns; k can be split */
} tile_t;
static const tile_t tiles[] = {
#define GS_MMA(bm, bn, bk, stages, warps, align)                                                             \
  {"mma", GS_TEXT(GS_MMA_TILE(bm, bn, bk, stages, warps, align)), align, false, true},
#define GS_DIRECT(bm, bn, stages, warps, swap)                                                               \
  {"direct", GS_TEXT(GS_DIRECT_TILE(bm, bn, stages, warps, swap)), 16, false, true},
#define GS_WGMMA(bm, bn, bk, stages, warps)                                                                  \
  {"wgmma", GS_TEXT(GS_MMA_TILE(bm, bn, bk, stages, warps, 16)), 16, false, true},
#define GS_ROWS(bm, bn, stages, warps)                                                                       \
  {"rows", GS_TEXT(GS_ROWS_TILE(bm, bn, stages, warps)), 16, true, false},
#include "mma.def"
#include "direct.def"
#include "wgmma.def"
#include "rows.def"
#undef GS_MMA
#undef GS_DIRECT
#undef GS_WGMMA
#undef GS_ROWS
};
enum { NARROW = 3 }; /* columns */

/* A tile for few columns leaves the others to another. Odd sizes, which few tiles serve, take turns of their own, and so do
 * those others. */
static void print_row(const char *layout, int type, int m, int k, const char *compute, const char *epilogue,
                      const char *batch) {
  static int turns[3];
  const tile_t *tile;
  const bool odd = m % 8 || k % 8;
  for (int least = 1, most; least <= SIDE; least = most + 1) {
    int *at = &turns[least > 1 ? 2 : odd];
    do tile = &tiles[(*at)++ % LENGTH(tiles)];
    while ((odd && tile->align != 2) || (least > 1 && tile->narrow));
    most = tile->narrow ? NARROW : SIDE;
    const int turn = *at;
    printf("%c\t%c\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s_%s_%s_%s_%s\t%d\t%d\t8\t10\t0\t0\n",
           layout[0] - 32, layout[1] - 32, m, k, types[type].ab_name, types[type].d_name, compute, epilogue,
           batch, least, most, tile->family, types[type].ab_name, types[type].d_name, layout, tile->tile,
           1 + (tile->splits && k >= 32 && turn % 3 == 0), 1 + turn % 2);
  }
}

static void print_rows(void) {
  static const char *const layouts[] = {"nn", "tn", "nt", "tt"};
  for (int l = 0; l < 4; l++)
    for (int i = 0; i < LENGTH(sizes); i++)
      for (int j = 0; j < LENGTH(sizes); j++) {
        for (int t = 0; t < LENGTH(types); t++) {
          print_row(layouts[l], t, sizes[i], sizes[j], "32f", "default", "single");
          print_row(layouts[l], t, sizes[i], sizes[j], "32f", "default", "strided");
        }
        for (int e = 1; e < LENGTH(epilogues); e++)
          print_row(layouts[l], 0, sizes[i], sizes[j], "32f", epilogues[e].name, "single");
        print_row(layouts[l], 0, sizes[i], sizes[j], "16f", "default", "single");
      }
}

/* ---- the calls ---- */

static cublasHandle_t handle;
static CUstream streams[4];                                        /* legacy, two of its own, the thread's */
static void *inputs[2][LENGTH(types)], *mirrors[2][LENGTH(types)]; /* on the device, on the host */
static char *c; /* device, GUARD bytes before and after what a call may write */
static unsigned char *before, *after;
static char *scalars;

typedef struct {
  int way; /* 0 cublasGemmEx, 1 its _64, 2 strided batches, 3 cublasLtMatmul, 4 half scalars */
  int type, epilogue;
  bool device_scalars;
  const void *alpha, *beta;
  product_t p;
} request_t;

static int64_t leading(int64_t rows) {
  static const int slack[] = {0, 0, 0, 8, 16, 1, 3};
  return rows + one_of(slack, LENGTH(slack));
}

/* Scalars as the call wants them: in host memory that dies, or on the device. */
static const void *scalar(request_t *r, double value, int which) {
  static char host[2][8];
  cudaDataType_t type = r->way == 4 ? CUDA_R_16F : CUDA_R_32F;
  value_store(type, host[which], 0, value);
  if (!r->device_scalars) return host[which];
  MUST(cuMemcpyHtoD((CUdeviceptr)(scalars + 8 * which), host[which], 8));
  return scalars + 8 * which;
}

static void draw(request_t *r) {
  static const double alphas[] = {1, 1, 1, 0.5, -2, 0}, betas[] = {0, 0, 0, 1, 0.25};
  static const int offsets[] = {0, 0, 0, 0, 8, 2, 4};
  *r = (request_t){.way = below(5), .type = below(LENGTH(types))};
  product_t *p = &r->p;
  if (r->way == 4) r->type = 0;
  r->epilogue = r->way == 3 ? below(LENGTH(epilogues)) : 0;
  if (r->epilogue) r->type = 0;
  r->device_scalars = below(4) == 0 && r->way != 3;
  p->transa = below(2), p->transb = below(2);
  p->m = one_of(sizes, LENGTH(sizes)), p->k = one_of(sizes, LENGTH(sizes)), p->n = 1 + below(SIDE);
  if (below(100) == 0) p->k = 1 + below(SIDE); /* mostly without a row */
  p->batch = r->way == 2 ? 1 + below(BATCH) : 1;
  p->lda = leading(p->transa ? p->k : p->m), p->ldb = leading(p->transb ? p->n : p->k);
  p->ldc = p->ldd = leading(p->m);
  if (p->batch > 1) {
    p->stride_a = below(3) ? 8 * (p->lda * (p->transa ? p->m : p->k) / 8 + 1) : 0;
    p->stride_b = below(3) ? 8 * (p->ldb * (p->transb ? p->k : p->n) / 8 + 1) : 0;
    p->stride_c = p->stride_d = p->ldd * p->n + below(2);
  }
  p->a_type = p->b_type = types[r->type].ab, p->c_type = p->d_type = p->bias_type = types[r->type].d;
  p->scale_type = CUDA_R_32F;
  p->epilogue = epilogues[r->epilogue].gs;
  p->a = (char *)inputs[0][r->type] + one_of(offsets, LENGTH(offsets));
  p->b = (char *)inputs[1][r->type] + one_of(offsets, LENGTH(offsets));
  if (backwards) {
    p->a = (char *)p->a + 2 * p->stride_a * (p->batch - 1), p->stride_a = -p->stride_a;
    p->b = (char *)p->b + 2 * p->stride_b * (p->batch - 1), p->stride_b = -p->stride_b;
  }
  int offset = one_of(offsets, LENGTH(offsets));
  p->d = c + GUARD + (p->d_type == CUDA_R_32F ? offset / 4 * 4 : offset);
  p->c = p->d;
  if (epilogues[r->epilogue].bias) p->bias = (char *)inputs[0][0] + 2 * below(8);
  /* With alpha 0 cuBLASLt 13.1 leaves out the epilogue of a single row. */
  p->alpha = alphas[below(LENGTH(alphas) - (r->epilogue != 0))], p->beta = betas[below(LENGTH(betas))];
  r->alpha = scalar(r, p->alpha, 0), r->beta = scalar(r, p->beta, 1);
}

static cublasStatus_t by_lt(const request_t *r, CUstream stream) {
  const product_t *p = &r->p;
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t la, lb, lc;
  cublasOperation_t ta = p->transa ? CUBLAS_OP_T : CUBLAS_OP_N, tb = p->transb ? CUBLAS_OP_T : CUBLAS_OP_N;
  MUST(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  MUST(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta));
  MUST(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb));
  MUST(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogues[r->epilogue].value,
                                      sizeof epilogues[0].value));
  if (p->bias)
    MUST(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias));
  MUST(cublasLtMatrixLayoutCreate(&la, p->a_type, (uint64_t)(p->transa ? p->k : p->m),
                                  (uint64_t)(p->transa ? p->m : p->k), p->lda));
  MUST(cublasLtMatrixLayoutCreate(&lb, p->b_type, (uint64_t)(p->transb ? p->n : p->k),
                                  (uint64_t)(p->transb ? p->k : p->n), p->ldb));
  MUST(cublasLtMatrixLayoutCreate(&lc, p->d_type, (uint64_t)p->m, (uint64_t)p->n, p->ldd));
  cublasStatus_t status = cublasLtMatmul((cublasLtHandle_t)handle, desc, r->alpha, p->a, la, p->b, lb,
                                         r->beta, p->c, lc, p->d, lc, NULL, NULL, 0, (cudaStream_t)stream);
  MUST(cublasLtMatrixLayoutDestroy(la));
  MUST(cublasLtMatrixLayoutDestroy(lb));
  MUST(cublasLtMatrixLayoutDestroy(lc));
  MUST(cublasLtMatmulDescDestroy(desc));
  return status;
}

static cublasStatus_t call(const request_t *r) {
  const product_t *p = &r->p;
  CUstream stream = streams[below(LENGTH(streams))];
  cublasOperation_t ta = p->transa ? CUBLAS_OP_T : CUBLAS_OP_N, tb = p->transb ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasComputeType_t compute = r->way == 4 ? CUBLAS_COMPUTE_16F : CUBLAS_COMPUTE_32F;
  if (r->way == 3) return by_lt(r, stream);
  MUST(cublasSetStream(handle, (cudaStream_t)stream));
  MUST(cublasSetPointerMode(handle,
                            r->device_scalars ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST));
  if (r->way == 2)
    return cublasGemmStridedBatchedEx(handle, ta, tb, (int)p->m, (int)p->n, (int)p->k, r->alpha, p->a,
                                      p->a_type, (int)p->lda, p->stride_a, p->b, p->b_type, (int)p->ldb,
                                      p->stride_b, r->beta, p->d, p->d_type, (int)p->ldd, p->stride_d,
                                      (int)p->batch, compute, CUBLAS_GEMM_DEFAULT);
  if (r->way == 1)
    return cublasGemmEx_64(handle, ta, tb, p->m, p->n, p->k, r->alpha, p->a, p->a_type, p->lda, p->b,
                           p->b_type, p->ldb, r->beta, p->d, p->d_type, p->ldd, compute, CUBLAS_GEMM_DEFAULT);
  return cublasGemmEx(handle, ta, tb, (int)p->m, (int)p->n, (int)p->k, r->alpha, p->a, p->a_type, (int)p->lda,
                      p->b, p->b_type, (int)p->ldb, r->beta, p->d, p->d_type, (int)p->ldd, compute,
                      CUBLAS_GEMM_DEFAULT);
}

/* Of a single rounding to the type of a number so large; sums in half, as cuBLAS's own 16f are, lose more. */
static double tolerance(const request_t *r, double magnitude) {
  if (r->way == 4) return magnitude * 0x1p-4;
  return magnitude * (r->p.d_type == CUDA_R_16F    ? 0x1.2p-10
                      : r->p.d_type == CUDA_R_16BF ? 0x1.2p-7
                                                   : 0x1p-18);
}

/* Where the host has what the device has at an address. */
static const void *mirror(int side, int type, const void *device) {
  return (char *)mirrors[side][type] + ((const char *)device - (const char *)inputs[side][type]);
}

/* What the result was where it was wrong, and should have been; NaN: outside the result. */
static struct {
  double is, right;
  bool loose; /* off by more than one rounding, and less than LOOSE */
} off;

/* The whole of C's memory: what lies outside the result must be as it was, to the bit. cuBLAS rounds to the type once before
 * it adds a bias, too. */
static bool right(const request_t *r, size_t bytes) {
  const product_t *p = &r->p;
  static unsigned char *expected, *unbiased;
  size_t width = value_bytes(p->d_type), first = (size_t)((char *)p->d - c);
  if (!expected) expected = malloc(2 * GUARD + ROOM), unbiased = malloc(2 * GUARD + ROOM);
  memcpy(expected, before, bytes);
  off.is = off.right = NAN, off.loose = false;
  product_t again = *p;
  again.a = mirror(0, r->type, p->a), again.b = mirror(1, r->type, p->b);
  if (p->bias) again.bias = mirror(0, 0, p->bias);
  again.c = before + first, again.d = expected + first;
  must(!product_run(&again), "the reference");
  again.d = unbiased + first, again.bias = NULL, again.epilogue = GS_EPI_DEFAULT;
  must(p->bias && !product_run(&again), "the reference without its bias");
  MUST(cuMemcpyDtoH(after, (CUdeviceptr)c, bytes));
  for (size_t i = 0; i < first; i++)
    if (after[i] != before[i]) return false;
  for (int64_t i = 0; first + (size_t)(i + 1) * width <= bytes; i++) {
    int64_t entry = p->stride_d ? i % p->stride_d : i, which = p->stride_d ? i / p->stride_d : 0;
    bool inside = which < p->batch && entry % p->ldd < p->m && entry / p->ldd < p->n;
    if (!inside && memcmp(after + first + (size_t)i * width, before + first + (size_t)i * width, width))
      return false;
    if (!inside) continue;
    double x = value_load(p->d_type, after + first, i), y = value_load(p->d_type, expected + first, i);
    double between = p->bias ? fabs(value_load(p->d_type, unbiased + first, i)) : 0;
    double error = fabs(x - y), most = tolerance(r, fmax(1, fabs(y)) + between);
    if (error <= most) continue;
    off.is = x, off.right = y, off.loose = true;
    if (!(error <= LOOSE * most)) return false;
  }
  return true;
}

int main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "rows")) return print_rows(), 0;
  if (argc < 3) return 2;
  long count = atol(argv[1]), wrong = 0, refused = 0, loose = 0;
  state = strtoull(argv[2], NULL, 10);
  backwards = argc > 3;
  MUST(cublasCreate(&handle));
  MUST(cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&streams[2], CU_STREAM_DEFAULT));
  streams[3] = CU_STREAM_PER_THREAD;
  for (int t = 0; t < LENGTH(types); t++)
    for (int side = 0; side < 2; side++) {
      inputs[side][t] = device_values(types[t].ab, ROOM / 2, (unsigned)(2 * t + side + 1));
      must(!(mirrors[side][t] = malloc(ROOM)), "malloc");
      MUST(cuMemcpyDtoH(mirrors[side][t], (CUdeviceptr)inputs[side][t], ROOM));
    }
  c = device_values(CUDA_R_16F, (2 * GUARD + ROOM) / 2, 99);
  scalars = device_values(CUDA_R_16F, 8, 98);
  before = malloc(2 * GUARD + ROOM), after = malloc(2 * GUARD + ROOM);
  must(!before || !after, "malloc");
  for (long i = 0; i < count; i++) {
    request_t r;
    draw(&r);
    const product_t *p = &r.p;
    size_t width = value_bytes(p->d_type);
    size_t bytes = GUARD + 8 + (size_t)(p->stride_d * (p->batch - 1) + p->ldd * p->n) * width + GUARD;
    /* Where beta is 0 cuBLAS must not read C: NaN there must not show. */
    for (size_t at = 0; at < bytes; at++) before[at] = 0xff;
    size_t first = (size_t)((char *)p->d - c);
    for (int64_t at = 0; p->beta != 0 && first + (size_t)(at + 1) * width <= bytes; at++)
      value_store(p->d_type, before + first, at, (double)below(2001) / 1000 - 1);
    MUST(cuMemcpyHtoD((CUdeviceptr)c, before, bytes));
    MUST(cuCtxSynchronize()); /* streams of their own do not wait for copies from pageable memory */
    cublasStatus_t status = call(&r);
    MUST(cuCtxSynchronize());
    if (status != CUBLAS_STATUS_SUCCESS) {
      refused++;
      continue;
    }
    if (right(&r, bytes)) {
      loose += off.loose;
      continue;
    }
    if (wrong++ >= 20) continue; /* enough is said */
    fprintf(stderr,
            "random: call %ld: way %d types %d %c%c %lldx%lldx%lld ld %lld %lld %lld batch %lld epilogue %s "
            "alpha %g beta %g%s: %g, not %g\n",
            i, r.way, r.type, "NT"[p->transa], "NT"[p->transb], (long long)p -> m, (long long)p -> n,
            (long long)p -> k, (long long)p -> lda, (long long)p -> ldb, (long long)p -> ldd,
            (long long)p -> batch, epilogues[r.epilogue].name, p->alpha, p->beta,
            r.device_scalars ? " on the device" : "", off.is, off.right);
  }
  printf("calls: %ld\nrefused: %ld\nloose: %ld\nwrong: %ld\n", count, refused, loose, wrong);
  return wrong != 0;
}
