/* gemmshim tune: which kernels win on this GPU, written as a table. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "points.h"
#include "progress.h"
#include "ranking.h"
#include "busy.h"
#include "fit.h"
#include "fleet.h"
#include "tools.h"
#include "search.h"
#include "signals.h"
#include "tune_run.h"
#include "tune_text.h"

#define NS "1,2,3,4,5,7,8,13,16,27,32,48,64,128,512,2048"

static const char help[] =
    "usage: gemmshim tune [OPTION...] FILE.calls | --shape SHAPE... | --models FILE | --grid\n\n"
    "Measures, on this GPU, our kernels for each product against cublasGemmEx and every algorithm that\n"
    "cuBLASLt's heuristic offers, and writes the winners into a table. A row is written only where a kernel "
    "was\n"
    "faster than all of them beyond noise (95% interval of the ratio above 1, gpu clock), or where one of\n"
    "cuBLASLt's own algorithms, offered or not, was faster than what the program calls; or where they tie on "
    "the\n"
    "gpu clock and win on the wall clock, as host-bound programs feel it; and where the FP64 gate was "
    "passed.\n"
    "A clear win takes 11 rounds, a clear loss 5, what is in doubt 31. Losses are listed. A table that "
    "exists\n"
    "is extended: rows it has are kept, and not measured again.\n\n"
    "  --shape SHAPE     TNxMxNxK:f16_f16[:bias], in cuBLAS's terms; N may be a list: TNx4096x1,8,64x4096;\n"
    "                    TNx128x128x64*12,96: strided batches of 12 products, and of 96\n"
    "  --models FILE     layers: name transa transb m k note, tab-separated; batch=12,96 and n=1,128 in the "
    "note:\n"
    "                    strided batches; at these n alone\n"
    "    --n LIST        at these n (" NS ")\n"
    "  --grid            1,000 products: row-major M, N, K of 64 to 16384, as NN and TN, exactly these n\n"
    "    --types LIST    of these types (f16_f16)\n"
    "  -o, --output FILE the table (the GPU's name with .table, in this folder)\n"
    "  --split-k MAX     split k at most so often (16)\n"
    "  --candidates N    measure the N that the cost model ranks first (12), each family's first 3, for n of "
    "32\n"
    "                    and less every tile of direct; fewer where it says that they are out of reach; "
    "then\n"
    "                    others of the tiles that lead\n"
    "  --arrivals N      how each winner and the library do at a quiet server: N calls of either at Poisson "
    "arrivals,\n"
    "                    1,000 a second (16; 0: do not ask)\n"
    "  --kernels LIST    of our kernels these alone, each at its best 3 splits: ids, tiles\n"
    "                    (mma_128x96x32_s4_w4) or patterns, with commas between, or a file of them; what is "
    "not\n"
    "                    shipped is compiled (NVRTC)\n"
    "  --search[=N]      for each product also the N kernels (24) that the cost model ranks first of all "
    "that\n"
    "                    could be compiled: tiles, warps, stages; winners lie beside the table, in TABLE.d\n"
    "  --all             list every contender that was measured, not the verdict alone\n"
    "  --exact           rows claim the n that were measured; else whole intervals of n that are won at both "
    "ends\n"
    "                    and at samples inside, both sides of each change of cuBLASLt's heuristic among "
    "them\n"
    "  --fit             first measure every shipped tile on a few products and correct the cost model by "
    "it, for\n"
    "                    this GPU and every later run (~/.cache/gemmshim/GPU.model); may be all there is to "
    "do\n"
    "  --exhaustive N    instead of tuning: for N of the products, chosen at random, measures every shipped "
    "kernel\n"
    "                    in every split of k, and the other orders of tiles of all that come within a "
    "quarter "
    "of\n"
    "                    the best; says how far the tuner's choice is from the best of all, status 1 where "
    "that is\n"
    "                    more than 3%\n"
    "  --known TABLE     what this table has rows for is not measured\n"
    "  --shard I/N       the I'th part of N of the work, into a table of its own (of Slurm arrays and MPI: "
    "theirs);\n"
    "                    gemmshim table merge joins them\n"
    "  --busy-ok         measure although the GPU has other work\n"
    "  --again           measure products anew whose rows the table has\n"
    "  --budget SECONDS  stop after so long; the same command goes on from there\n"
    "  --device N        on this GPU alone; else a tuner runs on every visible one of the first one's model, "
    "and\n"
    "                    their tables are joined (--json: on GPU 0 alone)\n"
    "  --cublas FILE     the libcublas.so to measure against (looked for)\n"
    "  --quick           few rounds, to try things out: such rows prove nothing and are not written\n"
    "  --json            what was measured, as JSON on stdout\n\n"
    "What was tried and lost is kept in TABLE.tried until all is done: the same command goes on after a "
    "kill.\n"
    "Exit status: 0 done, 1 a kernel failed the gate or a file could not be written, 2 usage, 3 no GPU, "
    "driver,\n"
    "cuBLAS or readable input, 4 the GPU has other work; 128 + N ended by signal N: what was measured "
    "stays.\n"
    "example: gemmshim tune --shape TNx4096x1,8,64x4096:f16_f16 -o mine.table\n";

enum {
  SHAPE = 256,
  MODELS,
  N,
  TYPES,
  SPLIT_K,
  CANDIDATES,
  ARRIVALS,
  AGAIN,
  BUDGET,
  DEVICE,
  CUBLAS,
  QUICK,
  JSON,
  KERNELS,
  SEARCH,
  ALL,
  GRID,
  EXACT,
  KNOWN,
  SHARD,
  BUSY_OK,
  WORKER,
  FIT,
  EXHAUSTIVE
};

typedef struct {
  gs_points_t points;
  const char *models, *types, *output, *cublas, *known;
  char *kernels;
  gs_ns_t ns;
  gs_run_t run;
  long device, exhaustive;
  bool json, grid, fit, busy_ok;
  bool worker;  /* one of a fleet's tuners */
  bool one_gpu; /* a device was named, or this is such a tuner */
  gs_shard_t shard;
} gs_command_t;

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
    command->run.tune.split_max = (int)value;
    return -1;
  case CANDIDATES:
    if (!gs_read_long(optarg, 1, GS_TUNE_CANDIDATES_MAX, &value))
      return gs_usage(argv, "--candidates: \"%s\" is not from 1 to %d", optarg, GS_TUNE_CANDIDATES_MAX);
    command->run.tune.candidates = (int)value;
    return -1;
  case ARRIVALS:
    if (!gs_read_long(optarg, 0, GS_CONTEST_ROUNDS_MAX, &value))
      return gs_usage(argv, "--arrivals: \"%s\" is not from 0 to %d", optarg, GS_CONTEST_ROUNDS_MAX);
    command->run.tune.arrivals = (int)value;
    return -1;
  case AGAIN:
    command->run.again = true;
    return -1;
  case BUDGET:
    if (!gs_read_long(optarg, 1, 1 << 30, &command->run.budget))
      return gs_usage(argv, "--budget: \"%s\" is not a number of seconds", optarg);
    return -1;
  case DEVICE:
    if (!gs_read_long(optarg, 0, 1023, &command->device))
      return gs_usage(argv, "--device: \"%s\" is not a number", optarg);
    command->one_gpu = true;
    return -1;
  case CUBLAS:
    command->cublas = optarg;
    return -1;
  case QUICK:
    command->run.tune.quick = true;
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
    command->run.search = (int)value;
    return -1;
  case ALL:
    command->run.all = true;
    return -1;
  case GRID:
    command->grid = command->run.exact = true;
    return -1;
  case EXACT:
    command->run.exact = true;
    return -1;
  case KNOWN:
    command->known = optarg;
    return -1;
  case SHARD:
    if (!gs_shard_read(&command->shard, optarg))
      return gs_usage(argv, "--shard: \"%s\" is not of the form 2/8", optarg);
    return -1;
  case BUSY_OK:
    command->busy_ok = true;
    return -1;
  case FIT:
    command->fit = command->one_gpu = true;
    return -1;
  case EXHAUSTIVE:
    command->one_gpu = true;
    return gs_read_long(optarg, 1, 1 << 20, &command->exhaustive)
               ? -1
               : gs_usage(argv, "--exhaustive: \"%s\" is not a number of products", optarg);
  case WORKER: /* as fleet.c starts them: it shows one line for all of them */
    if (!gs_read_long(optarg, -1, 1 << 20, &value)) return gs_usage(argv, "--worker is not for people");
    command->worker = command->one_gpu = true;
    command->run.standing = gs_standing_open((int)value);
    gs_progress_leave();
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
                                          {"arrivals", required_argument, NULL, ARRIVALS},
                                          {"again", no_argument, NULL, AGAIN},
                                          {"budget", required_argument, NULL, BUDGET},
                                          {"device", required_argument, NULL, DEVICE},
                                          {"cublas", required_argument, NULL, CUBLAS},
                                          {"quick", no_argument, NULL, QUICK},
                                          {"json", no_argument, NULL, JSON},
                                          {"kernels", required_argument, NULL, KERNELS},
                                          {"search", optional_argument, NULL, SEARCH},
                                          {"all", no_argument, NULL, ALL},
                                          {"grid", no_argument, NULL, GRID},
                                          {"exact", no_argument, NULL, EXACT},
                                          {"known", required_argument, NULL, KNOWN},
                                          {"shard", required_argument, NULL, SHARD},
                                          {"busy-ok", no_argument, NULL, BUSY_OK},
                                          {"exhaustive", required_argument, NULL, EXHAUSTIVE},
                                          {"worker", required_argument, NULL, WORKER},
                                          {"fit", no_argument, NULL, FIT},
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
  gs_ns_t sizes;
  gs_ns_read(&sizes, GS_GRID_SIZES);
  if (command->grid && !gs_points_grid(&command->points, &sizes, command->types)) return GS_EXIT_MACHINE;
  if (!command->points.count && !command->fit)
    return gs_usage(argv, "nothing to tune: give a .calls file, --shape, --models or --grid");
  if (command->exhaustive && (command->kernels || command->run.search))
    return gs_usage(argv, "--exhaustive measures the shipped kernels: not with --kernels or --search");
  gs_points_by_key(&command->points);
  gs_points_shard(&command->points, command->shard);
  return -1;
}

