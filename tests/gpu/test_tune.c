/* gemmshim tune on the CPU stand-ins, whose speed is set: what wins a row, and what a broken run leaves. */
#include "tuner.h"

SUITE(tune);

#define SHAPE "--shape TNx16x8x16"

/* Algorithm 5 is not among those that the stand-in's heuristic offers. */
Test(tune, the_librarys_own_algorithm_wins_a_row) {
  result_t r = sh(ON_SIM "SIM_US='cublasGemmEx:90,lt_5:4,lt_*:90," ALL_OURS("90") "' " FEW SHAPE);
  STATUS(r, 0);
  HAS(r.out, "1 won");
  STATUS(sh("$G table check t.table && grep -q 'lt_5_t[0-9]*_s.*_r[02]_' t.table"), 0);
}

Test(tune, a_kernel_that_beats_them_all_wins_instead) {
  result_t r = sh(ON_SIM "SIM_US='cublasGemmEx:90,lt_5:60,lt_*:90," ALL_OURS("4") "' " FEW SHAPE);
  STATUS(r, 0);
  STATUS(sh("grep -q 'direct_\\|mma_\\|rows_' t.table"), 0);
}

Test(tune, a_tie_on_the_gpu_clock_is_a_row_where_the_host_gains) {
#define TIE "SIM_US='cublasGemmEx:60,lt_*:60," ALL_OURS("200") "' "
  result_t r = sh(ON_SIM TIE "SIM_HOST_US=cublasGemmEx:200 " FEW SHAPE);
  STATUS(r, 0);
  HAS(r.out, "on the wall clock");
  STATUS(sh("grep -q 'lt_' t.table"), 0);
  result_t machine = sh(ON_SIM TIE "SIM_HOST_US=cublasGemmEx:200 " FEW "--json --again " SHAPE);
  cr_assert_str_eq(string_at(json(machine.out), "products.0.won_on"), "wall");
  result_t neither =
      sh(ON_SIM TIE "GEMMSHIM_RELAUNCH=0 SIM_HOST_US=cublasGemmEx:200,lt_*:200 " FEW "--again " SHAPE);
  HAS(neither.out, "0 won");
}

/* What the library's algorithm takes of the host is spared where its launch is learnt. */
Test(tune, a_learnt_launch_gains_for_the_host) {
  result_t r = sh(ON_SIM TIE "SIM_HOST_US=cublasGemmEx:200,lt_*:200 " FEW SHAPE);
  STATUS(r, 0);
  HAS(r.out, "1 won");
  HAS(r.out, "on the wall clock");
  result_t without =
      sh(ON_SIM TIE "SIM_LAUNCH=thrice SIM_HOST_US=cublasGemmEx:200,lt_*:200 " FEW "--again " SHAPE);
  HAS(without.out, "0 won");
}

Test(tune, an_algorithm_that_is_wrong_gets_no_row) {
  result_t r = sh(ON_SIM "SIM_WRONG='lt_5:all:0.05' "
                         "SIM_US='cublasGemmEx:90,lt_5:4,lt_*:90," ALL_OURS("150") "' " FEW SHAPE);
  STATUS(r, 0);
  HAS(r.out, "0 won");
  cr_assert(!exists("t.table"));
}

/* The fastest of all, and off by a hundredth: no row, and the run says so; what the table holds stays. */
Test(tune, a_kernel_that_is_wrong_gets_no_row) {
#define WRONG                                                                                                \
  "SIM_WRONG='*mma_*:all:0.01' "                                                                             \
  "SIM_US='cublasGemmEx:90,lt_*:90,*mma_*:4,direct_*:150,rows_*:150,strip_*:150' "
  STATUS(sh(ON_SIM WIN FEW SHAPE " && cp t.table before"), 0);
  result_t r = sh(ON_SIM WRONG FEW "--shape TNx32x8x16"),
           machine = sh(ON_SIM WRONG FEW "--json --shape TNx32x8x16");
  STATUS(r, 1);
  HAS(r.out, "WRONG TN 32x8x16 f16_f16");
  HAS(r.out, "0 won, 0 tied, 0 lost, 1 failed the gate");
  STATUS(sh("cmp before t.table && ! ls t.table.d"), 0);
  STATUS(machine, 1);
  cJSON *root = json(machine.out);
  cr_assert_str_eq(string_at(root, "products.0.verdict"), "WRONG");
  HAS(string_at(root, "products.0.why"), "the relative error is above its bound");
}

