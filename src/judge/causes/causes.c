/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>

#include "cause-context.h"
#include "causes-text.h"
#include "units.h"

enum { LINES_QUOTED = 3 };

/* A helper process that died this long before the command is probably not the reason. For trainers and
 * workers the time is longer, and it counts only if something else explains the end. */
static const double SECONDS_NEAR_OTHER = 10;
static const double SECONDS_NEAR = 60;

/* A failure this shortly before the end may be a result of the end. */
static const double SECONDS_BEFORE = 5;

/* --- Words --- */

const char *ended_who(CauseContext *context, const Ended *ended)
{
    if (ended->pid == 0)
        return WHO_UNKNOWN;
    if (ended->pid == context->evidence->pid)
        return cause_printf(context, WHO_COMMAND, ended->pid);
    if (ended->role == ROLE_WORKER)
        return cause_printf(context, WHO_WORKER, ended->pid);
    if (ended->role == ROLE_TRAINER)
        return cause_printf(context, WHO_TRAINER, ended->pid);
    if (!ended->comm[0])
        return cause_printf(context, WHO_PROCESS, ended->pid);
    return cause_printf(context, WHO_PROCESS_NAMED, ended->pid, cause_escape(context, text_of(ended->comm)));
}

const char *signal_name(CauseContext *context, int signo)
{
    return cause_printf(context, "%s", SIGNAL_TEXT(signo));
}

/* --- What processes wrote --- */

static void explainer_cleanup(Explainer **explainer)
{
    explainer_free(*explainer);
}

static int text_explain(const Evidence *evidence, const GuardOffer *guard, Arena *arena, Diagnosis *ret)
{
    _cleanup_(explainer_cleanup) Explainer *explainer = NULL;
    for (size_t i = 0; i < evidence->n_ended; i++) {
        Text said = evidence->ended[i].said;
        if (said.size == 0)
            continue;
        if (!explainer && !(explainer = explainer_new()))
            return -ENOMEM;
        if (explainer_feed(explainer, said.data, said.size) < 0 || explainer_feed(explainer, "\n", 1) < 0)
            return -ENOMEM;
    }
    if (explainer) /* without this machine: what is known of it is in the evidence */
        return explainer_finish(explainer, NULL, guard, arena, ret);
    *ret = (Diagnosis){.cause = {.id = CAUSE_UNKNOWN}};
    return 0;
}

static bool line_names_pid(Text line, int pid)
{
    uint64_t number = 0;
    while (line.size > 0) {
        Text digits = text_digits(line);
        if (digits.size > 0 && text_u64(digits, 10, &number) >= 0 && number == (uint64_t)pid)
            return true;
        line = text_skip(line, MAX(digits.size, (size_t)1));
    }
    return false;
}

bool text_names_pid(const Evidence *evidence, int pid)
{
    Text after;
    for (size_t i = 0; pid > 0 && i < evidence->n_ended; i++)
        TEXT_FOR_EACH_LINE (line, evidence->ended[i].said)
            if (text_after(line, "pid", &after) && line_names_pid(after, pid))
                return true;
    return false;
}

static bool text_decides(const CauseContext *context)
{
    return context->log->cause.id != CAUSE_UNKNOWN;
}

static bool detail_is(const char *detail, const char *name)
{
    return detail && strcmp(detail, name) == 0;
}

static void evidence_lines(CauseContext *context, Diagnosis *diagnosis, size_t most)
{
    for (size_t i = 0; i < MIN(context->log->n_matched, most); i++)
        diagnosis_evidence(context, diagnosis,
                           cause_printf(context, EVIDENCE_SAID, context->log->matched[i]));
}

/* --- Limits --- */

static bool limit_is_near(uint64_t most, uint64_t limit)
{
    return most != U64_UNKNOWN && limit != U64_UNKNOWN && limit > 0 && most >= limit - limit / 10;
}

static bool limit_is_far(uint64_t most, uint64_t limit)
{
    return most != U64_UNKNOWN && limit != U64_UNKNOWN && most < limit / 2;
}

