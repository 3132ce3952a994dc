/* Puts kernels through the cases of cases.def on one GPU. */
#ifndef GS_VERIFY_H
#define GS_VERIFY_H

#include "cases.h"
#include "extras.h"
#include "fp64.h"

typedef enum { GS_UNCHECKED, GS_CHECKED_OK, GS_CHECKED_FAULTY } gs_check_t;

typedef struct {
  gs_check_t state;
  bool wanted, told; /* told: it has had its line */
  int cases;
  double worst;            /* largest error over its bound */
  const char *worst_case;  /* a static text, as the next */
  const char *failed_case; /* of a faulty one; NULL: none in particular */
  char why[400];
  double error, bound;
} gs_outcome_t;

/* In memory that a child process shares with its parent: whatever ends the child, what it found stays. */
typedef struct {
  int wanted;      /* of the outcomes */
  int running;     /* index of the kernel on the GPU, -1: none */
  long done;       /* kernels times cases */
  char bound[128]; /* how results in f32 are judged, for people */
  char gpu[64];
  gs_outcome_t outcomes[]; /* gs_kernel_count() */
} gs_board_t;

typedef struct {
  int device;
  const char *cublas;        /* its path; NULL: look for it; "none" */
  bool quick, small, silent; /* silent: no line a kernel */
  uint64_t seed;
} gs_verify_options_t;

/* Checks every kernel that is wanted and unchecked; runs in a child. Returns an exit status of tools.h, or
 * GS_VERIFY_LOST where a kernel took the GPU's context with it (its outcome says so) and the rest needs
 * another process. */
#define GS_VERIFY_LOST 100
int gs_verify(gs_board_t *board, const gs_verify_options_t *options);

/* A kernel that does not end by then never will: an alarm ends the process. */
#define GS_CASE_SECONDS 300

/* Puts a trial's image at arena and fills in trial->reference; doubles has room for m x n x batch. */
void gs_trial_compute(gs_trial_t *trial, gs_gpu_t *gpu, gs_reference_t *reference, CUdeviceptr arena,
                      CUdeviceptr doubles);

/* One line on stdout. */
void gs_outcome_print(int index, gs_outcome_t *outcome);

#endif
