/* See redact.h. */
#define _GNU_SOURCE
#include "redact.h"

#include <ctype.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void gs_names_read(gs_names_t *names) {
  const struct passwd *user = getpwuid(getuid());
  *names = (gs_names_t){"", "", ""};
  gethostname(names->host, sizeof names->host - 1);
  snprintf(names->short_host, sizeof names->short_host, "%.*s", (int)strcspn(names->host, "."), names->host);
  if (user && strcmp(user->pw_name, "root")) snprintf(names->user, sizeof names->user, "%s", user->pw_name);
}

static bool in_word(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Length of the word at text, where it is that name; 0: it is not. */
static size_t is_name(const char *text, const char *name) {
  size_t length = strlen(name);
  return length && !strncmp(text, name, length) && !in_word(text[length]) ? length : 0;
}

/* Where the path at text ends: spaces are taken as its end, as are colons and quotes. */
static size_t path_length(const char *text) {
  return strcspn(text, " \t\n:;,'\"()");
}

static void write_words(FILE *file, const gs_names_t *names, const char *text, size_t length) {
  const struct {
    const char *name, *instead;
  } hidden[] = {{names->host, "HOST"}, {names->short_host, "HOST"}, {names->user, "USER"}};
  for (size_t i = 0; i < length;) {
    size_t skipped = 0;
    for (size_t h = 0; !skipped && h < 3 && (i == 0 || !in_word(text[i - 1])); h++) {
      skipped = is_name(text + i, hidden[h].name);
      if (skipped) fputs(hidden[h].instead, file);
    }
    if (!skipped) fputc(text[i], file);
    i += skipped ? skipped : 1;
  }
}

void gs_redact(FILE *file, const gs_names_t *names, const char *text) {
  while (*text) {
    size_t before = strcspn(text, "/"), length;
    /* A relative path's first part, or a slash between words, stays in what is before. */
    bool absolute = text[before] && (before == 0 || strchr(" \t\n:;,'\"(=", text[before - 1]));
    write_words(file, names, text, before);
    text += before;
    if (!*text) return;
    if (!absolute) {
      fputc(*text++, file);
      continue;
    }
    length = path_length(text);
    const char *last = text;
    for (const char *c = text; c < text + length; c++)
      if (*c == '/' && c + 1 < text + length) last = c;
    if (last > text) fputs("...", file);
    write_words(file, names, last, (size_t)(text + length - last));
    text += length;
  }
}
