/* gemmshim verify, kernels and tune on the CPU stand-ins: that they judge, say what failed, and lose nothing.
 */
#include "cli.h"

SUITE(gpu);

#define ON_SIM "LD_LIBRARY_PATH=$SIM "
#define SMALL  "$G verify --sizes small --quick --kernel 'mma_f16_f16_tn_*' "

#define OWN_CACHE "XDG_CACHE_HOME=$PWD "

static void need_nvrtc(void) {
  result_t r = sh(OWN_CACHE "$G kernels --compile direct_f16_f16_tn_16x16_u1_w1");
  if (r.status == 3) cr_skip_test("%s", r.err);
  STATUS(r, 0);
}

Test(gpu, kernels_are_listed_with_and_without_a_gpu) {
  result_t bare = sh("LD_LIBRARY_PATH= $G kernels"), full = sh(ON_SIM "$G kernels --json");
  STATUS(bare, 0);
  HAS(bare.out, "mma_f16_f16_tn_");
  STATUS(full, 0);
  cJSON *root = json(full.out);
  cr_assert_eq(lines_of(bare.out), cJSON_GetArraySize(json_at(root, "kernels")) + 2,
               "a head, a line each, a sum");
  cr_assert_gt(number_at(root, "kernels.0.blocks_per_sm"), 0);
  STATUS(sh("$G kernels --kernel 'nothing*'"), 1);
  STATUS(sh("$G kernels --device x"), 2);
}

Test(gpu, verify_passes_right_kernels) {
  result_t r = sh(ON_SIM SMALL);
  STATUS(r, 0);
  HAS(r.out, " 0 failed");
  HAS(r.out, "twice the error of cuBLAS");
  LACKS(r.out, "FAIL");
  result_t machine = sh(ON_SIM SMALL "--json");
  STATUS(machine, 0);
  cJSON *root = json(machine.out);
  cr_assert(cJSON_IsTrue(json_at(root, "kernels.0.ok")) && number_at(root, "failed") == 0);
  cr_assert_eq(lines_of(r.out), cJSON_GetArraySize(json_at(root, "kernels")) + 2);
}

Test(gpu, verify_fails_kernels_that_write_nothing) {
  result_t r = sh(ON_SIM "SIM_NOCOMPUTE=1 " SMALL "--cublas none");
  STATUS(r, 1);
  HAS(r.out, "an element was not written");
  LACKS(r.out, "ok ");
}

/* The first launch is the reference's. */
Test(gpu, verify_survives_a_kernel_that_kills_the_context) {
  result_t r = sh(ON_SIM "SIM_FAIL=cuLaunchKernel:3=700 " SMALL);
  STATUS(r, 1);
  HAS(r.out, "CUDA_ERROR_ILLEGAL_ADDRESS");
  HAS(r.out, " 1 failed");
  HAS(r.out, "ok   mma_");
}

/* Operands lie between pages that are mapped to nothing. Sanitizers would make a report of it. */
Test(gpu, C5_verify_sees_reads_beside_an_operand) {
  static const char *const where[] = {"before", "behind"};
  for (int i = 0; i < 2; i++) {
    result_t r = sh(ON_SIM "ASAN_OPTIONS=handle_segv=0 TSAN_OPTIONS=handle_segv=0 "
                           "SIM_WRONG='mma_f16_f16_tn_64x32x64_s6_*:%s' " SMALL,
                    where[i]);
    STATUS(r, 1);
    HAS(r.out, "FAIL mma_f16_f16_tn_64x32x64_s6_");
    HAS(r.out, "the process ended with signal 11");
    HAS(r.out, "ok   mma_f16_f16_tn_32x32x64_");
  }
}

Test(gpu, verify_says_what_is_missing) {
  result_t none = sh("LD_LIBRARY_PATH= $G verify"), device = sh(ON_SIM "$G verify --device 5");
  STATUS(none, 3);
  HAS(none.err, "libcuda.so.1");
  STATUS(device, 3);
  HAS(device.err, "device 5 does not exist");
  STATUS(sh(ON_SIM "$G verify --cublas /nonexistent/libcublas.so.13"), 3);
  STATUS(sh(ON_SIM "SIM_FAIL='cuLibraryLoadData:*=209' $G verify"), 3);
  STATUS(sh("$G verify --kernel 'nothing*'"), 2);
  STATUS(sh("$G verify --sizes large"), 2);
}

