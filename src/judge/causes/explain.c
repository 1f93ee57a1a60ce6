/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cause-context.h"
#include "clues-text.h"
#include "units.h"

enum { EVIDENCE_CLUES_MAX = 6 };

/* An exception within LINES_NEAR lines before an event counts as its reason, for "Killed" only within
 * LINES_CLOSE. A log that continues for more than LINES_SURVIVED lines after an exception has probably
 * survived it. */
enum { LINES_CLOSE = 3, LINES_NEAR = 500, LINES_SURVIVED = 1000 };

/* A process that has made this many segments may well be at the kernel's limit of mappings. */
enum { MAPS_MANY = 30000 };

/* A bus error of a program that may not even use PyTorch. */
static const double BUS_BARE = 0.45;

/* macOS has no /dev/shm, and a bus error there has many reasons. */
static const double BUS_MACOS_CONFIDENCE = 0.3;

/* The message and the traceback that it seems to belong to stand apart. */
static const double DISK_SHM_CONFIDENCE = 0.6;

/* Below this confidence a failed mapping may just as well be a lack of memory. */
static const double MAPS_DOUBTFUL = 0.6;

struct Explainer {
    LogReader *reader;
};

Explainer *explainer_new(void)
{
    Explainer *explainer = calloc(1, sizeof *explainer);
    if (explainer && !(explainer->reader = log_reader_new())) {
        free(explainer);
        return NULL;
    }
    return explainer;
}

void explainer_free(Explainer *explainer)
{
    if (!explainer)
        return;
    log_reader_free(explainer->reader);
    free(explainer);
}

int explainer_feed(Explainer *explainer, const char *bytes, size_t n)
{
    return log_reader_feed(explainer->reader, bytes, n);
}

/* Bytes of unknown origin, made safe to show. */
static const char *text_shown(CauseContext *context, Text raw, bool cut_before, bool cut_after)
{
    _cleanup_buffer_ Buffer safe = {0};
    int r = cut_before ? buffer_append_text(&safe, "…") : 0;
    if (r >= 0)
        r = text_escape_prose(text_trim(raw), &safe);
    if (r >= 0 && cut_after)
        r = buffer_append_text(&safe, "…");
    return cause_keep(context, r < 0 ? NULL : arena_copy(context->arena, buffer_text(&safe), safe.size));
}

