/* Floor 4. What happens when the library enters and leaves a process, and when others leave it: nothing of CUDA.
 */
#define _GNU_SOURCE
#define GS_DEFINES_DLCLOSE
#include <pthread.h>
#include <stdatomic.h>

#include "compat.h"
#include "dispatch.h"
#include "graphs.h"
#include "log.h"
#include "lt.h"
#include "options.h"
#include "real.h"

static void in_child(void) {
  gs_log_reopen();
  gs_dispatch_fork();
  gs_lt_fork();
}

__attribute__((constructor)) static void enter(void) {
  gs_options_read();
  gs_log_open();
  gs_options_complain();
  pthread_atfork(NULL, NULL, in_child);
}

__attribute__((destructor)) static void leave(void) {
  if (!gs_option(GS_OPT_OFF)) gs_dispatch_summary();
}

/* Callers are known by their return addresses, which another object may take over. */
__attribute__((visibility("default"))) int dlclose(void *handle) {
  static _Atomic(int (*)(void *)) next;
  int (*known)(void *) = atomic_load_explicit(&next, memory_order_acquire);
  if (!known) {
    known = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");
    if (!known) return -1;
    atomic_store_explicit(&next, known, memory_order_release);
  }
  int status = known(handle);
  gs_real_forget_callers();
  gs_graphs_unloaded();
  return status;
}
