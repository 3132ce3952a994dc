/* random COUNT SEED [LOG | leak]: products drawn at random over entry points, layouts, types, sizes even and odd, leading
 * dimensions, alignments, scalars of either memory, batches (forwards, backwards, of one matrix), epilogues and streams;
 * now and then one of many tiles; each checked against the reference, and every byte around C. Prints "calls: N",
 * "wrong: N", "loose: N", and "leaked: N", the bytes that the last calls left behind. On stand-ins or on a GPU.
 * LOG: where gemmshim logs each call (GEMMSHIM_LOG=2, _LOG_FILE, _LOG_RATE): "ours: N" were its own, which none may be
 * loose of ("ours loose: N"), "deep: N" of them large.
 * leak: some calls leave memory behind themselves (to see that it shows).
 * random rows: prints rows of a table that serves many of them. */
#include "client.h"

#include <dlfcn.h>
#include <malloc.h>
#include <math.h>
#include <string.h>

#include "tiles.h"

/* cuBLAS adds up parts of k in 16 bits: two in 50,000 of its results were off by more than one rounding (H200, 13.1).
 * Ours are not. */
#define LOOSE 3

/* One product in SELDOM is large: the reference takes milliseconds for it. ELEMENTS of a matrix, of all its batch, and
 * OPERATIONS bound it; its leading dimension may add 16 to either side. */
enum { SIDE = 40, WIDE = 264, BATCH = 3, GUARD = 64, SELDOM = 500, ELEMENTS = 300000, OPERATIONS = 1 << 23 };
enum { DEEPEST = 2000, ROOM = 2 * (ELEMENTS + 16 * DEEPEST * BATCH + 64) };

static const int sizes[] = {1, 3, 8, 16, 17, 24, 32, SIDE};
/* m and k of the large ones: several tiles, the last one cut off. */
static const int wide[] = {8, 131, 136, WIDE, 267, 520}, deep[] = {136, 267, 520, 1032, DEEPEST};
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

/* cuBLAS 13.1 by itself now and then ends in an illegal address where strides go backwards (H200). */
static bool on_stand_ins;
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
  bool narrow; /* for a few columns */
  int parts;   /* of k, at most */
  int depth;   /* k at most, unless 0 */
} tile_t;
static const tile_t tiles[] = {
#define GS_MMA(bm, bn, bk, stages, warps, align)                                                             \
  {"mma", GS_TEXT(GS_MMA_TILE(bm, bn, bk, stages, warps, align)), align, false, 9, 0},
#define GS_DIRECT(bm, bn, stages, warps, swap)                                                               \
  {"direct", GS_TEXT(GS_DIRECT_TILE(bm, bn, stages, warps, swap)), 16, false, 8, 0},
#define GS_WGMMA(bm, bn, bk, stages, warps)                                                                  \
  {"wgmma", GS_TEXT(GS_MMA_TILE(bm, bn, bk, stages, warps, 16)), 16, false, 9, 0},
#define GS_ROWS(bm, bn, stages, warps) {"rows", GS_TEXT(GS_ROWS_TILE(bm, bn, stages, warps)), 16, true, 1, 0},
#define GS_STRIP(bm, bn, bk, stages, warps)                                                                  \
  {"strip", GS_TEXT(GS_MMA_TILE(bm, bn, bk, stages, warps, 16)), 16, false, 1, bk},
#include "mma.def"
#include "direct.def"
#include "wgmma.def"
#include "rows.def"
#include "strip.def"
#undef GS_MMA
#undef GS_DIRECT
#undef GS_WGMMA
#undef GS_ROWS
#undef GS_STRIP
};
enum { NARROW = 3 }; /* columns */

/* Parts of k of a large product: a cluster up to 8, by a workspace beyond. */
static int parts_of(const tile_t *tile, int k) {
  static const int parts[] = {1, 2, 3, 5, 8, 9};
  int count = 0;
  if (k <= SIDE) return 1 + (tile->parts > 1 && k >= 32 && below(3) == 0);
  while (count < LENGTH(parts) && parts[count] <= tile->parts) count++;
  return one_of(parts, count);
}

/* A tile for few columns leaves the others to another. Odd sizes, which few tiles serve, take turns of their own, and so do
 * those others. */
