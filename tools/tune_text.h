/* What tune says of what it measured: on stdout, for people, or as JSON. */
#ifndef GS_TUNE_TEXT_H
#define GS_TUNE_TEXT_H

#include "json.h"
#include "tune.h"

/* "TN 4096x8x4096 f16_f16 bias" */
void gs_tune_point(char *text, size_t size, const gs_gemm_t *g);
void gs_tune_print(const gs_tuned_t *tuned);
cJSON *gs_tune_json(const gs_tuned_t *tuned);
/* A row that claims more than one n. */
void gs_tune_print_claim(const gs_row_t *row);
/* Where the time went: a line on stdout, or an object of seconds by phase. */
void gs_tune_print_watch(const gs_watch_t *watch);
cJSON *gs_tune_json_watch(const gs_watch_t *watch);
/* As gs_measured_t. context: the progress that is shown; a cJSON array. */
void gs_tune_print_contender(void *context, const gs_contender_t *contender);
void gs_tune_json_contender(void *context, const gs_contender_t *contender);

#endif
