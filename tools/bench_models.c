#define _GNU_SOURCE
#include "bench_models.h"

#include <math.h>
#include <string.h>

#include "layers.h"

static const int steps[] = {1, 8, 64, 2048};
static const gs_type_t types[] = {GS_TYPE_F16, GS_TYPE_BF16};

typedef struct {
  double ours[GS_CLOCK_COUNT], asked[GS_CLOCK_COUNT], best[GS_CLOCK_COUNT];
} sums_t;

static const gs_bench_row_t *row_of(const gs_bench_set_t *set, const gs_layer_t *layer, int n,
                                    gs_type_t type) {
  for (int i = 0; i < set->count; i++) {
    const gs_gemm_t *g = &set->rows[i].gemm;
    bool d_fits = layer->f32_out ? g->d_type == GS_TYPE_F32 : g->d_type == g->a_type;
    bool layout_known = g->transa == (uint8_t)layer->transa ||
                        isfinite(set->rows[i].us[GS_CLOCK_GPU][layer->transa != GS_OP_N][GS_RUNNER_OURS]);
    if (g->m == layer->m && g->n == n && g->k == layer->k && g->transb == (uint8_t)layer->transb &&
        layout_known && g->a_type == (uint8_t)type && d_fits && g->epilogue == (uint8_t)layer->epilogue &&
        g->batch == 1)
      return gs_bench_row_ok(&set->rows[i]) ? &set->rows[i] : NULL;
  }
  return NULL;
}

static void add(gs_model_t *model, sums_t *sums, const gs_layer_t *layer, const gs_bench_row_t *row) {
  int layout = layer->transa != GS_OP_N;
  for (int c = 0; c < GS_CLOCK_COUNT; c++) {
    const double *us = row->us[c][layout];
    sums->ours[c] += layer->times * us[GS_RUNNER_OURS];
    sums->best[c] += layer->times * us[GS_RUNNER_AUTO];
    sums->asked[c] += layer->times * us[isfinite(us[GS_RUNNER_GEMM_EX]) ? GS_RUNNER_GEMM_EX : GS_RUNNER_LT];
  }
  model->layers++;
  gs_interval_t ratio = row->ratio[GS_CLOCK_GPU][GS_RIVAL_AUTO][layout];
  if (!(ratio.hi < 1)) return;
  if (model->losses < GS_MODEL_LOSSES_MAX) {
    snprintf(model->lost[model->losses], sizeof model->lost[0], "%s", layer->name);
    model->lost_ratio[model->losses] = ratio.value;
  }
  model->losses++;
}

static size_t stem(const char *name) {
  const char *end = strrchr(name, '_');
  return end ? (size_t)(end - name) : strlen(name);
}

static bool same_model(const gs_layer_t *x, const gs_layer_t *y) {
  return stem(x->name) == stem(y->name) && !strncmp(x->name, y->name, stem(x->name));
}

static gs_model_t weigh(const gs_bench_set_t *set, const gs_layers_t *layers, const gs_layer_t *first, int n,
                        gs_type_t type) {
  gs_model_t model = {.n = n, .type = type};
  sums_t sums = {0};
  snprintf(model.name, sizeof model.name, "%.*s", (int)stem(first->name), first->name);
  for (const gs_layer_t *layer = first; layer < layers->items + layers->count; layer++) {
    bool in_step = layer->times && !layer->batches.count && !layer->ns.count;
    if (!in_step || !same_model(layer, first)) continue;
    const gs_bench_row_t *row = row_of(set, layer, n, type);
    if (row)
      add(&model, &sums, layer, row);
    else
      model.missing++;
  }
  for (int c = 0; c < GS_CLOCK_COUNT; c++) { /* 0 / 0, or a clock that was not read, is NAN */
    model.asked[c] = sums.asked[c] / sums.ours[c];
    model.best[c] = sums.best[c] / sums.ours[c];
  }
  return model;
}

bool gs_bench_models(const gs_bench_set_t *set, const char *path, void (*f)(void *, const gs_model_t *),
                     void *context) {
  gs_layers_t layers;
  if (!gs_layers_read(&layers, path)) return false;
  for (const gs_layer_t *layer = layers.items; layer < layers.items + layers.count; layer++) {
    const gs_layer_t *first = layers.items;
    while (!same_model(first, layer)) first++;
    for (size_t t = 0; t < sizeof types / sizeof *types && first == layer; t++)
      for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        gs_model_t model = weigh(set, &layers, first, steps[s], types[t]);
        if (model.layers) f(context, &model);
      }
  }
  gs_layers_free(&layers);
  return true;
}
