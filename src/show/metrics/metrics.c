/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "metrics-text.h"
#include "metrics.h"
#include "report-view.h"
#include "rlimits.h"
#include "trends.h"

typedef struct Writing Writing;
typedef void (*RowsWriter)(Writing *writing, size_t what);

typedef struct Family {
    Metric metric;
    RowsWriter write;
    size_t what; /* for the writer */
} Family;

/* The labels of a job, as long as the view. */
typedef struct JobLabels {
    char job[LAUNCHER_JOB_MAX];
    char rank[LAUNCHER_RANK_MAX];
} JobLabels;

typedef enum ProcessFigure {
    FIGURE_RSS,
    FIGURE_PSS,
    FIGURE_USS,
    FIGURE_SHM,
    FIGURE_FDS,
    FIGURE_FDS_MOST,
    FIGURES,
} ProcessFigure;

typedef struct FigureRow {
    int pid; /* 0: several */
    Role role;
    JobLabels labels;
    uint64_t figures[FIGURES];
    double weight;
} FigureRow;

typedef struct RunRow {
    JobLabels labels;
    uint64_t bytes;
    uint64_t budget_bytes;
    uint64_t waiting;
    uint64_t batches;
} RunRow;

struct Writing {
    const MetricsView *view;
    Buffer *out;
    MetricsFormat format;
    const Metric *metric;
    FigureRow *rows;
    size_t n_rows;
    uint64_t roles[ROLE_MANAGER + 1];
    RunRow runs[SUPERVISORS_MOST];
    size_t n_runs;
    int error;
};

/* --- Rows ----------------------------------------------------------------------------------------------- */

static void put(Writing *writing, const char *text)
{
    if (writing->error >= 0)
        writing->error = MIN(buffer_append_text(writing->out, text), 0);
}

static void put_escaped(Writing *writing, const char *value)
{
    for (; *value; value++) {
        char plain[2] = {*value, '\0'};
        put(writing, *value == '\n' ? "\\n" : *value == '"' ? "\\\"" : *value == '\\' ? "\\\\" : plain);
    }
}

typedef struct Label {
    const char *name;
    const char *value; /* "": it is left out, which means the same */
} Label;

static void put_name(Writing *writing, const Label *labels, size_t n)
{
    const char *before = "{";
    put(writing, writing->metric->name);
    for (size_t i = 0; i < n; i++) {
        if (labels[i].value[0] == '\0')
            continue;
        put(writing, before);
        put(writing, labels[i].name);
        put(writing, "=\"");
        put_escaped(writing, labels[i].value);
        put(writing, "\"");
        before = ",";
    }
    put(writing, before[0] == ',' ? "} " : " ");
}

static void put_real(Writing *writing, double value, const Label *labels, size_t n)
{
    char text[32];
    snprintf(text, sizeof text, isnan(value) ? "NaN\n" : isinf(value) ? "+Inf\n" : "%.3f\n", value);
    put_name(writing, labels, n);
    put(writing, text);
}

/* Nothing, if it is unknown. */
static void put_number(Writing *writing, uint64_t value, const Label *labels, size_t n)
{
    char text[32];
    if (value == U64_UNKNOWN)
        return;
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)value);
    put_name(writing, labels, n);
    put(writing, text);
}

/* --- The machine ---------------------------------------------------------------------------------------- */

static uint64_t series_last(const Series *series, size_t metric)
{
    for (size_t i = series->n; i-- > 0;)
        if (series->values[metric][i] != U64_UNKNOWN)
            return series->values[metric][i];
    return U64_UNKNOWN;
}

/* Of the last moment alone: what is gone by now must not be shown. */
static uint64_t job_now(const Writing *writing, JobMetric metric)
{
    const Series *series = &writing->view->history->series;
    return series->n > 0 ? series->values[metric][series->n - 1] : U64_UNKNOWN;
}

static double time_now(const Writing *writing)
{
    const Series *series = &writing->view->history->series;
    return series->n > 0 ? series->seconds[series->n - 1] : NAN;
}

static void write_build(Writing *writing, size_t what)
{
    (void)what;
    const Label labels[] = {{"version", SHMGUARD_VERSION}, {"node", writing->view->node}};
    put_number(writing, 1, labels, ARRAY_SIZE(labels));
}