static void print_row(const char *layout, int type, int m, int k, const char *compute, const char *epilogue,
                      const char *batch) {
  static int turns[3];
  const tile_t *tile;
  const bool odd = m % 8 || k % 8;
  const int last = k > SIDE ? WIDE : SIDE;
  for (int least = 1, most; least <= last; least = most + 1) {
    int *at = &turns[least > 1 ? 2 : odd];
    do tile = &tiles[(*at)++ % LENGTH(tiles)];
    while ((odd && tile->align != 2) || (least > 1 && tile->narrow) || (tile->depth && k > tile->depth));
    most = tile->narrow ? NARROW : last;
    const int turn = *at;
    printf("%c\t%c\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s_%s_%s_%s_%s\t%d\t%d\t8\t10\t0\t0\n",
           layout[0] - 32, layout[1] - 32, m, k, types[type].ab_name, types[type].d_name, compute, epilogue,
           batch, least, most, tile->family, types[type].ab_name, types[type].d_name, layout, tile->tile,
           parts_of(tile, k), 1 + turn % 2);
  }
}

static void print_rows_of(const char *layout, int m, int k) {
  for (int t = 0; t < LENGTH(types); t++) {
    print_row(layout, t, m, k, "32f", "default", "single");
    for (int b = 1; b <= BATCH; b++)
      print_row(layout, t, m, k, "32f", "default",
                (const char *[]){"strided:1", "strided:2", "strided:3"}[b - 1]);
  }
  for (int e = 1; e < LENGTH(epilogues); e++) print_row(layout, 0, m, k, "32f", epilogues[e].name, "single");
  print_row(layout, 0, m, k, "16f", "default", "single");
}

static void print_rows(void) {
  static const char *const layouts[] = {"nn", "tn", "nt", "tt"};
  for (int l = 0; l < LENGTH(layouts); l++) {
    for (int i = 0; i < LENGTH(sizes); i++)
      for (int j = 0; j < LENGTH(sizes); j++) print_rows_of(layouts[l], sizes[i], sizes[j]);
    for (int i = 0; i < LENGTH(wide); i++)
      for (int j = 0; j < LENGTH(deep); j++) print_rows_of(layouts[l], wide[i], deep[j]);
  }
}

/* ---- the calls ---- */

static cublasHandle_t handle;
static CUstream streams[4];                                        /* legacy, two of its own, the thread's */
static void *inputs[2][LENGTH(types)], *mirrors[2][LENGTH(types)]; /* on the device, on the host; by type */
static char *c; /* device, GUARD bytes before and after what a call may write */
static unsigned char *before, *after;
static char *scalars;

typedef struct {
  int way; /* 0 cublasGemmEx, 1 its _64, 2 strided batches, 3 cublasLtMatmul, 4 half scalars */
  int type, epilogue;
  bool device_scalars;
  const void *alpha, *beta;
  bool ours; /* gemmshim is known to have served it */
  product_t p;
} request_t;

