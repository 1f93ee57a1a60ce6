/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fleet-text.h"
#include "fleet.h"
#include "units.h"

/* A rank is late if it waits in a tenth more of its time than the others do, and for some seconds. */
#define LATE_SHARE   0.1
#define LATE_SECONDS 2.0

/* It is late, too, if it takes so much longer than the others for the same marks. */
#define BEHIND_SHARE 0.05

/* A reason is one that the other ranks have less of. */
#define REASON_SHARE 0.05

/* Workers that use their CPU for so much of the time do not wait. */
#define WORK_SHARE 0.8

const char *late_why_name(LateWhy why)
{
    static const char *const names[LATE_WHYS] = {"room", "cpu", "disk", "work", "unknown"};
    return names[why];
}

const char *clock_basis_name(ClockBasis basis)
{
    return basis == CLOCK_MARKS ? "marks" : "wall-clock";
}

static int double_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* NAN of none. Sorts the values. */
static double median_of(double *values, size_t n)
{
    if (n == 0)
        return NAN;
    qsort(values, n, sizeof *values, double_compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* --- Marks and clocks ----------------------------------------------------------------------------------- */

/* The first time that a text was set in the newest attempt. */
typedef struct FleetMark {
    const char *text;
    double seconds; /* since 1970, by the clock of its node */
} FleetMark;

typedef struct FleetMarks {
    FleetMark *items; /* in order of their text */
    size_t n;
    size_t capacity;
} FleetMarks;

static int mark_compare(const void *a, const void *b)
{
    const FleetMark *x = a;
    const FleetMark *y = b;
    int order = strcmp(x->text, y->text);
    return order != 0 ? order : (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

static int marks_collect(const ReportView *report, Arena *arena, FleetMarks *ret)
{
    const EventList *events = &report->events;
    size_t from = 0;
    for (size_t i = 0; i < events->n; i++)
        from = events->items[i].kind == EVENT_ATTEMPT ? i : from;
    for (size_t i = from; i < events->n; i++) {
        const Event *event = &events->items[i];
        if ((event->kind != EVENT_MARK && event->kind != EVENT_EPOCH) || event->text[0] == '\0')
            continue;
        FleetMark *mark = ARENA_PUSH(arena, ret->items, ret->n, ret->capacity);
        if (!mark)
            return -ENOMEM;
        *mark = (FleetMark){event->text, report->history->began + event->seconds};
    }
    if (ret->n > 1)
        qsort(ret->items, ret->n, sizeof *ret->items, mark_compare);
    size_t kept = 0;
    for (size_t i = 0; i < ret->n; i++)
        if (kept == 0 || strcmp(ret->items[kept - 1].text, ret->items[i].text) != 0)
            ret->items[kept++] = ret->items[i];
    ret->n = kept;
    return 0;
}

/* What two recordings have in common. */
typedef struct CommonMarks {
    size_t n;
    double offset;        /* the median difference of the clocks */
    double spread;        /* the median distance from it */
    double seconds;       /* from the first to the last, by the clock of the second one */
    double seconds_there; /* the same by the clock of the reference */
} CommonMarks;

static int common_find(const FleetMarks *reference, const FleetMarks *marks, Arena *arena, CommonMarks *ret)
{
    double *differences = arena_alloc(arena, MAX(marks->n, (size_t)1) * sizeof *differences);
    double first = INFINITY;
    double last = -INFINITY;
    double first_there = INFINITY;
    double last_there = -INFINITY;
    CommonMarks common = {0};
    if (!differences)
        return -ENOMEM;
    for (size_t i = 0, j = 0; i < reference->n && j < marks->n;) {
        const FleetMark *a = &reference->items[i];
        const FleetMark *b = &marks->items[j];
        int order = strcmp(a->text, b->text);
        if (order == 0) {
            differences[common.n++] = b->seconds - a->seconds;
            first = MIN(first, b->seconds);
            last = MAX(last, b->seconds);
            first_there = MIN(first_there, a->seconds);
            last_there = MAX(last_there, a->seconds);
        }
        i += order <= 0;
        j += order >= 0;
    }
    common.seconds = common.n > 1 ? last - first : 0;
    common.seconds_there = common.n > 1 ? last_there - first_there : 0;
    common.offset = median_of(differences, common.n);
    for (size_t i = 0; i < common.n; i++)
        differences[i] = fabs(differences[i] - common.offset);
    common.spread = median_of(differences, common.n);
    *ret = common;
    return 0;
}

/* --- Ranks ---------------------------------------------------------------------------------------------- */

/* How much a counter has increased between two times; NAN: it is not known twice. */
static double gain_between(const Series *series, size_t metric, double from, double until)
{
    uint64_t first = U64_UNKNOWN;
    uint64_t last = U64_UNKNOWN;
    size_t known = 0;
    for (size_t i = LOWER_BOUND(k, series->n, series->seconds[k] < from);
         i < series->n && series->seconds[i] <= until; i++) {
        uint64_t value = series->values[metric][i];
        if (value == U64_UNKNOWN)
            continue;
        first = known++ == 0 ? value : first;
        last = value;
    }
    return known < 2 ? NAN : last > first ? (double)(last - first) : 0;
}

static double share_of(double msec, double seconds)
{
    return seconds > 0 ? MIN(msec / 1000 / seconds, 1) : NAN;
}

static double track_seconds(const ProcessTrack *track)
{
    return track->series.n > 1 ? track->series.seconds[track->series.n - 1] - track->series.seconds[0] : 0;
}

/* Its workers together, weighted by how long each was seen. */
static double workers_share(const ReportView *report, int trainer, ProcessMetric metric)
{
    const History *history = report->history;
    double seconds[2] = {0};
    double msec[2] = {0};
    for (size_t i = 0; i < history->n_tracks; i++) {
        const ProcessTrack *track = &history->tracks[i];
        bool self = track->last.pid == trainer;
        double gain = self || (track->last.job == trainer && track->last.role == ROLE_WORKER)
                          ? gain_between(&track->series, metric, -INFINITY, INFINITY)
                          : NAN;
        if (isnan(gain))
            continue;
        seconds[self] += track_seconds(track);
        msec[self] += gain;
    }
    return seconds[0] > 0 ? share_of(msec[0], seconds[0]) : share_of(msec[1], seconds[1]);
}

static uint64_t family_peak(const ReportView *report, int trainer)
{
    uint64_t sum = U64_UNKNOWN;
    for (size_t i = 0; i < report->history->n_tracks; i++) {
        const TrackView *shown = &report->tracks[i];
        bool ours = shown->track->last.pid == trainer || shown->track->last.job == trainer;
        if (ours && shown->rss_peak != U64_UNKNOWN)
            sum = sum == U64_UNKNOWN ? shown->rss_peak : sum + shown->rss_peak;
    }
    return sum;
}

static uint64_t last_known(const Series *series, size_t metric)
{
    for (size_t i = series->n; i-- > 0;)
        if (series->values[metric][i] != U64_UNKNOWN)
            return series->values[metric][i];
    return U64_UNKNOWN;
}

static void rank_measure(const ReportView *report, const ProcessTrack *trainer, RankView *rank)
{
    const Series *job = &report->history->series;
    double from = trainer ? trainer->series.seconds[0] : job->seconds[0];
    double until = trainer ? trainer->series.seconds[trainer->series.n - 1] : job->seconds[job->n - 1];
    uint64_t loader = trainer ? last_known(&trainer->series, PROCESS_LOADER_WAIT_MSEC) : U64_UNKNOWN;
    rank->pid = trainer ? trainer->last.pid : 0;
    rank->seconds = until - from;
    rank->loader_share = loader == U64_UNKNOWN ? NAN : share_of((double)loader, rank->seconds);
    rank->room_share = share_of(
        gain_between(job, JOB_GUARD_WAITED_MSEC, from, until + report->history->interval), rank->seconds);
    rank->disk_share = share_of(gain_between(job, JOB_DISK_WAIT_MSEC, from, until), rank->seconds);
    rank->cpu_share = trainer ? workers_share(report, rank->pid, PROCESS_CPU_WAIT_MSEC) : NAN;
    rank->work_share = trainer ? workers_share(report, rank->pid, PROCESS_CPU_MSEC) : NAN;
    rank->rss_peak = trainer ? family_peak(report, rank->pid) : U64_UNKNOWN;
}

typedef struct RankList {
    RankView *items;
    size_t n;
    size_t capacity;
} RankList;

/* Of a rank that was started again, the newest trainer counts. */
static int rank_add(RankList *list, size_t first, size_t source, const ReportView *report,
                    const ProcessTrack *trainer, int number, int attempt, Arena *arena)
{
    size_t i = first;
    while (i < list->n && list->items[i].rank != number)
        i++;
    int before = i < list->n ? list->items[i].attempt : 0;
    RankView *rank = i < list->n ? &list->items[i] : ARENA_PUSH(arena, list->items, list->n, list->capacity);
    if (!rank)
        return -ENOMEM;
    *rank = (RankView){.source = source,
                       .rank = number,
                       .attempt = MAX(attempt, before > 0 ? before + 1 : 0),
                       .step_seconds = NAN,
                       .behind = NAN,
                       .why = LATE_UNKNOWN};
    rank_measure(report, trainer, rank);
    return 0;
}

static int ranks_collect(const ReportView *report, size_t source, Arena *arena, RankList *list)
{
    const History *history = report->history;
    const ProcessTrack *usual = NULL; /* of a job without ranks */
    size_t first = list->n;
    for (size_t i = 0; i < history->n_tracks; i++) {
        const ProcessTrack *track = &history->tracks[i];
        if (track->last.role != ROLE_TRAINER || track->series.n == 0)
            continue;
        usual = track;
        int r = track->last.rank == RANK_UNKNOWN ? 0
                                                 : rank_add(list, first, source, report, track,
                                                            track->last.rank, track->last.attempt, arena);
        if (r < 0)
            return r;
    }
    const JobPlace *place = &history->place;
    return list->n > first ? 0
                           : rank_add(list, first, source, report, usual, place->rank, place->attempt, arena);
}

static int rank_compare(const void *a, const void *b)
{
    const RankView *x = a;
    const RankView *y = b;
    if (x->rank != y->rank) /* without a number they come last */
        return x->rank == RANK_UNKNOWN ? 1 : y->rank == RANK_UNKNOWN ? -1 : x->rank < y->rank ? -1 : 1;
    return (x->source > y->source) - (x->source < y->source);
}

/* --- Which rank is late ----------------------------------------------------------------------------------
 */

/* LATE_UNKNOWN: of waiting for batches. */
static double share_by(const RankView *rank, LateWhy why)
{
    switch (why) {
    case LATE_ROOM:
        return rank->room_share;
    case LATE_CPU:
        return rank->cpu_share;
    case LATE_DISK:
        return rank->disk_share;
    case LATE_WORK:
        return rank->work_share;
    case LATE_UNKNOWN:
    case LATE_WHYS:
        break;
    }
    return rank->loader_share;
}

/* The median of all ranks but this one. */
static double others_median(const RankList *list, const RankView *rank, LateWhy why, double *scratch)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        double share = share_by(&list->items[i], why);
        if (&list->items[i] != rank && !isnan(share))
            scratch[n++] = share;
    }
    return median_of(scratch, n);
}

static LateWhy why_late(const RankList *list, const RankView *rank, double *scratch)
{
    LateWhy why = LATE_UNKNOWN;
    double most = REASON_SHARE;
    for (LateWhy reason = LATE_ROOM; reason <= LATE_DISK; reason++) {
        double share = share_by(rank, reason);
        double others = others_median(list, rank, reason, scratch);
        double excess = share - (isnan(others) ? 0 : others);
        if (excess > most) {
            most = excess;
            why = reason;
        }
    }
    return why == LATE_UNKNOWN && rank->work_share >= WORK_SHARE ? LATE_WORK : why;
}

static double percent(double share)
{
    return isnan(share) ? 0 : 100 * share;
}

static const char *why_words(const RankView *rank, double others, uint64_t budget, Arena *arena)
{
    double share = percent(share_by(rank, rank->why));
    switch (rank->why) {
    case LATE_ROOM:
        return arena_printf(arena, FLEET_ROOM, share, percent(others), SIZE_TEXT(budget));
    case LATE_CPU:
        return arena_printf(arena, FLEET_CPU, share, percent(others));
    case LATE_DISK:
        return arena_printf(arena, FLEET_DISK, share, percent(others));
    case LATE_WORK:
        return arena_printf(arena, FLEET_WORK, share, percent(others));
    case LATE_UNKNOWN:
    case LATE_WHYS:
        break;
    }
    return FLEET_UNKNOWN;
}

/* The kinds of lateness, the most telling first. NULL: it is not late. */
static const char *late_words(const RankList *list, const RankView *rank, double *scratch, Arena *arena)
{
    double others = others_median(list, rank, LATE_UNKNOWN, scratch);
    double excess = rank->loader_share - others;
    if (excess > LATE_SHARE && excess * rank->seconds >= LATE_SECONDS)
        return arena_printf(arena, FLEET_LATE_LOADER, percent(rank->loader_share), percent(others));
    double same = rank->step_seconds * (double)(rank->marks - 1) - rank->behind;
    if (rank->behind >= LATE_SECONDS && rank->behind > BEHIND_SHARE * same)
        return arena_printf(arena, FLEET_LATE_BEHIND, DURATION_TEXT(rank->behind), DURATION_TEXT(same));
    others = others_median(list, rank, LATE_ROOM, scratch);
    excess = rank->room_share - (isnan(others) ? 0 : others);
    if (isnan(rank->loader_share) && excess > LATE_SHARE && excess * rank->seconds >= LATE_SECONDS)
        return FLEET_LATE_ROOM_ALONE;
    return NULL;
}

static int lateness_judge(RankList *list, const SourceView *sources, Arena *arena, size_t *ret_late)
{
    static const char *const advice[LATE_WHYS] = {FLEET_ROOM_ADVICE, FLEET_CPU_ADVICE, FLEET_DISK_ADVICE,
                                                  FLEET_WORK_ADVICE, FLEET_UNKNOWN_ADVICE};
    double *scratch = arena_alloc(arena, MAX(list->n, (size_t)1) * sizeof *scratch);
    if (!scratch)
        return -ENOMEM;
    *ret_late = 0;
    for (size_t i = 0; list->n > 1 && i < list->n; i++) {
        RankView *rank = &list->items[i];
        const char *late = late_words(list, rank, scratch, arena);
        if (!late)
            continue;
        rank->late = true;
        rank->why = why_late(list, rank, scratch);
        uint64_t budget = sources[rank->source].report->job_peaks[JOB_GUARD_BUDGET];
        double others = others_median(list, rank, rank->why, scratch);
        rank->reason = arena_printf(arena, "%s %s", late, why_words(rank, others, budget, arena));
        rank->advice = _(advice[rank->why]);
        if (!rank->reason)
            return -ENOMEM;
        (*ret_late)++;
    }
    return 0;
}

/* --- Nodes ---------------------------------------------------------------------------------------------- */

typedef struct NodeViews {
    NodeView *items;
    size_t n;
    size_t capacity;
} NodeViews;

static uint64_t known_most(uint64_t a, uint64_t b)
{
    return a == U64_UNKNOWN ? b : b == U64_UNKNOWN ? a : MAX(a, b);
}

static int node_meet(NodeViews *list, const ReportView *report, Arena *arena, size_t *ret)
{
    const JobPlace *place = &report->history->place;
    const Series *job = &report->history->series;
    size_t i = 0;
    while (i < list->n &&
           (list->items[i].number != place->node_number || strcmp(list->items[i].name, place->node) != 0))
        i++;
    *ret = i;
    if (i == list->n) {
        NodeView *node = ARENA_PUSH(arena, list->items, list->n, list->capacity);
        if (!node)
            return -ENOMEM;
        *node = (NodeView){.name = place->node,
                           .number = place->node_number,
                           .memory_least = U64_UNKNOWN,
                           .oom_kills = U64_UNKNOWN,
                           .room_seconds = NAN};
        for (size_t metric = 0; metric < JOB_METRICS; metric++)
            node->peaks[metric] = U64_UNKNOWN;
    }
    NodeView *node = &list->items[i];
    node->n_recordings++;
    for (size_t metric = 0; metric < JOB_METRICS; metric++)
        node->peaks[metric] = known_most(node->peaks[metric], report->job_peaks[metric]);
    node->memory_least = MIN(node->memory_least, report->memory_least);
    node->oom_kills = known_most(node->oom_kills, report->oom_kills);
    double waited = gain_between(job, JOB_GUARD_WAITED_MSEC, -INFINITY, INFINITY) / 1000;
    node->room_seconds = isnan(node->room_seconds) ? waited : fmax(node->room_seconds, waited);
    return 0;
}

/* --- All of it ------------------------------------------------------------------------------------------ */

static void jobs_count(const ReportView *reports, size_t n, FleetView *view)
{
    view->job = "";
    for (size_t i = 0; i < n; i++) {
        const char *job = reports[i].history->place.job;
        size_t before = 0;
        while (before < i && strcmp(reports[before].history->place.job, job) != 0)
            before++;
        view->n_jobs += before == i && job[0] != '\0';
        view->job = view->job[0] == '\0' ? job : view->job;
    }
}

/* What runs out first; else what is most certain, as within one report. */
static VerdictId overall_of(const ReportView *reports, size_t n)
{
    const Verdict *best = &reports[0].verdicts->items[0];
    for (size_t i = 1; i < n; i++) {
        const Verdict *verdict = &reports[i].verdicts->items[0];
        Severity severity = verdict_severity(verdict->id);
        Severity most = verdict_severity(best->id);
        if (verdict->exhausts_in < best->exhausts_in ||
            (verdict->exhausts_in == best->exhausts_in &&
             (severity > most || (severity == most && verdict->confidence > best->confidence))))
            best = verdict;
    }
    return best->id;
}

static const char *clock_words(const FleetView *view, Arena *arena)
{
    size_t aligned = 0;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < view->n_sources; i++)
        if (i != view->reference && view->sources[i].clock == CLOCK_MARKS) {
            aligned++;
            least = MIN(least, view->sources[i].marks);
        }
    if (aligned == 0)
        return FLEET_CLOCK_WALL;
    if (aligned + 1 < view->n_sources)
        return arena_printf(arena, FLEET_CLOCK_SOME, aligned + 1, view->n_sources);
    return arena_printf(arena, FLEET_CLOCK_MARKS, least);
}

/* The recording with the most marks is the reference for those of all others. */
static int clocks_align(const ReportView *reports, size_t n, Arena *arena, SourceView *sources,
                        CommonMarks *common, size_t *ret_reference)
{
    FleetMarks *marks = arena_alloc(arena, n * sizeof *marks);
    size_t reference = 0;
    int r = marks ? 0 : -ENOMEM;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        r = marks_collect(&reports[i], arena, &marks[i]);
        reference = marks[i].n > marks[reference].n ? i : reference;
    }
    for (size_t i = 0; r >= 0 && i < n; i++) {
        r = common_find(&marks[reference], &marks[i], arena, &common[i]);
        bool aligned = common[i].n > 0;
        sources[i].clock = aligned ? CLOCK_MARKS : CLOCK_WALL;
        sources[i].offset = aligned ? common[i].offset : 0;
        sources[i].spread = aligned ? common[i].spread : NAN;
        sources[i].marks = common[i].n;
    }
    *ret_reference = reference;
    return r;
}

