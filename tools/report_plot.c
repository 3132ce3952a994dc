/* Draws a set's top shapes with gnuplot. */
#include <inttypes.h>

#include "gnuplot.h"
#include "report_formats.h"
#include "tools.h"

#define PLOT_SHAPES_MAX 30

typedef struct {
  const gs_calls_t *set;
  int shapes;
} picture_t;

/* Two bars a shape, stacked: what gemmshim served and what went to the library. */
static void write_data(FILE *file, const gs_calls_t *set, int shapes, bool timed) {
  const gs_shape_t *call = set->calls;
  fputs("$shapes << END\n", file);
  for (int i = 0; call && i < shapes; i++, call = call->hh.next) {
    uint64_t count = gs_call_count(call);
    double whole = timed ? gs_call_us(call) / 1e3 : (double)count;
    double served = count ? whole * (double)gs_call_served(call) / (double)count : 0;
    const gs_gemm_t *g = &call->gemm;
    fprintf(file, "\"%s%s %" PRId64 "x%" PRId64 "x%" PRId64 " %s%s\" %.6g %.6g\n", gs_op_names[g->transa],
            gs_op_names[g->transb], g->m, g->n, g->k, gs_type_names[g->a_type],
            timed && !call->timed ? " (never sampled)" : "", served, whole - served);
  }
  fputs("END\n", file);
}

static void write_script(FILE *file, const void *context) {
  const picture_t *picture = context;
  bool timed = gs_totals(picture->set).us > 0;
  write_data(file, picture->set, picture->shapes, timed);
  fprintf(file,
          "set title 'Products by %s'\nset xlabel '%s'\nset style fill solid\nset yrange [%d:-1]\nset "
          "xrange [0:*]\n"
          "set grid x\nset key outside right top\n"
          "plot $shapes using (($2+$3)/2):0:(0):($2+$3):($0-0.4):($0+0.4):ytic(1) with boxxyerror lc rgb "
          "'#b0b0b0' "
          "title 'library', "
          "'' using ($2/2):0:(0):2:($0-0.4):($0+0.4) with boxxyerror lc rgb '#3070b0' title 'gemmshim'\n",
          timed ? "GPU time" : "calls (no GPU time was sampled)",
          timed ? "milliseconds of GPU time" : "calls", picture->shapes);
}

bool gs_report_plot(const gs_calls_t *set, int top, const char *path) {
  int shapes = (int)HASH_COUNT(set->calls);
  if (shapes > top) shapes = top;
  if (shapes > PLOT_SHAPES_MAX) shapes = PLOT_SHAPES_MAX;
  if (shapes == 0) {
    gs_say("%s: not drawn: there is no product to show", path);
    return false;
  }
  return gs_gnuplot(path, 1000, 160 + 24 * shapes, "use --csv", write_script, &(picture_t){set, shapes});
}
