#define _GNU_SOURCE
#include "histogram.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "file.h"
#include "log.h"
#include "options.h"

static gs_histogram_file_t *file; /* then its slots, in the same mapping */
static gs_slot_t *slots;
static size_t mapped_bytes;
static uint32_t mask;
static bool in_file;

static _Atomic unsigned threads_seen;
static __thread unsigned my_shard
    __attribute__((tls_model("initial-exec"))); /* 1 .. GS_SHARDS; 0: none yet */

#define ADD(counter, amount) __atomic_fetch_add(&(counter), amount, __ATOMIC_RELAXED)

static uint64_t now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int create_file(char *path, size_t size) {
  int fd = gs_file_create(gs_option_text(GS_OPT_CALLS), GS_HISTOGRAM_SUFFIX, path, size);
  if (fd < 0) return -1;
  int error = posix_fallocate(fd, 0, (off_t)mapped_bytes); /* a full disk shows here, not as a SIGBUS */
  if (!error) return fd;
  unlink(path);
  close(fd);
  return errno = error, -1;
}

/* Maps zeroed counters, at address where it is not NULL (over the parent's). */
static void *map_counters(void *address) {
  char path[512] = "";
  int fd = -1, fixed = address ? MAP_FIXED : 0;
  if (*gs_option_text(GS_OPT_CALLS)) {
    fd = create_file(path, sizeof path);
    if (fd < 0)
      gs_log(GS_LOG_FAULT, "GEMMSHIM_CALLS=%.200s: %s; counting in memory only, no histogram will be left",
             gs_option_text(GS_OPT_CALLS), strerror(errno));
  }
  in_file = fd >= 0;
  int flags = in_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *memory = mmap(address, mapped_bytes, PROT_READ | PROT_WRITE, flags | fixed, fd, 0);
  if (fd >= 0) close(fd);
  return memory == MAP_FAILED ? NULL : memory;
}

static void fill_header(void) {
  memcpy(file->magic, GS_HISTOGRAM_MAGIC, sizeof file->magic);
  file->version = GS_HISTOGRAM_VERSION;
  file->slot_bytes = sizeof(gs_slot_t);
  file->reasons = GS_REASON_COUNT;
  file->capacity = mask + 1;
  file->pid = getpid();
  file->started_ns = now_ns(CLOCK_REALTIME);
  file->sampling = (uint32_t)gs_option(GS_OPT_SAMPLE);
  gethostname(file->host, sizeof file->host - 1);
  if (readlink("/proc/self/exe", file->program, sizeof file->program - 1) < 0) file->program[0] = '\0';
}

void gs_histogram_open(void) {
  mask = 64;
  while (mask < (uint32_t)gs_option(GS_OPT_SHAPES)) mask *= 2;
  mapped_bytes = sizeof *file + mask * sizeof *slots;
  mask--;
  file = map_counters(NULL);
  if (!file) {
    gs_log(GS_LOG_FAULT, "no memory for counters; calls are not counted");
    return;
  }
  slots = (gs_slot_t *)(file + 1);
  fill_header();
}

void gs_histogram_fork(void) {
  if (!file) return;
  gs_histogram_file_t parent = *file;
  if (!map_counters(file)) {
    file = NULL, slots = NULL; /* the parent's mapping is gone or not ours to write */
    return;
  }
  fill_header();
  memcpy(file->gpu, parent.gpu, sizeof file->gpu);
  memcpy(file->table, parent.table, sizeof file->table);
  memcpy(file->cublas, parent.cublas, sizeof file->cublas);
}

bool gs_histogram_is_file(void) {
  return in_file;
}
int gs_histogram_capacity(void) {
  return file ? (int)mask + 1 : 0;
}
const gs_histogram_file_t *gs_histogram_file(void) {
  return file;
}
const gs_slot_t *gs_histogram_at(int slot) {
  return &slots[slot];
}

/* Waits for the thread that claimed the slot to write the shape: a few stores away. */
static bool slot_holds(gs_slot_t *slot, const gs_gemm_t *g) {
  while (!__atomic_load_n(&slot->ready, __ATOMIC_ACQUIRE)) {
  }
  return memcmp(&slot->gemm, g, sizeof *g) == 0;
}

