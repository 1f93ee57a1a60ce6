/* SPDX-License-Identifier: Apache-2.0 */
/* What the death of one process means. */
#include <signal.h>
#include <string.h>

#include "cause-context.h"
#include "units.h"

/* Of /dev/shm: no page is to be had, or so little that it was filled to the brim a moment ago. */
enum { SHM_FULL_BYTES = 8192, SHM_NEARLY_SHARE = 64 };

#define SHM_NEARLY_BYTES (UINT64_C(64) << 10)

/* Sizes of /dev/shm that a DataLoader fills easily, and that hardly any does. */
#define SHM_SMALL_BYTES (128 * MIB)
#define SHM_LARGE_BYTES (8 * GIB)

/* An address below belongs to a null pointer with an offset. */
enum { NULL_PAGE_BYTES = 4096 };

Fullness shm_fullness(uint64_t size_bytes, uint64_t free_bytes)
{
    if (size_bytes == U64_UNKNOWN || free_bytes == U64_UNKNOWN)
        return FULLNESS_UNKNOWN;
    if (size_bytes == 0) /* a tmpfs without a limit */
        return FULLNESS_ROOM;
    if (free_bytes <= SHM_FULL_BYTES)
        return FULLNESS_FULL;
    return free_bytes <= MAX(size_bytes / SHM_NEARLY_SHARE, SHM_NEARLY_BYTES) ? FULLNESS_NEARLY
                                                                              : FULLNESS_ROOM;
}

int ended_signal(const Ended *ended)
{
    if (!ended->has_status)
        return ended->has_fault ? ended->fault.signal : 0;
    if (ended->signal == 0 && ended->has_fault && ended->code == 128 + ended->fault.signal)
        return ended->fault.signal;
    return ended->signal;
}

/* The fault that it died of: an earlier one may have been handled. */
static const Fault *ended_fault(const Ended *ended)
{
    return ended->has_fault && ended->fault.signal == ended_signal(ended) ? &ended->fault : NULL;
}

bool fault_is_sent(const Ended *ended)
{
    const Fault *fault = ended_fault(ended);
    return fault && fault->sender != 0 && fault->sender != ended->pid;
}

/* A kernel that raises a signal itself gives a positive code. */
static bool fault_is_kernels(const Fault *fault)
{
    return fault && fault->sender == 0 && fault->code > 0;
}

static void evidence_sample(CauseContext *context, const Ended *ended, Diagnosis *diagnosis)
{
    if (ended && ended->has_sample)
        diagnosis_evidence(context, diagnosis,
                           cause_printf(context, "in its last sample it used %s of memory, %s of it shared",
                                        SIZE_TEXT(ended->last.rss_bytes),
                                        SIZE_TEXT(ended->last.rss_shmem_bytes)));
}

static const char *fault_place_text(CauseContext *context, const Fault *fault)
{
    switch (fault->place) {
    case PLACE_NOT_MAPPED:
        return "where nothing is mapped";
    case PLACE_ANONYMOUS:
        return "in its own memory (heap, stack)";
    case PLACE_FILE:
    case PLACE_SHM:
    case PLACE_MEMFD:
        break;
    case PLACE_UNKNOWN:
        return "";
    }
    const char *path = cause_escape(
        context, text_of(fault->path ? fault->path : (fault->place == PLACE_MEMFD ? "a memfd" : "a file")));
    if (fault->file_bytes == U64_UNKNOWN)
        return cause_printf(context, "at offset %llu of %s", (unsigned long long)fault->offset, path);
    return cause_printf(context, "at offset %llu of %s%s, which has %llu bytes",
                        (unsigned long long)fault->offset, path,
                        fault->deleted && fault->place == PLACE_FILE ? " (deleted)" : "",
                        (unsigned long long)fault->file_bytes);
}

