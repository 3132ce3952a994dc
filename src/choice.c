#define _GNU_SOURCE
#include "choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

/* The user's table of a GPU, if there is one. */
static bool user_table(const char *slug, char *path, size_t size) {
  const char *config = secure_getenv("XDG_CONFIG_HOME"), *home = secure_getenv("HOME");
  int length = config && *config ? snprintf(path, size, "%s/gemmshim/%s.table", config, slug)
               : home && *home   ? snprintf(path, size, "%s/.config/gemmshim/%s.table", home, slug)
                                 : -1;
  return length > 0 && (size_t)length < size && access(path, F_OK) == 0;
}

static gs_status_t parse_builtin(const char *slug, gs_say_t say, void *context, gs_choice_t *choice) {
  for (int i = 0; i < gs_builtin_table_count(); i++) {
    const char *name;
    size_t length;
    const char *text = gs_builtin_table(i, &name, &length);
    if (strcmp(name, slug) != 0) continue;
    snprintf(choice->source, sizeof choice->source, "built-in %s", name);
    return gs_table_parse(text, length, choice->source, say, context, &choice->table);
  }
  snprintf(choice->source, sizeof choice->source, "no built-in table for %s", slug);
  return GS_NOT_FOUND;
}

static bool made_for(const gs_table_header_t *header, const gs_device_t *device) {
  return strcmp(header->gpu, device->name) == 0 && atoi(header->arch + 3) == device->sm &&
         header->sms == device->sms;
}

gs_status_t gs_choose_table(const gs_device_t *device, gs_say_t say, void *context, gs_choice_t *choice) {
  char slug[64], line[512];
  const char *asked = gs_option_text(GS_OPT_TABLE);
  gs_gpu_slug(device->name, slug, sizeof slug);
  *choice = (gs_choice_t){0};
  if (*asked) snprintf(choice->source, sizeof choice->source, "%s", asked);
  gs_status_t status = *asked || user_table(slug, choice->source, sizeof choice->source)
                           ? gs_table_load(choice->source, say, context, &choice->table)
                           : parse_builtin(slug, say, context, choice);
  if (status != GS_OK || made_for(gs_table_header(choice->table), device)) return status;
  const gs_table_header_t *header = gs_table_header(choice->table);
  snprintf(line, sizeof line,
           "%s: made for %s (%s, %d SMs), this is %s (sm_%d, %d SMs); run gemmshim tune here", choice->source,
           header->gpu, header->arch, header->sms, device->name, device->sm, device->sms);
  if (say) say(context, line);
  gs_table_free(choice->table);
  choice->table = NULL;
  return GS_MISMATCH;
}
