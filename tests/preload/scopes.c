/* scopes LOCAL.so: prints what RTLD_NEXT and RTLD_DEFAULT find for callers in other objects, and how look-ups
 * fail; to be the same with and without a dlsym hook. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int scope_probe(void); /* the first of two in the program's order */

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  printf("next: %d\n", scope_probe());
  void *object = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  int (*local)(void) = object ? (int (*)(void))dlsym(object, "scope_local") : NULL;
  printf("default: %d\n", local ? local() : -1);
  int (*by_handle)(void) = object ? (int (*)(void))dlsym(object, "cublasScopeProbe") : NULL;
  printf("by handle: %d\n", by_handle ? by_handle() : -1);
  printf("hidden: %d\n", dlsym(RTLD_DEFAULT, "cublasScopeProbe") != NULL);
  dlerror();
  void *missing = object ? dlsym(object, "cublasGemmEx") : NULL;
  const char *why = dlerror();
  printf("missing: %d, %s\n", missing != NULL, why ? why : "no reason");
  printf("afterwards: %d\n", dlsym(RTLD_NEXT, "printf") != NULL && dlerror() == NULL);
  return 0;
}
