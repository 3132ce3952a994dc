/* Floor 4. What happens when the library enters and leaves a process: nothing of CUDA. */
#include <pthread.h>

#include "dispatch.h"
#include "log.h"
#include "lt.h"
#include "options.h"

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
