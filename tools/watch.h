/* Where the time of tune and bench goes. */
#ifndef GS_WATCH_H
#define GS_WATCH_H

#include <stddef.h>

/* prepare: operands, the heuristic, the cost model; search: the library's own lists; record: first calls and graphs;
 * heats: who is worth proving; a clock: the last comparison on it; write: table and journal */
#define GS_PHASES(X)                                                                                         \
  X(PREPARE, "prepare")                                                                                      \
  X(SEARCH, "library search")                                                                                \
  X(RECORD, "record")                                                                                        \
  X(HEATS, "heats")                                                                                          \
  X(GPU, "gpu clock")                                                                                        \
  X(WALL, "wall clock")                                                                                      \
  X(SERVER, "server clock")                                                                                  \
  X(GATE, "gate")                                                                                            \
  X(WRITE, "write")
#define X(name, text) GS_PHASE_##name,
typedef enum { GS_PHASES(X) GS_PHASE_COUNT } gs_phase_t;
#undef X
extern const char *const gs_phase_names[GS_PHASE_COUNT];

typedef struct {
  double seconds[GS_PHASE_COUNT];
  double since; /* 0: stopped */
  gs_phase_t phase;
} gs_watch_t;

/* From now on time is this phase's; returns the one before. The first call starts the watch. */
gs_phase_t gs_watch(gs_watch_t *watch, gs_phase_t phase);
void gs_watch_stop(gs_watch_t *watch);
/* Adds the seconds of a watch that was stopped. */
void gs_watch_add(gs_watch_t *sum, const gs_watch_t *watch);
/* "prepare 1.2, record 3.4": those that took a tenth of a second and more; as snprintf. */
int gs_watch_text(char *buffer, size_t size, const gs_watch_t *watch);

#endif
