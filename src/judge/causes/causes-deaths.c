/* SPDX-License-Identifier: Apache-2.0 */
/* What the death of one process means. */
#include <signal.h>
#include <string.h>

#include "cause-context.h"
#include "causes-text.h"
#include "units.h"

/* /dev/shm has no free page, or so few that it was probably full a moment ago. */
enum { SHM_FULL_BYTES = 8192, SHM_NEARLY_SHARE = 64 };

#define SHM_NEARLY_BYTES (UINT64_C(64) << 10)

/* A /dev/shm that a DataLoader fills easily, and one that hardly any DataLoader fills. */
#define SHM_SMALL_BYTES (128 * MIB)
#define SHM_LARGE_BYTES (8 * GIB)

/* A lower address comes from a null pointer with an offset. */
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

/* Signals that the kernel itself raises have a positive code. */
static bool fault_is_kernels(const Fault *fault)
{
    return fault && fault->sender == 0 && fault->code > 0;
}

static void evidence_sample(CauseContext *context, const Ended *ended, Diagnosis *diagnosis)
{
    if (ended && ended->has_sample)
        diagnosis_evidence(context, diagnosis,
                           cause_printf(context, EVIDENCE_LAST_SAMPLE, SIZE_TEXT(ended->last.rss_bytes),
                                        SIZE_TEXT(ended->last.rss_shmem_bytes)));
}

static const char *fault_text(CauseContext *context, const char *who, const Fault *fault)
{
    const char *name = signal_name(context, fault->signal);
    unsigned long long address = fault->address;
    unsigned long long offset = fault->offset;
    unsigned long long size = fault->file_bytes;
    const char *path;
    switch (fault->place) {
    case PLACE_NOT_MAPPED:
        return cause_printf(context, FAULT_EVIDENCE_NOT_MAPPED, who, name, address);
    case PLACE_ANONYMOUS:
        return cause_printf(context, FAULT_EVIDENCE_OWN, who, name, address);
    case PLACE_FILE:
    case PLACE_SHM:
    case PLACE_MEMFD:
        path = fault->path                   ? cause_escape(context, text_of(fault->path))
               : fault->place == PLACE_MEMFD ? FAULT_UNKNOWN_MEMFD
                                             : FAULT_UNKNOWN_FILE;
        if (size == U64_UNKNOWN)
            return cause_printf(context, FAULT_EVIDENCE_FILE, who, name, address, offset, path);
        if (fault->deleted && fault->place == PLACE_FILE)
            return cause_printf(context, FAULT_EVIDENCE_DELETED, who, name, address, offset, path, size);
        return cause_printf(context, FAULT_EVIDENCE_FILE_SIZE, who, name, address, offset, path, size);
    case PLACE_UNKNOWN:
        break;
    }
    return cause_printf(context, FAULT_EVIDENCE, who, name, address);
}

/* Which process died, of which signal and where. */
static void evidence_death(CauseContext *context, const Ended *ended, Diagnosis *diagnosis)
{
    if (ended->pid == 0) /* no process was seen, only an exit code */
        return;
    const Fault *fault = ended_fault(ended);
    const char *who = ended_who(context, ended);
    const char *name = signal_name(context, ended_signal(ended));
    const char *text = fault_is_sent(ended)
                           ? cause_printf(context, DEATH_BY_SENT_SIGNAL, who, name, fault->sender)
                       : fault_is_kernels(fault) ? fault_text(context, who, fault)
                                                 : cause_printf(context, DEATH_BY_SIGNAL, who, name);
    diagnosis_evidence(context, diagnosis, text);
}

/* --- SIGBUS --- */

static Fullness evidence_fullness(CauseContext *context, const Fault *fault, Diagnosis *diagnosis,
                                  Fullness *ret_least)
{
    const Evidence *evidence = context->evidence;
    Fullness now = fault ? shm_fullness(fault->shm_size_bytes, fault->shm_free_bytes) : FULLNESS_UNKNOWN;
    *ret_least = shm_fullness(evidence->shm_size_bytes, evidence->shm_free_least_bytes);
    if (now != FULLNESS_UNKNOWN && fault->shm_size_bytes > 0)
        diagnosis_evidence(context, diagnosis,
                           cause_printf(context, EVIDENCE_SHM_AT, SIZE_TEXT(fault->shm_free_bytes),
                                        SIZE_TEXT(fault->shm_size_bytes)));
    if (now < FULLNESS_NEARLY)
        evidence_shm(context, diagnosis);
    return now;
}

