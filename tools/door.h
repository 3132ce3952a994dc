/* The front door: the cuBLAS functions that the dynamic loader gives a program in this process, which has the
 * library preloaded, and what the library counted of the calls that went through them. */
#ifndef GS_DOOR_H
#define GS_DOOR_H

#include "baseline.h"
#include "gs_histogram.h"

typedef struct {
  gs_cublas_t cublas; /* the real one's handles and workspace, the interposed products */
  const gs_histogram_file_t *counts;
  size_t bytes;
} gs_door_t;

/* Whether the library is in this process. */
bool gs_door_is_open(void);

/* Makes one empty call through the door, so that the library wakes up, and finds its histogram in folder, which is
 * GEMMSHIM_CALLS and holds nothing else. Where it fails, fault says why and what to do. */
bool gs_door_open(gs_door_t *door, const gs_cublas_t *real, const char *folder, char *fault, size_t size);
void gs_door_close(gs_door_t *door);

/* Calls so far of products with g's sizes and operations, by verdict. */
typedef struct {
  uint64_t calls[GS_REASON_COUNT];
  char kernel[GS_KERNEL_ID_MAX]; /* the kernel of one of them; empty where none has one */
} gs_tally_t;
gs_tally_t gs_door_tally(const gs_door_t *door, const gs_gemm_t *g);

#endif
