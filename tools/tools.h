/* What every command of `gemmshim` shares. A command is a line of commands.def and a function
 * int gs_cmd_<name>(int argc, char **argv), argv[0] being the command's name; it returns an exit status. */
#ifndef GS_TOOLS_H
#define GS_TOOLS_H

#include <stdbool.h>
#include <stddef.h>

/* Exit statuses. `run` returns its program's own, or one of these before the program starts. */
enum {
  GS_EXIT_OK = 0,
  GS_EXIT_FALSE = 1,            /* what was asked about is false, faulty or failed */
  GS_EXIT_USAGE = 2,            /* the command line is wrong */
  GS_EXIT_MACHINE = 3,          /* the machine lacks something: GPU, driver, library, file */
  GS_EXIT_BUSY = 4,             /* the GPU has other work */
  GS_EXIT_NOT_EXECUTABLE = 126, /* as env and the shells say it */
  GS_EXIT_NOT_FOUND = 127,
};

#define GS_COMMAND(name, help) int gs_cmd_##name(int argc, char **argv);
#include "commands.def"
#undef GS_COMMAND

/* "gemmshim: ..." on stderr, one line. */
__attribute__((format(printf, 1, 2))) void gs_say(const char *format, ...);
/* The same as a gs_say_t of gs_table.h; no context. */
void gs_say_line(void *context, const char *line);
/* As gs_say, with the command's name and a pointer to its --help; returns GS_EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int gs_usage(char **argv, const char *format, ...);
/* What getopt_long answered to an option it does not know ('?') or that lacks its value (':'; the command's
 * short options start with "+:" or ":"). Returns GS_EXIT_USAGE. */
int gs_usage_option(char **argv, int answer);
/* Prints a command's help; returns GS_EXIT_OK. */
int gs_help(const char *text);

/* Whole decimal number within [lo, hi], nothing around it. */
bool gs_read_long(const char *text, long lo, long hi, long *value);

#define GS_LIBRARY "libgemmshim.so"
#define GS_HANDLES "libgemmshim-handles.so"
#define GS_GRAPHS  "libgemmshim-graphs.so"
/* Path of such a file beside this executable, or in ../lib when installed; false and a line said when it is in
 * neither place. */
bool gs_library_path(const char *name, char *path, size_t size);

#endif
