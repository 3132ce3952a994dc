/* lt CASE: one cublasLtMatmul (TN 64 x 16 x 64, half in and out) with one thing about it changed, checked
 * where the stand-in can compute it; or a sequence (memo, algorithms). Prints "status: N". */
#include "client.h"

#include <string.h>

enum { M = 64, N = 16, K = 64 };

typedef struct {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t a, b, c, d;
  const cublasLtMatmulAlgo_t *algo;
  product_t p; /* what is asked */
  float scalars[2];
  bool on_device;
  size_t workspace; /* bytes passed */
} call_t;

static void set(call_t *call, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t size) {
  MUST(cublasLtMatmulDescSetAttribute(call->operation, attribute, value, size));
}
#define SET(name, type, value) set(call, CUBLASLT_MATMUL_DESC_##name, &(type){value}, sizeof(type))

/* Over dirty memory: what Init leaves alone must not matter. */
static void *dirty(size_t bytes) {
  static unsigned char fill = 0x5a;
  void *memory = malloc(bytes);
  must(memory == NULL, "malloc");
  return memset(memory, fill += 0x33, bytes);
}

static cublasLtMatrixLayout_t layout(cudaDataType_t type, uint64_t rows, uint64_t cols, int64_t ld) {
  cublasLtMatrixLayout_t made = dirty(sizeof *made);
  MUST(cublasLtMatrixLayoutInit(made, type, rows, cols, ld));
  return made;
}

