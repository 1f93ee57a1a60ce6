/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fds.h"
#include "internal.h"
#include "maps.h"
#include "smaps.h"

/*
 * Segments are identified by device and inode: names come and go, and a descriptor, a mapping and a file of
 * the mount that agree in both are one segment. Files of the mount come first, then what processes hold, in
 * rising order of pid.
 *
 * The stat of an unlinked segment comes through a holder's descriptor, or else through map_files, which only
 * root may follow. A user without root who sees a segment only mapped and without a name gets an estimate:
 * the most that any one process has resident of it.
 */
typedef struct Scan {
    const Root *root;
    Survey *survey;
    const Mounts *mounts;
    Process *process;
    size_t *table; /* open addressing; index + 1 into survey->segments, 0 free */
    size_t table_size;
    bool estimate; /* this process maps something that has no stat */
} Scan;

static size_t key_hash(Device device, uint64_t inode)
{
    uint64_t hash = (inode ^ (uint64_t)device.minor << 32 ^ device.major) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash >> 20);
}

static size_t *table_slot(const Scan *scan, Device device, uint64_t inode)
{
    for (size_t i = key_hash(device, inode);; i++) {
        size_t *slot = &scan->table[i & (scan->table_size - 1)];
        if (*slot == 0)
            return slot;
        const Segment *segment = &scan->survey->segments[*slot - 1];
        if (segment->inode == inode && device_equal(segment->device, device))
            return slot;
    }
}

static int table_grow(Scan *scan)
{
    if (scan->table && scan->survey->n_segments < scan->table_size / 2)
        return 0;
    size_t size = scan->table ? scan->table_size * 2 : 256;
    size_t *table = calloc(size, sizeof *table);
    if (!table)
        return -ENOMEM;
    free(scan->table);
    scan->table = table;
    scan->table_size = size;
    for (size_t i = 0; i < scan->survey->n_segments; i++)
        *table_slot(scan, scan->survey->segments[i].device, scan->survey->segments[i].inode) = i + 1;
    return 0;
}

static Segment *find_segment(const Scan *scan, Device device, uint64_t inode)
{
    if (!scan->table)
        return NULL;
    size_t index = *table_slot(scan, device, inode);
    return index == 0 ? NULL : &scan->survey->segments[index - 1];
}

static Segment *add_segment(Scan *scan, Text name, SegmentBacking backing, Device device, uint64_t inode)
{
    Survey *survey = scan->survey;
    char *copy = arena_copy(&survey->arena, name.data, name.size);
    if (!copy || table_grow(scan) < 0)
        return NULL;
    Segment *segment =
        ARENA_PUSH(&survey->arena, survey->segments, survey->n_segments, survey->segments_capacity);
    if (!segment)
        return NULL;
    SegmentClass class = segment_class(name, backing);
    *segment = (Segment){
        .name = {copy, name.size},
        .device = device,
        .inode = inode,
        .on_mount = survey->machine.shm.state == SHM_OK && device_equal(device, survey->machine.shm.device),
        .backing = backing,
        .kind = class.kind,
        .origin = class.origin,
        .kept_open = class.kept_open,
    };
    *table_slot(scan, device, inode) = survey->n_segments;
    return segment;
}

static void fill_from_stat(Segment *segment, const FileStat *stat)
{
    segment->size_bytes = stat->size_bytes;
    segment->allocated_bytes = stat->allocated_bytes;
    segment->allocated_estimated = false;
    /* glibc maps a semaphore under a name that is removed at once, while sem.NAME stays: the link count
     * tells. */
    segment->deleted = segment->backing == BACKING_SHM && stat->nlink == 0;
    segment->uid = stat->uid;
    segment->mode = stat->mode;
    segment->changed = stat->changed;
}

static int visit_file(const char *name, const FileStat *stat, void *context)
{
    Scan *scan = context;
    if (find_segment(scan, stat->device, stat->inode)) /* a second link */
        return 0;
    Segment *segment = add_segment(scan, text_of(name), BACKING_SHM, stat->device, stat->inode);
    if (!segment)
        return -ENOMEM;
    fill_from_stat(segment, stat);
    return 0;
}

static int add_holder(Scan *scan, Segment *segment)
{
    int pid = scan->process->pid;
    if (segment->n_holders > 0 && segment->holders[segment->n_holders - 1] == pid)
        return 0;
    int *slot =
        ARENA_PUSH(&scan->survey->arena, segment->holders, segment->n_holders, segment->holders_capacity);
    if (!slot)
        return -ENOMEM;
    *slot = pid;
    return 0;
}

static bool strip_prefix(Text path, const char *prefix, Text *ret_name)
{
    size_t n = strlen(prefix);
    if (!text_starts(path, prefix) || path.size <= n)
        return false;
    bool slash = prefix[n - 1] != '/' && prefix[n - 1] != ':';
    if (slash && path.data[n] != '/')
        return false;
    *ret_name = (Text){path.data + n + slash, path.size - n - slash};
    return ret_name->size > 0;
}

/* Decides by the path alone, so that no file on a disk or a network is ever touched. Bind mounts of our
 * /dev/shm count. */
static bool segment_name(const Scan *scan, Text path, Text *ret_name, SegmentBacking *ret_backing)
{
    *ret_backing = BACKING_MEMFD;
    if (strip_prefix(path, "/memfd:", ret_name))
        return true;
    *ret_backing = BACKING_SHM;
    if (strip_prefix(path, "/dev/shm", ret_name))
        return true;
    const ShmMount *shm = &scan->survey->machine.shm;
    for (size_t i = 0; shm->state == SHM_OK && i < scan->mounts->n; i++)
        if (device_equal(scan->mounts->items[i].device, shm->device) &&
            strip_prefix(path, scan->mounts->items[i].mount_point, ret_name))
            return true;
    return false;
}

