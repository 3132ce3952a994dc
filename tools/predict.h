/* A table for a GPU that is not at hand: rows that a cost model and published figures make likely, none of them
 * measured. The library serves none of them before `gemmshim requalify` has measured them there. */
#ifndef GS_PREDICT_H
#define GS_PREDICT_H

/* "a100"; names is what there is, for a message. */
extern const char gs_predict_names[];

/* csv: columns m, n, k (row-major; B transposed), bm, bn (tile along m and n), accumulator, and the lead against
 * cuBLASLt's autotuning, offline_lt_autotune. Rows whose accumulator is f32 and whose lead is worth it become rows of
 * the table, the published tile where it is shipped, else the tile that the model prefers. Returns an exit status. */
int gs_predict(const char *gpu, const char *csv, const char *output);

#endif
