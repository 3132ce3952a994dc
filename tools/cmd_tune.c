/* gemmshim tune: which kernels win on this GPU, written as a table. */
#define _GNU_SOURCE
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "draft.h"
#include "json.h"
#include "points.h"
#include "progress.h"
#include "search.h"
#include "tools.h"
#include "tune.h"

static const char help[] =
    "usage: gemmshim tune [OPTION...] FILE.calls | --shape SHAPE... | --models FILE\n\n"
    "Measures, on this GPU, our kernels for each product against cublasGemmEx and every algorithm that\n"
    "cuBLASLt's heuristic offers, and writes the winners into a table. A row is written only where a kernel "
    "was\n"
    "faster than all of them beyond noise (95% interval of the ratio above 1, gpu clock), or where one of\n"
    "cuBLASLt's own algorithms, offered or not, was faster than what the program calls; or where they tie on "
    "the\n"
    "gpu clock and win on the wall clock, as host-bound programs feel it; and where the FP64 gate was "
    "passed.\n"
    "Losses are listed. A table that exists is extended: rows it has are kept, and not measured again.\n\n"
    "  --shape SHAPE     TNxMxNxK:f16_f16[:bias], in cuBLAS's terms; N may be a list: TNx4096x1,8,64x4096\n"
    "  --models FILE     layers: name transa transb m k note, tab-separated\n"
    "    --n LIST        at these n (1,2,4,8,16,32,64,128,512,2048)\n"
    "    --types LIST    of these types (f16_f16)\n"
    "  -o, --output FILE the table (the GPU's name with .table, in this folder)\n"
    "  --split-k MAX     split k at most so often (16)\n"
    "  --candidates N    measure the N that the cost model ranks first (12)\n"
    "  --kernels LIST    of our kernels these alone, each at its best 3 splits: ids, tiles\n"
    "                    (mma_128x96x32_s4_w4) or patterns, with commas between, or a file of them; what is "
    "not\n"
    "                    shipped is compiled (NVRTC)\n"
    "  --search[=N]      for each product also the N kernels (24) that the cost model ranks first of all "
    "that\n"
    "                    could be compiled: tiles, warps, stages; winners lie beside the table, in TABLE.d\n"
    "  --all             list every contender that was measured, not the verdict alone\n"
    "  --again           measure products anew whose rows the table has\n"
    "  --budget SECONDS  stop after so long; the same command goes on from there\n"
    "  --device N        which GPU (0)\n"
    "  --cublas FILE     the libcublas.so to measure against (looked for)\n"
    "  --quick           few rounds, to try things out: such rows prove nothing and are not written\n"
    "  --json            what was measured, as JSON on stdout\n\n"
    "Exit status: 0 done, 1 a kernel failed the gate or a file could not be written, 2 usage, 3 no GPU, "
    "driver,\n"
    "cuBLAS or readable input.\n"
    "example: gemmshim tune --shape TNx4096x1,8,64x4096:f16_f16 -o mine.table\n";

enum {
  SHAPE = 256,
  MODELS,
  N,
  TYPES,
  SPLIT_K,
  CANDIDATES,
  AGAIN,
  BUDGET,
  DEVICE,
  CUBLAS,
  QUICK,
  JSON,
  KERNELS,
  SEARCH,
  ALL
};

/* Our kernels that take part: those among which the cost model chooses, those that were named, and those of the
 * space that are compiled so far. */
typedef struct {
  gs_pool_t ranked, named, made;
  gs_pool_tally_t tally; /* of made */
} gs_pools_t;

typedef struct {
  gs_points_t points;
  const char *models, *types, *output, *cublas;
  char *kernels;
  gs_ns_t ns;
  gs_tune_options_t tune;
  long device, budget;
  bool again, json, all;
  int search; /* kernels of the space, a product */
  gs_pools_t *pools;
} gs_command_t;

typedef struct {
  int count[GS_TUNE_NONE + 1];
  int kept;
  double best; /* largest ratio of a win */
} gs_tally_t;

static volatile sig_atomic_t stopped;
static void stop(int number) {
  stopped = number;
}

