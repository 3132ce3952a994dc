/* gemmshim run: runs a program under the library, then tells what it called. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <gnu/libc-version.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advice.h"
#include "child.h"
#include "machine.h"
#include "output.h"
#include "program.h"
#include "report_formats.h"
#include "scratch.h"
#include "tools.h"

static const char help[] =
    "usage: gemmshim run [OPTION...] -- PROGRAM [ARGUMENT...]\n\n"
    "Runs the program with gemmshim preloaded, then says what its matrix products could gain (the ceiling), "
    "which\n"
    "of them gemmshim computed, and why not the others; writes them to a .calls file for `gemmshim tune`.\n\n"
    "  -o FILE        the .calls file (PROGRAM.calls in this folder)\n"
    "  --sample N     time 1 call in N on the GPU; 0: none (GEMMSHIM_SAMPLE, else 16)\n"
    "  --table FILE   use this table of kernels\n"
    "  --handles      also reach programs that look cuBLAS up by handle (JAX, TensorFlow, CUDA.jl, ctypes): "
    "hooks dlsym\n"
    "  --no-replays   do not hook the functions that launch CUDA graphs: how often captured products ran is "
    "then "
    "unknown\n"
    "  --keep FOLDER  leave the histograms there, one a process, for `gemmshim report`; new or empty\n\n"
    "The ceiling is 1 / (1 - share), share being the part of the time from the first to the last product "
    "that\n"
    "products which gemmshim can compute take: calls x mean sampled GPU time, never sampled shapes at the "
    "mean.\n"
    "Products in CUDA graphs count as often as the graphs are launched, where that can be seen: not where "
    "the CUDA "
    "runtime\n"
    "is linked statically, nor where graphs are launched through looked-up functions (JAX).\n\n"
    "exit status: the program's (128 + signal); before it starts: 2 bad usage, 3 the library would not get "
    "into it,\n"
    "126 not executable, 127 not found\n"
    "example: gemmshim run -o app.calls -- python3 app.py\n";

enum { SAMPLE = 256, TABLE, KEEP, BY_HANDLE, NO_REPLAYS };
static const struct option options[] = {
    {"output", required_argument, NULL, 'o'},  {"sample", required_argument, NULL, SAMPLE},
    {"table", required_argument, NULL, TABLE}, {"keep", required_argument, NULL, KEEP},
    {"handles", no_argument, NULL, BY_HANDLE}, {"no-replays", no_argument, NULL, NO_REPLAYS},
    {"help", no_argument, NULL, 'h'},          {0},
};

typedef struct {
  char output[PATH_MAX], folder[PATH_MAX], library[PATH_MAX], handles[PATH_MAX], graphs[PATH_MAX],
      program[PATH_MAX];
  bool by_handle, no_replays;
  const char *sample, *table, *keep;
  char **command;
} run_t;

/* Before anything is preloaded: what would keep the library out, or useless. */
static int check(run_t *run) {
  gs_program_t program;
  int status = gs_find_program_said(run->command[0], run->program, sizeof run->program);
  if (status) return status;
  if (!gs_library_path(GS_LIBRARY, run->library, sizeof run->library)) return GS_EXIT_MACHINE;
  if (run->by_handle && !gs_library_path(GS_HANDLES, run->handles, sizeof run->handles))
    return GS_EXIT_MACHINE;
  if (!run->no_replays && !gs_library_path(GS_GRAPHS, run->graphs, sizeof run->graphs))
    return GS_EXIT_MACHINE;
  gs_program_check(run->program, &program);
  if (program.verdict != GS_PROGRAM_FINE) gs_say("%s", program.why);
  if (program.verdict == GS_PROGRAM_REFUSED) return GS_EXIT_MACHINE;
  if (!gs_machine_glibc_fits()) {
    gs_say("glibc %s: the library needs %d.%d or newer", gnu_get_libc_version(), GS_GLIBC_MAJOR,
           GS_GLIBC_MINOR);
    return GS_EXIT_MACHINE;
  }
  int driver = gs_machine_driver();
  if (!driver)
    gs_say("warning: no NVIDIA driver (libcuda.so.1) here: every product will be forwarded");
  else if (!gs_machine_driver_fits(driver))
    gs_say("warning: the driver is of CUDA %d.%d, the kernels need %d.0 or newer: every product will be "
           "forwarded",
           driver / 1000, driver % 1000 / 10, gs_machine_toolkit() / 1000);
  return gs_output_check(run->output) ? 0 : GS_EXIT_MACHINE;
}

