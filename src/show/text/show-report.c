/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "message.h"
#include "report-text.h"
#include "show-explain.h"
#include "show-fixes.h"
#include "show-fleet.h"
#include "show-report.h"
#include "show-sites.h"
#include "table.h"
#include "units.h"

enum {
    INDENT = 2,
    ALIKE_MOST = 12,     /* more processes with the same verdict that are named */
    PROCESSES_MOST = 20, /* rows, of the largest processes; --json and the page list all */
    SPARK_MOST = 60,
    WIDE = 100,
    VERY_WIDE = 140,
};

/* --- Verdicts ------------------------------------------------------------------------------------------ */

/* The same verdict about another process of the same role: eight workers with one dataset are one problem. */
static bool verdicts_alike(const Verdict *a, const Verdict *b)
{
    return a->id == b->id && a->role == b->role && (a->pid > 0) == (b->pid > 0) &&
           text_equal(text_of(a->metric), b->metric ? b->metric : "");
}

static bool is_first_of_its_kind(const Verdicts *verdicts, size_t i)
{
    for (size_t before = 0; before < i; before++)
        if (verdicts_alike(&verdicts->items[before], &verdicts->items[i]))
            return false;
    return true;
}

static void show_alike(const Terminal *terminal, const Verdicts *verdicts, size_t first)
{
    _cleanup_buffer_ Buffer list = {0};
    _cleanup_buffer_ Buffer line = {0};
    size_t n = 0;
    for (size_t i = first + 1; i < verdicts->n; i++) {
        const Verdict *other = &verdicts->items[i];
        if (!verdicts_alike(&verdicts->items[first], other) || ++n > ALIKE_MOST)
            continue;
        message_add(&list, ", ", "%d", other->pid);
        if (verdict_grows(other)) {
            (void)buffer_append_text(&list, " (");
            (void)verdict_rate_words(other, &list);
            (void)buffer_append_text(&list, ")");
        }
    }
    if (n == 0)
        return;
    if (n > ALIKE_MOST)
        (void)buffer_printf(&line, REPORT_ALSO_MORE, buffer_text(&list), n - ALIKE_MOST);
    else
        (void)buffer_printf(&line, PLURAL(n, REPORT_ALSO_ONE, REPORT_ALSO_MANY), buffer_text(&list));
    fprintf(terminal->out, "%*s", INDENT, "");
    terminal_wrap(terminal, INDENT, INDENT, buffer_text(&line));
}

static void show_verdict(const Terminal *terminal, const Verdict *verdict)
{
    Severity severity = verdict_severity(verdict->id);
    terminal_print(terminal, severity_style(severity), "%s %s",
                   terminal_mark(terminal, severity_mark(severity)), verdict_name(verdict->id));
    if (verdict->pid > 0)
        fprintf(terminal->out, ": %s %d", role_name(verdict->role), verdict->pid);
    if (verdict->id != VERDICT_TOO_SHORT)
        fprintf(terminal->out, ", %s (%.2f)", confidence_words(verdict->confidence), verdict->confidence);
    fprintf(terminal->out, "\n%*s", INDENT, "");
    terminal_wrap(terminal, INDENT, INDENT, verdict_meaning(verdict->id));
    if (verdict->evidence && verdict->evidence[0]) {
        fprintf(terminal->out, "%*s", INDENT, "");
        terminal_wrap(terminal, INDENT, INDENT, verdict->evidence);
    }
    if (verdict_grows(verdict)) {
        _cleanup_buffer_ Buffer rate = {0};
        _cleanup_buffer_ Buffer line = {0};
        (void)verdict_rate_words(verdict, &rate);
        message_add(&line, " ", REPORT_GROWS, buffer_text(&rate));
        if (isfinite(verdict->exhausts_in))
            message_add(&line, " ", REPORT_EXHAUSTS, DURATION_TEXT(MAX(verdict->exhausts_in, 0.0)));
        fprintf(terminal->out, "%*s", INDENT, "");
        terminal_wrap(terminal, INDENT, INDENT, buffer_text(&line));
    }
}

