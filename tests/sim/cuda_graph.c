/* Stand-in libcuda: graphs, which are lists of work, and the user objects that they keep alive. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"

struct CUuserObject_st {
  CUhostFn destroy;
  void *argument;
  atomic_uint references;
};

static atomic_ullong live; /* graphs and user objects */

SIM_EXPORT uint64_t sim_live(void) {
  return atomic_load(&live) + driver_memory_pieces();
}

static void destroy(CUuserObject object) {
  object->destroy(object->argument);
  free(object);
  atomic_fetch_sub(&live, 1);
}

static long late_us;
static atomic_ullong latest_us, untold;

/* How late a user object really was told, at most, once all are: a busy machine adds to SIM_LATE_US. */
SIM_EXPORT uint64_t sim_latest_us(void) {
  while (atomic_load(&untold)) usleep(100);
  return atomic_load(&latest_us);
}

typedef struct {
  CUuserObject object;
  double since;
} late_t;

static void *destroy_late(void *argument) {
  late_t late = *(late_t *)argument;
  free(argument);
  usleep((useconds_t)late_us);
  destroy(late.object);
  unsigned long long took = (unsigned long long)(sim_now_us() - late.since), most = atomic_load(&latest_us);
  while (took > most && !atomic_compare_exchange_weak(&latest_us, &most, took)) continue;
  atomic_fetch_sub(&untold, 1);
  return NULL;
}

__attribute__((constructor)) static void read_lateness(void) {
  const char *text = getenv("SIM_LATE_US");
  late_us = text ? atol(text) : 0;
}

static void release(CUuserObject object, unsigned count) {
  pthread_t thread;
  if (atomic_fetch_sub(&object->references, count) != count) return;
  late_t *late = late_us ? malloc(sizeof *late) : NULL;
  if (late) *late = (late_t){object, sim_now_us()};
  atomic_fetch_add(&untold, 1);
  if (late && pthread_create(&thread, NULL, destroy_late, late) == 0) {
    pthread_detach(thread);
    return;
  }
  free(late);
  destroy(object);
  atomic_fetch_sub(&untold, 1);
}

static CUresult keep(CUgraph graph, CUuserObject object, unsigned count) {
  kept_t *kept = malloc(sizeof *kept);
  if (!kept) return CUDA_ERROR_OUT_OF_MEMORY;
  *kept = (kept_t){.object = object, .count = count, .next = graph->kept};
  graph->kept = kept;
  return CUDA_SUCCESS;
}

CUresult driver_graph_add(CUgraph graph, int cluster, sim_work_t *work, const void *argument, size_t bytes) {
  if (graph->count == graph->room) {
    size_t room = graph->room ? 2 * graph->room : 8;
    node_t *nodes = realloc(graph->nodes, room * sizeof *nodes);
    if (!nodes) return CUDA_ERROR_OUT_OF_MEMORY;
    graph->nodes = nodes;
    graph->room = room;
  }
  void *copy = malloc(bytes);
  if (!copy) return CUDA_ERROR_OUT_OF_MEMORY;
  memcpy(copy, argument, bytes);
  graph->nodes[graph->count++] =
      (node_t){.graph = graph, .cluster = cluster, .work = work, .argument = copy, .bytes = bytes};
  return CUDA_SUCCESS;
}

CUgraph driver_graph_new(void) {
  atomic_fetch_add(&live, 1);
  return calloc(1, sizeof(struct CUgraph_st));
}

static void let_go(kept_t *list) {
  while (list) {
    kept_t *kept = list;
    list = kept->next;
    release(kept->object, kept->count);
    free(kept);
  }
}

static void empty(CUgraph graph) {
  for (size_t i = 0; i < graph->count; i++) free(graph->nodes[i].argument);
  free(graph->nodes);
  let_go(graph->kept);
  *graph = (struct CUgraph_st){0};
}

void driver_graph_free(CUgraph graph) {
  empty(graph);
  free(graph);
  atomic_fetch_sub(&live, 1);
}

