/* gemmshim tune on the CPU stand-ins, whose speed is set: what wins a row, and what a broken run leaves. */
#include "cli.h"

SUITE(tune);

#define ON_SIM "LD_LIBRARY_PATH=$SIM SIM_L2=4096 SIM_CLOCK=set "
#define FEW    "$G tune --candidates 2 -o t.table "
#define SHAPE  "--shape TNx16x8x16"

/* Algorithm 5 is not among those that the stand-in's heuristic offers. */
Test(tune, the_librarys_own_algorithm_wins_a_row) {
  result_t r = sh(ON_SIM "SIM_US='cublasGemmEx:90,lt_5:4,lt_*:90,mma_*:90,direct_*:90' " FEW SHAPE);
  STATUS(r, 0);
  HAS(r.out, "1 won");
  STATUS(sh("$G table check t.table && grep -q 'lt_5_t[0-9]*_s.*_r[02]_' t.table"), 0);
}

Test(tune, a_kernel_that_beats_them_all_wins_instead) {
  result_t r = sh(ON_SIM "SIM_US='cublasGemmEx:90,lt_5:60,lt_*:90,mma_*:4,direct_*:4' " FEW SHAPE);
  STATUS(r, 0);
  STATUS(sh("grep -q 'direct_\\|mma_' t.table"), 0);
}

Test(tune, a_tie_on_the_gpu_clock_is_a_row_where_the_host_gains) {
#define TIE "SIM_US='cublasGemmEx:60,lt_*:60,mma_*:200,direct_*:200' "
  result_t r = sh(ON_SIM TIE "SIM_HOST_US=cublasGemmEx:200 " FEW SHAPE);
  STATUS(r, 0);
  HAS(r.out, "on the wall clock");
  STATUS(sh("grep -q 'lt_' t.table"), 0);
  result_t machine = sh(ON_SIM TIE "SIM_HOST_US=cublasGemmEx:200 " FEW "--json --again " SHAPE);
  cr_assert_str_eq(string_at(json(machine.out), "products.0.won_on"), "wall");
  result_t neither = sh(ON_SIM TIE "SIM_HOST_US=cublasGemmEx:200,lt_*:200 " FEW "--again " SHAPE);
  HAS(neither.out, "0 won");
}

Test(tune, an_algorithm_that_is_wrong_gets_no_row) {
  result_t r = sh(ON_SIM "SIM_WRONG='lt_5:all:0.05' "
                         "SIM_US='cublasGemmEx:90,lt_5:4,lt_*:90,mma_*:150,direct_*:150' " FEW SHAPE);
  STATUS(r, 0);
  HAS(r.out, "0 won");
  cr_assert(!exists("t.table"));
}

Test(tune, sums_in_half_are_tuned_against_the_librarys_own) {
  STATUS(sh("printf "
            "'cublasGemmEx\\tt\\tn\\t64\\t16\\t64\\t64\\t64\\t64\\t64\\tf16\\tf16\\tf16\\tf16\\t16f\\tdefault"
            "\\tsingle\\t1"
            "\\t0\\t0\\t0\\t0\\t16\\t9\\t0\\t5\\t0\\n' > half.calls"),
         0);
  result_t r = sh(ON_SIM "SIM_US='cublasGemmEx:90,lt_*:90,mma_*:4,direct_*:4' " FEW "half.calls");
  STATUS(r, 0);
  HAS(r.out, "1 won");
  STATUS(sh("grep -q '16f.*\\(direct\\|mma\\)_' t.table"), 0);
}
