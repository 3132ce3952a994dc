/* gemmshim requalify: which rows of a table win on this GPU with this cuBLAS. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beside.h"
#include "busy.h"
#include "choice.h"
#include "draft.h"
#include "journal.h"
#include "json.h"
#include "named.h"
#include "points.h"
#include "progress.h"
#include "requalify.h"
#include "signals.h"
#include "tools.h"

static const char help[] =
    "usage: gemmshim requalify [OPTION...] [TABLE]\n\n"
    "Measures the rows of a table on this GPU against this cuBLAS, each at the ends of its interval of n "
    "and\n"
    "inside, both sides of each change of this cuBLASLt's heuristic among them (the proof that tune asks "
    "for),\n"
    "and writes what wins as a table of this GPU and cuBLAS: rows that were predicted, or measured\n"
    "on another GPU of the architecture or with another cuBLAS, are served from then on. TABLE is a file or "
    "a\n"
    "built-in name (the table that the library would use here). Rows that serve already by their margin "
    "stay\n"
    "until they have been measured. A table of another cuBLAS that is in the way is kept beside it as "
    ".old.\n\n"
    "  --calls FILE      measure first what this .calls file or histogram calls for longest (what gains "
    "most)\n"
    "  --budget SECONDS  stop after so long; the same command goes on from there\n"
    "  -o, --output FILE the table (~/.config/gemmshim/GPU.table, where the library looks)\n"
    "  --again           measure also what this GPU and cuBLAS have measured before\n"
    "  --device N        which GPU (0)\n"
    "  --busy-ok         measure although the GPU has other work\n"
    "  --cublas FILE     the libcublas.so to measure against (looked for)\n"
    "  --quick           few rounds, to try things out: proves nothing, and nothing is written\n"
    "  --json            what was measured, as JSON on stdout\n\n"
    "Nothing is written but the table, and TABLE.*.tried beside it until all rows are measured: it may run "
    "before a\n"
    "program starts (an init container), with all else read-only. Exit status: 0 done, or the budget is "
    "spent, or\n"
    "there was nothing to do; 1 a kernel failed the gate, the GPU was lost, or the table cannot be written; "
    "2 usage;\n"
    "3 no GPU, driver, cuBLAS or table; 4 the GPU has other work; 128 + N ended by signal N: what was "
    "measured\n"
    "stays.\n"
    "example: gemmshim requalify --budget 60 --calls app.calls\n";

enum { CALLS = 256, BUDGET, AGAIN, DEVICE, CUBLAS, QUICK, JSON, BUSY_OK };

typedef struct {
  const char *source, *calls, *output, *cublas;
  long device, budget;
  bool again, json, busy_ok;
  gs_tune_options_t tune;
} gs_command_t;

/* What is at work. */
typedef struct {
  const gs_command_t *command;
  gs_gpu_t *gpu;
  gs_bench_t bench;
  gs_draft_t draft;
  const gs_table_t *table;
  char name[4112]; /* of the table */
  char rest[4200]; /* the command that goes on with it */
  gs_journal_t journal;
  gs_duty_t *duties;
  gs_tune_options_t tune;
  int count[GS_TUNE_NONE + 1];
  int in_part;    /* of those that won: in a part of their interval */
  int kept, left; /* measured before; not reached */
  cJSON *rows;
} gs_work_t;

/* ---- what is printed ---- */

static const char *verdict_of(const gs_requalified_t *done) {
  return !done->count  ? gs_tune_verdict_names[done->worst.verdict]
         : done->whole ? gs_tune_verdict_names[GS_TUNE_WIN]
                       : "part";
}

/* ", 1..8" */
static void print_interval(const char *before, const gs_row_t *row) {
  printf("%s%d", before, row->n_lo);
  if (row->n_hi > row->n_lo) printf("..%d", row->n_hi);
}

