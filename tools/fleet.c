#define _GNU_SOURCE
#include "fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "machine.h"
#include "merge.h"
#include "progress.h"
#include "standing.h"
#include "tools.h"

#define POLL_NS 100000000

gs_fleet_t gs_fleet_find(void) {
  gs_fleet_t fleet = {.count = 0};
  int count = 0;
  if (gs_machine_init() || gs_driver.cuDeviceGetCount(&count) != CUDA_SUCCESS) return fleet;
  for (int i = 0; i < count && fleet.count < GS_FLEET_MAX; i++) {
    gs_device_t device;
    if (gs_device_describe(i, &device) != GS_OK) continue;
    if (!gs_device_arch(device.sm)) {
      if (count > 1) gs_say("GPU %d, a %s, is left out: " GS_DEVICE_ARCHS, i, device.name);
      continue;
    }
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
  bool ended;
  int status; /* exit status, or 128 + signal */
  int fd;     /* of standing */
  gs_standing_t *standing;
  char table[4096], device[16], shard[32], standing_fd[16];
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
  const char *own[] = {"--worker",
                       worker->standing_fd,
                       "--device",
                       worker->device,
                       "--shard",
                       worker->shard,
                       "-o",
                       run->output,
                       run->again ? NULL : "--known",
                       run->output,
                       NULL};
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

/* A signal that comes between fork and exec must neither be lost in this process's handler nor wait for ever: until the
 * tuner heeds signals itself, one ends it. It also ends with this process. */
static void begin(const gs_fleet_run_t *run, worker_t *worker) {
  sigset_t heeded, before;
  sigemptyset(&heeded);
  sigaddset(&heeded, SIGINT);
  sigaddset(&heeded, SIGTERM);
  sigprocmask(SIG_BLOCK, &heeded, &before);
  worker->pid = fork();
  if (worker->pid == 0) {
    if (worker->fd >= 0) fcntl(worker->fd, F_SETFD, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    run_worker(run, worker);
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
}

/* One line for all, once everyone has said how much there is. The slowest one's time is what is left. */
static void show(gs_progress_t *progress, const worker_t *workers, int count) {
  int done = 0, total = 0, won = 0;
  double best = 0, left = 0, gone = gs_seconds() - progress->begun;
  char what[128];
  for (int i = 0; i < count; i++) {
    const gs_standing_t *one = workers[i].standing;
    if (!one || (!one->total && !workers[i].ended)) return;
    done += one->done, total += one->total, won += one->won;
    best = fmax(best, one->best);
    if (!workers[i].ended && one->done < one->total)
      left = one->done && gone > 1 ? fmax(left, gone * one->total / one->done - gone) : INFINITY;
  }
  snprintf(what, sizeof what, "%d of %d on %d GPUs; %d won, best %.2fx", done, total, count, won, best);
  if (total) gs_progress_show_left(progress, (double)done / total, left, what);
}

static void note_end(worker_t *workers, int count, pid_t pid, int status) {
  for (int i = 0; i < count; i++)
    if (workers[i].pid == pid) {
      workers[i].ended = true;
      workers[i].status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

/* By looking again and again: a signal that comes in between is seen at the next look. */
static void wait_for(worker_t *workers, int count, const volatile sig_atomic_t *stopped) {
  gs_progress_t progress = gs_progress_begin();
  bool told = false;
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) >= 0 || errno == EINTR;) {
    if (pid > 0) note_end(workers, count, pid, status);
    for (int i = 0; i < count && *stopped && !told; i++)
      if (!workers[i].ended) kill(workers[i].pid, SIGTERM);
    told = *stopped;
    if (pid > 0) continue;
    show(&progress, workers, count);
    nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
  }
  gs_progress_clear(&progress);
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
  for (int i = 0; i < fleet->count && !*run->stopped; i++) {
    worker_t *worker = &workers[i];
    int base = run->shard.of ? run->shard.i - 1 : 0, of = run->shard.of ? run->shard.of : 1;
    snprintf(worker->device, sizeof worker->device, "%d", fleet->device[i]);
    snprintf(worker->shard, sizeof worker->shard, "%d/%d", base * fleet->count + i + 1, of * fleet->count);
    name_table(run, worker->shard, worker->table, sizeof worker->table);
    worker->standing = gs_standing_make(&worker->fd);
    snprintf(worker->standing_fd, sizeof worker->standing_fd, "%d", worker->fd);
    begin(run, worker);
    if (worker->pid < 0) {
      gs_say("a tuner cannot be started: %s", strerror(errno));
      worst = GS_EXIT_MACHINE;
      break;
    }
    started++;
  }
  wait_for(workers, started, run->stopped);
  for (int i = 0; i < started; i++) {
    if (workers[i].status > 128 && !*run->stopped)
      gs_say("the tuner on GPU %s was ended by signal %d: the same command goes on from there",
             workers[i].device, workers[i].status - 128);
    if (workers[i].status > worst) worst = workers[i].status;
  }
  if (!run->quick) {
    int joined = join(run, workers, started, worst <= GS_EXIT_FALSE);
    if (joined > worst) worst = joined;
  }
  free(workers);
  return *run->stopped ? 128 + *run->stopped : worst;
}
