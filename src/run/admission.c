/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "admission.h"
#include "clock.h"
#include "macro.h"
#include "proc-stat.h"
#include "proc-status.h"

/*
 * LOOK_SECONDS: a process says when it lets go of memory, unless it is killed or the guard cannot see it.
 * SPARE_SECONDS: how old a reading of the machine's memory may be; it costs more than one of our segments.
 * GRACE_SECONDS: time for a feeder to print what happened.
 */
static const double LOOK_SECONDS = 0.05;
static const double SPARE_SECONDS = 0.05;
static const double GRACE_SECONDS = 1;

void admission_free(Admission *admission)
{
    budget_free(&admission->budget);
    for (size_t i = 0; i < admission->n_kills; i++)
        fd_close(admission->kills[i].pidfd);
    admission->n_kills = 0;
}

int admission_ask(Admission *admission, Janitor *janitor, uint64_t id, int pid, int fd,
                  const Message *message)
{
    struct stat st;
    ssize_t i = fstat(fd, &st) < 0 ? -errno : janitor_add(janitor, fd, 0, pid);
    if (i < 0)
        return (int)i;
    admission->look = true;
    return budget_ask(&admission->budget, &(Request){
                                              .id = id,
                                              .pid = pid,
                                              .device = st.st_dev,
                                              .inode = st.st_ino,
                                              .bytes = message->bytes,
                                              .held_bytes = MIN((uint64_t)st.st_blocks * 512, message->bytes),
                                              .batch = message->batch,
                                              .asked = now_seconds(),
                                              .asker = (Asker)message->asker,
                                          });
}

/* --- Feeders that lost a batch, for which a trainer would wait forever -------------------------------- */

/* A worker as survey.h defines it. The command itself, our child, is not one. */
static bool is_worker(const Root *root, int pid)
{
    const uint64_t caught = UINT64_C(1) << (SIGBUS - 1) | UINT64_C(1) << (SIGSEGV - 1) |
                            UINT64_C(1) << (SIGFPE - 1) | UINT64_C(1) << (SIGTERM - 1);
    ProcStat stat;
    ProcStatus status;
    return proc_stat_read(root, pid, &stat) == 0 && proc_status_read(root, pid, &status) == 0 &&
           stat.ppid != getpid() && (status.signals_caught & caught) == caught;
}

static void doom(Admission *admission, const Request *request, double now)
{
    if (request->asker != ASKER_FEEDER || admission->n_kills == PENDING_KILLS_MAX ||
        !is_worker(admission->root, request->pid))
        return;
    int pidfd = (int)syscall(SYS_pidfd_open, request->pid, 0);
    if (pidfd >= 0)
        admission->kills[admission->n_kills++] = (PendingKill){request->pid, pidfd, now + GRACE_SECONDS};
}

static Refusal *refusal_of(Admission *admission, int pid)
{
    for (size_t i = 0; i < admission->n_refusals; i++)
        if (admission->refusals[i].pid == pid)
            return &admission->refusals[i];
    if (admission->n_refusals == REFUSALS_MAX)
        return NULL;
    Refusal *refusal = &admission->refusals[admission->n_refusals++];
    *refusal = (Refusal){.pid = pid};
    return refusal;
}