static int report(const gs_draft_t *draft, const gs_command_t *command, const gs_tally_t *tally,
                  cJSON *root) {
  const int *count = tally->count;
  const gs_run_t *run = &command->run;
  if (root) {
    cJSON_AddStringToObject(root, "table", draft->path);
    cJSON_AddNumberToObject(root, "rows", draft->count);
    cJSON_AddBoolToObject(root, "complete", tally->complete);
    cJSON_AddItemToObject(root, "seconds", gs_tune_json_watch(&tally->watch));
    cJSON_AddNumberToObject(root, "server_rate", GS_CONTEST_RATE);
  } else {
    printf("%d won, %d tied, %d lost, %d failed the gate, %d not measurable, %d kept from before",
           count[GS_TUNE_WIN], count[GS_TUNE_TIE], count[GS_TUNE_LOSS], count[GS_TUNE_WRONG],
           count[GS_TUNE_NONE], tally->kept);
    printf(tally->samples ? "; %d samples between them\n" : "\n", tally->samples);
    gs_tune_print_watch(&tally->watch);
    if (run->search)
      printf("%d kernels compiled, %d refused by the compiler or for what it made\n",
             run->pools->tally.compiled, run->pools->tally.refused);
    if (run->tune.quick)
      printf("--quick: nothing was written\n");
    else if (draft->count)
      printf("%s: %d rows\n", draft->path, draft->count);
    else
      printf("no row to write: %s was not made\n", draft->path);
  }
  return count[GS_TUNE_WRONG] ? GS_EXIT_FALSE : GS_EXIT_OK;
}

