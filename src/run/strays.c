/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "macro.h"
#include "proc-stat.h"
#include "protocol.h"
#include "strays.h"

/* How long each stage lasts. TOLD_SECONDS: the first one, if they were told to end by a signal other than
 * SIGTERM. They may ignore it, as processes that a shell starts in the background ignore a Ctrl-C. */
static const double seconds[] = {
    [STRAYS_AWAITED] = 3,
    [STRAYS_ASKED] = 2,
    [STRAYS_KILLED] = 2,
};
static const double TOLD_SECONDS = 1;

/* A manager that is still starting does not notice MANAGER_SIGNAL, so it is sent again at this interval. */
static const double REMIND_SECONDS = 0.25;

/* Each round of SIGKILL brings up the children of the killed processes. Only a tree that never ends has this
 * many generations. */
enum { ROUNDS_MAX = 4096 };

bool stray_is_manager(const ProcStat *stat)
{
    return strcmp(stat->comm, "torch_shm_manag") == 0; /* names are truncated to 15 characters */
}

bool strays_has(const Strays *strays, int pid)
{
    for (size_t i = 0; i < strays->n_others; i++)
        if (strays->others[i] == pid)
            return false;
    return true;
}

/*
 * The next child in the list of processes; false at its end. One in state Z counts: a process shows that
 * state when its first thread has ended, while others may still run. Its own children do not become ours
 * until the last one has ended.
 */
static bool child_next(const Root *root, DIR *proc, ProcStat *ret)
{
    for (struct dirent *entry; (entry = readdir(proc));) {
        int pid = 0;
        if (text_pid(text_of(entry->d_name), &pid) == 0 && proc_stat_read(root, pid, ret) == 0 &&
            ret->ppid == getpid())
            return true;
    }
    return false;
}

typedef enum Whom {
    WHOM_ALL,
    WHOM_MANAGERS,
    WHOM_OTHERS, /* all but managers */
} Whom;

static bool is_whom(const Strays *strays, const ProcStat *child, Whom whom)
{
    return strays_has(strays, child->pid) &&
           (whom == WHOM_ALL || stray_is_manager(child) == (whom == WHOM_MANAGERS));
}

static bool is_signalled(const Strays *strays, int pid)
{
    for (size_t i = 0; i < strays->n_signalled; i++)
        if (strays->signalled[i] == pid)
            return true;
    return false;
}

/* Also if it is stopped. False: it has gone. Signal 0 only asks that. */
static bool stray_signal(int pid, int signo)
{
    bool there = kill(pid, signo) == 0 || errno == EPERM;
    if (signo)
        (void)kill(pid, SIGCONT);
    return there;
}

/* Signals our children. Their children become ours when they have ended. */
static unsigned children_signal(const Strays *strays, const Root *root, int signo, Whom whom)
{
    unsigned n = 0;
    DIR *proc = root_list(root, "proc");
    if (!proc)
        return 0;
    for (ProcStat child; child_next(root, proc, &child);)
        if (is_whom(strays, &child, whom))
            n += stray_signal(child.pid, signo);
    closedir(proc);
    return n;
}

/* Whose turn it is. */
static Whom whom_now(const Strays *strays)
{
    return strays->managers ? WHOM_ALL : WHOM_OTHERS;
}

/* Each process gets it once: a second SIGTERM would interrupt its reaction to the first. Returns how many
 * were new. */
static unsigned children_tell(Strays *strays, const Root *root)
{
    unsigned n = 0;
    DIR *proc = strays->signo ? root_list(root, "proc") : NULL;
    if (!proc)
        return 0;
    for (ProcStat child; child_next(root, proc, &child);) {
        if (child.state == 'Z' || !is_whom(strays, &child, whom_now(strays)) ||
            is_signalled(strays, child.pid) || strays->n_signalled == STRAYS_SIGNALLED_MAX)
            continue;
        strays->signalled[strays->n_signalled++] = child.pid;
        n += stray_signal(child.pid, strays->signo);
    }
    closedir(proc);
    return n;
}

