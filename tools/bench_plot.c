/* Two pictures of what `bench` measured: speed-up by class of products, and the roofline. */
#define _GNU_SOURCE
#include "bench_summary.h"

#include <math.h>
#include <stdlib.h>

#include "gnuplot.h"
#include "tools.h"

#define VALUES_MAX 24

/* The first clock that was read: the gpu's, unless it was left out. */
static gs_clock_kind_t clock_of(const gs_bench_set_t *set) {
  for (int c = 0; c < GS_CLOCK_COUNT; c++)
    for (int i = 0; i < set->count; i++)
      if (isfinite(set->rows[i].ratio[c][GS_RIVAL_AUTO][GS_LAYOUT_MAX].value)) return (gs_clock_kind_t)c;
  return GS_CLOCK_GPU;
}

/* Boxes: the geometric mean of a class with its interval, against cuBLASLt's best and against cublasGemmEx. */
static void plot_classes(FILE *file, const void *context) {
  static const gs_rival_t rivals[] = {GS_RIVAL_AUTO, GS_RIVAL_GEMM_EX};
  const gs_bench_set_t *set = context;
  double values[VALUES_MAX];
  int at = 0;
  gs_clock_kind_t clock = clock_of(set);
  fputs("$classes << END\n", file);
  for (int class = GS_CLASS_FLOPS; class < GS_CLASS_COUNT; class ++) {
    int count = gs_class_values(set, (gs_class_t) class, values, VALUES_MAX);
    for (int v = 0; v < count; v++, at++) {
      fprintf(file, class == GS_CLASS_FLOPS ? "\"%.0e FLOPs\"" : "\"side %.0f\"", values[v]);
      for (int r = 0; r < 2; r++) {
        gs_claim_t claim = gs_bench_claim(
            set, &(gs_subject_t){(gs_class_t) class, values[v], clock, rivals[r], GS_LAYOUT_MAX});
        gs_interval_t g = claim.geomean;
        if (isnan(g.lo)) g.lo = g.hi = g.value;
        fprintf(file, isnan(g.value) ? " NaN NaN NaN" : " %.5g %.5g %.5g", g.value, g.lo, g.hi);
      }
      fputc('\n', file);
    }
    if (class == GS_CLASS_FLOPS) fputs("\"\" NaN NaN NaN NaN NaN NaN\n", file), at++;
  }
  fprintf(
      file,
      "END\nset title 'Speed-up, geometric mean and 95%% interval, %s clock'\nset ylabel 'library time / "
      "ours'\n"
      "set xtics rotate by -60\nset grid y\nset style fill solid\nset key top right\nset xrange [-1:%d]\n"
      "set yrange [*<0.9:*]\nset arrow from graph 0, first 1 to graph 1, first 1 nohead\n"
      "plot $classes using ($0-0.2):2:3:4:(0.35):xtic(1) with boxerrorbars lc rgb '#3070b0' title 'against "
      "cuBLASLt AutoTuning', '' using ($0+0.2):5:6:7:(0.35) with boxerrorbars lc rgb '#b0b0b0' title "
      "'against "
      "cublasGemmEx'\n",
      gs_clock_kind_names[clock], at);
}

static double bytes_of(const gs_gemm_t *g) {
  double a = (double)g->m * (double)g->k, b = (double)g->k * (double)g->n, d = (double)g->m * (double)g->n;
  return g->batch *
         (a * gs_type_bytes[g->a_type] + b * gs_type_bytes[g->b_type] + d * gs_type_bytes[g->d_type]);
}

static double least_us(const gs_bench_row_t *row, gs_clock_kind_t clock, gs_runner_t runner) {
  return fmin(row->us[clock][GS_LAYOUT_NN][runner], row->us[clock][GS_LAYOUT_TN][runner]);
}

/* Roofs: the highest rates that anyone reached here. */
static void plot_roofline(FILE *file, const void *context) {
  const gs_bench_set_t *set = context;
  gs_clock_kind_t clock = clock_of(set);
  double flop_rate = 1, byte_rate = 1; /* a microsecond */
  fputs("$products << END\n", file);
  for (int i = 0; i < set->count; i++) {
    const gs_bench_row_t *row = &set->rows[i];
    double ours = least_us(row, clock, GS_RUNNER_OURS), theirs = least_us(row, clock, GS_RUNNER_AUTO);
    double bytes = bytes_of(&row->gemm), best = fmin(ours, theirs);
    if (!gs_bench_row_ok(row) || !(best > 0)) continue;
    flop_rate = fmax(flop_rate, row->flops / best), byte_rate = fmax(byte_rate, bytes / best);
    fprintf(file, "%.6g %.6g", row->flops / bytes, row->flops / ours * 1e-6);
    fprintf(file, isfinite(theirs) ? " %.6g\n" : " NaN\n", row->flops / theirs * 1e-6);
  }
  fprintf(file,
          "END\nset title 'Roofline, %s clock'\nset logscale xy\nset xlabel 'FLOPs per byte'\nset ylabel "
          "'TFLOP/s'\n"
          "set grid\nset key bottom right\nroof(x) = x * %.6g < %.6g ? x * %.6g : %.6g\n"
          "plot $products using 1:3 with points pt 6 lc rgb '#909090' title 'cuBLASLt AutoTuning', "
          "'' using 1:2 with points pt 7 ps 0.7 lc rgb '#3070b0' title 'ours', "
          "roof(x) lc rgb 'black' title 'highest rates measured: %.0f TFLOP/s, %.2f TB/s'\n",
          gs_clock_kind_names[clock], byte_rate * 1e-6, flop_rate * 1e-6, byte_rate * 1e-6, flop_rate * 1e-6,
          flop_rate * 1e-6, byte_rate * 1e-6);
}

bool gs_bench_plot(const gs_bench_set_t *set, const char *prefix) {
  static const struct {
    const char *suffix;
    gs_plot_t plot;
  } pictures[] = {{"speedup", plot_classes}, {"roofline", plot_roofline}};
  int measured = 0;
  for (int i = 0; i < set->count; i++) measured += gs_bench_row_ok(&set->rows[i]);
  if (!measured) {
    gs_say("%s-*.png: not drawn: nothing was measured", prefix);
    return false;
  }
  for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
    char *path;
    if (asprintf(&path, "%s-%s.png", prefix, pictures[i].suffix) < 0) abort();
    bool drawn = gs_gnuplot(path, 1200, 700, "read the CSV", pictures[i].plot, set);
    free(path);
    if (!drawn) return false;
  }
  return true;
}