static void evidence_files(CauseContext *context, Diagnosis *diagnosis)
{
    unsigned long long most = context->evidence->fds_most;
    unsigned long long limit = context->evidence->open_files_soft;
    if (most != U64_UNKNOWN && limit != U64_UNKNOWN)
        diagnosis_evidence(context, diagnosis, cause_printf(context, EVIDENCE_FILES, most, limit));
}

static void evidence_maps(CauseContext *context, Diagnosis *diagnosis)
{
    unsigned long long most = context->evidence->maps_most;
    unsigned long long limit = context->evidence->max_map_count;
    if (most != U64_UNKNOWN && limit != U64_UNKNOWN)
        diagnosis_evidence(context, diagnosis, cause_printf(context, EVIDENCE_MAPS, most, limit));
}

static bool files_are_near(const Evidence *evidence)
{
    return limit_is_near(evidence->fds_most, evidence->open_files_soft);
}

static bool maps_are_near(const Evidence *evidence)
{
    return limit_is_near(evidence->maps_most, evidence->max_map_count);
}

static Fullness shm_fullest(const Evidence *evidence)
{
    return shm_fullness(evidence->shm_size_bytes, evidence->shm_free_least_bytes);
}

void evidence_shm(CauseContext *context, Diagnosis *diagnosis)
{
    const Evidence *evidence = context->evidence;
    if (evidence->shm_size_bytes != U64_UNKNOWN && evidence->shm_size_bytes > 0 &&
        evidence->shm_free_least_bytes != U64_UNKNOWN)
        diagnosis_evidence(context, diagnosis,
                           cause_printf(context, EVIDENCE_SHM, SIZE_TEXT(evidence->shm_free_least_bytes),
                                        SIZE_TEXT(evidence->shm_size_bytes)));
}

/* --- What processes wrote, checked against the facts --- */

static const char *text_who(CauseContext *context)
{
    return context->log->cause.pid > 0 ? cause_printf(context, WHO_PROCESS, context->log->cause.pid)
                                       : WHO_TEXT;
}

static void judge_text_shm(CauseContext *context, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    Fullness fullest = shm_fullest(evidence);
    if (context->log->bus_guess) {
        ret->from_log = false;
        bus_judge_blind(context, NULL, text_who(context), true, ret);
    } else if (evidence->refused > 0)
        budget_judge(context, fullest >= FULLNESS_NEARLY ? 0.8 : 0.97, ret);
    else {
        /* A request that does not fit fails without filling the mount, so free space is no contradiction. */
        evidence_shm(context, ret);
        if (fullest >= FULLNESS_NEARLY)
            ret->cause.confidence = MAX(ret->cause.confidence, 0.98);
    }
}

static void judge_text_exception(CauseContext *context, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    bool no_space = detail_is(ret->detail, "disk-full");
    if (no_space && evidence->refused > 0)
        budget_judge(context, 0.9, ret);
    else if (no_space && shm_fullest(evidence) >= FULLNESS_NEARLY) {
        evidence_shm(context, ret);
        ret->detail = NULL;
        diagnosis_set(ret, CAUSE_SHM_EXHAUSTED, 0.7, LIMIT_SHM_WRITE);
    } else if (no_space && shm_fullest(evidence) == FULLNESS_ROOM)
        ret->cause.confidence = MAX(ret->cause.confidence, 0.8);
    else if (detail_is(ret->detail, "memory-error") && maps_are_near(evidence)) {
        evidence_maps(context, ret);
        ret->detail = NULL;
        diagnosis_set(ret, CAUSE_MAPS_EXHAUSTED, 0.75, LIMIT_MAPS_MEMORY);
    }
    if (ret->cause.id == CAUSE_PYTHON_ERROR && !lost_judge_exception(context, ret) && ret->cause.pid == 0)
        ret->cause.pid = evidence->pid;
}

