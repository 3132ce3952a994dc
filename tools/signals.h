/* Ctrl-C and SIGTERM end a long command at the next point where nothing is lost. */
#ifndef GS_SIGNALS_H
#define GS_SIGNALS_H

#include <signal.h>

/* The signal that came in; 0: none. */
extern volatile sig_atomic_t gs_stopped;

/* From here on the first of each only sets gs_stopped; a second one ends the process. */
void gs_heed_signals(void);

#endif
