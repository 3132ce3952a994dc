/* host [-g LIBRARY | -d | -n | -u] OBJECT:FUNCTION:CALLS ...: links nothing; loads each object RTLD_LOCAL and
 * makes it call, all of them twice, in turn. -g loads a library RTLD_GLOBAL first; -d loads the objects with
 * RTLD_DEEPBIND, -n into a namespace of their own; -u unloads each after its calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int mode = RTLD_LOCAL;
static bool apart, unloads;

static void *load(const char *path, int how) {
  void *handle = apart ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW) : dlopen(path, RTLD_NOW | how);
  if (!handle) {
    fprintf(stderr, "host: %s\n", dlerror());
    exit(3);
  }
  return handle;
}

static int call(const char *text) {
  char object[256], function[64];
  int calls;
  if (sscanf(text, "%255[^:]:%63[^:]:%d", object, function, &calls) != 3) return -1;
  void *handle = load(object, mode);
  int (*run)(int) = (int (*)(int))dlsym(handle, function);
  int status = run && run(calls) == calls ? 0 : -1;
  if (unloads && dlclose(handle)) return -1;
  return status;
}

int main(int argc, char **argv) {
  int first = 1;
  if (argc > 2 && !strcmp(argv[1], "-g")) {
    load(argv[2], RTLD_GLOBAL);
    first = 3;
  }
  for (; first < argc && argv[first][0] == '-'; first++) {
    if (argv[first][1] == 'd') mode |= RTLD_DEEPBIND;
    apart |= argv[first][1] == 'n';
    unloads |= argv[first][1] == 'u';
  }
  for (int round = 0; round < 2; round++)
    for (int i = first; i < argc; i++)
      if (call(argv[i])) {
        fprintf(stderr, "host: %s went wrong\n", argv[i]);
        return 1;
      }
  return 0;
}