static void judge_text_files(CauseContext *context, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    double *confidence = &ret->cause.confidence;
    evidence_files(context, ret);
    if (files_are_near(evidence))
        *confidence = *confidence >= 0.9 ? 0.99 : 0.9;
    else if (limit_is_far(evidence->fds_most, evidence->open_files_soft))
        *confidence = *confidence >= 0.9 ? 0.9 : 0.4;
}

static void judge_text_maps(CauseContext *context, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    double *confidence = &ret->cause.confidence;
    evidence_maps(context, ret);
    if (maps_are_near(evidence))
        *confidence = *confidence >= 0.8 ? 0.99 : 0.9;
    else if (limit_is_far(evidence->maps_most, evidence->max_map_count)) {
        /* Weak evidence: one process's mappings are counted at a time, and a process can create many in
         * between. */
        *confidence = *confidence >= 0.8 ? 0.6 : 0.45;
        ret->cause.summary = LIMIT_MAPS_DOUBTFUL;
    }
}

static void judge_text_hang(CauseContext *context, Diagnosis *ret)
{
    if (context->evidence->refused > 0) {
        budget_judge(context, 0.8, ret);
        return;
    }
    if (ret->detail)
        return;
    diagnosis_evidence(context, ret, EVIDENCE_NO_CRASH);
    diagnosis_set(ret, CAUSE_WORKER_HANG, 0.9, HANG_TIMEOUT);
}

/* We ended a worker that had lost a batch for lack of room: its trainer would have waited forever
 * (admission.h). */
static bool ended_for_room(const Evidence *evidence)
{
    for (size_t i = 0; i < evidence->n_ended; i++)
        if (evidence->ended[i].by_us && evidence->refused > 0)
            return true;
    return false;
}

static void judge_text_killed(CauseContext *context, Diagnosis *ret)
{
    if (detail_is(ret->detail, "sigterm") && ended_for_room(context->evidence))
        budget_judge(context, 0.95, ret);
    else if (detail_is(ret->detail, "sigkill")) {
        ret->from_log = false;
        kill_judge(context, ret->cause.pid, NULL, text_who(context), ret);
    } else if (detail_is(ret->detail, "interrupted") ||
               detail_is(ret->detail, "hangup")) /* CAUSE_KILLED is for SIGKILL and SIGTERM */
        diagnosis_set(ret, CAUSE_UNKNOWN, 0, ret->cause.summary);
}

static bool evidence_trains(const Evidence *evidence)
{
    for (size_t i = 0; i < evidence->n_ended; i++)
        if (evidence->ended[i].role == ROLE_TRAINER || evidence->ended[i].role == ROLE_WORKER)
            return true;
    return false;
}

/* A process that disappeared without a status and that the kernel's log names. */
static const Ended *vanished_victim(const CauseContext *context)
{
    const Evidence *evidence = context->evidence;
    for (size_t i = 0; i < evidence->n_ended; i++)
        if (!evidence->ended[i].has_status && kill_logged(context, evidence->ended[i].pid))
            return &evidence->ended[i];
    return NULL;
}

/* The confidence that a refusal caused an end that nothing else explains. */
static double refused_confidence(const Evidence *evidence)
{
    switch (refusals_judge(evidence)) {
    case REFUSALS_LOST:
        return 0.85;
    case REFUSALS_HANDLED:
        return 0.4;
    case REFUSALS_UNCLEAR:
    case REFUSALS_NONE:
        break;
    }
    return 0.7;
}

