/* Which n a table's rows may claim, from what can be measured at single n. An interval is claimed only where its
 * configuration won at both ends and at every sample inside: the first n behind the lower end, where most of a new
 * tile is empty, an uneven one in the middle, and both sides of each n where the library changes its algorithm. Between
 * two that were won by different configurations each n goes to the upper one's where the lower one's takes longer there than
 * the upper one's does at its own n. */
#ifndef GS_CLAIMS_H
#define GS_CLAIMS_H

#include "gs_table.h"

/* Whoever measures. All are called with n as the last argument but one. */
typedef struct {
  void *context;
  /* Finds what wins at n: true, and its row, which claims n alone. False: nothing does; library_us is the time to beat (0:
   * unknown). */
  bool (*best)(void *context, int n, gs_row_t *row);
  /* Whether the configuration of row wins at n too; then its times there are put in. */
  bool (*holds)(void *context, int n, gs_row_t *row);
  /* What the library chooses at n, as one number; must be cheap. */
  uint64_t (*library)(void *context, int n);
} gs_oracle_t;

/* What a sample was measured to take, into a row that may claim it. */
void gs_row_take_times(gs_row_t *row, const gs_row_t *measured);

/* Where two neighbours were won by different configurations, one may claim both if it is at most so much slower than
 * the best at the other one. */
#define GS_CLAIM_SLACK 1.03f

#define GS_CLAIM_SAMPLES_MAX                                                                                 \
  12 /* between two neighbours; where the library changes more often, nothing is joined */

/* Writes the rows for a key whose ns (rising, each once) are wanted: at most count of them, by rising n. A row's times
 * are those of the n where its lead was smallest. Returns how many rows there are. */
int gs_claim(const gs_oracle_t *oracle, const int *ns, int count, gs_row_t *rows);

/* The n at which to measure anew what claims lo to hi: its ends, and halves between, where the library changes its
 * algorithm so often that one step could not be proven. At most GS_CLAIM_STOPS_MAX, rising; returns how many. */
#define GS_CLAIM_STOPS_MAX 17
int gs_claim_stops(const gs_oracle_t *oracle, int lo, int hi, int *ns);

#endif
