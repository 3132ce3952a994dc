/* gemmshim bench on the CPU stand-ins, end to end: what goes through the door, into the file and the summary. Times
 * mean nothing here, so nothing is computed. */
#include "cli.h"

#include <unistd.h>

SUITE(bench);

#define ON_SIM "LD_LIBRARY_PATH=$SIM SIM_NOCOMPUTE=1 "
#define QUICK  "$G bench --rounds 5 --rate 100000 --table $TABLE -o b.csv "
/* Two of the table's: a pair of layouts, of which TN has a row, and one that has none. */
#define SHAPES "--shape TNx384x16x128 --shape NNx384x16x128 --shape TNx96x8x64:bf16_bf16 "

/* Lasts for seconds. */
#define GRID "--grid=64,80,96,112,128,144,160 "

/* A column of the row whose product's m is given. */
#define COLUMN                                                                                               \
  "awk -F, -v name=%s -v m=%s '/^#/{next} !head{for(i=1;i<=NF;i++)at[$i]=i;head=1;next} "                    \
  "{split($1,p,\" \"); if(p[4]==m) print $at[name]}' b.csv"

static const char *cell(const char *name, const char *m) {
  result_t r = sh(COLUMN, name, m);
  r.out[strcspn(r.out, "\n")] = '\0';
  return r.out;
}

static const cJSON *claim(const cJSON *root, const char *clock, const char *against, const char *layout) {
  const cJSON *entry;
  cJSON_ArrayForEach(entry, json_at(root, "claims")) {
    if (!strcmp(string_at(entry, "class"), "all") && !strcmp(string_at(entry, "clock"), clock) &&
        !strcmp(string_at(entry, "against"), against) && !strcmp(string_at(entry, "layout"), layout))
      return entry;
  }
  return NULL;
}

Test(bench, measures_through_the_door_and_says_who_served) {
  result_t r = sh(ON_SIM QUICK SHAPES "--json");
  STATUS(r, 0);
  cJSON *root = json(r.out);
  cr_assert(number_at(root, "products") == 2 && number_at(root, "measured") == 2);
  cr_assert(number_at(root, "verdicts.served") == 1 && number_at(root, "verdicts.no_row") == 2);
  cr_assert_str_eq(string_at(root, "gpu"), "gemmshim CPU stand-in");
  cr_assert_str_eq(string_at(root, "cublas"), "13.1.0");
  HAS(string_at(root, "table"), "sim.table (");
  HAS(string_at(root, "clocks"), "Poisson arrivals, 100000 a second");
  cr_assert_str_eq(cell("tn_verdict", "384"), "served");
  cr_assert_str_eq(cell("nn_verdict", "384"), "no_row");
  cr_assert_str_eq(cell("tn_served", "384"), "1");
  cr_assert_str_eq(cell("tn_kernel", "384"), "mma_f16_f16_tn_128x32x32_s5_w4");
  cr_assert_str_eq(cell("nn_kernel", "384"), "");
  cr_assert_str_eq(cell("tn_candidates", "384"), "4");
  cr_assert_str_eq(cell("tn_verdict", "96"), "no_row");
  cr_assert_str_eq(cell("nn_verdict", "96"), "");
  static const char *const clocks[] = {"gpu", "wall", "server"}, *const rivals[] = {"gemmex", "lt", "auto"};
  for (int c = 0; c < 3; c++)
    for (int b = 0; b < 3; b++) {
      cr_assert_eq(number_at(claim(root, clocks[c], rivals[b], "tn"), "count"), 2);
      cr_assert_eq(number_at(claim(root, clocks[c], rivals[b], "nn"), "count"), 1);
      cr_assert_eq(number_at(claim(root, clocks[c], rivals[b], "max"), "count"), 2);
      const cJSON *all = claim(root, clocks[c], rivals[b], "max");
      cr_assert_eq(number_at(all, "win") + number_at(all, "tie") + number_at(all, "loss"), 2);
      cr_assert_eq(number_at(all, "aa.count"), 2);
    }
}

