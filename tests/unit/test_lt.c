/* cublasLt's descriptors as the real library makes them (no GPU is needed for that): what is read from them,
 * and that no attribute escapes notice. Trap C13. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lt.h"
#include "real.h"

static const gs_real_t *real;
static uint64_t desc[64], layout[4][64];

static void *lookup(const char *name) {
  void *function = dlsym(dlopen(real->path, RTLD_LAZY), name);
  cr_assert(function, "%s", name);
  return function;
}

static void set(int attribute, const void *value, size_t size) {
  cr_assert_eq(real->cublasLtMatmulDescSetAttribute((void *)desc, attribute, value, size),
               CUBLAS_STATUS_SUCCESS, "attribute %d", attribute);
}

static void make(void) {
  memset(desc, 0x5a, sizeof desc); /* what the library leaves as it was must not matter */
  memset(layout, 0xa5, sizeof layout);
  real->cublasLtMatmulDescInit_internal((void *)desc, sizeof(cublasLtMatmulDescOpaque_t), CUBLAS_COMPUTE_32F,
                                        CUDA_R_32F);
  static const int shape[4][3] = {{64, 96, 64}, {64, 8, 64}, {96, 8, 96}, {96, 8, 96}};
  for (int i = 0; i < 4; i++)
    real->cublasLtMatrixLayoutInit_internal((void *)layout[i], sizeof(cublasLtMatrixLayoutOpaque_t),
                                            CUDA_R_16F, (uint64_t)shape[i][0], (uint64_t)shape[i][1],
                                            shape[i][2]);
  cublasOperation_t t = CUBLAS_OP_T;
  set(CUBLASLT_MATMUL_DESC_TRANSA, &t, sizeof t);
}

static void open_library(void) {
  const char *cuda = getenv("CUDA_HOME"),
             *given = getenv("GS_CUBLAS"); /* of another major: make test-majors */
  char path[512];
  snprintf(path, sizeof path, "%s/lib64/libcublas.so", cuda ? cuda : "/usr/local/cuda");
  if (given) snprintf(path, sizeof path, "%s", given);
  if (!dlopen(path, RTLD_NOW | RTLD_LOCAL)) cr_skip_test("no real cuBLAS: %s", dlerror());
  real = gs_real_of(__builtin_return_address(0));
  cr_assert(real && real->cublasLtMatmulDescInit_internal);
  make();
}

static gs_call_t describe(void) {
  gs_call_t call = {.real = real};
  call.at.a = call.at.b = call.at.c = call.at.d = (void *)4096;
  gs_lt_describe(&call, (const void *[]){desc, layout[0], layout[1], layout[2], layout[3]});
  return call;
}

static gs_reason_t refusal(void) {
  return describe().refusal;
}

TestSuite(lt, .init = open_library);

Test(lt, C13_a_plain_product_is_read) {
  for (int time = 0; time < 3; time++) { /* asked, remembered, recognised in place */
    gs_call_t call = describe();
    cr_assert_eq(call.refusal, GS_REASON_SERVED, "%s", gs_reason_names[call.refusal]);
    gs_gemm_t *g = &call.gemm;
    cr_assert(g->m == 96 && g->n == 8 && g->k == 64 && g->lda == 64 && g->ldd == 96 && g->batch == 1);
    cr_assert(g->transa == GS_OP_T && g->transb == GS_OP_N && g->a_type == GS_TYPE_F16 && g->align == 16);
  }
}

Test(lt, C13_layouts_of_every_type_are_read) {
  static const cudaDataType types[] = {CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F, CUDA_R_8I, CUDA_R_64F};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    make();
    for (int i = 0; i < 4; i++)
      real->cublasLtMatrixLayoutSetAttribute((void *)layout[i], CUBLASLT_MATRIX_LAYOUT_TYPE, &types[t],
                                             sizeof types[t]);
    for (int time = 0; time < 3; time++) {
      gs_call_t call = describe();
      cr_assert_eq(call.refusal, GS_REASON_SERVED, "type %d: %s", types[t], gs_reason_names[call.refusal]);
      cr_assert(call.gemm.m == 96 && call.gemm.k == 64 && call.gemm.a_type == gs_type_of_cuda(types[t]));
    }
  }
}

