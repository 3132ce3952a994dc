/* Kernels that are not shipped lie beside the table that names them (gs_table.h): this puts them there. */
#ifndef GS_BESIDE_H
#define GS_BESIDE_H

#include "gs_table.h"

/* Writes the row's cubin into the folder of the table at path, unless it is there; true also where the row needs
 * none. Says why not. */
bool gs_beside_put(const char *path, const gs_row_t *row);

#endif