Test(bench, ratios_are_of_the_medians_beside_them) {
  STATUS(sh(ON_SIM QUICK "--clocks wall --shape TNx384x16x128 --shape NNx384x16x128"), 0);
  double ours = atof(cell("wall_tn_ours", "384")), lt = atof(cell("wall_tn_lt", "384")),
         best = atof(cell("wall_tn_auto", "384")), ours_nn = atof(cell("wall_nn_ours", "384")),
         best_nn = atof(cell("wall_nn_auto", "384"));
  cr_assert(ours > 0 && lt > 0 && best > 0 && best <= lt);
  cr_assert_float_eq(atof(cell("wall_auto_tn", "384")), best / ours, 1e-4 * best / ours);
  double most = (best < best_nn ? best : best_nn) / (ours < ours_nn ? ours : ours_nn);
  cr_assert_float_eq(atof(cell("wall_auto_max", "384")), most, 1e-4 * most);
  cr_assert_str_eq(cell("gpu_tn_ours", "384"), "");
  cr_assert_str_eq(cell("server_auto_max", "384"), "");
}

Test(bench, an_epilogue_goes_through_cublaslt) {
  STATUS(sh(ON_SIM QUICK "--clocks wall --shape TNx512x8x128:f16_f16:bias"), 0);
  cr_assert_str_eq(cell("tn_verdict", "512"), "served");
  cr_assert_str_eq(cell("wall_tn_gemmex", "512"), "");
  cr_assert_gt(atof(cell("wall_tn_again", "512")), 0);
  cr_assert_gt(atof(cell("wall_auto_max", "512")), 0);
}

Test(bench, text_has_a_line_a_claim_and_the_noise_beside_it) {
  result_t r = sh(ON_SIM QUICK SHAPES);
  STATUS(r, 0);
  HAS(r.out, "# gpu: gemmshim CPU stand-in\n");
  HAS(r.out, "2 products: served 1 no_row 2");
  HAS(r.out, "A/A: geomean, win, loss");
  HAS(r.out, "\ngpu     auto    max ");
  HAS(r.out, "\nserver  gemmex  nn ");
  HAS(r.out, "gpu, auto max, by FLOPs");
  HAS(r.out, "1e+06 to 1e+07");
  HAS(r.out, "\nall below 1e8 ");
  HAS(r.out, "smallest 16 to 31");
  HAS(r.err, "seconds: ");
  result_t bare =
      sh(ON_SIM "$G bench --rounds 5 --rate 100000 --no-aa --clocks wall --shape TNx96x8x64 -o c.csv");
  STATUS(bare, 0);
  LACKS(bare.out, "\ngpu ");
  STATUS(sh("awk -F, '/^#/{next} !h{for(i=1;i<=NF;i++)at[$i]=i;h=1;next} {exit $at[\"wall_tn_again\"] != "
            "\"\"}' c.csv"),
         0);
}

/* ---- going on ---- */

Test(bench, goes_on_with_what_the_file_lacks) {
  STATUS(sh(ON_SIM QUICK "--clocks wall --shape TNx384x16x128"), 0);
  STATUS(sh("cp b.csv before"), 0);
  result_t r = sh(ON_SIM QUICK "--clocks wall " SHAPES);
  STATUS(r, 0);
  cr_assert_eq(lines_of(sh("grep -v '^#' b.csv").out), 4,
               "columns, what was there, the other layout, the other");
  STATUS(sh("head -n $(wc -l < before) b.csv | cmp - before"), 0);
  STATUS(sh(ON_SIM QUICK "--clocks wall " SHAPES " && test $(grep -cv '^#' b.csv) = 4"), 0);
  result_t torn = sh("printf 'cublasGemmEx n n 1' >> b.csv; " ON_SIM QUICK "--clocks wall " SHAPES);
  STATUS(torn, 0);
  HAS(torn.err, "2 of 2 products were in b.csv already");
}

Test(bench, does_not_mix_tables_or_clocks) {
  STATUS(sh(ON_SIM QUICK "--clocks wall --shape TNx96x8x64"), 0);
  STATUS(sh("cp b.csv before; cp $TABLE other.table"), 0);
  result_t table = sh(ON_SIM
                      "$G bench --rounds 5 --rate 100000 --clocks wall --table other.table -o b.csv " SHAPES),
           clocks = sh(ON_SIM QUICK SHAPES);
  STATUS(table, 3);
  HAS(table.err, "name another with -o");
  STATUS(clocks, 3);
  STATUS(sh("cmp b.csv before"), 0);
}

