/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "idle.h"
#include "message.h"
#include "run-text.h"
#include "show-explain.h"
#include "show-fixes.h"
#include "show-run.h"
#include "units.h"
#include "waits.h"

enum { INDENT = 2, REASONS_SHOWN = 3, FIXES_SHOWN = 2 };

/* A message that is one sentence without placeholders. */
static void show_text(const Terminal *terminal, Style style, const char *text)
{
    _cleanup_buffer_ Buffer message = {0};
    (void)buffer_append_text(&message, text);
    message_print(terminal, style, &message);
}

static void process_append(Buffer *text, const Keeper *keeper, int command)
{
    _cleanup_buffer_ Buffer comm = {0};
    if (keeper->pid == command)
        (void)buffer_printf(text, RUN_PROCESS_COMMAND, keeper->pid);
    else if (keeper->role == ROLE_WORKER)
        (void)buffer_printf(text, RUN_PROCESS_WORKER, keeper->pid);
    else if (keeper->role == ROLE_TRAINER)
        (void)buffer_printf(text, RUN_PROCESS_TRAINER, keeper->pid);
    else if (text_escape(text_of(keeper->comm), &comm) == 0)
        (void)buffer_printf(text, RUN_PROCESS_OTHER, keeper->pid, buffer_text(&comm));
}

void show_crawl(const Terminal *terminal, const RunTick *tick)
{
    _cleanup_buffer_ Buffer message = {0};
    _cleanup_buffer_ Buffer process = {0};
    const GuardFigures *guard = &tick->guard;
    const Keeper *keeper = &tick->crawl->keeper;
    message_add(&message, " ", PLURAL(guard->waiting, RUN_CRAWL_ONE, RUN_CRAWL_MANY), guard->waiting,
                tick->crawl->seconds);
    if (keeper->pid > 0) {
        process_append(&process, keeper, tick->pid);
        message_add(&message, " ", RUN_CRAWL_KEEPER, buffer_text(&process), SIZE_TEXT(keeper->bytes));
    } else
        message_add(&message, " ", RUN_CRAWL_IN_USE, SIZE_TEXT(guard->bytes_now));
    if (guard->budget_bytes != U64_UNKNOWN)
        message_add(&message, " ", RUN_CRAWL_BUDGET, SIZE_TEXT(guard->budget_bytes));
    message_add(&message, " ", "%s", guard->wanted_exists ? RUN_CRAWL_RAISE : RUN_CRAWL_COPY);
    message_print_line(terminal, &message);
}

static void show_waits(const Terminal *terminal, const RunResult *result)
{
    _cleanup_buffer_ Buffer message = {0};
    _cleanup_buffer_ Buffer process = {0};
    const GuardFigures *guard = &result->guard;
    Waits waits = {
        .run_seconds = result->seconds, .waited_seconds = guard->queued_seconds, .rescues = guard->rescues};
    if (guard->budget_bytes == U64_UNKNOWN || !waits_matter(&waits))
        return;
    message_add(&message, " ", PLURAL(guard->rescues, RUN_WAITED_ONE, RUN_WAITED_MANY),
                waits_share(&waits) * 100, guard->rescues, SIZE_TEXT(guard->budget_bytes));
    if (result->keeper.pid > 0) {
        process_append(&process, &result->keeper, result->pid);
        message_add(&message, " ", RUN_WAITED_KEEPER, buffer_text(&process), SIZE_TEXT(result->keeper.bytes));
    }
    if (guard->wanted_exists)
        message_add(&message, " ", RUN_WAITED_RAISE, SIZE_FLAG(budget_suggest(guard->wanted_bytes)));
    else
        message_add(&message, " ", RUN_WAITED_COPY);
    message_print(terminal, STYLE_WARNING, &message);
}

