#define _GNU_SOURCE
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "extras.h"
#include "progress.h"

#define ALIGNMENT   256
#define POOL_BYTES  (4u << 20) /* of random numbers made on the host; the GPU repeats them */
#define REPLAY_US   200        /* a graph takes at least this long, so that its own start hardly counts */
#define GATE_BLOCKS 6
#define GATE_SIDE   64

static size_t padded(size_t bytes) {
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void gs_bench_open(gs_bench_t *bench, gs_gpu_t *gpu, const gs_cublas_t *cublas, gs_reference_t *reference,
                   uint64_t seed) {
  *bench = (gs_bench_t){.gpu = gpu, .cublas = cublas, .reference = reference, .random = {seed}};
}

static void close_lt(gs_bench_t *bench) {
  if (bench->lt.cublas) gs_lt_close(&bench->lt);
  bench->lt = (gs_lt_t){0};
}

void gs_bench_close(gs_bench_t *bench) {
  close_lt(bench);
  gs_gpu_free(bench->gpu, bench->inputs);
  gs_gpu_free(bench->gpu, bench->outputs);
  gs_gpu_free(bench->gpu, bench->workspace);
  for (int type = 0; type < GS_TYPE_COUNT; type++) free(bench->pools[type]);
  *bench = (gs_bench_t){0};
}

/* ---- operands ---- */

static double normal(gs_random_t *random) {
  double u = (double)(gs_random_next(random) >> 11) * 0x1p-53,
         v = (double)(gs_random_next(random) >> 11) * 0x1p-53;
  return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

static const void *pool_of(gs_bench_t *bench, gs_type_t type) {
  if (bench->pools[type]) return bench->pools[type];
  void *pool = malloc(POOL_BYTES);
  if (!pool) {
    gs_gpu_note(bench->gpu, CUDA_ERROR_OUT_OF_MEMORY, "host memory");
    return NULL;
  }
  for (size_t i = 0; i < POOL_BYTES / gs_type_bytes[type]; i++)
    gs_element_store(type, pool, (int64_t)i, normal(&bench->random));
  return bench->pools[type] = pool;
}

/* Fills the inputs with N(0,1): a pool from the host, doubled until it covers them. */
static void fill_inputs(gs_bench_t *bench, gs_type_t type) {
  size_t done = bench->inputs_bytes < POOL_BYTES ? bench->inputs_bytes : POOL_BYTES;
  const void *pool = pool_of(bench, type);
  if (!pool) return;
  gs_gpu_write(bench->gpu, bench->inputs, pool, done);
  for (; done < bench->inputs_bytes && gs_gpu_ok(bench->gpu); done *= 2) {
    size_t more = bench->inputs_bytes - done < done ? bench->inputs_bytes - done : done;
    gs_gpu_note(bench->gpu, gs_driver_tools.cuMemcpyDtoD(bench->inputs + done, bench->inputs, more),
                "cuMemcpyDtoD");
  }
  bench->inputs_type = type;
}

static bool grow(gs_gpu_t *gpu, CUdeviceptr *at, size_t *have, size_t wanted) {
  if (*have >= wanted) return true;
  gs_gpu_free(gpu, *at);
  *have = 0;
  *at = gs_gpu_alloc(gpu, wanted);
  if (*at) *have = wanted;
  return *at != 0;
}

/* Bytes that a matrix spans, over its batch. */
static size_t span(int64_t rows, int64_t columns, int64_t ld, int64_t stride, int64_t batch, gs_type_t type) {
  return (size_t)(stride * (batch - 1) + ld * (columns - 1) + rows) * gs_type_bytes[type];
}

/* Addresses are as aligned as the program's were, not more. */
static size_t misalignment(const gs_gemm_t *g) {
  return g->align < 16 ? g->align : 0;
}

static void lay_out(gs_bench_t *bench, size_t memory) {
  const gs_gemm_t *g = &bench->gemm;
  const gs_gpu_t *gpu = bench->gpu;
  bool ta = g->transa != GS_OP_N, tb = g->transb != GS_OP_N;
  size_t off = misalignment(g);
  bench->a_bytes =
      padded(off + span(ta ? g->k : g->m, ta ? g->m : g->k, g->lda, g->stride_a, g->batch, g->a_type));
  bench->b_bytes =
      padded(off + span(tb ? g->n : g->k, tb ? g->k : g->n, g->ldb, g->stride_b, g->batch, g->b_type));
  bench->d_bytes = padded(off + span(g->m, g->n, g->ldd, g->stride_d, g->batch, g->d_type));
  size_t set = bench->a_bytes + bench->b_bytes + bench->d_bytes, copies = 3 * (size_t)gpu->l2_bytes / set + 1;
  if (copies > GS_BENCH_COPIES_MAX) copies = GS_BENCH_COPIES_MAX;
  if (copies * set > memory) copies = memory / set;
  bench->copies = (int)copies;
  /* A guess at the time of one call, from half the peak rates. */
  double flops_us = gs_gemm_flops(g) / (gpu->device.sms * 2048.0 * gpu->clock_khz * 1e-3);
  double bytes_us = (double)set / (gpu->memory_bits / 8.0 * gpu->memory_khz * 1e-3);
  double replay_us = (double)copies * (2 + fmax(flops_us, bytes_us));
  int rounds = (int)ceil(REPLAY_US / fmax(replay_us, 1));
  bench->calls = bench->copies * rounds;
}

bool gs_bench_product(gs_bench_t *bench, const gs_gemm_t *g) {
  gs_gpu_t *gpu = bench->gpu;
  size_t memory = 0, total;
  close_lt(bench);
  bench->gemm = *g;
  if (!gs_gpu_ok(gpu)) return false;
  gs_gpu_note(gpu, gs_driver_tools.cuMemGetInfo(&memory, &total), "cuMemGetInfo");
  lay_out(bench, (memory + bench->inputs_bytes + bench->outputs_bytes) / 10 * 8);
  if (bench->copies < 1) return false;
  size_t inputs = (size_t)bench->copies * (bench->a_bytes + bench->b_bytes) + padded((size_t)g->m * 4);
  size_t had = bench->inputs_bytes;
  if (!grow(gpu, &bench->inputs, &bench->inputs_bytes, inputs) ||
      !grow(gpu, &bench->outputs, &bench->outputs_bytes, (size_t)bench->copies * bench->d_bytes))
    return false;
  if (bench->inputs_bytes != had || bench->inputs_type != (gs_type_t)g->a_type) fill_inputs(bench, g->a_type);
  if (bench->cublas) gs_lt_open(&bench->lt, bench->cublas, g, gs_bench_operands(bench, 0).bias);
  return gs_gpu_ok(gpu);
}

gs_operands_t gs_bench_operands(const gs_bench_t *bench, int copy) {
  static const float one = 1, zero = 0;
  size_t off = misalignment(&bench->gemm), pair = bench->a_bytes + bench->b_bytes;
  CUdeviceptr a = bench->inputs + (size_t)copy * pair + off;
  CUdeviceptr d = bench->outputs + (size_t)copy * bench->d_bytes + off;
  return (gs_operands_t){.a = gs_gpu_pointer(a),
                         .b = gs_gpu_pointer(a + bench->a_bytes),
                         .c = gs_gpu_pointer(d),
                         .d = gs_gpu_pointer(d),
                         .bias = gs_gpu_pointer(bench->inputs + (size_t)bench->copies * pair),
                         .alpha = &one,
                         .beta = &zero};
}

/* ---- contenders ---- */

static bool launch_kernel(gs_bench_t *bench, gs_contender_t *contender, const gs_operands_t *o) {
  gs_kernel_t kernel = gs_kernel_at(contender->index);
  CUkernel handle = gs_device_kernel(contender->index, bench->gpu->device.handle);
  if (!handle) return false;
  bool works = gs_kernel_workspace(&kernel, &bench->gemm, contender->split_k, bench->gpu->device.sm) != 0;
  gs_params_t p = gs_gpu_params(&bench->gemm, o, contender->split_k, contender->raster,
                                works ? bench->workspace : 0, false);
  gs_launch_t launch = gs_kernel_launch(&kernel, &bench->gemm, contender->split_k, bench->gpu->device.sm);
  gs_gpu_launch(bench->gpu, handle, &launch, (void *[]){&p});
  return gs_gpu_ok(bench->gpu);
}

/* Puts one call on the stream. */
static bool enqueue(void *self, int copy) {
  gs_contender_t *contender = self;
  gs_bench_t *bench = contender->bench;
  gs_operands_t o = gs_bench_operands(bench, copy);
  switch (contender->kind) {
  case GS_BY_KERNEL:
    return launch_kernel(bench, contender, &o);
  case GS_BY_GEMM_EX:
    return gs_cublas_gemm(bench->cublas, &bench->gemm, &o) == CUBLAS_STATUS_SUCCESS;
  case GS_BY_LT:
    return gs_lt_matmul(&bench->lt, contender->index, &bench->gemm, &o) == CUBLAS_STATUS_SUCCESS;
  case GS_BY_ALGO:
    return gs_relaunch(contender->library->learnt, &o, bench->gpu->context, bench->gpu->stream) ||
           gs_library_matmul(contender->library, bench->cublas->lt, &o, false,
                             gs_gpu_pointer(bench->cublas->workspace),
                             (cudaStream_t)bench->gpu->stream) == CUBLAS_STATUS_SUCCESS;
  }
  return false;
}

/* One workspace serves all: kernels leave its counters zero. A larger one would move it, and graphs that were
 * recorded before would use the old one: it has its full size at once. */
static bool has_workspace(gs_bench_t *bench, const gs_contender_t *contender) {
  gs_kernel_t kernel = gs_kernel_at(contender->index);
  size_t bytes = gs_kernel_workspace(&kernel, &bench->gemm, contender->split_k, bench->gpu->device.sm);
  if (bytes == 0 || bytes > GS_BENCH_WORKSPACE) return bytes == 0;
  if (bench->workspace) return true;
  bench->workspace = gs_gpu_alloc(bench->gpu, GS_BENCH_WORKSPACE);
  gs_gpu_fill(bench->gpu, bench->workspace, 0, GS_BENCH_WORKSPACE);
  return gs_gpu_ok(bench->gpu);
}

/* As a program's call would find it, and within what GEMMSHIM_VRAM_MB grants by default. */
static bool has_library(gs_bench_t *bench, gs_contender_t *contender) {
  const gs_cublas_t *cublas = bench->cublas;
  gs_operands_t o = gs_bench_operands(bench, 0);
  gs_library_t *library = cublas && cublas->real ? malloc(sizeof *library) : NULL;
  contender->library = library;
  if (!library || gs_library_prepare(library, cublas->real, cublas->lt, &bench->gemm, &o, &contender->algo,
                                     contender->split_k) != GS_REASON_SERVED)
    return false;
  gs_library_learn(library, cublas->lt, &bench->gemm, bench->gpu->context);
  return library->usable[0] &&
         library->workspace + GS_SPLIT_COUNTERS * sizeof(unsigned) <= GS_BENCH_WORKSPACE;
}

static gs_contest_t contest_of(gs_bench_t *bench) {
  return (gs_contest_t){.gpu = bench->gpu,
                        .random = &bench->random,
                        .copies = bench->copies,
                        .calls = bench->calls,
                        .rate = GS_CONTEST_RATE};
}

bool gs_bench_ready(gs_bench_t *bench, gs_contender_t *contender) {
  gs_contest_t contest = contest_of(bench);
  if (!gs_gpu_ok(bench->gpu)) return false;
  if (contender->kind == GS_BY_KERNEL && !has_workspace(bench, contender)) return false;
  if (contender->kind == GS_BY_ALGO && !has_library(bench, contender)) return false;
  contender->bench = bench;
  contender->entrant = (gs_entrant_t){.call = enqueue, .self = contender};
  return gs_entrant_ready(&contest, &contender->entrant);
}

void gs_bench_done(gs_contender_t *contender) {
  gs_entrant_done(&contender->entrant);
  gs_library_free(contender->library);
  contender->library = NULL;
}

/* ---- clocks ---- */

void gs_bench_warm(gs_bench_t *bench, gs_contender_t *contender) {
  gs_contest_t contest = contest_of(bench);
  gs_entrant_warm(&contest, &contender->entrant, bench->warm ? 0.002 : 0.3);
  bench->warm = true;
}

static void run(gs_bench_t *bench, gs_clock_kind_t clock, gs_contender_t **contenders, int count,
                int rounds) {
  gs_contest_t contest = contest_of(bench);
  gs_entrant_t *entrants[count];
  for (int i = 0; i < count; i++) entrants[i] = &contenders[i]->entrant;
  gs_contest_run(&contest, clock, entrants, count, rounds);
}

void gs_bench_gpu(gs_bench_t *bench, gs_contender_t **contenders, int count, int rounds) {
  run(bench, GS_CLOCK_GPU, contenders, count, rounds);
}

void gs_bench_wall(gs_bench_t *bench, gs_contender_t **contenders, int count, int rounds) {
  run(bench, GS_CLOCK_WALL, contenders, count, rounds);
}

void gs_bench_server(gs_bench_t *bench, gs_contender_t **contenders, int count, int rounds) {
  run(bench, GS_CLOCK_SERVER, contenders, count, rounds);
}

double gs_contender_us(const gs_contender_t *contender) {
  return gs_entrant_us(&contender->entrant, GS_CLOCK_GPU);
}

int gs_contender_name(char *buffer, size_t size, const gs_contender_t *contender) {
  char id[GS_KERNEL_ID_MAX];
  gs_kernel_t kernel;
  switch (contender->kind) {
  case GS_BY_GEMM_EX:
    return snprintf(buffer, size, "cublasGemmEx");
  case GS_BY_LT:
    return snprintf(buffer, size, "cublasLtMatmul candidate %d", contender->index);
  case GS_BY_ALGO:
    gs_algo_format(id, sizeof id, &contender->algo);
    return snprintf(buffer, size, "%s split_k %d", id, contender->split_k);
  case GS_BY_KERNEL:
    kernel = gs_kernel_at(contender->index);
    gs_kernel_format(id, sizeof id, &kernel);
    break;
  }
  return snprintf(buffer, size, "%s split_k %d raster %d", id, contender->split_k, contender->raster);
}

/* ---- the gate on the product at hand ---- */

/* Where block i of D begins: the four corners first, then anywhere. */
static int64_t block_at(gs_random_t *random, int i, int corner, int64_t size, int64_t side) {
  if (i < 4) return corner ? size - side : 0;
  return (int64_t)gs_random_below(random, (uint64_t)(size - side + 1));
}

/* Judges the m x n block of D at (i, j) of the last entry of the batch. */
static void judge_block(gs_bench_t *bench, gs_gate_t *gate, int64_t i, int64_t j, int m, int n,
                        CUdeviceptr reference) {
  const gs_gemm_t *g = &bench->gemm;
  gs_operands_t o = gs_bench_operands(bench, 0);
  int64_t last = g->batch - 1;
  size_t column_bytes = (size_t)m * gs_type_bytes[g->d_type];
  int64_t a_at = (g->transa == GS_OP_N ? i : i * g->lda) + last * g->stride_a;
  int64_t b_at = (g->transb == GS_OP_N ? j * g->ldb : j) + last * g->stride_b;
  gs_gemm_t block = *g;
  block.m = m, block.n = n, block.ldc = block.ldd = m, block.batch = 1, block.batch_kind = GS_BATCH_SINGLE;
  o.a = (const char *)o.a + a_at * gs_type_bytes[g->a_type];
  o.b = (const char *)o.b + b_at * gs_type_bytes[g->b_type];
  o.bias = (const char *)o.bias + i * gs_type_bytes[g->d_type];
  char *d = (char *)o.d + (last * g->stride_d + j * g->ldd + i) * gs_type_bytes[g->d_type];
  o.c = o.d = gs_gpu_pointer(reference);
  gs_reference_run(bench->reference, &block, gs_gpu_params(&block, &o, 1, 1, 0, false));
  double expected[GATE_SIDE * GATE_SIDE];
  size_t pitch = (size_t)g->ldd * gs_type_bytes[g->d_type], bytes = pitch * (size_t)(n - 1) + column_bytes;
  char *columns = malloc(bytes);
  gs_gpu_read(bench->gpu, expected, reference, sizeof(double) * (size_t)m * (size_t)n);
  if (columns) gs_gpu_read(bench->gpu, columns, (CUdeviceptr)(uintptr_t)d, bytes);
  for (int c = 0; c < n && columns && gs_gpu_ok(bench->gpu); c++)
    gs_gate_add(gate, g->d_type, columns + c * pitch, expected + (size_t)c * (size_t)m, m);
  if (!columns) gs_gpu_note(bench->gpu, CUDA_ERROR_OUT_OF_MEMORY, "host memory");
  free(columns);
}

gs_gate_t gs_bench_gate(gs_bench_t *bench, gs_contender_t *contender) {
  gs_gpu_t *gpu = bench->gpu;
  gs_gate_t gate = {0};
  int m = bench->gemm.m < GATE_SIDE ? (int)bench->gemm.m : GATE_SIDE;
  int n = bench->gemm.n < GATE_SIDE ? (int)bench->gemm.n : GATE_SIDE;
  CUdeviceptr reference = gs_gpu_alloc(gpu, sizeof(double) * GATE_SIDE * GATE_SIDE);
  gs_gpu_fill(gpu, bench->outputs, GS_POISON_BYTE, bench->d_bytes);
  bool ran = gs_gpu_ok(gpu) && enqueue(contender, 0);
  gs_gpu_sync(gpu);
  for (int b = 0; b < GATE_BLOCKS && ran && gs_gpu_ok(gpu); b++) {
    int64_t i = block_at(&bench->random, b, b & 1, bench->gemm.m, m);
    int64_t j = block_at(&bench->random, b, b & 2, bench->gemm.n, n);
    judge_block(bench, &gate, i, j, m, n, reference);
  }
  gs_gpu_free(gpu, reference);
  return gate;
}
