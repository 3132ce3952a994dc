/* What the preloaded library adds to a call, in host time: a forwarded call against the same call made
 * straight into cuBLAS, a served one against a bare cuLaunchKernel of the same kernel and parameters. Run it
 * under LD_PRELOAD, on a GPU or on the CPU stand-ins; cuBLAS and the driver are whatever the loader finds.
 *   overhead [--rounds N] [--cold KB] [--check]
 * --cold writes so much memory before every call, untimed: the caches as a real program leaves them.
 * --check: exit 1 where a median is above what is promised. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "choice.h"
#include "device.h"
#include "options.h"
#include "real.h"

#define FORWARDED_NS 60 /* promised */
#define SERVED_NS    200

enum { CALLS = 64, ROUNDS = 400, SIDE = 512 };

static void must(int status, const char *what) {
  if (status == 0) return;
  fprintf(stderr, "overhead: %s failed with status %d\n", what, status);
  exit(2);
}
#define MUST(call) must((int)(call), #call)

/* What the driver offers beside what the library asks of it. */
static struct {
#define GS_DRIVER(function, symbol) __typeof__(&function) function;
#include "driver_tools.def"
#undef GS_DRIVER
} cuda;

/* cuBLAS by its own handle, and the same names as the program's scope has them: the preload's. */
typedef struct {
  __typeof__(&cublasGemmEx) gemm;
  __typeof__(&cublasLtMatmul) lt;
} entries_t;
static entries_t direct, preloaded;
static void *cublas;

static void *function_of(void *handle, const char *name) {
  void *function = dlsym(handle, name);
  must(!function, name);
  return function;
}

static void load(void) {
  static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
  for (size_t i = 0; i < sizeof names / sizeof *names && !cublas; i++)
    cublas = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
  must(!cublas, "loading libcublas");
  direct.gemm = (__typeof__(&cublasGemmEx))function_of(cublas, "cublasGemmEx");
  direct.lt = (__typeof__(&cublasLtMatmul))function_of(cublas, "cublasLtMatmul");
  preloaded.gemm = (__typeof__(&cublasGemmEx))function_of(RTLD_DEFAULT, "cublasGemmEx");
  preloaded.lt = (__typeof__(&cublasLtMatmul))function_of(RTLD_DEFAULT, "cublasLtMatmul");
  if (direct.gemm == preloaded.gemm) {
    fprintf(stderr, "overhead: nothing is preloaded: LD_PRELOAD=libgemmshim.so overhead\n");
    exit(2);
  }
  MUST(gs_driver_find(true));
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
#define GS_DRIVER(function, symbol) cuda.function = (__typeof__(&function))function_of(driver, symbol);
#include "driver_tools.def"
#undef GS_DRIVER
}

/* ---- the four calls ---- */

typedef struct {
  gs_gemm_t gemm;
  const void *a, *b;
  void *c;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t la, lb, lc;
  CUfunction kernel; /* of a served product */
  gs_launch_t grid;
  gs_params_t params;
} product_t;

static cublasHandle_t handle;
static const float one = 1, zero = 0;

static void call_gemm(const entries_t *entries, const product_t *p) {
  const gs_gemm_t *g = &p->gemm;
  MUST(entries->gemm(handle, g->transa ? CUBLAS_OP_T : CUBLAS_OP_N, g->transb ? CUBLAS_OP_T : CUBLAS_OP_N,
                     (int)g->m, (int)g->n, (int)g->k, &one, p->a, CUDA_R_16F, (int)g->lda, p->b, CUDA_R_16F,
                     (int)g->ldb, &zero, p->c, CUDA_R_16F, (int)g->ldc, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT));
}

static void call_lt(const entries_t *entries, const product_t *p) {
  MUST(entries->lt((cublasLtHandle_t)handle, p->operation, &one, p->a, p->la, p->b, p->lb, &zero, p->c, p->lc,
                   p->c, p->lc, NULL, NULL, 0, NULL));
}

static void gemm_preloaded(product_t *p) {
  call_gemm(&preloaded, p);
}
static void gemm_direct(product_t *p) {
  call_gemm(&direct, p);
}
static void lt_preloaded(product_t *p) {
  call_lt(&preloaded, p);
}
static void lt_direct(product_t *p) {
  call_lt(&direct, p);
}
static void launch(product_t *p) {
  MUST(gs_driver.cuLaunchKernel(p->kernel, p->grid.grid[0], p->grid.grid[1], p->grid.grid[2], p->grid.block,
                                1, 1, p->grid.smem, NULL, (void *[]){&p->params}, NULL));
}