#define BATCHES "SIM_US='cublas*:90,lt_*:90," ALL_OURS("4") "' "

/* Each number of products has a row of its own, which is measured again as that, and serves that. */
Test(tune, batches_are_tuned_number_by_number) {
  result_t r = sh(ON_SIM BATCHES FEW "--shape 'TNx16x8x16*3,5'");
  STATUS(r, 0);
  HAS(r.out, "2 won");
  HAS(r.out, "TN 16x8x16*5 f16_f16");
  STATUS(sh("$G table check t.table && test $(grep -c 'strided:[35].8.8' t.table) = 2"), 0);
  STATUS(sh(ON_SIM "$G table show --json t.table | grep -q '\"batch\":.5'"), 0);
  result_t rows = sh(ON_SIM BATCHES "$G bench --clocks gpu --rounds 5 --no-aa --rows t.table -o b.csv");
  STATUS(rows, 0);
  STATUS(sh("test $(grep -c 'strided [35] ' b.csv) = 2 && test $(grep -c ',served,1,' b.csv) = 2"), 0);
  STATUS(sh(ON_SIM BATCHES FEW "--shape 'TNx16x8x16*4'"), 0);
  STATUS(sh("test $(grep -c 'strided:[345].8.8' t.table) = 3"), 0);
  HAS(sh(ON_SIM BATCHES FEW "--shape 'TNx16x8x16*3,4,5'").out, "3 kept from before");
  STATUS(sh("$G tune --shape 'TNx16x8x16*0'"), 2);
}

Test(tune, sums_in_half_are_tuned_against_the_librarys_own) {
  STATUS(sh("printf "
            "'cublasGemmEx\\tt\\tn\\t64\\t16\\t64\\t64\\t64\\t64\\t64\\tf16\\tf16\\tf16\\tf16\\t16f\\tdefault"
            "\\tsingle\\t1"
            "\\t0\\t0\\t0\\t0\\t16\\t9\\t0\\t5\\t0\\n' > half.calls"),
         0);
  /* What the calls in half take is what counts, whatever those with sums in fp32 take. */
#define OURS ALL_OURS("4") "' " FEW "--again half.calls"
  result_t r = sh(ON_SIM "SIM_US='cublasGemmEx_16f:90,lt_*_16f:90,cublasGemmEx:2,lt_*:2," OURS);
  STATUS(r, 0);
  HAS(r.out, "1 won");
  STATUS(sh("grep -q '16f.*\\(direct\\|mma\\|rows\\)_' t.table"), 0);
  static const char *const fast[] = {"cublasGemmEx_16f:2,lt_*:90,cublasGemmEx:90",
                                     "cublasGemmEx_16f:2,lt_*_16f:2,lt_*:90,cublasGemmEx:90"};
  for (int i = 0; i < 2; i++) {
    result_t lost = sh(ON_SIM "SIM_US='%s," OURS, fast[i]);
    STATUS(lost, 0);
    HAS(lost.out, "0 won, 0 tied, 1 lost");
  }
}

/* ---- what a tuner spends ---- */

#define CLOCKED(us) ON_SIM "SIM_US='" us "' "

static double samples_of(const cJSON *root, const char *contender) {
  const cJSON *all = json_at(root, "products.0.all"), *one;
  double most = 0;
  cJSON_ArrayForEach(one, all) if (strstr(string_at(one, "contender"), contender) &&
                                   number_at(one, "samples") > most) most = number_at(one, "samples");
  return most;
}

Test(tune, who_is_twice_as_slow_leaves_after_one_round) {
  result_t r = sh(CLOCKED(
      "cublasGemmEx:20,lt_*:21,*mma_*:45,direct_*:15,rows_*:45,strip_*:45") "$G tune --candidates 16 --all "
                                                                            "--json -o t.table " SHAPE);
  cJSON *root = json(r.out);
  cr_assert_eq(samples_of(root, "mma_"), 1);
  cr_assert_eq(samples_of(root, "direct_"), 11);
  cr_assert_eq(samples_of(root, "cublasGemmEx"), 11);
}

