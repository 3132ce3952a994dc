#define _GNU_SOURCE
#include "dispatch.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choice.h"
#include "clock.h"
#include "graphs.h"
#include "histogram.h"
#include "launch.h"
#include "log.h"
#include "options.h"
#include "probation.h"
#include "relaunch.h"
#include "shadow.h"
#include "workspace.h"

#define TABLES_MAX 4 /* different GPU models in one machine */
#define TRIALS     ((size_t)gs_histogram_capacity() * TABLES_MAX)

/* A table in use, and what is known of its rows beside their text. */
typedef struct {
  gs_table_t *table;
  gs_row_state_t *rows;
  bool sibling;
  char source[280]; /* with the digest */
} gs_loaded_table_t;

/* What was decided for one shape, once: per table its row, and why it may not serve. */
typedef struct {
  _Atomic bool made;
  bool any_row;
  _Atomic bool autotuning;          /* a second explicit algorithm was seen */
  uint8_t reason[TABLES_MAX];       /* gs_reason_t; [0] also stands for "no table at all" */
  const gs_real_t *real;            /* the cuBLAS that rows were proven against */
  _Atomic uint64_t first_algorithm; /* the first explicit one, as a number */
  const gs_row_t *row[TABLES_MAX];
  gs_libraries_t libraries; /* of rows whose winner is one of cuBLASLt's algorithms */
} __attribute__((aligned(64))) gs_plan_t;

static gs_loaded_table_t tables[TABLES_MAX];
static int table_count;
static bool verifying;                         /* GEMMSHIM_VERIFY */
static _Atomic bool invariant;                 /* gs_option_invariant() once was true */
static int8_t table_of_device[GS_DEVICES_MAX]; /* -1: none */
static gs_plan_t *plans;                       /* by slot */
static gs_probation_t **trials;                /* by slot and table; NULL: unproven rows are forwarded */
static _Atomic int state;                      /* a gs_state_t */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

typedef enum { UNREADY, NO_DRIVER, READY } gs_state_t;

static void say_fault(void *context, const char *line) {
  (void)context;
  gs_log(GS_LOG_FAULT, "%s", line);
}

/* ---- getting ready ---- */

static bool selected(const gs_row_t *row) {
  char text[512];
  const char *only = gs_option_text(GS_OPT_ONLY), *skip = gs_option_text(GS_OPT_SKIP);
  const char *lines = gs_option_text(GS_OPT_ROWS);
  if (*lines && gs_list_holds(lines, row->line) != 1) return false;
  if (!*only && !*skip) return true;
  gs_row_format(text, sizeof text, row);
  return (!*only || fnmatch(only, text, 0) == 0) && (!*skip || fnmatch(skip, text, 0) != 0);
}

static bool add_table(const gs_device_t *device) {
  gs_choice_t choice;
  if (table_count == TABLES_MAX || gs_choose_table(device, say_fault, NULL, &choice) != GS_OK) return false;
  gs_loaded_table_t *loaded = &tables[table_count];
  if (gs_list_holds(gs_option_text(GS_OPT_ROWS), 0) < 0)
    gs_log(GS_LOG_FAULT, "GEMMSHIM_ROWS=%.40s: not a list of lines, as 12,20-31; no row is served",
           gs_option_text(GS_OPT_ROWS));
  int rows = gs_table_rows(choice.table);
  loaded->rows = calloc((size_t)rows + 1, sizeof *loaded->rows);
  if (!loaded->rows) return gs_table_free(choice.table), false;
  for (int i = 0; i < rows; i++) {
    const gs_row_t *row = gs_table_row(choice.table, i);
    loaded->rows[i].sm = device->sm;
    loaded->rows[i].skipped = !selected(row);
  }
  loaded->table = choice.table;
  loaded->sibling = choice.sibling;
  snprintf(loaded->source, sizeof loaded->source, "%s (%016llx)", choice.source,
           (unsigned long long)gs_table_digest(choice.table));
  table_count++;
  return true;
}

