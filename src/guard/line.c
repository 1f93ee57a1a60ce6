#include <errno.h>
#include <stdatomic.h>

#include "guard.h"

/*
 * The supervisor's line of progress and what the job writes share a terminal. Whoever of the job writes there
 * first takes the line away, so that nothing is appended to it and nothing of it is left; and the supervisor
 * is told whether the cursor is at the margin, so that it does not draw over half a line.
 *
 * Signal handlers write, too: nothing is touched but words of the counters' page, each by itself. Two who
 * write at once may both find their words beside the line, as on any terminal; no more can happen.
 */
static bool is_its_terminal(int fd)
{
    uint64_t terminal = atomic_load_explicit(&guard_counters()->terminal, memory_order_relaxed);
    FileId id;
    return terminal != 0 && file_id(fd, &id) == 0 && id.special == terminal;
}

void line_make_way(int fd)
{
    static const char erase[] = "\r\033[K";
    Counters *counters = guard_counters();
    if (atomic_load_explicit(&counters->line, memory_order_relaxed) != 0 && is_its_terminal(fd) &&
        atomic_exchange_explicit(&counters->line, 0, memory_order_relaxed) != 0)
        (void)real_write(fd, erase, sizeof erase - 1);
}

void line_note(int fd, char last)
{
    Counters *counters = guard_counters();
    int saved = errno;
    if (is_its_terminal(fd)) {
        atomic_store_explicit(&counters->unfinished, last != '\n', memory_order_relaxed);
        atomic_store_explicit(&counters->wrote_msec, now_msec(), memory_order_relaxed);
    }
    errno = saved;
}
