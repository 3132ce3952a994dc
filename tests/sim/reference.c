#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float bf16_load(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* Double to float rounding to odd keeps what the second rounding, to bf16's 8 bits, has to know. */
static uint16_t bf16_round(double value) {
  if (isnan(value)) return 0x7fff;
  float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  if ((double)narrow != value) {
    if (fabs((double)narrow) > fabs(value)) bits--;
    bits |= 1;
  }
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static double saturate(double value, double lo, double hi) {
  return isnan(value) ? 0 : nearbyint(fmin(fmax(value, lo), hi));
}

size_t value_bytes(cudaDataType_t type) {
  switch (type) {
  case CUDA_R_8I:
    return 1;
  case CUDA_R_16F:
  case CUDA_R_16BF:
    return 2;
  case CUDA_R_32F:
  case CUDA_R_32I:
    return 4;
  case CUDA_R_64F:
    return 8;
  default:
    return 0;
  }
}

double value_load(cudaDataType_t type, const void *base, int64_t index) {
  switch (type) {
  case CUDA_R_8I:
    return ((const int8_t *)base)[index];
  case CUDA_R_16F:
    return (double)((const _Float16 *)base)[index];
  case CUDA_R_16BF:
    return bf16_load(((const uint16_t *)base)[index]);
  case CUDA_R_32F:
    return ((const float *)base)[index];
  case CUDA_R_32I:
    return ((const int32_t *)base)[index];
  case CUDA_R_64F:
    return ((const double *)base)[index];
  default:
    return NAN;
  }
}

void value_store(cudaDataType_t type, void *base, int64_t index, double value) {
  switch (type) {
  case CUDA_R_8I:
    ((int8_t *)base)[index] = (int8_t)saturate(value, -128, 127);
    break;
  case CUDA_R_16F:
    ((_Float16 *)base)[index] = (_Float16)value;
    break;
  case CUDA_R_16BF:
    ((uint16_t *)base)[index] = bf16_round(value);
    break;
  case CUDA_R_32F:
    ((float *)base)[index] = (float)value;
    break;
  case CUDA_R_32I:
    ((int32_t *)base)[index] = (int32_t)saturate(value, INT32_MIN, INT32_MAX);
    break;
  case CUDA_R_64F:
    ((double *)base)[index] = value;
    break;
  default:
    break;
  }
}

bool product_known(const product_t *p) {
  bool bias_known = !p->bias || value_bytes(p->bias_type);
  return value_bytes(p->a_type) && value_bytes(p->b_type) && value_bytes(p->c_type) &&
         value_bytes(p->d_type) && bias_known;
}

/* rows x k values, the sum's index running fastest, from a matrix whose columns are ld apart. */
static void pack(double *out, cudaDataType_t type, const void *in, int64_t rows, int64_t k, int64_t ld,
                 bool k_is_fast) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < k; i++)
      out[r * k + i] = value_load(type, in, k_is_fast ? r * ld + i : i * ld + r);
}

static double activate(int epilogue, double x) {
  switch (epilogue) {
  case GS_EPI_RELU:
  case GS_EPI_RELU_BIAS:
    return x < 0 ? 0 : x; /* NaN stays */
  case GS_EPI_GELU:
  case GS_EPI_GELU_BIAS:
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  default:
    return x;
  }
}

static double dot(const double *x, const double *y, int64_t k) {
  double sum = 0;
  for (int64_t i = 0; i < k; i++) sum += x[i] * y[i];
  return sum;
}

static const void *at(const void *base, cudaDataType_t type, int64_t index) {
  return (const char *)base + index * (int64_t)value_bytes(type);
}

