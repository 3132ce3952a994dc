/* gemmshim report, on histograms and .calls files made here. */
#include "cli.h"

SUITE(report);

/* Shape 8: 1000 served calls of 100 us; shape 16: 500 forwarded of 300 us; shape 24: 10 never sampled. */
static histogram_t sample(void) {
  histogram_t h;
  histogram_init(&h);
  strcpy(histogram_add(&h, 8, GS_REASON_SERVED, 1000, 100)->kernel, "mma_f16_f16_tn_128x64x32_s4_w4");
  histogram_add(&h, 16, GS_REASON_NO_ROW, 500, 300);
  histogram_add(&h, 24, GS_REASON_ALIGNMENT, 10, 0);
  return h;
}

static cJSON *report_json(const char *arguments, int status) {
  result_t r = sh("$G report --json %s", arguments);
  STATUS(r, status);
  return json(r.out);
}

Test(report, counts_times_and_verdicts) {
  histogram_t h = sample();
  histogram_write(&h, "a.gshist");
  cJSON *root = report_json("a.gshist", 0);
  cr_assert(number_at(root, "calls") == 1510);
  cr_assert(number_at(root, "served") == 1000);
  cr_assert(number_at(root, "verdicts.no_row") == 500);
  cr_assert(number_at(root, "gpu_us") == 250000);
  cr_assert(number_at(root, "served_gpu_us") == 100000);
  cr_assert(number_at(root, "shapes.0.n") == 16); /* by time: 150 ms before 100 ms */
  cr_assert(number_at(root, "shapes.0.mean_us") == 300);
  cr_assert(number_at(root, "shapes.1.served") == 1000);
  cr_assert_str_eq(string_at(root, "shapes.1.kernel"), "mma_f16_f16_tn_128x64x32_s4_w4");
  cr_assert(cJSON_IsNull(json_at(root, "shapes.2.mean_us"))); /* unknown, not zero */
}

Test(report, text_names_who_served_and_why) {
  histogram_t h = sample();
  histogram_write(&h, "a.gshist");
  result_t r = sh("$G report a.gshist");
  STATUS(r, 0);
  HAS(r.out, "1510 products of 3 shapes; gemmshim served 1000 (66.2% of the calls, 40.0% of their GPU time)");
  HAS(r.out, "forwarded 500 (33.1%) no_row");
  HAS(r.out, "60.0%       500    300.0  library: no_row  cublasGemmEx TN 1024x16x512");
  HAS(r.out, "40.0%      1000    100.0  mma_f16_f16_tn_128x64x32_s4_w4  cublasGemmEx TN 1024x8x512");
  HAS(r.out, "?        10        ?  library: alignment");
}

Test(report, by_count_and_top) {
  histogram_t h = sample();
  histogram_write(&h, "a.gshist");
  cJSON *root = report_json("--by count --top 1 a.gshist", 0);
  cr_assert(number_at(root, "shapes.0.n") == 8);
  cr_assert(cJSON_GetArraySize(json_at(root, "shapes")) == 1);
  cr_assert(number_at(root, "shapes_seen") == 3);
  HAS(sh("$G report --top 1 a.gshist").out, "and 2 more shapes");
}

Test(report, files_and_folders_are_merged) {
  histogram_t h = sample();
  cr_assert(sh("mkdir d").status == 0);
  histogram_write(&h, "d/a.gshist");
  histogram_write(&h, "d/b.gshist");
  histogram_write(&h, "c");
  write_file("d/notes.txt", "not mine", 8);
  cJSON *root = report_json("d c", 0);
  cr_assert(number_at(root, "processes") == 3);
  cr_assert(number_at(root, "calls") == 3 * 1510);
  cr_assert(number_at(root, "shapes.0.calls") == 1500);
  cr_assert(number_at(root, "shapes.0.mean_us") == 300);
  cr_assert(number_at(root, "ceiling.window_s") == 3);
}

