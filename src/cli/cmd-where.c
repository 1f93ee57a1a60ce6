/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli-text.h"
#include "clock.h"
#include "command.h"
#include "progress.h"
#include "shared-sites.h"
#include "show-sites.h"
#include "where-client.h"
#include "where-remote.h"

enum { LOOK_MSEC = 500, STEP_MSEC = 100 };

typedef struct WhereOptions {
    bool json;
    int color;
} WhereOptions;

static const Option where_options[] = {
    OPTION_JSON(WhereOptions),
    OPTION_COLOR(WhereOptions),
    {OPTION_END},
};

static int request_complain(int pid, int error)
{
    switch (error) {
    case -ESRCH:
        return complain(EX_DATAERR, CLI_WHERE_NO_PROCESS, pid);
    case -EACCES:
    case -EPERM:
        return complain(EX_NOPERM, CLI_WHERE_DENIED, pid);
    case -EOPNOTSUPP:
        return complain(EX_UNAVAILABLE, CLI_WHERE_NOT_GUARDED, pid);
    case -ECONNREFUSED:
    case -ETIMEDOUT:
        return complain(EX_UNAVAILABLE, CLI_WHERE_NO_SUPERVISOR, pid);
    default:
        return complain(EX_SOFTWARE, CLI_FAILED, "where", error_text(-error));
    }
}

/* Why a process without the guard cannot be asked from outside. */
static int remote_complain(int pid, int error, int minor)
{
    switch (error) {
    case -ESRCH:
        return complain(EX_DATAERR, CLI_WHERE_NO_PROCESS, pid);
    case -EACCES:
    case -EPERM:
        return complain(EX_NOPERM, CLI_WHERE_REMOTE_DENIED, pid);
    case -ENOEXEC:
        return complain(EX_UNAVAILABLE, CLI_WHERE_NOT_GUARDED, pid);
    case -EPROTONOSUPPORT:
        return complain(EX_UNAVAILABLE, CLI_WHERE_REMOTE_VERSION, pid, minor);
    case -ENOTSUP:
        return complain(EX_UNAVAILABLE, CLI_WHERE_REMOTE_THREADED, pid);
    case -ENOTTY:
        return complain(EX_UNAVAILABLE, CLI_WHERE_REMOTE_OFF, pid);
    case -ESHUTDOWN:
        return complain(EX_UNAVAILABLE, CLI_WHERE_REMOTE_ENDS, pid);
    default:
        return complain(EX_SOFTWARE, CLI_FAILED, "where", error_text(-error));
    }
}

static void progress_tell(Progress *progress, const SharedSites *sites)
{
    char text[128];
    snprintf(text, sizeof text, CLI_WHERE_PROGRESS, sites->n);
    progress_say(progress, text, getpgrp());
}

/* Until this request is answered, or the job has ended. What was found before it is not shown. */
static int answer_await(const Root *root, int supervisor, Progress *progress, SharedSites *ret)
{
    double since = now_seconds();
    int number = shared_sites_find(root, supervisor);
    uint32_t asked = 0;
    int r = number;
    *ret = (SharedSites){0};
    while (r >= 0) {
        SharedSites sites = {0};
        (void)poll(NULL, 0, LOOK_MSEC);
        r = shared_sites_read(root, supervisor, number, &sites);
        if (r == -EAGAIN) {
            r = 0;
            continue;
        }
        if (r < 0)
            break;
        size_t old = 0;
        while (old < sites.n && sites.windows[old].seconds < since)
            old++;
        memmove(sites.windows, sites.windows + old, (sites.n - old) * sizeof *sites.windows);
        sites.n -= old;
        free(ret->windows);
        *ret = sites;
        progress_tell(progress, &sites);
        asked = asked == 0 ? sites.asked : asked;
        if (sites.rounds >= asked && asked > 0 && now_seconds() - since > 2)
            return 0;
    }
    return ret->windows ? 0 : r; /* the job has ended: what it found until then is the answer */
}

