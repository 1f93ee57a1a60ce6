#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "proc-stat.h"
#include "strays.h"

static const unsigned seconds[] = {
    [STRAYS_AWAITED] = 3,
    [STRAYS_ASKED] = 2,
    [STRAYS_KILLED] = 2,
};

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

/* Signals our children, stopped ones too; 0 only counts. Children of theirs come to us when they are gone. */
static unsigned children_signal(const Strays *strays, const Root *root, int signo, bool managers)
{
    unsigned n = 0;
    DIR *proc = root_list(root, "proc");
    if (!proc)
        return 0;
    for (ProcStat child; child_next(root, proc, &child);) {
        if (is_other(strays, child.pid) || (!managers && is_manager(&child)))
            continue;
        n += kill(child.pid, signo) == 0 || errno == EPERM;
        if (signo)
            (void)kill(child.pid, SIGCONT);
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

void strays_begin(Strays *strays)
{
    strays->stage = STRAYS_AWAITED;
}

bool strays_any(const Strays *strays, const Root *root)
{
    return strays->n_others == 0 || children_signal(strays, root, 0, true) > 0;
}

static bool is_under_way(const Strays *strays)
{
    return strays->stage != STRAYS_NONE && strays->stage != STRAYS_LEFT;
}

static void stage_enter(Strays *strays, StrayStage stage)
{
    strays->stage = stage;
    strays->ticks = 0;
}

static void managers_begin(Strays *strays)
{
    strays->managers = true;
    stage_enter(strays, STRAYS_AWAITED);
}

void strays_hurry(Strays *strays, const Root *root)
{
    if (!is_under_way(strays))
        return;
    if (strays->stage == STRAYS_KILLED && !strays->managers) { /* some others cannot be killed */
        managers_begin(strays);
        return;
    }
    stage_enter(strays, strays->stage + 1);
    if (strays->stage == STRAYS_ASKED)
        strays->asked += children_signal(strays, root, SIGTERM, strays->managers);
    else if (strays->stage == STRAYS_KILLED)
        (void)children_signal(strays, root, SIGKILL, strays->managers);
    else
        strays->left = children_signal(strays, root, 0, true);
}

void strays_reaped(Strays *strays, const Root *root)
{
    if (strays->stage != STRAYS_KILLED || strays->rounds >= ROUNDS_MAX)
        return;
    strays->rounds++;
    if (children_signal(strays, root, SIGKILL, strays->managers) > 0)
        strays->ticks = 0;
}

void strays_tick(Strays *strays, const Root *root)
{
    if (!is_under_way(strays))
        return;
    if (!strays->managers && children_signal(strays, root, 0, false) == 0)
        managers_begin(strays);
    else if (++strays->ticks >= seconds[strays->stage])
        strays_hurry(strays, root);
}
