/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "doctor-text.h"
#include "message-text.h"
#include "show-doctor.h"
#include "show-fixes.h"
#include "show-machine.h"
#include "units.h"

/* Lists have commas between their items. */
static void append_comma(Buffer *list)
{
    if (list->size > 0)
        (void)buffer_append_text(list, MESSAGE_ITEMS);
}

static void append_fact(Buffer *list, const char *fact)
{
    append_comma(list);
    (void)buffer_append_text(list, fact);
}

static void show_line(const Terminal *terminal, const char *label, const char *text)
{
    terminal_label(terminal, label);
    terminal_wrap(terminal, LABEL_COLUMNS, LABEL_COLUMNS, text);
}

static void show_environment(const Terminal *terminal, const Machine *machine, const GuardOffer *guard)
{
    const Sandbox *sandbox = &machine->sandbox;
    const char *kind = environment_name(sandbox->kind);
    _cleanup_buffer_ Buffer facts = {0};
    append_fact(&facts, sandbox->kind == ENVIRONMENT_BARE      ? DOCTOR_NO_CONTAINER
                        : sandbox->kind == ENVIRONMENT_UNKNOWN ? DOCTOR_UNKNOWN_CONTAINER
                                                               : kind);
    if (sandbox->runtime[0] && strcmp(sandbox->runtime, kind) != 0)
        (void)buffer_printf(&facts, MESSAGE_ASIDE, sandbox->runtime);
    if (sandbox->slurm)
        append_fact(&facts, DOCTOR_SLURM);
    if (machine->shm.owner == SHM_OF_JOB)
        append_fact(&facts, DOCTOR_OWN_SHM);
    append_fact(&facts, sandbox->root ? DOCTOR_ROOT : DOCTOR_NOT_ROOT);
    append_fact(&facts, sandbox->can_remount ? DOCTOR_MAY_RESIZE : DOCTOR_MAY_NOT_RESIZE);
    show_line(terminal, DOCTOR_LABEL_ENVIRONMENT, buffer_text(&facts));

    _cleanup_buffer_ Buffer state = {0};
    if (!guard->ready)
        (void)buffer_printf(&state, DOCTOR_GUARD_NOT_READY, guard->why_not);
    show_line(terminal, DOCTOR_LABEL_GUARD, guard->ready ? DOCTOR_GUARD_READY : buffer_text(&state));
}

static void show_memory(const Terminal *terminal, const Machine *machine)
{
    const MemInfo *memory = &machine->memory;
    const Cgroup *cgroup = &machine->cgroup;
    terminal_label(terminal, DOCTOR_LABEL_MEMORY);
    fprintf(terminal->out, DOCTOR_MEMORY, SIZE_TEXT(memory->total_bytes), SIZE_TEXT(memory->available_bytes),
            SIZE_TEXT(memory->swap_free_bytes));
    fputc('\n', terminal->out);
    terminal_label(terminal, DOCTOR_LABEL_GROUP);
    if (cgroup->version == 0)
        fputs(DOCTOR_GROUP_NONE, terminal->out);
    else if (cgroup->memory_limit_bytes == U64_UNKNOWN)
        fputs(DOCTOR_GROUP_NO_LIMIT, terminal->out);
    else
        fprintf(terminal->out, DOCTOR_GROUP_LIMIT, SIZE_TEXT(cgroup->memory_limit_bytes),
                SIZE_TEXT(cgroup->memory_used_bytes));
    fputc('\n', terminal->out);
}

typedef struct LimitText {
    char text[24];
} LimitText;

static LimitText limit_text(uint64_t limit)
{
    LimitText ret;
    if (limit == U64_UNKNOWN)
        snprintf(ret.text, sizeof ret.text, "?");
    else if (limit == RLIMIT_UNLIMITED)
        snprintf(ret.text, sizeof ret.text, DOCTOR_UNLIMITED);
    else
        snprintf(ret.text, sizeof ret.text, "%llu", (unsigned long long)limit);
    return ret;
}

