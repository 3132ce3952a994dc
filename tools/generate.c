/* Ids to cubins: what NVRTC is given, and the judgement of what it made; see generate.h. */
#define _GNU_SOURCE
#include "generate.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "rtc.h"

/* --- the sources, put into .rodata by the assembler: the families' own first, in the order of gs_family_t --- */
#define SOURCES(X)                                                                                           \
  X(mma, "kernels/mma.cu")                                                                                   \
  X(direct, "kernels/direct.cu")                                                                             \
  X(wgmma, "kernels/wgmma.cu")                                                                               \
  X(rows, "kernels/rows.cu")                                                                                 \
  X(strip, "kernels/strip.cu")                                                                               \
  X(gemm_mma, "kernels/gemm_mma.cuh")                                                                        \
  X(mma_tile, "kernels/mma_tile.cuh")                                                                        \
  X(mma_loader, "kernels/mma_loader.cuh")                                                                    \
  X(mma_finish, "kernels/mma_finish.cuh")                                                                    \
  X(mma_multiply, "kernels/mma_multiply.cuh")                                                                \
  X(wgmma_multiply, "kernels/wgmma_multiply.cuh")                                                            \
  X(wgmma_ptx, "kernels/wgmma_ptx.cuh")                                                                      \
  X(gemm_strip, "kernels/gemm_strip.cuh")                                                                    \
  X(gemm_rows, "kernels/gemm_rows.cuh")                                                                      \
  X(gemm_direct, "kernels/gemm_direct.cuh")                                                                  \
  X(direct_tile, "kernels/direct_tile.cuh")                                                                  \
  X(direct_finish, "kernels/direct_finish.cuh")                                                              \
  X(common, "kernels/common.cuh")                                                                            \
  X(ptx, "kernels/ptx.cuh")                                                                                  \
  X(tiles, "kernels/tiles.h")                                                                                \
  X(gs_kernel, "include/gs_kernel.h")

#define X(name, path)                                                                                        \
  __asm__(".pushsection .rodata\n.globl gs_source_" #name "\n.hidden gs_source_" #name "\ngs_source_" #name  \
          ":\n.incbin \"" path "\"\n.byte 0\n.popsection\n");                                                \
  extern const char gs_source_##name[] __attribute__((visibility("hidden")));
SOURCES(X)
#undef X

static const char *const source_texts[] = {
#define X(name, path) gs_source_##name,
    SOURCES(X)
#undef X
};
static const char *const source_paths[] = {
#define X(name, path) path,
    SOURCES(X)
#undef X
};

enum { SOURCE_COUNT = sizeof source_texts / sizeof *source_texts, OPTIONS_MAX = 12, REGISTERS_MAX = 255 };

static const struct arch {
  int sm;
  const char *name;
  unsigned smem; /* bytes that a block may ask for */
} archs[] = {{80, "sm_80", 163 << 10}, {90, "sm_90a", 227 << 10}};

/* --- what NVRTC is given --- */
typedef struct {
  const char *text; /* the family's */
  bool by_fma;      /* as in gs_source_t */
  char instances[160];
  char option_texts[OPTIONS_MAX][80];
  const char *options[OPTIONS_MAX];
  int option_count;
  char file[GS_KERNEL_ID_MAX + 48]; /* its name in the cache */
} request_t;

__attribute__((format(printf, 2, 3))) static void add_option(request_t *r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(r->option_texts[r->option_count], sizeof *r->option_texts, format, args);
  va_end(args);
  r->options[r->option_count] = r->option_texts[r->option_count];
  r->option_count++;
}

static uint64_t hash_text(uint64_t hash, const char *text) {
  return gs_fnv1a(hash, text, strlen(text) + 1);
}