static bool text_same(Text a, Text b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static bool is_victim(const LogFacts *facts, int pid)
{
    for (size_t i = 0; i < facts->n_victims; i++)
        if (facts->victims[i].pid == pid)
            return true;
    return false;
}

static bool is_oom(Clue clue)
{
    return clue >= CLUE_OOM_CGROUP && clue <= CLUE_OOM_SOME;
}

static bool is_bus(Clue clue)
{
    return clue == CLUE_BUS_WORKER || clue == CLUE_BUS;
}

/* Since 2.10 PyTorch reserves its segments before it writes, so a full /dev/shm raises an exception instead
 * of SIGBUS. */
static bool torch_reserves(const LogFacts *facts)
{
    return facts->torch_major > 2 || (facts->torch_major == 2 && facts->torch_minor >= 10);
}

static bool shm_seen_full(const LogFacts *facts)
{
    return facts->shm_used_percent >= 90;
}

/* df is often run after the crash, which empties /dev/shm, so this only lowers a confidence. */
static bool shm_seen_free(const LogFacts *facts)
{
    return facts->df_seen && facts->shm_used_percent <= 50;
}

static bool machine_shm_small(const Machine *machine)
{
    return machine && machine->shm.state == SHM_OK && machine->shm.size_bytes > 0 &&
           machine->shm.size_bytes <= 128 * MIB;
}

static bool machine_shm_large(const Machine *machine)
{
    return machine && machine->shm.state == SHM_OK && machine->shm.available_bytes >= 8 * GIB;
}

static double bus_confidence(const CauseContext *context, double alone)
{
    if (shm_seen_full(context->facts))
        return 0.95;
    if (clue_is_seen(context, CLUE_MAPPED_FILE) || clue_is_seen(context, CLUE_HEAP) ||
        torch_reserves(context->facts))
        return MIN(alone, BUS_DOUBTFUL);
    if (context->facts->shm_size_bytes <= 128 * MIB)
        return 0.9;
    if (!clue_is_seen(context, CLUE_PYTORCH) && !clue_is_seen(context, CLUE_LEAKED)) /* any program */
        return MIN(alone, BUS_BARE);
    if (shm_seen_free(context->facts))
        return MIN(alone, BUS_DOUBTFUL);
    if (machine_shm_small(context->machine))
        return 0.9;
    if (machine_shm_large(context->machine)) /* the log may come from another machine, but most do not */
        return MIN(alone, 0.75);
    return clue_is_seen(context, CLUE_LEAKED) ? MAX(alone, 0.7) : alone;
}

/* The native stack below the bus error shows a library that reads mapped files. */
static bool bus_in_reader(const CauseContext *context)
{
    return clue_seen(context, CLUE_MAPPED_READER)->last_line > clue_seen(context, context->clue)->first_line;
}

/* A mapped file is to blame, not a full /dev/shm: storage failed, or this PyTorch cannot cause a bus error.
 */
static bool bus_is_file(const CauseContext *context)
{
    static const char *const readers[] = {"memmap", "lmdb", "h5py", "safetensors", "pyarrow"};
    const LogFacts *facts = context->facts;
    if (!is_bus(context->clue) || shm_seen_full(facts))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
        if (strstr(facts->fatal.file, readers[i]))
            return true;
    return bus_in_reader(context) || clue_is_seen(context, CLUE_STORAGE) ||
           (clue_is_seen(context, CLUE_MAPPED_FILE) && (torch_reserves(facts) || shm_seen_free(facts)));
}

/* A worker died of a bus error and is not among the processes that the kernel killed: two separate problems.
 */
static bool oom_is_another(const CauseContext *context)
{
    int pid = clue_seen(context, CLUE_BUS_WORKER)->pid;
    return pid != 0 && context->facts->n_victims > 0 && !is_victim(context->facts, pid);
}

static const KeptLine *kept_line(const CauseContext *context, Clue clue)
{
    for (size_t i = 0; i < context->facts->n_kept; i++)
        if (context->facts->kept[i].clue == clue)
            return &context->facts->kept[i];
    return NULL;
}

/* "unable to mmap 68 bytes from file </torch_10497_3546569614_63832>": the size, and the segment's number. */
static void maps_numbers(const CauseContext *context, uint64_t *ret_bytes, uint64_t *ret_count)
{
    *ret_bytes = *ret_count = 0;
    const KeptLine *line = kept_line(context, CLUE_MAPS);
    Text rest;
    int pid = 0;
    if (line && text_after(line->excerpt, "mmap ", &rest) && text_u64(text_digits(rest), 10, ret_bytes) == 0)
        (void)segment_read(rest, &pid, ret_count);
}

static double maps_confidence(const CauseContext *context, double alone)
{
    uint64_t bytes = 0;
    uint64_t count = 0;
    maps_numbers(context, &bytes, &count);
    return count >= MAPS_MANY ? 0.95 : bytes >= GIB ? 0.5 : alone;
}

/* Launchers end the other processes when one has died: Slurm cancels the step, MPI sends SIGTERM. */
static bool death_before(const CauseContext *context, Clue clue)
{
    static const Clue deaths[] = {CLUE_SIGKILL,  CLUE_SIGKILL_WORKER, CLUE_BUS, CLUE_BUS_WORKER,
                                  CLUE_SEGFAULT, CLUE_ABORTED,        CLUE_FPE, CLUE_ILLEGAL};
    for (size_t i = 0; i < ARRAY_SIZE(deaths); i++)
        if (clue_is_seen(context, deaths[i]) &&
            clue_seen(context, deaths[i])->first_line < clue_seen(context, clue)->first_line)
            return true;
    return false;
}

/* Neither a path nor a traceback shows where the space was missing: it may have been /dev/shm. */
static bool disk_is_guess(const CauseContext *context)
{
    const KeptLine *line = kept_line(context, CLUE_DISK_FULL);
    return clue_seen(context, CLUE_DISK_FULL)->where.file[0] == '\0' && line &&
           !text_contains(line->excerpt, "/") && !text_contains(line->excerpt, "'");
}

/* People paste the message first. Below it stands code that shares objects between processes, which needs
 * /dev/shm. */
static bool disk_is_shm(const CauseContext *context)
{
    return disk_is_guess(context) &&
           clue_seen(context, CLUE_SHARING_CODE)->last_line > clue_seen(context, CLUE_DISK_FULL)->first_line;
}

/* The exception that was raised shortly before the crash, or NULL: Python may have crashed while it ended. */
static const LoggedException *exception_before_crash(const CauseContext *context)
{
    const LoggedException *plain = &context->facts->plain;
    uint64_t line = clue_seen(context, CLUE_SEGFAULT)->first_line;
    return plain->seen && plain->line < line && line - plain->line <= LINES_NEAR ? plain : NULL;
}

/* Servers whose start fails kill all of their processes, themselves included. */
static bool exception_ends(const CauseContext *context)
{
    const LoggedException *plain = &context->facts->plain;
    uint64_t line = clue_seen(context, CLUE_SIGKILL)->first_line;
    return plain->seen && plain->inner.file[0] && plain->line < line && line - plain->line <= LINES_CLOSE;
}

/* What PyTorch or Python raised, but the program went on. */
static bool clue_is_survived(const CauseContext *context, Clue clue)
{
    return clue_infos[clue].cause == CAUSE_PYTHON_ERROR &&
           context->facts->lines > clue_seen(context, clue)->last_line + LINES_SURVIVED;
}

static double clue_confidence(const CauseContext *context, Clue clue)
{
    double alone = clue_infos[clue].confidence;
    if (clue_is_survived(context, clue))
        return MIN(alone, 0.5);
    if (clue == CLUE_SEGFAULT && exception_before_crash(context))
        return 0.6;
    if (clue == CLUE_HEAP && (clue_is_seen(context, CLUE_BUS_WORKER) || clue_is_seen(context, CLUE_BUS)))
        return 0.6;
    if (clue == CLUE_DISK_FULL && disk_is_guess(context))
        return 0.5;
    if (is_bus(clue))
        return bus_confidence(context, alone);
    if (is_oom(clue))
        return oom_is_another(context) ? 0.5 : alone;
    if (clue == CLUE_MAPS)
        return maps_confidence(context, alone);
    if (clue == CLUE_NCCL_SEGMENT && clue_is_seen(context, CLUE_NCCL_CUDA))
        return 0.4;
    if (clue == CLUE_CANCELLED && death_before(context, clue))
        return 0.4;
    if (clue == CLUE_SIGTERM && death_before(context, clue))
        return 0.2;
    bool guessed = clue == CLUE_SHM_WRITE || clue == CLUE_SHM_STALE_ERRNO || clue == CLUE_NCCL_SEGMENT;
    if (clue_infos[clue].cause == CAUSE_SHM_EXHAUSTED && clue != CLUE_SHM_INODES &&
        shm_seen_free(context->facts))
        return MIN(alone, guessed ? 0.6 : 0.85);
    return alone;
}

static Clue best_clue(const CauseContext *context, ClueTier tier)
{
    Clue best = CLUES;
    double best_confidence = -1;
    for (Clue clue = 0; clue < CLUES; clue++) {
        if (clue_infos[clue].tier != tier || !clue_is_seen(context, clue))
            continue;
        if (clue == CLUE_BROADCAST && clue_is_seen(context, CLUE_POOL_BROKEN)) /* they wait for a dead one */
            continue;
        double confidence = clue_confidence(context, clue);
        if (confidence > best_confidence ||
            (confidence == best_confidence &&
             clue_seen(context, clue)->first_line < clue_seen(context, best)->first_line)) {
            best = clue;
            best_confidence = confidence;
        }
    }
    return best;
}

/* The exception that decides if there is no TIER_CAUSE clue; `fallback` is the best TIER_FALLBACK one, or
 * CLUES.
 */
static const LoggedException *deciding_exception(const CauseContext *context, Clue fallback)
{
    const LoggedException *worker = &context->facts->worker;
    const LoggedException *plain = &context->facts->plain;
    bool later = plain->seen && plain->line > worker->line + LINES_SURVIVED;
    if (worker->seen && !later)
        return worker;
    if (!plain->seen)
        return NULL;
    if (fallback == CLUES)
        return plain;
    uint64_t line = clue_seen(context, fallback)->first_line;
    return plain->line < line && line - plain->line <= LINES_NEAR ? plain : NULL;
}

/* This machine's kernel log may show what the log does not: an OOM kill of the worker that died. */
static const OomKill *machine_kill(const CauseContext *context, int pid)
{
    if (!context->machine || pid == 0)
        return NULL;
    for (size_t i = context->machine->kills.n; i > 0; i--)
        if (context->machine->kills.items[i - 1].pid == pid)
            return &context->machine->kills.items[i - 1];
    return NULL;
}

static const LoggedVictim *deciding_victim(const CauseContext *context)
{
    const int pids[] = {clue_seen(context, CLUE_SIGKILL_WORKER)->pid,
                        clue_seen(context, CLUE_BUS_WORKER)->pid, clue_seen(context, CLUE_WORKER_EXITED)->pid,
                        clue_seen(context, CLUE_SIGKILL)->pid};
    for (size_t k = 0; k < ARRAY_SIZE(pids); k++)
        for (size_t i = 0; i < context->facts->n_victims; i++)
            if (pids[k] != 0 && context->facts->victims[i].pid == pids[k])
                return &context->facts->victims[i];
    return context->facts->n_victims > 0 ? &context->facts->victims[0] : NULL;
}

/* The process that died first, if the deciding clue or a related one names it. */
static int deciding_pid(const CauseContext *context)
{
    static const Clue deaths[] = {CLUE_SIGKILL_WORKER, CLUE_BUS_WORKER, CLUE_ABORTED, CLUE_WORKER_EXITED};
    if (context->clue == CLUES)
        return clue_seen(context, CLUE_WORKER_EXITED)->pid;
    const LoggedVictim *victim = is_oom(context->clue) ? deciding_victim(context) : NULL;
    if (victim)
        return victim->pid;
    if (clue_seen(context, context->clue)->pid != 0)
        return clue_seen(context, context->clue)->pid;
    CauseId cause = clue_infos[context->clue].cause;
    for (Clue clue = 0; clue < CLUES; clue++)
        if (clue_infos[clue].cause == cause && clue_seen(context, clue)->pid != 0)
            return clue_seen(context, clue)->pid;
    if (is_bus(context->clue) || is_oom(context->clue) || cause == CAUSE_KILLED || cause == CAUSE_SEGFAULT)
        for (size_t i = 0; i < ARRAY_SIZE(deaths); i++)
            if (clue_seen(context, deaths[i])->pid != 0)
                return clue_seen(context, deaths[i])->pid;
    return 0;
}

static const char *summary_fill(CauseContext *context, const char *template, int pid, const char *comm)
{
    const char *mark = strstr(template, "{pid}");
    if (!mark)
        return template;
    const char *who = "";
    if (pid != 0)
        who = comm && comm[0] ? cause_printf(context, SUMMARY_PID_NAME, pid,
                                             text_shown(context, text_of(comm), false, false))
                              : cause_printf(context, SUMMARY_PID, pid);
    return cause_printf(context, "%.*s%s%s", (int)(mark - template), template, who, mark + strlen("{pid}"));
}

/* The log only says "killed"; this machine's kernel log says that it was the OOM killer. */
static const char *decide_by_machine(CauseContext *context, const OomKill *kill)
{
    Cause *cause = &context->log->cause;
    Clue as = kill->scope == OOM_SCOPE_CGROUP    ? CLUE_OOM_CGROUP
              : kill->scope == OOM_SCOPE_MACHINE ? CLUE_OOM_MACHINE
                                                 : CLUE_OOM_SOME;
    cause->id = clue_infos[as].cause;
    cause->confidence = MIN(clue_infos[as].confidence, 0.85);
    context->log->detail = NULL;
    diagnosis_evidence(context, context->log, cause_printf(context, EXPLAIN_KERNEL_KILLED, kill->pid));
    return summary_fill(context, _(clue_infos[as].summary), kill->pid, kill->comm);
}

/* "what():  decoder: bad magic number" */
static const char *cpp_summary(CauseContext *context)
{
    const KeptLine *kept = kept_line(context, CLUE_CPP_WHAT);
    Text what;
    if (!kept || !text_key(text_trim(kept->excerpt), "what()", &what))
        return _(clue_infos[CLUE_CPP].summary);
    return cause_printf(context, CPP_WHAT_SUMMARY, text_shown(context, what, false, kept->cut_after));
}

/* "The node was low on resource: memory. Container …" */
static const char *evicted_summary(CauseContext *context)
{
    const KeptLine *kept = kept_line(context, CLUE_EVICTED);
    Text rest;
    Text resource;
    if (!kept || !text_after(kept->excerpt, " resource: ", &rest) || !text_until(&rest, '.', &resource))
        return _(clue_infos[CLUE_EVICTED].summary);
    return cause_printf(context, EVICTED_RESOURCE_SUMMARY, text_shown(context, resource, false, false));
}

static bool segfault_in_worker(const CauseContext *context)
{
    const KeptLine *kept = kept_line(context, CLUE_SEGFAULT);
    return kept && text_contains(kept->excerpt, "DataLoader worker");
}

static void decide_clue(CauseContext *context)
{
    const ClueInfo *info = &clue_infos[context->clue];
    Cause *cause = &context->log->cause;
    cause->id = info->cause;
    cause->confidence = clue_confidence(context, context->clue);
    cause->pid = deciding_pid(context);
    context->log->detail = info->detail;

    bool sigkill = context->clue == CLUE_SIGKILL_WORKER || context->clue == CLUE_SIGKILL;
    const OomKill *kill = sigkill ? machine_kill(context, cause->pid) : NULL;
    const LoggedVictim *victim = is_oom(context->clue) ? deciding_victim(context) : NULL;
    if (kill)
        cause->summary = decide_by_machine(context, kill);
    else if (is_bus(context->clue) && log_is_macos(context)) {
        cause->id = CAUSE_UNKNOWN;
        cause->confidence = BUS_MACOS_CONFIDENCE;
        cause->summary = summary_fill(context, BUS_MACOS_SUMMARY, cause->pid, NULL);
    } else if (bus_is_file(context)) {
        cause->id = CAUSE_BUS_ERROR_FILE;
        cause->confidence = 0.6;
        cause->summary = summary_fill(context, bus_in_reader(context) ? BUS_READER_SUMMARY : BUS_FILE_SUMMARY,
                                      cause->pid, NULL);
    } else if (is_bus(context->clue) && cause->confidence <= BUS_DOUBTFUL)
        cause->summary = summary_fill(context, BUS_DOUBTFUL_SUMMARY, cause->pid, NULL);
    else if (context->clue == CLUE_DISK_FULL && disk_is_shm(context)) {
        diagnosis_set(context->log, CAUSE_SHM_EXHAUSTED, DISK_SHM_CONFIDENCE, DISK_SHM_SUMMARY);
        context->log->detail = NULL;
    } else if (context->clue == CLUE_CPP)
        cause->summary = cpp_summary(context);
    else if (context->clue == CLUE_EVICTED)
        cause->summary = evicted_summary(context);
    else if (context->clue == CLUE_SEGFAULT && segfault_in_worker(context))
        cause->summary = summary_fill(context, SEGFAULT_WORKER_SUMMARY, cause->pid, NULL);
    else if (context->clue == CLUE_MAPS && cause->confidence < MAPS_DOUBTFUL)
        cause->summary = summary_fill(context, MAPS_DOUBTFUL_SUMMARY, cause->pid, NULL);
    else
        cause->summary = summary_fill(context, _(info->summary), cause->pid, victim ? victim->comm : NULL);
}

/* As Python prints it: "ValueError: bad label 7". */
static const char *exception_text(CauseContext *context, const LoggedException *exception, Text message)
{
    const char *type = text_shown(context, text_of(exception->type), false, false);
    const char *shown = text_shown(context, message, false, false);
    return shown[0] ? cause_printf(context, "%s: %s", type, shown) : type;
}

/* at may be NULL. */
static const char *exception_sentence(CauseContext *context, const char *raised, const char *at)
{
    const LoggedException *exception = context->exception;
    if (exception->feeder)
        return at ? cause_printf(context, EXCEPTION_FEEDER_AT, raised, at)
                  : cause_printf(context, EXCEPTION_FEEDER, raised);
    if (exception->background)
        return at ? cause_printf(context, EXCEPTION_BACKGROUND_AT, raised, at)
                  : cause_printf(context, EXCEPTION_BACKGROUND, raised);
    if (exception == &context->facts->worker)
        return at ? cause_printf(context, EXCEPTION_WORKER_AT, raised, at)
                  : cause_printf(context, EXCEPTION_WORKER, raised);
    return at ? cause_printf(context, EXCEPTION_PROGRAM_AT, raised, at)
              : cause_printf(context, EXCEPTION_PROGRAM, raised);
}

/* Nothing but the exception says what happened, and the exception does not speak of memory. */
static bool nothing_points_to_memory(const CauseContext *context)
{
    static const char *const words[] = {"memory", "Memory", "mmap", "shm", "/torch_"};
    if (context->exception->cut)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strstr(context->exception->message, words[i]))
            return false;
    for (Clue clue = 0; clue < CLUES; clue++)
        if (clue_infos[clue].tier != TIER_CONTEXT && clue != CLUE_CHILD_FAILED && clue != CLUE_TEARDOWN &&
            clue_is_seen(context, clue))
            return false;
    return true;
}

