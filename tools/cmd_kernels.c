/* gemmshim kernels: what the library ships, and what each kernel needs on this GPU; compiles others. */
#define _GNU_SOURCE
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cache.h"
#include "generate.h"
#include "gpu.h"
#include "json.h"
#include "output.h"
#include "pool.h"
#include "tools.h"

static const char help[] =
    "usage: gemmshim kernels [--kernel PATTERN] [--device N] [--json] [KERNEL...]\n"
    "       gemmshim kernels --compile ID [--sm 80|90] [-o FILE.cubin] [--json]\n"
    "       gemmshim kernels --clean-cache\n\n"
    "Lists the shipped kernels: id, threads and shared memory of a block; on a machine with a GPU also\n"
    "registers and bytes of stack a thread, and the blocks that fit one multiprocessor. With KERNEL, these: "
    "ids,\n"
    "tiles (mma_128x96x32_s4_w4: all types and layouts), patterns, or a file of them; what is not shipped "
    "is\n"
    "compiled for the GPU, on all cores.\n\n"
    "  --kernel PATTERN  only kernels whose id matches this shell pattern\n"
    "  --device N        which GPU (0)\n"
    "  --json            as JSON\n\n"
    "--compile makes the kernel that ID spells out, shipped or not, by NVRTC, and says what it needs. "
    "Refused,\n"
    "with the reason: what is no id, more shared memory than a block may have, a tile that its warps cannot\n"
    "cover, spilled registers, sums that are not kept in F32. Compiled kernels are kept in ~/.cache/gemmshim "
    "($XDG_CACHE_HOME), 256 MB at "
    "most.\n\n"
    "  --compile ID      mma_AB_D_LAYOUT_MxNxK_sSTAGES_wWARPS[_v2], wgmma_AB_D_LAYOUT_MxNxK_sSTAGES_wWARPS,\n"
    "                    strip_AB_D_LAYOUT_MxNxK_sSTAGES_wWARPS,\n"
    "                    direct_AB_D_LAYOUT_MxN_uCHUNKS_wWARPS[_sw] or rows_AB_D_LAYOUT_MxN_uLOADS_wWARPS:\n"
    "                    AB f16 or bf16, D the same or f32, LAYOUT nn, tn, nt or tt, tile in elements\n"
    "                    (M of rows, with LAYOUT n.: in groups of 8)\n"
    "  --sm 80|90        for which GPUs: 80 (8.0, 8.6, 8.9) or 90 (9.0, as sm_90a); unless given, 80, and "
    "for\n"
    "                    wgmma and strip, which run on no other, 90\n"
    "  -o FILE.cubin     write the machine code there\n"
    "  --clean-cache     empty the cache, and say how much that was\n\n"
    "exit status: 0 fine, 1 refused, or nothing listed, 2 usage, 3 no NVRTC, or the cache or FILE cannot be "
    "used\n\n"
    "examples: gemmshim kernels --kernel '*_f16_f16_tn_*'\n"
    "          gemmshim kernels --compile mma_f16_f16_tn_128x96x32_s4_w4 --sm 90 -o mine.cubin\n";

enum { KERNEL = 256, DEVICE, JSON, COMPILE, SM, CLEAN };

typedef struct {
  const char *pattern, *compile, *output;
  int device, sm;
  bool json, clean;
  char **names; /* of kernels */
  int name_count;
} gs_command_t;

