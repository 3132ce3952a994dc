#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "space.h"

typedef struct {
  gs_kernel_t kernel;
  double us;
} guess_t;

typedef struct {
  const gs_gpu_t *gpu;
  const gs_rank_for_t *to;
  guess_t *guesses;
  int count, room;
} search_t;

/* Its index, -1: the pool lacks it. */
static int find(const gs_pool_t *pool, const gs_kernel_t *kernel) {
  for (int i = 0; i < pool->count; i++) {
    gs_kernel_t member = gs_kernel_at(pool->indices[i]);
    if (!memcmp(&member, kernel, sizeof member)) return pool->indices[i];
  }
  return -1;
}

static void visit(void *context, const gs_kernel_t *kernel) {
  search_t *search = context;
  double us = gs_rank_guess(search->gpu, kernel, search->to);
  if (!isfinite(us)) return;
  if (search->count == search->room) {
    int room = search->room ? 2 * search->room : 1024;
    guess_t *grown = realloc(search->guesses, (size_t)room * sizeof *grown);
    if (!grown) return;
    search->guesses = grown, search->room = room;
  }
  search->guesses[search->count++] = (guess_t){*kernel, us};
}

static int by_us(const void *x, const void *y) {
  double a = ((const guess_t *)x)->us, b = ((const guess_t *)y)->us;
  return (a > b) - (a < b);
}

/* Not too many of one tile, nor more than two thirds of one family, whose model may flatter it. */
static bool wanted_beside(const gs_kernel_t *kernel, const gs_kernel_t *chosen, int taken) {
  int of_tile = 0, of_family = 0;
  for (int i = 0; i < taken; i++) {
    bool same = chosen[i].family == kernel->family;
    of_family += same;
    of_tile += same && chosen[i].bm == kernel->bm && chosen[i].bn == kernel->bn;
  }
  return of_tile < GS_SEARCH_OF_TILE && 3 * of_family <= 2 * taken + 2;
}

/* The best guesses; returns how many there are. */
static int choose(guess_t *guesses, int count, int wanted, gs_kernel_t *chosen) {
  int taken = 0;
  qsort(guesses, (size_t)count, sizeof *guesses, by_us);
  for (bool found = true; found && taken < wanted;) {
    found = false;
    for (int i = 0; i < count && !found; i++) {
      found = isfinite(guesses[i].us) && wanted_beside(&guesses[i].kernel, chosen, taken);
      if (!found) continue;
      chosen[taken++] = guesses[i].kernel;
      guesses[i].us = INFINITY; /* taken */
    }
  }
  return taken;
}

/* Their indices join found; what was not made yet is compiled. */
static gs_pool_tally_t gather(gs_pool_t *found, gs_pool_t *made, const gs_kernel_t *chosen, int count,
                              const gs_pool_for_t *for_what) {
  gs_kernel_t *missing = calloc((size_t)count + 1, sizeof *missing);
  int lacking = 0;
  for (int i = 0; missing && i < count; i++)
    if (find(made, &chosen[i]) < 0) missing[lacking++] = chosen[i];
  gs_pool_tally_t tally = gs_pool_compile(made, missing, lacking, for_what, false);
  for (int i = 0; i < count; i++)
    if (find(made, &chosen[i]) >= 0) gs_pool_add(found, find(made, &chosen[i]));
  free(missing);
  return tally;
}

gs_pool_tally_t gs_search(gs_pool_t *found, gs_pool_t *made, const gs_gpu_t *gpu, const gs_rank_for_t *to,
                          int wanted, const volatile sig_atomic_t *stopped) {
  const gs_pool_for_t for_what = {.sm = gpu->device.sm, .stopped = stopped};
  search_t search = {.gpu = gpu, .to = to};
  gs_kernel_t *chosen = malloc(2 * (size_t)wanted * sizeof *chosen);
  gs_space_visit(to->gemm, gs_device_arch(gpu->device.sm), visit, &search);
  int count = chosen ? choose(search.guesses, search.count, 2 * wanted, chosen) : 0;
  int first = count < wanted ? count : wanted;
  gs_pool_tally_t tally = gather(found, made, chosen, first, &for_what);
  int second = count - first < tally.refused ? count - first : tally.refused;
  gs_pool_tally_t more = gather(found, made, chosen + first, second, &for_what);
  free(search.guesses);
  free(chosen);
  return (gs_pool_tally_t){tally.compiled + more.compiled, tally.refused + more.refused, tally.no_compiler};
}
