/* SPDX-License-Identifier: Apache-2.0 */
#include "show-preflight.h"
#include "message.h"
#include "run-text.h"
#include "units.h"

static const char name[] = "shmguard: ";

void show_preflight(const Terminal *terminal, const Preflight *preflight)
{
    _cleanup_buffer_ Buffer line = {0};
    unsigned indent = sizeof name - 1;
    for (size_t i = 0; i < preflight->n; i++) {
        const Threat *threat = &preflight->items[i];
        const char *severity = _(severity_name(threat->severity));
        terminal_print(terminal, STYLE_BOLD, "%s", name);
        terminal_print(terminal, severity_style(threat->severity), "%s:", severity);
        buffer_clear(&line);
        (void)buffer_printf(&line, RUN_THREAT, threat->text, threat->remedy);
        fputc(' ', terminal->out);
        unsigned at = indent + (unsigned)text_columns(text_of(severity)) + 2;
        terminal_wrap(terminal, at, indent, buffer_text(&line));
    }
}

void show_preflight_fine(const Terminal *terminal, const Machine *machine, const PreflightPlan *plan)
{
    _cleanup_buffer_ Buffer message = {0};
    uint64_t room = memory_room_bytes(machine);
    message_add(&message, " ", RUN_NO_THREAT);
    if (room != U64_UNKNOWN)
        message_add(&message, " ", RUN_MEMORY, SIZE_TEXT(room));
    if (plan->private_shm_bytes)
        message_add(&message, " ", plan->guarded ? RUN_OWN_SHM_GUARDED : RUN_OWN_SHM,
                    SIZE_TEXT(plan->private_shm_bytes));
    else if (machine->shm.size_bytes > 0)
        message_add(&message, " ", plan->guarded ? RUN_SHM_GUARDED : RUN_SHM,
                    SIZE_TEXT(machine->shm.available_bytes));
    if (machine->has_disk)
        message_add(&message, " ", RUN_DISK, SIZE_TEXT(machine->disk.available_bytes));
    terminal_print(terminal, STYLE_BOLD, "%s", name);
    terminal_wrap(terminal, sizeof name - 1, sizeof name - 1, buffer_text(&message));
}
