#define _GNU_SOURCE
#include "compile.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS_MAX 256

/* A process at work on one job; its answer comes in a file in memory: status, cubin, image. */
typedef struct {
  pid_t process;
  int answer;
  gs_job_t *job;
} worker_t;

static int core_count(void) {
  cpu_set_t cores;
  int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  return count < WORKERS_MAX ? count : WORKERS_MAX;
}

static void refuse(gs_job_t *job, gs_status_t status, const char *why) {
  job->status = status;
  job->cubin = (gs_cubin_t){0};
  snprintf(job->cubin.why, sizeof job->cubin.why, "%s", why);
}

static void make(gs_job_t *job, int sm) {
  char id[GS_KERNEL_ID_MAX];
  gs_kernel_format(id, sizeof id, &job->kernel);
  job->status = gs_generate(id, sm, GS_GENERATE_CACHE, &job->cubin);
}

/* Whole, or not at all: a short write or read shows in the total. */
static bool put(int fd, const void *bytes, size_t size) {
  return write(fd, bytes, size) == (ssize_t)size;
}
static bool get(int fd, void *bytes, size_t size) {
  return read(fd, bytes, size) == (ssize_t)size;
}

static _Noreturn void work(const worker_t *worker, int sm) {
  gs_job_t *job = worker->job;
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  alarm(GS_COMPILE_SECONDS);
  make(job, sm);
  bool told = put(worker->answer, &job->status, sizeof job->status) &&
              put(worker->answer, &job->cubin, sizeof job->cubin) &&
              put(worker->answer, job->cubin.image, job->cubin.size);
  _exit(!told);
}

static void begin(worker_t *worker, gs_job_t *job, int sm) {
  *worker = (worker_t){.job = job, .answer = memfd_create("cubin", MFD_CLOEXEC), .process = -1};
  if (worker->answer >= 0) worker->process = fork();
  if (worker->process == 0) work(worker, sm);
  if (worker->process < 0) make(job, sm); /* no process to be had */
}

static bool read_answer(const worker_t *worker) {
  gs_job_t *job = worker->job;
  gs_cubin_t *cubin = &job->cubin;
  if (lseek(worker->answer, 0, SEEK_SET) < 0 || !get(worker->answer, &job->status, sizeof job->status) ||
      !get(worker->answer, cubin, sizeof *cubin))
    return false;
  cubin->image = NULL;
  if (job->status != GS_OK) return true;
  cubin->image = malloc(cubin->size);
  return cubin->image && get(worker->answer, cubin->image, cubin->size);
}

static void end(const worker_t *worker) {
  int status = 0;
  if (worker->process > 0) {
    while (waitpid(worker->process, &status, 0) < 0 && errno == EINTR) continue;
    bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ended || !read_answer(worker)) {
      gs_cubin_free(&worker->job->cubin);
      refuse(worker->job, GS_UNSUPPORTED,
             WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "the compiler did not end"
                                                                : "the compiler's process failed");
    }
  }
  if (worker->answer >= 0) close(worker->answer);
}

int gs_compile(gs_job_t *jobs, int count, int sm, gs_progress_t *progress,
               const volatile sig_atomic_t *stopped) {
  worker_t workers[WORKERS_MAX];
  char why[sizeof jobs->cubin.why], what[64];
  int cores = core_count(), good = 0, begun = 0;
  gs_status_t ready = gs_generate_ready(why, sizeof why);
  for (int i = 0; i < count; i++) {
    if (ready != GS_OK) {
      refuse(&jobs[i], ready, why);
      continue;
    }
    for (; begun < count && begun < i + cores; begun++) {
      if (stopped && *stopped) break;
      begin(&workers[begun % cores], &jobs[begun], sm);
    }
    if (begun <= i) {
      refuse(&jobs[i], GS_UNSUPPORTED, "stopped before it was compiled");
      continue;
    }
    end(&workers[i % cores]);
    good += jobs[i].status == GS_OK;
    snprintf(what, sizeof what, "compiling: %d of %d, %d refused", i + 1, count, i + 1 - good);
    gs_progress_show(progress, (double)(i + 1) / count, what);
  }
  gs_progress_clear(progress);
  return good;
}
