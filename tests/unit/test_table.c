/* Tables: what is read, what is refused and with which words, what a look-up finds. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gs_table.h"

#define HEADER                                                                                               \
  "format: 1\ngpu: NVIDIA H200\narch: sm_90\nsms: 132\ncublas: 13.1.0\nmethod: a test\ndate: 2026-11-29\n"
#define ROW(interval)                                                                                        \
  "T\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t" interval "\t" ID "\t1\t1\t5\t6\t0\t0\n"
#define ALGO "lt_66_t20_s36_r2_z1_c4_i0_h12"
#define ALGO_ROW(compute, algo, raster)                                                                      \
  "T\tN\t4096\t4096\tf16\tf16\t" compute "\tdefault\tsingle\t20\t30\t" algo "\t3\t" raster "\t5\t6\t0\t0\n"
#define ID "mma_f16_f16_tn_64x32x64_s6_w4"

static char said[4096];
static int lines;

static void say(void *context, const char *line) {
  (void)context;
  lines++;
  strncat(said, line, sizeof said - strlen(said) - 2);
  strcat(said, "\n");
}

static gs_table_t *parse(const char *text, gs_status_t expected) {
  gs_table_t *table;
  said[0] = '\0', lines = 0;
  gs_status_t status = gs_table_parse(text, strlen(text), "t.table", say, NULL, &table);
  cr_assert_eq(status, expected, "status %s, said: %s", gs_status_text(status), said);
  cr_assert_eq(table == NULL, expected != GS_OK);
  return table;
}

static gs_gemm_t gemm(int64_t n) {
  gs_gemm_t g = {.transa = GS_OP_T, .a_type = GS_TYPE_F16, .b_type = GS_TYPE_F16, .c_type = GS_TYPE_F16};
  g.d_type = GS_TYPE_F16, g.compute = GS_COMPUTE_32F, g.m = g.k = 4096, g.n = n, g.batch = 1;
  return g;
}

Test(table, a_row_serves_its_interval_and_nothing_else) {
  gs_table_t *table = parse(HEADER ROW("2\t8") ROW("16\t16"), GS_OK);
  cr_assert_eq(lines, 0, "%s", said);
  cr_assert_eq(gs_table_rows(table), 2);
  for (int64_t n = 1; n <= 18; n++) {
    gs_gemm_t g = gemm(n);
    const gs_row_t *row = gs_table_find(table, &g);
    cr_assert_eq(row != NULL, (n >= 2 && n <= 8) || n == 16, "n = %d", (int)n);
    if (row) cr_assert(n >= row->n_lo && n <= row->n_hi);
  }
  gs_table_free(table);
}

Test(table, every_part_of_the_key_counts) {
  gs_table_t *table = parse(HEADER ROW("1\t64"), GS_OK);
  gs_gemm_t g = gemm(8), other;
  cr_assert_not_null(gs_table_find(table, &g));
#define DIFFERS(member, value)                                                                               \
  other = g, other.member = value;                                                                           \
  cr_assert_null(gs_table_find(table, &other), #member)
  DIFFERS(transa, GS_OP_N);
  DIFFERS(transb, GS_OP_T);
  DIFFERS(m, 4095);
  DIFFERS(k, 4097);
  DIFFERS(a_type, GS_TYPE_BF16);
  DIFFERS(d_type, GS_TYPE_F32);
  DIFFERS(compute, GS_COMPUTE_16F);
  DIFFERS(epilogue, GS_EPILOGUE_BIAS);
  DIFFERS(batch_kind, GS_BATCH_STRIDED);
  DIFFERS(m, 4096 + (1ll << 32));
#undef DIFFERS
  other = g, other.transa = GS_OP_C; /* real types: the conjugate transpose is the transpose */
  cr_assert_not_null(gs_table_find(table, &other));
  gs_table_free(table);
}

#define BATCH_ROW(batch)                                                                                     \
  "T\tN\t4096\t4096\tf16\tf16\t32f\tdefault\t" batch "\t1\t8\t" ID "\t1\t1\t5\t6\t0\t0\n"

