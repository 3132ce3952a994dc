/* What `bench` makes of its rows: columns, claims, joins and models, against values worked out by hand or by an
 * independent formula. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "watch.h"
#include "bench_joins.h"
#include "bench_models.h"
#include "points.h"

#define NEAR(actual, expected, within)                                                                       \
  cr_assert(fabs((actual) - (expected)) <= (within), #actual " is %.12g, not %.12g", (double)(actual),       \
            (double)(expected))

static char folder[] = "/tmp/gs_bench.XXXXXX";
static char file[64];

static void make_folder(void) {
  cr_assert(mkdtemp(folder));
  snprintf(file, sizeof file, "%s/file", folder);
}
static void remove_folder(void) {
  unlink(file);
  rmdir(folder);
}
TestSuite(bench, .init = make_folder, .fini = remove_folder);

static void write_file(const char *text) {
  FILE *out = fopen(file, "w");
  cr_assert(out && fputs(text, out) >= 0 && fclose(out) == 0);
}

static char *read_file(void) {
  static char text[65536];
  FILE *in = fopen(file, "r");
  cr_assert(in);
  text[fread(text, 1, sizeof text - 1, in)] = '\0';
  fclose(in);
  return text;
}

static gs_gemm_t product(gs_op_t transa, int m, int n, int k) {
  return gs_points_packed(transa, GS_OP_N, m, n, k, GS_TYPE_F16, GS_TYPE_F16, GS_EPILOGUE_DEFAULT);
}

/* A row of which one ratio, auto max on the gpu clock, is known. */
static gs_bench_row_t judged(int m, int n, int k, double ratio, double lo, double hi) {
  gs_gemm_t g = product(GS_OP_N, m, n, k);
  gs_bench_row_t row = gs_bench_row(&g, "ok");
  row.ratio[GS_CLOCK_GPU][GS_RIVAL_AUTO][GS_LAYOUT_MAX] = (gs_interval_t){ratio, lo, hi};
  return row;
}

static const gs_subject_t everything = {GS_CLASS_ALL, 0, GS_CLOCK_GPU, GS_RIVAL_AUTO, GS_LAYOUT_MAX};

/* ---- rows ---- */

Test(bench, rows_come_back_as_written) {
  gs_gemm_t g = product(GS_OP_T, 4096, 8, 1024);
  gs_bench_row_t row = gs_bench_row(&g, "ok"), back;
  cr_assert(isnan(row.us[0][0][0]) && isnan(row.copies) && row.flops == 2.0 * 4096 * 8 * 1024);
  snprintf(row.door[GS_LAYOUT_TN].verdict, sizeof row.door[0].verdict, "served");
  snprintf(row.door[GS_LAYOUT_TN].kernel, sizeof row.door[0].kernel, "mma_x");
  snprintf(row.peer_name, sizeof row.peer_name, "a,b"); /* would be two fields */
  row.door[GS_LAYOUT_TN].served = 0.75;
  row.us[GS_CLOCK_WALL][GS_LAYOUT_TN][GS_RUNNER_AUTO] = 12.5;
  row.ratio[GS_CLOCK_SERVER][GS_RIVAL_AA][GS_LAYOUT_MAX] = (gs_interval_t){1.5, 1.25, 1.75};
  row.peer[GS_CLOCK_SERVER].ratio.hi = 2.5;
  char *text = gs_bench_row_text(&row), *columns = gs_bench_columns();
  int fields = 0, names = 0;
  for (char *c = text; *c; c++) fields += *c == ',';
  for (char *c = columns; *c; c++) names += *c == ',';
  cr_assert_eq(fields, names);
  cr_assert_null(gs_bench_row_read(&back, text));
  cr_assert(!memcmp(&back.gemm, &g, sizeof g) && gs_bench_row_ok(&back));
  cr_assert_str_eq(back.door[GS_LAYOUT_TN].verdict, "served");
  cr_assert_str_eq(back.door[GS_LAYOUT_NN].verdict, "");
  cr_assert_str_eq(back.peer_name, "a;b");
  cr_assert(back.door[GS_LAYOUT_TN].served == 0.75 && isnan(back.door[GS_LAYOUT_NN].served));
  cr_assert(back.us[GS_CLOCK_WALL][GS_LAYOUT_TN][GS_RUNNER_AUTO] == 12.5);
  cr_assert(isnan(back.us[GS_CLOCK_WALL][GS_LAYOUT_NN][GS_RUNNER_AUTO]));
  cr_assert(back.ratio[GS_CLOCK_SERVER][GS_RIVAL_AA][GS_LAYOUT_MAX].lo == 1.25);
  cr_assert(back.peer[GS_CLOCK_SERVER].ratio.hi == 2.5 && isnan(back.peer[GS_CLOCK_SERVER].ratio.lo));
  free(text), free(columns);
}

