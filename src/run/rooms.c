#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "macro.h"
#include "proc-stat.h"
#include "proc-status.h"
#include "rooms.h"

/*
 * LOOK_SECONDS: whoever lets go says so, unless it is killed or lets go in a way that the guard does not see.
 * SPARE_SECONDS: how old a look at the machine's memory may be; it costs more than one at our segments.
 * GRACE_SECONDS: for a feeder to print what happened.
 */
static const double LOOK_SECONDS = 0.05;
static const double SPARE_SECONDS = 0.05;
static const double GRACE_SECONDS = 1;

void rooms_free(Rooms *rooms)
{
    budget_free(&rooms->budget);
    for (size_t i = 0; i < rooms->n_doomed; i++)
        fd_close(rooms->doomed[i].pidfd);
    rooms->n_doomed = 0;
}

int rooms_ask(Rooms *rooms, Janitor *janitor, uint64_t id, int pid, int fd, const Message *message)
{
    struct stat st;
    ssize_t i = fstat(fd, &st) < 0 ? -errno : janitor_add(janitor, fd, 0, pid);
    if (i < 0)
        return (int)i;
    rooms->look = true;
    return budget_ask(&rooms->budget, &(Request){
                                          .id = id,
                                          .pid = pid,
                                          .device = st.st_dev,
                                          .inode = st.st_ino,
                                          .bytes = message->bytes,
                                          .batch = message->batch,
                                          .asked = now_seconds(),
                                          .asker = (Asker)message->asker,
                                      });
}

/* --- Whoever would be waited for for ever ------------------------------------------------------------- */

/* As survey.h knows a worker; the command itself, our child, is none. */
static bool is_worker(const Root *root, int pid)
{
    const uint64_t caught = UINT64_C(1) << (SIGBUS - 1) | UINT64_C(1) << (SIGSEGV - 1) |
                            UINT64_C(1) << (SIGFPE - 1) | UINT64_C(1) << (SIGTERM - 1);
    ProcStat stat;
    ProcStatus status;
    return proc_stat_read(root, pid, &stat) == 0 && proc_status_read(root, pid, &status) == 0 &&
           stat.ppid != getpid() && (status.signals_caught & caught) == caught;
}

static void doom(Rooms *rooms, const Request *request, double now)
{
    if (request->asker != ASKER_FEEDER || rooms->n_doomed == DOOMED_MAX ||
        !is_worker(rooms->root, request->pid))
        return;
    int pidfd = (int)syscall(SYS_pidfd_open, request->pid, 0);
    if (pidfd >= 0)
        rooms->doomed[rooms->n_doomed++] = (Doomed){request->pid, pidfd, now + GRACE_SECONDS};
}

static Refusal *refusal_of(Rooms *rooms, int pid)
{
    for (size_t i = 0; i < rooms->n_refusals; i++)
        if (rooms->refusals[i].pid == pid)
            return &rooms->refusals[i];
    if (rooms->n_refusals == REFUSALS_MAX)
        return NULL;
    Refusal *refusal = &rooms->refusals[rooms->n_refusals++];
    *refusal = (Refusal){.pid = pid};
    return refusal;
}

static void refusal_note(Rooms *rooms, const Request *request)
{
    Refusal *refusal = refusal_of(rooms, request->pid);
    if (!refusal)
        return;
    refusal->requests++;
    refusal->unheard += request->asker != ASKER_FIRST_THREAD;
    refusal->most_bytes = MAX(refusal->most_bytes, request->bytes);
}

/* A zombie takes signals, too. */
static bool has_exited(int pidfd)
{
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    return poll(&ended, 1, 0) > 0;
}

static void doomed_end(Rooms *rooms, const Doomed *doomed)
{
    if (has_exited(doomed->pidfd))
        return;
    if (rooms->ending)
        rooms->ending(rooms->context, doomed->pid);
    Refusal *refusal = refusal_of(rooms, doomed->pid);
    if (syscall(SYS_pidfd_send_signal, doomed->pidfd, SIGTERM, NULL, 0) == 0 && refusal)
        refusal->told = true;
}

