/* Floor 0. Binds to the symbol versions of old C libraries, so that what is built on a new system loads
 * down to glibc 2.28. glibc 2.34 moved these from libdl to libc under a new version; the old one is still
 * there. A file that calls one of them includes this. */
#ifndef GS_COMPAT_H
#define GS_COMPAT_H

#include <dlfcn.h>
#include <features.h>

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
#if defined(__x86_64__)
#define GS_OLD_VERSION "GLIBC_2.2.5"
#define GS_OLD_DLADDR1 "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define GS_OLD_VERSION "GLIBC_2.17"
#define GS_OLD_DLADDR1 "GLIBC_2.17"
#endif
#endif
#ifdef GS_OLD_VERSION
__asm__(".symver dlopen,dlopen@" GS_OLD_VERSION);
#ifndef GS_DEFINES_DLCLOSE
__asm__(".symver dlclose,dlclose@" GS_OLD_VERSION);
#endif
#ifndef GS_DEFINES_DLSYM
__asm__(".symver dlsym,dlsym@" GS_OLD_VERSION);
#endif
__asm__(".symver dlvsym,dlvsym@" GS_OLD_VERSION);
__asm__(".symver dladdr1,dladdr1@" GS_OLD_DLADDR1);
#endif

#endif
