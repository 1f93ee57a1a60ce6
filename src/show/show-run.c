#include <inttypes.h>
#include <stdarg.h>

#include "show-run.h"
#include "units.h"

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
    if (guard->fallbacks > 0)
        part_add(&counts, "%" PRIu64 " tensor%s took the plain way through /dev/shm", guard->fallbacks,
                 plural(guard->fallbacks));
    if (bytes.size + counts.size == 0)
        part_add(&bytes, "the guard saw no shared tensors");
    show_line(terminal, &bytes);
    show_line(terminal, &counts);
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
    if (result->left > 0) {
        buffer_clear(&line);
        (void)buffer_printf(&line, "%u process%s that the command had left running could not be ended",
                            result->left, result->left == 1 ? "" : "es");
        show_line(terminal, &line);
    }
}