static void print_row(const gs_requalified_t *done, const gs_row_t *old) {
  char id[GS_KERNEL_ID_MAX], batch[16] = "";
  const gs_tuned_t *worst = &done->worst;
  gs_row_name(id, sizeof id, old);
  if (old->key.batch) snprintf(batch, sizeof batch, "*%d", old->key.batch);
  printf("%-5s %c%c %d", verdict_of(done), "NT"[old->key.transa], "NT"[old->key.transb], old -> key.m);
  print_interval("x", old);
  printf("x%d%s %s", old->key.k, batch, id);
  if (worst->verdict == GS_TUNE_NONE)
    printf(" %s", worst->why);
  else
    printf(" %.3fx [%.3f, %.3f], before %.3fx; %.2f us, %s %.2f us%s%s", worst->ratio.value, worst->ratio.lo,
           worst->ratio.hi, (double)(old->library_us / old->us), (double)worst->row.us, worst->library,
           (double)worst->row.library_us, *worst->why ? "; " : "", worst->why);
  if (done->points > 1) printf(" at n = %lld, the worst of %d", (long long)worst->gemm.n, done->points);
  for (int i = 0; i < done->count && !done->whole; i++)
    print_interval(i ? ", " : "; claims ", &done->rows[i]);
  putchar('\n');
  fflush(stdout);
}

static cJSON *json_row(const gs_requalified_t *done, const gs_row_t *old) {
  char text[512];
  const gs_tuned_t *worst = &done->worst;
  cJSON *entry = cJSON_CreateObject();
  gs_row_format(text, sizeof text, old);
  cJSON_AddStringToObject(entry, "row", text);
  cJSON_AddStringToObject(entry, "verdict", verdict_of(done));
  cJSON_AddNumberToObject(entry, "points", done->points);
  cJSON *claims = cJSON_AddArrayToObject(entry, "claims");
  for (int i = 0; i < done->count; i++) {
    gs_row_format(text, sizeof text, &done->rows[i]);
    cJSON_AddItemToArray(claims, cJSON_CreateString(text));
  }
  if (worst->why[0]) cJSON_AddStringToObject(entry, "why", worst->why);
  if (worst->verdict == GS_TUNE_NONE) return entry;
  cJSON_AddStringToObject(entry, "library", worst->library);
  cJSON_AddNumberToObject(entry, "before", (double)(old->library_us / old->us));
  cJSON_AddNumberToObject(entry, "ratio", worst->ratio.value);
  cJSON_AddNumberToObject(entry, "ratio_lo", worst->ratio.lo);
  cJSON_AddNumberToObject(entry, "ratio_hi", worst->ratio.hi);
  cJSON_AddNumberToObject(entry, "us", (double)worst->row.us);
  cJSON_AddNumberToObject(entry, "library_us", (double)worst->row.library_us);
  return entry;
}

static void report(const gs_work_t *work) {
  const int *count = work->count;
  const char *path = work->draft.path;
  if (work->rows) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "source", work->name);
    cJSON_AddStringToObject(root, "table", work->draft.count ? path : "");
    cJSON_AddNumberToObject(root, "rows", work->draft.count);
    cJSON_AddNumberToObject(root, "in_part", work->in_part);
    cJSON_AddNumberToObject(root, "kept", work->kept);
    cJSON_AddNumberToObject(root, "left", work->left);
    cJSON_AddItemToObject(root, "measured", work->rows);
    gs_json_print(root);
    return;
  }
  printf("%d won, %d tied, %d lost, %d failed the gate, %d not measurable, %d measured before, %d left",
         count[GS_TUNE_WIN], count[GS_TUNE_TIE], count[GS_TUNE_LOSS], count[GS_TUNE_WRONG],
         count[GS_TUNE_NONE], work->kept, work->left);
  printf(work->in_part ? "; %d won in a part of their n\n" : "\n", work->in_part);
  if (work->command->tune.quick)
    printf("--quick: nothing was written\n");
  else if (work->draft.count)
    printf("%s: %d rows\n", path, work->draft.count);
  else
    printf("no row wins here: %s was not made\n", path);
}

/* ---- the run ---- */

/* What did not win is in the journal of a run that was cut short; what did, in the new table with other times than in
 * the old one. */
static bool measured_before(const gs_work_t *work, const gs_row_t *old) {
  gs_gemm_t g = gs_points_keyed(&old->key, old->n_lo);
  if (gs_journal_has(&work->journal, &g)) return true;
  const gs_row_t *row = gs_draft_claimed(&work->draft, &old->key, old->n_lo, old->n_hi);
  char text[512], old_text[512];
  if (!row || work->command->again) return false;
  gs_row_format(text, sizeof text, row);
  gs_row_format(old_text, sizeof old_text, old);
  return strcmp(text, old_text) != 0;
}