static uint64_t request_hash(const request_t *r, const char *id, const int version[2]) {
  uint64_t hash = hash_text(hash_text(GS_FNV_BEGIN, GS_VERSION ", sums checked"), id);
  hash = hash_text(gs_fnv1a(hash, version, 2 * sizeof *version), r->instances);
  for (int i = 0; i < r->option_count; i++) hash = hash_text(hash, r->options[i]);
  for (int i = 0; i < SOURCE_COUNT; i++) hash = hash_text(hash, source_texts[i]);
  return hash;
}

static void upper(char *to, const char *text) {
  do *to++ = (char)toupper((unsigned char)*text);
  while (*text++);
}

/* What of its tile a block computes at once. */
static int columns_at_once(const gs_kernel_t *k) {
  return k->family == GS_FAMILY_STRIP ? GS_STRIP_BN : k->bn;
}

/* The constants are those that rules.mk hands to nvcc; instances.h is replaced by a list of the one instance. */
static void request_make(request_t *r, const char *id, const gs_kernel_t *k, const struct arch *arch,
                         const int version[2]) {
  const char *ab = gs_type_names[k->ab_type], *d = gs_type_names[k->d_type], *tile = id;
  char upper_ab[8], upper_d[8];
  for (int part = 0; part < 4; part++) tile = strchr(tile, '_') + 1;
  upper(upper_ab, ab), upper(upper_d, d);
  *r = (request_t){.text = source_texts[k->family], .by_fma = k->family == GS_FAMILY_ROWS};
  snprintf(r->instances, sizeof r->instances, "#define GS_INSTANCES(X) X(%s, %s, %s, %s, %s, %s, %d, %d)\n",
           ab, d, upper_ab, upper_d, gs_op_names[k->transa], gs_op_names[k->transb], k->transa == GS_OP_T,
           k->transb == GS_OP_T);
  add_option(r, "--gpu-architecture=%s", arch->name);
  add_option(r, "--std=c++17");
  add_option(r, "--ptxas-options=-v");
  add_option(r, "-DGS_TILE=%s", tile);
  add_option(r, "-DGS_BM=%d", k->bm);
  add_option(r, "-DGS_BN=%d", columns_at_once(k));
  if (k->family == GS_FAMILY_STRIP) add_option(r, "-DGS_SLICES=%d", k->bn / GS_STRIP_BN);
  add_option(r, "-DGS_BK=%d", k->bk);
  add_option(r, "-DGS_STAGES=%d", k->stages);
  add_option(r, "-DGS_WARPS=%d", k->warps);
  add_option(r, "-DGS_ALIGN=%d", k->align);
  add_option(r, "-DGS_SWAP=%d", k->swap);
  snprintf(r->file, sizeof r->file, "%s-%s-%016llx.cubin", id, arch->name,
           (unsigned long long)request_hash(r, id, version));
}

static gs_status_t compile(const request_t *r, gs_cubin_t *cubin) {
  const char *texts[SOURCE_COUNT + 1] = {r->instances}, *names[SOURCE_COUNT + 1] = {"instances.h"};
  for (int i = 0; i < SOURCE_COUNT; i++)
    texts[i + 1] = source_texts[i], names[i + 1] = strrchr(source_paths[i], '/') + 1;
  return gs_nvrtc_compile(&(gs_source_t){.text = r->text,
                                         .headers = texts,
                                         .header_names = names,
                                         .header_count = SOURCE_COUNT + 1,
                                         .by_fma = r->by_fma,
                                         .options = r->options,
                                         .option_count = r->option_count},
                          cubin);
}

static gs_status_t find_or_compile(const request_t *r, uint64_t cache_bytes, gs_cubin_t *cubin) {
  if (gs_cache_read(r->file, cubin)) return GS_OK;
  gs_status_t status = compile(r, cubin);
  if (status == GS_OK) gs_cache_write(r->file, cubin, cache_bytes);
  return status;
}

/* --- judgement --- */
/* fp32 accumulators of a thread: warps share the tile, or strip's slice of it, those of direct share k; a lane of rows has 8
 * rows at most. */
