#include <string.h>

#include "explain-case.h"
#include "units.h"

enum { MATCHED_MAX = 12, EVIDENCE_MAX = 10, EVIDENCE_CLUES_MAX = 6, NOTES_MAX = 3 };

/* An exception counts as what a later event came from when no more lines lie between; and a log that goes on
 * for longer after one has probably survived it. */
enum { LINES_NEAR = 500, LINES_SURVIVED = 1000 };

/* A process that has made so many segments may well hold as many mappings as the kernel allows. */
enum { MAPS_MANY = 30000 };

/* A bus error of no more confidence than this may as well come from a mapped file. */
static const double BUS_DOUBTFUL = 0.6;

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

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

void explainer_reset(Explainer *explainer)
{
    log_reader_reset(explainer->reader);
}

int explainer_feed(Explainer *explainer, const char *bytes, size_t n)
{
    return log_reader_feed(explainer->reader, bytes, n);
}

static void list_add(Case *it, const char ***items, size_t *n, size_t *capacity, const char *text)
{
    if (it->r < 0)
        return;
    const char **slot = text ? ARENA_PUSH(it->arena, *items, *n, *capacity) : NULL;
    if (slot)
        *slot = text;
    else
        it->r = -ENOMEM;
}

void case_evidence(Case *it, const char *text)
{
    Cause *cause = &it->out->cause;
    if (cause->n_evidence < EVIDENCE_MAX)
        list_add(it, &cause->evidence, &cause->n_evidence, &cause->evidence_capacity, text);
}

void case_matched(Case *it, const char *text)
{
    Explanation *out = it->out;
    if (out->n_matched < MATCHED_MAX)
        list_add(it, &out->matched, &out->n_matched, &out->matched_capacity, text);
}

void case_note(Case *it, const char *text)
{
    Explanation *out = it->out;
    if (out->n_notes < NOTES_MAX)
        list_add(it, &out->notes, &out->n_notes, &out->notes_capacity, text);
}

void case_fix(Case *it, FixNeeds needs, const char *what, const char *command)
{
    if (it->r >= 0)
        it->r = !what ? -ENOMEM : fix_add(it->arena, &it->out->fixes, needs, what, command);
}

/* Somebody else's bytes, made fit to be shown. */
static const char *text_shown(Case *it, Text raw, bool cut_before, bool cut_after)
{
    _cleanup_buffer_ Buffer safe = {0};
    int r = cut_before ? buffer_append_text(&safe, "…") : 0;
    if (r >= 0)
        r = text_escape(text_trim(raw), &safe);
    if (r >= 0 && cut_after)
        r = buffer_append_text(&safe, "…");
    const char *copy = r < 0 ? NULL : arena_copy(it->arena, buffer_text(&safe), safe.size);
    if (!copy)
        it->r = -ENOMEM;
    return copy ? copy : "";
}

