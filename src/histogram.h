/* Floor 1. The counters of this process, in the layout of gs_histogram.h: lock-free, one slot a shape, in a
 * file under GEMMSHIM_CALLS or in anonymous memory. A slot's number also indexes whatever else is
 * remembered of a shape (dispatch's plans). */
#ifndef GS_HISTOGRAM_LIVE_H
#define GS_HISTOGRAM_LIVE_H

#include "gs_histogram.h"

/* Maps the counters; once, before the first call is counted. Never fails: without memory all counting is
 * left out, and a file that cannot be had costs one line and becomes anonymous memory. */
void gs_histogram_open(void);
/* In a forked child: counters of its own, from zero, at the same address. */
void gs_histogram_fork(void);

bool gs_histogram_is_file(void);
int gs_histogram_capacity(void); /* slots; 0 without memory */

/* The slot of g, made on its first call; -1 where there is no room. */
int gs_histogram_slot(const gs_gemm_t *g);
/* Slot -1 counts in the overflow. */
void gs_histogram_count(int slot, gs_reason_t reason);
void gs_histogram_captured(int slot);
/* So many of its captured calls lie in graphs whose launches are seen (negative: or not after all), and launches of
 * these have run so many. */
void gs_histogram_traced(int slot, int64_t calls);
void gs_histogram_replayed(int slot, uint64_t runs);
void gs_histogram_time(int slot, uint64_t ns);
/* Whether the slot has its kernel's id (slot -1 wants none), and giving it one. */
bool gs_histogram_named(int slot);
void gs_histogram_name(int slot, const char *id);
/* What came of a row's trial; medians in us. */
void gs_histogram_trial(int slot, gs_trial_verdict_t verdict, float library_us, float kernel_us);
/* A served call was compared with the library's result; off is 1 at the bound. */
void gs_histogram_checked(int slot, float off);
/* What the tools want to know beside the counts. gpu and table may be NULL: unchanged. */
void gs_histogram_describe(const char *gpu, const char *table, const int cublas[3]);

const gs_histogram_file_t *gs_histogram_file(void); /* NULL without memory */
const gs_slot_t *gs_histogram_at(int slot);
uint64_t gs_counts_sum(const gs_counts_t shard[GS_SHARDS], gs_reason_t reason);

#endif