static void write_sampled(Writing *writing, size_t what)
{
    (void)what;
    put_real(writing, writing->view->history->began + time_now(writing), NULL, 0);
}

static void write_job_metric(Writing *writing, size_t what)
{
    put_number(writing, job_now(writing, (JobMetric)what), NULL, 0);
}

static void write_shm_left(Writing *writing, size_t what)
{
    (void)what;
    put_real(writing, forecast_of(writing->view->history, time_now(writing), SUPPLY_SHM), NULL, 0);
}

static void write_memory_left(Writing *writing, size_t what)
{
    (void)what;
    const History *history = writing->view->history;
    double machine = forecast_of(history, time_now(writing), SUPPLY_MEMORY);
    double group = forecast_of(history, time_now(writing), SUPPLY_GROUP);
    put_real(writing, fmin(machine, group), NULL, 0); /* of what is known */
}

static void write_memory_limit(Writing *writing, size_t what)
{
    (void)what;
    put_number(writing, MIN(job_now(writing, JOB_GROUP_LIMIT), job_now(writing, JOB_MEMORY_TOTAL)), NULL, 0);
}

static void write_memory_available(Writing *writing, size_t what)
{
    (void)what;
    uint64_t limit = job_now(writing, JOB_GROUP_LIMIT);
    uint64_t used = job_now(writing, JOB_GROUP_USED);
    uint64_t file = job_now(writing, JOB_GROUP_FILE);
    uint64_t left = U64_UNKNOWN;
    if (limit != U64_UNKNOWN && used != U64_UNKNOWN) {
        used -= file == U64_UNKNOWN ? 0 : MIN(file, used);
        left = limit > used ? limit - used : 0;
    }
    put_number(writing, MIN(left, job_now(writing, JOB_MEMORY_AVAILABLE)), NULL, 0);
}

static void write_segments(Writing *writing, size_t what)
{
    (void)what;
    static const char *const backings[] = {[BACKING_SHM] = "shm", [BACKING_MEMFD] = "memfd"};
    uint64_t bytes[SEGMENT_KINDS][ARRAY_SIZE(backings)] = {0};
    const Survey *survey = writing->view->segments;
    if (!survey)
        return;
    for (size_t i = 0; i < survey->n_segments; i++)
        bytes[survey->segments[i].kind][survey->segments[i].backing] += survey->segments[i].allocated_bytes;
    for (SegmentKind kind = 0; kind < SEGMENT_KINDS; kind++)
        for (size_t i = 0; i < ARRAY_SIZE(backings); i++) {
            const Label labels[] = {{"kind", segment_kind_name(kind)}, {"backing", backings[i]}};
            put_number(writing, bytes[kind][i], labels, ARRAY_SIZE(labels));
        }
}

static void write_orphans(Writing *writing, size_t what)
{
    put_number(writing, what ? writing->view->orphan_bytes : writing->view->orphans, NULL, 0);
}

static void write_own(Writing *writing, size_t what)
{
    (void)what;
    put_real(writing, writing->view->own_cpu_seconds, NULL, 0);
}

static void write_run_count(Writing *writing, size_t what)
{
    (void)what;
    put_number(writing, writing->view->n_runs, NULL, 0);
}

static void write_view_number(Writing *writing, size_t what)
{
    put_number(writing, *(const uint64_t *)((const char *)writing->view + what), NULL, 0);
}

/* --- Processes ------------------------------------------------------------------------------------------ */

static void write_roles(Writing *writing, size_t what)
{
    (void)what;
    for (Role role = 0; role < ARRAY_SIZE(writing->roles); role++) {
        const Label label = {"role", role_name(role)};
        put_number(writing, writing->roles[role], &label, 1);
    }
}

static void write_processes(Writing *writing, size_t what)
{
    for (size_t i = 0; i < writing->n_rows; i++) {
        const FigureRow *row = &writing->rows[i];
        char pid[16] = "rest";
        if (row->pid > 0)
            snprintf(pid, sizeof pid, "%d", row->pid);
        const Label labels[] = {{"pid", pid},
                                {"role", role_name(row->role)},
                                {"job", row->labels.job},
                                {"rank", row->labels.rank}};
        put_number(writing, row->figures[what], labels, ARRAY_SIZE(labels));
    }
}

