/* The grid of shapes.h, with tight and loose leading dimensions, several scalars, host and device pointer
 * mode. Prints "products: N" and "wrong: N". */
#include "client.h"

#include <string.h>

#include "shapes.h"

typedef struct {
  const char *layout;
  int m, n, k, slack; /* slack: what leading dimensions have more than they need */
  bool even;          /* they are multiples of 8 */
  cudaDataType_t ab, d;
  float alpha, beta;
  bool device_scalars;
} request_t;

static cudaDataType_t type_of(const char *name) {
  return !strcmp(name, "f16") ? CUDA_R_16F : !strcmp(name, "bf16") ? CUDA_R_16BF : CUDA_R_32F;
}

static void *snapshot(const void *device, size_t bytes) {
  void *host = malloc(bytes);
  must(host == NULL, "malloc");
  MUST(cuMemcpyDtoH(host, (CUdeviceptr)device, bytes));
  return host;
}

static int leading(const request_t *r, int rows) {
  return (r->even ? (rows + 7) / 8 * 8 : rows) + r->slack;
}

static bool ask(cublasHandle_t handle, const request_t *r) {
  bool ta = r->layout[0] == 't', tb = r->layout[1] == 't';
  int lda = leading(r, ta ? r->k : r->m), ldb = leading(r, tb ? r->n : r->k), ldc = leading(r, r->m);
  int64_t elements = (int64_t)ldc * r->n;
  void *a = device_values(r->ab, (int64_t)lda * (ta ? r->m : r->k), 1);
  void *b = device_values(r->ab, (int64_t)ldb * (tb ? r->k : r->n), 2);
  void *c = device_values(r->d, elements, 3);
  /* Where beta is 0 cuBLAS must not read C: NaN there must not show. */
  if (r->beta == 0 && !r->device_scalars)
    MUST(cuMemsetD8((CUdeviceptr)c, 0xff, (size_t)elements * value_bytes(r->d)));
  void *before = snapshot(c, (size_t)elements * value_bytes(r->d));
  float *scalars = device_values(CUDA_R_32F, 2, 4);
  MUST(cuMemcpyHtoD((CUdeviceptr)&scalars[0], &r->alpha, sizeof(float)));
  MUST(cuMemcpyHtoD((CUdeviceptr)&scalars[1], &r->beta, sizeof(float)));
  MUST(cublasSetPointerMode(handle,
                            r->device_scalars ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST));
  const float *alpha = r->device_scalars ? &scalars[0] : &r->alpha;
  const float *beta = r->device_scalars ? &scalars[1] : &r->beta;
  MUST(cublasGemmEx(handle, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, r->m, r->n, r->k,
                    alpha, a, r->ab, lda, b, r->ab, ldb, beta, c, r->d, ldc, CUBLAS_COMPUTE_32F,
                    CUBLAS_GEMM_DEFAULT));
  product_t p = {.transa = ta,
                 .transb = tb,
                 .m = r->m,
                 .n = r->n,
                 .k = r->k,
                 .batch = 1,
                 .lda = lda,
                 .ldb = ldb,
                 .ldc = ldc,
                 .ldd = ldc,
                 .a_type = r->ab,
                 .b_type = r->ab,
                 .c_type = r->d,
                 .d_type = r->d,
                 .a = a,
                 .b = b,
                 .c = c,
                 .d = c,
                 .alpha = (double)r->alpha,
                 .beta = (double)r->beta};
  bool right = is_right(&p, before, elements);
  if (!right)
    fprintf(stderr, "serve: %s %dx%dx%d slack %d alpha %g beta %g device scalars %d\n", r->layout, r->m, r->n,
            r->k, r->slack, (double)r->alpha, (double)r->beta, r->device_scalars);
  free(before);
  device_free(scalars);
  device_free(c);
  device_free(b);
  device_free(a);
  return right;
}

int main(void) {
  static const float scalars[][2] = {{1, 0}, {0.5f, 0}, {1, 1}, {-2, 0.25f}};
  int products = 0, wrong = 0;
  cublasHandle_t handle;
  MUST(cublasCreate(&handle));
  for (int layout = 0; layout < LENGTH(layouts); layout++)
    for (int types = 0; types < LENGTH(type_pairs); types++)
      for (int shape = 0; shape < LENGTH(shapes); shape++)
        for (int variant = 0; variant < 2 * 2 * LENGTH(scalars); variant++) {
          request_t r = {.layout = layouts[layout],
                         .m = shapes[shape].m,
                         .n = shapes[shape].n,
                         .k = shapes[shape].k,
                         .even = shapes[shape].even,
                         .slack = variant & 1 ? (shapes[shape].even ? 16 : 3) : 0,
                         .ab = type_of(type_pairs[types].ab),
                         .d = type_of(type_pairs[types].d),
                         .alpha = scalars[variant >> 2][0],
                         .beta = scalars[variant >> 2][1],
                         .device_scalars = variant & 2};
          wrong += !ask(handle, &r);
          products++;
        }
  printf("products: %d\nwrong: %d\n", products, wrong);
  return wrong != 0;
}
