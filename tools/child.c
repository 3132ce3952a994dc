/* Running other programs; see child.h. */
#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools.h"

static int try_program(const char *path) {
  struct stat info;
  if (stat(path, &info) != 0) return errno == EACCES ? GS_EXIT_NOT_EXECUTABLE : GS_EXIT_NOT_FOUND;
  return S_ISREG(info.st_mode) && access(path, X_OK) == 0 ? 0 : GS_EXIT_NOT_EXECUTABLE;
}

int gs_find_program(const char *name, char *path, size_t size) {
  if (strchr(name, '/')) {
    if ((size_t)snprintf(path, size, "%s", name) >= size) return GS_EXIT_NOT_FOUND;
    return try_program(path);
  }
  int found = GS_EXIT_NOT_FOUND;
  const char *folders = getenv("PATH") ? getenv("PATH") : "/bin:/usr/bin";
  for (const char *folder = folders; *name; folder++) {
    size_t length = strcspn(folder, ":");
    int written = length ? snprintf(path, size, "%.*s/%s", (int)length, folder, name)
                         : snprintf(path, size, "./%s", name);
    if ((size_t)written < size) {
      int answer = try_program(path);
      if (answer == 0) return 0;
      if (answer == GS_EXIT_NOT_EXECUTABLE) found = answer;
    }
    folder += length;
    if (!*folder) break;
  }
  return found;
}

int gs_find_program_said(const char *name, char *path, size_t size) {
  int answer = gs_find_program(name, path, size);
  if (answer == GS_EXIT_NOT_FOUND)
    gs_say("%s: not found%s", name, strchr(name, '/') ? "" : " on PATH; a program of this folder is ./NAME");
  else if (answer == GS_EXIT_NOT_EXECUTABLE)
    gs_say("%s: not a program that you may execute", name);
  return answer;
}

static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
#define PASSED (sizeof passed / sizeof passed[0])

static volatile sig_atomic_t child, last_signal;

/* A terminal sends its signals to the whole foreground group: the child has that one already. */
static void on_signal(int number, siginfo_t *info, void *context) {
  (void)context;
  last_signal = number;
  if (child > 0 && info->si_code != SI_KERNEL) kill((pid_t)child, number);
}

/* Without SA_RESTART: waiting for the child is to come back, or some runtimes never call the handler. */
static void catch_signals(void) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, old;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < PASSED; i++) { /* one that is ignored (nohup) stays so, here and in the child */
    sigaction(passed[i], NULL, &old);
    if (old.sa_handler != SIG_IGN) sigaction(passed[i], &action, NULL);
  }
}

int gs_spawn_signal(void) {
  return last_signal;
}

static int start(const gs_spawn_t *spawn, const sigset_t *mask, pid_t *pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  const int streams[] = {spawn->in, spawn->out, spawn->err};
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, mask);
  for (int i = 0; i < 3; i++)
    if (streams[i] >= 0) posix_spawn_file_actions_adddup2(&actions, streams[i], i);
  int error = posix_spawn(pid, spawn->path, &actions, &attributes, spawn->argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

int gs_spawn(const gs_spawn_t *spawn, int *status) {
  sigset_t ours, before;
  pid_t pid;
  sigemptyset(&ours);
  for (size_t i = 0; i < PASSED; i++) sigaddset(&ours, passed[i]);
  sigprocmask(SIG_BLOCK, &ours, &before); /* one that comes before the pid is known must not be lost */
  catch_signals();
  int error = start(spawn, &before, &pid);
  if (!error) child = pid;
  sigprocmask(SIG_SETMASK, &before, NULL);
  if (error) return error;
  while (waitpid(pid, status, 0) < 0 && errno == EINTR) {
  }
  child = 0;
  return 0;
}

int gs_spawn_exit(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool gs_preload_add(const char *library) {
  char *list;
  if (strpbrk(library, " :")) {
    gs_say(
        "%s: the loader splits LD_PRELOAD at spaces and colons: install gemmshim under a path without them",
        library);
    return false;
  }
  gs_preload_remove(library);
  const char *before = getenv("LD_PRELOAD");
  if (asprintf(&list, "%s%s%s", library, before && *before ? ":" : "", before ? before : "") < 0) abort();
  setenv("LD_PRELOAD", list, 1);
  free(list);
  return true;
}

void gs_preload_remove(const char *library) {
  const char *before = getenv("LD_PRELOAD");
  if (!before) return;
  char *copy = strdup(before), *kept = calloc(1, strlen(before) + 1), *rest = copy;
  if (!copy || !kept) abort();
  for (char *name; (name = strsep(&rest, " :"));) {
    char real[PATH_MAX];
    if (!*name || (realpath(name, real) && !strcmp(real, library))) continue;
    if (*kept) strcat(kept, ":");
    strcat(kept, name);
  }
  *kept ? setenv("LD_PRELOAD", kept, 1) : unsetenv("LD_PRELOAD");
  free(copy), free(kept);
}
