#include <stdio.h>

#include "extras.h"
#include "gs_table.h"

int gs_row_name(char *buffer, size_t size, const gs_row_t *row) {
  return row->by_library ? gs_algo_format(buffer, size, &row->algo)
                         : gs_kernel_format(buffer, size, &row->kernel);
}

bool gs_row_is_extra(const gs_row_t *row) {
  return !row->by_library && row->index >= gs_shipped_count();
}

gs_reason_t gs_row_supports(const gs_row_t *row, const gs_gemm_t *g) {
  return row->by_library ? gs_algo_supports(g) : gs_kernel_supports(&row->kernel, g);
}

int gs_row_batch(char *buffer, size_t size, const gs_row_t *row) {
  return row->key.batch ? snprintf(buffer, size, "strided:%d", row->key.batch)
                        : snprintf(buffer, size, "single");
}

int gs_row_format(char *buffer, size_t size, const gs_row_t *row) {
  char id[GS_EXTRA_NAME_MAX], batch[16];
  const gs_key_t *key = &row->key;
  if (gs_row_is_extra(row))
    gs_extra_format(id, sizeof id, row->index);
  else
    gs_row_name(id, sizeof id, row);
  gs_row_batch(batch, sizeof batch, row);
  char server[48] = "";
  if (row->server_us > 0)
    snprintf(server, sizeof server, "\t%.2f\t%.2f", (double)row->server_us, (double)row->library_server_us);
  return snprintf(
      buffer, size, "%c\t%c\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%d\t%d\t%.3f\t%.3f\t%.2f\t%.2f%s",
      "NT"[key->transa], "NT"[key->transb], key -> m, key -> k, gs_type_names[key->ab_type],
      gs_type_names[key->d_type], gs_compute_names[key->compute], gs_epilogue_names[key->epilogue], batch,
      row -> n_lo, row -> n_hi, id, row -> split_k, row -> raster, (double)row -> us,
      (double)row -> library_us, (double)row -> wall_us, (double)row -> library_wall_us, server);
}

bool gs_row_proven(const gs_table_header_t *header, const gs_row_t *row, const int cublas[3]) {
  if (header->predicted || header->cublas[0] != cublas[0]) return false;
  bool same_build = header->cublas[1] == cublas[1] && header->cublas[2] == cublas[2];
  return same_build || (!row->by_library && row->library_us >= 1.1f * row->us);
}
