/* gemmshim table. Faults of rows one by one are the table's unit tests; here: that they are said and counted.
 */
#include "cli.h"

SUITE(table);

Test(table, a_good_table) {
  result_t r = sh("$G table check $TABLE");
  STATUS(r, 0);
  HAS(r.out, "digest ");
  HAS(r.out, "0 refused");
  HAS(r.out, "proven on gemmshim CPU stand-in with cuBLAS 13.1.0");
  cr_assert(lines_of(r.out) == 1, "%s", r.out);
}

Test(table, show_prints_a_table_that_reads_back_as_itself) {
  result_t first = sh("$G table show $TABLE > copy"), second = sh("$G table show ./copy | cmp - copy");
  STATUS(first, 0);
  STATUS(second, 0);
  STATUS(sh("$G table check ./copy"), 0);
}

Test(table, json) {
  result_t r = sh("$G table show --json $TABLE");
  STATUS(r, 0);
  cJSON *root = json(r.out);
  cr_assert_str_eq(string_at(root, "gpu"), "gemmshim CPU stand-in");
  HAS(sh("$G table check $TABLE").out, string_at(root, "digest"));
  cr_assert(number_at(root, "sms") == 132 && number_at(root, "cublas.0") == 13);
  cr_assert(number_at(root, "rows.0.m") > 0);
  cr_assert(number_at(root, "rows.0.library_us") == 10);
  HAS(string_at(root, "rows.0.kernel"), "mma_");
  cr_assert(cJSON_IsTrue(json_at(root, "rows.0.proven")));
}

Test(table, built_in_tables_are_listed_and_shown) {
  result_t names = sh("$G table show"), machine = sh("$G table show --json");
  STATUS(names, 0);
  cr_assert(lines_of(names.out) == cJSON_GetArraySize(json(machine.out)) && lines_of(names.out) > 0);
  result_t each =
      sh("for name in $($G table show); do $G table check $name || exit; $G table show $name; done");
  STATUS(each, 0);
  HAS(each.out, "gpu: ");
}

Test(table, a_faulty_row_is_said_with_its_line_and_the_others_stay) {
  result_t r = sh("sed 's/mma_f16_f16_tn_128x32x32_s5_w4/mma_nonsense/' $TABLE > t; $G table check t");
  STATUS(r, GS_EXIT_FALSE);
  result_t line = sh("grep -n mma_nonsense t | head -1 | sed 's/\\([0-9]*\\).*/t:\\1: /'");
  line.out[strcspn(line.out, "\n")] = 0;
  HAS(r.out, line.out);
  LACKS(r.out, " 0 refused");
  STATUS(sh("$G table show t > /dev/null"), GS_EXIT_FALSE);
}

Test(table, a_faulty_header_refuses_the_file) {
  result_t r = sh("sed 's/^format: 1/format: 99/' $TABLE > t; $G table check t");
  STATUS(r, GS_EXIT_FALSE);
  HAS(r.out, "t:");
  HAS(r.out, "refused");
}

Test(table, things_that_are_no_table) {
  static const struct {
    const char *make;
    int status;
  } cases[] = {
      {"mkdir t", GS_EXIT_FALSE},
      {"mkfifo t", GS_EXIT_FALSE},
      {": > t", GS_EXIT_FALSE},
      {"head -c 5000 /dev/urandom > t", GS_EXIT_FALSE},
      {"head -c 5000 /dev/zero > t", GS_EXIT_FALSE},
      {"head -c 200 $TABLE > t", GS_EXIT_FALSE},
      {"truncate -s 100M t", GS_EXIT_FALSE},
      {"ln -s t t", GS_EXIT_MACHINE},
      {":", GS_EXIT_MACHINE},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    result_t r = sh("rm -rf t; %s; timeout 10 $G table check ./t", cases[i].make);
    cr_assert(r.status == cases[i].status, "%s: %d\n%s%s", cases[i].make, r.status, r.out, r.err);
    cr_assert(strstr(r.out, "t:") || strstr(r.err, "t:"), "%s: %s%s", cases[i].make, r.out, r.err);
  }
}

