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

/* How long each stage lasts. TOLD_SECONDS: the first, when they were told to end by another signal than
 * SIGTERM, which they may ignore, as what a shell starts in the background ignores a Ctrl-C. */
static const double seconds[] = {
    [STRAYS_AWAITED] = 3,
    [STRAYS_ASKED] = 2,
    [STRAYS_KILLED] = 2,
};
static const double TOLD_SECONDS = 1;

/* Each round of SIGKILL brings up the children of those that it ended. So many generations only those have
 * that never end. */
enum { ROUNDS_MAX = 4096 };

static bool is_manager(const ProcStat *stat)
{
    return strcmp(stat->comm, "torch_shm_manag") == 0; /* names are cut at 15 characters */
}

static bool is_other(const Strays *strays, int pid)
{
    for (size_t i = 0; i < strays->n_others; i++)
        if (strays->others[i] == pid)
            return true;
    return false;
}

/* The next living child in the list of processes; false at its end. */
static bool child_next(const Root *root, DIR *proc, ProcStat *ret)
{
    for (struct dirent *entry; (entry = readdir(proc));) {
        int pid = 0;
        if (text_pid(text_of(entry->d_name), &pid) == 0 && proc_stat_read(root, pid, ret) == 0 &&
            ret->ppid == getpid() && ret->state != 'Z')
            return true;
    }
    return false;
}

typedef enum Whom {
    WHOM_ALL,
    WHOM_MANAGERS,
    WHOM_OTHERS, /* all but managers */
} Whom;

/* Signals our children, stopped ones too; 0 only counts. Children of theirs come to us when they are gone. */
static unsigned children_signal(const Strays *strays, const Root *root, int signo, Whom whom)
{
    unsigned n = 0;
    DIR *proc = root_list(root, "proc");
    if (!proc)
        return 0;
    for (ProcStat child; child_next(root, proc, &child);) {
        if (is_other(strays, child.pid) ||
            (whom != WHOM_ALL && is_manager(&child) != (whom == WHOM_MANAGERS)))
            continue;
        n += kill(child.pid, signo) == 0 || errno == EPERM;
        if (signo)
            (void)kill(child.pid, SIGCONT);
    }
    closedir(proc);
    return n;
}

/* Of whom it is the turn. */
static Whom whom_now(const Strays *strays)
{
    return strays->managers ? WHOM_ALL : WHOM_OTHERS;
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
}

static void ask(Strays *strays, const Root *root, double now)
{
    stage_enter(strays, STRAYS_ASKED, now);
    strays->asked += children_signal(strays, root, SIGTERM, whom_now(strays));
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
    if (signo && !told)
        (void)children_signal(strays, root, signo, WHOM_OTHERS);
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

static void managers_begin(Strays *strays, const Root *root, double now)
{
    strays->managers = true;
    stage_enter(strays, STRAYS_AWAITED, now);
    (void)children_signal(strays, root, MANAGER_SIGNAL, WHOM_MANAGERS);
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
    }
    if (!strays->managers && children_signal(strays, root, 0, WHOM_OTHERS) == 0)
        managers_begin(strays, root, now);
}

void strays_advance(Strays *strays, const Root *root, double now)
{
    if (is_under_way(strays) && now >= strays->until)
        strays_hurry(strays, root, now);
}

int strays_timeout(const Strays *strays, double now)
{
    return is_under_way(strays) ? (int)ceil(MAX(strays->until - now, 0) * 1000) : -1;
}
