/* Objects whose look-ups depend on who asks, built once for each: SCOPE_FIRST and SCOPE_NEXT are the program's,
 * in that order, and the first asks for the next one's function; SCOPE_LOCAL, loaded RTLD_LOCAL, asks for what
 * only SCOPE_LAST, which it needs, defines. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))
typedef int probe_t(void);

#if defined(SCOPE_FIRST)
EXPORT int scope_probe(void) {
  probe_t *next = (probe_t *)dlsym(RTLD_NEXT, "scope_probe");
  return next ? 10 + next() : -1; /* itself, without end, where the caller is lost */
}
#elif defined(SCOPE_NEXT)
EXPORT int scope_probe(void) {
  return 3;
}
#elif defined(SCOPE_LAST)
EXPORT int cublasScopeProbe(void) {
  return 4;
}
#elif defined(SCOPE_LOCAL)
EXPORT int scope_local(void) {
  probe_t *found = (probe_t *)dlsym(RTLD_DEFAULT, "cublasScopeProbe");
  return found ? found() : -1;
}
#endif