static const JobFacts *facts_of(const MetricsView *view, int pid)
{
    for (size_t i = 0; pid > 0 && i < view->n_facts; i++)
        if (view->facts[i].pid == pid)
            return &view->facts[i];
    return NULL;
}

static JobLabels labels_of(const MetricsView *view, int trainer)
{
    JobLabels labels = {0};
    const JobFacts *facts = facts_of(view, trainer);
    if (facts) {
        memcpy(labels.job, facts->names.job, sizeof labels.job);
        memcpy(labels.rank, facts->names.rank, sizeof labels.rank);
    }
    if (trainer > 0 && labels.job[0] == '\0')
        snprintf(labels.job, sizeof labels.job, "%d", trainer);
    return labels;
}

static bool was_chosen(const MetricsChoice *choice, int pid)
{
    for (size_t i = 0; i < choice->n; i++)
        if (choice->pids[i] == pid)
            return true;
    return false;
}

static FigureRow row_of(const MetricsView *view, const ProcessTrack *track, const MetricsChoice *choice)
{
    const ProcessMoment *process = &track->last;
    const JobFacts *facts = facts_of(view, process->job);
    uint64_t fds_most = facts ? facts->open_files_soft : U64_UNKNOWN;
    uint64_t rss = track->series.n > 0 ? track_rss(track, track->series.n - 1) : U64_UNKNOWN;
    FigureRow row = {
        .pid = process->pid,
        .role = process->role,
        .labels = labels_of(view, process->job),
        .figures = {[FIGURE_RSS] = rss,
                    [FIGURE_PSS] = series_last(&track->series, PROCESS_PSS),
                    [FIGURE_USS] = series_last(&track->series, PROCESS_USS),
                    [FIGURE_SHM] = series_last(&track->series, PROCESS_SHM),
                    [FIGURE_FDS] = series_last(&track->series, PROCESS_FDS),
                    [FIGURE_FDS_MOST] = fds_most == RLIMIT_UNLIMITED ? U64_UNKNOWN : fds_most},
        .weight = rss == U64_UNKNOWN ? 0 : (double)rss,
    };
    row.weight *= was_chosen(choice, process->pid) ? 1.25 : 1;
    return row;
}

static int rows_order(const void *left, const void *right)
{
    const FigureRow *a = left;
    const FigureRow *b = right;
    if (a->weight != b->weight)
        return a->weight < b->weight ? 1 : -1;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static void figure_add(uint64_t *sum, uint64_t value, bool most)
{
    if (value == U64_UNKNOWN || *sum == U64_UNKNOWN)
        *sum = *sum == U64_UNKNOWN ? value : *sum;
    else
        *sum = most ? MAX(*sum, value) : *sum + value;
}

/* Adds a row to the one of the same role and job behind the first n. Jobs without a row of their own are not
 * told apart. */
static void row_fold(FigureRow *rows, size_t n, size_t *n_rows, FigureRow row)
{
    bool named = false;
    for (size_t i = 0; i < n && !named; i++)
        named = strcmp(rows[i].labels.job, row.labels.job) == 0;
    if (!named)
        row.labels.job[0] = '\0';
    row.labels.rank[0] = '\0';
    row.pid = 0;
    for (size_t i = n; i < *n_rows; i++)
        if (rows[i].role == row.role && strcmp(rows[i].labels.job, row.labels.job) == 0) {
            for (ProcessFigure figure = 0; figure < FIGURES; figure++)
                figure_add(&rows[i].figures[figure], row.figures[figure],
                           figure == FIGURE_FDS || figure == FIGURE_FDS_MOST);
            return;
        }
    rows[(*n_rows)++] = row;
}

static int rows_make(Writing *writing, MetricsChoice *choice, Arena *arena)
{
    const MetricsView *view = writing->view;
    const History *history = view->history;
    size_t all = history->n_live;
    FigureRow *rows = arena_alloc(arena, MAX(all, (size_t)1) * sizeof *rows);
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < all; i++) {
        rows[i] = row_of(view, &history->tracks[history->live[i]], choice);
        writing->roles[rows[i].role]++;
    }
    qsort(rows, all, sizeof *rows, rows_order);
    size_t listed = MIN(all, MIN(view->processes_most, (size_t)METRICS_PROCESSES_MOST));
    choice->n = listed;
    for (size_t i = 0; i < listed; i++)
        choice->pids[i] = rows[i].pid;
    writing->rows = rows;
    writing->n_rows = listed;
    for (size_t i = listed; i < all; i++)
        row_fold(rows, listed, &writing->n_rows, rows[i]);
    return 0;
}

