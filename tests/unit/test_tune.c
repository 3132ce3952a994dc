/* What to tune, and the table in the making. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "draft.h"
#include "layers.h"
#include "points.h"

static char folder[] = "/tmp/gs_tune.XXXXXX";
static char file[64];

static void make_folder(void) {
  cr_assert(mkdtemp(folder));
  snprintf(file, sizeof file, "%s/file", folder);
}
static void remove_folder(void) {
  unlink(file);
  rmdir(folder);
}
TestSuite(tune, .init = make_folder, .fini = remove_folder);

static void write_file(const char *text) {
  FILE *out = fopen(file, "w");
  cr_assert(out && fputs(text, out) >= 0 && fclose(out) == 0);
}

Test(tune, shapes_are_read) {
  gs_points_t points = {0};
  const char *why;
  cr_assert(gs_points_shape(&points, "TNx4096x1,8,64x1024:bf16_f32:gelu_bias", &why), "%s", why);
  cr_assert(gs_points_shape(&points, "ntx96x32x64", &why), "%s", why);
  cr_assert(gs_points_shape(&points, "NTx96x32x64:f16_f16", &why), "%s", why);
  cr_assert_eq(points.count, 4, "the same product twice is one point");
  const gs_gemm_t *g = &points.items[1];
  cr_assert(g->transa == GS_OP_T && g->transb == GS_OP_N && g->m == 4096 && g->n == 8 && g->k == 1024);
  cr_assert(g->lda == 1024 && g->ldb == 1024 && g->ldd == 4096);
  cr_assert(g->a_type == GS_TYPE_BF16 && g->d_type == GS_TYPE_F32 && g->epilogue == GS_EPILOGUE_GELU_BIAS);
  g = &points.items[3];
  cr_assert(g->transa == GS_OP_N && g->transb == GS_OP_T && g->lda == 96 && g->ldb == 32 &&
            g->a_type == GS_TYPE_F16);
  gs_points_free(&points);
}

Test(tune, shapes_may_be_batches) {
  gs_points_t points = {0};
  const char *why;
  cr_assert(gs_points_shape(&points, "TNx128x1,64x32*12,512:bf16_bf16", &why), "%s", why);
  cr_assert(gs_points_shape(&points, "TNx128x1x32*12:f16_f16:bias", &why), "%s", why);
  cr_assert(gs_points_shape(&points, "TNx128x1x32*1", &why), "%s", why);
  cr_assert(gs_points_shape(&points, "TNx128x1x32", &why), "%s", why);
  cr_assert_eq(points.count, 7, "a batch of one is another call than a single product");
  const gs_gemm_t *g = &points.items[3];
  cr_assert(g->n == 64 && g->batch == 512 && g->batch_kind == GS_BATCH_STRIDED && g->a_type == GS_TYPE_BF16 &&
            g->entry == GS_ENTRY_GEMM_STRIDED_BATCHED_EX);
  cr_assert(g->stride_a == 128 * 32 && g->stride_b == 64 * 32 && g->stride_c == 128 * 64 &&
            g->stride_d == g->stride_c);
  g = &points.items[4];
  cr_assert(g->batch == 12 && g->epilogue == GS_EPILOGUE_BIAS && g->entry == GS_ENTRY_LT_MATMUL);
  cr_assert_eq(points.items[6].batch_kind, GS_BATCH_SINGLE);
  gs_points_free(&points);
}

Test(tune, malformed_shapes_are_refused) {
  static const char *const faulty[] = {"",
                                       "TN",
                                       "TNx1x2",
                                       "TNx0x1x1",
                                       "TNx-1x1x1",
                                       "TNx1x0x1",
                                       "TNx1x1,x1",
                                       "TNx1xax1",
                                       "XNx1x1x1",
                                       "TNx1x1x1:",
                                       "TNx1x1x1:f16",
                                       "TNx1x1x1:f16_f99",
                                       "TNx1x1x1:i8_i32",
                                       "TNx1x1x1:f32_f32",
                                       "TNx1x1x1 ",
                                       "Tx1x1x1",
                                       "TNx1x1x1:f16_f16:",
                                       "TNx1x1x1:f16_f16:dgelu",
                                       "TNx9999999999x1x1",
                                       "TNx1x1x1:f16_f16:bias:",
                                       "TNx1x1x1*",
                                       "TNx1x1x1*0",
                                       "TNx1x1x1*65536",
                                       "TNx1x1x1*2,",
                                       "TNx1x1x1*2*3",
                                       "TNx1x1x1*2 ",
                                       "TNx1x1x1:f16_f16*2"};
  for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++) {
    gs_points_t points = {0};
    const char *why = NULL;
    cr_expect_not(gs_points_shape(&points, faulty[i], &why), "\"%s\" is accepted", faulty[i]);
    cr_expect(why && *why);
    gs_points_free(&points);
  }
}

Test(tune, layers_say_how_often_they_come) {
  gs_layers_t layers;
  write_file("name\ttransa\ttransb\tm\tk\tnote\na_qkv\tT\tN\t8\t16\tbias "
             "x32\na_head\tN\tT\t64\t16\na_k\tT\tN\t8\t16\taside\n");
  cr_assert(gs_layers_read(&layers, file) && layers.count == 3 && layers.items[2].times == 0);
  const gs_layer_t *l = layers.items;
  cr_assert(!strcmp(l[0].name, "a_qkv") && l[0].times == 32 && l[0].epilogue == GS_EPILOGUE_BIAS);
  cr_assert(l[1].times == 1 && l[1].transa == GS_OP_N && l[1].transb == GS_OP_T && l[1].m == 64 &&
            l[1].k == 16);
  gs_layers_free(&layers);
  static const char *const faulty[] = {"x0", "batch=", "batch=0", "batch=65536", "batch=1,x", "n=", "n=0"};
  for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++) {
    char line[64];
    snprintf(line, sizeof line, "a_qkv\tT\tN\t8\t16\t%s\n", faulty[i]);
    write_file(line);
    cr_expect_not(gs_layers_read(&layers, file), "\"%s\" is accepted", faulty[i]);
  }
}

Test(tune, grid_is_every_product_in_both_layouts) {
  gs_points_t points = {0};
  gs_ns_t sizes;
  cr_assert(gs_ns_read(&sizes, "64,128,512"));
  cr_assert(gs_points_grid(&points, &sizes, "f16_f16"));
  cr_assert_eq(points.count, 54);
  const gs_gemm_t *g = points.items + 2 * (9 * 0 + 3 * 1 + 2); /* row-major M 64, N 128, K 512 */
  for (int layout = 0; layout < 2; layout++)
    cr_assert(g[layout].m == 128 && g[layout].n == 64 && g[layout].k == 512 && g[layout].transb == GS_OP_N);
  cr_assert(g[0].transa == GS_OP_N && g[0].lda == 128 && g[1].transa == GS_OP_T && g[1].lda == 512);
  gs_points_free(&points);
  cr_assert_not(gs_points_grid(&points, &sizes, "f16_f99"));
}