/* One table a GPU model, chosen for the first device of that model. */
static void read_tables(const gs_real_t *real) {
  int count = 0;
  gs_device_t devices[GS_DEVICES_MAX];
  gs_driver.cuDeviceGetCount(&count);
  for (int i = 0; i < count && i < GS_DEVICES_MAX; i++) {
    int same = 0;
    if (gs_device_describe(i, &devices[i]) != GS_OK) devices[i].name[0] = '\0';
    while (strcmp(devices[same].name, devices[i].name) != 0) same++;
    if (same < i)
      table_of_device[i] = table_of_device[same];
    else if (devices[i].name[0] && add_table(&devices[i]))
      table_of_device[i] = (int8_t)(table_count - 1);
  }
  if (count > 0) gs_histogram_describe(devices[0].name, table_count ? tables[0].source : NULL, real->version);
}

void gs_dispatch_heed_environment(void) {
  if (gs_option_invariant()) atomic_store(&invariant, true);
}

static void get_ready(const gs_real_t *real) {
  memset(table_of_device, -1, sizeof table_of_device);
  gs_histogram_open();
  gs_dispatch_heed_environment();
  verifying = gs_option(GS_OPT_VERIFY);
  gs_status_t status = gs_driver_find(false);
  if (status == GS_OK && gs_option(GS_OPT_SERVE)) read_tables(real);
  size_t bytes = (size_t)gs_histogram_capacity() * sizeof *plans;
  if (bytes && (plans = aligned_alloc(64, bytes))) memset(plans, 0, bytes);
  if (plans && gs_option(GS_OPT_UNPROVEN)) trials = calloc(TRIALS, sizeof *trials);
  atomic_store(&state, status == GS_OK ? READY : NO_DRIVER);
}

void gs_dispatch_ready(const gs_real_t *real) {
  if (atomic_load_explicit(&state, memory_order_acquire) != UNREADY) return;
  pthread_mutex_lock(&lock);
  if (atomic_load(&state) == UNREADY) get_ready(real);
  pthread_mutex_unlock(&lock);
}

/* ---- planning a shape ---- */

static gs_row_state_t *state_of_row(int t, const gs_row_t *row) {
  return &tables[t].rows[row - gs_table_row(tables[t].table, 0)];
}

/* Why no row could ever serve g; NO_ROW where tuning might find one. */
static gs_reason_t without_row(const gs_gemm_t *g) {
  gs_reason_t best = GS_REASON_TYPE;
  if (g->entry >= GS_ENTRY_SERVED_COUNT) return GS_REASON_ENTRY;
  for (int i = 0; i < gs_shipped_count(); i++) {
    gs_kernel_t kernel = gs_shipped_at(i);
    gs_reason_t reason = gs_kernel_supports(&kernel, g);
    if (reason == GS_REASON_SERVED) return table_count ? GS_REASON_NO_ROW : GS_REASON_NO_TABLE;
    if (best == GS_REASON_TYPE || best == GS_REASON_KERNEL)
      best = reason; /* a kernel for other types says little */
  }
  return best;
}

static gs_reason_t judge_row(int t, const gs_row_t *row, const gs_gemm_t *g, const gs_real_t *real) {
  gs_reason_t reason = gs_row_supports(row, g);
  if (reason != GS_REASON_SERVED) return reason;
  if (state_of_row(t, row)->skipped) return GS_REASON_SKIPPED;
  bool proven = !tables[t].sibling && gs_row_proven(gs_table_header(tables[t].table), row, real->version);
  return proven ? GS_REASON_SERVED : GS_REASON_UNPROVEN;
}

/* no_row: what to say of a table without a row for g. */
static void make_plan(gs_plan_t *plan, const gs_gemm_t *g, const gs_real_t *real, gs_reason_t no_row) {
  plan->reason[0] = (uint8_t)no_row;
  plan->real = real;
  for (int t = 0; t < table_count; t++) {
    const gs_row_t *row = no_row == GS_REASON_ENTRY ? NULL : gs_table_find(tables[t].table, g);
    plan->row[t] = row;
    plan->reason[t] = (uint8_t)(row ? judge_row(t, row, g, real) : no_row);
    plan->any_row |= row != NULL;
  }
  atomic_store_explicit(&plan->made, true, memory_order_release);
}

