/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "pending.h"

enum { BYTES_MOST = 8 << 20 };

static size_t texts_size(const Moment *moment)
{
    size_t n = 0;
    for (size_t i = 0; i < moment->n_processes; i++)
        n += strlen(moment->processes[i].command) + 1;
    return n;
}

/* The moment, with the events before it. */
static Moment *moment_copy(const Moment *moment, const Moment *before, size_t *ret_size)
{
    size_t n_events = (before ? before->n_events : 0) + moment->n_events;
    size_t processes_size = moment->n_processes * sizeof(ProcessMoment);
    size_t size = sizeof(Moment) + processes_size + n_events * sizeof(Event) + texts_size(moment);
    Moment *copy = malloc(size);
    if (!copy)
        return NULL;
    ProcessMoment *processes = (ProcessMoment *)(copy + 1);
    Event *events = (Event *)(processes + moment->n_processes);
    char *text = (char *)(events + n_events);
    *copy = *moment;
    for (size_t i = 0; i < moment->n_processes; i++) {
        size_t n = strlen(moment->processes[i].command) + 1;
        processes[i] = moment->processes[i];
        processes[i].command = memcpy(text, moment->processes[i].command, n);
        text += n;
    }
    size_t n = 0;
    for (size_t i = 0; before && i < before->n_events; i++)
        events[n++] = before->events[i];
    for (size_t i = 0; i < moment->n_events; i++)
        events[n++] = moment->events[i];
    copy->processes = processes;
    copy->events = events;
    copy->n_events = n_events;
    *ret_size = size;
    return copy;
}

/* The newest always stays. */
static void pending_halve(PendingMoments *pending)
{
    size_t kept = 0;
    pending->bytes = 0;
    for (size_t i = 0; i < pending->n; i++) {
        Moment *moment = pending->items[i];
        size_t size = pending->sizes[i];
        Moment *next = i % 2 == 0 && i + 1 < pending->n
                           ? moment_copy(pending->items[i + 1], moment, &pending->sizes[i + 1])
                           : NULL;
        if (next) {
            free(moment);
            free(pending->items[i + 1]);
            pending->items[i + 1] = next;
            pending->lost++;
            continue;
        }
        pending->items[kept] = moment;
        pending->sizes[kept++] = size;
        pending->bytes += size;
    }
    pending->n = kept;
}

static int pending_reserve(PendingMoments *pending)
{
    if (pending->n < pending->capacity)
        return 0;
    size_t wanted = MAX(pending->capacity * 2, (size_t)64);
    Moment **items = reallocarray(pending->items, wanted, sizeof(Moment *));
    if (items)
        pending->items = items;
    size_t *sizes = items ? reallocarray(pending->sizes, wanted, sizeof *sizes) : NULL;
    if (!sizes)
        return -ENOMEM;
    pending->sizes = sizes;
    pending->capacity = wanted;
    return 0;
}

void pending_moments_add(PendingMoments *pending, const Moment *moment)
{
    size_t size = 0;
    int r = pending_reserve(pending);
    Moment *copy = r < 0 ? NULL : moment_copy(moment, NULL, &size);
    if (!copy) {
        pending->lost++;
        return;
    }
    pending->items[pending->n] = copy;
    pending->sizes[pending->n++] = size;
    pending->bytes += size;
    if (pending->bytes > BYTES_MOST)
        pending_halve(pending);
}

void pending_moments_clear(PendingMoments *pending)
{
    for (size_t i = 0; i < pending->n; i++)
        free(pending->items[i]);
    pending->n = 0;
    pending->bytes = 0;
}

void pending_moments_free(PendingMoments *pending)
{
    pending_moments_clear(pending);
    free(pending->items);
    free(pending->sizes);
    *pending = (PendingMoments){0};
}
