/* Text, JSON and CSV of a set of calls; see report_formats.h. */
#include "report_formats.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "json.h"

static double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

void gs_report_shapes(FILE *file, const char *prefix, const gs_calls_t *set, int top) {
  gs_totals_t totals = gs_totals(set);
  const gs_shape_t *call = set->calls;
  for (int i = 0; call && i < top; i++, call = call->hh.next) {
    char product[256], verdict[128], share[16] = "?", mean[16] = "?", captured[96] = "";
    double us = gs_call_us(call);
    if (us > 0) snprintf(share, sizeof share, "%.1f%%", percent(us, totals.us));
    if (us > 0) snprintf(mean, sizeof mean, "%.1f", gs_call_mean_us(call));
    if (call->captured) {
      char replays[40];
      gs_replays_format(replays, sizeof replays, call->captured, call->traced, call->replays);
      snprintf(captured, sizeof captured, " [%" PRIu64 " captured, replays: %s]", call->captured, replays);
    }
    gs_gemm_describe(product, sizeof product, &call->gemm);
    gs_call_verdict(verdict, sizeof verdict, call);
    fprintf(file, "%s%6s %9" PRIu64 " %8s  %s  %s%s\n", prefix, share, gs_call_count(call), mean, verdict,
            product, captured);
  }
}

void gs_report_text(const gs_calls_t *set, int top) {
  gs_totals_t totals = gs_totals(set);
  gs_ceiling_t ceiling = gs_ceiling(&totals, set->processes);
  char line[512];
  gs_ceiling_format(line, sizeof line, &ceiling, &totals);
  printf("%s\n", line);
  gs_totals_print(stdout, "", &totals, GS_REASON_COUNT);
  if (set->active)
    printf("%d of %d processes called products; the last: %s on %s, cuBLAS %d.%d.%d, table %s\n", set->active,
           set->processes, set->program, set->gpu[0] ? set->gpu : "an unknown GPU", set->cublas[0],
           set->cublas[1], set->cublas[2], set->table[0] ? set->table : "none");
  printf("\n%6s %9s %8s  %s\n", "time", "calls", "mean us", "served by  product (? = never sampled)");
  gs_report_shapes(stdout, "", set, top);
  int more = (int)totals.shapes - top;
  if (more > 0) printf("... and %d more shapes (--top %" PRIu64 " shows all)\n", more, totals.shapes);
}

/* JSON has no infinity and no "unknown": both are null. */
static void add_number(cJSON *object, const char *name, double value, bool known) {
  if (known && isfinite(value))
    cJSON_AddNumberToObject(object, name, value);
  else
    cJSON_AddNullToObject(object, name);
}

static cJSON *json_product(const gs_gemm_t *g) {
  cJSON *object = cJSON_CreateObject();
#define NAME(member, names) cJSON_AddStringToObject(object, #member, names[g->member])
#define INT(member)         cJSON_AddNumberToObject(object, #member, (double)g->member)
  NAME(entry, gs_entry_names);
  NAME(transa, gs_op_names);
  NAME(transb, gs_op_names);
  INT(m);
  INT(n);
  INT(k);
  INT(lda);
  INT(ldb);
  INT(ldc);
  INT(ldd);
  NAME(a_type, gs_type_names);
  NAME(b_type, gs_type_names);
  NAME(c_type, gs_type_names);
  NAME(d_type, gs_type_names);
  NAME(compute, gs_compute_names);
  NAME(epilogue, gs_epilogue_names);
  NAME(batch_kind, gs_batch_names);
  INT(batch);
  INT(stride_a);
  INT(stride_b);
  INT(stride_c);
  INT(stride_d);
  INT(align);
#undef NAME
#undef INT
  return object;
}