Test(bench, columns_have_names_of_their_own) {
  char *columns = gs_bench_columns(), *rest = columns, *names[256];
  int count = 0;
  columns[strcspn(columns, "\n")] = '\0';
  while (rest && count < 256) names[count++] = strsep(&rest, ",");
  cr_assert_null(rest);
  for (int i = 0; i < count; i++)
    for (int j = 0; j < i; j++) cr_assert_str_neq(names[i], names[j]);
  cr_assert_str_eq(names[0], "product");
  free(columns);
}

Test(bench, malformed_rows_are_refused) {
  gs_gemm_t g = product(GS_OP_N, 64, 64, 64);
  gs_bench_row_t row = gs_bench_row(&g, "ok"), back;
  char *text = gs_bench_row_text(&row), line[4096];
  snprintf(line, sizeof line, "%.*s", (int)strlen(text) - 2, text);
  cr_assert_str_eq(gs_bench_row_read(&back, line), "it has too few fields");
  snprintf(line, sizeof line, "%.*s,", (int)strlen(text) - 1, text);
  cr_assert_str_eq(gs_bench_row_read(&back, line), "it has too many fields");
  snprintf(line, sizeof line, "%.*sx", (int)strlen(text) - 1, text);
  cr_assert_str_eq(gs_bench_row_read(&back, line), "a field is not a number");
  snprintf(line, sizeof line, "x%s", text);
  cr_assert_not_null(gs_bench_row_read(&back, line));
  free(text);
}

Test(bench, turned_products_differ_in_a_alone) {
  gs_gemm_t nn = product(GS_OP_N, 128, 64, 512), tn = product(GS_OP_T, 128, 64, 512),
            other = product(GS_OP_T, 128, 64, 256);
  cr_assert(gs_gemm_turned(&nn, &tn) && gs_gemm_turned(&tn, &nn));
  cr_assert_not(gs_gemm_turned(&nn, &nn) || gs_gemm_turned(&nn, &other));
  tn.lda += 8; /* not packed */
  cr_assert_not(gs_gemm_turned(&nn, &tn) || gs_gemm_turned(&tn, &nn));
}

/* ---- the file ---- */

Test(bench, file_is_read_back_and_rows_are_found_in_either_layout) {
  gs_bench_set_t set = {0};
  gs_gemm_t nn = product(GS_OP_N, 128, 64, 512), tn = product(GS_OP_T, 128, 64, 512);
  gs_bench_row_t row = gs_bench_row(&nn, "ok");
  char text[64], *columns = gs_bench_columns(), *line;
  strcpy(row.door[GS_LAYOUT_NN].verdict, "no_row");
  int lock = gs_bench_file_lock(file);
  cr_assert(lock >= 0);
  cr_assert(gs_bench_file_append(file, "# gpu: some GPU\n# date: today\n") &&
            gs_bench_file_append(file, columns));
  cr_assert(gs_bench_file_append(file, line = gs_bench_row_text(&row)));
  cr_assert(gs_bench_set_read(&set, file));
  cr_assert_eq(set.count, 1);
  cr_assert_str_eq(gs_bench_header_get(set.header, "gpu", text, sizeof text), "some GPU");
  cr_assert_str_eq(gs_bench_header_get(set.header, "date", text, sizeof text), "today");
  cr_assert_str_eq(gs_bench_header_get(set.header, "day", text, sizeof text), "");
  cr_assert(gs_bench_set_find(&set, &nn) == set.rows && !gs_bench_set_find(&set, &tn));
  strcpy(set.rows[0].door[GS_LAYOUT_TN].verdict, "served");
  cr_assert(gs_bench_set_find(&set, &tn) == set.rows);
  close(lock);
  free(columns), free(line);
  gs_bench_set_free(&set);
}

