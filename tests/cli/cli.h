/* Runs the command line as a user would, each test in a fresh folder that is the current one.
 *
 * Commands are shell lines in which $G is gemmshim, $SHIM the library, $DEMO the demo of tests/sim, $STATIC a
 * static program, $TABLE the stand-in's table; $SIM holds the stand-ins' folders, for LD_LIBRARY_PATH. */
#ifndef GS_CLI_TEST_H
#define GS_CLI_TEST_H

#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gs_histogram.h"
#include "tools.h"

typedef struct {
  int status; /* as the shell's $? */
  char *out, *err;
} result_t;

__attribute__((format(printf, 1, 2))) result_t sh(const char *format, ...);

void enter_folder(void);
void leave_folder(void);

/* Of SIM_US: what kernels of every family take, in microseconds. */
#define ALL_OURS(us) "*mma_*:" us ",direct_*:" us ",rows_*:" us ",strip_*:" us

#define SUITE(name) TestSuite(name, .init = enter_folder, .fini = leave_folder, .timeout = 300)

/* The result's text is in the message, for whoever reads a failure. */
#define STATUS(r, expected)                                                                                  \
  cr_assert((r).status == (expected), "status %d, not %d\nout: %s\nerr: %s", (r).status, (expected),         \
            (r).out, (r).err)
#define HAS(text, part)   cr_assert(strstr(text, part), "no \"%s\" in: %s", part, text)
#define LACKS(text, part) cr_assert(!strstr(text, part), "\"%s\" in: %s", part, text)

int lines_of(const char *text);
bool exists(const char *path);
void write_file(const char *path, const void *data, size_t size);

/* Parsed, or the test fails. A path like "ceiling.value" or "shapes.0.calls" must exist. */
cJSON *json(const char *text);
cJSON *json_at(const cJSON *root, const char *path);
double number_at(const cJSON *root, const char *path);
const char *string_at(const cJSON *root, const char *path);

/* A histogram of a program that took a second from its first to its last product. */
typedef struct {
  gs_histogram_file_t header;
  gs_slot_t slots[64];
} histogram_t;
void histogram_init(histogram_t *h);
/* n tells shapes apart. mean_us 0: not sampled. */
gs_slot_t *histogram_add(histogram_t *h, int n, gs_reason_t reason, uint64_t calls, double mean_us);
void histogram_write(const histogram_t *h, const char *path);

#endif
