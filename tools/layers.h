/* A table of layers, tab-separated, with a header line and # comments:
 *   name transa transb m k note
 * in cuBLAS's terms (m: output features, k: input features). Words of the note: bias or gelu_bias (the epilogue),
 * f32_out (D is fp32), x32 (so often in one step of its model, which is the name up to its last _). */
#ifndef GS_LAYERS_H
#define GS_LAYERS_H

#include "gs_gemm.h"

typedef struct {
  char name[64];
  gs_op_t transa, transb;
  int m, k;
  gs_epilogue_t epilogue;
  bool f32_out;
  int times; /* in one step; 1 where the note does not say */
} gs_layer_t;

typedef struct {
  gs_layer_t *items; /* owned */
  int count;
} gs_layers_t;

/* False where the file cannot be read, a line is faulty or there is none; said. */
bool gs_layers_read(gs_layers_t *layers, const char *path);
void gs_layers_free(gs_layers_t *layers);

/* "T" or "n"; false for anything else. */
bool gs_op_read(const char *text, gs_op_t *op);

#endif
