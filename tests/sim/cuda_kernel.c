/* Stand-in libcuda: libraries, kernels, launches. A kernel is known by its id, of those shipped in any fatbin and
 * else in a cubin that has it; what it computes is the C reference, and a launch that the real kernel could not
 * survive is refused. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "reference.h"

#define SMEM_DEFAULT (48 << 10)
#define SMEM_MAX     (227 << 10)

#define FATBIN_MAGIC 0xba55ed50u

struct CUlib_st {
  const Elf64_Ehdr *cubin; /* NULL: a fatbin */
};

/* A launch takes a CUkernel as its CUfunction: both point here. */
struct CUkern_st {
  char id[GS_KERNEL_ID_MAX];
  gs_kernel_t kernel;
  bool is_compare;   /* compare_*: gs_compare_params_t of d_type */
  bool is_reference; /* ref_*: gs_params_t, int transa, int transb; D in double */
  atomic_int smem;   /* allowed, bytes */
  sim_work_t *work;  /* of a library's: see driver_kernel_of */
  int cluster;
  struct CUkern_st *next;
};

static CUkernel kernels; /* under driver_lock; one per id, kept for ever */
static _Thread_local sim_launch_t last_launch;
static _Thread_local bool launched;

_Static_assert(sizeof(gs_params_t) <= sizeof last_launch.params,
               "sim_launch_t.params must hold a gs_params_t");

SIM_EXPORT int sim_last_launch(sim_launch_t *launch) {
  *launch = last_launch;
  return launched;
}

SIM_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit,
                                      void **jit_values, unsigned jit_count, CUlibraryOption *options,
                                      void **values, unsigned count) {
  SIM_ENTER(library, code, jit, jit_values, jit_count, options, values, count);
  DRIVER_TRY(driver_ready());
  if (!code) return CUDA_ERROR_INVALID_VALUE;
  if (driver_sm() < 80 || driver_sm() > 90) return CUDA_ERROR_NO_BINARY_FOR_GPU; /* as of sm_80 and sm_90a */
  bool is_cubin = memcmp(code, ELFMAG, SELFMAG) == 0;
  if (!is_cubin && *(const unsigned *)code != FATBIN_MAGIC) return CUDA_ERROR_INVALID_IMAGE;
  CUlibrary made = calloc(1, sizeof *made);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  if (is_cubin) made->cubin = code;
  *library = made;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuLibraryUnload(CUlibrary library) {
  SIM_ENTER(library);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  free(library);
  return CUDA_SUCCESS;
}

/* "ref_f16_f32": the types of A and B, and of C and the bias. */
static bool parse_reference(const char *id, gs_kernel_t *kernel) {
  for (int ab = 0; ab < GS_TYPE_COUNT; ab++)
    for (int d = 0; d < GS_TYPE_COUNT; d++) {
      char text[GS_KERNEL_ID_MAX];
      snprintf(text, sizeof text, "ref_%s_%s", gs_type_names[ab], gs_type_names[d]);
      if (strcmp(text, id)) continue;
      *kernel = (gs_kernel_t){.ab_type = (uint8_t)ab, .d_type = (uint8_t)d};
      return true;
    }
  return false;
}

static CUkernel kernel_make(const char *id) {
  CUkernel made = calloc(1, sizeof *made);
  if (!made) return NULL;
  gs_type_t type;
  made->is_reference = parse_reference(id, &made->kernel);
  made->is_compare = driver_is_compare(id, &type);
  if (made->is_compare) made->kernel.d_type = (uint8_t)type;
  if (!made->is_reference && !made->is_compare && !gs_kernel_parse(id, &made->kernel)) {
    free(made);
    return NULL;
  }
  snprintf(made->id, sizeof made->id, "%s", id);
  atomic_store(&made->smem, SMEM_DEFAULT);
  made->next = kernels;
  return kernels = made;
}

CUkernel driver_kernel_of(sim_work_t *work, int cluster) {
  pthread_mutex_lock(&driver_lock);
  CUkernel found = kernels;
  while (found && (found->work != work || found->cluster != cluster)) found = found->next;
  if (!found && (found = calloc(1, sizeof *found))) {
    snprintf(found->id, sizeof found->id, "of a library");
    found->work = work;
    found->cluster = cluster;
    found->next = kernels;
    kernels = found;
  }
  pthread_mutex_unlock(&driver_lock);
  return found;
}

static struct {
  sim_work_t *work;
  const sim_param_t *params;
  size_t count;
} singly[16]; /* under driver_lock */

SIM_EXPORT void sim_singly(sim_work_t *work, const sim_param_t *params, size_t count) {
  size_t i = 0;
  pthread_mutex_lock(&driver_lock);
  while (singly[i].work && singly[i].work != work) i++;
  singly[i].work = work, singly[i].params = params, singly[i].count = count;
  pthread_mutex_unlock(&driver_lock);
}

size_t driver_params_of(sim_work_t *work, const sim_param_t **params) {
  size_t i = 0;
  pthread_mutex_lock(&driver_lock);
  while (singly[i].work && singly[i].work != work) i++;
  *params = singly[i].params;
  size_t count = singly[i].count;
  pthread_mutex_unlock(&driver_lock);
  return count;
}

bool driver_begins_early(sim_work_t *work) {
  const sim_param_t *params;
  return (sim_launches_by("early") || sim_launches_by("ordered")) && driver_params_of(work, &params) > 0;
}

/* Of those that a node has singly. */
SIM_EXPORT CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes) {
  SIM_ENTER(kernel, index, offset, bytes);
  const sim_param_t *params;
  if (!kernel || !offset || index >= driver_params_of(kernel->work, &params)) return CUDA_ERROR_INVALID_VALUE;
  *offset = params[index].offset;
  if (bytes) *bytes = params[index].bytes;
  return CUDA_SUCCESS;
}

