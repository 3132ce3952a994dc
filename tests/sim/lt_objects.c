/* Stand-in libcublasLt: descriptors, layouts, preferences, algorithms, and their attributes: data, by one
 * table each. */
#include "lt_objects.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

typedef struct {
  int attribute;
  uint16_t offset, size;
} field_t;

#define FIELD(attribute, object, member)                                                                     \
  { attribute, offsetof(object, member), sizeof(((object *)0)->member) }
#define COUNT(table) (sizeof(table) / sizeof *(table))

static const field_t operation_fields[] = {
#define X(name, member) FIELD(CUBLASLT_MATMUL_DESC_##name, lt_operation_t, member)
    X(COMPUTE_TYPE, compute_type),
    X(SCALE_TYPE, scale_type),
    X(POINTER_MODE, pointer_mode),
    X(TRANSA, transa),
    X(TRANSB, transb),
    X(TRANSC, transc),
    X(FILL_MODE, fill_mode),
    X(EPILOGUE, epilogue),
    X(BIAS_POINTER, bias),
    X(BIAS_BATCH_STRIDE, bias_batch_stride),
    X(EPILOGUE_AUX_POINTER, aux),
    X(EPILOGUE_AUX_LD, aux_ld),
    X(EPILOGUE_AUX_BATCH_STRIDE, aux_batch_stride),
    X(ALPHA_VECTOR_BATCH_STRIDE, alpha_vector_batch_stride),
    X(SM_COUNT_TARGET, sm_count_target),
    X(A_SCALE_POINTER, a_scale),
    X(B_SCALE_POINTER, b_scale),
    X(C_SCALE_POINTER, c_scale),
    X(D_SCALE_POINTER, d_scale),
    X(AMAX_D_POINTER, amax_d),
    X(EPILOGUE_AUX_DATA_TYPE, aux_data_type),
    X(EPILOGUE_AUX_SCALE_POINTER, aux_scale),
    X(EPILOGUE_AUX_AMAX_POINTER, aux_amax),
    X(FAST_ACCUM, fast_accum),
    X(BIAS_DATA_TYPE, bias_data_type),
    {LT_ATTRIBUTE_UNNAMED, offsetof(lt_operation_t, unnamed), sizeof(int32_t)},
    X(A_SCALE_MODE, a_scale_mode),
    X(B_SCALE_MODE, b_scale_mode),
    X(C_SCALE_MODE, c_scale_mode),
    X(D_SCALE_MODE, d_scale_mode),
    X(EPILOGUE_AUX_SCALE_MODE, aux_scale_mode),
    X(D_OUT_SCALE_POINTER, d_out_scale),
    X(D_OUT_SCALE_MODE, d_out_scale_mode),
#if SIM_MAJOR >= 13
    X(EMULATION_DESCRIPTOR, emulation),
#endif
#undef X
};

static const field_t layout_fields[] = {
#define X(name, member) FIELD(CUBLASLT_MATRIX_LAYOUT_##name, lt_layout_t, member)
    X(TYPE, type),
    X(ORDER, order),
    X(ROWS, rows),
    X(COLS, cols),
    X(LD, ld),
    X(BATCH_COUNT, batch_count),
    X(STRIDED_BATCH_OFFSET, batch_stride),
    X(PLANE_OFFSET, plane_offset),
#if SIM_MAJOR >= 13
    X(BATCH_MODE, batch_mode),
#endif
#undef X
};

static const field_t preference_fields[] = {
#define X(name, member) FIELD(CUBLASLT_MATMUL_PREF_##name, lt_preference_t, member)
    X(SEARCH_MODE, search_mode),
    X(MAX_WORKSPACE_BYTES, max_workspace),
    X(REDUCTION_SCHEME_MASK, reduction_mask),
    X(MIN_ALIGNMENT_A_BYTES, min_align_a),
    X(MIN_ALIGNMENT_B_BYTES, min_align_b),
    X(MIN_ALIGNMENT_C_BYTES, min_align_c),
    X(MIN_ALIGNMENT_D_BYTES, min_align_d),
    X(MAX_WAVES_COUNT, max_waves),
    X(IMPL_MASK, impl_mask),
#undef X
};

