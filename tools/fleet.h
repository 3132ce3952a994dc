/* One tuner on each GPU: the command line runs itself once a GPU, each with its share of the keys and a table of its
 * own, and joins the tables. */
#ifndef GS_FLEET_H
#define GS_FLEET_H

#include <signal.h>
#include <stdbool.h>

#include "points.h"

#define GS_FLEET_MAX 64

typedef struct {
  int device[GS_FLEET_MAX]; /* all of one model, that of the first GPU */
  int count;                /* 0: the driver does not start */
  char gpu[64];
} gs_fleet_t;

/* The visible GPUs; those of another model than the first one are said and left out. Creates no context. */
gs_fleet_t gs_fleet_find(void);

typedef struct {
  int argc;
  char **argv;        /* of the command; each tuner gets it with its device, shard and table behind */
  const char *output; /* the table that is wanted, with its .table */
  gs_shard_t shard;   /* what part of the work is this machine's; of 0: all */
  bool again, quick;  /* rows of output are measured anew; nothing is written */
  const volatile sig_atomic_t *stopped;
} gs_fleet_run_t;

/* Runs a tuner on each GPU and waits; returns an exit status. The tuners' tables are gone when all is done, and stay for
 * the next run of the same command where it is not. */
int gs_fleet_run(const gs_fleet_t *fleet, const gs_fleet_run_t *run);

#endif
