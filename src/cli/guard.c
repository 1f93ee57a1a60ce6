#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guard.h"

/* Beside the program, where a build leaves it. */
static bool library_is_beside(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n <= 0 || (size_t)n >= sizeof path)
        return false;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    size_t room = slash ? sizeof path - (size_t)(slash + 1 - path) : 0;
    if (room < sizeof GUARD_LIBRARY)
        return false;
    memcpy(slash + 1, GUARD_LIBRARY, sizeof GUARD_LIBRARY);
    return access(path, R_OK) == 0;
}

Guard guard_find(const Machine *machine)
{
    if (!library_is_beside() && access(SHMGUARD_LIBRARY_DIR "/" GUARD_LIBRARY, R_OK) < 0)
        return (Guard){.why_not = "this build has no preload library"};
    if (machine && !machine->sandbox.memfd)
        return (Guard){.why_not = "memfd_create is refused here"};
    return (Guard){.ready = true};
}
