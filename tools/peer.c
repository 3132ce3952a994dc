#define _GNU_SOURCE
#include "peer.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "fp64.h"
#include "json.h"
#include "progress.h"
#include "tools.h"

/* The row-major product C = A B is the column-major one with the operands swapped: m and n change places, and
 * the trial's A is the peer's B. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init" /* the defaults come first */
static const gs_case_t listed[] = {
#define GS_PEER_CASE(NAME, M, N, K, ...) GS_CASE_INIT(NAME, N, M, K, __VA_ARGS__)
#include "peer.def"
#undef GS_PEER_CASE
};
#pragma GCC diagnostic pop
#define LISTED ((int)(sizeof listed / sizeof *listed))

/* What is asked: those of the list, or of every shape that the command line names these kinds. */
static const gs_case_t kinds[] = {
    {.name = "normal", .scale = 1},
    {.name = "x16", .scale = 16},
    {.name = "x1/16", .scale = 0.0625f},
    {.name = "outliers", .scale = 1, .data = GS_DATA_OUTLIERS},
    {.name = "integers", .scale = 1, .data = GS_DATA_INTEGERS},
    {.name = "nan_inf", .scale = 1, .data = GS_DATA_SPECIALS},
};
#define KINDS     ((int)(sizeof kinds / sizeof *kinds))
#define CASES_MAX (KINDS * GS_PEER_SHAPES_MAX > LISTED ? KINDS * GS_PEER_SHAPES_MAX : LISTED)

static gs_case_t cases[CASES_MAX];
static int case_count;

/* The states of a case, and their names in lines and JSON. */
typedef enum { UNCHECKED, PASSED, FAILED, SKIPPED, STATES } state_t;
static const char *const words[STATES] = {"?", "ok", "FAIL", "skip"};

typedef struct {
  state_t state;
  bool wanted, compared; /* compared: error and bound are known */
  double error, bound;
  char why[320];
} result_t;

/* In memory that a child process shares with its parent. */
typedef struct {
  int running; /* index of the case that the peer computes, -1: none */
  char gpu[64];
  result_t results[CASES_MAX];
} board_t;

typedef struct {
  board_t *board;
  const char *file;
  const gs_verify_options_t *options;
  gs_peer_t peer;
  gs_gpu_t gpu;
  gs_reference_t reference;
  gs_random_t random;
  gs_progress_t progress;
  FILE *out; /* our standard output; the peer's goes to the errors */
} run_t;

/* One case on the GPU: the trial's allocation, and B transposed between margins. */
typedef struct {
  gs_trial_t trial;
  CUdeviceptr arena, transposed;
  unsigned char *transposed_image;
  size_t transposed_bytes;
  unsigned char *after[2], *transposed_after; /* what two calls left */
} bench_t;

/* ---- sizes, lines ---- */

static int lesser(int a, int b) {
  return a < b ? a : b;
}

/* Cut for a slow stand-in: still multiples of 64, and deep enough to tell how sums are kept. */
static gs_case_t case_at(int index, bool small) {
  gs_case_t cut = cases[index];
  if (small && case_count == LISTED)
    cut.m = lesser(cut.m, 128), cut.n = lesser(cut.n, 64), cut.k = lesser(cut.k, 1024);
  return cut;
}

static void format_shape(char *text, size_t size, int index, bool small) {
  gs_case_t at = case_at(index, small);
  snprintf(text, size, "%dx%dx%d", at.n, at.m, at.k);
}

static void print_line(FILE *out, int index, const result_t *result, bool small) {
  char shape[48];
  format_shape(shape, sizeof shape, index, small);
  fprintf(out, "%-4s %-15s %s", words[result->state], shape, cases[index].name);
  if (result->compared)
    fprintf(out, "%*s error %.2e bound %.2e", 13 - (int)strlen(cases[index].name), "", result->error,
            result->bound);
  fprintf(out, "%s%s\n", result->why[0] ? ": " : "", result->why);
  fflush(out);
}

/* ---- one case ---- */

/* B (k x n) row by row becomes n x k, poison around it. */
static bool transpose(bench_t *bench) {
  const gs_gemm_t *g = &bench->trial.gemm;
  size_t bytes = sizeof(uint16_t) * (size_t)(g->m * g->k);
  bench->transposed_bytes = bytes + 2 * GS_TRIAL_MARGIN;
  bench->transposed_image = malloc(bench->transposed_bytes);
  if (!bench->transposed_image) return false;
  memset(bench->transposed_image, GS_POISON_BYTE, bench->transposed_bytes);
  const uint16_t *from = (const uint16_t *)gs_trial_at(&bench->trial, GS_OPERAND_A);
  uint16_t *to = (uint16_t *)(bench->transposed_image + GS_TRIAL_MARGIN);
  for (int64_t l = 0; l < g->k; l++)
    for (int64_t j = 0; j < g->m; j++) to[j * g->k + l] = from[l * g->lda + j];
  return true;
}

