/* A table of layers, tab-separated, with a header line and # comments:
 *   name transa transb m k note
 * in cuBLAS's terms (m: output features, k: input features). Words of the note: bias or gelu_bias (the epilogue),
 * f32_out (D is fp32), x32 (so often in one step of its model, which is the name up to its last _), aside (no part of that step), batch=12,96
 * (a strided batch of each of these numbers of products), n=1,128 (at these n, whatever others are asked for). */
#ifndef GS_LAYERS_H
#define GS_LAYERS_H

#include "gs_gemm.h"

#define GS_NS_MAX 64

typedef struct {
  int n[GS_NS_MAX];
  int count;
} gs_ns_t;

typedef struct {
  char name[64];
  gs_op_t transa, transb;
  int m, k;
  gs_epilogue_t epilogue;
  bool f32_out;
  int times;           /* in one step; 1 where the note does not say, 0: aside */
  gs_ns_t ns, batches; /* empty where the note does not say */
} gs_layer_t;

typedef struct {
  gs_layer_t *items; /* owned */
  int count;
} gs_layers_t;

/* False where the file cannot be read, a line is faulty or there is none; said. */
bool gs_layers_read(gs_layers_t *layers, const char *path);
void gs_layers_free(gs_layers_t *layers);

/* "1,8,64" in rising order or not; false where it is malformed. */
bool gs_ns_read(gs_ns_t *ns, const char *text);
/* The same of numbers of products in a strided batch. */
bool gs_batches_read(gs_ns_t *batches, const char *text);

/* "T" or "n"; false for anything else. */
bool gs_op_read(const char *text, gs_op_t *op);

#endif