static void show_verdicts(const Terminal *terminal, const Verdicts *verdicts)
{
    for (size_t i = 0; i < verdicts->n; i++) {
        if (!is_first_of_its_kind(verdicts, i))
            continue;
        show_verdict(terminal, &verdicts->items[i]);
        show_alike(terminal, verdicts, i);
        if (verdicts->items[i].fixes.n > 0) {
            fprintf(terminal->out, "%*s", INDENT, "");
            terminal_print(terminal, STYLE_BOLD, REPORT_FIXES);
            fputc('\n', terminal->out);
            show_fixes(terminal, INDENT, &verdicts->items[i].fixes);
        }
        fputc('\n', terminal->out);
    }
}

/* --- What was recorded --------------------------------------------------------------------------------- */

static void show_line(const Terminal *terminal, const char *label, const Buffer *line)
{
    terminal_label(terminal, label);
    terminal_wrap(terminal, LABEL_COLUMNS, LABEL_COLUMNS, buffer_text(line));
}

static void show_job(const Terminal *terminal, const ReportView *view)
{
    const History *history = view->history;
    _cleanup_buffer_ Buffer safe = {0};
    _cleanup_buffer_ Buffer line = {0};
    (void)text_escape(text_of(history->command), &safe);
    (void)text_shorten((Text){buffer_text(&safe), safe.size}, terminal->columns - LABEL_COLUMNS,
                       terminal_mark(terminal, MARK_ELLIPSIS), &line);
    if (line.size > 0) { /* not wrapped: its blanks are part of it */
        terminal_label(terminal, REPORT_LABEL_JOB);
        fprintf(terminal->out, "%s\n", buffer_text(&line));
    }
    buffer_clear(&line);
    char began[32] = "";
    struct tm tm;
    time_t whole = (time_t)history->began;
    if (localtime_r(&whole, &tm))
        strftime(began, sizeof began, "%Y-%m-%d %H:%M:%S", &tm);
    (void)buffer_printf(&line, REPORT_RECORDED, DURATION_TEXT(view->seconds), began, history->interval,
                        history->series.n);
    show_line(terminal, REPORT_LABEL_RECORDED, &line);
}

static void show_peak(const Terminal *terminal, const char *label, uint64_t used, uint64_t limit)
{
    _cleanup_buffer_ Buffer line = {0};
    bool limited = limit != U64_UNKNOWN && limit > 0 && used != U64_UNKNOWN;
    if (limited && used > 0 && used < limit / 100)
        (void)buffer_printf(&line, REPORT_PEAK_OF_LITTLE, SIZE_TEXT(used), SIZE_TEXT(limit));
    else if (limited)
        (void)buffer_printf(&line, REPORT_PEAK_OF, SIZE_TEXT(used), SIZE_TEXT(limit),
                            100.0 * (double)used / (double)limit);
    else
        (void)buffer_printf(&line, REPORT_PEAK, SIZE_TEXT(used));
    show_line(terminal, label, &line);
}

static void show_peaks(const Terminal *terminal, const ReportView *view)
{
    const uint64_t *job = view->job_peaks;
    _cleanup_buffer_ Buffer line = {0};
    (void)buffer_printf(&line, REPORT_PROCESSES, (unsigned long long)view->sum_peaks[SUM_PROCESSES],
                        view->history->n_tracks);
    show_line(terminal, REPORT_LABEL_PROCESSES, &line);

    buffer_clear(&line);
    if (view->sum_peaks[SUM_PSS] != U64_UNKNOWN)
        (void)buffer_printf(&line, REPORT_PSS, SIZE_TEXT(view->sum_peaks[SUM_PSS]));
    else
        (void)buffer_append_text(&line, REPORT_PSS_UNKNOWN);
    show_line(terminal, REPORT_LABEL_MEMORY, &line);

    buffer_clear(&line);
    (void)buffer_printf(&line, REPORT_MACHINE, SIZE_TEXT(view->memory_least),
                        SIZE_TEXT(job[JOB_MEMORY_TOTAL]));
    show_line(terminal, REPORT_LABEL_MACHINE, &line);
    if (job[JOB_GROUP_LIMIT] != U64_UNKNOWN)
        show_peak(terminal, REPORT_LABEL_GROUP, job[JOB_GROUP_USED], job[JOB_GROUP_LIMIT]);
    show_peak(terminal, REPORT_LABEL_SHM, job[JOB_SHM_USED], job[JOB_SHM_SIZE]);
    if (job[JOB_GUARD_BYTES] != U64_UNKNOWN)
        show_peak(terminal, REPORT_LABEL_GUARD, job[JOB_GUARD_BYTES], job[JOB_GUARD_BUDGET]);
}

