#include "named.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tools.h"

static void print_line(void *context, const char *line) {
  fprintf(context, "%s\n", line);
}

int gs_named_table(const char *name, FILE *faults, gs_table_t **table) {
  gs_status_t status;
  for (int i = 0; !strchr(name, '/') && i < gs_builtin_table_count(); i++) {
    const char *builtin;
    size_t length;
    const char *text = gs_builtin_table(i, &builtin, &length);
    if (strcmp(builtin, name) != 0 || access(name, F_OK) == 0) continue;
    status = gs_table_parse(text, length, name, print_line, faults, table);
    return status == GS_OK ? GS_EXIT_OK : GS_EXIT_FALSE;
  }
  if (access(name, F_OK) != 0) {
    gs_say("%s: %s, and no built-in table has that name: `gemmshim table show` lists them", name,
           strerror(errno));
    return GS_EXIT_MACHINE;
  }
  return gs_table_load(name, print_line, faults, table) == GS_OK ? GS_EXIT_OK : GS_EXIT_FALSE;
}
