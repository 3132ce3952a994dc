/* Reads one process's histogram file into the set; nothing in it is trusted. See calls.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "calls.h"

/* What makes the file unreadable, or NULL. */
static const char *header_fault(const gs_histogram_file_t *h, uint64_t size) {
  if (h->version != GS_HISTOGRAM_VERSION || h->slot_bytes != sizeof(gs_slot_t) ||
      h->reasons != GS_REASON_COUNT)
    return "written by another version of gemmshim; read it with that version's tools";
  if (h->capacity == 0 || (h->capacity & (h->capacity - 1)) != 0) return "its capacity is not a power of two";
  if (size < sizeof *h + (uint64_t)h->capacity * sizeof(gs_slot_t)) return "truncated";
  return NULL;
}

static bool gemm_is_sane(const gs_gemm_t *g) {
  return g->entry < GS_ENTRY_COUNT && g->transa < GS_OP_COUNT && g->transb < GS_OP_COUNT &&
         g->a_type < GS_TYPE_COUNT && g->b_type < GS_TYPE_COUNT && g->c_type < GS_TYPE_COUNT &&
         g->d_type < GS_TYPE_COUNT && g->compute < GS_COMPUTE_COUNT && g->epilogue < GS_EPILOGUE_COUNT &&
         g->batch_kind < GS_BATCH_COUNT;
}

static bool counts_are_sane(const gs_slot_t *slot) {
  bool sane = slot->captured < GS_COUNT_MAX && slot->replayed < GS_COUNT_MAX &&
              slot->samples < GS_COUNT_MAX && slot->sampled_ns < GS_COUNT_MAX;
  for (int s = 0; s < GS_SHARDS; s++)
    for (int r = 0; r < GS_REASON_COUNT; r++) sane &= slot->shard[s].calls[r] < GS_COUNT_MAX;
  return sane;
}

static void add_counts(uint64_t calls[GS_REASON_COUNT], const gs_counts_t shard[GS_SHARDS]) {
  for (int s = 0; s < GS_SHARDS; s++)
    for (int r = 0; r < GS_REASON_COUNT; r++) calls[r] += shard[s].calls[r];
}

/* Text from a file that anyone may have written: ended, and nothing a terminal would act on. */
static void copy_text(char *to, const char *from, size_t size) {
  memcpy(to, from, size);
  to[size - 1] = 0;
  for (; *to; to++)
    if (*to < ' ' || *to > '~') *to = '?';
}

static void add_trial(gs_shape_t *call, const gs_slot_t *slot) {
  bool sane = isfinite(slot->trial_us[0]) && isfinite(slot->trial_us[1]);
  if (slot->trial == GS_TRIAL_NONE || slot->trial >= GS_TRIAL_VERDICTS || !sane) return;
  call->trials[slot->trial]++;
  for (int side = 0; side < 2 && slot->trial != GS_TRIAL_OPEN; side++)
    call->trial_us[side] = (double)slot->trial_us[side];
}

static void add_slot(gs_calls_t *set, const gs_slot_t *slot) {
  gs_shape_t *call = gs_calls_entry(set, &slot->gemm),
             one = {.captured = slot->captured, .traced = slot->traced};
  add_counts(one.calls, slot->shard);
  uint64_t count = gs_call_count(&one), served = gs_call_served(&one);
  if (one.captured > count) one.captured = count; /* the process may be between two counters */

  for (int r = 0; r < GS_REASON_COUNT; r++) call->calls[r] += one.calls[r];
  if (one.traced > one.captured) one.traced = one.captured;
  call->captured += one.captured;
  call->traced += one.traced;
  call->replays += slot->replayed;
  add_trial(call, slot);
  call->compared += slot->compared, call->off += slot->off;
  if (slot->worst_off > call->worst_off) call->worst_off = (double)slot->worst_off;
  if (slot->samples) {
    uint64_t timed = count - one.captured;
    call->samples += slot->samples;
    call->timed += timed;
    call->timed_us += (double)timed * (double)slot->sampled_ns / 1e3 / (double)slot->samples;
  }
  if (slot->kernel[0] && (!call->kernel[0] || served > call->kernel_calls)) {
    copy_text(call->kernel, slot->kernel, sizeof call->kernel);
    call->kernel_calls = served;
  }
}

static void describe(gs_calls_t *set, const gs_histogram_file_t *h) {
  set->active++;
  if (h->last_call_ns > h->first_call_ns) set->window_s += (double)(h->last_call_ns - h->first_call_ns) / 1e9;
  copy_text(set->program, h->program, sizeof set->program);
  copy_text(set->gpu, h->gpu, sizeof set->gpu);
  copy_text(set->table, h->table, sizeof set->table);
  for (int i = 0; i < 3; i++) set->cublas[i] = h->cublas[i];
}

void gs_histogram_merge(gs_calls_t *set, const char *path, FILE *file, uint64_t size) {
  gs_histogram_file_t header;
  gs_slot_t slot;
  if (fread(&header, sizeof header, 1, file) != 1) {
    gs_calls_fault(set, "%s: a truncated histogram; skipped", path);
    return;
  }
  const char *why = header_fault(&header, size);
  if (why) {
    gs_calls_fault(set, "%s: a histogram, but %s; skipped", path, why);
    return;
  }
  uint32_t damaged = 0;
  for (uint32_t i = 0; i < header.capacity; i++) {
    if (fread(&slot, sizeof slot, 1, file) != 1) {
      gs_calls_fault(set, "%s: cut short or unreadable at slot %" PRIu32 "; what came before is kept", path,
                     i);
      break;
    }
    if (slot.hash == 0 || !slot.ready) continue;
    if (gemm_is_sane(&slot.gemm) && counts_are_sane(&slot))
      add_slot(set, &slot);
    else
      damaged++;
  }
  if (damaged) gs_calls_fault(set, "%s: %" PRIu32 " damaged slots left out", path, damaged);
  add_counts(set->overflow, header.overflow);
  set->files++;
  set->processes++;
  if (header.first_call_ns) describe(set, &header);
}
