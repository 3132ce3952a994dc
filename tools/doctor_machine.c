/* Driver, glibc, GPUs, cuBLAS and tables of this machine. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choice.h"
#include "device.h"
#include "doctor.h"
#include "elf_file.h"
#include "machine.h"
#include "options.h"
#include "tools.h"

static void find_driver(gs_findings_t *found) {
  int driver = gs_machine_driver(), toolkit = gs_machine_toolkit();
  if (!driver)
    gs_find(found, "driver", GS_EXIT_MACHINE,
            "install NVIDIA's driver, or give the container its GPUs (--gpus all)",
            "no libcuda.so.1: products are forwarded, none is served");
  else
    gs_find(found, "driver", gs_machine_driver_fits(driver) ? GS_EXIT_OK : GS_EXIT_MACHINE,
            gs_machine_driver_fits(driver) ? ""
                                           : "update the driver, or build gemmshim with an older toolkit",
            "CUDA %d.%d; the built-in kernels need %d.0 or newer", driver / 1000, driver % 1000 / 10,
            toolkit / 1000);
}

void gs_doctor_machine(gs_findings_t *found) {
  char library[PATH_MAX];
  gs_find(found, "glibc", gs_machine_glibc_fits() ? GS_EXIT_OK : GS_EXIT_MACHINE,
          gs_machine_glibc_fits() ? "" : "use a newer system or container",
          "%s; the library needs %d.%d or newer", gnu_get_libc_version(), GS_GLIBC_MAJOR, GS_GLIBC_MINOR);
  if (gs_library_path(GS_LIBRARY, library, sizeof library))
    gs_find(found, "library", GS_EXIT_OK, "", "%s", library);
  else
    gs_find(found, "library", GS_EXIT_MACHINE, "build or install gemmshim again",
            "libgemmshim.so is not here");
  find_driver(found);
}

/* The version is in the real file's name, mostly; else cuBLAS tells, without a GPU. */
static void read_version(const char *path, int version[3]) {
  char real[PATH_MAX];
  const char *numbers = realpath(path, real) ? strstr(strrchr(real, '/'), ".so.") : NULL;
  if (numbers && sscanf(numbers, ".so.%d.%d.%d", &version[0], &version[1], &version[2]) == 3) return;
  memset(version, 0, 3 * sizeof *version);
  void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  int (*get_property)(int, int *) = library ? dlsym(library, "cublasGetProperty") : NULL;
  if (library && !get_property) get_property = dlsym(library, "cublasLtGetProperty");
  for (int i = 0; get_property && i < 3; i++)
    if (get_property(i, &version[i]) != 0) version[i] = 0;
  if (library) dlclose(library);
}

void gs_find_cublas(gs_findings_t *found, const char *path) {
  int version[3] = {0};
  read_version(path, version);
  gs_find(found, "cuBLAS", GS_EXIT_OK, "", "%d.%d.%d, %s", version[0], version[1], version[2], path);
  if (found->cublas[0]) return;
  snprintf(found->cublas, sizeof found->cublas, "%s", path);
  memcpy(found->cublas_version, version, sizeof version);
}

static void say_fault(void *found, const char *line) {
  gs_note(found, "table", "", "%s", line);
}

static const char *why_chosen(const gs_choice_t *choice) {
  if (*gs_option_text(GS_OPT_TABLE)) return "GEMMSHIM_TABLE names it";
  return strncmp(choice->source, "built-in ", 9) ? "your own for this GPU"
                                                 : "you have none of your own for this GPU";
}

static void find_table(gs_findings_t *found, int ordinal, const gs_device_t *device) {
  gs_choice_t choice;
  gs_status_t status = gs_choose_table(device, say_fault, found, &choice);
  if (status != GS_OK) {
    gs_find(found, "table", GS_EXIT_FALSE,
            gs_device_arch(device->sm) ? "gemmshim tune makes one from a .calls file"
                                       : "every product is forwarded on this GPU",
            "GPU %d: none: %s (%s)", ordinal, choice.source, gs_status_text(status));
    return;
  }
  const gs_table_header_t *header = gs_table_header(choice.table);
  int rows = gs_table_rows(choice.table), proven = 0;
  for (int i = 0; i < rows; i++)
    proven += gs_choice_proves(&choice, gs_table_row(choice.table, i), found->cublas_version);
  gs_find(found, "table", GS_EXIT_OK, "",
          "GPU %d: %s (%s), digest %016llx: %d rows, %d refused, %s on %s with cuBLAS %d.%d.%d", ordinal,
          choice.source, why_chosen(&choice), (unsigned long long)gs_table_digest(choice.table), rows,
          gs_table_refused(choice.table), header->predicted ? "predicted" : "measured", header->gpu,
          header->cublas[0], header->cublas[1], header->cublas[2]);
  const int *v = found->cublas_version;
  if (v[0])
    gs_find(found, "table", proven ? GS_EXIT_OK : GS_EXIT_FALSE,
            proven && proven == rows ? "" : "gemmshim requalify measures the others, here",
            "%d of them are proven with cuBLAS %d.%d.%d", proven, v[0], v[1], v[2]);
  gs_table_free(choice.table);
}

void gs_doctor_tables(gs_findings_t *found) {
  const char *why = gs_machine_driver() ? gs_machine_init() : NULL;
  int count = 0;
  if (!gs_machine_driver()) return; /* said already */
  if (why || gs_driver.cuDeviceGetCount(&count) != CUDA_SUCCESS || count == 0) {
    gs_find(found, "GPU", GS_EXIT_MACHINE, "nvidia-smi tells more", "none can be used: %s",
            why ? why : "none is visible");
    return;
  }
  gs_options_read();
  for (int i = 0; i < count; i++) {
    gs_device_t device;
    if (gs_device_describe(i, &device) != GS_OK) {
      gs_find(found, "GPU", GS_EXIT_MACHINE, "nvidia-smi tells more", "GPU %d cannot be asked", i);
      continue;
    }
    gs_find(found, "GPU", GS_EXIT_OK, "", "%d: %s, sm_%d, %d SMs", i, device.name, device.sm, device.sms);
    find_table(found, i, &device);
  }
}
