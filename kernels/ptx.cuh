/* The instructions that C has no word for. Only plain types, no CUDA header: NVRTC takes it too. */
#ifndef GS_PTX_CUH
#define GS_PTX_CUH

#define GS_DEVICE static __device__ __forceinline__
#define GS_ASSERT static_assert

extern __shared__ __align__(1024) char gs_shared[];

GS_DEVICE unsigned gs_shared_address(void) {
  return (unsigned)__cvta_generic_to_shared(gs_shared);
}

/* --- values --- */
GS_DEVICE float gs_float(unsigned bits) {
  return __uint_as_float(bits);
}
GS_DEVICE unsigned gs_bits(float v) {
  return __float_as_uint(v);
}

/* The lower halves of x and y, x first, and the upper ones: one instruction, where C makes it two. */
GS_DEVICE unsigned gs_low_halves(unsigned x, unsigned y) {
  return __byte_perm(x, y, 0x5410);
}
GS_DEVICE unsigned gs_high_halves(unsigned x, unsigned y) {
  return __byte_perm(x, y, 0x7632);
}

GS_DEVICE float gs_widen_f16(unsigned bits) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"((unsigned short)bits));
  return v;
}

GS_DEVICE unsigned gs_narrow2_f16(float lo, float hi) {
  unsigned v;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(hi), "f"(lo));
  return v;
}

GS_DEVICE unsigned gs_narrow2_bf16(float lo, float hi) {
  unsigned v;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(hi), "f"(lo));
  return v;
}

GS_DEVICE float gs_exp2(float x) {
  float v;
  asm("ex2.approx.f32 %0, %1;" : "=f"(v) : "f"(x));
  return v;
}

GS_DEVICE float gs_divide(float x, float y) {
  float v;
  asm("div.approx.f32 %0, %1, %2;" : "=f"(v) : "f"(x), "f"(y));
  return v;
}

/* v, but what follows from it is not computed ahead of here, and not kept. */
GS_DEVICE int gs_opaque(int v) {
  asm volatile("" : "+r"(v));
  return v;
}

/* x / d for x below 2^21, in a third of an integer division's time: x + 0.5 is at least 0.5 / d away from any
 * multiple of d, which is more than the two roundings can move it. */
GS_DEVICE unsigned gs_quotient(unsigned x, unsigned d) {
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"((float)d));
  return (unsigned)(((float)x + 0.5f) * reciprocal);
}

/* --- global memory --- */
GS_DEVICE unsigned gs_load_b16(const void *at) {
  unsigned short v;
  asm volatile("ld.global.b16 %0, [%1];" : "=h"(v) : "l"(at));
  return v;
}

GS_DEVICE unsigned gs_load_b32(const void *at) {
  unsigned v;
  asm volatile("ld.global.b32 %0, [%1];" : "=r"(v) : "l"(at));
  return v;
}

GS_DEVICE void gs_load_b64(const void *at, unsigned v[2]) {
  asm volatile("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(v[0]), "=r"(v[1]) : "l"(at));
}

GS_DEVICE void gs_load_b128(const void *at, unsigned v[4]) {
  asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "l"(at));
}

/* Past the first-level cache: what other blocks wrote while this one ran. */
GS_DEVICE void gs_load_b128_fresh(const void *at, unsigned v[4]) {
  asm volatile("ld.global.cg.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "l"(at)
               : "memory");
}

/* What is read once, and written by nobody while the kernel runs: not kept in the first-level cache. */
GS_DEVICE unsigned gs_once_b16(const void *at) {
  unsigned short v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.b16 %0, [%1];" : "=h"(v) : "l"(at));
  return v;
}

GS_DEVICE unsigned gs_once_b32(const void *at) {
  unsigned v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.b32 %0, [%1];" : "=r"(v) : "l"(at));
  return v;
}

GS_DEVICE void gs_once_b64(const void *at, unsigned v[2]) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v2.b32 {%0, %1}, [%2];"
               : "=r"(v[0]), "=r"(v[1])
               : "l"(at));
}

