#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "broker.h"
#include "child.h"
#include "environment.h"
#include "macro.h"
#include "run.h"
#include "shortage.h"
#include "source.h"
#include "strays.h"

struct Run {
    int epoll;
    Source signals;
    Source timer;
    Inherited inherited;
    Shortage shortage;
    const char *library;
    Broker *broker; /* NULL: without the guard */
    Arena arena;
    Child child;
    pid_t pid;
    Strays strays;
    bool alone; /* no child is left */
    int passed_on;
    bool typed; /* passed_on came from the terminal */
    double began;
    double ended;
};

/* Signals that end a command, unless it does something else about them. */
static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int telling[] = {SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP};

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --- What happens ------------------------------------------------------------------------------------- */

static void status_changed(Run *run, int status)
{
    if (WIFSTOPPED(status)) {
        /* SIGSTOP is not for us: who stops the command with it continues only the command. */
        int by = WSTOPSIG(status);
        if (by == SIGTSTP || by == SIGTTIN || by == SIGTTOU)
            child_stopped(&run->child, by);
        return;
    }
    child_ended(&run->child, status);
    run->ended = now_seconds();
    strays_begin(&run->strays);
}

static void reap(Run *run)
{
    int status = 0;
    pid_t pid;
    bool ended = false;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        ended |= !WIFSTOPPED(status);
        if (pid == run->child.pid)
            status_changed(run, status);
    }
    if (ended)
        strays_reaped(&run->strays, &run->shortage.root);
    run->alone = pid < 0 || !strays_any(&run->strays, &run->shortage.root);
}

static void pass_on(Run *run, const struct signalfd_siginfo *signal)
{
    int signo = (int)signal->ssi_signo;
    bool ends = false;
    for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
        ends |= ending[i] == signo;
    if (run->strays.stage != STRAYS_NONE) {
        if (ends)
            strays_hurry(&run->strays, &run->shortage.root);
        return;
    }
    bool typed = signal->ssi_code == SI_KERNEL;
    if (ends) {
        run->passed_on = signo;
        run->typed = typed;
    }
    /* The terminal signals a whole group, so all of the command's get it too. What a process sent to us alone
     * goes to the command alone, as it would without us: a trainer that saves a checkpoint on SIGTERM or
     * SIGUSR1 needs its workers alive, and dies of theirs. */
    child_signal(&run->child, signo, typed);
}

static void signals_ready(Source *source)
{
    Run *run = SOURCE_OWNER(source, Run, signals);
    struct signalfd_siginfo signal;
    while (read(source->fd, &signal, sizeof signal) == sizeof signal)
        if (signal.ssi_signo == SIGCHLD)
            reap(run);
        else if (signal.ssi_signo == SIGCONT)
            child_continue(&run->child);
        else
            pass_on(run, &signal);
}

static void timer_ready(Source *source)
{
    Run *run = SOURCE_OWNER(source, Run, timer);
    uint64_t expired = 0;
    if (read(source->fd, &expired, sizeof expired) != sizeof expired)
        return;
    if (run->broker)
        broker_tick(run->broker, broker_holds_memory(run->broker) && shortage_now(&run->shortage));
    strays_tick(&run->strays, &run->shortage.root);
}

int run_finish(Run *run, RunResult *ret)
{
    while (!(run->child.status_is && (run->alone || run->strays.stage == STRAYS_LEFT))) {
        struct epoll_event events[64];
        int timeout = run->broker ? broker_timeout(run->broker) : -1;
        int n = epoll_wait(run->epoll, events, ARRAY_SIZE(events), timeout);
        if (n < 0 && errno != EINTR)
            return -errno;
        for (int i = 0; i < n; i++) {
            Source *source = events[i].data.ptr;
            source->ready(source);
        }
        if (run->broker)
            broker_settle(run->broker);
    }

    int status = run->child.status;
    bool typed = run->child.had_terminal || (run->passed_on == SIGINT && run->typed);
    *ret = (RunResult){
        .pid = run->pid,
        .code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
        .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
        .passed_on = run->passed_on,
        .typed = typed && WIFSIGNALED(status) && WTERMSIG(status) == SIGINT,
        .strays = run->strays.asked - MIN(run->strays.asked, run->strays.left),
        .left = run->strays.left,
        .seconds = run->ended - run->began,
        .guarded = run->broker != NULL,
        .guard = run->broker ? broker_figures(run->broker) : (GuardFigures){0},
    };
    return 0;
}

