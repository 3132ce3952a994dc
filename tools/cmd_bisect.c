/* gemmshim bisect: which rows of the table make a check fail. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bisect.h"
#include "child.h"
#include "choice.h"
#include "json.h"
#include "machine.h"
#include "program.h"
#include "tools.h"

static const char help[] =
    "usage: gemmshim bisect [OPTION...] -- CHECK [ARGUMENT...]\n\n"
    "Runs the check under gemmshim again and again, each time with fewer rows of the table, and tells which "
    "rows make\n"
    "it fail. A check is a program that exits with 0 where the result is right. First it must pass without "
    "any "
    "row, and\n"
    "fail with all of them; one row among N is found in about 2 log2 N runs, rows that fail only together "
    "are "
    "found too.\n\n"
    "  --table FILE   the table (GEMMSHIM_TABLE, else the one that this GPU would get)\n"
    "  --runs N       how often the check must pass to count as passed (1), for a fault that comes and goes\n"
    "  --handles      reach look-ups by handle too, as gemmshim run --handles does\n"
    "  --verbose      show what the check prints\n"
    "  --json         for programs\n\n"
    "Ctrl-C ends it; the rows that are still under suspicion are printed.\n\n"
    "exit status: 0 rows were found; 1 no row's doing, or stopped; 2 bad usage; 3 no table, or the library "
    "would "
    "not\n"
    "get into it; 126 not executable; 127 not found\n"
    "example: gemmshim bisect -- sh -c 'python3 app.py | grep -q expected'\n";

enum { TABLE = 256, RUNS, BY_HANDLE, VERBOSE, JSON };
static const struct option options[] = {
    {"table", required_argument, NULL, TABLE},
    {"runs", required_argument, NULL, RUNS},
    {"handles", no_argument, NULL, BY_HANDLE},
    {"verbose", no_argument, NULL, VERBOSE},
    {"json", no_argument, NULL, JSON},
    {"help", no_argument, NULL, 'h'},
    {0},
};

typedef struct {
  char **command;
  char program[PATH_MAX], library[PATH_MAX], handles[PATH_MAX];
  const char *table_path;
  gs_choice_t choice;
  int *rows, count; /* under suspicion: indices in the table */
  int *left;        /* those not yet found guilty, and room for them */
  long runs;
  int tries;
  bool by_handle, verbose, json, complete;
  const char *why; /* static; "" where rows were found */
  cJSON *culprits;
} bisect_t;

static void say_fault(void *context, const char *line) {
  (void)context;
  gs_say("%s", line);
}

static int choose(bisect_t *b) {
  const char *path = b->table_path ? b->table_path : getenv("GEMMSHIM_TABLE");
  gs_device_t device;
  if (path && *path) {
    char absolute[PATH_MAX];
    if (!realpath(path, absolute)) return gs_say("%s: %s", path, strerror(errno)), GS_EXIT_MACHINE;
    setenv("GEMMSHIM_TABLE", absolute, 1);
    snprintf(b->choice.source, sizeof b->choice.source, "%s", path);
    return gs_table_load(absolute, say_fault, NULL, &b->choice.table) == GS_OK ? 0 : GS_EXIT_MACHINE;
  }
  const char *why = gs_machine_driver() ? gs_machine_init() : "no libcuda.so.1";
  if (!why && gs_device_describe(0, &device) != GS_OK) why = "it cannot be asked";
  if (why) return gs_say("no GPU to choose a table for (%s): name one, --table FILE", why), GS_EXIT_MACHINE;
  if (gs_choose_table(&device, say_fault, NULL, &b->choice) == GS_OK) return 0;
  gs_say("%s has no table: nothing is served, so no row is to blame", device.name);
  return GS_EXIT_MACHINE;
}

