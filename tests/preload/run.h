/* Runs a program under the preload, with the stand-ins in its library path, and reads what it left. */
#ifndef GS_TESTS_RUN_H
#define GS_TESTS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "gs_histogram.h"

#define RUN_ENVIRONMENT_MAX 16

typedef struct {
  const char *environment[RUN_ENVIRONMENT_MAX]; /* "NAME=value", beside what the runner sets; NULL ends it */
  const char *table;                            /* path; NULL: none */
  const char *libraries;                        /* LD_LIBRARY_PATH; NULL: the stand-ins */
  const char *also;                             /* preloaded after the library; NULL: nothing */
  bool bare;                                    /* without the preload */
} setup_t;

typedef struct {
  int status; /* exit status, or 128 + the signal that ended it */
  long pid;
  char folder[128]; /* holds its output and histograms; run_free removes it */
  char *out, *err;
} run_t;

/* arguments[0] is the program: a client's name, or a path where it has a slash; NULL ends them. The process
 * failing to start is a failed test. */
run_t run(const setup_t *setup, const char *const arguments[]);
/* RUN(WITH(.table = table), "plain", "3") */
#define WITH(...)       (&(setup_t){__VA_ARGS__})
#define RUN(setup, ...) run(setup, (const char *const[]){__VA_ARGS__, NULL})
void run_free(run_t *r);

#define RUN_ANY (-1)
/* Calls in its histograms by entry point, verdict and process, any of which may be RUN_ANY. */
int64_t run_count(const run_t *r, int entry, int reason, long pid);
#define RUN_CALLS(r)  run_count(r, RUN_ANY, RUN_ANY, RUN_ANY)
#define RUN_SERVED(r) run_count(r, RUN_ANY, GS_REASON_SERVED, RUN_ANY)
int run_histograms(const run_t *r); /* files */
/* Of the first shape in its histogram. */
gs_slot_t run_slot(const run_t *r);
/* Of products with that n, added up over all its histograms where they were captured. */
gs_slot_t run_slot_of(const run_t *r, int n);

/* A number that the program printed as "name: 12"; -1 where it did not. */
int64_t run_number(const run_t *r, const char *name);
int run_lines(const char *text, const char *part); /* lines that hold part */
/* That it ended well with no wrong result, so many calls counted and so many of them served; frees it. */
void run_fared(run_t *r, int64_t calls, int64_t served);

/* A new folder for a test; removed with all it holds. */
void folder_make(char path[128]);
void folder_remove(const char *path);
/* A file in it; path receives its name. */
void file_write(const char *folder, const char *name, const char *text, char path[256]);

/* A table for the stand-in's GPU, measured with that cuBLAS: the header, then rows. */
#define TABLE_HEADER_OF(gpu, arch, cublas)                                                                   \
  "format: 1\ngpu: " gpu "\narch: " arch "\nsms: 132\ncublas: " cublas "\nmethod: fixture\ndate: "           \
  "2026-11-29\n"
#define TABLE_HEADER(gpu, cublas) TABLE_HEADER_OF(gpu, "sm_90", cublas)
#define SIM_GPU_NAME              "gemmshim CPU stand-in"

/* The id of a shipped kernel: "tn", "f16", "f32", 16 bytes of alignment. */
void kernel_shipped(char id[GS_KERNEL_ID_MAX], const char *layout, const char *ab, const char *d, int align);

#endif
