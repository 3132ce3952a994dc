/* gemmshim compare: the unmodified program without the library, with it switched off, and with it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "compare.h"
#include "metric.h"
#include "program.h"
#include "tools.h"

static const char help[] =
    "usage: gemmshim compare [OPTION...] -- PROGRAM [ARGUMENT...]\n\n"
    "Runs the program off (without gemmshim), pass-through (loaded, GEMMSHIM_OFF=1) and on, once each a "
    "round, in an\n"
    "order drawn anew every round; then prints medians, and the ratios to off with 95% intervals (10,000 "
    "bootstrap\n"
    "resamples of the rounds). Pass-through against off is what being there costs.\n\n"
    "  -n ROUNDS       rounds that count (10; fewer than 5 give no interval)\n"
    "  --warmup N      rounds before them that do not (1)\n"
    "  --metric REGEX  instead of wall time: the number in the first group of the last match in the "
    "program's standard\n"
    "                  output (POSIX extended); higher is better, unless --lower\n"
    "  --higher, --lower  which is better\n"
    "  --seed N        seed of the order and the resamples (drawn and printed)\n"
    "  --handles       reach look-ups by handle too, as gemmshim run --handles does\n"
    "  --json          for programs\n\n"
    "The program's input is empty and its output is shown only when it fails; then, or upon Ctrl-C, the "
    "rounds that\n"
    "were complete are kept and printed.\n\n"
    "exit status: 0; 1 the program failed or was interrupted; 2 bad usage; 3 the library would not get into "
    "it;\n"
    "126 not executable; 127 not found\n"
    "example: gemmshim compare -n 20 --metric 'tokens/s: ([0-9.]+)' -- python3 generate.py\n";

enum { METRIC = 256, HIGHER, LOWER, SEED, JSON, WARMUP, BY_HANDLE };
static const struct option options[] = {
    {"rounds", required_argument, NULL, 'n'},
    {"metric", required_argument, NULL, METRIC},
    {"higher", no_argument, NULL, HIGHER},
    {"lower", no_argument, NULL, LOWER},
    {"seed", required_argument, NULL, SEED},
    {"json", no_argument, NULL, JSON},
    {"warmup", required_argument, NULL, WARMUP},
    {"handles", no_argument, NULL, BY_HANDLE},
    {"help", no_argument, NULL, 'h'},
    {0},
};

const char *const gs_mode_names[GS_MODE_COUNT] = {"off", "pass-through", "on"};

typedef struct {
  char library[PATH_MAX], handles[PATH_MAX], program[PATH_MAX];
  gs_metric_t regex;
  long warmup;
  bool json, by_handle;
  FILE *out, *err; /* of the run in progress */
  double started;
} work_t;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static bool set_mode(const work_t *work, gs_mode_t mode) {
  if (mode == GS_MODE_PASSTHROUGH)
    setenv("GEMMSHIM_OFF", "1", 1);
  else
    unsetenv("GEMMSHIM_OFF");
  if (mode != GS_MODE_OFF)
    return (!work->by_handle || gs_preload_add(work->handles)) && gs_preload_add(work->library);
  gs_preload_remove(work->library);
  if (work->by_handle) gs_preload_remove(work->handles);
  return true;
}

/* The last few kilobytes of what the program printed. */
static void show_output(const char *name, FILE *file) {
  char text[4096];
  long shown = sizeof text;
  fseek(file, 0, SEEK_END);
  if (ftell(file) < shown) shown = ftell(file);
  fseek(file, -shown, SEEK_END);
  size_t length = fread(text, 1, (size_t)shown, file);
  if (!length) return;
  gs_say("its standard %s%s:", name, length == sizeof text ? " (the end of it)" : "");
  fwrite(text, 1, length, stderr);
  if (text[length - 1] != '\n') fputc('\n', stderr);
}

/* On a terminal the progress line is still open. */
static void below_progress(void) {
  if (isatty(STDERR_FILENO)) fputc('\n', stderr);
}

static bool fail(const work_t *work, gs_mode_t mode, const char *why) {
  below_progress();
  gs_say("%s, %s: %s", work->program, gs_mode_names[mode], why);
  show_output("output", work->out);
  show_output("error", work->err);
  return false;
}

static bool interrupted(void) {
  if (!gs_spawn_signal()) return false;
  below_progress();
  gs_say("interrupted by signal %d", gs_spawn_signal());
  return true;
}

/* One run in one mode, with its output in work->out and work->err. */
static bool measure_run(const gs_comparison_t *c, work_t *work, gs_mode_t mode, int input, double *value) {
  char why[128];
  int status = 0;
  gs_spawn_t spawn = {work->program, c->command, input, fileno(work->out), fileno(work->err)};
  if (interrupted() || !set_mode(work, mode)) return false;
  double before = now();
  int error = gs_spawn(&spawn, &status);
  *value = now() - before;
  if (error) return fail(work, mode, strerror(error));
  if (interrupted()) return false;
  int code = gs_spawn_exit(status);
  snprintf(why, sizeof why, "exit status %d%s", code, code > 128 ? " (128 + signal)" : "");
  if (code) return fail(work, mode, why);
  const char *wrong = c->metric ? gs_metric_read(&work->regex, work->out, value) : NULL;
  return wrong ? fail(work, mode, wrong) : true;
}

/* Gone when closed; not the program's to see but as its output. */
static FILE *temporary(void) {
  FILE *file = tmpfile();
  if (file) fcntl(fileno(file), F_SETFD, FD_CLOEXEC);
  return file;
}