static void bus_in_shm(CauseContext *context, const Ended *ended, const char *who, Diagnosis *ret)
{
    Fullness least = FULLNESS_UNKNOWN;
    Fullness now = evidence_fullness(context, &ended->fault, ret, &least);
    /* Apart from bad swap and broken RAM, a full mount is the kernel's only reason for SIGBUS here; but free
     * space a moment later contradicts it. */
    double confidence = now == FULLNESS_FULL       ? 0.98
                        : now == FULLNESS_NEARLY   ? 0.92
                        : least >= FULLNESS_NEARLY ? (now == FULLNESS_ROOM ? 0.75 : 0.9)
                        : now == FULLNESS_UNKNOWN  ? 0.8
                                                   : 0.5;
    diagnosis_set(ret, CAUSE_SHM_EXHAUSTED, confidence,
                  now == FULLNESS_ROOM ? cause_printf(context, BUS_SHM_ROOM, who)
                                       : cause_printf(context, BUS_SHM, who));
}

static void bus_in_file(CauseContext *context, const Ended *ended, const char *who, Diagnosis *ret)
{
    const Fault *fault = &ended->fault;
    const char *path = cause_escape(context, text_of(fault->path ? fault->path : FAULT_UNKNOWN_MAPPED));
    if (fault->file_bytes == U64_UNKNOWN)
        diagnosis_set(ret, CAUSE_BUS_ERROR_FILE, 0.7, cause_printf(context, BUS_FILE_LIKELY, who, path));
    else if (fault->offset >= fault->file_bytes)
        diagnosis_set(ret, CAUSE_BUS_ERROR_FILE, 0.97, cause_printf(context, BUS_FILE_BEYOND, who, path));
    else
        diagnosis_set(ret, CAUSE_BUS_ERROR_FILE, 0.5, cause_printf(context, BUS_FILE_INSIDE, who, path));
}

/* The segment was longer when it was mapped. */
static bool segment_is_cut(const Fault *fault)
{
    return fault->file_bytes != U64_UNKNOWN && fault->offset >= fault->file_bytes;
}

static void bus_in_memfd(CauseContext *context, const char *who, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    diagnosis_set(ret, CAUSE_UNKNOWN, 0.2, cause_printf(context, BUS_MEMFD, who));
    if (evidence->group_limit_bytes != U64_UNKNOWN && evidence->group_used_most_bytes != U64_UNKNOWN)
        diagnosis_evidence(context, ret,
                           cause_printf(context, EVIDENCE_GROUP_USED,
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
                      cause_printf(context, BUS_WHILE_FULL, who));
        return;
    }
    if (context->log->cause.id == CAUSE_BUS_ERROR_FILE) {
        diagnosis_set(ret, CAUSE_BUS_ERROR_FILE, 0.6, context->log->cause.summary);
        return;
    }
    bool large = size != U64_UNKNOWN && (size == 0 || size >= SHM_LARGE_BYTES);
    if (trains && !large && (context->log->bus_guess || size <= SHM_SMALL_BYTES)) {
        diagnosis_set(ret, CAUSE_SHM_EXHAUSTED, size <= SHM_SMALL_BYTES ? 0.75 : 0.5,
                      cause_printf(context, BUS_PROBABLY_SHM, who));
        return;
    }
    diagnosis_set(ret, CAUSE_UNKNOWN, 0, cause_printf(context, BUS_UNKNOWN, who));
}