/* An exit status, or -1: go on. */
static int read_option(int option, char **argv, gs_command_t *command) {
  const char *why;
  long value;
  switch (option) {
  case SHAPE:
    if (!gs_points_shape(&command->points, optarg, &why))
      return gs_usage(argv, "--shape %s: %s", optarg, why);
    return -1;
  case MODELS:
    command->models = optarg;
    return -1;
  case N:
    if (!gs_ns_read(&command->ns, optarg))
      return gs_usage(argv, "--n: \"%s\" is no list such as 1,8,64", optarg);
    return -1;
  case TYPES:
    command->types = optarg;
    return -1;
  case 'o':
    command->output = optarg;
    return -1;
  case SPLIT_K:
    if (!gs_read_long(optarg, 1, GS_SPLIT_MAX, &value))
      return gs_usage(argv, "--split-k: \"%s\" is not from 1 to %d", optarg, GS_SPLIT_MAX);
    command->tune.split_max = (int)value;
    return -1;
  case CANDIDATES:
    if (!gs_read_long(optarg, 1, GS_TUNE_CANDIDATES_MAX, &value))
      return gs_usage(argv, "--candidates: \"%s\" is not from 1 to %d", optarg, GS_TUNE_CANDIDATES_MAX);
    command->tune.candidates = (int)value;
    return -1;
  case AGAIN:
    command->again = true;
    return -1;
  case BUDGET:
    if (!gs_read_long(optarg, 1, 1 << 30, &command->budget))
      return gs_usage(argv, "--budget: \"%s\" is not a number of seconds", optarg);
    return -1;
  case DEVICE:
    if (!gs_read_long(optarg, 0, 1023, &command->device))
      return gs_usage(argv, "--device: \"%s\" is not a number", optarg);
    return -1;
  case CUBLAS:
    command->cublas = optarg;
    return -1;
  case QUICK:
    command->tune.quick = true;
    return -1;
  case JSON:
    command->json = true;
    return -1;
  case KERNELS:
    command->kernels = optarg;
    return -1;
  case SEARCH:
    value = GS_SEARCH;
    if (optarg && !gs_read_long(optarg, 1, GS_SEARCH_MAX, &value))
      return gs_usage(argv, "--search: \"%s\" is not from 1 to %d", optarg, GS_SEARCH_MAX);
    command->search = (int)value;
    return -1;
  case ALL:
    command->all = true;
    return -1;
  case 'h':
    return gs_help(help);
  default:
    return gs_usage_option(argv, option);
  }
}

