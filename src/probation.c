#include "probation.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "device.h"
#include "histogram.h"
#include "log.h"

enum { LIBRARY, KERNEL, SIDES };
enum { UNTIMED = 1 /* calls a side before the timed ones */ };

struct gs_probation {
  _Atomic int verdict; /* a gs_trial_verdict_t */
  int slot;
  pthread_mutex_t lock; /* of what follows */
  int begun[SIDES];     /* calls, the untimed one included */
  int count[SIDES];     /* times that came back */
  int judged;           /* times a side at the last look */
  float us[SIDES][GS_TRIAL_SAMPLES];
};

gs_probation_t *gs_probation_open(int slot) {
  gs_probation_t *trial = calloc(1, sizeof *trial);
  if (!trial) return NULL;
  trial->slot = slot;
  pthread_mutex_init(&trial->lock, NULL);
  atomic_store(&trial->verdict, GS_TRIAL_OPEN);
  gs_histogram_trial(slot, GS_TRIAL_OPEN, 0, 0);
  return trial;
}

/* ---- the rule ---- */

/* At these numbers of times a side: the most pairs of times, one of each side, that may stand the other way round. */
static const struct {
  int n, win, loss; /* -1: too early to say */
} looks[] = {{4, -1, 0}, {8, 6, 6}, {12, 25, 25}, {16, 57, 57}};
#define LOOKS (int)(sizeof looks / sizeof *looks)

gs_trial_verdict_t gs_probation_judge(const float *library_us, const float *kernel_us, int n) {
  int slower = 0; /* pairs in which the kernel is, doubled, so that a tie is a half */
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) slower += kernel_us[i] > library_us[j] ? 2 : kernel_us[i] == library_us[j];
  for (int i = 0; i < LOOKS; i++) {
    if (looks[i].n != n) continue;
    if (slower <= 2 * looks[i].win) return GS_TRIAL_WON;
    if (2 * n * n - slower <= 2 * looks[i].loss) return GS_TRIAL_LOST;
  }
  return n < GS_TRIAL_SAMPLES ? GS_TRIAL_OPEN : GS_TRIAL_LOST;
}

static float median(const float *us, int n) {
  float sorted[GS_TRIAL_SAMPLES];
  for (int i = 0; i < n; i++) {
    int at = i;
    for (; at > 0 && sorted[at - 1] > us[i]; at--) sorted[at] = sorted[at - 1];
    sorted[at] = us[i];
  }
  return n ? (sorted[(n - 1) / 2] + sorted[n / 2]) / 2 : 0;
}

/* Under the trial's lock. */
static void settle(gs_probation_t *trial, gs_trial_verdict_t verdict) {
  char shape[256];
  float library_us = median(trial->us[LIBRARY], trial->count[LIBRARY]);
  float kernel_us = median(trial->us[KERNEL], trial->count[KERNEL]);
  atomic_store(&trial->verdict, verdict);
  gs_histogram_trial(trial->slot, verdict, library_us, kernel_us);
  if (!gs_log_wants(GS_LOG_CALL)) return;
  gs_gemm_describe(shape, sizeof shape, &gs_histogram_at(trial->slot)->gemm);
  gs_log(GS_LOG_CALL, "%s: the kernel %s its trial: %.2f us, the library %.2f us", shape,
         verdict == GS_TRIAL_WON ? "won" : "lost", (double)kernel_us, (double)library_us);
}

static bool is_open(const gs_probation_t *trial) {
  return atomic_load_explicit(&trial->verdict, memory_order_relaxed) == GS_TRIAL_OPEN;
}

/* A time came back, or did not: what cannot be measured cannot be won. */
static void receive(void *context, int side, uint64_t ns) {
  gs_probation_t *trial = context;
  pthread_mutex_lock(&trial->lock);
  if (is_open(trial) && !ns) settle(trial, GS_TRIAL_LOST);
  if (is_open(trial)) {
    trial->us[side][trial->count[side]++] = (float)ns * 1e-3f;
    int n = trial->count[0] < trial->count[1] ? trial->count[0] : trial->count[1];
    gs_trial_verdict_t verdict =
        n > trial->judged ? gs_probation_judge(trial->us[LIBRARY], trial->us[KERNEL], n) : GS_TRIAL_OPEN;
    trial->judged = n;
    if (verdict != GS_TRIAL_OPEN) settle(trial, verdict);
  }
  pthread_mutex_unlock(&trial->lock);
}

/* ---- calls ---- */

static bool capturing(const gs_call_t *call) {
  CUstreamCaptureStatus status;
  return gs_driver.cuStreamIsCapturing(call->stream, &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The side whose turn it is; -1: both have had all theirs. */
static int take_turn(gs_probation_t *trial, bool *timed) {
  pthread_mutex_lock(&trial->lock);
  int side = trial->begun[KERNEL] < trial->begun[LIBRARY] ? KERNEL : LIBRARY;
  if (trial->begun[side] == UNTIMED + GS_TRIAL_SAMPLES)
    side = -1;
  else
    *timed = ++trial->begun[side] > UNTIMED;
  pthread_mutex_unlock(&trial->lock);
  return side;
}

static void give_back_turn(gs_probation_t *trial, int side) {
  pthread_mutex_lock(&trial->lock);
  trial->begun[side]--;
  pthread_mutex_unlock(&trial->lock);
}

gs_reason_t gs_probation_turn(gs_probation_t *trial, gs_call_t *call) {
  bool timed = false;
  int verdict = atomic_load_explicit(&trial->verdict, memory_order_acquire);
  if (verdict == GS_TRIAL_WON) return GS_REASON_SERVED;
  if (verdict == GS_TRIAL_LOST) return GS_REASON_TRIAL_LOST;
  if (call->lt_algorithm || capturing(call)) return GS_REASON_UNPROVEN;
  int side = take_turn(trial, &timed);
  if (side < 0) {
    gs_clock_poll();
    return GS_REASON_TRIAL;
  }
  call->trial_clock = timed ? gs_clock_start(call->stream, receive, trial, side) : -1;
  if (timed && call->trial_clock < 0) {
    give_back_turn(trial, side);
    return GS_REASON_TRIAL;
  }
  call->trial = trial;
  return side == KERNEL ? GS_REASON_SERVED : GS_REASON_TRIAL;
}

void gs_probation_end(gs_call_t *call) {
  gs_clock_stop(call->trial_clock, call->stream);
}

void gs_probation_cancel(gs_call_t *call, gs_reason_t why) {
  gs_probation_t *trial = call->trial;
  call->trial = NULL;
  gs_clock_cancel(call->trial_clock);
  give_back_turn(trial, KERNEL);
  if (why != GS_REASON_LAUNCH_FAILED && why != GS_REASON_LOAD_FAILED) return;
  pthread_mutex_lock(&trial->lock);
  if (is_open(trial)) settle(trial, GS_TRIAL_LOST);
  pthread_mutex_unlock(&trial->lock);
}