static gs_plan_t *plan_of(const gs_call_t *call) {
  gs_plan_t *plan = &plans[call->slot];
  if (atomic_load_explicit(&plan->made, memory_order_acquire)) return plan;
  pthread_mutex_lock(&lock);
  if (!atomic_load(&plan->made)) make_plan(plan, &call->gemm, call->real, without_row(&call->gemm));
  pthread_mutex_unlock(&lock);
  return plan;
}

/* ---- one call ---- */

/* An explicit algorithm as one number; 0: none. */
static uint64_t asked_algorithm(const gs_call_t *call) {
  bool by_default =
      call->algorithm == CUBLAS_GEMM_DEFAULT || call->algorithm == CUBLAS_GEMM_DEFAULT_TENSOR_OP;
  return call->handle && !by_default ? 1 + (uint64_t)(uint32_t)call->algorithm : call->lt_algorithm;
}

/* A second explicit algorithm for one shape: its caller (XLA, TunableOp) is comparing them, and must get from then
 * on what it asks for, whatever it asks for. */
static bool autotuning(gs_plan_t *plan, const gs_call_t *call) {
  uint64_t asked = asked_algorithm(call), first = 0;
  if (__builtin_expect(atomic_load_explicit(&plan->autotuning, memory_order_relaxed), false)) return true;
  if (!asked || atomic_load_explicit(&plan->first_algorithm, memory_order_relaxed) == asked) return false;
  if (atomic_compare_exchange_strong(&plan->first_algorithm, &first, asked) || first == asked) return false;
  if (!atomic_exchange(&plan->autotuning, true)) {
    char shape[256];
    gs_gemm_describe(shape, sizeof shape, &call->gemm);
    gs_log(GS_LOG_SUMMARY,
           "%s: a second explicit algorithm: its caller compares them, so it is forwarded from now on",
           shape);
  }
  return true;
}

/* A shape's trial of a table's row begins with its first call; NULL: there is none. */
static gs_probation_t *trial_of(const gs_call_t *call, const gs_plan_t *plan, int t) {
  if (!trials || call->slot < 0 || call->real != plan->real || plan->row[t]->by_library) return NULL;
  gs_probation_t **place = &trials[(size_t)call->slot * TABLES_MAX + (size_t)t];
  gs_probation_t *trial = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  if (trial) return trial;
  pthread_mutex_lock(&lock);
  if (!*place) __atomic_store_n(place, gs_probation_open(call->slot), __ATOMIC_RELEASE);
  trial = *place;
  pthread_mutex_unlock(&lock);
  return trial;
}

/* Calls that are timed are left alone. */
static bool wants_shadow(gs_call_t *call) {
  if (call->shadow || call->shadow_done || !gs_shadow_due()) return false;
  return call->shadow_done = call->slot >= 0 && plans && !call->trial && call->clock < 0;
}

/* Everything that depends on this very call rather than on its shape. */
static gs_reason_t serve(gs_call_t *call, gs_plan_t *plan) {
  gs_place_t place;
  if (autotuning(plan, call)) return GS_REASON_AUTOTUNING;
  gs_reason_t reason = gs_launch_conditions(call, &place);
  if (reason != GS_REASON_SERVED) return reason;
  int t = place.device < GS_DEVICES_MAX ? table_of_device[place.device] : -1;
  if (t < 0) return GS_REASON_NO_TABLE;
  const gs_row_t *row = plan->row[t];
  reason = plan->reason[t];
  if (row && call->real != plan->real)
    reason = judge_row(t, row, &call->gemm, call->real); /* two cuBLAS in one process */
  gs_probation_t *trial = reason == GS_REASON_UNPROVEN ? trial_of(call, plan, t) : NULL;
  if (trial) reason = gs_probation_turn(trial, call);
  if (reason != GS_REASON_SERVED) return reason;
  call->row = row;
  if (__builtin_expect(verifying, 0) && wants_shadow(call)) {
    gs_shadow_begin(call, &place);
    if (call->shadow) return GS_REASON_SERVED; /* this function again, when the library has been */
  }
  reason = gs_launch_row(call, row, state_of_row(t, row), &place, &plan->libraries);
  if (call->shadow && reason == GS_REASON_SERVED) gs_shadow_compare(call, row, state_of_row(t, row));
  if (call->trial && reason != GS_REASON_SERVED) gs_probation_cancel(call, reason);
  return reason;
}