static bool measure(const gs_comparison_t *c, work_t *work, gs_mode_t mode, double *value) {
  int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  work->out = temporary(), work->err = temporary();
  bool fine = input >= 0 && work->out && work->err;
  if (fine)
    fine = measure_run(c, work, mode, input, value);
  else
    gs_say("no temporary file: %s", strerror(errno));
  if (work->out) fclose(work->out);
  if (work->err) fclose(work->err);
  if (input >= 0) close(input);
  return fine;
}

/* One line that is overwritten on a terminal; a line a round elsewhere. */
static void progress(const work_t *work, long done, long all) {
  long runs = all * GS_MODE_COUNT;
  double left = (now() - work->started) / (double)done * (double)(runs - done);
  bool terminal = isatty(STDERR_FILENO);
  if (!terminal && done % GS_MODE_COUNT) return;
  fprintf(stderr, "%sgemmshim: run %ld of %ld (%ld rounds, %ld of them warm-up), %ld%%, %.0f s left%s",
          terminal ? "\r" : "", done, runs, all, work->warmup, 100 * done / runs, left,
          terminal ? "\033[K" : "\n");
  if (terminal && done == runs) fputc('\n', stderr);
}

/* Rounds until all are done or one fails; c->done counts those that are complete. */
static bool measure_all(gs_comparison_t *c, work_t *work, long rounds) {
  gs_random_t random = {c->seed};
  long all = rounds + work->warmup;
  work->started = now();
  for (long round = 0; round < all; round++) {
    int order[GS_MODE_COUNT] = {GS_MODE_OFF, GS_MODE_PASSTHROUGH, GS_MODE_ON};
    double values[GS_MODE_COUNT];
    gs_random_shuffle(&random, order, GS_MODE_COUNT);
    for (int i = 0; i < GS_MODE_COUNT; i++) {
      if (!measure(c, work, (gs_mode_t)order[i], &values[order[i]])) return false;
      progress(work, round * GS_MODE_COUNT + i + 1, all);
    }
    if (round < work->warmup) continue;
    for (int mode = 0; mode < GS_MODE_COUNT; mode++) c->values[mode][c->done] = values[mode];
    c->done++;
  }
  return true;
}

static int compare(gs_comparison_t *c, work_t *work, long rounds) {
  gs_program_t program;
  int status = gs_find_program_said(c->command[0], work->program, sizeof work->program);
  if (status) return status;
  if (!gs_library_path(GS_LIBRARY, work->library, sizeof work->library) ||
      (work->by_handle && !gs_library_path(GS_HANDLES, work->handles, sizeof work->handles)))
    return GS_EXIT_MACHINE;
  gs_program_check(work->program, &program);
  if (program.verdict != GS_PROGRAM_FINE) gs_say("%s", program.why);
  if (program.verdict == GS_PROGRAM_REFUSED) return GS_EXIT_MACHINE;
  for (int mode = 0; mode < GS_MODE_COUNT; mode++)
    if (!(c->values[mode] = calloc((size_t)rounds, sizeof(double)))) abort();
  c->complete = measure_all(c, work, rounds);
  work->json ? gs_comparison_json(c) : gs_comparison_text(c);
  for (int mode = 0; mode < GS_MODE_COUNT; mode++) free(c->values[mode]);
  return c->complete ? GS_EXIT_OK : GS_EXIT_FALSE;
}

int gs_cmd_compare(int argc, char **argv) {
  gs_comparison_t c = {0};
  work_t work = {.warmup = 1};
  long rounds = 10, seed = -1;
  int better = 0;
  for (int o; (o = getopt_long(argc, argv, "+:hn:", options, NULL)) != -1;) switch (o) {
    case 'n':
      if (!gs_read_long(optarg, 1, 100000, &rounds))
        return gs_usage(argv, "-n %s: not a number from 1 to 100000", optarg);
      break;
    case WARMUP:
      if (!gs_read_long(optarg, 0, 1000, &work.warmup))
        return gs_usage(argv, "--warmup %s: not a number from 0 to 1000", optarg);
      break;
    case SEED:
      if (!gs_read_long(optarg, 0, UINT32_MAX, &seed))
        return gs_usage(argv, "--seed %s: not a number from 0 to 4294967295", optarg);
      break;
    case METRIC:
      c.metric = optarg;
      break;
    case HIGHER:
    case LOWER:
      if (better && better != o) return gs_usage(argv, "--higher and --lower exclude each other");
      better = o;
      break;
    case JSON:
      work.json = true;
      break;
    case BY_HANDLE:
      work.by_handle = true;
      break;
    case 'h':
      return gs_help(help);
    default:
      return gs_usage_option(argv, o);
    }
  if (optind == argc || !*argv[optind]) return gs_usage(argv, "no program given");
  if (better == HIGHER && !c.metric)
    return gs_usage(argv, "--higher: more wall time is not better; use --metric");
  const char *why = c.metric ? gs_metric_compile(&work.regex, c.metric) : NULL;
  if (why) return gs_usage(argv, "--metric %s: %s", c.metric, why);
  if (seed < 0 && getrandom(&c.seed, 4, 0) != 4) c.seed = (uint64_t)time(NULL);
  if (seed >= 0) c.seed = (uint64_t)seed;
  c.higher_is_better = better ? better == HIGHER : c.metric != NULL;
  c.command = argv + optind;
  int status = compare(&c, &work, rounds);
  if (c.metric) gs_metric_free(&work.regex);
  return status;
}