/* What follows from the exception, or "". */
static const char *exception_meaning(const CauseContext *context)
{
    const LoggedException *exception = context->exception;
    bool passed_on = exception == &context->facts->worker && !exception->background;
    if (exception->feeder)
        return EXCEPTION_FEEDER_MEANING;
    if (!nothing_points_to_memory(context))
        return passed_on ? EXCEPTION_WORKER_MEANING : "";
    return passed_on ? EXCEPTION_WORKER_ALONE_MEANING : EXCEPTION_PROGRAM_ALONE_MEANING;
}

static void decide_exception(CauseContext *context)
{
    const LoggedException *exception = context->exception;
    Cause *cause = &context->log->cause;
    bool worker = exception == &context->facts->worker;
    cause->id = CAUSE_PYTHON_ERROR;
    bool doubtful = exception->inner.file[0] == '\0' || exception->cut || clue_is_seen(context, CLUE_SIGKILL);
    cause->confidence = doubtful ? 0.6 : worker ? 0.9 : 0.8;
    if (context->facts->lines > exception->line + LINES_SURVIVED) {
        cause->confidence = 0.5;
        diagnosis_evidence(context, context->log,
                           cause_printf(context, EXPLAIN_SURVIVED,
                                        (unsigned long long)(context->facts->lines - exception->line)));
    }
    const Frame *frame = exception->user.file[0] ? &exception->user : &exception->inner;
    Text message = text_of(exception->message);
    if (text_ends(message, "."))
        message.size--;
    const char *raised = exception_text(context, exception, message);
    const char *at = frame->file[0] ? cause_frame(context, frame) : NULL;
    const char *meaning = exception_meaning(context);
    const char *sentence = exception_sentence(context, raised, at);
    cause->summary =
        cause_printf(context, "%s%s%s", sentence, meaning[0] ? sentence_gap(text_of(sentence)) : "", meaning);
}

