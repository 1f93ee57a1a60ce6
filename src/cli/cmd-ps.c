/* SPDX-License-Identifier: Apache-2.0 */
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
     .help = "every process, not only training and holders"},
    {OPTION_FLAG, 's', "segments", offsetof(PsOptions, segments), .help = "each segment and who holds it"},
    {OPTION_PID, 'p', "pid", offsetof(PsOptions, pid), "PID",
     .help = "only the job of this process, and what it holds"},
    {OPTION_TEXT, 0, "sort", offsetof(PsOptions, sort), "KEY",
     .help = "pid, rss, pss, uss, shm or fds; with --segments:\n"
             "size, allocated, name or holders"},
    OPTION_JSON(PsOptions),
    OPTION_ROOT(PsOptions),
    OPTION_COLOR(PsOptions),
    {OPTION_END},
};

/* "size, allocated, name or holders" */
static void append_keys(Buffer *out, bool of_segments)
{
    PsSort first = of_segments ? PS_SORT_SIZE : PS_SORT_PID;
    PsSort last = of_segments ? PS_SORTS - 1 : PS_SORT_SIZE - 1;
    for (PsSort sort = first; sort <= last; sort++)
        (void)buffer_printf(out, "%s%s",
                            sort == first  ? ""
                            : sort == last ? " or "
                                           : ", ",
                            ps_sort_name(sort));
}

static int sort_choose(const PsOptions *options, PsSort *ret)
{
    PsSort sort = PS_SORT_NONE;
    /* JSON has both lists, so each key finds something to sort. */
    if (!options->sort || (ps_sort_find(text_of(options->sort), &sort) == 0 &&
                           (options->json || ps_sort_is_of_segments(sort) == options->segments))) {
        *ret = sort;
        return EX_OK;
    }
    _cleanup_buffer_ Buffer words = {0};
    append_keys(&words, options->segments);
    (void)buffer_append_text(&words, ", not \"");
    (void)text_escape(text_of(options->sort), &words);
    (void)buffer_append_text(&words,
                             options->segments ? "\"; without --segments: " : "\"; with --segments: ");
    append_keys(&words, !options->segments);
    return complain(EX_USAGE, "ps: --sort takes %s", buffer_text(&words));
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
        return complain(EX_SOFTWARE, "out of memory");
    Terminal terminal = terminal_of(stdout, (ColorMode)options.color);
    if (options.json)
        return json_finish(json_ps(stdout, terminal.is_tty, &view));
    show_ps(&terminal, &view, options.segments);
    return EX_OK;
}

const Command command_ps = {
    .name = "ps",
    .summary = "who holds which shared memory, and what belongs to nobody",
    .about = "Shows training processes with their workers, other holders of shared memory, and\n"
             "the segments of /dev/shm and memfds that they hold: also those without a name,\n"
             "which ls cannot show. RSS counts shared pages in full for each process, PSS\n"
             "shares them out, USS is private memory, SHM is what the segments that a process\n"
             "holds take in memory.",
    .options = ps_options,
    .run = ps_run,
};