/* How much longer each recording took than the reference, less the median of the others. */
static int steps_measure(RankList *ranks, const CommonMarks *common, size_t n, Arena *arena)
{
    double *scratch = arena_alloc(arena, n * sizeof *scratch);
    if (!scratch)
        return -ENOMEM;
    for (size_t i = 0; i < ranks->n; i++) {
        RankView *rank = &ranks->items[i];
        const CommonMarks *ours = &common[rank->source];
        rank->marks = ours->n;
        if (ours->n < 2)
            continue;
        rank->step_seconds = ours->seconds / (double)(ours->n - 1);
        size_t others = 0;
        for (size_t k = 0; k < n; k++)
            if (k != rank->source && common[k].n > 1)
                scratch[others++] = common[k].seconds - common[k].seconds_there;
        rank->behind = ours->seconds - ours->seconds_there - median_of(scratch, others);
    }
    return 0;
}

int fleet_view_make(const ReportView *reports, size_t n, Arena *arena, FleetView *ret)
{
    FleetView view = {.n_sources = n, .overall = overall_of(reports, n)};
    RankList ranks = {0};
    NodeViews nodes = {0};
    SourceView *sources = arena_alloc(arena, n * sizeof *sources);
    CommonMarks *common = arena_alloc(arena, n * sizeof *common);
    int r = sources && common ? 0 : -ENOMEM;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        sources[i].report = &reports[i];
        r = node_meet(&nodes, &reports[i], arena, &sources[i].node);
        if (r >= 0)
            r = ranks_collect(&reports[i], i, arena, &ranks);
    }
    if (r >= 0)
        r = clocks_align(reports, n, arena, sources, common, &view.reference);
    if (r >= 0)
        r = steps_measure(&ranks, common, n, arena);
    if (r < 0)
        return r;
    if (ranks.n > 0)
        qsort(ranks.items, ranks.n, sizeof *ranks.items, rank_compare);
    for (size_t i = 0; i < ranks.n; i++)
        nodes.items[sources[ranks.items[i].source].node].n_ranks++;
    r = lateness_judge(&ranks, sources, arena, &view.n_late);
    if (r < 0)
        return r;
    jobs_count(reports, n, &view);
    view.sources = sources;
    view.ranks = ranks.items;
    view.n_ranks = ranks.n;
    view.nodes = nodes.items;
    view.n_nodes = nodes.n;
    view.clock = n > 1 ? clock_words(&view, arena) : NULL;
    if (n > 1 && !view.clock)
        return -ENOMEM;
    *ret = view;
    return 0;
}
