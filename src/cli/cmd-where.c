/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "cli-text.h"
#include "clock.h"
#include "command.h"
#include "progress.h"
#include "shared-sites.h"
#include "show-sites.h"
#include "where-client.h"

enum { LOOK_MSEC = 500 };

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
    case -ENOENT:
    case -EOPNOTSUPP:
        return complain(EX_UNAVAILABLE, CLI_WHERE_NOT_GUARDED, pid);
    case -ECONNREFUSED:
    case -ETIMEDOUT:
        return complain(EX_UNAVAILABLE, CLI_WHERE_NO_SUPERVISOR, pid);
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

static int answer_show(const WhereOptions *options, const SharedSites *sites)
{
    _cleanup_arena_ Arena arena = {0};
    SiteView view;
    Terminal terminal = terminal_of(stdout, (ColorMode)options->color);
    if (site_view_make((SiteWindows){sites->windows, sites->n}, NULL, &arena, &view) < 0)
        return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    if (!view.sought && sites->failed[0])
        return complain(EX_UNAVAILABLE, CLI_WHERE_FAILED, sites->failed);
    if (!view.sought)
        return complain(EX_UNAVAILABLE, CLI_WHERE_NOTHING);
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
    if (r < 0)
        return request_complain(pid, r);
    SharedSites sites;
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    Progress progress = progress_open(&terminal, STDERR_FILENO, options.json);
    r = answer_await(&root, supervisor, &progress, &sites);
    progress_erase(&progress, false);
    progress_close(&progress);
    code = r < 0 ? request_complain(pid, r == -ENOENT ? -ECONNREFUSED : r) : answer_show(&options, &sites);
    free(sites.windows);
    return code;
}

const Command command_where = {
    .name = "where",
    .summary = N_("find the line that leaks in a running training"),
    .operands = "PID",
    .operands_most = 1,
    .about = N_("Asks the guard in a training that was started by shmguard run, of which PID is any process, "
                "what grows in it and under which line: first for attributes that grow, then for the line "
                "that makes the Python objects that stay, then for the line that allocates other memory. "
                "Each step comes only if something grows, and takes between ten seconds and a minute."),
    .options = where_options,
    .run = where_run,
};
