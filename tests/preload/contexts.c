/* contexts: a stream of one context while another is current; then as it should be. Then math modes and an
 * SM target on the handle; then other types of computation. Prints "foreign: STATUS" and so on. */
#include "client.h"

/* By their numbers: older headers lack the last ones. */
enum { FP32_EMULATED = 4, FP64_EMULATED = 8, EMULATED_16BFX9 = 78, EMULATED_FIXEDPOINT = 79 };

/* Scalars that are 0 are that in every type. */
static void computed(const simple_t *s, int type) {
  const double zero = 0;
  cublasStatus_t status = cublasGemmEx(s->handle, CUBLAS_OP_T, CUBLAS_OP_N, 128, s->n, 128, &zero, s->a,
                                       CUDA_R_16F, 128, s->b, CUDA_R_16F, 128, &zero, s->c, CUDA_R_16F, 128,
                                       (cublasComputeType_t)type, CUBLAS_GEMM_DEFAULT);
  printf("compute type %d: %d\n", type, (int)status);
}

int main(void) {
  simple_t s = simple_open(8);
  CUcontext first, second;
  CUstream stream;
  MUST(cuCtxGetCurrent(&first));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cublasSetStream(s.handle, (cudaStream_t)stream));
  MUST(cuCtxCreate(&second, NULL, 0, 0));
  printf("foreign: %d\n", (int)simple_call(&s)); /* library */
  MUST(cuCtxSetCurrent(first));
  MUST(simple_call(&s)); /* served */
  must(!simple_right(&s), "the result");
  MUST(cublasSetStream(s.handle, (cudaStream_t)CU_STREAM_PER_THREAD));
  MUST(simple_call(&s)); /* served */
  MUST(cublasSetMathMode(s.handle, CUBLAS_PEDANTIC_MATH));
  MUST(simple_call(&s)); /* library */
  MUST(cublasSetMathMode(
      s.handle, (cublasMath_t)(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
  MUST(simple_call(&s)); /* served */
  MUST(cublasSetMathMode(s.handle, CUBLAS_DEFAULT_MATH));
  MUST(cublasSetSmCountTarget(s.handle, 60));
  MUST(simple_call(&s)); /* library */
  must(!simple_right(&s), "the result");
  MUST(cublasSetSmCountTarget(s.handle, 0));
  for (int mode = FP32_EMULATED; mode <= FP64_EMULATED; mode *= 2) {
    MUST(cublasSetMathMode(s.handle, (cublasMath_t)mode));
    MUST(simple_call(&s)); /* library */
  }
  MUST(cublasSetMathMode(s.handle, CUBLAS_DEFAULT_MATH));
  static const int types[] = {CUBLAS_COMPUTE_16F_PEDANTIC,  CUBLAS_COMPUTE_32F_PEDANTIC,
                              CUBLAS_COMPUTE_32F_FAST_16F,  CUBLAS_COMPUTE_32F_FAST_16BF,
                              CUBLAS_COMPUTE_32F_FAST_TF32, EMULATED_16BFX9,
                              EMULATED_FIXEDPOINT};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) computed(&s, types[i]); /* library */
  simple_close(&s);
  return 0;
}