static int prepare(bisect_t *b) {
  gs_program_t program;
  int status = gs_find_program_said(b->command[0], b->program, sizeof b->program);
  if (status) return status;
  gs_program_check(b->program, &program);
  if (program.verdict != GS_PROGRAM_FINE) gs_say("%s", program.why);
  if (program.verdict == GS_PROGRAM_REFUSED) return GS_EXIT_MACHINE;
  if (!gs_library_path(GS_LIBRARY, b->library, sizeof b->library)) return GS_EXIT_MACHINE;
  if (b->by_handle && !gs_library_path(GS_HANDLES, b->handles, sizeof b->handles)) return GS_EXIT_MACHINE;
  if ((status = choose(b))) return status;
  if (b->by_handle && !gs_preload_add(b->handles)) return GS_EXIT_MACHINE;
  return gs_preload_add(b->library) ? 0 : GS_EXIT_MACHINE;
}

static int line_of(const bisect_t *b, int row) {
  return gs_table_row(b->choice.table, row)->line;
}

static int by_line(const void *x, const void *y, void *context) {
  return line_of(context, *(const int *)x) - line_of(context, *(const int *)y);
}

/* For GEMMSHIM_ROWS: "12,20-31"; line 0 is no row's. */
static char *list_of(bisect_t *b, const int *rows, int count) {
  int *sorted = malloc((size_t)(count + 1) * sizeof *sorted);
  char *text;
  size_t size;
  FILE *list = open_memstream(&text, &size);
  if (!sorted || !list) abort();
  if (count) memcpy(sorted, rows, (size_t)count * sizeof *sorted);
  qsort_r(sorted, (size_t)count, sizeof *sorted, by_line, b);
  if (!count) fputs("0", list);
  for (int i = 0, end; i < count; i = end + 1) {
    for (end = i; end + 1 < count && line_of(b, sorted[end + 1]) == line_of(b, sorted[end]) + 1;) end++;
    fprintf(list, end > i ? "%s%d-%d" : "%s%d", i ? "," : "", line_of(b, sorted[i]), line_of(b, sorted[end]));
  }
  fclose(list);
  free(sorted);
  return text;
}

static bool run_once(const bisect_t *b, int *status) {
  int nowhere = b->verbose ? -1 : open("/dev/null", O_RDWR | O_CLOEXEC), wait_status = 0;
  /* What the check prints is no answer of ours: with --verbose it goes to stderr. */
  gs_spawn_t spawn = {b->program, b->command, nowhere, b->verbose ? STDERR_FILENO : nowhere, nowhere};
  int error = gs_spawn(&spawn, &wait_status);
  if (nowhere >= 0) close(nowhere);
  if (error) gs_say("%s: cannot be run: %s", b->program, strerror(error));
  *status = gs_spawn_exit(wait_status);
  return !error && !gs_spawn_signal();
}

static gs_outcome_t try_rows(void *context, const int *rows, int count) {
  bisect_t *b = context;
  char *list = list_of(b, rows, count);
  int status = 0;
  setenv("GEMMSHIM_ROWS", list, 1);
  free(list);
  b->tries++;
  for (long run = 0; run < b->runs && status == 0; run++)
    if (!run_once(b, &status)) return GS_STOPPED;
  gs_say("run %d: %d rows: %s", b->tries, count, status ? "fails" : "passes");
  return status ? GS_FAILS : GS_PASSES;
}

/* ---- what was found ---- */

static void text_of(const bisect_t *b, int row, char *text, size_t size) {
  gs_row_format(text, size, gs_table_row(b->choice.table, row));
  for (char *c = text; *c; c++)
    if (*c == '\t') *c = ' ';
}

static void add_culprits(bisect_t *b, int *rows, int count) {
  cJSON *group = cJSON_CreateArray();
  qsort_r(rows, (size_t)count, sizeof *rows, by_line, b);
  for (int i = 0; i < count; i++) {
    char text[512];
    text_of(b, rows[i], text, sizeof text);
    cJSON *row = cJSON_CreateObject();
    cJSON_AddNumberToObject(row, "line", line_of(b, rows[i]));
    cJSON_AddStringToObject(row, "row", text);
    cJSON_AddItemToArray(group, row);
  }
  cJSON_AddItemToArray(b->culprits, group);
}

static void drop(bisect_t *b, const int *guilty, int count) {
  int kept = 0;
  for (int i = 0; i < b->count; i++) {
    bool found = false;
    for (int k = 0; k < count; k++) found |= b->rows[i] == guilty[k];
    if (!found) b->rows[kept++] = b->rows[i];
  }
  b->count = kept;
}

