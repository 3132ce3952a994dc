/* The summary of `bench` for people. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_joins.h"
#include "bench_models.h"
#include "bench_summary.h"

#define VALUES_MAX 40
#define LOSSES_MAX 10
#define LINE       "%-9s %-8s %-4s"

/* A claim, then the noise of the same products beside it: the library against itself. */
static void print_numbers(const gs_claim_t *claim, const gs_claim_t *noise) {
  printf(" %6d %7.3f %7.3f", claim->count, claim->mean, claim->geomean.value);
  if (isfinite(claim->geomean.lo))
    printf(" [%.3f, %.3f]", claim->geomean.lo, claim->geomean.hi);
  else
    printf(" %14s", "");
  printf(" %6.3f %5d %5d %5d %8.1e", claim->deviation, claim->wins, claim->ties, claim->losses, claim->p);
  if (noise && noise->count) printf("   %.3f %4d %4d", noise->geomean.value, noise->wins, noise->losses);
  putchar('\n');
}

static void print_heads(const char *first) {
  printf("\n%-23s %6s %7s %7s %-16s %6s %5s %5s %5s %8s   %s\n", first, "count", "mean", "geomean",
         "95% interval", "std", "win", "tie", "loss", "p", "A/A: geomean, win, loss");
}

static bool print_claim(const gs_bench_set_t *set, gs_subject_t subject, const char *label) {
  gs_claim_t claim = gs_bench_claim(set, &subject);
  if (!claim.count) return false;
  subject.rival = GS_RIVAL_AA;
  gs_claim_t noise = gs_bench_claim(set, &subject);
  printf("%-23s", label);
  print_numbers(&claim, &noise);
  return true;
}

static void print_overall(const gs_bench_set_t *set) {
  char label[64];
  print_heads("clock against layout");
  for (int c = 0; c < GS_CLOCK_COUNT; c++)
    for (int b = GS_RIVAL_AA + 1; b < GS_RIVAL_COUNT; b++)
      for (int l = 0; l <= GS_LAYOUT_MAX; l++) {
        snprintf(label, sizeof label, "%-6s  %-7s %s", gs_clock_kind_names[c], gs_rival_names[b],
                 gs_layout_names[l]);
        print_claim(set, (gs_subject_t){GS_CLASS_ALL, 0, (gs_clock_kind_t)c, (gs_rival_t)b, l}, label);
      }
}

static void print_classes(const gs_bench_set_t *set, gs_clock_kind_t clock, gs_class_t class) {
  double values[VALUES_MAX];
  char label[64];
  int count = gs_class_values(set, class, values, VALUES_MAX);
  gs_subject_t all = {GS_CLASS_ALL, 0, clock, GS_RIVAL_AUTO, GS_LAYOUT_MAX};
  if (!gs_bench_claim(set, &all).count) return;
  snprintf(label, sizeof label, "%s, auto max, by %s", gs_clock_kind_names[clock],
           class == GS_CLASS_FLOPS ? "FLOPs" : "side");
  print_heads(label);
  for (int v = 0; v < count; v++) {
    if (class == GS_CLASS_FLOPS)
      snprintf(label, sizeof label, "%.0e to %.0e", values[v], 10 * values[v]);
    else
      snprintf(label, sizeof label, "smallest %.0f to %.0f", values[v], 2 * values[v] - 1);
    print_claim(set, (gs_subject_t){class, values[v], clock, GS_RIVAL_AUTO, GS_LAYOUT_MAX}, label);
  }
  if (class == GS_CLASS_FLOPS)
    for (int small = 1; small >= 0; small--)
      print_claim(set, (gs_subject_t){GS_CLASS_SMALL, small, clock, GS_RIVAL_AUTO, GS_LAYOUT_MAX},
                  small ? "all below 1e8" : "all from 1e8 on");
}

/* ---- who served, what lost ---- */

static void print_verdict(void *context, const char *verdict, int products) {
  (void)context;
  printf(" %s %d", verdict, products);
}

static void print_unmeasured(const gs_bench_set_t *set) {
  for (int i = 0; i < set->count; i++) {
    char name[256];
    if (gs_bench_row_ok(&set->rows[i])) continue;
    gs_gemm_describe(name, sizeof name, &set->rows[i].gemm);
    printf("not measured: %s: %s\n", name, set->rows[i].status);
  }
}

/* Served calls that lost on the gpu clock, or where that was not read on the wall clock. */
typedef struct {
  const gs_bench_row_t *row;
  int layout;
  gs_interval_t ratio;
} loss_t;

static int by_ratio(const void *a, const void *b) {
  double x = ((const loss_t *)a)->ratio.value, y = ((const loss_t *)b)->ratio.value;
  return (x > y) - (x < y);
}

static void print_losses(const gs_bench_set_t *set, gs_clock_kind_t clock) {
  loss_t *losses = malloc((size_t)(set->count * GS_LAYOUT_COUNT + 1) * sizeof *losses);
  int count = 0, served = 0;
  if (!losses) abort();
  for (int i = 0; i < set->count; i++)
    for (int l = 0; l < GS_LAYOUT_COUNT; l++) {
      const gs_bench_row_t *row = &set->rows[i];
      gs_interval_t ratio = row->ratio[clock][GS_RIVAL_AUTO][l];
      if (strcmp(row->door[l].verdict, gs_reason_names[GS_REASON_SERVED]) || !isfinite(ratio.value)) continue;
      served++;
      if (ratio.hi < 1) losses[count++] = (loss_t){row, l, ratio};
    }
  qsort(losses, (size_t)count, sizeof *losses, by_ratio);
  if (served)
    printf("\n%s clock: %d of %d served products lost to the best of cuBLASLt%s\n",
           gs_clock_kind_names[clock], count, served,
           count > LOSSES_MAX ? "; the worst:"
           : count            ? ":"
                              : "");
  for (int i = 0; i < count && i < LOSSES_MAX; i++) {
    const gs_gemm_t *g = &losses[i].row->gemm;
    printf("  %.3f [%.3f, %.3f]  %s %lldx%lldx%lld %s->%s %s  %s\n", losses[i].ratio.value,
           losses[i].ratio.lo, losses[i].ratio.hi, gs_layout_names[losses[i].layout], (long long)g->m,
           (long long)g->n, (long long)g->k, gs_type_names[g->a_type], gs_type_names[g->d_type],
           gs_epilogue_names[g->epilogue], losses[i].row->door[losses[i].layout].kernel);
  }
  free(losses);
}

