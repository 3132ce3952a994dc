/* Floor 2. Which table a device gets: GEMMSHIM_TABLE, else the user's for this GPU
 * (~/.config/gemmshim/<gpu>.table), else the built-in one. The first that exists is the answer, also when
 * it must be refused: nothing is guessed at. */
#ifndef GS_CHOICE_H
#define GS_CHOICE_H

#include "device.h"
#include "gs_table.h"

typedef struct {
  gs_table_t *table; /* NULL: none fits; owned by the caller */
  char source[256];  /* a path, or "built-in nvidia-h200"; of what was tried when table is NULL */
} gs_choice_t;

/* GS_OK with a table; GS_NOT_FOUND where there is none for this GPU; else why it was refused (said). */
gs_status_t gs_choose_table(const gs_device_t *device, gs_say_t say, void *context, gs_choice_t *choice);

#endif