Test(gpu, kernels_that_are_not_shipped_are_listed_too) {
  need_nvrtc();
  result_t r =
      sh(OWN_CACHE ON_SIM "$G kernels --json mma_f16_f16_tn_48x64x32_s3_w2 'mma_f16_f16_tn_64x64x64_s4*'");
  STATUS(r, 0);
  cJSON *root = json(r.out);
  cr_assert_eq(cJSON_GetArraySize(json_at(root, "kernels")), 2);
  r = sh(OWN_CACHE ON_SIM "$G kernels mma_f16_f16_tn_48x64x32_s3_w2 mma_f16_f16_tn_256x256x32_s2_w4");
  STATUS(r, 1);
  HAS(r.out, "mma_f16_f16_tn_48x64x32_s3_w2 ");
  HAS(r.err, "refused: 512 accumulators");
  STATUS(sh(OWN_CACHE "LD_LIBRARY_PATH= $G kernels direct_16x16_u1_w1 --kernel '*_f16_f16_tn_*'"), 0);
  STATUS(sh("$G kernels nonsense"), 2);
  STATUS(sh("$G kernels --clean-cache nonsense"), 2);
}

/* Nothing else can be meant. */
Test(gpu, kernels_of_families_wgmma_and_strip_are_compiled_for_hopper) {
  need_nvrtc();
#define COMPILE OWN_CACHE "LD_LIBRARY_PATH= $G kernels --json --compile "
  cJSON *wgmma = json(sh(COMPILE "wgmma_f16_f16_tn_64x64x64_s5_w4").out),
        *mma = json(sh(COMPILE "mma_f16_f16_tn_48x64x32_s3_w2").out);
  cr_assert_eq(number_at(wgmma, "sm"), 90);
  cr_assert_eq(number_at(json(sh(COMPILE "strip_f16_f16_tn_128x192x64_s4_w4").out), "sm"), 90);
  cr_assert_eq(number_at(mma, "sm"), 80);
  STATUS(sh(OWN_CACHE "LD_LIBRARY_PATH= $G kernels wgmma_f16_f16_tn_64x64x64_s5_w4"), 0);
  STATUS(sh(OWN_CACHE "LD_LIBRARY_PATH= $G kernels strip_128x192x64_s4_w4 --kernel '*_f16_f16_tn_*'"), 0);
  result_t ampere = sh(COMPILE "wgmma_f16_f16_tn_64x64x64_s5_w4 --sm 80");
  STATUS(ampere, 1);
  HAS(ampere.err, "do not run on sm_80");
}

#define PEER "$G verify --sizes small --peer " GS_PEERS "/"

Test(gpu, peer_passes_when_right) {
  result_t r = sh(ON_SIM PEER "right.so --seed 7");
  STATUS(r, 0);
  HAS(r.out, "ok   64x64x64 ");
  HAS(r.out, "seed 7\n");
  HAS(r.out, " 0 failed, 0 not done by the peer\n");
  LACKS(r.out, "FAIL");
  int cases = lines_of(r.out) - 2;
  cr_assert_gt(cases, 30);
  result_t machine = sh(ON_SIM PEER "right.so --json --quick --one-process");
  STATUS(machine, 0);
  cJSON *root = json(machine.out);
  cr_assert_str_eq(string_at(root, "cases.0.verdict"), "ok");
  cr_assert_str_eq(string_at(root, "cases.0.shape"), "64x64x64");
  cr_assert(number_at(root, "cases.0.error") > 0 && number_at(root, "failed") == 0);
  cr_assert_lt(number_at(root, "count"), cases);
}

Test(gpu, peer_that_sums_in_fp16_fails) {
  result_t r = sh(ON_SIM PEER "half.so --quick");
  STATUS(r, 1);
  HAS(r.out, "an exactly representable result is wrong");
  HAS(r.out, "the relative error is above its bound");
  STATUS(sh(ON_SIM PEER "half.so --quick | grep -q '^FAIL 64x128x1024 *integers'"), 0);
  STATUS(sh(ON_SIM PEER "half.so --quick | grep -q '^FAIL 64x128x1024 *normal'"), 0);
}