Test(lt, C13_bytes_left_uninitialised_do_not_matter) {
  describe();
  uint64_t first[64], differ = 0;
  memcpy(first, desc, sizeof desc);
  make();
  real->cublasLtMatmulDescInit_internal((void *)memset(desc, 0xc3, sizeof desc),
                                        sizeof(cublasLtMatmulDescOpaque_t), CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasOperation_t t = CUBLAS_OP_T;
  set(CUBLASLT_MATMUL_DESC_TRANSA, &t, sizeof t);
  for (int i = 0; i < 26; i++) differ |= first[i] ^ desc[i];
  cr_assert(differ, "this library leaves nothing uninitialised: the test shows nothing");
  cr_assert_eq(refusal(), GS_REASON_SERVED);
}

Test(lt, C12_every_served_epilogue_with_its_bias) {
  static const int epilogues[] = {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS,
                                  CUBLASLT_EPILOGUE_GELU_BIAS};
  for (int i = 0; i < 3; i++)
    for (int typed = 0; typed < 2; typed++) {
      make();
      void *bias = (void *)(uintptr_t)(0x7000 + 16 * i);
      int32_t type = CUDA_R_16F;
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogues[i], sizeof epilogues[i]);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
      if (typed) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
      for (int time = 0; time < 3; time++) {
        gs_call_t call = describe();
        cr_assert_eq(call.refusal, GS_REASON_SERVED, "epilogue %d: %s", epilogues[i],
                     gs_reason_names[call.refusal]);
        cr_assert_eq(call.at.bias, bias);
        cr_assert_eq(call.gemm.epilogue, gs_epilogue_of_cublas(epilogues[i]));
      }
    }
}

Test(lt, C13_a_new_bias_pointer_is_seen) {
  int epilogue = CUBLASLT_EPILOGUE_BIAS;
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  for (uintptr_t at = 0x8000; at < 0x8040; at += 2) {
    void *bias = (void *)at;
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    gs_call_t call = describe();
    cr_assert_eq(call.at.bias, bias);
    cr_assert_eq(call.gemm.align, at % 16 == 0 ? 16 : at % 8 == 0 ? 8 : at % 4 == 0 ? 4 : 2);
  }
  void *none = NULL;
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &none, sizeof none);
  cr_assert_eq(refusal(), GS_REASON_EPILOGUE);
}

/* Every attribute that a descriptor takes, by number, named or not: setting it to something else must not go
 * unnoticed, unless it is one that kernels honour. */
Test(lt, C12_every_attribute_is_noticed) {
  static const int honoured[] = {CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_MATMUL_DESC_TRANSA,
                                 CUBLASLT_MATMUL_DESC_TRANSB,       CUBLASLT_MATMUL_DESC_EPILOGUE,
                                 CUBLASLT_MATMUL_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE};
  int tried = 0;
  for (int id = 2; id < 64; id++) {
    bool skip = false;
    for (size_t i = 0; i < sizeof honoured / sizeof *honoured; i++) skip |= honoured[i] == id;
    for (size_t size = 1; !skip && size <= 8; size *= 2) {
      uint64_t value = 0;
      size_t written;
      make();
      if (real->cublasLtMatmulDescGetAttribute((void *)desc, id, &value, size, &written) !=
          CUBLAS_STATUS_SUCCESS)
        continue;
      uint64_t before = value;
      for (uint64_t other = 1; other <= 3; other++) {
        value = before ^ other;
        make();
        if (real->cublasLtMatmulDescSetAttribute((void *)desc, id, &value, size) != CUBLAS_STATUS_SUCCESS)
          continue;
        cr_assert_neq(refusal(), GS_REASON_SERVED, "attribute %d of %zu bytes, set to %d, was not noticed",
                      id, size, (int)value);
        tried++;
      }
    }
  }
  cr_assert_geq(tried, 20, "only %d attributes could be set", tried);
}

