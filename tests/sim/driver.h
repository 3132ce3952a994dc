/* Inside the stand-in libcuda.so.1: its objects. One lock guards the lists; handles are pointers to these. */
#ifndef GS_SIM_DRIVER_H
#define GS_SIM_DRIVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "enqueue.h"
#include "gs_compare.h"
#include "gs_gemm.h"
#include "record.h"

#define SIM_DEVICES_MAX 8

#define SIM_PARAMS_MAX 16 /* of a kernel that has them singly */

typedef struct {
  CUgraph graph;
  int cluster; /* as of sim_enqueue_t */
  bool
      lost; /* an update left it clusters that its grid does not divide by: it does not run, and nobody says so */
  sim_work_t *work;
  void *argument;
  size_t bytes;
  void *extra[5], *each[SIM_PARAMS_MAX]; /* as cuGraphKernelNodeGetParams tells of argument */
} node_t;

typedef struct kept {
  CUuserObject object;
  unsigned count;
  struct kept *next;
} kept_t;

/* A CUgraphExec is one too. */
struct CUgraph_st {
  node_t *nodes;
  size_t count, room;
  kept_t *kept;
};

typedef struct capture {
  CUgraph graph;
  unsigned long long id;
  CUstreamCaptureMode mode;
  pthread_t owner;
  atomic_bool invalid;
  struct capture *next;
} capture_t;

struct CUstream_st {
  CUcontext context;
  unsigned long long id;
  unsigned flags;
  pthread_mutex_t order; /* work of one stream runs one after another, whoever enqueues it */
  _Atomic(capture_t *) capture;
};

struct CUctx_st {
  unsigned long long id;
  CUdevice device;
  int retained;              /* of a primary context */
  atomic_int captures;       /* on streams that synchronise with the legacy one */
  struct CUstream_st legacy; /* what the handles 0 and CU_STREAM_LEGACY mean */
  struct CUstream_st per_thread;
};

extern pthread_mutex_t driver_lock;
extern _Thread_local CUcontext driver_current;

int driver_sm(void); /* SIM_SM, else 90 */
unsigned long long driver_next_id(void);
bool driver_context_lives(unsigned long long id);
/* Memory that is the driver's and not freed; that of a context; how many pieces there are. */
bool driver_memory_lives(const void *pointer, size_t bytes);
void driver_memory_drop(unsigned long long context);
uint64_t driver_memory_pieces(void);
__attribute__((noreturn)) void driver_stop(const char *why); /* the program did what would crash a GPU */
/* CUDA_ERROR_NOT_INITIALIZED before cuInit, CUDA_ERROR_INVALID_CONTEXT where none is current. */
CUresult driver_ready(void);
CUresult driver_ready_with_context(void);
/* The stream behind a handle, in the current context for the special ones. */
CUresult driver_stream(CUstream handle, CUstream *stream);
/* Calls that CUDA forbids while a capture is under way break that capture and fail. */
CUresult driver_unsafe(void);

CUresult driver_graph_add(CUgraph graph, int cluster, sim_work_t *work, const void *argument, size_t bytes);
CUgraph driver_graph_new(void);
void driver_graph_free(CUgraph graph);

/* What a kernel node that is not ours says of its launch, and what such a kernel has to be launched with. */
#define SIM_LIBRARY_BLOCK         384
#define SIM_LIBRARY_SMEM(cluster) ((cluster) ? 160u << 10 : 0u)
/* The kernel behind work that was launched in clusters of so many blocks: it takes work's argument as a buffer. NULL:
 * out of memory. */
CUkernel driver_kernel_of(sim_work_t *work, int cluster);
/* The parameters that such work's kernels have singly; none: they have them as one buffer. */
size_t driver_params_of(sim_work_t *work, const sim_param_t **params);
/* Whether such work begins before what is ahead of it has ended, in a graph and launched: SIM_LAUNCH=early, ordered. */
bool driver_begins_early(sim_work_t *work);

/* cuMemsetD8Async as work. */
typedef struct {
  void *to;
  unsigned char value;
  size_t count;
} driver_fill_t;
sim_work_t driver_fill;

/* The kernels of gs_compare.h, by their names; and one of them launched. */
bool driver_is_compare(const char *id, gs_type_t *type);
CUresult driver_compare(gs_type_t type, const sim_launch_t *launch, const gs_compare_params_t *params);

sim_enqueue_t sim_enqueue;
sim_singly_t sim_singly;
sim_take_t sim_take;

#define DRIVER_TRY(call)                                                                                     \
  do {                                                                                                       \
    CUresult try_result = (call);                                                                            \
    if (try_result != CUDA_SUCCESS) return try_result;                                                       \
  } while (0)

#endif
