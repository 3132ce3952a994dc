#define _GNU_SOURCE
#include "bench_run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "bench_file.h"
#include "bench_product.h"
#include "busy.h"
#include "progress.h"
#include "tools.h"

typedef struct {
  const gs_bench_options_t *options;
  gs_measure_t measure;
  gs_product_t *products;
  int count, at_fd;
  gs_bench_set_t done; /* what the output has */
  gs_progress_t progress;
  double best, worst; /* speed-ups of this run */
} run_t;

static volatile sig_atomic_t stopped;
static void stop(int number) {
  stopped = number;
}

/* ---- what to measure ---- */

static void gather(run_t *run) {
  const gs_points_t *points = &run->options->points;
  for (int i = 0; i < points->count; i++) {
    const gs_gemm_t *g = &points->items[i];
    gs_layout_t layout = gs_layout_of(g), other = layout == GS_LAYOUT_NN ? GS_LAYOUT_TN : GS_LAYOUT_NN;
    int at = run->count - 1;
    while (at >= 0 && !(run->products[at].of[other] && !run->products[at].of[layout] &&
                        gs_gemm_turned(run->products[at].of[other], g)))
      at--;
    if (at < 0) at = run->count++;
    run->products[at].of[layout] = g;
  }
}

/* In random order, so that what a budget cuts off is a sample too. */
static bool choose(run_t *run) {
  int room = run->options->points.count;
  run->products = calloc((size_t)room, sizeof *run->products);
  gs_product_t *all = calloc((size_t)room, sizeof *all);
  int *order = calloc((size_t)room, sizeof *order);
  bool chosen = run->products && all && order;
  if (chosen) {
    gs_random_t random = {(uint64_t)run->options->seed};
    gather(run);
    for (int i = 0; i < run->count; i++) order[i] = i, all[i] = run->products[i];
    gs_random_shuffle(&random, order, (size_t)run->count);
    for (int i = 0; i < run->count; i++) run->products[i] = all[order[i]];
    if (run->options->sample && run->count > run->options->sample) run->count = (int)run->options->sample;
  }
  free(all), free(order);
  return chosen;
}

static const gs_gemm_t *name_of(const gs_product_t *product) {
  return product->of[product->of[GS_LAYOUT_NN] ? GS_LAYOUT_NN : GS_LAYOUT_TN];
}

/* ---- the file's header ---- */

static void driver_version(char *text, size_t size) {
  FILE *file = fopen("/sys/module/nvidia/version", "re");
  snprintf(text, size, "unknown");
  if (file && fgets(text, (int)size, file)) text[strcspn(text, "\n")] = '\0';
  if (file) fclose(file);
}

static char *describe(const run_t *run) {
  const gs_bench_options_t *o = run->options;
  const gs_gpu_t *gpu = run->measure.bench.gpu;
  const gs_cublas_t *cublas = run->measure.bench.cublas;
  const char *table = run->measure.door.counts->table;
  char driver[64], clocks[64] = "", *text;
  driver_version(driver, sizeof driver);
  for (int c = 0; c < GS_CLOCK_COUNT; c++)
    if (o->clocks[c]) strcat(strcat(clocks, *clocks ? " " : ""), gs_clock_kind_names[c]);
  if (asprintf(&text,
               "# gpu: %s\n# driver: %s\n# cublas: %d.%d.%d\n# table: %s\n"
               "# clocks: %s; %ld rounds at most; server: Poisson arrivals, %ld a second\n",
               gpu->device.name, driver, cublas->version[0], cublas->version[1], cublas->version[2],
               *table ? table : "none", clocks, o->rounds, o->rate) < 0)
    abort(); /* a tool, and a few kilobytes */
  return text;
}

/* Starts the file, or checks that it was begun in the same way. */
static bool continue_file(run_t *run) {
  char *header = describe(run), *columns = gs_bench_columns(), *start, date[32];
  const char *path = run->options->output;
  time_t now = time(NULL);
  struct tm day;
  bool fine = false;
  strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &day));
  if (asprintf(&start, "%s# date: %s\n# columns: gemmshim bench --columns\n%s", header, date, columns) < 0)
    abort();
  if (!run->done.header)
    fine = gs_bench_file_append(path, start);
  else if (!(fine = !strncmp(run->done.header, header, strlen(header))))
    gs_say("%s was begun with\n%sand this would be\n%sname another with -o", path, run->done.header, header);
  free(header), free(columns), free(start);
  return fine;
}

/* ---- the run ---- */

static double speedup(const gs_bench_row_t *row) {
  for (int c = 0; c < GS_CLOCK_COUNT; c++)
    if (isfinite(row->ratio[c][GS_RIVAL_AUTO][GS_LAYOUT_MAX].value))
      return row->ratio[c][GS_RIVAL_AUTO][GS_LAYOUT_MAX].value;
  return NAN;
}

static void show(run_t *run, int index, const gs_gemm_t *g) {
  char what[256], extremes[64] = "";
  if (run->best > 0) snprintf(extremes, sizeof extremes, "; best %.2fx, worst %.2fx", run->best, run->worst);
  snprintf(what, sizeof what, "%d of %d, %lldx%lldx%lld%s", index + 1, run->count, (long long)g->m,
           (long long)g->n, (long long)g->k, extremes);
  gs_progress_show(&run->progress, (double)index / run->count, what);
}

