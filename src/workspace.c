#include "workspace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "device.h"
#include "options.h"

#define BLOCKS_MAX     256
#define PIECES_BYTES   ((size_t)GS_ZEROED_PIECES * GS_ZEROED_BYTES)
#define COUNTERS_BYTES (GS_SPLIT_COUNTERS * sizeof(unsigned))

typedef enum { UNUSED, EAGER, CAPTURED, RELEASED /* its graph is gone */, SCRATCH } gs_owner_t;

typedef struct {
  _Atomic int owner; /* a gs_owner_t; what follows is written before it */
  _Atomic unsigned long long context;
  CUcontext handle; /* which may come to stand for another context */
  unsigned long long stream, capture;
  CUdeviceptr pieces, memory;
  size_t bytes; /* of memory */
  int pieces_used;
  pthread_mutex_t order; /* of who holds it */
} gs_block_t;

/* Whom a block is for. */
typedef struct {
  CUcontext handle;
  unsigned long long context, stream;
  cuuint64_t capture; /* 0: none */
  CUgraph graph;
  bool scratch;
  bool pieces; /* are all that is wanted */
} gs_user_t;

static gs_block_t blocks[BLOCKS_MAX];
static _Atomic int block_count;
static _Atomic size_t held;
/* Bytes for which a context, by its id, had no room: each call that asked again would pay for it. */
static _Atomic size_t refused = SIZE_MAX;
static _Atomic unsigned long long refused_to;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A stream that captures may not be asked for its id: that ends the capture. Its handle will do, which stays while the
 * capture lasts, but for the threads' own streams, which share one. */
static unsigned long long name_in_capture(CUstream stream) {
  static __thread char mine __attribute__((tls_model("initial-exec")));
  return stream == CU_STREAM_PER_THREAD ? (unsigned long long)(uintptr_t)&mine
                                        : (unsigned long long)(uintptr_t)stream;
}

static gs_reason_t identify(CUcontext context, CUstream stream, gs_user_t *user) {
  user->handle = context;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (gs_driver.cuCtxGetId(context, &user->context) != CUDA_SUCCESS) return GS_REASON_WORKSPACE;
  if (gs_driver.gs_cuStreamGetCaptureInfo_v2(stream, &status, &user->capture, &user->graph, NULL, NULL) !=
      CUDA_SUCCESS)
    return GS_REASON_CAPTURE;
  if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) return GS_REASON_CAPTURE;
  if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    user->stream = name_in_capture(stream);
    return GS_REASON_SERVED;
  }
  user->capture = 0;
  return gs_driver.cuStreamGetId(stream, &user->stream) == CUDA_SUCCESS ? GS_REASON_SERVED
                                                                        : GS_REASON_WORKSPACE;
}

static gs_block_t *find(const gs_user_t *user, size_t bytes, gs_owner_t owner) {
  int count = atomic_load_explicit(&block_count, memory_order_acquire);
  for (int i = 0; i < count; i++) {
    gs_block_t *block = &blocks[i];
    if (atomic_load_explicit(&block->owner, memory_order_acquire) != (int)owner) continue;
    if (atomic_load_explicit(&block->context, memory_order_acquire) != user->context || block->bytes < bytes)
      continue;
    if (owner == RELEASED || (block->stream == user->stream && block->capture == user->capture)) return block;
  }
  return NULL;
}