static bool is_empty(const char *folder) {
  DIR *listing = opendir(folder);
  int names = 0;
  while (listing && readdir(listing)) names++;
  if (listing) closedir(listing);
  return names == 2; /* . and .. */
}

/* The histograms' folder: a fresh one of our own, unless the user wants to keep them. */
static bool make_folder(run_t *run) {
  if (!run->keep) return gs_scratch_make(run->folder, sizeof run->folder, false);
  if (mkdir(run->keep, 0777) != 0 && (errno != EEXIST || !is_empty(run->keep))) {
    gs_say("--keep %s: %s", run->keep,
           errno == EEXIST ? "must be a new or an empty folder" : strerror(errno));
    return false;
  }
  if (realpath(run->keep, run->folder)) return true;
  gs_say("--keep %s: %s", run->keep, strerror(errno));
  return false;
}

static bool set_environment(const run_t *run) {
  char table[PATH_MAX];
  if (run->table && (!realpath(run->table, table) || access(table, R_OK) != 0)) {
    gs_say("--table %s: %s", run->table, strerror(errno));
    return false;
  }
  if (run->table) setenv("GEMMSHIM_TABLE", table, 1);
  setenv("GEMMSHIM_CALLS", run->folder, 1);
  setenv("GEMMSHIM_SAMPLE", run->sample ? run->sample : "16", run->sample != NULL);
  const char *off = getenv("GEMMSHIM_OFF");
  if (off && !strcmp(off, "1")) gs_say("warning: GEMMSHIM_OFF=1 is set: nothing will be counted");
  return (run->no_replays || gs_preload_add(run->graphs)) &&
         (!run->by_handle || gs_preload_add(run->handles)) && gs_preload_add(run->library);
}

static void say_nothing_seen(const run_t *run) {
  gs_say("0 calls seen; the likely causes:");
  gs_say("  the program did not multiply on a GPU, or not through cuBLAS (fused, fp8 or quantised kernels)");
  if (!run->by_handle)
    gs_say("  it looks cuBLAS up by handle (JAX, TensorFlow, CUDA.jl): try gemmshim run --handles");
  gs_say("  it holds cuBLAS statically, or loads it with RTLD_DEEPBIND: out of a preload's reach");
  gs_say("  it clears LD_PRELOAD, or its work is done by processes that it did not start (containers, srun)");
  gs_say("find out: gemmshim doctor -- %s", run->command[0]);
}

/* What to do next, by the commonest reason for forwarding. */
static void say_next(const run_t *run, const gs_totals_t *totals) {
  static const struct {
    gs_reason_t reason;
    bool takes_calls;
    const char *advice;
  } advice[] = {
      {GS_REASON_NO_ROW, true, "gemmshim tune "},
      {GS_REASON_NO_TABLE, true, "gemmshim tune "},
      {GS_REASON_NOT_READY, false, "gemmshim doctor -- "},
      {GS_REASON_LOAD_FAILED, false, "gemmshim doctor -- "},
      {GS_REASON_LAUNCH_FAILED, false, "gemmshim doctor -- "},
  };
  gs_reason_t order[GS_REASON_COUNT];
  int reasons = gs_reasons_by_count(totals, order);
  if (reasons)
    for (size_t i = 0; i < sizeof advice / sizeof advice[0]; i++)
      if (advice[i].reason == order[0]) {
        gs_say("next: %s%s", advice[i].advice, advice[i].takes_calls ? run->output : run->command[0]);
        return;
      }
  if (totals->served)
    gs_say("next, the gain end to end: gemmshim compare -- %s ...", run->command[0]);
  else if (reasons)
    gs_say("to do: %s", gs_reason_advice(order[0]));
}

