/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "job-processes.h"
#include "macro.h"
#include "proc-path.h"
#include "protocol.h"
#include "sentinel.h"
#include "strays.h"

/* ROUNDS_MAX: a process may be created while we go through the others. One that survives this many rounds is
 * stuck in the kernel. */
enum { MARK_MAX = 128, ROUNDS_MAX = 300, ROUND_MSEC = 10 };

typedef struct WatchedJob {
    pid_t command;
    char mark[MARK_MAX];
} WatchedJob;

/* --- The sentinel itself ------------------------------------------------------------------------------ */

static void descriptors_close(unsigned first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0U, 0) == 0)
        return;
#endif
    DIR *list = opendir("/proc/self/fd"); /* before Linux 5.9 */
    if (!list)
        return;
    for (struct dirent *entry; (entry = readdir(list));) {
        int fd = atoi(entry->d_name);
        if (fd >= (int)first && fd != dirfd(list))
            close(fd);
    }
    closedir(list);
}

/* Where the kernel keeps the arguments and the environment of this process: /proc/self/stat, from its 48th
 * word on. */
static bool places_read(uint64_t ret[static 4])
{
    enum { WORDS_BEFORE = 45 }; /* since the name */
    _cleanup_buffer_ Buffer stat = {0};
    Root root;
    if (root_open(NULL, &root) < 0)
        return false;
    int r = proc_read(&root, 0, "stat", &stat);
    root_close(&root);
    const char *name_end = r < 0 ? NULL : memrchr(stat.data, ')', stat.size);
    if (!name_end)
        return false;
    Text rest = {name_end + 1, stat.size - (size_t)(name_end + 1 - stat.data)};
    Text word;
    for (unsigned i = 0; i < WORDS_BEFORE; i++)
        if (!text_word(&rest, &word))
            return false;
    for (unsigned i = 0; i < 4; i++)
        if (!text_word(&rest, &word) || text_u64(word, 10, &ret[i]) < 0 || ret[i] == 0)
            return false;
    return ret[0] < ret[1] && ret[2] < ret[3];
}

/*
 * Overwrites the arguments, so that `ps` says what this process is, and `pkill -f` does not take it for us.
 * The environment is overwritten, too: it may contain the mark of an outer run, whose sentinel would end us
 * before we have ended our job.
 */
static void title_set(pid_t supervisor)
{
    uint64_t places[4];
    char title[96];
    prctl(PR_SET_NAME, SENTINEL_COMM);
    if (!places_read(places))
        return;
    size_t room = places[1] - places[0];
    memset((void *)(uintptr_t)places[2], 0, places[3] - places[2]);
    memset((void *)(uintptr_t)places[0], 0, room);
    int n = snprintf(title, sizeof title, SENTINEL_COMM ": ends the job if process %d is killed",
                     (int)supervisor);
    memcpy((void *)(uintptr_t)places[0], title, MIN((size_t)n, room - 1));
}

static bool file_contains(const Root *root, int pid, const char *name, const char *needle, Buffer *scratch)
{
    return proc_read(root, pid, name, scratch) >= 0 && scratch->size > 0 &&
           memmem(scratch->data, scratch->size, needle, strlen(needle));
}

static bool is_of_job(const Root *root, const WatchedJob *watched, const ProcStat *stat, Buffer *scratch)
{
    return (watched->command > 0 && stat->pgrp == watched->command) ||
           (watched->mark[0] != '\0' && file_contains(root, stat->pid, "environ", watched->mark, scratch));
}

/*
 * Processes that clean up after the others, and exit by themselves when the others have gone:
 * torch_shm_manager, and the resource tracker of Python's multiprocessing, which removes semaphores from
 * /dev/shm. A kill -9 of the training alone would not have reached them.
 */
static bool is_cleaner(const Root *root, const ProcStat *stat, Buffer *scratch)
{
    return stray_is_manager(stat) ||
           file_contains(root, stat->pid, "cmdline", "resource_tracker import main", scratch) ||
           file_contains(root, stat->pid, "cmdline", "semaphore_tracker import main", scratch);
}

/* Kills all except the cleaners, mostly parents before their children. Returns how many there were. */
static unsigned job_kill(const Root *root, const WatchedJob *watched)
{
    _cleanup_buffer_ Buffer scratch = {0};
    unsigned n = 0;
    DIR *proc = root_list(root, "proc");
    if (!proc)
        return 0;
    for (struct dirent *entry; (entry = readdir(proc));) {
        int pid = 0;
        ProcStat stat;
        if (text_pid(text_of(entry->d_name), &pid) < 0 || proc_stat_read(root, pid, &stat) < 0 ||
            proc_stat_is_over(&stat) || !is_of_job(root, watched, &stat, &scratch))
            continue;
        if (is_cleaner(root, &stat, &scratch))
            (void)kill(pid, MANAGER_SIGNAL); /* every other process ignores it, and the manager acts on it
                                                only when it is alone */
        else
            n += kill(pid, SIGKILL) == 0;
    }
    closedir(proc);
    return n;
}

static void job_end(const WatchedJob *watched)
{
    Root root;
    struct timespec pause = {.tv_nsec = ROUND_MSEC * 1000000};
    if (watched->command == 0 && watched->mark[0] == '\0')
        return;
    if (root_open(NULL, &root) < 0) { /* there is no /proc */
        if (watched->command > 0)
            (void)kill(-watched->command, SIGKILL);
        return;
    }
    for (int i = 0; i < ROUNDS_MAX && job_kill(&root, watched) > 0; i++)
        nanosleep(&pause, NULL);
    root_close(&root);
}

_Noreturn static void sentinel_main(int fd, pid_t supervisor)
{
    sigset_t all;
    WatchedJob watched = {0};
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    (void)setsid();
    if (dup2(fd, STDIN_FILENO) < 0 || chdir("/") < 0)
        _exit(1);
    descriptors_close(STDIN_FILENO + 1);
    title_set(supervisor);
    while (recv(STDIN_FILENO, &watched, sizeof watched, 0) == sizeof watched)
        ;
    job_end(&watched);
    _exit(0);
}

/* --- The supervisor's side ---------------------------------------------------------------------------- */

int sentinel_start(Sentinel *ret)
{
    int ends[2];
    pid_t supervisor = getpid();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        sentinel_main(ends[0], supervisor);
    }
    int r = pid < 0 ? -errno : 0;
    fd_close(ends[0]);
    if (r < 0) {
        fd_close(ends[1]);
        return r;
    }
    *ret = (Sentinel){.pid = pid, .fd = ends[1]};
    return 0;
}

void sentinel_watch(int fd, pid_t command, const char *mark)
{
    WatchedJob watched = {.command = command};
    if (fd < 0)
        return;
    if (mark)
        strncpy(watched.mark, mark, sizeof watched.mark - 1);
    (void)send(fd, &watched, sizeof watched, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* It ends by itself rather than being killed: an outer run is told how our children end, and would take a
 * kill for a death in its job. */
void sentinel_end(Sentinel *sentinel)
{
    sentinel_watch(sentinel->fd, 0, NULL);
    fd_close(sentinel->fd);
    if (sentinel->pid > 0) {
        kill(sentinel->pid, SIGCONT); /* it may have been stopped */
        (void)waitpid(sentinel->pid, NULL, 0);
    }
    *sentinel = SENTINEL_NONE;
}
