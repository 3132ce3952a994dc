/* libgemmshim-graphs.so: the functions of the CUDA runtime and of the driver that make and launch graphs (graphs.def), so
 * that replays are counted. Each passes its arguments on as they came, tells libgemmshim.so what came of it, and returns
 * what it was returned. `gemmshim run` preloads it; nothing else needs it, and it needs no CUDA. With GS_UPDATES_ALONE:
 * the part that libgemmshim.so has of its own (graph_updates.def). */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "compat.h"
#include "graph_events.h"

#pragma weak gemmshim_graph /* NULL where libgemmshim.so is not preloaded */
#ifdef GS_UPDATES_ALONE
#define BESIDE (&gemmshim_graphs_hooked) /* of the other library; NULL where it is not loaded */
#else
#define BESIDE gemmshim_graph
const char gemmshim_graphs_hooked = 1;
#endif

/* Six words hold the arguments of each of these functions in every major (cudaGraphInstantiate has five in CUDA 11 and
 * three since): a register that a callee knows nothing of does no harm. Statuses are ints, 0 success. */
typedef uintptr_t word_t;
typedef int gs_any_t(word_t, word_t, word_t, word_t, word_t, word_t);
typedef struct {
  gs_any_t *real;
  word_t a[6];
} gs_call_t;

#define NOT_INITIALIZED 3 /* of both APIs */
#define PER_THREAD      2 /* the thread's own default stream */

static __thread bool inside
    __attribute__((tls_model("initial-exec"))); /* a runtime may call the driver by name */

