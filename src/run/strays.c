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

/* Signals all children, stopped ones too. Returns how many got it. Children of theirs come to us when they
 * are gone. */
static unsigned children_signal(const Root *root, int signo)
{
    unsigned n = 0;
    DIR *proc = root_list(root, "proc");
    if (!proc)
        return 0;
    for (struct dirent *entry; (entry = readdir(proc));) {
        int pid = 0;
        ProcStat stat;
        if (text_pid(text_of(entry->d_name), &pid) < 0 || proc_stat_read(root, pid, &stat) < 0 ||
            stat.ppid != getpid() || stat.state == 'Z')
            continue;
        if (kill(pid, signo) == 0)
            n++;
        (void)kill(pid, SIGCONT);
    }
    closedir(proc);
    return n;
}

void strays_begin(Strays *strays)
{
    *strays = (Strays){.stage = STRAYS_AWAITED};
}

void strays_hurry(Strays *strays, const Root *root)
{
    if (strays->stage == STRAYS_NONE || strays->stage == STRAYS_LEFT)
        return;
    strays->stage++;
    strays->ticks = 0;
    if (strays->stage == STRAYS_ASKED)
        strays->asked = children_signal(root, SIGTERM);
    else if (strays->stage == STRAYS_KILLED)
        children_signal(root, SIGKILL);
}

void strays_tick(Strays *strays, const Root *root)
{
    if (strays->stage == STRAYS_NONE || strays->stage == STRAYS_LEFT)
        return;
    if (++strays->ticks >= seconds[strays->stage])
        strays_hurry(strays, root);
    else if (strays->stage == STRAYS_KILLED)
        children_signal(root, SIGKILL); /* those that have come to us since */
}
