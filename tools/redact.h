/* Text that may leave the machine: without the names of host and user, and of paths the last part only. */
#ifndef GS_REDACT_H
#define GS_REDACT_H

#include <stdio.h>

typedef struct {
  char host[256], short_host[256], user[256]; /* "" where there is nothing to hide */
} gs_names_t;

/* This machine's and this user's. */
void gs_names_read(gs_names_t *names);
/* Writes text: whole words that are one of the names become HOST or USER, "/a/b/c" becomes ".../c". */
void gs_redact(FILE *file, const gs_names_t *names, const char *text);

#endif
