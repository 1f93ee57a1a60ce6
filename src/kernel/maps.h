/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/PID/maps: what is mapped where. On Linux 6.11 and later the PROCMAP_QUERY ioctl finds the few shared
 * or executable mappings among a thousand without printing them all; elsewhere, and in captured trees, the
 * text is read.
 */
#pragma once

#include "root.h"

typedef struct MapEntry {
    uint64_t start;
    uint64_t end;
    bool shared;
    bool executable;
    Device device;
    uint64_t inode;
    uint64_t offset;
    Text path;    /* as the kernel writes it: newlines are \012; without " (deleted)" */
    bool deleted; /* the path ended in " (deleted)". Only a hint: check st_nlink */
} MapEntry;

/* One line. -EBADMSG. ret->path points into line. */
int maps_parse_line(Text line, MapEntry *ret);

typedef enum MapsWhich {
    MAPS_SHARED_FILES, /* MAP_SHARED of a file, tmpfs and memfd included */
    MAPS_EXECUTABLE_FILES,
    MAPS_ANY,
} MapsWhich;

/*
 * Calls visit for each mapping of that kind in address order until it returns non-zero, which is then the
 * result; 0 after the last; negative errno if the process cannot be read. entry->path is valid during the
 * call. Scratch is reused memory.
 */
typedef int (*MapsVisit)(const MapEntry *entry, void *context);
int maps_visit(const Root *root, int pid, MapsWhich which, Buffer *scratch, MapsVisit visit, void *context);

/* Visits only the mapping of that kind that covers address, and returns what visit returned; 0: there is
 * none, or the kernel cannot be asked for a single one; negative errno: the process cannot be read. */
int maps_visit_at(const Root *root, int pid, MapsWhich which, uint64_t address, Buffer *scratch,
                  MapsVisit visit, void *context);

/*
 * The mapping of any kind that covers address: 1 with *ret filled, 0 if nothing is mapped there, negative
 * errno if the process cannot be read. ret->path lives in scratch.
 */
int maps_find(const Root *root, int pid, uint64_t address, Buffer *scratch, MapEntry *ret);

/* The same in an open /proc/PID/maps. */
int maps_find_in(const Root *root, int fd, uint64_t address, Buffer *scratch, MapEntry *ret);

/* How many mappings the process has, of any kind: the number that vm.max_map_count limits. */
int maps_count(const Root *root, int pid, uint64_t *ret);

/* Whether the kernel can be asked for single mappings (PROCMAP_QUERY): 1 or 0, or why /proc/self/maps cannot
 * be opened. */
int maps_can_query(const Root *root);

/* The stat of what is mapped at entry (through map_files; needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN). */
int maps_stat(const Root *root, int pid, const MapEntry *entry, FileStat *ret);