Test(table, merge_joins_tables_and_keeps_what_was_there) {
  STATUS(sh("head -12 $TABLE > a; (grep -v '^[NT]' $TABLE; grep '^[NT]' $TABLE | tail -5) > b"), 0);
  int all = atoi(sh("grep -c '^[NT]' $TABLE").out);
  result_t r = sh("$G table merge whole a b a");
  STATUS(r, 0);
  STATUS(sh("$G table check whole"), 0);
  cr_assert_eq(atoi(sh("grep -c '^[NT]' whole").out), all, "%s", r.out);
  HAS(r.out, "claimed n that were claimed already");
  STATUS(sh("$G table merge again whole b && cmp again whole"), 0);
}

Test(table, merge_refuses_what_does_not_belong_together) {
  STATUS(sh("cp $TABLE a; sed 's/^gpu: .*/gpu: another/' a > b; sed 's/mma_/mna_/' a > c; echo no > d"), 0);
  static const char *const wrong[][2] = {
      {"a b", "is of another"}, {"a c", "has faulty rows"}, {"a d", "d:1:"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    result_t r = sh("$G table merge out %s", wrong[i][0]);
    STATUS(r, GS_EXIT_FALSE);
    HAS(r.err, wrong[i][1]);
    cr_assert(!exists("out") && !exists("out.lock"));
  }
  STATUS(sh("$G table merge out a nonexistent"), 3);
  STATUS(sh("$G table merge out"), 2);
  STATUS(sh("$G table merge /nonexistent/out a"), 3);
}

/* What was predicted and what was measured do not share a table, since its header says which it is. */
Test(table, merge_keeps_predictions_among_themselves) {
  STATUS(
      sh("(grep -v '^[NT]' $TABLE; echo 'predicted: yes'; grep '^[NT]' $TABLE | head -3) > p; "
         "(grep -v '^[NT]' $TABLE; echo 'predicted: yes'; grep '^[NT]' $TABLE | tail -3) > q; cp $TABLE m"),
      0);
  STATUS(sh("$G table merge out p"), 0);
  STATUS(sh("$G table merge out q"), 0);
  STATUS(sh("grep -q '^predicted: yes' out && test $(grep -c '^[NT]' out) = $(grep -c '^[NT]' m)"), 0);
  HAS(sh("$G table merge out m").err, "out: holds rows that this run cannot keep");
  HAS(sh("$G table merge new m p").err, "p: is of gemmshim CPU stand-in with cuBLAS 13.1.0, predicted, ");
  cr_assert(!exists("new") && !exists("out.lock"));
}

#define TILES "m,n,k,bm,bn,accumulator,offline_lt_autotune\\n"

Test(table, predict_makes_rows_that_nothing_serves_yet) {
  STATUS(sh("printf '" TILES "512,1024,2048,64,128,f32,1.5\\n64,64,64,64,64,f16,9\\n64,64,128,,,f32,1.2\\n"
            "256,256,256,64,64,f32,1.01\\n' > t.csv"),
         0);
  result_t r = sh("$G table predict --gpu a100 --tiles t.csv p.table");
  STATUS(r, 0);
  HAS(r.out, "2 rows predicted from 4 lines; none is measured");
  STATUS(sh("grep -q '^predicted: yes' p.table && grep -q 'T.N.1024.2048.*512.512.mma_f16_f16_tn_128x64x' "
            "p.table"),
         0);
  HAS(sh("$G table check p.table").out, "0 proven");
  STATUS(sh("$G table predict --gpu b300 --tiles t.csv p.table"), 2);
  STATUS(sh("$G table predict --gpu a100 --tiles nonexistent p.table"), 3);
  STATUS(sh("printf 'm,n\\n1,2\\n' > u.csv; $G table predict --gpu a100 --tiles u.csv q.table"), 3);
  cr_assert(!exists("q.table"));
}
