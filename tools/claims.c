#include "claims.h"

#include <math.h>
#include <string.h>

#define SCAN                                                                                                 \
  64 /* n that are asked about one by one, at most; wider gaps are halved where their ends differ */

typedef struct {
  int n[GS_CLAIM_SAMPLES_MAX];
  int count;
  bool full;
} gs_samples_t;

/* In order, once, strictly between the ends. */
static void add(gs_samples_t *samples, int lo, int hi, int n) {
  int at = 0;
  if (n <= lo || n >= hi) return;
  while (at < samples->count && samples->n[at] < n) at++;
  if (at < samples->count && samples->n[at] == n) return;
  if (samples->count == GS_CLAIM_SAMPLES_MAX) {
    samples->full = true;
    return;
  }
  memmove(&samples->n[at + 1], &samples->n[at], sizeof(int) * (size_t)(samples->count++ - at));
  samples->n[at] = n;
}

/* Where the library's choice at b is not that at a, the n between where it changes first that halving finds. */
static int change_between(const gs_oracle_t *oracle, int a, int b) {
  uint64_t before = oracle->library(oracle->context, a);
  if (before == oracle->library(oracle->context, b)) return 0;
  while (b - a > 1) {
    int middle = a + (b - a) / 2;
    if (oracle->library(oracle->context, middle) == before)
      a = middle;
    else
      b = middle;
  }
  return b;
}

static gs_samples_t samples_between(const gs_oracle_t *oracle, int lo, int hi) {
  gs_samples_t samples = {.count = 0};
  int step = (hi - lo + SCAN - 1) / SCAN;
  add(&samples, lo, hi, lo + 1);
  add(&samples, lo, hi, (lo + (hi - lo) / 2) | 1);
  for (int a = lo; a < hi; a += step) {
    int changed = change_between(oracle, a, a + step < hi ? a + step : hi);
    if (!changed) continue;
    add(&samples, lo, hi, changed - 1);
    add(&samples, lo, hi, changed);
  }
  return samples;
}

static bool same_configuration(const gs_row_t *x, const gs_row_t *y) {
  return x->by_library == y->by_library && x->index == y->index && x->split_k == y->split_k &&
         x->raster == y->raster && !memcmp(&x->kernel, &y->kernel, sizeof x->kernel) &&
         !memcmp(&x->algo, &y->algo, sizeof x->algo);
}

void gs_row_take_times(gs_row_t *row, const gs_row_t *measured) {
  row->us = measured->us, row->library_us = measured->library_us;
  row->wall_us = measured->wall_us, row->library_wall_us = measured->library_wall_us;
  row->server_us = measured->server_us, row->library_server_us = measured->library_server_us;
}

/* Takes n, where it was measured as proof, into the claim. */
static void take(gs_row_t *claim, int n, const gs_row_t *proof) {
  if (n < claim->n_lo) claim->n_lo = n;
  if (n > claim->n_hi) claim->n_hi = n;
  if (proof->library_us * claim->us < claim->library_us * proof->us) gs_row_take_times(claim, proof);
}

/* Where it holds, and takes no longer than that. */
static bool extend(const gs_oracle_t *oracle, gs_row_t *claim, int n, float limit_us) {
  gs_row_t there = *claim;
  if (!oracle->holds(oracle->context, n, &there) || there.us > limit_us) return false;
  take(claim, n, &there);
  return true;
}

/* A new lower end, and the first n behind it. */
static bool lower(const gs_oracle_t *oracle, gs_row_t *claim, int n) {
  gs_row_t there = *claim, behind = *claim;
  if (n + 1 < claim->n_lo && !oracle->holds(oracle->context, n + 1, &behind)) return false;
  if (!oracle->holds(oracle->context, n, &there)) return false;
  take(claim, n + 1 < claim->n_lo ? n + 1 : claim->n_lo, &behind);
  take(claim, n, &there);
  return true;
}

/* Whether the claim's configuration does at found's n as well as found; its times there. */
static bool does_as_well(const gs_oracle_t *oracle, const gs_row_t *claim, const gs_row_t *found,
                         gs_row_t *there) {
  *there = same_configuration(claim, found) ? *found : *claim;
  return same_configuration(claim, found) ||
         (oracle->holds(oracle->context, found->n_lo, there) && there->us <= GS_CLAIM_SLACK * found->us);
}

/* The next n was won: the claim grows as far as it holds. True: over found's n too; false: found is a row of its own,
 * which has grown downwards as far as it holds. What takes longer between than found at its own, larger n is found's. */
static bool join(const gs_oracle_t *oracle, gs_row_t *claim, gs_row_t *found) {
  int lo = claim->n_hi, hi = found->n_lo, forward = 0, back;
  gs_row_t there;
  gs_samples_t samples = samples_between(oracle, lo, hi);
  if (samples.full) return false;
  bool joined = does_as_well(oracle, claim, found, &there);
  const float limit_us = joined ? INFINITY : GS_CLAIM_SLACK * found->us;
  while (forward < samples.count && extend(oracle, claim, samples.n[forward], limit_us)) forward++;
  if (joined && forward == samples.count) {
    take(claim, hi, &there);
    return true;
  }
  for (back = samples.count; back > forward && lower(oracle, found, samples.n[back - 1]);) back--;
  while (forward < back && extend(oracle, claim, samples.n[forward], INFINITY)) forward++;
  return false;
}

/* A product takes no longer with fewer columns: what beats, at the next n, what was found at this one is tried here. found's n_lo
 * is 0 where nothing won. */
static void borrow(const gs_oracle_t *oracle, int n, gs_row_t *found, const gs_row_t *next) {
  const float to_beat_us = found->n_lo ? found->us : found->library_us;
  gs_row_t there = *next;
  if (!next->n_lo || next->us * GS_CLAIM_SLACK >= to_beat_us) return;
  there.n_lo = there.n_hi = n;
  if (oracle->holds(oracle->context, n, &there) && there.us < to_beat_us) *found = there;
}

int gs_claim(const gs_oracle_t *oracle, const int *ns, int count, gs_row_t *rows) {
  gs_row_t *open = NULL;
  int made = 0;
  for (int i = 0; i < count; i++) {
    rows[i] = (gs_row_t){0};
    if (!oracle->best(oracle->context, ns[i], &rows[i])) rows[i].n_lo = 0;
  }
  for (int i = count - 2; i >= 0; i--) borrow(oracle, ns[i], &rows[i], &rows[i + 1]);
  for (int i = 0; i < count; i++) {
    gs_row_t found = rows[i];
    if (!found.n_lo)
      open = NULL;
    else if (!open || !join(oracle, open, &found))
      rows[made] = found, open = &rows[made++];
  }
  return made;
}

/* Appends what follows lo, hi last. */
static int stops_behind(const gs_oracle_t *oracle, int lo, int hi, int room, int *ns) {
  gs_samples_t samples = samples_between(oracle, lo, hi);
  int middle = lo + (hi - lo) / 2, count = 0;
  if (samples.full && room > 1) {
    count = stops_behind(oracle, lo, middle, room / 2, ns);
    return count + stops_behind(oracle, middle, hi, room / 2, ns + count);
  }
  ns[count++] = hi;
  return count;
}

int gs_claim_stops(const gs_oracle_t *oracle, int lo, int hi, int *ns) {
  ns[0] = lo;
  return lo == hi ? 1 : 1 + stops_behind(oracle, lo, hi, GS_CLAIM_STOPS_MAX - 1, ns + 1);
}