Test(lt, C12_every_layout_attribute_is_noticed) {
  int tried = 0;
  for (int id = 0; id < 32; id++)
    for (size_t size = 4; size <= 8; size *= 2) {
      uint64_t value = 0;
      size_t written;
      make();
      if (real->cublasLtMatrixLayoutGetAttribute((void *)layout[0], id, &value, size, &written)) continue;
      value ^= 1; /* another type, order, size, ld, batch ...: another product or none */
      if (real->cublasLtMatrixLayoutSetAttribute((void *)layout[0], id, &value, size)) continue;
      gs_call_t call = describe();
      bool same = call.refusal == GS_REASON_SERVED && call.gemm.lda == 64 &&
                  call.gemm.a_type == GS_TYPE_F16 && call.gemm.k == 64 && call.gemm.m == 96 &&
                  call.gemm.batch == 1;
      if (id == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) same = false; /* means nothing for one product */
      cr_assert(!same, "layout attribute %d was not noticed", id);
      tried++;
    }
  cr_assert_geq(tried, 6, "only %d layout attributes could be set", tried);
}

Test(lt, C1_vector_scalars_are_refused_and_device_ones_told) {
  int32_t mode = CUBLASLT_POINTER_MODE_DEVICE;
  set(CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode);
  cr_assert(describe().device_scalars);
  for (mode = CUBLASLT_POINTER_MODE_DEVICE_VECTOR;
       mode <= CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST; mode++) {
    make();
    set(CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode);
    cr_assert_eq(refusal(), GS_REASON_SCALARS, "mode %d", mode);
  }
}

Test(lt, heap_descriptors_are_read_too) {
  cublasLtMatmulDesc_t heap;
  __typeof__(&cublasLtMatmulDescCreate) create = lookup("cublasLtMatmulDescCreate");
  __typeof__(&cublasLtMatmulDescDestroy) destroy = lookup("cublasLtMatmulDescDestroy");
  cublasOperation_t t = CUBLAS_OP_T;
  cr_assert_eq(create(&heap, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  real->cublasLtMatmulDescSetAttribute(heap, CUBLASLT_MATMUL_DESC_TRANSA, &t, sizeof t);
  gs_call_t call = {.real = real};
  gs_lt_describe(&call, (const void *[]){heap, layout[0], layout[1], layout[2], layout[3]});
  cr_assert_eq(call.refusal, GS_REASON_SERVED);
  cr_assert_eq(call.gemm.m, 96);
  cr_assert_eq(destroy(heap), CUBLAS_STATUS_SUCCESS);
}

/* A descriptor made with an older header is shorter, and lacks newer attributes; those that lack the bias's
 * type cannot be read in full and are forwarded. */
Test(lt, descriptors_of_older_headers_are_read_by_their_own_size) {
  int served = 0;
  for (size_t size = 56; size < sizeof(cublasLtMatmulDescOpaque_t); size += 8) {
    make();
    memset(desc, 0xc3, sizeof desc);
    if (real->cublasLtMatmulDescInit_internal((void *)desc, size, CUBLAS_COMPUTE_32F, CUDA_R_32F)) continue;
    cublasOperation_t t = CUBLAS_OP_T;
    set(CUBLASLT_MATMUL_DESC_TRANSA, &t, sizeof t);
    int32_t type;
    size_t written;
    bool whole = real->cublasLtMatmulDescGetAttribute((void *)desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                                                      &type, sizeof type, &written) == CUBLAS_STATUS_SUCCESS;
    gs_call_t call = describe();
    cr_assert_eq(call.gemm.m, 96, "size %zu", size);
    cr_assert_eq(call.refusal, whole ? GS_REASON_SERVED : GS_REASON_ATTRIBUTE, "size %zu: %s", size,
                 gs_reason_names[call.refusal]);
    served += whole;
  }
  cr_assert_gt(served, 0);
}