static const field_t algo_fields[] = {
#define X(name, member) FIELD(CUBLASLT_ALGO_CONFIG_##name, lt_algo_t, member)
    X(ID, id),
    X(TILE_ID, tile),
    X(SPLITK_NUM, splitk),
    X(REDUCTION_SCHEME, reduction),
    X(CTA_SWIZZLING, swizzle),
    X(CUSTOM_OPTION, custom),
    X(STAGES_ID, stages),
    X(INNER_SHAPE_ID, inner_shape),
    X(CLUSTER_SHAPE_ID, cluster_shape),
#undef X
};

static const field_t *field_find(const field_t *fields, size_t count, int attribute) {
  for (size_t i = 0; i < count; i++)
    if (fields[i].attribute == attribute) return &fields[i];
  return NULL;
}

static cublasStatus_t field_set(void *object, const field_t *fields, size_t count, int attribute,
                                const void *from, size_t size) {
  const field_t *field = field_find(fields, count, attribute);
  if (!object || !field || !from || size != field->size) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy((char *)object + field->offset, from, size);
  return CUBLAS_STATUS_SUCCESS;
}

/* A size of 0 asks how many bytes there are. */
static cublasStatus_t field_get(const void *object, const field_t *fields, size_t count, int attribute,
                                void *to, size_t size, size_t *written) {
  const field_t *field = field_find(fields, count, attribute);
  if (!object || !field || (!size && !written)) return CUBLAS_STATUS_INVALID_VALUE;
  if (written) *written = field->size;
  if (!size) return CUBLAS_STATUS_SUCCESS;
  if (!to || size != field->size) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(to, (const char *)object + field->offset, size);
  return CUBLAS_STATUS_SUCCESS;
}

/* Clears what the attributes name within the first bytes, and nothing else. */
static void fields_clear(void *object, const field_t *fields, size_t count, size_t bytes) {
  for (size_t i = 0; i < count; i++)
    if (fields[i].offset < bytes) memset((char *)object + fields[i].offset, 0, fields[i].size);
}

static cublasStatus_t create(void **object, size_t size) {
  if (!object) return CUBLAS_STATUS_INVALID_VALUE;
  *object = malloc(size);
  return *object ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

static cublasStatus_t destroy(void *object) {
  free(object);
  return CUBLAS_STATUS_SUCCESS;
}

SIM_EXPORT cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc, size_t size,
                                                          cublasComputeType_t compute, cudaDataType_t scale) {
  SIM_ENTER(desc, size, compute, scale);
  if (!desc || size < LT_OPERATION_OLD_BYTES) return CUBLAS_STATUS_INVALID_VALUE;
  bool old = size < sizeof *desc;
  lt_operation_t *operation = (lt_operation_t *)desc;
  fields_clear(operation, operation_fields, COUNT(operation_fields),
               old ? LT_OPERATION_OLD_BYTES : sizeof *desc);
  operation->version = old ? 1 : 2;
  operation->compute_type = (int32_t)compute;
  operation->scale_type = (int32_t)scale;
  operation->fill_mode = CUBLAS_FILL_MODE_FULL;
  operation->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  operation->aux_data_type = operation->bias_data_type = -1;
  return CUBLAS_STATUS_SUCCESS;
}

SIM_EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                                   cudaDataType_t scale) {
  SIM_ENTER(desc, compute, scale);
  cublasStatus_t status = create((void **)desc, sizeof **desc);
  return status ? status : cublasLtMatmulDescInit_internal(*desc, sizeof **desc, compute, scale);
}

