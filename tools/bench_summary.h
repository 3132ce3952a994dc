/* What `bench` says in the end, of what it and earlier runs measured. */
#ifndef GS_BENCH_SUMMARY_H
#define GS_BENCH_SUMMARY_H

#include "bench_claims.h"

typedef struct {
  const gs_bench_set_t *set;
  const char *models, *torch; /* files; NULL: none */
  const char *const *published;
  int published_count;
} gs_bench_report_t;

/* False (said) where a file that it joins cannot be read. */
bool gs_bench_text(const gs_bench_report_t *report);
bool gs_bench_json(const gs_bench_report_t *report);
/* prefix-speedup.png and prefix-roofline.png; false (said) where they cannot be drawn. */
bool gs_bench_plot(const gs_bench_set_t *set, const char *prefix);

#endif
