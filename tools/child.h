/* Runs other programs: found as the shell finds them, waited for, signals passed on. */
#ifndef GS_CHILD_H
#define GS_CHILD_H

#include <stdbool.h>
#include <stddef.h>

/* Finds name as execvp would (PATH, unless it holds a slash). 0, GS_EXIT_NOT_FOUND or
 * GS_EXIT_NOT_EXECUTABLE; says nothing. */
int gs_find_program(const char *name, char *path, size_t size);
/* The same, and says what is wrong and what to do. */
int gs_find_program_said(const char *name, char *path, size_t size);

typedef struct {
  const char *path;
  char **argv;
  int in, out, err; /* descriptors the program gets as 0, 1, 2; -1: those of this process */
} gs_spawn_t;

/* Runs the program to its end in this process's environment, passing SIGINT, SIGTERM, SIGHUP and SIGQUIT on
 * to it. Returns 0 with its wait status, else an errno value and nothing ran. */
int gs_spawn(const gs_spawn_t *spawn, int *status);
/* The last such signal that came in, from the first gs_spawn on; 0 = none. */
int gs_spawn_signal(void);
/* As shells say it: the program's exit status, or 128 + the signal that ended it. */
int gs_spawn_exit(int status);

/* Puts library in front of LD_PRELOAD, or takes it out again; whatever else is there stays. The loader
 * separates names by spaces and colons: false, and said, where the path holds one. */
bool gs_preload_add(const char *library);
void gs_preload_remove(const char *library);

#endif