Test(report, means_are_weighted_by_calls) {
  histogram_t one, two;
  histogram_init(&one), histogram_init(&two);
  histogram_add(&one, 8, GS_REASON_NO_ROW, 100, 10);
  histogram_add(&two, 8, GS_REASON_NO_ROW, 300, 50);
  histogram_write(&one, "1"), histogram_write(&two, "2");
  cJSON *root = report_json("1 2", 0);
  cr_assert(number_at(root, "shapes.0.mean_us") == 40);
  cr_assert(number_at(root, "gpu_us") == 16000);
}

/* ---- the ceiling; the window is one second ---- */

static result_t ceiling_of(gs_reason_t reason, uint64_t calls, double mean_us) {
  histogram_t h;
  histogram_init(&h);
  histogram_add(&h, 8, reason, calls, mean_us);
  histogram_write(&h, "a.gshist");
  result_t r = sh("$G report a.gshist");
  STATUS(r, 0);
  return r;
}

Test(report, ceiling_is_one_over_the_rest) { /* half of the time: 2x */
  HAS(ceiling_of(GS_REASON_NO_ROW, 5000, 100).out,
      "ceiling 2.00x: products that gemmshim can compute take 50.0% of the 1 s from the first to the last");
}

Test(report, low_ceiling_says_stop) { /* 1%: 1.01x */
  HAS(ceiling_of(GS_REASON_NO_ROW, 100, 100).out, "ceiling 1.01x: stop here");
}

Test(report, products_that_fill_the_window) {
  HAS(ceiling_of(GS_REASON_SERVED, 20000, 100).out, "ceiling above 100x");
}

Test(report, without_samples_the_ceiling_is_unknown) {
  HAS(ceiling_of(GS_REASON_NO_ROW, 100, 0).out, "ceiling unknown: no timed samples");
}

Test(report, unservable_products_do_not_raise_the_ceiling) {
  histogram_t h;
  histogram_init(&h);
  gs_slot_t *slot = histogram_add(&h, 8, GS_REASON_ENTRY, 5000, 100);
  slot->gemm.entry = GS_ENTRY_SGEMM;
  slot->gemm.a_type = slot->gemm.b_type = slot->gemm.c_type = slot->gemm.d_type = GS_TYPE_F32;
  histogram_write(&h, "a.gshist");
  cJSON *root = report_json("a.gshist", 0);
  cr_assert(number_at(root, "ceiling.value") == 1);
  cr_assert(cJSON_IsFalse(json_at(root, "shapes.0.servable")));
}

Test(report, never_sampled_shapes_count_at_the_mean) { /* 2500 x 100 us and as many of unknown time: 50% */
  histogram_t h;
  histogram_init(&h);
  histogram_add(&h, 8, GS_REASON_NO_ROW, 2500, 100);
  histogram_add(&h, 16, GS_REASON_NO_ROW, 2500, 0);
  histogram_write(&h, "a.gshist");
  cr_assert(number_at(report_json("a.gshist", 0), "ceiling.value") == 2);
}

Test(report, captured_calls_hide_the_ceiling_and_have_no_time) {
  histogram_t h;
  histogram_init(&h);
  histogram_add(&h, 8, GS_REASON_NO_ROW, 100, 50)->captured = 25;
  histogram_write(&h, "a.gshist");
  HAS(sh("$G report a.gshist").out, "ceiling unknown: 25% of the products were captured into CUDA graphs");
  cJSON *root = report_json("a.gshist", 0);
  cr_assert(cJSON_IsNull(json_at(root, "ceiling.value")));
  cr_assert(number_at(root, "gpu_us") == 75 * 50);
  cr_assert(number_at(root, "shapes.0.captured") == 25);
}