static gs_reason_t decide(gs_call_t *call) {
  if (!gs_option(GS_OPT_SERVE)) return GS_REASON_OFF;
  if (call->refusal != GS_REASON_SERVED) return call->refusal;
  if (atomic_load_explicit(&invariant, memory_order_relaxed)) return GS_REASON_BATCH_INVARIANT;
  if (atomic_load_explicit(&state, memory_order_relaxed) != READY) return GS_REASON_NOT_READY;
  if (call->slot >= 0 && plans) {
    gs_plan_t *plan = plan_of(call);
    return plan->any_row ? serve(call, plan) : plan->reason[0];
  }
  /* No slot left: decided anew each time, without asking every kernel. */
  gs_plan_t plan = {.made = false};
  make_plan(&plan, &call->gemm, call->real,
            call->gemm.entry >= GS_ENTRY_SERVED_COUNT ? GS_REASON_ENTRY : GS_REASON_NO_ROW);
  gs_reason_t reason = plan.any_row ? serve(call, &plan) : plan.reason[0];
  gs_libraries_free(&plan.libraries);
  return reason;
}

/* A shape's first call also pays for loading code: its time says nothing. */
static bool first_call(const gs_call_t *call) {
  return call->slot < 0 || !plans || !atomic_load_explicit(&plans[call->slot].made, memory_order_relaxed);
}

static void keep_time(void *context, int slot, uint64_t ns) {
  (void)context;
  if (ns) gs_histogram_time(slot, ns);
}

/* For the histogram: is the call being captured? Else, when its turn has come, time it. */
static void look(gs_call_t *call) {
  CUstreamCaptureStatus capture;
  bool due = gs_clock_due();
  if (!(due || gs_histogram_is_file()) || atomic_load_explicit(&state, memory_order_relaxed) != READY) return;
  if (!gs_launch_stream(call) || gs_driver.cuStreamIsCapturing(call->stream, &capture) != CUDA_SUCCESS)
    return;
  if (capture != CU_STREAM_CAPTURE_STATUS_NONE) {
    gs_histogram_captured(call->slot);
    if (gs_graphs_hooked()) gs_graphs_captured(call->stream, call->slot);
  } else if (due && !first_call(call)) {
    call->clock = gs_clock_start(call->stream, keep_time, NULL, call->slot);
  }
}

static void log_call(const gs_call_t *call, gs_reason_t reason) {
  char shape[256], id[GS_KERNEL_ID_MAX];
  gs_gemm_describe(shape, sizeof shape, &call->gemm);
  if (reason != GS_REASON_SERVED) {
    gs_log(GS_LOG_CALL, "%s: library (%s)", shape, gs_reason_names[reason]);
    return;
  }
  gs_row_name(id, sizeof id, call->row);
  gs_log(GS_LOG_CALL, "%s: %s %s", shape, call->row->by_library ? "algorithm" : "kernel", id);
}

static int slot_of(const gs_call_t *call) {
  int known = call->known_slot ? atomic_load_explicit(call->known_slot, memory_order_acquire) : 0;
  if (known) return known - 1;
  int slot = gs_histogram_slot(&call->gemm);
  if (call->known_slot && slot >= 0) atomic_store_explicit(call->known_slot, slot + 1, memory_order_release);
  return slot;
}

static bool finish(gs_call_t *call, gs_reason_t reason) {
  gs_histogram_count(call->slot, reason);
  if (call->row && !gs_histogram_named(call->slot)) {
    char id[GS_KERNEL_ID_MAX];
    gs_row_name(id, sizeof id, call->row);
    gs_histogram_name(call->slot, id);
  }
  if (gs_log_wants(GS_LOG_CALL)) log_call(call, reason);
  if (reason != GS_REASON_SERVED) return false;
  gs_call_end(call);
  return true;
}