Test(tune, rounds_go_to_what_is_in_doubt) {
  static const struct {
    const char *us;
    int rounds;
    const char *verdict;
  } cases[] = {{"cublasGemmEx:8,lt_*:8," ALL_OURS("6"), 11, "win"},
               {"cublasGemmEx:8,lt_*:12," ALL_OURS("9"), 5, "loss"},
               {"cublasGemmEx:8,lt_*:12," ALL_OURS("7.99"), 31, "win"}};
  for (int i = 0; i < 3; i++) {
    result_t r = sh(ON_SIM "SIM_US='%s' " FEW "--json --again " SHAPE, cases[i].us);
    cJSON *root = json(r.out);
    cr_expect_str_eq(string_at(root, "products.0.verdict"), cases[i].verdict);
    cr_expect_eq(number_at(root, "products.0.rounds"), cases[i].rounds, "%s: %g", cases[i].verdict,
                 number_at(root, "products.0.rounds"));
  }
}

/* The stand-in says that it has an H200's multiprocessors. */
Test(tune, kernels_out_of_reach_are_left_alone) {
#define LARGE "SIM_NOCOMPUTE=times $G tune --candidates 6 --json -o t.table --shape TNx4096x4096x4096"
  result_t near = sh(CLOCKED("cublasGemmEx:300,lt_*:300," ALL_OURS("330")) LARGE),
           far = sh(CLOCKED("cublasGemmEx:60,lt_*:60," ALL_OURS("330")) LARGE);
  cr_assert_geq(number_at(json(near.out), "products.0.candidates"), 6);
  cr_assert_eq(number_at(json(far.out), "products.0.candidates"), 1);
}

/* Whatever the model says: some of every family, and of the kernel that leads the splits next to its own. */
Test(tune, every_family_and_the_splits_beside_the_best_are_measured) {
  result_t r = sh("SIM_NOCOMPUTE=times " CLOCKED("cublasGemmEx:20,lt_*:20,direct_*:8,rows_*:8,strip_*:8,*mma_"
                                                 "*:12") "$G tune --candidates 1 --all --json -o "
                                                         "t.table "
                                                         "--shape TNx256x128x4096 > t.json; "
                                                         "grep -c '\"contender\":.*direct_' t.json; "
                                                         "grep -c "
                                                         "'\"contender\":.*mma_' t.json; "
                                                         "grep -o '\"contender\":.*direct_[^ ]* "
                                                         "split_k [0-9]*' "
                                                         "t.json | sort -u | "
                                                         "sed 's/ split_k.*//' | sort | uniq -c | sort "
                                                         "-n | "
                                                         "tail -1");
  int direct = 0, mma = 0, splits = 0;
  STATUS(r, 0);
  cr_assert_eq(sscanf(r.out, "%d %d %d", &direct, &mma, &splits), 3, "%s", r.out);
  cr_assert_geq(direct, 3);
  cr_assert_geq(mma, 3);
  cr_assert_geq(splits, 2);
}

/* The model names three others of that tile, not the one that is fastest. */
Test(tune, others_of_the_tiles_that_lead_are_measured) {
  result_t r = sh("SIM_NOCOMPUTE=times " CLOCKED(
      "cublasGemmEx:20,lt_*:20,mma_*_32x32x64_s4_w4:8,mma_*_32x32x64_*:10,*mma_*:12,direct_*:12,rows_*:12,"
      "strip_*:12") "$G tune --json -o t.table --shape NNx1024x64x256");
  cr_assert_str_eq(string_at(json(r.out), "products.0.kernel"), "mma_f16_f16_nn_32x32x64_s4_w4");
}

/* Of who comes in by another order of tiles: the two heats that are left. */
Test(tune, the_largest_products_run_fewer_rounds) {
  static const struct {
    const char *us;
    int samples;
  } cases[] = {
      {"cublasGemmEx:300,lt_*:300,wgmma_*_128x128x64_*:280,wgmma_*_128x64x64_s2_*:285,*:900", 4 + 6},
      {"cublasGemmEx:30000,lt_*:30000,wgmma_*_128x128x64_*:28000,wgmma_*_128x64x64_s2_*:28500,*:90000",
       2 + 2}};
  for (int i = 0; i < 2; i++) {
    result_t r = sh(ON_SIM "SIM_NOCOMPUTE=times SIM_US='%s' $G tune --all --json -o t.table --again "
                           "--shape TNx4096x4096x4096",
                    cases[i].us);
    double samples = samples_of(json(r.out), "128x128x64_s6_w8 split_k 1 raster 1");
    cr_expect_eq(samples, cases[i].samples, "%d: %g", i, samples);
  }
}