/* 100 calls of 50 us, 25 of them captured, and 925 replays seen: 50 ms of a second. */
Test(report, replays_that_are_seen_count) {
  histogram_t h;
  histogram_init(&h);
  gs_slot_t *slot = histogram_add(&h, 8, GS_REASON_NO_ROW, 100, 50);
  slot->captured = slot->traced = 25, slot->replayed = 925;
  histogram_write(&h, "a.gshist");
  cJSON *root = report_json("a.gshist", 0);
  cr_assert(number_at(root, "gpu_us") == 1000 * 50 && number_at(root, "ceiling.share") == 0.05);
  cr_assert(number_at(root, "shapes.0.replays") == 925 && number_at(root, "shapes.0.traced") == 25);
  cr_assert(number_at(root, "replays") == 925);
  HAS(sh("$G report a.gshist").out, "[25 captured, replays: 925]");
  HAS(sh("$G report --csv a.gshist").out, ",100,0,25,925,");
  HAS(sh("$G report --prometheus a.gshist").out, "gemmshim_replayed_products_total 925\n");
  HAS(sh("$G report --calls a.calls a.gshist; cat a.calls").out, "\t100\t0\t50.000\t25\t925\n");
  root = report_json("a.calls", 0);
  cr_assert(number_at(root, "shapes.0.replays") == 925 && number_at(root, "gpu_us") == 1000 * 50);
}

/* Unknown is never zero; of two processes one of which was seen, there were that many at least. */
Test(report, replays_that_are_not_seen_are_unknown) {
  histogram_t h;
  histogram_init(&h);
  gs_slot_t *slot = histogram_add(&h, 8, GS_REASON_NO_ROW, 100, 50);
  slot->captured = 25;
  histogram_write(&h, "unseen.gshist");
  slot->traced = 25, slot->replayed = 925;
  histogram_write(&h, "seen.gshist");
  cr_assert(cJSON_IsNull(json_at(report_json("unseen.gshist", 0), "shapes.0.replays")));
  HAS(sh("$G report unseen.gshist").out, "[25 captured, replays: unknown]");
  HAS(sh("$G report --csv unseen.gshist").out, ",100,0,25,,");
  result_t both = sh("$G report seen.gshist unseen.gshist");
  HAS(both.out, "[50 captured, replays: at least 925]");
  HAS(both.out, "ceiling unknown: 13% of the products were captured into CUDA graphs");
  HAS(sh("$G report --prometheus seen.gshist unseen.gshist").out, "gemmshim_untraced_products_total 25\n");
  STATUS(sh("$G report --calls a.calls seen.gshist unseen.gshist"), 0);
  cr_assert(cJSON_IsNull(json_at(report_json("a.calls", 0), "shapes.0.replays")));
}

/* ---- other forms ---- */

Test(report, calls_file_reads_back) {
  histogram_t h = sample();
  histogram_add(&h, 32, GS_REASON_NO_ROW, 7, 0)->captured = 3;
  histogram_write(&h, "a.gshist");
  STATUS(sh("$G report --calls app.calls a.gshist > first; $G report --calls again.calls app.calls > second"),
         0);
  STATUS(sh("cmp app.calls again.calls"), 0);
  cJSON *root = report_json("app.calls", 0);
  cr_assert(number_at(root, "calls") == 1517 && number_at(root, "served") == 1000);
  cr_assert(number_at(root, "captured") == 3);
  cr_assert(number_at(root, "verdicts.unknown") == 517);
  cr_assert(number_at(root, "shapes.0.mean_us") == 300);
  cr_assert(cJSON_IsNull(json_at(root, "shapes.3.mean_us")));
}

Test(report, calls_file_leaves_empty_products_out_and_says_so) {
  histogram_t h = sample();
  histogram_add(&h, 0, GS_REASON_DEGENERATE, 5, 0);
  histogram_write(&h, "a.gshist");
  STATUS(sh("$G report --calls app.calls a.gshist"), 0);
  HAS(sh("cat app.calls").out, "# left out: 5 calls");
  cr_assert(number_at(report_json("app.calls", 0), "calls") == 1510);
}