Test(bench, a_budget_and_a_signal_keep_what_is_done) {
  result_t r = sh(ON_SIM QUICK "--clocks wall --budget 1 --rounds 101 " GRID);
  STATUS(r, 0);
  HAS(r.err, "the budget of 1 s is spent");
  cr_assert_gt(lines_of(sh("grep -v '^#' b.csv").out), 1);
  STATUS(sh("rm b.csv"), 0);
  result_t stopped = sh(
      "export LD_LIBRARY_PATH=$SIM SIM_NOCOMPUTE=1; " QUICK "--clocks wall " GRID " > out 2> err & pid=$!; "
      "while n=$(grep -cv '^#' b.csv 2> /dev/null); test ${n:-0} -lt 4; do sleep 0.02; done; "
      "kill -TERM $pid; wait $pid");
  STATUS(stopped, 143);
  HAS(sh("cat out").out, "wall    auto    max ");
  STATUS(sh("test $(tail -c 1 b.csv | od -An -c | tr -d ' ') = '\\n'"), 0);
}

/* Its measuring process goes with it, and the file can be gone on with. */
Test(bench, a_killed_run_goes_on) {
  STATUS(sh("export LD_LIBRARY_PATH=$SIM SIM_NOCOMPUTE=1; " QUICK "--clocks wall " GRID
            " > out 2> err & pid=$!; "
            "while n=$(grep -cv '^#' b.csv 2> /dev/null); test ${n:-0} -lt 4; do sleep 0.02; done; "
            "kill -KILL $pid; wait $pid; n=0; while ! flock -n b.csv true; do sleep 0.05; n=$((n+1)); "
            "test $n -lt 100 || exit 1; done"),
         0);
  result_t r = sh(ON_SIM QUICK "--clocks wall --budget 1 " GRID);
  STATUS(r, 0);
  HAS(r.err, "products were in b.csv already");
}

Test(bench, samples_are_drawn_by_seed) {
  STATUS(sh(ON_SIM QUICK "--clocks wall --grid=64,128 --sample 3 --seed 5"), 0);
  cr_assert_eq(lines_of(sh("grep -v '^#' b.csv").out), 4);
  STATUS(sh("cut -d, -f1 b.csv > first; rm b.csv; " ON_SIM QUICK
            "--clocks wall --grid=64,128 --sample 3 --seed 5; "
            "grep -v '^#' first | sort > x; grep -v '^#' b.csv | cut -d, -f1 | sort | cmp - x"),
         0);
  STATUS(sh("rm b.csv; " ON_SIM QUICK "--clocks wall --grid=64,128 --sample 3 --seed 6; "
            "grep -v '^#' b.csv | cut -d, -f1 | sort | cmp -s - x"),
         1);
}

/* ---- rows of a table ---- */

#define ROWS "$G bench --rounds 5 --clocks wall -o b.csv --rows $TABLE "

Test(bench, rows_must_serve) {
  result_t r = sh(ON_SIM ROWS);
  STATUS(r, 0);
  HAS(r.err,
      "18 of 18 products of the table's rows were measured: 0 won, 0 tied, 0 lost (cuBLAS to itself: 0), "
      "0 not served, 18 not on the gpu clock");
  STATUS(sh("rm b.csv"), 0);
  result_t skipped = sh("GEMMSHIM_SKIP='*single*' " ON_SIM ROWS);
  STATUS(skipped, 1);
  HAS(skipped.err, "not served (skipped)");
  HAS(skipped.err, " 0 lost (cuBLAS to itself: 0), 12 not served");
}

