#include "show-run.h"
#include "units.h"

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void show_line(const Terminal *terminal, const Buffer *line)
{
    terminal_print(terminal, STYLE_BOLD, "shmguard:");
    fprintf(terminal->out, " %s\n", buffer_text(line));
}

static void show_guard(const Terminal *terminal, const GuardFigures *guard)
{
    _cleanup_buffer_ Buffer line = {0};
    uint64_t issued = guard->segments_created + guard->segments_reused;
    uint64_t tensors = issued + guard->small_backed;
    if (tensors + guard->names_made == 0)
        (void)buffer_append_text(&line, "no shared tensor was made, so there was nothing to guard");
    else
        (void)buffer_printf(&line, "%s of shared tensors kept out of /dev/shm, at most %s at a time",
                            SIZE_TEXT(guard->bytes_backed), SIZE_TEXT(guard->bytes_peak));
    show_line(terminal, &line);

    buffer_clear(&line);
    if (issued > 0)
        (void)buffer_printf(&line, "%llu segment%s made and used again %llu time%s (%llu%% recycled)",
                            (unsigned long long)guard->segments_created, plural(guard->segments_created),
                            (unsigned long long)guard->segments_reused, plural(guard->segments_reused),
                            (unsigned long long)(guard->segments_reused * 100 / issued));
    if (guard->names_made > 0)
        (void)buffer_printf(&line, "%s%llu name%s kept and opened %llu time%s", line.size > 0 ? "; " : "",
                            (unsigned long long)guard->names_made, plural(guard->names_made),
                            (unsigned long long)guard->names_served, plural(guard->names_served));
    if (line.size > 0)
        show_line(terminal, &line);

    buffer_clear(&line);
    if (guard->fallbacks > 0) {
        (void)buffer_printf(&line, "%llu tensor%s took the plain way through /dev/shm",
                            (unsigned long long)guard->fallbacks, plural(guard->fallbacks));
        show_line(terminal, &line);
    }
}

void show_run(const Terminal *terminal, const RunReport *report)
{
    const RunResult *result = &report->result;
    _cleanup_buffer_ Buffer line = {0};
    if (result->guarded)
        show_guard(terminal, &result->guard);
    if (result->strays > 0) {
        (void)buffer_printf(&line, "ended %u process%s that the command had left running", result->strays,
                            result->strays == 1 ? "" : "es");
        show_line(terminal, &line);
    }
}
