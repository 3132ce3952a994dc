/* gemmshim verify: kernels against FP64 on this GPU, every shipped one or those that are named. The GPU is used by child processes alone,
 * so that a kernel that crashes or hangs costs its own verdict only. */
#define _GNU_SOURCE
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "json.h"
#include "operands.h"
#include "peer.h"
#include "pool.h"
#include "tools.h"
#include "verify.h"

static const char help[] =
    "usage: gemmshim verify [OPTION...] [KERNEL...]\n\n"
    "Checks every shipped kernel (tile, types, layout) on this GPU against an FP64 reference: accuracy at "
    "three\n"
    "magnitudes, with outliers and deep sums, exact integers, tails, leading dimensions, scalars, "
    "epilogues,\n"
    "batches, split-K, NaN and infinity, bit-equal repeats; operands with poison around them, then between\n"
    "guard pages, where a read or write outside the matrices ends in CUDA_ERROR_ILLEGAL_ADDRESS.\n"
    "worst=0.97 says: the largest error, over all cases, was 0.97 of what is allowed there.\n\n"
    "With KERNEL, these: ids, tiles (mma_128x96x32_s4_w4: all types and layouts), patterns, or a file of "
    "them;\n"
    "what is not shipped is compiled (NVRTC).\n\n"
    "  --kernel PATTERN  only kernels whose id matches this shell pattern, e.g. '*_tn_128x*'\n"
    "  --quick           a few cases only\n"
    "  --sizes small     cut sizes, for a slow stand-in of a GPU\n"
    "  --device N        which GPU (0)\n"
    "  --cublas FILE     the libcublas.so that bounds the error of f32 results (looked for; none: a fixed "
    "bound)\n"
    "  --seed N          repeat the random inputs of an earlier run (each run has its own)\n"
    "  --one-process     use the GPU in this process, as debuggers and sanitizers want it\n"
    "  --json            the verdicts as JSON\n"
    "  --operands FILE   judge what GEMMSHIM_DUMP left of a call instead, on the CPU: which of gemmshim's "
    "result and\n"
    "                    cuBLAS's is how far from FP64 (with --json alone)\n"
    "  --peer FILE.so    check a foreign kernel instead of ours (not with --kernel, --cublas)\n"
    "    --shape MxNxK   at this shape (row-major) instead of the usual ones; any number of times\n\n"
    "A peer is a shared object that defines, with C linkage,\n"
    "  int gemm_peer(const void *a, const void *b, const void *b_t, void *c, int m, int n, int k);\n"
    "C (m x n) = A (m x k) B (k x n), fp16, row-major without gaps, in device memory; b_t is B transposed,\n"
    "n x k. It works on the legacy default stream, or synchronises itself. It returns 0 when it computed C,\n"
    "anything else where it does not do this shape (skip: no fault). It passes where its error is at most\n"
    "1.1 times that of rounding the FP64 result to fp16, and 0 on integers; m and n are multiples\n"
    "of 64 up to 4096, k up to 16384. A line a case: ok, FAIL or skip, m x n x k, case, error, bound.\n\n"
    "Exit status: 0 all right, 1 a kernel failed, or the peer did no case, 2 usage,\n"
    "3 no GPU, driver or file.\n"
    "example: gemmshim verify --kernel 'mma_f16_f16_tn_*'\n";

enum { KERNEL = 256, QUICK, SIZES, DEVICE, CUBLAS, SEED, ONE_PROCESS, JSON, OPERANDS, PEER, SHAPE };

typedef struct {
  gs_verify_options_t verify;
  const char *pattern, *peer, *operands;
  gs_peer_shapes_t shapes; /* for the peer */
  char **names;            /* of kernels; NULL: all that are shipped */
  int name_count;
  bool json, one_process;
} gs_command_t;

