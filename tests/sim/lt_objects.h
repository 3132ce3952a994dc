/* Inside the stand-in libcublasLt: what lies in its opaque objects. As in the real ones, Init leaves some
 * bytes as it finds them: those named unused, and what follows the struct. */
#ifndef GS_SIM_LT_OBJECTS_H
#define GS_SIM_LT_OBJECTS_H

#include <stddef.h>

#include "handle.h"

/* A program built with an older toolkit asks for a smaller descriptor, and gets the older form: without
 * what follows unused_3. */
#define LT_OPERATION_OLD_BYTES 184
#define LT_ATTRIBUTE_UNNAMED   27 /* an attribute that the headers do not name */

typedef struct {
  uint32_t version; /* 2, or 1 for the older form */
  int32_t compute_type, scale_type;
  unsigned char unused_1[8];
  int32_t pointer_mode, transa, transb, transc, fill_mode;
  uint32_t epilogue;
  int32_t sm_count_target, aux_data_type, bias_data_type;
  unsigned char unused_2[3];
  int8_t fast_accum;
  int32_t unnamed;
  const void *bias;
  int64_t bias_batch_stride;
  void *aux;
  int64_t aux_ld, aux_batch_stride, alpha_vector_batch_stride;
  const void *a_scale, *b_scale, *c_scale, *d_scale, *aux_scale;
  void *amax_d, *aux_amax;
  unsigned char unused_3[16];
  int32_t a_scale_mode, b_scale_mode, c_scale_mode, d_scale_mode, aux_scale_mode, d_out_scale_mode;
  const void *d_out_scale;
  void *emulation;
} lt_operation_t;

typedef struct {
  uint32_t version; /* 1 */
  uint32_t type;
  int32_t order;
  int32_t batch_count;
  uint64_t rows, cols;
  int64_t ld, batch_stride, plane_offset;
#if SIM_MAJOR >= 13
  uint32_t batch_mode;
#endif
} lt_layout_t;

typedef struct {
  uint32_t search_mode, reduction_mask;
  uint64_t max_workspace, impl_mask;
  uint32_t min_align_a, min_align_b, min_align_c, min_align_d;
  float max_waves;
} lt_preference_t;

typedef struct {
  int32_t id;
  uint32_t tile, splitk, reduction, swizzle, custom, stages;
  uint16_t inner_shape, cluster_shape;
} lt_algo_t;

_Static_assert(offsetof(lt_operation_t, a_scale_mode) == LT_OPERATION_OLD_BYTES, "the older form ends there");
_Static_assert(sizeof(lt_operation_t) <= sizeof(cublasLtMatmulDescOpaque_t), "the operation must fit");
_Static_assert(sizeof(lt_layout_t) <= sizeof(cublasLtMatrixLayoutOpaque_t), "the layout must fit");
_Static_assert(sizeof(lt_preference_t) <= sizeof(cublasLtMatmulPreferenceOpaque_t),
               "the preference must fit");
_Static_assert(sizeof(lt_algo_t) <= sizeof(cublasLtMatmulAlgo_t), "the algorithm must fit");

#endif
