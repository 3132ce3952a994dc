#include "handle.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "enqueue.h"
#include "record.h"

/* From the stand-in driver, found as cuBLAS finds the real one. */
static struct {
  CUresult (*init)(unsigned);
  CUresult (*current)(CUcontext *);
  CUresult (*set_current)(CUcontext);
  CUresult (*retain)(CUcontext *, CUdevice);
  sim_enqueue_t *enqueue;
  sim_take_t *take;
  sim_singly_t *singly;
  CUresult (*clear)(CUdeviceptr, unsigned char, size_t, CUstream);
} driver;

typedef struct {
  product_t product;
  sim_flaw_t flaw;
  void *workspace;
  size_t bytes;
  uint64_t secret; /* SIM_LAUNCH=secret */
  uint32_t tail;   /* SIM_LAUNCH=tail; the parameters end with it, in the middle of a word */
} job_t;

/* Their parameters where they are given singly: the product's first two bytes, then, behind padding, the rest of it. */
#define PLACE(member)                                                                                        \
  { offsetof(job_t, member), sizeof(((job_t *)0)->member) }
static const sim_param_t job_params[] = {
    {0, 2},       {offsetof(product_t, m), sizeof(product_t) - offsetof(product_t, m)},
    PLACE(flaw),  PLACE(workspace),
    PLACE(bytes), PLACE(secret),
    PLACE(tail),
};
#undef PLACE

__attribute__((noreturn)) static void stop(const char *why) {
  fprintf(stderr, "stand-in libcublasLt: %s\n", why);
  abort();
}

/* Who finds a count of another's would leave out tiles. */
static void count_in(atomic_uint *counter) {
  if (atomic_exchange(counter, 132)) stop("a kernel's counter is not zero");
}

static void nothing(const void *argument) {
  (void)argument;
}

static void compute(const void *argument) {
  const job_t *job = argument;
  double begin = sim_now_us();
  if (job->bytes == SIM_COUNTER_BYTES)
    count_in(job->workspace);
  else if (job->bytes)
    memset(job->workspace, 0xff, job->bytes);
  if (!sim_times_only() && !product_run(&job->product)) abort(); /* out of memory in a test */
  if (job->flaw.is_wrong) product_spoil(&job->product, job->flaw.wrong, job->flaw.last_only);
  driver.take(begin, job->flaw.us);
}

/* The second kernel of a split: rounds the sums that the first one left in workspace, once. */
static void round_sums(const void *argument) {
  const job_t *job = argument;
  const product_t *p = &job->product;
  double *sum = job->workspace;
  if (sim_times_only()) return;
  for (int64_t z = 0; z < p->batch; z++)
    for (int64_t j = 0; j < p->n; j++)
      for (int64_t i = 0; i < p->m; i++, *sum++ = NAN) {
        if (isnan(*sum)) stop("the sums of a split are not there");
        value_store(p->d_type, p->d, z * p->stride_d + j * p->ldd + i, *sum);
      }
}

static bool driver_found;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

static void driver_find(void) {
  void *handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (!handle) return;
  driver.init = (CUresult(*)(unsigned))dlsym(handle, "cuInit");
  driver.current = (CUresult(*)(CUcontext *))dlsym(handle, "cuCtxGetCurrent");
  driver.set_current = (CUresult(*)(CUcontext))dlsym(handle, "cuCtxSetCurrent");
  driver.retain = (CUresult(*)(CUcontext *, CUdevice))dlsym(handle, "cuDevicePrimaryCtxRetain");
  driver.enqueue = (sim_enqueue_t *)dlsym(handle, "sim_enqueue");
  driver.take = (sim_take_t *)dlsym(handle, "sim_take");
  driver.singly = (sim_singly_t *)dlsym(handle, "sim_singly");
  driver.clear = (CUresult(*)(CUdeviceptr, unsigned char, size_t, CUstream))dlsym(handle, "cuMemsetD8Async");
  driver_found = driver.clear && driver.take && driver.singly && driver.init && driver.current &&
                 driver.set_current && driver.retain && driver.enqueue;
  if (!driver_found) return;
  driver.singly(round_sums, job_params, sizeof job_params / sizeof *job_params);
  if (sim_launches_by("singly")) driver.singly(compute, job_params, sizeof job_params / sizeof *job_params);
}

static bool driver_ready(void) {
  pthread_once(&driver_once, driver_find);
  return driver_found;
}

struct cublasContext *sim_handle_create(void) {
  CUcontext context;
  if (!driver_ready() || driver.init(0) != CUDA_SUCCESS) return NULL;
  if (driver.current(&context) != CUDA_SUCCESS) return NULL;
  if (!context && (driver.retain(&context, 0) != CUDA_SUCCESS || driver.set_current(context) != CUDA_SUCCESS))
    return NULL;
  struct cublasContext *handle = calloc(1, sizeof *handle);
  if (handle) handle->atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  return handle;
}

static int cluster = 4; /* of its kernels, in blocks, as on an H200 */

__attribute__((constructor)) static void read_cluster(void) {
  const char *text = getenv("SIM_CLUSTER");
  if (text) cluster = atoi(text);
}

/* Of the last kernel, which usually has as many. */
static int last_cluster(const job_t *job, int usually) {
  return sim_launches_by("aligned") && (uintptr_t)job->product.a % (2 << 20) == 0 ? 2 : usually;
}

