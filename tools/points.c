#define _GNU_SOURCE
#include "points.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "tools.h"

bool gs_points_same_key(const gs_gemm_t *x, const gs_gemm_t *y) {
  gs_key_t a = gs_key_of(x), b = gs_key_of(y);
  return !memcmp(&a, &b, sizeof a);
}

bool gs_points_has(const gs_points_t *points, const gs_gemm_t *g) {
  for (int i = 0; i < points->count; i++)
    if (points->items[i].n == g->n && gs_points_same_key(&points->items[i], g)) return true;
  return false;
}

bool gs_points_add(gs_points_t *points, const gs_gemm_t *g) {
  if (gs_points_has(points, g)) return true;
  if (points->count == points->room) {
    int room = points->room ? 2 * points->room : 64;
    gs_gemm_t *items = realloc(points->items, (size_t)room * sizeof *items);
    if (!items) {
      gs_say("out of memory");
      return false;
    }
    points->items = items, points->room = room;
  }
  points->items[points->count++] = *g;
  return true;
}

void gs_points_free(gs_points_t *points) {
  free(points->items);
  *points = (gs_points_t){0};
}

/* ---- by key ---- */

static int by_n(const void *left, const void *right) {
  const gs_gemm_t *x = left, *y = right;
  return (x->n > y->n) - (x->n < y->n);
}

void gs_points_by_key(gs_points_t *points) {
  gs_gemm_t *items = points->items;
  for (int first = 0, end; first < points->count; first = end) {
    end = first + 1;
    for (int i = end; i < points->count; i++) {
      if (!gs_points_same_key(&items[first], &items[i])) continue;
      gs_gemm_t one = items[i];
      memmove(&items[end + 1], &items[end], sizeof *items * (size_t)(i - end));
      items[end++] = one;
    }
    qsort(&items[first], (size_t)(end - first), sizeof *items, by_n);
  }
}

bool gs_shard_read(gs_shard_t *shard, const char *text) {
  int end = 0;
  return sscanf(text, "%d/%d%n", &shard->i, &shard->of, &end) == 2 && !text[end] && shard->i >= 1 &&
         shard->i <= shard->of;
}

