#define _GNU_SOURCE
#include "choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

bool gs_user_table_path(const char *gpu, char *path, size_t size) {
  char slug[64];
  const char *config = secure_getenv("XDG_CONFIG_HOME"), *home = secure_getenv("HOME");
  gs_gpu_slug(gpu, slug, sizeof slug);
  int length = config && *config ? snprintf(path, size, "%s/gemmshim/%s.table", config, slug)
               : home && *home   ? snprintf(path, size, "%s/.config/gemmshim/%s.table", home, slug)
                                 : -1;
  return length > 0 && (size_t)length < size;
}

/* The built-in table that shares the longest beginning of its name with the GPU's: its own, or one of a sibling
 * ("nvidia-h200" for "nvidia-h100-pcie"), which its architecture tells; -1: none. */
static int nearest_builtin(const gs_device_t *device) {
  char slug[64], arch[16];
  int nearest = -1;
  size_t most = 0;
  gs_gpu_slug(device->name, slug, sizeof slug);
  snprintf(arch, sizeof arch, "\narch: sm_%d\n", device->sm);
  for (int i = 0; i < gs_builtin_table_count(); i++) {
    const char *name;
    size_t length, same = 0;
    const char *text = gs_builtin_table(i, &name, &length);
    while (name[same] && name[same] == slug[same]) same++;
    bool own = !name[same] && !slug[same];
    if (own) return i;
    if (same > most && memmem(text, length, arch, strlen(arch))) most = same, nearest = i;
  }
  return nearest;
}

static gs_status_t parse_builtin(const gs_device_t *device, gs_say_t say, void *context,
                                 gs_choice_t *choice) {
  int index = nearest_builtin(device);
  if (index < 0) {
    snprintf(choice->source, sizeof choice->source, "no built-in table for %s%s", device->name,
             gs_device_arch(device->sm) ? "" : ", since " GS_DEVICE_ARCHS);
    return GS_NOT_FOUND;
  }
  const char *name;
  size_t length;
  const char *text = gs_builtin_table(index, &name, &length);
  snprintf(choice->source, sizeof choice->source, "built-in %s", name);
  return gs_table_parse(text, length, choice->source, say, context, &choice->table);
}

/* Refuses a table of another architecture; marks that of a sibling. */
static gs_status_t fit(const gs_device_t *device, gs_say_t say, void *context, gs_choice_t *choice) {
  char line[512];
  const gs_table_header_t *header = gs_table_header(choice->table);
  bool of_arch = atoi(header->arch + 3) == device->sm;
  choice->sibling = strcmp(header->gpu, device->name) != 0 || header->sms != device->sms;
  if (of_arch && !choice->sibling) return GS_OK;
  snprintf(line, sizeof line, "%s: made for %s (%s, %d SMs), this is %s (sm_%d, %d SMs)%s", choice->source,
           header->gpu, header->arch, header->sms, device->name, device->sm, device->sms,
           of_arch                      ? ": its rows are unproven and forwarded here; run gemmshim requalify"
           : gs_device_arch(device->sm) ? "; run gemmshim tune here"
                                        : ": " GS_DEVICE_ARCHS);
  if (say) say(context, line);
  if (of_arch) return GS_OK;
  gs_table_free(choice->table);
  choice->table = NULL;
  return GS_MISMATCH;
}

gs_status_t gs_choose_table(const gs_device_t *device, gs_say_t say, void *context, gs_choice_t *choice) {
  char path[256];
  const char *asked = gs_option_text(GS_OPT_TABLE);
  *choice = (gs_choice_t){0};
  bool users = !*asked && gs_user_table_path(device->name, path, sizeof path) && access(path, F_OK) == 0;
  if (*asked || users) snprintf(choice->source, sizeof choice->source, "%s", *asked ? asked : path);
  gs_status_t status = *asked || users ? gs_table_load(choice->source, say, context, &choice->table)
                                       : parse_builtin(device, say, context, choice);
  /* Nobody asked for a sibling's built-in table: the counts of what it forwards say enough. */
  return status == GS_OK ? fit(device, *asked || users ? say : NULL, context, choice) : status;
}

void gs_gpu_slug(const char *gpu, char *slug, size_t size) {
  size_t length = 0;
  for (; *gpu && length + 1 < size; gpu++) {
    char c = *gpu >= 'A' && *gpu <= 'Z' ? (char)(*gpu + 32) : *gpu;
    bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain)
      slug[length++] = c;
    else if (length && slug[length - 1] != '-')
      slug[length++] = '-';
  }
  while (length && slug[length - 1] == '-') length--;
  slug[length] = '\0';
}