void strays_open(const Root *root, Strays *ret)
{
    *ret = (Strays){0};
    DIR *proc = root_list(root, "proc");
    if (!proc)
        return;
    for (ProcStat child; ret->n_others < STRAYS_OTHERS_MAX && child_next(root, proc, &child);)
        ret->others[ret->n_others++] = child.pid;
    closedir(proc);
}

static void stage_enter(Strays *strays, StrayStage stage, double now)
{
    strays->stage = stage;
    strays->until = stage == STRAYS_LEFT ? INFINITY : now + seconds[stage];
    strays->signo = stage == STRAYS_ASKED ? SIGTERM : 0;
    strays->n_signalled = 0;
}

static void ask(Strays *strays, const Root *root, double now)
{
    stage_enter(strays, STRAYS_ASKED, now);
    strays->asked += children_tell(strays, root);
}

void strays_begin(Strays *strays, const Root *root, int signo, bool told, double now)
{
    stage_enter(strays, STRAYS_AWAITED, now);
    strays->told = signo != 0;
    if (signo == SIGTERM) {
        ask(strays, root, now);
        return;
    }
    if (signo)
        strays->until = now + TOLD_SECONDS;
    strays->signo = told ? 0 : signo;
    (void)children_tell(strays, root);
}

bool strays_are_told(const Strays *strays)
{
    return strays->told || strays->stage >= STRAYS_ASKED;
}

bool strays_any(const Strays *strays, const Root *root)
{
    return strays->n_others == 0 || children_signal(strays, root, 0, WHOM_ALL) > 0;
}

static bool is_under_way(const Strays *strays)
{
    return strays->stage != STRAYS_NONE && strays->stage != STRAYS_LEFT;
}

static void managers_tell(Strays *strays, const Root *root, double now)
{
    strays->remind = now + REMIND_SECONDS;
    (void)children_signal(strays, root, MANAGER_SIGNAL, WHOM_MANAGERS);
}

static void managers_begin(Strays *strays, const Root *root, double now)
{
    strays->managers = true;
    stage_enter(strays, STRAYS_AWAITED, now);
    managers_tell(strays, root, now);
}

static bool managers_are_awaited(const Strays *strays)
{
    return strays->managers && strays->stage == STRAYS_AWAITED;
}

void strays_hurry(Strays *strays, const Root *root, double now)
{
    if (!is_under_way(strays))
        return;
    if (strays->stage == STRAYS_AWAITED) {
        ask(strays, root, now);
    } else if (strays->stage == STRAYS_ASKED) {
        stage_enter(strays, STRAYS_KILLED, now);
        (void)children_signal(strays, root, SIGKILL, whom_now(strays));
    } else if (!strays->managers) { /* some others cannot be killed */
        managers_begin(strays, root, now);
    } else {
        stage_enter(strays, STRAYS_LEFT, now);
        strays->left = children_signal(strays, root, 0, WHOM_ALL);
    }
}

void strays_reaped(Strays *strays, const Root *root, double now)
{
    if (!is_under_way(strays))
        return;
    if (strays->stage == STRAYS_KILLED && strays->rounds < ROUNDS_MAX) {
        strays->rounds++;
        if (children_signal(strays, root, SIGKILL, whom_now(strays)) > 0)
            stage_enter(strays, STRAYS_KILLED, now);
    } else if (strays->stage == STRAYS_ASKED)
        strays->asked += children_tell(strays, root);
    else
        (void)children_tell(strays, root);
    if (!strays->managers && children_signal(strays, root, 0, WHOM_OTHERS) == 0)
        managers_begin(strays, root, now);
}

bool strays_are_due(const Strays *strays, double now)
{
    return strays->stage == STRAYS_AWAITED && !strays->told && !strays->managers && now >= strays->until;
}

void strays_advance(Strays *strays, const Root *root, double now)
{
    if (is_under_way(strays) && now >= strays->until)
        strays_hurry(strays, root, now);
    else if (managers_are_awaited(strays) && now >= strays->remind)
        managers_tell(strays, root, now);
}

int strays_timeout(const Strays *strays, double now)
{
    double next = managers_are_awaited(strays) ? MIN(strays->until, strays->remind) : strays->until;
    return is_under_way(strays) ? (int)ceil(MAX(next - now, 0) * 1000) : -1;
}
