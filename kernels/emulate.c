#include "emulate.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#define GS_EMULATE
#include "common.cuh"
#include "emulate_wgmma.h"
#include "instances.h"
#include "tiles.h"

enum { STACK = 64 << 10, SHARED_BASE = 1024, LANES = 32 };
enum { THREADS_MAX = 1024, COPIES_MAX = 512, BLOCKS_MAX = 8 };

typedef struct {
  unsigned to;
  int bytes, group;
  const void *from;
} copy_t;

typedef struct meeting meeting_t;

typedef struct {
  ucontext_t context;
  void *sanitizer; /* the thread sanitizer's idea of a fiber */
  char *stack;
  bool done;
  bool awaited;        /* the end of what is ahead on the stream */
  const meeting_t *at; /* waits there until its generation is no longer this one; NULL: runs */
  unsigned generation;
  unsigned meetings;       /* warp-wide meetings so far */
  const unsigned *landing; /* waits there while it is not zero */
  bool arrived;            /* at the cluster's barrier, and has not waited there yet */
  unsigned arrived_generation;
  int group, copies; /* of background copies: the open group; how many have not landed */
  copy_t copy[COPIES_MAX];
  bool unfenced; /* copies have landed that products may not see yet */
  gs_products_t products;
} fiber_t;

/* A meeting point of `size` threads. Threads may be one meeting apart, hence two boards to leave values on.
 */
struct meeting {
  unsigned size, arrived, generation;
  struct {
    unsigned address;
    float rows[8], columns[4];
  } board[2][LANES];
};

gs_index_t gs_emulated_thread, gs_emulated_block, gs_emulated_grid;

typedef struct {
  unsigned char *shared;
  int gathered;  /* by gs_sync_or */
  bool unfenced; /* a thread met the others without having made its copies visible to products */
  meeting_t all, warps[THREADS_MAX / LANES];
} block_t;

/* What runs: the blocks of one cluster, together. */
static struct {
  const gs_emulation_t *how;
  const gs_params_t *params;
  void (*kernel)(const gs_params_t *);
  const char *fault;
  unsigned shared_bytes, threads, cluster;
  unsigned rank; /* of the block whose thread runs */
  block_t blocks[BLOCKS_MAX];
  fiber_t *fibers; /* [rank][thread] */
  void *sanitizer;
  ucontext_t scheduler;
  meeting_t together; /* all threads of the cluster */
} run;

static fiber_t *self(void) {
  return &run.fibers[run.rank * run.threads + gs_emulated_thread.x];
}
static block_t *block(void) {
  return &run.blocks[run.rank];
}
static void fault(const char *what) {
  if (!run.fault) run.fault = what;
}

gs_products_t *gs_emulated_products(void) {
  return &self()->products;
}
bool gs_emulated_unfenced(void) {
  return block()->unfenced;
}
bool gs_emulated_late(void) {
  return run.how->late;
}
void gs_emulated_fault(const char *what) {
  fault(what);
}

/* --- fibers --- */
static void switch_to(void *sanitizer) {
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(sanitizer, 0);
#else
  (void)sanitizer;
#endif
}
static void yield(void) {
  fiber_t *fiber = self();
  switch_to(run.sanitizer);
  swapcontext(&fiber->context, &run.scheduler);
}

static void enter(void) {
  run.kernel(run.params);
  if (!self()->awaited) fault("a thread that ends before what is ahead on the stream has");
  self()->done = true;
  yield();
}

/* Returns the generation that will be over once all have arrived. */
static unsigned arrive(meeting_t *at) {
  unsigned generation = at->generation;
  if (++at->arrived == at->size) {
    at->arrived = 0;
    ++at->generation;
  }
  return generation;
}

static void wait_for(meeting_t *at, unsigned generation) {
  fiber_t *fiber = self();
  if (at->generation != generation) return;
  fiber->at = at;
  fiber->generation = generation;
  yield();
  fiber->at = NULL;
}

static void meet(meeting_t *at) {
  wait_for(at, arrive(at));
}

static void start(unsigned index) {
  fiber_t *fiber = &run.fibers[index];
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = STACK;
  fiber->context.uc_link = NULL;
  makecontext(&fiber->context, enter, 0);
  fiber->done = fiber->awaited = false;
  fiber->at = NULL;
  fiber->meetings = 0;
  fiber->arrived = false;
  fiber->landing = NULL;
  fiber->group = fiber->copies = 0;
  fiber->unfenced = false;
  fiber->products.group = fiber->products.count = 0;
}