GS_DEVICE void gs_once_b128(const void *at, unsigned v[4]) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "l"(at));
}

/* What other blocks read too, and nobody writes. */
GS_DEVICE void gs_near_b128(const void *at, unsigned v[4]) {
  asm volatile("ld.global.nc.L2::128B.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "l"(at));
}

GS_DEVICE void gs_store_b16(void *at, unsigned v) {
  asm volatile("st.global.b16 [%0], %1;" ::"l"(at), "h"((unsigned short)v) : "memory");
}

GS_DEVICE void gs_store_b32(void *at, unsigned v) {
  asm volatile("st.global.b32 [%0], %1;" ::"l"(at), "r"(v) : "memory");
}

GS_DEVICE void gs_store_b64(void *at, const unsigned v[2]) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(at), "r"(v[0]), "r"(v[1]) : "memory");
}

GS_DEVICE void gs_store_b128(void *at, const unsigned v[4]) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(v[0]), "r"(v[1]), "r"(v[2]),
               "r"(v[3])
               : "memory");
}

/* --- shared memory, by its 32-bit address --- */
GS_DEVICE void gs_shared_store_f32(unsigned to, float v) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(v) : "memory");
}

GS_DEVICE void gs_shared_store_b64(unsigned to, float x, float y) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x), "f"(y) : "memory");
}

GS_DEVICE void gs_shared_store_b128(unsigned to, const unsigned v[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v[0]), "r"(v[1]), "r"(v[2]),
               "r"(v[3])
               : "memory");
}

GS_DEVICE float gs_shared_load_f32(unsigned from) {
  float v;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(from) : "memory");
  return v;
}

GS_DEVICE void gs_shared_load_f32x2(unsigned from, float v[2]) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v[0]), "=f"(v[1]) : "r"(from) : "memory");
}

GS_DEVICE void gs_shared_load_f32x4(unsigned from, float v[4]) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
               : "r"(from)
               : "memory");
}

/* 16 bytes from global to shared memory in the background, or nothing; both addresses 16-byte aligned. (A branch instead of
 * the predicate would take the addresses' arithmetic along, once for every copy.) */
GS_DEVICE void gs_copy16_if(int wanted, unsigned to, const void *from) {
  asm volatile("{\n"
               ".reg .pred wanted;\n"
               "setp.ne.s32 wanted, %2, 0;\n"
               "@wanted cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n"
               "}" ::"r"(to),
               "l"(from), "r"(wanted)
               : "memory");
}

/* The first bytes of 16 only (0 to 16), the rest filled with zeros. */
GS_DEVICE void gs_copy_part(unsigned to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}

GS_DEVICE void gs_copy_commit(void) {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until all but the newest `pending` groups have landed. A constant. */
#define gs_copy_wait(pending) asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

/* --- tensor cores --- */
/* Four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8. */
GS_DEVICE void gs_ldmatrix(unsigned from, unsigned v[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "r"(from)
               : "memory");
}

GS_DEVICE void gs_ldmatrix_trans(unsigned from, unsigned v[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "r"(from)
               : "memory");
}

/* acc (16 x 8) += rows (16 x 16) * columns (16 x 8), accumulated in fp32. */
GS_DEVICE void gs_mma_f16(float acc[4], const unsigned rows[4], const unsigned columns[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(columns[0]), "r"(columns[1]));
}

GS_DEVICE void gs_mma_bf16(float acc[4], const unsigned rows[4], const unsigned columns[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(columns[0]), "r"(columns[1]));
}

/* --- threads --- */
GS_DEVICE void gs_sync(void) {
  __syncthreads();
}
GS_DEVICE int gs_sync_or(int flag) {
  return __syncthreads_or(flag);
}
GS_DEVICE void gs_sync_warp(void) {
  __syncwarp();
}

/* What the lane has whose number differs in these bits. */
GS_DEVICE unsigned gs_swap_lanes(unsigned v, int bits) {
  return __shfl_xor_sync(0xffffffffu, v, bits);
}

/* An 8 x 8 matrix of 16-bit elements, of which lane l has two of row l / 4, turned: then it has two of column l / 4. */
GS_DEVICE unsigned gs_transpose(unsigned v) {
  unsigned turned;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(v));
  return turned;
}