static int pass(const gs_call_t *call) {
  const word_t *a = call->a;
  return call->real(a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void tell(gs_graph_event_t event, word_t a, word_t b, word_t c) {
  gemmshim_graph(event, a, b, c);
}

/* ---- kinds ---- */

static int updates(const gs_call_t *call) {
  tell(GS_GRAPH_UPDATES, call->a[1], 0, 0);
  int status = pass(call);
  if (!status) tell(GS_GRAPH_MADE, call->a[1], call->a[0], 0);
  return status;
}

#ifndef GS_UPDATES_ALONE
static word_t written_to(word_t place) {
  return place ? *(const word_t *)place : 0;
}

static int joins_on(const gs_call_t *call, word_t stream) {
  int status = pass(call);
  if (!status) tell(GS_GRAPH_JOINS, stream, 0, 0);
  return status;
}

static int ends_on(const gs_call_t *call, word_t stream) {
  word_t capture = gemmshim_graph(GS_GRAPH_CAPTURE, stream, 0, 0);
  int status = pass(call);
  tell(GS_GRAPH_ENDED, stream, capture, status ? 0 : written_to(call->a[1]));
  return status;
}

static int launches_on(const gs_call_t *call, word_t stream) {
  int status = pass(call);
  if (!status) tell(GS_GRAPH_LAUNCHED, call->a[0], stream, 0);
  return status;
}

static int makes(const gs_call_t *call) {
  int status = pass(call);
  if (!status) tell(GS_GRAPH_MADE, call->a[1], written_to(call->a[0]), 0);
  return status;
}

static int adds(const gs_call_t *call) {
  int status = pass(call);
  if (!status) tell(GS_GRAPH_ADDED, call->a[4], call->a[1], 0);
  return status;
}

/* Told first: the handle may be another graph's as soon as it is free. */
static int destroys(const gs_call_t *call) {
  tell(GS_GRAPH_GONE, call->a[0], 0, 0);
  return pass(call);
}

#define ON_STREAM(kind, index)                                                                               \
  static int kind(const gs_call_t *call) {                                                                   \
    return kind##_on(call, call->a[index]);                                                                  \
  }                                                                                                          \
  static int kind##_ptsz(const gs_call_t *call) {                                                            \
    return kind##_on(call, call->a[index] ? call->a[index] : PER_THREAD);                                    \
  }
ON_STREAM(joins, 0)
ON_STREAM(ends, 0)
ON_STREAM(launches, 1)
#endif

/* ---- whom is a call for? ---- */

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static struct link_map *object_of(const void *address) {
  Dl_info info;
  struct link_map *map = NULL;
  return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

/* Not by libgemmshim.so's, for which any object that is closed ends all that is known. */
static void close_quietly(void *handle) {
  static _Atomic(int (*)(void *)) next;
  if (!next) next = (int (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "dlclose");
  if (next) next(handle);
}

/* This library and the one beside it may both be loaded, in any order. */
static bool is_ours(const void *found) {
  const struct link_map *map = object_of(found);
  return map == object_of((const void *)(uintptr_t)is_ours) ||
         (BESIDE && map == object_of((const void *)(uintptr_t)BESIDE));
}

static gs_any_t *defined_in(const char *path, const char *name) {
  void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return NULL;
  void *found = dlsym(handle, name);
  close_quietly(handle);
  return found && !is_ours(found) ? (gs_any_t *)(uintptr_t)found : NULL;
}

/* In a library by that name wherever it is mapped. */
static gs_any_t *defined_anywhere(const struct link_map *map, const char *name) {
  const char *library = strncmp(name, "cuda", 4) ? "libcuda.so" : "libcudart";
  while (map && map->l_prev) map = map->l_prev;
  for (; map; map = map->l_next) {
    bool named = !strncmp(base_of(map->l_name), library, strlen(library));
    gs_any_t *found = named ? defined_in(map->l_name, name) : NULL;
    if (found) return found;
  }
  return NULL;
}

/* What the caller's reference would have come to without us. An object of several that bring a runtime each finds its
 * own; the program itself is searched in the order in which it was linked; the last resort is for callers that we
 * cannot tell (the last thing that a function of another object does is to call one of ours). */
static gs_any_t *look_up(const char *name, const void *caller) {
  struct link_map *map = object_of(caller);
  gs_any_t *found = NULL;
  if (map && *map->l_name) found = defined_in(map->l_name, name);
  if (!found) found = (gs_any_t *)(uintptr_t)dlsym(RTLD_NEXT, name);
  if (found) return found;
  return defined_anywhere(object_of((const void *)(uintptr_t)look_up), name);
}

/* What was found, by function and caller, until an object is unloaded. */
#define KNOWN_MAX 64
static struct {
  const char *name;
  const void *caller;
  gs_any_t *real;
} known[KNOWN_MAX];
static unsigned known_count; /* ever */
static uint64_t known_unloads;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* NULL: not known. The names' addresses are theirs alone. */
static gs_any_t *recall(const char *name, const void *caller, uint64_t unloads) {
  gs_any_t *real = NULL;
  pthread_mutex_lock(&lock);
  if (unloads != known_unloads) known_count = 0, known_unloads = unloads;
  for (unsigned i = 0; i < known_count && i < KNOWN_MAX && !real; i++)
    if (known[i].name == name && known[i].caller == caller) real = known[i].real;
  pthread_mutex_unlock(&lock);
  return real;
}

static gs_any_t *real_for(const char *name, const void *caller) {
  uint64_t unloads = gemmshim_graph ? gemmshim_graph(GS_GRAPH_UNLOADS, 0, 0, 0) : 0;
  gs_any_t *real = gemmshim_graph ? recall(name, caller, unloads) : NULL;
  if (real || !(real = look_up(name, caller)) || !gemmshim_graph) return real;
  pthread_mutex_lock(&lock);
  unsigned i = known_count++ % KNOWN_MAX;
  known[i].name = name, known[i].caller = caller, known[i].real = real;
  pthread_mutex_unlock(&lock);
  return real;
}

/* ---- the functions ---- */

typedef int gs_kind_t(const gs_call_t *call);

static int run(const char *name, gs_kind_t *kind, const void *caller, gs_call_t *call) {
  call->real = real_for(name, caller);
  if (!call->real) return NOT_INITIALIZED;
  if (inside || !gemmshim_graph) return pass(call);
  inside = true;
  int status = kind(call);
  inside = false;
  return status;
}

#define GS_GRAPH_HOOK(function, kind)                                                                        \
  __attribute__((visibility("default"))) int function(word_t a, word_t b, word_t c, word_t d, word_t e,      \
                                                      word_t f);                                             \
  int function(word_t a, word_t b, word_t c, word_t d, word_t e, word_t f) {                                 \
    static const char name[] = #function;                                                                    \
    gs_call_t call = {.a = {a, b, c, d, e, f}};                                                              \
    return run(name, kind, __builtin_return_address(0), &call);                                              \
  }
#ifdef GS_UPDATES_ALONE
#include "graph_updates.def"
#else
#include "graphs.def"
#endif

static void in_child(void) {
  pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void enter(void) {
  pthread_atfork(NULL, NULL, in_child);
}