static void refusal_note(Admission *admission, const Request *request)
{
    Refusal *refusal = refusal_of(admission, request->pid);
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

static void pending_kill_end(Admission *admission, const PendingKill *kills)
{
    if (has_exited(kills->pidfd))
        return;
    if (admission->ending)
        admission->ending(admission->context, kills->pid);
    Refusal *refusal = refusal_of(admission, kills->pid);
    if (syscall(SYS_pidfd_send_signal, kills->pidfd, SIGTERM, NULL, 0) == 0 && refusal)
        refusal->told = true;
}

void admission_tick(Admission *admission)
{
    double now = now_seconds();
    if (admission->spare_now) {
        admission->spare = admission->spare_now(admission->context);
        admission->spare_read = now;
        admission->look = true;
    }
    for (size_t i = 0; i < admission->n_kills;) {
        PendingKill *kills = &admission->kills[i];
        if (now < kills->due) {
            i++;
            continue;
        }
        pending_kill_end(admission, kills);
        fd_close(kills->pidfd);
        *kills = admission->kills[--admission->n_kills];
    }
}

/* --- Deciding ----------------------------------------------------------------------------------------- */

/* Memory that is promised and not touched yet is no longer spare, although the kernel still counts it as
 * free. */
static uint64_t unpromised(uint64_t bytes, uint64_t promised)
{
    return bytes == UINT64_MAX ? UINT64_MAX : bytes - MIN(bytes, promised);
}

static Spare spare_now(Admission *admission, const Janitor *janitor, double now)
{
    if (now - admission->spare_read >= SPARE_SECONDS) {
        admission->spare = admission->spare_now(admission->context);
        admission->spare_read = now;
    }
    uint64_t promised = janitor_promised(janitor);
    return (Spare){unpromised(admission->spare.bytes, promised),
                   unpromised(admission->spare.most_bytes, promised), admission->spare.tight};
}

static Facts facts_now(Admission *admission, Janitor *janitor, uint64_t more)
{
    double now = now_seconds();
    uint64_t used = janitor_used(janitor) + more;
    Spare spare = spare_now(admission, janitor, now);
    Facts facts = {
        .used_bytes = used, .spare_bytes = spare.bytes, .most_bytes = spare.most_bytes, .now = now};
    uint64_t in_use = janitor_in_use(janitor);
    if (in_use < admission->in_use)
        budget_released(&admission->budget, now);
    admission->in_use = in_use;
    return facts;
}

/* Memory that is kept only for speed is freed before any process has to wait. */
static bool make_room(Admission *admission, Janitor *janitor)
{
    admission->spare_read = 0;
    return janitor_reclaim(janitor, admission->budget.requests[0].bytes);
}

static void queue_note(Admission *admission)
{
    double now = now_seconds();
    if (admission->queued_since > 0)
        admission->queued_seconds += now - admission->queued_since;
    admission->queued_since = admission->budget.n > 0 ? now : 0;
}

/* There is no room at once for what is still here. Who can do without does not wait for it. */
static void turn_away_optional(Budget *budget, AdmissionAnswer answer, void *context)
{
    for (size_t i = budget->n; i > 0; i--)
        if (budget->requests[i - 1].asker == ASKER_OPTIONAL) {
            uint64_t id = budget->requests[i - 1].id;
            budget_withdraw(budget, id);
            answer(context, id, ENOSPC);
        }
}

void admission_settle(Admission *admission, Janitor *janitor, uint64_t more, AdmissionAnswer answer,
                      void *context)
{
    Budget *budget = &admission->budget;
    if (!admission->look && (budget->n == 0 || now_seconds() < admission->next))
        return;
    /* Otherwise the memory kept for the next batch would be missing where that batch is made. */
    if (admission->spare.tight && janitor_reclaim(janitor, UINT64_MAX))
        admission->spare_read = 0;
    bool reclaimed = false;
    while (budget->n > 0) {
        Request request;
        Facts facts = facts_now(admission, janitor, more);
        Decision decision = budget_decide(budget, &facts, &request);
        if (decision == DECISION_GRANTED) {
            janitor_promise(janitor, request.device, request.inode, request.bytes);
            admission->in_use += request.bytes - request.held_bytes;
            answer(context, request.id, 0);
        } else if (decision == DECISION_REFUSED) {
            if (request.asker != ASKER_OPTIONAL) {
                refusal_note(admission, &request);
                doom(admission, &request, facts.now);
            }
            answer(context, request.id, ENOSPC);
        } else if (reclaimed || !make_room(admission, janitor))
            break;
        else
            reclaimed = true;
    }
    turn_away_optional(budget, answer, context);
    queue_note(admission);
    admission->look = false;
    admission->next = now_seconds() + LOOK_SECONDS;
}

double admission_queued(const Admission *admission)
{
    return admission->queued_seconds +
           (admission->queued_since > 0 ? now_seconds() - admission->queued_since : 0);
}

uint32_t admission_waiting(const Admission *admission)
{
    return (uint32_t)admission->budget.n + admission->spare.tight;
}

int admission_timeout(const Admission *admission)
{
    return admission->budget.n == 0 ? -1 : admission->look ? 0 : (int)(LOOK_SECONDS * 1000);
}
