/* The summary of `bench` for scripts. */
#include <math.h>
#include <string.h>

#include "bench_joins.h"
#include "bench_models.h"
#include "bench_summary.h"
#include "json.h"

#define VALUES_MAX 40

static void number(cJSON *object, const char *name, double value) {
  if (isfinite(value))
    cJSON_AddNumberToObject(object, name, value);
  else
    cJSON_AddNullToObject(object, name);
}

static void add_claim(cJSON *object, const gs_claim_t *claim, bool judged) {
  number(object, "count", claim->count);
  number(object, "mean", claim->mean);
  number(object, "geomean", claim->geomean.value);
  number(object, "geomean_lo", claim->geomean.lo);
  number(object, "geomean_hi", claim->geomean.hi);
  number(object, "std", claim->deviation);
  number(object, "best", claim->best);
  number(object, "worst", claim->worst);
  number(object, "wilcoxon_p", claim->p);
  if (!judged) return;
  number(object, "win", claim->wins);
  number(object, "tie", claim->ties);
  number(object, "loss", claim->losses);
}

static void add_subject(cJSON *list, const gs_bench_set_t *set, gs_subject_t subject) {
  gs_claim_t claim = gs_bench_claim(set, &subject);
  if (!claim.count) return;
  cJSON *entry = cJSON_CreateObject();
  cJSON_AddStringToObject(entry, "class", gs_class_names[subject.class]);
  if (subject.class != GS_CLASS_ALL) number(entry, "value", subject.value);
  cJSON_AddStringToObject(entry, "clock", gs_clock_kind_names[subject.clock]);
  cJSON_AddStringToObject(entry, "against", gs_rival_names[subject.rival]);
  cJSON_AddStringToObject(entry, "layout", gs_layout_names[subject.layout]);
  add_claim(entry, &claim, true);
  subject.rival = GS_RIVAL_AA;
  gs_claim_t noise = gs_bench_claim(set, &subject);
  if (noise.count) add_claim(cJSON_AddObjectToObject(entry, "aa"), &noise, true);
  cJSON_AddItemToArray(list, entry);
}

static void add_claims(cJSON *list, const gs_bench_set_t *set) {
  for (int class = 0; class < GS_CLASS_COUNT; class ++) {
    double values[VALUES_MAX];
    int count = gs_class_values(set, (gs_class_t) class, values, VALUES_MAX);
    for (int v = 0; v < count; v++)
      for (int c = 0; c < GS_CLOCK_COUNT; c++)
        for (int b = GS_RIVAL_AA + 1; b < GS_RIVAL_COUNT; b++)
          for (int l = 0; l <= GS_LAYOUT_MAX; l++)
            add_subject(list, set,
                        (gs_subject_t){(gs_class_t) class, values[v], (gs_clock_kind_t)c, (gs_rival_t)b, l});
  }
}

static void add_verdict(void *context, const char *verdict, int products) {
  cJSON_AddNumberToObject(context, verdict, products);
}

static void add_header(cJSON *root, const char *header) {
  static const char *const keys[] = {"gpu", "driver", "cublas", "table", "clocks", "date"};
  char value[512];
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    cJSON_AddStringToObject(root, keys[i], gs_bench_header_get(header, keys[i], value, sizeof value));
}

static void add_join(void *context, const gs_join_t *join) {
  cJSON *entry = cJSON_CreateObject();
  cJSON_AddStringToObject(entry, "column", join->column);
  cJSON_AddStringToObject(entry, "harness", "other");
  cJSON_AddStringToObject(entry, "clock", gs_clock_kind_names[join->clock]);
  cJSON_AddStringToObject(entry, "against", gs_rival_names[join->rival]);
  add_claim(cJSON_AddObjectToObject(entry, "theirs"), &join->theirs, false);
  add_claim(cJSON_AddObjectToObject(entry, "ours"), &join->ours, false);
  cJSON_AddItemToArray(context, entry);
}

static void add_torch(void *context, const gs_torch_t *torch) {
  cJSON *entry = cJSON_CreateObject();
  cJSON_AddStringToObject(entry, "clock", gs_clock_kind_names[torch->clock]);
  cJSON_AddStringToObject(entry, "layout", gs_layout_names[torch->layout]);
  add_claim(entry, &torch->claim, false);
  cJSON_AddItemToArray(context, entry);
}

static void add_model(void *context, const gs_model_t *model) {
  cJSON *entry = cJSON_CreateObject();
  cJSON_AddStringToObject(entry, "model", model->name);
  cJSON_AddStringToObject(entry, "type", gs_type_names[model->type]);
  number(entry, "n", model->n);
  number(entry, "layers", model->layers);
  number(entry, "missing", model->missing);
  for (int c = 0; c < GS_CLOCK_COUNT; c++) {
    cJSON *clock = cJSON_AddObjectToObject(entry, gs_clock_kind_names[c]);
    number(clock, "asked", model->asked[c]);
    number(clock, "auto", model->best[c]);
  }
  cJSON *lost = cJSON_AddObjectToObject(entry, "lost");
  for (int i = 0; i < model->losses && i < GS_MODEL_LOSSES_MAX; i++)
    number(lost, model->lost[i], model->lost_ratio[i]);
  cJSON_AddItemToArray(context, entry);
}

bool gs_bench_json(const gs_bench_report_t *r) {
  cJSON *root = cJSON_CreateObject();
  int measured = 0;
  bool fine = true;
  add_header(root, r->set->header ? r->set->header : "");
  for (int i = 0; i < r->set->count; i++) measured += gs_bench_row_ok(&r->set->rows[i]);
  number(root, "products", r->set->count);
  number(root, "measured", measured);
  gs_bench_verdicts(r->set, add_verdict, cJSON_AddObjectToObject(root, "verdicts"));
  add_claims(cJSON_AddArrayToObject(root, "claims"), r->set);
  if (r->torch) fine = gs_join_torch(r->set, r->torch, add_torch, cJSON_AddArrayToObject(root, "torch"));
  cJSON *published = cJSON_AddArrayToObject(root, "published");
  for (int i = 0; i < r->published_count && fine; i++)
    fine = gs_join_published(r->set, r->published[i], add_join, published);
  if (r->models && fine)
    fine = gs_bench_models(r->set, r->models, add_model, cJSON_AddArrayToObject(root, "models"));
  gs_json_print(root);
  return fine;
}