Test(tune, it_says_where_its_time_went) {
  result_t r = sh(ON_SIM WIN FEW SHAPE), machine = sh(ON_SIM WIN FEW "--json --again " SHAPE);
  HAS(r.out, "\nseconds: prepare ");
  double all = 0;
  const cJSON *phase;
  cJSON_ArrayForEach(phase, json_at(json(machine.out), "seconds")) all += phase->valuedouble;
  cr_assert_gt(all, 0);
}

Test(tune, a_winner_is_asked_how_it_does_at_a_quiet_server) {
  result_t r = sh(ON_SIM WIN FEW SHAPE), none = sh(ON_SIM WIN FEW "--again --arrivals 0 " SHAPE),
           machine = sh(ON_SIM WIN FEW "--again --json " SHAPE);
  HAS(r.out, "; server (1000/s) ");
  LACKS(none.out, "server (");
  STATUS(sh("awk -F'\t' '/^[NT]\t/ { exit !(NF == 20 && $19 > 0 && $20 > 0) }' t.table && $G table check "
            "t.table"),
         0);
  cJSON *root = json(machine.out);
  cr_assert_gt(number_at(root, "products.0.server_us"), 0);
  cr_assert_gt(number_at(root, "products.0.library_server_us"), 0);
  cr_assert_eq(number_at(root, "server_rate"), 1000);
}

/* ---- what is compiled for it ---- */

/* The first libnvrtc on the path is no NVRTC. */
Test(tune, a_missing_compiler_is_said_once_with_what_to_do) {
#define NO_NVRTC "mkdir -p d && cc -shared -o d/libnvrtc.so.13 -x c /dev/null && LD_LIBRARY_PATH=$PWD/d:$SIM "
  static const char *const gpus[] = {"", "SIM_DEVICES=2 "};
  for (int i = 0; i < 2; i++) {
    result_t r = sh(NO_NVRTC "SIM_L2=4096 SIM_CLOCK=set " WIN "%s" FEW
                             "--again --exact --search=4 --shape TNx16x8,9x16 --shape NNx16x8x16",
                    gpus[i]);
    STATUS(r, 0);
    HAS(r.err, "gemmshim: --search: NVRTC 12 or 13 is not to be found: install a CUDA toolkit");
    cr_assert(!strstr(strstr(r.err, "NVRTC") + 1, "NVRTC"), "%s", r.err);
    LACKS(r.out, "refused");
    cr_assert_eq(rows("t.table"), 3);
  }
  result_t named = sh(NO_NVRTC FEW "--again --kernels mma_48x64x32_s3_w2,mma_64x64x64_s4_w4 " SHAPE);
  STATUS(named, 3);
  HAS(named.err, "NVRTC 12 or 13 is not to be found");
  result_t listed = sh(NO_NVRTC "$G kernels mma_48x64x32_s3_w2 mma_64x64x64_s4_w4");
  STATUS(listed, 3);
}

/* ---- how good the choice is ---- */

Test(tune, the_choice_is_held_against_all_shipped_kernels) {
#define SPACE                                                                                                \
  ON_SIM "SIM_NOCOMPUTE=times "                                                                              \
         "SIM_US='cublasGemmEx:20,lt_*:20,mma_*_64x64x64_s4*:8,*mma_*:10,direct_*:12,rows_*:12,strip_*:12' " \
         "$G tune --exhaustive 2 --split-k 6 --shape TNx256x128x512 "
  result_t poor = sh(SPACE "--candidates 1"), fine = sh(SPACE "--candidates 128"),
           machine = sh(SPACE "--candidates 1 --json");
  STATUS(poor, 1);
  HAS(poor.out, "ranking: 1 products searched, worst 1.250, geomean 1.250, 0 within 3% of the best of all");
  HAS(poor.out, "1.250  TN 256x128x512 f16_f16 ");
  STATUS(sh(SPACE "--search"), 2); /* of what is compiled for a product it knows nothing */
  STATUS(fine, 0);
  HAS(fine.out, "worst 1.000, geomean 1.000, 1 within 3%");
  STATUS(machine, 1);
  cJSON *root = json(machine.out);
  cr_assert(number_at(root, "products.0.searched") > 100, "%g", number_at(root, "products.0.searched"));
  cr_assert(strstr(string_at(root, "products.0.best"), "64x64x64_s4"));
}

