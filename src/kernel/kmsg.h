/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel log: which processes the OOM killer killed, and why. */
#pragma once

#include "root.h"

typedef enum OomScope {
    OOM_SCOPE_UNKNOWN, /* the log line with the reason is missing or unreadable */
    OOM_SCOPE_CGROUP,  /* a control group was at its limit */
    OOM_SCOPE_MACHINE, /* the machine was out of memory */
} OomScope;

typedef struct OomKill {
    double boottime; /* seconds since boot; negative when the log has no time */
    int pid;
    char comm[64];
    OomScope scope;
    char cgroup[256];    /* the group at its limit; "" unknown */
    uint64_t anon_bytes; /* of the victim; U64_UNKNOWN if the log does not say, like the next two */
    uint64_t file_bytes;
    uint64_t shmem_bytes; /* since 4.5 */
    uint32_t uid;         /* UINT32_MAX unknown (before 5.3) */
} OomKill;

typedef struct OomKills {
    OomKill *items; /* oldest first, the newest KMSG_KILLS_MAX of them */
    size_t n;
    size_t capacity;
} OomKills;

enum { KMSG_KILLS_MAX = 64 };

/* Accepts both records of /dev/kmsg ("6,1234,5678900,-;text") and dmesg's text ("[ 12.345] text", also with
 * -T or without times). */
int kmsg_parse(Text text, Arena *arena, OomKills *ret);

/* Reads /dev/kmsg if permitted, without blocking, or syslog(2) if there is none; in a captured tree the file
 * of that name. -EACCES/-EPERM: not permitted. */
int kmsg_read(const Root *root, Arena *arena, OomKills *ret);
