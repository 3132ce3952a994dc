/* Whether the loader will bring a preloaded library into a program. */
#ifndef GS_PROGRAM_H
#define GS_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

typedef enum {
  GS_PROGRAM_FINE,
  GS_PROGRAM_WARNS,  /* it runs, but the library will not be in it, or perhaps not */
  GS_PROGRAM_REFUSED /* to start it would mislead or fail */
} gs_program_verdict_t;

typedef struct {
  gs_program_verdict_t verdict;
  char why[PATH_MAX + 256]; /* "" when fine; says what to do */
  char executed[PATH_MAX];  /* the ELF file that really runs: a script's interpreter */
} gs_program_t;

void gs_program_check(const char *path, gs_program_t *program);

#endif