/* D in double precision, in a workspace that has room for twice as much and more; then what makes D of it. */
static CUresult enqueue_split(CUstream stream, const job_t *job, size_t job_bytes) {
  job_t first = *job;
  product_t *p = &first.product;
  p->d = job->workspace, p->d_type = CUDA_R_64F, p->ldd = p->m, p->stride_d = p->m * p->n;
  first.secret = first.tail = 0;
  CUresult result = driver.enqueue(stream, cluster, compute, &first, job_bytes);
  return result == CUDA_SUCCESS ? driver.enqueue(stream, last_cluster(job, 0), round_sums, job, job_bytes)
                                : result;
}

/* One kernel, and so many more that do nothing. */
static CUresult enqueue_all(CUstream stream, const job_t *job, size_t job_bytes, int more) {
  CUresult result = driver.enqueue(stream, last_cluster(job, cluster), compute, job, job_bytes);
  for (int i = 0; i < more && result == CUDA_SUCCESS; i++)
    result = driver.enqueue(stream, cluster, nothing, job, job_bytes);
  return result;
}

cublasStatus_t sim_product(CUstream stream, const product_t *product, const char *name, void *workspace,
                           size_t bytes) {
  if (sim_nocompute()) return CUBLAS_STATUS_SUCCESS;
  if (!product_known(product)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!driver_ready()) return CUBLAS_STATUS_NOT_INITIALIZED;
  sim_flaw_t flaw = sim_flaw(name);
  sim_wait(sim_now_us() + flaw.host_us);
  job_t job;
  memset(&job, 0, sizeof job); /* padding too: a launch is learnt from its bytes */
  job.product = *product, job.flaw = flaw, job.workspace = workspace, job.bytes = bytes;
  if (sim_launches_by("secret"))
    job.secret = (uint64_t)(uintptr_t)product->a ^ (uint64_t)(uintptr_t)product->b;
  if (sim_launches_by("tail")) job.tail = (uint32_t)((uintptr_t)product->a >> 4);
  const size_t job_bytes = offsetof(job_t, tail) + sizeof job.tail;
  if (bytes == SIM_COUNTER_BYTES) driver.clear((CUdeviceptr)workspace, 0, bytes, stream);
  CUresult result =
      sim_launches_by("split") && bytes
          ? enqueue_split(stream, &job, job_bytes)
          : enqueue_all(stream, &job, job_bytes, 2 * sim_launches_by("thrice") + sim_launches_by("apart"));
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

void sim_version(int version[3]) {
  version[0] = SIM_MAJOR;
  version[1] = SIM_MAJOR == 12 ? 8 : 1;
  version[2] = 0;
  const char *text = getenv("SIM_CUBLAS_VERSION");
  if (text) sscanf(text, "%d.%d.%d", &version[0], &version[1], &version[2]);
}

static const struct {
  cublasStatus_t status;
  const char *name, *text;
} statuses[] = {
#define STATUS(status, text)                                                                                 \
  { status, #status, text }
    STATUS(CUBLAS_STATUS_SUCCESS, "success"),
    STATUS(CUBLAS_STATUS_NOT_INITIALIZED, "the library was not initialized"),
    STATUS(CUBLAS_STATUS_ALLOC_FAILED, "the resource allocation failed"),
    STATUS(CUBLAS_STATUS_INVALID_VALUE, "an unsupported value or parameter was passed to the function"),
    STATUS(CUBLAS_STATUS_ARCH_MISMATCH, "the device lacks a needed feature"),
    STATUS(CUBLAS_STATUS_MAPPING_ERROR, "an access to GPU memory space failed"),
    STATUS(CUBLAS_STATUS_EXECUTION_FAILED, "the function failed to launch on the GPU"),
    STATUS(CUBLAS_STATUS_INTERNAL_ERROR, "an internal operation failed"),
    STATUS(CUBLAS_STATUS_NOT_SUPPORTED, "the functionality requested is not supported"),
    STATUS(CUBLAS_STATUS_LICENSE_ERROR, "the license could not be checked"),
#undef STATUS
};

const char *sim_status_name(cublasStatus_t status) {
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
    if (statuses[i].status == status) return statuses[i].name;
  return "CUBLAS_STATUS_UNKNOWN";
}

const char *sim_status_text(cublasStatus_t status) {
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
    if (statuses[i].status == status) return statuses[i].text;
  return "unknown error";
}

int sim_scale_type(cublasComputeType_t compute) {
  switch (compute) {
  case CUBLAS_COMPUTE_16F:
  case CUBLAS_COMPUTE_16F_PEDANTIC:
    return CUDA_R_16F;
  case CUBLAS_COMPUTE_32F:
  case CUBLAS_COMPUTE_32F_PEDANTIC:
  case CUBLAS_COMPUTE_32F_FAST_16F:
  case CUBLAS_COMPUTE_32F_FAST_16BF:
  case CUBLAS_COMPUTE_32F_FAST_TF32:
  case 78: /* CUBLAS_COMPUTE_32F_EMULATED_16BFX9, which older headers lack */
    return CUDA_R_32F;
  case CUBLAS_COMPUTE_64F:
  case CUBLAS_COMPUTE_64F_PEDANTIC:
    return CUDA_R_64F;
  case CUBLAS_COMPUTE_32I:
  case CUBLAS_COMPUTE_32I_PEDANTIC:
    return CUDA_R_32I;
  default:
    return -1;
  }
}
