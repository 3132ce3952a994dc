/* Floor 3. Clusters of captured kernels, where an executable graph is updated. A node of the new graph whose launch said nothing
 * of clusters keeps those of the kernel that it replaces, and then does not run, or not as it should, and nobody says so: seen
 * of driver 580 on an H200, by whatever way a kernel comes to its clusters. cuBLAS's kernels have clusters there, some of ours
 * too. To name them costs time (a grid of one block a multiprocessor may take two waves), so it is left to the update where
 * updates are seen: cuGraphExecUpdate's name is hooked. */
#ifndef GS_CLUSTERS_H
#define GS_CLUSTERS_H

#include <cuda.h>
#include <stdbool.h>

#include "device.h"

/* A product of ours is about to go to stream on a GPU of that architecture (before sm_90 there are no clusters). Where that is a
 * capture, updates will be seen to from now on, and its launch may have to name its clusters, though it has none; where it is none,
 * the launch may be an early one. */
gs_manner_t gs_clusters_at_launch(int sm, CUstream stream);
/* Products come by functions that were looked up by handle: their updates may too. */
void gs_clusters_unseen(void);
/* Before graph replaces what an executable one holds: its kernels name their clusters, those of its child graphs too. */
void gs_clusters_at_update(CUgraph graph);

#endif
