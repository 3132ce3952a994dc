/* Floor 2. The built-in tables, embedded at build time (GS_TABLES is their folder). */
#include "gs_table.h"

#define GS_BUILTIN_TABLE(symbol, name)                                                                       \
  __asm__(".pushsection .rodata\n"                                                                           \
          "gs_builtin_" #symbol ":\n"                                                                        \
          ".incbin \"" GS_TABLES "/" name ".table\"\n"                                                       \
          "gs_builtin_" #symbol "_end:\n"                                                                    \
          ".byte 0\n"                                                                                        \
          ".popsection");                                                                                    \
  extern const char gs_builtin_##symbol[], gs_builtin_##symbol##_end[];
#include "tables.def"
#undef GS_BUILTIN_TABLE

static const struct {
  const char *name, *text, *end;
} tables[] = {
#define GS_BUILTIN_TABLE(symbol, name) {name, gs_builtin_##symbol, gs_builtin_##symbol##_end},
#include "tables.def"
#undef GS_BUILTIN_TABLE
};

int gs_builtin_table_count(void) {
  return sizeof tables / sizeof *tables;
}

const char *gs_builtin_table(int index, const char **name, size_t *length) {
  *name = tables[index].name;
  *length = (size_t)(tables[index].end - tables[index].text);
  return tables[index].text;
}