/* What was measured at 12 products says nothing of 13, nor of one. */
Test(table, a_row_of_a_batch_serves_its_number_of_products_alone) {
  gs_table_t *table =
      parse(HEADER BATCH_ROW("strided:12") BATCH_ROW("strided:512") BATCH_ROW("strided:65535"), GS_OK);
  cr_assert_eq(gs_table_rows(table), 3, "%s", said);
  static const int batches[] = {0, 1, 11, 12, 13, 512, 65535, 65536 + 12, -1};
  for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
    char text[16], wanted[16];
    gs_gemm_t g = gemm(8);
    g.batch_kind = GS_BATCH_STRIDED, g.batch = batches[i];
    const gs_row_t *row = gs_table_find(table, &g);
    bool measured = batches[i] == 12 || batches[i] == 512 || batches[i] == 65535;
    cr_assert_eq(row != NULL, measured, "%d products", batches[i]);
    if (!row) continue;
    gs_row_batch(text, sizeof text, row);
    snprintf(wanted, sizeof wanted, "strided:%d", batches[i]);
    cr_assert_str_eq(text, wanted);
    g.batch_kind = GS_BATCH_ARRAY;
    cr_assert_null(gs_table_find(table, &g), "a row is for strided batches");
  }
  gs_gemm_t single = gemm(8);
  cr_assert_null(gs_table_find(table, &single));
  gs_table_free(table);
}

/* As tables said it before rows were for one number: nobody knows for which. */
Test(table, a_table_of_before_keeps_its_rows_but_those_of_batches) {
  gs_table_t *table = parse(HEADER ROW("2\t8") BATCH_ROW("strided") ROW("16\t16"), GS_OK);
  cr_assert(gs_table_rows(table) == 2 && gs_table_refused(table) == 1);
  cr_assert(strstr(said, "t.table:9: batch 'strided' does not say how many products, as in strided:12") &&
                strstr(said, "run gemmshim tune again"),
            "%s", said);
  gs_table_free(table);
}

Test(table, a_row_prints_as_it_was_read) {
  char row[512], again[1024];
  gs_table_t *table = parse(HEADER BATCH_ROW("strided:300"), GS_OK);
  gs_row_format(row, sizeof row, gs_table_row(table, 0));
  cr_assert(strstr(row, "\tstrided:300\t1\t8\t"), "%s", row);
  snprintf(again, sizeof again, HEADER "%s\n", row);
  gs_table_t *second = parse(again, GS_OK);
  cr_assert_eq(gs_table_rows(second), 1, "%s", said);
  gs_row_t a = *gs_table_row(table, 0), b = *gs_table_row(second, 0);
  cr_assert(memcmp(&a.key, &b.key, sizeof a.key) == 0 && a.n_lo == b.n_lo && a.n_hi == b.n_hi &&
            a.us == b.us);
  gs_table_free(table);
  gs_table_free(second);
}

Test(table, a_row_may_name_an_algorithm_of_the_library) {
  char line[512], wanted[512];
  gs_table_t *table = parse(HEADER ROW("2\t8") ALGO_ROW("32f", ALGO, "1"), GS_OK);
  cr_assert_eq(gs_table_rows(table), 2, "%s", said);
  const gs_row_t *row = gs_table_row(table, 1);
  cr_assert(row->by_library && row->algo.id == 66 && row->algo.tile == 20 && row->algo.stages == 36 &&
            row->algo.reduction == 2 && row->algo.swizzle == 1 && row->algo.custom == 4 &&
            row->algo.cluster == 12 && row->split_k == 3);
  gs_row_format(line, sizeof line, row);
  snprintf(wanted, sizeof wanted, "\t%s\t3\t1\t5.000", ALGO);
  cr_assert(strstr(line, wanted), "%s", line);
  gs_gemm_t g = gemm(25);
  g.lda = g.ldb = g.ldc = g.ldd = 4096;
  cr_assert_eq(gs_row_supports(row, &g), GS_REASON_SERVED);
  g.align = 2, g.compute = GS_COMPUTE_16F;
  cr_assert_eq(gs_row_supports(row, &g), GS_REASON_TYPE);
  /* Wide as its margin is, another build numbers algorithms anew. */
  gs_row_t wide = *row;
  wide.library_us = 100 * wide.us;
  cr_assert(gs_row_proven(gs_table_header(table), &wide, (int[3]){13, 1, 0}));
  cr_assert_not(gs_row_proven(gs_table_header(table), &wide, (int[3]){13, 1, 1}));
  gs_table_free(table);
}

