#define _GNU_SOURCE
#include "fleet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "machine.h"
#include "merge.h"
#include "tools.h"

gs_fleet_t gs_fleet_find(void) {
  gs_fleet_t fleet = {.count = 0};
  int count = 0;
  if (gs_machine_init() || gs_driver.cuDeviceGetCount(&count) != CUDA_SUCCESS) return fleet;
  for (int i = 0; i < count && fleet.count < GS_FLEET_MAX; i++) {
    gs_device_t device;
    if (gs_device_describe(i, &device) != GS_OK) continue;
    if (!fleet.count) snprintf(fleet.gpu, sizeof fleet.gpu, "%s", device.name);
    if (!strcmp(device.name, fleet.gpu))
      fleet.device[fleet.count++] = i;
    else
      gs_say("GPU %d is a %s, not a %s: it is left out; tune for it with --device %d", i, device.name,
             fleet.gpu, i);
  }
  return fleet;
}

/* One tuner. */
typedef struct {
  pid_t pid;
  int status; /* exit status, or 128 + signal */
  char table[4096], device[16], shard[32];
} worker_t;

static void name_table(const gs_fleet_run_t *run, const char *shard, char *table, size_t size) {
  char part[32];
  snprintf(part, sizeof part, "%s", shard);
  char *slash = strchr(part, '/');
  *slash = '\0';
  snprintf(table, size, "%.*s.%s-of-%s.table", (int)(strlen(run->output) - strlen(".table")), run->output,
           part, slash + 1);
}

/* Options after "--" would be files. */
static void run_worker(const gs_fleet_run_t *run, const worker_t *worker) {
  const char *own[] = {"--worker",    "--device", worker->device, "--shard",
                       worker->shard, "-o",       run->output,    run->again ? NULL : "--known",
                       run->output,   NULL};
  char **argv = calloc((size_t)run->argc + sizeof own / sizeof *own + 2, sizeof *argv);
  int count = 0;
  if (!argv) _exit(GS_EXIT_MACHINE);
  argv[count++] = (char *)(uintptr_t) "gemmshim";
  argv[count++] = run->argv[0];
  int i = 1;
  for (; i < run->argc && strcmp(run->argv[i], "--"); i++) argv[count++] = run->argv[i];
  for (int o = 0; own[o]; o++) argv[count++] = (char *)(uintptr_t)own[o];
  for (; i < run->argc; i++) argv[count++] = run->argv[i];
  execv("/proc/self/exe", argv);
  _exit(GS_EXIT_MACHINE);
}

static void wait_for(worker_t *workers, int count, const volatile sig_atomic_t *stopped) {
  bool told = false;
  for (int left = count; left > 0;) {
    int status;
    pid_t pid = waitpid(-1, &status, 0);
    if (pid < 0 && errno != EINTR) return;
    if (*stopped && !told)
      for (int i = 0; i < count; i++) kill(workers[i].pid, SIGTERM);
    told = *stopped;
    for (int i = 0; i < count && pid > 0; i++)
      if (workers[i].pid == pid) {
        workers[i].status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        left--;
      }
  }
}

/* Joins what there is; a tuner's own table and journal go only where everyone is done. */
static int join(const gs_fleet_run_t *run, worker_t *workers, int count, bool done) {
  char *tables[GS_FLEET_MAX];
  int there = 0, status = GS_EXIT_OK;
  for (int i = 0; i < count; i++)
    if (access(workers[i].table, F_OK) == 0) tables[there++] = workers[i].table;
  if (there) status = gs_merge(run->output, tables, there, run->again);
  bool unfinished = false;
  for (int i = 0; i < count; i++) {
    char tried[4104];
    snprintf(tried, sizeof tried, "%s.tried", workers[i].table);
    unfinished |= access(tried, F_OK) == 0;
  }
  for (int i = 0; i < there && status == GS_EXIT_OK && done && !unfinished; i++) unlink(tables[i]);
  return status;
}

int gs_fleet_run(const gs_fleet_t *fleet, const gs_fleet_run_t *run) {
  worker_t *workers = calloc((size_t)fleet->count, sizeof *workers);
  int worst = GS_EXIT_OK, started = 0;
  if (!workers) return GS_EXIT_MACHINE;
  gs_say("%d GPUs, %s: one tuner on each", fleet->count, fleet->gpu);
  fflush(NULL);
  for (int i = 0; i < fleet->count; i++) {
    worker_t *worker = &workers[i];
    int base = run->shard.of ? run->shard.i - 1 : 0, of = run->shard.of ? run->shard.of : 1;
    snprintf(worker->device, sizeof worker->device, "%d", fleet->device[i]);
    snprintf(worker->shard, sizeof worker->shard, "%d/%d", base * fleet->count + i + 1, of * fleet->count);
    name_table(run, worker->shard, worker->table, sizeof worker->table);
    worker->pid = fork();
    if (worker->pid == 0) run_worker(run, worker);
    if (worker->pid < 0) {
      gs_say("a tuner cannot be started: %s", strerror(errno));
      worst = GS_EXIT_MACHINE;
      break;
    }
    started++;
  }
  wait_for(workers, started, run->stopped);
  for (int i = 0; i < started; i++)
    if (workers[i].status > worst) worst = workers[i].status;
  if (!run->quick) {
    int joined = join(run, workers, started, worst <= GS_EXIT_FALSE);
    if (joined > worst) worst = joined;
  }
  free(workers);
  return *run->stopped ? 128 + *run->stopped : worst;
}