static void bus_judge(CauseContext *context, const Ended *ended, const char *who, Diagnosis *ret)
{
    const Fault *fault = ended_fault(ended);
    FaultPlace place = fault_is_kernels(fault) ? fault->place : PLACE_UNKNOWN;
    if (fault_is_kernels(fault) && (fault->code == BUS_MCEERR_AR || fault->code == BUS_MCEERR_AO)) {
        diagnosis_set(ret, CAUSE_UNKNOWN, 0.5, cause_printf(context, BUS_HARDWARE, who));
        return;
    }
    switch (place) {
    case PLACE_SHM:
    case PLACE_MEMFD:
        if (segment_is_cut(fault))
            diagnosis_set(ret, CAUSE_BUS_ERROR_FILE, 0.85, cause_printf(context, BUS_SEGMENT_BEYOND, who));
        else if (place == PLACE_SHM)
            bus_in_shm(context, ended, who, ret);
        else
            bus_in_memfd(context, who, ret);
        return;
    case PLACE_FILE:
        bus_in_file(context, ended, who, ret);
        return;
    case PLACE_ANONYMOUS:
        diagnosis_set(ret, CAUSE_UNKNOWN, 0.2, cause_printf(context, BUS_OWN, who));
        return;
    case PLACE_NOT_MAPPED: /* another thread has unmapped it since */
    case PLACE_UNKNOWN:
        bus_judge_blind(context, ended, who, ended->role == ROLE_WORKER || ended->role == ROLE_TRAINER, ret);
        return;
    }
}

/* --- SIGKILL --- */

/* In a container the pids in the kernel's log are not those that we see. */
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

/* The log can be read and has OOM kills, but none of them fits this process by pid or name. */
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

/* Whose memory was short when only the group's counter of kills rose? That counter includes kills of its
 * processes because the whole machine was short. */
static CauseId group_kill_cause(const CauseContext *context, double *ret_confidence)
{
    const Evidence *evidence = context->evidence;
    uint64_t limit = evidence->group_limit_bytes;
    uint64_t used = evidence->group_used_most_bytes;
    if (limit == U64_UNKNOWN) {
        bool machine = machine_was_short(context);
        *ret_confidence =
            machine ? 0.8 : 0.7; /* otherwise a parent group has a limit that is not visible from here */
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
                ? cause_printf(context, EVIDENCE_GROUP_LIMIT, SIZE_TEXT(evidence->group_limit_bytes))
                : cause_printf(context, EVIDENCE_GROUP_LIMIT_USED, SIZE_TEXT(evidence->group_limit_bytes),
                               SIZE_TEXT(evidence->group_used_most_bytes)));
    if (id == CAUSE_SYSTEM_OOM && evidence->available_least_bytes != U64_UNKNOWN)
        diagnosis_evidence(
            context, diagnosis,
            cause_printf(context, EVIDENCE_AVAILABLE, SIZE_TEXT(evidence->available_least_bytes)));
}

static void evidence_group_kills(CauseContext *context, Diagnosis *diagnosis)
{
    unsigned long long n = context->evidence->group_kills;
    diagnosis_evidence(
        context, diagnosis,
        cause_printf(context, PLURAL(n, EVIDENCE_GROUP_KILLS_ONE, EVIDENCE_GROUP_KILLS_MANY), n));
}

static void evidence_machine_kills(CauseContext *context, Diagnosis *diagnosis)
{
    unsigned long long n = context->evidence->machine_kills;
    diagnosis_evidence(
        context, diagnosis,
        cause_printf(context, PLURAL(n, EVIDENCE_MACHINE_KILLS_ONE, EVIDENCE_MACHINE_KILLS_MANY), n));
}

static bool risen(uint64_t counter)
{
    return counter != U64_UNKNOWN && counter > 0;
}

/* Nothing known says that it was an OOM kill. */
static void kill_from_outside(CauseContext *context, const Ended *ended, const char *who, bool others,
                              Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    const char *why = NULL;
    double confidence = 0.5;
    if (evidence->group_kills == 0 || evidence->machine_kills == 0) {
        bool quiet = evidence->machine_kills == 0 || evidence->machine_kills == U64_UNKNOWN;
        confidence = evidence->machine_kills == 0 ? 0.95 : quiet ? 0.9 : 0.7;
        why = quiet ? EVIDENCE_NO_KILLS : EVIDENCE_KILLS_ELSEWHERE;
    } else if (others) {
        confidence = 0.6;
        why = EVIDENCE_KILLS_OTHERS;
    } else
        why = EVIDENCE_KILLS_UNKNOWN;
    diagnosis_evidence(context, ret, why);
    evidence_sample(context, ended, ret);
    diagnosis_set(ret, CAUSE_KILLED, confidence,
                  cause_printf(context, confidence > 0.5 ? KILL_OUTSIDE : KILL_UNKNOWN, who));
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
        diagnosis_evidence(context, ret, cause_printf(context, EVIDENCE_KILL_LOGGED, pid));
        if (group)
            evidence_group_kills(context, ret);
    } else if (group) {
        id = group_kill_cause(context, &confidence);
        if (others)
            confidence = MIN(confidence, 0.7);
        evidence_group_kills(context, ret);
    } else if (machine && evidence->group_kills == U64_UNKNOWN && !others) {
        id = CAUSE_SYSTEM_OOM;
        confidence = machine_was_short(context) ? 0.75 : 0.6;
        evidence_machine_kills(context, ret);
    }
    if (id == CAUSE_KILLED) {
        kill_from_outside(context, ended, who, others, ret);
        return;
    }
    evidence_memory(context, id, ret);
    evidence_sample(context, ended, ret);
    diagnosis_set(ret, id, confidence,
                  cause_printf(context, id == CAUSE_CGROUP_OOM ? KILL_GROUP : KILL_MACHINE, who));
}

