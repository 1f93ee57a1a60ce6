/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "kmsg.h"

enum {
    KMSG_RECORD_MAX = 8192, /* the kernel's own limit for one record */
    SYSLOG_ACTION_READ_ALL = 3,
    SYSLOG_ACTION_SIZE_BUFFER = 10,
    SAME_KILL_SECONDS = 1,
};

/*
 * The kernel reports one kill in up to three lines. "oom-kill:…" (since 5.0; left out when many come at
 * once), or before that "Task in A killed as a result of limit of B" with "Kill process N … or sacrifice
 * child", give the reason; "Killed process N …" gives the victim. `hint` keeps the reason until the victim
 * follows.
 */
typedef struct Log {
    OomKill *ring; /* KMSG_KILLS_MAX of them */
    size_t n;      /* kills so far: the newest is at (n - 1) % KMSG_KILLS_MAX */
    OomKill hint;  /* pid 0: only about the reason */
    bool group;    /* further kills have the reason of the last one: memory.oom.group is set */
} Log;

static const OomKill no_hint = {
    .boottime = -1,
    .anon_bytes = U64_UNKNOWN,
    .file_bytes = U64_UNKNOWN,
    .shmem_bytes = U64_UNKNOWN,
    .uid = UINT32_MAX,
};

static bool take_prefix(Text *text, const char *prefix)
{
    if (!text_starts(*text, prefix))
        return false;
    size_t n = strlen(prefix);
    *text = (Text){text->data + n, text->size - n};
    return true;
}

/* Splits at the first or last occurrence of separator. False: there is none. */
static bool split(Text text, const char *separator, bool last, Text *ret_before, Text *ret_after)
{
    size_t n = strlen(separator);
    const char *found = NULL;
    if (last) {
        for (size_t i = text.size; i >= n && !found; i--)
            if (memcmp(text.data + i - n, separator, n) == 0)
                found = text.data + i - n;
    } else if (text.size > 0)
        found = memmem(text.data, text.size, separator, n);
    if (!found)
        return false;
    size_t before = (size_t)(found - text.data);
    Text after = {found + n, text.size - before - n};
    *ret_before = (Text){text.data, before};
    *ret_after = after;
    return true;
}

static bool split_first(Text text, const char *separator, Text *ret_before, Text *ret_after)
{
    return split(text, separator, false, ret_before, ret_after);
}

static bool split_last(Text text, const char *separator, Text *ret_before, Text *ret_after)
{
    return split(text, separator, true, ret_before, ret_after);
}

/* Takes decimal digits off *text. */
static int take_number(Text *text, uint64_t *ret)
{
    size_t n = 0;
    while (n < text->size && text->data[n] >= '0' && text->data[n] <= '9')
        n++;
    int r = text_u64((Text){text->data, n}, 10, ret);
    if (r >= 0)
        *text = (Text){text->data + n, text->size - n};
    return r;
}

/* Names and paths: /dev/kmsg and dmesg write unprintable characters, and the backslash, as \xNN. Truncated to
 * fit. */
static void copy_unescaped(Text text, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < text.size && n + 1 < size; i++) {
        uint32_t byte = 0;
        if (text.data[i] == '\\' && text.size - i > 3 && text.data[i + 1] == 'x' &&
            text_u32((Text){text.data + i + 2, 2}, 16, &byte) == 0 && byte != 0) {
            out[n++] = (char)byte;
            i += 3;
        } else
            out[n++] = text.data[i];
    }
    out[n] = '\0';
}

/* "[   12.345678]" or "[Mon Nov 16 12:00:00 2026]", followed by "[ T123]" if the kernel adds the caller. */
static void take_brackets(Text *text, double *boottime)
{
    Text before;
    Text after;
    while (text_starts(*text, "[") && split_first(*text, "]", &before, &after)) {
        Text inner = text_trim((Text){before.data + 1, before.size - 1});
        double seconds = 0;
        if (*boottime < 0 && text_contains(inner, ".") && text_decimal(inner, &seconds) == 0)
            *boottime = seconds;
        *text = after;
        while (take_prefix(text, " "))
            ;
    }
}

