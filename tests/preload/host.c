/* host [-g LIBRARY] OBJECT:FUNCTION:CALLS ...: links nothing; loads each object RTLD_LOCAL and makes it call,
 * all of them twice, in turn. -g loads a library RTLD_GLOBAL first. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *load(const char *path, int mode) {
  void *handle = dlopen(path, RTLD_NOW | mode);
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
  int (*run)(int) = (int (*)(int))dlsym(load(object, RTLD_LOCAL), function);
  return run && run(calls) == calls ? 0 : -1;
}

int main(int argc, char **argv) {
  int first = 1;
  if (argc > 2 && !strcmp(argv[1], "-g")) {
    load(argv[2], RTLD_GLOBAL);
    first = 3;
  }
  for (int round = 0; round < 2; round++)
    for (int i = first; i < argc; i++)
      if (call(argv[i])) {
        fprintf(stderr, "host: %s went wrong\n", argv[i]);
        return 1;
      }
  return 0;
}
