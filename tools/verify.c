#define _GNU_SOURCE
#include "verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "baseline.h"
#include "fence.h"
#include "progress.h"
#include "tools.h"

#define COUNTERS (GS_SPLIT_COUNTERS * sizeof(unsigned))

typedef struct {
  gs_board_t *board;
  const gs_verify_options_t *options;
  gs_gpu_t gpu;
  gs_reference_t reference;
  gs_cublas_t cublas;
  bool has_cublas;
  gs_random_t random;
  gs_progress_t progress;
  double total; /* kernels times cases, for the progress */
  /* Memory, which grows as cases need. */
  CUdeviceptr arena, doubles, workspace;
  size_t arena_bytes, doubles_bytes, workspace_bytes;
  unsigned char *after, *again; /* host copies */
  gs_fence_t fences[GS_OPERAND_COUNT];
} gs_checker_t;

/* The kernels of one pair of types and one layout, which share operands and references. */
typedef struct {
  gs_kernel_t first;
  int *members; /* indices as gs_kernel_at */
  int count;
} gs_group_t;

/* ---- memory ---- */

static void grow(gs_gpu_t *gpu, CUdeviceptr *at, size_t *have, size_t wanted) {
  if (*have >= wanted) return;
  gs_gpu_free(gpu, *at);
  *at = gs_gpu_alloc(gpu, wanted);
  *have = *at ? wanted : 0;
}

static void *grow_host(gs_gpu_t *gpu, void *at, size_t bytes) {
  void *grown = realloc(at, bytes);
  if (!grown) gs_gpu_note(gpu, CUDA_ERROR_OUT_OF_MEMORY, "host memory");
  return grown ? grown : at;
}

static void make_room(gs_checker_t *checker, const gs_trial_t *trial) {
  const gs_gemm_t *g = &trial->gemm;
  gs_gpu_t *gpu = &checker->gpu;
  size_t before = checker->arena_bytes;
  grow(gpu, &checker->arena, &checker->arena_bytes, trial->bytes);
  grow(gpu, &checker->doubles, &checker->doubles_bytes, sizeof(double) * (size_t)(g->m * g->n * g->batch));
  if (checker->arena_bytes == before) return;
  checker->after = grow_host(gpu, checker->after, checker->arena_bytes);
  checker->again = grow_host(gpu, checker->again, checker->arena_bytes);
}

/* ---- one case ---- */

void gs_trial_compute(gs_trial_t *trial, gs_gpu_t *gpu, gs_reference_t *reference, CUdeviceptr arena,
                      CUdeviceptr doubles) {
  gs_gemm_t g = trial->gemm;
  gs_operands_t o = gs_trial_operands(trial, gs_gpu_pointer(arena));
  g.ldd = g.m, g.stride_d = g.m * g.n;
  o.d = gs_gpu_pointer(doubles);
  gs_gpu_write(gpu, arena, trial->image, trial->bytes);
  gs_reference_run(reference, &g, gs_gpu_params(&g, &o, 1, 1, 0, trial->from->device_scalars));
  gs_gpu_sync(gpu);
  gs_gpu_read(gpu, trial->reference, doubles, sizeof(double) * (size_t)(g.m * g.n * g.batch));
}

/* cuBLAS's own error on the trial; -1 where it is not needed, or cannot be had. */
static double library_error(gs_checker_t *checker, const gs_trial_t *trial) {
  gs_gpu_t *gpu = &checker->gpu;
  const gs_case_t *from = trial->from;
  bool plain =
      from->alpha == 1 && from->beta == 0 && from->epilogue == GS_EPI_DEFAULT && !from->device_scalars;
  if (!checker->has_cublas || !plain || trial->gemm.d_type != GS_TYPE_F32) return -1;
  gs_operands_t o = gs_trial_operands(trial, gs_gpu_pointer(checker->arena));
  gs_gate_t gate;
  if (gs_cublas_gemm(&checker->cublas, &trial->gemm, &o) != CUBLAS_STATUS_SUCCESS) return -1;
  gs_gpu_sync(gpu);
  gs_gpu_read(gpu, checker->after, checker->arena, trial->bytes);
  if (!gs_gpu_ok(gpu)) return -1;
  gs_trial_judge(trial, checker->after, -1, &gate);
  double error = gs_gate_error(&gate);
  return isfinite(error) ? error : -1;
}

