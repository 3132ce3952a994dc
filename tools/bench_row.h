/* What `bench` knows of one product: a row of its CSV. A grid's product is measured in two layouts side by side,
 * "nn" and "tn" (A as it is, A transposed); any other only in its own of the two.
 *
 * Columns, in this order; empty where not measured:
 *   product             as in a .calls file, with spaces: entry transa transb m n k lda ldb ldc ldd types ...;
 *                       of a pair, the nn one
 *   status              ok, or why it was not measured
 *   flops copies rounds of the operands; samples of each contender on each clock
 *   L_verdict           for L in nn, tn: served, or why the library forwarded it (the commonest reason)
 *   L_served L_kernel L_candidates
 *                       share of the calls that were served; by which kernel; algorithms of cuBLASLt's heuristic
 *   C_L_X               median microseconds on clock C (gpu, wall, server) in layout L of X:
 *                         ours    the interposed function: served or forwarded, our host cost included
 *                         again   the library's own once more, for the noise (A/A)
 *                         gemmex  cublasGemmEx (its strided batched sister)
 *                         lt      cublasLtMatmul with the heuristic's first choice
 *                         auto    the better of that and the best of the heuristic's other choices
 *   C_B_L C_B_L_lo C_B_L_hi
 *                       for B in aa, gemmex, lt, auto and L in nn, tn, max: how many times as fast ours is,
 *                       median(B) / median(ours) with its 95% bootstrap interval; max: the faster layout of each.
 *                       aa: median(again) / median of the same function, which is 1 but for noise
 *   peer                the fastest of the foreign kernels that do this product
 *   C_peer C_peer_library C_peer_ours
 *                       microseconds of it, and of the fastest of the library's and of ours timed as it was
 *   C_peer_ratio C_peer_ratio_lo C_peer_ratio_hi
 *                       how many times as fast as the library's fastest it is */
#ifndef GS_BENCH_ROW_H
#define GS_BENCH_ROW_H

#include <stdio.h>

#include "contest.h"
#include "gs_gemm.h"
#include "gs_kernel.h"

#define GS_LAYOUTS(X) X(NN, "nn") X(TN, "tn")
#define GS_RUNNERS(X) X(OURS, "ours") X(AGAIN, "again") X(GEMM_EX, "gemmex") X(LT, "lt") X(AUTO, "auto")
#define GS_RIVALS(X)  X(AA, "aa") X(GEMM_EX, "gemmex") X(LT, "lt") X(AUTO, "auto")

#define X(name, ...) GS_LAYOUT_##name,
typedef enum { GS_LAYOUTS(X) GS_LAYOUT_MAX, GS_LAYOUT_COUNT = GS_LAYOUT_MAX } gs_layout_t;
#undef X
#define X(name, ...) GS_RUNNER_##name,
typedef enum { GS_RUNNERS(X) GS_RUNNER_COUNT } gs_runner_t;
#undef X
#define X(name, ...) GS_RIVAL_##name,
typedef enum { GS_RIVALS(X) GS_RIVAL_COUNT } gs_rival_t;
#undef X
extern const char *const gs_layout_names[GS_LAYOUT_COUNT + 1]; /* with "max" */
extern const char *const gs_runner_names[GS_RUNNER_COUNT];
extern const char *const gs_rival_names[GS_RIVAL_COUNT];

#define GS_NOT_COUNTED "not_counted" /* the verdict where the histogram had no room */

typedef struct {
  char verdict[24], kernel[GS_KERNEL_ID_MAX];
  double served, candidates;
} gs_bench_door_t;

typedef struct {
  double us, library_us, ours_us;
  gs_interval_t ratio;
} gs_bench_peer_t;

typedef struct {
  gs_gemm_t gemm;
  char status[64]; /* "ok" */
  double flops, copies, rounds;
  gs_bench_door_t door[GS_LAYOUT_COUNT];
  double us[GS_CLOCK_COUNT][GS_LAYOUT_COUNT][GS_RUNNER_COUNT];
  gs_interval_t ratio[GS_CLOCK_COUNT][GS_RIVAL_COUNT][GS_LAYOUT_COUNT + 1];
  char peer_name[64];
  gs_bench_peer_t peer[GS_CLOCK_COUNT];
} gs_bench_row_t;

/* Everything not measured (NAN, empty); flops known. */
gs_bench_row_t gs_bench_row(const gs_gemm_t *g, const char *status);
bool gs_bench_row_ok(const gs_bench_row_t *row);
gs_layout_t gs_layout_of(const gs_gemm_t *g);
/* Whether two packed products differ in A's layout alone. */
bool gs_gemm_turned(const gs_gemm_t *x, const gs_gemm_t *y);

/* One line each, with its newline, as fputs would write it; owned by the caller. */
char *gs_bench_columns(void);
char *gs_bench_row_text(const gs_bench_row_t *row);
/* Reads such a line (its newline may be gone), and changes it; NULL or what is wrong (a static text). */
const char *gs_bench_row_read(gs_bench_row_t *row, char *line);

#endif