/* Whether the cubin defines a function of that name. */
static bool cubin_has(const Elf64_Ehdr *cubin, const char *id) {
  const char *image = (const char *)cubin;
  const Elf64_Shdr *sections = (const void *)(image + cubin->e_shoff);
  for (int i = 0; i < cubin->e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const Elf64_Sym *symbols = (const void *)(image + sections[i].sh_offset);
    const char *names = image + sections[sections[i].sh_link].sh_offset;
    for (size_t j = 0; j < sections[i].sh_size / sizeof *symbols; j++)
      if (ELF64_ST_TYPE(symbols[j].st_info) == STT_FUNC && !strcmp(names + symbols[j].st_name, id))
        return true;
  }
  return false;
}

static bool library_has(CUlibrary library, const char *id) {
  gs_kernel_t kernel;
  if (library->cubin) return cubin_has(library->cubin, id);
  return !gs_kernel_parse(id, &kernel) || gs_shipped_find(&kernel) >= 0;
}

SIM_EXPORT CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *id) {
  SIM_ENTER(kernel, library, id);
  DRIVER_TRY(driver_ready());
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  if (!library_has(library, id)) return CUDA_ERROR_NOT_FOUND;
  pthread_mutex_lock(&driver_lock);
  CUkernel found = kernels;
  while (found && strcmp(found->id, id)) found = found->next;
  if (!found) found = kernel_make(id);
  pthread_mutex_unlock(&driver_lock);
  if (!found) return CUDA_ERROR_NOT_FOUND;
  *kernel = found;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  SIM_ENTER(function, kernel);
  DRIVER_TRY(driver_ready_with_context());
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  *function = (CUfunction)kernel;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                         CUdevice device) {
  SIM_ENTER(attribute, value, kernel, device);
  DRIVER_TRY(driver_ready());
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > SMEM_MAX)
    return CUDA_ERROR_INVALID_VALUE;
  atomic_store(&kernel->smem, value);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
                                         CUdevice device) {
  SIM_ENTER(value, attribute, kernel, device);
  DRIVER_TRY(driver_ready());
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = atomic_load(&kernel->smem);
    break;
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = kernel->is_reference ? 1024 : 32 * kernel->kernel.warps;
    break;
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    *value = 90;
    break;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: /* no spills: there is no code */
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    *value = 0;
    break;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

/* One block a multiprocessor, of 132 in lots of 16 and 18. */
SIM_EXPORT CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction function,
                                                 const CUlaunchConfig *config) {
  SIM_ENTER(count, function, config);
  if (!count || !function || !config || config->numAttrs != 1) return CUDA_ERROR_INVALID_VALUE;
  int blocks = (int)config->attrs[0].value.clusterDim.y;
  *count = blocks > 0 ? 6 * (16 / blocks) + 2 * (18 / blocks) : 0;
  return CUDA_SUCCESS;
}

typedef struct {
  product_t product;
  atomic_uint *counters; /* at the start of a split-K workspace; NULL: none */
  size_t workspace_bytes;
  sim_flaw_t flaw;
} work_t;

void driver_stop(const char *why) {
  fprintf(stderr, "stand-in libcuda: %s\n", why);
  abort();
}

