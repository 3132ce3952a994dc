/* The lists are long (ids x tiles x stages x splits x orders of tiles) and a check takes microseconds, so the walk
 * is bounded: ids that the heuristic itself offers come first, each with as much as its share of the checks. Those
 * accepted are ordered by how well their blocks fill the multiprocessors, the one thing that the library tells
 * without running them; the best of every id come before the second best of any. */
#include "algos.h"

#include <math.h>
#include <string.h>

#define IDS_MAX    128
#define VALUES_MAX 256 /* tiles, or stages, of one algorithm */
#define OF_ONE_ID  3
#define LATER      1e12 /* more than any score */
#define CUSTOM_MAX 3u   /* custom options beyond are not tried */

static const int32_t splits[] = {1, 2, 4, 8};
#define SPLITS (int)(sizeof splits / sizeof *splits)

bool gs_algos_offered(const gs_lt_t *lt, int candidate, gs_algos_t *out) {
  const gs_real_t *real = lt->cublas->real;
  *out = (gs_algos_t){.score = 1};
  return real && gs_library_read(real, &lt->candidates[candidate].algo, &out->algo, &out->split_k) &&
         gs_algo_exact(&out->algo);
}

uint64_t gs_algos_first(const gs_lt_t *lt) {
  gs_algo_t algo;
  int split_k;
  if (!lt->count || !lt->cublas->real ||
      !gs_library_read(lt->cublas->real, &lt->candidates[0].algo, &algo, &split_k))
    return 0;
  return 1 + ((uint64_t)algo.id << 40 | (uint64_t)(split_k & 255) << 32 | algo.tile);
}

/* One walk through the lists. */
typedef struct {
  const gs_lt_t *lt;
  const gs_gemm_t *g;
  gs_algos_t best[OF_ONE_ID]; /* of the id at hand */
  int count;
  int checks; /* left to it */
} gs_walk_t;

static int capability(const gs_cublas_t *cublas, const cublasLtMatmulAlgo_t *algo,
                      cublasLtMatmulAlgoCapAttributes_t id, uint32_t *values, int room) {
  size_t bytes = 0;
  if (cublas->cublasLtMatmulAlgoCapGetAttribute(algo, id, NULL, 0, &bytes) != CUBLAS_STATUS_SUCCESS ||
      !bytes || bytes > (size_t)room * sizeof *values ||
      cublas->cublasLtMatmulAlgoCapGetAttribute(algo, id, values, bytes, &bytes) != CUBLAS_STATUS_SUCCESS)
    return 0;
  return (int)(bytes / sizeof *values);
}

static uint32_t flag(const gs_cublas_t *cublas, const cublasLtMatmulAlgo_t *algo,
                     cublasLtMatmulAlgoCapAttributes_t id) {
  uint32_t value[1] = {0};
  return capability(cublas, algo, id, value, 1) ? value[0] : 0;
}

static bool is_offered(const gs_lt_t *lt, const gs_algos_t *one) {
  gs_algos_t offered;
  for (int i = 0; i < lt->count; i++)
    if (gs_algos_offered(lt, i, &offered) && offered.split_k == one->split_k &&
        !memcmp(&offered.algo, &one->algo, sizeof one->algo))
      return true;
  return false;
}

/* Keeps it where it belongs among the best. */
static void keep(gs_algos_t *best, int *count, int limit, const gs_algos_t *one) {
  int at = *count;
  while (at > 0 && best[at - 1].score > one->score) at--;
  if (at == limit) return;
  if (*count < limit) ++*count;
  memmove(&best[at + 1], &best[at], sizeof *one * (size_t)(*count - at - 1));
  best[at] = *one;
}

static void consider(gs_walk_t *walk, gs_algos_t one) {
  const gs_lt_t *lt = walk->lt;
  const gs_cublas_t *cublas = lt->cublas;
  cublasLtMatmulAlgo_t algo;
  cublasLtMatmulHeuristicResult_t result = {.state = CUBLAS_STATUS_NOT_SUPPORTED};
  if (walk->checks-- <= 0 ||
      !gs_library_algo(cublas->real, cublas->lt, walk->g, &one.algo, one.split_k, &algo))
    return;
  if (cublas->cublasLtMatmulAlgoCheck(cublas->lt, lt->desc, lt->a, lt->b, lt->d, lt->d, &algo, &result) !=
          CUBLAS_STATUS_SUCCESS ||
      result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > GS_CUBLAS_WORKSPACE)
    return;
  double waves = (double)result.wavesCount;
  one.score = waves > 0 ? ceil(waves) / waves : 1e9;
  if (!is_offered(lt, &one)) keep(walk->best, &walk->count, OF_ONE_ID, &one);
}

