/* Kernel identity and launch ABI, one header for the host's C, for nvcc and for NVRTC (which has no
 * stdint.h: plain types only on the device side).
 *
 * A kernel's id spells it out, and is its symbol in the cubin:
 *   mma_f16_f16_tn_128x64x32_s4_w4        family, type of A and B, type of D, layout (transa transb),
 *                                         tile m x n x k in cuBLAS's terms, stages, warps
 *   mma_bf16_f32_nn_64x64x32_s3_w4_v2     _v2: its loads need 2-byte alignment only (default: 16 bytes)
 *   wgmma_f16_f16_nn_64x64x64_s8_w4       the same of family wgmma, which runs on sm_90 alone
 *   strip_f16_f16_nn_128x256x64_s4_w4     the same again of family strip: k is 64 at most, stages hold 64 columns of B
 *   direct_f16_f16_tn_16x8_u4_w8_sw       tile m x n, chunks of 32 k in flight a warp, warps that share k;
 *                                         _sw: m runs along the instruction's rows (default: n)
 *   rows_f16_f16_tn_2x1_u4_w8             rows of A (transa n: groups of 8) x columns of B a block, loads in flight
 *                                         a lane, warps */
#ifndef GS_KERNEL_H
#define GS_KERNEL_H

/* The one argument of every kernel, passed by value. Column-major; sizes, lds and strides in elements.
 * D = epilogue(alpha * op(A) op(B) + beta * C). beta == 0: C is not read. alpha == 0: A and B are not. */
typedef struct gs_params {
  const void *a,
      *b; /* what comes before the first load comes first: it shares a line of the constant cache */
  int m, n, k;
  int lda, ldb;
  int special; /* set where a batch, split_k, raster or alpha asks for more than the plain product */
  void *d;
  const void *c;
  const void *bias;       /* m elements of D's type; read by the bias epilogues only */
  const float *alpha_ptr; /* device memory; when not null it replaces alpha */
  const float *beta_ptr;
  void *workspace; /* split-K: counters, then fp32 partial sums; null when split_k is 1 or a cluster */
  long long stride_a, stride_b, stride_c, stride_d;
  int ldc, ldd;
  int split_k;  /* 1 or more; grid.y */
  int raster;   /* tiles of m that one column group walks before the next n; 1 or more */
  int epilogue; /* gs_epilogue_t */
  float alpha, beta;
} gs_params_t;

/* Split-K keeps one counter a tile (of all products of a batch) at the start of its workspace: zero before
 * the workspace's first use, and left zero by every kernel, so that products of any shape may use one
 * workspace after another. */
#define GS_SPLIT_COUNTERS 4096
#define GS_SPLIT_MAX      64

/* Deeper products with a result of type f32 are refused: on an H200 the error of tensor core sums that nobody split, by HMMA or
 * wgmma, grows to twice that of cuBLAS at k = 16384 (1.95e-5 against 0.97e-5), which is the gate's bound. */
#define GS_F32_DEPTH 8192

/* Values of gs_params_t.epilogue, those of gs_epilogue_t. */
#define GS_EPI_DEFAULT   0
#define GS_EPI_RELU      1
#define GS_EPI_BIAS      2
#define GS_EPI_RELU_BIAS 3
#define GS_EPI_GELU      4
#define GS_EPI_GELU_BIAS 5

#define GS_CLUSTER_MAX 8 /* blocks of a cluster that every GPU from sm_90 on can run */

/* A block has warps * 32 threads. Dynamic shared memory is in bytes; where the parts of k are a cluster (along y,
 * GS_CLUSTER_MAX blocks at most, no workspace), a landing and what the parts send follow behind the rest.
 * mma, wgmma, strip: the grid is (tiles of n, tiles of m x split_k, batch). The ring also holds the epilogue's sums. Of strip it
 * is A and as many slices of B as there are stages, and k is not split. */
#define GS_LANDING                      16
#define GS_MMA_SMEM(bm, bn, bk, stages) ((stages) * ((bm) + (bn)) * (bk)*2)
#define GS_STRIP_BN                     64 /* columns of a slice, which a block of family strip computes at a time */
#define GS_STRIP_SMEM(bm, bk, stages)   (((bm) + (stages)*GS_STRIP_BN) * (bk)*2)
#define GS_MMA_PITCH(bm)                (((bm) + 8) * 4)
#define GS_MMA_SUMS(bm, bn)             (GS_LANDING + ((bn) + GS_CLUSTER_MAX) * GS_MMA_PITCH(bm))
/* Whether a block of a cluster finds room on sm_90, which grants it 227 KB. */
#define GS_MMA_CLUSTERS(bm, bn, bk, stages)                                                                  \
  (GS_MMA_SMEM(bm, bn, bk, stages) + GS_MMA_SUMS(bm, bn) <= 227 << 10)