/* ---- whole runs ---- */

Test(tune, an_interval_is_one_row) {
  result_t r = sh(ON_SIM WIN FEW "--shape TNx16x1,2,5,8x16");
  STATUS(r, 0);
  HAS(r.out, "4 won");
  HAS(r.out, "samples between them");
  HAS(r.out, "claim TN 16x1..8x16 f16_f16: ");
  cr_assert_eq(rows("t.table"), 1);
  STATUS(sh("grep -q \"$(printf '\\t1\\t8\\t')\" t.table"), 0);
  STATUS(sh(ON_SIM WIN FEW "--exact --again --shape TNx16x1,2,5,8x16"), 0);
  cr_assert_eq(rows("t.table"), 4);
}

/* The same command on the same GPU, which the clock that is set makes exact: the same lines in the same order, and the
 * same table but for the host's times. */
Test(tune, the_same_run_comes_to_the_same) {
#define TWICE                                                                                                \
  ON_SIM                                                                                                     \
  "SIM_US='cublasGemmEx:9,lt_2:5,lt_*:9,*mma_*_64x*:4,*mma_*:4.5,direct_*_16x*:3,direct_*:6,rows_*:6,strip_" \
  "*:6' "                                                                                                    \
  "$G tune --candidates 8 --shape TNx64x1,3,16x32 --shape NNx32x8x16 --shape TNx32x8x16 "                    \
  "--shape TNx16x8x16:bf16_bf16 -o "
  for (int i = 0; i < 2; i++)
    STATUS(sh(TWICE
              "%d.table > lines && sed -n 's/; wall .* us; /; /; s/; server .*//; /^[a-zW]* *[NT][NT] /p' "
              "lines > %d.lines && sed '/^[NT]\t/!d' %d.table | cut -f 1-16 > %d.rows",
              i, i, i, i),
           0);
  STATUS(sh("grep -c . 0.lines 0.rows >&2 && cmp 0.lines 1.lines && cmp 0.rows 1.rows"), 0);
  cr_assert_geq(atoi(sh("grep -c '^win' 0.lines").out), 6);
  cr_assert_geq(rows("0.table"), 4);
}

Test(tune, a_run_cut_short_goes_on_where_it_was) {
  result_t first =
      sh(ON_SIM LOSE FEW "--exact --budget 1 --shape TNx16x1,2,3,4,5,6,7,8,9,10,11,12,13,14,15x16");
  STATUS(first, 0);
  HAS(first.err, "the budget of 1 s is spent");
  cr_assert(exists("t.table.tried"), "what lost is remembered, though no row was written");
  result_t second = sh(ON_SIM LOSE FEW "--exact --shape TNx16x1,2,3,4,5,6,7,8,9,10,11,12,13,14,15x16");
  STATUS(second, 0);
  LACKS(second.out, " 0 kept from before");
  cr_assert(!exists("t.table.tried"));
}

Test(tune, a_killed_run_goes_on_where_it_was) {
  sh(ON_SIM WIN FEW "--exact --shape TNx16x1,2,3,4,5,6,7,8,9,10,11,12x16 > lines 2>&1 & "
                    "for i in $(seq 300); do [ \"$(grep -c ^win lines)\" -ge 2 ] && break; sleep 0.1; done; "
                    "kill -9 $!; wait $!");
  int had = rows("t.table");
  cr_assert(had >= 2 && had < 12, "%d rows", had);
  result_t r = sh(ON_SIM WIN FEW "--exact --shape TNx16x1,2,3,4,5,6,7,8,9,10,11,12x16");
  STATUS(r, 0);
  LACKS(r.out, " 0 kept from before");
  cr_assert_eq(rows("t.table"), 12);
}