/* Who, of what, where. */
static void evidence_death(CauseContext *context, const Ended *ended, Diagnosis *diagnosis)
{
    if (ended->pid == 0) /* only told of */
        return;
    const Fault *fault = ended_fault(ended);
    const char *who = ended_who(context, ended);
    const char *name = signal_name(context, ended_signal(ended));
    const char *place = fault_is_kernels(fault) ? fault_place_text(context, fault) : "";
    if (fault_is_sent(ended))
        diagnosis_evidence(context, diagnosis,
                           cause_printf(context, "%s got %s from process %d", who, name, fault->sender));
    else if (place[0])
        diagnosis_evidence(context, diagnosis,
                           cause_printf(context, "%s got %s at address 0x%llx, %s", who, name,
                                        (unsigned long long)fault->address, place));
    else if (fault_is_kernels(fault))
        diagnosis_evidence(context, diagnosis,
                           cause_printf(context, "%s got %s at address 0x%llx", who, name,
                                        (unsigned long long)fault->address));
    else
        diagnosis_evidence(context, diagnosis, cause_printf(context, "%s was ended by %s", who, name));
}

/* --- SIGBUS --- */

static void evidence_mount(CauseContext *context, uint64_t size, uint64_t left, const char *when,
                           Diagnosis *diagnosis)
{
    if (size != U64_UNKNOWN && size > 0 && left != U64_UNKNOWN)
        diagnosis_evidence(
            context, diagnosis,
            cause_printf(context, "/dev/shm had %s free of %s %s", SIZE_TEXT(left), SIZE_TEXT(size), when));
}

static Fullness evidence_fullness(CauseContext *context, const Fault *fault, Diagnosis *diagnosis,
                                  Fullness *ret_least)
{
    const Evidence *evidence = context->evidence;
    Fullness now = fault ? shm_fullness(fault->shm_size_bytes, fault->shm_free_bytes) : FULLNESS_UNKNOWN;
    *ret_least = shm_fullness(evidence->shm_size_bytes, evidence->shm_free_least_bytes);
    if (now != FULLNESS_UNKNOWN)
        evidence_mount(context, fault->shm_size_bytes, fault->shm_free_bytes, "at that moment", diagnosis);
    if (now < FULLNESS_NEARLY)
        evidence_mount(context, evidence->shm_size_bytes, evidence->shm_free_least_bytes,
                       "when it was fullest (sampled once a second)", diagnosis);
    return now;
}

static void bus_in_shm(CauseContext *context, const Ended *ended, const char *who, Diagnosis *ret)
{
    Fullness least = FULLNESS_UNKNOWN;
    Fullness now = evidence_fullness(context, &ended->fault, ret, &least);
    /* The kernel has no other reason than a full mount here, bad swap and broken RAM aside; but room that was
     * there a moment later is a contradiction. */
    double confidence = now == FULLNESS_FULL       ? 0.98
                        : now == FULLNESS_NEARLY   ? 0.92
                        : least >= FULLNESS_NEARLY ? (now == FULLNESS_ROOM ? 0.75 : 0.9)
                        : now == FULLNESS_UNKNOWN  ? 0.8
                                                   : 0.5;
    diagnosis_set(
        ret, CAUSE_SHM_EXHAUSTED, confidence,
        now == FULLNESS_ROOM
            ? cause_printf(context,
                           "%s died of a bus error in a segment of /dev/shm. Most likely /dev/shm was full "
                           "for a moment; it had room again when it was checked.",
                           who)
            : cause_printf(context, "%s died of a bus error: /dev/shm was full when it wrote there.", who));
}

static void bus_in_file(CauseContext *context, const Ended *ended, const char *who, Diagnosis *ret)
{
    const Fault *fault = &ended->fault;
    const char *path = cause_escape(context, text_of(fault->path ? fault->path : "a mapped file"));
    if (fault->file_bytes == U64_UNKNOWN)
        diagnosis_set(
            ret, CAUSE_BUS_ERROR_FILE, 0.7,
            cause_printf(context,
                         "%s died of a bus error in %s: most likely the file was truncated while it "
                         "was mapped. Shared memory is not involved.",
                         who, path));
    else if (fault->offset >= fault->file_bytes)
        diagnosis_set(ret, CAUSE_BUS_ERROR_FILE, 0.97,
                      cause_printf(context,
                                   "%s read or wrote %s beyond its end: the file was truncated while it was "
                                   "mapped. Shared memory is not involved.",
                                   who, path));
    else
        diagnosis_set(
            ret, CAUSE_BUS_ERROR_FILE, 0.5,
            cause_printf(context,
                         "%s died of a bus error inside %s: the storage failed, its file system was "
                         "full, or the file was truncated for a moment.",
                         who, path));
}