/* direct: the grid is (tiles of m, tiles of n x split_k, batch); room for the sums of all warps. */
#define GS_DIRECT_SLICES(bm, bn, warps) ((warps) > 1 ? (warps) * (bm) * (bn)*4 : 0)
#define GS_DIRECT_SUMS(bm, bn)          (GS_LANDING + (bm) * (bn)*4 + 7 * 512)
#define GS_DIRECT_SPLITS                GS_CLUSTER_MAX /* of k, at most */
/* rows: the grid is (tiles of m, tiles of n, batch), and k is not split; room for the sums of all warps. */
#define GS_ROWS_OF(bm, transa) ((transa) ? (bm) : (bm)*8) /* rows of a block */
#define GS_ROWS_SMEM(bm, bn, warps, transa)                                                                  \
  ((transa) ? ((warps) > (bm) ? (warps) * (bn)*4 : 0) : (warps) * (bm)*8 * (bn)*4)
#define GS_ROWS_BK 256 /* elements of k that a load of a whole warp takes */

#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
#include "gs_gemm.h"
#include "gs_reason.h"

#define GS_FAMILIES(X) X(MMA, "mma") X(DIRECT, "direct") X(WGMMA, "wgmma") X(ROWS, "rows") X(STRIP, "strip")
#define X(name, ...)   GS_FAMILY_##name,
typedef enum { GS_FAMILIES(X) GS_FAMILY_COUNT } gs_family_t;
#undef X

#define GS_KERNEL_ID_MAX 64 /* bytes of the longest id, with its NUL */

typedef struct {
  uint8_t family;  /* gs_family_t */
  uint8_t ab_type; /* gs_type_t of A and B */
  uint8_t d_type;  /* gs_type_t of C and D */
  uint8_t transa;  /* gs_op_t: N or T */
  uint8_t transb;
  uint8_t stages;
  uint8_t warps;
  uint8_t align;      /* bytes that addresses and leading dimensions must divide by: 16 or 2 */
  uint8_t swap;       /* direct: 1 where m runs along the instruction's rows */
  uint8_t reserved;   /* 0: no padding, kernels are compared byte by byte */
  int16_t bm, bn, bk; /* tile, elements */
} gs_kernel_t;

typedef struct {
  unsigned grid[3];
  unsigned block;
  unsigned smem;    /* bytes, dynamic */
  unsigned cluster; /* blocks along y that make up a cluster; 0 or 1: none */
} gs_launch_t;

/* Writes k's id; returns the length, as snprintf. */
int gs_kernel_format(char *buffer, size_t size, const gs_kernel_t *k);
/* Reads an id, strictly: true only where formatting it again gives the same text. */
bool gs_kernel_parse(const char *id, gs_kernel_t *k);
/* GS_REASON_SERVED where k can compute g, else why not. */
gs_reason_t gs_kernel_supports(const gs_kernel_t *k, const gs_gemm_t *g);
/* k of the deepest product that it computes, in elements. */
int64_t gs_kernel_depth_max(const gs_kernel_t *k);
/* Whether a GPU of this architecture (80, 90 ...) runs k: wgmma and strip are sm_90's alone. */
bool gs_kernel_runs_on(const gs_kernel_t *k, int sm);
/* Whether raster says in which order tiles are computed (mma, wgmma, strip): the tiles of n lie along x of the grid then. Else the
 * order is the grid's, and those of m do. */
bool gs_kernel_has_raster(const gs_kernel_t *k);
/* sm: the GPU's architecture (80, 90 ...). From 90 on the parts of a split can be a cluster: direct splits no
 * other way, mma where it can. */
gs_launch_t gs_kernel_launch(const gs_kernel_t *k, const gs_gemm_t *g, int split_k, int sm);
/* The most blocks among which k can be split; 0 where no GPU of this architecture runs it. */
int gs_kernel_split_max(const gs_kernel_t *k, int sm);
/* Bytes of workspace, 16-byte aligned, of which the first GS_SPLIT_COUNTERS * 4 must be zero; 0 where
 * none is needed, SIZE_MAX where this product cannot be split that way (more tiles than counters, or too many
 * splits). With 0 the kernel must be given none: that is how it knows that its parts are a cluster. */
size_t gs_kernel_workspace(const gs_kernel_t *k, const gs_gemm_t *g, int split_k, int sm);
/* Fills in everything of p but the addresses and scalars, which p holds already. */
void gs_kernel_params(const gs_gemm_t *g, int split_k, int raster, gs_params_t *p);

/* The kernels built into the library (kernels/shipped.def crossed with types and layouts). */
int gs_shipped_count(void);
gs_kernel_t gs_shipped_at(int index);
/* Index of k among them, or -1. */
int gs_shipped_find(const gs_kernel_t *k);
/* The fatbin that holds a shipped kernel; static storage. Several kernels share one: image_index (below
 * gs_shipped_image_count()) tells which. */
int gs_shipped_image_count(void);
int gs_shipped_image_index(int index);
const void *gs_shipped_image(int image_index, size_t *size);
#endif
#endif
