#include "client.h"

#include <math.h>
#include <string.h>

void must(int status, const char *what) {
  if (status == 0) return;
  fprintf(stderr, "client: %s: status %d\n", what, status);
  exit(3);
}

void *device_values(cudaDataType_t type, int64_t count, unsigned seed) {
  CUdeviceptr device;
  MUST(cuMemAlloc(&device, (size_t)count * value_bytes(type)));
  void *host = malloc((size_t)count * value_bytes(type));
  must(host == NULL, "malloc");
  uint64_t state = seed;
  for (int64_t i = 0; i < count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value_store(type, host, i,
                type == CUDA_R_8I ? (double)(state >> 61) : (double)(state >> 40) / (1 << 23) - 1);
  }
  MUST(cuMemcpyHtoD(device, host, (size_t)count * value_bytes(type)));
  free(host);
  return (void *)device;
}

void device_free(void *memory) {
  MUST(cuMemFree((CUdeviceptr)memory));
}

/* Of a single rounding to the type, and a little for sums in single precision. */
static double tolerance(cudaDataType_t type, double magnitude) {
  switch (type) {
  case CUDA_R_16F:
    return magnitude * 0x1.1p-10;
  case CUDA_R_16BF:
    return magnitude * 0x1.1p-7;
  case CUDA_R_32F:
    return magnitude * 0x1p-20;
  case CUDA_R_64F:
    return magnitude * 0x1p-45;
  default:
    return 0;
  }
}

bool is_right(const product_t *p, const void *before, int64_t elements) {
  size_t bytes = (size_t)elements * value_bytes(p->d_type);
  char *expected = malloc(bytes), *found = malloc(bytes);
  must(!expected || !found, "malloc");
  memcpy(expected, before, bytes);
  MUST(cuMemcpyDtoH(found, (CUdeviceptr)p->d, bytes));
  product_t again = *p;
  if (again.c == again.d) again.c = before;
  again.d = expected;
  must(!product_run(&again), "the reference");
  bool right = true;
  for (int64_t i = 0; i < elements && right; i++) {
    double x = value_load(p->d_type, found, i), y = value_load(p->d_type, expected, i);
    int64_t entry = p->stride_d ? i % p->stride_d : i;
    bool inside = entry % p->ldd < p->m && entry / p->ldd < p->n;
    right = inside ? fabs(x - y) <= tolerance(p->d_type, fmax(1, fabs(y)))
                   : !memcmp(found + (size_t)i * value_bytes(p->d_type),
                             expected + (size_t)i * value_bytes(p->d_type), value_bytes(p->d_type));
    if (!right)
      fprintf(stderr, "client: element %lld %s: %g instead of %g\n", (long long)i,
              inside ? "is wrong" : "outside the result was written", x, y);
  }
  free(expected);
  free(found);
  return right;
}

enum { SIDE = 128 };

simple_t simple_open(int n) {
  simple_t s = {.n = n, .alpha = 1};
  MUST(cublasCreate(&s.handle));
  s.a = device_values(CUDA_R_16F, SIDE * SIDE, 1);
  s.b = device_values(CUDA_R_16F, (int64_t)SIDE * n, 2);
  s.c = device_values(CUDA_R_16F, (int64_t)SIDE * n, 3);
  return s;
}

cublasStatus_t simple_call(const simple_t *s) {
  const float zero = 0;
  return cublasGemmEx(s->handle, CUBLAS_OP_T, CUBLAS_OP_N, SIDE, s->n, SIDE, &s->alpha, s->a, CUDA_R_16F,
                      SIDE, s->b, CUDA_R_16F, SIDE, &zero, s->c, CUDA_R_16F, SIDE, CUBLAS_COMPUTE_32F,
                      CUBLAS_GEMM_DEFAULT);
}

bool simple_right(const simple_t *s) {
  int64_t elements = (int64_t)SIDE * s->n;
  void *nothing = calloc((size_t)elements, 2);
  must(nothing == NULL, "malloc");
  product_t p = {.transa = true,
                 .m = SIDE,
                 .n = s->n,
                 .k = SIDE,
                 .batch = 1,
                 .lda = SIDE,
                 .ldb = SIDE,
                 .ldc = SIDE,
                 .ldd = SIDE,
                 .a_type = CUDA_R_16F,
                 .b_type = CUDA_R_16F,
                 .c_type = CUDA_R_16F,
                 .d_type = CUDA_R_16F,
                 .a = s->a,
                 .b = s->b,
                 .c = s->c,
                 .d = s->c,
                 .alpha = s->alpha};
  bool right = is_right(&p, nothing, elements);
  free(nothing);
  return right;
}

void simple_close(simple_t *s) {
  device_free(s->a);
  device_free(s->b);
  device_free(s->c);
  MUST(cublasDestroy(s->handle));
}
