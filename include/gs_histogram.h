/* The histogram: one file a process, mapped while the process runs, so that it is whole whatever ends the
 * process. The same layout serves in anonymous memory where no file was asked for. Written by the library,
 * read by the tools (report, run) on the same machine type. */
#ifndef GS_HISTOGRAM_H
#define GS_HISTOGRAM_H

#include "gs_gemm.h"
#include "gs_kernel.h"
#include "gs_reason.h"

#define GS_HISTOGRAM_MAGIC   "gemmshim"
#define GS_HISTOGRAM_VERSION 3
#define GS_HISTOGRAM_SUFFIX  ".gshist" /* of the files' names */
#define GS_SHARDS            3 /* threads spread over these, so that counters rarely share a cache line */

typedef struct {
  uint64_t calls[GS_REASON_COUNT];
} gs_counts_t;

/* Of an unproven row's trial in place, by shape (GEMMSHIM_UNPROVEN=probation). */
typedef enum {
  GS_TRIAL_NONE,
  GS_TRIAL_OPEN,
  GS_TRIAL_WON,
  GS_TRIAL_LOST,
  GS_TRIAL_VERDICTS
} gs_trial_verdict_t;

typedef struct {
  uint64_t hash;  /* of gemm; 0 = free */
  uint32_t ready; /* gemm may be read */
  uint32_t named; /* kernel: 0 = empty, 1 = being written, 2 = may be read */
  gs_gemm_t gemm;
  uint64_t captured;   /* of these calls, how many were captured into a graph (0 unless asked to look) */
  uint64_t samples;    /* calls timed by an event pair */
  uint64_t sampled_ns; /* their GPU time in all */
  gs_counts_t shard[GS_SHARDS];
  uint32_t trial;    /* gs_trial_verdict_t of an unproven row */
  float trial_us[2]; /* medians of its samples: library, kernel */
  float worst_off;   /* of the calls compared by GEMMSHIM_VERIFY: 1 is what rounding explains */
  uint64_t compared, off;
  uint64_t traced;               /* of captured: in graphs whose launches are seen */
  uint64_t replayed;             /* products that launches of these have run */
  char kernel[GS_KERNEL_ID_MAX]; /* the id that served, or would have; empty when none */
} gs_slot_t;

typedef struct {
  char magic[8];
  uint32_t version;
  uint32_t slot_bytes; /* sizeof(gs_slot_t) and GS_REASON_COUNT of the writer: a reader of another */
  uint32_t reasons;    /* version refuses the file */
  uint32_t capacity;   /* slots that follow, a power of two */
  int64_t pid;
  uint64_t started_ns;    /* CLOCK_REALTIME */
  uint64_t first_call_ns; /* CLOCK_MONOTONIC; 0 = none */
  uint64_t last_call_ns;
  char host[64];
  char program[128]; /* /proc/self/exe */
  char gpu[64];      /* of the first device that was used; empty when none */
  char table[128];   /* the table in use: a path, or "built-in NAME"; empty when none */
  int32_t cublas[3];
  uint32_t sampling;               /* 1 call in this many is timed; 0 = none */
  gs_counts_t overflow[GS_SHARDS]; /* calls whose shape found no free slot */
} gs_histogram_file_t;

#endif
