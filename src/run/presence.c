/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <string.h>
#include <sys/stat.h>

#include "maps.h"
#include "preload.h"
#include "presence.h"
#include "proc-path.h"
#include "protocol.h"

enum { ENVIRONMENT_MAX = 1 << 18 };

/* --- The environment that a program was started with --------------------------------------------------- */

bool environment_value(Text environment, const char *name, Text *ret)
{
    bool found = false;
    Text setting;
    while (text_until(&environment, '\0', &setting)) {
        Text value = text_skip(setting, strlen(name) + 1);
        bool is = text_starts(setting, name) && setting.size > strlen(name) && value.data[-1] == '=';
        if (is)
            *ret = value;
        found |= is;
    }
    return found;
}

static bool is_switched_off(Text environment)
{
    Text value;
    return environment_value(environment, PROTOCOL_OFF_NAME, &value) && text_equal(value, "off");
}

Absence absence_of_mapped(Text environment, const char *socket)
{
    Text value;
    if (is_switched_off(environment))
        return ABSENCE_OFF;
    if (!environment_value(environment, PROTOCOL_ENVIRONMENT, &value) || value.size == 0)
        return ABSENCE_NO_SOCKET;
    return text_equal(value, socket) ? ABSENCE_NONE : ABSENCE_INNER_RUN;
}

Absence absence_of_missing(Text environment, const char *library)
{
    Text value;
    char list[8192];
    if (is_switched_off(environment))
        return ABSENCE_OFF;
    if (!environment_value(environment, "LD_PRELOAD", &value) || value.size == 0)
        return ABSENCE_NO_PRELOAD;
    if (value.size >= sizeof list)
        return ABSENCE_UNKNOWN;
    memcpy(list, value.data, value.size);
    list[value.size] = '\0';
    return preload_holds(list, library) ? ABSENCE_UNKNOWN : ABSENCE_OTHER_PRELOAD;
}

/* --- What is mapped ------------------------------------------------------------------------------------ */

typedef struct Libraries {
    const char *file; /* the name of ours, with its slash */
    uint64_t at;      /* where it is; 0: nowhere */
    bool linker;      /* a dynamic linker, of whatever kind */
    uint64_t libc;    /* where the C library is */
    bool foreign;     /* one that cannot load ours */
} Libraries;

static int visit_library(const MapEntry *entry, void *context)
{
    Libraries *libraries = context;
    if (text_ends(entry->path, libraries->file)) {
        libraries->at = entry->start;
        return 1;
    }
    bool musl = text_contains(entry->path, "/ld-musl");
    bool narrow = text_contains(entry->path, "/ld-linux.so."); /* of 32 bits */
    libraries->foreign |= musl || narrow;
    libraries->linker |= text_contains(entry->path, "/ld-") || text_contains(entry->path, "/ld64");
    if (text_contains(entry->path, "/libc.so") || text_contains(entry->path, "/libc-2."))
        libraries->libc = entry->start;
    return 0;
}

static Libraries libraries_of(const PresenceWish *wish)
{
    const char *slash = strrchr(wish->library, '/');
    return (Libraries){.file = slash ? slash : wish->library};
}

bool presence_inherit(const Root *root, int pid, const Presence *parent, const PresenceWish *wish,
                      Buffer *scratch, Presence *presence)
{
    Libraries libraries = libraries_of(wish);
    if (parent->at == 0 ||
        maps_visit_at(root, pid, MAPS_EXECUTABLE_FILES, parent->at, scratch, visit_library, &libraries) < 0)
        return false;
    if (parent->loaded ? libraries.at == 0 : libraries.libc == 0)
        return false;
    *presence = *parent;
    return true;
}

/* Preloaded libraries are mapped before the C library. A program without a C library may be static, or may
 * not be loaded yet: it has START_SECONDS for that. */
static bool is_started(const Libraries *libraries, double now, Presence *presence)
{
    static const double START_SECONDS = 0.9;
    if (libraries->at != 0 || libraries->libc != 0)
        return true;
    if (!presence->waits)
        presence->since = now;
    presence->waits = true;
    return now - presence->since >= START_SECONDS;
}

/* --- Why not ------------------------------------------------------------------------------------------ */

/* It gained rights at its start that its parent did not have: the dynamic linker ignores LD_PRELOAD then. */
static bool is_secure(const Root *root, int pid, Buffer *scratch)
{
    Elf64_auxv_t entry;
    if (root_read(root, PROC_PATH(pid, "auxv"), 4096, scratch) < 0)
        return false;
    for (size_t i = 0; i + sizeof entry <= scratch->size; i += sizeof entry) {
        memcpy(&entry, scratch->data + i, sizeof entry);
        if (entry.a_type == AT_SECURE)
            return entry.a_un.a_val != 0;
    }
    return false;
}

/* Whether a user without special rights can reach a file, as the process sees it. */
static bool others_can_read(const Root *root, int pid, const char *path)
{
    char part[PROC_PATH_MAX + 4096];
    size_t top = strlen(proc_path(pid, "root", part));
    size_t n = strlen(path);
    if (top + n >= sizeof part)
        return true;
    for (size_t i = 1; i <= n; i++) {
        FileStat stat;
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part + top, path, i);
        part[top + i] = '\0';
        int r = root_stat(root, part, &stat);
        if (r == -ENOENT || (r >= 0 && !(stat.mode & (path[i] ? S_IXOTH : S_IROTH))))
            return false;
    }
    return true;
}

static Absence absence_find(const Root *root, int pid, uint32_t uid, const Libraries *libraries,
                            const PresenceWish *wish, Buffer *scratch)
{
    if (root_read(root, PROC_PATH(pid, "environ"), ENVIRONMENT_MAX, scratch) < 0)
        return ABSENCE_UNREADABLE_PROCESS;
    Text environment = {scratch->data, scratch->size};
    if (libraries->at != 0)
        return absence_of_mapped(environment, wish->socket);
    Absence why = absence_of_missing(environment, wish->library);
    if (why == ABSENCE_OFF)
        return why;
    if (!libraries->linker && libraries->libc == 0)
        return ABSENCE_STATIC;
    if (libraries->foreign)
        return ABSENCE_FOREIGN;
    if (is_secure(root, pid, scratch))
        return ABSENCE_SECURE;
    if (why == ABSENCE_UNKNOWN && uid != 0 && !others_can_read(root, pid, wish->library))
        return ABSENCE_UNREADABLE_LIBRARY;
    return why;
}

void presence_search(const Root *root, int pid, uint32_t uid, double now, const PresenceWish *wish,
                     Buffer *scratch, Presence *presence)
{
    Libraries libraries = libraries_of(wish);
    int r = maps_visit(root, pid, MAPS_EXECUTABLE_FILES, scratch, visit_library, &libraries);
    if (r == -EACCES || r == -EPERM) {
        *presence = (Presence){.known = true, .why = ABSENCE_UNREADABLE_PROCESS};
        return;
    }
    if (r < 0 || !is_started(&libraries, now, presence))
        return;
    *presence = (Presence){
        .known = true,
        .loaded = libraries.at != 0,
        .at = libraries.at != 0 ? libraries.at : libraries.libc,
        .why = absence_find(root, pid, uid, &libraries, wish, scratch),
    };
}