/* The message without its prefixes, and its time if there is one. */
static Text message_of(Text line, double *ret_boottime)
{
    double boottime = -1;
    Text prefix;
    Text message = line;
    Text rest;
    Text fields[3];
    uint64_t usec = 0;
    uint64_t level = 0;
    if (split_first(line, ";", &prefix, &rest) && text_until(&prefix, ',', &fields[0]) &&
        text_until(&prefix, ',', &fields[1]) && text_until(&prefix, ',', &fields[2]) &&
        text_u64(fields[0], 10, &level) == 0 && text_u64(fields[1], 10, &level) == 0 &&
        text_u64(fields[2], 10, &usec) == 0) {
        boottime = (double)usec / 1e6;
        message = rest;
    } else {
        rest = line; /* "<6>" is syslog(2)'s, " kernel: " the system log's and journalctl's */
        if ((take_prefix(&rest, "<") && take_number(&rest, &level) == 0 && take_prefix(&rest, ">")) ||
            (!text_starts(line, "[") && split_first(line, " kernel: ", &prefix, &rest)))
            message = rest;
        take_brackets(&message, &boottime);
    }
    *ret_boottime = boottime;
    return message;
}

/* A log of several boots may go back in time. */
static bool is_soon(double first, double second)
{
    return second - first < SAME_KILL_SECONDS && first - second < SAME_KILL_SECONDS;
}

/* When a group is killed as one, its first victim is reported again with the others. */
static void log_add(Log *log, const OomKill *kill)
{
    for (size_t i = 0; i < MIN(log->n, (size_t)KMSG_KILLS_MAX); i++)
        if (log->ring[i].pid == kill->pid && is_soon(log->ring[i].boottime, kill->boottime))
            return;
    log->ring[log->n++ % KMSG_KILLS_MAX] = *kill;
}

/* A reason with a victim that no "Killed process" followed: the log is truncated, or only part of it is here.
 */
static void hint_flush(Log *log)
{
    if (log->hint.pid > 0)
        log_add(log, &log->hint);
    log->hint = no_hint;
    log->group = false;
}

/*
 * oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,
 * task=python3,pid=12,uid=0      The name may hold commas: what follows it is looked for from the end.
 */
static int reason_parse(Text message, double boottime, OomKill *ret)
{
    OomKill kill = no_hint;
    Text before;
    Text uid;
    Text pid;
    Text name;
    Text group;
    Text rest;
    if (!take_prefix(&message, "oom-kill:constraint=") || !split_last(message, ",uid=", &before, &uid) ||
        !split_last(before, ",pid=", &before, &pid) || text_pid(pid, &kill.pid) < 0 ||
        !split_first(before, ",task=", &before, &name))
        return -EBADMSG;
    (void)text_u32(text_trim(uid), 10, &kill.uid);
    kill.boottime = boottime;
    copy_unescaped(name, kill.comm, sizeof kill.comm);
    kill.scope = text_starts(message, "CONSTRAINT_MEMCG,") ? OOM_SCOPE_CGROUP : OOM_SCOPE_MACHINE;
    if (kill.scope == OOM_SCOPE_CGROUP && split_first(before, ",oom_memcg=", &rest, &group) &&
        split_last(group, ",task_memcg=", &group, &rest))
        copy_unescaped(group, kill.cgroup, sizeof kill.cgroup);
    *ret = kill;
    return 0;
}

static void size_take(Text sizes, const char *key, uint64_t *ret_bytes)
{
    Text before;
    Text value;
    uint64_t kib = 0;
    if (split_first(sizes, key, &before, &value) && take_number(&value, &kib) == 0 &&
        text_starts(value, "kB") && !__builtin_mul_overflow(kib, 1024, &kib))
        *ret_bytes = kib;
}