Test(bench, torn_lines_are_cut_and_one_process_writes) {
  write_file("# one\n# two\nthree, torn");
  int lock = gs_bench_file_lock(file);
  cr_assert(lock >= 0);
  cr_assert_str_eq(read_file(), "# one\n# two\n");
  cr_assert(gs_bench_file_lock(file) < 0, "two at once");
  close(lock);
  write_file("torn");
  cr_assert((lock = gs_bench_file_lock(file)) >= 0);
  cr_assert_str_eq(read_file(), "");
  close(lock);
  write_file("whole\n");
  cr_assert((lock = gs_bench_file_lock(file)) >= 0);
  cr_assert_str_eq(read_file(), "whole\n");
  close(lock);
  cr_assert(gs_bench_file_lock(folder) < 0);
  cr_assert(gs_bench_file_lock("/dev/null") < 0);
}

Test(bench, a_full_disk_leaves_whole_lines) {
  write_file("whole\n");
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &(struct rlimit){10, RLIM_INFINITY});
  bool fits = gs_bench_file_append(file, "abc\n"), overflows = gs_bench_file_append(file, "abcdef\n");
  setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
  cr_assert(fits && !overflows);
  cr_assert_str_eq(read_file(), "whole\nabc\n");
}

Test(bench, foreign_columns_are_refused) {
  gs_bench_set_t set = {0};
  write_file("# x\na,b,c\n1,2,3\n");
  cr_assert_not(gs_bench_set_read(&set, file));
  gs_bench_set_free(&set);
}

/* ---- claims ---- */

Test(bench, classes) {
  gs_gemm_t million = product(GS_OP_N, 1000, 50, 10),
            less = product(GS_OP_N, 999, 50, 10); /* 1e6 and 999,000 */
  NEAR(gs_class_of(GS_CLASS_FLOPS, &million), 1e6, 0);
  NEAR(gs_class_of(GS_CLASS_FLOPS, &less), 1e5, 0);
  gs_gemm_t large = product(GS_OP_N, 16384, 12288, 16384), one = product(GS_OP_N, 8, 1, 4);
  NEAR(gs_class_of(GS_CLASS_SIDE, &large), 8192, 0);
  NEAR(gs_class_of(GS_CLASS_SIDE, &million), 8, 0);
  NEAR(gs_class_of(GS_CLASS_SIDE, &one), 1, 0);
  NEAR(gs_class_of(GS_CLASS_SMALL, &million), 1, 0);
  NEAR(gs_class_of(GS_CLASS_SMALL, &large), 0, 0);
}

Test(bench, claim_of_four_products) {
  /* ratios 2, 1/2, 4, 1: mean 1.875; geomean (2 * 0.5 * 4 * 1)^(1/4) = sqrt(2);
   * squares from the mean: 0.015625 + 1.890625 + 4.515625 + 0.765625 = 7.1875, / 3, root 1.547847.
   * log2: 1 -1 2 0, the 0 dropped: ranks 1.5 1.5 3, W+ = 4.5, mean 3, variance 3*4*7/24 - (8-2)/48 = 3.375,
   * z = 0.816497, p = 0.414216 */
  gs_bench_row_t rows[] = {judged(64, 64, 64, 2, 1.9, 2.1), judged(64, 64, 128, 0.5, 0.4, 0.6),
                           judged(64, 128, 64, 4, 3, 5), judged(128, 64, 64, 1, 0.9, 1.1)};
  gs_bench_set_t set = {.rows = rows, .count = 4};
  gs_claim_t claim = gs_bench_claim(&set, &everything);
  cr_assert(claim.count == 4 && claim.wins == 2 && claim.losses == 1 && claim.ties == 1);
  NEAR(claim.mean, 1.875, 1e-12);
  NEAR(claim.geomean.value, sqrt(2), 1e-12);
  NEAR(claim.deviation, 1.547847, 1e-6);
  NEAR(claim.p, 0.414216, 1e-6);
  NEAR(claim.best, 4, 0);
  NEAR(claim.worst, 0.5, 0);
  cr_assert(isnan(claim.geomean.lo), "four say nothing of their spread");
}

Test(bench, edges_of_an_interval_are_ties_and_rows_without_are_left_out) {
  gs_bench_row_t rows[] = {judged(64, 64, 64, 1.1, 1, 1.2), judged(64, 64, 128, 0.9, 0.8, 1),
                           judged(64, 64, 256, NAN, NAN, NAN), judged(64, 64, 512, 9, 8, 10)};
  strcpy(rows[3].status, "it failed");
  gs_bench_set_t set = {.rows = rows, .count = 4};
  gs_claim_t claim = gs_bench_claim(&set, &everything);
  cr_assert(claim.count == 2 && claim.ties == 2 && !claim.wins && !claim.losses);
  gs_subject_t other = everything;
  other.clock = GS_CLOCK_WALL;
  cr_assert_eq(gs_bench_claim(&set, &other).count, 0);
}