Test(report, a_line_of_the_product_alone_is_one_call) {
  histogram_t h = sample();
  histogram_write(&h, "a.gshist");
  STATUS(sh("$G report --calls app.calls a.gshist; cut -f 1-23 app.calls > bare.calls"), 0);
  cr_assert(number_at(report_json("bare.calls", 0), "calls") == 3);
}

Test(report, csv_has_as_many_fields_as_its_header) {
  histogram_t h = sample();
  histogram_write(&h, "a.gshist");
  result_t r =
      sh("$G report --csv a.gshist | awk -F, 'NR == 1 { n = NF } NF != n { exit 9 } END { print NR, n }'");
  STATUS(r, 0);
  cr_assert_str_eq(r.out, "4 31\n");
  HAS(sh("$G report --csv a.gshist").out, ",500,0,0,0,300.000,150000.000,,no_row");
}

/* As its documentation says: a line is a comment, or a name, labels in braces, a number. */
static bool is_sample(const char *line, char name[64]) {
  int end = 0, labels = 0;
  double value;
  if (sscanf(line, "gemmshim_%40[a-z_]%n", name, &end) != 1) return false;
  const char *at = line + end;
  if (*at == '{')
    for (at++; sscanf(at, "%*[a-z_]=\"%*[a-z_]\"%n", &labels) == 0 && labels; at += labels, labels = 0)
      if (at[labels] == ',') labels++;
  if (*at == '}') at++;
  char newline = 0;
  return sscanf(at, " %lf%c", &value, &newline) == 2 && newline == '\n';
}

Test(report, prometheus) {
  histogram_t h = sample();
  histogram_write(&h, "a.gshist");
  result_t r = sh("$G report --prometheus a.gshist");
  STATUS(r, 0);
  HAS(r.out, "# TYPE gemmshim_products_total counter\n");
  HAS(r.out, "gemmshim_products_total{verdict=\"served\",reason=\"served\"} 1000\n");
  HAS(r.out, "gemmshim_products_total{verdict=\"forwarded\",reason=\"no_row\"} 500\n");
  HAS(r.out, "gemmshim_products_total{verdict=\"forwarded\",reason=\"capture\"} 0\n");
  HAS(r.out, "gemmshim_product_seconds_total{verdict=\"served\"} 0.1\n");
  LACKS(r.out, "1024");
  char *copy = strdup(r.out), last[64] = "";
  for (char *line = copy, *next; *line; line = next) {
    char name[64], kept;
    next = strchr(line, '\n') + 1;
    kept = *next, *next = 0;
    if (line[0] == '#') {
      cr_assert(sscanf(line, "# %*[HELPTY] gemmshim_%40[a-z_]", last) == 1, "%s", line);
    } else {
      cr_assert(is_sample(line, name), "%s", line);
      cr_assert_str_eq(name, last, "%s comes without its own HELP and TYPE", line);
    }
    *next = kept;
  }
  STATUS(sh("$G report --prometheus --json a.gshist"), GS_EXIT_USAGE);
  STATUS(sh("mkdir none; $G report --prometheus none"), GS_EXIT_FALSE);
}

Test(report, plot_is_a_png) {
  histogram_t h = sample();
  histogram_write(&h, "a.gshist");
  if (sh("command -v gnuplot").status != 0) cr_skip_test("no gnuplot here");
  STATUS(sh("$G report --plot \"it's.png\" a.gshist > text"), 0);
  STATUS(sh("head -c 4 \"it's.png\" | grep -q PNG"), 0);
}

Test(report, without_gnuplot_the_report_stays) {
  histogram_t h = sample();
  histogram_write(&h, "a.gshist");
  result_t r = sh("PATH=/nonexistent $G report --plot a.png a.gshist");
  STATUS(r, GS_EXIT_FALSE);
  HAS(r.err, "gnuplot is not on PATH");
  HAS(r.out, "1510 products");
  cr_assert(!exists("a.png"));
}

