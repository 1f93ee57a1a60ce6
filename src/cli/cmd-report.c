#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "recording.h"
#include "show-report.h"

typedef struct ReportOptions {
    bool json;
    int color;
} ReportOptions;

static const Option report_options[] = {
    OPTION_JSON(ReportOptions),
    OPTION_COLOR(ReportOptions),
    {OPTION_END},
};

/* Why it could not be read, and what to do, in one line. */
static int recording_complain(const char *path, int error)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    const char *file = buffer_text(&safe);
    switch (error) {
    case ENOMEM:
        return complain(EX_SOFTWARE, "report: %s", strerror(error));
    case EACCES:
    case EPERM:
        return complain(EX_NOPERM, "report: %s: %s; recordings are their owner's alone: ask for a copy", file,
                        strerror(error));
    case EPROTO:
        return complain(
            EX_DATAERR,
            "report: %s was recorded by a later version of shmguard; use that version or a later one", file);
    case EBADMSG:
        return complain(EX_DATAERR,
                        "report: %s is no recording, or a broken one; shmguard record -o FILE makes one",
                        file);
    case ENODATA:
        return complain(EX_DATAERR, "report: %s is empty; record again, for longer than its interval", file);
    default:
        return complain(EX_DATAERR, "report: %s: %s; give a file that shmguard record has made", file,
                        strerror(error));
    }
}

/* 0 or the exit code, said. */
static int history_take(const char *path, History *ret)
{
    struct stat st;
    int r = stat(path, &st) < 0    ? -errno
            : S_ISDIR(st.st_mode)  ? -EISDIR
            : !S_ISREG(st.st_mode) ? -EBADMSG
            : st.st_size == 0      ? -ENODATA
                                   : recording_read(path, ret);
    if (r < 0)
        return recording_complain(path, -r);
    if (ret->series.n > 0)
        return EX_OK;
    history_free(ret);
    return recording_complain(path, ENODATA);
}

static int report_run(const Command *command, int argc, char **argv)
{
    ReportOptions options = {0};
    Operands operands;
    int code = EX_OK;
    if (!command_parse(command, argc, argv, &options, &operands, &code))
        return code;
    if (operands.n == 0)
        return complain(EX_USAGE, "report: which recording? Give its file, as in shmguard report FILE");

    const char *path = operands.items[0];
    _cleanup_history_ History history = {0};
    code = history_take(path, &history);
    if (code != EX_OK)
        return code;
    _cleanup_arena_ Arena arena = {0};
    Verdicts verdicts;
    ReportView view;
    int r = verdicts_judge(&history, &arena, &verdicts);
    if (r >= 0)
        r = report_view_make(path, &history, &verdicts, &arena, &view);
    if (r < 0)
        return complain(EX_SOFTWARE, "report: %s", strerror(-r));

    Terminal terminal = terminal_of(stdout, (ColorMode)options.color);
    if (options.json)
        return json_finish(json_report(stdout, terminal.is_tty, &view));
    show_report(&terminal, &view);
    return EX_OK;
}

const Command command_report = {
    .name = "report",
    .summary = "what memory did over a recording, and whether it leaks",
    .operands = "FILE",
    .operands_most = 1,
    .about = "Reads a recording that shmguard record or shmguard run --record has made, also\n"
             "while it is being made, and says first what memory does and what to do about\n"
             "it, then what was recorded.",
    .options = report_options,
    .run = report_run,
};