/* --- Beginning and end -------------------------------------------------------------------------------- */

static int signals_open(Run *run)
{
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGCHLD);
    sigaddset(&taken, SIGCONT);
    for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
        sigaddset(&taken, ending[i]);
    for (size_t i = 0; i < ARRAY_SIZE(telling); i++)
        sigaddset(&taken, telling[i]);
    run->signals.fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (run->signals.fd < 0)
        return -errno;

    /* Whoever started us may have left SIGCHLD ignored, and the kernel would then wait for our children
     * itself. */
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &standard, &run->inherited.chld);
    sigaddset(&taken, SIGTTOU); /* so that we may move the terminal from the background */
    sigprocmask(SIG_BLOCK, &taken, &run->inherited.mask);
    return source_watch(&run->signals, run->epoll);
}

static int timer_open(Run *run)
{
    struct itimerspec second = {.it_interval.tv_sec = 1, .it_value.tv_sec = 1};
    run->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (run->timer.fd < 0 || timerfd_settime(run->timer.fd, 0, &second, NULL) < 0)
        return -errno;
    return source_watch(&run->timer, run->epoll);
}

/* Names and segments are descriptors here. The command keeps the limit that it would have had. */
static void files_raise(Run *run)
{
    getrlimit(RLIMIT_NOFILE, &run->inherited.files);
    struct rlimit raised = {run->inherited.files.rlim_max, run->inherited.files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &raised);
}

static int run_set_up(Run *run)
{
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (run->epoll < 0)
        return -errno;
    int r = shortage_open(NULL, &run->shortage);
    if (r >= 0)
        r = signals_open(run);
    if (r >= 0)
        r = timer_open(run);
    if (r < 0)
        return r;
    files_raise(run);
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int run_open(Run **ret)
{
    Run *run = calloc(1, sizeof *run);
    if (!run)
        return -ENOMEM;
    *run = (Run){
        .epoll = -EBADF,
        .signals = {.fd = -EBADF, .ready = signals_ready},
        .timer = {.fd = -EBADF, .ready = timer_ready},
        .shortage.root = ROOT_NONE,
    };
    int r = run_set_up(run);
    if (r < 0) {
        run_free(run);
        return r;
    }
    *ret = run;
    return 0;
}

void run_free(Run *run)
{
    if (!run)
        return;
    broker_free(run->broker);
    fd_close(run->signals.fd);
    fd_close(run->timer.fd);
    fd_close(run->epoll);
    shortage_close(&run->shortage);
    arena_free(&run->arena);
    free(run);
}

void run_die(void)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigaction(SIGINT, &standard, NULL);
    sigprocmask(SIG_UNBLOCK, &interrupt, NULL);
    raise(SIGINT);
    _exit(128 + SIGINT);
}

static uint64_t spare_bytes(const void *context)
{
    const Run *run = context;
    return shortage_spare_bytes(&run->shortage);
}

int run_guard(Run *run, const char *library)
{
    if (!library_can_be_preloaded(library))
        return -ENAMETOOLONG;
    run->library = library;
    BrokerOwner owner = {
        .root = &run->shortage.root,
        .budget_bytes = U64_UNKNOWN,
        .wait_seconds = 60,
        .spare_bytes = spare_bytes,
        .context = run,
    };
    return broker_open(run->epoll, "/dev/shm", &owner, &run->broker);
}

int run_start(Run *run, char *const *command, bool *ret_ran)
{
    char **environment = environ;
    *ret_ran = false;
    if (run->broker) {
        int r =
            environment_make(environ, run->library, broker_socket(run->broker), &run->arena, &environment);
        if (r < 0)
            return r;
    }
    strays_open(&run->shortage.root, &run->strays);
    run->began = now_seconds();
    int r = child_start(command, environment, &run->inherited, &run->child, ret_ran);
    if (r < 0)
        return r;
    run->pid = run->child.pid;
    return 0;
}