/* Runs the threads of a warp until each is done or waits for another warp; true if any ran. */
static bool run_warp(unsigned first) {
  bool any = false, ran = true;
  while (ran) {
    ran = false;
    for (unsigned i = 0; i < LANES; ++i) {
      unsigned index = first + (run.how->backward ? LANES - 1 - i : i);
      fiber_t *fiber = &run.fibers[index];
      if (fiber->done || (fiber->at && fiber->at->generation == fiber->generation)) continue;
      if (fiber->landing && *fiber->landing) continue;
      run.rank = index / run.threads;
      gs_emulated_thread = (gs_index_t){index % run.threads, 0, 0};
      gs_emulated_block.y = gs_emulated_block.y / run.cluster * run.cluster + run.rank;
      switch_to(fiber->sanitizer);
      swapcontext(&run.scheduler, &fiber->context);
      any = ran = true;
    }
  }
  return any;
}

/* One warp runs as far ahead of the others as barriers let it. */
static void run_cluster(void) {
  const unsigned threads = run.threads * run.cluster, warps = threads / LANES;
  run.together = (meeting_t){.size = threads};
  for (unsigned r = 0; r < run.cluster; ++r) {
    memset(run.blocks[r].shared, 0xff, run.shared_bytes); /* NaN in every type */
    run.blocks[r].unfenced = false;
    run.blocks[r].all = (meeting_t){.size = run.threads};
    for (unsigned w = 0; w < run.threads / LANES; ++w) run.blocks[r].warps[w] = (meeting_t){.size = LANES};
  }
  for (unsigned i = 0; i < threads; ++i) start(i);
  for (bool ran = true; ran;) {
    ran = false;
    for (unsigned w = 0; w < warps; ++w) ran |= run_warp((run.how->backward ? warps - 1 - w : w) * LANES);
  }
  for (unsigned i = 0; i < threads; ++i)
    if (!run.fibers[i].done) fault("a barrier that some threads never reach");
}

/* --- memory --- */
void gs_await_stream(void) {
  self()->awaited = true;
}
static bool legal(const void *at, unsigned bytes, bool write) {
  if (!self()->awaited) fault("global memory is touched before what is ahead on the stream has ended");
  for (int i = 0; i < run.how->range_count; ++i) {
    const gs_range_t *r = &run.how->ranges[i];
    uintptr_t begin = (uintptr_t)r->begin, first = (uintptr_t)at;
    if (first >= begin && first + bytes <= begin + r->bytes && (r->writable || !write)) return true;
  }
  return false;
}

void gs_emulated_load(const void *at, void *v, unsigned bytes) {
  memset(v, 0, bytes);
  if ((uintptr_t)at % bytes)
    fault("a misaligned load");
  else if (!legal(at, bytes, false))
    fault("a load outside the operands");
  else
    memcpy(v, at, bytes);
}

void gs_emulated_store(void *at, const void *v, unsigned bytes) {
  if ((uintptr_t)at % bytes)
    fault("a misaligned store");
  else if (!legal(at, bytes, true))
    fault("a store outside the result");
  else
    memcpy(at, v, bytes);
}

/* A block of a cluster knows its memory by an address that holds its rank, as in hardware. */
unsigned gs_shared_address(void) {
  return SHARED_BASE | run.rank << 24;
}

static void *shared_of(unsigned rank, unsigned address, unsigned bytes) {
  static unsigned char nowhere[16];
  if (address % bytes) fault("a misaligned access to shared memory");
  if (address >> 24 != run.rank) fault("an address of another block's shared memory");
  address &= 0xffffff;
  if (rank < run.cluster && address >= SHARED_BASE && address - SHARED_BASE + bytes <= run.shared_bytes)
    return run.blocks[rank].shared + (address - SHARED_BASE);
  fault("an access outside shared memory");
  return nowhere;
}

void *gs_emulated_shared(unsigned address, unsigned bytes) {
  return shared_of(run.rank, address, bytes);
}

static void land(const copy_t *copy) {
  unsigned char *to = gs_emulated_shared(copy->to, 16);
  memset(to, 0, 16);
  if (copy->bytes && !legal(copy->from, (unsigned)copy->bytes, false))
    fault("a background copy from outside the operands");
  else
    memcpy(to, copy->from, (size_t)copy->bytes);
}

void gs_copy_part(unsigned to, const void *from, int bytes) {
  fiber_t *fiber = self();
  copy_t copy = {to, bytes, fiber->group, from};
  if ((uintptr_t)from % 16 || bytes < 0 || bytes > 16) fault("a misaligned background copy");
  if (!run.how->late)
    land(&copy);
  else if (fiber->copies == COPIES_MAX)
    fault("more background copies in flight than the emulator holds");
  else
    fiber->copy[fiber->copies++] = copy;
}

