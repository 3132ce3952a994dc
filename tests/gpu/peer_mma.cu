// Two peers for `gemmshim verify --peer` on a GPU: the same plain product by mma.sync, its sums kept in fp32, as
// it must be, or in fp16 (PEER_HALF), which the gate has to notice. A warp computes 16 x 8 of C.
#include <cstdint>

struct Sums {
#ifdef PEER_HALF
  uint32_t pair[2] = {}; // two halves each: rows g and g + 8
  __device__ void add(const uint32_t a[4], const uint32_t b[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
                 : "+r"(pair[0]), "+r"(pair[1])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  __device__ uint32_t row(int half) const {
    return pair[half];
  }
#else
  float sum[4] = {};
  __device__ void add(const uint32_t a[4], const uint32_t b[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  __device__ uint32_t row(int half) const {
    uint32_t both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(sum[2 * half + 1]), "f"(sum[2 * half]));
    return both;
  }
#endif
};

// Pairs of halves: all three matrices have an even number of columns.
__global__ void product(const uint32_t *a, const uint32_t *b_t, uint32_t *c, int n, int k) {
  int lane = threadIdx.x, g = lane / 4, t = lane % 4;
  long m0 = 16L * blockIdx.y, n0 = 8L * (blockIdx.x * blockDim.y + threadIdx.y);
  const uint32_t *upper = a + (m0 + g) * k / 2 + t, *lower = upper + 8L * k / 2;
  const uint32_t *column = b_t + (n0 + g) * k / 2 + t;
  Sums sums;
  for (int at = 0; at < k / 2; at += 8) {
    uint32_t rows[4] = {upper[at], lower[at], upper[at + 4], lower[at + 4]};
    uint32_t columns[2] = {column[at], column[at + 4]};
    sums.add(rows, columns);
  }
  for (int half = 0; half < 2; half++) c[((m0 + g + 8 * half) * n + n0) / 2 + t] = sums.row(half);
}

extern "C" int gemm_peer(const void *a, const void *, const void *b_t, void *c, int m, int n, int k) {
  if (m % 16 || n % 64 || k % 16) return 1;
  product<<<dim3(n / 64, m / 16), dim3(32, 8)>>>((const uint32_t *)a, (const uint32_t *)b_t, (uint32_t *)c, n,
                                                 k);
  return cudaGetLastError() != cudaSuccess;
}
