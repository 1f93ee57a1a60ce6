/* SPDX-License-Identifier: Apache-2.0 */
#include "show-preflight.h"
#include "units.h"

static const char name[] = "shmguard: ";

void show_preflight(const Terminal *terminal, const Preflight *preflight)
{
    _cleanup_buffer_ Buffer line = {0};
    unsigned indent = sizeof name - 1;
    for (size_t i = 0; i < preflight->n; i++) {
        const Threat *threat = &preflight->items[i];
        const char *severity = severity_name(threat->severity);
        terminal_print(terminal, STYLE_BOLD, "%s", name);
        terminal_print(terminal, threat->severity == SEVERITY_CRITICAL ? STYLE_BAD : STYLE_WARNING,
                       "%s:", severity);
        buffer_clear(&line);
        (void)buffer_printf(&line, "%s. %s", threat->text, threat->remedy);
        fputc(' ', terminal->out);
        unsigned at = indent + (unsigned)text_columns(text_of(severity)) + 2;
        terminal_wrap(terminal, at, indent, buffer_text(&line));
    }
}

void show_preflight_fine(const Terminal *terminal, const Machine *machine, const PreflightPlan *plan)
{
    _cleanup_buffer_ Buffer line = {0};
    uint64_t shm = plan->private_shm_bytes ? plan->private_shm_bytes : machine->shm.available_bytes;
    bool limited = plan->private_shm_bytes || machine->shm.size_bytes > 0;
    uint64_t room = memory_room_bytes(machine);
    if (room == U64_UNKNOWN)
        (void)buffer_append_text(&line, "found no threat to this job");
    else
        (void)buffer_printf(&line, "found no threat to this job: %s of memory available", SIZE_TEXT(room));
    if (limited)
        (void)buffer_printf(&line, ", %s free in %s/dev/shm%s", SIZE_TEXT(shm),
                            plan->private_shm_bytes ? "its own " : "",
                            plan->guarded ? " (tensors do not need it)" : "");
    if (machine->has_disk)
        (void)buffer_printf(&line, ", %s free on the disk", SIZE_TEXT(machine->disk.available_bytes));
    terminal_print(terminal, STYLE_BOLD, "%s", name);
    terminal_wrap(terminal, sizeof name - 1, sizeof name - 1, buffer_text(&line));
}
