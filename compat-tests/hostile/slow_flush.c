/* Makes each flush take longer while the file that SLOW_FLUSH names is there: LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#define SLOW_US 200000

static void wait_if_slow(void) {
    const char *path = getenv("SLOW_FLUSH");
    if (path && access(path, F_OK) == 0) usleep(SLOW_US);
}

#define SLOW(name)                                              \
    int name(int file) {                                        \
        static int (*real)(int);                                \
        if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, #name); \
        wait_if_slow();                                         \
        return real(file);                                      \
    }

SLOW(fsync)
SLOW(fdatasync)
