/* Which of many things make a check fail: delta debugging (Zeller's ddmin), without a guess about the cause. */
#ifndef GS_BISECT_H
#define GS_BISECT_H

#include <stdbool.h>

typedef enum { GS_PASSES, GS_FAILS, GS_STOPPED } gs_outcome_t;
/* Tries these alone. */
typedef gs_outcome_t gs_try_t(void *context, const int *items, int count);

/* Narrows items, with all of which the check fails, to some with which it still does, and with none of them left
 * out. One among N takes at most 2 log2 N tries. False: stopped, with items as far as they were narrowed. */
bool gs_bisect(int *items, int *count, gs_try_t *check, void *context);

#endif
