/* Which intervals of n are claimed: a synthetic GPU, where each configuration wins on ranges of n. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"

/* Configuration number c (its split_k) wins at n where us(c, n) < library. */
typedef struct {
  int c, lo, hi;
  float us;
} range_t;

typedef struct {
  const range_t *ranges;
  int count;
  const int *changes; /* n where the library changes its algorithm; 0 ends them */
  int blind; /* n at which the best of all is not among those that are tried: configuration 1 alone is */
  int asked, held;
  int measured[512];
} gpu_t;

static float us_of(const gpu_t *gpu, int c, int n) {
  for (int i = 0; i < gpu->count; i++)
    if (gpu->ranges[i].c == c && n >= gpu->ranges[i].lo && n <= gpu->ranges[i].hi) return gpu->ranges[i].us;
  return 1000;
}

static bool best(void *context, int n, gs_row_t *row) {
  gpu_t *gpu = context;
  *row = (gs_row_t){.n_lo = n, .n_hi = n, .raster = 1, .us = 1000, .library_us = 10};
  for (int c = 1; c <= (n == gpu->blind ? 1 : 4); c++)
    if (us_of(gpu, c, n) < row->us) row->us = us_of(gpu, c, n), row->split_k = (int16_t)c;
  gpu->asked++;
  gpu->measured[n] = 1;
  return row->us < 10;
}

static bool holds(void *context, int n, gs_row_t *row) {
  gpu_t *gpu = context;
  row->us = us_of(gpu, row->split_k, n);
  gpu->held++;
  gpu->measured[n] = 1;
  return row->us < 10;
}

static uint64_t library(void *context, int n) {
  const gpu_t *gpu = context;
  uint64_t id = 1;
  for (int i = 0; gpu->changes && gpu->changes[i]; i++) id += n >= gpu->changes[i];
  return id;
}

static gs_row_t rows[64];

static int claim(gpu_t *gpu, const range_t *ranges, int count, const int *changes, const int *ns,
                 int n_count) {
  *gpu = (gpu_t){.ranges = ranges, .count = count, .changes = changes};
  return gs_claim(&(gs_oracle_t){gpu, best, holds, library}, ns, n_count, rows);
}
#define COUNT(x)   (int)(sizeof(x) / sizeof *(x))
#define CLAIM(...) claim(&gpu, ranges, COUNT(ranges), changes, ns, COUNT(ns))
#define IS(i, c, lo, hi)                                                                                     \
  cr_assert(rows[i].split_k == c && rows[i].n_lo == lo && rows[i].n_hi == hi, "row %d: %d claims %d..%d", i, \
            rows[i].split_k, rows[i].n_lo, rows[i].n_hi)

static const int ns[] = {1, 2, 3, 4, 5, 7, 8, 13, 16, 27, 32, 48, 64};
static const int *const changes = NULL;

/* Whatever was claimed was measured at its ends, behind its lower end and somewhere inside. */
static void proven(const gpu_t *gpu, int count) {
  for (int i = 0; i < count; i++) {
    cr_assert(gpu->measured[rows[i].n_lo] && gpu->measured[rows[i].n_hi]);
    if (rows[i].n_hi > rows[i].n_lo) cr_assert(gpu->measured[rows[i].n_lo + 1]);
    if (i) cr_assert_gt(rows[i].n_lo, rows[i - 1].n_hi, "rows overlap");
  }
}

/* What a row of a table claims is measured anew from its ends, in more steps where the library changes often. */
Test(claims, an_interval_is_measured_anew_in_steps_that_can_be_proven) {
  int often[100], stops[GS_CLAIM_STOPS_MAX];
  for (int i = 0; i < 40; i++) often[i] = 4 + 3 * i, often[i + 1] = 0;
  gpu_t gpu = {.changes = NULL};
  const gs_oracle_t oracle = {&gpu, best, holds, library};
  cr_assert_eq(gs_claim_stops(&oracle, 7, 7, stops), 1);
  cr_assert(gs_claim_stops(&oracle, 1, 128, stops) == 2 && stops[0] == 1 && stops[1] == 128);
  gpu.changes = often;
  int count = gs_claim_stops(&oracle, 1, 128, stops);
  cr_assert(count > 4 && count <= GS_CLAIM_STOPS_MAX && stops[0] == 1 && stops[count - 1] == 128);
  for (int i = 1; i < count; i++) cr_assert_gt(stops[i], stops[i - 1]);
  const range_t ranges[] = {{1, 1, 128, 5}};
  cr_assert_eq(claim(&gpu, ranges, 1, often, stops, count), 1);
  IS(0, 1, 1, 128);
  const int ends[] = {1, 128};
  cr_assert_eq(claim(&gpu, ranges, 1, often, ends, 2), 2, "in one step it could not be");
}

