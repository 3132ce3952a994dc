#define _GNU_SOURCE
#include "draft.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beside.h"
#include "output.h"
#include "tools.h"

#define LOCK_TRIES 100 /* each one more means that another tuner has just ended */

static int by_key_and_n(const void *left, const void *right) {
  const gs_row_t *x = left, *y = right;
  int order = memcmp(&x->key, &y->key, offsetof(gs_key_t, batch));
  if (order) return order;
  if (x->key.batch != y->key.batch) return x->key.batch < y->key.batch ? -1 : 1;
  if (x->key.m != y->key.m) return x->key.m < y->key.m ? -1 : 1;
  if (x->key.k != y->key.k) return x->key.k < y->key.k ? -1 : 1;
  return (x->n_lo > y->n_lo) - (x->n_lo < y->n_lo);
}

static bool put_row(gs_draft_t *draft, const gs_row_t *row) {
  if (draft->count == draft->room) {
    int room = draft->room ? 2 * draft->room : 64;
    gs_row_t *rows = realloc(draft->rows, (size_t)room * sizeof *rows);
    if (!rows) {
      gs_say("out of memory");
      return false;
    }
    draft->rows = rows, draft->room = room;
  }
  draft->rows[draft->count++] = *row;
  return true;
}

bool gs_same_origin(const gs_table_header_t *x, const gs_table_header_t *y) {
  return !strcmp(x->gpu, y->gpu) && x->sms == y->sms && x->predicted == y->predicted &&
         !memcmp(x->cublas, y->cublas, sizeof x->cublas);
}

bool gs_draft_write(gs_draft_t *draft) {
  gs_output_t output;
  char text[1024];
  for (int i = 0; i < draft->count; i++) /* before the table that names them */
    if (!gs_beside_put(draft->path, &draft->rows[i])) return false;
  if (!gs_output_open(&output, draft->path)) return false;
  qsort(draft->rows, (size_t)draft->count, sizeof *draft->rows, by_key_and_n);
  gs_table_header_format(text, sizeof text, &draft->header);
  fputs(text, output.file);
  for (int i = 0; i < draft->count; i++) {
    gs_row_format(text, sizeof text, &draft->rows[i]);
    fprintf(output.file, "%s\n", text);
  }
  return gs_output_commit(&output);
}

/* Takes over the rows of the table that is there. */
static bool extend(gs_draft_t *draft) {
  gs_table_t *table;
  if (access(draft->path, F_OK) != 0) return true;
  if (gs_table_load(draft->path, gs_say_line, NULL, &table) != GS_OK) {
    gs_say("%s: mend it, or name another file with -o; nothing was changed", draft->path);
    return false;
  }
  const gs_table_header_t *old = gs_table_header(table);
  bool same = gs_same_origin(old, &draft->header) && gs_table_refused(table) == 0;
  if (!same)
    gs_say(
        "%s: holds rows that this run cannot keep (of %s with cuBLAS %d.%d.%d%s): name another file with -o",
        draft->path, old->gpu, old->cublas[0], old->cublas[1], old->cublas[2],
        gs_table_refused(table) ? ", some faulty"
        : old->predicted        ? ", predicted"
                                : "");
  for (int i = 0; same && i < gs_table_rows(table); i++) same = put_row(draft, gs_table_row(table, i));
  gs_table_free(table);
  return same;
}

/* Whether the file that was locked is still the one of that name: its last holder may have removed it between our
 * opening and locking it, and the next tuner would make and lock another. */
static bool is_in_place(const gs_draft_t *draft) {
  struct stat held, there;
  return fstat(draft->lock, &held) == 0 && lstat(draft->lock_path, &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

/* The lock ends with the process, whatever ends it. */
static bool take_lock(gs_draft_t *draft) {
  snprintf(draft->lock_path, sizeof draft->lock_path, "%s.lock", draft->path);
  for (int tries = 0; tries < LOCK_TRIES; tries++) {
    draft->lock = open(draft->lock_path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (draft->lock < 0 || flock(draft->lock, LOCK_EX | LOCK_NB) != 0) break;
    if (is_in_place(draft)) return true;
    close(draft->lock);
    draft->lock = -1, errno = EWOULDBLOCK;
  }
  if (errno == EWOULDBLOCK)
    gs_say("%s: another tuner is writing it: wait for it, or name another file with -o", draft->path);
  else
    gs_say("%s: cannot be locked: %s", draft->lock_path, strerror(errno));
  if (draft->lock >= 0) close(draft->lock);
  draft->lock = -1;
  return false;
}

bool gs_draft_open(gs_draft_t *draft, const char *path, const gs_table_header_t *header) {
  *draft = (gs_draft_t){.header = *header, .lock = -1};
  snprintf(draft->path, sizeof draft->path, "%s", path);
  if (gs_output_check(path) && take_lock(draft) && extend(draft)) return true;
  gs_draft_close(draft);
  return false;
}

bool gs_draft_fresh(gs_draft_t *draft, const char *path, const gs_table_header_t *header) {
  *draft = (gs_draft_t){.header = *header, .lock = -1};
  snprintf(draft->path, sizeof draft->path, "%s", path);
  if (gs_output_check(path) && take_lock(draft)) return true;
  gs_draft_close(draft);
  return false;
}

void gs_draft_close(gs_draft_t *draft) {
  if (draft->lock >= 0) {
    unlink(draft->lock_path);
    close(draft->lock);
  }
  free(draft->rows);
  *draft = (gs_draft_t){.lock = -1};
}

static bool claims_of(const gs_row_t *row, const gs_key_t *key, int lo, int hi) {
  return !memcmp(&row->key, key, sizeof *key) && row->n_hi >= lo && row->n_lo <= hi;
}

const gs_row_t *gs_draft_claimed(const gs_draft_t *draft, const gs_key_t *key, int lo, int hi) {
  for (int i = 0; i < draft->count; i++)
    if (claims_of(&draft->rows[i], key, lo, hi)) return &draft->rows[i];
  return NULL;
}

const gs_row_t *gs_draft_find(const gs_draft_t *draft, const gs_gemm_t *g) {
  gs_key_t key = gs_key_of(g);
  return gs_draft_claimed(draft, &key, (int)g->n, (int)g->n);
}

bool gs_draft_carry(gs_draft_t *draft, const gs_row_t *row) {
  return gs_draft_claimed(draft, &row->key, row->n_lo, row->n_hi) || put_row(draft, row);
}

static void clear(gs_draft_t *draft, const gs_key_t *key, int lo, int hi) {
  int kept = 0;
  for (int i = 0; i < draft->count; i++)
    if (!claims_of(&draft->rows[i], key, lo, hi)) draft->rows[kept++] = draft->rows[i];
  draft->count = kept;
}

bool gs_draft_put(gs_draft_t *draft, const gs_row_t *row) {
  clear(draft, &row->key, row->n_lo, row->n_hi);
  return put_row(draft, row);
}

bool gs_draft_claim(gs_draft_t *draft, const gs_key_t *key, int lo, int hi, const gs_row_t *rows, int count) {
  int had = draft->count;
  clear(draft, key, lo, hi);
  int kept = draft->count;
  for (int i = 0; i < count; i++)
    if (!put_row(draft, &rows[i])) return false;
  return (kept == had && !count) || gs_draft_write(draft);
}