Test(tune, an_interrupt_keeps_what_is_done) {
  result_t r =
      sh(ON_SIM WIN FEW
         "--exact --shape TNx16x1,2,3,4,5,6,7,8,9,10,11,12x16 > lines 2>&1 & "
         "for i in $(seq 300); do grep -q ^win lines && break; sleep 0.1; done; kill -TERM $!; wait $!");
  STATUS(r, 128 + 15);
  cr_assert(rows("t.table") >= 1 && rows("t.table") < 12);
  cr_assert(exists("t.table.tried") && !exists("t.table.lock"));
}

/* A file may grow to one block: the table with all its rows is larger. */
Test(tune, a_full_disk_is_said_and_loses_nothing) {
  STATUS(sh(ON_SIM WIN FEW "--exact --shape TNx16x1x16"), 0);
  result_t r =
      sh("trap '' XFSZ; export " ON_SIM WIN "; (ulimit -f 1; $G tune --candidates 2 -o t.table --exact "
         "--shape TNx16x1,2,3,4,5,6,7,8,9,10,11,12x16) 2>&1 | cat");
  HAS(r.out, "t.table: cannot be written: File too large");
  STATUS(sh("$G table check t.table"), 0);
  cr_assert(rows("t.table") >= 1);
}

/* Files may grow to 512 bytes; what a command says goes round by a pipe. */
#define FULL(exported, command)                                                                              \
  "trap '' XFSZ; export " exported "; (ulimit -f 1; " command "; echo status $?) 2>&1 | cat"

Test(tune, a_full_disk_keeps_what_was_tried) {
#define TRY "$G tune --candidates 2 -o t.table --exact --shape TNx16x1,2,3,4,5,6,7,8,9,10x16"
  result_t r = sh(FULL(ON_SIM LOSE, TRY));
  HAS(r.out, "t.table.tried: cannot be written: File too large");
  HAS(r.out, "status 1\n");
  int tried = atoi(sh("grep -c ^cublas t.table.tried").out);
  cr_assert(tried >= 2 && tried < 10, "%d", tried);
  result_t rest = sh(ON_SIM LOSE TRY);
  STATUS(rest, 0);
  LACKS(rest.out, " 0 kept from before");
  cr_assert(!exists("t.table.tried"));
}

Test(tune, a_full_disk_keeps_the_cost_model_that_was_there) {
  static const char model[] = "mma_f16_f16_tn_32x32x64_s4_w4\t1.5\t0\n";
  STATUS(sh("mkdir -m 700 gemmshim"), 0);
  write_file("gemmshim/gemmshim-cpu-stand-in.model", model, sizeof model - 1);
  result_t r =
      sh(FULL("XDG_CACHE_HOME=$PWD SIM_NOCOMPUTE=1 SIM_L2=4096 LD_LIBRARY_PATH=$SIM", "$G tune --fit"));
  HAS(r.out, "gemmshim-cpu-stand-in.model: cannot be written: File too large");
  HAS(r.out, "status 1\n");
  cr_assert_str_eq(sh("cat gemmshim/*").out, model, "as it was, and nothing beside it");
}

Test(tune, two_tuners_on_one_table) {
  result_t r = sh("flock t.table.lock sleep 5 & sleep 0.3; " ON_SIM WIN FEW SHAPE "; s=$?; kill $!; exit $s");
  STATUS(r, 3);
  HAS(r.err, "t.table: another tuner is writing it");
}

Test(tune, a_busy_gpu_is_named_and_left_alone) {
  result_t r = sh("SIM_BUSY=90 SIM_BUSY_PID=$$ " ON_SIM WIN FEW SHAPE),
           anyway = sh("SIM_BUSY=90 " ON_SIM WIN FEW "--busy-ok " SHAPE);
  STATUS(r, GS_EXIT_BUSY);
  HAS(r.err, "90% busy with other work; process ");
  HAS(r.err, "--busy-ok");
  cr_assert(!exists("t.table") || rows("t.table") == 1);
  STATUS(anyway, 0);
}

Test(tune, shards_have_tables_of_their_own) {
  STATUS(sh(ON_SIM WIN FEW KEYS "--shard 1/2"), 0);
  STATUS(sh(ON_SIM WIN "SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_MIN=4 SLURM_ARRAY_TASK_COUNT=2 " FEW KEYS), 0);
  cr_assert_eq(rows("t.1-of-2.table"), 2);
  cr_assert_eq(rows("t.2-of-2.table"), 1);
  cr_assert(!exists("t.table"));
  result_t known = sh(ON_SIM WIN FEW KEYS "--known t.1-of-2.table");
  HAS(known.err, "has rows for 2 of the products");
  STATUS(sh("$G tune --shard 3/2 " SHAPE), 2);
}