/* A built-in table by its name, whatever the user has of his own; it is not proven for this cuBLAS. */
Test(bench, rows_of_a_built_in_table) {
  STATUS(sh("mkdir -p .config/gemmshim && cp $TABLE .config/gemmshim/nvidia-h200.table"), 0);
  result_t r =
      sh("export LD_LIBRARY_PATH=" GS_BUILD "/sim/cuda12:" GS_BUILD "/sim/driver; SIM_GPU='NVIDIA H200' "
         "SIM_NOCOMPUTE=1 $G bench --rounds 5 --clocks wall -o b.csv --sample 2 --rows nvidia-h200 "
         "--cublas " GS_BUILD "/sim/cuda12/libcublas.so.12");
  STATUS(r, 1);
  HAS(r.out, "# table: built-in nvidia-h200 (");
  HAS(r.err, "not served (unproven)");
}

Test(bench, rows_must_not_lose) {
  STATUS(sh(ON_SIM ROWS "> /dev/null"), 0);
  STATUS(sh("awk -F, -v OFS=, '/^#/{print;next} !h{for(i=1;i<=NF;i++)at[$i]=i;h=1;print;next} "
            "$1 ~ /t n 384 64 /{$at[\"gpu_auto_tn\"]=0.8; $at[\"gpu_auto_tn_lo\"]=0.7; "
            "$at[\"gpu_auto_tn_hi\"]=0.9} "
            "{print}' b.csv > c.csv && mv c.csv b.csv"),
         0);
  result_t r = sh(ON_SIM ROWS);
  STATUS(r, 1);
  HAS(r.err, "lost, 0.800");
  HAS(r.err, " 0 won, 0 tied, 1 lost (cuBLAS to itself: 0), 0 not served, 17 not on the gpu clock");
  HAS(r.out, "gpu clock: 1 of 1 served products lost to the best of cuBLASLt:");
}

/* One of cuBLAS's own algorithms claims no more than to be faster than what the program calls. */
Test(bench, rows_are_held_to_what_they_claim) {
#define SPOIL                                                                                                \
  "awk -F, -v OFS=, '/^#/{print;next} !h{for(i=1;i<=NF;i++)at[$i]=i;h=1;print;next} "                        \
  "$1 ~ /t n 384 64 /{$at[\"tn_kernel\"]=\"lt_1_t2_s3\"; "                                                   \
  "$at[\"gpu_\" worse \"_tn\"]=0.8; $at[\"gpu_\" worse \"_tn_lo\"]=0.7; $at[\"gpu_\" worse "                 \
  "\"_tn_hi\"]=0.9; "                                                                                        \
  "$at[\"gpu_\" better \"_tn\"]=1.2; $at[\"gpu_\" better \"_tn_lo\"]=1.1; "                                  \
  "$at[\"gpu_\" better \"_tn_hi\"]=1.3} {print}' "
  STATUS(sh(ON_SIM ROWS "> /dev/null"), 0);
  STATUS(sh(SPOIL "worse=auto better=gemmex b.csv > c.csv && " SPOIL
                  "worse=gemmex better=auto b.csv > d.csv && mv c.csv b.csv"),
         0);
  result_t fine = sh(ON_SIM ROWS);
  STATUS(fine, 0);
  HAS(fine.err, " 1 won, 0 tied, 0 lost ");
  STATUS(sh("mv d.csv b.csv"), 0);
  result_t lost = sh(ON_SIM ROWS);
  STATUS(lost, 1);
  HAS(lost.err, " 0 won, 0 tied, 1 lost ");
}

/* ---- foreign kernels ---- */

Test(bench, foreign_kernels_run_beside_ours) {
  STATUS(sh("mkdir peers && cp " GS_PEERS "/right.so " GS_PEERS "/picks.so " GS_PEERS "/refuses.so peers"),
         0);
  result_t r = sh(ON_SIM QUICK "--peer peers --json --shape NNx64x8x64 --shape TNx72x8x512");
  STATUS(r, 0);
  json(r.out); /* what a peer prints is kept out of it */
  STATUS(sh("test \"$(awk -F, -v name=peer '/^#/{next} !h{for(i=1;i<=NF;i++)at[$i]=i;h=1;next} {print "
            "$at[name]}' "
            "b.csv | sort -u | grep -c -e right -e picks)\" -ge 1"),
         0);
  cr_assert_str_eq(cell("peer", "72"), "right", "the other one refuses k > 256");
  static const char *const columns[] = {"gpu_peer",         "wall_peer",      "server_peer",
                                        "gpu_peer_library", "wall_peer_ours", "server_peer_ratio_lo"};
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) cr_assert_gt(atof(cell(columns[i], "72")), 0);
  HAS(sh(ON_SIM "$G bench --summary b.csv").out, "foreign kernels, gpu clock (trains of calls): 2 products");
}

