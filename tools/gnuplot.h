/* Pictures by gnuplot, which is looked for when asked for. */
#ifndef GS_GNUPLOT_H
#define GS_GNUPLOT_H

#include <stdbool.h>
#include <stdio.h>

/* Writes the script's data and plot commands; terminal and output are set. */
typedef void (*gs_plot_t)(FILE *script, const void *context);

/* Makes a PNG of this many pixels at path, whole or not at all; otherwise says why. hint: what to do without
 * gnuplot ("use --csv"). */
bool gs_gnuplot(const char *path, int width, int height, const char *hint, gs_plot_t plot,
                const void *context);

#endif
