/* Delta debugging: what is found, and in how many tries. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "bisect.h"

typedef struct {
  const int *culprits; /* fails where all of these are there */
  int count, tries, stop_after;
} check_t;

static gs_outcome_t check(void *context, const int *items, int count) {
  check_t *c = context;
  int there = 0;
  if (++c->tries == c->stop_after) return GS_STOPPED;
  for (int i = 0; i < count; i++)
    for (int k = 0; k < c->count; k++) there += items[i] == c->culprits[k];
  return there == c->count ? GS_FAILS : GS_PASSES;
}

enum { ITEMS = 1000 };
static int items[ITEMS];

static bool bisect(check_t *c, int *count) {
  *count = ITEMS;
  for (int i = 0; i < ITEMS; i++) items[i] = i;
  return gs_bisect(items, count, check, c);
}

Test(bisect, one_is_found_in_twice_the_logarithm) {
  for (int culprit = 0; culprit < ITEMS; culprit += 37) {
    check_t c = {&culprit, 1, 0, 0};
    int count;
    cr_assert(bisect(&c, &count));
    cr_assert(count == 1 && items[0] == culprit);
    cr_assert_leq(c.tries, 20);
  }
}

Test(bisect, several_that_fail_only_together_are_found) {
  static const int culprits[] = {3, 500, 501, 999};
  check_t c = {culprits, 4, 0, 0};
  int count;
  cr_assert(bisect(&c, &count));
  cr_assert_eq(count, 4);
  for (int i = 0; i < 4; i++) cr_assert_eq(items[i], culprits[i]);
  cr_assert_lt(c.tries, 300);
}

Test(bisect, when_stopped_it_keeps_what_was_narrowed) {
  static const int culprits[] = {700};
  check_t c = {culprits, 1, 0, 6};
  int count;
  cr_assert_not(bisect(&c, &count));
  cr_assert(count < ITEMS && count > 1);
}

Test(bisect, one_item_needs_no_try) {
  check_t c = {NULL, 0, 0, 0};
  int count = 1;
  cr_assert(gs_bisect(items, &count, check, &c));
  cr_assert_eq(c.tries, 0);
}