/* NULL: batches took the lane, or there were none, or the user wanted none. */
static const char *no_lane_words(const GuardFigures *guard)
{
    static const struct {
        const char *why, *words;
    } reasons[] = {
        {"python", RUN_NO_LANE_PYTHON}, {"torch", RUN_NO_LANE_TORCH}, {"trainer", RUN_NO_LANE_TRAINER}};
    for (size_t i = 0; guard->lane.why && guard->batches > 0 && i < ARRAY_SIZE(reasons); i++)
        if (strcmp(guard->lane.why, reasons[i].why) == 0)
            return reasons[i].words;
    return NULL;
}

static void show_freeze(const Terminal *terminal, const FreezeFigures *freeze)
{
    _cleanup_buffer_ Buffer frozen = {0};
    _cleanup_buffer_ Buffer left = {0};
    _cleanup_buffer_ Buffer full = {0};
    if (freeze->objects == 0)
        return;
    message_add(&frozen, "", PLURAL(freeze->objects, RUN_FROZEN_ONE, RUN_FROZEN_MANY), freeze->objects,
                SIZE_TEXT(freeze->bytes), freeze->seconds);
    message_print_line(terminal, &frozen);
    if (freeze->left_bytes > 0) {
        message_add(&left, "", RUN_FROZEN_LEFT, SIZE_TEXT(freeze->left_bytes));
        message_print(terminal, STYLE_WARNING, &left);
    }
    if (freeze->why && strcmp(freeze->why, "limit") == 0) {
        message_add(&full, "", RUN_FROZEN_FULL);
        message_print(terminal, STYLE_WARNING, &full);
    }
}

/* The sentence for everybody, what did not go its usual way, and if asked for, the figures. */
static void show_guard(const Terminal *terminal, const GuardFigures *guard, bool verbose)
{
    _cleanup_buffer_ Buffer bytes = {0};
    _cleanup_buffer_ Buffer unusual = {0};
    _cleanup_buffer_ Buffer figures = {0};
    /* A segment whose request was refused has never held a tensor. */
    bool served = guard->bytes_backed > 0 || guard->refused == 0;
    uint64_t issued = served ? guard->segments_created + guard->segments_reused : 0;
    if (guard->bytes_backed > 0)
        message_add(&bytes, "", RUN_TENSORS, SIZE_TEXT(guard->bytes_backed), SIZE_TEXT(guard->bytes_peak));
    else if (guard->bytes_peak > 0)
        message_add(&bytes, "", RUN_MEMORY_PEAK, SIZE_TEXT(guard->bytes_peak));
    if (issued > 0)
        message_add(&figures, "; ", RUN_SEGMENTS, issued, guard->segments_created,
                    guard->segments_reused * 100 / issued);
    if (guard->small_backed > 0)
        message_add(&figures, "; ", RUN_SMALL, guard->small_backed);
    if (guard->lane.batches > 0)
        message_add(&figures, "; ", RUN_LANE, guard->lane.batches, SIZE_TEXT(guard->lane.by_value_bytes));
    if (guard->names_made > 0)
        message_add(&figures, "; ", RUN_NAMES, guard->names_made, guard->names_served);
    if (guard->waits > 0)
        message_add(&figures, "; ", RUN_WAITS, guard->waits, guard->waited_seconds);
    if (no_lane_words(guard))
        message_add(&unusual, "; ", "%s", no_lane_words(guard));
    if (guard->fallbacks > 0)
        message_add(&unusual, "; ", RUN_FALLBACKS, guard->fallbacks);
    message_print_line(terminal, &bytes);
    message_print_line(terminal, &unusual);
    if (verbose)
        message_print_line(terminal, &figures);
    show_freeze(terminal, &guard->freeze);
}

