/* Runs a shipped kernel's own source on the CPU: every thread a fiber, warp-wide instructions and barriers
 * as meeting points, background copies landing as early or as late as the waits allow. Slow, for tests. */
#ifndef GS_EMULATE_H
#define GS_EMULATE_H

#include <stdbool.h>
#include <stddef.h>

#include "gs_kernel.h"

/* Memory that the kernel may touch; reading is always allowed there. */
typedef struct {
  const void *begin;
  size_t bytes;
  bool writable;
} gs_range_t;

typedef struct {
  const gs_range_t *ranges;
  int range_count;
  bool late;     /* background copies land only when waited for, else at once */
  bool backward; /* blocks and threads run in reverse order */
} gs_emulation_t;

/* NULL when the kernel ran without a fault, else what it did wrong first (static text). Not thread-safe. */
const char *gs_emulate(const gs_kernel_t *k, const gs_launch_t *launch, const gs_params_t *p,
                       const gs_emulation_t *how);

#endif
