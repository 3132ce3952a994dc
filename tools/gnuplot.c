#define _GNU_SOURCE
#include "gnuplot.h"

#include <limits.h>

#include "child.h"
#include "output.h"
#include "tools.h"

bool gs_gnuplot(const char *path, int width, int height, const char *hint, gs_plot_t plot,
                const void *context) {
  char program[PATH_MAX];
  gs_output_t image;
  if (gs_find_program("gnuplot", program, sizeof program) != 0) {
    gs_say("%s: not drawn: gnuplot is not on PATH: install it (Debian: gnuplot-nox), or %s", path, hint);
    return false;
  }
  if (!gs_output_open(&image, path)) return false;
  FILE *script = popen("gnuplot", "we");
  if (script) {
    fprintf(script, "set terminal pngcairo noenhanced size %d,%d\nset output '", width, height);
    for (const char *c = image.temporary; *c; c++) fprintf(script, *c == '\'' ? "''" : "%c", *c);
    fputs("'\n", script);
    plot(script, context);
  }
  if (script && pclose(script) == 0) return gs_output_commit(&image);
  gs_say("%s: not drawn: gnuplot failed (it needs its pngcairo terminal)", path);
  gs_output_drop(&image);
  return false;
}