static int accumulators(const gs_kernel_t *k) {
  if (k->family == GS_FAMILY_ROWS) return GS_ROWS_OF(1, k->transa == GS_OP_T) * k->bn;
  return k->bm * columns_at_once(k) / (k->family == GS_FAMILY_DIRECT ? 32 : k->warps * 32);
}

static gs_status_t judge_before(const gs_kernel_t *k, const struct arch *arch, gs_cubin_t *cubin) {
  const gs_gemm_t one = {.m = 1, .n = 1, .k = 1, .batch = 1};
  if (!gs_kernel_runs_on(k, arch->sm))
    return gs_cubin_refuse(cubin, GS_UNSUPPORTED, "kernels of this family do not run on %s", arch->name);
  cubin->smem = gs_kernel_launch(k, &one, gs_kernel_split_max(k, arch->sm) > 1 ? 2 : 1, arch->sm).smem;
  if (cubin->smem > arch->smem)
    return gs_cubin_refuse(
        cubin, GS_UNSUPPORTED,
        "%u bytes of shared memory, but %s grants a block %u: fewer stages or a smaller tile", cubin->smem,
        arch->name, arch->smem);
  if (accumulators(k) > REGISTERS_MAX)
    return gs_cubin_refuse(cubin, GS_UNSUPPORTED,
                           "%d accumulators a thread, but it has %d registers: a smaller tile, or more warps",
                           accumulators(k), REGISTERS_MAX);
  return GS_OK;
}

static gs_status_t judge_after(gs_cubin_t *cubin) {
  const gs_cubin_needs_t *needs = &cubin->needs;
  if (!needs->stack && !needs->spill_stores && !needs->spill_loads) return GS_OK;
  return gs_cubin_refuse(
      cubin, GS_UNSUPPORTED,
      "it spills: %d registers, %d bytes of stack, %d of spill stores, %d of spill loads a thread: "
      "a smaller tile, fewer stages or more warps",
      needs->registers, needs->stack, needs->spill_stores, needs->spill_loads);
}

static const struct arch *arch_of(int sm) {
  for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
    if (archs[i].sm == sm) return &archs[i];
  return NULL;
}

bool gs_generate_fits(const gs_kernel_t *kernel, int sm) {
  gs_cubin_t cubin = {0};
  const struct arch *arch = arch_of(sm);
  return arch && judge_before(kernel, arch, &cubin) == GS_OK;
}

gs_status_t gs_generate_ready(char *why, size_t size) {
  int version[2];
  gs_cache_look();
  return gs_nvrtc_open(version, why, size);
}

gs_status_t gs_generate(const char *id, int sm, uint64_t cache_bytes, gs_cubin_t *cubin) {
  gs_kernel_t kernel;
  request_t request;
  int version[2];
  const struct arch *arch = arch_of(sm);
  *cubin = (gs_cubin_t){0};
  if (!arch) return gs_cubin_refuse(cubin, GS_UNSUPPORTED, "sm %d: kernels are made for 80 and 90", sm);
  if (!gs_kernel_parse(id, &kernel))
    return gs_cubin_refuse(cubin, GS_SYNTAX,
                           "not the id of a kernel: see the ids that `gemmshim kernels` lists");
  gs_status_t status = judge_before(&kernel, arch, cubin);
  if (status != GS_OK) return status;
  status = gs_nvrtc_open(version, cubin->why, sizeof cubin->why);
  if (status != GS_OK) return status;
  request_make(&request, id, &kernel, arch, version);
  status = find_or_compile(&request, cache_bytes, cubin);
  return status == GS_OK ? judge_after(cubin) : status;
}

gs_status_t gs_cubin_refuse(gs_cubin_t *cubin, gs_status_t status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(cubin->why, sizeof cubin->why, format, args);
  va_end(args);
  gs_cubin_free(cubin);
  return status;
}

void gs_cubin_free(gs_cubin_t *cubin) {
  free(cubin->image);
  cubin->image = NULL;
  cubin->size = 0;
}