/* A split-K kernel wants zeroed counters that no other kernel is using, writes all of its workspace, and
 * leaves the counters zero. */
static void use_workspace(const work_t *work) {
  if (!driver_memory_lives(work->counters, work->workspace_bytes))
    driver_stop("the split-K workspace is not memory that is there");
  for (int i = 0; i < GS_SPLIT_COUNTERS; i++)
    if (atomic_load(&work->counters[i]))
      driver_stop("the split-K counters are not zero, or are in use by another kernel");
  atomic_store(&work->counters[0], 1);
  memset(work->counters + GS_SPLIT_COUNTERS, 0xff,
         work->workspace_bytes - GS_SPLIT_COUNTERS * sizeof *work->counters);
}

/* SIM_WRONG's "before" and "behind": as far from A as no vector load of a right kernel gets. */
static void stray(const work_t *work) {
  const product_t *p = &work->product;
  int64_t columns = p->transa ? p->m : p->k, rows = p->transa ? p->k : p->m;
  int64_t last = p->stride_a * (p->batch - 1) + p->lda * (columns - 1) + rows;
  const char *a = p->a;
  if (work->flaw.strays)
    (void)*(volatile const char *)(work->flaw.strays < 0 ? a - 16 : a + last * value_bytes(p->a_type) + 16);
}

static void compute(const void *argument) {
  const work_t *work = argument;
  double begin = sim_now_us();
  stray(work);
  if (work->counters) use_workspace(work);
  if (!sim_times_only() && !product_run(&work->product)) driver_stop("out of memory");
  if (work->flaw.is_wrong) product_spoil(&work->product, work->flaw.wrong, work->flaw.last_only);
  sim_take(begin, work->flaw.us);
  if (work->counters) atomic_store(&work->counters[0], 0);
}

static bool divides(uintptr_t unit, const void *base, int64_t ld, int64_t stride, cudaDataType_t type) {
  return !(((uintptr_t)base | (uintptr_t)ld * value_bytes(type) | (uintptr_t)stride * value_bytes(type)) %
           unit);
}

/* Addresses and columns as aligned as the kernel's vector loads and stores need them. */
static bool is_aligned(const gs_kernel_t *k, const gs_params_t *params) {
  product_t p = product_of_kernel(k, params, 1);
  bool reads_ab = p.alpha != 0 || p.alpha_ptr, reads_c = p.beta != 0 || p.beta_ptr;
  return divides(k->align, p.d, 0, 0, p.d_type) && /* C and D take any ld: see gs_kernel_supports */
         (!reads_ab || (divides(k->align, p.a, p.lda, p.stride_a, p.a_type) &&
                        divides(k->align, p.b, p.ldb, p.stride_b, p.b_type))) &&
         (!reads_c || divides(k->align, p.c, 0, 0, p.c_type));
}

static gs_gemm_t gemm_of(const sim_launch_t *launch, const gs_params_t *p) {
  return (gs_gemm_t){.m = p->m, .n = p->n, .k = p->k, .batch = (int32_t)launch->grid[2]};
}

static CUresult check_launch(const struct CUkern_st *kernel, const sim_launch_t *launch,
                             const gs_params_t *p) {
  gs_gemm_t gemm = gemm_of(launch, p);
  gs_launch_t want = gs_kernel_launch(&kernel->kernel, &gemm, p->split_k, driver_sm());
  if (memcmp(want.grid, launch->grid, sizeof want.grid) || want.smem != launch->smem)
    return CUDA_ERROR_INVALID_VALUE;
  if (want.cluster > 1 ? launch->cluster != want.cluster : launch->cluster > 1)
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  if (want.block != launch->block[0] || launch->block[1] != 1 || launch->block[2] != 1)
    return CUDA_ERROR_INVALID_VALUE;
  if (p->split_k < 1 || p->raster < 1) return CUDA_ERROR_INVALID_VALUE;
  if (!gs_kernel_workspace(&kernel->kernel, &gemm, p->split_k, driver_sm()) != !p->workspace)
    return CUDA_ERROR_INVALID_VALUE;
  return is_aligned(&kernel->kernel, p) ? CUDA_SUCCESS : CUDA_ERROR_MISALIGNED_ADDRESS;
}

