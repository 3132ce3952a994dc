/* The ways `report` shows a sorted set: at most top shapes of it. */
#ifndef GS_REPORT_FORMATS_H
#define GS_REPORT_FORMATS_H

#include "summary.h"

void gs_report_text(const gs_calls_t *set, int top);
void gs_report_json(const gs_calls_t *set, int top);
void gs_report_csv(const gs_calls_t *set, int top);
/* Counters by verdict and reason, never by shape, in Prometheus's text format (version 0.0.4). */
void gs_report_prometheus(const gs_calls_t *set);
/* Shapes one a line, for people: share of GPU time, calls, mean time, who served, the product. */
void gs_report_shapes(FILE *file, const char *prefix, const gs_calls_t *set, int top);
/* Draws the top shapes' GPU time (calls, where none was sampled) as a PNG by gnuplot; says what went wrong.
 */
bool gs_report_plot(const gs_calls_t *set, int top, const char *path);

#endif
