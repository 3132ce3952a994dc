/* gemmshim bench: what a program gets through the library, against every way to ask cuBLAS for the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_run.h"
#include "bench_summary.h"
#include "child.h"
#include "door.h"
#include "scratch.h"
#include "named.h"
#include "tools.h"

static const char help[] =
    "usage: gemmshim bench [OPTION...] FILE.calls | --grid | --models FILE | --shape SHAPE... | --rows "
    "TABLE\n"
    "       gemmshim bench --summary [OPTION...] FILE.csv...\n\n"
    "Measures products as a program gets them, through the functions that the preloaded library puts in "
    "cuBLAS's\n"
    "place, against cublasGemmEx, cublasLtMatmul with the heuristic's first choice, and the best of all its\n"
    "choices: interleaved in random order, each once more against itself for the noise. A row a product goes "
    "to\n"
    "a CSV file; the same command goes on with what it lacks. Then a summary of all that is in the file.\n\n"
    "  FILE.calls          the products of a program (gemmshim run)\n"
    "  --grid[=SIZES]      every row-major M, N, K among 64,128,...,16384: 1,000 products in two layouts, NN "
    "and TN\n"
    "  --models FILE       layers: name transa transb m k note, tab-separated; weighted by time in the "
    "summary\n"
    "                      (but layers with batch=12,96 or n=1,128 in the note: strided batches; these n "
    "alone)\n"
    "    --n LIST          at these n (1,8,64,2048)\n"
    "    --types LIST      of these types, of the grid too (f16_f16)\n"
    "  --shape SHAPE       TNxMxNxK:f16_f16[:bias], in cuBLAS's terms; N may be a list: "
    "TNx4096x1,8,64x4096;\n"
    "                      TNx128x128x64*12,96: strided batches of 12 products, and of 96\n"
    "  --rows TABLE        what a table's rows claim; the table serves, and every row must: exit status 1 "
    "where one\n"
    "                      did not serve or lost to what it claims to beat (a kernel: all that cuBLASLt "
    "offers; "
    "one\n"
    "                      of cuBLAS's own algorithms: what the program calls)\n"
    "  --sample N          N of them, at random; --seed S (1) chooses which, and the order\n"
    "  --table FILE        the table that serves (the user's, else the built-in one)\n"
    "  -o, --output FILE   the CSV (bench.csv)\n"
    "  --clocks LIST       of gpu, wall, server (all)\n"
    "  --rounds N          samples of each on each clock (31), fewer where they are long\n"
    "  --rate R            arrivals a second on the server clock (1000)\n"
    "  --no-aa             do not measure the noise\n"
    "  --peer DIR          foreign kernels too: every .so in it, as for gemmshim verify --peer\n"
    "  --budget SECONDS    stop after so long\n"
    "  --device N          which GPU (0)\n"
    "  --busy-ok           measure although the GPU has other work\n"
    "  --cublas FILE       the libcublas.so to use (looked for)\n"
    "  --published FILE    speed-ups published elsewhere, beside ours; may come often\n"
    "  --torch FILE        torch.matmul's times, from tests/e2e/torch_matmul.py\n"
    "  --plot PREFIX       draws PREFIX-speedup.png and PREFIX-roofline.png with gnuplot\n"
    "  --json              the summary as JSON\n"
    "  --columns           explains the columns of the CSV\n\n"
    "gpu clock: time per call in a replayed CUDA graph, operands going round at least 3 times the L2 cache; "
    "wall:\n"
    "one call and a synchronise on the host's clock; server: the same after an exponentially distributed "
    "idle gap.\n"
    "The library counts calls while it is measured (GEMMSHIM_CALLS), which costs it a little on the host.\n\n"
    "exit status: 0 done, 1 a row of --rows did not serve or lost, or a file could not be written, 2 usage, "
    "3 no\n"
    "GPU, driver, cuBLAS or readable input, 4 the GPU has other work, 128 + signal when stopped; what was "
    "measured\n"
    "is kept\n"
    "example: gemmshim bench --grid --sample 100 --budget 240 -o h200.csv\n";

static const char columns_help[] =
    "product             as in a .calls file, with spaces: entry transa transb m n k lda ldb ldc ldd types "
    "...;\n"
    "                    a product measured in both layouts stands here with its nn one\n"
    "status              ok, or why it was not measured\n"
    "flops copies rounds of the product; copies of its operands; samples of each contender on each clock\n"
    "L_verdict           L: nn (A as it is) or tn (A transposed); served, or the commonest reason why not\n"
    "L_served            share of the calls that were served\n"
    "L_kernel            the kernel that served\n"
    "L_candidates        algorithms that cuBLASLt's heuristic offered\n"
    "C_L_X               C: gpu, wall or server; median microseconds of X:\n"
    "                      ours    the function that the library puts in cuBLAS's place, its host time "
    "included\n"
    "                      again   the library's own once more, for the noise (A/A)\n"
    "                      gemmex  cublasGemmEx or its strided batched sister; empty with an epilogue\n"
    "                      lt      cublasLtMatmul with the heuristic's first choice\n"
    "                      auto    the better of that and the best of its other choices, found in rounds "
    "before\n"
    "C_B_L               B: aa, gemmex, lt or auto; L: nn, tn or max (the faster layout of each side):\n"
    "                    median(B) / median(ours), above 1 ours is faster; aa: median(again) / median(the "
    "same)\n"
    "C_B_L_lo C_B_L_hi   its 95% bootstrap interval, rounds resampled in pairs\n"
    "peer                the fastest of the foreign kernels (--peer) that do this product\n"
    "C_peer C_peer_library C_peer_ours\n"
    "                    microseconds of it, of the library's fastest and of ours, timed alike: on the gpu "
    "clock a\n"
    "                    train of 32 calls, because the default stream that peers use cannot be captured\n"
    "C_peer_ratio C_peer_ratio_lo C_peer_ratio_hi\n"
    "                    median(library's fastest) / median(peer) and its interval\n"
    "Empty: not measured.\n";

enum {
  GRID = 256,
  MODELS,
  N,
  TYPES,
  SHAPE,
  ROWS,
  SAMPLE,
  SEED,
  TABLE,
  CLOCKS,
  ROUNDS,
  RATE,
  NO_AA,
  PEER,
  BUDGET,
  DEVICE,
  BUSY_OK,
  CUBLAS,
  PUBLISHED,
  TORCH,
  PLOT,
  JSON,
  COLUMNS,
  SUMMARY
};

static const struct option options[] = {{"grid", optional_argument, NULL, GRID},
                                        {"models", required_argument, NULL, MODELS},
                                        {"n", required_argument, NULL, N},
                                        {"types", required_argument, NULL, TYPES},
                                        {"shape", required_argument, NULL, SHAPE},
                                        {"rows", required_argument, NULL, ROWS},
                                        {"sample", required_argument, NULL, SAMPLE},
                                        {"seed", required_argument, NULL, SEED},
                                        {"table", required_argument, NULL, TABLE},
                                        {"output", required_argument, NULL, 'o'},
                                        {"clocks", required_argument, NULL, CLOCKS},
                                        {"rounds", required_argument, NULL, ROUNDS},
                                        {"rate", required_argument, NULL, RATE},
                                        {"no-aa", no_argument, NULL, NO_AA},
                                        {"peer", required_argument, NULL, PEER},
                                        {"budget", required_argument, NULL, BUDGET},
                                        {"device", required_argument, NULL, DEVICE},
                                        {"busy-ok", no_argument, NULL, BUSY_OK},
                                        {"cublas", required_argument, NULL, CUBLAS},
                                        {"published", required_argument, NULL, PUBLISHED},
                                        {"torch", required_argument, NULL, TORCH},
                                        {"plot", required_argument, NULL, PLOT},
                                        {"json", no_argument, NULL, JSON},
                                        {"columns", no_argument, NULL, COLUMNS},
                                        {"summary", no_argument, NULL, SUMMARY},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

#define PUBLISHED_MAX 8
/* Where the measuring process finds its folder; its presence tells it what it is. */
#define FOLDER_VARIABLE "GEMMSHIM_BENCH_FOLDER"