static void json_trial(cJSON *object, const gs_shape_t *call) {
  static const char *const names[GS_TRIAL_VERDICTS] = {NULL, "open", "won", "lost"};
  cJSON *trial = NULL;
  for (int v = GS_TRIAL_OPEN; v < GS_TRIAL_VERDICTS; v++) {
    if (!call->trials[v]) continue;
    if (!trial) trial = cJSON_AddObjectToObject(object, "trial");
    cJSON_AddNumberToObject(trial, names[v], (double)call->trials[v]);
  }
  if (!trial) return;
  add_number(trial, "library_us", call->trial_us[0], call->trial_us[0] > 0);
  add_number(trial, "kernel_us", call->trial_us[1], call->trial_us[1] > 0);
}

static void json_compared(cJSON *object, const gs_shape_t *call) {
  if (!call->compared) return;
  cJSON *compared = cJSON_AddObjectToObject(object, "compared");
  cJSON_AddNumberToObject(compared, "calls", (double)call->compared);
  cJSON_AddNumberToObject(compared, "off", (double)call->off);
  add_number(compared, "worst", call->worst_off, true);
}

/* Where traced is less than captured, there were that many replays at least. */
static void json_replays(cJSON *object, uint64_t captured, uint64_t traced, uint64_t replays) {
  cJSON_AddNumberToObject(object, "captured", (double)captured);
  cJSON_AddNumberToObject(object, "traced", (double)traced);
  add_number(object, "replays", (double)replays, traced || !captured);
}

static cJSON *json_call(const gs_shape_t *call) {
  cJSON *object = json_product(&call->gemm), *reasons;
  cJSON_AddNumberToObject(object, "calls", (double)gs_call_count(call));
  cJSON_AddNumberToObject(object, "served", (double)gs_call_served(call));
  json_replays(object, call->captured, call->traced, call->replays);
  add_number(object, "mean_us", gs_call_mean_us(call), call->timed);
  add_number(object, "gpu_us", gs_call_us(call), call->timed);
  cJSON_AddBoolToObject(object, "servable", gs_call_servable(call));
  cJSON_AddStringToObject(object, "kernel", call->kernel);
  json_trial(object, call);
  json_compared(object, call);
  reasons = cJSON_AddObjectToObject(object, "verdicts");
  for (int r = 0; r < GS_REASON_COUNT; r++)
    if (call->calls[r]) cJSON_AddNumberToObject(reasons, gs_reason_names[r], (double)call->calls[r]);
  if (call->untold) cJSON_AddNumberToObject(reasons, "unknown", (double)call->untold);
  return object;
}

static void json_totals(cJSON *root, const gs_totals_t *t) {
  cJSON_AddNumberToObject(root, "shapes_seen", (double)t->shapes);
  cJSON_AddNumberToObject(root, "calls", (double)t->calls);
  cJSON_AddNumberToObject(root, "served", (double)t->served);
  json_replays(root, t->captured, t->traced, t->replays);
  add_number(root, "gpu_us", t->us, t->us > 0);
  add_number(root, "served_gpu_us", t->served_us, t->us > 0);
  add_number(root, "servable_gpu_us", t->servable_us, t->us > 0);
  cJSON *verdicts = cJSON_AddObjectToObject(root, "verdicts");
  for (int r = 0; r < GS_REASON_COUNT; r++)
    if (t->by_reason[r]) cJSON_AddNumberToObject(verdicts, gs_reason_names[r], (double)t->by_reason[r]);
  if (t->untold) cJSON_AddNumberToObject(verdicts, "unknown", (double)t->untold);
}