static void say_summary(const run_t *run, const gs_calls_t *set) {
  gs_totals_t totals = gs_totals(set);
  gs_ceiling_t ceiling = gs_ceiling(&totals, set->processes);
  char line[512];
  gs_ceiling_format(line, sizeof line, &ceiling, &totals);
  gs_say("%s", line);
  if (!totals.calls) {
    say_nothing_seen(run);
    return;
  }
  gs_totals_print(stderr, "gemmshim: ", &totals, 3);
  gs_say("the top shapes (share of GPU time, calls, mean us):");
  gs_report_shapes(stderr, "gemmshim: ", set, 3);
  if (!ceiling.known || ceiling.value > GS_CEILING_WORTHLESS) say_next(run, &totals);
}

static bool write_calls(const run_t *run, const gs_calls_t *set) {
  gs_output_t output;
  if (!gs_output_open(&output, run->output)) return false;
  gs_calls_write(output.file, set);
  return gs_output_commit(&output);
}

static void finish(const run_t *run) {
  gs_calls_t set = {0};
  if (!is_empty(run->folder)) gs_calls_read(&set, run->folder);
  gs_calls_sort(&set, GS_BY_TIME);
  bool kept = run->keep != NULL, written = set.calls && write_calls(run, &set);
  if (set.calls && !written && !kept) {
    gs_say("the histograms are kept in %s: gemmshim report --calls FILE %s", run->folder, run->folder);
    kept = true;
  }
  say_summary(run, &set);
  if (written) gs_say("written: %s", run->output);
  if (!kept) gs_scratch_remove(run->folder);
  gs_calls_free(&set);
}

static int run_command(run_t *run) {
  int status = check(run), wait_status = 0;
  if (status) return status;
  if (!make_folder(run)) return GS_EXIT_MACHINE;
  if (!set_environment(run)) {
    if (!run->keep) gs_scratch_remove(run->folder);
    return GS_EXIT_MACHINE;
  }
  gs_spawn_t spawn = {run->program, run->command, -1, -1, -1};
  int error = gs_spawn(&spawn, &wait_status);
  if (error) {
    gs_say("%s: cannot be run: %s", run->program, strerror(error));
    if (!run->keep) gs_scratch_remove(run->folder);
    return GS_EXIT_NOT_EXECUTABLE;
  }
  finish(run);
  return gs_spawn_exit(wait_status);
}

int gs_cmd_run(int argc, char **argv) {
  run_t run = {0};
  const char *output = NULL;
  long sample;
  for (int c; (c = getopt_long(argc, argv, "+:ho:", options, NULL)) != -1;) switch (c) {
    case 'o':
      output = optarg;
      break;
    case SAMPLE:
      if (!gs_read_long(optarg, 0, 1000000, &sample))
        return gs_usage(argv, "--sample %s: not a number from 0 to 1000000", optarg);
      run.sample = optarg;
      break;
    case TABLE:
      run.table = optarg;
      break;
    case KEEP:
      run.keep = optarg;
      break;
    case BY_HANDLE:
      run.by_handle = true;
      break;
    case NO_REPLAYS:
      run.no_replays = true;
      break;
    case 'h':
      return gs_help(help);
    default:
      return gs_usage_option(argv, c);
    }
  if (optind == argc || !*argv[optind]) return gs_usage(argv, "no program given");
  run.command = argv + optind;
  char *copy = strdup(run.command[0]);
  int length = output ? snprintf(run.output, sizeof run.output, "%s", output)
                      : snprintf(run.output, sizeof run.output, "%s.calls", basename(copy));
  free(copy);
  if ((size_t)length >= sizeof run.output) return gs_usage(argv, "the output's path is too long");
  return run_command(&run);
}
