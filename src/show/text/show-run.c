/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>

#include "idle.h"
#include "show-explain.h"
#include "show-fixes.h"
#include "show-run.h"
#include "units.h"

enum { INDENT = 2, REASONS_SHOWN = 3, FIXES_SHOWN = 2 };

/* Waiting for less than this is what a budget is for. */
static const double QUEUED_SHARE_LEAST = 0.1;
static const double QUEUED_SECONDS_LEAST = 5;

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

/* A line or two behind our name. */
static void show_sentence(const Terminal *terminal, Style style, const char *text)
{
    static const char prefix[] = "shmguard: ";
    terminal_print(terminal, style, "shmguard:");
    fputc(' ', terminal->out);
    terminal_wrap(terminal, sizeof prefix - 1, INDENT, text);
}

static void keeper_add(Buffer *text, const Keeper *keeper, int command)
{
    if (keeper->pid == command)
        (void)buffer_printf(text, "the command (pid %d)", keeper->pid);
    else if (keeper->role == ROLE_WORKER)
        (void)buffer_printf(text, "DataLoader worker %d", keeper->pid);
    else if (keeper->role == ROLE_TRAINER)
        (void)buffer_printf(text, "trainer %d", keeper->pid);
    else {
        (void)buffer_printf(text, "process %d (", keeper->pid);
        (void)text_escape(text_of(keeper->comm), text);
        (void)buffer_append_text(text, ")");
    }
}

void show_crawl(const Terminal *terminal, const RunTick *tick)
{
    _cleanup_buffer_ Buffer line = {0};
    const GuardFigures *guard = &tick->guard;
    const Keeper *keeper = &tick->crawl->keeper;
    (void)buffer_printf(&line, "%" PRIu64 " worker%s waiting, and no memory was released for %.0f s: ",
                        guard->waiting, guard->waiting == 1 ? " is" : "s are", tick->crawl->seconds);
    if (keeper->pid > 0) {
        keeper_add(&line, keeper, tick->pid);
        (void)buffer_printf(&line, " keeps %s of shared memory", SIZE_TEXT(keeper->bytes));
    } else
        (void)buffer_printf(&line, "%s of shared memory are in use", SIZE_TEXT(guard->bytes_now));
    if (guard->budget_bytes != U64_UNKNOWN)
        (void)buffer_printf(&line, " (budget: %s)", SIZE_TEXT(guard->budget_bytes));
    (void)buffer_append_text(&line, guard->wanted_exists
                                        ? "; raise --budget, or keep copies (clone) instead of the batches"
                                        : "; no more memory is available: keep copies (clone) of what you "
                                          "need instead of the batches, or lower batch_size");
    show_line(terminal, &line);
}

/* In the eighths of a power of two, as people write sizes. */
static uint64_t size_round_up(uint64_t bytes)
{
    uint64_t step = (UINT64_C(1) << 20);
    while (step * 16 < bytes)
        step *= 2;
    return (bytes + step - 1) / step * step;
}

/* Workers waited for room for so long that something should be changed. */
static void show_waits(const Terminal *terminal, const RunResult *result)
{
    _cleanup_buffer_ Buffer text = {0};
    const GuardFigures *guard = &result->guard;
    double share = result->seconds > 0 ? MIN(guard->queued_seconds / result->seconds, 1) : 0;
    if (guard->budget_bytes == U64_UNKNOWN || guard->rescues == 0 || share < QUEUED_SHARE_LEAST ||
        guard->queued_seconds < QUEUED_SECONDS_LEAST)
        return;
    (void)buffer_printf(&text,
                        "workers waited for room during %.0f%% of the run, and %" PRIu64
                        " batch%s passed the budget of %s because no memory was released.",
                        share * 100, guard->rescues, guard->rescues == 1 ? "" : "es",
                        SIZE_TEXT(guard->budget_bytes));
    if (result->keeper.pid > 0) {
        (void)buffer_append_text(&text, " Most was kept by ");
        keeper_add(&text, &result->keeper, result->pid);
        (void)buffer_printf(&text, ": %s.", SIZE_TEXT(result->keeper.bytes));
    }
    (void)buffer_append_text(&text, " Keep copies (clone) of what you need instead of the batches");
    if (guard->wanted_exists)
        (void)buffer_printf(&text, ", or use --budget %s (estimated)",
                            SIZE_FLAG(size_round_up(guard->wanted_bytes)));
    (void)buffer_append_text(&text, ".");
    show_sentence(terminal, STYLE_WARNING, buffer_text(&text));
}

