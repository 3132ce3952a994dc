#include "relaunch.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "workspace.h"

#define SHOTS        8    /* captures that are compared */
#define KERNELS_MAX  2    /* a split of k, and who adds its parts up */
#define PARAMS_MAX   4096 /* bytes, of all kernels; cuBLAS 13.1's for sm_90 take 1,720, those that add up 224 */
#define PARAMS_ALIGN 16   /* of each kernel's */
#define FIELDS_MAX   64   /* words of them that follow an address; the former have 17 */

/* The operands whose addresses a launch may depend on, and workspace. */
#define ADDRESSES(X) X(a) X(b) X(c) X(d) X(bias)
#define X(operand)   FOLLOWS_##operand,
enum { ADDRESSES(X) FOLLOWS_WORKSPACE, FOLLOWS_COUNT };
#undef X

/* Attributes of a launch that are made again where they are set: id, whether value says so. */
#define CARRIED_ALWAYS(X)                                                                                    \
  X(CLUSTER_DIMENSION, clusterDim.x)                                                                         \
  X(CLUSTER_SCHEDULING_POLICY_PREFERENCE, clusterSchedulingPolicyPreference)                                 \
  X(COOPERATIVE, cooperative)
#if CUDA_VERSION >= 12080
#define CARRIED(X) CARRIED_ALWAYS(X) X(PREFERRED_CLUSTER_DIMENSION, preferredClusterDim.x)
#else
#define CARRIED(X) CARRIED_ALWAYS(X)
#endif
/* And those of which nothing may be set. */
#define REFUSED(X)   X(ACCESS_POLICY_WINDOW, accessPolicyWindow.num_bytes) X(MEM_SYNC_DOMAIN, memSyncDomain)
#define X(name, set) +1
enum { ATTRIBUTES_MAX = 1 CARRIED(X) /* and that it begins early */ };
#undef X

typedef struct {
  CUkernel handle;
  unsigned grid[3], block[3], smem, attribute_count;
  CUlaunchAttribute attributes[ATTRIBUTES_MAX];
  size_t at, bytes; /* its part of params */
} kernel_t;

typedef struct {
  size_t zeroed; /* bytes of workspace that are cleared ahead of the kernels: all of them, or 0 */
  int kernel_count;
  kernel_t kernels[KERNELS_MAX]; /* in the order of their running */
  size_t bytes;                  /* of params, in whole PARAMS_ALIGN, zero where no parameter is */
} what_t;

typedef struct {
  size_t at;    /* byte of params */
  int follows;  /* FOLLOWS_* */
  uint64_t add; /* to the address */
} field_t;

struct gs_relaunch {
  what_t what;
  size_t workspace; /* bytes */
  atomic_bool failed;
  int field_count;
  field_t fields[FIELDS_MAX];
  unsigned char params[PARAMS_MAX];
};

typedef struct {
  uint64_t addresses[FOLLOWS_COUNT];
  what_t what;
  unsigned char params[PARAMS_MAX];
} shot_t;

static void addresses_of(const gs_operands_t *at, const void *workspace, uint64_t *addresses) {
#define X(operand) addresses[FOLLOWS_##operand] = (uint64_t)(uintptr_t)at->operand;
  ADDRESSES(X)
#undef X
  if (!at->c) addresses[FOLLOWS_c] = addresses[FOLLOWS_d];
  addresses[FOLLOWS_WORKSPACE] = (uint64_t)(uintptr_t)workspace;
}

/* ---- looking at a capture ---- */

static bool read_memset(CUgraphNode node, const shot_t *shot, size_t workspace_bytes, size_t *zeroed) {
  CUDA_MEMSET_NODE_PARAMS m;
  if (gs_driver.cuGraphMemsetNodeGetParams(node, &m) != CUDA_SUCCESS) return false;
  *zeroed = m.width * m.elementSize;
  return m.dst == shot->addresses[FOLLOWS_WORKSPACE] && m.value == 0 && m.height == 1 &&
         *zeroed == workspace_bytes && *zeroed <= GS_ZEROED_BYTES;
}