Test(claims, one_that_wins_everywhere_claims_it_all) {
  const range_t ranges[] = {{1, 1, 100, 5}};
  gpu_t gpu;
  cr_assert_eq(CLAIM(), 1);
  IS(0, 1, 1, 64);
  proven(&gpu, 1);
}

Test(claims, nothing_that_wins_claims_nothing) {
  const range_t ranges[] = {{1, 1, 100, 11}};
  gpu_t gpu;
  cr_assert_eq(CLAIM(), 0);
  cr_assert_eq(gpu.held, 0);
}

Test(claims, a_lost_point_splits) {
  const range_t ranges[] = {{1, 1, 7, 5}, {1, 9, 100, 5}};
  gpu_t gpu;
  cr_assert_eq(CLAIM(), 2);
  IS(0, 1, 1, 7);
  IS(1, 1, 13, 64);
  proven(&gpu, 2);
}

/* 9 is the first behind 8, where a new tile begins; nobody asked for it. */
Test(claims, a_failing_sample_splits) {
  const range_t ranges[] = {{1, 1, 8, 5}, {1, 10, 100, 5}};
  gpu_t gpu;
  cr_assert_eq(CLAIM(), 2);
  IS(0, 1, 1, 8);
  IS(1, 1, 11, 64);
  proven(&gpu, 2);
}

Test(claims, each_of_two_claims_as_far_as_it_was_seen_to_win) {
  const range_t ranges[] = {{1, 1, 20, 5}, {2, 28, 100, 4}, {2, 14, 27, 6}};
  gpu_t gpu;
  int count = CLAIM();
  cr_assert_eq(count, 2);
  cr_assert(rows[0].split_k == 1 && rows[0].n_lo == 1 && rows[0].n_hi >= 16 && rows[0].n_hi <= 20);
  cr_assert(rows[1].split_k == 2 && rows[1].n_hi == 64 && rows[1].n_lo > rows[0].n_hi);
  proven(&gpu, count);
}

Test(claims, a_neighbours_better_configuration_is_not_given_up) {
  const range_t ranges[] = {{1, 1, 100, 8}, {2, 16, 100, 4}};
  gpu_t gpu;
  cr_assert_eq(CLAIM(), 2);
  cr_assert_eq(rows[0].split_k, 1);
  cr_assert_eq(rows[1].split_k, 2);
  cr_assert(rows[0].n_hi < 16 && rows[1].n_hi == 64);
}

/* Both win at 9 to 15, where the lower one's tiles of 8 columns are two; the upper one is twice as fast there. */
Test(claims, what_lies_between_goes_to_the_faster_neighbour) {
  const range_t ranges[] = {{1, 1, 8, 3}, {1, 9, 100, 8}, {2, 9, 100, 4}};
  const int ns[] = {4, 8, 16};
  gpu_t gpu;
  int count = CLAIM();
  cr_assert_eq(count, 2);
  IS(0, 1, 4, 8);
  IS(1, 2, 9, 16);
  proven(&gpu, count);
}

/* The upper one does not win at 9 to 11; the lower one does, though it is slow. */
Test(claims, a_slow_neighbour_keeps_what_the_other_does_not_win) {
  const range_t ranges[] = {{1, 1, 8, 3}, {1, 9, 100, 8}, {2, 12, 100, 4}};
  const int ns[] = {8, 16};
  gpu_t gpu;
  int count = CLAIM();
  cr_assert_eq(count, 2);
  IS(0, 1, 8, 9);
  IS(1, 2, 13, 16); /* 12 is not asked about; 13 is the sample in the middle, and 14 the one behind it */
  proven(&gpu, count);
}