/* Only where nobody sees its node, and where there is such a thing. */
static CUresult check_early(CUstream handle) {
  CUstream stream;
  DRIVER_TRY(driver_stream(handle, &stream));
  return driver_sm() >= 90 && !atomic_load(&stream->capture) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult launch_kernel(struct CUkern_st *kernel, const sim_launch_t *launch, CUstream stream,
                              void **args) {
  const gs_params_t *p = args[0];
  gs_kernel_t k = kernel->kernel;
  if (launch->smem > (unsigned)atomic_load(&kernel->smem)) return CUDA_ERROR_INVALID_VALUE;
  if (launch->early) DRIVER_TRY(check_early(stream));
  if (kernel->is_reference) {
    k.transa = *(const int *)args[1] ? GS_OP_T : GS_OP_N;
    k.transb = *(const int *)args[2] ? GS_OP_T : GS_OP_N;
  } else {
    DRIVER_TRY(check_launch(kernel, launch, p));
  }
  if (sim_nocompute()) return CUDA_SUCCESS;
  work_t work = {.product = product_of_kernel(&k, p, launch->grid[2]), .flaw = sim_flaw(kernel->id)};
  if (kernel->is_reference) {
    work.product.d_type = CUDA_R_64F;
  } else {
    gs_gemm_t gemm = gemm_of(launch, p);
    work.workspace_bytes = gs_kernel_workspace(&k, &gemm, p->split_k, driver_sm());
    if (work.workspace_bytes) work.counters = p->workspace;
  }
  return product_known(&work.product) ? sim_enqueue(stream, (int)launch->cluster, compute, &work, sizeof work)
                                      : CUDA_ERROR_INVALID_VALUE;
}

/* A library's kernel, launched as its node says it was. */
static CUresult launch_work(CUkernel kernel, const sim_launch_t *launch, void **extra) {
  const sim_param_t *singly;
  size_t count = driver_params_of(kernel->work, &singly);
  bool same = launch->early == driver_begins_early(kernel->work) && launch->block[0] == SIM_LIBRARY_BLOCK &&
              launch->smem == SIM_LIBRARY_SMEM(kernel->cluster) &&
              launch->cluster == (unsigned)kernel->cluster &&
              launch->grid[1] == (launch->cluster ? launch->cluster : 1);
  if (!same || !extra || extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER ||
      extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE || extra[4] != CU_LAUNCH_PARAM_END)
    return CUDA_ERROR_INVALID_VALUE;
  size_t bytes = *(const size_t *)extra[3];
  if (count && bytes != singly[count - 1].offset + singly[count - 1].bytes) return CUDA_ERROR_INVALID_VALUE;
  return sim_enqueue(launch->stream, kernel->cluster, kernel->work, extra[1], bytes);
}

static CUresult enter_launch(CUfunction function, sim_launch_t launch, void **params, void **extra) {
  DRIVER_TRY(driver_ready_with_context());
  struct CUkern_st *kernel = (struct CUkern_st *)function;
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  if (kernel->work && !params) return launch_work(kernel, &launch, extra);
  if (!params || extra) return CUDA_ERROR_INVALID_VALUE;
  if (kernel->is_compare) return driver_compare((gs_type_t)kernel->kernel.d_type, &launch, params[0]);
  last_launch = launch;
  memcpy(last_launch.id, kernel->id, sizeof kernel->id);
  memcpy(last_launch.params, params[0], sizeof(gs_params_t));
  launched = true;
  return launch_kernel(kernel, &last_launch, launch.stream, params);
}

SIM_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned smem,
                                   CUstream stream, void **params, void **extra) {
  SIM_ENTER(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, smem, stream, params, extra);
  sim_launch_t launch = {
      .grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}, .smem = smem, .stream = stream};
  return enter_launch(function, launch, params, extra);
}

/* The only attributes that are known here are a cluster along y, and that the kernel begins early. */
SIM_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                                     void **extra) {
  SIM_ENTER(config, function, params, extra);
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  sim_launch_t launch = {.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                         .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                         .smem = config->sharedMemBytes,
                         .stream = config->hStream};
  for (unsigned i = 0; i < config->numAttrs; i++) {
    const CUlaunchAttribute *attribute = &config->attrs[i];
    if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
      launch.early = attribute->value.programmaticStreamSerializationAllowed;
      continue;
    }
    if (attribute->id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) return CUDA_ERROR_NOT_SUPPORTED;
    if (attribute->value.clusterDim.x != 1 || attribute->value.clusterDim.z != 1)
      return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    launch.cluster = attribute->value.clusterDim.y;
    if (!launch.cluster || launch.grid[1] % launch.cluster) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  return enter_launch(function, launch, params, extra);
}
