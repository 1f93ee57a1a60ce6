/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "cli-text.h"
#include "command.h"
#include "watch-loop.h"

typedef struct WatchOptions {
    bool once;
    double interval;
    int pid;
    const char *replay;
    int color;
} WatchOptions;

static const Option watch_options[] = {
    {OPTION_FLAG, 0, "once", offsetof(WatchOptions, once), .help = N_("print one picture as text, and exit")},
    {OPTION_SECONDS, 'i', "interval", offsetof(WatchOptions, interval), "TIME",
     .help = N_("time between two samples, at least 0.1s (default: 1s)")},
    {OPTION_PID, 'p', "pid", offsetof(WatchOptions, pid), "PID",
     .help = N_("show only this process and all below it")},
    {OPTION_TEXT, 0, "replay", offsetof(WatchOptions, replay), "FILE",
     .help = N_("show a recording instead of this machine, forwards and backwards")},
    OPTION_COLOR(WatchOptions),
    {OPTION_END},
};

#define INTERVAL_LEAST 0.1
#define INTERVAL_MOST  3600.0

static int watch_complain(int error)
{
    return complain(error == -ENOMEM ? EX_SOFTWARE : EX_UNAVAILABLE, CLI_WATCH_FAILED, error_text(-error));
}

static int live_open(const WatchOptions *options, const Terminal *terminal, Watch **ret)
{
    int r = watch_open(options->pid, options->interval, terminal, ret);
    if (r == -ENOENT)
        return complain(EX_UNAVAILABLE, CLI_NO_PROC);
    if (r == -ESRCH)
        return complain(EX_DATAERR, CLI_NO_PROCESS, options->pid);
    return r < 0 ? watch_complain(r) : EX_OK;
}

static int replay_open(const WatchOptions *options, const Terminal *terminal, Watch **ret)
{
    _cleanup_history_ History history = {0};
    int code = recording_take("watch", options->replay, &history);
    if (code != EX_OK)
        return code;
    const char *slash = strrchr(options->replay, '/');
    const char *name = slash && slash[1] != '\0' ? slash + 1 : options->replay;
    int r = watch_open_recording(&history, name, options->once, terminal, ret);
    return r < 0 ? watch_complain(r) : EX_OK;
}

static int once_print(Watch *watch, Terminal *terminal)
{
    const Picture *picture = NULL;
    int r = watch_once(watch, &picture);
    if (r < 0)
        return watch_complain(r);
    picture_write(picture, terminal);
    return EX_OK;
}

static int screen_show(Watch *watch)
{
    const char *name = getenv("TERM");
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(name), &safe);
    ScreenError screen = SCREEN_GOOD;
    int r = watch_show(watch, &screen);
    if (r < 0)
        return watch_complain(r);
    switch (screen) {
    case SCREEN_UNKNOWN:
        return name ? complain(EX_UNAVAILABLE, CLI_WATCH_TERM, buffer_text(&safe))
                    : complain(EX_UNAVAILABLE, CLI_WATCH_NO_TERM);
    case SCREEN_DUMB:
        return complain(EX_UNAVAILABLE, CLI_WATCH_DUMB, buffer_text(&safe));
    case SCREEN_FAILED:
        return complain(EX_UNAVAILABLE, CLI_WATCH_SCREEN);
    case SCREEN_GOOD:
        break;
    }
    return EX_OK;
}

static int watch_run(const Command *command, int argc, char **argv)
{
    WatchOptions options = {.interval = 1};
    Operands operands;
    int code = EX_OK;
    if (!command_parse(command, argc, argv, &options, &operands, &code))
        return code;
    if (options.interval < INTERVAL_LEAST || options.interval > INTERVAL_MOST)
        return complain(EX_USAGE, CLI_WATCH_INTERVAL);
    if (options.replay && options.pid)
        return complain(EX_USAGE, CLI_WATCH_BOTH);
    if (!options.once && (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)))
        return complain(EX_USAGE, isatty(STDOUT_FILENO) ? CLI_WATCH_NO_INPUT : CLI_WATCH_NO_OUTPUT);

    Terminal terminal = terminal_of(stdout, (ColorMode)options.color);
    _cleanup_watch_ Watch *watch = NULL;
    code = options.replay ? replay_open(&options, &terminal, &watch) : live_open(&options, &terminal, &watch);
    if (code != EX_OK)
        return code;
    return options.once ? once_print(watch, &terminal) : screen_show(watch);
}

const Command command_watch = {
    .name = "watch",
    .summary = N_("show shared memory and training processes live in the terminal"),
    .about = N_("Shows how full /dev/shm, the RAM, the control group and the budget of a guarded run are, "
                "and below that the training processes with their workers: private memory (USS), private "
                "memory with a share of what is common (PSS), all resident memory (RSS), shared memory "
                "(SHR), descriptors, and the trend. The keys are those of htop: F1 or h lists them, and q "
                "quits. --replay shows a recording instead."),
    .options = watch_options,
    .run = watch_run,
};