/* Room for the partial sums, poisoned, its counters zero, poison behind it. */
static size_t set_workspace(gs_checker_t *checker, const gs_kernel_t *kernel, const gs_trial_t *trial) {
  gs_gpu_t *gpu = &checker->gpu;
  size_t needed = gs_kernel_workspace(kernel, &trial->gemm, trial->from->split_k, gpu->device.sm);
  if (needed == 0 || needed == SIZE_MAX) return needed;
  grow(gpu, &checker->workspace, &checker->workspace_bytes, needed + GS_TRIAL_MARGIN);
  gs_gpu_fill(gpu, checker->workspace, GS_POISON_BYTE, needed + GS_TRIAL_MARGIN);
  gs_gpu_fill(gpu, checker->workspace, 0, COUNTERS);
  return needed;
}

static const char *judge_workspace(gs_checker_t *checker, size_t needed) {
  unsigned char counters[COUNTERS], margin[GS_TRIAL_MARGIN];
  if (needed == 0) return NULL;
  gs_gpu_read(&checker->gpu, counters, checker->workspace, sizeof counters);
  gs_gpu_read(&checker->gpu, margin, checker->workspace + needed, sizeof margin);
  if (!gs_gpu_ok(&checker->gpu)) return NULL; /* said elsewhere */
  for (size_t i = 0; i < sizeof counters; i++)
    if (counters[i] != 0) return "a split-K counter was not left zero";
  for (size_t i = 0; i < sizeof margin; i++)
    if (margin[i] != GS_POISON_BYTE) return "memory behind the workspace was written";
  return NULL;
}

/* Where the operands of a launch lie. */
typedef enum { IN_ARENA, AT_FIRST, AT_LAST, PLACES } gs_place_t; /* the others: between guard pages */

static void fence_in(gs_checker_t *checker, const gs_trial_t *trial, gs_place_t place,
                     const void *at[GS_OPERAND_COUNT]) {
  for (int i = 0; i < GS_OPERAND_COUNT; i++)
    at[i] = gs_gpu_pointer(
        gs_fence_place(&checker->gpu, &checker->fences[i], place == AT_LAST ? GS_FENCE_LAST : GS_FENCE_FIRST,
                       checker->arena + trial->operands[i].at, trial->operands[i].bytes, GS_POISON_BYTE));
  if (trial->from->in_place) at[GS_OPERAND_C] = at[GS_OPERAND_D];
}

/* D, from between guard pages to the arena, where it is judged. */
static void fetch_d(gs_checker_t *checker, const gs_trial_t *trial, const void *d) {
  const gs_extent_t *extent = &trial->operands[GS_OPERAND_D];
  GS_GPU_TRY(&checker->gpu, cuMemcpyDtoD, checker->arena + extent->at, (CUdeviceptr)(uintptr_t)d,
             extent->bytes);
}