/* --- Other signals --- */

static void segfault_judge(CauseContext *context, const Ended *ended, const char *who, Diagnosis *ret)
{
    const Fault *fault = ended_fault(ended);
    bool null = fault_is_kernels(fault) && fault->code != SI_KERNEL && fault->address < NULL_PAGE_BYTES;
    diagnosis_set(ret, CAUSE_SEGFAULT, fault_is_kernels(fault) ? 0.97 : 0.9,
                  cause_printf(context, null ? CRASH_NULL : CRASH_NATIVE, who));
}

static void term_judge(CauseContext *context, const Ended *ended, const char *who, Diagnosis *ret)
{
    bool command = ended->pid == context->evidence->pid;
    bool named = text_names_pid(context->evidence, ended->pid);
    diagnosis_set(ret, CAUSE_KILLED, command || named ? 0.8 : 0.5,
                  cause_printf(context, command ? TERM_COMMAND : TERM_PROCESS, who));
    ret->detail = "sigterm";
}

/* Signals for which the list of causes has no entry. */
static void odd_judge(CauseContext *context, int signo, const char *who, Diagnosis *ret)
{
    switch (signo) {
    case SIGABRT:
        diagnosis_set(ret, CAUSE_UNKNOWN, 0.3, cause_printf(context, SIGNAL_ABORTED, who));
        break;
    case SIGFPE:
        diagnosis_set(ret, CAUSE_UNKNOWN, 0.4, cause_printf(context, SIGNAL_DIVIDED, who));
        break;
    case SIGILL:
        diagnosis_set(ret, CAUSE_UNKNOWN, 0.4, cause_printf(context, SIGNAL_ILLEGAL, who));
        break;
    case SIGINT:
        diagnosis_set(ret, CAUSE_UNKNOWN, 0, cause_printf(context, SIGNAL_INTERRUPTED, who));
        break;
    case SIGHUP:
        diagnosis_set(ret, CAUSE_UNKNOWN, 0, cause_printf(context, SIGNAL_HANGUP, who));
        break;
    case SIGXCPU:
        diagnosis_set(ret, CAUSE_UNKNOWN, 0.5, cause_printf(context, SIGNAL_CPU_TIME, who));
        break;
    case SIGXFSZ:
        diagnosis_set(ret, CAUSE_UNKNOWN, 0.5, cause_printf(context, SIGNAL_FILE_SIZE, who));
        break;
    case SIGSYS:
        diagnosis_set(ret, CAUSE_UNKNOWN, 0.5, cause_printf(context, SIGNAL_FORBIDDEN, who));
        break;
    case SIGPIPE:
        diagnosis_set(ret, CAUSE_UNKNOWN, 0.3, cause_printf(context, SIGNAL_PIPE, who));
        break;
    default:
        diagnosis_set(ret, CAUSE_UNKNOWN, 0,
                      cause_printf(context, DEATH_BY_SIGNAL, who, signal_name(context, signo)));
        break;
    }
}

void death_judge(CauseContext *context, const Ended *ended, Diagnosis *ret)
{
    const char *who = ended_who(context, ended);
    int signo = ended_signal(ended);
    ret->ended = ended;
    ret->cause.pid = ended->pid;
    evidence_death(context, ended, ret);
    if (fault_is_sent(ended)) {
        diagnosis_set(
            ret, CAUSE_UNKNOWN, 0.3,
            cause_printf(context, SIGNAL_SENT, who, signal_name(context, signo), ended->fault.sender));
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
