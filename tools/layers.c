#define _GNU_SOURCE
#include "layers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gs_table.h"
#include "tools.h"

bool gs_op_read(const char *text, gs_op_t *op) {
  *op = *text == 'T' || *text == 't' ? GS_OP_T : GS_OP_N;
  return *text && strchr("TtNn", *text) && !text[1];
}

static bool read_list(gs_ns_t *list, const char *text, long most) {
  *list = (gs_ns_t){0};
  for (const char *at = text;; at++) {
    char *end;
    errno = 0;
    long value = strtol(at, &end, 10);
    if (errno || end == at || value < 1 || value > most || list->count == GS_NS_MAX) return false;
    list->n[list->count++] = (int)value;
    at = end;
    if (!*at) return true;
    if (*at != ',') return false;
  }
}

bool gs_ns_read(gs_ns_t *ns, const char *text) {
  return read_list(ns, text, INT32_MAX);
}

bool gs_batches_read(gs_ns_t *batches, const char *text) {
  return read_list(batches, text, GS_ROW_BATCH_MAX);
}

/* NULL, or what is wrong with the note. */
static const char *read_note(gs_layer_t *layer, char *note) {
  for (char *word; (word = strsep(&note, " "));) {
    long times;
    int epilogue = gs_name_index(word, gs_epilogue_names, GS_EPILOGUE_OTHER);
    if (epilogue >= 0) layer->epilogue = (gs_epilogue_t)epilogue;
    if (!strcmp(word, "f32_out")) layer->f32_out = true;
    if (!strcmp(word, "aside")) layer->times = 0;
    if (!strncmp(word, "n=", 2) && !gs_ns_read(&layer->ns, word + 2))
      return "n must be a list, as in n=1,128";
    if (!strncmp(word, "batch=", 6) && !gs_batches_read(&layer->batches, word + 6))
      return "batch must be a list of 1 to 65535, as in batch=12,96";
    if (word[0] != 'x' || word[1] < '0' || word[1] > '9') continue;
    if (!gs_read_long(word + 1, 1, 1000000, &times)) return "how often it comes must be a number, as in x32";
    layer->times = (int)times;
  }
  return NULL;
}

static const char *read_layer(gs_layer_t *layer, char *line) {
  char *field[6] = {0}, *rest = line;
  int fields = 0;
  long m, k;
  while (rest && fields < 6) field[fields++] = strsep(&rest, "\t");
  if (fields < 5) return "fewer than 5 tab-separated fields: name transa transb m k";
  *layer = (gs_layer_t){.epilogue = GS_EPILOGUE_DEFAULT, .times = 1};
  if ((size_t)snprintf(layer->name, sizeof layer->name, "%s", field[0]) >= sizeof layer->name)
    return "the name is too long";
  if (!gs_op_read(field[1], &layer->transa) || !gs_op_read(field[2], &layer->transb))
    return "transa and transb must be N or T";
  if (!gs_read_long(field[3], 1, INT32_MAX, &m) || !gs_read_long(field[4], 1, INT32_MAX, &k))
    return "m and k must be sizes";
  layer->m = (int)m, layer->k = (int)k;
  return field[5] ? read_note(layer, field[5]) : NULL;
}

static const char *add_layer(gs_layers_t *layers, char *line) {
  gs_layer_t *items = realloc(layers->items, (size_t)(layers->count + 1) * sizeof *items);
  if (!items) return "out of memory";
  layers->items = items;
  const char *why = read_layer(&items[layers->count], line);
  layers->count += !why;
  return why;
}

bool gs_layers_read(gs_layers_t *layers, const char *path) {
  FILE *file = fopen(path, "re");
  char *line = NULL;
  size_t room = 0;
  int number = 0;
  const char *why = NULL;
  *layers = (gs_layers_t){0};
  if (!file) {
    gs_say("%s: cannot be read: %s", path, strerror(errno));
    return false;
  }
  while (!why && getline(&line, &room, file) >= 0) {
    number++;
    line[strcspn(line, "\r\n")] = '\0';
    if (line[0] && line[0] != '#' && strncmp(line, "name\t", 5) != 0) why = add_layer(layers, line);
  }
  bool failed = ferror(file) != 0;
  free(line);
  fclose(file);
  if (why) gs_say("%s:%d: %s; mend the line, or put # before it", path, number, why);
  if (failed) gs_say("%s: cannot be read to its end", path);
  if (!why && !failed && !layers->count) gs_say("%s: holds no layers: name transa transb m k note", path);
  if (!why && !failed && layers->count) return true;
  gs_layers_free(layers);
  return false;
}

void gs_layers_free(gs_layers_t *layers) {
  free(layers->items);
  *layers = (gs_layers_t){0};
}