/* Processes wrote nothing, or only about after-effects: which resource was short? */
static void judge_want(CauseContext *context, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    bool trains = evidence_trains(evidence);
    const Ended *vanished = vanished_victim(context);
    bool symptom = context->log->cause.confidence > 0;
    bool killed = evidence->group_kills != U64_UNKNOWN && evidence->group_kills > 0;
    if (vanished) {
        ret->ended = vanished;
        ret->cause.pid = vanished->pid;
        kill_judge(context, vanished->pid, vanished, ended_who(context, vanished), ret);
    } else if (killed && (symptom || trains)) {
        kill_judge(context, ret->cause.pid, NULL, text_who(context), ret);
        ret->cause.confidence *= symptom ? 0.85 : 0.65;
    } else if (evidence->refused > 0)
        budget_judge(context, refused_confidence(evidence), ret);
    else if (files_are_near(evidence)) {
        evidence_files(context, ret);
        diagnosis_set(ret, CAUSE_FD_EXHAUSTED, 0.55, LIMIT_FILES);
    } else if (maps_are_near(evidence)) {
        evidence_maps(context, ret);
        diagnosis_set(ret, CAUSE_MAPS_EXHAUSTED, 0.55, LIMIT_MAPS);
    } else if (shm_fullest(evidence) == FULLNESS_FULL && trains) {
        evidence_shm(context, ret);
        diagnosis_set(ret, CAUSE_SHM_EXHAUSTED, symptom ? 0.55 : 0.4, LIMIT_SHM);
    }
    if (ret->cause.id != CAUSE_UNKNOWN)
        ret->from_log = false;
}

static void judge_text(CauseContext *context, Diagnosis *ret)
{
    const Diagnosis *text = context->log;
    ret->from_log = true;
    ret->detail = text->detail;
    ret->cause.pid = text->cause.pid;
    diagnosis_set(ret, text->cause.id, text->cause.confidence, text->cause.summary);
    evidence_lines(context, ret, LINES_QUOTED);
    switch (text->cause.id) {
    case CAUSE_SHM_EXHAUSTED:
        judge_text_shm(context, ret);
        break;
    case CAUSE_PYTHON_ERROR:
        judge_text_exception(context, ret);
        break;
    case CAUSE_FD_EXHAUSTED:
        judge_text_files(context, ret);
        break;
    case CAUSE_MAPS_EXHAUSTED:
        judge_text_maps(context, ret);
        break;
    case CAUSE_WORKER_HANG:
        judge_text_hang(context, ret);
        break;
    case CAUSE_KILLED:
        judge_text_killed(context, ret);
        break;
    case CAUSE_UNKNOWN:
        judge_want(context, ret);
        break;
    case CAUSE_OK:
    case CAUSE_BUDGET_EXCEEDED:
    case CAUSE_CGROUP_OOM:
    case CAUSE_SYSTEM_OOM:
    case CAUSE_SEGFAULT:
    case CAUSE_BUS_ERROR_FILE:
    case CAUSE_SEGMENTS_DELETED:
    case CAUSE_IDS:
        break;
    }
}

/* --- Which death --- */

/* The command died of it, or could not continue without the process that did. */
static bool death_bears(const CauseContext *context, const Ended *ended)
{
    const Evidence *evidence = context->evidence;
    if (ended->pid == evidence->pid || evidence->code == 128 + ended_signal(ended) ||
        text_names_pid(evidence, ended->pid))
        return true;
    double before = evidence->seconds - ended->seconds;
    if (ended->role == ROLE_WORKER || ended->role == ROLE_TRAINER)
        return before <= SECONDS_NEAR || !text_decides(context);
    return before <= SECONDS_NEAR_OTHER;
}

/* A program that the training started for another purpose, and that a trainer may have killed itself, after a
 * time limit for example: only the time links its death to the end. */
static bool death_is_loose(const Evidence *evidence, const Ended *ended)
{
    return ended->pid != evidence->pid && ended->role == ROLE_OTHER &&
           evidence->code != 128 + ended_signal(ended) && !text_names_pid(evidence, ended->pid);
}

/* Signals that trainers and launchers do not send when they clean up. For the command itself, any counts. */
static bool death_is_strong(const Evidence *evidence, const Ended *ended)
{
    switch (ended_signal(ended)) {
    case 0:
        return false;
    case SIGBUS:
    case SIGSEGV:
    case SIGABRT:
    case SIGFPE:
    case SIGILL:
    case SIGKILL:
        return true;
    default:
        return ended->pid == evidence->pid;
    }
}