SIM_EXPORT CUresult cuUserObjectCreate(CUuserObject *object, void *argument, CUhostFn destroy,
                                       unsigned references, unsigned flags) {
  SIM_ENTER(object, argument, destroy, references, flags);
  if (!object || !destroy || !references || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  CUuserObject made = malloc(sizeof *made);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  made->destroy = destroy;
  made->argument = argument;
  atomic_init(&made->references, references);
  atomic_fetch_add(&live, 1);
  *object = made;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
  SIM_ENTER(object, count);
  if (!object || !count) return CUDA_ERROR_INVALID_VALUE;
  release(object, count);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count,
                                            unsigned flags) {
  SIM_ENTER(graph, object, count, flags);
  if (!graph || !object || !count || flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
    return CUDA_ERROR_INVALID_VALUE;
  DRIVER_TRY(keep(graph, object, count));
  if (!(flags & CU_GRAPH_USER_OBJECT_MOVE)) atomic_fetch_add(&object->references, count);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  SIM_ENTER(graph);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  driver_graph_free(graph);
  return CUDA_SUCCESS;
}

static CUresult copy(CUgraph to, const struct CUgraph_st *from) {
  for (size_t i = 0; i < from->count; i++) {
    const node_t *node = &from->nodes[i];
    DRIVER_TRY(driver_graph_add(to, node->cluster, node->work, node->argument, node->bytes));
    to->nodes[to->count - 1].lost = node->lost;
  }
  for (const kept_t *kept = from->kept; kept; kept = kept->next) {
    DRIVER_TRY(keep(to, kept->object, kept->count));
    atomic_fetch_add(&kept->object->references, kept->count);
  }
  return CUDA_SUCCESS;
}

static void tell(node_t *first, size_t count, CUgraphNode *nodes, size_t *room) {
  for (size_t i = 0; nodes && i < *room; i++) nodes[i] = i < count ? (CUgraphNode)&first[i] : NULL;
  if (!nodes || *room > count) *room = count;
}

SIM_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  SIM_ENTER(graph, nodes, count);
  if (!graph || !count) return CUDA_ERROR_INVALID_VALUE;
  tell(graph->nodes, graph->count, nodes, count);
  return CUDA_SUCCESS;
}

/* Work runs in the order of its making: each node waits for the one before, as is told of all but SIM_LAUNCH=apart. */
SIM_EXPORT CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *roots, size_t *count) {
  SIM_ENTER(graph, roots, count);
  if (!graph || !count) return CUDA_ERROR_INVALID_VALUE;
  tell(graph->nodes, sim_launches_by("apart") ? graph->count : graph->count > 0, roots, count);
  return CUDA_SUCCESS;
}

/* What waits for a node, and how. */
static CUgraphEdgeData edge_to(const node_t *node) {
  CUgraphEdgeData edge = {0};
  if (!driver_begins_early(node->work)) return edge;
  edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  edge.from_port = sim_launches_by("ordered") ? CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER
                                              : CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  return edge;
}

SIM_EXPORT CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *dependents,
                                                    CUgraphEdgeData *edges, size_t *count) {
  SIM_ENTER(node, dependents, edges, count);
  node_t *n = (node_t *)node;
  if (!n || !count) return CUDA_ERROR_INVALID_VALUE;
  bool last = n == &n->graph->nodes[n->graph->count - 1] || sim_launches_by("apart");
  if (!last && dependents && *count) {
    CUgraphEdgeData edge = edge_to(n + 1);
    if (!edges && edge.type) return CUDA_ERROR_LOSSY_QUERY;
    if (edges) edges[0] = edge;
  }
  tell(n + 1, !last, dependents, count);
  return CUDA_SUCCESS;
}

static bool is_memset(const node_t *node) {
  return node->cluster == SIM_NOT_A_KERNEL && node->work == driver_fill;
}

SIM_EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type) {
  SIM_ENTER(node, type);
  if (!node || !type) return CUDA_ERROR_INVALID_VALUE;
  const node_t *n = (const node_t *)node;
  *type = n->cluster != SIM_NOT_A_KERNEL ? CU_GRAPH_NODE_TYPE_KERNEL
          : is_memset(n)                 ? CU_GRAPH_NODE_TYPE_MEMSET
                                         : CU_GRAPH_NODE_TYPE_MEMCPY;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *params) {
  SIM_ENTER(node, params);
  if (!node || !params || !is_memset((const node_t *)node)) return CUDA_ERROR_INVALID_VALUE;
  const driver_fill_t *f = ((const node_t *)node)->argument;
  *params = (CUDA_MEMSET_NODE_PARAMS){
      .dst = (CUdeviceptr)f->to, .value = f->value, .elementSize = 1, .width = f->count, .height = 1};
  return CUDA_SUCCESS;
}

