#include "graphs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "clusters.h"
#include "device.h"
#include "graph_events.h"
#include "histogram.h"

#define HANDLES_MAX  8192 /* graphs and executable ones */
#define BUCKETS      2048
#define CAPTURES_MAX 64        /* in progress */
#define PARTS_MAX    (1 << 17) /* in all: 2 MiB */

/* One shape's products among those that a graph holds. */
typedef struct {
  int slot;
  uint32_t runs;   /* a launch */
  uint32_t traced; /* of these, captured calls that the histogram has been told of */
} gs_part_t;

/* Shared by all that hold the same; changed only where nobody else has it. */
typedef struct {
  int users, count, room;
  gs_part_t parts[];
} gs_products_t;

typedef struct {
  uint64_t handle; /* 0: free */
  gs_products_t *products;
  int next; /* of its bucket, or free; 1 + index */
} gs_holder_t;

static gs_holder_t holders[HANDLES_MAX];
static int buckets[BUCKETS]; /* 1 + index */
static int holders_used, holders_free;
static gs_holder_t
    captures[CAPTURES_MAX];            /* by id, which is never given twice; a larger one is a later one */
static uint64_t joining[CAPTURES_MAX]; /* streams */
static int parts_used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all above */
static atomic_ulong unloads;

/* ---- products ---- */

static void let_go(gs_products_t *products) {
  if (!products || --products->users) return;
  parts_used -= products->room;
  free(products);
}

/* A copy with that much room, in place of *products; false where there is none. */
static bool make_room(gs_products_t **products, int room) {
  gs_products_t *old = *products;
  if (parts_used + room > PARTS_MAX) return false;
  gs_products_t *new = malloc(sizeof *new + (size_t)room * sizeof *new->parts);
  if (!new) return false;
  new->users = 1, new->room = room, new->count = 0;
  parts_used += room;
  for (; old && new->count < old->count; new->count++) {
    new->parts[new->count] = old->parts[new->count];
    if (old->users > 1) new->parts[new->count].traced = 0; /* once is enough, should it be lost */
  }
  let_go(old);
  *products = new;
  return true;
}

static bool add_part(gs_products_t **products, int slot, uint32_t runs) {
  int count = *products ? (*products)->count : 0, i = 0;
  while (i < count && (*products)->parts[i].slot != slot) i++;
  bool full = i == count && (!*products || count == (*products)->room);
  bool shared = *products && (*products)->users > 1;
  if ((full || shared) && !make_room(products, i == count ? 2 * count + 4 : count)) return false;
  gs_products_t *mine = *products;
  if (i == count) mine->parts[mine->count++] = (gs_part_t){.slot = slot};
  mine->parts[i].runs += runs;
  return true;
}

static void add_all(gs_products_t **products, const gs_products_t *more) {
  for (int i = 0; more && i < more->count; i++)
    if (!add_part(products, more->parts[i].slot, more->parts[i].runs)) return;
}

/* The histogram learns that launches of these will be seen. */
static void trace(gs_products_t *products) {
  for (int i = 0; products && i < products->count; i++)
    gs_histogram_traced(products->parts[i].slot, (int64_t)products->parts[i].traced);
}

/* Or that they will not after all. */
static void lose(gs_products_t *products) {
  for (int i = 0; i < products->count; i++) {
    gs_histogram_traced(products->parts[i].slot, -(int64_t)products->parts[i].traced);
    products->parts[i].traced = 0;
  }
}

/* ---- who holds them ---- */

static int *bucket_of(uint64_t handle) {
  return &buckets[handle * 0x9e3779b97f4a7c15u >> 53];
}
_Static_assert(BUCKETS == 1 << (64 - 53), "the hash's bits");

/* Where 1 + the index of the handle's holder stands; there is a 0 where it has none. */
static int *place_of(uint64_t handle) {
  int *place = bucket_of(handle);
  while (*place && holders[*place - 1].handle != handle) place = &holders[*place - 1].next;
  return place;
}

static gs_products_t *held_by(uint64_t handle) {
  int index = *place_of(handle);
  return index ? holders[index - 1].products : NULL;
}

static void drop(uint64_t handle) {
  int *place = place_of(handle), index = *place;
  if (!index) return;
  gs_holder_t *holder = &holders[index - 1];
  let_go(holder->products);
  *place = holder->next;
  *holder = (gs_holder_t){.next = holders_free};
  holders_free = index;
}

/* Takes the caller's share of the products. */
static void hold(uint64_t handle, gs_products_t *products) {
  drop(handle);
  if (!products) return;
  int index = holders_free ? holders_free : holders_used < HANDLES_MAX ? ++holders_used : 0;
  if (!index) {
    lose(products);
    let_go(products);
    return;
  }
  if (index == holders_free) holders_free = holders[index - 1].next;
  int *bucket = bucket_of(handle);
  holders[index - 1] = (gs_holder_t){.handle = handle, .products = products, .next = *bucket};
  *bucket = index;
}

static gs_holder_t *capture_of(uint64_t id) {
  for (int i = 0; i < CAPTURES_MAX; i++)
    if (captures[i].handle == id) return &captures[i];
  return NULL;
}