void gs_copy_commit(void) {
  ++self()->group;
}

void gs_copy_wait(int pending) {
  fiber_t *fiber = self();
  int kept = 0;
  for (int i = 0; i < fiber->copies; ++i) {
    if (fiber->copy[i].group < fiber->group - pending)
      land(&fiber->copy[i]);
    else
      fiber->copy[kept++] = fiber->copy[i];
  }
  fiber->copies = kept;
  fiber->unfenced = true;
}
void gs_fence_async(void) {
  self()->unfenced = false;
}

/* --- meetings --- */
void gs_sync(void) {
  block()->unfenced |= self()->unfenced;
  meet(&block()->all);
}

int gs_sync_or(int flag) {
  block()->gathered |= flag;
  meet(&block()->all);
  int any = block()->gathered;
  meet(&block()->all);
  block()->gathered = 0;
  meet(&block()->all);
  return any;
}

static meeting_t *warp(void) {
  return &block()->warps[gs_emulated_thread.x / LANES];
}
void gs_sync_warp(void) {
  meet(warp());
}

void gs_emulated_lanes(unsigned v, unsigned of[LANES]) {
  unsigned board = self()->meetings++ % 2;
  warp()->board[board][gs_emulated_thread.x % LANES].address = v;
  meet(warp());
  for (unsigned lane = 0; lane < LANES; ++lane) of[lane] = warp()->board[board][lane].address;
}

unsigned gs_count_up(unsigned *counter) {
  unsigned old = 0;
  gs_emulated_load(counter, &old, 4);
  gs_emulated_store(counter, &(unsigned){old + 1}, 4);
  return old;
}

/* --- clusters --- */
unsigned gs_cluster_rank(void) {
  return run.rank;
}
unsigned gs_cluster_y(void) {
  return gs_emulated_block.y / run.cluster;
}

void gs_cluster_arrive(void) {
  fiber_t *fiber = self();
  if (fiber->arrived) fault("a second arrival at the cluster's barrier without a wait");
  fiber->arrived = true;
  fiber->arrived_generation = arrive(&run.together);
}

void gs_cluster_wait(void) {
  fiber_t *fiber = self();
  if (!fiber->arrived) fault("a wait at the cluster's barrier without an arrival");
  fiber->arrived = false;
  wait_for(&run.together, fiber->arrived_generation);
}

/* Its first word counts the bytes that have still to come; the second tells that it is open. */
static unsigned *landing_of(unsigned rank, unsigned landing) {
  return shared_of(rank, landing, 8);
}
enum { OPEN = 0x10ad };

void gs_landing_open(unsigned landing, unsigned bytes, int mine) {
  if (!mine) return;
  unsigned *at = landing_of(run.rank, landing);
  if (at[1] == OPEN) fault("a landing that is opened twice");
  at[0] = bytes;
  at[1] = OPEN;
}

void gs_landing_wait(unsigned landing) {
  fiber_t *fiber = self();
  fiber->landing = landing_of(run.rank, landing);
  if (fiber->landing[1] != OPEN) fault("a wait at a landing that is not open");
  while (*fiber->landing) yield();
  fiber->landing = NULL;
}

static void send(unsigned to, unsigned landing, unsigned rank, const float *v, unsigned bytes) {
  unsigned *at = landing_of(rank, landing);
  if (run.together.generation == 0) fault("sending to a block that may not have begun");
  if (at[1] != OPEN || at[0] < bytes) fault("sending more than is waited for");
  at[0] -= bytes;
  memcpy(shared_of(rank, to, bytes), v, bytes);
}

void gs_send_f32x2(unsigned to, unsigned landing, unsigned rank, const float v[2]) {
  send(to, landing, rank, v, 8);
}
void gs_send_f32x4(unsigned to, unsigned landing, unsigned rank, const float v[4]) {
  send(to, landing, rank, v, 16);
}

/* --- tensor cores --- */
static void ldmatrix(unsigned from, unsigned v[4], bool trans) {
  unsigned lane = gs_emulated_thread.x % LANES, board = self()->meetings++ % 2;
  warp()->board[board][lane].address = from;
  meet(warp());
  for (unsigned i = 0; i < 4; ++i) {
    unsigned short half[2];
    for (unsigned h = 0; h < 2; ++h) {
      unsigned row = trans ? lane % 4 * 2 + h : lane / 4, column = trans ? lane / 4 : lane % 4 * 2 + h;
      const unsigned char *at = gs_emulated_shared(warp()->board[board][i * 8 + row].address, 16);
      memcpy(&half[h], at + column * 2, 2);
    }
    v[i] = half[0] | (unsigned)half[1] << 16;
  }
}