static void note_at(const run_t *run, const gs_gemm_t *g) {
  char text[512];
  int length = gs_gemm_format(text, sizeof text, g);
  if (ftruncate(run->at_fd, 0) != 0 || pwrite(run->at_fd, text, (size_t)length, 0) != length)
    gs_say("cannot note what is measured: %s", strerror(errno));
}

/* An exit status, or -1: on with the next. */
static int measure_one(run_t *run, const gs_product_t *product) {
  gs_bench_row_t row;
  gs_gpu_t *gpu = run->measure.bench.gpu;
  note_at(run, name_of(product));
  bool measured = gs_measure_product(&run->measure, product, &row);
  if (stopped) return 128 + stopped;
  if (!measured) {
    gs_say("%s", gpu->fault);
    return GS_BENCH_LOST;
  }
  char *text = gs_bench_row_text(&row);
  gs_watch(&run->measure.watch, GS_PHASE_WRITE);
  bool written = gs_bench_file_append(run->options->output, text);
  free(text);
  double gain = speedup(&row);
  if (gain > run->best) run->best = gain;
  if (gain < run->worst || run->worst == 0) run->worst = gain;
  return written ? -1 : GS_EXIT_FALSE;
}

/* What of it the file lacks. */
static gs_product_t left_of(const run_t *run, const gs_product_t *product) {
  gs_product_t left = *product;
  for (int l = 0; l < GS_LAYOUT_COUNT; l++)
    if (left.of[l] && gs_bench_set_find(&run->done, left.of[l])) left.of[l] = NULL;
  return left;
}

static int measure_all(run_t *run) {
  int status = -1, kept = 0;
  long budget = run->options->budget;
  for (int i = 0; i < run->count && status < 0; i++) {
    gs_product_t left = left_of(run, &run->products[i]);
    if (!left.of[GS_LAYOUT_NN] && !left.of[GS_LAYOUT_TN]) {
      kept++;
      continue;
    }
    if (budget && gs_seconds() - run->progress.begun > (double)budget) {
      gs_progress_clear(&run->progress);
      gs_say("the budget of %ld s is spent: %d of %d products are left; the same command goes on from here",
             budget, run->count - i, run->count);
      break;
    }
    show(run, i, name_of(&left));
    status = stopped ? 128 + stopped : measure_one(run, &left);
  }
  gs_progress_clear(&run->progress);
  char seconds[256];
  gs_watch_stop(&run->measure.watch);
  gs_watch_text(seconds, sizeof seconds, &run->measure.watch);
  if (kept < run->count) gs_say("seconds: %s", seconds);
  if (kept) gs_say("%d of %d products were in %s already", kept, run->count, run->options->output);
  return status < 0 ? GS_EXIT_OK : status;
}

static int run_on(run_t *run, gs_gpu_t *gpu, const gs_cublas_t *cublas, const char *folder) {
  char fault[512];
  const gs_bench_options_t *o = run->options;
  gs_measure_t *measure = &run->measure;
  int status = GS_EXIT_MACHINE;
  gs_bench_open(&measure->bench, gpu, cublas, NULL, (uint64_t)o->seed);
  if (!gs_door_open(&measure->door, cublas, folder, fault, sizeof fault))
    gs_say("%s", fault);
  else if (measure->foreigners->count && !gs_idle_open(&measure->idle, gpu))
    gs_say("%s", gpu->fault);
  else if (continue_file(run))
    status = measure_all(run);
  gs_idle_close(&measure->idle, gpu);
  gs_door_close(&measure->door);
  gs_bench_close(&measure->bench);
  return status;
}

static int open_and_run(run_t *run, const char *folder) {
  gs_gpu_t gpu;
  gs_cublas_t cublas;
  char fault[512];
  if (gs_gpu_open(&gpu, (int)run->options->device) != GS_OK) {
    gs_say("%s", gpu.fault);
    return GS_EXIT_MACHINE;
  }
  int status = GS_EXIT_MACHINE;
  if (!run->options->busy_ok && gs_gpu_busy(&gpu))
    status = GS_EXIT_BUSY; /* said */
  else if (gs_cublas_open(&cublas, &gpu, run->options->cublas, fault, sizeof fault) != GS_OK)
    gs_say("%s", fault);
  else {
    status = run_on(run, &gpu, &cublas, folder);
    gs_cublas_close(&cublas);
  }
  gs_gpu_close(&gpu);
  return status;
}

int gs_bench_run(const gs_bench_options_t *o, const char *folder) {
  gs_foreigners_t foreigners = {0};
  char at[4096];
  run_t run = {.options = o, .progress = gs_progress_begin()};
  run.measure = (gs_measure_t){.foreigners = &foreigners,
                               .again = o->again,
                               .rounds = (int)o->rounds,
                               .rate = (double)o->rate,
                               .stop = &stopped};
  memcpy(run.measure.clocks, o->clocks, sizeof o->clocks);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigaction(SIGINT, &(struct sigaction){.sa_handler = stop}, NULL);
  sigaction(SIGTERM, &(struct sigaction){.sa_handler = stop}, NULL);
  snprintf(at, sizeof at, "%s/" GS_BENCH_AT, folder);
  run.at_fd = open(at, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  int status = GS_EXIT_MACHINE;
  if (run.at_fd >= 0 && gs_bench_set_read(&run.done, o->output) && choose(&run) &&
      (!o->peer || gs_foreign_load(&foreigners, o->peer)))
    status = open_and_run(&run, folder);
  if (run.at_fd >= 0) close(run.at_fd);
  gs_foreign_free(&foreigners);
  gs_bench_set_free(&run.done);
  free(run.products);
  return status;
}