Test(report, T5_outputs_never_follow_links_or_replace_what_is_no_file) {
  histogram_t h = sample();
  histogram_write(&h, "a.gshist");
  write_file("precious", "precious", 8);
  static const char *const made[] = {"ln -s precious out", "mkdir out", "mkfifo out"};
  for (size_t i = 0; i < 3; i++) {
    result_t r = sh("rm -rf out; %s; timeout 10 $G report --calls out a.gshist", made[i]);
    STATUS(r, GS_EXIT_FALSE);
    HAS(r.err, "not a regular file");
  }
  STATUS(sh("grep -q '^precious$' precious"), 0);
  HAS(sh("$G report --calls nowhere/out a.gshist").err,
      "nowhere/out: no file can be made there: No such file");
}

/* ---- files that are not what they should be: one line each, the good one still reported ---- */

static void one_line_and_the_rest(const char *make) {
  histogram_t h = sample();
  histogram_write(&h, "good.gshist");
  result_t r = sh("rm -rf bad; %s; timeout 10 $G report --json bad good.gshist", make);
  cr_assert(r.status == GS_EXIT_FALSE, "%s: %d %s", make, r.status, r.err);
  cr_assert(lines_of(r.err) == 1 && strstr(r.err, "gemmshim: bad"), "%s: %s", make, r.err);
  cJSON *root = json(r.out);
  cr_assert(number_at(root, "calls") == 1510 && number_at(root, "faults") == 1, "%s", make);
}

/* Verdicts of trials are of processes, and the times of the last that ended. */
Test(report, trials_of_unproven_rows) {
  histogram_t h;
  histogram_init(&h);
  gs_slot_t *slot = histogram_add(&h, 8, GS_REASON_TRIAL, 20, 0);
  slot->trial = GS_TRIAL_WON, slot->trial_us[0] = 12, slot->trial_us[1] = 10;
  histogram_write(&h, "a.gshist");
  slot->trial = GS_TRIAL_OPEN, slot->trial_us[0] = slot->trial_us[1] = 0;
  histogram_write(&h, "b.gshist");
  slot->trial = 77; /* damaged */
  histogram_write(&h, "c.gshist");
  cJSON *root = json(sh("$G report --json a.gshist b.gshist c.gshist").out);
  cr_assert(number_at(root, "shapes.0.trial.won") == 1 && number_at(root, "shapes.0.trial.open") == 1);
  cr_assert(number_at(root, "shapes.0.trial.library_us") == 12 &&
            number_at(root, "shapes.0.trial.kernel_us") == 10);
  cr_assert(number_at(root, "shapes.0.verdicts.trial") == 60);
}

Test(report, comparisons_are_added_up_and_the_worst_stays) {
  histogram_t h;
  histogram_init(&h);
  gs_slot_t *slot = histogram_add(&h, 8, GS_REASON_SERVED, 20, 0);
  slot->compared = 5, slot->off = 1, slot->worst_off = 2.5f;
  histogram_write(&h, "a.gshist");
  slot->compared = 7, slot->off = 0, slot->worst_off = 0.5f;
  histogram_write(&h, "b.gshist");
  cJSON *root = json(sh("$G report --json a.gshist b.gshist").out);
  cr_assert(number_at(root, "shapes.0.compared.calls") == 12 &&
            number_at(root, "shapes.0.compared.off") == 1);
  cr_assert(number_at(root, "shapes.0.compared.worst") == 2.5);
}

Test(report, unreadable_things) {
  one_line_and_the_rest(":");
  one_line_and_the_rest(": > bad");
  one_line_and_the_rest("mkdir bad");
  one_line_and_the_rest("mkfifo bad");
  one_line_and_the_rest("ln -s bad bad");
  one_line_and_the_rest("head -c 3000 /dev/urandom > bad; printf x > y; cat bad >> y; mv y bad");
  one_line_and_the_rest("head -c 100000 /dev/zero > bad");
  one_line_and_the_rest("truncate -s 1T bad || truncate -s 1G bad");
  one_line_and_the_rest("head -c 100000 /dev/zero | tr '\\0' x > bad");
  one_line_and_the_rest("printf gemmshim > bad");
  one_line_and_the_rest("head -c 600 good.gshist > bad");
  one_line_and_the_rest("head -c 30000 good.gshist > bad");
  one_line_and_the_rest("echo '# only a comment' > bad");
}

