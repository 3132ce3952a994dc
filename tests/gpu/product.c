#include "product.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void must(int status, const char *what, const char *file, int line) {
  if (status == 0) return;
  fprintf(stderr, "%s:%d: %s: status %d\n", file, line, what, status);
  exit(3);
}

static int value(int seed, int index) {
  return (int)((index * 7919u + seed * 104729u) >> 3) % 3 - 1;
}

static uint16_t half_of(int whole) { /* -1024 .. 1024 */
  int size = abs(whole), exponent = 0;
  if (!size) return 0;
  while (size >> (exponent + 1)) exponent++;
  return (uint16_t)((whole < 0 ? 0x8000 : 0) | (exponent + 15) << 10 | ((size << 10 >> exponent) & 0x3ff));
}

static CUdeviceptr upload(int seed, int count) {
  CUdeviceptr device;
  uint16_t *host = malloc((size_t)count * 2);
  for (int i = 0; i < count; i++) host[i] = half_of(value(seed, i));
  MUST(cuMemAlloc(&device, (size_t)count * 2));
  MUST(cuMemcpyHtoD(device, host, (size_t)count * 2));
  free(host);
  return device;
}

product_t product_open(int m, int n, int k, int seed) {
  product_t p = {
      .m = m, .n = n, .k = k, .seed = seed, .a = upload(seed, m * k), .b = upload(seed + 1, k * n)};
  MUST(cublasCreate(&p.handle));
  MUST(cuMemAlloc(&p.c, (size_t)(2 * m * n)));
  return p;
}

product_t product_beside(const product_t *first, int n) {
  product_t p = *first;
  p.n = n, p.shares = true;
  MUST(cuMemAlloc(&p.c, (size_t)(2 * p.m * n)));
  return p;
}

void product_close(product_t *p) {
  MUST(cuMemFree(p->c));
  if (p->shares) return;
  MUST(cublasDestroy(p->handle));
  MUST(cuMemFree(p->a));
  MUST(cuMemFree(p->b));
}

void product_call_with(const product_t *p, CUstream stream, cublasGemmAlgo_t algorithm) {
  const float one = 1, zero = 0;
  MUST(cublasSetStream(p->handle, (cudaStream_t)stream));
  MUST(cublasGemmEx(p->handle, CUBLAS_OP_T, CUBLAS_OP_N, p->m, p->n, p->k, &one, (void *)p->a, CUDA_R_16F,
                    p->k, (void *)p->b, CUDA_R_16F, p->k, &zero, (void *)p->c, CUDA_R_16F, p->m,
                    CUBLAS_COMPUTE_32F, algorithm));
}

void product_call(const product_t *p, CUstream stream) {
  product_call_with(p, stream, CUBLAS_GEMM_DEFAULT);
}

void product_clear(const product_t *p) {
  MUST(cuMemsetD8(p->c, 0xff, (size_t)(2 * p->m * p->n)));
}

bool product_right(const product_t *p) {
  uint16_t *host = malloc((size_t)(2 * p->m * p->n));
  bool right = host != NULL;
  MUST(!host);
  MUST(cuMemcpyDtoH(host, p->c, (size_t)(2 * p->m * p->n)));
  for (int j = 0; j < p->n && right; j++)
    for (int i = j % 13; i < p->m && right; i += 37) {
      int sum = 0;
      for (int l = 0; l < p->k; l++) sum += value(p->seed, i * p->k + l) * value(p->seed + 1, j * p->k + l);
      right = host[j * p->m + i] == half_of(sum);
    }
  free(host);
  return right;
}

size_t memory_used(void) {
  size_t left, total;
  MUST(cuMemGetInfo(&left, &total));
  return total - left;
}

CUstream stream_open(void) {
  CUstream stream;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

CUgraphExec capture_exec(const product_t *p, CUstream stream) {
  CUgraph graph;
  CUgraphExec exec;
  MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  product_call(p, stream);
  MUST(cuStreamEndCapture(stream, &graph));
  MUST(cuGraphInstantiate(&exec, graph, 0));
  MUST(cuGraphDestroy(graph));
  return exec;
}

bool replay_right(CUgraphExec exec, CUstream stream, const product_t *p) {
  product_clear(p);
  MUST(cuStreamSynchronize(NULL));
  MUST(cuGraphLaunch(exec, stream));
  MUST(cuStreamSynchronize(stream));
  return product_right(p);
}