void gs_shard_default(gs_shard_t *shard) {
  static const struct {
    const char *i, *of, *first;
  } systems[] = {{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"},
                 {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ""},
                 {"PMI_RANK", "PMI_SIZE", ""}};
  for (size_t s = 0; s < sizeof systems / sizeof *systems && !shard->of; s++) {
    const char *i = getenv(systems[s].i), *of = getenv(systems[s].of), *first = getenv(systems[s].first);
    long rank, size, least = 0;
    if (!i || !of || !gs_read_long(i, 0, 1 << 20, &rank) || !gs_read_long(of, 2, 1 << 20, &size)) continue;
    if (first && !gs_read_long(first, 0, 1 << 20, &least)) continue;
    if (rank - least >= 0 && rank - least < size)
      *shard = (gs_shard_t){(int)(rank - least) + 1, (int)size};
    else
      gs_say("%s=%s is not one of %s=%s from %ld on: use --shard I/N", systems[s].i, i, systems[s].of, of,
             least);
  }
}

void gs_points_shard(gs_points_t *points, gs_shard_t shard) {
  int kept = 0, key = -1;
  for (int i = 0; i < points->count; i++) {
    if (!i || !gs_points_same_key(&points->items[i], &points->items[i - 1])) key++;
    if (shard.of && key % shard.of != shard.i - 1) continue;
    points->items[kept++] = points->items[i];
  }
  points->count = kept;
}

static bool computed(gs_type_t ab, gs_type_t d) {
  for (int i = 0; i < gs_shipped_count(); i++) {
    gs_kernel_t kernel = gs_shipped_at(i);
    if (kernel.ab_type == ab && kernel.d_type == d) return true;
  }
  return false;
}

bool gs_pair_read(const char *text, gs_type_t *ab, gs_type_t *d) {
  char first[8], second[8];
  int end = 0;
  if (sscanf(text, "%7[a-z0-9]_%7[a-z0-9]%n", first, second, &end) != 2 || text[end]) return false;
  int first_type = gs_name_index(first, gs_type_names, GS_TYPE_COUNT);
  int second_type = gs_name_index(second, gs_type_names, GS_TYPE_COUNT);
  *ab = (gs_type_t)first_type, *d = (gs_type_t)second_type;
  return first_type >= 0 && second_type >= 0 && computed(*ab, *d);
}

gs_gemm_t gs_points_packed(gs_op_t transa, gs_op_t transb, int64_t m, int64_t n, int64_t k, gs_type_t ab,
                           gs_type_t d, gs_epilogue_t epilogue) {
  return (gs_gemm_t){.entry = epilogue == GS_EPILOGUE_DEFAULT ? GS_ENTRY_GEMM_EX : GS_ENTRY_LT_MATMUL,
                     .transa = transa,
                     .transb = transb,
                     .a_type = ab,
                     .b_type = ab,
                     .c_type = d,
                     .d_type = d,
                     .compute = GS_COMPUTE_32F,
                     .epilogue = epilogue,
                     .align = 16,
                     .batch = 1,
                     .m = m,
                     .n = n,
                     .k = k,
                     .lda = transa == GS_OP_N ? m : k,
                     .ldb = transb == GS_OP_N ? k : n,
                     .ldc = m,
                     .ldd = m};
}

/* Turns a single product into a batch without gaps. */
static void make_strided(gs_gemm_t *g, int batch) {
  if (g->entry == GS_ENTRY_GEMM_EX) g->entry = GS_ENTRY_GEMM_STRIDED_BATCHED_EX;
  g->batch_kind = GS_BATCH_STRIDED, g->batch = batch;
  g->stride_a = g->m * g->k, g->stride_b = g->k * g->n, g->stride_c = g->stride_d = g->m * g->n;
}

/* A product, or a batch of it for each number of products. */
static bool add_batches(gs_points_t *points, const gs_gemm_t *one, const gs_ns_t *batches) {
  if (!batches->count) return gs_points_add(points, one);
  for (int i = 0; i < batches->count; i++) {
    gs_gemm_t g = *one;
    make_strided(&g, batches->n[i]);
    if (!gs_points_add(points, &g)) return false;
  }
  return true;
}

bool gs_points_shape(gs_points_t *points, const char *text, const char **why) {
  char ops[3], m_text[16], ns_text[256], k_text[16], pair[20] = "f16_f16", epilogue_text[16] = "default";
  char batches_text[256];
  int end = 0;
  long m, k;
  gs_op_t transa, transb;
  gs_type_t ab, d;
  gs_ns_t ns, batches = {0};
  *why = "it is not of the form TNxMxNxK:f16_f16 or TNxMxNxK*BATCH:f16_f16";
  if (sscanf(text, "%2[NTnt]x%15[0-9]x%255[0-9,]x%15[0-9]%n", ops, m_text, ns_text, k_text, &end) != 4)
    return false;
  if (!gs_read_long(m_text, 1, INT32_MAX, &m) || !gs_read_long(k_text, 1, INT32_MAX, &k)) return false;
  if (!gs_op_read((char[]){ops[0], 0}, &transa) || !gs_op_read((char[]){ops[1], 0}, &transb)) return false;
  if (text[end] == '*') {
    int more = 0;
    if (sscanf(text + end, "*%255[0-9,]%n", batches_text, &more) != 1) return false;
    end += more;
    *why = "the batch is not a list of 1 to 65535 products such as 12,96";
    if (!gs_batches_read(&batches, batches_text)) return false;
    *why = "it is not of the form TNxMxNxK*BATCH:f16_f16";
  }
  if (text[end] == ':') {
    int more = 0;
    int fields = sscanf(text + end, ":%19[a-z0-9_]:%15[a-z_]%n", pair, epilogue_text, &more);
    if (fields == 1) sscanf(text + end, ":%*[a-z0-9_]%n", &more);
    end += more;
  }
  if (text[end]) return false;
  *why = "n is not a list of sizes such as 1,8,64";
  if (!gs_ns_read(&ns, ns_text)) return false;
  *why = "its types are not a pair that kernels compute, such as f16_f16, f16_f32 or bf16_bf16";
  if (!gs_pair_read(pair, &ab, &d)) return false;
  *why = "the epilogue is not one that gemmshim knows: default, relu, bias, relu_bias, gelu, gelu_bias";
  int epilogue = gs_name_index(epilogue_text, gs_epilogue_names, GS_EPILOGUE_OTHER);
  if (epilogue < 0) return false;
  *why = "out of memory";
  for (int i = 0; i < ns.count; i++) {
    gs_gemm_t g = gs_points_packed(transa, transb, (int)m, ns.n[i], (int)k, ab, d, (gs_epilogue_t)epilogue);
    if (!add_batches(points, &g, &batches)) return false;
  }
  return true;
}

bool gs_points_calls(gs_points_t *points, const char *path) {
  gs_calls_t set = {0};
  gs_calls_read(&set, path);
  gs_calls_sort(&set, GS_BY_TIME);
  int unservable = 0;
  bool added = true;
  for (gs_shape_t *call = set.calls; call && added; call = call->hh.next) {
    if (gs_call_servable(call) && call->gemm.stride_a >= 0 && call->gemm.stride_b >= 0)
      added = gs_points_add(points, &call->gemm);
    else
      unservable++;
  }
  if (unservable) gs_say("%s: %d products are left out: no kernel could serve them", path, unservable);
  bool read = set.files > 0 && set.faults == 0;
  gs_calls_free(&set);
  return added && read;
}

typedef struct {
  gs_type_t ab, d;
} gs_pair_t;

#define PAIRS_MAX 8

/* "f16_f16,bf16_bf16"; 0 where it is malformed (said). */
static int read_pairs(const char *types, gs_pair_t pairs[PAIRS_MAX]) {
  char copy[128];
  int count = 0;
  snprintf(copy, sizeof copy, "%s", types);
  for (char *pair, *list = copy; (pair = strsep(&list, ",")) && count < PAIRS_MAX; count++)
    if (!gs_pair_read(pair, &pairs[count].ab, &pairs[count].d)) {
      gs_say("--types: \"%s\" is not a pair that kernels compute, such as f16_f16", pair);
      return 0;
    }
  return count;
}

bool gs_points_models(gs_points_t *points, const char *path, const gs_ns_t *ns, const char *types) {
  gs_pair_t pairs[PAIRS_MAX];
  gs_layers_t layers;
  int pair_count = read_pairs(types, pairs);
  if (!pair_count || !gs_layers_read(&layers, path)) return false;
  bool added = true;
  for (const gs_layer_t *layer = layers.items; layer < layers.items + layers.count; layer++) {
    const gs_ns_t *own = layer->ns.count ? &layer->ns : ns;
    for (int p = 0; p < pair_count; p++)
      for (int i = 0; i < own->count && added; i++) {
        gs_gemm_t g =
            gs_points_packed(layer->transa, layer->transb, layer->m, own->n[i], layer->k, pairs[p].ab,
                             layer->f32_out ? GS_TYPE_F32 : pairs[p].d, layer->epilogue);
        added = add_batches(points, &g, &layer->batches);
      }
  }
  gs_layers_free(&layers);
  return added;
}

bool gs_points_grid(gs_points_t *points, const gs_ns_t *sizes, const char *types) {
  gs_pair_t pairs[PAIRS_MAX];
  int pair_count = read_pairs(types, pairs), count = sizes->count;
  for (int p = 0; p < pair_count; p++)
    for (int i = 0; i < count * count * count * 2; i++) {
      int m = sizes->n[i / 2 / count % count], n = sizes->n[i / 2 / count / count],
          k = sizes->n[i / 2 % count];
      gs_gemm_t g = gs_points_packed(i % 2 ? GS_OP_T : GS_OP_N, GS_OP_N, m, n, k, pairs[p].ab, pairs[p].d,
                                     GS_EPILOGUE_DEFAULT);
      if (!gs_points_add(points, &g)) return false;
    }
  return pair_count > 0;
}

gs_gemm_t gs_points_keyed(const gs_key_t *key, int64_t n) {
  gs_gemm_t g =
      gs_points_packed((gs_op_t)key->transa, (gs_op_t)key->transb, key->m, n, key->k, (gs_type_t)key->ab_type,
                       (gs_type_t)key->d_type, (gs_epilogue_t)key->epilogue);
  g.compute = key->compute;
  if (key->batch) make_strided(&g, key->batch);
  return g;
}

bool gs_points_rows(gs_points_t *points, const gs_table_t *table) {
  for (int i = 0; i < gs_table_rows(table); i++) {
    const gs_row_t *row = gs_table_row(table, i);
    const int ns[] = {row->n_lo, row->n_lo + (row->n_hi - row->n_lo) / 2, row->n_hi};
    for (int j = 0; j < 3; j++) {
      gs_gemm_t g = gs_points_keyed(&row->key, ns[j]);
      if (!gs_points_add(points, &g)) return false;
    }
  }
  return true;
}