/* Two fields more, or none. */
Test(table, times_at_a_server_may_be_there) {
  char line[512];
  gs_table_t *table = parse(HEADER "T\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t1\t2\t" ID
                                   "\t1\t1\t5\t6\t7\t8\t9.5\t10.25\n" ROW("16\t16"),
                            GS_OK);
  cr_assert_eq(gs_table_rows(table), 2, "%s", said);
  const gs_row_t *with = gs_table_row(table, 0), *without = gs_table_row(table, 1);
  cr_assert(with->server_us == 9.5f && with->library_server_us == 10.25f && !without->server_us);
  gs_row_format(line, sizeof line, with);
  cr_assert(strstr(line, "\t7.00\t8.00\t9.50\t10.25"), "%s", line);
  gs_row_format(line, sizeof line, without);
  cr_assert_not(strstr(line, "\t0.00\t0.00\t"), "%s", line);
  gs_table_free(table);
}

Test(table, the_header_prints_as_it_was_read) {
  char text[600];
  gs_table_t *table = parse(HEADER, GS_OK), *second;
  gs_table_header_format(text, sizeof text, gs_table_header(table));
  second = parse(text, GS_OK);
  cr_assert_eq(memcmp(gs_table_header(table), gs_table_header(second), sizeof(gs_table_header_t)), 0);
  gs_table_free(table);
  gs_table_free(second);
}

