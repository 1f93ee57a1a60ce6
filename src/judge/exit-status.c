#include <signal.h>
#include <string.h>

#include "exit-status.h"
#include "text.h"

typedef struct Judgement {
    int signal;
    CauseId id;
    double confidence;
    const char *summary;
    const char *doubt; /* what the status leaves open, or NULL */
} Judgement;

static const Judgement judgements[] = {
    {SIGKILL, CAUSE_KILLED, 0.5, "The command was killed (SIGKILL).",
     "the exit status does not tell who killed it: a person, a scheduler, or the kernel for lack of memory"},
    {SIGTERM, CAUSE_KILLED, 0.7, "The command was asked to end (SIGTERM), and did.",
     "the exit status does not tell who asked"},
    {SIGSEGV, CAUSE_SEGFAULT, 0.9, "The command died of an invalid memory access (SIGSEGV).", NULL},
    {SIGBUS, CAUSE_UNKNOWN, 0, "The command died of a bus error (SIGBUS).",
     "the exit status does not tell whether shared memory ran out or a mapped file was cut short"},
    {SIGINT, CAUSE_UNKNOWN, 0, "The command was interrupted (SIGINT, as Ctrl-C sends it).", NULL},
    {0, CAUSE_UNKNOWN, 0, "The command was ended by a signal.", NULL},
};

static const Judgement *judge(int signo)
{
    const Judgement *judgement = judgements;
    while (judgement->signal != 0 && judgement->signal != signo)
        judgement++;
    return judgement;
}

static int evidence_add(Arena *arena, Cause *cause, const char *text)
{
    const char **slot =
        text ? ARENA_PUSH(arena, cause->evidence, cause->n_evidence, cause->evidence_capacity) : NULL;
    if (!slot)
        return -ENOMEM;
    *slot = text;
    return 0;
}

/* "SIGTERM", "signal 40" for those without a name. */
static const char *signal_name(int signo, Arena *arena)
{
    const char *name = sigabbrev_np(signo);
    return name ? arena_printf(arena, "SIG%s", name) : arena_printf(arena, "signal %d", signo);
}

/* An exit code above 128 is how a shell, or a launcher, tells of a signal. */
static int signal_behind(int code)
{
    return code > 128 && code < 128 + NSIG && sigabbrev_np(code - 128) ? code - 128 : 0;
}

static int cause_of_signal(const Ending *ending, int signo, Arena *arena, Cause *ret)
{
    const Judgement *judgement = judge(signo);
    bool told = ending->signal == 0; /* by somebody in between */
    bool ours = ending->passed_on == signo;
    Cause cause = {.id = judgement->id,
                   .confidence = ours && judgement->confidence > 0 ? 0.95 : judgement->confidence,
                   .summary = judgement->summary,
                   .pid = told ? 0 : ending->pid};
    if (told)
        cause.confidence *= 0.6;
    const char *name = signal_name(signo, arena);
    if (!name)
        return -ENOMEM;
    const char *what =
        told ? arena_printf(arena, "exit code %d, which stands for %s in a process below", ending->code, name)
             : arena_printf(arena, "ended by %s", name);
    int r = evidence_add(arena, &cause, what);
    if (r >= 0 && ours)
        r = evidence_add(arena, &cause, "shmguard was sent the same signal, and passed it on");
    else if (r >= 0 && judgement->doubt)
        r = evidence_add(arena, &cause, judgement->doubt);
    if (r >= 0)
        *ret = cause;
    return r;
}

int cause_of_ending(const Ending *ending, Arena *arena, Cause *ret)
{
    int signo = ending->signal ? ending->signal : signal_behind(ending->code);
    if (signo)
        return cause_of_signal(ending, signo, arena, ret);
    bool good = ending->code == 0;
    Cause cause = {
        .id = good ? CAUSE_OK : CAUSE_UNKNOWN,
        .confidence = good ? 1 : 0,
        .summary =
            good ? "The command ended well."
                 : "The command ended with an error. Its own output tells more than its exit code does.",
        .pid = good ? 0 : ending->pid,
    };
    int r = evidence_add(arena, &cause, arena_printf(arena, "exit code %d", ending->code));
    if (r >= 0)
        *ret = cause;
    return r;
}

int cause_of_no_start(const char *command, int error, Arena *arena, Cause *ret)
{
    _cleanup_buffer_ Buffer safe = {0};
    if (text_escape(text_of(command), &safe) < 0)
        return -ENOMEM;
    Cause cause = {.id = CAUSE_UNKNOWN, .summary = "The command could not be started."};
    int r = evidence_add(arena, &cause, arena_printf(arena, "%s: %s", buffer_text(&safe), strerror(error)));
    if (r >= 0)
        *ret = cause;
    return r;
}