static int read_command(int argc, char **argv, gs_command_t *command) {
  static const struct option options[] = {{"kernel", required_argument, NULL, KERNEL},
                                          {"device", required_argument, NULL, DEVICE},
                                          {"json", no_argument, NULL, JSON},
                                          {"compile", required_argument, NULL, COMPILE},
                                          {"sm", required_argument, NULL, SM},
                                          {"clean-cache", no_argument, NULL, CLEAN},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
  long value;
  for (int option; (option = getopt_long(argc, argv, ":ho:", options, NULL)) != -1;) {
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
    case COMPILE:
      command->compile = optarg;
      break;
    case SM:
      if (!gs_read_long(optarg, 80, 90, &value) || (value != 80 && value != 90))
        return gs_usage(argv, "--sm: \"%s\" is neither 80 nor 90", optarg);
      command->sm = (int)value;
      break;
    case 'o':
      command->output = optarg;
      break;
    case CLEAN:
      command->clean = true;
      break;
    case 'h':
      return gs_help(help);
    default:
      return gs_usage_option(argv, option);
    }
  }
  command->names = argv + optind, command->name_count = argc - optind;
  if (command->name_count && (command->compile || command->clean))
    return gs_usage(argv, "\"%s\" is not expected", argv[optind]);
  if ((command->sm || command->output) && !command->compile)
    return gs_usage(argv, "--sm and -o belong to --compile");
  if ((command->compile || command->clean) && command->pattern)
    return gs_usage(argv, "--kernel selects from the list");
  if (command->compile && command->clean)
    return gs_usage(argv, "--compile and --clean-cache exclude each other");
  return -1;
}

static int clean_cache(void) {
  gs_cleaned_t cleaned;
  if (!gs_cache_clean(&cleaned)) return GS_EXIT_MACHINE;
  printf("%s: %d files removed, %.1f MB\n", cleaned.folder, cleaned.files, (double)cleaned.bytes / (1 << 20));
  return GS_EXIT_OK;
}

/* What --compile says of a kernel: name, unit, member. */
#define FACTS(X)                                                                                             \
  X(registers, "a thread", needs.registers)                                                                  \
  X(stack, "bytes a thread", needs.stack)                                                                    \
  X(spill_stores, "bytes a thread", needs.spill_stores)                                                      \
  X(spill_loads, "bytes a thread", needs.spill_loads)                                                        \
  X(smem, "bytes a block, dynamic", smem)                                                                    \
  X(size, "bytes of machine code", size)

static void print_cubin(const gs_command_t *command, const gs_cubin_t *cubin) {
  if (command->json) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "kernel", command->compile);
    cJSON_AddNumberToObject(root, "sm", command->sm);
#define X(name, unit, member) cJSON_AddNumberToObject(root, #name, (double)cubin->member);
    FACTS(X)
#undef X
    cJSON_AddBoolToObject(root, "cached", cubin->cached);
    gs_json_print(root);
    return;
  }
  printf("%s for sm_%d, %s\n", command->compile, command->sm, cubin->cached ? "from the cache" : "compiled");
#define X(name, unit, member) printf("  %-13s %8lu %s\n", #name, (unsigned long)cubin->member, unit);
  FACTS(X)
#undef X
  if (command->sm < 90 && cubin->smem > GS_SMEM_EVERYWHERE)
    printf("  note: GPUs 8.6 and 8.9 grant a block %d bytes of shared memory only\n", GS_SMEM_EVERYWHERE);
}

static int write_cubin(const char *path, const gs_cubin_t *cubin) {
  gs_output_t output;
  if (!gs_output_open(&output, path)) return GS_EXIT_MACHINE;
  fwrite(cubin->image, 1, cubin->size, output.file);
  return gs_output_commit(&output) ? GS_EXIT_OK : GS_EXIT_MACHINE;
}

