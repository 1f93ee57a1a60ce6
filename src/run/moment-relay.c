/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#include "moment-relay.h"

typedef struct Batch {
    ProcessMoment *processes;
    size_t n;
    size_t n_unlisted;
    size_t capacity;
} Batch;

struct MomentRelay {
    int fd;
    pthread_mutex_t mutex; /* of the two below */
    Batch put;
    bool fresh;  /* `put` was not taken yet */
    Batch taken; /* the supervisor's alone */
};

int moment_relay_open(MomentRelay **ret)
{
    MomentRelay *relay = calloc(1, sizeof *relay);
    if (!relay)
        return -ENOMEM;
    *relay = (MomentRelay){
        .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .mutex = PTHREAD_MUTEX_INITIALIZER,
    };
    if (relay->fd < 0) {
        moment_relay_free(relay);
        return -EMFILE;
    }
    *ret = relay;
    return 0;
}

void moment_relay_free(MomentRelay *relay)
{
    if (!relay)
        return;
    fd_close(relay->fd);
    free(relay->put.processes);
    free(relay->taken.processes);
    free(relay);
}

static bool batch_fill(Batch *batch, const Moment *moment)
{
    if (batch->capacity < moment->n_processes) {
        ProcessMoment *larger =
            reallocarray(batch->processes, moment->n_processes, 2 * sizeof *batch->processes);
        if (!larger)
            return false;
        batch->processes = larger;
        batch->capacity = 2 * moment->n_processes;
    }
    batch->n = moment->n_processes;
    batch->n_unlisted = moment->n_unlisted;
    for (size_t i = 0; i < batch->n; i++) {
        batch->processes[i] = moment->processes[i];
        batch->processes[i].command = ""; /* the sampler's, which may free it */
    }
    return true;
}

void moment_relay_put(MomentRelay *relay, const Moment *moment)
{
    pthread_mutex_lock(&relay->mutex);
    relay->fresh = batch_fill(&relay->put, moment);
    bool fresh = relay->fresh;
    pthread_mutex_unlock(&relay->mutex);
    if (fresh)
        (void)eventfd_write(relay->fd, 1);
}

int moment_relay_fd(const MomentRelay *relay)
{
    return relay->fd;
}

bool moment_relay_take(MomentRelay *relay, Moment *ret)
{
    eventfd_t value;
    (void)eventfd_read(relay->fd, &value);
    pthread_mutex_lock(&relay->mutex);
    bool fresh = TAKE(relay->fresh, false);
    if (fresh) {
        Batch taken = relay->taken;
        relay->taken = relay->put;
        relay->put = taken;
    }
    pthread_mutex_unlock(&relay->mutex);
    if (fresh)
        *ret = (Moment){
            .processes = relay->taken.processes,
            .n_processes = relay->taken.n,
            .n_unlisted = relay->taken.n_unlisted,
        };
    return fresh;
}