/* False: nothing more can be measured or written. */
static bool measure(gs_work_t *work, const gs_duty_t *duty) {
  const gs_row_t *row = duty->row;
  gs_requalified_t done = gs_requalify(&work->bench, row, &work->tune, &gs_stopped);
  if (!gs_gpu_ok(work->gpu))
    gs_say("%s: the GPU's context is lost; run the same command again, it goes on from here",
           work->gpu->fault);
  if (!done.complete) return gs_gpu_ok(work->gpu); /* the row is left for the next run */
  if (work->rows)
    cJSON_AddItemToArray(work->rows, json_row(&done, row));
  else
    print_row(&done, row);
  work->count[done.count ? GS_TUNE_WIN : done.worst.verdict]++;
  work->in_part += done.count && !done.whole;
  gs_gemm_t g = gs_points_keyed(&row->key, row->n_lo);
  return work->command->tune.quick ||
         (gs_draft_claim(&work->draft, &row->key, row->n_lo, row->n_hi, done.rows, done.count) &&
          gs_journal_add(&work->journal, &g));
}

static bool measure_all(gs_work_t *work) {
  gs_progress_t progress = gs_progress_begin();
  int rows = gs_table_rows(work->table);
  long budget = work->command->budget;
  bool going = true;
  for (int i = 0; i < rows; i++) {
    char what[128];
    bool spent = budget && gs_seconds() - progress.begun > (double)budget;
    if (!going || gs_stopped || spent) {
      if (spent && going && !gs_stopped)
        gs_say("the budget of %ld s is spent: %d of %d rows are left; %s goes on from here", budget, rows - i,
               rows, work->rest);
      break;
    }
    if (measured_before(work, work->duties[i].row)) {
      work->kept++;
      continue;
    }
    snprintf(what, sizeof what, "row %d of %d; %d won, %d did not", i + 1, rows, work->count[GS_TUNE_WIN],
             i - work->kept - work->count[GS_TUNE_WIN]);
    gs_progress_show(&progress, (double)i / rows, what);
    going = measure(work, &work->duties[i]);
    gs_progress_clear(&progress);
  }
  gs_progress_clear(&progress);
  work->left = rows - work->kept;
  for (int verdict = 0; verdict <= GS_TUNE_NONE; verdict++) work->left -= work->count[verdict];
  return going;
}

/* ---- the tables ---- */

/* The table to measure; an exit status where there is none. sibling: of another model. */
static int find_source(gs_work_t *work, gs_table_t **table, bool *sibling) {
  const gs_command_t *command = work->command;
  const gs_device_t *device = &work->gpu->device;
  gs_choice_t choice = {0};
  if (command->source) {
    int status = gs_named_table(command->source, stderr, &choice.table);
    if (status != GS_EXIT_OK) return GS_EXIT_MACHINE;
    snprintf(choice.source, sizeof choice.source, "%s", command->source);
    const gs_table_header_t *header = gs_table_header(choice.table);
    choice.sibling = strcmp(header->gpu, device->name) != 0 || header->sms != device->sms;
    if (atoi(header->arch + 3) != device->sm) {
      gs_say("%s: made for %s, this is %s (sm_%d), which its kernels are not for: run gemmshim tune",
             command->source, header->arch, device->name, device->sm);
      gs_table_free(choice.table);
      return GS_EXIT_MACHINE;
    }
  } else if (gs_choose_table(device, NULL, NULL, &choice) != GS_OK) {
    gs_say("%s: no table fits %s: name one, or make one with gemmshim tune", choice.source, device->name);
    return GS_EXIT_MACHINE;
  }
  *table = choice.table, *sibling = choice.sibling;
  snprintf(work->name, sizeof work->name, "%s", choice.source);
  return GS_EXIT_OK;
}

static bool make_folders(const char *path) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", path);
  for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
      gs_say("%s: cannot be made: %s; name the table with -o", folder, strerror(errno));
      return false;
    }
    *slash = '/';
  }
  return true;
}

