#define _GNU_SOURCE
#include "record.h"

#include <dlfcn.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(sim_function_t *) list;
static bool nocompute, times_only, fails_ours;
static const char *times, *host_times, *wrong, *launches; /* SIM_US, SIM_HOST_US, SIM_WRONG, SIM_LAUNCH */

static _Thread_local struct {
  sim_call_t calls[SIM_RECENT];
  unsigned count;
} recent;

__attribute__((constructor)) static void read_environment(void) {
  const char *text = getenv("SIM_NOCOMPUTE");
  nocompute = text && *text == '1';
  times_only = text && !strcmp(text, "times");
  times = getenv("SIM_US");
  host_times = getenv("SIM_HOST_US");
  wrong = getenv("SIM_WRONG");
  launches = getenv("SIM_LAUNCH");
  fails_ours = getenv("SIM_FAIL_OURS");
}

/* The value of the first pattern:value that matches the name; false where none does. */
static bool setting(const char *list, const char *name, char *value, size_t size) {
  char pattern[64];
  while (list && *list) {
    int length = (int)strcspn(list, ",");
    if (sscanf(list, "%63[^:,]:", pattern) == 1 && !fnmatch(pattern, name, 0)) {
      int head = (int)strlen(pattern) + 1;
      snprintf(value, size, "%.*s", length > head ? length - head : 0, list + head);
      return true;
    }
    list += length + (list[length] == ',');
  }
  return false;
}

sim_flaw_t sim_flaw(const char *name) {
  sim_flaw_t flaw = {.us = 0};
  char value[64];
  if (setting(times, name, value, sizeof value)) flaw.us = strtod(value, NULL);
  if (setting(host_times, name, value, sizeof value)) flaw.host_us = strtod(value, NULL);
  if (setting(wrong, name, value, sizeof value)) {
    const char *colon = strchr(value, ':');
    flaw.strays = !strcmp(value, "before") ? -1 : !strcmp(value, "behind");
    flaw.is_wrong = !flaw.strays;
    flaw.last_only = !strncmp(value, "last", 4);
    flaw.wrong = strtod(colon ? colon + 1 : "nan", NULL);
  }
  return flaw;
}

double sim_now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* Busy, since sleeping is not that exact. */
void sim_wait(double until_us) {
  while (sim_now_us() < until_us) continue;
}

bool sim_nocompute(void) {
  return nocompute;
}

bool sim_times_only(void) {
  return times_only;
}

bool sim_launches_by(const char *how) {
  size_t length = strlen(how);
  for (const char *item = launches; item && *item; item += strcspn(item, ","), item += *item == ',')
    if (strcspn(item, ",") == length && !strncmp(item, how, length)) return true;
  return false;
}

/* name:nth=status, separated by commas; nth may be a star. */
static void find_fault(sim_function_t *f) {
  size_t length = strlen(f->name);
  for (const char *item = getenv("SIM_FAIL"); item && *item;) {
    if (!strncmp(item, f->name, length) && item[length] == ':') {
      const char *nth = item + length + 1;
      const char *status = strchr(nth, '=');
      f->fail_at = *nth == '*' ? SIM_EVERY : strtoul(nth, NULL, 10);
      f->fail_with = status ? atoi(status + 1) : 0;
      return;
    }
    item = strchr(item, ',');
    if (item) item++;
  }
}

static void introduce(sim_function_t *f) {
  pthread_mutex_lock(&list_lock);
  if (!atomic_load(&f->known)) {
    find_fault(f);
    f->next = atomic_load(&list);
    atomic_store(&list, f);
    atomic_store(&f->known, true);
  }
  pthread_mutex_unlock(&list_lock);
}

/* SIM_FAIL_OURS=cublas:7, the seventh call that libgemmshim itself makes of functions of that kind: cu, cublas or
 * cublasLt. It is said on stderr, so that a test knows when there are no more. */
static int fail_ours(const sim_function_t *f, const void *caller) {
  static atomic_ulong calls;
  static const char *const kinds[] = {"cublasLt", "cublas", "cu"};
  const char *wanted = getenv("SIM_FAIL_OURS");
  Dl_info info;
  int kind = 0;
  while (strncmp(f->name, kinds[kind], strlen(kinds[kind]))) kind++;
  size_t length = strlen(kinds[kind]);
  if (strncmp(wanted, kinds[kind], length) || wanted[length] != ':') return 0;
  if (!dladdr(caller, &info) || !strstr(info.dli_fname, "libgemmshim.so")) return 0;
  if (atomic_fetch_add(&calls, 1) + 1 != strtoul(wanted + length + 1, NULL, 10)) return 0;
  fprintf(stderr, "stand-in: %s fails\n", f->name);
  return kind == 2 ? 999 : 14; /* CUDA_ERROR_UNKNOWN, CUBLAS_STATUS_INTERNAL_ERROR */
}

int sim_enter(sim_function_t *f, const void *caller, int count, const uint64_t *args) {
  if (nocompute) return 0;
  if (!atomic_load_explicit(&f->known, memory_order_acquire)) introduce(f);
  unsigned long nth = atomic_fetch_add_explicit(&f->calls, 1, memory_order_relaxed) + 1;
  sim_call_t *call = &recent.calls[recent.count++ % SIM_RECENT];
  call->function = f->name;
  call->count = count;
  memcpy(call->args, args, (size_t)count * sizeof *args);
  if (fails_ours) {
    int status = fail_ours(f, caller);
    if (status) return status;
  }
  return f->fail_at == nth || f->fail_at == SIM_EVERY ? f->fail_with : 0;
}

SIM_EXPORT uint64_t sim_calls(const char *function) {
  for (sim_function_t *f = atomic_load(&list); f; f = f->next)
    if (!strcmp(f->name, function)) return atomic_load(&f->calls);
  return 0;
}

SIM_EXPORT int sim_recent(int back, sim_call_t *call) {
  if (back < 0 || back >= SIM_RECENT || (unsigned)back >= recent.count) return 0;
  *call = recent.calls[(recent.count - 1 - (unsigned)back) % SIM_RECENT];
  return 1;
}

SIM_EXPORT int sim_last(const char *function, sim_call_t *call) {
  for (int back = 0; sim_recent(back, call); back++)
    if (!strcmp(call->function, function)) return 1;
  return 0;
}