static call_t open_call(cublasLtHandle_t handle) {
  call_t made = {.handle = handle, .operation = dirty(sizeof(cublasLtMatmulDescOpaque_t)), .scalars = {1, 0}};
  call_t *call = &made;
  MUST(cublasLtMatmulDescInit(made.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  SET(TRANSA, int32_t, CUBLAS_OP_T);
  made.a = layout(CUDA_R_16F, K, M, K);
  made.b = layout(CUDA_R_16F, K, N, K);
  made.c = made.d = layout(CUDA_R_16F, M, N, M);
  made.p = (product_t){.transa = true,
                       .m = M,
                       .n = N,
                       .k = K,
                       .batch = 1,
                       .lda = K,
                       .ldb = K,
                       .ldc = M,
                       .ldd = M,
                       .a_type = CUDA_R_16F,
                       .b_type = CUDA_R_16F,
                       .c_type = CUDA_R_16F,
                       .d_type = CUDA_R_16F,
                       .bias_type = CUDA_R_16F,
                       .scale_type = CUDA_R_32F};
  made.p.a = device_values(CUDA_R_16F, M * K + 8, 1);
  made.p.b = device_values(CUDA_R_16F, N * K, 2);
  made.p.c = made.p.d = device_values(CUDA_R_16F, 2 * M * N, 3);
  return made;
}

static cublasStatus_t send(const call_t *call) {
  const float *device = NULL;
  if (call->on_device) {
    device = device_values(CUDA_R_32F, 2, 1);
    MUST(cuMemcpyHtoD((CUdeviceptr)device, call->scalars, sizeof call->scalars));
  }
  const float *scalars = call->on_device ? device : call->scalars;
  return cublasLtMatmul(call->handle, call->operation, &scalars[0], call->p.a, call->a, call->p.b, call->b,
                        &scalars[1], call->p.c, call->c, call->p.d, call->d, call->algo,
                        call->workspace ? device_values(CUDA_R_32F, 1024, 2) : NULL, call->workspace, NULL);
}

/* Status of the call; the program fails where it was a success and the result is wrong. */
static cublasStatus_t send_checked(call_t *call) {
  int64_t elements = call->p.ldd * N * call->p.batch;
  void *before = malloc((size_t)elements * value_bytes(call->p.d_type));
  must(before == NULL, "malloc");
  MUST(cuMemcpyDtoH(before, (CUdeviceptr)call->p.d, (size_t)elements * value_bytes(call->p.d_type)));
  cublasStatus_t status = send(call);
  call->p.alpha = (double)call->scalars[0];
  call->p.beta = (double)call->scalars[1];
  must(status == CUBLAS_STATUS_SUCCESS && !is_right(&call->p, before, elements), "the result");
  free(before);
  return status;
}

static void epilogue(call_t *call, cublasLtEpilogue_t asked, int meaning, bool biased) {
  SET(EPILOGUE, uint32_t, asked);
  call->p.epilogue = meaning;
  if (!biased) return;
  call->p.bias = device_values(CUDA_R_16F, M, 9);
  SET(BIAS_POINTER, const void *, call->p.bias);
}

static void plain(call_t *call) {
  (void)call;
}
static void relu(call_t *call) {
  epilogue(call, CUBLASLT_EPILOGUE_RELU, GS_EPI_RELU, false);
}
static void bias(call_t *call) {
  epilogue(call, CUBLASLT_EPILOGUE_BIAS, GS_EPI_BIAS, true);
}
static void relu_bias(call_t *call) {
  epilogue(call, CUBLASLT_EPILOGUE_RELU_BIAS, GS_EPI_RELU_BIAS, true);
}
static void gelu(call_t *call) {
  epilogue(call, CUBLASLT_EPILOGUE_GELU, GS_EPI_GELU, false);
}
static void gelu_bias(call_t *call) {
  epilogue(call, CUBLASLT_EPILOGUE_GELU_BIAS, GS_EPI_GELU_BIAS, true);
}
static void aux(call_t *call) {
  SET(EPILOGUE, uint32_t, CUBLASLT_EPILOGUE_RELU_AUX);
  SET(EPILOGUE_AUX_POINTER, void *, call->p.d);
  SET(EPILOGUE_AUX_LD, int64_t, 128);
}
static void gradient(call_t *call) {
  SET(EPILOGUE, uint32_t, CUBLASLT_EPILOGUE_BGRADA);
}
static void beta(call_t *call) {
  call->scalars[1] = 0.5f;
}
static void device_scalars(call_t *call) {
  SET(POINTER_MODE, int32_t, CUBLASLT_POINTER_MODE_DEVICE);
  call->on_device = true;
  call->scalars[0] = 2;
  call->scalars[1] = -1;
}
static void out_of_place(call_t *call) {
  call->p.c = device_values(CUDA_R_16F, M * N, 5);
  call->scalars[1] = 1;
}
static void workspace(call_t *call) {
  call->workspace = 4096;
}
static void tiny_workspace(call_t *call) { /* as vLLM's batch invariance */
  call->workspace = 1024;
}
static void no_c(call_t *call) {
  call->p.c = NULL;
}
static void strided(call_t *call) {
  cublasLtMatrixLayout_t layouts[] = {call->a, call->b, call->d};
  const int64_t strides[] = {0, 0, M * N};
  for (int i = 0; i < 3; i++) {
    MUST(cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &(int32_t){2}, 4));
    MUST(cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                          &strides[i], 8));
  }
  call->p.batch = 2;
  call->p.stride_c = call->p.stride_d = M * N;
}
static void vector_scalars(call_t *call) {
  SET(POINTER_MODE, int32_t, CUBLASLT_POINTER_MODE_DEVICE_VECTOR);
}
static void amax(call_t *call) {
  SET(AMAX_D_POINTER, void *, call->p.d);
}
static void scale(call_t *call) {
  SET(A_SCALE_POINTER, const void *, call->p.b);
}
static void scale_mode(call_t *call) {
  SET(A_SCALE_MODE, int32_t, 1);
}
static void fast_accumulation(call_t *call) {
  SET(FAST_ACCUM, int8_t, 1);
}
static void sm_target(call_t *call) {
  SET(SM_COUNT_TARGET, int32_t, 64);
}
static void bias_type(call_t *call) {
  bias(call);
  SET(BIAS_DATA_TYPE, int32_t, CUDA_R_32F);
  call->p.bias = device_values(CUDA_R_32F, M, 9);
  call->p.bias_type = CUDA_R_32F;
  SET(BIAS_POINTER, const void *, call->p.bias);
}
static void bias_missing(call_t *call) {
  SET(EPILOGUE, uint32_t, CUBLASLT_EPILOGUE_BIAS);
}
static void unnamed(call_t *call) {
  set(call, (cublasLtMatmulDescAttributes_t)27, &(int32_t){1}, 4);
}
static void emulation(call_t *call) {
  SET(EMULATION_DESCRIPTOR, void *, call->p.d);
}
static void compute_type(call_t *call, int type) {
  MUST(cublasLtMatmulDescInit(call->operation, (cublasComputeType_t)type, CUDA_R_32F));
  SET(TRANSA, int32_t, CUBLAS_OP_T);
}
static void pedantic(call_t *call) {
  compute_type(call, CUBLAS_COMPUTE_32F_PEDANTIC);
}
static void emulated(call_t *call) {
  compute_type(call, 78); /* CUBLAS_COMPUTE_32F_EMULATED_16BFX9, which older headers lack */
}
static void order(call_t *call) {
  MUST(cublasLtMatrixLayoutSetAttribute(call->b, CUBLASLT_MATRIX_LAYOUT_ORDER, &(int32_t){CUBLASLT_ORDER_ROW},
                                        4));
}
static void plane(call_t *call) {
  MUST(cublasLtMatrixLayoutSetAttribute(call->b, CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, &(int64_t){256}, 8));
}
static void mismatch(call_t *call) {
  MUST(cublasLtMatrixLayoutSetAttribute(call->b, CUBLASLT_MATRIX_LAYOUT_ROWS, &(uint64_t){K - 8}, 8));
}
static void no_operation(call_t *call) {
  call->operation = NULL;
}
static void no_layout(call_t *call) {
  call->b = NULL;
}
static void no_handle(call_t *call) {
  call->handle = NULL;
}

