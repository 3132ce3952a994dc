/* The instructions of a warpgroup (four warps), sm_90a only: products of operands that lie in shared memory. */
#ifndef GS_WGMMA_PTX_CUH
#define GS_WGMMA_PTX_CUH

/* The instruction's columns: what a warpgroup has of the tile's m. */
#define GS_COLUMNS (GS_BM / (GS_WARPS * 16 / GS_BN))

#ifdef GS_EMULATE
#define gs_keep(v)                               (void)(v)
#define gs_wgmma(type, d, a, b, add, a_mn, b_mn) gs_emulated_wgmma(type, d, GS_COLUMNS, a, b, add, a_mn, b_mn)
#else
/* What this thread wrote to shared memory, background copies that it has waited for too, is seen by wgmma of whoever
 * meets it at a barrier afterwards. */
GS_DEVICE void gs_fence_async(void) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

GS_DEVICE void gs_wgmma_fence(void) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
GS_DEVICE void gs_wgmma_commit(void) {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/* Waits until all but the newest `pending` groups are done. A constant. */
#define gs_wgmma_wait(pending) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory")

#define GS_PLACES_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define GS_PLACES_32                                                                                         \
  GS_PLACES_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GS_PLACES_64                                                                                         \
  GS_PLACES_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"            \
               ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GS_PLACES_128                                                                                        \
  GS_PLACES_64                                                                                               \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"                         \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"                         \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"             \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define GS_SUMS_4(i)   "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define GS_SUMS_16(i)  GS_SUMS_4(i), GS_SUMS_4(i + 4), GS_SUMS_4(i + 8), GS_SUMS_4(i + 12)
#define GS_SUMS_32(i)  GS_SUMS_16(i), GS_SUMS_16(i + 16)
#define GS_SUMS_64(i)  GS_SUMS_32(i), GS_SUMS_32(i + 32)
#define GS_SUMS_128(i) GS_SUMS_64(i), GS_SUMS_64(i + 64)

/* The register list, and the places of what follows it. */
#if GS_COLUMNS == 64
#define GS_WGMMA(type, ta, tb) GS_WGMMA_(64, GS_PLACES_32, GS_SUMS_32(0), "%32", "%33", "%34", type, ta, tb)
#elif GS_COLUMNS == 128
#define GS_WGMMA(type, ta, tb) GS_WGMMA_(128, GS_PLACES_64, GS_SUMS_64(0), "%64", "%65", "%66", type, ta, tb)
#else
#define GS_WGMMA(type, ta, tb)                                                                               \
  GS_WGMMA_(256, GS_PLACES_128, GS_SUMS_128(0), "%128", "%129", "%130", type, ta, tb)
#endif
#define GS_WGMMA_(columns, places, sums, at_a, at_b, at_add, type, ta, tb)                                   \
  asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.s32 add, " at_add ", 0;\n\t"                                 \
               "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." #type "." #type " {" places           \
               "}, " at_a ", " at_b ", add, 1, 1, " #ta ", " #tb ";\n\t}"                                    \
               : sums                                                                                        \
               : "l"(a), "l"(b), "r"(add))

/* By where memory runs along the rows, the columns, not along k: constants of the instruction. */
#define GS_WGMMA_ALONG(type, a_mn, b_mn)                                                                     \
  if (a_mn && b_mn)                                                                                          \
    GS_WGMMA(type, 1, 1);                                                                                    \
  else if (a_mn)                                                                                             \
    GS_WGMMA(type, 1, 0);                                                                                    \
  else if (b_mn)                                                                                             \
    GS_WGMMA(type, 0, 1);                                                                                    \
  else                                                                                                       \
    GS_WGMMA(type, 0, 0)

/* d (64 rows x GS_COLUMNS, this thread's share) = a (64 x 16) b (16 x GS_COLUMNS), by their descriptors; add: += instead.
 * a_mn, b_mn: memory runs along the rows, the columns. */
GS_DEVICE void gs_wgmma(int type, float *d, unsigned long long a, unsigned long long b, int add, int a_mn,
                        int b_mn) {
  if (type == GS_E_BF16) {
    GS_WGMMA_ALONG(bf16, a_mn, b_mn);
  } else {
    GS_WGMMA_ALONG(f16, a_mn, b_mn);
  }
}

/* What is computed from v comes after here. */
#define gs_keep(v) asm volatile("" : "+f"(v)::"memory")
#endif

#endif
