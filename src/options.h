/* Floor 0. The options: one table (options.def), the only getenv. */
#ifndef GS_OPTIONS_H
#define GS_OPTIONS_H

#include <stdbool.h>

typedef enum {
#define GS_OPTION(name, ...) GS_OPT_##name,
#include "options.def"
#undef GS_OPTION
  GS_OPT_COUNT
} gs_option_t;

typedef struct {
  const char *name; /* "GEMMSHIM_OFF" */
  const char *initial;
  const char *help;
  bool is_text;
  long lo, hi;          /* legal range of a number */
  const char *words[2]; /* that stand for 0 and 1, where there are such */
} gs_option_info_t;

extern const gs_option_info_t gs_option_info[GS_OPT_COUNT];

/* Reads the environment. Bad values keep the default; each is said once, through gs_log_fault, by
 * gs_options_complain, which needs the log and hence comes later. */
void gs_options_read(void);
void gs_options_complain(void);

/* Whether one order of summation is wanted for every batch size: GEMMSHIM_INVARIANT, or the environment that
 * makes cuBLAS and cuBLASLt do without workspace (as batch-invariant serving sets it, often from Python, so
 * to be asked when a handle is made rather than at the start). */
bool gs_option_invariant(void);

long gs_option(gs_option_t option);
const char *gs_option_text(gs_option_t option); /* never NULL; valid for the life of the process */

/* Whether a list of numbers, as "12,20-31", holds one: 1 or 0; -1: it is no such list. */
int gs_list_holds(const char *text, long number);

#endif
