/* Stands for libgemmshim.so where only the dlsym hook is tested. */
#include <string.h>

static int substitute(void) {
  return 5;
}

__attribute__((visibility("default"))) void *gemmshim_lookup(const char *name, void *found) {
  return strcmp(name, "cublasScopeProbe") ? found : (void *)substitute;
}