static void show_limits(const Terminal *terminal, const Machine *machine)
{
    LimitText soft = limit_text(machine->limits.open_files_soft);
    LimitText hard = limit_text(machine->limits.open_files_hard);
    LimitText maps = limit_text(machine->max_map_count);
    _cleanup_buffer_ Buffer line = {0};
    if (machine->cpus > 0)
        (void)buffer_printf(&line, DOCTOR_LIMITS_CPUS, soft.text, hard.text, maps.text, machine->cpus);
    else
        (void)buffer_printf(&line, DOCTOR_LIMITS, soft.text, hard.text, maps.text);
    show_line(terminal, DOCTOR_LABEL_LIMITS, buffer_text(&line));
}

static void show_finding(const Terminal *terminal, const Finding *finding)
{
    enum { INDENT = 2 };
    _cleanup_buffer_ Buffer title = {0};
    const char *mark = terminal_mark(terminal, severity_mark(finding->severity));
    const char *word = _(severity_name(finding->severity));
    size_t columns =
        text_columns(text_of(mark)) + 1 + text_columns(text_of(word)) + text_columns(text_of(MESSAGE_COLON));
    fputc('\n', terminal->out);
    terminal_print(terminal, severity_style(finding->severity), "%s %s", mark, word);
    fputs(MESSAGE_COLON, terminal->out);
    (void)buffer_printf(&title, "%s [%s]", finding->title, finding->id);
    terminal_wrap(terminal, (unsigned)columns, INDENT, buffer_text(&title));
    fprintf(terminal->out, "%*s", INDENT, "");
    terminal_wrap(terminal, INDENT, INDENT, finding->evidence);
    show_fixes(terminal, INDENT, &finding->fixes);
}

static void show_skipped(const Terminal *terminal, const Findings *findings)
{
    if (findings->n_skipped == 0)
        return;
    fprintf(terminal->out, "\n%s\n", DOCTOR_SKIPPED);
    for (size_t i = 0; i < findings->n_skipped; i++) {
        fputs("  ", terminal->out);
        terminal_wrap(terminal, 2, 4, findings->skipped[i]);
    }
}

static size_t count_severity(const Findings *findings, Severity severity)
{
    size_t n = 0;
    for (size_t i = 0; i < findings->n; i++)
        n += findings->items[i].severity == severity;
    return n;
}

static void append_counts(const Findings *findings, Buffer *list)
{
    size_t critical = count_severity(findings, SEVERITY_CRITICAL);
    size_t warnings = count_severity(findings, SEVERITY_WARNING);
    size_t notes = count_severity(findings, SEVERITY_INFO);
    if (critical > 0) {
        append_comma(list);
        (void)buffer_printf(list, PLURAL(critical, DOCTOR_CRITICAL_ONE, DOCTOR_CRITICAL_MANY), critical);
    }
    if (warnings > 0) {
        append_comma(list);
        (void)buffer_printf(list, PLURAL(warnings, DOCTOR_WARNING_ONE, DOCTOR_WARNING_MANY), warnings);
    }
    if (notes > 0) {
        append_comma(list);
        (void)buffer_printf(list, PLURAL(notes, DOCTOR_NOTE_ONE, DOCTOR_NOTE_MANY), notes);
    }
}

static void show_verdict(const Terminal *terminal, const Findings *findings)
{
    Health verdict = findings_health(findings);
    Mark mark = verdict == HEALTH_OK ? MARK_GOOD : verdict == HEALTH_WARNING ? MARK_WARNING : MARK_BAD;
    Style style = verdict == HEALTH_OK ? STYLE_GOOD : verdict == HEALTH_WARNING ? STYLE_WARNING : STYLE_BAD;
    _cleanup_buffer_ Buffer counts = {0};
    append_counts(findings, &counts);
    fprintf(terminal->out, "\n%s", DOCTOR_LABEL_VERDICT);
    terminal_print(terminal, style, "%s %s", terminal_mark(terminal, mark), _(health_name(verdict)));
    if (counts.size > 0)
        fprintf(terminal->out, MESSAGE_ASIDE, buffer_text(&counts));
    fputc('\n', terminal->out);
}

void show_doctor(const Terminal *terminal, const Machine *machine, const GuardOffer *guard,
                 const Findings *findings)
{
    show_environment(terminal, machine, guard);
    show_shm(terminal, &machine->shm);
    show_memory(terminal, machine);
    show_limits(terminal, machine);
    for (size_t i = 0; i < findings->n; i++)
        show_finding(terminal, &findings->items[i]);
    show_skipped(terminal, findings);
    show_verdict(terminal, findings);
}