/* An exit status, or -1: go on. */
static int read_command(int argc, char **argv, gs_command_t *command) {
  static const struct option options[] = {{"kernel", required_argument, NULL, KERNEL},
                                          {"quick", no_argument, NULL, QUICK},
                                          {"sizes", required_argument, NULL, SIZES},
                                          {"device", required_argument, NULL, DEVICE},
                                          {"cublas", required_argument, NULL, CUBLAS},
                                          {"seed", required_argument, NULL, SEED},
                                          {"one-process", no_argument, NULL, ONE_PROCESS},
                                          {"json", no_argument, NULL, JSON},
                                          {"operands", required_argument, NULL, OPERANDS},
                                          {"peer", required_argument, NULL, PEER},
                                          {"shape", required_argument, NULL, SHAPE},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
  long value = 0;
  for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
    switch (option) {
    case KERNEL:
      command->pattern = optarg;
      break;
    case QUICK:
      command->verify.quick = true;
      break;
    case SIZES:
      if (strcmp(optarg, "small")) return gs_usage(argv, "--sizes knows \"small\" only, not \"%s\"", optarg);
      command->verify.small = true;
      break;
    case DEVICE:
      if (!gs_read_long(optarg, 0, 1023, &value))
        return gs_usage(argv, "--device: \"%s\" is not a number", optarg);
      command->verify.device = (int)value;
      break;
    case CUBLAS:
      command->verify.cublas = optarg;
      break;
    case SEED:
      if (!gs_read_long(optarg, 0, 1l << 62, &value))
        return gs_usage(argv, "--seed: \"%s\" is not a number", optarg);
      command->verify.seed = (uint64_t)value;
      break;
    case ONE_PROCESS:
      command->one_process = true;
      break;
    case JSON:
      command->json = command->verify.silent = true;
      break;
    case OPERANDS:
      command->operands = optarg;
      break;
    case PEER:
      command->peer = optarg;
      break;
    case SHAPE:
      if (!gs_peer_shape(&command->shapes, optarg))
        return gs_usage(argv,
                        "--shape: \"%s\" is no MxNxK of multiples of 8 up to %d, or the shape beyond %d",
                        optarg, GS_PEER_SIZE_MAX, GS_PEER_SHAPES_MAX);
      break;
    case 'h':
      return gs_help(help);
    default:
      return gs_usage_option(argv, option);
    }
  }
  command->names = argv + optind;
  command->name_count = argc - optind;
  if (command->operands && (command->pattern || command->peer || command->name_count))
    return gs_usage(argv, "--operands goes with --json alone: it uses no GPU and no kernel");
  if (command->shapes.count && !command->peer) return gs_usage(argv, "--shape is for --peer");
  if (command->peer && (command->pattern || command->verify.cublas || command->name_count))
    return gs_usage(argv, "--peer goes with neither kernels nor --cublas, which are about our own kernels");
  return -1;
}

