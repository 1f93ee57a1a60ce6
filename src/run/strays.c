#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include "proc-stat.h"
#include "strays.h"

static const unsigned seconds[] = {
    [STRAYS_AWAITED] = 3,
    [STRAYS_ASKED] = 2,
    [STRAYS_KILLED] = 2,
};

static bool is_other(const Strays *strays, int pid)
{
    for (size_t i = 0; i < strays->n_others; i++)
        if (strays->others[i] == pid)
            return true;
    return false;
}

/* The next living child in the list of processes, 0 at its end. */
static int child_next(const Root *root, DIR *proc)
{
    for (struct dirent *entry; (entry = readdir(proc));) {
        int pid = 0;
        ProcStat stat;
        if (text_pid(text_of(entry->d_name), &pid) == 0 && proc_stat_read(root, pid, &stat) == 0 &&
            stat.ppid == getpid() && stat.state != 'Z')
            return pid;
    }
    return 0;
}

/* Signals our children, stopped ones too; 0 only counts. Children of theirs come to us when they are gone. */
static unsigned children_signal(const Strays *strays, const Root *root, int signo)
{
    unsigned n = 0;
    DIR *proc = root_list(root, "proc");
    if (!proc)
        return 0;
    for (int pid = 0; (pid = child_next(root, proc)) > 0;) {
        if (is_other(strays, pid))
            continue;
        n += kill(pid, signo) == 0;
        if (signo)
            (void)kill(pid, SIGCONT);
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
    for (int pid = 0; ret->n_others < STRAYS_OTHERS_MAX && (pid = child_next(root, proc)) > 0;)
        ret->others[ret->n_others++] = pid;
    closedir(proc);
}

void strays_begin(Strays *strays)
{
    strays->stage = STRAYS_AWAITED;
}

bool strays_any(const Strays *strays, const Root *root)
{
    return strays->n_others == 0 || children_signal(strays, root, 0) > 0;
}

void strays_hurry(Strays *strays, const Root *root)
{
    if (strays->stage == STRAYS_NONE || strays->stage == STRAYS_LEFT)
        return;
    strays->stage++;
    strays->ticks = 0;
    if (strays->stage == STRAYS_ASKED)
        strays->asked = children_signal(strays, root, SIGTERM);
    else if (strays->stage == STRAYS_KILLED)
        children_signal(strays, root, SIGKILL);
}

void strays_tick(Strays *strays, const Root *root)
{
    if (strays->stage == STRAYS_NONE || strays->stage == STRAYS_LEFT)
        return;
    if (++strays->ticks >= seconds[strays->stage])
        strays_hurry(strays, root);
    else if (strays->stage == STRAYS_KILLED)
        children_signal(strays, root, SIGKILL); /* those that have come to us since */
}
