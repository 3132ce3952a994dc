#define _GNU_SOURCE
#include "signals.h"

#include <stddef.h>

volatile sig_atomic_t gs_stopped;

static void stop(int number) {
  gs_stopped = number;
}

void gs_heed_signals(void) {
  const struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESETHAND};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}