/* "node1:9:9 [0] misc/socket.cc:57 NCCL WARN Connect to 10.0.0.2<4> failed : Connection refused" */
static const char *nccl_summary(CauseContext *context)
{
    const KeptLine *kept = kept_line(context, CLUE_NCCL_WARN);
    Text reason;
    if (!kept || !text_after(kept->excerpt, "NCCL WARN ", &reason))
        return LOG_NCCL_ERROR_SUMMARY;
    return cause_printf(context, LOG_NCCL_WARN_SUMMARY, text_shown(context, reason, false, kept->cut_after));
}

/* The summary of a log that contains only after-effects, or not even those (symptom is CLUES). */
static const char *symptom_summary(CauseContext *context, Clue symptom)
{
    if (context->facts->bytes == 0)
        return LOG_EMPTY_SUMMARY;
    if (symptom == CLUES)
        return LOG_NOTHING_SUMMARY;
    if (clue_is_seen(context, CLUE_WORKER_EXITED))
        return LOG_WORKER_EXITED_SUMMARY;
    if (clue_is_seen(context, CLUE_POOL_BROKEN))
        return LOG_POOL_BROKEN_SUMMARY;
    if (clue_is_seen(context, CLUE_NCCL_ERROR))
        return nccl_summary(context);
    if (clue_is_seen(context, CLUE_PIN_THREAD))
        return LOG_PIN_THREAD_SUMMARY;
    if (clue_is_seen(context, CLUE_PARENT_GONE))
        return LOG_PARENT_GONE_SUMMARY;
    if (clue_is_seen(context, CLUE_CHILD_FAILED))
        return LOG_CHILD_FAILED_SUMMARY;
    if (symptom == CLUE_LEAKED)
        return LOG_LEAKED_SUMMARY;
    if (symptom == CLUE_TEARDOWN || (symptom == CLUE_PEER_LOST && clue_is_seen(context, CLUE_FINISHED)))
        return LOG_TEARDOWN_SUMMARY;
    return LOG_AFTER_EFFECTS_SUMMARY;
}