static void show_events(const Terminal *terminal, const EventList *events)
{
    static const char *const labels[EVENT_KINDS] = {
        [EVENT_BORN] = REPORT_BORN,        [EVENT_ENDED] = REPORT_ENDED, [EVENT_OOM_KILL] = REPORT_OOM_KILLS,
        [EVENT_ATTEMPT] = REPORT_ATTEMPTS, [EVENT_MARK] = REPORT_MARKS,  [EVENT_EPOCH] = REPORT_EPOCHS,
    };
    size_t counts[EVENT_KINDS] = {0};
    _cleanup_buffer_ Buffer line = {0};
    for (size_t i = 0; i < events->n; i++)
        counts[events->items[i].kind]++;
    for (EventKind kind = 0; kind < EVENT_KINDS; kind++)
        if (counts[kind] > 0)
            message_add(&line, ", ", REPORT_EVENT, labels[kind], counts[kind]);
    if (line.size == 0)
        (void)buffer_append_text(&line, REPORT_NO_EVENTS);
    show_line(terminal, REPORT_LABEL_EVENTS, &line);
}

/* --- Processes ----------------------------------------------------------------------------------------- */

enum { COL_PID, COL_ROLE, COL_RSS, COL_USS, COL_SHM, COL_FDS, COL_LIFE, COL_SPARK, COL_COMMAND };

static const Column process_columns[] = {
    [COL_PID] = {REPORT_HEAD_PID, .right = true},
    [COL_ROLE] = {REPORT_HEAD_ROLE},
    [COL_RSS] = {REPORT_HEAD_RSS, .right = true},
    [COL_USS] = {REPORT_HEAD_USS, .right = true},
    [COL_SHM] = {REPORT_HEAD_SHM, .right = true},
    [COL_FDS] = {REPORT_HEAD_FDS, .right = true},
    [COL_LIFE] = {REPORT_HEAD_LIVED, .right = true, .appears_from = WIDE},
    [COL_SPARK] = {REPORT_HEAD_SPARK},
    [COL_COMMAND] = {REPORT_HEAD_COMMAND, .least = 8, .appears_from = VERY_WIDE},
};

typedef struct ProcessRows {
    const ReportView *view;
    const TrackView *tracks[PROCESSES_MOST];
    size_t n;
    size_t spark_columns;
    bool utf8;
} ProcessRows;

/* The trainer comes before its workers, and the larger before the smaller. */
static bool comes_before(const TrackView *a, const TrackView *b)
{
    bool a_trains = a->track->last.role == ROLE_TRAINER;
    bool b_trains = b->track->last.role == ROLE_TRAINER;
    if (a_trains != b_trains)
        return a_trains;
    return a->rss_peak != U64_UNKNOWN && (b->rss_peak == U64_UNKNOWN || a->rss_peak > b->rss_peak);
}

static void rows_add(ProcessRows *rows, const TrackView *shown)
{
    size_t at = rows->n;
    while (at > 0 && comes_before(shown, rows->tracks[at - 1]))
        at--;
    if (at == PROCESSES_MOST)
        return;
    rows->n = MIN(rows->n + 1, (size_t)PROCESSES_MOST);
    for (size_t i = rows->n - 1; i > at; i--)
        rows->tracks[i] = rows->tracks[i - 1];
    rows->tracks[at] = shown;
}

/*
 * The maximum of each stretch of time, scaled between the minimum and the maximum of all. Differences of less
 * than a tenth are drawn flat, since a full-height zigzag of noise would look like trouble. Blank where the
 * process did not live.
 */
