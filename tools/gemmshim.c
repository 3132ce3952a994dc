/* The command line: finds the command and runs it. */
#include "tools.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "options.h"

static const struct {
  const char *name, *help;
  int (*run)(int argc, char **argv);
} commands[] = {
#define GS_COMMAND(name, help) {#name, help, gs_cmd_##name},
#include "commands.def"
#undef GS_COMMAND
};
#define COMMANDS (sizeof commands / sizeof commands[0])

static void print_help(FILE *file) {
  fputs("usage: gemmshim COMMAND [OPTION...] ...\n"
        "       gemmshim --version\n\n"
        "Makes an existing GPU program's matrix products faster, without touching the program.\n\n"
        "commands:\n",
        file);
  for (size_t i = 0; i < COMMANDS; i++) fprintf(file, "  %-10s %s\n", commands[i].name, commands[i].help);
  fputs("\nEvery command explains itself: gemmshim COMMAND --help\n"
        "example: gemmshim run -- python3 app.py\n",
        file);
}

/* A full disk or a closed pipe behind stdout must not look like success. */
static int flushed(int status) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  gs_say("the output could not be written: %s", strerror(errno));
  return status ? status : GS_EXIT_FALSE;
}

int main(int argc, char **argv) {
  gs_options_read(); /* the tools choose tables and launch as the library would */
  if (argc < 2) {
    print_help(stderr);
    return GS_EXIT_USAGE;
  }
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
    print_help(stdout);
    return flushed(GS_EXIT_OK);
  }
  if (!strcmp(argv[1], "--version")) {
    puts("gemmshim " GS_VERSION);
    return flushed(GS_EXIT_OK);
  }
  for (size_t i = 0; i < COMMANDS; i++)
    if (!strcmp(argv[1], commands[i].name)) return flushed(commands[i].run(argc - 1, argv + 1));
  gs_say("\"%s\" is not a command; see: gemmshim --help", argv[1]);
  return GS_EXIT_USAGE;
}
