/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli-text.h"
#include "command.h"
#include "page.h"
#include "report-file.h"
#include "show-report.h"

typedef struct ReportOptions {
    const char *out;
    bool json;
    int color;
} ReportOptions;

static const Option report_options[] = {
    {OPTION_TEXT, 'o', "output", offsetof(ReportOptions, out), "FILE",
     .help = N_("write a page for the browser to this one file; - is standard output")},
    OPTION_JSON(ReportOptions),
    OPTION_COLOR(ReportOptions),
    {OPTION_END},
};

/* --- The page ------------------------------------------------------------------------------------------- */

static int page_complain(const char *path, int error)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    int code = error == EACCES || error == EPERM || error == EROFS ? EX_NOPERM
               : error == ENOMEM                                   ? EX_SOFTWARE
                                                                   : EX_DATAERR;
    return complain(code, CLI_REPORT_FAILED, buffer_text(&safe), error_text(error));
}

/* The page of one recording must not replace another recording. */
static bool is_database(const char *path)
{
    char head[16] = "";
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd >= 0 && pread(fd, head, sizeof head, 0) == sizeof head &&
           memcmp(head, "SQLite format 3", sizeof head) == 0;
}

/* Finds what is wrong before the recording is read, which may take long. */
static int page_check(const char *path, const char *recording)
{
    struct stat a;
    struct stat b;
    if (page_template_size == 0)
        return complain(EX_UNAVAILABLE, CLI_REPORT_NO_PAGE);
    bool there = stat(path, &a) == 0;
    bool same = there && stat(recording, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    if (!same && !(there && S_ISREG(a.st_mode) && is_database(path)))
        return EX_OK;
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    return complain(EX_USAGE, same ? CLI_REPORT_SAME : CLI_REPORT_DATABASE, buffer_text(&safe));
}

static int page_fill(FILE *out, const void *context)
{
    return page_write(out, context);
}

static int page_put(const char *path, const ReportView *view)
{
    _cleanup_report_file_ ReportFile file = REPORT_FILE_NONE;
    int r = report_file_open(path, &file);
    if (r >= 0)
        r = report_file_write(&file, page_fill, view);
    if (r < 0)
        return page_complain(path, -r);
    return EX_OK;
}

static int answer(const ReportOptions *options, const ReportView *view)
{
    Terminal terminal = terminal_of(stdout, (ColorMode)options->color);
    if (options->out && strcmp(options->out, "-") == 0) {
        int r = page_write(stdout, view);
        return r < 0 ? page_complain(CLI_STANDARD_OUTPUT, -r) : EX_OK;
    }
    int code = options->out ? page_put(options->out, view) : EX_OK;
    if (code != EX_OK)
        return code;
    if (options->json)
        return json_finish(json_report(stdout, terminal.is_tty, view));
    show_report(&terminal, view);
    if (options->out) {
        _cleanup_buffer_ Buffer safe = {0};
        (void)text_escape(text_of(options->out), &safe);
        fflush(stdout);
        fprintf(stderr, CLI_REPORT_WRITTEN, buffer_text(&safe));
        fputc('\n', stderr);
    }
    return EX_OK;
}

static int report_run(const Command *command, int argc, char **argv)
{
    ReportOptions options = {0};
    Operands operands;
    int code = EX_OK;
    if (!command_parse(command, argc, argv, &options, &operands, &code))
        return code;
    if (operands.n == 0)
        return complain(EX_USAGE, CLI_REPORT_NO_FILE);
    const char *path = operands.items[0];
    if (options.out && options.out[0] == '\0')
        return complain(EX_USAGE, CLI_REPORT_NO_NAME);
    if (options.out && options.json && strcmp(options.out, "-") == 0)
        return complain(EX_USAGE, CLI_REPORT_TWICE);
    if (options.out)
        code = page_check(options.out, path);
    if (code != EX_OK)
        return code;

    _cleanup_history_ History history = {0};
    code = recording_take("report", path, &history);
    if (code != EX_OK)
        return code;
    _cleanup_arena_ Arena arena = {0};
    Verdicts verdicts;
    ReportView view;
    int r = verdicts_judge(&history, &arena, &verdicts);
    if (r >= 0)
        r = report_view_make(path, &history, &verdicts, &arena, &view);
    if (r < 0)
        return complain(EX_SOFTWARE, CLI_FAILED, "report", error_text(-r));
    return answer(&options, &view);
}

const Command command_report = {
    .name = "report",
    .summary = N_("say from a recording how memory develops, and whether it leaks"),
    .operands = "FILE",
    .operands_most = 1,
    .about = N_("Reads a recording of shmguard record or shmguard run --record, which may still be growing, "
                "and says first how memory develops and what to do about it, then what was recorded."),
    .options = report_options,
    .run = report_run,
};