static void decide_symptom(CauseContext *context)
{
    Cause *cause = &context->log->cause;
    Clue symptom = best_clue(context, TIER_SYMPTOM);
    cause->id = CAUSE_UNKNOWN;
    cause->confidence = symptom == CLUES ? 0 : clue_infos[symptom].confidence;
    cause->pid = deciding_pid(context);
    cause->summary = summary_fill(context, symptom_summary(context, symptom), cause->pid, NULL);
}

/* The clue belongs to the deciding cause; otherwise it shows a separate problem. */
static bool clue_is_related(const CauseContext *context, Clue clue)
{
    const ClueInfo *info = &clue_infos[clue];
    if (info->tier != TIER_CAUSE || context->clue == CLUES)
        return true;
    if (context->clue == CLUE_HEAP && is_bus(clue))
        return true;
    bool killed = clue == CLUE_SIGKILL || clue == CLUE_SIGKILL_WORKER;
    if (is_oom(context->clue))
        return is_oom(clue) || killed || (is_bus(clue) && !oom_is_another(context));
    return info->cause == clue_infos[context->clue].cause;
}

/* The clue is worth showing: no better clue says the same, and background matters only for a bus error or a
 * hang. */
static bool clue_bears(const CauseContext *context, Clue clue)
{
    if (clue == CLUE_DISK_FULL && context->clue != clue && disk_is_guess(context))
        return false; /* half of a message whose other half decided */
    if (clue == CLUE_NCCL_SEGMENT && context->clue == CLUE_NCCL_CUDA)
        return false; /* a consequence */
    if (clue == CLUE_OOM_SOME)
        return !clue_is_seen(context, CLUE_OOM_CGROUP) && !clue_is_seen(context, CLUE_OOM_MACHINE);
    if (clue_infos[clue].tier != TIER_CONTEXT)
        return true;
    if (clue == CLUE_CPP_WHAT)
        return context->clue == CLUE_CPP;
    if (clue == CLUE_NCCL_WARN)
        return context->clue == CLUES && clue_is_seen(context, CLUE_NCCL_ERROR);
    if (clue == CLUE_NO_OOM)
        return context->clue == CLUE_SIGKILL;
    if (clue == CLUE_FORK_WARNING)
        return context->log->cause.id == CAUSE_WORKER_HANG;
    return clue_infos[clue].evidence && is_bus(context->clue);
}

