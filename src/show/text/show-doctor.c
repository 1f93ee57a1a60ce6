/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "show-doctor.h"
#include "show-fixes.h"
#include "show-machine.h"
#include "units.h"

static void show_environment(const Terminal *terminal, const Machine *machine, const GuardOffer *guard)
{
    const Sandbox *sandbox = &machine->sandbox;
    _cleanup_buffer_ Buffer words = {0};
    (void)buffer_append_text(&words, sandbox->kind == ENVIRONMENT_BARE ? "no container"
                                     : sandbox->kind == ENVIRONMENT_UNKNOWN
                                         ? "a container of unknown kind"
                                         : environment_name(sandbox->kind));
    if (sandbox->runtime[0] && strcmp(sandbox->runtime, environment_name(sandbox->kind)) != 0)
        (void)buffer_printf(&words, " (%s)", sandbox->runtime);
    if (sandbox->slurm)
        (void)buffer_append_text(&words, ", in a Slurm job");
    (void)buffer_append_text(&words, sandbox->root ? ", root" : ", not root");
    (void)buffer_append_text(&words,
                             sandbox->can_remount ? ", may resize /dev/shm" : ", may not resize /dev/shm");
    terminal_label(terminal, "environment");
    terminal_wrap(terminal, LABEL_COLUMNS, LABEL_COLUMNS, buffer_text(&words));

    buffer_clear(&words);
    (void)buffer_printf(&words, guard->ready ? "ready" : "not ready: %s", guard->why_not);
    terminal_label(terminal, "guard");
    terminal_wrap(terminal, LABEL_COLUMNS, LABEL_COLUMNS, buffer_text(&words));
}

static void show_memory(const Terminal *terminal, const Machine *machine)
{
    const MemInfo *memory = &machine->memory;
    const Cgroup *cgroup = &machine->cgroup;
    terminal_label(terminal, "memory");
    fprintf(terminal->out, "%s, %s available, %s of swap free\n", SIZE_TEXT(memory->total_bytes),
            SIZE_TEXT(memory->available_bytes), SIZE_TEXT(memory->swap_free_bytes));
    terminal_label(terminal, "control group");
    if (cgroup->version == 0)
        fputs("none to be seen\n", terminal->out);
    else if (cgroup->memory_limit_bytes == U64_UNKNOWN)
        fputs("no memory limit\n", terminal->out);
    else
        fprintf(terminal->out, "%s at most, %s used\n", SIZE_TEXT(cgroup->memory_limit_bytes),
                SIZE_TEXT(cgroup->memory_used_bytes));
}

static void append_limit(Buffer *out, uint64_t limit)
{
    if (limit == U64_UNKNOWN)
        (void)buffer_append_text(out, "?");
    else if (limit == RLIMIT_UNLIMITED)
        (void)buffer_append_text(out, "unlimited");
    else
        (void)buffer_printf(out, "%llu", (unsigned long long)limit);
}

static void show_limits(const Terminal *terminal, const Machine *machine)
{
    _cleanup_buffer_ Buffer words = {0};
    (void)buffer_append_text(&words, "open files ");
    append_limit(&words, machine->limits.open_files_soft);
    (void)buffer_append_text(&words, " (at most ");
    append_limit(&words, machine->limits.open_files_hard);
    (void)buffer_append_text(&words, "), mappings ");
    append_limit(&words, machine->max_map_count);
    if (machine->cpus > 0)
        (void)buffer_printf(&words, ", CPUs %.4g", machine->cpus);
    terminal_label(terminal, "limits");
    terminal_wrap(terminal, LABEL_COLUMNS, LABEL_COLUMNS, buffer_text(&words));
}

static const struct {
    Mark mark;
    Style style;
} severity_looks[] = {
    [SEVERITY_INFO] = {MARK_INFO, STYLE_BOLD},
    [SEVERITY_WARNING] = {MARK_WARNING, STYLE_WARNING},
    [SEVERITY_CRITICAL] = {MARK_BAD, STYLE_BAD},
};

static void show_finding(const Terminal *terminal, const Finding *finding)
{
    enum { INDENT = 2 };
    _cleanup_buffer_ Buffer title = {0};
    const char *mark = terminal_mark(terminal, severity_looks[finding->severity].mark);
    const char *word = severity_name(finding->severity);
    fputc('\n', terminal->out);
    terminal_print(terminal, severity_looks[finding->severity].style, "%s %s", mark, word);
    fputs(": ", terminal->out);
    (void)buffer_printf(&title, "%s [%s]", finding->title, finding->id);
    terminal_wrap(terminal, (unsigned)(text_columns(text_of(mark)) + strlen(word) + 3), INDENT,
                  buffer_text(&title));
    fprintf(terminal->out, "%*s", INDENT, "");
    terminal_wrap(terminal, INDENT, INDENT, finding->evidence);
    show_fixes(terminal, INDENT, &finding->fixes);
}

static void show_skipped(const Terminal *terminal, const Findings *findings)
{
    if (findings->n_skipped == 0)
        return;
    fputs("\ncould not look at:\n", terminal->out);
    for (size_t i = 0; i < findings->n_skipped; i++) {
        fputs("  ", terminal->out);
        terminal_wrap(terminal, 2, 4, findings->skipped[i]);
    }
}

static void append_count(Buffer *out, const Findings *findings, Severity severity, const char *one,
                         const char *many)
{
    size_t n = 0;
    for (size_t i = 0; i < findings->n; i++)
        n += findings->items[i].severity == severity;
    if (n > 0)
        (void)buffer_printf(out, "%s%zu %s", out->size > 0 ? ", " : "", n, n == 1 ? one : many);
}

static void show_verdict(const Terminal *terminal, const Findings *findings)
{
    Health verdict = findings_health(findings);
    Mark mark = verdict == HEALTH_OK ? MARK_GOOD : verdict == HEALTH_WARNING ? MARK_WARNING : MARK_BAD;
    Style style = verdict == HEALTH_OK ? STYLE_GOOD : verdict == HEALTH_WARNING ? STYLE_WARNING : STYLE_BAD;
    _cleanup_buffer_ Buffer counts = {0};
    append_count(&counts, findings, SEVERITY_CRITICAL, "critical finding", "critical findings");
    append_count(&counts, findings, SEVERITY_WARNING, "warning", "warnings");
    append_count(&counts, findings, SEVERITY_INFO, "note", "notes");
    fputs("\nverdict: ", terminal->out);
    terminal_print(terminal, style, "%s %s", terminal_mark(terminal, mark), health_name(verdict));
    fprintf(terminal->out, counts.size > 0 ? " (%s)\n" : "%s\n", buffer_text(&counts));
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