/* Operands and reference on the GPU; what goes wrong here is not the peer's. */
static bool set_up(run_t *run, bench_t *bench, const gs_case_t *from) {
  gs_gpu_t *gpu = &run->gpu;
  gs_trial_t *trial = &bench->trial;
  bool made = gs_trial_make(trial, from, GS_TYPE_F16, GS_TYPE_F16, GS_OP_N, GS_OP_N, false, &run->random) &&
              transpose(bench);
  if (made) {
    for (int i = 0; i < 2; i++) bench->after[i] = malloc(trial->bytes);
    bench->transposed_after = malloc(bench->transposed_bytes);
  }
  if (!made || !bench->after[0] || !bench->after[1] || !bench->transposed_after)
    return gs_gpu_note(gpu, CUDA_ERROR_OUT_OF_MEMORY, "host memory");
  bench->arena = gs_gpu_alloc(gpu, trial->bytes);
  bench->transposed = gs_gpu_alloc(gpu, bench->transposed_bytes);
  CUdeviceptr doubles = gs_gpu_alloc(gpu, sizeof(double) * (size_t)(trial->gemm.m * trial->gemm.n));
  gs_trial_compute(trial, gpu, &run->reference, bench->arena, doubles);
  gs_gpu_free(gpu, doubles);
  gs_gpu_write(gpu, bench->transposed, bench->transposed_image, bench->transposed_bytes);
  return gs_gpu_ok(gpu);
}

static void take_down(run_t *run, bench_t *bench) {
  gs_gpu_free(&run->gpu, bench->arena);
  gs_gpu_free(&run->gpu, bench->transposed);
  for (int i = 0; i < 2; i++) free(bench->after[i]);
  free(bench->transposed_after);
  free(bench->transposed_image);
  gs_trial_free(&bench->trial);
}

/* Calls the peer on a poisoned C; returns its answer. */
static int call(run_t *run, bench_t *bench, unsigned char *after) {
  gs_gpu_t *gpu = &run->gpu;
  const gs_trial_t *trial = &bench->trial;
  gs_operands_t o = gs_trial_operands(trial, gs_gpu_pointer(bench->arena));
  gs_gpu_write(gpu, bench->arena + trial->d_region, trial->image + trial->d_region, trial->d_region_bytes);
  int answer = run->peer(o.b, o.a, gs_gpu_pointer(bench->transposed + GS_TRIAL_MARGIN), o.d,
                         (int)trial->gemm.n, (int)trial->gemm.m, (int)trial->gemm.k);
  gs_gpu_note(gpu, gs_driver_tools.cuCtxSynchronize(), "after the peer's call");
  gs_gpu_read(gpu, after, bench->arena, trial->bytes);
  return answer;
}

/* NULL, or what is wrong with what two calls left. */
static const char *judge(run_t *run, bench_t *bench, result_t *result) {
  const gs_trial_t *trial = &bench->trial;
  gs_gate_t gate;
  bool same = memcmp(bench->after[0], bench->after[1], trial->bytes) == 0;
  const char *why = gs_trial_judge(trial, bench->after[0], -1, &gate);
  result->compared = true;
  result->error = gs_gate_error(&gate);
  result->bound = gs_gate_bound(&gate, GS_TYPE_F16, trial->gemm.k, -1);
  gs_gpu_read(&run->gpu, bench->transposed_after, bench->transposed, bench->transposed_bytes);
  if (!gs_gpu_ok(&run->gpu)) return run->gpu.fault;
  if (why) return why;
  if (memcmp(bench->transposed_after, bench->transposed_image, bench->transposed_bytes) != 0)
    return "B transposed, or memory around it, was written";
  return same ? NULL : "two runs on the same operands differ";
}

static void check(run_t *run, bench_t *bench, result_t *result) {
  const char *why = NULL;
  int first = call(run, bench, bench->after[0]), second = first;
  if (first == 0 && gs_gpu_ok(&run->gpu)) second = call(run, bench, bench->after[1]);
  if (!gs_gpu_ok(&run->gpu))
    why = run->gpu.fault;
  else if (first == 0)
    why = second ? "it did the product once and refused it once" : judge(run, bench, result);
  result->state = why ? FAILED : first == 0 ? PASSED : SKIPPED;
  if (why) snprintf(result->why, sizeof result->why, "%s", why);
}

