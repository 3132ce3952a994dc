/* gemmshim report: merges histograms and .calls files and shows them. */
#include <getopt.h>
#include <limits.h>
#include <string.h>

#include "output.h"
#include "report_formats.h"
#include "tools.h"

static const char help[] =
    "usage: gemmshim report [OPTION...] FILE|FOLDER...\n\n"
    "Merges histograms (a folder: every .gshist file in it) and .calls files, and shows which shapes were "
    "called,\n"
    "how often, who computed them, and why. Of products captured into CUDA graphs it shows how many replays "
    "ran, where "
    "that was seen\n"
    "(gemmshim run, a dynamically linked CUDA runtime): else \"unknown\", or \"at least\".\n\n"
    "  --by time|count   order of the shapes (time, where any was sampled)\n"
    "  --top N           show at most N shapes (text: 20; JSON, CSV: all)\n"
    "  --json, --csv     for programs\n"
    "  --prometheus      counters by verdict and reason, as text for Prometheus (node_exporter's textfile "
    "folder)\n"
    "  --calls FILE      write the merged set as a .calls file, for `gemmshim tune`\n"
    "  --plot FILE.png   draw the top shapes (needs gnuplot)\n\n"
    "exit status: 0; 1 when a file could not be read (the others are shown) or written; 2 bad usage\n"
    "example: gemmshim report --by count --top 10 app.calls\n";

enum { BY = 256, TOP, JSON, CSV, PROMETHEUS, CALLS, PLOT };
static const struct option options[] = {
    {"by", required_argument, NULL, BY},
    {"top", required_argument, NULL, TOP},
    {"json", no_argument, NULL, JSON},
    {"csv", no_argument, NULL, CSV},
    {"prometheus", no_argument, NULL, PROMETHEUS},
    {"calls", required_argument, NULL, CALLS},
    {"plot", required_argument, NULL, PLOT},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static bool write_calls(const gs_calls_t *set, const char *path) {
  gs_output_t output;
  if (!gs_output_open(&output, path)) return false;
  gs_calls_write(output.file, set);
  return gs_output_commit(&output);
}

static void print(const gs_calls_t *set, int format, long top) {
  int shown = top ? (int)top : format ? INT_MAX : 20;
  if (format == JSON)
    gs_report_json(set, shown);
  else if (format == CSV)
    gs_report_csv(set, shown);
  else if (format == PROMETHEUS)
    gs_report_prometheus(set);
  else
    gs_report_text(set, shown);
}

int gs_cmd_report(int argc, char **argv) {
  const char *calls = NULL, *plot = NULL, *by = "time";
  int format = 0;
  long top = 0;
  for (int c; (c = getopt_long(argc, argv, ":h", options, NULL)) != -1;) switch (c) {
    case BY:
      by = optarg;
      break;
    case TOP:
      if (!gs_read_long(optarg, 1, INT_MAX, &top))
        return gs_usage(argv, "--top %s: not a number of at least 1", optarg);
      break;
    case JSON:
    case CSV:
    case PROMETHEUS:
      if (format && format != c) return gs_usage(argv, "--json, --csv and --prometheus exclude each other");
      format = c;
      break;
    case CALLS:
      calls = optarg;
      break;
    case PLOT:
      plot = optarg;
      break;
    case 'h':
      return gs_help(help);
    default:
      return gs_usage_option(argv, c);
    }
  if (strcmp(by, "time") && strcmp(by, "count")) return gs_usage(argv, "--by %s: time or count", by);
  if (optind == argc) return gs_usage(argv, "no histogram, .calls file or folder given");
  if ((calls && !gs_output_check(calls)) || (plot && !gs_output_check(plot))) return GS_EXIT_FALSE;

  gs_calls_t set = {0};
  for (int i = optind; i < argc; i++) gs_calls_read(&set, argv[i]);
  gs_calls_sort(&set, strcmp(by, "time") ? GS_BY_COUNT : GS_BY_TIME);
  bool fine = set.faults == 0;
  if (set.calls || set.files || format) print(&set, format, top);
  if (calls && !write_calls(&set, calls)) fine = false;
  if (plot && !gs_report_plot(&set, top ? (int)top : 20, plot)) fine = false;
  gs_calls_free(&set);
  return fine ? GS_EXIT_OK : GS_EXIT_FALSE;
}
