/* Between the stand-ins: how libcublas puts work on a stream of the stand-in driver. */
#ifndef GS_SIM_ENQUEUE_H
#define GS_SIM_ENQUEUE_H

#include <stddef.h>

#include <cuda.h>

typedef void sim_work_t(const void *argument);

/* What a kernel was launched with, of blocks a cluster: 0 where nothing was said of it. */
#define SIM_NOT_A_KERNEL (-1)

/* Runs work(argument) now, or, where the stream is capturing, when the graph is launched: bytes of argument
 * are copied. Exported by libcuda as sim_enqueue. */
typedef CUresult sim_enqueue_t(CUstream stream, int cluster, sim_work_t *work, const void *argument,
                               size_t bytes);

/* Where a kernel has a parameter. */
typedef struct {
  size_t offset, bytes;
} sim_param_t;

/* From now on nodes of kernels that do work have their parameters singly: count of them, which stay where they are, and
 * make up work's argument. Exported by libcuda as sim_singly. */
typedef void sim_singly_t(sim_work_t *work, const sim_param_t *params, size_t count);

/* Work that began at begin (sim_now_us) has taken us: waits until then, or, where SIM_CLOCK=set, puts the clock
 * that events read forward. Exported by libcuda as sim_take. */
typedef void sim_take_t(double begin, double us);

#endif