Test(bench, claims_by_class) {
  gs_bench_row_t rows[] = {judged(64, 64, 64, 2, 1.9, 2.1), judged(64, 4096, 4096, 3, 2.9, 3.1),
                           judged(4096, 4096, 4096, 0.5, 0.4, 0.6)};
  gs_bench_set_t set = {.rows = rows, .count = 3};
  double values[8];
  cr_assert_eq(gs_class_values(&set, GS_CLASS_SIDE, values, 8), 2);
  cr_assert(values[0] == 64 && values[1] == 4096);
  cr_assert_eq(gs_class_values(&set, GS_CLASS_FLOPS, values, 8), 3);
  cr_assert(values[0] == 1e5 && values[1] == 1e9 && values[2] == 1e11);
  gs_subject_t small = everything;
  small.class = GS_CLASS_SIDE, small.value = 64;
  NEAR(gs_bench_claim(&set, &small).mean, 2.5, 1e-12);
}

/* For logs that are normal, the percentile interval of a geometric mean is exp(mean +- 1.96 s / sqrt n). */
Test(bench, interval_of_a_geomean_is_that_of_the_normal_distribution) {
  enum { COUNT = 400 };
  double x[COUNT], logs[COUNT];
  for (int i = 0; i < COUNT;
       i++) { /* normal quantiles by the rational formula of Abramowitz and Stegun 26.2.23 */
    double p = (i + 0.5) / COUNT, q = p < 0.5 ? p : 1 - p, t = sqrt(-2 * log(q));
    double z = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
                       (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
    logs[i] = 0.05 + 0.2 * (p < 0.5 ? -z : z);
    x[i] = exp(logs[i]);
  }
  gs_interval_t interval = gs_geomean_interval(x, COUNT, 7);
  double half = 1.96 * gs_deviation(logs, COUNT) / sqrt(COUNT);
  NEAR(interval.value, exp(0.05), 1e-9);
  NEAR(log(interval.lo), 0.05 - half, 0.1 * half);
  NEAR(log(interval.hi), 0.05 + half, 0.1 * half);
}

/* ---- joins ---- */

static void note_published(void *context, const gs_join_t *join) {
  *(gs_join_t *)context = *join;
}

Test(bench, published_columns_stand_beside_the_same_products) {
  /* Row-major 64 x 128 x 256 is m 128, n 64 here. */
  gs_bench_row_t rows[] = {judged(128, 64, 256, 1, 1, 1), judged(64, 64, 64, 1, 1, 1),
                           judged(64, 64, 32, 1, 1, 1)};
  gs_bench_set_t set = {.rows = rows, .count = 3};
  gs_join_t join = {0};
  for (int i = 0; i < 3; i++) rows[i].ratio[GS_CLOCK_WALL][GS_RIVAL_AUTO][GS_LAYOUT_MAX].value = 2 + i;
  write_file("m,n,k,accumulator,offline_torch,offline_lt_autotune\n64,128,256,f32,9,1.5\n64,64,64,f16,9,7\n"
             "64,64,32,f32,9,\n512,512,512,f32,9,8\n");
  cr_assert(gs_join_published(&set, file, note_published, &join));
  cr_assert_str_eq(join.column, "offline_lt_autotune");
  cr_assert(join.theirs.count == 1 && join.ours.count == 1 && join.clock == GS_CLOCK_WALL);
  NEAR(join.theirs.mean, 1.5, 0);
  NEAR(join.ours.mean, 2, 0);
  write_file("m,n\n1,2\n");
  cr_assert_not(gs_join_published(&set, file, note_published, &join));
  write_file("m,n,k\n1,2\n");
  cr_assert_not(gs_join_published(&set, file, note_published, &join));
}

static void note_torch(void *context, const gs_torch_t *torch) {
  if (torch->clock == GS_CLOCK_WALL) ((gs_torch_t *)context)[torch->layout] = *torch;
}

Test(bench, torch_joins_by_layout) {
  gs_bench_row_t row = judged(128, 64, 256, 1, 1, 1);
  gs_bench_set_t set = {.rows = &row, .count = 1};
  gs_torch_t torch[GS_LAYOUT_COUNT + 1] = {0};
  row.us[GS_CLOCK_WALL][GS_LAYOUT_NN][GS_RUNNER_OURS] = 4;
  row.us[GS_CLOCK_WALL][GS_LAYOUT_TN][GS_RUNNER_OURS] = 5;
  write_file("# by a "
             "script\nm,n,k,layout,gpu,wall,server\n64,128,256,nn,1,12,3\n64,128,256,tn,1,10,3\n64,64,64,nn,"
             "1,1,1\n");
  cr_assert(gs_join_torch(&set, file, note_torch, torch));
  NEAR(torch[GS_LAYOUT_NN].claim.mean, 3, 0);
  NEAR(torch[GS_LAYOUT_TN].claim.mean, 2, 0);
  NEAR(torch[GS_LAYOUT_MAX].claim.mean, 2.5, 0); /* 10 over 4 */
}

/* ---- models ---- */

static void note_model(void *context, const gs_model_t *model) {
  gs_model_t **next = context;
  *(*next)++ = *model;
}

static gs_bench_row_t timed(int m, int n, int k, double ours, double gemm_ex, double best, double hi) {
  gs_gemm_t g = product(GS_OP_T, m, n, k);
  gs_bench_row_t row = gs_bench_row(&g, "ok");
  double *us = row.us[GS_CLOCK_GPU][GS_LAYOUT_TN];
  us[GS_RUNNER_OURS] = ours, us[GS_RUNNER_GEMM_EX] = gemm_ex, us[GS_RUNNER_AUTO] = best;
  row.ratio[GS_CLOCK_GPU][GS_RIVAL_AUTO][GS_LAYOUT_TN] = (gs_interval_t){best / ours, best / ours, hi};
  return row;
}

Test(bench, models_are_weighted_by_time) {
  gs_bench_row_t rows[] = {timed(512, 8, 64, 10, 15, 12, 2), timed(2048, 8, 64, 100, 100, 90, 0.95),
                           timed(512, 64, 64, 20, 20, 20, 1)};
  gs_bench_set_t set = {.rows = rows, .count = 3};
  gs_model_t models[8], *end = models;
  write_file(
      "name\ttransa\ttransb\tm\tk\tnote\nbig_1b_qkv\tT\tN\t512\t64\tx4\nother_x\tT\tN\t1\t1\n"
      "big_1b_head\tT\tN\t2048\t64\nbig_1b_k\tT\tN\t512\t64\taside\nbig_1b_v\tN\tN\t512\t64\tbatch=2\n");
  cr_assert(gs_bench_models(&set, file, note_model, &end));
  cr_assert_eq(end - models, 2);
  cr_assert_str_eq(models[0].name, "big_1b");
  cr_assert(models[0].n == 8 && models[0].layers == 2 && models[0].missing == 0);
  NEAR(models[0].asked[GS_CLOCK_GPU], (4 * 15 + 100) / (4 * 10 + 100.0), 1e-12);
  NEAR(models[0].best[GS_CLOCK_GPU], (4 * 12 + 90) / (4 * 10 + 100.0), 1e-12);
  cr_assert(isnan(models[0].asked[GS_CLOCK_WALL]));
  cr_assert(models[0].losses == 1 && models[0].lost_ratio[0] == 0.9);
  cr_assert_str_eq(models[0].lost[0], "big_1b_head");
  cr_assert(models[1].n == 64 && models[1].layers == 1 && models[1].missing == 1 && !models[1].losses);
}

/* ---- where time goes ---- */

Test(bench, a_watch_names_what_took_long) {
  gs_watch_t sum = {.since = 0}, watch = {.since = 0};
  char text[128];
  gs_watch_text(text, sizeof text, &sum);
  cr_assert_str_eq(text, "none");
  gs_watch(&watch, GS_PHASE_PREPARE);
  cr_assert_eq(gs_watch(&watch, GS_PHASE_GATE), GS_PHASE_PREPARE);
  gs_watch_stop(&watch);
  double gate = watch.seconds[GS_PHASE_GATE];
  gs_watch_stop(&watch);
  cr_assert(gate > 0 && watch.seconds[GS_PHASE_GATE] == gate, "a watch that was stopped stands still");
  watch.seconds[GS_PHASE_GPU] = 1.25, watch.seconds[GS_PHASE_WALL] = 30;
  gs_watch_add(&sum, &watch);
  gs_watch_add(&sum, &watch);
  gs_watch_text(text, sizeof text, &sum);
  cr_assert_str_eq(text, "gpu clock 2.5, wall clock 60.0");
}
