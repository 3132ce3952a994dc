/* A small transformer-like stack, as any CUDA program would write it: cublasGemmEx, strided batches for the
 * attention heads, cublasLtMatmul with a bias, one single-precision product. Every result is checked against
 * double precision. Prints "demo: N products, worst relative error E"; exits 1 when one is wrong. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>

enum { LAYERS = 2, TOKENS = 48, HIDDEN = 128, HEADS = 4, HEAD = HIDDEN / HEADS, INNER = 512, WORDS = 256 };

#define F16_ERROR 5e-4 /* half an ulp of fp16 is 4.9e-4 at worst, 2.8e-4 over many elements */
#define F32_ERROR 1e-5

static cublasHandle_t handle;
static cublasLtHandle_t lt_handle;
static int products;
static double worst;
static bool wrong;

static void must(int status, const char *what) {
  if (status == 0) return;
  fprintf(stderr, "demo: %s failed with status %d\n", what, status);
  exit(1);
}
#define MUST(call) must((int)(call), #call)

/* Column-major; count matrices, stride elements apart. */
typedef struct {
  void *data; /* device memory */
  int rows, cols, ld, count;
  long long stride;
  bool is_float;
} matrix_t;

static double load(const matrix_t *m, const void *host, int entry, int row, int col) {
  long long at = entry * m->stride + (long long)col * m->ld + row;
  return m->is_float ? (double)((const float *)host)[at] : (double)((const _Float16 *)host)[at];
}

static size_t bytes_of(const matrix_t *m) {
  size_t elements =
      (size_t)((m->count - 1) * m->stride) + (size_t)(m->cols - 1) * (size_t)m->ld + (size_t)m->rows;
  return elements * (m->is_float ? 4 : 2);
}

static double uniform(void) {
  static uint64_t state = 42;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(state >> 40) / (1 << 23) - 1;
}

static matrix_t matrix(int rows, int cols, bool is_float, double scale) {
  matrix_t m = {.rows = rows, .cols = cols, .ld = rows, .count = 1, .is_float = is_float};
  CUdeviceptr device;
  void *host = malloc(bytes_of(&m));
  must(host == NULL, "malloc");
  for (int i = 0; i < rows * cols; i++) {
    if (is_float)
      ((float *)host)[i] = (float)(scale * uniform());
    else
      ((_Float16 *)host)[i] = (_Float16)(scale * uniform());
  }
  MUST(cuMemAlloc(&device, bytes_of(&m)));
  MUST(cuMemcpyHtoD(device, host, bytes_of(&m)));
  free(host);
  m.data = (void *)device;
  return m;
}

/* The heads are rows of one matrix. */
static matrix_t heads_of(const matrix_t *m, int first_row, int rows) {
  matrix_t heads = *m;
  heads.data = (char *)m->data + (size_t)first_row * 2;
  heads.rows = rows;
  heads.count = HEADS;
  heads.stride = rows;
  return heads;
}

static void *fetch(const matrix_t *m) {
  void *host = malloc(bytes_of(m));
  must(host == NULL, "malloc");
  MUST(cuMemcpyDtoH(host, (CUdeviceptr)m->data, bytes_of(m)));
  return host;
}

/* d = alpha op(a) b + bias, in double precision, against what the GPU wrote. */
static void check(const char *what, bool transa, double alpha, const matrix_t *a, const matrix_t *b,
                  const matrix_t *bias, const matrix_t *d) {
  void *ha = fetch(a), *hb = fetch(b), *hd = fetch(d), *hbias = bias ? fetch(bias) : NULL;
  int k = transa ? a->rows : a->cols;
  double error2 = 0, norm2 = 0;
  for (int e = 0; e < d->count; e++)
    for (int j = 0; j < d->cols; j++)
      for (int i = 0; i < d->rows; i++) {
        double sum = 0;
        for (int l = 0; l < k; l++)
          sum += (transa ? load(a, ha, e, l, i) : load(a, ha, e, i, l)) * load(b, hb, e, l, j);
        double expected = alpha * sum + (bias ? load(bias, hbias, 0, i, 0) : 0);
        double off = load(d, hd, e, i, j) - expected;
        error2 += off * off;
        norm2 += expected * expected;
      }
  double error = sqrt(error2 / norm2);
  if (!(error <= (d->is_float ? F32_ERROR : F16_ERROR))) {
    fprintf(stderr, "demo: %s: relative error %.2e\n", what, error);
    wrong = true;
  }
  if (!(error <= worst)) worst = error;
  products++;
  free(ha);
  free(hb);
  free(hd);
  free(hbias);
}

