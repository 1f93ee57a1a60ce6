#include <inttypes.h>
#include <stdarg.h>

#include "idle.h"
#include "show-explain.h"
#include "show-fixes.h"
#include "show-run.h"
#include "units.h"

enum { INDENT = 2, REASONS_SHOWN = 3, FIXES_SHOWN = 2 };

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void show_line(const Terminal *terminal, const Buffer *line)
{
    if (line->size == 0)
        return;
    terminal_print(terminal, STYLE_BOLD, "shmguard:");
    fprintf(terminal->out, " %s\n", buffer_text(line));
}

static void part_add(Buffer *line, const char *format, ...) _printf_(2, 3);
static void part_add(Buffer *line, const char *format, ...)
{
    char part[128];
    va_list list;
    va_start(list, format);
    vsnprintf(part, sizeof part, format, list);
    va_end(list);
    (void)buffer_printf(line, "%s%s", line->size > 0 ? "; " : "", part);
}

static void show_guard(const Terminal *terminal, const GuardFigures *guard)
{
    _cleanup_buffer_ Buffer bytes = {0};
    _cleanup_buffer_ Buffer counts = {0};
    uint64_t issued = guard->segments_created + guard->segments_reused;
    if (guard->bytes_backed > 0)
        part_add(&bytes, "%s of shared tensors kept out of /dev/shm, at most %s at a time",
                 SIZE_TEXT(guard->bytes_backed), SIZE_TEXT(guard->bytes_peak));
    else if (guard->bytes_peak > 0)
        part_add(&bytes, "at most %s of shared memory kept out of /dev/shm at a time",
                 SIZE_TEXT(guard->bytes_peak));
    if (issued > 0)
        part_add(&counts,
                 "%" PRIu64 " segment%s made and used again %" PRIu64 " time%s (%" PRIu64 "%% recycled)",
                 guard->segments_created, plural(guard->segments_created), guard->segments_reused,
                 plural(guard->segments_reused), guard->segments_reused * 100 / issued);
    if (guard->small_backed > 0)
        part_add(&counts, "%" PRIu64 " small tensor%s", guard->small_backed, plural(guard->small_backed));
    if (guard->names_made > 0)
        part_add(&counts, "%" PRIu64 " name%s kept and opened %" PRIu64 " time%s", guard->names_made,
                 plural(guard->names_made), guard->names_served, plural(guard->names_served));
    if (guard->waits > 0)
        part_add(&counts, "workers waited %" PRIu64 " time%s for room, %.1f s in all", guard->waits,
                 plural(guard->waits), guard->waited_seconds);
    if (guard->refused > 0)
        part_add(&counts, "%" PRIu64 " request%s for memory refused", guard->refused, plural(guard->refused));
    if (guard->fallbacks > 0)
        part_add(&counts, "%" PRIu64 " tensor%s took the plain way through /dev/shm", guard->fallbacks,
                 plural(guard->fallbacks));
    show_line(terminal, &bytes);
    show_line(terminal, &counts);
}

/* A sentence or two behind our name. */
static void show_prose(const Terminal *terminal, Style style, const char *text)
{
    static const char prefix[] = "shmguard: ";
    terminal_print(terminal, style, "shmguard:");
    fputc(' ', terminal->out);
    terminal_wrap(terminal, sizeof prefix - 1, INDENT, text);
}

static void show_unguarded(const Terminal *terminal, const Evidence *evidence, const Unguarded *unguarded)
{
    _cleanup_buffer_ Buffer text = {0};
    size_t alike = unguarded_alike(evidence, unguarded);
    (void)text_escape(text_of(unguarded->comm), &text);
    if (alike > 1)
        (void)buffer_printf(&text, " (pid %d) and %zu other process%s ran without the guard. ",
                            unguarded->pid, alike - 1, alike == 2 ? "" : "es");
    else
        (void)buffer_printf(&text, " (pid %d) ran without the guard. ", unguarded->pid);
    if (unguarded->why == ABSENCE_UNREADABLE_LIBRARY || unguarded->why == ABSENCE_USER)
        (void)buffer_printf(&text, "It ran as user %u. ", unguarded->uid);
    (void)buffer_append_text(&text, absence_words(unguarded->why));
    show_prose(terminal, STYLE_BAD, buffer_text(&text));
}

static void show_unreadable(const Terminal *terminal, const Unguarded *unguarded)
{
    _cleanup_buffer_ Buffer text = {0};
    (void)buffer_append_text(&text, "shmguard may not look into ");
    (void)text_escape(text_of(unguarded->comm), &text);
    (void)buffer_printf(&text,
                        " (pid %d), which ran as user %u, so whether the guard was in it is not known. That "
                        "requires CAP_SYS_PTRACE: docker run --cap-add=SYS_PTRACE",
                        unguarded->pid, unguarded->uid);
    show_prose(terminal, STYLE_BOLD, buffer_text(&text));
}