static bool read_attributes(CUgraphNode node, kernel_t *kernel) {
  CUlaunchAttributeValue value;
#define GET(name)                                                                                            \
  (memset(&value, 0, sizeof value),                                                                          \
   gs_driver.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_##name, &value) == CUDA_SUCCESS)
#define X(name, set)                                                                                         \
  if (GET(name) && value.set) return false;
  REFUSED(X)
#undef X
#define X(name, set)                                                                                         \
  if (GET(name) && value.set)                                                                                \
    kernel->attributes[kernel->attribute_count++] =                                                          \
        (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_##name, .value = value};
  CARRIED(X)
#undef X
#undef GET
  return true;
}

/* Parameters as one buffer, as the library launches the kernels that it was written with. */
static bool read_buffer(void *const *extra, shot_t *shot, kernel_t *kernel) {
  const void *buffer = NULL;
  const size_t *bytes = NULL;
  for (; *extra; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = extra[1];
  }
  if (!buffer || !bytes || *bytes > PARAMS_MAX - kernel->at) return false;
  kernel->bytes = *bytes;
  memcpy(shot->params + kernel->at, buffer, *bytes);
  return true;
}

/* And singly: put where such a buffer has them, of which newer drivers alone tell. */
static bool read_singly(void *const *each, shot_t *shot, kernel_t *kernel) {
  size_t room = PARAMS_MAX - kernel->at, offset, bytes;
  CUresult result;
  if (!gs_driver.gs_cuKernelGetParamInfo) return false;
  for (size_t i = 0;
       (result = gs_driver.gs_cuKernelGetParamInfo(kernel->handle, i, &offset, &bytes)) == CUDA_SUCCESS;
       i++) {
    if (offset > room || bytes > room - offset) return false;
    kernel->bytes = offset + bytes;
    memcpy(shot->params + kernel->at + offset, each[i], bytes);
  }
  return result == CUDA_ERROR_INVALID_VALUE;
}

/* A node, and whether it begins before the one ahead of it has ended, whose end it waits for by itself. */
typedef struct {
  CUgraphNode node;
  bool early;
} link_t;

static bool read_kernel(link_t link, shot_t *shot) {
  CUDA_KERNEL_NODE_PARAMS k = {0};
  what_t *what = &shot->what;
  if (what->kernel_count == KERNELS_MAX ||
      gs_driver.cuGraphKernelNodeGetParams(link.node, &k) != CUDA_SUCCESS || !k.kern)
    return false;
  kernel_t *kernel = &what->kernels[what->kernel_count++];
  kernel->handle = k.kern;
  kernel->grid[0] = k.gridDimX, kernel->grid[1] = k.gridDimY, kernel->grid[2] = k.gridDimZ;
  kernel->block[0] = k.blockDimX, kernel->block[1] = k.blockDimY, kernel->block[2] = k.blockDimZ;
  kernel->smem = k.sharedMemBytes;
  kernel->at = what->bytes;
  bool read = k.extra ? read_buffer(k.extra, shot, kernel)
                      : k.kernelParams && read_singly(k.kernelParams, shot, kernel);
  what->bytes += (kernel->bytes + PARAMS_ALIGN - 1) & ~(size_t)(PARAMS_ALIGN - 1);
  if (link.early) gs_launch_early(&kernel->attributes[kernel->attribute_count++]);
  return read && read_attributes(link.node, kernel);
}

/* One that waits for node; none where it does so in another way than these. */
static link_t behind(CUgraphNode node) {
  static const gs_edge_t usual = {0}, early = {.from_port = 1 /* CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC */,
                                               .type = 1 /* CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC */};
  gs_edge_t edge = usual;
  link_t next = {0};
  size_t count = 1;
  if (!gs_driver.gs_cuGraphNodeGetDependentNodes_v2 ||
      gs_driver.gs_cuGraphNodeGetDependentNodes_v2(node, &next.node, &edge, &count) != CUDA_SUCCESS || !count)
    return (link_t){0};
  next.early = !memcmp(&edge, &early, sizeof edge);
  return next.early || !memcmp(&edge, &usual, sizeof edge) ? next : (link_t){0};
}

#define CHAIN_MAX (1 + KERNELS_MAX) /* with a memset ahead */

/* The graph's nodes in the one order that they can run in, where there is but one: then a way from a root passes all of
 * them. How many; 0: no such order, or too many nodes. */
static size_t read_chain(CUgraph graph, link_t links[CHAIN_MAX]) {
  link_t link = {0};
  size_t count = 0, roots = 1;
  if (gs_driver.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS || count > CHAIN_MAX ||
      gs_driver.cuGraphGetRootNodes(graph, &link.node, &roots) != CUDA_SUCCESS)
    return 0;
  for (size_t i = 0; i < count; i++, link = behind(link.node)) {
    if (!link.node) return 0;
    links[i] = link;
  }
  return count;
}

/* The first kernel is launched behind the program's work: it must not begin early, wherever the memset ahead of it is. */
static bool read_node(link_t link, shot_t *shot, size_t workspace_bytes) {
  CUgraphNodeType type;
  what_t *what = &shot->what;
  if (gs_driver.cuGraphNodeGetType(link.node, &type) != CUDA_SUCCESS || (link.early && !what->kernel_count))
    return false;
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) return read_kernel(link, shot);
  return type == CU_GRAPH_NODE_TYPE_MEMSET && !what->kernel_count &&
         read_memset(link.node, shot, workspace_bytes, &what->zeroed);
}

/* Kernels, or a memset and then kernels, and nothing else. */
static bool read_graph(CUgraph graph, shot_t *shot, size_t workspace_bytes) {
  link_t links[CHAIN_MAX];
  size_t count = read_chain(graph, links);
  for (size_t i = 0; i < count; i++)
    if (!read_node(links[i], shot, workspace_bytes)) return false;
  return shot->what.kernel_count > 0;
}

/* ---- learning ---- */

/* An address that nobody has: below 2^40, aligned to 16 bytes, at random to more; the first shot's to 2 MiB, and its C
 * is D, as most programs have it. */
static uint64_t made_up(int shot, int follows) {
  uint64_t x = (uint64_t)(1 + shot * FOLLOWS_COUNT + (shot || follows != FOLLOWS_c ? follows : FOLLOWS_d));
  for (int i = 0; i < 3; i++) x *= 0x9e3779b97f4a7c15u, x ^= x >> 29;
  uint64_t address = (x >> 25) + (1ull << 32);
  if (follows == FOLLOWS_WORKSPACE) return address & ~(uint64_t)(GS_ZEROED_BYTES - 1);
  return address & ~(shot ? 15ull : (2ull << 20) - 1);
}

static bool take(gs_relaunch_call_t *enqueue, void *self, size_t workspace_bytes, CUstream stream, int i,
                 shot_t *shot) {
  static const float one = 1, zero = 0;
  CUgraph graph = NULL;
  void *workspace = workspace_bytes ? (void *)(uintptr_t)made_up(i, FOLLOWS_WORKSPACE) : NULL;
#define X(operand) .operand = (void *)(uintptr_t)made_up(i, FOLLOWS_##operand),
  const gs_operands_t at = {ADDRESSES(X).alpha = &one, .beta = &zero};
#undef X
  addresses_of(&at, workspace, shot->addresses);
  if (gs_driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS) return false;
  bool enqueued = enqueue(self, &at, workspace, stream);
  bool ended = gs_driver.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && graph;
  bool read = enqueued && ended && read_graph(graph, shot, workspace_bytes);
  if (ended) gs_driver.cuGraphDestroy(graph);
  return read;
}

static bool take_all(gs_relaunch_call_t *enqueue, void *self, size_t workspace_bytes, shot_t *shots) {
  CUstream own; /* which synchronises with no other */
  if (gs_driver.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return false;
  bool taken = true;
  for (int i = 0; i < SHOTS && taken; i++)
    taken = take(enqueue, self, workspace_bytes, own, i, &shots[i]) &&
            !memcmp(&shots[i].what, &shots[0].what, sizeof shots[0].what);
  gs_driver.cuStreamDestroy(own);
  return taken;
}

static uint64_t word_at(const shot_t *shot, size_t at) {
  uint64_t word;
  memcpy(&word, shot->params + at, sizeof word);
  return word;
}

static bool is_constant(const shot_t *shots, size_t at) {
  for (int i = 1; i < SHOTS; i++)
    if (word_at(&shots[i], at) != word_at(&shots[0], at)) return false;
  return true;
}

/* What the word is beyond that address. */
static uint64_t beyond(const shot_t *shot, size_t at, int which) {
  return word_at(shot, at) - shot->addresses[which];
}

static bool follows_address(const shot_t *shots, size_t at, int which) {
  for (int i = 1; i < SHOTS; i++)
    if (beyond(&shots[i], at, which) != beyond(&shots[0], at, which)) return false;
  return true;
}

/* Every word is the same in all shots, or follows one address in all of them. */
static bool find_fields(gs_relaunch_t *learnt, const shot_t *shots) {
  for (size_t at = 0; at < learnt->what.bytes; at += sizeof(uint64_t)) {
    if (is_constant(shots, at)) continue;
    field_t field = {.at = at, .follows = FOLLOWS_COUNT};
    for (int which = 0; which < FOLLOWS_COUNT; which++)
      if (follows_address(shots, at, which)) field.follows = which;
    if (field.follows == FOLLOWS_COUNT || learnt->field_count == FIELDS_MAX) return false;
    field.add = beyond(&shots[0], at, field.follows);
    learnt->fields[learnt->field_count++] = field;
  }
  return true;
}

static atomic_int learnt_count, asked_count;

void gs_relaunch_count(int *learnt, int *of) {
  *learnt = atomic_load(&learnt_count), *of = atomic_load(&asked_count);
}

gs_relaunch_t *gs_relaunch_learn(gs_relaunch_call_t *enqueue, void *self, size_t workspace_bytes) {
  shot_t *shots = calloc(SHOTS, sizeof *shots);
  gs_relaunch_t *learnt = calloc(1, sizeof *learnt);
  bool whole = shots && learnt && take_all(enqueue, self, workspace_bytes, shots);
  if (whole) {
    learnt->what = shots[0].what;
    learnt->workspace = workspace_bytes;
    memcpy(learnt->params, shots[0].params, shots[0].what.bytes);
    whole = find_fields(learnt, shots);
  }
  free(shots);
  atomic_fetch_add(&asked_count, 1);
  if (whole) atomic_fetch_add(&learnt_count, 1);
  if (whole) return learnt;
  free(learnt);
  return NULL;
}

void gs_relaunch_free(gs_relaunch_t *learnt) {
  free(learnt);
}

/* ---- doing it again ---- */

static bool asks_the_same(const gs_operands_t *at) {
  float alpha, beta;
  memcpy(&alpha, at->alpha, sizeof alpha);
  memcpy(&beta, at->beta, sizeof beta);
  return alpha == 1 && beta == 0;
}

static CUresult launch_kernel(kernel_t *kernel, unsigned char *params, CUstream stream) {
  const CUlaunchConfig config = {.gridDimX = kernel->grid[0],
                                 .gridDimY = kernel->grid[1],
                                 .gridDimZ = kernel->grid[2],
                                 .blockDimX = kernel->block[0],
                                 .blockDimY = kernel->block[1],
                                 .blockDimZ = kernel->block[2],
                                 .sharedMemBytes = kernel->smem,
                                 .hStream = stream,
                                 .attrs = kernel->attributes,
                                 .numAttrs = kernel->attribute_count};
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params + kernel->at, CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &kernel->bytes, CU_LAUNCH_PARAM_END};
  return gs_driver.cuLaunchKernelEx(&config, (CUfunction)kernel->handle, NULL, extra);
}

/* All of its kernels, or those ahead of one that fails: whoever computes D after that does so from the beginning. */
static CUresult launch(gs_relaunch_t *learnt, const gs_operands_t *at, void *workspace, CUstream stream) {
  _Alignas(PARAMS_ALIGN) unsigned char params[PARAMS_MAX];
  uint64_t addresses[FOLLOWS_COUNT];
  what_t *what = &learnt->what;
  CUresult result = CUDA_SUCCESS;
  addresses_of(at, workspace, addresses);
  memcpy(params, learnt->params, what->bytes);
  for (int i = 0; i < learnt->field_count; i++) {
    uint64_t word = addresses[learnt->fields[i].follows] + learnt->fields[i].add;
    memcpy(params + learnt->fields[i].at, &word, sizeof word);
  }
  for (int i = 0; i < what->kernel_count && result == CUDA_SUCCESS; i++)
    result = launch_kernel(&what->kernels[i], params, stream);
  return result;
}

bool gs_relaunch(gs_relaunch_t *learnt, const gs_operands_t *at, CUcontext context, CUstream stream) {
  gs_held_t held = {0};
  gs_reason_t reason = GS_REASON_SERVED;
  if (!learnt || atomic_load_explicit(&learnt->failed, memory_order_relaxed) || !asks_the_same(at))
    return false;
  if (learnt->what.zeroed)
    reason = gs_workspace_hold_zeroed(context, stream, &held);
  else if (learnt->workspace)
    reason = gs_workspace_hold(context, stream, learnt->workspace, &held);
  if (reason != GS_REASON_SERVED) return false;
  CUresult result = launch(learnt, at, held.bytes, stream);
  gs_workspace_let_go(&held);
  if (result != CUDA_SUCCESS && !gs_is_of_capture(result)) atomic_store(&learnt->failed, true);
  return result == CUDA_SUCCESS;
}
