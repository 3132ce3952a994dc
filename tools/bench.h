/* The measuring core of the tuner. Contenders for one product (our kernels, cublasGemmEx, cuBLASLt's candidates)
 * are timed against each other (contest.h) on random operands, whose copies take 3 times the L2 cache in all, so
 * that weights come from memory. */
#ifndef GS_BENCH_H
#define GS_BENCH_H

#include "baseline.h"
#include "gate.h"
#include "fp64.h"
#include "contest.h"
#include "workspace.h"

#define GS_BENCH_COPIES_MAX 512 /* of the operands; tiny ones then fit the cache in spite of it */

/* Bytes, for split-K: what GEMMSHIM_VRAM_MB grants by default. */
#define GS_BENCH_WORKSPACE ((32u << 20) - GS_ZEROED_PIECES * GS_ZEROED_BYTES)

/* LT: cublasLtMatmul with an algorithm as its heuristic gave it; ALGO: with one made from its attributes, by the
 * code that serves rows. */
typedef enum { GS_BY_KERNEL, GS_BY_GEMM_EX, GS_BY_LT, GS_BY_ALGO } gs_contender_kind_t;

typedef struct {
  gs_contender_kind_t kind;
  int index; /* of the kernel, as gs_kernel_at, or of cuBLASLt's candidate */
  int split_k, raster;
  gs_algo_t algo;        /* of ALGO */
  gs_library_t *library; /* of ALGO: ready for the product; owned */
  double predicted_us;   /* by the cost model; kernels only */
  struct gs_bench *bench;
  gs_entrant_t entrant; /* ready, and its samples; it points back here */
} gs_contender_t;

typedef struct gs_bench {
  gs_gpu_t *gpu;
  const gs_cublas_t *cublas; /* NULL: no baseline */
  gs_reference_t *reference;
  gs_random_t random;
  /* Random operands of one type, and room for results; both grow as products need. */
  CUdeviceptr inputs, outputs, workspace;
  size_t inputs_bytes, outputs_bytes;
  gs_type_t inputs_type;
  void *pools[GS_TYPE_COUNT]; /* random numbers on the host, by type; made once */
  bool warm;                  /* the GPU's clock was brought up */
  /* The product at hand. */
  gs_gemm_t gemm;
  gs_lt_t lt;
  int copies; /* of its operands */
  int calls;  /* in a graph, a multiple of copies */
  size_t a_bytes, b_bytes, d_bytes;
} gs_bench_t;

/* What it is given must outlive it. */
void gs_bench_open(gs_bench_t *bench, gs_gpu_t *gpu, const gs_cublas_t *cublas, gs_reference_t *reference,
                   uint64_t seed);
void gs_bench_close(gs_bench_t *bench);

/* Lays the operands of g out and asks cuBLASLt for its candidates (bench->lt.count); false where the GPU's
 * memory does not hold them. */
bool gs_bench_product(gs_bench_t *bench, const gs_gemm_t *g);
/* The operands of copy i; alpha is 1, beta 0. */
gs_operands_t gs_bench_operands(const gs_bench_t *bench, int copy);

/* Runs the contender once, then records its graph; false where it refuses the product. */
bool gs_bench_ready(gs_bench_t *bench, gs_contender_t *contender);
void gs_bench_done(gs_contender_t *contender);
/* Keeps the GPU busy with the contender until its clock is up: longer the first time. */
void gs_bench_warm(gs_bench_t *bench, gs_contender_t *contender);
/* Adds rounds samples to each contender, in random order within each round. */
void gs_bench_gpu(gs_bench_t *bench, gs_contender_t **contenders, int count, int rounds);
void gs_bench_wall(gs_bench_t *bench, gs_contender_t **contenders, int count, int rounds);
/* At GS_CONTEST_RATE. */
void gs_bench_server(gs_bench_t *bench, gs_contender_t **contenders, int count, int rounds);

/* Runs the contender on poisoned outputs and judges blocks of D, corners and others at random, against the
 * FP64 reference kernel over the whole of k. */
gs_gate_t gs_bench_gate(gs_bench_t *bench, gs_contender_t *contender);

double gs_contender_us(const gs_contender_t *contender); /* median, gpu clock */
int gs_contender_name(char *buffer, size_t size, const gs_contender_t *contender);

#endif
