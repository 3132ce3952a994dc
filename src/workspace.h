/* Floor 2. Device memory for split-K: blocks of at most GEMMSHIM_VRAM_MB in all, never the caller's own.
 *
 * Work of one stream runs in order and may share a block; work of two streams may not, and neither may two
 * graphs captured from one stream, since they can replay at the same time. So an eager block belongs to
 * (context, stream) and stays theirs, and a captured one to (capture, stream) until the graph that holds it
 * is destroyed. A context that was refused so many bytes is refused them until a graph lets a block go; blocks
 * of a context that was reset are forgotten. The first GS_SPLIT_COUNTERS words of a block are zero when no
 * kernel is using it. */
#ifndef GS_WORKSPACE_H
#define GS_WORKSPACE_H

#include <cuda.h>
#include <pthread.h>

#include "gs_reason.h"

/* Workspace for what is now put on the stream. Until it is let go, others wait for theirs on the same stream: what is
 * more than one kernel, or leaves it other than it was, is not interrupted. */
typedef struct {
  void *bytes;
  pthread_mutex_t *order;
} gs_held_t;
void gs_workspace_let_go(gs_held_t *held);
/* A block of at least bytes for work on stream of the current context. GS_REASON_SERVED, or WORKSPACE (bound reached, or
 * no memory), or CAPTURE (the stream's capture cannot be joined). Nobody but users of the same block waits where a stream
 * has its block and is not being captured. */
gs_reason_t gs_workspace(CUcontext context, CUstream stream, size_t bytes, gs_held_t *held);
/* The same for whatever it is used for but split-K, and of half of the bound at most; never under capture. Work of
 * one stream shares it. */
gs_reason_t gs_workspace_scratch(CUcontext context, CUstream stream, size_t bytes, void **block);
/* So many bytes, of which nothing is known: of a block those behind its counters. */
gs_reason_t gs_workspace_hold(CUcontext context, CUstream stream, size_t bytes, gs_held_t *held);
/* GS_ZEROED_BYTES that are zero for what now goes to the stream, and that nothing uses after it: one memset serves
 * some hundreds of such pieces. */
#define GS_ZEROED_BYTES  256 /* and what its address divides by */
#define GS_ZEROED_PIECES 256 /* of every block, beside what was asked for */
gs_reason_t gs_workspace_hold_zeroed(CUcontext context, CUstream stream, gs_held_t *held);
/* In a forked child, which has no use of the parent's device memory. */
void gs_workspace_fork(void);

#endif