/* --- Guarded runs --------------------------------------------------------------------------------------- */

static void run_add(Writing *writing, const GuardedRun *run)
{
    const MetricsView *view = writing->view;
    const JobFacts *own = facts_of(view, run->pid);
    bool named = own && own->names.job[0] != '\0';
    RunRow row = {
        .labels = labels_of(view, run->job && !named ? run->job : run->pid),
        .bytes = run->figures.bytes_now,
        .budget_bytes = run->figures.budget_bytes,
        .waiting = run->figures.waiting,
        .batches = run->figures.batches,
    };
    /* Its trainer may be one of several ranks: the run has a rank if its launcher started it as one. */
    snprintf(row.labels.rank, sizeof row.labels.rank, "%s", own ? own->names.rank : "");
    for (size_t i = 0; i < writing->n_runs; i++) {
        RunRow *known = &writing->runs[i];
        if (memcmp(&known->labels, &row.labels, sizeof row.labels) != 0)
            continue;
        known->bytes += row.bytes;
        figure_add(&known->budget_bytes, row.budget_bytes, false);
        known->waiting += row.waiting;
        known->batches += row.batches;
        return;
    }
    writing->runs[writing->n_runs++] = row;
}

static void write_runs(Writing *writing, size_t what)
{
    for (size_t i = 0; i < writing->n_runs; i++) {
        const RunRow *row = &writing->runs[i];
        const Label labels[] = {{"job", row->labels.job}, {"rank", row->labels.rank}};
        put_number(writing, *(const uint64_t *)((const char *)row + what), labels, ARRAY_SIZE(labels));
    }
}

/* --- The table ------------------------------------------------------------------------------------------ */

#define GAUGE(name, unit, labels, help)                                                                      \
    {                                                                                                        \
        "shmguard_" name, unit, labels, help, false                                                          \
    }
#define COUNTER(name, unit, labels, help)                                                                    \
    {                                                                                                        \
        "shmguard_" name "_total", unit, labels, help, true                                                  \
    }
#define OF_PROCESS "pid, role, job, rank"
#define OF_RUN     "job, rank"