static bool text_same(Text a, Text b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static const char *frame_text(Case *it, const Frame *frame)
{
    const char *file = text_shown(it, text_of(frame->file), false, false);
    const char *function = text_shown(it, text_of(frame->function), false, false);
    const char *text =
        arena_printf(it->arena, "%s line %u%s%s", file, frame->line, function[0] ? ", in " : "", function);
    if (!text)
        it->r = -ENOMEM;
    return text ? text : "";
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

/* Since 2.10 PyTorch reserves its segments before it writes: a full /dev/shm is an exception there, no
 * SIGBUS. */
static bool torch_reserves(const LogFacts *facts)
{
    return facts->torch_major > 2 || (facts->torch_major == 2 && facts->torch_minor >= 10);
}

static bool shm_seen_full(const LogFacts *facts)
{
    return facts->shm_used_percent >= 90;
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

static double bus_confidence(const Case *it, double alone)
{
    if (shm_seen_full(it->facts))
        return 0.95;
    if (case_has(it, CLUE_MAPPED_FILE) || torch_reserves(it->facts))
        return MIN(alone, BUS_DOUBTFUL);
    if (machine_shm_small(it->machine) || it->facts->shm_size_bytes <= 128 * MIB)
        return 0.9;
    if (machine_shm_large(it->machine)) /* the log may be from elsewhere, but most are not */
        return MIN(alone, 0.75);
    return case_has(it, CLUE_LEAKED) ? MAX(alone, 0.7) : alone;
}

/* Not the full /dev/shm but a mapped file: a bus error beside failing storage, or where PyTorch cannot cause
 * it. */
static bool bus_is_file(const Case *it)
{
    if (!is_bus(it->clue) || shm_seen_full(it->facts))
        return false;
    return case_has(it, CLUE_STORAGE) || strstr(it->facts->fatal.file, "memmap") ||
           (case_has(it, CLUE_MAPPED_FILE) && torch_reserves(it->facts));
}

/* The kernel killed somebody, but a worker died of a bus error and is not among the dead: two separate
 * things. */
static bool oom_is_another(const Case *it)
{
    int pid = case_clue(it, CLUE_BUS_WORKER)->pid;
    return pid != 0 && it->facts->n_victims > 0 && !is_victim(it->facts, pid);
}

static const KeptLine *kept_line(const Case *it, Clue clue)
{
    for (size_t i = 0; i < it->facts->n_kept; i++)
        if (it->facts->kept[i].clue == clue)
            return &it->facts->kept[i];
    return NULL;
}

/* "unable to mmap 68 bytes from file </torch_10497_3546569614_63832>": how much, and the how many-th it was.
 */
static void maps_numbers(const Case *it, uint64_t *ret_bytes, uint64_t *ret_count)
{
    *ret_bytes = *ret_count = 0;
    const KeptLine *line = kept_line(it, CLUE_MAPS);
    Text rest = line ? line->excerpt : (Text){"", 0};
    Text part;
    while (text_word(&rest, &part))
        if (text_equal(part, "mmap"))
            break;
    if (!text_word(&rest, &part) || text_u64(part, 10, ret_bytes) < 0)
        return;
    while (text_until(&rest, '_', &part))
        continue;
    Text digits;
    if (text_until(&part, '>', &digits))
        (void)text_u64(digits, 10, ret_count);
}

static double maps_confidence(const Case *it, double alone)
{
    uint64_t bytes = 0;
    uint64_t count = 0;
    maps_numbers(it, &bytes, &count);
    return count >= MAPS_MANY ? 0.95 : bytes >= 8 * GIB ? 0.5 : alone;
}

static double clue_confidence(const Case *it, Clue clue)
{
    double alone = clue_infos[clue].confidence;
    if (is_bus(clue))
        return bus_confidence(it, alone);
    if (is_oom(clue))
        return oom_is_another(it) ? 0.5 : alone;
    if (clue == CLUE_MAPS)
        return maps_confidence(it, alone);
    if (clue == CLUE_NCCL_SEGMENT && case_has(it, CLUE_CUDA_ERROR))
        return 0.4;
    return alone;
}

static Clue best_clue(const Case *it, ClueTier tier)
{
    Clue best = CLUES;
    double best_confidence = -1;
    for (Clue clue = 0; clue < CLUES; clue++) {
        if (clue_infos[clue].tier != tier || !case_has(it, clue))
            continue;
        double confidence = clue_confidence(it, clue);
        if (confidence > best_confidence ||
            (confidence == best_confidence &&
             case_clue(it, clue)->first_line < case_clue(it, best)->first_line)) {
            best = clue;
            best_confidence = confidence;
        }
    }
    return best;
}

/* The exception that decides when no clue of a cause is there. `fallback` may be CLUES. */
static const LoggedException *deciding_exception(const Case *it, Clue fallback)
{
    const LoggedException *worker = &it->facts->worker;
    const LoggedException *plain = &it->facts->plain;
    bool later = plain->seen && plain->line > worker->line + LINES_SURVIVED;
    if (worker->seen && !later)
        return worker;
    if (!plain->seen)
        return NULL;
    if (fallback == CLUES)
        return plain;
    uint64_t line = case_clue(it, fallback)->first_line;
    return plain->line < line && line - plain->line <= LINES_NEAR ? plain : NULL;
}

/* The kernel's log of this machine may know what the log does not: the worker that died is one of its
 * victims. */
static const OomKill *machine_kill(const Case *it, int pid)
{
    if (!it->machine || pid == 0)
        return NULL;
    for (size_t i = it->machine->kills.n; i > 0; i--)
        if (it->machine->kills.items[i - 1].pid == pid)
            return &it->machine->kills.items[i - 1];
    return NULL;
}

static const LoggedVictim *deciding_victim(const Case *it)
{
    const int pids[] = {case_clue(it, CLUE_SIGKILL_WORKER)->pid, case_clue(it, CLUE_BUS_WORKER)->pid,
                        case_clue(it, CLUE_WORKER_EXITED)->pid, case_clue(it, CLUE_SIGKILL)->pid};
    for (size_t k = 0; k < ARRAY_SIZE(pids); k++)
        for (size_t i = 0; i < it->facts->n_victims; i++)
            if (pids[k] != 0 && it->facts->victims[i].pid == pids[k])
                return &it->facts->victims[i];
    return it->facts->n_victims > 0 ? &it->facts->victims[0] : NULL;
}

/* Of the process that died first, where the deciding clue or one that goes with it names it. */
static int deciding_pid(const Case *it)
{
    static const Clue deaths[] = {CLUE_SIGKILL_WORKER, CLUE_BUS_WORKER, CLUE_ABORTED, CLUE_WORKER_EXITED};
    if (it->clue == CLUES)
        return case_clue(it, CLUE_WORKER_EXITED)->pid;
    const LoggedVictim *victim = is_oom(it->clue) ? deciding_victim(it) : NULL;
    if (victim)
        return victim->pid;
    if (case_clue(it, it->clue)->pid != 0)
        return case_clue(it, it->clue)->pid;
    CauseId cause = clue_infos[it->clue].cause;
    for (Clue clue = 0; clue < CLUES; clue++)
        if (clue_infos[clue].cause == cause && case_clue(it, clue)->pid != 0)
            return case_clue(it, clue)->pid;
    if (is_bus(it->clue) || is_oom(it->clue) || cause == CAUSE_KILLED || cause == CAUSE_SEGFAULT)
        for (size_t i = 0; i < ARRAY_SIZE(deaths); i++)
            if (case_clue(it, deaths[i])->pid != 0)
                return case_clue(it, deaths[i])->pid;
    return 0;
}

/* NULL: no memory. */
static const char *summary_fill(Case *it, const char *template, int pid, const char *comm)
{
    const char *mark = strstr(template, "{pid}");
    if (!mark)
        return template;
    const char *who = "";
    if (pid != 0)
        who = comm && comm[0]
                  ? arena_printf(it->arena, " (pid %d, %s)", pid, text_shown(it, text_of(comm), false, false))
                  : arena_printf(it->arena, " (pid %d)", pid);
    return who ? arena_printf(it->arena, "%.*s%s%s", (int)(mark - template), template, who,
                              mark + strlen("{pid}"))
               : NULL;
}

/* The log only says "killed", but the kernel's log of this machine says by whom. */
static const char *decide_by_machine(Case *it, const OomKill *kill)
{
    Cause *cause = &it->out->cause;
    Clue as = kill->scope == OOM_SCOPE_CGROUP    ? CLUE_OOM_CGROUP
              : kill->scope == OOM_SCOPE_MACHINE ? CLUE_OOM_MACHINE
                                                 : CLUE_OOM_SOME;
    cause->id = clue_infos[as].cause;
    cause->confidence = MIN(clue_infos[as].confidence, 0.85);
    it->out->detail = NULL;
    case_evidence(it, arena_printf(it->arena,
                                   "The kernel's log of this machine says that the OOM killer killed "
                                   "process %d. If this log comes from another machine, that is chance.",
                                   kill->pid));
    return summary_fill(it, clue_infos[as].summary, kill->pid, kill->comm);
}

/* "what():  decoder: bad magic number" */
static const char *cpp_summary(Case *it)
{
    const KeptLine *kept = kept_line(it, CLUE_CPP_WHAT);
    Text what;
    if (!kept || !text_key(text_trim(kept->excerpt), "what()", &what))
        return clue_infos[CLUE_CPP].summary;
    return arena_printf(it->arena, "A C++ exception that nobody caught ended the process: %s",
                        text_shown(it, what, false, kept->cut_after));
}

static void decide_clue(Case *it)
{
    const ClueInfo *info = &clue_infos[it->clue];
    Cause *cause = &it->out->cause;
    cause->id = info->cause;
    cause->confidence = clue_confidence(it, it->clue);
    cause->pid = deciding_pid(it);
    it->out->detail = info->detail;

    bool sigkill = it->clue == CLUE_SIGKILL_WORKER || it->clue == CLUE_SIGKILL;
    const OomKill *kill = sigkill ? machine_kill(it, cause->pid) : NULL;
    const LoggedVictim *victim = is_oom(it->clue) ? deciding_victim(it) : NULL;
    if (kill)
        cause->summary = decide_by_machine(it, kill);
    else if (bus_is_file(it)) {
        cause->id = CAUSE_BUS_ERROR_FILE;
        cause->confidence = 0.6;
        cause->summary =
            summary_fill(it,
                         "A process{pid} died of a bus error, and the log tells of mapped files or "
                         "failing storage: most likely a file that it had mapped was cut short or could "
                         "not be read. PyTorch's talk of shared memory is a guess.",
                         cause->pid, NULL);
    } else if (is_bus(it->clue) && cause->confidence <= BUS_DOUBTFUL)
        cause->summary =
            summary_fill(it,
                         "A process{pid} died of a bus error: either /dev/shm was full, or a file that it "
                         "had mapped was cut short. This log does not tell which.",
                         cause->pid, NULL);
    else if (it->clue == CLUE_CPP)
        cause->summary = cpp_summary(it);
    else
        cause->summary = summary_fill(it, info->summary, cause->pid, victim ? victim->comm : NULL);
    if (!cause->summary)
        it->r = -ENOMEM;
}

static void decide_exception(Case *it)
{
    const LoggedException *exception = it->exception;
    Cause *cause = &it->out->cause;
    bool worker = exception == &it->facts->worker;
    cause->id = CAUSE_PYTHON_ERROR;
    cause->confidence = exception->inner.file[0] == '\0' ? 0.6 : worker ? 0.9 : 0.8;
    if (it->facts->lines > exception->line + LINES_SURVIVED) {
        cause->confidence = 0.5;
        case_evidence(it, arena_printf(it->arena,
                                       "The log goes on for %llu lines after the exception: the program "
                                       "may have survived it, and ended for another reason.",
                                       (unsigned long long)(it->facts->lines - exception->line)));
    }
    const Frame *frame = exception->user.file[0] ? &exception->user : &exception->inner;
    Text message = text_of(exception->message);
    if (text_ends(message, "."))
        message.size--;
    cause->summary =
        arena_printf(it->arena, "%s raised %s%s%s%s%s. %s",
                     exception->feeder ? "The thread that sends a worker's batches"
                     : worker          ? "A DataLoader worker"
                                       : "The program",
                     text_shown(it, text_of(exception->type), false, false), message.size ? ": " : "",
                     text_shown(it, message, false, false), frame->file[0] ? ", at " : "",
                     frame->file[0] ? frame_text(it, frame) : "",
                     exception->feeder ? "That batch is lost, and the trainer waits for it for ever."
                     : worker          ? "PyTorch only passed it on. Nothing in the log points to memory."
                                       : "Nothing in the log points to memory.");
    if (!cause->summary)
        it->r = -ENOMEM;
}

/* What can be said when the log holds no more than after-effects; symptom is CLUES when not even that. */
static const char *symptom_summary(const Case *it, Clue symptom)
{
    if (it->facts->bytes == 0)
        return "The log is empty. Give the training's error output (stderr) and, if a process was killed, "
               "the kernel's log (dmesg).";
    if (symptom == CLUES)
        return "Nothing in this log tells of a failure that I know. The last lines of the training's "
               "error output (stderr) or the kernel's log (dmesg) may.";
    if (case_has(it, CLUE_WORKER_EXITED))
        return "A DataLoader worker{pid} died, but this log does not say of what: it may have been "
               "killed, or have crashed, or have ended itself.";
    if (case_has(it, CLUE_NCCL_ERROR))
        return "NCCL failed, and this log does not say why. Too little room in /dev/shm is one common "
               "reason; NCCL_DEBUG=INFO makes it tell.";
    if (case_has(it, CLUE_CHILD_FAILED))
        return "A launcher found that one of its processes had failed. The reason stands in that "
               "process's own output, which is not in this log.";
    if (symptom == CLUE_LEAKED)
        return "A process ended without removing its shared objects. Why it ended, this log does not say; "
               "the line that the shell printed (\"Bus error\", \"Killed\") would.";
    return "This log holds only after-effects: a process was gone when another talked to it. Why it went, "
           "it does not say.";
}

static void decide_symptom(Case *it)
{
    Cause *cause = &it->out->cause;
    Clue symptom = best_clue(it, TIER_SYMPTOM);
    cause->id = CAUSE_UNKNOWN;
    cause->confidence = symptom == CLUES ? 0 : clue_infos[symptom].confidence;
    cause->pid = deciding_pid(it);
    cause->summary = summary_fill(it, symptom_summary(it, symptom), cause->pid, NULL);
    if (!cause->summary)
        it->r = -ENOMEM;
}

/* The sentence goes with the deciding cause, or is about something else that went wrong too. */
static bool clue_is_related(const Case *it, Clue clue)
{
    const ClueInfo *info = &clue_infos[clue];
    if (info->tier != TIER_CAUSE || it->clue == CLUES)
        return true;
    bool killed = clue == CLUE_SIGKILL || clue == CLUE_SIGKILL_WORKER;
    if (is_oom(it->clue))
        return is_oom(clue) || killed || (is_bus(clue) && !oom_is_another(it));
    return info->cause == clue_infos[it->clue].cause;
}

/* Is worth telling: background only where it bears on a bus error or a hang, and not what a better clue says.
 */
static bool clue_bears(const Case *it, Clue clue)
{
    if (clue == CLUE_OOM_SOME)
        return !case_has(it, CLUE_OOM_CGROUP) && !case_has(it, CLUE_OOM_MACHINE);
    if (clue_infos[clue].tier != TIER_CONTEXT)
        return true;
    if (clue == CLUE_CPP_WHAT)
        return it->clue == CLUE_CPP;
    if (clue == CLUE_FORK_WARNING)
        return it->out->cause.id == CAUSE_WORKER_HANG;
    return clue_infos[clue].evidence && is_bus(it->clue);
}

/* The deciding clue, then the others in the order of their first lines. */
static size_t clues_in_order(const Case *it, Clue order[static CLUES])
{
    size_t n = 0;
    if (it->clue != CLUES)
        order[n++] = it->clue;
    size_t first = n;
    for (Clue clue = 0; clue < CLUES; clue++) {
        if (clue == it->clue || !case_has(it, clue) || !clue_bears(it, clue) || !clue_infos[clue].evidence)
            continue;
        size_t i = n++;
        for (; i > first && case_clue(it, order[i - 1])->first_line > case_clue(it, clue)->first_line; i--)
            order[i] = order[i - 1];
        order[i] = clue;
    }
    return n;
}

static void evidence_clue(Case *it, Clue clue)
{
    const ClueSeen *s = case_clue(it, clue);
    const char *other = clue_is_related(it, clue) ? "" : "something else went wrong too: ";
    const char *text = arena_printf(it->arena, "Line %llu: %s%s", (unsigned long long)s->first_line, other,
                                    clue_infos[clue].evidence);
    if (s->count > 1 && text)
        text = arena_printf(it->arena, "%s (%llu such lines)", text, (unsigned long long)s->count);
    case_evidence(it, text);
}

static void evidence_where(Case *it)
{
    const Frame *where = &case_clue(it, it->clue)->where;
    if (!where->file[0] && (is_bus(it->clue) || it->clue == CLUE_SEGFAULT || it->clue == CLUE_ABORTED))
        where = &it->facts->fatal;
    if (where->file[0])
        case_evidence(it, arena_printf(it->arena, "It happened at %s.", frame_text(it, where)));
}

static void evidence_bus(Case *it)
{
    const LogFacts *facts = it->facts;
    if (facts->shm_used_percent > 0)
        case_evidence(it, arena_printf(it->arena, "The log shows /dev/shm %u%% full (size %s).",
                                       facts->shm_used_percent, SIZE_TEXT(facts->shm_size_bytes)));
    if (torch_reserves(facts))
        case_evidence(it, arena_printf(it->arena,
                                       "PyTorch %u.%u reserves shared memory before it writes: a full "
                                       "/dev/shm raises an exception there, so this bus error may come "
                                       "from elsewhere.",
                                       facts->torch_major, facts->torch_minor));
    else if (!shm_seen_full(facts))
        case_evidence(it,
                      "A mapped file that was cut short ends in the same words; the log alone cannot tell.");
}

static void evidence_oom(Case *it)
{
    const LoggedVictim *victim = deciding_victim(it);
    if (it->facts->cgroup_limit_bytes != U64_UNKNOWN)
        case_evidence(it, arena_printf(it->arena, "The control group's memory limit was %s.",
                                       SIZE_TEXT(it->facts->cgroup_limit_bytes)));
    if (victim && victim->anon_bytes != U64_UNKNOWN)
        case_evidence(it, arena_printf(it->arena, "Process %d had %s of private and %s of shared memory.",
                                       victim->pid, SIZE_TEXT(victim->anon_bytes),
                                       SIZE_TEXT(victim->shmem_bytes)));
}

static void evidence_maps(Case *it)
{
    uint64_t bytes = 0;
    uint64_t count = 0;
    maps_numbers(it, &bytes, &count);
    if (count > 0)
        case_evidence(it, arena_printf(it->arena,
                                       "It was this process's segment number %llu, of %s; the kernel's "
                                       "usual limit is 65530 mappings.",
                                       (unsigned long long)count, SIZE_TEXT(bytes)));
    if (count < MAPS_MANY)
        case_evidence(it,
                      "A limit on address space (ulimit -v) or a real lack of memory give the same message.");
}

/* What this machine says; the log may be from another. */
static void evidence_machine(Case *it)
{
    const Machine *machine = it->machine;
    CauseId id = it->out->cause.id;
    if (id == CAUSE_SHM_EXHAUSTED && machine->shm.state == SHM_OK)
        case_evidence(
            it, arena_printf(it->arena,
                             "Here and now /dev/shm has %s, of which %s are used (measured; the log may "
                             "be from elsewhere).",
                             SIZE_TEXT(machine->shm.size_bytes), SIZE_TEXT(machine->shm.used_bytes)));
    if (id == CAUSE_MAPS_EXHAUSTED && machine->max_map_count != U64_UNKNOWN)
        case_evidence(it, arena_printf(it->arena,
                                       "Here vm.max_map_count is %llu (the log may be from elsewhere).",
                                       (unsigned long long)machine->max_map_count));
    if (id == CAUSE_FD_EXHAUSTED && machine->limits.open_files_soft < RLIMIT_UNLIMITED)
        case_evidence(it, arena_printf(it->arena,
                                       "Here a process may open %llu files (the log may be from elsewhere).",
                                       (unsigned long long)machine->limits.open_files_soft));
}

static void exception_show(Case *it)
{
    const LoggedException *exception = it->exception;
    const char *type = text_shown(it, text_of(exception->type), false, false);
    const char *message = text_shown(it, text_of(exception->message), false, false);
    const char *text =
        arena_printf(it->arena, "Line %llu: %s was raised%s", (unsigned long long)exception->line, type,
                     exception == &it->facts->worker ? " in a worker" : "");
    if (text && exception->inner.file[0])
        text = arena_printf(it->arena, "%s at %s", text, frame_text(it, &exception->inner));
    case_evidence(it, text);
    if (exception->led_to[0])
        case_evidence(it, arena_printf(it->arena, "It led to the %s that the log shows after it.",
                                       text_shown(it, text_of(exception->led_to), false, false)));
    case_matched(it, message[0] ? arena_printf(it->arena, "%s: %s", type, message) : type);
}

static void evidence_list(Case *it)
{
    Clue order[CLUES];
    size_t n = MIN(clues_in_order(it, order), (size_t)EVIDENCE_CLUES_MAX);
    for (size_t i = 0; i < n; i++)
        evidence_clue(it, order[i]);
    if (it->clue == CLUES)
        return;
    evidence_where(it);
    if (is_bus(it->clue))
        evidence_bus(it);
    if (is_oom(it->clue))
        evidence_oom(it);
    if (it->clue == CLUE_MAPS)
        evidence_maps(it);
    if (it->machine)
        evidence_machine(it);
}

/* The lines in their order; where there are too many, those of the deciding clue stay. */
static void matched_list(Case *it)
{
    const LogFacts *facts = it->facts;
    const KeptLine *last = NULL; /* patterns of two clues may have found one line */
    size_t others = MATCHED_MAX;
    for (size_t i = 0; i < facts->n_kept; i++)
        others -= facts->kept[i].clue == it->clue && others > 0;
    for (size_t i = 0; i < facts->n_kept; i++) {
        const KeptLine *kept = &facts->kept[i];
        if (!clue_bears(it, kept->clue) ||
            (last && last->line == kept->line && text_same(last->excerpt, kept->excerpt)))
            continue;
        if (kept->clue != it->clue && others == 0)
            continue;
        others -= kept->clue != it->clue;
        case_matched(it, text_shown(it, kept->excerpt, kept->cut_before, kept->cut_after));
        last = kept;
    }
}

int explainer_finish(Explainer *explainer, const Machine *machine, const Guard *guard, Arena *arena,
                     Explanation *ret)
{
    const Guard no_guard = {0};
    Explanation out = {.cause = {.id = CAUSE_UNKNOWN}};
    Case it = {
        .facts = log_reader_finish(explainer->reader),
        .machine = machine,
        .guard = guard ? guard : &no_guard,
        .arena = arena,
        .out = &out,
        .clue = CLUES,
    };
    if (!it.facts)
        return -ENOMEM;

    it.clue = best_clue(&it, TIER_CAUSE);
    if (it.clue == CLUES) {
        Clue fallback = best_clue(&it, TIER_FALLBACK);
        it.exception = deciding_exception(&it, fallback);
        it.clue = it.exception ? CLUES : fallback;
    }
    out.bus_guess = it.clue != CLUES && is_bus(it.clue);
    if (it.clue != CLUES)
        decide_clue(&it);
    else if (it.exception)
        decide_exception(&it);
    else
        decide_symptom(&it);
    if (it.exception)
        exception_show(&it);
    evidence_list(&it);
    matched_list(&it);
    case_notes(&it);
    case_fixes(&it);
    if (it.r < 0)
        return it.r;
    *ret = out;
    return 0;
}