static void append_spark(Buffer *out, const ProcessRows *rows, const ProcessTrack *track)
{
    const Series *job = &rows->view->history->series;
    uint64_t most[SPARK_MOST];
    uint64_t low = U64_UNKNOWN;
    uint64_t high = U64_UNKNOWN;
    memset(most, 0xFF, sizeof most); /* U64_UNKNOWN */
    for (size_t i = 0; i < track->series.n; i++) {
        double part =
            rows->view->seconds > 0 ? (track->series.seconds[i] - job->seconds[0]) / rows->view->seconds : 0;
        size_t at = (size_t)(MIN(MAX(part, 0.0), 1.0) * (double)rows->spark_columns);
        uint64_t rss = track_rss(track, i);
        u64_raise(&most[MIN(at, rows->spark_columns - 1)], rss);
        u64_raise(&high, rss);
        low = MIN(low, rss);
    }
    double range = high == U64_UNKNOWN ? 1 : MAX((double)(high - low), MAX((double)high / 10, 1.0));
    size_t last = 0; /* blanks after it would say nothing */
    for (size_t i = 0; i < rows->spark_columns; i++)
        last = most[i] != U64_UNKNOWN ? i + 1 : last;
    for (size_t i = 0; i < last; i++) {
        if (most[i] == U64_UNKNOWN) {
            (void)buffer_append_text(out, " ");
            continue;
        }
        (void)buffer_append_text(out, terminal_spark(rows->utf8, (double)(most[i] - low) / range));
    }
}

static void process_cell(const void *context, size_t row, size_t column, Buffer *out)
{
    const ProcessRows *rows = context;
    const TrackView *shown = rows->tracks[row];
    const ProcessTrack *track = shown->track;
    const Series *job = &rows->view->history->series;
    switch (column) {
    case COL_PID:
        (void)buffer_printf(out, "%d", track->last.pid);
        break;
    case COL_ROLE:
        (void)buffer_append_text(out, role_name(track->last.role));
        break;
    case COL_RSS:
        (void)buffer_append_text(out, SIZE_TEXT(shown->rss_peak));
        break;
    case COL_USS:
        (void)buffer_append_text(out, SIZE_TEXT(shown->peaks[PROCESS_USS]));
        break;
    case COL_SHM:
        (void)buffer_append_text(out, SIZE_TEXT(shown->peaks[PROCESS_SHM]));
        break;
    case COL_FDS:
        if (shown->peaks[PROCESS_FDS] == U64_UNKNOWN)
            (void)buffer_append_text(out, "?");
        else
            (void)buffer_printf(out, "%llu", (unsigned long long)shown->peaks[PROCESS_FDS]);
        break;
    case COL_LIFE:
        (void)buffer_append_text(
            out, DURATION_TEXT(MIN(track->ended_seconds, job->seconds[job->n - 1]) - track->first_seconds));
        break;
    case COL_SPARK:
        append_spark(out, rows, track);
        break;
    default:
        (void)text_escape(text_of(track->last.command), out);
    }
}

static void show_processes(const Terminal *terminal, const ReportView *view)
{
    ProcessRows rows = {
        .view = view,
        .spark_columns = terminal->columns >= VERY_WIDE ? SPARK_MOST
                         : terminal->columns >= WIDE    ? 36
                                                        : 20,
        .utf8 = terminal->utf8,
    };
    for (size_t i = 0; i < view->history->n_tracks; i++)
        rows_add(&rows, &view->tracks[i]);
    if (rows.n == 0)
        return;
    fputc('\n', terminal->out);
    terminal_print(terminal, STYLE_BOLD, REPORT_PEAKS);
    fputc('\n', terminal->out);
    table_print(terminal,
                &(Table){process_columns, ARRAY_SIZE(process_columns), rows.n, process_cell, &rows});
    size_t more = view->history->n_tracks - rows.n;
    if (more > 0) {
        fprintf(terminal->out, PLURAL(more, REPORT_MORE_ONE, REPORT_MORE_MANY), more);
        fputc('\n', terminal->out);
    }
}

void show_report(const Terminal *terminal, const FleetView *fleet)
{
    const ReportView *view = fleet->sources[0].report;
    if (fleet->n_sources > 1) {
        show_merged(terminal, fleet);
        return;
    }
    show_verdicts(terminal, view->verdicts);
    show_sites(terminal, &view->sites);
    show_job(terminal, view);
    show_peaks(terminal, view);
    show_events(terminal, &view->events);
    show_processes(terminal, view);
    show_ranks(terminal, fleet);
}
