/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli-text.h"
#include "command.h"
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
     .help = N_("write a page for the browser to this one file instead of text; - is standard output")},
    OPTION_JSON(ReportOptions),
    OPTION_COLOR(ReportOptions),
    {OPTION_END},
};

/* --- Which recordings ---------------------------------------------------------------------------------- */

enum { RECORDINGS_MOST = 4096 };

/* What is merged into one answer. */
typedef struct Merge {
    Arena arena;
    const char **paths;
    size_t n;
    size_t capacity;
    History *histories;
    Verdicts *verdicts;
    ReportView *reports;
    size_t n_read;
} Merge;

static void merge_free(Merge *merge)
{
    for (size_t i = 0; i < merge->n_read; i++)
        history_free(&merge->histories[i]);
    arena_free(&merge->arena);
}

static int path_add(Merge *merge, const char *path)
{
    const char **slot = ARENA_PUSH(&merge->arena, merge->paths, merge->n, merge->capacity);
    if (!slot)
        return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    *slot = path;
    return EX_OK;
}

static int path_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All recordings of the directory, except those that newer ones have replaced. Other files are left out. */
static int directory_add(Merge *merge, const char *path)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    size_t first = merge->n;
    DIR *directory = opendir(path);
    if (!directory)
        return errno == EACCES ? complain(EX_NOPERM, CLI_REPORT_DIRECTORY_DENIED, buffer_text(&safe))
                               : complain(EX_DATAERR, CLI_REPORT_NO_RECORDINGS, buffer_text(&safe));
    int code = EX_OK;
    for (struct dirent *entry; code == EX_OK && (entry = readdir(directory));) {
        char *name = arena_printf(&merge->arena, "%s%s%s", path, text_ends(text_of(path), "/") ? "" : "/",
                                  entry->d_name);
        struct stat st;
        if (!name)
            code = complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
        else if (!text_ends(text_of(name), ".old") && stat(name, &st) == 0 && S_ISREG(st.st_mode) &&
                 recording_is(name) > 0)
            code = path_add(merge, name);
    }
    closedir(directory);
    if (code == EX_OK && merge->n == first)
        code = complain(EX_DATAERR, CLI_REPORT_NO_RECORDINGS, buffer_text(&safe));
    if (code == EX_OK && merge->n > RECORDINGS_MOST)
        code = complain(EX_DATAERR, CLI_REPORT_MANY, buffer_text(&safe), RECORDINGS_MOST);
    if (code == EX_OK && merge->paths)
        qsort(merge->paths + first, merge->n - first, sizeof *merge->paths, path_order);
    return code;
}

static int paths_take(Merge *merge, const Operands *operands)
{
    int code = EX_OK;
    for (int i = 0; code == EX_OK && i < operands->n; i++) {
        struct stat st;
        const char *path = operands->items[i];
        bool directory = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
        code = directory ? directory_add(merge, path) : path_add(merge, path);
    }
    return code;
}

/* EX_OK, or the exit code for what went wrong, which was said. */
static int recordings_read(Merge *merge)
{
    merge->histories = arena_alloc(&merge->arena, merge->n * sizeof *merge->histories);
    merge->verdicts = arena_alloc(&merge->arena, merge->n * sizeof *merge->verdicts);
    merge->reports = arena_alloc(&merge->arena, merge->n * sizeof *merge->reports);
    if (!merge->histories || !merge->verdicts || !merge->reports)
        return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    for (size_t i = 0; i < merge->n; i++) {
        int code = recording_take("report", merge->paths[i], &merge->histories[i]);
        if (code != EX_OK)
            return code;
        merge->n_read++;
        int r = verdicts_judge(&merge->histories[i], &merge->arena, &merge->verdicts[i]);
        if (r >= 0)
            r = report_view_make(merge->paths[i], &merge->histories[i], &merge->verdicts[i], &merge->arena,
                                 &merge->reports[i]);
        if (r < 0)
            return complain(EX_SOFTWARE, CLI_FAILED, "report", error_text(-r));
    }
    return EX_OK;
}

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
static int page_check(const char *path, const Merge *merge)
{
    struct stat a;
    struct stat b;
    if (page_template_size == 0)
        return complain(EX_UNAVAILABLE, CLI_REPORT_NO_PAGE);
    bool there = stat(path, &a) == 0;
    bool same = false;
    for (size_t i = 0; there && !same && i < merge->n; i++)
        same = stat(merge->paths[i], &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
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

static int page_put(const char *path, const FleetView *fleet)
{
    _cleanup_report_file_ ReportFile file = REPORT_FILE_NONE;
    int r = report_file_open(path, &file);
    if (r >= 0)
        r = report_file_write(&file, page_fill, fleet);
    if (r < 0)
        return page_complain(path, -r);
    return EX_OK;
}

static int answer(const ReportOptions *options, const FleetView *fleet)
{
    Terminal terminal = terminal_of(stdout, (ColorMode)options->color);
    if (options->out && strcmp(options->out, "-") == 0) {
        int r = page_write(stdout, fleet);
        return r < 0 ? page_complain(CLI_STANDARD_OUTPUT, -r) : EX_OK;
    }
    int code = options->out ? page_put(options->out, fleet) : EX_OK;
    if (code != EX_OK)
        return code;
    if (options->json)
        return json_finish(json_report(stdout, terminal.is_tty, fleet));
    if (options->out) {
        _cleanup_buffer_ Buffer safe = {0};
        (void)text_escape(text_of(options->out), &safe);
        printf(CLI_REPORT_WRITTEN, buffer_text(&safe), verdict_name(fleet->overall));
        putchar('\n');
    } else
        show_report(&terminal, fleet);
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
    if (options.out && options.out[0] == '\0')
        return complain(EX_USAGE, CLI_REPORT_NO_NAME);
    if (options.out && options.json && strcmp(options.out, "-") == 0)
        return complain(EX_USAGE, CLI_REPORT_TWICE);
    _cleanup_(merge_free) Merge merge = {0};
    FleetView fleet;
    code = paths_take(&merge, &operands);
    if (code == EX_OK && options.out)
        code = page_check(options.out, &merge);
    if (code == EX_OK)
        code = recordings_read(&merge);
    if (code != EX_OK)
        return code;
    int r = fleet_view_make(merge.reports, merge.n, &merge.arena, &fleet);
    if (r < 0)
        return complain(EX_SOFTWARE, CLI_FAILED, "report", error_text(-r));
    return answer(&options, &fleet);
}

const Command command_report = {
    .name = "report",
    .summary = N_("say from a recording how memory develops, and whether it leaks"),
    .operands = "FILE|DIRECTORY...",
    .operands_most = INT_MAX,
    .about =
        N_("Reads a recording of shmguard record or shmguard run --record, which may still be growing, and "
           "says first how memory develops and what to do about it, then what was recorded. Several "
           "recordings, or a directory of them, are those of the nodes or ranks of one job: they are merged, "
           "with a row for each rank, and it says which rank's loader is late, and why."),
    .options = report_options,
    .run = report_run,
};