/* ---- beside ours ---- */

static void print_join(void *context, const gs_join_t *join) {
  printf("%-21s %6d   theirs: mean %.3f geomean %.3f   ours (%s, %s max): mean %.3f geomean %.3f  [%s]\n",
         join->column, join->theirs.count, join->theirs.mean, join->theirs.geomean.value,
         gs_clock_kind_names[join->clock], gs_rival_names[join->rival], join->ours.mean,
         join->ours.geomean.value, (const char *)context);
}

static void print_torch(void *context, const gs_torch_t *torch) {
  char label[64];
  (void)context;
  snprintf(label, sizeof label, "%-6s  torch   %s", gs_clock_kind_names[torch->clock],
           gs_layout_names[torch->layout]);
  printf("%-23s %6d %7.3f %7.3f [%.3f, %.3f] %6.3f %26.1e\n", label, torch->claim.count, torch->claim.mean,
         torch->claim.geomean.value, torch->claim.geomean.lo, torch->claim.geomean.hi, torch->claim.deviation,
         torch->claim.p);
}

static void print_model(void *context, const gs_model_t *model) {
  (void)context;
  printf("%-20s %4s %-8s n=%-5d %2d/%-2d", model->name, gs_type_names[model->type],
         model->n >= 2048 ? "prefill" : "decode", model->n, model->layers, model->layers + model->missing);
  const double shown[] = {model->asked[GS_CLOCK_GPU], model->best[GS_CLOCK_GPU], model->asked[GS_CLOCK_WALL]};
  for (int i = 0; i < 3; i++) isfinite(shown[i]) ? printf(" %8.3f", shown[i]) : printf(" %8s", "-");
  for (int i = 0; i < model->losses && i < GS_MODEL_LOSSES_MAX; i++)
    printf("%s %s %.3f", i ? "," : "   lost:", model->lost[i], model->lost_ratio[i]);
  putchar('\n');
}

static void print_peers(const gs_bench_set_t *set) {
  for (int c = 0; c < GS_CLOCK_COUNT; c++) {
    double *ratios = malloc((size_t)(2 * set->count + 1) * sizeof *ratios), *ours = ratios + set->count;
    int count = 0, wins = 0, losses = 0;
    if (!ratios) abort();
    for (int i = 0; i < set->count; i++) {
      const gs_bench_peer_t *peer = &set->rows[i].peer[c];
      if (!(peer->us > 0) || !(peer->ratio.value > 0)) continue;
      ratios[count] = peer->ratio.value, ours[count++] = peer->us / peer->ours_us;
      wins += peer->ratio.lo > 1, losses += peer->ratio.hi < 1;
    }
    gs_claim_t theirs = gs_claim_of(ratios, count), beside = gs_claim_of(ours, count);
    if (count)
      printf("\nforeign kernels, %s clock%s: %d products, against the library's fastest mean %.3f geomean "
             "%.3f, win %d "
             "loss %d; ours against them mean %.3f geomean %.3f\n",
             gs_clock_kind_names[c], c == GS_CLOCK_GPU ? " (trains of calls)" : "", count, theirs.mean,
             theirs.geomean.value, wins, losses, beside.mean, beside.geomean.value);
    free(ratios);
  }
}

static bool print_joins(const gs_bench_report_t *r) {
  bool fine = true;
  if (r->torch) {
    print_heads("torch.matmul, in a process of its own");
    fine = gs_join_torch(r->set, r->torch, print_torch, NULL);
  }
  for (int i = 0; i < r->published_count && fine; i++) {
    printf("\n%s: published speed-ups of other kernels, other harness\n", r->published[i]);
    fine = gs_join_published(r->set, r->published[i], print_join, "other harness");
  }
  if (r->models && fine) {
    printf("\n%-20s %4s %-8s %-7s %-5s %8s %8s %8s   layers that lost to auto on the gpu clock\n",
           "model, by time", "", "step", "", "known", "gpu", "gpu auto", "wall");
    fine = gs_bench_models(r->set, r->models, print_model, NULL);
  }
  return fine;
}

bool gs_bench_text(const gs_bench_report_t *r) {
  const gs_bench_set_t *set = r->set;
  if (set->header) fputs(set->header, stdout);
  printf("# ratio: the library's time / ours, above 1 ours is faster; win, loss: its 95%% interval lies "
         "above, below 1;\n"
         "# A/A: the library against itself in the same rounds, the floor of what is noise\n%d products:",
         set->count);
  gs_bench_verdicts(set, print_verdict, NULL);
  printf(" (each layout counts)\n");
  print_unmeasured(set);
  print_overall(set);
  for (int c = 0; c < GS_CLOCK_COUNT; c++)
    for (int class = GS_CLASS_FLOPS; class <= GS_CLASS_SIDE; class ++)
      print_classes(set, (gs_clock_kind_t)c, (gs_class_t) class);
  for (int c = 0; c < GS_CLOCK_COUNT; c++) print_losses(set, (gs_clock_kind_t)c);
  print_peers(set);
  return print_joins(r);
}
