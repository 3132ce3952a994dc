/* What this machine has, asked without creating a CUDA context. */
#ifndef GS_MACHINE_H
#define GS_MACHINE_H

#include <stdbool.h>

/* libcuda.so.1's CUDA version as 1000 * major + 10 * minor; 0 when there is no driver library. */
int gs_machine_driver(void);
/* The CUDA version of the toolkit that made the built-in kernels, in the same form. */
int gs_machine_toolkit(void);
/* Kernels load in every driver of their toolkit's major version or a newer one. */
bool gs_machine_driver_fits(int driver);
/* cuInit's answer as text, NULL when it went well: then devices can be asked about. */
const char *gs_machine_init(void);

#define GS_GLIBC_MAJOR 2
#define GS_GLIBC_MINOR 28
bool gs_machine_glibc_fits(void);

#endif