/* The file was longer when it was mapped. */
static bool segment_is_cut(const Fault *fault)
{
    return fault->file_bytes != U64_UNKNOWN && fault->offset >= fault->file_bytes;
}

static void bus_in_memfd(CauseContext *context, const char *who, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    diagnosis_set(
        ret, CAUSE_UNKNOWN, 0.2,
        cause_printf(context,
                     "%s died of a bus error in a memfd, inside its size. Running out of memory would have "
                     "ended in SIGKILL; a failure of huge pages, swap or RAM ends like this.",
                     who));
    if (evidence->group_limit_bytes != U64_UNKNOWN && evidence->group_used_most_bytes != U64_UNKNOWN)
        diagnosis_evidence(context, ret,
                           cause_printf(context, "the control group used at most %s of its limit of %s",
                                        SIZE_TEXT(evidence->group_used_most_bytes),
                                        SIZE_TEXT(evidence->group_limit_bytes)));
}

void bus_judge_blind(CauseContext *context, const Ended *ended, const char *who, bool trains, Diagnosis *ret)
{
    Fullness least = FULLNESS_UNKNOWN;
    Fullness now = evidence_fullness(context, ended ? ended_fault(ended) : NULL, ret, &least);
    uint64_t size = context->evidence->shm_size_bytes;
    if (now >= FULLNESS_NEARLY || least >= FULLNESS_NEARLY) {
        diagnosis_set(ret, CAUSE_SHM_EXHAUSTED,
                      now == FULLNESS_FULL     ? 0.85
                      : now == FULLNESS_NEARLY ? 0.8
                      : least == FULLNESS_FULL ? 0.75
                                               : 0.65,
                      cause_printf(context,
                                   "%s died of a bus error while /dev/shm was full: most likely it wrote a "
                                   "batch there.",
                                   who));
        return;
    }
    if (context->log->cause.id == CAUSE_BUS_ERROR_FILE) {
        diagnosis_set(ret, CAUSE_BUS_ERROR_FILE, 0.6, context->log->cause.summary);
        return;
    }
    bool large = size != U64_UNKNOWN && (size == 0 || size >= SHM_LARGE_BYTES);
    if (trains && !large && (context->log->bus_guess || size <= SHM_SMALL_BYTES)) {
        diagnosis_set(ret, CAUSE_SHM_EXHAUSTED, size <= SHM_SMALL_BYTES ? 0.75 : 0.5,
                      cause_printf(context,
                                   "%s died of a bus error: most likely /dev/shm was full for a moment. A "
                                   "mapped file that is truncated ends the same way.",
                                   who));
        return;
    }
    diagnosis_set(ret, CAUSE_UNKNOWN, 0,
                  cause_printf(context,
                               "%s died of a bus error (SIGBUS). Whether shared memory ran out or a mapped "
                               "file was truncated could not be determined.",
                               who));
}

static void bus_judge(CauseContext *context, const Ended *ended, const char *who, Diagnosis *ret)
{
    const Fault *fault = ended_fault(ended);
    FaultPlace place = fault_is_kernels(fault) ? fault->place : PLACE_UNKNOWN;
    if (fault_is_kernels(fault) && (fault->code == BUS_MCEERR_AR || fault->code == BUS_MCEERR_AO)) {
        diagnosis_set(
            ret, CAUSE_UNKNOWN, 0.5,
            cause_printf(
                context,
                "%s died of a hardware memory error. Report this to the administrator of the machine.", who));
        return;
    }
    switch (place) {
    case PLACE_SHM:
    case PLACE_MEMFD:
        if (segment_is_cut(fault))
            diagnosis_set(ret, CAUSE_BUS_ERROR_FILE, 0.85,
                          cause_printf(context,
                                       "%s used a shared segment beyond its end: the segment was truncated "
                                       "while it was mapped. This is not a lack of shared memory.",
                                       who));
        else if (place == PLACE_SHM)
            bus_in_shm(context, ended, who, ret);
        else
            bus_in_memfd(context, who, ret);
        return;
    case PLACE_FILE:
        bus_in_file(context, ended, who, ret);
        return;
    case PLACE_ANONYMOUS:
        diagnosis_set(ret, CAUSE_UNKNOWN, 0.2,
                      cause_printf(context,
                                   "%s died of a bus error in its own memory. Neither a full /dev/shm nor a "
                                   "file causes that; a failure of huge pages, swap or RAM does.",
                                   who));
        return;
    case PLACE_NOT_MAPPED: /* unmapped by another thread meanwhile */
    case PLACE_UNKNOWN:
        bus_judge_blind(context, ended, who, ended->role == ROLE_WORKER || ended->role == ROLE_TRAINER, ret);
        return;
    }
}

