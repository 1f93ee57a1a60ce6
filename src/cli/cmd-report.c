/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "epochs.h"
#include "page.h"
#include "recording.h"
#include "report-file.h"
#include "show-report.h"

typedef struct ReportOptions {
    const char *out;
    bool json;
    int color;
} ReportOptions;

static const Option report_options[] = {
    {OPTION_TEXT, 'o', "output", offsetof(ReportOptions, out), "FILE",
     .help = "write a page for the browser, all in one file;\n- is standard output"},
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
        return complain(EX_DATAERR,
                        "report: %s is empty; record again, for longer than its interval, or, when it is a "
                        "copy, copy %s-wal with it",
                        file, file);
    case EROFS:
        return complain(EX_DATAERR,
                        "report: %s was not ended, so something must be written beside it to read it; copy "
                        "it, and %s-wal, elsewhere",
                        file, file);
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

/* --- The page ------------------------------------------------------------------------------------------- */

static int page_complain(const char *path, int error)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    int code = error == EACCES || error == EPERM || error == EROFS ? EX_NOPERM
               : error == ENOMEM                                   ? EX_SOFTWARE
                                                                   : EX_DATAERR;
    return complain(code, "report: %s: %s; give -o a place where it can be written", buffer_text(&safe),
                    strerror(error));
}

/* Nobody wants a recording of a week replaced by the page of another one. */
static bool is_database(const char *path)
{
    char head[16] = "";
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd >= 0 && pread(fd, head, sizeof head, 0) == sizeof head &&
           memcmp(head, "SQLite format 3", sizeof head) == 0;
}

/* All that can be told before the recording is read. */
static int page_check(const char *path, const char *recording)
{
    struct stat a;
    struct stat b;
    if (page_template_size == 0)
        return complain(EX_UNAVAILABLE,
                        "report: this program was built without the page; in its source, make page "
                        "installs nodejs and npm and builds it; or leave out -o");
    bool there = stat(path, &a) == 0;
    bool same = there && stat(recording, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    if (!same && !(there && S_ISREG(a.st_mode) && is_database(path)))
        return EX_OK;
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    return complain(EX_USAGE, "report: -o %s is %s; give the page another name", buffer_text(&safe),
                    same ? "the recording itself" : "a database, most likely another recording");
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
        return r < 0 ? page_complain("standard output", -r) : EX_OK;
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
        fprintf(stderr, "The page is in %s: open it with any browser.\n", buffer_text(&safe));
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
        return complain(EX_USAGE, "report: which recording? Give its file, as in shmguard report FILE");
    const char *path = operands.items[0];
    if (options.out && options.out[0] == '\0')
        return complain(EX_USAGE, "report: -o needs the name of a file, as in -o report.html");
    if (options.out && options.json && strcmp(options.out, "-") == 0)
        return complain(EX_USAGE,
                        "report: the page and --json cannot both go to standard output; give -o a file");
    if (options.out)
        code = page_check(options.out, path);
    if (code != EX_OK)
        return code;

    _cleanup_history_ History history = {0};
    code = history_take(path, &history);
    if (code != EX_OK)
        return code;
    _cleanup_arena_ Arena arena = {0};
    Verdicts verdicts;
    ReportView view;
    int r = verdicts_judge(&history, &arena, &verdicts);
    if (r >= 0)
        r = epochs_tell(&history);
    if (r >= 0)
        r = report_view_make(path, &history, &verdicts, &arena, &view);
    if (r < 0)
        return complain(EX_SOFTWARE, "report: %s", strerror(-r));
    return answer(&options, &view);
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