static int compile(const gs_command_t *command) {
  gs_cubin_t cubin;
  gs_status_t status = gs_generate(command->compile, command->sm, GS_GENERATE_CACHE, &cubin);
  int result = GS_EXIT_OK;
  if (status != GS_OK) {
    gs_say("%s: %s", command->compile, cubin.why);
    return status == GS_NOT_FOUND || status == GS_NOMEM ? GS_EXIT_MACHINE : GS_EXIT_FALSE;
  }
  print_cubin(command, &cubin);
  if (command->output) result = write_cubin(command->output, &cubin);
  gs_cubin_free(&cubin);
  return result;
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

/* Lists those of the pool that match; returns how many. Without a GPU, their needs are not known. */
static int list(const gs_pool_t *pool, const gs_gpu_t *gpu, const gs_command_t *command, cJSON *kernels) {
  const gs_gemm_t one = {.m = 1, .n = 1, .k = 1, .batch = 1};
  int listed = 0;
  for (int i = 0; i < pool->count; i++) {
    char id[GS_KERNEL_ID_MAX];
    gs_kernel_t kernel = gs_kernel_at(pool->indices[i]);
    gs_launch_t launch = gs_kernel_launch(&kernel, &one, 1, 0);
    gs_kernel_format(id, sizeof id, &kernel);
    if (command->pattern && fnmatch(command->pattern, id, 0)) continue;
    CUkernel handle = gpu ? gs_device_kernel(pool->indices[i], gpu->device.handle) : NULL;
    gs_gpu_needs_t needs = {0};
    if (handle) needs = gs_gpu_needs(gpu, handle, &launch);
    if (command->json)
      cJSON_AddItemToArray(kernels, entry_of(id, &launch, &needs, handle));
    else
      print_row(id, &launch, &needs, handle);
    listed++;
  }
  return listed;
}

/* The shipped ones, or those that are named; refused: how many the compiler would not make. */
static gs_status_t gather(gs_pool_t *pool, const gs_gpu_t *gpu, const gs_command_t *command, int *refused) {
  const gs_pool_for_t for_what = {.sm = gpu ? gpu->device.sm : command->sm};
  gs_pool_tally_t tally = {0};
  gs_status_t status = GS_OK;
  if (command->name_count)
    status = gs_pool_named(pool, command->names, command->name_count, &for_what, &tally);
  else if (!gs_pool_shipped(pool, gpu ? gpu->device.sm : 0))
    status = GS_NOMEM;
  *refused = tally.refused;
  return tally.no_compiler ? GS_DRIVER : status;
}

static int list_all(const gs_command_t *command) {
  gs_gpu_t gpu;
  gs_pool_t pool = {0};
  int refused, listed;
  bool has_gpu = gs_gpu_open(&gpu, command->device) == GS_OK;
  gs_status_t status = gather(&pool, has_gpu ? &gpu : NULL, command, &refused);
  if (status == GS_OK) {
    cJSON *root = cJSON_CreateObject(), *kernels = cJSON_AddArrayToObject(root, "kernels");
    if (has_gpu) cJSON_AddStringToObject(root, "gpu", gpu.device.name);
    if (!command->json)
      printf("%-44s %7s %7s%s\n", "kernel", "threads", "smem", has_gpu ? " registers stack blocks/SM" : "");
    listed = list(&pool, has_gpu ? &gpu : NULL, command, kernels);
    if (command->json)
      gs_json_print(root);
    else
      cJSON_Delete(root), printf("%d kernels%s%s\n", listed,
                                 has_gpu ? " on " : "; no GPU: ", has_gpu ? gpu.device.name : gpu.fault);
    status = listed && !refused ? GS_OK : GS_NOT_FOUND;
  }
  gs_pool_free(&pool);
  if (has_gpu) gs_gpu_close(&gpu);
  return status == GS_OK          ? GS_EXIT_OK
         : status == GS_SYNTAX    ? GS_EXIT_USAGE
         : status == GS_NOT_FOUND ? GS_EXIT_FALSE
                                  : GS_EXIT_MACHINE;
}

/* id: a kernel's, or a tile's with its family. */
static bool for_hopper_alone(const char *id) {
#define X(NAME, text)                                                                                        \
  if (id && !strncmp(id, text "_", sizeof text))                                                             \
    return !gs_kernel_runs_on(&(gs_kernel_t){.family = GS_FAMILY_##NAME}, 80);
  GS_FAMILIES(X)
#undef X
  return false;
}

/* Where neither --sm nor a GPU says. */
static int usual_sm(const gs_command_t *command) {
  bool any = for_hopper_alone(command->compile);
  for (int i = 0; i < command->name_count && !any; i++) any = for_hopper_alone(command->names[i]);
  return any ? 90 : 80;
}

int gs_cmd_kernels(int argc, char **argv) {
  gs_command_t command = {0};
  int status = read_command(argc, argv, &command);
  if (status >= 0) return status;
  if (!command.sm) command.sm = usual_sm(&command);
  return command.clean ? clean_cache() : command.compile ? compile(&command) : list_all(&command);
}
