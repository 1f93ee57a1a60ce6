/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "fault.h"
#include "mapped-file.h"
#include "proc-path.h"

/* Whether si_addr means anything. A fault at a non-canonical address is reported as SI_KERNEL with address 0.
 */
static bool has_address(const Testimony *testimony)
{
    return testimony->signal != SIGABRT && testimony->code > 0 && testimony->code != SI_KERNEL;
}

/* Memory in files that the kernel makes itself and that no process can truncate: shared anonymous mappings,
 * System V shared memory, huge pages. */
static bool is_anonymous(const MapEntry *entry)
{
    bool file = entry->inode != 0 || entry->device.major != 0 || entry->device.minor != 0;
    return !file || (entry->device.major == 0 && entry->deleted &&
                     (text_equal(entry->path, "/dev/zero") || text_starts(entry->path, "/SYSV") ||
                      text_equal(entry->path, "/anon_hugepage")));
}

static FaultPlace place_of(const Root *root, int pid, const MapEntry *entry)
{
    FileStat shm;
    if (is_anonymous(entry))
        return PLACE_ANONYMOUS;
    if (entry->device.major == 0 && entry->deleted && text_starts(entry->path, "/memfd:"))
        return PLACE_MEMFD;
    /* If its own /dev/shm cannot be queried, it is most likely ours. */
    int r = root_stat(root, PROC_PATH(pid, "root/dev/shm"), &shm);
    if (r == -EACCES)
        r = root_stat(root, "dev/shm", &shm);
    return r == 0 && device_equal(shm.device, entry->device) ? PLACE_SHM : PLACE_FILE;
}

/* The descriptor comes from another process, so it may be any file, and may block: it must be what it claims
 * to be. */
static bool is_maps_of(const Root *root, int pid, int maps)
{
    char name[32];
    char wanted[PROC_PATH_MAX];
    char target[PROC_PATH_MAX];
    if (maps < 0)
        return false;
    snprintf(name, sizeof name, "fd/%d", maps);
    snprintf(wanted, sizeof wanted, "/%s", PROC_PATH(pid, "maps"));
    ssize_t n = root_link(root, PROC_PATH(0, name), target, sizeof target);
    /* In its own mount namespace the process may have mounted anything there. */
    struct statfs system;
    return n > 0 && strcmp(target, wanted) == 0 && fstatfs(maps, &system) == 0 &&
           system.f_type == PROC_SUPER_MAGIC;
}

static void address_look(const Root *root, int pid, int maps, Buffer *scratch, Fault *fault)
{
    MapEntry entry;
    FileStat stat;
    int r = maps_find(root, pid, fault->address, scratch, &entry);
    if (r == -EACCES && is_maps_of(root, pid, maps))
        r = maps_find_in(root, maps, fault->address, scratch, &entry);
    if (r <= 0) {
        fault->place = r < 0 ? PLACE_UNKNOWN : PLACE_NOT_MAPPED;
        return;
    }
    fault->place = place_of(root, pid, &entry);
    if (fault->place == PLACE_ANONYMOUS)
        return;
    fault->offset = entry.offset + (fault->address - entry.start);
    bool has_stat = mapped_file_stat(root, pid, &entry, &stat) == 0;
    if (has_stat)
        fault->file_bytes = stat.size_bytes;
    fault->deleted = fault->place != PLACE_MEMFD && (has_stat ? stat.nlink == 0 : entry.deleted);
    size_t n = entry.path.size;
    if (n == 0)
        return;
    /* In the text of the mappings, further ones follow. */
    memmove(scratch->data, entry.path.data, n);
    scratch->data[n] = '\0';
    scratch->size = n;
    fault->path = scratch->data;
}

static void shm_look(const Root *root, int pid, Fault *fault)
{
    FsStat fs;
    int r = root_statfs(root, PROC_PATH(pid, "root/dev/shm"), &fs);
    if (r == -EACCES)
        r = root_statfs(root, "dev/shm", &fs);
    if (r < 0 || fs.size_bytes == 0)
        return;
    fault->shm_size_bytes = fs.size_bytes;
    fault->shm_free_bytes = fs.available_bytes;
}

void fault_read(const Root *root, int pid, const Testimony *testimony, bool look, int maps, Buffer *scratch,
                Fault *ret)
{
    *ret = (Fault){
        .signal = testimony->signal,
        .code = testimony->code,
        .sender = testimony->code > 0 ? 0 : testimony->sender,
        .thread = testimony->thread,
        .file_bytes = U64_UNKNOWN,
        .shm_size_bytes = U64_UNKNOWN,
        .shm_free_bytes = U64_UNKNOWN,
    };
    memcpy(ret->thread_name, testimony->thread_name, sizeof ret->thread_name - 1);
    if (has_address(testimony))
        ret->address = testimony->address;
    if (!look)
        return;
    shm_look(root, pid, ret); /* first: other processes may let go of memory now that one has died */
    if (has_address(testimony))
        address_look(root, pid, maps, scratch, ret);
}