Test(table, T2_faulty_rows_are_refused_by_line_and_others_stay) {
  static const struct {
    const char *row, *words;
  } cases[] = {
      {"T\tN\t4096\n", "fewer than the 18"},
      {"T\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t1\t2\t" ID "\t1\t1\t5\t6\t0\t0\t9\n",
       "more than the 18"},
      {"T\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t1\t2\t" ID "\t1\t1\t5\t6\t0\t0\t9\tx\n",
       "library server time 'x'"},
      {"T\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t1\t2\t" ID "\t1\t1\t5\t6\t0\t0\t9\t9\t9\n",
       "more than the 18"},
      {"X\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t1\t2\t" ID "\t1\t1\t5\t6\t0\t0\n", "transa"},
      {"T\tN\t0\t4096\tf16\tf16\t32f\tdefault\tsingle\t1\t2\t" ID "\t1\t1\t5\t6\t0\t0\n", "m '0'"},
      {"T\tN\t4096\t4096\tf17\tf16\t32f\tdefault\tsingle\t1\t2\t" ID "\t1\t1\t5\t6\t0\t0\n", "type 'f17'"},
      {"T\tN\t4096\t4096\tf16\tf16\t31f\tdefault\tsingle\t1\t2\t" ID "\t1\t1\t5\t6\t0\t0\n", "compute type"},
      {"T\tN\t4096\t4096\tf16\tf16\t32f\tsoftmax\tsingle\t1\t2\t" ID "\t1\t1\t5\t6\t0\t0\n", "epilogue"},
      {"T\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tarray\t1\t2\t" ID "\t1\t1\t5\t6\t0\t0\n", "batch 'array'"},
      {BATCH_ROW("strided:0"), "batch 'strided:0' is neither"},
      {BATCH_ROW("strided:65536"), "batch 'strided:65536' is neither"},
      {BATCH_ROW("strided:8-64"), "batch 'strided:8-64' is neither"},
      {BATCH_ROW("strided:"), "batch 'strided:' is neither"},
      {BATCH_ROW("strided:7") BATCH_ROW("strided:7"), "overlaps that of line 9"},
      {ROW("9\t8"), "is empty"},
      {ROW("1\tmany"), "n_hi"},
      {ROW("1\t99999999999"), "n_hi"},
      {"T\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t1\t2\tmma_f16\t1\t1\t5\t6\t0\t0\n",
       "not a kernel id"},
      {"T\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t1\t2\tmma_f16_f16_tn_16x16x32_s9_"
       "w1\t1\t1\t5\t6\t0\t0\n",
       "not in this build"},
      {"N\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t1\t2\t" ID "\t1\t1\t5\t6\t0\t0\n", "cannot serve"},
      {"T\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t1\t2\t" ID "\t0\t1\t5\t6\t0\t0\n", "split_k"},
      {"T\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t1\t2\t" ID "\t1\t1\t-5\t6\t0\t0\n", "time '-5'"},
      {"T\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t1\t2\t" ID "\t1\t1\tnan\t6\t0\t0\n", "time 'nan'"},
      {"T\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t1\t2\t" ID "\t1\t1\t5\t0\t0\t0\n", "library time"},
      {"T\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t1\t2\tdirect_f16_f16_tn_16x16_u4_"
       "w8\t9\t1\t5\t6\t0\t0\n",
       "splits k at most 8 times"},
      {ALGO_ROW("32f", "lt_66_t20_s36_r4_z1_c4_i0_h12", "1"), "rounds partial sums"},
      {ALGO_ROW("32f", "lt_66_t20_s36_r0_z1_c4_i0", "1"), "not a cuBLASLt algorithm"},
      {ALGO_ROW("32f", "lt_66_t020_s36_r0_z1_c4_i0_h12", "1"), "not a cuBLASLt algorithm"},
      {ALGO_ROW("32f", "lt_66_t20_s36_r0_z1_c4_i0_h12_x", "1"), "not a cuBLASLt algorithm"},
      {ALGO_ROW("16f", ALGO, "1"), "cannot serve"},
      {ALGO_ROW("32f", ALGO, "2"), "raster must be 1"},
      {ROW("100\t120") ROW("110\t130"), "overlaps that of line 9"},
      {"just words\n", "fewer than the 18"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[2048];
    snprintf(text, sizeof text, HEADER "%s%s%s", ROW("2\t8"), cases[i].row, ROW("500\t500"));
    gs_table_t *table = parse(text, GS_OK);
    cr_assert(strstr(said, cases[i].words), "wanted '%s' of: %s\nsaid: %s", cases[i].words, cases[i].row,
              said);
    cr_assert(strstr(said, "t.table:"), "no file and line: %s", said);
    cr_assert_eq(gs_table_refused(table), 1, "%s", cases[i].row);
    gs_gemm_t before = gemm(8), after = gemm(500);
    cr_assert(gs_table_find(table, &before) && gs_table_find(table, &after), "%s", cases[i].row);
    gs_table_free(table);
  }
}

Test(table, T2_a_faulty_header_refuses_the_file) {
  static const struct {
    const char *text, *words;
  } cases[] = {
      {"", "header 'format' is missing"},
      {ROW("1\t2"), "header 'gpu' is missing"},
      {"format: 2\n", "format: 2"},
      {"format: 1\nformat: 1\n", "stands twice"},
      {"colour: red\n", "unknown header 'colour'"},
      {"sms: -4\n", "sms: -4"},
      {"cublas: 13\n", "cublas: 13"},
      {"arch: 90\n", "arch: 90"},
      {"gpu:\n", "gpu: "},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    parse(cases[i].text, GS_SYNTAX);
    cr_assert(strstr(said, cases[i].words), "wanted '%s', said: %s", cases[i].words, said);
  }
}

Test(table, T2_binary_text_is_refused) {
  gs_table_t *table;
  const char text[] = "format: 1\ngpu: \0 odd\n";
  cr_assert_eq(gs_table_parse(text, sizeof text - 1, "t.table", say, NULL, &table), GS_SYNTAX);
  cr_assert_null(table);
}

Test(table, T2_a_flood_of_faults_refuses_the_file) {
  char *text = calloc(1, 100000);
  strcpy(text, HEADER);
  for (int i = 0; i < 1000; i++) strcat(text, "T\tN\n");
  parse(text, GS_SYNTAX);
  cr_assert_leq(lines, GS_TABLE_FAULTS_MAX + 2);
  cr_assert(strstr(said, "too many faults"));
  free(text);
}

Test(table, comments_blank_lines_crlf_and_a_missing_last_newline_are_fine) {
  gs_table_t *table =
      parse("# a comment\r\n\r\n" HEADER "\n# rows\nT\tN\t4096\t4096\tf16\tf16\t32f\tdefault\tsingle\t1"
            "\t2\t" ID "\t1\t1\t5\t6\t0\t0\r",
            GS_OK);
  cr_assert_eq(gs_table_rows(table), 1, "%s", said);
  gs_table_free(table);
}

Test(table, T1_a_row_is_proven_by_build_or_by_margin) {
  gs_table_t *table = parse(HEADER ROW("1\t1") "T\tN\t64\t64\tf16\tf16\t32f\tdefault\tsingle\t1\t1\t" ID
                                               "\t1\t1\t5\t5.2\t0\t0\n",
                            GS_OK);
  const gs_table_header_t *header = gs_table_header(table);
  for (int i = 0; i < 2; i++) {
    const gs_row_t *row = gs_table_row(table, i);
    bool wide = row->library_us >= 1.1f * row->us;
    cr_assert(gs_row_proven(header, row, (int[3]){13, 1, 0}));
    cr_assert_eq(gs_row_proven(header, row, (int[3]){13, 1, 1}), wide);
    cr_assert_eq(gs_row_proven(header, row, (int[3]){13, 2, 0}), wide);
    cr_assert_not(gs_row_proven(header, row, (int[3]){12, 1, 0}));
  }
  gs_table_free(table);
  table = parse(HEADER "predicted: yes\n" ROW("1\t1"), GS_OK);
  cr_assert_not(gs_row_proven(gs_table_header(table), gs_table_row(table, 0), (int[3]){13, 1, 0}));
  gs_table_free(table);
}

Test(table, T2_what_is_not_a_file_is_refused_with_its_name) {
  gs_table_t *table;
  char fifo[64];
  snprintf(fifo, sizeof fifo, "/tmp/gs-table-fifo.%ld", (long)getpid());
  cr_assert_eq(mkfifo(fifo, 0600), 0);
  const char *paths[] = {"/tmp", "/nonexistent/x.table", fifo, "/dev/zero"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    said[0] = '\0';
    cr_assert_eq(gs_table_load(paths[i], say, NULL, &table), GS_IO, "%s", paths[i]);
    cr_assert(strstr(said, paths[i]), "%s", said);
    cr_assert_null(table);
  }
  unlink(fifo);
}

Test(table, gpu_names_become_file_names) {
  static const char *const pairs[][2] = {{"NVIDIA H200", "nvidia-h200"},
                                         {"NVIDIA A100-SXM4-80GB", "nvidia-a100-sxm4-80gb"},
                                         {"../../etc/passwd", "etc-passwd"},
                                         {"", ""}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    char slug[64];
    gs_gpu_slug(pairs[i][0], slug, sizeof slug);
    cr_assert_str_eq(slug, pairs[i][1]);
  }
}

Test(table, the_built_in_tables_are_valid) {
  for (int i = 0; i < gs_builtin_table_count(); i++) {
    const char *name;
    size_t length;
    gs_table_t *table;
    const char *text = gs_builtin_table(i, &name, &length);
    said[0] = '\0';
    cr_assert_eq(gs_table_parse(text, length, name, say, NULL, &table), GS_OK, "%s", said);
    cr_assert_eq(gs_table_refused(table), 0, "%s", said);
    gs_table_free(table);
  }
}