static void linear(const char *what, bool transa, const matrix_t *w, const matrix_t *x, const matrix_t *y) {
  const float one = 1, zero = 0;
  MUST(cublasGemmEx(handle, transa ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, y->rows, y->cols, x->rows, &one,
                    w->data, CUDA_R_16F, w->ld, x->data, CUDA_R_16F, x->ld, &zero, y->data, CUDA_R_16F, y->ld,
                    CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  check(what, transa, 1, w, x, NULL, y);
}

static void batched(const char *what, bool transa, float alpha, const matrix_t *a, const matrix_t *b,
                    const matrix_t *d) {
  const float zero = 0;
  MUST(cublasGemmStridedBatchedEx(handle, transa ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, d->rows, d->cols,
                                  b->rows, &alpha, a->data, CUDA_R_16F, a->ld, a->stride, b->data, CUDA_R_16F,
                                  b->ld, b->stride, &zero, d->data, CUDA_R_16F, d->ld, d->stride, d->count,
                                  CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  check(what, transa, (double)alpha, a, b, NULL, d);
}

static void biased(const char *what, const matrix_t *w, const matrix_t *x, const matrix_t *bias,
                   const matrix_t *y) {
  const float one = 1, zero = 0;
  const cublasOperation_t transa = CUBLAS_OP_T;
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t lw, lx, ly;
  MUST(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  MUST(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transa, sizeof transa));
  MUST(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
  MUST(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias->data,
                                      sizeof bias->data));
  MUST(cublasLtMatrixLayoutCreate(&lw, CUDA_R_16F, (uint64_t)w->rows, (uint64_t)w->cols, w->ld));
  MUST(cublasLtMatrixLayoutCreate(&lx, CUDA_R_16F, (uint64_t)x->rows, (uint64_t)x->cols, x->ld));
  MUST(cublasLtMatrixLayoutCreate(&ly, CUDA_R_16F, (uint64_t)y->rows, (uint64_t)y->cols, y->ld));
  MUST(cublasLtMatmul(lt_handle, operation, &one, w->data, lw, x->data, lx, &zero, y->data, ly, y->data, ly,
                      NULL, NULL, 0, NULL));
  check(what, true, 1, w, x, bias, y);
  MUST(cublasLtMatrixLayoutDestroy(ly));
  MUST(cublasLtMatrixLayoutDestroy(lx));
  MUST(cublasLtMatrixLayoutDestroy(lw));
  MUST(cublasLtMatmulDescDestroy(operation));
}

/* Attention without its softmax, then the two linear layers; x becomes the next layer's input. */
static matrix_t layer(const matrix_t *x) {
  const double scale = sqrt(3.0 / HIDDEN);
  matrix_t w_qkv = matrix(HIDDEN, 3 * HIDDEN, false, scale), qkv = matrix(3 * HIDDEN, TOKENS, false, 0);
  matrix_t scores = matrix(TOKENS, TOKENS * HEADS, false, 0), mixed = matrix(HIDDEN, TOKENS, false, 0);
  matrix_t w_out = matrix(HIDDEN, HIDDEN, false, scale), out = matrix(HIDDEN, TOKENS, false, 0);
  matrix_t w_up = matrix(HIDDEN, INNER, false, scale), up = matrix(INNER, TOKENS, false, 0);
  matrix_t bias = matrix(INNER, 1, false, 0.5), down = matrix(HIDDEN, TOKENS, false, 0);
  matrix_t w_down = matrix(HIDDEN, INNER, false, sqrt(3.0 / INNER));

  linear("query, key, value", true, &w_qkv, x, &qkv);
  matrix_t q = heads_of(&qkv, 0, HEAD), k = heads_of(&qkv, HIDDEN, HEAD),
           v = heads_of(&qkv, 2 * HIDDEN, HEAD);
  matrix_t s = scores, o = heads_of(&mixed, 0, HEAD);
  s.cols = TOKENS;
  s.count = HEADS;
  s.stride = TOKENS * TOKENS;
  batched("scores", true, 1 / sqrtf(HEAD), &k, &q, &s);
  batched("mixed values", false, 1, &v, &s, &o);
  linear("attention output", true, &w_out, &mixed, &out);
  biased("up", &w_up, &out, &bias, &up);
  linear("down", false, &w_down, &up, &down);
  return down;
}

int main(void) {
  const float one = 1, zero = 0;
  MUST(cublasCreate(&handle));
  MUST(cublasLtCreate(&lt_handle));
  matrix_t x = matrix(HIDDEN, TOKENS, false, 1);
  for (int i = 0; i < LAYERS; i++) x = layer(&x);
  matrix_t w = matrix(WORDS, HIDDEN, true, 1), y = matrix(HIDDEN, TOKENS, true, 1);
  matrix_t logits = matrix(WORDS, TOKENS, true, 0);
  MUST(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, WORDS, TOKENS, HIDDEN, &one, w.data, w.ld, y.data, y.ld,
                   &zero, logits.data, logits.ld));
  check("logits", false, 1, &w, &y, NULL, &logits);
  MUST(cublasLtDestroy(lt_handle));
  MUST(cublasDestroy(handle));
  printf("demo: %d products, worst relative error %.1e\n", products, worst);
  return wrong;
}