/* An exit status, GS_EXIT_OK: go on. */
static int check_case(run_t *run, int index) {
  board_t *board = run->board;
  gs_case_t from = case_at(index, run->options->small);
  bench_t bench = {0};
  if (!set_up(run, &bench, &from)) {
    gs_say("%s", run->gpu.fault);
    return GS_EXIT_MACHINE;
  }
  board->running = index;
  alarm(GS_CASE_SECONDS);
  check(run, &bench, &board->results[index]);
  alarm(0);
  board->running = -1;
  bool alive = gs_gpu_ok(&run->gpu) || gs_gpu_forgive(&run->gpu);
  take_down(run, &bench);
  return alive ? GS_EXIT_OK : GS_VERIFY_LOST;
}

/* ---- all cases ---- */

static bool load(run_t *run) {
  char *path = realpath(run->file, NULL); /* a name without a slash would be searched for */
  if (!path) {
    gs_say("--peer %s: cannot be read (%s)", run->file, strerror(errno));
    return false;
  }
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  free(path);
  if (!library) {
    gs_say("--peer %s: cannot be loaded (%s): build it as a shared object for this machine", run->file,
           dlerror());
    return false;
  }
  run->peer = (gs_peer_t)dlsym(library, GS_PEER_SYMBOL);
  if (!run->peer)
    gs_say("--peer %s: has no function " GS_PEER_SYMBOL ": define it, in C++ as extern \"C\" "
           "(gemmshim verify --help)",
           run->file);
  return run->peer;
}

static bool open_gpu(run_t *run) {
  if (gs_gpu_open(&run->gpu, run->options->device) == GS_OK &&
      gs_reference_open(&run->reference, &run->gpu)) {
    snprintf(run->board->gpu, sizeof run->board->gpu, "%s", run->gpu.device.name);
    return true;
  }
  gs_say("%s", run->gpu.fault[0] ? run->gpu.fault : "the GPU does not start");
  return false;
}

static int check_cases(run_t *run) {
  int status = load(run) && open_gpu(run) ? GS_EXIT_OK : GS_EXIT_MACHINE;
  for (int i = 0; i < case_count && status == GS_EXIT_OK; i++) {
    result_t *result = &run->board->results[i];
    if (!result->wanted || result->state != UNCHECKED) continue;
    gs_progress_show(&run->progress, (double)i / case_count, cases[i].name);
    status = check_case(run, i);
    gs_progress_clear(&run->progress);
    if (!run->options->silent && result->state != UNCHECKED)
      print_line(run->out, i, result, run->options->small);
  }
  gs_reference_close(&run->reference);
  gs_gpu_close(&run->gpu);
  return status;
}

/* Checks what is unchecked, what the peer prints kept out of our output. */
static int check_aside(run_t *run) {
  fflush(stdout);
  int kept = dup(STDOUT_FILENO);
  run->out = kept < 0 ? NULL : fdopen(kept, "w");
  if (!run->out) {
    gs_say("cannot keep the output apart: %s", strerror(errno));
    return GS_EXIT_MACHINE;
  }
  dup2(STDERR_FILENO, STDOUT_FILENO);
  int status = check_cases(run);
  fflush(stdout);
  dup2(kept, STDOUT_FILENO);
  fclose(run->out);
  return status;
}

/* A case that ended its process failed. */
static int note_end(run_t *run, int status) {
  board_t *board = run->board;
  int signal = WTERMSIG(status);
  if (board->running < 0) {
    gs_say("--peer %s: the process ended with signal %d outside any case", run->file, signal);
    return GS_EXIT_MACHINE;
  }
  result_t *result = &board->results[board->running];
  result->state = FAILED;
  if (WIFEXITED(status))
    snprintf(result->why, sizeof result->why, "it ended the process, with status %d", WEXITSTATUS(status));
  else
    snprintf(result->why, sizeof result->why,
             signal == SIGALRM ? "it did not end" : "the process ended with signal %d", signal);
  if (!run->options->silent) print_line(stdout, board->running, result, run->options->small);
  board->running = -1;
  return GS_VERIFY_LOST;
}

static int run_child(run_t *run) {
  int status;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(check_aside(run));
  if (child < 0) {
    gs_say("cannot start a process: %s", strerror(errno));
    return GS_EXIT_MACHINE;
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) && run->board->running < 0 ? WEXITSTATUS(status) : note_end(run, status);
}