static const Family families[] = {
    {GAUGE("build_info", "", "version, node", METRIC_TEXT_BUILD), write_build, 0},
    {GAUGE("last_sample_timestamp_seconds", "seconds", "", METRIC_TEXT_SAMPLED), write_sampled, 0},
    {GAUGE("shm_size_bytes", "bytes", "", METRIC_TEXT_SHM_SIZE), write_job_metric, JOB_SHM_SIZE},
    {GAUGE("shm_used_bytes", "bytes", "", METRIC_TEXT_SHM_USED), write_job_metric, JOB_SHM_USED},
    {GAUGE("shm_exhausts_in_seconds", "seconds", "", METRIC_TEXT_SHM_LEFT), write_shm_left, 0},
    {GAUGE("segment_bytes", "bytes", "kind, backing", METRIC_TEXT_SEGMENTS), write_segments, 0},
    {GAUGE("orphan_bytes", "bytes", "", METRIC_TEXT_ORPHAN_BYTES), write_orphans, 1},
    {GAUGE("orphans", "", "", METRIC_TEXT_ORPHANS), write_orphans, 0},
    {GAUGE("processes", "", "role", METRIC_TEXT_PROCESSES), write_roles, 0},
    {GAUGE("process_rss_bytes", "bytes", OF_PROCESS, METRIC_TEXT_RSS), write_processes, FIGURE_RSS},
    {GAUGE("process_pss_bytes", "bytes", OF_PROCESS, METRIC_TEXT_PSS), write_processes, FIGURE_PSS},
    {GAUGE("process_uss_bytes", "bytes", OF_PROCESS, METRIC_TEXT_USS), write_processes, FIGURE_USS},
    {GAUGE("process_shm_bytes", "bytes", OF_PROCESS, METRIC_TEXT_SHM), write_processes, FIGURE_SHM},
    {GAUGE("process_open_fds", "", OF_PROCESS, METRIC_TEXT_FDS), write_processes, FIGURE_FDS},
    {GAUGE("process_max_fds", "", OF_PROCESS, METRIC_TEXT_FDS_MOST), write_processes, FIGURE_FDS_MOST},
    {GAUGE("memory_limit_bytes", "bytes", "", METRIC_TEXT_MEMORY_LIMIT), write_memory_limit, 0},
    {GAUGE("memory_available_bytes", "bytes", "", METRIC_TEXT_MEMORY_AVAILABLE), write_memory_available, 0},
    {GAUGE("memory_exhausts_in_seconds", "seconds", "", METRIC_TEXT_MEMORY_LEFT), write_memory_left, 0},
    {COUNTER("oom_kills", "", "", METRIC_TEXT_OOM_KILLS), write_job_metric, JOB_OOM_KILLS},
    {GAUGE("guard_runs", "", "", METRIC_TEXT_GUARD_RUNS), write_run_count, 0},
    {COUNTER("guard_segments", "", "", METRIC_TEXT_GUARD_SEGMENTS), write_view_number,
     offsetof(MetricsView, totals.segments)},
    {COUNTER("guard_reused", "", "", METRIC_TEXT_GUARD_REUSED), write_view_number,
     offsetof(MetricsView, totals.reused)},
    {COUNTER("guard_waits", "", "", METRIC_TEXT_GUARD_WAITS), write_view_number,
     offsetof(MetricsView, totals.waits)},
    {COUNTER("guard_refused", "", "", METRIC_TEXT_GUARD_REFUSED), write_view_number,
     offsetof(MetricsView, totals.refused)},
    {GAUGE("guard_bytes", "bytes", OF_RUN, METRIC_TEXT_GUARD_BYTES), write_runs, offsetof(RunRow, bytes)},
    {GAUGE("guard_budget_bytes", "bytes", OF_RUN, METRIC_TEXT_GUARD_BUDGET), write_runs,
     offsetof(RunRow, budget_bytes)},
    {GAUGE("guard_waiting", "", OF_RUN, METRIC_TEXT_GUARD_WAITING), write_runs, offsetof(RunRow, waiting)},
    {COUNTER("guard_batches", "", OF_RUN, METRIC_TEXT_GUARD_BATCHES), write_runs, offsetof(RunRow, batches)},
    {GAUGE("open_pages", "", "", METRIC_TEXT_STREAMS), write_view_number, offsetof(MetricsView, streams)},
    {COUNTER("cpu_seconds", "seconds", "", METRIC_TEXT_CPU), write_own, 0},
    {GAUGE("resident_memory_bytes", "bytes", "", METRIC_TEXT_MEMORY), write_view_number,
     offsetof(MetricsView, own_bytes)},
};

const Metric *metric_at(size_t i)
{
    return i < ARRAY_SIZE(families) ? &families[i].metric : NULL;
}

/* OpenMetrics names a counter without the "_total" of its samples. */
static void put_head(Writing *writing)
{
    const Metric *metric = writing->metric;
    bool open = writing->format == METRICS_OPENMETRICS;
    char name[80];
    snprintf(name, sizeof name, "%.*s",
             (int)(strlen(metric->name) - (open && metric->counter ? strlen("_total") : 0)), metric->name);
    const char *const lines[][2] = {
        {"# HELP ", metric->help},
        {"# TYPE ", metric->counter ? "counter" : "gauge"},
        {"# UNIT ", metric->unit},
    };
    for (size_t i = 0; i < (open && metric->unit[0] != '\0' ? 3 : 2); i++) {
        put(writing, lines[i][0]);
        put(writing, name);
        put(writing, " ");
        put(writing, lines[i][1]);
        put(writing, "\n");
    }
}

int metrics_write(const MetricsView *view, MetricsFormat format, MetricsChoice *choice, Buffer *out)
{
    _cleanup_arena_ Arena arena = {0};
    Writing writing = {.view = view, .out = out, .format = format};
    if (rows_make(&writing, choice, &arena) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < view->n_runs; i++)
        run_add(&writing, &view->runs[i]);
    for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
        writing.metric = &families[i].metric;
        put_head(&writing);
        families[i].write(&writing, families[i].what);
    }
    /* Only OpenMetrics knows this line as its end; to the older format it is a comment. */
    put(&writing, "# EOF\n");
    return writing.error;
}