/* Where every other product is as most programs': at addresses and leading dimensions of 16 bytes, if its sizes are. */
static int64_t leading(int64_t rows, bool aligned) {
  static const int slack[] = {0, 0, 0, 8, 16, 1, 3};
  return rows + one_of(slack, LENGTH(slack) - 2 * aligned);
}
static int offset(bool aligned) {
  static const int offsets[] = {0, 0, 0, 0, 16, 8, 2, 4};
  return one_of(offsets, LENGTH(offsets) - 3 * aligned);
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

/* m, n and k, of which the batch is known. */
static void draw_sizes(product_t *p) {
  p->m = one_of(sizes, LENGTH(sizes)), p->k = one_of(sizes, LENGTH(sizes)), p->n = 1 + below(SIDE);
  if (below(100) == 0) p->k = 1 + below(SIDE); /* mostly without a row */
  if (below(SELDOM)) return;
  do p->m = one_of(wide, LENGTH(wide)), p->k = one_of(deep, LENGTH(deep));
  while (p->m * p->k * p->batch > ELEMENTS);
  int64_t widest = OPERATIONS / (p->m * p->k * p->batch);
  if (widest > ELEMENTS / (p->k * p->batch)) widest = ELEMENTS / (p->k * p->batch);
  p->n = 1 + below(widest < WIDE ? (int)widest : WIDE);
}

/* From one entry of a batch to the next, behind which it lies, or before, or both are one; p->a or p->b is moved to the
 * first, where that lies last. */
static int64_t draw_stride(const product_t *p, const void **operand, int64_t elements) {
  if (below(3) == 0) return 0;
  int64_t stride = 8 * (elements / 8 + 1) + (below(8) == 0);
  if (below(4) || !on_stand_ins) return stride;
  *operand = (const char *)*operand + 2 * stride * (p->batch - 1);
  return -stride;
}

static void draw(request_t *r) {
  static const double alphas[] = {1, 1, 1, 0.5, -2, 0}, betas[] = {0, 0, 0, 1, 0.25};
  *r = (request_t){.way = below(5), .type = below(LENGTH(types))};
  product_t *p = &r->p;
  if (r->way == 4) r->type = 0;
  r->epilogue = r->way == 3 ? below(LENGTH(epilogues)) : 0;
  if (r->epilogue) r->type = 0;
  r->device_scalars = below(4) == 0 && r->way != 3;
  p->transa = below(2), p->transb = below(2);
  p->batch = r->way == 2 ? 1 + below(BATCH) : 1;
  draw_sizes(p);
  bool aligned = below(2);
  p->lda = leading(p->transa ? p->k : p->m, aligned), p->ldb = leading(p->transb ? p->n : p->k, aligned);
  p->ldc = p->ldd = leading(p->m, aligned);
  p->a_type = p->b_type = types[r->type].ab, p->c_type = p->d_type = p->bias_type = types[r->type].d;
  p->scale_type = CUDA_R_32F;
  p->epilogue = epilogues[r->epilogue].gs;
  p->a = (char *)inputs[0][r->type] + offset(aligned);
  p->b = (char *)inputs[1][r->type] + offset(aligned);
  if (p->batch > 1) {
    p->stride_a = draw_stride(p, &p->a, p->lda * (p->transa ? p->m : p->k));
    p->stride_b = draw_stride(p, &p->b, p->ldb * (p->transb ? p->k : p->n));
    p->stride_c = p->stride_d = p->ldd * p->n + below(2);
  }
  int ahead = offset(aligned);
  p->d = c + GUARD + (p->d_type == CUDA_R_32F ? ahead / 4 * 4 : ahead);
  p->c = p->d;
  if (epilogues[r->epilogue].bias) p->bias = (char *)inputs[0][0] + (aligned ? 16 : 2) * below(8);
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

/* How far a result may be off that is of that magnitude, 1 at least: by a single rounding to its type, and by what its sum in
 * fp32 lost. A sum of k products of numbers up to 1 has some k / 8 roundings or more, each of a running sum that wanders
 * as far as sqrt(k), times alpha, or to the result: what 2^-18 of the result covers at k = SIDE grows by k / SIDE times
 * sqrt(k / SIDE) or the result. Parts of k in 16 bits are rounded where the running sum is; sums in half, as cuBLAS's own 16f are, lose
 * more. */
static double tolerance(const request_t *r, double magnitude, bool in_parts) {
  double rounding = r->p.d_type == CUDA_R_16F ? 0x1.2p-10 : r->p.d_type == CUDA_R_16BF ? 0x1.2p-7 : 0x1p-18;
  double deeper = fmax(1, (double)r->p.k / SIDE);
  double size = fmax(deeper > 1 ? sqrt(deeper) * fmax(1, fabs(r->p.alpha)) : 1, magnitude);
  double lost = deeper * size - magnitude; /* 0 up to SIDE */
  if (r->way == 4 && !r->ours) return 0x1p-4 * (magnitude + lost);
  return rounding * (in_parts ? size : magnitude) + 0x1p-18 * lost;
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
    double error = fabs(x - y), magnitude = fmax(1, fabs(y)) + between;
    if (error <= tolerance(r, magnitude, false)) continue;
    off.is = x, off.right = y, off.loose = true;
    if (!(error <= LOOSE * tolerance(r, magnitude, true))) return false;
  }
  return true;
}

/* ---- who served it ---- */

static FILE *served_log; /* NULL: nobody tells */

/* What was logged since the last call has one line "gemmshim[12]: cublasGemmEx ...: kernel ...", or "library". */
static bool by_us(void) {
  char line[1024];
  int ours = -1;
  clearerr(served_log);
  while (fgets(line, sizeof line, served_log)) {
    if (!strstr(line, "]: cublas")) continue;
    ours = strstr(line, ": kernel ") || strstr(line, ": algorithm ");
    must(!ours && !strstr(line, ": library ("), line);
  }
  must(ours < 0, "the log tells of each call");
  return ours;
}

/* ---- what is left behind ---- */

/* The last calls are those before them drawn again: by then whatever is kept of a kernel, a shape or a descriptor is
 * there, and nothing may be added to it. What malloc keeps at hand for a thread it counts as in use. */
enum { AGAIN = 10000, HOST_BOUND = 16 << 10, DEVICE_BOUND = 0 };

typedef struct {
  size_t host, device; /* bytes in use */
} memory_t;

static memory_t memory(void) {
  size_t available, total;
  MUST(cuCtxSynchronize());
  MUST(cuMemGetInfo(&available, &total));
  struct mallinfo2 host = mallinfo2();
  return (memory_t){.host = host.uordblks + host.hblkhd, .device = total - available};
}

static void leak(long i) {
  CUdeviceptr piece;
  if (i % 10 == 0) must(!malloc(32), "malloc");
  if (i % 1000 == 0) MUST(cuMemAlloc(&piece, 1 << 20));
}

static long grown(size_t from, size_t to, long bound) {
  long bytes = (long)to - (long)from;
  return bytes > bound ? bytes : 0;
}

/* ---- the run ---- */

static long wrong, refused, loose, served, deep_served, ours_loose;

static void open_all(void) {
  on_stand_ins = dlsym(RTLD_DEFAULT, "sim_live");
  MUST(cublasCreate(&handle));
  MUST(cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&streams[2], CU_STREAM_DEFAULT));
  streams[3] = CU_STREAM_PER_THREAD;
  for (int t = 0; t < LENGTH(types); t++)
    for (int side = 0; side < 2; side++) {
      if (t % 2) { /* whatever the type of the result */
        inputs[side][t] = inputs[side][t - 1], mirrors[side][t] = mirrors[side][t - 1];
        continue;
      }
      inputs[side][t] = device_values(types[t].ab, ROOM / 2, (unsigned)(2 * t + side + 1));
      must(!(mirrors[side][t] = malloc(ROOM)), "malloc");
      MUST(cuMemcpyDtoH(mirrors[side][t], (CUdeviceptr)inputs[side][t], ROOM));
    }
  c = device_values(CUDA_R_16F, (2 * GUARD + ROOM) / 2, 99);
  scalars = device_values(CUDA_R_16F, 8, 98);
  before = malloc(2 * GUARD + ROOM), after = malloc(2 * GUARD + ROOM);
  must(!before || !after, "malloc");
}