static const Ended *death_first(const CauseContext *context, bool strong)
{
    const Evidence *evidence = context->evidence;
    for (size_t i = 0; i < evidence->n_ended; i++) {
        const Ended *ended = &evidence->ended[i];
        if (!ended->by_us && ended_signal(ended) != 0 && death_is_strong(evidence, ended) == strong &&
            death_bears(context, ended))
            return ended;
    }
    return NULL;
}

static const Ended *ended_command(const Evidence *evidence)
{
    for (size_t i = 0; i < evidence->n_ended; i++)
        if (evidence->ended[i].pid == evidence->pid)
            return &evidence->ended[i];
    return NULL;
}

/* With an exit code above 128 a shell or a launcher reports a signal. */
static int signal_behind(int code)
{
    return code > 128 && code < 128 + NSIG && sigabbrev_np(code - 128) ? code - 128 : 0;
}

/* --- The cases --- */

static void judge_no_start(CauseContext *context, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    diagnosis_set(ret, CAUSE_UNKNOWN, 0, END_NOT_STARTED);
    diagnosis_evidence(context, ret,
                       cause_printf(context, "%s: %s", cause_escape(context, text_of(evidence->command)),
                                    strerror(evidence->start_error)));
}

static void judge_good(CauseContext *context, Diagnosis *ret)
{
    diagnosis_set(ret, CAUSE_OK, 1, END_GOOD);
    ret->cause.confidence = 1;
    diagnosis_evidence(context, ret, cause_printf(context, EVIDENCE_EXIT_CODE, 0));
}

/* If something had gone wrong well before we were asked to end the command, it is reported as well. The cause
 * is still the request: a user who has just stopped a job does not want it restarted. */
static void judge_before(CauseContext *context, Diagnosis *ret)
{
    const Ended *ended = death_first(context, true);
    if (!ended || ended->pid == context->evidence->pid ||
        context->evidence->seconds - ended->seconds < SECONDS_BEFORE)
        return;
    Diagnosis before = {0};
    death_judge(context, ended, &before);
    if (before.cause.confidence < 0.7)
        return;
    ret->cause.summary = cause_printf(context, END_BEFORE, ret->cause.summary, before.cause.summary);
    for (size_t i = 0; i < before.cause.n_evidence; i++)
        diagnosis_evidence(context, ret, before.cause.evidence[i]);
}

static void judge_request(CauseContext *context, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    int signo = evidence->passed_on;
    bool by_it = evidence->signal == signo || evidence->code == 128 + signo;
    const char *name = signal_name(context, signo);
    ret->cause.pid = evidence->pid;
    diagnosis_evidence(context, ret, cause_printf(context, EVIDENCE_PASSED_ON, name));
    diagnosis_evidence(context, ret,
                       by_it ? cause_printf(context, EVIDENCE_ENDED, name)
                             : cause_printf(context, END_EXITED_COMMAND, evidence->code));
    if (signo == SIGTERM || signo == SIGKILL)
        diagnosis_set(ret, CAUSE_KILLED, by_it ? 0.97 : 0.7, cause_printf(context, END_STOPPED, name));
    else
        diagnosis_set(ret, CAUSE_UNKNOWN, 0,
                      signo == SIGINT ? cause_printf(context, END_CTRL_C, name)
                                      : cause_printf(context, END_INTERRUPTED, name));
    judge_before(context, ret);
}

static bool is_request(const Evidence *evidence)
{
    const Ended *command = ended_command(evidence);
    return evidence->passed_on != 0 &&
           (evidence->signal == evidence->passed_on || evidence->code == 128 + evidence->passed_on ||
            (command && command->by_us));
}

/* A death without a known reason, or by a kill, says less than an exception that does not mention it: workers
 * are killed when a trainer or launcher cleans up. */
