#define _GNU_SOURCE
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools.h"

/* A line cut off by whatever ended the run says nothing. */
static void read_line(gs_journal_t *journal, char *line) {
  gs_gemm_t g;
  const char *why;
  size_t length = strlen(line);
  if (!length || line[length - 1] != '\n') return;
  line[length - 1] = '\0';
  if (gs_gemm_parse(line, &g, &why) == GS_OK) gs_points_add(&journal->tried, &g);
}

void gs_journal_open(gs_journal_t *journal, const char *table, const gs_table_header_t *header) {
  char *line = NULL;
  size_t room = 0;
  *journal = (gs_journal_t){.file = NULL};
  snprintf(journal->path, sizeof journal->path, "%s.tried", table);
  snprintf(journal->head, sizeof journal->head, "# tried on %s with cuBLAS %d.%d.%d\n", header->gpu,
           header->cublas[0], header->cublas[1], header->cublas[2]);
  FILE *file = fopen(journal->path, "re");
  if (!file) return;
  if (getline(&line, &room, file) > 0 && !strcmp(line, journal->head))
    while (getline(&line, &room, file) > 0) read_line(journal, line);
  free(line);
  fclose(file);
}

bool gs_journal_has(const gs_journal_t *journal, const gs_gemm_t *g) {
  return gs_points_has(&journal->tried, g);
}

static bool begin(gs_journal_t *journal) {
  bool fresh = !journal->tried.count;
  int fd =
      open(journal->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (fresh ? O_TRUNC : O_APPEND), 0666);
  journal->file = fd < 0 ? NULL : fdopen(fd, "a");
  return journal->file && (!fresh || fputs(journal->head, journal->file) >= 0);
}

bool gs_journal_add(gs_journal_t *journal, const gs_gemm_t *g) {
  char line[512];
  gs_gemm_format(line, sizeof line, g);
  if ((journal->file || begin(journal)) && fprintf(journal->file, "%s\n", line) > 0 &&
      fflush(journal->file) == 0)
    return gs_points_add(&journal->tried, g);
  gs_say("%s: cannot be written: %s", journal->path, strerror(errno));
  return false;
}

void gs_journal_close(gs_journal_t *journal, bool complete) {
  if (journal->file) fclose(journal->file);
  if (complete) unlink(journal->path);
  gs_points_free(&journal->tried);
  *journal = (gs_journal_t){.file = NULL};
}