Test(tune, models_are_read_and_faults_refused) {
  gs_points_t points = {0};
  gs_ns_t ns;
  cr_assert(gs_ns_read(&ns, "1,8"));
  write_file("# "
             "layers\nname\ttransa\ttransb\tm\tk\tnote\nqkv\tT\tN\t4608\t3584\tbias\nfc\tN\tN\t3072\t768\tgel"
             "u_bias\n"
             "router\tT\tN\t256\t7168\tf32_out\nplain\tT\tN\t64\t64\n");
  cr_assert(gs_points_models(&points, file, &ns, "f16_f16,bf16_bf16"));
  cr_assert_eq(points.count, 16);
  cr_assert(points.items[0].epilogue == GS_EPILOGUE_BIAS &&
            points.items[4].epilogue == GS_EPILOGUE_GELU_BIAS);
  cr_assert(points.items[8].d_type == GS_TYPE_F32 && points.items[8].a_type == GS_TYPE_F16);
  cr_assert(points.items[12].epilogue == GS_EPILOGUE_DEFAULT);
  cr_assert_not(gs_points_models(&points, "/nonexistent", &ns, "f16_f16"));
  static const char *const faulty[] = {
      "", "a\tT\tN\t1\n", "a\tT\tQ\t1\t1\n", "a\tT\tN\t0\t1\n", "a\tT\tN\t1\tx\n", "\x7f\x45\x4c\x46\n"};
  for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++) {
    write_file(faulty[i]);
    cr_expect_not(gs_points_models(&points, file, &ns, "f16_f16"), "\"%s\" is accepted", faulty[i]);
  }
  gs_points_free(&points);
}

Test(tune, layers_may_be_batches_and_have_an_n_of_their_own) {
  gs_points_t points = {0};
  gs_ns_t ns;
  cr_assert(gs_ns_read(&ns, "1,8,64"));
  write_file("scores\tT\tN\t128\t64\tbatch=12,96 "
             "n=1,128\nvalues\tN\tN\t64\t128\tbatch=7\nplain\tT\tN\t64\t64\tn=5\n");
  cr_assert(gs_points_models(&points, file, &ns, "f16_f16,bf16_bf16"));
  cr_assert_eq(points.count, 2 * (4 + 3 + 1));
  const gs_gemm_t *g = &points.items[3];
  cr_assert(g->n == 128 && g->batch == 96 && g->stride_d == 128 * 128 && g->k == 64);
  g = &points.items[10];
  cr_assert(g->n == 64 && g->batch == 7 && g->transa == GS_OP_N);
  g = &points.items[14];
  cr_assert(g->n == 5 && g->batch == 1 && g->batch_kind == GS_BATCH_SINGLE);
  gs_points_free(&points);
}