/*
 * What follows "Killed process ", the last two as some distributions had it:
 *   123 (python3) total-vm:1kB, anon-rss:1kB, file-rss:1kB, shmem-rss:1kB, UID:1000 pgtables:1kB …
 *   123 (python3), UID 1000, total-vm:…
 *   123, UID 1000, (python3) total-vm:…
 */
static int victim_parse(Text text, OomKill *kill)
{
    Text head = text;
    Text sizes = {0};
    uint64_t pid = 0;
    uint64_t uid = UINT32_MAX;
    (void)split_last(text, " total-vm:", &head, &sizes);
    if (take_number(&head, &pid) < 0 || pid == 0 || pid > INT32_MAX)
        return -EBADMSG;
    if (take_prefix(&head, ", UID ")) {
        if (take_number(&head, &uid) < 0 || !take_prefix(&head, ","))
            return -EBADMSG;
    }
    if (!take_prefix(&head, " ("))
        return -EBADMSG;

    Text name;
    Text after;
    if (!split_last(head, ")", &name, &after))
        return -EBADMSG;
    if (take_prefix(&after, ", UID "))
        (void)take_number(&after, &uid);
    size_take(sizes, " anon-rss:", &kill->anon_bytes);
    size_take(sizes, " file-rss:", &kill->file_bytes);
    size_take(sizes, " shmem-rss:", &kill->shmem_bytes);
    Text before;
    if (split_first(sizes, " UID:", &before, &after))
        (void)take_number(&after, &uid);

    kill->pid = (int)pid;
    if (uid <= UINT32_MAX)
        kill->uid = (uint32_t)uid;
    copy_unescaped(name, kill->comm, sizeof kill->comm);
    return 0;
}

/* The other processes of a group die right after the first, for the same reason. A later kill has a reason of
 * its own, or none: the kernel leaves reasons out when many kills come in a row. */
static const OomKill *kill_reason(const Log *log, double boottime)
{
    const OomKill *last = log->group ? &log->ring[(log->n - 1) % KMSG_KILLS_MAX] : NULL;
    return last && is_soon(last->boottime, boottime) ? last : &log->hint;
}

static void victim_add(Log *log, OomKill *kill)
{
    if (log->hint.pid > 0 && log->hint.pid != kill->pid)
        hint_flush(log);
    const OomKill *reason = kill_reason(log, kill->boottime);
    if (kill->scope == OOM_SCOPE_UNKNOWN)
        kill->scope = reason->scope;
    if (kill->scope == OOM_SCOPE_CGROUP)
        memcpy(kill->cgroup, reason->cgroup, sizeof kill->cgroup);
    if (kill->uid == UINT32_MAX)
        kill->uid = log->hint.uid;
    log->hint = no_hint;
    log_add(log, kill);
}

static OomScope scope_of(Text prefix)
{
    return text_starts(prefix, "Memory cgroup out of memory") ? OOM_SCOPE_CGROUP
           : text_starts(prefix, "Out of memory")             ? OOM_SCOPE_MACHINE
                                                              : OOM_SCOPE_UNKNOWN;
}

static void log_feed(Log *log, Text line)
{
    double boottime = -1;
    Text message = message_of(line, &boottime);
    Text before;
    Text after;
    OomKill kill;

    if (split_first(message, " invoked oom-killer: ", &before, &after))
        hint_flush(log);
    else if (text_starts(message, "Task in ") &&
             split_last(message, " killed as a result of limit of ", &before, &after)) {
        hint_flush(log);
        log->hint.scope = OOM_SCOPE_CGROUP;
        copy_unescaped(text_trim(after), log->hint.cgroup, sizeof log->hint.cgroup);
    } else if (reason_parse(message, boottime, &kill) >= 0) {
        hint_flush(log);
        log->hint = kill;
    } else if (text_contains(message, " is already exiting. Skip killing "))
        log->hint = no_hint;
    else if (text_starts(message, "Tasks in ") && text_contains(message, " due to memory.oom.group set"))
        log->group = log->n > 0;
    else if (split_first(message, "Kill process ", &before, &after) &&
             scope_of(before) != OOM_SCOPE_UNKNOWN) {
        log->hint.scope = scope_of(before);
        log->hint.pid = 0; /* its child may die in its place */
        log->hint.uid = UINT32_MAX;
    } else if (split_first(message, "Killed process ", &before, &after) &&
               (before.size == 0 || scope_of(before) != OOM_SCOPE_UNKNOWN)) {
        kill = no_hint;
        kill.boottime = boottime;
        kill.scope = scope_of(before);
        if (victim_parse(after, &kill) >= 0)
            victim_add(log, &kill);
    }
}