/* One product of the batch; a and b are packed, and NULL where alpha is 0 or k is. */
static void finish(const product_t *p, int64_t entry, double alpha, double beta, const double *a,
                   const double *b) {
  const void *c = beta != 0 ? at(p->c, p->c_type, entry * p->stride_c) : NULL;
  const void *bias = p->bias ? at(p->bias, p->bias_type, entry * p->stride_bias) : NULL;
  void *d = (void *)(uintptr_t)at(p->d, p->d_type, entry * p->stride_d);
  for (int64_t j = 0; j < p->n; j++)
    for (int64_t i = 0; i < p->m; i++) {
      double x = a ? alpha * dot(a + i * p->k, b + j * p->k, p->k) : 0;
      if (c) x += beta * value_load(p->c_type, c, j * p->ldc + i);
      if (bias) x += value_load(p->bias_type, bias, i);
      value_store(p->d_type, d, j * p->ldd + i, activate(p->epilogue, x));
    }
}

bool product_run(const product_t *p) {
  double alpha = p->alpha_ptr ? value_load(p->scale_type, p->alpha_ptr, 0) : p->alpha;
  double beta = p->beta_ptr ? value_load(p->scale_type, p->beta_ptr, 0) : p->beta;
  bool reads = alpha != 0 && p->k > 0;
  double *a = NULL, *b = NULL;
  if (reads) {
    a = malloc((size_t)(p->m * p->k) * sizeof *a);
    b = malloc((size_t)(p->n * p->k) * sizeof *b);
  }
  bool ok = !reads || (a && b);
  for (int64_t entry = 0; ok && entry < p->batch; entry++) {
    if (reads) {
      pack(a, p->a_type, at(p->a, p->a_type, entry * p->stride_a), p->m, p->k, p->lda, p->transa);
      pack(b, p->b_type, at(p->b, p->b_type, entry * p->stride_b), p->n, p->k, p->ldb, !p->transb);
    }
    finish(p, entry, alpha, beta, a, b);
  }
  free(a);
  free(b);
  return ok;
}

product_t product_of_kernel(const gs_kernel_t *kernel, const gs_params_t *params, int64_t batch) {
  static const int cuda_type[GS_TYPE_COUNT] = {
#define X(name, text, value, bytes) [GS_TYPE_##name] = value,
      GS_TYPES(X)
#undef X
  };
  bool biased = params->epilogue == GS_EPI_BIAS || params->epilogue == GS_EPI_RELU_BIAS ||
                params->epilogue == GS_EPI_GELU_BIAS;
  cudaDataType_t ab = (cudaDataType_t)cuda_type[kernel->ab_type];
  cudaDataType_t d = (cudaDataType_t)cuda_type[kernel->d_type];
  return (product_t){
      .transa = kernel->transa != GS_OP_N,
      .transb = kernel->transb != GS_OP_N,
      .m = params->m,
      .n = params->n,
      .k = params->k,
      .batch = batch,
      .lda = params->lda,
      .ldb = params->ldb,
      .ldc = params->ldc,
      .ldd = params->ldd,
      .stride_a = params->stride_a,
      .stride_b = params->stride_b,
      .stride_c = params->stride_c,
      .stride_d = params->stride_d,
      .a_type = ab,
      .b_type = ab,
      .c_type = d,
      .d_type = d,
      .bias_type = d,
      .scale_type = CUDA_R_32F,
      .epilogue = params->epilogue,
      .a = params->a,
      .b = params->b,
      .c = params->c,
      .d = params->d,
      .bias = biased ? params->bias : NULL,
      .alpha = (double)params->alpha,
      .beta = (double)params->beta,
      .alpha_ptr = params->alpha_ptr,
      .beta_ptr = params->beta_ptr,
  };
}

void product_spoil(const product_t *p, double part, bool last_only) {
  for (int64_t z = 0; z < p->batch; z++)
    for (int64_t j = last_only ? p->n - 1 : 0; j < p->n; j++)
      for (int64_t i = last_only ? p->m - 1 : 0; i < p->m; i++) {
        int64_t at = z * p->stride_d + j * p->ldd + i;
        value_store(p->d_type, p->d, at, value_load(p->d_type, p->d, at) * (1 + part));
      }
}
