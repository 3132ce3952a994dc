/* Stand-in libcuda: memory, which is the host's; each piece belongs to the context that it was made in. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

/* In front of what the program gets, and as far from it as its alignment wants. */
typedef struct memory {
  struct memory *previous, *next;
  unsigned long long context;
  size_t bytes;
} memory_t;
enum { ALIGNMENT = 256 };

static memory_t all = {.previous = &all, .next = &all}; /* under driver_lock */
static atomic_ullong own_bytes, *used_bytes = &own_bytes, pieces;

/* SIM_MEMORY_SHARED: all processes that name this file have one device's memory between them. */
__attribute__((constructor)) static void share(void) {
  const char *path = getenv("SIM_MEMORY_SHARED");
  int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  void *memory = fd >= 0 && !ftruncate(fd, sizeof *used_bytes)
                     ? mmap(NULL, sizeof *used_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                     : MAP_FAILED;
  if (memory != MAP_FAILED) used_bytes = memory;
  if (fd >= 0) close(fd);
}

static unsigned long long total_bytes(void) {
  const char *text = getenv("SIM_MEMORY_MB");
  return (text ? strtoull(text, NULL, 10) : 64ull << 10) << 20;
}

static bool take(size_t bytes) {
  unsigned long long used = atomic_load(used_bytes);
  do {
    if (used + bytes > total_bytes()) return false;
  } while (!atomic_compare_exchange_weak(used_bytes, &used, used + bytes));
  return true;
}

__attribute__((destructor)) static void give_back(void) {
  for (memory_t *head = all.next; head != &all; head = head->next) atomic_fetch_sub(used_bytes, head->bytes);
}

static memory_t *head_of(CUdeviceptr pointer) {
  return (memory_t *)(pointer - ALIGNMENT);
}

static void take_out(memory_t *head) {
  head->previous->next = head->next;
  head->next->previous = head->previous;
  atomic_fetch_sub(used_bytes, head->bytes);
  atomic_fetch_sub(&pieces, 1);
}

bool driver_memory_lives(const void *pointer, size_t bytes) {
  bool found = false;
  pthread_mutex_lock(&driver_lock);
  for (memory_t *head = all.next; head != &all && !found; head = head->next) {
    const char *begin = (const char *)head + ALIGNMENT;
    found = (const char *)pointer >= begin && (const char *)pointer + bytes <= begin + head->bytes;
  }
  pthread_mutex_unlock(&driver_lock);
  return found;
}

void driver_memory_drop(unsigned long long context) {
  pthread_mutex_lock(&driver_lock);
  for (memory_t *head = all.next, *next; head != &all; head = next) {
    next = head->next;
    if (head->context != context) continue;
    take_out(head);
    free(head);
  }
  pthread_mutex_unlock(&driver_lock);
}

uint64_t driver_memory_pieces(void) {
  return atomic_load(&pieces);
}

/* New memory is all ones, NaN in every floating type, so that reading what was never written shows. */
SIM_EXPORT CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes) {
  SIM_ENTER(pointer, bytes);
  DRIVER_TRY(driver_ready_with_context());
  DRIVER_TRY(driver_unsafe());
  void *memory;
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  if (!take(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (posix_memalign(&memory, ALIGNMENT, bytes + ALIGNMENT)) {
    atomic_fetch_sub(used_bytes, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  memory_t *head = memory;
  *pointer = (CUdeviceptr)memory + ALIGNMENT;
  memset((void *)*pointer, 0xff, bytes);
  pthread_mutex_lock(&driver_lock);
  *head = (memory_t){.previous = &all, .next = all.next, .context = driver_current->id, .bytes = bytes};
  all.next->previous = head;
  all.next = head;
  atomic_fetch_add(&pieces, 1);
  pthread_mutex_unlock(&driver_lock);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemFree(CUdeviceptr pointer) {
  SIM_ENTER(pointer);
  DRIVER_TRY(driver_ready_with_context());
  DRIVER_TRY(driver_unsafe());
  if (!driver_memory_lives((void *)pointer, 1)) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&driver_lock);
  take_out(head_of(pointer));
  pthread_mutex_unlock(&driver_lock);
  free(head_of(pointer));
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemGetInfo(size_t *free_bytes, size_t *total) {
  SIM_ENTER(free_bytes, total);
  DRIVER_TRY(driver_ready_with_context());
  *total = total_bytes();
  *free_bytes = *total - atomic_load(used_bytes);
  return CUDA_SUCCESS;
}

/* Memory apart from its addresses, in pieces of MAPPING. */
enum { MAPPING = 64 << 10 };

SIM_EXPORT CUresult cuMemGetAllocationGranularity(size_t *unit, const CUmemAllocationProp *properties,
                                                  CUmemAllocationGranularity_flags option) {
  SIM_ENTER(unit, properties, option);
  DRIVER_TRY(driver_ready());
  *unit = MAPPING;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                                        CUdeviceptr wish, unsigned long long flags) {
  SIM_ENTER(address, bytes, alignment, wish, flags);
  DRIVER_TRY(driver_ready());
  if (!bytes || bytes % MAPPING) return CUDA_ERROR_INVALID_VALUE;
  void *found = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *address = (CUdeviceptr)found;
  return found == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  SIM_ENTER(address, bytes);
  DRIVER_TRY(driver_ready());
  return munmap((void *)address, bytes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* The handle is the size, which counts as used until the memory is unmapped: nobody here maps memory twice. */
SIM_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *memory, size_t bytes,
                                const CUmemAllocationProp *properties, unsigned long long flags) {
  SIM_ENTER(memory, bytes, properties, flags);
  DRIVER_TRY(driver_ready_with_context());
  if (!bytes || bytes % MAPPING) return CUDA_ERROR_INVALID_VALUE;
  if (!take(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = bytes;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle memory) {
  SIM_ENTER(memory);
  DRIVER_TRY(driver_ready());
  return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_EXPORT CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                             CUmemGenericAllocationHandle memory, unsigned long long flags) {
  SIM_ENTER(address, bytes, offset, memory, flags);
  DRIVER_TRY(driver_ready());
  return address && offset + bytes <= memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                                   size_t count) {
  SIM_ENTER(address, bytes, access, count);
  DRIVER_TRY(driver_ready());
  if (mprotect((void *)address, bytes, PROT_READ | PROT_WRITE)) return CUDA_ERROR_INVALID_VALUE;
  memset((void *)address, 0xff, bytes);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  SIM_ENTER(address, bytes);
  DRIVER_TRY(driver_ready());
  void *found =
      mmap((void *)address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  atomic_fetch_sub(used_bytes, bytes);
  return found == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult copy(void *to, const void *from, size_t bytes) {
  DRIVER_TRY(driver_ready_with_context());
  DRIVER_TRY(driver_unsafe());
  memcpy(to, from, bytes);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
  SIM_ENTER(to, from, bytes);
  return copy((void *)to, from, bytes);
}

SIM_EXPORT CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
  SIM_ENTER(to, from, bytes);
  return copy(to, (const void *)from, bytes);
}

SIM_EXPORT CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  SIM_ENTER(to, from, bytes);
  return copy((void *)to, (const void *)from, bytes);
}

SIM_EXPORT CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  SIM_ENTER(to, value, count);
  DRIVER_TRY(driver_ready_with_context());
  DRIVER_TRY(driver_unsafe());
  memset((void *)to, value, count);
  return CUDA_SUCCESS;
}

/* Host memory is host memory. */
SIM_EXPORT CUresult cuMemHostRegister(void *memory, size_t bytes, unsigned flags) {
  SIM_ENTER(memory, bytes, flags);
  DRIVER_TRY(driver_ready_with_context());
  return driver_unsafe();
}

typedef struct {
  void *to;
  const void *from;
  size_t bytes;
} copy_t;

static void run_copy(const void *argument) {
  const copy_t *c = argument;
  memcpy(c->to, c->from, c->bytes);
}

SIM_EXPORT CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  SIM_ENTER(to, from, bytes, stream);
  copy_t c = {.to = to, .from = (const void *)from, .bytes = bytes};
  return sim_enqueue(stream, SIM_NOT_A_KERNEL, run_copy, &c, sizeof c);
}

SIM_EXPORT CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  SIM_ENTER(to, from, bytes, stream);
  copy_t c = {.to = (void *)to, .from = (const void *)from, .bytes = bytes};
  return sim_enqueue(stream, SIM_NOT_A_KERNEL, run_copy, &c, sizeof c);
}

void driver_fill(const void *argument) {
  const driver_fill_t *f = argument;
  memset(f->to, f->value, f->count);
}

SIM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  SIM_ENTER(to, value, count, stream);
  driver_fill_t f = {.to = (void *)to, .value = value, .count = count};
  return sim_enqueue(stream, SIM_NOT_A_KERNEL, driver_fill, &f, sizeof f);
}
