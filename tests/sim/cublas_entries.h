/* The products of libcublas for one index type, INDEX, under the names WIDTH(name). Included twice. */

#define REQUEST(...)                                                                                         \
  ((request_t){.handle = handle,                                                                             \
               .transa = transa,                                                                             \
               .transb = transb,                                                                             \
               .m = m,                                                                                       \
               .n = n,                                                                                       \
               .k = k,                                                                                       \
               .lda = lda,                                                                                   \
               .ldb = ldb,                                                                                   \
               .ldc = ldc,                                                                                   \
               .alpha = alpha,                                                                               \
               .beta = beta,                                                                                 \
               __VA_ARGS__})

SIM_EXPORT cublasStatus_t WIDTH(cublasGemmEx)(cublasHandle_t handle, cublasOperation_t transa,
                                              cublasOperation_t transb, INDEX m, INDEX n, INDEX k,
                                              const void *alpha, const void *A, cudaDataType a_type,
                                              INDEX lda, const void *B, cudaDataType b_type, INDEX ldb,
                                              const void *beta, void *C, cudaDataType c_type, INDEX ldc,
                                              cublasComputeType_t compute, cublasGemmAlgo_t algo) {
  SIM_ENTER(handle, transa, transb, m, n, k, alpha, A, a_type, lda, B, b_type, ldb, beta, C, c_type, ldc,
            compute, algo);
  request_t r = REQUEST(.a = A, .b = B, .c = C, .a_type = a_type, .b_type = b_type, .c_type = c_type,
                        .batch = 1, .scale_type = sim_scale_type(compute));
  return run(&r);
}

SIM_EXPORT cublasStatus_t WIDTH(cublasGemmStridedBatchedEx)(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INDEX m, INDEX n, INDEX k,
    const void *alpha, const void *A, cudaDataType a_type, INDEX lda, long long stride_a, const void *B,
    cudaDataType b_type, INDEX ldb, long long stride_b, const void *beta, void *C, cudaDataType c_type,
    INDEX ldc, long long stride_c, INDEX batch, cublasComputeType_t compute, cublasGemmAlgo_t algo) {
  SIM_ENTER(handle, transa, transb, m, n, k, alpha, A, a_type, lda, stride_a, B, b_type, ldb, stride_b, beta,
            C, c_type, ldc, stride_c, batch, compute, algo);
  request_t r = REQUEST(.a = A, .b = B, .c = C, .a_type = a_type, .b_type = b_type, .c_type = c_type,
                        .stride_a = stride_a, .stride_b = stride_b, .stride_c = stride_c, .batch = batch,
                        .scale_type = sim_scale_type(compute));
  return run(&r);
}

SIM_EXPORT cublasStatus_t WIDTH(cublasGemmBatchedEx)(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INDEX m, INDEX n, INDEX k,
    const void *alpha, const void *const A[], cudaDataType a_type, INDEX lda, const void *const B[],
    cudaDataType b_type, INDEX ldb, const void *beta, void *const C[], cudaDataType c_type, INDEX ldc,
    INDEX batch, cublasComputeType_t compute, cublasGemmAlgo_t algo) {
  SIM_ENTER(handle, transa, transb, m, n, k, alpha, A, a_type, lda, B, b_type, ldb, beta, C, c_type, ldc,
            batch, compute, algo);
  request_t r = REQUEST(.a_type = a_type, .b_type = b_type, .c_type = c_type, .batch = batch,
                        .scale_type = sim_scale_type(compute));
  return run_array(&r, A, B, C);
}

SIM_EXPORT cublasStatus_t WIDTH(cublasGemmGroupedBatchedEx)(
    cublasHandle_t handle, const cublasOperation_t transa[], const cublasOperation_t transb[],
    const INDEX m[], const INDEX n[], const INDEX k[], const void *alpha, const void *const A[],
    cudaDataType_t a_type, const INDEX lda[], const void *const B[], cudaDataType_t b_type, const INDEX ldb[],
    const void *beta, void *const C[], cudaDataType_t c_type, const INDEX ldc[], INDEX groups,
    const INDEX group_size[], cublasComputeType_t compute) {
  SIM_ENTER(handle, transa, transb, m, n, k, alpha, A, a_type, lda, B, b_type, ldb, beta, C, c_type, ldc,
            groups, group_size, compute);
  int scale_type = sim_scale_type(compute);
  int64_t scalar = scale_type < 0 ? 0 : (int64_t)value_bytes((cudaDataType_t)scale_type);
  cublasStatus_t status = handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
  for (INDEX g = 0, first = 0; !status && g < groups; first += group_size[g], g++) {
    request_t r = {.handle = handle,
                   .transa = transa[g],
                   .transb = transb[g],
                   .m = m[g],
                   .n = n[g],
                   .k = k[g],
                   .lda = lda[g],
                   .ldb = ldb[g],
                   .ldc = ldc[g],
                   .alpha = (const char *)alpha + g * scalar,
                   .beta = (const char *)beta + g * scalar,
                   .a_type = a_type,
                   .b_type = b_type,
                   .c_type = c_type,
                   .batch = group_size[g],
                   .scale_type = scale_type};
    status = run_array(&r, A + first, B + first, C + first);
  }
  return status;
}