/* Its parameters as one buffer, which is the node's own, or each by itself. */
SIM_EXPORT CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params) {
  SIM_ENTER(node, params);
  node_t *n = (node_t *)node;
  if (!n || !params || n->cluster == SIM_NOT_A_KERNEL) return CUDA_ERROR_INVALID_VALUE;
  void *const extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, n->argument, CU_LAUNCH_PARAM_BUFFER_SIZE, &n->bytes,
                         CU_LAUNCH_PARAM_END};
  memcpy(n->extra, extra, sizeof extra);
  *params = (CUDA_KERNEL_NODE_PARAMS){.gridDimX = 1,
                                      .gridDimY = n->cluster ? (unsigned)n->cluster : 1,
                                      .gridDimZ = 1,
                                      .blockDimX = SIM_LIBRARY_BLOCK,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .sharedMemBytes = SIM_LIBRARY_SMEM(n->cluster),
                                      .kern = driver_kernel_of(n->work, n->cluster)};
  if (!params->kern) return CUDA_ERROR_OUT_OF_MEMORY;
  const sim_param_t *singly;
  size_t count = driver_params_of(n->work, &singly);
  for (size_t i = 0; i < count; i++) n->each[i] = (char *)n->argument + singly[i].offset;
  if (count)
    params->kernelParams = n->each;
  else
    params->extra = n->extra;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph) {
  SIM_ENTER(node, graph);
  return CUDA_ERROR_INVALID_VALUE; /* a child's nodes are its parent's here */
}

SIM_EXPORT CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUlaunchAttributeID id,
                                                  CUlaunchAttributeValue *value) {
  SIM_ENTER(node, id, value);
  const node_t *kernel = (const node_t *)node;
  if (!node || !value || kernel->cluster == SIM_NOT_A_KERNEL) return CUDA_ERROR_INVALID_VALUE;
  if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN && sim_launches_by("domain")) {
    value->memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    return CUDA_SUCCESS;
  }
  if (id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) return CUDA_ERROR_INVALID_VALUE;
  unsigned blocks = (unsigned)kernel->cluster, side = blocks > 0;
  value->clusterDim.x = side, value->clusterDim.y = blocks, value->clusterDim.z = side;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUlaunchAttributeID id,
                                                  const CUlaunchAttributeValue *value) {
  SIM_ENTER(node, id, value);
  node_t *kernel = (node_t *)node;
  if (!node || !value || id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION || kernel->cluster == SIM_NOT_A_KERNEL)
    return CUDA_ERROR_INVALID_VALUE;
  kernel->cluster = (int)(value->clusterDim.x * value->clusterDim.y * value->clusterDim.z);
  return CUDA_SUCCESS;
}

/* An executable graph is a copy. */
SIM_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  SIM_ENTER(exec, graph, flags);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  CUgraph made = driver_graph_new();
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = copy(made, graph);
  if (result != CUDA_SUCCESS) {
    driver_graph_free(made);
    return result;
  }
  *exec = (CUgraphExec)made;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  SIM_ENTER(exec, stream);
  return exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_EXPORT CUresult cuGraphClone(CUgraph *clone, CUgraph graph) {
  SIM_ENTER(clone, graph);
  return cuGraphInstantiateWithFlags((CUgraphExec *)clone, graph, 0);
}

SIM_EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph,
                                             const CUgraphNode *dependencies, size_t count, CUgraph child) {
  SIM_ENTER(node, graph, dependencies, count, child);
  *node = NULL;
  return graph && child ? copy(graph, child) : CUDA_ERROR_INVALID_VALUE;
}

static bool same_kind(const node_t *x, const node_t *y) {
  return x->cluster == SIM_NOT_A_KERNEL || y->cluster == SIM_NOT_A_KERNEL ? x->work == y->work : true;
}

/* As seen of driver 580: where the new kernel's launch said nothing of clusters, those of the old one stay. */
static void inherit_clusters(CUgraph to, const node_t *before) {
  for (size_t i = 0; i < to->count; i++) {
    node_t *node = &to->nodes[i];
    if (node->cluster != 0) continue;
    node->cluster = before[i].cluster;
    node->lost = node->cluster > 1;
  }
}

/* Nodes and user objects of the executable graph give way to copies of the new graph's; those of the same kind,
 * in the same order, that is: else nothing changes. */
SIM_EXPORT CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
  SIM_ENTER(exec, graph, info);
  CUgraph target = (CUgraph)exec;
  if (!target || !graph) return CUDA_ERROR_INVALID_VALUE;
  bool same = target->count == graph->count;
  for (size_t i = 0; same && i < graph->count; i++) same = same_kind(&target->nodes[i], &graph->nodes[i]);
  if (info) info->result = same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  if (!same) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  struct CUgraph_st before = *target;
  *target = (struct CUgraph_st){0};
  CUresult result = copy(target, graph);
  if (result == CUDA_SUCCESS) inherit_clusters(target, before.nodes);
  empty(&before);
  return result;
}

SIM_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
  SIM_ENTER(exec);
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  driver_graph_free((CUgraph)exec);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  SIM_ENTER(exec, stream);
  const struct CUgraph_st *graph = (CUgraph)exec;
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < graph->count; i++) {
    const node_t *node = &graph->nodes[i];
    if (!node->lost) DRIVER_TRY(sim_enqueue(stream, node->cluster, node->work, node->argument, node->bytes));
  }
  return CUDA_SUCCESS;
}