/* ---- the verdict ---- */

static int count(const board_t *board, state_t state) {
  int found = 0;
  for (int i = 0; i < case_count; i++) found += board->results[i].wanted && board->results[i].state == state;
  return found;
}

static void print_json(const run_t *run, int total) {
  cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "cases");
  cJSON_AddStringToObject(root, "peer", run->file);
  cJSON_AddStringToObject(root, "gpu", run->board->gpu);
  cJSON_AddNumberToObject(root, "seed", (double)run->options->seed);
  cJSON_AddNumberToObject(root, "count", total);
  cJSON_AddNumberToObject(root, "failed", count(run->board, FAILED));
  cJSON_AddNumberToObject(root, "not_done", count(run->board, SKIPPED));
  for (int i = 0; i < case_count; i++) {
    const result_t *result = &run->board->results[i];
    char shape[48];
    if (!result->wanted) continue;
    cJSON *entry = cJSON_CreateObject();
    format_shape(shape, sizeof shape, i, run->options->small);
    cJSON_AddStringToObject(entry, "shape", shape);
    cJSON_AddStringToObject(entry, "case", cases[i].name);
    cJSON_AddStringToObject(entry, "verdict", words[result->state]);
    if (result->compared) {
      cJSON_AddNumberToObject(entry, "error", result->error);
      cJSON_AddNumberToObject(entry, "bound", result->bound);
    }
    if (result->why[0]) cJSON_AddStringToObject(entry, "why", result->why);
    cJSON_AddItemToArray(list, entry);
  }
  gs_json_print(root);
}

static int conclude(const run_t *run, bool json) {
  int failed = count(run->board, FAILED), skipped = count(run->board, SKIPPED),
      total = failed + skipped + count(run->board, PASSED);
  if (json)
    print_json(run, total);
  else
    printf("%s, seed %llu\n%d cases, %d failed, %d not done by the peer\n", run->board->gpu,
           (unsigned long long)run->options->seed, total, failed, skipped);
  if (skipped == total) gs_say("--peer %s: the peer did none of them", run->file);
  return failed || skipped == total ? GS_EXIT_FALSE : GS_EXIT_OK;
}

bool gs_peer_shape(gs_peer_shapes_t *shapes, const char *text) {
  gs_peer_shape_t shape;
  int end = 0;
  if (shapes->count == GS_PEER_SHAPES_MAX ||
      sscanf(text, "%5dx%5dx%5d%n", &shape.m, &shape.n, &shape.k, &end) != 3 || text[end])
    return false;
  const int sizes[] = {shape.m, shape.n, shape.k};
  for (int i = 0; i < 3; i++)
    if (sizes[i] < 8 || sizes[i] > GS_PEER_SIZE_MAX || sizes[i] % 8) return false;
  shapes->items[shapes->count++] = shape;
  return true;
}

static void make_cases(const gs_peer_shapes_t *shapes) {
  if (!shapes->count) memcpy(cases, listed, sizeof listed), case_count = LISTED;
  for (int i = 0; i < shapes->count; i++)
    for (int kind = 0; kind < KINDS; kind++) {
      gs_case_t *made = &cases[case_count++];
      *made = kinds[kind];
      made->m = shapes->items[i].n, made->n = shapes->items[i].m, made->k = shapes->items[i].k;
      made->split_k = made->raster = made->batch = 1, made->alpha = 1, made->quick = true;
    }
}

int gs_verify_peer(const char *file, const gs_peer_shapes_t *shapes, const gs_verify_options_t *options,
                   bool one_process, bool json) {
  board_t *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (board == MAP_FAILED) {
    gs_say("out of memory");
    return GS_EXIT_MACHINE;
  }
  run_t run = {.board = board,
               .file = file,
               .options = options,
               .random = {options->seed},
               .progress = gs_progress_begin()};
  board->running = -1;
  make_cases(shapes);
  for (int i = 0; i < case_count; i++) board->results[i].wanted = !options->quick || cases[i].quick;
  int left, status;
  do {
    left = count(board, UNCHECKED);
    status = one_process ? check_aside(&run) : run_child(&run);
  } while (status == GS_VERIFY_LOST && !one_process && count(board, UNCHECKED) < left);
  left = count(board, UNCHECKED);
  if (status == GS_EXIT_MACHINE) return status;
  if (left) gs_say("%d cases could not be checked", left);
  status = conclude(&run, json);
  return left ? GS_EXIT_FALSE : status;
}