/* Counter++ that orders: what this thread has seen written, others' stores before a gs_sync too, is seen by
 * whoever reads a later count. */
GS_DEVICE unsigned gs_count_up(unsigned *counter) {
  unsigned old;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(old) : "l"(counter) : "memory");
  return old;
}

/* --- sm_90 and up --- */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define GS_CLUSTERS 1
#else
#define GS_CLUSTERS 0
#endif
/* A kernel may begin before the one ahead of it on its stream has ended (src/launch.c). From here on it has; ahead of this
 * nothing of global memory is read or written. */
GS_DEVICE void gs_await_stream(void) {
#if GS_CLUSTERS
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* --- clusters of blocks along y --- */
#if GS_CLUSTERS
/* This block in its cluster, and its cluster in the grid. */
GS_DEVICE unsigned gs_cluster_rank(void) {
  unsigned v;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(v));
  return v;
}

GS_DEVICE unsigned gs_cluster_y(void) {
  unsigned v;
  asm("mov.u32 %0, %%clusterid.y;" : "=r"(v));
  return v;
}

/* To the same place of another block's shared memory. */
GS_DEVICE unsigned gs_remote(unsigned to, unsigned rank) {
  unsigned v;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(v) : "r"(to), "r"(rank));
  return v;
}

/* A landing is 8 bytes of shared memory that count the bytes still to come from the blocks of the cluster. One
 * thread opens it, before it arrives at the cluster's barrier; others send after they have waited there. What
 * was sent is there once gs_landing_wait returns: no fence, and no barrier of the whole cluster, is needed. */
/* mine: this thread opens it. (No branch: behind one that threads take apart, ptxas keeps no loop counter and no
 * address in uniform registers, which makes the main loop half as long again. The warp meets on behalf of racecheck, which
 * takes the predicated arrival for one of all lanes.) */
GS_DEVICE void gs_landing_open(unsigned landing, unsigned bytes, int mine) {
  asm volatile("{\n\t"
               ".reg .pred mine;\n\t"
               "setp.ne.s32 mine, %2, 0;\n\t"
               "@mine mbarrier.init.shared::cta.b64 [%0], 1;\n\t"
               "@mine fence.mbarrier_init.release.cluster;\n\t"
               "bar.warp.sync 0xffffffff;\n\t"
               "@mine mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n\t"
               "}" ::"r"(landing),
               "r"(bytes), "r"(mine)
               : "memory");
}

GS_DEVICE void gs_landing_wait(unsigned landing) {
  asm volatile("{\n\t"
               ".reg .pred landed;\n"
               "again:\n\t"
               "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 landed, [%0], 0;\n\t"
               "@!landed bra again;\n\t"
               "}" ::"r"(landing)
               : "memory");
}

GS_DEVICE void gs_send_f32x2(unsigned to, unsigned landing, unsigned rank, const float v[2]) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%2, %3}, [%1];" ::"r"(
          gs_remote(to, rank)),
      "r"(gs_remote(landing, rank)), "f"(v[0]), "f"(v[1])
      : "memory");
}

GS_DEVICE void gs_send_f32x4(unsigned to, unsigned landing, unsigned rank, const float v[4]) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, [%1];" ::"r"(
          gs_remote(to, rank)),
      "r"(gs_remote(landing, rank)), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3])
      : "memory");
}

/* All threads of the cluster arrive, then wait: everyone has begun, and opened its landing. */
GS_DEVICE void gs_cluster_arrive(void) {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
GS_DEVICE void gs_cluster_wait(void) {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
#endif

#endif
