#include "merge.h"

#include <stdio.h>

#include "draft.h"
#include "tools.h"

/* An exit status. */
static int add_table(gs_draft_t *draft, const gs_table_t *table, const char *path, bool replace,
                     int *left_out) {
  const gs_table_header_t *header = gs_table_header(table);
  if (gs_table_refused(table)) {
    gs_say("%s: has faulty rows: mend it first; nothing was written", path);
    return GS_EXIT_FALSE;
  }
  if (!gs_same_origin(header, &draft->header)) {
    gs_say("%s: is of %s with cuBLAS %d.%d.%d%s, the others are of %s with %d.%d.%d%s; nothing was written",
           path, header->gpu, header->cublas[0], header->cublas[1], header->cublas[2],
           header->predicted ? ", predicted" : "", draft->header.gpu, draft->header.cublas[0],
           draft->header.cublas[1], draft->header.cublas[2], draft->header.predicted ? ", predicted" : "");
    return GS_EXIT_FALSE;
  }
  for (int i = 0; i < gs_table_rows(table); i++) {
    int had = draft->count;
    const gs_row_t *row = gs_table_row(table, i);
    if (!(replace ? gs_draft_put(draft, row) : gs_draft_carry(draft, row))) return GS_EXIT_FALSE;
    *left_out += draft->count <= had;
  }
  return GS_EXIT_OK;
}

int gs_merge(const char *output, char **tables, int count, bool replace) {
  gs_draft_t draft;
  bool open = false;
  int status = GS_EXIT_OK, left_out = 0;
  for (int i = 0; i < count && status == GS_EXIT_OK; i++) {
    gs_table_t *table;
    gs_status_t loaded = gs_table_load(tables[i], gs_say_line, NULL, &table);
    if (loaded != GS_OK) status = loaded == GS_IO ? GS_EXIT_MACHINE : GS_EXIT_FALSE;
    if (loaded == GS_OK && !open) {
      open = gs_draft_open(&draft, output, gs_table_header(table));
      if (!open) status = GS_EXIT_MACHINE;
    }
    if (loaded == GS_OK && open) status = add_table(&draft, table, tables[i], replace, &left_out);
    if (loaded == GS_OK) gs_table_free(table);
  }
  if (status == GS_EXIT_OK && !gs_draft_write(&draft)) status = GS_EXIT_MACHINE;
  if (status == GS_EXIT_OK)
    printf("%s: %d rows from %d tables; %d claimed n that were claimed already\n", output, draft.count, count,
           left_out);
  if (open) gs_draft_close(&draft);
  return status;
}