static bool text_outranks(const CauseContext *context, const Diagnosis *death)
{
    const Cause *text = &context->log->cause;
    if (!text_decides(context) || context->log->bus_guess)
        return false;
    int signo = ended_signal(death->ended);
    if (death->cause.id == CAUSE_UNKNOWN)
        return signo != SIGFPE && signo != SIGILL && signo != SIGINT && !fault_is_sent(death->ended);
    return death->cause.id == CAUSE_KILLED && text->id != CAUSE_KILLED && text->confidence >= 0.6 &&
           death->ended->pid != context->evidence->pid &&
           !text_names_pid(context->evidence, death->ended->pid);
}

static void judge_death(CauseContext *context, const Ended *ended, Diagnosis *ret)
{
    death_judge(context, ended, ret);
    if (text_outranks(context, ret)) {
        Diagnosis text = {0};
        judge_text(context, &text);
        if (ret->cause.id == CAUSE_KILLED) /* the kill may still have come first */
            text.cause.confidence *= 0.9;
        if (ret->cause.n_evidence > 0)
            diagnosis_evidence(context, &text, ret->cause.evidence[0]);
        if (ended_signal(ended) == SIGABRT) {
            text.ended = ended;
            text.cause.pid = ended->pid;
        }
        *ret = text;
    } else if (ret->cause.id == CAUSE_SEGFAULT && context->log->cause.id == CAUSE_PYTHON_ERROR) {
        ret->cause.confidence =
            MIN(ret->cause.confidence, 0.8); /* it may be a crash while Python shut down */
        evidence_lines(context, ret, 1);
    } else if (text_names_pid(context->evidence, ended->pid) || context->log->cause.id == ret->cause.id)
        evidence_lines(context, ret, 1);
    if (ret->ended == ended && death_is_loose(context->evidence, ended)) {
        ret->cause.confidence *= 0.6;
        diagnosis_evidence(context, ret,
                           cause_printf(context, EVIDENCE_THEN_EXITED, context->evidence->code));
    }
    if (context->evidence->passed_on != 0) {
        ret->cause.confidence *= 0.8;
        diagnosis_evidence(context, ret,
                           cause_printf(context, EVIDENCE_HAD_PASSED_ON,
                                        signal_name(context, context->evidence->passed_on)));
    }
}

/* The command's exit code reports a death that was not seen. */
static bool judge_told(CauseContext *context, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    int signo = signal_behind(evidence->code);
    if (signo == 0)
        return false;
    const Ended below = {.has_status = true, .signal = signo};
    diagnosis_evidence(
        context, ret,
        cause_printf(context, EVIDENCE_EXIT_STANDS, evidence->code, signal_name(context, signo)));
    death_judge(context, &below, ret);
    ret->ended = NULL;
    ret->cause.confidence *= 0.65;
    return ret->cause.id == CAUSE_CGROUP_OOM || ret->cause.id == CAUSE_SYSTEM_OOM || !text_decides(context);
}

/* The process that the text reports as gone, or if it names none, the first child of the command that failed
 * shortly before it. NULL unless it exited by itself. A worker may end before its first sample, so its role
 * may be unknown. */
static const Ended *ended_by_exit(const Evidence *evidence, int pid)
{
    for (size_t i = 0; i < evidence->n_ended; i++) {
        const Ended *ended = &evidence->ended[i];
        bool meant = pid > 0 ? ended->pid == pid
                             : ended->ppid == evidence->pid && ended->code != 0 &&
                                   evidence->seconds - ended->seconds <= SECONDS_NEAR_OTHER;
        if (meant && ended->has_status && ended->signal == 0 && !ended->by_us)
            return ended;
    }
    return NULL;
}