typedef struct {
  gs_bench_options_t bench;
  gs_ns_t ns, sizes;
  const char *models, *types, *rows, *table, *torch, *plot, *published[PUBLISHED_MAX];
  int published_count;
  bool grid, json, summary;
  char **files;
  int file_count;
} command_t;

/* ---- the command line ---- */

static const char *name_of(int option) {
  const struct option *found = options;
  while (found->val != option) found++;
  return found->name;
}

/* Options that are a text, a flag or a number of a legal range, and where it goes. -1: stored; -2: it is none of
 * them; else an exit status. */
static int read_plain(int option, char **argv, command_t *command) {
  gs_bench_options_t *bench = &command->bench;
  const struct {
    int option;
    const char **text;
    bool *flag;
    long *number, lo, hi;
  } plain[] = {{MODELS, .text = &command->models},
               {TYPES, .text = &command->types},
               {ROWS, .text = &command->rows},
               {TABLE, .text = &command->table},
               {'o', .text = &bench->output},
               {PEER, .text = &bench->peer},
               {CUBLAS, .text = &bench->cublas},
               {TORCH, .text = &command->torch},
               {PLOT, .text = &command->plot},
               {BUSY_OK, .flag = &bench->busy_ok},
               {JSON, .flag = &command->json},
               {SUMMARY, .flag = &command->summary},
               {SAMPLE, .number = &bench->sample, .lo = 1, .hi = INT_MAX},
               {SEED, .number = &bench->seed, .hi = INT_MAX},
               {ROUNDS, .number = &bench->rounds, .lo = 1, .hi = GS_CONTEST_ROUNDS_MAX},
               {RATE, .number = &bench->rate, .lo = 1, .hi = 1000000},
               {BUDGET, .number = &bench->budget, .lo = 1, .hi = 1 << 30},
               {DEVICE, .number = &bench->device, .hi = 1023}};
  size_t i = 0, count = sizeof plain / sizeof *plain;
  while (i < count && plain[i].option != option) i++;
  if (i == count) return -2;
  if (plain[i].text) *plain[i].text = optarg;
  if (plain[i].flag) *plain[i].flag = true;
  if (plain[i].number && !gs_read_long(optarg, plain[i].lo, plain[i].hi, plain[i].number))
    return gs_usage(argv, "--%s: \"%s\" is not a number from %ld to %ld", name_of(option), optarg,
                    plain[i].lo, plain[i].hi);
  return -1;
}