static int answer_show(const WhereOptions *options, const SharedSites *sites, bool guarded)
{
    _cleanup_arena_ Arena arena = {0};
    SiteView view;
    Terminal terminal = terminal_of(stdout, (ColorMode)options->color);
    SiteWindows windows = {sites->windows, sites->n, .unguarded = !guarded};
    if (site_view_make(windows, NULL, &arena, &view) < 0)
        return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    if (!view.sought && sites->failed[0])
        return complain(EX_UNAVAILABLE, CLI_WHERE_FAILED, sites->failed);
    if (!view.sought)
        return complain(EX_UNAVAILABLE, guarded ? CLI_WHERE_NOTHING : CLI_WHERE_REMOTE_NOTHING);
    if (!options->json) {
        show_sites(&terminal, &view);
        return EX_OK;
    }
    JsonWriter writer;
    json_writer_open(&writer, stdout, terminal.is_tty);
    json_writer_field(&writer, "schema", json_string("shmguard.where/1"));
    json_sites(&writer, &view);
    return json_finish(json_writer_close(&writer));
}

/* --- A training without the guard --------------------------------------------------------------------- */

/* They end the search, which takes a moment. */
static int signals_open(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGINT);
    sigaddset(ret_set, SIGTERM);
    sigaddset(ret_set, SIGHUP);
    sigaddset(ret_set, SIGQUIT);
    sigprocmask(SIG_BLOCK, ret_set, NULL);
    return signalfd(-1, ret_set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int remote_run(const WhereOptions *options, const Root *root, int pid)
{
    WhereRemote *remote = NULL;
    int minor = 0;
    int r = where_remote_open(root, pid, &minor, &remote);
    if (r < 0)
        return remote_complain(pid, r, minor);
    sigset_t set;
    struct signalfd_siginfo signal = {0};
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    Progress progress = progress_open(&terminal, STDERR_FILENO, options->json);
    _cleanup_close_ int signals = signals_open(&set);
    while (where_remote_step(remote, now_seconds())) {
        struct pollfd ready = {.fd = signals, .events = POLLIN};
        progress_tell(&progress, where_remote_sites(remote));
        if (poll(&ready, 1, STEP_MSEC) > 0 && read(signals, &signal, sizeof signal) == sizeof signal)
            break;
    }
    progress_erase(&progress, false);
    progress_close(&progress);
    int code = signal.ssi_signo > 0 ? 0 : answer_show(options, where_remote_sites(remote), false);
    where_remote_close(remote);
    if (signal.ssi_signo > 0) { /* as without our help */
        (void)raise((int)signal.ssi_signo);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
    }
    return code;
}

static int where_run(const Command *command, int argc, char **argv)
{
    WhereOptions options = {0};
    Operands operands;
    int code = EX_OK;
    int pid = 0;
    if (!command_parse(command, argc, argv, &options, &operands, &code))
        return code;
    if (operands.n == 0)
        return complain(EX_USAGE, CLI_WHERE_NO_PID);
    if (text_pid(text_of(operands.items[0]), &pid) < 0) {
        _cleanup_buffer_ Buffer safe = {0};
        (void)text_escape(text_of(operands.items[0]), &safe);
        return complain(EX_USAGE, CLI_WHERE_WRONG_PID, buffer_text(&safe));
    }
    _cleanup_root_ Root root = ROOT_NONE;
    int supervisor = 0;
    int r = root_open(NULL, &root);
    if (r >= 0)
        r = where_request(&root, pid, &supervisor);
    if (r == -ENOENT)
        return remote_run(&options, &root, pid);
    if (r < 0)
        return request_complain(pid, r);
    SharedSites sites;
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    Progress progress = progress_open(&terminal, STDERR_FILENO, options.json);
    r = answer_await(&root, supervisor, &progress, &sites);
    progress_erase(&progress, false);
    progress_close(&progress);
    code =
        r < 0 ? request_complain(pid, r == -ENOENT ? -ECONNREFUSED : r) : answer_show(&options, &sites, true);
    free(sites.windows);
    return code;
}

const Command command_where = {
    .name = "where",
    .summary = N_("find the line that leaks in a running training"),
    .operands = "PID",
    .operands_most = 1,
    .about =
        N_("Asks the guard in a training that was started by shmguard run, of which PID is any process, what "
           "grows in it and under which line: first for attributes that grow, then for the line that makes "
           "the Python objects that stay, then for the line that allocates other memory. Each step comes "
           "only if something grows, and takes between ten seconds and a minute. A trainer without the guard "
           "can be asked for the first two if it runs CPython 3.14."),
    .options = where_options,
    .run = where_run,
};
