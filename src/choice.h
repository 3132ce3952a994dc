/* Floor 2. Which table a device gets: GEMMSHIM_TABLE, else the user's for this GPU
 * (~/.config/gemmshim/<gpu>.table), else the built-in one, else the built-in one of a sibling. The first that
 * exists is the answer, also when it must be refused: nothing is guessed at. */
#ifndef GS_CHOICE_H
#define GS_CHOICE_H

#include "device.h"
#include "gs_table.h"

typedef struct {
  gs_table_t *table; /* NULL: none fits; owned by the caller */
  bool sibling;      /* measured on another model of this architecture: no row is proven here */
  char source[256];  /* a path, or "built-in nvidia-h200"; of what was tried when table is NULL */
} gs_choice_t;

/* Whether a row of it may serve with this cuBLAS; see gs_row_proven. */
static inline bool gs_choice_proves(const gs_choice_t *choice, const gs_row_t *row, const int cublas[3]) {
  return !choice->sibling && gs_row_proven(gs_table_header(choice->table), row, cublas);
}

/* Where the user's table of a GPU lies, whether it is there or not; false without a home. */
bool gs_user_table_path(const char *gpu, char *path, size_t size);

/* GS_OK with a table; GS_NOT_FOUND where there is none for this GPU; else why it was refused (said). */
gs_status_t gs_choose_table(const gs_device_t *device, gs_say_t say, void *context, gs_choice_t *choice);

#endif