static void show_unguarded(const Terminal *terminal, const Evidence *evidence, const Unguarded *unguarded)
{
    _cleanup_buffer_ Buffer message = {0};
    _cleanup_buffer_ Buffer comm = {0};
    size_t more = unguarded_alike(evidence, unguarded) - 1;
    (void)text_escape(text_of(unguarded->comm), &comm);
    if (more > 0)
        message_add(&message, " ", PLURAL(more, RUN_UNGUARDED_MORE_ONE, RUN_UNGUARDED_MORE_MANY),
                    buffer_text(&comm), unguarded->pid, more);
    else
        message_add(&message, " ", RUN_UNGUARDED, buffer_text(&comm), unguarded->pid);
    if (unguarded->why == ABSENCE_UNREADABLE_LIBRARY || unguarded->why == ABSENCE_USER)
        message_add(&message, " ", RUN_UNGUARDED_USER, unguarded->uid);
    message_add(&message, " ", "%s", absence_words(unguarded->why));
    message_print(terminal, STYLE_BAD, &message);
}

static void show_unreadable(const Terminal *terminal, const Unguarded *unguarded)
{
    _cleanup_buffer_ Buffer message = {0};
    _cleanup_buffer_ Buffer comm = {0};
    (void)text_escape(text_of(unguarded->comm), &comm);
    message_add(&message, " ", RUN_UNREADABLE, buffer_text(&comm), unguarded->pid, unguarded->uid);
    message_print(terminal, STYLE_BOLD, &message);
}

/* Why the guard did nothing, or less than it could have. `good`: the command ended well. When a command fails
 * before it shares anything, its failure already explains why the guard saw no tensors. */
static void show_idle(const Terminal *terminal, const Evidence *evidence, bool good)
{
    const Unguarded *worst = unguarded_worst(evidence);
    switch (idle_judge(evidence)) {
    case IDLE_UNKNOWN:
        if (good)
            show_text(terminal, STYLE_BOLD, RUN_IDLE_UNKNOWN);
        break;
    case IDLE_NO_TENSORS:
        if (good)
            show_text(terminal, STYLE_BOLD,
                      evidence->coverage.loaders > 0 ? RUN_IDLE_THREADS : RUN_IDLE_NO_TENSORS);
        break;
    case IDLE_OTHER_USER:
        if (!worst)
            show_text(terminal, STYLE_BAD, RUN_IDLE_OTHER_USER);
        break;
    case IDLE_INNER_RUN:
        show_text(terminal, STYLE_BOLD, RUN_IDLE_INNER_RUN);
        break;
    case IDLE_NOT_LOADED:
    case IDLE_NOT:
        break;
    }
    if (worst)
        show_unguarded(terminal, evidence, worst);
}

/* Memory was refused, but that did not end the command. */
static void show_refused(const Terminal *terminal, const GuardFigures *guard, bool good)
{
    _cleanup_buffer_ Buffer message = {0};
    uint64_t most = guard->refused_bytes;
    for (size_t i = 0; i < guard->n_refusals; i++)
        most = MAX(most, guard->refusals[i].most_bytes);
    message_add(&message, " ", PLURAL(guard->refused, RUN_REFUSED_ONE, RUN_REFUSED_MANY), guard->refused,
                SIZE_TEXT(most));
    if (guard->refused_for_want)
        message_add(&message, " ", RUN_REFUSED_MEMORY);
    else
        message_add(&message, " ", RUN_REFUSED_BUDGET, SIZE_TEXT(guard->budget_bytes));
    if (good)
        message_add(&message, " ", RUN_REFUSED_ENDURED);
    message_print(terminal, STYLE_WARNING, &message);
}

/* The last line, where the eye rests: the cause's id, to look up in the manual, and where the report is. */
static void show_name(const Terminal *terminal, const Cause *cause, const char *path)
{
    _cleanup_buffer_ Buffer escaped = {0};
    fprintf(terminal->out, "%*s%s", INDENT, "", RUN_CAUSE);
    terminal_print(terminal, STYLE_BOLD, "%s", cause_name(cause->id));
    if (cause->id != CAUSE_UNKNOWN)
        fprintf(terminal->out, " (%s)", confidence_words(cause->confidence));
    if (path && text_escape(text_of(path), &escaped) == 0)
        fprintf(terminal->out, "; " RUN_REPORT, buffer_text(&escaped));
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
    if (judged->frame && buffer_printf(&frame, RUN_FRAME, judged->frame) >= 0) {
        fprintf(terminal->out, "%*s- ", INDENT, "");
        terminal_wrap(terminal, INDENT + 2, INDENT + 2, buffer_text(&frame));
    }
}