SIM_EXPORT cublasStatus_t WIDTH(cublasSgemmEx)(cublasHandle_t handle, cublasOperation_t transa,
                                               cublasOperation_t transb, INDEX m, INDEX n, INDEX k,
                                               const float *alpha, const void *A, cudaDataType a_type,
                                               INDEX lda, const void *B, cudaDataType b_type, INDEX ldb,
                                               const float *beta, void *C, cudaDataType c_type, INDEX ldc) {
  SIM_ENTER(handle, transa, transb, m, n, k, alpha, A, a_type, lda, B, b_type, ldb, beta, C, c_type, ldc);
  request_t r = REQUEST(.a = A, .b = B, .c = C, .a_type = a_type, .b_type = b_type, .c_type = c_type,
                        .batch = 1, .scale_type = CUDA_R_32F);
  return run(&r);
}

/* The three typed forms: one product, a strided batch, an array of pointers. The header declares those of
 * half for C++ only. */
#define TYPED(gemm, batched, strided, T, type)                                                               \
  SIM_EXPORT cublasStatus_t WIDTH(gemm)(                                                                     \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INDEX m, INDEX n, INDEX k,  \
      const T *alpha, const T *A, INDEX lda, const T *B, INDEX ldb, const T *beta, T *C, INDEX ldc) {        \
    SIM_ENTER(handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);                         \
    request_t r = REQUEST(.a = A, .b = B, .c = C, .a_type = type, .b_type = type, .c_type = type,            \
                          .batch = 1, .scale_type = type);                                                   \
    return run(&r);                                                                                          \
  }                                                                                                          \
  SIM_EXPORT cublasStatus_t WIDTH(strided)(                                                                  \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INDEX m, INDEX n, INDEX k,  \
      const T *alpha, const T *A, INDEX lda, long long stride_a, const T *B, INDEX ldb, long long stride_b,  \
      const T *beta, T *C, INDEX ldc, long long stride_c, INDEX batch) {                                     \
    SIM_ENTER(handle, transa, transb, m, n, k, alpha, A, lda, stride_a, B, ldb, stride_b, beta, C, ldc,      \
              stride_c, batch);                                                                              \
    request_t r = REQUEST(.a = A, .b = B, .c = C, .a_type = type, .b_type = type, .c_type = type,            \
                          .stride_a = stride_a, .stride_b = stride_b, .stride_c = stride_c, .batch = batch,  \
                          .scale_type = type);                                                               \
    return run(&r);                                                                                          \
  }                                                                                                          \
  SIM_EXPORT cublasStatus_t WIDTH(batched)(                                                                  \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INDEX m, INDEX n, INDEX k,  \
      const T *alpha, const T *const A[], INDEX lda, const T *const B[], INDEX ldb, const T *beta,           \
      T *const C[], INDEX ldc, INDEX batch) {                                                                \
    SIM_ENTER(handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, batch);                  \
    request_t r =                                                                                            \
        REQUEST(.a_type = type, .b_type = type, .c_type = type, .batch = batch, .scale_type = type);         \
    return run_array(&r, (const void *const *)A, (const void *const *)B, (void *const *)C);                  \
  }

TYPED(cublasHgemm, cublasHgemmBatched, cublasHgemmStridedBatched, uint16_t, CUDA_R_16F)
TYPED(cublasSgemm_v2, cublasSgemmBatched, cublasSgemmStridedBatched, float, CUDA_R_32F)
TYPED(cublasDgemm_v2, cublasDgemmBatched, cublasDgemmStridedBatched, double, CUDA_R_64F)

#undef TYPED
#undef REQUEST