void gs_ldmatrix(unsigned from, unsigned v[4]) {
  ldmatrix(from, v, false);
}
void gs_ldmatrix_trans(unsigned from, unsigned v[4]) {
  ldmatrix(from, v, true);
}

/* Fragments as the PTX manual draws them for mma.m16n8k16. */
static void mma(int type, float acc[4], const unsigned rows[4], const unsigned columns[2]) {
  unsigned lane = gs_emulated_thread.x % LANES, board = self()->meetings++ % 2;
  for (unsigned i = 0; i < 8; ++i)
    warp()->board[board][lane].rows[i] = gs_widen(type, rows[i / 2] >> i % 2 * 16);
  for (unsigned i = 0; i < 4; ++i)
    warp()->board[board][lane].columns[i] = gs_widen(type, columns[i / 2] >> i % 2 * 16);
  meet(warp());
  for (unsigned c = 0; c < 4; ++c) {
    unsigned row = lane / 4, column = lane % 4 * 2 + c % 2; /* and row + 8 for c >= 2 */
    for (unsigned k = 0; k < 16; ++k)
      acc[c] += warp()->board[board][row * 4 + k % 8 / 2].rows[k / 8 * 4 + c / 2 * 2 + k % 2] *
                warp()->board[board][column * 4 + k % 8 / 2].columns[k / 8 * 2 + k % 2];
  }
}

void gs_mma_f16(float acc[4], const unsigned rows[4], const unsigned columns[2]) {
  mma(GS_E_F16, acc, rows, columns);
}
void gs_mma_bf16(float acc[4], const unsigned rows[4], const unsigned columns[2]) {
  mma(GS_E_BF16, acc, rows, columns);
}

/* --- launch --- */
typedef void (*const kernels_t[])(const gs_params_t *);
#define GS_SHIPPED(name, ...) extern kernels_t GS_JOIN(gs_emulated_, name);
#include "shipped.def"
static void (*const *const tiles[])(const gs_params_t *) = {
#define GS_SHIPPED(name, ...) GS_JOIN(gs_emulated_, name),
#include "shipped.def"
};
#define X(...) +1
enum { INSTANCES = GS_INSTANCES(X) };
#undef X

static bool allocate(void) {
  const unsigned threads = run.threads * run.cluster;
  char *stacks = malloc((size_t)threads * STACK);
  unsigned char *shared = malloc((size_t)run.cluster * run.shared_bytes + 1);
  run.fibers = calloc(threads, sizeof *run.fibers);
  if (!stacks || !shared || !run.fibers) return false;
  for (unsigned r = 0; r < run.cluster; ++r) run.blocks[r].shared = shared + (size_t)r * run.shared_bytes;
  for (unsigned i = 0; i < threads; ++i) run.fibers[i].stack = stacks + (size_t)i * STACK;
#ifdef __SANITIZE_THREAD__
  run.sanitizer = __tsan_get_current_fiber();
  for (unsigned i = 0; i < threads; ++i) run.fibers[i].sanitizer = __tsan_create_fiber(0);
#endif
  return true;
}

static void release(void) {
#ifdef __SANITIZE_THREAD__
  for (unsigned i = 0; i < run.threads * run.cluster; ++i) __tsan_destroy_fiber(run.fibers[i].sanitizer);
#endif
  free(run.fibers[0].stack);
  free(run.fibers);
  free(run.blocks[0].shared);
}

const char *gs_emulate(const gs_kernel_t *k, const gs_launch_t *launch, const gs_params_t *p,
                       const gs_emulation_t *how) {
  int index = gs_shipped_find(k);
  const unsigned cluster = launch->cluster > 1 ? launch->cluster : 1;
  if (index < 0) return "no such kernel";
  if (cluster > BLOCKS_MAX || launch->grid[1] % cluster) return "a cluster that no GPU can run";
  memset(&run, 0, sizeof run);
  run.how = how;
  run.params = p;
  run.kernel = tiles[index / INSTANCES][index % INSTANCES];
  run.threads = launch->block;
  run.cluster = cluster;
  run.shared_bytes = launch->smem;
  if (!allocate()) return "out of memory";
  gs_emulated_grid = (gs_index_t){launch->grid[0], launch->grid[1], launch->grid[2]};
  unsigned across = launch->grid[0], along = launch->grid[1] / cluster,
           clusters = across * along * launch->grid[2];
  for (unsigned i = 0; i < clusters && !run.fault; ++i) {
    unsigned at = how->backward ? clusters - 1 - i : i;
    gs_emulated_block = (gs_index_t){at % across, at / across % along * cluster, at / across / along};
    run_cluster();
  }
  release();
  return run.fault;
}