static bool read_clocks(command_t *command, const char *text) {
  char copy[64], *list = copy;
  memset(command->bench.clocks, 0, sizeof command->bench.clocks);
  snprintf(copy, sizeof copy, "%s", text);
  for (char *name; (name = strsep(&list, ","));) {
    int clock = gs_name_index(name, gs_clock_kind_names, GS_CLOCK_COUNT);
    if (clock < 0) return false;
    command->bench.clocks[clock] = true;
  }
  return true;
}

/* An exit status, or -1: go on. */
static int read_option(int option, char **argv, command_t *command) {
  const char *why;
  int status = read_plain(option, argv, command);
  if (status != -2) return status;
  switch (option) {
  case GRID:
    command->grid = true;
    return gs_ns_read(&command->sizes, optarg ? optarg : GS_GRID_SIZES)
               ? -1
               : gs_usage(argv, "--grid: \"%s\" is no list such as 64,128", optarg);
  case N:
    return gs_ns_read(&command->ns, optarg) ? -1
                                            : gs_usage(argv, "--n: \"%s\" is no list such as 1,8,64", optarg);
  case SHAPE:
    return gs_points_shape(&command->bench.points, optarg, &why)
               ? -1
               : gs_usage(argv, "--shape %s: %s", optarg, why);
  case CLOCKS:
    return read_clocks(command, optarg)
               ? -1
               : gs_usage(argv, "--clocks: \"%s\" is not of gpu,wall,server", optarg);
  case NO_AA:
    command->bench.again = false;
    return -1;
  case COLUMNS:
    return gs_help(columns_help);
  case 'h':
    return gs_help(help);
  case PUBLISHED:
    if (command->published_count == PUBLISHED_MAX)
      return gs_usage(argv, "--published: at most %d files", PUBLISHED_MAX);
    command->published[command->published_count++] = optarg;
    return -1;
  default:
    return gs_usage_option(argv, option);
  }
}

static int read_rows(command_t *command) {
  gs_table_t *table = NULL;
  int status = gs_named_table(command->rows, stderr, &table);
  if (status != GS_EXIT_OK) return GS_EXIT_MACHINE;
  bool added = gs_points_rows(&command->bench.points, table);
  gs_table_free(table);
  if (!command->table) command->table = command->rows;
  return added ? -1 : GS_EXIT_MACHINE;
}

static int read_points(char **argv, command_t *command) {
  gs_points_t *points = &command->bench.points;
  if (command->grid && !gs_points_grid(points, &command->sizes, command->types)) return GS_EXIT_MACHINE;
  if (command->models && !gs_points_models(points, command->models, &command->ns, command->types))
    return GS_EXIT_MACHINE;
  if (command->rows) {
    int status = read_rows(command);
    if (status >= 0) return status;
  }
  for (int i = 0; i < command->file_count; i++)
    if (!gs_points_calls(points, command->files[i])) return GS_EXIT_MACHINE;
  if (points->count) return -1;
  return gs_usage(argv, "nothing to measure: give a .calls file, --grid, --models, --shape or --rows");
}