void rooms_tick(Rooms *rooms)
{
    double now = now_seconds();
    if (rooms->spare_now) {
        rooms->spare = rooms->spare_now(rooms->context);
        rooms->spare_read = now;
        rooms->look = true;
    }
    for (size_t i = 0; i < rooms->n_doomed;) {
        Doomed *doomed = &rooms->doomed[i];
        if (now < doomed->due) {
            i++;
            continue;
        }
        doomed_end(rooms, doomed);
        fd_close(doomed->pidfd);
        *doomed = rooms->doomed[--rooms->n_doomed];
    }
}

/* --- Deciding ----------------------------------------------------------------------------------------- */

/* What is promised and not touched yet is no longer spare, though the kernel says so. */
static uint64_t unpromised(uint64_t bytes, uint64_t promised)
{
    return bytes == UINT64_MAX ? UINT64_MAX : bytes - MIN(bytes, promised);
}

static Spare spare_now(Rooms *rooms, const Janitor *janitor, double now)
{
    if (now - rooms->spare_read >= SPARE_SECONDS) {
        rooms->spare = rooms->spare_now(rooms->context);
        rooms->spare_read = now;
    }
    uint64_t promised = janitor_promised(janitor);
    return (Spare){unpromised(rooms->spare.bytes, promised), unpromised(rooms->spare.most_bytes, promised),
                   rooms->spare.tight};
}

static Facts facts_now(Rooms *rooms, Janitor *janitor, uint64_t more)
{
    double now = now_seconds();
    uint64_t used = janitor_used(janitor) + more;
    Spare spare = spare_now(rooms, janitor, now);
    Facts facts = {
        .used_bytes = used, .spare_bytes = spare.bytes, .most_bytes = spare.most_bytes, .now = now};
    uint64_t in_use = janitor_in_use(janitor);
    if (in_use < rooms->in_use)
        budget_released(&rooms->budget, now);
    rooms->in_use = in_use;
    return facts;
}

/* What is kept for speed alone goes before anybody waits. */
static bool make_room(Rooms *rooms, Janitor *janitor)
{
    rooms->spare_read = 0;
    return janitor_reclaim(janitor, rooms->budget.requests[0].bytes);
}

static void queue_note(Rooms *rooms)
{
    double now = now_seconds();
    if (rooms->queued_since > 0)
        rooms->queued_seconds += now - rooms->queued_since;
    rooms->queued_since = rooms->budget.n > 0 ? now : 0;
}

void rooms_settle(Rooms *rooms, Janitor *janitor, uint64_t more, RoomsAnswer answer, void *context)
{
    Budget *budget = &rooms->budget;
    if (!rooms->look && (budget->n == 0 || now_seconds() < rooms->next))
        return;
    /* Else what is kept for the next batch would be missing where the next batch is made. */
    if (rooms->spare.tight && janitor_reclaim(janitor, UINT64_MAX))
        rooms->spare_read = 0;
    bool reclaimed = false;
    while (budget->n > 0) {
        Request request;
        Facts facts = facts_now(rooms, janitor, more);
        Decision decision = budget_decide(budget, &facts, &request);
        if (decision == DECISION_GRANTED) {
            janitor_promise(janitor, request.device, request.inode, request.bytes);
            rooms->in_use += request.bytes;
            answer(context, request.id, 0);
        } else if (decision == DECISION_REFUSED) {
            refusal_note(rooms, &request);
            doom(rooms, &request, facts.now);
            answer(context, request.id, ENOSPC);
        } else if (reclaimed || !make_room(rooms, janitor))
            break;
        else
            reclaimed = true;
    }
    queue_note(rooms);
    rooms->look = false;
    rooms->next = now_seconds() + LOOK_SECONDS;
}

double rooms_queued(const Rooms *rooms)
{
    return rooms->queued_seconds + (rooms->queued_since > 0 ? now_seconds() - rooms->queued_since : 0);
}

uint32_t rooms_waiting(const Rooms *rooms)
{
    return (uint32_t)rooms->budget.n + rooms->spare.tight;
}

int rooms_timeout(const Rooms *rooms)
{
    return rooms->budget.n == 0 ? -1 : rooms->look ? 0 : (int)(LOOK_SECONDS * 1000);
}
