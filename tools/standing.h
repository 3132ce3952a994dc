/* How far a tuner of a fleet is: memory that it shares with the process that started it and shows the line. */
#ifndef GS_STANDING_H
#define GS_STANDING_H

#include <stdatomic.h>

typedef struct {
  atomic_int done, total, won; /* products; total 0: not known yet, or none */
  _Atomic double best;         /* largest ratio of a win */
} gs_standing_t;

/* All zero; fd is inherited by no program unless its flag is cleared. NULL, and fd -1: there is none to be had. */
gs_standing_t *gs_standing_make(int *fd);
/* That of fd; NULL: it is none. */
gs_standing_t *gs_standing_open(int fd);

#endif