static void report(long i, const request_t *r) {
  const product_t *p = &r->p;
  fprintf(
      stderr,
      "random: call %ld: way %d types %d %c%c %lldx%lldx%lld ld %lld %lld %lld batch %lld strides %lld %lld "
      "epilogue %s alpha %g beta %g%s: %g, not %g\n",
      i, r->way, r->type, "NT"[p->transa], "NT"[p->transb], (long long)p -> m, (long long)p -> n,
      (long long)p -> k, (long long)p -> lda, (long long)p -> ldb, (long long)p -> ldd, (long long)p -> batch,
      (long long)p -> stride_a, (long long)p -> stride_b, epilogues[r->epilogue].name, p->alpha, p->beta,
      r->device_scalars ? " on the device" : "", off.is, off.right);
}

static void one(long i) {
  request_t r;
  draw(&r);
  const product_t *p = &r.p;
  size_t width = value_bytes(p->d_type);
  size_t bytes = GUARD + 16 + (size_t)(p->stride_d * (p->batch - 1) + p->ldd * p->n) * width + GUARD;
  must(bytes > 2 * GUARD + ROOM, "more room for C");
  /* Where beta is 0 cuBLAS must not read C: NaN there must not show. */
  memset(before, 0xff, bytes);
  size_t first = (size_t)((char *)p->d - c);
  for (int64_t at = 0; p->beta != 0 && first + (size_t)(at + 1) * width <= bytes; at++)
    value_store(p->d_type, before + first, at, (double)below(2001) / 1000 - 1);
  MUST(cuMemcpyHtoD((CUdeviceptr)c, before, bytes));
  MUST(cuCtxSynchronize()); /* streams of their own do not wait for copies from pageable memory */
  cublasStatus_t status = call(&r);
  MUST(cuCtxSynchronize());
  r.ours = served_log && by_us();
  served += r.ours, deep_served += r.ours && p->k > SIDE;
  if (status != CUBLAS_STATUS_SUCCESS)
    refused++;
  else if (right(&r, bytes))
    loose += off.loose, ours_loose += off.loose && r.ours;
  else if (wrong++ < 20) /* enough is said */
    report(i, &r);
}

int main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "rows")) return print_rows(), 0;
  if (argc < 3) return 2;
  long count = atol(argv[1]), again = count / 2 < AGAIN ? count / 2 : AGAIN;
  uint64_t mark = state = strtoull(argv[2], NULL, 10);
  bool leaks = argc > 3 && !strcmp(argv[3], "leak");
  if (argc > 3 && !leaks) must(!(served_log = fopen(argv[3], "r")), argv[3]);
  memory_t then = {0};
  open_all();
  for (long i = 0; i < count; i++) {
    if (i == count - 2 * again) mark = state;
    if (i == count - again) state = mark, then = memory();
    one(i);
    if (leaks) leak(i);
  }
  memory_t now = memory();
  long leaked = grown(then.host, now.host, HOST_BOUND) + grown(then.device, now.device, DEVICE_BOUND);
  printf("calls: %ld\nrefused: %ld\nloose: %ld\nwrong: %ld\n", count, refused, loose, wrong);
  printf("host: %ld\ndevice: %ld\nleaked: %ld\n", (long)(now.host - then.host),
         (long)(now.device - then.device), leaked);
  if (served_log) printf("ours: %ld\ndeep: %ld\nours loose: %ld\n", served, deep_served, ours_loose);
  return wrong || leaked || ours_loose;
}