/* Why the guard did nothing, or less than it could have. */
static void show_idle(const Terminal *terminal, const Evidence *evidence)
{
    const Unguarded *worst = unguarded_worst(evidence);
    switch (idle_judge(evidence)) {
    case IDLE_UNKNOWN:
        show_prose(terminal, STYLE_BOLD, "the guard saw no shared tensors");
        break;
    case IDLE_NO_TENSORS:
        show_prose(terminal, STYLE_BOLD,
                   "no shared tensors were made, so the guard had nothing to do. A DataLoader shares tensors "
                   "when it has num_workers > 0.");
        break;
    case IDLE_OTHER_USER:
        if (!worst)
            show_prose(
                terminal, STYLE_BAD,
                "processes of another user asked for the guard and were refused: it could not be shown "
                "that they belong to this job. Start shmguard after the change of user.");
        break;
    case IDLE_INNER_RUN:
        show_prose(
            terminal, STYLE_BOLD,
            "another shmguard within this one served the training; its own summary has the figures. One "
            "of the two is enough.");
        break;
    case IDLE_NOT_LOADED:
    case IDLE_NOT:
        break;
    }
    if (worst)
        show_unguarded(terminal, evidence, worst);
}

/* The last line, where the eye is: the name to look for in the manual, and where the rest is. */
static void show_name(const Terminal *terminal, const Cause *cause, const char *path)
{
    _cleanup_buffer_ Buffer rest = {0};
    fprintf(terminal->out, "%*scause: ", INDENT, "");
    terminal_print(terminal, STYLE_BOLD, "%s", cause_name(cause->id));
    if (cause->id != CAUSE_UNKNOWN)
        fprintf(terminal->out, " (%s)", confidence_words(cause->confidence));
    if (path && text_escape(text_of(path), &rest) >= 0)
        fprintf(terminal->out, "; more in %s", buffer_text(&rest));
    fputc('\n', terminal->out);
}

static void show_reasons(const Terminal *terminal, const Judged *judged)
{
    const Cause *cause = &judged->cause;
    _cleanup_buffer_ Buffer frame = {0};
    for (size_t i = 0; i < MIN(cause->n_evidence, (size_t)REASONS_SHOWN); i++) {
        fprintf(terminal->out, "%*s- ", INDENT, "");
        terminal_wrap(terminal, INDENT + 2, INDENT + 2, cause->evidence[i]);
    }
    if (judged->frame && buffer_printf(&frame, "Python was at %s", judged->frame) >= 0) {
        fprintf(terminal->out, "%*s- ", INDENT, "");
        terminal_wrap(terminal, INDENT + 2, INDENT + 2, buffer_text(&frame));
    }
}

/* The summary says it all: somebody ended the run on purpose, or nothing is known but that it failed. */
static bool end_is_plain(const RunAttempt *last)
{
    const Judged *judged = &last->judged;
    return last->result.passed_on != 0 ||
           (judged->cause.id == CAUSE_UNKNOWN && judged->cause.n_evidence <= 1 && judged->fixes.n == 0);
}

static void show_end(const Terminal *terminal, const RunReport *report, const RunAttempt *last)
{
    const Judged *judged = &last->judged;
    show_prose(terminal, STYLE_BAD, judged->cause.summary);
    if (end_is_plain(last))
        return;
    show_reasons(terminal, judged);
    Fixes best = judged->fixes;
    best.n = MIN(best.n, (size_t)FIXES_SHOWN);
    if (best.n > 0) {
        fprintf(terminal->out, "%*s", INDENT, "");
        terminal_print(terminal, STYLE_BOLD, "What to do:");
        fputc('\n', terminal->out);
        show_fixes(terminal, INDENT, &best);
    }
    show_name(terminal, &judged->cause, report->path);
}

void show_stray_work(const Terminal *terminal, const StrayWork *work)
{
    static const char advice[] = "A script that starts its training in the background must wait for it: put "
                                 "\"wait\" on its last line. The exit code is 1.";
    _cleanup_buffer_ Buffer name = {0};
    _cleanup_buffer_ Buffer text = {0};
    (void)text_escape(text_of(work->command), &name);
    if (work->n == 1)
        (void)buffer_printf(&text,
                            "The command returned, but process %d (%s), which it had left running, was still "
                            "working and was ended. %s",
                            work->pid, buffer_text(&name), advice);
    else
        (void)buffer_printf(&text,
                            "The command returned, but %u processes that it had left running were still "
                            "working and were ended. The busiest was process %d (%s). %s",
                            work->n, work->pid, buffer_text(&name), advice);
    show_prose(terminal, STYLE_BAD, buffer_text(&text));
}

void show_run(const Terminal *terminal, const RunReport *report)
{
    const RunAttempt *last = report_last(report);
    const RunResult *result = &last->result;
    _cleanup_buffer_ Buffer line = {0};
    if (result->pid == 0)
        return;
    if (result->guarded) {
        show_guard(terminal, &result->guard);
        show_idle(terminal, &last->evidence);
    }
    if (result->work.n > 0)
        show_stray_work(terminal, &result->work);
    else if (result->strays > 0) {
        (void)buffer_printf(&line, "ended %u process%s that the command had left running", result->strays,
                            result->strays == 1 ? "" : "es");
        show_line(terminal, &line);
    }
    if (result->left > 0) {
        buffer_clear(&line);
        (void)buffer_printf(&line, "%u process%s that the command had left running could not be ended",
                            result->left, result->left == 1 ? "" : "es");
        show_line(terminal, &line);
    }
    const Unguarded *unreadable = unguarded_unreadable(&last->evidence);
    if (unreadable && (last->judged.cause.id != CAUSE_OK || idle_judge(&last->evidence) == IDLE_UNKNOWN))
        show_unreadable(terminal, unreadable);
    if (last->judged.cause.id != CAUSE_OK)
        show_end(terminal, report, last);
}