/* --- SIGKILL --- */

/* In a container the kernel's log has other pids than we have. */
static bool log_pids_are_ours(const CauseContext *context)
{
    return !context->machine || context->machine->sandbox.initial_pidns;
}

const OomKill *kill_logged(const CauseContext *context, int pid)
{
    const OomKills *kills = &context->evidence->kills;
    for (size_t i = 0; pid > 0 && log_pids_are_ours(context) && i < kills->n; i++)
        if (kills->items[i].pid == pid)
            return &kills->items[i];
    return NULL;
}

/* The log can be read, and what it tells of is not this process, as far as pids and names go. */
static bool log_names_others(const CauseContext *context, int pid, const Ended *ended)
{
    const Evidence *evidence = context->evidence;
    if (evidence->kills_error != 0 || evidence->kills.n == 0 || kill_logged(context, pid))
        return false;
    if (log_pids_are_ours(context))
        return pid > 0;
    for (size_t i = 0; i < evidence->kills.n; i++)
        if (!ended || !ended->comm[0] ||
            strncmp(evidence->kills.items[i].comm, ended->comm, COMM_MAX - 1) == 0)
            return false;
    return true;
}

static bool machine_was_short(const CauseContext *context)
{
    uint64_t least = context->evidence->available_least_bytes;
    uint64_t total = context->machine ? context->machine->memory.total_bytes : 0;
    if (total == U64_UNKNOWN)
        total = 0;
    return least != U64_UNKNOWN && least < MAX(total / 50, 256 * MIB);
}

/* Whose memory was short, when only the counter of the group's kills rose: that one counts kills of its
 * processes for any reason, the machine's want too. */
static CauseId group_kill_cause(const CauseContext *context, double *ret_confidence)
{
    const Evidence *evidence = context->evidence;
    uint64_t limit = evidence->group_limit_bytes;
    uint64_t used = evidence->group_used_most_bytes;
    if (limit == U64_UNKNOWN) {
        bool machine = machine_was_short(context);
        *ret_confidence = machine ? 0.8 : 0.7; /* else a limit above that cannot be seen from here */
        return machine ? CAUSE_SYSTEM_OOM : CAUSE_CGROUP_OOM;
    }
    bool at_limit = used != U64_UNKNOWN && used >= limit - limit / 10;
    if (!at_limit && machine_was_short(context)) {
        *ret_confidence = 0.65;
        return CAUSE_SYSTEM_OOM;
    }
    *ret_confidence = at_limit ? 0.95 : 0.9;
    return CAUSE_CGROUP_OOM;
}

static void evidence_memory(CauseContext *context, CauseId id, Diagnosis *diagnosis)
{
    const Evidence *evidence = context->evidence;
    if (id == CAUSE_CGROUP_OOM && evidence->group_limit_bytes != U64_UNKNOWN)
        diagnosis_evidence(
            context, diagnosis,
            evidence->group_used_most_bytes == U64_UNKNOWN
                ? cause_printf(context, "the control group's memory limit is %s",
                               SIZE_TEXT(evidence->group_limit_bytes))
                : cause_printf(
                      context,
                      "the control group's memory limit is %s; at most %s was in use (sampled once a second)",
                      SIZE_TEXT(evidence->group_limit_bytes), SIZE_TEXT(evidence->group_used_most_bytes)));
    if (id == CAUSE_SYSTEM_OOM && evidence->available_least_bytes != U64_UNKNOWN)
        diagnosis_evidence(context, diagnosis,
                           cause_printf(context,
                                        "the machine's available memory fell to %s (sampled once a second)",
                                        SIZE_TEXT(evidence->available_least_bytes)));
}

