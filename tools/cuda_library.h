/* NVIDIA's libraries, wherever a machine has them. */
#ifndef GS_CUDA_LIBRARY_H
#define GS_CUDA_LIBRARY_H

/* Loads name.so.13, else name.so.12 ("libcublas"): from the library path, from the packages of a python3 on the PATH,
 * from CUDA_HOME (/usr/local/cuda). load is given the path, or the bare name. NULL: it is nowhere. */
void *gs_cuda_library(const char *name, void *(*load)(const char *path));

#endif
