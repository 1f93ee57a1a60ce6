/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "engine-text.h"
#include "preload-library.h"

/* Beside the program, where a build puts it. */
static bool library_is_beside(char path[static PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
    if (n <= 0 || n >= PATH_MAX)
        return false;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    size_t room = slash ? PATH_MAX - (size_t)(slash + 1 - path) : 0;
    if (room < sizeof GUARD_LIBRARY)
        return false;
    memcpy(slash + 1, GUARD_LIBRARY, sizeof GUARD_LIBRARY);
    return access(path, R_OK) == 0;
}

bool guard_library(char path[static PATH_MAX])
{
    static const char installed[] = SHMGUARD_LIBRARY_DIR "/" GUARD_LIBRARY;
    if (library_is_beside(path))
        return true;
    memcpy(path, installed, sizeof installed);
    return access(path, R_OK) == 0;
}

GuardOffer guard_offer_find(const Machine *machine)
{
    char path[PATH_MAX];
    if (!guard_library(path))
        return (GuardOffer){.why_not = GUARD_NO_LIBRARY};
    if (machine && !machine->sandbox.memfd)
        return (GuardOffer){.why_not = GUARD_NO_MEMFD};
    return (GuardOffer){.ready = true};
}
