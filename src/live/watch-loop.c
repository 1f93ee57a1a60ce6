/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "epochs.h"
#include "sampler-thread.h"
#include "shared-sites.h"
#include "site-view.h"
#include "watch-loop.h"

enum {
    KEEP_SECONDS = 600, /* of the past, for trends and to go back to */
    KEEP_SAMPLES = 240, /* at least */
    FRAME_MSEC = 100,   /* between two pictures of a recording that plays */
    LATE_MSEC = 1000,   /* between two pictures while a sample is late */
    FIRST_MSEC = 500,   /* that the first picture waits for the first sample */
    PLAY_SECONDS = 120, /* that a recording takes at its initial speed */
    ONCE_SAMPLES = 400, /* that --once takes at most */
    ONCE_VAIN = 20,     /* samples in a row that bring nothing new, after which --once gives up */
};

/* --- What is watched ---------------------------------------------------------------------------------- */

struct Watch {
    double interval;
    Terminal terminal;
    SamplerThread *thread; /* NULL: a recording */
    History history;
    Arena arena;   /* of scene.told */
    Survey survey; /* the newest */
    WatchScene scene;
    WatchView view;
    Picture picture;
    double sampled; /* CLOCK_MONOTONIC, the last time */
    double own_seconds;
    unsigned samples;
    Root root;
    Arena leak_arena;
    int leak_supervisor;
    int leak_page;       /* the number of its descriptor */
    double leak_seconds; /* of the newest window that it is from */
};

void watch_close(Watch *watch)
{
    if (!watch)
        return;
    sampler_thread_close(watch->thread);
    survey_free(&watch->survey);
    history_free(&watch->history);
    arena_free(&watch->arena);
    arena_free(&watch->leak_arena);
    root_close(&watch->root);
    picture_free(&watch->picture);
    free(watch);
}

static double own_cpu_seconds(void)
{
    return clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
}

/* The CPU time that watching costs, over about the last ten samples. */
static void own_cost(Watch *watch, double now)
{
    enum { SAMPLES = 10 };
    double spent = own_cpu_seconds();
    if (watch->samples++ > 1 && now > watch->sampled) { /* the first sample costs more than all others */
        double share = (spent - watch->own_seconds) / (now - watch->sampled);
        watch->scene.own_cpu = watch->scene.own_cpu < 0
                                   ? share
                                   : watch->scene.own_cpu + (share - watch->scene.own_cpu) / SAMPLES;
    }
    watch->own_seconds = spent;
    watch->sampled = now;
}

/* The line that keeps most, of what was found until now. */
static void leak_keep(Watch *watch, SiteWindows windows)
{
    SiteView view;
    arena_free(&watch->leak_arena);
    watch->scene.leak = NULL;
    if (site_view_make(windows, NULL, &watch->leak_arena, &view) >= 0 && view.n > 0)
        watch->scene.leak = view.items[0].words;
}

/* Of the run whose budget is shown, if it looks for it. */
static void leak_look(Watch *watch, int supervisor)
{
    SharedSites sites = {0};
    if (supervisor != watch->leak_supervisor)
        watch->leak_page = supervisor > 0 ? shared_sites_find(&watch->root, supervisor) : -ENOENT;
    watch->leak_supervisor = supervisor;
    int r = watch->leak_page < 0 ? watch->leak_page
                                 : shared_sites_read(&watch->root, supervisor, watch->leak_page, &sites);
    double newest = r >= 0 && sites.n > 0 ? sites.windows[sites.n - 1].seconds : 0;
    if (newest > watch->leak_seconds)
        leak_keep(watch, (SiteWindows){sites.windows, sites.n});
    watch->leak_seconds = MAX(newest, watch->leak_seconds);
    free(sites.windows);
}

static void result_keep(Watch *watch, const SampleResult *result)
{
    if (!result->surveyed)
        return;
    survey_free(&watch->survey);
    watch->survey = result->survey;
    watch->scene.survey = &watch->survey;
    watch->scene.survey_seconds = result->survey_seconds;
}

/* Takes the sample that was asked for. -ENOMEM, or an error of the sampler. */
static int watch_take(Watch *watch)
{
    SampleResult result;
    int r = sampler_thread_take(watch->thread, &result);
    own_cost(watch, now_seconds());
    watch->scene.late_seconds = 0;
    if (r == -ESRCH) {
        watch->scene.over = true;
        watch->view.paused = true;
        return 0;
    }
    if (r < 0)
        return r;
    result_keep(watch, &result);
    watch->scene.guards = result.guards;
    watch->scene.guard_pid = result.guard_pid;
    watch->scene.own_bytes = result.own_bytes;
    leak_look(watch, result.guard_pid);
    r = history_add(&watch->history, &result.moment);
    if (r < 0)
        return r;
    double keep = MAX((double)KEEP_SECONDS, KEEP_SAMPLES * watch->history.interval);
    history_forget(&watch->history, result.moment.seconds - keep);
    if (!watch->view.paused)
        watch->view.at = result.moment.seconds;
    return 0;
}

