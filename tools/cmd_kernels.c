/* gemmshim kernels: what the library ships, and what each kernel needs on this GPU. */
#define _GNU_SOURCE
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>

#include "gpu.h"
#include "json.h"
#include "tools.h"

static const char help[] =
    "usage: gemmshim kernels [--kernel PATTERN] [--device N] [--json]\n\n"
    "Lists the shipped kernels: id, threads and shared memory of a block; on a machine with a GPU also\n"
    "registers and bytes of stack a thread, and the blocks that fit one multiprocessor.\n\n"
    "  --kernel PATTERN  only kernels whose id matches this shell pattern\n"
    "  --device N        which GPU (0)\n"
    "  --json            as JSON\n\n"
    "example: gemmshim kernels --kernel '*_f16_f16_tn_*'\n";

enum { KERNEL = 256, DEVICE, JSON };

typedef struct {
  const char *pattern;
  int device;
  bool json;
} gs_command_t;

static int read_command(int argc, char **argv, gs_command_t *command) {
  static const struct option options[] = {{"kernel", required_argument, NULL, KERNEL},
                                          {"device", required_argument, NULL, DEVICE},
                                          {"json", no_argument, NULL, JSON},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
  long value;
  for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
    switch (option) {
    case KERNEL:
      command->pattern = optarg;
      break;
    case DEVICE:
      if (!gs_read_long(optarg, 0, 1023, &value))
        return gs_usage(argv, "--device: \"%s\" is not a number", optarg);
      command->device = (int)value;
      break;
    case JSON:
      command->json = true;
      break;
    case 'h':
      return gs_help(help);
    default:
      return gs_usage_option(argv, option);
    }
  }
  if (optind < argc) return gs_usage(argv, "\"%s\" is not expected", argv[optind]);
  return -1;
}

static cJSON *entry_of(const char *id, const gs_launch_t *launch, const gs_gpu_needs_t *needs, bool known) {
  cJSON *entry = cJSON_CreateObject();
  cJSON_AddStringToObject(entry, "kernel", id);
  cJSON_AddNumberToObject(entry, "threads", launch->block);
  cJSON_AddNumberToObject(entry, "smem", launch->smem);
  if (!known) return entry;
  cJSON_AddNumberToObject(entry, "registers", needs->registers);
  cJSON_AddNumberToObject(entry, "stack", needs->local);
  cJSON_AddNumberToObject(entry, "blocks_per_sm", needs->blocks_per_sm);
  return entry;
}

static void print_row(const char *id, const gs_launch_t *launch, const gs_gpu_needs_t *needs, bool known) {
  printf("%-44s %7u %7u", id, launch->block, launch->smem);
  if (known) printf(" %9d %5d %9d", needs->registers, needs->local, needs->blocks_per_sm);
  putchar('\n');
}

int gs_cmd_kernels(int argc, char **argv) {
  gs_command_t command = {0};
  gs_gpu_t gpu;
  int status = read_command(argc, argv, &command), listed = 0;
  if (status >= 0) return status;
  bool has_gpu = gs_gpu_open(&gpu, command.device) == GS_OK;
  cJSON *root = cJSON_CreateObject(), *kernels = cJSON_AddArrayToObject(root, "kernels");
  if (has_gpu) cJSON_AddStringToObject(root, "gpu", gpu.device.name);
  if (!command.json)
    printf("%-44s %7s %7s%s\n", "kernel", "threads", "smem", has_gpu ? " registers stack blocks/SM" : "");
  for (int i = 0; i < gs_shipped_count(); i++) {
    char id[GS_KERNEL_ID_MAX];
    gs_kernel_t kernel = gs_shipped_at(i);
    gs_gemm_t one = {.m = 1, .n = 1, .k = 1, .batch = 1};
    gs_launch_t launch = gs_kernel_launch(&kernel, &one, 1);
    gs_kernel_format(id, sizeof id, &kernel);
    if (command.pattern && fnmatch(command.pattern, id, 0)) continue;
    CUkernel handle = has_gpu ? gs_device_kernel(i, gpu.device.handle) : NULL;
    gs_gpu_needs_t needs = {0};
    if (handle) needs = gs_gpu_needs(&gpu, handle, &launch);
    if (command.json)
      cJSON_AddItemToArray(kernels, entry_of(id, &launch, &needs, handle));
    else
      print_row(id, &launch, &needs, handle);
    listed++;
  }
  if (command.json) {
    gs_json_print(root);
  } else {
    cJSON_Delete(root);
    printf("%d kernels%s%s\n", listed,
           has_gpu ? " on " : "; no GPU: ", has_gpu ? gpu.device.name : gpu.fault);
  }
  if (has_gpu) gs_gpu_close(&gpu);
  return listed ? GS_EXIT_OK : GS_EXIT_FALSE;
}
