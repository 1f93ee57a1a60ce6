/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine-text.h"
#include "preload-library.h"

/* Removes what follows the last slash. False: there is nothing left. */
static bool path_cut(char path[static PATH_MAX])
{
    char *slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = '\0';
    return slash;
}

static bool is_program(const char *directory, const char *name, char path[static PATH_MAX])
{
    struct stat st;
    return snprintf(path, PATH_MAX, "%s/%s", directory, name) < PATH_MAX && stat(path, &st) == 0 &&
           S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The program that belongs to a library: beside it, as it was built, or in the bin of a directory above. */
static bool program_of_library(const char *library, char path[static PATH_MAX])
{
    char directory[PATH_MAX];
    if (!realpath(library, directory))
        return false;
    while (strcmp(directory, "/") != 0 && path_cut(directory))
        if (is_program(directory, "shmguard", path) || is_program(directory, "bin/shmguard", path))
            return true;
    return false;
}

/* Of the running program or, in another one that uses the C API, of the one that belongs to that. */
static bool program_directory(char path[static PATH_MAX])
{
    Dl_info info;
    struct link_map *object = NULL;
    bool library = dladdr1((const void *)program_directory, &info, (void **)&object, RTLD_DL_LINKMAP) &&
                   *object->l_name; /* empty: the program itself */
    if (library)
        return program_of_library(object->l_name, path) && path_cut(path);
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n <= 0)
        return false;
    path[n] = '\0';
    return path_cut(path);
}

/* `place` is relative to the program's directory, or absolute. */
static bool library_is_at(const char *place, char path[static PATH_MAX])
{
    char directory[PATH_MAX] = "";
    char where[PATH_MAX];
    if (*place != '/' && !program_directory(directory))
        return false;
    return snprintf(where, sizeof where, "%s/%s", directory, place) < PATH_MAX && realpath(where, path) &&
           access(path, R_OK) == 0;
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