static void launch(gs_checker_t *checker, int index, const gs_trial_t *trial, gs_place_t place,
                   unsigned char *after) {
  gs_gpu_t *gpu = &checker->gpu;
  const gs_case_t *from = trial->from;
  gs_kernel_t kernel = gs_kernel_at(index);
  CUkernel handle = gs_device_kernel(index, gpu->device.handle);
  gs_operands_t o = gs_trial_operands(trial, gs_gpu_pointer(checker->arena));
  const void *at[GS_OPERAND_COUNT];
  if (!handle) gs_gpu_note(gpu, CUDA_ERROR_NO_BINARY_FOR_GPU, "loading the kernel");
  gs_gpu_write(gpu, checker->arena + trial->d_region, trial->image + trial->d_region, trial->d_region_bytes);
  if (place != IN_ARENA) {
    fence_in(checker, trial, place, at);
    o = gs_trial_operands_at(trial, at);
  }
  bool works = gs_kernel_workspace(&kernel, &trial->gemm, from->split_k, gpu->device.sm) != 0;
  gs_params_t p = gs_gpu_params(&trial->gemm, &o, from->split_k, from->raster, works ? checker->workspace : 0,
                                from->device_scalars);
  gs_launch_t how = gs_kernel_launch(&kernel, &trial->gemm, from->split_k, gpu->device.sm);
  gs_gpu_launch(gpu, handle, &how, (void *[]){&p});
  gs_gpu_sync(gpu);
  if (place != IN_ARENA) fetch_d(checker, trial, o.d);
  gs_gpu_read(gpu, after, checker->arena, trial->bytes);
}

/* Runs the kernel on the trial, once in the arena and twice between guard pages; NULL or what is wrong. */
static const char *check(gs_checker_t *checker, int index, const gs_trial_t *trial, double library,
                         gs_gate_t *gate) {
  gs_kernel_t kernel = gs_kernel_at(index);
  *gate = (gs_gate_t){0};
  size_t workspace = set_workspace(checker, &kernel, trial);
  if (workspace == SIZE_MAX) return "the registry says that k cannot be split";
  launch(checker, index, trial, IN_ARENA, checker->after);
  bool same = true;
  for (gs_place_t place = AT_FIRST; place < PLACES && gs_gpu_ok(&checker->gpu); place++) {
    launch(checker, index, trial, place, checker->again);
    same = same && memcmp(checker->after, checker->again, trial->bytes) == 0;
  }
  const char *scratch = judge_workspace(checker, workspace);
  if (!gs_gpu_ok(&checker->gpu)) return checker->gpu.fault;
  const char *why = gs_trial_judge(trial, checker->after, library, gate);
  if (why) return why;
  return same ? scratch : "two runs on the same operands differ";
}

static void note(gs_outcome_t *outcome, const gs_trial_t *trial, const gs_gate_t *gate, double library,
                 const char *why) {
  const gs_gemm_t *g = &trial->gemm;
  double error = gate->count ? gs_gate_error(gate) : 0, bound = gs_gate_bound(gate, g->d_type, g->k, library);
  outcome->cases++;
  if (!why && bound > 0 && error / bound > outcome->worst) {
    outcome->worst = error / bound;
    outcome->worst_case = trial->from->name;
  }
  if (!why) return;
  outcome->state = GS_CHECKED_FAULTY;
  outcome->failed_case = trial->from->name;
  outcome->error = error, outcome->bound = bound;
  if (gate->unwritten || gate->misfits)
    snprintf(outcome->why, sizeof outcome->why, "%s: %lld elements, the first in row %lld of %lld", why,
             (long long)(gate->unwritten + gate->misfits), (long long)gate->row, (long long)g->m);
  else
    snprintf(outcome->why, sizeof outcome->why, "%s", why);
}

/* What keeps the kernel from the trial; NULL where nothing does, or it is not meant, or right to refuse: for its alignment, for
 * a product too deep for its accuracy or its tile, or for more parts of k than it can add up on this GPU. */
static const char *unfit(gs_checker_t *checker, int index, const gs_trial_t *trial, bool *skip) {
  gs_kernel_t kernel = gs_kernel_at(index);
  gs_gemm_t g = trial->gemm;
  gs_operands_t o = gs_trial_operands(trial, gs_gpu_pointer(checker->arena));
  g.align = gs_align_of(&o);
  gs_reason_t reason = gs_kernel_supports(&kernel, &g);
  *skip = (trial->from->shallow && gs_kernel_depth_max(&kernel) > kernel.bk) ||
          (reason == GS_REASON_ALIGNMENT && trial->from->ld == GS_LD_ODD && kernel.align > 2) ||
          (reason == GS_REASON_KERNEL && g.k > gs_kernel_depth_max(&kernel)) ||
          trial->from->split_k > gs_kernel_split_max(&kernel, checker->gpu.device.sm);
  return reason == GS_REASON_SERVED || *skip ? NULL : gs_reason_texts[reason];
}