static void judge_unknown(CauseContext *context, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    bool symptom = context->log->cause.confidence > 0;
    const Ended *left = symptom || ret->cause.pid > 0 ? ended_by_exit(evidence, ret->cause.pid) : NULL;
    ret->from_log = ret->from_log && !left && symptom;
    if (left) {
        ret->detail = "worker-exited";
        ret->cause.pid = left->pid;
        ret->cause.summary = cause_printf(context, END_LEFT, ended_who(context, left), left->code);
    }
    diagnosis_evidence(context, ret, cause_printf(context, EVIDENCE_EXIT_CODE, evidence->code));
    ret->cause.pid = ret->cause.pid > 0 ? ret->cause.pid : evidence->pid;
    if (symptom)
        return;
    /* An ordinary exit code: the program has printed its own reason. */
    ret->cause.summary = evidence->command
                             ? cause_printf(context, END_EXITED,
                                            cause_escape(context, text_of(evidence->command)), evidence->code)
                             : cause_printf(context, END_EXITED_COMMAND, evidence->code);
}

static void judge(CauseContext *context, Diagnosis *ret)
{
    const Evidence *evidence = context->evidence;
    if (evidence->start_error != 0) {
        judge_no_start(context, ret);
        return;
    }
    if (evidence->code == 0 && evidence->signal == 0) {
        if (!lost_judge_good(context, ret))
            judge_good(context, ret);
        return;
    }
    if (is_request(evidence)) {
        judge_request(context, ret);
        return;
    }
    const Ended *strong = death_first(context, true);
    if (strong) {
        judge_death(context, strong, ret);
        return;
    }
    if (judge_told(context, ret))
        return;
    *ret = (Diagnosis){0};
    judge_text(context, ret);
    CauseId id = ret->cause.id;
    const Ended *weak = death_first(context, false);
    bool vague = id == CAUSE_UNKNOWN || id == CAUSE_PYTHON_ERROR || id == CAUSE_KILLED;
    if (evidence->passed_on != 0 && vague) {
        *ret = (Diagnosis){0};
        judge_request(context, ret);
    } else if (weak && (id == CAUSE_UNKNOWN || detail_is(ret->detail, "sigterm"))) {
        *ret = (Diagnosis){0};
        judge_death(context, weak, ret);
    } else if (id == CAUSE_UNKNOWN)
        judge_unknown(context, ret);
}

int cause_judge(const Evidence *evidence, const Machine *machine, const GuardOffer *guard, Arena *arena,
                Diagnosis *ret)
{
    const GuardOffer no_guard = {0};
    Diagnosis log;
    Diagnosis diagnosis = {0};
    CauseContext context = {.evidence = evidence,
                            .log = &log,
                            .machine = machine,
                            .guard = guard ? guard : &no_guard,
                            .arena = arena};
    context.r = text_explain(evidence, context.guard, arena, &log);
    if (context.r < 0)
        return context.r;
    judge(&context, &diagnosis);
    const Ended *ended = diagnosis.ended;
    if (ended && ended->has_fault && ended->fault.stack) {
        Frame frame;
        diagnosis.stack = ended->fault.stack;
        if (stack_frame(text_of(diagnosis.stack), &frame))
            diagnosis.frame = cause_frame(&context, &frame);
    }
    diagnosis_fixes(&context, &diagnosis);
    if (context.r < 0)
        return context.r;
    *ret = diagnosis;
    return 0;
}

bool cause_helped_by_less(CauseId id)
{
    switch (id) {
    case CAUSE_SHM_EXHAUSTED:
    case CAUSE_BUDGET_EXCEEDED:
    case CAUSE_CGROUP_OOM:
    case CAUSE_SYSTEM_OOM:
    case CAUSE_FD_EXHAUSTED:
    case CAUSE_MAPS_EXHAUSTED:
    case CAUSE_WORKER_HANG: /* smaller batches arrive sooner; a real deadlock may recur */
        return true;
    case CAUSE_OK:
    case CAUSE_KILLED:
    case CAUSE_SEGFAULT:
    case CAUSE_BUS_ERROR_FILE:
    case CAUSE_SEGMENTS_DELETED:
    case CAUSE_PYTHON_ERROR:
    case CAUSE_UNKNOWN:
    case CAUSE_IDS:
        break;
    }
    return false;
}
