/* gemmshim table: what is done with tables of tuned kernels, without a GPU. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "beside.h"
#include "file.h"
#include "json.h"
#include "merge.h"
#include "named.h"
#include "output.h"
#include "predict.h"
#include "tools.h"

static const char help[] =
    "usage: gemmshim table check FILE\n"
    "       gemmshim table show [--json] [FILE|NAME]\n"
    "       gemmshim table copy FILE TO\n"
    "       gemmshim table merge TO FILE...\n"
    "       gemmshim table predict --gpu a100 --tiles FILE.csv TO\n\n"
    "check says every fault of a table as file:line: what, why, what to do; then its "
    "digest (a hash of the text),\n"
    "how many rows are fine, how many are refused, and for which GPU and cuBLAS they "
    "are proven. show prints a\n"
    "table, or a built-in one by its name; without an argument it lists the built-in "
    "ones. copy takes along the\n"
    "kernels that lie beside a table, in FILE.d, which cp would leave behind; a table "
    "with faults is not copied.\nmerge adds the rows of tables of one GPU and cuBLAS to TO, by one rename; "
    "where two claim the same n, TO's\nown stay, then those named first. predict makes a table for a GPU "
    "that is not at hand, from a cost model\nand from published tiles and leads (columns m n k bm bn "
    "accumulator offline_lt_autotune): no row of it is\nserved before gemmshim requalify has measured it "
    "there.\n\n"
    "exit status: 0 fine; 1 a row or the file is refused; 2 bad usage; 3 there is no "
    "such file or table, or TO\n"
    "cannot be written\n"
    "example: gemmshim table check ~/.config/gemmshim/nvidia-h200.table\n";

enum { JSON = 256, GPU, TILES };
static const struct option options[] = {
    {"json", no_argument, NULL, JSON},
    {"gpu", required_argument, NULL, GPU},
    {"tiles", required_argument, NULL, TILES},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int check(const char *name) {
  gs_table_t *table = NULL;
  int status = gs_named_table(name, stdout, &table);
  if (status == GS_EXIT_FALSE) printf("%s: refused\n", name);
  if (status != GS_EXIT_OK) return status;
  const gs_table_header_t *h = gs_table_header(table);
  int refused = gs_table_refused(table), proven = 0;
  for (int i = 0; i < gs_table_rows(table); i++)
    proven += gs_row_proven(h, gs_table_row(table, i), h->cublas);
  printf("%s: digest %016llx; %d rows fine, %d refused; %d proven on %s with cuBLAS %d.%d.%d%s\n", name,
         (unsigned long long)gs_table_digest(table), gs_table_rows(table), refused, proven, h->gpu,
         h->cublas[0], h->cublas[1], h->cublas[2], h->predicted ? " (predicted: none was measured)" : "");
  gs_table_free(table);
  return refused ? GS_EXIT_FALSE : GS_EXIT_OK;
}

/* The text as it is, so that its digest stays. */
static int copy(const char *from, const char *to) {
  gs_table_t *table = NULL;
  gs_output_t output;
  const char *why;
  size_t length;
  int status = gs_named_table(from, stderr, &table), refused = table ? gs_table_refused(table) : 0;
  char *text = status == GS_EXIT_OK ? gs_file_read(from, SIZE_MAX, false, &length, &why) : NULL;
  if (status == GS_EXIT_OK && !text) gs_say("%s: %s", from, why);
  if (refused) gs_say("%s: %d rows are faulty: mend it first; nothing was copied", from, refused);
  bool fine = text && !refused;
  for (int i = 0; fine && i < gs_table_rows(table); i++) fine = gs_beside_put(to, gs_table_row(table, i));
  if (fine && (fine = gs_output_open(&output, to))) {
    fwrite(text, 1, length, output.file);
    fine = gs_output_commit(&output);
  }
  free(text);
  gs_table_free(table);
  return fine ? GS_EXIT_OK : status != GS_EXIT_OK ? status : refused ? GS_EXIT_FALSE : GS_EXIT_MACHINE;
}

static void show_text(const gs_table_t *table) {
  char line[1024];
  gs_table_header_format(line, sizeof line, gs_table_header(table));
  fputs(line, stdout);
  if (*line && line[strlen(line) - 1] != '\n') putchar('\n');
  for (int i = 0; i < gs_table_rows(table); i++) {
    gs_row_format(line, sizeof line, gs_table_row(table, i));
    puts(line);
  }
}

/* Tables hold decimals; a float's neighbours of them would be noise. */
static double rounded(float us) {
  return round((double)us * 1000) / 1000;
}

