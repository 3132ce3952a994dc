/* Whole files or none; see output.h. */
#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools.h"

bool gs_output_open(gs_output_t *output, const char *path) {
  struct stat info;
  output->deny = 0;
  if ((size_t)snprintf(output->path, sizeof output->path, "%s", path) >= sizeof output->path) {
    gs_say("%.60s...: the path is too long", path);
    return false;
  }
  if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
    gs_say("%s: exists and is not a regular file, so it is not replaced: name another", path);
    return false;
  }
  snprintf(output->temporary, sizeof output->temporary, "%s.XXXXXX", path);
  int fd = mkostemp(output->temporary, O_CLOEXEC);
  output->file = fd < 0 ? NULL : fdopen(fd, "w");
  if (output->file) return true;
  gs_say("%s: no file can be made there: %s", path, strerror(errno));
  return false;
}

void gs_output_drop(gs_output_t *output) {
  fclose(output->file);
  unlink(output->temporary);
}

bool gs_output_check(const char *path) {
  gs_output_t output;
  if (!gs_output_open(&output, path)) return false;
  gs_output_drop(&output);
  return true;
}

bool gs_output_commit(gs_output_t *output) {
  mode_t mask = umask(0);
  umask(mask);
  mask |= output->deny;
  bool written =
      fflush(output->file) == 0 && !ferror(output->file) && fchmod(fileno(output->file), 0666 & ~mask) == 0;
  int error = errno;
  if (fclose(output->file) != 0 && written) written = false, error = errno;
  if (written && rename(output->temporary, output->path) == 0) return true;
  if (written) error = errno;
  gs_say("%s: cannot be written: %s", output->path, strerror(error));
  unlink(output->temporary);
  return false;
}