SIM_EXPORT cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t desc, size_t size,
                                                            cudaDataType type, uint64_t rows, uint64_t cols,
                                                            int64_t ld) {
  SIM_ENTER(desc, size, type, rows, cols, ld);
  if (!desc || size < sizeof *desc) return CUBLAS_STATUS_INVALID_VALUE;
  lt_layout_t *layout = (lt_layout_t *)desc;
  fields_clear(layout, layout_fields, COUNT(layout_fields), sizeof *desc);
  layout->version = 1;
  layout->type = (uint32_t)type;
  layout->order = CUBLASLT_ORDER_COL;
  layout->rows = rows;
  layout->cols = cols;
  layout->ld = ld;
  layout->batch_count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

SIM_EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *desc, cudaDataType type,
                                                     uint64_t rows, uint64_t cols, int64_t ld) {
  SIM_ENTER(desc, type, rows, cols, ld);
  cublasStatus_t status = create((void **)desc, sizeof **desc);
  return status ? status : cublasLtMatrixLayoutInit_internal(*desc, sizeof **desc, type, rows, cols, ld);
}

SIM_EXPORT cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                                                size_t size) {
  SIM_ENTER(preference, size);
  if (!preference || size < sizeof *preference) return CUBLAS_STATUS_INVALID_VALUE;
  lt_preference_t *p = (lt_preference_t *)preference;
  fields_clear(p, preference_fields, COUNT(preference_fields), sizeof *preference);
  p->reduction_mask = CUBLASLT_REDUCTION_SCHEME_MASK;
  p->min_align_a = p->min_align_b = p->min_align_c = p->min_align_d = 256;
  p->impl_mask = ~0ull;
  return CUBLAS_STATUS_SUCCESS;
}

SIM_EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  SIM_ENTER(preference);
  cublasStatus_t status = create((void **)preference, sizeof **preference);
  return status ? status : cublasLtMatmulPreferenceInit_internal(*preference, sizeof **preference);
}

/* How many of the attributes, which are in order of age, an object has. */
static size_t operation_count(const void *object) {
  size_t count = COUNT(operation_fields);
  const lt_operation_t *operation = object;
  while (operation && operation->version == 1 && operation_fields[count - 1].offset >= LT_OPERATION_OLD_BYTES)
    count--;
  return count;
}
#define LAYOUT_COUNT(object)     COUNT(layout_fields)
#define PREFERENCE_COUNT(object) COUNT(preference_fields)

/* Destroy, SetAttribute and GetAttribute of the three kinds. */
#define OBJECT(prefix, handle_t, attribute_t, fields, count_of)                                              \
  SIM_EXPORT cublasStatus_t prefix##Destroy(handle_t object) {                                               \
    SIM_ENTER(object);                                                                                       \
    return destroy(object);                                                                                  \
  }                                                                                                          \
  SIM_EXPORT cublasStatus_t prefix##SetAttribute(handle_t object, attribute_t attribute, const void *from,   \
                                                 size_t size) {                                              \
    SIM_ENTER(object, attribute, from, size);                                                                \
    return field_set(object, fields, count_of(object), (int)attribute, from, size);                          \
  }                                                                                                          \
  SIM_EXPORT cublasStatus_t prefix##GetAttribute(handle_t object, attribute_t attribute, void *to,           \
                                                 size_t size, size_t *written) {                             \
    SIM_ENTER(object, attribute, to, size, written);                                                         \
    return field_get(object, fields, count_of(object), (int)attribute, to, size, written);                   \
  }

OBJECT(cublasLtMatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, operation_fields,
       operation_count)
OBJECT(cublasLtMatrixLayout, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, layout_fields,
       LAYOUT_COUNT)
OBJECT(cublasLtMatmulPreference, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
       preference_fields, PREFERENCE_COUNT)

SIM_EXPORT cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo,
                                                               cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                               const void *from, size_t size) {
  SIM_ENTER(algo, attribute, from, size);
  if (attribute == CUBLASLT_ALGO_CONFIG_ID) return CUBLAS_STATUS_INVALID_VALUE; /* read only */
  return field_set(algo, algo_fields, COUNT(algo_fields), (int)attribute, from, size);
}

SIM_EXPORT cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                               cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                               void *to, size_t size, size_t *written) {
  SIM_ENTER(algo, attribute, to, size, written);
  return field_get(algo, algo_fields, COUNT(algo_fields), (int)attribute, to, size, written);
}
