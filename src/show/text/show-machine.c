/* SPDX-License-Identifier: Apache-2.0 */
#include "show-machine.h"
#include "machine-text.h"
#include "message-text.h"
#include "units.h"

static const char *state_words(ShmState state)
{
    switch (state) {
    case SHM_ABSENT:
        return MACHINE_SHM_ABSENT;
    case SHM_NOT_TMPFS:
        return MACHINE_SHM_NOT_TMPFS;
    case SHM_OK:
    case SHM_UNKNOWN:
        break;
    }
    return MACHINE_SHM_UNREADABLE;
}

static const char *state_name(ShmState state)
{
    switch (state) {
    case SHM_OK:
        return "ok";
    case SHM_ABSENT:
        return "absent";
    case SHM_NOT_TMPFS:
        return "not-tmpfs";
    case SHM_UNKNOWN:
        break;
    }
    return "unknown";
}

void show_shm(const Terminal *terminal, const ShmMount *shm)
{
    terminal_label(terminal, "/dev/shm");
    if (shm->state != SHM_OK) {
        fprintf(terminal->out, "%s\n", state_words(shm->state));
        return;
    }
    if (shm->size_bytes == 0) {
        fprintf(terminal->out, MACHINE_SHM_UNLIMITED, SIZE_TEXT(shm->used_bytes));
    } else {
        fprintf(terminal->out, MACHINE_SHM, SIZE_TEXT(shm->size_bytes), SIZE_TEXT(shm->used_bytes),
                100.0 * (double)shm->used_bytes / (double)shm->size_bytes, SIZE_TEXT(shm->available_bytes));
    }
    if (shm->read_only)
        fprintf(terminal->out, "%s%s", MESSAGE_ITEMS, MACHINE_SHM_READ_ONLY);
    fputc('\n', terminal->out);
}

json_t *json_shm(const ShmMount *shm)
{
    bool known = shm->state == SHM_OK;
    uint64_t unknown = U64_UNKNOWN;
    /* The kernel reports 0 inodes where there is no limit, which would read as none left. */
    bool inodes = known && shm->inodes > 0;
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "path", "/dev/shm", "state",
                     state_name(shm->state), "size", json_size(known ? shm->size_bytes : unknown), "used",
                     json_size(known ? shm->used_bytes : unknown), "available",
                     json_size(known && shm->size_bytes > 0 ? shm->available_bytes : unknown), "inodes",
                     json_size(inodes ? shm->inodes : unknown), "inodes_free",
                     json_size(inodes ? shm->inodes_free : unknown));
}
