/* gemmshim doctor: what is here, what is missing, and what to do. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "elf_file.h"
#include "tools.h"

static const char help[] =
    "usage: gemmshim doctor [--json] [--bundle FILE.tar.gz] [PID | FILE | FOLDER | -- PROGRAM]\n\n"
    "Says what this machine has (glibc, driver, GPUs, cuBLAS) and which table each "
    "GPU would get, and why. With a\n"
    "program: how it reaches cuBLAS, as far as its files tell. With a process id: "
    "what it has mapped, and its calls. With a histogram, a folder of them (gemmshim run --keep) or "
    "a .calls\n"
    "file: why calls were forwarded. Each with what to do.\n\n"
    "  --bundle FILE.tar.gz  also write all that as one archive to send to somebody, with the table and the "
    "calls:\n"
    "                        no names of host, user and folders, of the environment only GEMMSHIM_* and "
    "CUDA_*\n\n"
    "exit status: 0 all is well; 1 something keeps products from being served; 2 bad "
    "usage; 3 the machine lacks something\n"
    "example: gemmshim doctor -- ./app\n";

enum { JSON = 256, BUNDLE };
static const struct option options[] = {
    {"json", no_argument, NULL, JSON},
    {"bundle", required_argument, NULL, BUNDLE},
    {"help", no_argument, NULL, 'h'},
    {0},
};

/* Where neither program nor process told of one: those that the loader would find. */
static void find_libraries(gs_findings_t *found) {
  static const char *const sonames[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
  char path[PATH_MAX];
  for (size_t i = 0; i < sizeof sonames / sizeof sonames[0]; i++)
    if (gs_elf_resolve(NULL, sonames[i], path, sizeof path)) gs_find_cublas(found, path);
  if (!found->cublas[0])
    gs_note(found, "cuBLAS", "programs may bring their own (Python packages do): ask about the program",
            "none on the loader's path");
}

int gs_cmd_doctor(int argc, char **argv) {
  static gs_findings_t found;
  const char *bundle = NULL;
  bool json = false;
  long pid = 0;
  for (int c; (c = getopt_long(argc, argv, "+:h", options, NULL)) != -1;) switch (c) {
    case JSON:
      json = true;
      break;
    case BUNDLE:
      bundle = optarg;
      break;
    case 'h':
      return gs_help(help);
    default:
      return gs_usage_option(argv, c);
    }
  const char *subject = optind < argc ? argv[optind] : NULL;
  bool program = subject && !strcmp(argv[optind - 1], "--");
  bool calls = subject && !program && !gs_read_long(subject, 1, 1L << 22, &pid);
  if (calls && access(subject, F_OK) != 0)
    return gs_usage(argv, "\"%s\": neither a process id nor a file; a program goes after --", subject);
  if (subject && !program && optind + 1 < argc)
    return gs_usage(argv, "\"%s\": one subject at a time", argv[optind + 1]);
  gs_doctor_machine(&found);
  if (pid) gs_doctor_process(&found, pid);
  if (program) gs_doctor_program(&found, subject);
  if (calls) gs_doctor_calls(&found, subject);
  if (!found.cublas[0] && !pid) find_libraries(&found);
  gs_doctor_tables(&found);
  gs_findings_print(&found, json);
  if (bundle && !gs_doctor_bundle(&found, bundle) && !found.status) found.status = GS_EXIT_FALSE;
  gs_findings_free(&found);
  return found.status;
}
