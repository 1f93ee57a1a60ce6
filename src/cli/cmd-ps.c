/* SPDX-License-Identifier: Apache-2.0 */
#include "cli-text.h"
#include "command.h"
#include "show-ps.h"

typedef struct PsOptions {
    bool json;
    bool all;
    bool segments;
    int pid;
    const char *sort;
    const char *root;
    int color;
} PsOptions;

static const Option ps_options[] = {
    {OPTION_FLAG, 'a', "all", offsetof(PsOptions, all),
     .help = N_("show every process, not only trainings and holders of shared memory")},
    {OPTION_FLAG, 's', "segments", offsetof(PsOptions, segments),
     .help = N_("show each segment with its holders")},
    {OPTION_PID, 'p', "pid", offsetof(PsOptions, pid), "PID",
     .help = N_("show only the job of this process and the segments that it holds")},
    {OPTION_TEXT, 0, "sort", offsetof(PsOptions, sort), "KEY",
     .help =
         N_("sort by pid, rss, pss, uss, shm or fds; with --segments by size, allocated, name or holders")},
    OPTION_JSON(PsOptions),
    OPTION_ROOT(PsOptions),
    OPTION_COLOR(PsOptions),
    {OPTION_END},
};

/* "size, allocated, name or holders" */
static void append_keys(Buffer *out, bool of_segments)
{
    const char *names[PS_SORTS + 1] = {0};
    size_t n = 0;
    PsSort first = of_segments ? PS_SORT_SIZE : PS_SORT_PID;
    PsSort last = of_segments ? PS_SORTS - 1 : PS_SORT_SIZE - 1;
    for (PsSort sort = first; sort <= last; sort++)
        names[n++] = ps_sort_name(sort);
    names_join(names, NAMES_OR, out);
}

static int sort_choose(const PsOptions *options, PsSort *ret)
{
    PsSort sort = PS_SORT_NONE;
    /* JSON has both lists, so every key sorts one of them. */
    if (!options->sort || (ps_sort_find(text_of(options->sort), &sort) == 0 &&
                           (options->json || ps_sort_is_of_segments(sort) == options->segments))) {
        *ret = sort;
        return EX_OK;
    }
    _cleanup_buffer_ Buffer keys = {0};
    _cleanup_buffer_ Buffer safe = {0};
    _cleanup_buffer_ Buffer others = {0};
    append_keys(&keys, options->segments);
    (void)text_escape(text_of(options->sort), &safe);
    append_keys(&others, !options->segments);
    return complain(EX_USAGE, options->segments ? CLI_PS_SORT_SEGMENTS : CLI_PS_SORT, buffer_text(&keys),
                    buffer_text(&safe), buffer_text(&others));
}

static int ps_run(const Command *command, int argc, char **argv)
{
    PsOptions options = {0};
    Operands operands;
    int code = EX_OK;
    if (!command_parse(command, argc, argv, &options, &operands, &code))
        return code;
    PsSelection selection = {.all = options.all, .pid = options.pid};
    code = sort_choose(&options, &selection.sort);
    if (code != EX_OK)
        return code;

    unsigned flags = SURVEY_PSS | SURVEY_LEASES | (options.all ? SURVEY_PSS_ALL : 0);
    _cleanup_opened_survey_ OpenedSurvey opened = {0};
    code = survey_open(options.root, options.pid, flags, &opened);
    if (code != EX_OK)
        return code;

    _cleanup_arena_ Arena arena = {0};
    PsView view;
    int r = ps_view_make(&opened.survey, &selection, &arena, &view);
    if (r < 0)
        return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    Terminal terminal = terminal_of(result_stream(), (ColorMode)options.color);
    if (options.json)
        return json_finish(json_ps(terminal.out, terminal.is_tty, &view));
    show_ps(&terminal, &view, options.segments);
    return EX_OK;
}

const Command command_ps = {
    .name = "ps",
    .summary = N_("show which process holds which shared memory, and orphans"),
    .about =
        N_("Shows training processes with their workers, other holders of shared memory, and the segments of "
           "/dev/shm and the memfds that they hold, including those without a name, which ls cannot show. "
           "RSS counts shared pages in full for each process, PSS divides them among their users, USS is "
           "private memory, and SHM is the memory of the segments that a process holds."),
    .options = ps_options,
    .run = ps_run,
};