static void *shared(size_t size) {
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

/* The GPU's architecture, asked in a child, since a process that has used CUDA cannot fork others that do. */
static int ask_sm(int device) {
  int status, *sm = shared(sizeof *sm);
  if (!sm) return 0;
  pid_t child = fork();
  if (child == 0) {
    gs_gpu_t gpu;
    if (gs_gpu_open(&gpu, device) == GS_OK)
      *sm = gpu.device.sm;
    else
      gs_say("%s", gpu.fault);
    _exit(0);
  }
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  int found = *sm;
  munmap(sm, sizeof *sm);
  return found;
}

/* pattern: --kernel, or NULL */
static bool is_wanted(const char *pattern, const gs_kernel_t *kernel) {
  char id[GS_KERNEL_ID_MAX];
  gs_kernel_format(id, sizeof id, kernel);
  return !pattern || fnmatch(pattern, id, 0) == 0;
}

static bool matches_any(const char *pattern) {
  for (int i = 0; i < gs_shipped_count(); i++) {
    gs_kernel_t kernel = gs_shipped_at(i);
    if (is_wanted(pattern, &kernel)) return true;
  }
  return false;
}

/* The kernels to check, and in *refused how many could not be compiled; an exit status, or -1: go on. */
static int gather(gs_pool_t *pool, const gs_command_t *command, int *refused) {
  gs_pool_tally_t tally;
  if (!command->name_count && !matches_any(command->pattern))
    return -1; /* said by who finds the pool empty */
  const gs_pool_for_t for_what = {.sm = ask_sm(command->verify.device)};
  if (!for_what.sm) return GS_EXIT_MACHINE;
  if (!command->name_count) return gs_pool_shipped(pool, for_what.sm) ? -1 : GS_EXIT_MACHINE;
  gs_status_t status = gs_pool_named(pool, command->names, command->name_count, &for_what, &tally);
  *refused = tally.refused;
  if (status == GS_OK) return -1;
  return status == GS_SYNTAX ? GS_EXIT_USAGE : status == GS_NOT_FOUND ? GS_EXIT_FALSE : GS_EXIT_MACHINE;
}

static gs_board_t *make_board(const gs_pool_t *pool, const gs_command_t *command) {
  gs_board_t *board = shared(sizeof *board + (size_t)gs_kernel_count() * sizeof *board->outcomes);
  if (!board) return NULL;
  for (int i = 0; i < pool->count; i++) {
    gs_kernel_t kernel = gs_kernel_at(pool->indices[i]);
    gs_outcome_t *outcome = &board->outcomes[pool->indices[i]];
    outcome->wanted = is_wanted(command->pattern, &kernel);
    board->wanted += outcome->wanted;
  }
  board->running = -1;
  return board;
}

static int count(const gs_board_t *board, gs_check_t state) {
  int found = 0;
  for (int i = 0; i < gs_kernel_count(); i++)
    found += board->outcomes[i].wanted && board->outcomes[i].state == state;
  return found;
}

/* Runs a child over what is unchecked; returns its exit status. A child that was killed took a kernel's
 * verdict with it: that kernel failed. */
static int run_child(gs_board_t *board, const gs_command_t *command) {
  int status;
  if (command->one_process) return gs_verify(board, &command->verify);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    int exit_status = gs_verify(board, &command->verify);
    fflush(stdout);
    _exit(exit_status);
  }
  if (child < 0) {
    gs_say("cannot start a process: %s", strerror(errno));
    return GS_EXIT_MACHINE;
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  if (board->running < 0) {
    gs_say("a child process ended with signal %d outside any kernel", WTERMSIG(status));
    return GS_EXIT_MACHINE;
  }
  gs_outcome_t *outcome = &board->outcomes[board->running];
  outcome->state = GS_CHECKED_FAULTY;
  snprintf(outcome->why, sizeof outcome->why,
           WTERMSIG(status) == SIGALRM ? "the kernel did not end" : "the process ended with signal %d",
           WTERMSIG(status));
  return GS_VERIFY_LOST;
}

/* The kernels that took their process or its context with them. */
static void tell_of_the_lost(gs_board_t *board) {
  for (int i = 0; i < gs_kernel_count(); i++) {
    gs_outcome_t *outcome = &board->outcomes[i];
    if (outcome->wanted && outcome->state == GS_CHECKED_FAULTY && !outcome->told)
      gs_outcome_print(i, outcome);
  }
}

static void print_json(const gs_board_t *board, const gs_command_t *command, int failed, int refused) {
  cJSON *root = cJSON_CreateObject(), *kernels = cJSON_AddArrayToObject(root, "kernels");
  cJSON_AddStringToObject(root, "gpu", board->gpu);
  cJSON_AddStringToObject(root, "f32_bound", board->bound);
  cJSON_AddNumberToObject(root, "seed", (double)command->verify.seed);
  cJSON_AddNumberToObject(root, "failed", failed);
  cJSON_AddNumberToObject(root, "refused", refused);
  for (int i = 0; i < gs_kernel_count(); i++) {
    char id[GS_KERNEL_ID_MAX];
    gs_kernel_t kernel = gs_kernel_at(i);
    const gs_outcome_t *outcome = &board->outcomes[i];
    if (!outcome->wanted) continue;
    cJSON *entry = cJSON_CreateObject();
    gs_kernel_format(id, sizeof id, &kernel);
    cJSON_AddStringToObject(entry, "kernel", id);
    cJSON_AddBoolToObject(entry, "ok", outcome->state == GS_CHECKED_OK);
    cJSON_AddNumberToObject(entry, "cases", outcome->cases);
    cJSON_AddNumberToObject(entry, "worst", outcome->worst);
    if (outcome->worst_case) cJSON_AddStringToObject(entry, "worst_case", outcome->worst_case);
    if (outcome->state == GS_CHECKED_FAULTY) {
      if (outcome->failed_case) cJSON_AddStringToObject(entry, "failed_case", outcome->failed_case);
      cJSON_AddStringToObject(entry, "why", outcome->why);
      cJSON_AddNumberToObject(entry, "error", outcome->error);
      cJSON_AddNumberToObject(entry, "bound", outcome->bound);
    }
    cJSON_AddItemToArray(kernels, entry);
  }
  gs_json_print(root);
}

int gs_cmd_verify(int argc, char **argv) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  gs_command_t command = {.verify.seed = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec};
  int status = read_command(argc, argv, &command), left, refused = 0;
  if (status >= 0) return status;
  if (command.operands) return gs_verify_operands(command.operands, command.json);
  if (command.peer)
    return gs_verify_peer(command.peer, &command.shapes, &command.verify, command.one_process, command.json);
  gs_pool_t pool = {0};
  status = gather(&pool, &command, &refused);
  if (status >= 0) return status;
  gs_board_t *board = make_board(&pool, &command);
  gs_pool_free(&pool);
  if (!board) {
    gs_say("out of memory");
    return GS_EXIT_MACHINE;
  }
  if (!board->wanted)
    return gs_usage(argv, "no kernel matches \"%s\" (gemmshim kernels lists them)", command.pattern);
  do {
    left = count(board, GS_UNCHECKED);
    status = run_child(board, &command);
    if (!command.json) tell_of_the_lost(board);
  } while (status == GS_VERIFY_LOST && !command.one_process && count(board, GS_UNCHECKED) < left);
  left = count(board, GS_UNCHECKED);
  if (status != GS_EXIT_OK && left == board->wanted) return GS_EXIT_MACHINE;
  int failed = count(board, GS_CHECKED_FAULTY);
  if (command.json) {
    print_json(board, &command, failed + left, refused);
  } else {
    printf("%s, seed %llu; f32 results are held to %s\n", board->gpu, (unsigned long long)command.verify.seed,
           board->bound);
    if (left) printf("%d kernels could not be checked\n", left);
    if (refused) printf("%d kernels were refused\n", refused);
    printf("%d kernels, %d failed\n", board->wanted - left, failed);
  }
  return failed || left || refused ? GS_EXIT_FALSE : GS_EXIT_OK;
}