static int watch_new(double interval, const Terminal *terminal, Watch **ret)
{
    Watch *watch = malloc(sizeof *watch);
    if (!watch)
        return -ENOMEM;
    *watch = (Watch){
        .interval = interval,
        .terminal = *terminal,
        .scene = {.own_cpu = -1, .own_bytes = U64_UNKNOWN},
        .root = ROOT_NONE,
        .leak_page = -ENOENT,
    };
    watch->scene.history = &watch->history;
    *ret = watch;
    return 0;
}

int watch_open(int pid, double interval, const Terminal *terminal, Watch **ret)
{
    _cleanup_watch_ Watch *watch = NULL;
    int r = watch_new(interval, terminal, &watch);
    if (r >= 0)
        r = root_open(NULL, &watch->root);
    if (r >= 0)
        r = sampler_thread_open(pid, interval, &watch->thread);
    if (r >= 0)
        r = history_init(&watch->history, "", pid, clock_seconds(CLOCK_REALTIME), interval);
    if (r < 0)
        return r;
    watch->scene.job = pid > 0;
    sampler_thread_ask(watch->thread);
    *ret = TAKE_PTR(watch);
    return 0;
}

int watch_open_recording(History *history, const char *name, bool at_end, const Terminal *terminal,
                         Watch **ret)
{
    _cleanup_watch_ Watch *watch = NULL;
    int r = watch_new(0, terminal, &watch);
    if (r < 0)
        return r;
    watch->history = *history;
    *history = (History){0};
    r = epochs_tell(&watch->history, &watch->arena, &watch->scene.told);
    if (r < 0)
        return r;
    leak_keep(watch, (SiteWindows){watch->history.windows, watch->history.n_windows});
    const Series *series = &watch->history.series;
    watch->scene.replay = name;
    watch->scene.job = true;
    double whole = series->seconds[series->n - 1] - series->seconds[0];
    while (whole / (1 << watch->view.speed) > PLAY_SECONDS && watch->view.speed < WATCH_SPEED_MOST)
        watch->view.speed++;
    watch->view.at = series->seconds[at_end ? series->n - 1 : 0];
    watch->view.playing = true;
    *ret = TAKE_PTR(watch);
    return 0;
}

/* --- Once --------------------------------------------------------------------------------------------- */

static size_t count_known(const History *history)
{
    size_t known = 0;
    for (size_t i = 0; i < history->n_tracks; i++) {
        const Series *series = &history->tracks[i].series;
        for (size_t j = series->n; j-- > 0;)
            if (series->values[PROCESS_USS][j] != U64_UNKNOWN) {
                known++;
                break;
            }
    }
    return known;
}

/* Each sample measures only some processes. Takes samples until every process was measured, or those that are
 * left cannot be. */
static int once_take(Watch *watch)
{
    int r = watch_take(watch);
    unsigned in_vain = 0;
    size_t known = count_known(&watch->history);
    for (unsigned i = 0; i < ONCE_SAMPLES && r >= 0 && in_vain < ONCE_VAIN &&
                         known < watch->history.n_tracks && !watch->scene.over;
         i++) {
        sampler_thread_ask(watch->thread);
        r = watch_take(watch);
        size_t now = count_known(&watch->history);
        in_vain = now > known ? 0 : in_vain + 1;
        known = now;
    }
    return r;
}

int watch_once(Watch *watch, const Picture **ret)
{
    int r = watch->thread ? once_take(watch) : 0;
    watch->scene.own_bytes = U64_UNKNOWN;
    if (r >= 0)
        r = watch_draw_whole(&watch->scene, &watch->view, &watch->picture, watch->terminal.columns,
                             watch->terminal.utf8);
    if (r < 0)
        return r;
    *ret = &watch->picture;
    return 0;
}

/* --- On the screen ------------------------------------------------------------------------------------ */