/* A capture whose end is not seen gives way to later ones. */
static gs_holder_t *capture_made(uint64_t id) {
  gs_holder_t *capture = capture_of(id), *oldest = &captures[0];
  if (capture) return capture;
  for (int i = 1; i < CAPTURES_MAX; i++)
    if (captures[i].handle < oldest->handle) oldest = &captures[i];
  let_go(oldest->products);
  *oldest = (gs_holder_t){.handle = id};
  return oldest;
}

/* ---- what happens ---- */

static uint64_t capture_on(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  if (gs_driver.gs_cuStreamGetCaptureInfo_v2(stream, &status, &id, NULL, NULL, NULL) != CUDA_SUCCESS)
    return 0;
  return status == CU_STREAM_CAPTURE_STATUS_NONE ? 0 : id;
}

/* The driver is known where a product was captured, or is held; another's capture is nobody's business. */
static uint64_t known_capture(uint64_t stream) {
  for (int i = 0; i < CAPTURES_MAX; i++)
    if (captures[i].handle) return capture_on((CUstream)(uintptr_t)stream);
  return 0;
}

static void join(uint64_t stream) {
  int i = 0;
  while (i < CAPTURES_MAX - 1 && joining[i]) i++;
  joining[i] = stream;
}

static bool joined(uint64_t stream) {
  int i = stream ? 0 : CAPTURES_MAX;
  while (i < CAPTURES_MAX && joining[i] != stream) i++;
  if (i < CAPTURES_MAX) joining[i] = 0;
  return i < CAPTURES_MAX;
}

static void end(uint64_t stream, uint64_t id, uint64_t graph) {
  bool foreign = joined(stream);
  gs_holder_t *capture = id ? capture_of(id) : NULL;
  gs_products_t *products = capture ? capture->products : NULL;
  if (capture) *capture = (gs_holder_t){.handle = 0};
  if (graph && !foreign) {
    trace(products);
    hold(graph, products);
  } else {
    let_go(products);
  }
}

static void make(uint64_t from, uint64_t to) {
  gs_products_t *products = held_by(from);
  if (products) products->users++;
  hold(to, products);
}

static void add(uint64_t from, uint64_t to) {
  gs_products_t *products = held_by(to);
  if (!held_by(from)) return;
  if (products) products->users++;
  add_all(&products, held_by(from));
  hold(to, products);
}

/* Under capture, a launch makes the graph a part of the one that is captured. */
static void launch(uint64_t exec, uint64_t stream) {
  const gs_products_t *products = held_by(exec);
  if (!products) return;
  uint64_t id = capture_on((CUstream)(uintptr_t)stream);
  if (id)
    add_all(&capture_made(id)->products, products);
  else
    for (int i = 0; i < products->count; i++)
      gs_histogram_replayed(products->parts[i].slot, products->parts[i].runs);
}

static uint64_t happened(gs_graph_event_t event, uint64_t a, uint64_t b, uint64_t c) {
  switch (event) {
  case GS_GRAPH_CAPTURE:
    return known_capture(a);
  case GS_GRAPH_JOINS:
    return join(a), 0;
  case GS_GRAPH_ENDED:
    return end(a, b, c), 0;
  case GS_GRAPH_MADE:
    return make(a, b), 0;
  case GS_GRAPH_ADDED:
    return add(a, b), 0;
  case GS_GRAPH_LAUNCHED:
    return launch(a, b), 0;
  case GS_GRAPH_GONE:
    return drop(a), 0;
  default:
    return 0;
  }
}

uint64_t gemmshim_graph(gs_graph_event_t event, uint64_t a, uint64_t b, uint64_t c) {
  if (event == GS_GRAPH_UNLOADS) return atomic_load(&unloads);
  if (event == GS_GRAPH_UPDATES) return gs_clusters_at_update((CUgraph)(uintptr_t)a), 0;
  pthread_mutex_lock(&lock);
  uint64_t answer = happened(event, a, b, c);
  pthread_mutex_unlock(&lock);
  return answer;
}

bool gs_graphs_hooked(void) {
  return &gemmshim_graphs_hooked != NULL;
}

void gs_graphs_captured(CUstream stream, int slot) {
  uint64_t id = capture_on(stream);
  if (!id || slot < 0) return;
  pthread_mutex_lock(&lock);
  gs_holder_t *capture = capture_made(id);
  if (add_part(&capture->products, slot, 1)) {
    int i = 0;
    while (capture->products->parts[i].slot != slot) i++;
    capture->products->parts[i].traced++;
  }
  pthread_mutex_unlock(&lock);
}

void gs_graphs_unloaded(void) {
  atomic_fetch_add(&unloads, 1);
}

void gs_graphs_fork(void) {
  pthread_mutex_init(&lock, NULL);
  for (int i = 0; i < holders_used; i++)
    if (holders[i].handle) drop(holders[i].handle);
  for (int i = 0; i < CAPTURES_MAX; i++) let_go(captures[i].products);
  memset(captures, 0, sizeof captures);
  memset(joining, 0, sizeof joining);
}