static void evidence_counter(CauseContext *context, uint64_t kills, const char *where, Diagnosis *diagnosis)
{
    diagnosis_evidence(context, diagnosis,
                       cause_printf(context, "the OOM killer killed %llu process%s %s while the job ran",
                                    (unsigned long long)kills, kills == 1 ? "" : "es", where));
}

static bool risen(uint64_t counter)
{
    return counter != U64_UNKNOWN && counter > 0;
}

/* It was no OOM kill, as far as is known. */
static void kill_from_outside(CauseContext *context, const Ended *ended, const char *who, bool others,
                              Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    const char *why = NULL;
    double confidence = 0.5;
    if (evidence->group_kills == 0 || evidence->machine_kills == 0) {
        bool quiet = evidence->machine_kills == 0 || evidence->machine_kills == U64_UNKNOWN;
        confidence = evidence->machine_kills == 0 ? 0.95 : quiet ? 0.9 : 0.7;
        why = quiet ? "the OOM killer killed no process while the job ran"
                    : "the OOM killer killed a process on this machine, but none in the job's control group";
    } else if (others) {
        confidence = 0.6;
        why = "the kernel's log has OOM kills, but of other processes";
    } else
        why = "the OOM killer's counters could not be read, so this may have been the kernel, for lack of "
              "memory";
    diagnosis_evidence(context, ret, why);
    evidence_sample(context, ended, ret);
    diagnosis_set(ret, CAUSE_KILLED, confidence,
                  cause_printf(context,
                               confidence > 0.5
                                   ? "%s was killed from outside (SIGKILL): by a person, a "
                                     "scheduler or another program. Nothing shows a lack of "
                                     "memory."
                                   : "%s was killed (SIGKILL): by a person, a scheduler, or the kernel for "
                                     "lack of memory. Which of these it was could not be determined.",
                               who));
    ret->detail = "sigkill";
}

void kill_judge(CauseContext *context, int pid, const Ended *ended, const char *who, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    const OomKill *logged = kill_logged(context, pid);
    bool others = log_names_others(context, pid, ended);
    bool group = risen(evidence->group_kills);
    bool machine = risen(evidence->machine_kills);
    double confidence = 0;
    CauseId id = CAUSE_KILLED;
    if (logged) {
        id = logged->scope == OOM_SCOPE_CGROUP    ? CAUSE_CGROUP_OOM
             : logged->scope == OOM_SCOPE_MACHINE ? CAUSE_SYSTEM_OOM
                                                  : group_kill_cause(context, &confidence);
        confidence = logged->scope == OOM_SCOPE_UNKNOWN ? MIN(confidence, 0.75)
                     : group || machine                 ? 0.99
                                                        : 0.93;
        diagnosis_evidence(context, ret,
                           cause_printf(context, "the kernel's log says that its OOM killer killed %d", pid));
        if (group)
            evidence_counter(context, evidence->group_kills, "in the job's control group", ret);
    } else if (group) {
        id = group_kill_cause(context, &confidence);
        if (others)
            confidence = MIN(confidence, 0.7);
        evidence_counter(context, evidence->group_kills, "in the job's control group", ret);
    } else if (machine && evidence->group_kills == U64_UNKNOWN && !others) {
        id = CAUSE_SYSTEM_OOM;
        confidence = machine_was_short(context) ? 0.75 : 0.6;
        evidence_counter(context, evidence->machine_kills, "on this machine", ret);
    }
    if (id == CAUSE_KILLED) {
        kill_from_outside(context, ended, who, others, ret);
        return;
    }
    evidence_memory(context, id, ret);
    evidence_sample(context, ended, ret);
    diagnosis_set(
        ret, id, confidence,
        cause_printf(context,
                     id == CAUSE_CGROUP_OOM
                         ? "%s was killed by the kernel because its control group (the container or "
                           "job) was at its memory limit."
                         : "%s was killed by the kernel because the machine was out of memory.",
                     who));
}