/* One group of rows after another, until the check passes with those that are left. */
static void find_all(bisect_t *b) {
  gs_outcome_t outcome = try_rows(b, NULL, 0);
  b->why = outcome == GS_FAILS ? "the check fails without any row too: no row's doing" : "stopped";
  if (outcome != GS_PASSES) return;
  while ((outcome = try_rows(b, b->rows, b->count)) == GS_FAILS) {
    int count = b->count;
    memcpy(b->left, b->rows, (size_t)count * sizeof *b->left);
    b->complete = gs_bisect(b->left, &count, try_rows, b);
    add_culprits(b, b->left, count);
    drop(b, b->left, count);
    if (!b->complete || !b->count) break;
  }
  b->complete = outcome == GS_PASSES || (outcome == GS_FAILS && b->complete);
  b->why = !b->complete ? "stopped"
           : cJSON_GetArraySize(b->culprits) > 0
               ? ""
               : "the check passes with all rows: nothing to find (--runs N, "
                 "where it fails now and then)";
}

static void print_text(const bisect_t *b) {
  const cJSON *group, *row;
  cJSON_ArrayForEach(group, b->culprits) {
    int together = cJSON_GetArraySize(group);
    if (together > 1)
      printf(b->complete ? "%d rows that fail only together:\n" : "among these %d:\n", together);
    cJSON_ArrayForEach(row, group)
        printf("%s:%d: %s\n", b->choice.source, cJSON_GetObjectItem(row, "line")->valueint,
               cJSON_GetObjectItem(row, "row")->valuestring);
  }
  if (*b->why) gs_say("%s", b->why);
  if (b->complete && !*b->why)
    gs_say("delete these lines from the table%s; please report them with gemmshim doctor --bundle",
           strncmp(b->choice.source, "built-in ", 9)
               ? ""
               : " (gemmshim table show prints it, for one of your own)");
}

static void print_json(bisect_t *b) {
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "table", b->choice.source);
  cJSON_AddNumberToObject(root, "rows", gs_table_rows(b->choice.table));
  cJSON_AddNumberToObject(root, "runs", b->tries);
  cJSON_AddBoolToObject(root, "complete", b->complete);
  cJSON_AddStringToObject(root, "why", b->why);
  cJSON_AddItemToObject(root, "culprits", b->culprits);
  b->culprits = NULL;
  gs_json_print(root);
}

static int bisect(bisect_t *b) {
  int status = prepare(b);
  if (status) return status;
  b->count = gs_table_rows(b->choice.table);
  b->rows = calloc((size_t)b->count + 1, sizeof *b->rows);
  b->left = calloc((size_t)b->count + 1, sizeof *b->left);
  b->culprits = cJSON_CreateArray();
  if (!b->rows || !b->left || !b->culprits) abort();
  for (int i = 0; i < b->count; i++) b->rows[i] = i;
  gs_say("%d rows of %s", b->count, b->choice.source);
  find_all(b);
  status = b->complete && cJSON_GetArraySize(b->culprits) > 0 ? GS_EXIT_OK : GS_EXIT_FALSE;
  b->json ? print_json(b) : print_text(b);
  cJSON_Delete(b->culprits);
  gs_table_free(b->choice.table);
  free(b->rows), free(b->left);
  return status;
}

int gs_cmd_bisect(int argc, char **argv) {
  bisect_t b = {.runs = 1, .why = ""};
  for (int c; (c = getopt_long(argc, argv, "+:h", options, NULL)) != -1;) switch (c) {
    case TABLE:
      b.table_path = optarg;
      break;
    case RUNS:
      if (!gs_read_long(optarg, 1, 1000000, &b.runs))
        return gs_usage(argv, "--runs %s: not a number from 1 to 1000000", optarg);
      break;
    case BY_HANDLE:
      b.by_handle = true;
      break;
    case VERBOSE:
      b.verbose = true;
      break;
    case JSON:
      b.json = true;
      break;
    case 'h':
      return gs_help(help);
    default:
      return gs_usage_option(argv, c);
    }
  if (optind == argc || !*argv[optind]) return gs_usage(argv, "no check given");
  b.command = argv + optind;
  return bisect(&b);
}