static bool has_layer(const gs_layers_t *layers, const gs_layer_t *wanted) {
  for (const gs_layer_t *l = layers->items; l < layers->items + layers->count; l++)
    if (l->transa == wanted->transa && l->transb == wanted->transb && l->m == wanted->m &&
        l->k == wanted->k && l->epilogue == wanted->epilogue && l->f32_out == wanted->f32_out)
      return true;
  return false;
}

/* The layers that the project set out to win, which lie beside this tree where it is worked on. */
Test(tune, models_are_those_that_were_agreed_on) {
  static const char agreed[] = "../shared/shapes/models.tsv";
  gs_layers_t ours, theirs;
  if (access(agreed, R_OK) != 0) cr_skip_test("%s is not here", agreed);
  cr_assert(gs_layers_read(&ours, "tests/gpu/models.tsv") && gs_layers_read(&theirs, agreed));
  for (int i = 0; i < theirs.count; i++)
    cr_expect(has_layer(&ours, &theirs.items[i]), "%s is missing", theirs.items[i].name);
  for (int i = 0; i < ours.count; i++)
    cr_expect(has_layer(&theirs, &ours.items[i]), "%s was not agreed on", ours.items[i].name);
  gs_layers_free(&ours);
  gs_layers_free(&theirs);
}

/* The files that a GPU is tuned and measured by: every line is a product that our kernels compute. */
Test(tune, the_files_of_layers_are_for_our_kernels) {
  static const struct {
    const char *path;
    int least;
    bool batched;
  } files[] = {{"tests/gpu/models.tsv", 30, false}, {"tests/gpu/attention.tsv", 100, true}};
  for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
    gs_points_t points = {0};
    gs_ns_t ns;
    cr_assert(gs_ns_read(&ns, "8"));
    cr_assert(gs_points_models(&points, files[f].path, &ns, "f16_f16,bf16_bf16"),
              "run from the top of the tree");
    cr_expect_geq(points.count, files[f].least);
    for (int i = 0; i < points.count; i++) {
      bool served = false;
      for (int k = 0; k < gs_shipped_count() && !served; k++) {
        gs_kernel_t kernel = gs_shipped_at(k);
        served = gs_kernel_supports(&kernel, &points.items[i]) == GS_REASON_SERVED;
      }
      char text[256];
      gs_gemm_describe(text, sizeof text, &points.items[i]);
      cr_expect(served && (points.items[i].batch > 1) == files[f].batched, "%s: %s", files[f].path, text);
    }
    gs_points_free(&points);
  }
}

/* One product in two numbers is two things to measure, and two rows. */
Test(tune, each_number_of_products_in_a_batch_is_tuned) {
  gs_points_t points = {0};
  write_file(
      "cublasGemmStridedBatchedEx\tt\tn\t64\t64\t32\t32\t32\t64\t64\tf16\tf16\tf16\tf16\t32f\tdefault\t"
      "strided\t12\t2048\t2048\t4096\t4096\t16\n"
      "cublasGemmStridedBatchedEx\tt\tn\t64\t64\t32\t32\t32\t64\t64\tf16\tf16\tf16\tf16\t32f\tdefault\t"
      "strided\t512\t2048\t2048\t4096\t4096\t16\n");
  cr_assert(gs_points_calls(&points, file));
  cr_assert_eq(points.count, 2);
  cr_assert_not(gs_points_same_key(&points.items[0], &points.items[1]));
  for (int i = 0; i < 2; i++) {
    gs_key_t key = gs_key_of(&points.items[i]);
    gs_gemm_t again = gs_points_keyed(&key, 64); /* as requalify and bench --rows measure a row */
    cr_assert(again.batch == points.items[i].batch && again.stride_a == 64 * 32 &&
              again.stride_d == 64 * 64 && again.entry == GS_ENTRY_GEMM_STRIDED_BATCHED_EX);
  }
  gs_points_free(&points);
}

/* ---- the draft ---- */

static const gs_table_header_t header = {.gpu = "a GPU",
                                         .arch = "sm_90",
                                         .sms = 4,
                                         .cublas = {13, 1, 0},
                                         .method = "a test",
                                         .date = "2026-01-01"};

static gs_gemm_t product(int m, int n) {
  gs_points_t points = {0};
  char text[64];
  const char *why;
  snprintf(text, sizeof text, "TNx%dx%dx64", m, n);
  cr_assert(gs_points_shape(&points, text, &why));
  gs_gemm_t g = points.items[0];
  gs_points_free(&points);
  return g;
}

