#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "guards.h"
#include "lookout.h"
#include "proc-statm.h"

/* How long the end waits for a look. */
#define PATIENCE_SECONDS 0.25

struct Lookout {
    /* Of whoever has its turn. */
    Root root;
    Sampler *sampler;
    Guards guards;
    Sight sight;
    int result;

    /* Of whoever opened it. */
    pthread_t thread;
    bool runs;
    double asked_at; /* negative: it has answered, and was heard */
    int fd;

    /* Of both. */
    pthread_mutex_t mutex;
    pthread_cond_t turn;
    bool asked;
    bool answered;
    bool stop;
    bool ended;
};

/* --- The thread --------------------------------------------------------------------------------------- */

static int look(Lookout *lookout)
{
    Sight sight = {.own_bytes = U64_UNKNOWN};
    ProcStatm statm;
    int r = sampler_look(lookout->sampler, &sight.moment);
    if (r < 0)
        return r;
    sight.guards = guards_fill(&lookout->guards, &lookout->root, &sight.moment, &sight.guard_pid);
    sight.surveyed = sampler_take_segments(lookout->sampler, &sight.survey, &sight.survey_seconds);
    if (proc_statm_read(&lookout->root, getpid(), &statm) >= 0)
        sight.own_bytes = statm.resident_bytes;
    lookout->sight = sight;
    return 0;
}

static void *looks(void *context)
{
    Lookout *lookout = context;
    pthread_mutex_lock(&lookout->mutex);
    for (;;) {
        while (!lookout->asked && !lookout->stop)
            pthread_cond_wait(&lookout->turn, &lookout->mutex);
        if (lookout->stop)
            break;
        lookout->asked = false;
        pthread_mutex_unlock(&lookout->mutex);
        lookout->result = look(lookout);
        pthread_mutex_lock(&lookout->mutex);
        lookout->answered = true;
        pthread_cond_signal(&lookout->turn);
        (void)eventfd_write(lookout->fd, 1);
    }
    lookout->ended = true;
    pthread_cond_signal(&lookout->turn);
    pthread_mutex_unlock(&lookout->mutex);
    return NULL;
}

/* Signals are the main thread's. */
static int thread_start(Lookout *lookout)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&lookout->thread, NULL, looks, lookout);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    lookout->runs = error == 0;
    return -error;
}

/* --- Whoever opened it -------------------------------------------------------------------------------- */

int lookout_open(int pid, double interval, Lookout **ret)
{
    Lookout *lookout = calloc(1, sizeof *lookout);
    if (!lookout)
        return -ENOMEM;
    *lookout = (Lookout){
        .root = ROOT_NONE,
        .asked_at = -1,
        .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .turn = PTHREAD_COND_INITIALIZER,
    };
    int r = lookout->fd < 0 ? -errno : root_open(NULL, &lookout->root) < 0 ? -ENOENT : 0;
    if (r >= 0)
        r = sampler_open(&lookout->root, &(SamplerWish){pid, interval}, &lookout->sampler);
    if (r >= 0) {
        guards_find_above(&lookout->guards, &lookout->root, pid);
        r = thread_start(lookout);
    }
    if (r < 0) {
        lookout_close(lookout);
        return r;
    }
    *ret = lookout;
    return 0;
}

/* False: it is in the middle of a look. */
static bool thread_end(Lookout *lookout)
{
    double end = now_seconds() + PATIENCE_SECONDS;
    struct timespec until = {.tv_sec = (time_t)end, .tv_nsec = (long)((end - floor(end)) * 1e9)};
    pthread_mutex_lock(&lookout->mutex);
    lookout->stop = true;
    pthread_cond_signal(&lookout->turn);
    while (!lookout->ended &&
           pthread_cond_clockwait(&lookout->turn, &lookout->mutex, CLOCK_MONOTONIC, &until) == 0)
        continue;
    bool ended = lookout->ended;
    pthread_mutex_unlock(&lookout->mutex);
    return ended && pthread_join(lookout->thread, NULL) == 0;
}

void lookout_close(Lookout *lookout)
{
    if (!lookout || (lookout->runs && !thread_end(lookout)))
        return;
    if (lookout->answered && lookout->result >= 0)
        survey_free(&lookout->sight.survey); /* nobody took it */
    sampler_free(lookout->sampler);
    root_close(&lookout->root);
    fd_close(lookout->fd);
    free(lookout);
}

void lookout_ask(Lookout *lookout)
{
    lookout->asked_at = now_seconds();
    pthread_mutex_lock(&lookout->mutex);
    lookout->asked = true;
    pthread_cond_signal(&lookout->turn);
    pthread_mutex_unlock(&lookout->mutex);
}

double lookout_asked(const Lookout *lookout)
{
    return lookout->asked_at;
}

int lookout_fd(const Lookout *lookout)
{
    return lookout->fd;
}

int lookout_take(Lookout *lookout, Sight *ret)
{
    eventfd_t value;
    pthread_mutex_lock(&lookout->mutex);
    while (!lookout->answered)
        pthread_cond_wait(&lookout->turn, &lookout->mutex);
    lookout->answered = false;
    (void)eventfd_read(lookout->fd, &value);
    pthread_mutex_unlock(&lookout->mutex);
    lookout->asked_at = -1;
    if (lookout->result < 0)
        return lookout->result;
    *ret = lookout->sight;
    return 0;
}