/* ---- products ---- */

static const void *memory(int64_t elements) {
  CUdeviceptr device;
  MUST(gs_driver.cuMemAlloc(&device, (size_t)elements * 2));
  MUST(cuda.cuMemsetD8(device, 0, (size_t)elements * 2));
  return (const void *)device;
}

static cublasLtMatrixLayout_t layout(int64_t rows, int64_t cols) {
  __typeof__(&cublasLtMatrixLayoutCreate) create =
      (__typeof__(create))function_of(cublas, "cublasLtMatrixLayoutCreate");
  cublasLtMatrixLayout_t made;
  MUST(create(&made, CUDA_R_16F, (uint64_t)rows, (uint64_t)cols, rows));
  return made;
}

static product_t product(int transa, int transb, int64_t m, int64_t n, int64_t k) {
  __typeof__(&cublasLtMatmulDescCreate) create =
      (__typeof__(create))function_of(cublas, "cublasLtMatmulDescCreate");
  __typeof__(&cublasLtMatmulDescSetAttribute) set =
      (__typeof__(set))function_of(cublas, "cublasLtMatmulDescSetAttribute");
  int32_t ops[] = {transa ? CUBLAS_OP_T : CUBLAS_OP_N, transb ? CUBLAS_OP_T : CUBLAS_OP_N};
  product_t p = {.gemm = {.transa = (uint8_t)transa,
                          .transb = (uint8_t)transb,
                          .a_type = GS_TYPE_F16,
                          .b_type = GS_TYPE_F16,
                          .c_type = GS_TYPE_F16,
                          .d_type = GS_TYPE_F16,
                          .compute = GS_COMPUTE_32F,
                          .batch = 1,
                          .m = m,
                          .n = n,
                          .k = k,
                          .lda = transa ? k : m,
                          .ldb = transb ? n : k,
                          .ldc = m,
                          .ldd = m,
                          .align = 16}};
  p.a = memory(m * k);
  p.b = memory(k * n);
  p.c = (void *)(uintptr_t)memory(m * n);
  MUST(create(&p.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  MUST(set(p.operation, CUBLASLT_MATMUL_DESC_TRANSA, &ops[0], sizeof ops[0]));
  MUST(set(p.operation, CUBLASLT_MATMUL_DESC_TRANSB, &ops[1], sizeof ops[1]));
  p.la = transa ? layout(k, m) : layout(m, k);
  p.lb = transb ? layout(n, k) : layout(k, n);
  p.lc = layout(m, n);
  return p;
}

static void say(void *context, const char *line) {
  (void)context;
  fprintf(stderr, "overhead: %s\n", line);
}

/* The first row that the library serves for a plain half product, and its kernel, ready to launch. */
static product_t served_product(const gs_table_t *table, CUdevice device) {
  for (int i = 0; i < gs_table_rows(table); i++) {
    const gs_row_t *row = gs_table_row(table, i);
    const gs_key_t *key = &row->key;
    if (key->ab_type != GS_TYPE_F16 || key->d_type != GS_TYPE_F16 || key->compute != GS_COMPUTE_32F ||
        key->epilogue != GS_EPILOGUE_DEFAULT || key->batch || row->split_k != 1)
      continue;
    product_t p = product(key->transa, key->transb, key->m, row->n_lo, key->k);
    if (gs_kernel_supports(&row->kernel, &p.gemm) != GS_REASON_SERVED) continue;
    CUkernel kernel = gs_device_kernel(row->index, device);
    must(!kernel, "loading the row's kernel");
    p.kernel = (CUfunction)kernel;
    p.grid = gs_kernel_launch(&row->kernel, &p.gemm, 1, 0);
    p.params = (gs_params_t){.a = p.a, .b = p.b, .c = p.c, .d = p.c, .alpha = 1};
    gs_kernel_params(&p.gemm, 1, row->raster, &p.params);
    return p;
  }
  fprintf(stderr, "overhead: the table has no plain half row to measure with\n");
  exit(2);
}

/* A product that the table has no row for, small, so that the GPU does not hold up the host. */
static product_t forwarded_product(const gs_table_t *table) {
  for (int64_t side = 64; side < SIDE; side += 8) {
    product_t p = product(GS_OP_T, GS_OP_N, side, 8, side);
    if (!gs_table_find(table, &p.gemm)) return p;
  }
  fprintf(stderr, "overhead: the table has a row for everything\n");
  exit(2);
}

/* ---- measuring ---- */

typedef void call_t(product_t *p);
typedef struct {
  const char *name;
  call_t *measured, *base;
  int promised; /* ns */
} comparison_t;

static volatile char *cold; /* what is written before every call; NULL: nothing */
static size_t cold_bytes;

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double ns_of_cold_calls(call_t *call, product_t *p) {
  double sum = 0;
  for (int i = 0; i < CALLS; i++) {
    for (size_t at = 0; at < cold_bytes; at += 64) cold[at]++;
    double from = now_ns();
    call(p);
    sum += now_ns() - from;
  }
  return sum;
}

static double ns_of_calls(call_t *call, product_t *p) {
  double from = now_ns();
  for (int i = 0; i < CALLS; i++) call(p);
  return now_ns() - from;
}

static double ns_per_call(call_t *call, product_t *p) {
  double ns = (cold ? ns_of_cold_calls : ns_of_calls)(call, p);
  MUST(cuda.cuCtxSynchronize());
  return ns / CALLS;
}

static int ascending(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

/* The median of what measured costs above base, round by round, the two in turn first; prints its spread. */
static double compare(const comparison_t *c, product_t *p, int rounds) {
  double *extra = malloc((size_t)rounds * sizeof *extra), *base = malloc((size_t)rounds * sizeof *base);
  must(!extra || !base, "malloc");
  ns_per_call(c->measured, p);
  ns_per_call(c->base, p);
  for (int i = 0; i < rounds; i++) {
    double measured = i % 2 ? ns_per_call(c->measured, p) : 0;
    base[i] = ns_per_call(c->base, p);
    if (i % 2 == 0) measured = ns_per_call(c->measured, p);
    extra[i] = measured - base[i];
  }
  qsort(extra, (size_t)rounds, sizeof *extra, ascending);
  qsort(base, (size_t)rounds, sizeof *base, ascending);
  double median = extra[rounds / 2];
  printf("%-26s %8.1f %8.1f %8.1f %10.1f %9d\n", c->name, median, extra[rounds / 10],
         extra[rounds - 1 - rounds / 10], base[rounds / 2], c->promised);
  free(extra);
  free(base);
  return median;
}

int main(int argc, char **argv) {
  int rounds = ROUNDS;
  bool check = false;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--check"))
      check = true;
    else if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
      rounds = atoi(argv[++i]);
    else if (!strcmp(argv[i], "--cold") && i + 1 < argc)
      cold_bytes = (size_t)atol(argv[++i]) << 10;
    else
      rounds = 0;
  }
  if (rounds < 10) {
    fprintf(stderr, "usage: overhead [--rounds N] [--cold KB] [--check], N at least 10\n");
    return 2;
  }
  if (cold_bytes) must(!(cold = calloc(1, cold_bytes)), "calloc");
  load();
  gs_device_t device;
  gs_choice_t choice;
  gs_options_read();
  MUST(((__typeof__(&cublasCreate_v2))function_of(cublas, "cublasCreate_v2"))(&handle));
  MUST(gs_device_describe(0, &device));
  MUST(gs_choose_table(&device, say, NULL, &choice));
  product_t served = served_product(choice.table, device.handle), forwarded = forwarded_product(choice.table);

  static const comparison_t comparisons[] = {
      {"cublasGemmEx forwarded", gemm_preloaded, gemm_direct, FORWARDED_NS},
      {"cublasGemmEx served", gemm_preloaded, launch, SERVED_NS},
      {"cublasLtMatmul forwarded", lt_preloaded, lt_direct, FORWARDED_NS},
      {"cublasLtMatmul served", lt_preloaded, launch, SERVED_NS},
  };
  enum { COMPARISONS = sizeof comparisons / sizeof *comparisons };
  double median[COMPARISONS];
  bool kept = true;
  printf("%s, %d rounds of %d calls, ns a call above a direct one (served: above a bare launch)\n",
         device.name, rounds, CALLS);
  printf("%-26s %8s %8s %8s %10s %9s\n", "", "median", "p10", "p90", "direct", "promised");
  for (int i = 0; i < COMPARISONS; i++) {
    median[i] = compare(&comparisons[i], i % 2 ? &served : &forwarded, rounds);
    kept &= median[i] <= comparisons[i].promised;
  }
  printf("forwarded %.0f ns\nserved %.0f ns\n", median[0], median[1]);
  return check && !kept;
}