static int read_command(int argc, char **argv, command_t *command) {
  for (int option; (option = getopt_long(argc, argv, ":ho:", options, NULL)) != -1;) {
    int status = read_option(option, argv, command);
    if (status >= 0) return status;
  }
  command->files = argv + optind, command->file_count = argc - optind;
  if (!command->summary) return read_points(argv, command);
  return command->file_count ? -1 : gs_usage(argv, "--summary: give a CSV file of gemmshim bench");
}

/* ---- the measuring process ---- */

/* The library is to take this table, which a name without a file makes the built-in one. */
static bool set_table(const char *table, const char *folder) {
  char path[PATH_MAX];
  if (!strchr(table, '/') && access(table, F_OK) != 0) {
    unsetenv("GEMMSHIM_TABLE");
    setenv("XDG_CONFIG_HOME", folder, 1); /* where there is no table of the user's */
    return true;
  }
  if (realpath(table, path) && access(path, R_OK) == 0) {
    setenv("GEMMSHIM_TABLE", path, 1);
    return true;
  }
  gs_say("--table %s: %s", table, strerror(errno));
  return false;
}

static bool set_environment(const command_t *command, const char *folder) {
  char library[PATH_MAX], shapes[16];
  long capacity = 64;
  const char *off = getenv("GEMMSHIM_OFF");
  if (off && !strcmp(off, "1")) {
    gs_say("GEMMSHIM_OFF=1 is set: unset it, there is nothing to measure through");
    return false;
  }
  if (command->table && !set_table(command->table, folder)) return false;
  while (capacity < 4l * command->bench.points.count) capacity *= 2;
  snprintf(shapes, sizeof shapes, "%ld", capacity > 1048576 ? 1048576 : capacity);
  setenv("GEMMSHIM_SHAPES", shapes, 1);
  setenv("GEMMSHIM_CALLS", folder, 1);
  setenv(FOLDER_VARIABLE, folder, 1);
  unsetenv("GEMMSHIM_SAMPLE");
  return gs_library_path("libgemmshim.so", library, sizeof library) && gs_preload_add(library);
}

/* Notes the product that ended the measuring process, so that the next one leaves it out. */
static bool note_end(const command_t *command, const char *folder, int status) {
  char path[PATH_MAX + 8], line[512], ended[64];
  const char *why;
  gs_gemm_t g;
  snprintf(path, sizeof path, "%s/" GS_BENCH_AT, folder);
  FILE *file = fopen(path, "re");
  bool known = file && fgets(line, sizeof line, file) && gs_gemm_parse(line, &g, &why) == GS_OK;
  if (file) fclose(file);
  if (!known) return false;
  if (status == GS_BENCH_LOST)
    snprintf(ended, sizeof ended, "the GPU's context was lost");
  else
    snprintf(ended, sizeof ended, "it ended the process with %s %d", status > 128 ? "signal" : "status",
             status > 128 ? status - 128 : status);
  gs_bench_row_t row = gs_bench_row(&g, ended);
  char *text = gs_bench_row_text(&row);
  bool written = gs_bench_file_append(command->bench.output, text);
  free(text);
  unlink(path);
  return written;
}

static int spawn_measuring(int argc, char **argv) {
  char *words[argc + 2];
  int wait_status;
  words[0] = "gemmshim";
  memcpy(words + 1, argv, (size_t)(argc + 1) * sizeof *argv);
  fflush(stdout);
  int error = gs_spawn(&(gs_spawn_t){"/proc/self/exe", words, -1, STDERR_FILENO, -1}, &wait_status);
  if (!error) return gs_spawn_exit(wait_status);
  gs_say("the measuring process cannot be started: %s", strerror(error));
  return GS_EXIT_MACHINE;
}

/* Once more after each product that took its process along. */
static int measure(int argc, char **argv, const command_t *command) {
  char folder[PATH_MAX];
  int lock = gs_bench_file_lock(command->bench.output), status = GS_EXIT_MACHINE;
  if (lock < 0 || !gs_scratch_make(folder, sizeof folder, true)) return GS_EXIT_MACHINE;
  fcntl(lock, F_SETFD, 0); /* the measuring process holds it too, should this one be killed */
  if (set_environment(command, folder)) {
    bool lost;
    do {
      status = spawn_measuring(argc, argv);
      lost = status == GS_BENCH_LOST || (status > 128 && !gs_spawn_signal());
    } while (lost && note_end(command, folder, status));
    if (status == GS_BENCH_LOST) status = GS_EXIT_MACHINE;
  }
  gs_scratch_remove(folder);
  close(lock);
  return status;
}