/* Without a compiler there is nothing to search: said once, here, and not for each product or by each GPU's tuner. */
static void check_search(gs_command_t *command) {
  char why[512];
  if (!command->run.search || gs_generate_ready(why, sizeof why) == GS_OK) return;
  if (!command->worker) gs_say("--search: %s; until then the shipped kernels alone are measured", why);
  command->run.search = 0;
}

/* An exit status, GS_EXIT_OK: go on. */
static int gather(gs_pools_t *pools, const gs_gpu_t *gpu, const gs_command_t *command) {
  const gs_pool_for_t for_what = {.sm = gpu->device.sm, .products = &command->points, .stopped = &gs_stopped};
  char *names = command->kernels;
  gs_pool_tally_t tally;
  gs_status_t status = GS_OK;
  if (names)
    status = gs_pool_named(&pools->named, &names, 1, &for_what, &tally);
  else if (!gs_pool_shipped(&pools->ranked, gpu->device.sm))
    status = GS_NOMEM;
  return status == GS_OK ? GS_EXIT_OK : status == GS_SYNTAX ? GS_EXIT_USAGE : GS_EXIT_MACHINE;
}

/* What was asked for: an exit status. root: NULL, or what is printed as JSON in the end. */
static int measure(gs_draft_t *draft, gs_bench_t *bench, const gs_command_t *command, cJSON *root) {
  gs_journal_t journal;
  int fitted = command->fit ? gs_fit(bench, &gs_stopped) : GS_EXIT_OK;
  if (fitted != GS_EXIT_OK || !command->points.count) return fitted;
  if (command->exhaustive) {
    gs_tune_options_t tune = command->run.tune;
    tune.pool = &command->run.pools->ranked;
    return gs_ranking(bench, &command->points, (int)command->exhaustive, &tune, &gs_stopped, root);
  }
  gs_journal_open(&journal, draft->path, &draft->header);
  gs_tally_t tally = gs_tune_run(&command->run, &command->points, bench, draft, &journal,
                                 root ? cJSON_AddArrayToObject(root, "products") : NULL);
  gs_journal_close(&journal, tally.complete && !command->run.tune.quick);
  int status = report(draft, command, &tally, root);
  return gs_stopped ? 128 + gs_stopped : tally.written ? status : GS_EXIT_FALSE;
}