/* A table of another cuBLAS or GPU in the way of the new one is kept under another name. */
static bool clear_way(gs_work_t *work, const char *path, const gs_table_header_t *header) {
  char old[4104];
  gs_table_t *there = NULL;
  if (access(path, F_OK) != 0 || gs_table_load(path, NULL, NULL, &there) != GS_OK)
    return true; /* or refused */
  bool same = gs_same_origin(gs_table_header(there), header), fine = true;
  snprintf(old, sizeof old, "%s.old", path);
  for (int i = 0; !same && fine && i < gs_table_rows(there); i++)
    fine = gs_beside_put(old, gs_table_row(there, i));
  gs_table_free(there);
  if (same || !fine) return fine;
  if (rename(path, old) != 0) {
    gs_say("%s: cannot be kept as %s: %s", path, old, strerror(errno));
    return false;
  }
  gs_say("%s: is of another GPU or cuBLAS; kept as %s", path, old);
  if (!strcmp(path, work->name)) snprintf(work->name, sizeof work->name, "%s", old);
  return true;
}

static bool output_path(const gs_work_t *work, char *path, size_t size) {
  if (work->command->output) return (size_t)snprintf(path, size, "%s", work->command->output) < size;
  if (gs_user_table_path(work->gpu->device.name, path, size)) return make_folders(path);
  gs_say("neither XDG_CONFIG_HOME nor HOME says where your tables are: name the table with -o");
  return false;
}

/* The new table may be what the library, and this command without a table's name, take from now on. */
static void name_rest(gs_work_t *work) {
  static const char built_in[] = "built-in ";
  const gs_command_t *command = work->command;
  const char *name =
      strncmp(work->name, built_in, sizeof built_in - 1) ? work->name : work->name + sizeof built_in - 1;
  bool same = command->source ? !strcmp(command->source, name) : command->output != NULL;
  if (same)
    snprintf(work->rest, sizeof work->rest, "the same command");
  else
    snprintf(work->rest, sizeof work->rest, "gemmshim requalify %s", name);
}

/* What was tried is of this very table. */
static void open_journal(gs_work_t *work) {
  char path[4096];
  snprintf(path, sizeof path, "%.4070s.%016llx", work->draft.path,
           (unsigned long long)gs_table_digest(work->table));
  gs_journal_open(&work->journal, path, &work->draft.header);
}

/* Opens the new table with the rows of the old one that serve here by their margin. */
static bool open_draft(gs_work_t *work, const gs_table_header_t *header, bool sibling) {
  char path[4096];
  if (!output_path(work, path, sizeof path)) return false;
  if (!work->command->tune.quick && !clear_way(work, path, header)) return false;
  name_rest(work);
  if (!gs_draft_open(&work->draft, path, header)) return false;
  open_journal(work);
  bool fine = true;
  for (int i = 0; fine && !sibling && i < gs_table_rows(work->table); i++) {
    const gs_row_t *row = gs_table_row(work->table, i);
    if (gs_row_proven(gs_table_header(work->table), row, header->cublas))
      fine = gs_draft_carry(&work->draft, row);
  }
  return fine && (work->command->tune.quick || !work->draft.count || gs_draft_write(&work->draft));
}

/* ---- the command ---- */

static int requalify(gs_work_t *work, const gs_cublas_t *cublas, bool sibling) {
  gs_table_header_t header = gs_tune_header(work->gpu, cublas);
  gs_reference_t reference;
  gs_pool_t pool = {0};
  int rows = gs_table_rows(work->table);
  if (!work->command->again && gs_same_origin(gs_table_header(work->table), &header)) {
    gs_say("%s: all %d rows were measured on %s with cuBLAS %d.%d.%d: nothing to do (--again measures anew)",
           work->name, rows, header.gpu, header.cublas[0], header.cublas[1], header.cublas[2]);
    return GS_EXIT_OK;
  }
  if (!open_draft(work, &header, sibling)) return GS_EXIT_FALSE;
  if (!gs_reference_open(&reference, work->gpu)) {
    gs_say("%s", work->gpu->fault);
    return GS_EXIT_MACHINE;
  }
  gs_say("%s: %d rows on %s against cuBLAS %d.%d.%d (%s)", work->name, rows, header.gpu, header.cublas[0],
         header.cublas[1], header.cublas[2], cublas->path);
  if (!gs_pool_shipped(&pool, work->gpu->device.sm)) return GS_EXIT_FALSE; /* said */
  work->tune.pool = &pool;
  gs_bench_open(&work->bench, work->gpu, cublas, &reference, 1);
  bool whole = measure_all(work);
  gs_bench_close(&work->bench);
  gs_reference_close(&reference);
  gs_pool_free(&pool);
  gs_journal_close(&work->journal, !work->left && !work->command->tune.quick);
  report(work);
  if (gs_stopped) return 128 + gs_stopped;
  return whole && !work->count[GS_TUNE_WRONG] ? GS_EXIT_OK : GS_EXIT_FALSE;
}