/* ---- afterwards ---- */

/* What the row that served claims to beat: a kernel all that cuBLASLt offers, one of cuBLAS's own algorithms what the
 * program calls. */
static gs_rival_t rival_of(const gs_bench_row_t *row, const gs_gemm_t *g, int layout) {
  if (strncmp(row->door[layout].kernel, "lt_", 3)) return GS_RIVAL_AUTO;
  bool by_lt = g->entry == GS_ENTRY_LT_MATMUL || g->epilogue != GS_EPILOGUE_DEFAULT;
  return by_lt ? GS_RIVAL_LT : GS_RIVAL_GEMM_EX;
}

/* Every row of the table must have served, and none lost. */
static int judge_rows(const command_t *command, const gs_bench_set_t *set) {
  const gs_points_t *points = &command->bench.points;
  enum { UNSERVED, LOST, TIED, WON, UNREAD, FATES };
  int count[FATES] = {0}, seen = 0, by_noise = 0;
  for (int i = 0; i < points->count; i++) {
    const gs_bench_row_t *row = gs_bench_set_find(set, &points->items[i]);
    if (!row) continue;
    int layout = (int)gs_layout_of(&points->items[i]);
    bool served = row->door[layout].served == 1;
    gs_interval_t ratio = row->ratio[GS_CLOCK_GPU][rival_of(row, &points->items[i], layout)][layout];
    bool lost = ratio.hi < 1;
    char name[256];
    by_noise += row->ratio[GS_CLOCK_GPU][GS_RIVAL_AA][layout].hi < 1;
    seen++, count[!served                  ? UNSERVED
                  : !isfinite(ratio.value) ? UNREAD
                  : lost                   ? LOST
                  : ratio.lo > 1           ? WON
                                           : TIED]++;
    gs_gemm_describe(name, sizeof name, &points->items[i]);
    if (!served)
      gs_say("%s: not served (%s)", name,
             *row->door[layout].verdict ? row->door[layout].verdict : row->status);
    else if (lost)
      gs_say("%s: lost, %.3f", name, ratio.value);
  }
  gs_say("%d of %d products of the table's rows were measured: %d won, %d tied, %d lost (cuBLAS to itself: "
         "%d), %d not "
         "served, %d not on the gpu clock",
         seen, points->count, count[WON], count[TIED], count[LOST], by_noise, count[UNSERVED], count[UNREAD]);
  return count[UNSERVED] + count[LOST] ? GS_EXIT_FALSE : GS_EXIT_OK;
}

/* Of the files named, or of the output, which may hold nothing yet. */
static bool read_set(const command_t *command, gs_bench_set_t *set) {
  if (!command->summary)
    return access(command->bench.output, R_OK) != 0 || gs_bench_set_read(set, command->bench.output);
  for (int i = 0; i < command->file_count; i++)
    if (!gs_bench_set_read(set, command->files[i])) return false;
  return true;
}

static int summarise(const command_t *command) {
  gs_bench_set_t set = {0};
  gs_bench_report_t report = {&set, command->models, command->torch, command->published,
                              command->published_count};
  int status = read_set(command, &set) ? GS_EXIT_OK : GS_EXIT_MACHINE;
  if (status == GS_EXIT_OK && (set.count || command->summary)) {
    if (!(command->json ? gs_bench_json : gs_bench_text)(&report)) status = GS_EXIT_MACHINE;
    if (status == GS_EXIT_OK && command->plot && !gs_bench_plot(&set, command->plot)) status = GS_EXIT_FALSE;
    if (status == GS_EXIT_OK && command->rows && !command->summary) status = judge_rows(command, &set);
  }
  gs_bench_set_free(&set);
  return status;
}

int gs_cmd_bench(int argc, char **argv) {
  command_t command = {.types = "f16_f16",
                       .bench = {.output = "bench.csv",
                                 .clocks = {true, true, true},
                                 .again = true,
                                 .rounds = 31,
                                 .rate = GS_CONTEST_RATE,
                                 .seed = 1}};
  const char *folder = getenv(FOLDER_VARIABLE);
  gs_ns_read(&command.ns, "1,8,64,2048");
  int status = read_command(argc, argv, &command);
  bool fine = status < 0, inside = folder && gs_door_is_open();
  if (fine && inside) status = gs_bench_run(&command.bench, folder);
  if (fine && !inside) {
    status = command.summary ? GS_EXIT_OK : measure(argc, argv, &command);
    int shown = summarise(&command);
    if (status == GS_EXIT_OK) status = shown;
  }
  gs_points_free(&command.bench.points);
  return status;
}