Test(bench, a_foreign_kernel_that_ends_the_process_costs_its_own_product) {
  STATUS(sh("mkdir peers && cp " GS_PEERS "/crashes.so peers"), 0); /* where its n, our m, is 128 */
  result_t r =
      sh(ON_SIM QUICK "--clocks wall --peer peers --shape NNx64x8x64 --shape NNx128x8x64 --shape NNx32x8x64");
  STATUS(r, 0);
  HAS(r.out, "not measured: cublasGemmEx NN 128x8x64");
  HAS(r.out, "it ended the process with signal 6");
  cr_assert_str_eq(cell("status", "64"), "ok");
  cr_assert_str_eq(cell("status", "32"), "ok");
  cr_assert_str_eq(cell("peer", "64"), "crashes");
}

/* ---- beside ours ---- */

Test(bench, other_figures_stand_beside) {
  STATUS(sh("printf 'm,n,k,server_cublas\\n16,384,128,1.25\\n' > p.csv; "
            "printf 'm,n,k,layout,gpu,wall,server\\n16,384,128,tn,9,9,9\\n' > t.csv; "
            "printf 'name\\ttransa\\ttransb\\tm\\tk\\tnote\\ntoy_fc\\tT\\tN\\t384\\t128\\tx3\\n' > m.tsv"),
         0);
  result_t r =
      sh(ON_SIM QUICK "--models m.tsv --n 1,8,64 --shape TNx384x16x128 --published p.csv --torch t.csv "
                      "--plot pic");
  STATUS(r, 0);
  HAS(r.out, "p.csv: published speed-ups of other kernels, other harness");
  HAS(r.out, "server_cublas              1   theirs: mean 1.250 geomean 1.250   ours (server, gemmex max)");
  HAS(r.out, "torch.matmul, in a process of its own");
  HAS(r.out, "wall    torch   tn ");
  HAS(r.out, "toy                   f16 decode   n=64     1/1 ");
  LACKS(r.out, "prefill");
  STATUS(sh("for p in pic-speedup.png pic-roofline.png; do test \"$(head -c 4 $p | tail -c 3)\" = PNG || "
            "exit 1; done"),
         0);
  cJSON *root =
      json(sh("$G bench --summary --json --models m.tsv --published p.csv --torch t.csv b.csv").out);
  cr_assert_eq(number_at(root, "published.0.theirs.mean"), 1.25);
  cr_assert_str_eq(string_at(root, "published.0.harness"), "other");
  cr_assert_eq(number_at(root, "models.0.layers"), 1);
  cr_assert_gt(number_at(root, "models.2.gpu.auto"), 0);
  cr_assert_gt(number_at(root, "torch.0.mean"), 0);
}

Test(bench, a_programs_calls_are_measured) {
  STATUS(sh("LD_LIBRARY_PATH=$SIM $G run -o app.calls -- $DEMO"), 0);
  result_t r = sh(ON_SIM QUICK "--clocks wall app.calls");
  STATUS(r, 0);
  HAS(r.out, "served 6");
}

Test(bench, torch_measures_the_plain_products) {
  STATUS(sh(ON_SIM QUICK "--clocks wall " SHAPES "--shape TNx64x8x32:f16_f16:bias"), 0);
  result_t r = sh("python3 " GS_SOURCE "/tests/e2e/torch_matmul.py --list b.csv | sort");
  STATUS(r, 0);
  cr_assert_str_eq(r.out, "16 384 128 nn\n16 384 128 tn\n");
}