/* One descriptor, changed between calls: what is remembered of it must follow. */
static cublasStatus_t memo(call_t *call) {
  MUST(send_checked(call)); /* served */
  MUST(send_checked(call)); /* served */
  bias(call);
  MUST(send_checked(call)); /* served, biased */
  call->p.bias = (const char *)device_values(CUDA_R_16F, M + 1, 10) + 2;
  SET(BIAS_POINTER, const void *, call->p.bias);
  MUST(send_checked(call)); /* library: a bias that is less aligned */
  SET(EPILOGUE, uint32_t, CUBLASLT_EPILOGUE_DEFAULT);
  call->p.epilogue = GS_EPI_DEFAULT;
  call->p.bias = NULL;
  MUST(send_checked(call)); /* served, though the pointer is still set */
  fast_accumulation(call);
  MUST(send_checked(call)); /* library */
  SET(FAST_ACCUM, int8_t, 0);
  MUST(send_checked(call)); /* served */
  call->p.a = (const char *)call->p.a + 2;
  return send_checked(call); /* library: A is less aligned */
}

/* The heuristic's first algorithm, as frameworks pass it, is no wish; trying others is. */
static cublasStatus_t algorithms(call_t *call) {
  cublasLtMatmulHeuristicResult_t results[4];
  cublasLtMatmulPreference_t preference;
  int count;
  MUST(cublasLtMatmulPreferenceCreate(&preference));
  MUST(cublasLtMatmulAlgoGetHeuristic(call->handle, call->operation, call->a, call->b, call->c, call->d,
                                      preference, 4, results, &count));
  must(count < 2, "several algorithms");
  call->algo = &results[0].algo;
  for (int i = 0; i < 3; i++) MUST(send_checked(call)); /* served */
  call->algo = &results[1].algo;
  MUST(send_checked(call)); /* library */
  call->algo = &results[0].algo;
  MUST(send_checked(call)); /* library, from now on, ... */
  call->algo = NULL;
  return send_checked(call); /* ... whatever is asked for */
}

static const struct {
  const char *name;
  void (*change)(call_t *call);
  cublasStatus_t (*sequence)(call_t *call);
} cases[] = {
#define CASE(name)                                                                                           \
  { #name, name, NULL }
    CASE(plain),
    CASE(relu),
    CASE(bias),
    CASE(relu_bias),
    CASE(gelu),
    CASE(gelu_bias),
    CASE(aux),
    CASE(gradient),
    CASE(beta),
    CASE(device_scalars),
    CASE(out_of_place),
    CASE(workspace),
    CASE(tiny_workspace),
    CASE(no_c),
    CASE(strided),
    CASE(vector_scalars),
    CASE(amax),
    CASE(scale),
    CASE(scale_mode),
    CASE(fast_accumulation),
    CASE(sm_target),
    CASE(bias_type),
    CASE(bias_missing),
    CASE(unnamed),
    CASE(emulation),
    CASE(pedantic),
    CASE(emulated),
    CASE(order),
    CASE(plane),
    CASE(mismatch),
    CASE(no_operation),
    CASE(no_layout),
    CASE(no_handle),
#undef CASE
    {"memo", plain, memo},
    {"algorithms", plain, algorithms},
};

int main(int argc, char **argv) {
  cublasLtHandle_t handle;
  MUST(cublasLtCreate(&handle));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (argc != 2 || strcmp(argv[1], cases[i].name)) continue;
    call_t call = open_call(handle);
    cases[i].change(&call);
    cublasStatus_t (*act)(call_t *) = cases[i].sequence ? cases[i].sequence : send_checked;
    printf("status: %d\n", (int)act(&call));
    return 0;
  }
  fprintf(stderr, "lt: which case?\n");
  return 2;
}
