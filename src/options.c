#define _GNU_SOURCE
#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

#define INT(lo, hi)                                                                                          \
  false, lo, hi, {                                                                                           \
    NULL                                                                                                     \
  }
#define WORDS(zero, one)                                                                                     \
  false, 0, 1, {                                                                                             \
    zero, one                                                                                                \
  }
#define TEXT                                                                                                 \
  true, 0, 0, {                                                                                              \
    NULL                                                                                                     \
  }
#define GS_OPTION(name, type, initial, help) {"GEMMSHIM_" #name, initial, help, type},
const gs_option_info_t gs_option_info[GS_OPT_COUNT] = {
#include "options.def"
};
#undef GS_OPTION

/* Apart from the rest, because calls look at numbers alone, and find the caches cold. */
static long numbers[GS_OPT_COUNT];
static struct {
  const char *text;
  const char *refused; /* what the environment said, where that was no good */
} values[GS_OPT_COUNT];

static bool number_of(const char *text, const gs_option_info_t *info, long *number) {
  char *end;
  for (int i = 0; i < 2 && info->words[i]; i++)
    if (strcmp(text, info->words[i]) == 0) return *number = i, true;
  if (info->words[0]) return false;
  errno = 0;
  *number = strtol(text, &end, 10);
  return errno == 0 && end != text && *end == '\0' && *number >= info->lo && *number <= info->hi;
}

void gs_options_read(void) {
  for (int i = 0; i < GS_OPT_COUNT; i++) {
    const gs_option_info_t *info = &gs_option_info[i];
    const char *text = secure_getenv(info->name);
    values[i].refused = NULL;
    values[i].text = text && info->is_text ? text : info->initial;
    if (!info->is_text) number_of(info->initial, info, &numbers[i]);
    if (text && *text && !info->is_text) {
      long number;
      if (number_of(text, info, &number))
        numbers[i] = number;
      else
        values[i].refused = text;
    }
  }
}

void gs_options_complain(void) {
  for (int i = 0; i < GS_OPT_COUNT; i++)
    if (values[i].refused && gs_option_info[i].words[0])
      gs_log(GS_LOG_FAULT, "%s=%.40s: neither %s nor %s; using %s", gs_option_info[i].name, values[i].refused,
             gs_option_info[i].words[0], gs_option_info[i].words[1], gs_option_info[i].initial);
    else if (values[i].refused)
      gs_log(GS_LOG_FAULT, "%s=%.40s: not a number from %ld to %ld; using %s", gs_option_info[i].name,
             values[i].refused, gs_option_info[i].lo, gs_option_info[i].hi, gs_option_info[i].initial);
}

static bool environment_is(const char *name, const char *one, const char *other) {
  const char *value = secure_getenv(name);
  return value && (strcmp(value, one) == 0 || strcmp(value, other) == 0);
}

bool gs_option_invariant(void) {
  return gs_option(GS_OPT_INVARIANT) || (environment_is("CUBLAS_WORKSPACE_CONFIG", ":16:8", ":0:0") &&
                                         environment_is("CUBLASLT_WORKSPACE_SIZE", "0", "1"));
}

int gs_list_holds(const char *text, long wanted) {
  int holds = 0;
  for (const char *at = text; *at; at += *at == ',') {
    char *end;
    long from = strtol(at, &end, 10), to = from;
    if (end == at || from < 0) return -1;
    if (*end == '-') to = strtol(end + 1, &end, 10);
    if ((*end && *end != ',') || to < from) return -1;
    holds |= wanted >= from && wanted <= to;
    at = end;
  }
  return holds;
}

long gs_option(gs_option_t option) {
  return numbers[option];
}

const char *gs_option_text(gs_option_t option) {
  return values[option].text;
}