static const int signals_taken[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

static int signals_open(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    for (size_t i = 0; i < ARRAY_SIZE(signals_taken); i++)
        sigaddset(ret_set, signals_taken[i]);
    sigprocmask(SIG_BLOCK, ret_set, NULL);
    int fd = signalfd(-1, ret_set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

/* Performs the default action of a pending signal. ncurses may have installed a handler of its own. */
static void signal_deliver(int signo)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signo);
    (void)signal(signo, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* all: Ctrl-Z stops the whole foreground process group, as a terminal does. */
static void watch_stop(bool all)
{
    screen_leave();
    (void)(all ? kill(0, SIGTSTP) : raise(SIGTSTP));
    signal_deliver(SIGTSTP);
    screen_return();
}

static void watch_die(int signo)
{
    screen_close();
    (void)raise(signo);
    signal_deliver(signo);
}

static void watch_paint(Watch *watch)
{
    unsigned columns = 0;
    unsigned rows = 0;
    screen_size(&columns, &rows);
    if (watch_draw(&watch->scene, &watch->view, &watch->picture, columns, rows, watch->terminal.utf8) >= 0)
        screen_paint(&watch->terminal, &watch->picture);
}

/* True: the user wants to quit; *ret_signal: by this signal, or 0. */
static bool input_handle(Watch *watch, int *ret_signal)
{
    ScreenInput input;
    *ret_signal = 0;
    while (screen_read(&input)) {
        WatchAct act = ACT_NONE;
        if (input.kind == INPUT_KEY)
            act = watch_press(&watch->view, &watch->scene, input.key);
        else if (input.kind == INPUT_CLICK)
            watch_click(&watch->view, input.row, input.column);
        else if (input.kind == INPUT_WHEEL)
            watch_wheel(&watch->view, input.wheel);
        if (act == ACT_QUIT)
            return true;
        if (act == ACT_INTERRUPT) {
            *ret_signal = SIGINT;
            return true;
        }
        if (act == ACT_SUSPEND)
            watch_stop(true);
        if (act == ACT_REPAINT)
            screen_return();
        /* The next key acts on what this one has drawn. */
        watch_paint(watch);
    }
    return false;
}

static bool signals_handle(int fd, int *ret_signal)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGWINCH)
            screen_return();
        else if (info.ssi_signo == SIGTSTP)
            watch_stop(false);
        else {
            *ret_signal = (int)info.ssi_signo;
            return true;
        }
    }
    return false;
}

/* Milliseconds until something has to be done without input; -1: never. */
static int watch_patience(const Watch *watch, double now, double next)
{
    if (watch->scene.replay)
        return watch->view.playing ? FRAME_MSEC : -1;
    if (sampler_thread_asked(watch->thread) >= 0)
        return LATE_MSEC;
    if (watch->view.paused)
        return -1;
    return (int)ceil(MAX(next - now, 0.0) * 1000);
}

/* Asks for a sample when one is due, and takes it when it is ready. */
static int live_step(Watch *watch, bool answered, double now, double *next)
{
    int r = answered ? watch_take(watch) : 0;
    double asked = sampler_thread_asked(watch->thread);
    if (r >= 0 && asked < 0 && !watch->view.paused && now >= *next) {
        sampler_thread_ask(watch->thread);
        *next = MAX(*next + watch->interval, now);
    }
    watch->scene.late_seconds = asked >= 0 ? now - asked : 0;
    return r;
}

static int watch_loop(Watch *watch, int signals, int *ret_signal)
{
    double next = now_seconds() + watch->interval;
    double played = now_seconds();
    for (;;) {
        struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0},
                               {signals, POLLIN, 0},
                               {watch->thread ? sampler_thread_fd(watch->thread) : -1, POLLIN, 0}};
        double now = now_seconds();
        if (poll(fds, ARRAY_SIZE(fds), watch_patience(watch, now, next)) < 0 && errno != EINTR)
            return -errno;
        if (fds[1].revents && signals_handle(signals, ret_signal))
            return 0;
        if (fds[0].revents & POLLIN && input_handle(watch, ret_signal))
            return 0;
        if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) /* the terminal is gone */
            return 0;
        now = now_seconds();
        if (watch->scene.replay)
            (void)watch_play(&watch->view, &watch->history, now - played);
        else {
            int r = live_step(watch, fds[2].revents, now, &next);
            if (r < 0)
                return r;
        }
        played = now;
        /* A sample that was only asked for has changed nothing. */
        if (watch->scene.replay || fds[0].revents || fds[1].revents || fds[2].revents ||
            watch->scene.late_seconds > 0)
            watch_paint(watch);
    }
}

/* Waits a moment for the first sample, so that the first picture has figures. */
static int first_wait(Watch *watch)
{
    struct pollfd fd = {watch->thread ? sampler_thread_fd(watch->thread) : -1, POLLIN, 0};
    return watch->thread && poll(&fd, 1, FIRST_MSEC) > 0 ? watch_take(watch) : 0;
}

int watch_show(Watch *watch, ScreenError *ret_screen)
{
    sigset_t set;
    _cleanup_close_ int signals = signals_open(&set);
    int r = signals < 0 ? signals : first_wait(watch);
    if (r < 0)
        return r;
    *ret_screen = screen_open(&watch->terminal);
    if (*ret_screen != SCREEN_GOOD)
        return 0;
    int signo = 0;
    watch_paint(watch);
    r = watch_loop(watch, signals, &signo);
    if (signo != 0)
        watch_die(signo);
    else
        screen_close();
    return r;
}