Test(gpu, peer_that_is_wrong_is_told_how) {
  static const struct {
    const char *peer, *said;
  } wrong[] = {{"corner", "an element was not written"},
               {"fickle", "it did the product once and refused it once"},
               {"drifts", "two runs on the same operands differ"},
               {"spills", "memory outside"},
               {"b_t", "B transposed, or memory around it, was written"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    result_t r = sh(ON_SIM PEER "%s.so --quick", wrong[i].peer);
    STATUS(r, 1);
    HAS(r.out, wrong[i].said);
    LACKS(r.out, "ok ");
  }
}

/* A crash costs its own case, and a refusal is no failure; what the peer prints is kept out of the lines. */
Test(gpu, peer_may_crash_and_refuse) {
  result_t crash = sh(ON_SIM PEER "crashes.so --quick");
  STATUS(crash, 1);
  HAS(crash.out, "the process ended with signal 6");
  HAS(crash.out, "ok   64x64x64 ");
  LACKS(crash.out, "skip");
  HAS(crash.out, "5 cases, 4 failed, 0 not done by the peer\n");
  result_t leaves = sh(ON_SIM PEER "leaves.so --quick");
  STATUS(leaves, 1);
  HAS(leaves.out, "it ended the process, with status 0");
  result_t picks = sh(ON_SIM PEER "picks.so --quick");
  STATUS(picks, 0);
  HAS(picks.out, "skip 64x128x1024     normal\n");
  HAS(picks.out, " 0 failed, 3 not done by the peer\n");
  HAS(picks.err, "chatter");
  LACKS(picks.out, "chatter");
  result_t none = sh(ON_SIM PEER "refuses.so --quick");
  STATUS(none, 1);
  HAS(none.err, "the peer did none of them");
  LACKS(none.out, "ok ");
}

Test(gpu, peer_is_asked_for_the_shapes_that_are_named) {
  result_t r = sh(ON_SIM PEER "right.so --shape 64x72x1024 --shape 8x16x24");
  STATUS(r, 0);
  HAS(r.out, "ok   64x72x1024      outliers");
  HAS(r.out, "ok   8x16x24         nan_inf");
  HAS(r.out, "12 cases, 0 failed, 0 not done by the peer\n");
  r = sh(ON_SIM PEER "half.so --shape 64x72x1024");
  STATUS(r, 1);
  HAS(r.out, "FAIL 64x72x1024      integers");
  HAS(r.out, "FAIL 64x72x1024      normal");
  STATUS(sh(PEER "right.so --shape 64x72"), 2);
  STATUS(sh(PEER "right.so --shape 64x72x1023"), 2);
  STATUS(sh(PEER "right.so --shape 64x72x65536"), 2);
  STATUS(sh("$G verify --shape 64x72x1024"), 2);
}

Test(gpu, peer_that_cannot_be_loaded_is_told_why) {
  result_t none = sh(ON_SIM PEER "nothing.so"), text = sh(ON_SIM "echo no > x.so; $G verify --peer x.so"),
           nameless = sh(ON_SIM PEER "nameless.so"), gpu = sh("LD_LIBRARY_PATH= " PEER "right.so"),
           lost = sh(ON_SIM "SIM_FAIL=cuCtxSynchronize:1=700 " PEER "right.so --quick");
  STATUS(none, 3);
  HAS(none.err, "nothing.so: cannot be read (No such file");
  STATUS(text, 3);
  HAS(text.err, "x.so: cannot be loaded (");
  STATUS(nameless, 3);
  HAS(nameless.err, "has no function gemm_peer");
  STATUS(gpu, 3);
  HAS(gpu.err, "libcuda.so.1");
  STATUS(lost, 1);
  HAS(lost.out, "CUDA_ERROR_ILLEGAL_ADDRESS");
  STATUS(sh("$G verify --kernel 'mma_*' --peer x.so"), 2);
}

#define TINY "$G tune --quick --shape TNx16x8x16 "

Test(gpu, tune_measures_and_reports) {
  result_t r = sh(ON_SIM TINY "--shape NNx16x8x16:bf16_f32 --shape TNx16x8x16:f16_f16:bias -o t.table");
  STATUS(r, 0);
  cr_assert_eq(lines_of(r.out), 6, "%s", r.out);
  HAS(r.out, "0 failed the gate, 0 not measurable");
  HAS(r.out, "nothing was written");
  cr_assert(!exists("t.table") && !exists("t.table.lock"));
  result_t machine = sh(ON_SIM TINY "--json -o t.table");
  STATUS(machine, 0);
  cJSON *root = json(machine.out);
  cr_assert_gt(number_at(root, "products.0.us"), 0);
  cr_assert_gt(number_at(root, "products.0.gemm_ex_us"), 0);
  cr_assert_gt(number_at(root, "products.0.lt_candidates"), 0);
}

Test(gpu, verify_takes_kernels_that_are_not_shipped) {
  need_nvrtc();
  result_t r =
      sh(OWN_CACHE ON_SIM "$G verify --sizes small --quick mma_f16_f16_tn_48x64x32_s3_w2 direct_16x16_u3_w2 "
                          "'mma_f16_f16_tn_64x64x64_s4*' --cublas none");
  STATUS(r, 0);
  HAS(r.out, "ok   mma_f16_f16_tn_48x64x32_s3_w2 ");
  HAS(r.out, "ok   mma_f16_f16_tn_64x64x64_s4_w4 ");
  HAS(r.out, "ok   direct_bf16_f32_tt_16x16_u3_w2 ");
  HAS(r.out, "18 kernels, 0 failed\n");
  r = sh(OWN_CACHE ON_SIM "SIM_NOCOMPUTE=1 $G verify --sizes small --quick mma_f16_f16_tn_48x64x32_s3_w2");
  STATUS(r, 1);
  HAS(r.out, "FAIL mma_f16_f16_tn_48x64x32_s3_w2 ");
}

Test(gpu, verify_fails_for_what_it_cannot_compile) {
  need_nvrtc();
  result_t r = sh(OWN_CACHE ON_SIM "$G verify --sizes small --quick mma_f16_f16_tn_256x256x32_s2_w4 "
                                   "mma_f16_f16_tn_48x64x32_s3_w2");
  STATUS(r, 1);
  HAS(r.err, "refused: 512 accumulators");
  HAS(r.out, "1 kernels were refused\n1 kernels, 0 failed");
  STATUS(sh(OWN_CACHE ON_SIM "$G verify mma_f16_f16_tn_256x256x32_s2_w4"), 1);
  STATUS(sh(OWN_CACHE ON_SIM "$G verify what"), 2);
  STATUS(sh(OWN_CACHE ON_SIM "$G verify --device 5 mma_f16_f16_tn_48x64x32_s3_w2"), 3);
}

/* Ids, tiles and patterns; what is not shipped is compiled, what is refused is left out. */
Test(gpu, tune_measures_the_kernels_it_is_told_to) {
  need_nvrtc();
  write_file("names",
             "# some\nmma_f16_f16_tn_48x64x32_s3_w2 # one\n\ndirect_16x16_u3_w2,mma_256x256x32_s2_w4\n", 85);
  result_t r = sh(OWN_CACHE ON_SIM TINY "--all --kernels names");
  STATUS(r, 0);
  HAS(r.err, "mma_f16_f16_tn_256x256x32_s2_w4: refused: 512 accumulators");
  HAS(r.out, "us  mma_f16_f16_tn_48x64x32_s3_w2 split_k 1");
  HAS(r.out, "us  direct_f16_f16_tn_16x16_u3_w2 split_k 1");
  HAS(r.out, "us  cublasGemmEx\n");
  LACKS(r.out, "bf16");
  LACKS(r.out, "64x64x64");
  r = sh(OWN_CACHE ON_SIM TINY "--all --json --kernels 'mma_f16_f16_tn_64x64x64_s4*,direct_16x16_u3_w2'");
  STATUS(r, 0);
  cJSON *root = json(r.out);
  cr_assert_eq(number_at(root, "products.0.candidates"), 2);
  cr_assert_gt(number_at(root, "products.0.all.0.us"), 0);
}

/* From an id to a served call: the winner lies beside its table, moves with it, and serves from there. */
Test(gpu, a_kernel_that_is_not_shipped_wins_and_serves) {
#define EXTRA "mma_f16_f16_tn_48x32x32_s2_w1"
  need_nvrtc();
  result_t r =
      sh(OWN_CACHE ON_SIM
         "SIM_CLOCK=set SIM_US='cublasGemmEx:20,lt_*:20,mma_*:10' $G tune --shape TNx16x8x16 --kernels " EXTRA
         " -o t.table");
  STATUS(r, 0);
  HAS(r.out, "1 won, 0 tied");
  HAS(r.out, "t.table: 1 rows");
  STATUS(sh("grep -c '^T.*\t" EXTRA "-[0-9a-f]\\{16\\}\t1' t.table && ls t.table.d/" EXTRA "-*.cubin"), 0);
  STATUS(sh("$G table check t.table"), 0);
  r = sh(OWN_CACHE ON_SIM "$G tune --shape TNx16x8x16 -o t.table");
  STATUS(r, 0);
  HAS(r.out, "1 kept from before");
  STATUS(
      sh("mkdir there && $G table copy t.table there/u.table && cmp t.table there/u.table && rm -r t.table*"),
      0);
  r = sh("$G table check there/u.table");
  STATUS(r, 0);
  HAS(r.out, "1 rows fine, 0 refused");
  STATUS(sh("sed -i 's/^cublas: .*/cublas: 13.0.0/' there/u.table"), 0);
  r = sh(
      ON_SIM
      "SIM_CLOCK=set SIM_US='cublasGemmEx:20,lt_*:20,mma_*:10' $G requalify -o there/u.table there/u.table");
  STATUS(r, 0);
  HAS(r.err, "kept as there/u.table.old");
  r = sh("$G table check there/u.table && $G table check there/u.table.old");
  STATUS(r, 0);
  HAS(r.out, "1 proven on gemmshim CPU stand-in with cuBLAS 13.1.0");
  HAS(r.out, "there/u.table.old: digest");
  STATUS(sh("$G table merge m.table there/u.table && rm -r there/u.table.old* && $G table check m.table"), 0);
  STATUS(sh("chmod g+w there/u.table.d/*"), 0);
  r = sh("$G table check there/u.table");
  STATUS(r, 1);
  HAS(r.out, "there/u.table:9: there/u.table.d/" EXTRA "-");
  HAS(r.out, ".cubin: others may write it: chmod go-w; run gemmshim tune again");
  r = sh("$G table copy there/u.table w.table");
  STATUS(r, 1);
  HAS(r.err, "1 rows are faulty");
  cr_assert(!exists("w.table") && !exists("w.table.d"));
}

Test(gpu, tune_searches_the_space) {
  need_nvrtc();
  result_t r = sh(OWN_CACHE ON_SIM TINY "--search=4 --all --kernels 'mma_f16_f16_tn_64x64x64_s4*' | tee out");
  STATUS(r, 0);
  HAS(r.out, " 0 refused by the compiler or for what it made");
  STATUS(sh("test $(grep -c 'us  mma.*_tn_\\|us  direct_f16_f16_tn_\\|us  rows_f16_f16_tn_' out) = 5"), 0);
  STATUS(sh(OWN_CACHE ON_SIM TINY "--search=0"), 2);
  STATUS(sh(OWN_CACHE ON_SIM TINY "--search=x"), 2);
}

Test(gpu, tables_are_copied_or_it_is_said_why_not) {
  STATUS(sh("$G table copy $TABLE t.table && cmp t.table $TABLE"), 0);
  cr_assert_not(exists("t.table.d"));
  STATUS(sh("$G table copy nothing t2.table"), 3);
  STATUS(sh("$G table copy $TABLE"), 2);
  STATUS(sh("$G table copy $TABLE /nonexistent/t.table"), 3);
  STATUS(sh("echo nonsense > bad.table; $G table copy bad.table t2.table"), 1);
  cr_assert_not(exists("t2.table"));
}

Test(gpu, tune_says_which_kernels_it_cannot_take) {
  static const struct {
    const char *names;
    int status;
    const char *said;
  } wrong[] = {{"nonsense", 2, "neither a kernel's id nor a tile nor a pattern"},
               {"mma_128x96x33_s4_w4", 2, "neither a kernel's id"},
               {"'mma_q*'", 3, "no shipped kernel matches"},
               {"mma_256x256x32_s2_w4", 3, "none could take part"},
               {"/proc/self", 3, "not a regular file"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    result_t r = sh(OWN_CACHE ON_SIM TINY "--kernels %s", wrong[i].names);
    STATUS(r, wrong[i].status);
    HAS(r.err, wrong[i].said);
  }
}

Test(gpu, tune_reads_what_run_writes) {
  STATUS(sh(ON_SIM "$G run -o app.calls -- $DEMO"), 0);
  result_t r = sh(ON_SIM "$G tune --quick --budget 1 app.calls");
  STATUS(r, 0);
  HAS(r.err, "budget of 1 s is spent");
  HAS(r.err, "are left out: no kernel could serve them"); /* the demo's fp32 product */
}

Test(gpu, tune_says_what_is_wrong) {
  static const struct {
    const char *arguments;
    int status;
    const char *said;
  } wrong[] = {{"", 2, "nothing to tune"},
               {"--shape TNx16x8", 2, "TNxMxNxK"},
               {"--shape TNx16x8x16:i8_i8", 2, "that kernels compute"},
               {"--n 1,x --models m", 2, "no list such as"},
               {"--split-k 0", 2, "not from 1"},
               {"/nonexistent.calls", 3, "nonexistent.calls"},
               {"--models /nonexistent.tsv", 3, "cannot be read"},
               {"--shape TNx16x8x16 -o /nonexistent/t.table", 3, "/nonexistent/t.table: "},
               {"--shape TNx16x8x16 --cublas /nonexistent.so", 3, "cannot be loaded"},
               {"--shape TNx16x8x16 --device 9", 3, "does not exist"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    result_t r = sh(ON_SIM "$G tune --quick %s", wrong[i].arguments);
    STATUS(r, wrong[i].status);
    HAS(r.err, wrong[i].said);
  }
  result_t none = sh("LD_LIBRARY_PATH= $G tune --shape TNx16x8x16");
  STATUS(none, 3);
  HAS(none.err, "libcuda.so.1");
}

Test(gpu, tune_leaves_foreign_tables_alone) {
  STATUS(sh("sed 's/^gpu: .*/gpu: another/' $TABLE > t.table && cp t.table before"), 0);
  result_t r = sh(ON_SIM "$G tune --shape TNx16x8x16 -o t.table");
  STATUS(r, 3);
  HAS(r.err, "name another file with -o");
  STATUS(sh("cmp t.table before"), 0);
}

Test(gpu, tune_keeps_the_rows_that_a_table_has) {
  STATUS(sh("cp $TABLE t.table"), 0);
  result_t r = sh("export LD_LIBRARY_PATH=$SIM; set -- $(grep '^[NT].*default.single' t.table | head -1); "
                  "$G tune --quick --shape $1$2x$3x${10}x$4:$5_$6 -o t.table && cmp t.table $TABLE");
  STATUS(r, 0);
  HAS(r.out, "1 kept from before");
}

/* ---- the programs of gpu-check, on the stand-ins ---- */

Test(gpu, S2_S6_captures_runs_as_on_a_gpu) {
  STATUS(sh("sed 's/128\\t128\\tf16/512\\t1024\\tf16/; s/w4\\t1\\t1/w4\\t9\\t1/' $TABLE > t.table"), 0);
  result_t r = sh(
      "LD_LIBRARY_PATH=$SIM SIM_MEMORY_MB=256 SIM_DEVICES=2 $G run --keep kept --table t.table -- " GS_BUILD
      "/tests/gpu/captures --times 200");
  STATUS(r, 0);
  HAS(r.out, "ok 1 - global: right results, device memory grew by 0 bytes, ");
  HAS(r.out, "ok 9 - green: right results, device memory grew by 0 bytes, its own by 0 # SKIP");
  HAS(r.out, "# mixed: 19 updates");
  HAS(r.out, "1..10\n");
  cJSON *root = json(sh("$G report --json kept").out);
  cr_assert(number_at(root, "served") >= 0.9 * number_at(root, "calls"), "%s", cJSON_Print(root));
}

/* Bytes beyond the bound, and calls that failed for want of memory, would be "not ok"; the first time the bound is
 * reached, the second time the device's memory. */
Test(gpu, S8_vllm_start_runs_as_on_a_gpu) {
  static const struct {
    const char *memory, *bound, *allowed;
  } cases[] = {{"600", "2", "4"}, {"256", "32", "2"}};
  STATUS(sh("(sed '/^[NT]\\t/d' $TABLE; printf "
            "'T\\tN\\t32\\t320\\tf16\\tf16\\t32f\\tdefault\\tsingle\\t1\\t384\\t"
            "mma_f16_f16_tn_128x32x32_s5_w4\\t9\\t1\\t8\\t10\\t0\\t0\\n') > t.table; $G table check t.table"),
         0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    result_t r = sh("rm -rf kept memory; LD_LIBRARY_PATH=$SIM SIM_MEMORY_SHARED=$PWD/memory SIM_MEMORY_MB=%s "
                    "GEMMSHIM_VRAM_MB=%s "
                    "$G run --keep kept --table t.table -- " GS_BUILD
                    "/tests/gpu/vllm_start --m 32 --k 320 --allow %s",
                    cases[i].memory, cases[i].bound, cases[i].allowed);
    STATUS(r, 0);
    HAS(r.out, "ok 7 - 99.");
    HAS(r.out, "1..8\n");
    cJSON *root = json(sh("$G report --json kept").out);
    cr_assert(number_at(root, "processes") == 2);
    cr_assert(number_at(root, "verdicts.served") > 0 && number_at(root, "verdicts.workspace") > 0, "%s",
              cJSON_Print(root));
    cr_assert(number_at(root, "traced") == 102 && number_at(root, "replays") == 204, "%s", cJSON_Print(root));
  }
}

Test(gpu, S2_S3_relaunch_runs_as_on_a_gpu) {
  static const struct {
    const char *launch, *algo;
    int learnt;
  } ways[] = {{"none", "lt_3_t19_s0_r0_z1_c0_i0_h0\\t1", 2},
              {"counter", "lt_3_t19_s0_r0_z1_c0_i0_h0\\t1", 2},
              {"singly", "lt_3_t19_s0_r0_z1_c0_i0_h0\\t1", 2},
              {"split", "lt_3_t19_s0_r2_z0_c0_i0_h0\\t4", 2},
              {"thrice", "lt_3_t19_s0_r0_z1_c0_i0_h0\\t1", 0}};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    char said[80];
    STATUS(
        sh("(sed '/^[NT]\\t/d' $TABLE; for n in 8 24; do printf "
           "\"T\\tN\\t96\\t64\\tf16\\tf16\\t32f\\tdefault\\tsingle\\t$n\\t$n\\t%s\\t1\\t8\\t10\\t0\\t0\\n\"; "
           "done) > t.table; $G table check t.table",
           ways[i].algo),
        0);
    result_t r = sh("LD_LIBRARY_PATH=$SIM SIM_LAUNCH=%s GEMMSHIM_LOG=1 GEMMSHIM_TABLE=$PWD/t.table "
                    "LD_PRELOAD=" GS_BUILD "/libgemmshim.so " GS_BUILD
                    "/tests/gpu/relaunch --times 20 96 8 64 96 24 64",
                    ways[i].launch);
    STATUS(r, 0);
    HAS(r.out, "ok 1 - 96x8x64\nok 2 - 96x24x64\n1..2\n");
    snprintf(said, sizeof said, "of 2 algorithms of cuBLASLt, the launches of %d were learnt",
             ways[i].learnt);
    HAS(r.err, said);
  }
}

Test(gpu, S1_S3_early_runs_as_on_a_gpu) {
  result_t r = sh("sed 's/^T\\tN\\t128\\t128/T\\tN\\t1024\\t1024/' $TABLE > t.table; LD_LIBRARY_PATH=$SIM "
                  "GEMMSHIM_EARLY=1 GEMMSHIM_LOG=1 GEMMSHIM_TABLE=$PWD/t.table LD_PRELOAD=" GS_BUILD
                  "/libgemmshim.so " GS_BUILD "/tests/gpu/early --times 1 --deep 64");
  STATUS(r, 0);
  HAS(r.out, "ok 19 - many of ours, each behind another\n1..19\n");
  HAS(r.err, "95 products, 77 served");
}

Test(gpu, L6_reach_runs_as_on_a_gpu) {
  if (sh("python3 --version").status) cr_skip_test("no python3 here");
  result_t r =
      sh("LD_LIBRARY_PATH=$SIM python3 " GS_SOURCE "/tests/e2e/reach.py --build " GS_BUILD " ctypes");
  STATUS(r, 0);
  HAS(r.out, "ok 1 - ctypes: 1 products seen");
}
