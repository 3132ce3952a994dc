/* What each stand-in (libcublas, libcublasLt, libcuda) remembers, for test programs: look the functions up by
 * dlsym in the stand-in's own handle. Counts are of the process, the last calls are of the calling thread.
 *
 * The environment, read when a stand-in is mapped:
 *   SIM_FAIL=cuLaunchKernel:3=700,cublasGemmEx:*=14   the third, and every, call returns that status at once
 *   SIM_FAIL_OURS=cu:17     the 17th call that libgemmshim itself makes of the driver fails (or cublas:, cublasLt:)
 *   SIM_NOCOMPUTE=1        nothing is computed, remembered or made to fail (to time what is around calls)
 *   SIM_NOCOMPUTE=times    nothing is computed, but the times of SIM_US pass
 *   SIM_US=cublasGemmEx:40,lt_3:5,mma_*:9   cublasGemmEx, cublasLt's algorithm 3 and kernels whose ids match
 *                          take so many us at least; cublasGemmEx_16f, lt_3_16f: where sums are kept in half
 *   SIM_HEURISTIC=5@6-7    at n from 6 to 7 cublasLt's heuristic offers algorithm 5 first
 *   SIM_CLOCK=set          events tell the times of SIM_US, exactly, and nothing waits for them
 *   SIM_HOST_US=cublasGemmEx:40   the calls of cuBLAS take so long, whenever the GPU computes them
 *   SIM_L2=4096            bytes of the second-level cache
 *   SIM_CLUSTER=0          the launches of cuBLAS's kernels say nothing of clusters (4: clusters of 4 blocks)
 *   SIM_LAUNCH=counter     how cublasLtMatmul launches an algorithm that is named: counter: it clears 4 bytes of workspace,
 *                          in which its kernel counts; split: two kernels where k is split, of which the second, whose
 *                          parameters are given singly, needs what the first one leaves in workspace; early, ordered: and
 *                          begins before that one has ended, or as soon as it was launched; singly: every kernel's
 *                          parameters are; thrice: three kernels; apart: two that do not wait for each other; secret,
 *                          tail: with a parameter (of the last kernel) that is neither constant nor an address, of 8 bytes,
 *                          of the last 4; aligned: in other clusters (the last kernel) where A's address divides by 2 MiB;
 *                          domain: in a domain of memory operations of its own. Several, with commas
 *   SIM_LATE_US=500        user objects hear of the end of their graphs so late
 *   SIM_WRONG=mma_*:all:0.01
 *                          results of kernels (or algorithms, lt_5) whose ids match are off: all by that part of themselves, or "last":
 *                          the last element; "last:nan". "before", "behind": right, but A is read beyond its ends
 *   SIM_REFUSE=3           cublasLtMatmulAlgoCheck refuses algorithm 3
 *   SIM_SM=75              the architecture (90); those that no kernel is made for refuse to load any
 *   SIM_GPU=name  SIM_DEVICES=2  SIM_MEMORY_MB=65536  SIM_MEMORY_SHARED=file  SIM_CUBLAS_VERSION=13.0.2 */
#ifndef GS_SIM_H
#define GS_SIM_H

#include <stdint.h>

#define SIM_ARGS 24 /* words of the longest call: cublasGemmStridedBatchedEx has 23 */

typedef struct {
  const char *function; /* the symbol, as "cublasSgemm_v2" */
  int count;
  uint64_t args[SIM_ARGS]; /* as sent: pointers and enums as numbers, integers sign-extended */
} sim_call_t;

/* What cuLaunchKernel or cuLaunchKernelEx was last given, the parameters' bytes included. */
typedef struct {
  char id[64];
  unsigned grid[3], block[3], smem;
  unsigned cluster; /* blocks along y; 0: no cluster */
  int early;        /* it may begin before what is ahead of it has ended */
  void *stream;
  unsigned char params[160]; /* a gs_params_t */
} sim_launch_t;

#define SIM_RECENT 16 /* calls that a thread can look back */

typedef uint64_t sim_calls_t(const char *function); /* how many in this process */
typedef int sim_last_t(const char *function,
                       sim_call_t *call);             /* 1: found among this thread's recent calls */
typedef int sim_recent_t(int back, sim_call_t *call); /* back = 0: the last one */
typedef int sim_last_launch_t(sim_launch_t *launch);  /* libcuda: 1 when this thread launched */
typedef int sim_last_algo_t(uint64_t algo[8]);        /* libcublasLt: 1 when cublasLtMatmul got one */

typedef uint64_t
sim_live_t(void); /* libcuda's sim_live: pieces of memory, graphs and user objects there are */

typedef uint64_t
sim_latest_us_t(void); /* libcuda: how late a user object heard of its graph's end, at most */

extern sim_calls_t sim_calls;
extern sim_last_t sim_last;
extern sim_recent_t sim_recent;

#endif
