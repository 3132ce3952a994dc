#define _GNU_SOURCE
#include "clusters.h"

#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

static atomic_bool captured; /* a product of ours, ever */
static atomic_bool unseen;   /* updates may be */
static atomic_bool seen;     /* they are: a CUDA runtime is mapped, whose functions are called by name */

static int is_runtime(struct dl_phdr_info *info, size_t size, void *found) {
  (void)size;
  const char *slash = strrchr(info->dlpi_name, '/'), *base = slash ? slash + 1 : info->dlpi_name;
  *(bool *)found |= strncmp(base, "libcudart", strlen("libcudart")) == 0;
  return *(bool *)found;
}

/* A program without one has it linked in, or asks the driver, by whatever way. */
static bool updates_are_seen(void) {
  bool found = false;
  if (atomic_load_explicit(&unseen, memory_order_relaxed)) return false;
  if (atomic_load_explicit(&seen, memory_order_relaxed)) return true;
  dl_iterate_phdr(is_runtime, &found);
  atomic_store(&seen, found);
  return found;
}

gs_manner_t gs_clusters_at_launch(int sm, CUstream stream) {
  CUstreamCaptureStatus status;
  if (sm < 90 || gs_driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS) return (gs_manner_t){0};
  if (status == CU_STREAM_CAPTURE_STATUS_NONE) return (gs_manner_t){.early = true};
  atomic_store_explicit(&captured, true, memory_order_relaxed);
  return (gs_manner_t){.named = !updates_are_seen()};
}

void gs_clusters_unseen(void) {
  atomic_store_explicit(&unseen, true, memory_order_relaxed);
}

static void name_kernel(CUgraphNode node) {
  CUlaunchAttributeValue value = {0};
  if (gs_driver.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value) !=
          CUDA_SUCCESS ||
      value.clusterDim.x)
    return;
  value.clusterDim.x = value.clusterDim.y = value.clusterDim.z = 1;
  gs_driver.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value);
}

static void name_node(CUgraphNode node) {
  CUgraphNodeType type;
  CUgraph child;
  if (gs_driver.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return;
  if (type == CU_GRAPH_NODE_TYPE_KERNEL)
    name_kernel(node);
  else if (type == CU_GRAPH_NODE_TYPE_GRAPH &&
           gs_driver.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
    gs_clusters_at_update(child);
}

void gs_clusters_at_update(CUgraph graph) {
  size_t count = 0;
  if (!atomic_load_explicit(&captured, memory_order_relaxed)) return; /* the program's affair alone */
  if (gs_driver.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS || !count) return;
  CUgraphNode *nodes = calloc(count, sizeof(CUgraphNode));
  if (nodes && gs_driver.cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS)
    for (size_t i = 0; i < count; i++) name_node(nodes[i]);
  free(nodes);
}
