/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "survey-thread.h"

/* How long survey_thread_close waits for a survey. */
enum { PATIENCE_MSEC = 1000 };

struct SurveyThread {
    Root root;
    int fd;
    pthread_t thread;
    bool runs; /* from then on until it is joined, the rest is the thread's */
    SurveyResult taken;
    int result;
};

static void *survey_run(void *context)
{
    SurveyThread *thread = context;
    thread->result = survey_take(&thread->root, 0, thread->taken.flags, &thread->taken.survey);
    thread->taken.cost_seconds = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    (void)eventfd_write(thread->fd, 1);
    return NULL;
}

int survey_thread_open(SurveyThread **ret)
{
    SurveyThread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return -ENOMEM;
    thread->root = ROOT_NONE;
    thread->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = thread->fd < 0 ? -errno : root_open(NULL, &thread->root);
    if (r < 0) {
        fd_close(thread->fd);
        free(thread);
        return r;
    }
    *ret = thread;
    return 0;
}

void survey_thread_close(SurveyThread *thread)
{
    if (!thread)
        return;
    struct pollfd done = {thread->fd, POLLIN, 0};
    if (thread->runs && poll(&done, 1, PATIENCE_MSEC) <= 0)
        return;
    if (thread->runs) {
        pthread_join(thread->thread, NULL);
        if (thread->result >= 0)
            survey_free(&thread->taken.survey);
    }
    root_close(&thread->root);
    fd_close(thread->fd);
    free(thread);
}

/* Signals go to the main thread. */
bool survey_thread_ask(SurveyThread *thread, unsigned flags)
{
    sigset_t all;
    sigset_t before;
    if (thread->runs)
        return false;
    thread->taken = (SurveyResult){.flags = flags};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread->runs = pthread_create(&thread->thread, NULL, survey_run, thread) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return thread->runs;
}

int survey_thread_fd(const SurveyThread *thread)
{
    return thread->fd;
}

int survey_thread_take(SurveyThread *thread, SurveyResult *ret)
{
    eventfd_t value;
    (void)eventfd_read(thread->fd, &value);
    pthread_join(thread->thread, NULL);
    thread->runs = false;
    if (thread->result < 0)
        return thread->result;
    *ret = thread->taken;
    return 0;
}