static void other_version(gs_histogram_file_t *h) {
  h->version++;
}
static void other_slots(gs_histogram_file_t *h) {
  h->slot_bytes += 8;
}
static void other_reasons(gs_histogram_file_t *h) {
  h->reasons--;
}
static void odd_capacity(gs_histogram_file_t *h) {
  h->capacity = 63;
}
static void no_capacity(gs_histogram_file_t *h) {
  h->capacity = 0;
}
static void huge_capacity(gs_histogram_file_t *h) {
  h->capacity = 1u << 31;
}

Test(report, headers_that_lie) {
  static void (*const spoils[])(gs_histogram_file_t *) = {other_version, other_slots, other_reasons,
                                                          odd_capacity,  no_capacity, huge_capacity};
  for (size_t i = 0; i < sizeof spoils / sizeof spoils[0]; i++) {
    histogram_t h = sample();
    histogram_write(&h, "good.gshist");
    spoils[i](&h.header);
    histogram_write(&h, "bad");
    result_t r = sh("$G report --json bad good.gshist");
    STATUS(r, GS_EXIT_FALSE);
    cr_assert(lines_of(r.err) == 1 && strstr(r.err, "gemmshim: bad: a histogram, but"), "%zu: %s", i, r.err);
    cr_assert(number_at(json(r.out), "calls") == 1510);
  }
}

Test(report, damaged_slots_and_hostile_text) {
  histogram_t h = sample();
  histogram_add(&h, 40, GS_REASON_NO_ROW, 9, 0)->gemm.compute = 200;
  memset(h.header.program, '\33', sizeof h.header.program);
  memset(h.slots[0].kernel, '\a', sizeof h.slots[0].kernel);
  histogram_write(&h, "bad");
  result_t r = sh("$G report bad");
  STATUS(r, GS_EXIT_FALSE);
  HAS(r.err, "1 damaged slots left out");
  HAS(r.out, "1510 products");
  LACKS(r.out, "\33");
  LACKS(r.out, "\a");
}

Test(report, faulty_calls_lines_are_said_and_the_others_stay) {
  histogram_t h = sample();
  histogram_write(&h, "a.gshist");
  STATUS(sh("$G report --calls a.calls a.gshist"), 0);
  static const struct {
    const char *edit, *said;
  } cases[] = {
      {"sed '4s/cublasGemmEx/cublasNothing/'", "app.calls:4: field 'entry' is not a name"},
      {"sed '4s/1024/-3/'", "app.calls:4: a size is below 1"},
      {"sed '4s/\\t[^\\t]*$/\\tmany/'", "app.calls:4: what follows the product is not four numbers"},
      {"sed '4s/\\t[^\\t]*$/\\t99999/'", "app.calls:4: served or captured is more than calls"},
      {"sed '4s/\\t[^\\t]*$/\\t-1/'", "app.calls:4: a count is negative"},
      {"sed '4s/\\t[0-9.]*\\t[^\\t]*$/\\tinf\\t0/'", "app.calls:4: mean_us is not a number"},
      {"sed '4s/\\t.*//'", "app.calls:4: field 'transa' is missing"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    result_t r = sh("%s a.calls > app.calls; $G report --json app.calls", cases[i].edit);
    STATUS(r, GS_EXIT_FALSE);
    HAS(r.err, cases[i].said);
    cr_assert(number_at(json(r.out), "shapes_seen") == 2);
  }
}

Test(report, many_faults_end_the_reading) {
  result_t r = sh("seq 1000 > bad.calls; $G report bad.calls");
  STATUS(r, GS_EXIT_FALSE);
  cr_assert(lines_of(r.err) == 21, "%s", r.err);
  HAS(r.err, "20 faults: is this a .calls file?");
}