/* False where the context is lost. */
static bool check_member(gs_checker_t *checker, int index, const gs_trial_t *trial, double library) {
  gs_board_t *board = checker->board;
  gs_outcome_t *outcome = &board->outcomes[index];
  gs_gate_t gate = {0};
  bool skip;
  const char *why = unfit(checker, index, trial, &skip);
  board->done++;
  if (skip || outcome->state == GS_CHECKED_FAULTY) return true;
  board->running = index;
  alarm(GS_CASE_SECONDS);
  if (!why) why = check(checker, index, trial, library, &gate);
  alarm(0);
  note(outcome, trial, &gate, library, why);
  board->running = -1;
  return gs_gpu_ok(&checker->gpu) || gs_gpu_forgive(&checker->gpu);
}

/* ---- groups ---- */

/* A trial on the GPU, with its reference. */
static bool make_trial(gs_checker_t *checker, gs_trial_t *trial, const gs_case_t *from,
                       const gs_kernel_t *k) {
  if (!gs_trial_make(trial, from, k->ab_type, k->d_type, k->transa, k->transb, checker->options->small,
                     &checker->random)) {
    gs_gpu_note(&checker->gpu, CUDA_ERROR_OUT_OF_MEMORY, "host memory");
    return false;
  }
  make_room(checker, trial);
  gs_trial_compute(trial, &checker->gpu, &checker->reference, checker->arena, checker->doubles);
  return true;
}

/* cuBLAS's error on a product of the same depth with many tiles. For few tiles it splits k or leaves the
 * tensor cores, and is several times more exact than its own usual; that usual is the yardstick. */
static double usual_error(gs_checker_t *checker, const gs_case_t *from, const gs_kernel_t *k) {
  gs_trial_t trial;
  gs_case_t wide = *from;
  if (k->d_type != GS_TYPE_F32 || !checker->has_cublas || checker->options->small) return -1;
  wide.m = wide.n = 1024;
  if (!make_trial(checker, &trial, &wide, k)) return -1;
  double error = library_error(checker, &trial);
  gs_trial_free(&trial);
  return error;
}

static bool check_case(gs_checker_t *checker, const gs_group_t *group, const gs_case_t *from) {
  gs_trial_t trial;
  double usual = usual_error(checker, from, &group->first);
  if (!make_trial(checker, &trial, from, &group->first)) return false;
  double library = library_error(checker, &trial);
  if (library >= 0) library = fmax(library, usual);
  bool alive = gs_gpu_ok(&checker->gpu);
  for (int i = 0; i < group->count && alive; i++)
    alive = check_member(checker, group->members[i], &trial, library);
  gs_trial_free(&trial);
  return alive;
}

void gs_outcome_print(int index, gs_outcome_t *outcome) {
  outcome->told = true;
  char id[GS_KERNEL_ID_MAX];
  gs_kernel_t kernel = gs_kernel_at(index);
  gs_kernel_format(id, sizeof id, &kernel);
  if (outcome->state == GS_CHECKED_OK)
    printf("ok   %-42s cases=%d worst=%.2f%s%s\n", id, outcome->cases, outcome->worst,
           outcome->worst_case ? " at " : "", outcome->worst_case ? outcome->worst_case : "");
  else
    printf("FAIL %-42s %s: %s (error %.2e, bound %.2e)\n", id,
           outcome->failed_case ? outcome->failed_case : "-", outcome->why, outcome->error, outcome->bound);
}

static void conclude(int index, gs_outcome_t *outcome) {
  if (outcome->state != GS_UNCHECKED) return;
  outcome->state = outcome->cases ? GS_CHECKED_OK : GS_CHECKED_FAULTY;
  if (!outcome->cases) snprintf(outcome->why, sizeof outcome->why, "no case fits kernel %d", index);
}

