/* SPDX-License-Identifier: Apache-2.0 */
#include "show-run.h"

static const char *place_name(FaultPlace place)
{
    static const char *const names[] = {
        [PLACE_UNKNOWN] = "unknown",
        [PLACE_NOT_MAPPED] = "not-mapped",
        [PLACE_ANONYMOUS] = "anonymous",
        [PLACE_FILE] = "file",
        [PLACE_SHM] = "shm",
        [PLACE_MEMFD] = "memfd",
    };
    return names[place];
}

static json_t *json_fault(const Fault *fault)
{
    return json_pack(
        "{s:i, s:i, s:o, s:i, s:i, s:o, s:s, s:o, s:b, s:o, s:o, s:o, s:o}", "signal", fault->signal, "code",
        fault->code, "address", json_size(fault->address), "sender", fault->sender, "thread", fault->thread,
        "thread_name", json_raw(text_of(fault->thread_name)), "place", place_name(fault->place), "path",
        fault->path ? json_raw(text_of(fault->path)) : json_null(), "deleted", fault->deleted, "offset",
        json_size(fault->offset), "file_size", json_size(fault->file_bytes), "shm_size",
        json_size(fault->shm_size_bytes), "shm_free", json_size(fault->shm_free_bytes));
}

static json_t *json_sample(const Sample *sample)
{
    return json_pack("{s:f, s:o, s:o, s:o, s:o, s:i}", "seconds", sample->seconds, "rss",
                     json_size(sample->rss_bytes), "rss_shmem", json_size(sample->rss_shmem_bytes), "fds",
                     json_size(sample->fds), "maps", json_size(sample->maps), "threads",
                     (int)sample->threads);
}

json_t *json_ended(const Ended *ended)
{
    return json_pack("{s:i, s:i, s:s, s:o, s:f, s:o, s:o, s:b, s:o, s:o}", "pid", ended->pid, "ppid",
                     ended->ppid, "role", role_name(ended->role), "name", json_raw(text_of(ended->comm)),
                     "seconds", ended->seconds, "code",
                     ended->has_status && !ended->signal ? json_integer(ended->code) : json_null(), "signal",
                     ended->has_status && ended->signal ? json_integer(ended->signal) : json_null(), "by_us",
                     ended->by_us, "fault", ended->has_fault ? json_fault(&ended->fault) : json_null(),
                     "last", ended->has_sample ? json_sample(&ended->last) : json_null());
}