bool gs_call_begin(gs_call_t *call) {
  call->slot = slot_of(call);
  call->clock = -1;
  look(call);
  gs_reason_t reason = decide(call);
  return !call->shadow && finish(call, reason);
}

bool gs_call_shadowed(gs_call_t *call, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) gs_shadow_end(call);
  gs_reason_t reason = serve(call, &plans[call->slot]);
  if (call->shadow) gs_shadow_end(call);
  return finish(call, reason);
}

void gs_call_end(gs_call_t *call) {
  if (call->trial) gs_probation_end(call);
  gs_clock_stop(call->clock, call->stream);
}

/* ---- fork and exit ---- */

void gs_dispatch_fork(void) {
  pthread_mutex_init(&lock, NULL);
  gs_clock_fork();
  gs_workspace_fork();
  gs_graphs_fork();
  if (plans) memset(plans, 0, (size_t)gs_histogram_capacity() * sizeof *plans); /* its slots start anew */
  gs_shadow_fork();
  if (trials) memset(trials, 0, TRIALS * sizeof *trials);
  gs_histogram_fork();
}

static void count_all(uint64_t calls[GS_REASON_COUNT], uint64_t *total) {
  *total = 0;
  for (int r = 0; r < GS_REASON_COUNT; r++) {
    calls[r] = gs_counts_sum(gs_histogram_file()->overflow, (gs_reason_t)r);
    for (int i = 0; i < gs_histogram_capacity(); i++)
      if (gs_histogram_at(i)->hash) calls[r] += gs_counts_sum(gs_histogram_at(i)->shard, (gs_reason_t)r);
    *total += calls[r];
  }
}

static void say_compared(void) {
  char shape[256] = "";
  gs_shadow_tally_t tally = gs_shadow_tally();
  if (tally.slot >= 0) gs_gemm_describe(shape, sizeof shape, &gs_histogram_at(tally.slot)->gemm);
  gs_log(GS_LOG_SUMMARY,
         "%llu calls compared with cuBLAS's, %llu off, %llu not comparable; worst %.3g of the bound%s%s",
         tally.compared, tally.off, tally.left_out, tally.worst, *shape ? ": " : "", shape);
}

static void say_learnt(void) {
  int learnt, of;
  gs_relaunch_count(&learnt, &of);
  if (of) gs_log(GS_LOG_SUMMARY, "of %d algorithms of cuBLASLt, the launches of %d were learnt", of, learnt);
}

void gs_dispatch_summary(void) {
  enum { LINES = 6 };
  uint64_t calls[GS_REASON_COUNT], total = 0;
  if (!gs_log_wants(GS_LOG_SUMMARY)) return;
  if (gs_histogram_file()) count_all(calls, &total);
  if (!total) {
    gs_log(GS_LOG_SUMMARY, "%s",
           gs_real_mapped() ? "cuBLAS is mapped, 0 calls seen: is it looked up by handle? see gemmshim run "
                              "--handles, gemmshim doctor"
                            : "no cuBLAS in this process");
    return;
  }
  gs_log(GS_LOG_SUMMARY, "%llu products, %llu served by gemmshim (%.1f%%); table: %s",
         (unsigned long long)total, (unsigned long long)calls[GS_REASON_SERVED],
         100.0 * (double)calls[GS_REASON_SERVED] / (double)total, table_count ? tables[0].source : "none");
  if (verifying) say_compared();
  say_learnt();
  calls[GS_REASON_SERVED] = 0;
  for (int line = 0; line < LINES; line++) {
    int most = 0;
    for (int r = 0; r < GS_REASON_COUNT; r++)
      if (calls[r] > calls[most]) most = r;
    if (!calls[most]) break;
    gs_log(GS_LOG_SUMMARY, "%llu forwarded: %s", (unsigned long long)calls[most], gs_reason_texts[most]);
    calls[most] = 0;
  }
}