static int read_command(int argc, char **argv, gs_command_t *command) {
  static const struct option options[] = {{"shape", required_argument, NULL, SHAPE},
                                          {"models", required_argument, NULL, MODELS},
                                          {"n", required_argument, NULL, N},
                                          {"types", required_argument, NULL, TYPES},
                                          {"output", required_argument, NULL, 'o'},
                                          {"split-k", required_argument, NULL, SPLIT_K},
                                          {"candidates", required_argument, NULL, CANDIDATES},
                                          {"again", no_argument, NULL, AGAIN},
                                          {"budget", required_argument, NULL, BUDGET},
                                          {"device", required_argument, NULL, DEVICE},
                                          {"cublas", required_argument, NULL, CUBLAS},
                                          {"quick", no_argument, NULL, QUICK},
                                          {"json", no_argument, NULL, JSON},
                                          {"kernels", required_argument, NULL, KERNELS},
                                          {"search", optional_argument, NULL, SEARCH},
                                          {"all", no_argument, NULL, ALL},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
  for (int option; (option = getopt_long(argc, argv, ":ho:", options, NULL)) != -1;) {
    int status = read_option(option, argv, command);
    if (status >= 0) return status;
  }
  if (command->models && !gs_points_models(&command->points, command->models, &command->ns, command->types))
    return GS_EXIT_MACHINE;
  for (int i = optind; i < argc; i++)
    if (!gs_points_calls(&command->points, argv[i])) return GS_EXIT_MACHINE;
  if (command->points.count) return -1;
  return gs_usage(argv, "nothing to tune: give a .calls file, --shape or --models");
}

/* ---- what is printed ---- */

static void name_point(char *text, size_t size, const gs_gemm_t *g) {
  snprintf(text, size, "%c%c %lldx%lldx%lld %s_%s%s%s", "NT"[g->transa != GS_OP_N],
           "NT"[g->transb != GS_OP_N], (long long)g -> m, (long long)g -> n, (long long)g -> k,
           gs_type_names[g->a_type], gs_type_names[g->d_type],
           g -> epilogue == GS_EPILOGUE_DEFAULT ? "" : " ",
           g->epilogue == GS_EPILOGUE_DEFAULT ? "" : gs_epilogue_names[g->epilogue]);
}

static void print_tuned(const gs_tuned_t *tuned) {
  char point[128], id[GS_KERNEL_ID_MAX];
  const gs_row_t *row = &tuned->row;
  name_point(point, sizeof point, &tuned->gemm);
  printf("%-5s %-40s", gs_tune_verdict_names[tuned->verdict], point);
  if (tuned->verdict == GS_TUNE_NONE) {
    printf(" %s\n", tuned->why);
    return;
  }
  gs_row_name(id, sizeof id, row);
  printf(" %.3fx [%.3f, %.3f] %8.2f us, %s %.2f us; wall %.1f, %.1f us; %s split_k %d raster %d",
         tuned->ratio.value, tuned->ratio.lo, tuned->ratio.hi, (double)row->us, tuned->library,
         (double)row->library_us, (double)row->wall_us, (double)row->library_wall_us, id, row->split_k,
         row->raster);
  if (tuned->verdict == GS_TUNE_WRONG)
    printf("; %s (error %.2e, bound %.2e)", tuned->why, tuned->error, tuned->bound);
  if (tuned->verdict == GS_TUNE_WIN && tuned->by_wall) printf("; on the wall clock");
  putchar('\n');
}

static cJSON *json_tuned(const gs_tuned_t *tuned) {
  char text[256];
  const gs_row_t *row = &tuned->row;
  cJSON *entry = cJSON_CreateObject();
  gs_gemm_format(text, sizeof text, &tuned->gemm);
  cJSON_AddStringToObject(entry, "call", text);
  cJSON_AddStringToObject(entry, "verdict", gs_tune_verdict_names[tuned->verdict]);
  cJSON_AddNumberToObject(entry, "copies", tuned->copies);
  cJSON_AddNumberToObject(entry, "candidates", tuned->candidates);
  cJSON_AddNumberToObject(entry, "lt_candidates", tuned->lt_candidates);
  if (tuned->why[0]) cJSON_AddStringToObject(entry, "why", tuned->why);
  if (tuned->verdict == GS_TUNE_NONE) return entry;
  gs_row_name(text, sizeof text, row);
  cJSON_AddStringToObject(entry, "kernel", text);
  cJSON_AddStringToObject(entry, "library", tuned->library);
  cJSON_AddStringToObject(entry, "won_on",
                          tuned->verdict != GS_TUNE_WIN ? ""
                          : tuned->by_wall              ? "wall"
                                                        : "gpu");
  const struct {
    const char *name;
    double value;
  } numbers[] = {{"split_k", row->split_k},
                 {"raster", row->raster},
                 {"ratio", tuned->ratio.value},
                 {"ratio_lo", tuned->ratio.lo},
                 {"ratio_hi", tuned->ratio.hi},
                 {"us", (double)row->us},
                 {"library_us", (double)row->library_us},
                 {"gemm_ex_us", tuned->gemm_ex_us},
                 {"wall_us", (double)row->wall_us},
                 {"library_wall_us", (double)row->library_wall_us}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    cJSON_AddNumberToObject(entry, numbers[i].name, numbers[i].value);
  return entry;
}

/* ---- the run ---- */

/* context: the progress that is shown. */
static void print_contender(void *context, const gs_contender_t *contender) {
  char name[128];
  gs_progress_clear(context);
  gs_contender_name(name, sizeof name, contender);
  printf("  %9.2f us  %s", gs_contender_us(contender), name);
  if (contender->kind == GS_BY_KERNEL) printf(" (predicted %.2f)", contender->predicted_us);
  putchar('\n');
}

/* context: a cJSON array. */
static void json_contender(void *context, const gs_contender_t *contender) {
  char name[128];
  cJSON *entry = cJSON_CreateObject();
  gs_contender_name(name, sizeof name, contender);
  cJSON_AddStringToObject(entry, "contender", name);
  cJSON_AddNumberToObject(entry, "us", gs_contender_us(contender));
  cJSON_AddNumberToObject(entry, "samples", contender->entrant.count[GS_CLOCK_GPU]);
  if (contender->kind == GS_BY_KERNEL)
    cJSON_AddNumberToObject(entry, "predicted_us", contender->predicted_us);
  cJSON_AddItemToArray(context, entry);
}

/* Tunes one product, kernels of the space among our contenders where that is asked for. */
static gs_tuned_t tune_among(gs_bench_t *bench, const gs_gemm_t *g, const gs_command_t *command,
                             const gs_tune_options_t *options) {
  gs_tune_options_t own = *options;
  gs_pools_t *pools = command->pools;
  gs_pool_t each = {0};
  const gs_rank_for_t to = {g, options->split_max, GS_BENCH_WORKSPACE};
  if (command->search) {
    gs_pool_tally_t tally = gs_search(&each, &pools->made, bench->gpu, &to, command->search, &stopped);
    pools->tally.compiled += tally.compiled, pools->tally.refused += tally.refused;
  }
  for (int i = 0; i < pools->named.count; i++) gs_pool_add(&each, pools->named.indices[i]);
  own.pool = &pools->ranked, own.each = &each;
  gs_tuned_t tuned = gs_tune(bench, g, &own);
  gs_pool_free(&each);
  return tuned;
}

/* Tunes one product and tells what came of it, on stdout or in results. */
static gs_tuned_t tune_one(gs_bench_t *bench, const gs_gemm_t *g, const gs_command_t *command,
                           gs_progress_t *progress, cJSON *results) {
  gs_tune_options_t options = command->tune;
  cJSON *all = command->all && results ? cJSON_CreateArray() : NULL;
  options.measured = !command->all ? NULL : results ? json_contender : print_contender;
  options.context = all ? (void *)all : progress;
  gs_tuned_t tuned = tune_among(bench, g, command, &options);
  gs_progress_clear(progress);
  if (!results) {
    print_tuned(&tuned);
    fflush(stdout);
    return tuned;
  }
  cJSON *entry = json_tuned(&tuned);
  if (all) cJSON_AddItemToObject(entry, "all", all);
  cJSON_AddItemToArray(results, entry);
  return tuned;
}

static bool tune_all(gs_bench_t *bench, gs_draft_t *draft, const gs_command_t *command, gs_tally_t *tally,
                     cJSON *results) {
  gs_progress_t progress = gs_progress_begin();
  const gs_points_t *points = &command->points;
  bool written = true;
  for (int i = 0; i < points->count && !stopped && written; i++) {
    char what[256], point[128];
    const gs_gemm_t *g = &points->items[i];
    if (command->budget && gs_seconds() - progress.begun > (double)command->budget) {
      gs_say("the budget of %ld s is spent: %d of %d products are left; the same command goes on from here",
             command->budget, points->count - i, points->count);
      break;
    }
    if (!command->again && gs_draft_find(draft, g)) {
      tally->kept++;
      continue;
    }
    name_point(point, sizeof point, g);
    snprintf(what, sizeof what, "%d of %d, %s; %d won, best %.2fx", i + 1, points->count, point,
             tally->count[GS_TUNE_WIN], tally->best);
    gs_progress_show(&progress, (double)i / points->count, what);
    gs_tuned_t tuned = tune_one(bench, g, command, &progress, results);
    tally->count[tuned.verdict]++;
    if (tuned.verdict == GS_TUNE_WIN && tuned.ratio.value > tally->best) tally->best = tuned.ratio.value;
    if (!command->tune.quick)
      written = gs_draft_settle(draft, g, tuned.verdict == GS_TUNE_WIN ? &tuned.row : NULL);
    if (!gs_gpu_ok(bench->gpu)) {
      gs_say("%s: the GPU's context is lost; run the same command again, it goes on from here",
             bench->gpu->fault);
      break;
    }
  }
  gs_progress_clear(&progress);
  return written;
}

static int report(const gs_draft_t *draft, const gs_command_t *command, const gs_tally_t *tally,
                  cJSON *root) {
  const int *count = tally->count;
  if (root) {
    cJSON_AddStringToObject(root, "table", draft->path);
    cJSON_AddNumberToObject(root, "rows", draft->count);
    gs_json_print(root);
  } else {
    printf("%d won, %d tied, %d lost, %d failed the gate, %d not measurable, %d kept from before\n",
           count[GS_TUNE_WIN], count[GS_TUNE_TIE], count[GS_TUNE_LOSS], count[GS_TUNE_WRONG],
           count[GS_TUNE_NONE], tally->kept);
    if (command->search)
      printf("%d kernels compiled, %d refused by the compiler or for what it made\n",
             command->pools->tally.compiled, command->pools->tally.refused);
    if (command->tune.quick)
      printf("--quick: nothing was written\n");
    else if (draft->count)
      printf("%s: %d rows\n", draft->path, draft->count);
    else
      printf("no row to write: %s was not made\n", draft->path);
  }
  return count[GS_TUNE_WRONG] ? GS_EXIT_FALSE : GS_EXIT_OK;
}

/* An exit status, GS_EXIT_OK: go on. */
static int gather(gs_pools_t *pools, const gs_gpu_t *gpu, const gs_command_t *command) {
  const gs_pool_for_t for_what = {.sm = gpu->device.sm, .products = &command->points, .stopped = &stopped};
  char *names = command->kernels;
  gs_pool_tally_t tally;
  gs_status_t status = GS_OK;
  if (names)
    status = gs_pool_named(&pools->named, &names, 1, &for_what, &tally);
  else if (!gs_pool_shipped(&pools->ranked))
    status = GS_NOMEM;
  return status == GS_OK ? GS_EXIT_OK : status == GS_SYNTAX ? GS_EXIT_USAGE : GS_EXIT_MACHINE;
}

/* Tunes into the table; returns an exit status. */
static int tune_into(gs_draft_t *draft, gs_gpu_t *gpu, const gs_cublas_t *cublas,
                     const gs_command_t *command) {
  gs_reference_t reference;
  gs_bench_t bench;
  gs_tally_t tally = {0};
  if (!gs_reference_open(&reference, gpu)) {
    gs_say("%s", gpu->fault);
    return GS_EXIT_MACHINE;
  }
  gs_say("%d products on %s against cuBLAS %d.%d.%d (%s)", command->points.count, gpu->device.name,
         cublas->version[0], cublas->version[1], cublas->version[2], cublas->path);
  cJSON *root = command->json ? cJSON_CreateObject() : NULL;
  gs_bench_open(&bench, gpu, cublas, &reference, 1);
  bool written =
      tune_all(&bench, draft, command, &tally, root ? cJSON_AddArrayToObject(root, "products") : NULL);
  gs_bench_close(&bench);
  gs_reference_close(&reference);
  int status = report(draft, command, &tally, root);
  return stopped ? 128 + stopped : written ? status : GS_EXIT_FALSE;
}

static int tune_on(gs_gpu_t *gpu, gs_command_t *command) {
  gs_cublas_t cublas;
  gs_pools_t pools = {0};
  gs_draft_t draft;
  char fault[512], path[4096], slug[64];
  if (gs_cublas_open(&cublas, gpu, command->cublas, fault, sizeof fault) != GS_OK) {
    gs_say("%s", fault);
    return GS_EXIT_MACHINE;
  }
  gs_gpu_slug(gpu->device.name, slug, sizeof slug);
  snprintf(path, sizeof path, "%s%s", command->output ? command->output : slug,
           command->output ? "" : ".table");
  gs_table_header_t header = gs_tune_header(gpu, &cublas);
  int status = gather(&pools, gpu, command);
  command->pools = &pools;
  if (status == GS_EXIT_OK) {
    status = GS_EXIT_MACHINE;
    if (gs_draft_open(&draft, path, &header)) {
      status = tune_into(&draft, gpu, &cublas, command);
      gs_draft_close(&draft);
    }
  }
  gs_pool_free(&pools.ranked);
  gs_pool_free(&pools.named);
  gs_pool_free(&pools.made);
  gs_cublas_close(&cublas);
  return status;
}

int gs_cmd_tune(int argc, char **argv) {
  gs_command_t command = {.types = "f16_f16", .tune = {.split_max = 16, .candidates = GS_TUNE_CANDIDATES}};
  gs_gpu_t gpu;
  gs_ns_read(&command.ns, "1,2,4,8,16,32,64,128,512,2048");
  int status = read_command(argc, argv, &command);
  if (status < 0 && gs_gpu_open(&gpu, (int)command.device) != GS_OK) {
    gs_say("%s", gpu.fault);
    status = GS_EXIT_MACHINE;
  }
  if (status < 0) {
    sigaction(SIGINT, &(struct sigaction){.sa_handler = stop, .sa_flags = SA_RESETHAND}, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = stop, .sa_flags = SA_RESETHAND}, NULL);
    status = tune_on(&gpu, &command);
    gs_gpu_close(&gpu);
  }
  gs_points_free(&command.points);
  return status;
}