/* --- The others --- */

static void segfault_judge(CauseContext *context, const Ended *ended, const char *who, Diagnosis *ret)
{
    const Fault *fault = ended_fault(ended);
    bool null = fault_is_kernels(fault) && fault->code != SI_KERNEL && fault->address < NULL_PAGE_BYTES;
    diagnosis_set(
        ret, CAUSE_SEGFAULT, fault_is_kernels(fault) ? 0.97 : 0.9,
        cause_printf(context,
                     "%s crashed in native code (SIGSEGV%s): a bug in a library or extension, not a "
                     "lack of memory.",
                     who, null ? ", a null pointer" : ""));
}

static void term_judge(CauseContext *context, const Ended *ended, const char *who, Diagnosis *ret)
{
    bool command = ended->pid == context->evidence->pid;
    bool named = text_names_pid(context->evidence, ended->pid);
    diagnosis_set(ret, CAUSE_KILLED,
                  command ? 0.8
                  : named ? 0.8
                          : 0.5,
                  cause_printf(context, "%s was asked to stop (SIGTERM), and did. %s", who,
                               command ? "The sender could not be determined."
                                       : "A launcher, a scheduler or a person does that."));
    ret->detail = "sigterm";
}

typedef struct OddSignal {
    int signal;
    double confidence;
    const char *summary; /* after who; NULL: only the signal is known */
} OddSignal;

/* What has no name in the list of causes, and is told all the same. */
static const OddSignal odd_signals[] = {
    {SIGABRT, 0.3, "aborted itself (SIGABRT). What it wrote just before may say why."},
    {SIGFPE, 0.4,
     "divided an integer by zero in native code (SIGFPE): a bug in a library or extension, or an empty "
     "input to it. Not a lack of memory."},
    {SIGILL, 0.4,
     "used an instruction that this CPU does not support (SIGILL): a package was built for another CPU."},
    {SIGINT, 0, "was interrupted (SIGINT, as from Ctrl-C)."},
    {SIGHUP, 0, "was ended because its terminal or session went away (SIGHUP)."},
    {SIGXCPU, 0.5, "used up its limit of CPU time (SIGXCPU, ulimit -t)."},
    {SIGXFSZ, 0.5, "wrote a file beyond its size limit (SIGXFSZ, ulimit -f)."},
    {SIGSYS, 0.5, "made a system call that is forbidden here (SIGSYS, seccomp)."},
    {SIGPIPE, 0.3, "wrote to a pipe that no process reads any more (SIGPIPE)."},
    {0, 0, NULL},
};

static void odd_judge(CauseContext *context, int signo, const char *who, Diagnosis *ret)
{
    const OddSignal *odd = odd_signals;
    while (odd->signal != 0 && odd->signal != signo)
        odd++;
    diagnosis_set(ret, CAUSE_UNKNOWN, odd->confidence,
                  odd->summary
                      ? cause_printf(context, "%s %s", who, odd->summary)
                      : cause_printf(context, "%s was ended by %s.", who, signal_name(context, signo)));
}

void death_judge(CauseContext *context, const Ended *ended, Diagnosis *ret)
{
    const char *who = ended_who(context, ended);
    int signo = ended_signal(ended);
    ret->ended = ended;
    ret->cause.pid = ended->pid;
    evidence_death(context, ended, ret);
    if (fault_is_sent(ended)) {
        diagnosis_set(ret, CAUSE_UNKNOWN, 0.3,
                      cause_printf(context,
                                   "%s was ended by %s, which process %d sent. It did not crash by itself.",
                                   who, signal_name(context, signo), ended->fault.sender));
        return;
    }
    switch (signo) {
    case SIGBUS:
        bus_judge(context, ended, who, ret);
        break;
    case SIGKILL:
        kill_judge(context, ended->pid, ended, who, ret);
        break;
    case SIGSEGV:
        segfault_judge(context, ended, who, ret);
        break;
    case SIGTERM:
        term_judge(context, ended, who, ret);
        break;
    default:
        odd_judge(context, signo, who, ret);
        break;
    }
}