/* Tunes into the table; returns an exit status. */
static int tune_into(gs_draft_t *draft, gs_gpu_t *gpu, const gs_cublas_t *cublas,
                     const gs_command_t *command) {
  gs_reference_t reference;
  gs_bench_t bench;
  if (!gs_reference_open(&reference, gpu)) {
    gs_say("%s", gpu->fault);
    return GS_EXIT_MACHINE;
  }
  gs_say("%d products on %s against cuBLAS %d.%d.%d (%s)", command->points.count, gpu->device.name,
         cublas->version[0], cublas->version[1], cublas->version[2], cublas->path);
  cJSON *root = command->json ? cJSON_CreateObject() : NULL;
  gs_bench_open(&bench, gpu, cublas, &reference, 1);
  int status = measure(draft, &bench, command, root);
  if (root && command->points.count) gs_json_print(root);
  gs_bench_close(&bench);
  gs_reference_close(&reference);
  return status;
}

/* The table's path: a shard has one of its own beside what was asked for. */
static bool name_table(const gs_command_t *command, const char *gpu, char *path, size_t size) {
  char slug[64], part[32] = "";
  gs_gpu_slug(gpu, slug, sizeof slug);
  const char *base = command->output ? command->output : slug, *end = strstr(base, ".table");
  int length = end && !end[6] ? (int)(end - base) : (int)strlen(base);
  bool suffixed = !command->output || command->shard.of || (end && !end[6]);
  if (command->shard.of) snprintf(part, sizeof part, ".%d-of-%d", command->shard.i, command->shard.of);
  if ((size_t)snprintf(path, size, "%.*s%s%s", length, base, part, suffixed ? ".table" : "") < size)
    return true;
  gs_say("%.60s...: the path is too long", base);
  return false;
}