/* The summary says everything: the run was ended on purpose, or all that is known is that it failed. */
static bool end_is_plain(const RunAttempt *last)
{
    const Diagnosis *judged = &last->judged;
    return last->result.passed_on != 0 ||
           (judged->cause.id == CAUSE_UNKNOWN && judged->cause.n_evidence <= 1 && judged->fixes.n == 0);
}

static void show_end(const Terminal *terminal, const RunReport *report, const RunAttempt *last)
{
    const Diagnosis *judged = &last->judged;
    show_text(terminal, STYLE_BAD, judged->cause.summary);
    if (end_is_plain(last))
        return;
    show_reasons(terminal, judged);
    Fixes best = judged->fixes;
    best.n = MIN(best.n, (size_t)FIXES_SHOWN);
    if (best.n > 0) {
        fprintf(terminal->out, "%*s", INDENT, "");
        terminal_print(terminal, STYLE_BOLD, RUN_FIXES);
        fputc('\n', terminal->out);
        show_fixes(terminal, INDENT, &best);
    }
    show_name(terminal, &judged->cause, report->path);
}

void show_stray_work(const Terminal *terminal, const StrayWork *work)
{
    _cleanup_buffer_ Buffer command = {0};
    _cleanup_buffer_ Buffer message = {0};
    (void)text_escape(text_of(work->command), &command);
    if (work->n == 1)
        message_add(&message, " ", RUN_WORK_ONE, work->pid, buffer_text(&command));
    else
        message_add(&message, " ", RUN_WORK_MANY, work->n, work->pid, buffer_text(&command));
    message_add(&message, " ", RUN_WORK_ADVICE);
    message_print(terminal, STYLE_BAD, &message);
}

static void show_strays(const Terminal *terminal, const RunResult *result)
{
    _cleanup_buffer_ Buffer ended = {0};
    _cleanup_buffer_ Buffer left = {0};
    if (result->work.n > 0)
        show_stray_work(terminal, &result->work);
    else if (result->strays > 0)
        message_add(&ended, "", PLURAL(result->strays, RUN_STRAYS_ONE, RUN_STRAYS_MANY), result->strays);
    if (result->left > 0)
        message_add(&left, "", PLURAL(result->left, RUN_LEFT_ONE, RUN_LEFT_MANY), result->left);
    message_print_line(terminal, &ended);
    message_print_line(terminal, &left);
}

void show_run(const Terminal *terminal, const RunReport *report, bool verbose)
{
    const RunAttempt *last = report_last(report);
    const RunResult *result = &last->result;
    CauseId cause = last->judged.cause.id;
    if (result->pid == 0)
        return;
    if (cause == CAUSE_BUDGET_EXCEEDED)
        show_end(terminal, report, last);
    else if (result->guarded && result->guard.refused > 0)
        show_refused(terminal, &result->guard, cause == CAUSE_OK);
    if (result->guarded) {
        show_guard(terminal, &result->guard, verbose);
        show_idle(terminal, &last->evidence, cause == CAUSE_OK && result->guard.refused == 0);
        show_waits(terminal, result);
    }
    show_strays(terminal, result);
    const Unguarded *unreadable = unguarded_unreadable(&last->evidence);
    if (unreadable && (cause != CAUSE_OK || idle_judge(&last->evidence) == IDLE_UNKNOWN))
        show_unreadable(terminal, unreadable);
    if (cause != CAUSE_OK && cause != CAUSE_BUDGET_EXCEEDED)
        show_end(terminal, report, last);
}