static bool check_group(gs_checker_t *checker, const gs_group_t *group) {
  gs_board_t *board = checker->board;
  bool alive = true;
  for (int i = 0; i < group->count; i++)
    board->outcomes[group->members[i]].cases = 0; /* begun and lost before */
  for (int c = 0; c < gs_case_count && alive; c++) {
    if (checker->options->quick && !gs_cases[c].quick) continue;
    alive = check_case(checker, group, &gs_cases[c]);
    gs_progress_show(&checker->progress, fmin(1, (double)board->done / checker->total), gs_cases[c].name);
  }
  if (!alive) return false;
  gs_progress_clear(&checker->progress);
  for (int i = 0; i < group->count; i++) {
    gs_outcome_t *outcome = &board->outcomes[group->members[i]];
    conclude(group->members[i], outcome);
    if (!checker->options->silent) gs_outcome_print(group->members[i], outcome);
  }
  fflush(stdout);
  return true;
}

static bool same_group(const gs_kernel_t *x, const gs_kernel_t *y) {
  return x->ab_type == y->ab_type && x->d_type == y->d_type && x->transa == y->transa &&
         x->transb == y->transb;
}

/* The next kernel that is wanted and unchecked, with all like it; false where none is left. */
static bool next_group(const gs_board_t *board, gs_group_t *group) {
  group->count = 0;
  for (int i = 0; i < gs_kernel_count(); i++) {
    gs_kernel_t kernel = gs_kernel_at(i);
    if (!board->outcomes[i].wanted || board->outcomes[i].state != GS_UNCHECKED) continue;
    if (group->count && !same_group(&kernel, &group->first)) continue;
    if (group->count == 0) group->first = kernel;
    group->members[group->count++] = i;
  }
  return group->count > 0;
}

static bool open_checker(gs_checker_t *checker) {
  const gs_verify_options_t *options = checker->options;
  gs_board_t *board = checker->board;
  char fault[512] = "";
  if (gs_gpu_open(&checker->gpu, options->device) != GS_OK) {
    gs_say("%s", checker->gpu.fault[0] ? checker->gpu.fault : "the GPU does not start");
    return false;
  }
  if (!gs_reference_open(&checker->reference, &checker->gpu)) {
    gs_say("%s", checker->gpu.fault);
    return false;
  }
  bool none = options->cublas && !strcmp(options->cublas, "none");
  checker->has_cublas =
      !none && gs_cublas_open(&checker->cublas, &checker->gpu, options->cublas, fault, sizeof fault) == GS_OK;
  if (!none && options->cublas && !checker->has_cublas) {
    gs_say("%s", fault);
    return false;
  }
  snprintf(board->gpu, sizeof board->gpu, "%s", checker->gpu.device.name);
  if (checker->has_cublas)
    snprintf(board->bound, sizeof board->bound, "twice the error of cuBLAS %d.%d.%d",
             checker->cublas.version[0], checker->cublas.version[1], checker->cublas.version[2]);
  else
    snprintf(board->bound, sizeof board->bound, "(8 + k/16) * 2^-23, without a cuBLAS");
  return true;
}

int gs_verify(gs_board_t *board, const gs_verify_options_t *options) {
  gs_checker_t checker = {
      .board = board, .options = options, .random = {options->seed}, .progress = gs_progress_begin()};
  gs_group_t group = {.members = calloc((size_t)gs_kernel_count(), sizeof *group.members)};
  if (!group.members || !open_checker(&checker)) return GS_EXIT_MACHINE;
  for (int c = 0; c < gs_case_count; c++) checker.total += options->quick ? gs_cases[c].quick : 1;
  checker.total *= board->wanted;
  bool alive = true;
  while (alive && next_group(board, &group)) alive = check_group(&checker, &group);
  if (!alive) gs_say("%s", checker.gpu.fault);
  return alive ? GS_EXIT_OK : GS_VERIFY_LOST;
}
