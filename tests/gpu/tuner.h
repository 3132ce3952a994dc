/* A tuner on stand-ins whose speed is set: what the suites tune and fleet share. */
#ifndef GS_TUNER_TEST_H
#define GS_TUNER_TEST_H

#include "cli.h"

#define ON_SIM "LD_LIBRARY_PATH=$SIM SIM_L2=4096 SIM_CLOCK=set "
#define FEW    "$G tune --candidates 2 -o t.table "
#define KEYS   "--exact --shape TNx16x8x16 --shape TNx32x8x16 --shape NNx16x8x16 "
#define WIN    "SIM_US='cublasGemmEx:90,lt_*:90," ALL_OURS("4") "' "
/* Nor do they win for the host: the library's own algorithms go through the library. */
#define LOSE "GEMMSHIM_RELAUNCH=0 SIM_US='cublasGemmEx:4,lt_*:4," ALL_OURS("90") "' "

static int rows(const char *table) {
  return atoi(sh("grep -c '^[NT]' %s", table).out);
}

#endif