Test(tune, a_gpu_without_a_table_gets_one_by_its_name) {
  result_t r = sh("SIM_GPU='Future 9000' " ON_SIM WIN "$G tune --candidates 2 " SHAPE);
  STATUS(r, 0);
  STATUS(sh("grep -q '^gpu: Future 9000$' future-9000.table"), 0);
}

/* Older and newer than all that kernels are made for: refused, in words, by whoever would measure; a program runs as
 * without the library. */
Test(tune, a_gpu_that_no_kernel_is_made_for) {
  static const char *const gpus[] = {"SIM_SM=75 ", "SIM_SM=100 ", "SIM_SM=75 SIM_DEVICES=2 "};
  static const char *const commands[] = {FEW SHAPE, "$G bench " SHAPE, "$G requalify", "$G requalify $TABLE"};
  for (int i = 0; i < 3; i++) {
    for (int c = 0; c < 4; c++) {
      result_t r = sh("%s" ON_SIM "%s", gpus[i], commands[c]);
      STATUS(r, 3);
      HAS(r.err, i == 1 ? "is of compute capability 10.0, but kernels are made for GPUs 8.x and 9.0 alone"
                        : "is of compute capability 7.5, but kernels are made for GPUs 8.x and 9.0 alone");
      STATUS(sh("find . -type f -size +0 | grep ."), 1);
    }
    result_t doctor = sh("%s" ON_SIM "$G doctor", gpus[i]);
    STATUS(doctor, 1);
    HAS(doctor.out, "since kernels are made for GPUs 8.x and 9.0 alone");
    HAS(doctor.out, "-> every product is forwarded on this GPU");
    result_t run = sh("%s" ON_SIM "GEMMSHIM_LOG=1 GEMMSHIM_TABLE=$TABLE LD_PRELOAD=$SHIM $DEMO", gpus[i]);
    STATUS(run, 0);
    HAS(run.out, "demo: 13 products, worst relative error ");
    HAS(run.err, "132 SMs): kernels are made for GPUs 8.x and 9.0 alone");
    HAS(run.err, "13 products, 0 served");
    LACKS(run.err, "CUDA_ERROR");
  }
}

Test(tune, an_impossible_layer_is_said_by_file_and_line) {
  STATUS(sh("printf "
            "'name\\ttransa\\ttransb\\tm\\tk\\tnote\\nq\\tT\\tN\\t16\\t16\\t\\nbad\\tT\\tN\\t-3\\t16\\t\\n' "
            "> bad.tsv"),
         0);
  result_t r = sh(ON_SIM FEW "--models bad.tsv");
  STATUS(r, 3);
  HAS(r.err, "bad.tsv:3: ");
}

Test(tune, the_cost_model_is_corrected_by_what_kernels_take) {
#define FITTED "XDG_CACHE_HOME=$PWD SIM_NOCOMPUTE=1 SIM_L2=4096 LD_LIBRARY_PATH=$SIM "
  result_t fit = sh(FITTED "$G tune --fit");
  STATUS(fit, 0);
  HAS(fit.out, " tiles on 10 products");
  LACKS(fit.out, ": 0 tiles");
  STATUS(sh("grep -q '^mma_f16_f16_tn_' gemmshim/*.model"), 0);
  result_t r = sh("XDG_CACHE_HOME=$PWD " ON_SIM WIN FEW SHAPE);
  STATUS(r, 0);
  HAS(r.err, "the cost model is corrected by what ");
  STATUS(sh("SIM_NOCOMPUTE=1 XDG_CACHE_HOME=/dev/null SIM_L2=4096 LD_LIBRARY_PATH=$SIM $G tune --fit"), 1);
  result_t nothing = sh("XDG_CACHE_HOME=$PWD SIM_NOCOMPUTE=1 " ON_SIM "$G tune --fit");
  STATUS(nothing, 1);
  HAS(nothing.err, "no kernel could be measured");
}
