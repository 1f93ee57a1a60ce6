/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD, as the dynamic linker reads it: names separated by colons and blanks. For the guard, which
 * passes it on, and for the supervisor, which sets it.
 *
 * A copy is a library with our file name at another path: an older one, one that does not exist any more, or
 * a name without a path. Two copies in one process would both recycle, so ours replaces all of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The next name of the list, not NUL-terminated. */
static inline bool preload_next(const char **list, const char **ret, size_t *ret_n)
{
    *list += strspn(*list, ": ");
    *ret = *list;
    *ret_n = strcspn(*list, ": ");
    *list += *ret_n;
    return *ret_n > 0;
}

/* Whether name has our library's file name, at any path. */
static inline bool preload_is_ours(const char *name, size_t n, const char *library)
{
    const char *slash = strrchr(library, '/');
    const char *file = slash ? slash + 1 : library;
    size_t length = strlen(file);
    return n >= length && strncmp(name + n - length, file, length) == 0 &&
           (n == length || name[n - length - 1] == '/');
}

/* Whether our library is in the list, and no copy of it is. */
static inline bool preload_holds(const char *list, const char *library)
{
    const char *name = NULL;
    size_t n = 0;
    bool found = false;
    while (preload_next(&list, &name, &n)) {
        if (!preload_is_ours(name, n, library))
            continue;
        if (n != strlen(library) || strncmp(name, library, n) != 0)
            return false;
        found = true;
    }
    return found;
}

/* Whether our library or a copy of it is in the list. */
static inline bool preload_names(const char *list, const char *library)
{
    const char *name = NULL;
    size_t n = 0;
    bool found = false;
    while (preload_next(&list, &name, &n))
        found |= preload_is_ours(name, n, library);
    return found;
}

/* The list without our library and its copies. ret has room for the list. */
static inline void preload_remove(const char *list, const char *library, char *ret)
{
    const char *name = NULL;
    size_t n = 0;
    char *end = ret;
    while (preload_next(&list, &name, &n)) {
        if (preload_is_ours(name, n, library))
            continue;
        end = stpcpy(end, end == ret ? "" : ":");
        end = (char *)memcpy(end, name, n) + n;
    }
    *end = '\0';
}

/* AddressSanitizer ends a program in which it is not the first library. */
static inline bool preload_comes_first(const char *name, size_t n)
{
    static const char *const firsts[] = {"libasan", "libclang_rt.asan"};
    size_t file = n;
    while (file > 0 && name[file - 1] != '/')
        file--;
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++)
        if (n - file >= strlen(firsts[i]) && strncmp(name + file, firsts[i], strlen(firsts[i])) == 0)
            return true;
    return false;
}

/* The list with our library in front, or behind those that must come first. ret has room for both and two
 * bytes more. Returns its end. */
static inline char *preload_join(const char *list, const char *library, char *ret)
{
    const char *name = NULL;
    size_t n = 0;
    char *end = ret;
    bool placed = false;
    while (preload_next(&list, &name, &n)) {
        if (!placed && !preload_comes_first(name, n)) {
            end = stpcpy(stpcpy(end, end == ret ? "" : ":"), library);
            placed = true;
        }
        if (preload_is_ours(name, n, library))
            continue;
        end = stpcpy(end, end == ret ? "" : ":");
        end = (char *)memcpy(end, name, n) + n;
    }
    if (!placed)
        end = stpcpy(stpcpy(end, end == ret ? "" : ":"), library);
    *end = '\0';
    return end;
}
