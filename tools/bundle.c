/* gemmshim doctor --bundle: what was found, as one archive that may be sent to somebody. */
#define _GNU_SOURCE
#include <errno.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "calls.h"
#include "child.h"
#include "choice.h"
#include "doctor.h"
#include "machine.h"
#include "output.h"
#include "redact.h"
#include "tools.h"

#define NAME "gemmshim-doctor" /* the archive's folder */

static const char readme[] =
    "Written by gemmshim doctor --bundle. Names of host and user are left out, of paths the last "
    "part is kept, of the\nenvironment what begins with GEMMSHIM_ or CUDA_. calls.txt holds the "
    "sizes of the products that a program called.\nLook through it before you send it.\n";

typedef struct {
  char folder[PATH_MAX];
  gs_names_t names;
} bundle_t;

static FILE *create(const bundle_t *b, const char *name) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/" NAME "/%s", b->folder, name);
  FILE *file = fopen(path, "wx");
  if (!file) gs_say("%s: %s", path, strerror(errno));
  return file;
}

/* A file of the bundle, with what write makes, redacted. */
#define WITH_FILE(b, name, text)                                                                             \
  for (FILE *file_ = create(b, name), *once_ = file_; once_; once_ = NULL, fclose(file_))                    \
  gs_redact(file_, &(b)->names, text)

static void add_findings(const bundle_t *b, const gs_findings_t *found) {
  char *text;
  size_t size;
  FILE *all = open_memstream(&text, &size);
  if (!all) abort();
  gs_findings_text(found, all);
  fclose(all);
  WITH_FILE(b, "doctor.txt", text);
  free(text);
}

static void add_environment(const bundle_t *b) {
  FILE *file = create(b, "environment.txt");
  for (char **entry = environ; file && *entry; entry++) {
    if (strncmp(*entry, "GEMMSHIM_", 9) && strncmp(*entry, "CUDA_", 5)) continue;
    gs_redact(file, &b->names, *entry);
    fputc('\n', file);
  }
  if (file) fclose(file);
}

static void add_versions(const bundle_t *b) {
  struct utsname system;
  int driver = gs_machine_driver(), toolkit = gs_machine_toolkit();
  FILE *file = uname(&system) ? NULL : create(b, "versions.txt");
  if (!file) return;
  fprintf(file, "gemmshim " GS_VERSION ", toolkit CUDA %d.%d\nglibc %s\ndriver CUDA %d.%d\n%s %s %s\n",
          toolkit / 1000, toolkit % 1000 / 10, gnu_get_libc_version(), driver / 1000, driver % 1000 / 10,
          system.sysname, system.release, system.machine);
  fclose(file);
}

static void add_calls(const bundle_t *b, const char *path) {
  gs_calls_t set = {0};
  FILE *file = create(b, "calls.txt");
  gs_calls_read(&set, path);
  gs_calls_sort(&set, GS_BY_TIME);
  if (file) {
    gs_calls_write(file, &set);
    fclose(file);
  }
  gs_calls_free(&set);
}

/* The table of the first GPU. */
static void add_table(const bundle_t *b) {
  gs_device_t device;
  gs_choice_t choice;
  if (!gs_machine_driver() || gs_machine_init() || gs_device_describe(0, &device) != GS_OK) return;
  if (gs_choose_table(&device, NULL, NULL, &choice) != GS_OK) return;
  FILE *file = create(b, "table.txt");
  char text[1024];
  gs_table_header_format(text, sizeof text, gs_table_header(choice.table));
  if (file) gs_redact(file, &b->names, text);
  for (int i = 0; file && i < gs_table_rows(choice.table); i++) {
    gs_row_format(text, sizeof text, gs_table_row(choice.table, i));
    fprintf(file, "%s\n", text);
  }
  if (file) fclose(file);
  gs_table_free(choice.table);
}

/* tar's own entries name nobody. */
static bool archive(const bundle_t *b, const char *path) {
  char tar[PATH_MAX], *folder = strdup(b->folder);
  char *argv[] = {"tar", "-czf", "-", "--owner=0", "--group=0", "--numeric-owner", "-C", folder, NAME, NULL};
  gs_output_t output;
  int status = 0;
  bool written = false;
  if (gs_find_program_said("tar", tar, sizeof tar) == 0 && gs_output_open(&output, path)) {
    output.deny = 077;
    gs_spawn_t spawn = {tar, argv, -1, fileno(output.file), -1};
    int error = gs_spawn(&spawn, &status);
    if (error || status) gs_say("tar: %s", error ? strerror(error) : "failed");
    written = !error && !status && gs_output_commit(&output);
    if (error || status) gs_output_drop(&output);
  }
  free(folder);
  return written;
}

static void remove_all(const bundle_t *b) {
  static const char *const names[] = {
      "README", "doctor.txt", "environment.txt", "versions.txt", "calls.txt", "table.txt", ""};
  char path[PATH_MAX + 64];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/" NAME "/%s", b->folder, names[i]);
    remove(path);
  }
  rmdir(b->folder);
}

bool gs_doctor_bundle(const gs_findings_t *found, const char *path) {
  const char *temporary = getenv("TMPDIR") && *getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
  char inside[PATH_MAX + 64];
  bundle_t b;
  gs_names_read(&b.names);
  snprintf(b.folder, sizeof b.folder, "%s/gemmshim.XXXXXX", temporary);
  if (!mkdtemp(b.folder))
    return gs_say("%s: no folder can be made there (%s): set TMPDIR", temporary, strerror(errno)), false;
  snprintf(inside, sizeof inside, "%s/" NAME, b.folder);
  bool written = mkdir(inside, 0700) == 0;
  if (written) {
    WITH_FILE(&b, "README", readme);
    add_findings(&b, found);
    add_environment(&b);
    add_versions(&b);
    add_table(&b);
    if (found->calls[0]) add_calls(&b, found->calls);
    written = archive(&b, path);
  }
  remove_all(&b);
  if (written) gs_say("written: %s: look through it before you send it (tar -tzf)", path);
  return written;
}
