/* contexts: a stream of one context while another is current; then as it should be. Then math modes and an
 * SM target on the handle. Prints "foreign: STATUS" and so on. */
#include "client.h"

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
  simple_close(&s);
  return 0;
}