/* The deciding clue, then the others in the order of their first lines. */
static size_t clues_in_order(const CauseContext *context, Clue order[static CLUES])
{
    size_t n = 0;
    if (context->clue != CLUES)
        order[n++] = context->clue;
    size_t first = n;
    for (Clue clue = 0; clue < CLUES; clue++) {
        if (clue == context->clue || !clue_is_seen(context, clue) || !clue_bears(context, clue) ||
            !clue_infos[clue].evidence)
            continue;
        size_t i = n++;
        for (;
             i > first && clue_seen(context, order[i - 1])->first_line > clue_seen(context, clue)->first_line;
             i--)
            order[i] = order[i - 1];
        order[i] = clue;
    }
    return n;
}

static void evidence_clue(CauseContext *context, Clue clue)
{
    const char *meaning = _(clue_infos[clue].evidence);
    unsigned long long line = clue_seen(context, clue)->first_line;
    unsigned long long n = clue_seen(context, clue)->count;
    const char *text;
    if (clue_is_related(context, clue))
        text = n > 1 ? cause_printf(context, EXPLAIN_LINES, line, n, meaning)
                     : cause_printf(context, EXPLAIN_LINE, line, meaning);
    else
        text = n > 1 ? cause_printf(context, EXPLAIN_SEPARATE_LINES, line, n, meaning)
                     : cause_printf(context, EXPLAIN_SEPARATE_LINE, line, meaning);
    diagnosis_evidence(context, context->log, text);
}