static int log_open(Arena *arena, Log *ret)
{
    *ret = (Log){.ring = arena_alloc(arena, KMSG_KILLS_MAX * sizeof *ret->ring), .hint = no_hint};
    return ret->ring ? 0 : -ENOMEM;
}

static int log_finish(Log *log, Arena *arena, OomKills *ret)
{
    OomKills kills = {0};
    hint_flush(log);
    for (size_t i = log->n - MIN(log->n, (size_t)KMSG_KILLS_MAX); i < log->n; i++) {
        OomKill *slot = ARENA_PUSH(arena, kills.items, kills.n, kills.capacity);
        if (!slot)
            return -ENOMEM;
        *slot = log->ring[i % KMSG_KILLS_MAX];
    }
    *ret = kills;
    return 0;
}

int kmsg_parse(Text text, Arena *arena, OomKills *ret)
{
    Log log;
    int r = log_open(arena, &log);
    if (r < 0)
        return r;
    TEXT_FOR_EACH_LINE (line, text)
        log_feed(&log, line);
    return log_finish(&log, arena, ret);
}

/* One record per read. EPIPE: the record that we were about to read was overwritten; the next read continues
 * after it. */
static int device_read(int fd, Arena *arena, OomKills *ret)
{
    char record[KMSG_RECORD_MAX];
    Log log;
    int r = log_open(arena, &log);
    if (r < 0)
        return r;
    for (;;) {
        ssize_t n = read(fd, record, sizeof record);
        if (n < 0 && (errno == EPIPE || errno == EINTR))
            continue;
        if (n < 0 && errno != EAGAIN)
            return -errno;
        if (n <= 0)
            return log_finish(&log, arena, ret);
        Text rest = {record, (size_t)n};
        Text line;
        if (text_line(&rest, &line)) /* what follows the first line is for machines: " SUBSYSTEM=…" */
            log_feed(&log, line);
    }
}

/* Containers have no /dev/kmsg, but some may ask the kernel directly. */
static int syslog_read(Arena *arena, OomKills *ret)
{
    int size = klogctl(SYSLOG_ACTION_SIZE_BUFFER, NULL, 0);
    if (size < 0)
        return -errno;
    _cleanup_arena_ Arena scratch = {0};
    char *text = arena_alloc(&scratch, (size_t)size + 1);
    if (!text)
        return -ENOMEM;
    int n = klogctl(SYSLOG_ACTION_READ_ALL, text, size);
    return n < 0 ? -errno : kmsg_parse((Text){text, (size_t)n}, arena, ret);
}

int kmsg_read(const Root *root, Arena *arena, OomKills *ret)
{
    static const char path[] = "dev/kmsg";
    if (!root->live) {
        _cleanup_buffer_ Buffer text = {0};
        int r = root_read(root, path, ROOT_FILE_MAX, &text);
        if (r == -ENOENT) /* the user who captured the tree may not have been permitted to read the log */
            return -EPERM;
        return r < 0 ? r : kmsg_parse((Text){text.data, text.size}, arena, ret);
    }
    /* In containers it may be anything: a link to the console, a FIFO. */
    struct stat st;
    if (fstatat(root->fd, path, &st, 0) < 0 || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 11))
        return syslog_read(arena, ret);
    _cleanup_close_ int fd = openat(root->fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : device_read(fd, arena, ret);
}