static void show_guard(const Terminal *terminal, const GuardFigures *guard)
{
    _cleanup_buffer_ Buffer bytes = {0};
    _cleanup_buffer_ Buffer counts = {0};
    /* Of what was refused no tensor has come. */
    bool served = guard->bytes_backed > 0 || guard->refused == 0;
    uint64_t issued = served ? guard->segments_created + guard->segments_reused : 0;
    if (guard->bytes_backed > 0)
        part_add(&bytes, "%s of shared tensors kept out of /dev/shm, at most %s at a time",
                 SIZE_TEXT(guard->bytes_backed), SIZE_TEXT(guard->bytes_peak));
    else if (guard->bytes_peak > 0)
        part_add(&bytes, "at most %s of shared memory kept out of /dev/shm at a time",
                 SIZE_TEXT(guard->bytes_peak));
    if (issued > 0 && guard->segments_reused == 0)
        part_add(&counts, "%" PRIu64 " segment%s made, %s", guard->segments_created,
                 plural(guard->segments_created),
                 guard->segments_created == 1 ? "used once" : "each used once");
    else if (issued > 0)
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
        part_add(&counts, "workers waited %" PRIu64 " time%s for room, %.1f s in total", guard->waits,
                 plural(guard->waits), guard->waited_seconds);
    if (guard->fallbacks > 0)
        part_add(&counts, "%" PRIu64 " tensor%s went through /dev/shm instead", guard->fallbacks,
                 plural(guard->fallbacks));
    show_line(terminal, &bytes);
    show_line(terminal, &counts);
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
    show_sentence(terminal, STYLE_BAD, buffer_text(&text));
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
    show_sentence(terminal, STYLE_BOLD, buffer_text(&text));
}

/* Why the guard did nothing, or less than it could have. `good`: the command ended well; of one that failed
 * before it shared anything, that says it all. */
static void show_idle(const Terminal *terminal, const Evidence *evidence, bool good)
{
    const Unguarded *worst = unguarded_worst(evidence);
    switch (idle_judge(evidence)) {
    case IDLE_UNKNOWN:
        if (good)
            show_sentence(terminal, STYLE_BOLD, "the guard saw no shared tensors");
        break;
    case IDLE_NO_TENSORS:
        if (good)
            show_sentence(terminal, STYLE_BOLD,
                          "no shared tensors were made, so the guard had nothing to do. A DataLoader shares "
                          "tensors when it has num_workers > 0.");
        break;
    case IDLE_OTHER_USER:
        if (!worst)
            show_sentence(
                terminal, STYLE_BAD,
                "processes of another user asked for the guard and were refused: it could not be shown "
                "that they belong to this job. Start shmguard after the change of user.");
        break;
    case IDLE_INNER_RUN:
        show_sentence(
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

/* Memory was refused, and that is not why the command has ended. */
static void show_refused(const Terminal *terminal, const GuardFigures *guard, bool good)
{
    _cleanup_buffer_ Buffer text = {0};
    uint64_t most = guard->refused_bytes;
    for (size_t i = 0; i < guard->n_refusals; i++)
        most = MAX(most, guard->refusals[i].most_bytes);
    if (guard->refused == 1)
        (void)buffer_printf(&text, "1 request for %s of shared memory was refused", SIZE_TEXT(most));
    else
        (void)buffer_printf(&text, "%" PRIu64 " requests for shared memory were refused, the largest for %s",
                            guard->refused, SIZE_TEXT(most));
    if (guard->refused_for_want)
        (void)buffer_append_text(&text, ": no memory was left.");
    else
        (void)buffer_printf(&text, ": the budget is %s.", SIZE_TEXT(guard->budget_bytes));
    if (good)
        (void)buffer_append_text(&text, " The command handled that and went on.");
    show_sentence(terminal, STYLE_WARNING, buffer_text(&text));
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

static void show_reasons(const Terminal *terminal, const Diagnosis *judged)
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
    const Diagnosis *judged = &last->judged;
    return last->result.passed_on != 0 ||
           (judged->cause.id == CAUSE_UNKNOWN && judged->cause.n_evidence <= 1 && judged->fixes.n == 0);
}

static void show_end(const Terminal *terminal, const RunReport *report, const RunAttempt *last)
{
    const Diagnosis *judged = &last->judged;
    show_sentence(terminal, STYLE_BAD, judged->cause.summary);
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
    show_sentence(terminal, STYLE_BAD, buffer_text(&text));
}

void show_run(const Terminal *terminal, const RunReport *report)
{
    const RunAttempt *last = report_last(report);
    const RunResult *result = &last->result;
    _cleanup_buffer_ Buffer line = {0};
    CauseId cause = last->judged.cause.id;
    if (result->pid == 0)
        return;
    if (cause == CAUSE_BUDGET_EXCEEDED)
        show_end(terminal, report, last);
    else if (result->guarded && result->guard.refused > 0)
        show_refused(terminal, &result->guard, cause == CAUSE_OK);
    if (result->guarded) {
        show_guard(terminal, &result->guard);
        show_idle(terminal, &last->evidence, cause == CAUSE_OK && result->guard.refused == 0);
        show_waits(terminal, result);
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
    if (unreadable && (cause != CAUSE_OK || idle_judge(&last->evidence) == IDLE_UNKNOWN))
        show_unreadable(terminal, unreadable);
    if (cause != CAUSE_OK && cause != CAUSE_BUDGET_EXCEEDED)
        show_end(terminal, report, last);
}
