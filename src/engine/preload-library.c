/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine-text.h"
#include "preload-library.h"

/* `place` is relative to the program's directory, or absolute. */
static bool library_is_at(const char *place, char path[static PATH_MAX])
{
    char where[PATH_MAX];
    size_t directory = 0;
    if (*place != '/') {
        ssize_t n = readlink("/proc/self/exe", where, sizeof where);
        while (n > 0 && where[n - 1] != '/')
            n--;
        if (n <= 0)
            return false;
        directory = (size_t)n;
    }
    size_t size = strlen(place) + 1;
    if (directory + size > sizeof where)
        return false;
    memcpy(where + directory, place, size);
    return realpath(where, path) && access(path, R_OK) == 0;
}

bool guard_library(char path[static PATH_MAX])
{
    return library_is_at(GUARD_LIBRARY, path) || library_is_at(SHMGUARD_LIBRARY_DIR "/" GUARD_LIBRARY, path);
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