static cJSON *json_row(const gs_table_header_t *header, const gs_row_t *row) {
  cJSON *object = cJSON_CreateObject();
  char kernel[GS_KERNEL_ID_MAX];
  gs_row_name(kernel, sizeof kernel, row);
#define NAME(member, names) cJSON_AddStringToObject(object, #member, names[row->key.member])
#define NUMBER(name, value) cJSON_AddNumberToObject(object, name, (double)(value))
  NAME(transa, gs_op_names);
  NAME(transb, gs_op_names);
  NAME(ab_type, gs_type_names);
  NAME(d_type, gs_type_names);
  NAME(compute, gs_compute_names);
  NAME(epilogue, gs_epilogue_names);
  cJSON_AddStringToObject(object, "batch_kind",
                          gs_batch_names[row->key.batch ? GS_BATCH_STRIDED : GS_BATCH_SINGLE]);
  NUMBER("batch", row->key.batch ? row->key.batch : 1);
  NUMBER("m", row->key.m);
  NUMBER("k", row->key.k);
  NUMBER("n_lo", row->n_lo);
  NUMBER("n_hi", row->n_hi);
  NUMBER("split_k", row->split_k);
  NUMBER("raster", row->raster);
  NUMBER("us", rounded(row->us));
  NUMBER("library_us", rounded(row->library_us));
  NUMBER("wall_us", rounded(row->wall_us));
  NUMBER("library_wall_us", rounded(row->library_wall_us));
  NUMBER("server_us", rounded(row->server_us));
  NUMBER("library_server_us", rounded(row->library_server_us));
  NUMBER("line", row->line);
#undef NAME
#undef NUMBER
  cJSON_AddStringToObject(object, "kernel", kernel);
  cJSON_AddBoolToObject(object, "proven", gs_row_proven(header, row, header->cublas));
  return object;
}

static void show_json(const gs_table_t *table) {
  const gs_table_header_t *h = gs_table_header(table);
  char digest[20];
  snprintf(digest, sizeof digest, "%016llx", (unsigned long long)gs_table_digest(table));
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "digest", digest);
  cJSON_AddStringToObject(root, "gpu", h->gpu);
  cJSON_AddStringToObject(root, "arch", h->arch);
  cJSON_AddNumberToObject(root, "sms", h->sms);
  cJSON_AddItemToObject(root, "cublas", cJSON_CreateIntArray(h->cublas, 3));
  cJSON_AddStringToObject(root, "method", h->method);
  cJSON_AddStringToObject(root, "date", h->date);
  cJSON_AddBoolToObject(root, "predicted", h->predicted);
  cJSON_AddNumberToObject(root, "refused", gs_table_refused(table));
  cJSON *rows = cJSON_AddArrayToObject(root, "rows");
  for (int i = 0; i < gs_table_rows(table); i++)
    cJSON_AddItemToArray(rows, json_row(h, gs_table_row(table, i)));
  gs_json_print(root);
}

static int show(const char *name, bool json) {
  gs_table_t *table = NULL;
  int status = gs_named_table(name, stderr, &table);
  if (status != GS_EXIT_OK) return status;
  json ? show_json(table) : show_text(table);
  status = gs_table_refused(table) ? GS_EXIT_FALSE : GS_EXIT_OK;
  gs_table_free(table);
  return status;
}

static int list(bool json) {
  cJSON *names = cJSON_CreateArray();
  for (int i = 0; i < gs_builtin_table_count(); i++) {
    const char *name;
    size_t length;
    gs_builtin_table(i, &name, &length);
    cJSON_AddItemToArray(names, cJSON_CreateString(name));
    if (!json) puts(name);
  }
  if (json)
    gs_json_print(names);
  else
    cJSON_Delete(names);
  return GS_EXIT_OK;
}

int gs_cmd_table(int argc, char **argv) {
  bool json = false;
  const char *gpu = NULL, *tiles = NULL;
  for (int c; (c = getopt_long(argc, argv, ":h", options, NULL)) != -1;) switch (c) {
    case JSON:
      json = true;
      break;
    case GPU:
      gpu = optarg;
      break;
    case TILES:
      tiles = optarg;
      break;
    case 'h':
      return gs_help(help);
    default:
      return gs_usage_option(argv, c);
    }
  const char *action = optind < argc ? argv[optind] : "", *name = optind + 1 < argc ? argv[optind + 1] : NULL;
  if (!strcmp(action, "copy")) {
    if (optind + 3 != argc || json) return gs_usage(argv, "copy: FILE and TO are wanted");
    return copy(name, argv[optind + 2]);
  }
  if (!strcmp(action, "merge"))
    return optind + 3 > argc || json ? gs_usage(argv, "merge: TO and at least one FILE are wanted")
                                     : gs_merge(name, argv + optind + 2, argc - optind - 2, false);
  if (!strcmp(action, "predict"))
    return optind + 2 != argc || !gpu || !tiles || json
               ? gs_usage(argv, "predict: --gpu, --tiles and TO are wanted")
               : gs_predict(gpu, tiles, name);
  if (optind + 2 < argc) return gs_usage(argv, "\"%s\": one table at a time", argv[optind + 2]);
  if (!strcmp(action, "show")) return name ? show(name, json) : list(json);
  if (strcmp(action, "check")) return gs_usage(argv, "\"%s\": check, show, copy, merge or predict", action);
  if (json) return gs_usage(argv, "check has no --json");
  return name ? check(name) : gs_usage(argv, "check: no table given");
}