static gs_row_t row_of(const gs_gemm_t *g, float us) {
  gs_row_t row = {
      .key = gs_key_of(g), .n_lo = (int32_t)g->n, .n_hi = (int32_t)g->n, .split_k = 1, .raster = 1};
  for (int i = 0; i < gs_shipped_count(); i++) {
    row.kernel = gs_shipped_at(i);
    if (gs_kernel_supports(&row.kernel, g) == GS_REASON_SERVED) break;
  }
  row.us = us, row.library_us = 2 * us;
  return row;
}

static void settle(gs_draft_t *draft, int m, int n, float us) {
  gs_gemm_t g = product(m, n);
  gs_row_t row = row_of(&g, us);
  cr_assert(gs_draft_claim(draft, &row.key, n, n, &row, us > 0));
}

static int rows_in_file(void) {
  gs_table_t *table;
  cr_assert_eq(gs_table_load(file, NULL, NULL, &table), GS_OK);
  cr_assert_eq(gs_table_refused(table), 0);
  int rows = gs_table_rows(table);
  gs_table_free(table);
  return rows;
}

Test(tune, T3_every_settled_row_is_in_the_file_at_once) {
  gs_draft_t draft;
  cr_assert(gs_draft_open(&draft, file, &header));
  settle(&draft, 64, 8, 0);
  cr_assert_neq(access(file, F_OK), 0, "a loss makes no file");
  settle(&draft, 128, 8, 3);
  cr_assert_eq(rows_in_file(), 1);
  settle(&draft, 64, 8, 2);
  settle(&draft, 64, 1, 1);
  cr_assert_eq(rows_in_file(), 3);
  cr_assert(draft.rows[0].key.m == 64 && draft.rows[0].n_lo == 1 && draft.rows[2].key.m == 128, "sorted");
  settle(&draft, 64, 8, 0);
  cr_assert_eq(rows_in_file(), 2, "what lost since is gone");
  gs_draft_close(&draft);
  cr_assert(gs_draft_open(&draft, file, &header));
  cr_assert_eq(draft.count, 2, "the next run goes on from there");
  gs_gemm_t kept = product(128, 8), gone = product(64, 8);
  cr_assert(gs_draft_find(&draft, &kept) && !gs_draft_find(&draft, &gone));
  gs_draft_close(&draft);
}

Test(tune, a_table_of_another_machine_is_left_alone) {
  gs_draft_t draft;
  cr_assert(gs_draft_open(&draft, file, &header));
  settle(&draft, 64, 8, 2);
  gs_draft_close(&draft);
  gs_table_header_t other = header;
  other.cublas[1]++;
  cr_assert_not(gs_draft_open(&draft, file, &other));
  other = header;
  strcpy(other.gpu, "another GPU");
  cr_assert_not(gs_draft_open(&draft, file, &other));
  cr_assert_eq(rows_in_file(), 1);
  write_file("no table\n");
  cr_assert_not(gs_draft_open(&draft, file, &header));
}

/* The lock's file goes away with its holder: who opened it just before must not take what is left for the lock. */
static int hold_alone(int times) {
  char held[72];
  int shared = 0;
  snprintf(held, sizeof held, "%s.held", file);
  freopen("/dev/null", "w", stderr);
  for (int i = 0; i < times; i++) {
    gs_draft_t draft;
    if (!gs_draft_open(&draft, file, &header)) continue;
    int fd = open(held, O_CREAT | O_EXCL, 0600);
    if (fd < 0)
      shared++;
    else
      unlink(held), close(fd);
    gs_draft_close(&draft);
  }
  return shared > 0;
}

Test(tune, T3_a_lock_is_held_by_one) {
  enum { TUNERS = 4 };
  pid_t tuners[TUNERS];
  for (int i = 0; i < TUNERS; i++)
    if (!(tuners[i] = fork())) _exit(hold_alone(20000));
  for (int i = 0; i < TUNERS; i++) {
    int status = 0;
    cr_assert(tuners[i] > 0 && waitpid(tuners[i], &status, 0) == tuners[i]);
    cr_expect_eq(status, 0, "two had the table at once");
  }
}

Test(tune, T3_two_tuners_do_not_share_a_table) {
  gs_draft_t draft, second;
  cr_assert(gs_draft_open(&draft, file, &header));
  cr_assert_not(gs_draft_open(&second, file, &header));
  settle(&draft, 64, 8, 2);
  gs_draft_close(&draft);
  cr_assert(gs_draft_open(&second, file, &header));
  cr_assert_eq(second.count, 1);
  gs_draft_close(&second);
}