static int run(const gs_command_t *command, gs_gpu_t *gpu) {
  gs_work_t work = {.command = command, .gpu = gpu, .draft = {.lock = -1}, .tune = command->tune};
  gs_calls_t calls = {0};
  gs_cublas_t cublas = {0};
  gs_table_t *table = NULL;
  char fault[512];
  bool sibling = false;
  int status = find_source(&work, &table, &sibling);
  if (status == GS_EXIT_OK && command->calls) {
    gs_calls_read(&calls, command->calls);
    if (!calls.files) status = GS_EXIT_MACHINE; /* said */
  }
  if (status == GS_EXIT_OK && gs_cublas_open(&cublas, gpu, command->cublas, fault, sizeof fault) != GS_OK) {
    gs_say("%s", fault);
    status = GS_EXIT_MACHINE;
  }
  if (status == GS_EXIT_OK) {
    work.table = table;
    work.duties = gs_duties(table, command->calls ? &calls : NULL);
    work.rows = command->json ? cJSON_CreateArray() : NULL;
    status = work.duties ? requalify(&work, &cublas, sibling) : GS_EXIT_FALSE;
    gs_draft_close(&work.draft);
  }
  if (cublas.gpu) gs_cublas_close(&cublas);
  gs_calls_free(&calls);
  free(work.duties);
  gs_table_free(table);
  return status;
}

static int read_command(int argc, char **argv, gs_command_t *command) {
  static const struct option options[] = {{"calls", required_argument, NULL, CALLS},
                                          {"budget", required_argument, NULL, BUDGET},
                                          {"output", required_argument, NULL, 'o'},
                                          {"again", no_argument, NULL, AGAIN},
                                          {"device", required_argument, NULL, DEVICE},
                                          {"cublas", required_argument, NULL, CUBLAS},
                                          {"quick", no_argument, NULL, QUICK},
                                          {"json", no_argument, NULL, JSON},
                                          {"busy-ok", no_argument, NULL, BUSY_OK},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
  for (int c; (c = getopt_long(argc, argv, ":ho:", options, NULL)) != -1;) switch (c) {
    case CALLS:
      command->calls = optarg;
      break;
    case BUDGET:
      if (!gs_read_long(optarg, 1, 1 << 30, &command->budget))
        return gs_usage(argv, "--budget: \"%s\" is not a number of seconds", optarg);
      break;
    case 'o':
      command->output = optarg;
      break;
    case AGAIN:
      command->again = true;
      break;
    case DEVICE:
      if (!gs_read_long(optarg, 0, 1023, &command->device))
        return gs_usage(argv, "--device: \"%s\" is not a number", optarg);
      break;
    case CUBLAS:
      command->cublas = optarg;
      break;
    case QUICK:
      command->tune.quick = true;
      break;
    case JSON:
      command->json = true;
      break;
    case BUSY_OK:
      command->busy_ok = true;
      break;
    case 'h':
      return gs_help(help);
    default:
      return gs_usage_option(argv, c);
    }
  if (optind + 1 < argc) return gs_usage(argv, "\"%s\": one table at a time", argv[optind + 1]);
  command->source = argv[optind];
  return -1;
}

int gs_cmd_requalify(int argc, char **argv) {
  gs_command_t command = {
      .tune = {.split_max = 16, .candidates = GS_TUNE_CANDIDATES, .arrivals = GS_TUNE_ARRIVALS}};
  gs_gpu_t gpu;
  int status = read_command(argc, argv, &command);
  if (status >= 0) return status;
  if (gs_gpu_open(&gpu, (int)command.device) != GS_OK) {
    gs_say("%s", gpu.fault);
    return GS_EXIT_MACHINE;
  }
  if (!command.busy_ok && gs_gpu_busy(&gpu)) {
    gs_gpu_close(&gpu);
    return GS_EXIT_BUSY;
  }
  gs_heed_signals();
  status = run(&command, &gpu);
  gs_gpu_close(&gpu);
  return status;
}