static int claim_blindly(gpu_t *gpu, float us, const range_t *others, int count) {
  static const int ns[] = {32, 48, 64};
  range_t ranges[8] = {{1, 1, 100, us}};
  memcpy(&ranges[1], others, sizeof *others * (size_t)count);
  *gpu = (gpu_t){.ranges = ranges, .count = count + 1, .blind = 48};
  return gs_claim(&(gs_oracle_t){gpu, best, holds, library}, ns, 3, rows);
}

Test(claims, what_the_next_n_is_faster_by_is_tried_below_it) {
  const range_t everywhere = {2, 1, 100, 4}, not_at_48[] = {{2, 49, 100, 4}};
  gpu_t gpu;
  cr_assert_eq(claim_blindly(&gpu, 8, &everywhere, 1), 1, "it was slow at 48");
  IS(0, 2, 32, 64);
  cr_assert_eq(claim_blindly(&gpu, 11, &everywhere, 1), 1, "nothing won at 48");
  IS(0, 2, 32, 64);
  int count = claim_blindly(&gpu, 8, not_at_48, 1);
  cr_assert(count == 2 && rows[0].split_k == 1 && rows[0].n_hi == 48 && rows[1].split_k == 2);
  count = claim_blindly(&gpu, 11, not_at_48, 1);
  cr_assert(count == 1 && rows[0].split_k == 2 && rows[0].n_lo > 48);
}

Test(claims, what_the_next_n_is_not_faster_by_is_not_tried) {
  const range_t ranges[] = {{1, 1, 40, 3.9f}, {2, 41, 100, 4}};
  const int ns[] = {32, 64};
  gpu_t gpu;
  cr_assert_eq(CLAIM(), 2);
  cr_assert_eq(gpu.held, 5, "1 at 64, 33 and 49; 2 at 50 and 49: but not at 32 (%d)", gpu.held);
}

Test(claims, hardly_better_neighbours_are_joined) {
  const range_t ranges[] = {{1, 1, 100, 5}, {2, 16, 100, 4.9f}};
  gpu_t gpu;
  cr_assert_eq(CLAIM(), 1);
  IS(0, 1, 1, 64);
}

Test(claims, both_sides_of_the_librarys_changes_are_measured) {
  const range_t ranges[] = {{1, 1, 100, 5}};
  const int changes[] = {37, 55, 0};
  gpu_t gpu;
  cr_assert_eq(CLAIM(), 1);
  IS(0, 1, 1, 64);
  cr_assert(gpu.measured[36] && gpu.measured[37] && gpu.measured[54] && gpu.measured[55]);
}

/* The library gets better at 37. */
Test(claims, a_change_of_the_library_that_costs_the_lead_ends_the_claim) {
  const range_t ranges[] = {{1, 1, 36, 5}, {1, 48, 100, 5}};
  const int changes[] = {37, 0};
  gpu_t gpu;
  cr_assert_eq(CLAIM(), 2);
  IS(0, 1, 1, 36);
  IS(1, 1, 48, 64);
}

Test(claims, where_the_library_changes_all_the_time_nothing_is_joined) {
  const range_t ranges[] = {{1, 1, 100, 5}};
  int changes[40] = {0};
  for (int i = 0; i < 15; i++) changes[i] = 33 + i;
  gpu_t gpu;
  cr_assert_eq(CLAIM(), 2);
  IS(0, 1, 1, 32);
  IS(1, 1, 48, 64);
}

Test(claims, times_are_those_of_the_smallest_lead) {
  const range_t ranges[] = {{1, 1, 100, 5}, {1, 0, 0, 0}};
  const range_t uneven[] = {{1, 1, 8, 5}, {1, 9, 9, 9}, {1, 10, 100, 5}};
  gpu_t gpu;
  cr_assert_eq(CLAIM(), 1);
  cr_assert_float_eq(rows[0].us, 5, 1e-6);
  cr_assert_eq(claim(&gpu, uneven, 3, NULL, ns, COUNT(ns)), 1);
  cr_assert_float_eq(rows[0].us, 9, 1e-6);
}

Test(claims, wide_gaps_are_searched_by_halving) {
  const range_t ranges[] = {{1, 1, 511, 5}};
  const int ns[] = {64, 500}, changes[] = {217, 0};
  gpu_t gpu;
  cr_assert_eq(CLAIM(), 1);
  IS(0, 1, 64, 500);
  cr_assert(gpu.measured[216] && gpu.measured[217]);
}