void gs_report_json(const gs_calls_t *set, int top) {
  gs_totals_t totals = gs_totals(set);
  gs_ceiling_t ceiling = gs_ceiling(&totals, set->processes);
  cJSON *root = cJSON_CreateObject(), *object = cJSON_AddObjectToObject(root, "ceiling");
  cJSON_AddBoolToObject(object, "known", ceiling.known);
  add_number(object, "value", ceiling.value, ceiling.known);
  add_number(object, "share", ceiling.share, ceiling.known);
  add_number(object, "window_s", totals.window_s, set->active);
  cJSON_AddStringToObject(object, "why", ceiling.why);
  json_totals(root, &totals);
  cJSON_AddNumberToObject(root, "files", set->files);
  cJSON_AddNumberToObject(root, "faults", set->faults);
  cJSON_AddNumberToObject(root, "processes", set->processes);
  cJSON_AddStringToObject(root, "program", set->program);
  cJSON_AddStringToObject(root, "gpu", set->gpu);
  cJSON_AddStringToObject(root, "table", set->table);
  cJSON *shapes = cJSON_AddArrayToObject(root, "shapes");
  const gs_shape_t *call = set->calls;
  for (int i = 0; call && i < top; i++, call = call->hh.next) cJSON_AddItemToArray(shapes, json_call(call));
  gs_json_print(root);
}

static void metric(const char *name, const char *type, const char *help) {
  printf("# HELP gemmshim_%s %s\n# TYPE gemmshim_%s %s\n", name, help, name, type);
}

void gs_report_prometheus(const gs_calls_t *set) {
  gs_totals_t totals = gs_totals(set);
  metric("products_total", "counter",
         "Matrix products by verdict, and by the reason why they were forwarded.");
  for (int r = 0; r < GS_REASON_COUNT; r++)
    printf("gemmshim_products_total{verdict=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
           r == GS_REASON_SERVED ? "served" : "forwarded", gs_reason_names[r], totals.by_reason[r]);
  printf("gemmshim_products_total{verdict=\"forwarded\",reason=\"unknown\"} %" PRIu64 "\n", totals.untold);
  metric("captured_products_total", "counter", "Products, among them, that were captured into CUDA graphs.");
  printf("gemmshim_captured_products_total %" PRIu64 "\n", totals.captured);
  metric("untraced_products_total", "counter",
         "Captured products, among them, whose replays cannot be seen.");
  printf("gemmshim_untraced_products_total %" PRIu64 "\n", totals.captured - totals.traced);
  metric("replayed_products_total", "counter", "Products that launches of graphs ran, where they are seen.");
  printf("gemmshim_replayed_products_total %" PRIu64 "\n", totals.replays);
  metric("product_seconds_total", "counter", "GPU time of products, estimated from sampled calls.");
  printf("gemmshim_product_seconds_total{verdict=\"served\"} %.9g\n", totals.served_us / 1e6);
  printf("gemmshim_product_seconds_total{verdict=\"forwarded\"} %.9g\n",
         (totals.us - totals.served_us) / 1e6);
  metric("shapes", "gauge", "Shapes that were called.");
  printf("gemmshim_shapes %" PRIu64 "\n", totals.shapes);
  metric("processes", "gauge", "Processes that called products.");
  printf("gemmshim_processes %d\n", set->active);
}

void gs_report_csv(const gs_calls_t *set, int top) {
  puts("entry,transa,transb,m,n,k,lda,ldb,ldc,ldd,a_type,b_type,c_type,d_type,compute,epilogue,batch_kind,"
       "batch,"
       "stride_a,stride_b,stride_c,stride_d,align,calls,served,captured,replays,mean_us,gpu_us,kernel,main_"
       "reason");
  const gs_shape_t *call = set->calls;
  for (int i = 0; call && i < top; i++, call = call->hh.next) {
    char product[512], times[64] = ",", replays[24] = "";
    gs_gemm_format(product, sizeof product, &call->gemm);
    for (char *c = product; *c; c++)
      if (*c == '\t') *c = ',';
    if (call->timed) snprintf(times, sizeof times, "%.3f,%.3f", gs_call_mean_us(call), gs_call_us(call));
    if (call->traced == call->captured) snprintf(replays, sizeof replays, "%" PRIu64, call->replays);
    gs_reason_t reason = gs_call_reason(call);
    printf("%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%s,%s,%s,%s\n", product, gs_call_count(call),
           gs_call_served(call), call->captured, replays, times, call->kernel,
           reason == GS_REASON_COUNT ? "unknown" : gs_reason_names[reason]);
  }
}