/* Counters begin at zero, on a stream of our own: the caller's may be capturing. */
static bool zero_counters(CUdeviceptr memory) {
  CUstream own;
  if (gs_driver.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return false;
  bool zeroed = gs_driver.cuMemsetD8Async(memory, 0, COUNTERS_BYTES, own) == CUDA_SUCCESS &&
                gs_driver.cuStreamSynchronize(own) == CUDA_SUCCESS;
  gs_driver.cuStreamDestroy(own);
  return zeroed;
}

/* Where the context's handle stood for another one before, that one is gone (cudaDeviceReset), and its memory
 * with it; blocks that a graph still holds wait for the graph. */
static void drop_dead(const gs_user_t *user) {
  for (int i = 0; i < block_count; i++) {
    gs_block_t *block = &blocks[i];
    int owner = atomic_load(&block->owner);
    if (block->handle != user->handle || block->context == user->context) continue;
    if (owner != EAGER && owner != RELEASED && owner != SCRATCH) continue;
    atomic_store(&block->context, 0);
    atomic_store(&block->owner, UNUSED);
    held -= PIECES_BYTES + block->bytes;
  }
}

static gs_block_t *unused_block(void) {
  int i = 0;
  while (i < block_count && blocks[i].owner != UNUSED) i++;
  return i < BLOCKS_MAX ? &blocks[i] : NULL;
}

static gs_block_t *allocate(const gs_user_t *user, size_t bytes) {
  drop_dead(user);
  size_t room = (size_t)gs_option(GS_OPT_VRAM_MB) << (user->scratch ? 19 : 20), wanted = PIECES_BYTES + bytes;
  size_t rounded = user->pieces ? wanted : 1 << 20;
  if (held >= room) return NULL;
  while (rounded < wanted && rounded < room) rounded *= 2; /* so that blocks fit later uses too */
  if (rounded > room - held) rounded = wanted;
  gs_block_t *block = unused_block();
  if (wanted > room || rounded > room - held || !block) return NULL;
  if (gs_driver.cuMemAlloc(&block->pieces, rounded) != CUDA_SUCCESS) return NULL;
  block->memory = block->pieces + PIECES_BYTES;
  if (!zero_counters(block->memory)) {
    gs_driver.cuMemFree(block->pieces);
    return NULL;
  }
  block->handle = user->handle;
  block->bytes = rounded - PIECES_BYTES;
  pthread_mutex_init(&block->order, NULL);
  held += rounded;
  return block;
}

static void CUDA_CB graph_gone(void *block) {
  atomic_store(&((gs_block_t *)block)->owner, RELEASED);
  atomic_store(&refused, SIZE_MAX); /* it may do for who was refused */
}

/* The graph being captured keeps the block for as long as it, or anything instantiated from it, lives. */
static bool bind_to_graph(gs_block_t *block, CUgraph graph) {
  CUuserObject object;
  return gs_driver.cuUserObjectCreate(&object, block, graph_gone, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) ==
             CUDA_SUCCESS &&
         gs_driver.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_SUCCESS;
}

static bool is_refused(const gs_user_t *user, size_t bytes) {
  return bytes >= atomic_load_explicit(&refused, memory_order_relaxed) &&
         user->context == atomic_load_explicit(&refused_to, memory_order_relaxed);
}

static gs_block_t *use(gs_block_t *block, const gs_user_t *user, gs_owner_t owner) {
  if (!block) return NULL;
  block->stream = user->stream;
  block->capture = user->capture;
  block->pieces_used = GS_ZEROED_PIECES;
  atomic_store_explicit(&block->context, user->context, memory_order_release);
  atomic_store_explicit(&block->owner, owner, memory_order_release);
  if (block == &blocks[block_count]) atomic_fetch_add(&block_count, 1);
  return block;
}

/* The driver tells of the end of a graph on a thread of its own, some time after it. Where the bound is reached a block may
 * be about to be free: forwarded now, this product would be cuBLAS's in this graph, and ours in the next that a program
 * may update it by. Once: who is refused after all is not asked to wait again before something was released. */
static gs_block_t *await_release(const gs_user_t *user, size_t bytes) {
  const struct timespec pause = {.tv_nsec = 100000};
  gs_block_t *block = NULL;
  for (int i = 0; i < 20 && !block; i++) {
    nanosleep(&pause, NULL);
    block = find(user, bytes, RELEASED);
  }
  return block;
}

/* Under the lock, in relaxed capture mode. */
static gs_block_t *obtain(const gs_user_t *user, size_t bytes) {
  gs_owner_t owner = user->scratch ? SCRATCH : user->capture ? CAPTURED : EAGER;
  gs_block_t *block = find(user, bytes, owner);
  if (block) return block;                                 /* another thread was here first */
  if (!user->scratch) block = find(user, bytes, RELEASED); /* scratch would spoil its counters */
  if (!block && user->scratch) return use(allocate(user, bytes), user, SCRATCH);
  if (!block && !is_refused(user, bytes)) {
    block = allocate(user, bytes);
    if (!block && user->capture) block = await_release(user, bytes);
  }
  if (!block) {
    if (!is_refused(user, bytes)) refused = bytes;
    refused_to = user->context;
    return NULL;
  }
  if (user->capture && !bind_to_graph(block, user->graph)) owner = RELEASED;
  use(block, user, owner);
  return owner == RELEASED ? NULL : block;
}

/* The same from anywhere; NULL where there is none. */
static gs_block_t *obtain_relaxed(const gs_user_t *user, size_t bytes) {
  CUstreamCaptureMode mode;
  if (!gs_capture_relax(&mode)) return NULL;
  pthread_mutex_lock(&lock);
  gs_block_t *block = obtain(user, bytes);
  pthread_mutex_unlock(&lock);
  gs_capture_restore(mode);
  return block;
}

gs_reason_t gs_workspace_scratch(CUcontext context, CUstream stream, size_t bytes, void **out) {
  gs_user_t user = {.scratch = true};
  if (identify(context, stream, &user) != GS_REASON_SERVED || user.capture) return GS_REASON_CAPTURE;
  gs_block_t *block = find(&user, bytes, SCRATCH);
  if (!block) block = obtain_relaxed(&user, bytes);
  if (!block) return GS_REASON_WORKSPACE;
  *out = (void *)block->memory;
  return GS_REASON_SERVED;
}

/* The block of whoever works on stream; user says what for. */
static gs_reason_t block_of(CUcontext context, CUstream stream, size_t bytes, gs_user_t *user,
                            gs_block_t **block) {
  gs_reason_t reason = identify(context, stream, user);
  if (reason != GS_REASON_SERVED) return reason;
  *block = user->capture ? NULL : find(user, bytes, EAGER);
  if (!*block && (user->capture || !is_refused(user, bytes))) *block = obtain_relaxed(user, bytes);
  return *block ? GS_REASON_SERVED : GS_REASON_WORKSPACE;
}

static gs_reason_t hold(CUcontext context, CUstream stream, size_t bytes, gs_user_t *user, gs_block_t **block,
                        gs_held_t *held) {
  gs_reason_t reason = block_of(context, stream, bytes, user, block);
  if (reason != GS_REASON_SERVED) return reason;
  *held = (gs_held_t){(void *)(*block)->memory, &(*block)->order};
  pthread_mutex_lock(held->order);
  return GS_REASON_SERVED;
}

gs_reason_t gs_workspace(CUcontext context, CUstream stream, size_t bytes, gs_held_t *held) {
  gs_user_t user = {0};
  gs_block_t *block;
  return hold(context, stream, bytes, &user, &block, held);
}

gs_reason_t gs_workspace_hold(CUcontext context, CUstream stream, size_t bytes, gs_held_t *held) {
  gs_reason_t reason = gs_workspace(context, stream, COUNTERS_BYTES + bytes, held);
  if (reason == GS_REASON_SERVED) held->bytes = (char *)held->bytes + COUNTERS_BYTES;
  return reason;
}

/* Whoever used pieces before did so on this stream, or never will: all are cleared after that, and before what follows. */
gs_reason_t gs_workspace_hold_zeroed(CUcontext context, CUstream stream, gs_held_t *held) {
  gs_user_t user = {.pieces = true};
  gs_block_t *block;
  gs_reason_t reason = hold(context, stream, COUNTERS_BYTES, &user, &block, held);
  if (reason != GS_REASON_SERVED) return reason;
  if (block->pieces_used == GS_ZEROED_PIECES) {
    if (gs_driver.cuMemsetD8Async(block->pieces, 0, PIECES_BYTES, stream) != CUDA_SUCCESS) {
      gs_workspace_let_go(held);
      return GS_REASON_WORKSPACE;
    }
    block->pieces_used = 0;
  }
  held->bytes = (void *)(block->pieces + (size_t)block->pieces_used++ * GS_ZEROED_BYTES);
  return GS_REASON_SERVED;
}

void gs_workspace_let_go(gs_held_t *held) {
  if (held->order) pthread_mutex_unlock(held->order);
}

void gs_workspace_fork(void) {
  pthread_mutex_init(&lock, NULL);
  block_count = 0;
  held = 0;
  refused = SIZE_MAX;
  for (int i = 0; i < BLOCKS_MAX; i++) blocks[i].owner = UNUSED; /* allocate makes its lock anew */
}