static void evidence_where(CauseContext *context)
{
    const Frame *where = &clue_seen(context, context->clue)->where;
    if (!where->file[0] &&
        (is_bus(context->clue) || context->clue == CLUE_SEGFAULT || context->clue == CLUE_ABORTED))
        where = &context->facts->fatal;
    if (where->file[0])
        diagnosis_evidence(context, context->log,
                           cause_printf(context, EXPLAIN_HAPPENED_AT, cause_frame(context, where)));
}

static void evidence_segfault(CauseContext *context)
{
    const LoggedException *before = exception_before_crash(context);
    if (before)
        diagnosis_evidence(context, context->log,
                           cause_printf(context, EXPLAIN_RAISED_BEFORE, (unsigned long long)before->line,
                                        text_shown(context, text_of(before->type), false, false)));
}

static void evidence_bus(CauseContext *context)
{
    const LogFacts *facts = context->facts;
    if (torch_reserves(facts))
        diagnosis_evidence(
            context, context->log,
            cause_printf(context, EXPLAIN_TORCH_RESERVES, facts->torch_major, facts->torch_minor));
    else if (!shm_seen_full(facts) && context->log->cause.id == CAUSE_SHM_EXHAUSTED)
        diagnosis_evidence(context, context->log, EXPLAIN_BUS_AMBIGUOUS);
}

static void evidence_df(CauseContext *context)
{
    const LogFacts *facts = context->facts;
    if (!facts->df_seen || facts->shm_size_bytes == U64_UNKNOWN)
        return;
    diagnosis_evidence(context, context->log,
                       cause_printf(context, shm_seen_free(facts) ? EXPLAIN_SHM_FREE : EXPLAIN_SHM_FULL,
                                    facts->shm_used_percent, SIZE_TEXT(facts->shm_size_bytes)));
}

static void evidence_oom(CauseContext *context)
{
    const LoggedVictim *victim = deciding_victim(context);
    if (context->facts->cgroup_limit_bytes != U64_UNKNOWN)
        diagnosis_evidence(
            context, context->log,
            cause_printf(context, EXPLAIN_CGROUP_LIMIT, SIZE_TEXT(context->facts->cgroup_limit_bytes)));
    if (victim && victim->anon_bytes != U64_UNKNOWN)
        diagnosis_evidence(context, context->log,
                           cause_printf(context, EXPLAIN_VICTIM, victim->pid, SIZE_TEXT(victim->anon_bytes),
                                        SIZE_TEXT(victim->shmem_bytes)));
}

static void evidence_maps(CauseContext *context)
{
    uint64_t bytes = 0;
    uint64_t count = 0;
    maps_numbers(context, &bytes, &count);
    if (count > 0)
        diagnosis_evidence(
            context, context->log,
            cause_printf(context, EXPLAIN_SEGMENT_NUMBER, (unsigned long long)count, SIZE_TEXT(bytes)));
    if (count < MAPS_MANY)
        diagnosis_evidence(context, context->log, EXPLAIN_MAPS_AMBIGUOUS);
}

/* The state of this machine; the log may come from another one. */
static void evidence_machine(CauseContext *context)
{
    const Machine *machine = context->machine;
    CauseId id = context->log->cause.id;
    if (id == CAUSE_SHM_EXHAUSTED && machine->shm.state == SHM_OK)
        diagnosis_evidence(context, context->log,
                           cause_printf(context, EXPLAIN_SHM_HERE, SIZE_TEXT(machine->shm.size_bytes),
                                        SIZE_TEXT(machine->shm.used_bytes)));
    if (id == CAUSE_MAPS_EXHAUSTED && machine->max_map_count != U64_UNKNOWN)
        diagnosis_evidence(
            context, context->log,
            cause_printf(context, EXPLAIN_MAPS_HERE, (unsigned long long)machine->max_map_count));
    if (id == CAUSE_FD_EXHAUSTED && machine->limits.open_files_soft < RLIMIT_UNLIMITED)
        diagnosis_evidence(
            context, context->log,
            cause_printf(context, EXPLAIN_FILES_HERE, (unsigned long long)machine->limits.open_files_soft));
}