/* The script of `make gpu-bench`, with an nvidia-smi that there is not. */
Test(bench, gpu_bench_ends_in_a_short_table) {
  STATUS(sh("mkdir bin && printf '#!/bin/sh\necho \"GPU 0: gemmshim CPU stand-in (UUID: x)\"\n' > "
            "bin/nvidia-smi && "
            "chmod +x bin/nvidia-smi && printf 'm,n,k,offline_cublas\n64,64,64,2\n' > p.csv"),
         0);
  result_t r = sh("export LD_LIBRARY_PATH=$SIM SIM_NOCOMPUTE=1 PATH=$PWD/bin:$PATH; BUILD=" GS_BUILD
                  " OUT=$PWD/out BUDGET=3 STEPS='rows grid' CLOCKS=wall TABLE=$TABLE PUBLISHED=p.csv "
                  "CUDA_HOME=/nonexistent " GS_SOURCE "/tests/gpu/bench.sh");
  HAS(r.out, "== rows\n# gpu: gemmshim CPU stand-in\n");
  HAS(r.out, "== grid\n");
  HAS(r.out, "\nwall    auto    max ");
  HAS(r.out, "products of the table's rows were measured");
}

/* ---- what is wrong ---- */

Test(bench, a_busy_gpu_is_named) {
  result_t r = sh("SIM_BUSY=80 SIM_BUSY_PID=$$ " ON_SIM QUICK "--clocks wall --shape TNx96x8x64");
  STATUS(r, GS_EXIT_BUSY);
  HAS(r.err, "gemmshim CPU stand-in is 80% busy with other work; process ");
  HAS(r.err, "(sh)");
  HAS(r.err, "--busy-ok");
  STATUS(sh("SIM_BUSY=80 " ON_SIM QUICK "--clocks wall --shape TNx96x8x64 --busy-ok"), 0);
  STATUS(sh("SIM_BUSY=4 " ON_SIM QUICK "--clocks wall --shape TNx96x16x64"), 0);
}

Test(bench, says_what_is_wrong) {
  static const struct {
    const char *arguments;
    int status;
    const char *said;
  } wrong[] = {{"", 2, "nothing to measure"},
               {"--shape TNx16x8", 2, "TNxMxNxK"},
               {"--grid=64,x", 2, "no list such as"},
               {"--clocks gpu,moon", 2, "not of gpu,wall,server"},
               {"--rounds=0 --shape TNx16x8x16", 2, "--rounds: \"0\" is not a number from 1"},
               {"--rate x --shape TNx16x8x16", 2, "is not a number from 1"},
               {"--summary", 2, "--summary: give a CSV"},
               {"--summary /nonexistent.csv", 3, "cannot be read"},
               {"/nonexistent.calls", 3, "nonexistent.calls"},
               {"--models /nonexistent.tsv", 3, "cannot be read"},
               {"--rows /nonexistent.table", 3, "nonexistent.table"},
               {"--shape TNx16x8x16 --table /nonexistent.table", 3, "No such file"},
               {"--shape TNx16x8x16 --peer /nonexistent", 3, "cannot be read"},
               {"--shape TNx16x8x16 --peer .", 3, "no .so is in it"},
               {"--shape TNx16x8x16 -o /nonexistent/b.csv", 3, "cannot be written"},
               {"--shape TNx16x8x16 --cublas /nonexistent.so", 3, "cannot be loaded"},
               {"--shape TNx16x8x16 --device 9", 3, "does not exist"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    result_t r = sh(ON_SIM "$G bench --rounds 5 %s", wrong[i].arguments);
    STATUS(r, wrong[i].status);
    HAS(r.err, wrong[i].said);
  }
  result_t none = sh("LD_LIBRARY_PATH= $G bench --shape TNx16x8x16");
  STATUS(none, 3);
  HAS(none.err, "libcuda.so.1");
  HAS(sh("GEMMSHIM_OFF=1 " ON_SIM "$G bench --shape TNx16x8x16").err, "unset it");
  STATUS(sh("$G bench --columns | grep -q '^C_B_L '"), 0);
}

Test(bench, leaves_nothing_behind) {
  STATUS(sh("mkdir scratch; TMPDIR=$PWD/scratch " ON_SIM QUICK
            "--clocks wall --shape TNx96x8x64 && rmdir scratch"),
         0);
}