int gs_histogram_slot(const gs_gemm_t *g) {
  if (!slots) return -1;
  uint64_t hash = gs_gemm_hash(g);
  for (uint32_t probe = 0; probe < 64; probe++) {
    uint32_t index = ((uint32_t)hash + probe) & mask;
    gs_slot_t *slot = &slots[index];
    uint64_t found = __atomic_load_n(&slot->hash, __ATOMIC_RELAXED);
    if (!found &&
        __atomic_compare_exchange_n(&slot->hash, &found, hash, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      slot->gemm = *g;
      __atomic_store_n(&slot->ready, 1, __ATOMIC_RELEASE);
      return (int)index;
    }
    if (found == hash && slot_holds(slot, g)) return (int)index;
  }
  return -1;
}

static unsigned shard_of_thread(void) {
  if (!my_shard) my_shard = atomic_fetch_add(&threads_seen, 1) % GS_SHARDS + 1;
  return my_shard - 1;
}

static void stamp(void) {
  uint64_t now = now_ns(CLOCK_MONOTONIC_COARSE); /* to 4 ms, which a window of seconds can bear */
  uint64_t none = 0;
  if (!__atomic_load_n(&file->first_call_ns, __ATOMIC_RELAXED))
    __atomic_compare_exchange_n(&file->first_call_ns, &none, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  __atomic_store_n(&file->last_call_ns, now, __ATOMIC_RELAXED);
}

void gs_histogram_count(int slot, gs_reason_t reason) {
  if (!file) return;
  gs_counts_t *shard = slot < 0 ? file->overflow : slots[slot].shard;
  ADD(shard[shard_of_thread()].calls[reason], 1);
  if (in_file) stamp();
}

void gs_histogram_captured(int slot) {
  if (slot >= 0) ADD(slots[slot].captured, 1);
}

void gs_histogram_traced(int slot, int64_t calls) {
  if (slots) ADD(slots[slot].traced, (uint64_t)calls);
}

void gs_histogram_replayed(int slot, uint64_t runs) {
  if (!slots) return;
  ADD(slots[slot].replayed, runs);
  if (in_file) stamp();
}

void gs_histogram_time(int slot, uint64_t ns) {
  if (slot < 0 || !slots) return;
  ADD(slots[slot].samples, 1);
  ADD(slots[slot].sampled_ns, ns);
}

void gs_histogram_trial(int slot, gs_trial_verdict_t verdict, float library_us, float kernel_us) {
  if (slot < 0 || !slots) return;
  slots[slot].trial_us[0] = library_us, slots[slot].trial_us[1] = kernel_us;
  __atomic_store_n(&slots[slot].trial, verdict, __ATOMIC_RELEASE);
}

/* One comparison at a time is judged. */
void gs_histogram_checked(int slot, float off) {
  if (slot < 0 || !slots) return;
  if (!(off <= slots[slot].worst_off)) slots[slot].worst_off = off;
  ADD(slots[slot].compared, 1);
  if (!(off <= 1)) ADD(slots[slot].off, 1);
}

bool gs_histogram_named(int slot) {
  return slot < 0 || __atomic_load_n(&slots[slot].named, __ATOMIC_ACQUIRE) == 2;
}

void gs_histogram_name(int slot, const char *id) {
  uint32_t empty = 0;
  if (!__atomic_compare_exchange_n(&slots[slot].named, &empty, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return;
  snprintf(slots[slot].kernel, GS_KERNEL_ID_MAX, "%s", id);
  __atomic_store_n(&slots[slot].named, 2, __ATOMIC_RELEASE);
}

void gs_histogram_describe(const char *gpu, const char *table, const int cublas[3]) {
  if (!file) return;
  if (gpu) snprintf(file->gpu, sizeof file->gpu, "%s", gpu);
  if (table) snprintf(file->table, sizeof file->table, "%s", table);
  for (int i = 0; i < 3; i++) file->cublas[i] = cublas[i];
}

uint64_t gs_counts_sum(const gs_counts_t shard[GS_SHARDS], gs_reason_t reason) {
  uint64_t sum = 0;
  for (int i = 0; i < GS_SHARDS; i++) sum += shard[i].calls[reason];
  return sum;
}
