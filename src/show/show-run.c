#include <inttypes.h>
#include <stdarg.h>

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
    if (bytes.size + counts.size == 0)
        part_add(&bytes, "the guard saw no shared tensors");
    show_line(terminal, &bytes);
    show_line(terminal, &counts);
}

/* "cause" for people: who died of what, in a line or two behind our name. */
static void show_cause(const Terminal *terminal, const Judged *judged)
{
    static const char prefix[] = "shmguard: ";
    const Cause *cause = &judged->cause;
    _cleanup_buffer_ Buffer head = {0};
    bool known = cause->id != CAUSE_UNKNOWN && cause->id != CAUSE_OK;
    int r =
        known ? buffer_printf(&head, "%s (%s). ", cause_name(cause->id), confidence_words(cause->confidence))
              : 0;
    if (r >= 0)
        r = buffer_append_text(&head, cause->summary);
    terminal_print(terminal, STYLE_BAD, "shmguard:");
    fputc(' ', terminal->out);
    terminal_wrap(terminal, sizeof prefix - 1, INDENT, r < 0 ? cause->summary : buffer_text(&head));
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

/* Of a run that somebody ended on purpose he needs to hear no more than that. */
static void show_end(const Terminal *terminal, const RunReport *report, const RunAttempt *last)
{
    const Judged *judged = &last->judged;
    _cleanup_buffer_ Buffer line = {0};
    show_cause(terminal, judged);
    if (last->result.passed_on != 0)
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
    if (report->path && buffer_printf(&line, "All that is known: %s", report->path) >= 0)
        terminal_verbatim(terminal, INDENT, buffer_text(&line));
}

void show_run(const Terminal *terminal, const RunReport *report)
{
    const RunAttempt *last = &report->attempts[report->n_attempts - 1];
    const RunResult *result = &last->result;
    _cleanup_buffer_ Buffer line = {0};
    if (result->pid == 0)
        return;
    if (result->guarded)
        show_guard(terminal, &result->guard);
    if (result->strays > 0) {
        (void)buffer_printf(&line, "ended %u process%s that the command had left running", result->strays,
                            result->strays == 1 ? "" : "es");
        show_line(terminal, &line);
    }
    if (last->judged.cause.id != CAUSE_OK)
        show_end(terminal, report, last);
}