static int visit_fd(const FdEntry *entry, void *context)
{
    Scan *scan = context;
    Text name;
    SegmentBacking backing;
    FileStat stat;
    if (text_starts(entry->target, "/dev/nvidia"))
        scan->process->cuda = true;
    if (!segment_name(scan, entry->target, &name, &backing) ||
        fd_stat(scan->root, scan->process->pid, entry->fd, &stat) < 0)
        return 0;
    if ((stat.mode & 0170000) != 0100000) /* a directory, as /dev/shm itself opened by a program below it */
        return 0;
    Segment *segment = find_segment(scan, stat.device, stat.inode);
    if (!segment)
        segment = add_segment(scan, name, backing, stat.device, stat.inode);
    if (!segment)
        return -ENOMEM;
    fill_from_stat(segment, &stat);
    return add_holder(scan, segment);
}

static int visit_map(const MapEntry *entry, void *context)
{
    Scan *scan = context;
    Text name;
    SegmentBacking backing;
    if (!segment_name(scan, entry->path, &name, &backing))
        return 0;
    Segment *segment = find_segment(scan, entry->device, entry->inode);
    if (!segment) {
        segment = add_segment(scan, name, backing, entry->device, entry->inode);
        if (!segment)
            return -ENOMEM;
        FileStat stat;
        if (maps_stat(scan->root, scan->process->pid, entry, &stat) >= 0)
            fill_from_stat(segment, &stat);
        else {
            segment->allocated_estimated = true;
            segment->deleted = backing == BACKING_SHM && (segment->on_mount || entry->deleted);
        }
    }
    if (segment->allocated_estimated) {
        segment->size_bytes = MAX(segment->size_bytes, entry->offset + (entry->end - entry->start));
        scan->estimate = true;
    }
    return add_holder(scan, segment);
}

static void estimate_from_smaps(const Scan *scan, Buffer *scratch)
{
    if (smaps_read(scan->root, scan->process->pid, scratch) < 0)
        return;
    Text rest = {buffer_text(scratch), scratch->size};
    MapEntry entry;
    Smaps sizes;
    while (smaps_next(&rest, &entry, &sizes)) {
        Segment *segment = find_segment(scan, entry.device, entry.inode);
        if (segment && segment->allocated_estimated)
            segment->allocated_bytes = MAX(segment->allocated_bytes, sizes.rss_bytes);
    }
}

static int scan_process(Scan *scan, Process *process, Buffer *scratch)
{
    scan->process = process;
    scan->estimate = false;
    int r = fds_visit(scan->root, process->pid, visit_fd, scan, &process->fds);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        process->readable = false;
    r = maps_visit(scan->root, process->pid, MAPS_SHARED_FILES, scratch, visit_map, scan);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        process->readable = false;
    if (scan->estimate)
        estimate_from_smaps(scan, scratch);
    return 0;
}

static int segment_order(const void *a, const void *b)
{
    const Segment *left = a;
    const Segment *right = b;
    if (left->device.major != right->device.major)
        return left->device.major < right->device.major ? -1 : 1;
    if (left->device.minor != right->device.minor)
        return left->device.minor < right->device.minor ? -1 : 1;
    return (left->inode > right->inode) - (left->inode < right->inode);
}

static void sum_up(Survey *survey)
{
    for (size_t i = 0; i < survey->n_segments; i++) {
        const Segment *segment = &survey->segments[i];
        for (size_t j = 0; j < segment->n_holders; j++) {
            Process *holder = process_find(survey, segment->holders[j]);
            holder->shm_bytes += segment->allocated_bytes;
            holder->segments++;
        }
        if (segment->backing == BACKING_MEMFD)
            survey->memfd_bytes += segment->allocated_bytes;
        else if (segment->on_mount && segment->n_holders > 0)
            survey->attributed_bytes += segment->allocated_bytes;
    }
    const ShmMount *shm = &survey->machine.shm;
    if (shm->state == SHM_OK && shm->used_bytes == U64_UNKNOWN)
        survey->unattributed_bytes = U64_UNKNOWN;
    else if (shm->state == SHM_OK && shm->used_bytes > survey->attributed_bytes)
        survey->unattributed_bytes = shm->used_bytes - survey->attributed_bytes;
}

int segments_scan(const Root *root, const Mounts *mounts, Survey *survey)
{
    _cleanup_buffer_ Buffer scratch = {0};
    Scan scan = {.root = root, .survey = survey, .mounts = mounts};
    int r = survey->machine.shm.state == SHM_OK ? shmfs_visit(root, visit_file, &scan) : 0;
    for (size_t i = 0; r != -ENOMEM && i < survey->n_processes; i++)
        if (survey->processes[i].readable)
            r = scan_process(&scan, &survey->processes[i], &scratch);
    free(scan.table);
    if (r == -ENOMEM)
        return r;
    for (size_t i = 0; i < survey->n_processes; i++)
        survey->n_unreadable += survey->processes[i].has_memory && !survey->processes[i].readable;
    if (survey->n_segments > 0)
        qsort(survey->segments, survey->n_segments, sizeof *survey->segments, segment_order);
    sum_up(survey);
    return 0;
}
