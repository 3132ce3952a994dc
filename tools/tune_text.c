#include "tune_text.h"

#include <stdio.h>

#include "progress.h"

void gs_tune_point(char *text, size_t size, const gs_gemm_t *g) {
  char batch[16] = "";
  if (g->batch_kind == GS_BATCH_STRIDED) snprintf(batch, sizeof batch, "*%d", g->batch);
  snprintf(text, size, "%c%c %lldx%lldx%lld%s %s_%s%s%s", "NT"[g->transa != GS_OP_N],
           "NT"[g->transb != GS_OP_N], (long long)g -> m, (long long)g -> n, (long long)g -> k, batch,
           gs_type_names[g->a_type], gs_type_names[g->d_type],
           g -> epilogue == GS_EPILOGUE_DEFAULT ? "" : " ",
           g->epilogue == GS_EPILOGUE_DEFAULT ? "" : gs_epilogue_names[g->epilogue]);
}

void gs_tune_print(const gs_tuned_t *tuned) {
  char point[128], id[GS_KERNEL_ID_MAX];
  const gs_row_t *row = &tuned->row;
  gs_tune_point(point, sizeof point, &tuned->gemm);
  printf("%-5s %-40s", gs_tune_verdict_names[tuned->verdict], point);
  if (tuned->verdict == GS_TUNE_NONE) {
    printf(" %s\n", tuned->why);
    return;
  }
  gs_row_name(id, sizeof id, row);
  printf(" %.3fx [%.3f, %.3f] %8.2f us, %s %.2f us; wall %.1f, %.1f us; %s split_k %d raster %d",
         tuned->ratio.value, tuned->ratio.lo, tuned->ratio.hi, (double)row->us, tuned->library,
         (double)row->library_us, (double)row->wall_us, (double)row->library_wall_us, id, row->split_k,
         row->raster);
  if (tuned->verdict == GS_TUNE_WRONG)
    printf("; %s (error %.2e, bound %.2e)", tuned->why, tuned->error, tuned->bound);
  if (tuned->verdict == GS_TUNE_WIN && tuned->by_wall) printf("; on the wall clock");
  if (row->server_us > 0)
    printf("; server (%d/s) %.1f, %.1f us", GS_CONTEST_RATE, (double)row->server_us,
           (double)row->library_server_us);
  putchar('\n');
}

cJSON *gs_tune_json(const gs_tuned_t *tuned) {
  char text[256];
  const gs_row_t *row = &tuned->row;
  cJSON *entry = cJSON_CreateObject();
  gs_gemm_format(text, sizeof text, &tuned->gemm);
  cJSON_AddStringToObject(entry, "call", text);
  cJSON_AddStringToObject(entry, "verdict", gs_tune_verdict_names[tuned->verdict]);
  cJSON_AddNumberToObject(entry, "copies", tuned->copies);
  cJSON_AddNumberToObject(entry, "candidates", tuned->candidates);
  cJSON_AddNumberToObject(entry, "lt_candidates", tuned->lt_candidates);
  cJSON_AddNumberToObject(entry, "rounds", tuned->rounds);
  if (tuned->why[0]) cJSON_AddStringToObject(entry, "why", tuned->why);
  if (tuned->verdict == GS_TUNE_NONE) return entry;
  gs_row_name(text, sizeof text, row);
  cJSON_AddStringToObject(entry, "kernel", text);
  cJSON_AddStringToObject(entry, "library", tuned->library);
  cJSON_AddStringToObject(entry, "won_on",
                          tuned->verdict != GS_TUNE_WIN ? ""
                          : tuned->by_wall              ? "wall"
                                                        : "gpu");
  const struct {
    const char *name;
    double value;
  } numbers[] = {{"split_k", row->split_k},
                 {"raster", row->raster},
                 {"ratio", tuned->ratio.value},
                 {"ratio_lo", tuned->ratio.lo},
                 {"ratio_hi", tuned->ratio.hi},
                 {"us", (double)row->us},
                 {"library_us", (double)row->library_us},
                 {"gemm_ex_us", tuned->gemm_ex_us},
                 {"wall_us", (double)row->wall_us},
                 {"library_wall_us", (double)row->library_wall_us},
                 {"server_us", (double)row->server_us},
                 {"library_server_us", (double)row->library_server_us}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    cJSON_AddNumberToObject(entry, numbers[i].name, numbers[i].value);
  return entry;
}

void gs_tune_print_watch(const gs_watch_t *watch) {
  char text[256];
  gs_watch_text(text, sizeof text, watch);
  printf("seconds: %s\n", text);
}

cJSON *gs_tune_json_watch(const gs_watch_t *watch) {
  cJSON *seconds = cJSON_CreateObject();
  for (int p = 0; p < GS_PHASE_COUNT; p++)
    cJSON_AddNumberToObject(seconds, gs_phase_names[p], watch->seconds[p]);
  return seconds;
}

void gs_tune_print_contender(void *context, const gs_contender_t *contender) {
  char name[128];
  gs_progress_clear(context);
  gs_contender_name(name, sizeof name, contender);
  printf("  %9.2f us  %s", gs_contender_us(contender), name);
  if (contender->kind == GS_BY_KERNEL) printf(" (predicted %.2f)", contender->predicted_us);
  putchar('\n');
}

void gs_tune_json_contender(void *context, const gs_contender_t *contender) {
  char name[128];
  cJSON *entry = cJSON_CreateObject();
  gs_contender_name(name, sizeof name, contender);
  cJSON_AddStringToObject(entry, "contender", name);
  cJSON_AddNumberToObject(entry, "us", gs_contender_us(contender));
  cJSON_AddNumberToObject(entry, "samples", contender->entrant.count[GS_CLOCK_GPU]);
  if (contender->kind == GS_BY_KERNEL)
    cJSON_AddNumberToObject(entry, "predicted_us", contender->predicted_us);
  cJSON_AddItemToArray(context, entry);
}

void gs_tune_print_claim(const gs_row_t *row) {
  char id[GS_KERNEL_ID_MAX];
  const gs_key_t *key = &row->key;
  gs_row_name(id, sizeof id, row);
  printf("claim %c%c %dx%d..%dx%d %s_%s: %s split_k %d, %.3fx at the n where it leads least\n",
         "NT"[key->transa != GS_OP_N], "NT"[key->transb != GS_OP_N], key -> m, row -> n_lo, row -> n_hi,
         key -> k, gs_type_names[key->ab_type], gs_type_names[key->d_type], id, row -> split_k,
         (double)row -> library_us / (double)row -> us);
}