/* Rows that another table has are not measured. */
static bool leave_known(gs_command_t *command) {
  gs_table_t *table;
  gs_points_t *points = &command->points;
  int kept = 0;
  if (!command->known || access(command->known, F_OK) != 0) return true;
  if (gs_table_load(command->known, gs_say_line, NULL, &table) != GS_OK) return false;
  for (int i = 0; i < points->count; i++)
    if (!gs_table_find(table, &points->items[i])) points->items[kept++] = points->items[i];
  if (kept < points->count)
    gs_say("%s has rows for %d of the products", command->known, points->count - kept);
  points->count = kept;
  gs_table_free(table);
  return true;
}

static int tune_on(gs_gpu_t *gpu, gs_command_t *command) {
  gs_cublas_t cublas;
  gs_pools_t pools = {0};
  gs_draft_t draft;
  char fault[512], path[4096];
  if (!name_table(command, gpu->device.name, path, sizeof path) || !leave_known(command))
    return GS_EXIT_MACHINE;
  if (gs_cublas_open(&cublas, gpu, command->cublas, fault, sizeof fault) != GS_OK) {
    gs_say("%s", fault);
    return GS_EXIT_MACHINE;
  }
  gs_table_header_t header = gs_tune_header(gpu, &cublas);
  int tiles = command->fit ? 0 : gs_fit_load(gpu->device.name);
  if (tiles) gs_say("the cost model is corrected by what %d tiles took here (tune --fit)", tiles);
  int status = gather(&pools, gpu, command);
  command->run.pools = &pools;
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

/* Several GPUs: an exit status. -1: there is one. */
static int tune_by_fleet(gs_command_t *command, int argc, char **argv) {
  char path[4096];
  gs_fleet_t fleet = gs_fleet_find();
  if (fleet.count < 2) return -1;
  gs_shard_t shard = command->shard;
  command->shard = (gs_shard_t){0, 0};
  if (!name_table(command, fleet.gpu, path, sizeof path)) return GS_EXIT_MACHINE;
  if (strlen(path) < 6 || strcmp(path + strlen(path) - 6, ".table"))
    return gs_usage(argv, "-o %s: with several GPUs the table's name ends in .table", path);
  gs_heed_signals();
  return gs_fleet_run(&fleet, &(gs_fleet_run_t){.argc = argc,
                                                .argv = argv,
                                                .output = path,
                                                .shard = shard,
                                                .again = command->run.again,
                                                .quick = command->run.tune.quick,
                                                .stopped = &gs_stopped});
}

int gs_cmd_tune(int argc, char **argv) {
  gs_command_t command = {
      .types = "f16_f16",
      .run = {.tune = {.split_max = 16, .candidates = GS_TUNE_CANDIDATES, .arrivals = GS_TUNE_ARRIVALS},
              .stopped = &gs_stopped}};
  gs_gpu_t gpu;
  gs_ns_read(&command.ns, NS);
  gs_shard_default(&command.shard);
  int status = read_command(argc, argv, &command);
  if (status < 0) check_search(&command);
  if (status < 0 && !command.one_gpu && !command.json) status = tune_by_fleet(&command, argc, argv);
  if (status < 0 && gs_gpu_open(&gpu, (int)command.device) != GS_OK) {
    gs_say("%s", gpu.fault);
    status = GS_EXIT_MACHINE;
  }
  if (status < 0 && !command.busy_ok && gs_gpu_busy(&gpu)) { /* said */
    status = GS_EXIT_BUSY;
    gs_gpu_close(&gpu);
  }
  if (status < 0) {
    gs_heed_signals();
    status = tune_on(&gpu, &command);
    gs_gpu_close(&gpu);
  }
  gs_points_free(&command.points);
  return status;
}