static void exception_show(CauseContext *context)
{
    const LoggedException *exception = context->exception;
    unsigned long long line = exception->line;
    bool worker = exception == &context->facts->worker;
    const char *type = text_shown(context, text_of(exception->type), false, false);
    const char *text;
    if (exception->inner.file[0]) {
        const char *at = cause_frame(context, &exception->inner);
        text = worker ? cause_printf(context, EXPLAIN_RAISED_WORKER_AT, line, type, at)
                      : cause_printf(context, EXPLAIN_RAISED_AT, line, type, at);
    } else
        text = worker ? cause_printf(context, EXPLAIN_RAISED_WORKER, line, type)
                      : cause_printf(context, EXPLAIN_RAISED, line, type);
    diagnosis_evidence(context, context->log, text);
    if (exception->led_to[0])
        diagnosis_evidence(context, context->log,
                           cause_printf(context, EXPLAIN_LED_TO,
                                        text_shown(context, text_of(exception->led_to), false, false)));
    diagnosis_match(context, context->log, exception_text(context, exception, text_of(exception->message)));
}

static void evidence_list(CauseContext *context)
{
    Clue order[CLUES];
    size_t n = MIN(clues_in_order(context, order), (size_t)EVIDENCE_CLUES_MAX);
    for (size_t i = 0; i < n; i++)
        evidence_clue(context, order[i]);
    if (context->clue == CLUES)
        return;
    evidence_where(context);
    if (clue_infos[context->clue].cause == CAUSE_SHM_EXHAUSTED)
        evidence_df(context);
    if (context->clue == CLUE_SEGFAULT)
        evidence_segfault(context);
    if (is_bus(context->clue) && context->log->cause.id != CAUSE_UNKNOWN)
        evidence_bus(context);
    if (is_oom(context->clue))
        evidence_oom(context);
    if (context->clue == CLUE_MAPS)
        evidence_maps(context);
    if (context->machine)
        evidence_machine(context);
}

/* The lines in their order; if there are too many, those of the deciding clue are kept. */
static void matched_list(CauseContext *context)
{
    const LogFacts *facts = context->facts;
    const KeptLine *last = NULL; /* patterns of two clues may have matched the same line */
    size_t others = MATCHED_MAX;
    for (size_t i = 0; i < facts->n_kept; i++)
        others -= facts->kept[i].clue == context->clue && others > 0;
    for (size_t i = 0; i < facts->n_kept; i++) {
        const KeptLine *kept = &facts->kept[i];
        if (!clue_bears(context, kept->clue) ||
            (last && last->line == kept->line && text_same(last->excerpt, kept->excerpt)))
            continue;
        if (kept->clue != context->clue && others == 0)
            continue;
        others -= kept->clue != context->clue;
        diagnosis_match(context, context->log,
                        text_shown(context, kept->excerpt, kept->cut_before, kept->cut_after));
        last = kept;
    }
}

static void log_judge(CauseContext *context)
{
    context->clue = best_clue(context, TIER_CAUSE);
    if (context->clue == CLUE_SIGKILL && exception_ends(context)) {
        context->exception = &context->facts->plain;
        context->clue = CLUES;
    } else if (context->clue == CLUES) {
        Clue fallback = best_clue(context, TIER_FALLBACK);
        context->exception = deciding_exception(context, fallback);
        context->clue = context->exception ? CLUES : fallback;
    }
    context->log->bus_guess = context->clue != CLUES && is_bus(context->clue);
    if (context->clue != CLUES)
        decide_clue(context);
    else if (context->exception)
        decide_exception(context);
    else
        decide_symptom(context);
    if (context->exception)
        exception_show(context);
    evidence_list(context);
    matched_list(context);
    diagnosis_notes(context, context->log);
    diagnosis_fixes(context, context->log);
}

int explainer_finish(Explainer *explainer, const Machine *machine, const GuardOffer *guard, Arena *arena,
                     Diagnosis *ret)
{
    const GuardOffer no_guard = {0};
    Diagnosis diagnosis = {0};
    CauseContext context = {
        .facts = log_reader_finish(explainer->reader),
        .log = &diagnosis,
        .machine = machine,
        .guard = guard ? guard : &no_guard,
        .arena = arena,
    };
    if (!context.facts)
        return -ENOMEM;
    log_judge(&context);
    log_reader_reset(explainer->reader);
    if (context.r < 0)
        return context.r;
    *ret = diagnosis;
    return 0;
}