static void walk_id(gs_walk_t *walk, int id) {
  const gs_cublas_t *cublas = walk->lt->cublas;
  gs_algos_t one = {.algo.id = id, .split_k = 1};
  cublasLtMatmulAlgo_t algo;
  uint32_t tiles[VALUES_MAX], stages[VALUES_MAX];
  if (!gs_library_algo(cublas->real, cublas->lt, walk->g, &one.algo, 1, &algo)) return;
  int tile_count = capability(cublas, &algo, CUBLASLT_ALGO_CAP_TILE_IDS, tiles, VALUES_MAX);
  int stage_count = capability(cublas, &algo, CUBLASLT_ALGO_CAP_STAGES_IDS, stages, VALUES_MAX);
  bool may_split =
      flag(cublas, &algo, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT) &&
      flag(cublas, &algo, CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK) & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  uint32_t swizzles = flag(cublas, &algo, CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT) ? 2 : 1;
  uint32_t custom_max = flag(cublas, &algo, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX);
  if (custom_max > CUSTOM_MAX) custom_max = CUSTOM_MAX;
  if (!tile_count) tiles[tile_count++] = CUBLASLT_MATMUL_TILE_UNDEFINED;
  if (!stage_count) stages[stage_count++] = CUBLASLT_MATMUL_STAGES_UNDEFINED;
  for (int s = 0; s < (may_split ? SPLITS : 1); s++) {
    one.split_k = splits[s];
    one.algo.reduction = s ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_NONE;
    for (uint32_t custom = 0; custom <= custom_max; custom++)
      for (int t = 0; t < tile_count; t++)
        for (int stage = 0; stage < stage_count; stage++)
          for (uint32_t z = 0; z < swizzles && walk->checks > 0; z++) {
            one.algo.tile = tiles[t], one.algo.stages = stages[stage];
            one.algo.swizzle = z, one.algo.custom = custom;
            consider(walk, one);
          }
  }
}

/* The library's ids, those that the heuristic offers in front. */
static int list_ids(const gs_lt_t *lt, const gs_gemm_t *g, int *ids) {
  static const cudaDataType_t types[] = {
      [GS_TYPE_F16] = CUDA_R_16F, [GS_TYPE_BF16] = CUDA_R_16BF, [GS_TYPE_F32] = CUDA_R_32F};
  cudaDataType_t ab = types[g->a_type], cd = types[g->d_type];
  int count = 0, front = 0;
  gs_algos_t offered;
  if (lt->cublas->cublasLtMatmulAlgoGetIds(lt->cublas->lt, CUBLAS_COMPUTE_32F, CUDA_R_32F, ab, ab, cd, cd,
                                           IDS_MAX, ids, &count) != CUBLAS_STATUS_SUCCESS)
    return 0;
  for (int i = 0; i < lt->count; i++)
    for (int j = front; gs_algos_offered(lt, i, &offered) && j < count; j++)
      if (ids[j] == offered.algo.id) ids[j] = ids[front], ids[front++] = offered.algo.id;
  return count;
}

/* An id's second best comes behind the best of every other one. */
int gs_algos_beyond(const gs_lt_t *lt, const gs_gemm_t *g, gs_algos_t *best, int limit) {
  int ids[IDS_MAX], found = 0;
  gs_walk_t walk = {.lt = lt, .g = g};
  if (!lt->cublas->real || !lt->count || gs_algo_supports(g) != GS_REASON_SERVED) return 0;
  int count = list_ids(lt, g, ids), left = GS_ALGOS_CHECKS;
  for (int i = 0; i < count && left > 0; i++) {
    int share = left / 3 > 64 ? left / 3 : left < 64 ? left : 64;
    walk.checks = share, walk.count = 0;
    walk_id(&walk, ids[i]);
    left -= share - (walk.checks > 0 ? walk.checks : 0);
    for (int nth = 0; nth < walk.count; nth++) {
      walk.best[nth].score += nth * LATER;
      keep(best, &found, limit, &walk.best[nth]);
    }
  }
  return found;
}
