#include <math.h>
#include <stdio.h>
#include <string.h>

#include "statistics.h"
#include "units.h"
#include "verdicts-words.h"

#define MIB 0x1p20

/* Less than this says nothing about anybody's memory, however regular it is. */
enum { SAMPLES_LEAST = 24 };
#define SECONDS_LEAST 5.0

/* The part of a process's time that is taken for its warm-up: imports, first batches, allocators that grow.
 */
#define WARM_UP          0.20
#define WARM_UP_ATTACHED 0.05 /* of one that had lived for longer than it was watched, when that began */

/* What is smaller is nobody's trouble, or ordinary wear: bytes, and the part of the level at the end. */
typedef struct Least {
    double amount;
    double share;
} Least;
static const Least LEAK_LEAST = {4 * MIB, 0.02};
static const Least SAW_LEAST = {8 * MIB, 0.03};
static const Least TEETH_LEAST = {16 * MIB, 0.10};
static const Least SHARED_LEAST = {4 * MIB, 0.10};
static const Least FILE_LEAST = {16 * MIB, 0.15};
static const Least FDS_LEAST = {12, 0.20};
static const Least COPY_LEAST = {16 * MIB, 0.15}; /* the share is of what was shared at fork */
static const Least CROWD_LEAST = {64 * MIB, 0.20};

/* Private memory that goes with something else that grows: objects that stand for kept tensors or open files.
 */
#define SHADOW_SHARE   0.10
#define SHADOW_PER_FD  (16 * 1024.0)
#define COPY_OWN_SHARE 0.30 /* of the growth in copies, what a worker may grow itself */
#define KEPT_RATIO     4.0  /* times as much as at first, and no longer growing: batches that are kept */
#define KEPT_LEAST     (32 * MIB)
#define TEETH_GRADUAL  0.7  /* of all cycles */
#define STILL_THERE    0.05 /* of the history: who ended that late would have gone on */

enum { PHASES = 12, OWN_PHASES_SKIPPED = 3, COPY_PHASES_SKIPPED = 1, FOLDED_MOST = 256 };

enum { ROLES = ROLE_MANAGER + 1 };

/* Processes of one job and one role about which the same is to be said. */
typedef struct Kin {
    const ProcessTrack *worst;
    Trend trend; /* of the worst, as the rest */
    const char *metric;
    double rate;
    double confidence;
    size_t n;
    double rate_of_all;  /* of those that are still there */
    double bound_of_all; /* copy-on-write: what may still be copied */
    const char *evidence;
} Kin;

typedef struct Job {
    int id;
    double first_worker; /* when it was born; 0 when there was one at the start, or is none */
    bool renewed;        /* workers have ended and others have come: epochs */
    double newest_worker;
    double worker_life;         /* the longest of those that have ended */
    const ProcessTrack *judged; /* the one whose steadiness is worth a word */
    Trend judged_trend;
    Kin kin[VERDICT_IDS][ROLES];
} Job;

typedef struct Trial {
    const History *history;
    Arena *arena;
    double end;
    bool guarded;
    Verdicts verdicts;
    int r; /* the first error; what comes after it does nothing */
} Trial;

/* --- Figures -------------------------------------------------------------------------------------------- */

static Figures process_figures(const ProcessTrack *track, ProcessMetric metric)
{
    return (Figures){track->series.seconds, track->series.values[metric], NULL, track->series.n};
}

/* What is swapped out is the process's still. */
static Figures private_figures(const ProcessTrack *track)
{
    Figures figures = process_figures(track, PROCESS_ANON);
    figures.also = track->series.values[PROCESS_SWAP];
    return figures;
}

static Figures job_figures(const History *history, size_t metric)
{
    return (Figures){history->series.seconds, history->series.values[metric], NULL, history->series.n};
}

static double track_until(const ProcessTrack *track)
{
    return track->series.seconds[track->series.n - 1];
}

static bool track_is_there(const Trial *trial, const ProcessTrack *track)
{
    return track_until(track) >= trial->end * (1 - STILL_THERE) - 3 * trial->history->interval;
}

/* The newest value that is known at a time, at most a few minutes old; unknown. */
static uint64_t value_at(const Figures *figures, double seconds)
{
    size_t low = 0;
    size_t high = figures->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (figures->seconds[middle] <= seconds)
            low = middle + 1;
        else
            high = middle;
    }
    size_t oldest = low > 256 ? low - 256 : 0;
    for (size_t i = low; i > oldest; i--)
        if (figures->values[i - 1] != U64_UNKNOWN)
            return figures->values[i - 1];
    return U64_UNKNOWN;
}

static uint64_t job_at(const Trial *trial, size_t metric, double seconds)
{
    Figures figures = job_figures(trial->history, metric);
    return value_at(&figures, seconds);
}

static bool is_worth(double growth, double level, Least least)
{
    return growth >= least.amount && growth >= least.share * level;
}

static bool grows(const Trend *trend, Least least)
{
    return trend->kind == TREND_RISING && is_worth(trend->until - trend->from, trend->until, least);
}

static bool grew(const Trend *trend, Least least)
{
    return (trend->kind == TREND_RISING || trend->kind == TREND_SETTLING) &&
           is_worth(trend->until - trend->from, trend->until, least);
}

static double growth_of(const Trend *trend)
{
    return trend->kind == TREND_UNKNOWN ? 0 : trend->until - trend->from;
}

/* --- How long it can go on ------------------------------------------------------------------------------ */

static double room_between(uint64_t limit, uint64_t used)
{
    if (limit == U64_UNKNOWN || used == U64_UNKNOWN)
        return INFINITY;
    return limit > used ? (double)(limit - used) : 0;
}

/* Bytes of RAM that the job may still take. Pages of files make room when it is needed. */
static double memory_room(const Trial *trial, double seconds)
{
    double available = room_between(job_at(trial, JOB_MEMORY_AVAILABLE, seconds), 0);
    uint64_t used = job_at(trial, JOB_GROUP_USED, seconds);
    uint64_t file = job_at(trial, JOB_GROUP_FILE, seconds);
    if (used != U64_UNKNOWN && file != U64_UNKNOWN)
        used -= MIN(used, file);
    return MIN(available, room_between(job_at(trial, JOB_GROUP_LIMIT, seconds), used));
}

static double shared_room(const Trial *trial, double seconds)
{
    double room =
        trial->guarded
            ? room_between(job_at(trial, JOB_GUARD_BUDGET, seconds), job_at(trial, JOB_GUARD_BYTES, seconds))
            : room_between(job_at(trial, JOB_SHM_SIZE, seconds), job_at(trial, JOB_SHM_USED, seconds));
    return MIN(room, memory_room(trial, seconds));
}

static double seconds_until(double room, double rate)
{
    return rate > 0 && isfinite(room) ? room / rate : INFINITY;
}

/* --- Words ---------------------------------------------------------------------------------------------- */

#define BYTES(x) SIZE_TEXT((uint64_t)MAX((x), 0.0))

static const char *words_made(Trial *trial, const char *words)
{
    if (!words)
        trial->r = -ENOMEM;
    return words ? words : "";
}

#define WORDS(trial, ...) words_made((trial), arena_printf((trial)->arena, __VA_ARGS__))

static const char *subject_words(Trial *trial, const ProcessTrack *track)
{
    Role role = track->last.role;
    return WORDS(trial, "%s %d", role == ROLE_OTHER ? "process" : role_name(role), track->last.pid);
}

static const char *growth_words(Trial *trial, const Trend *trend)
{
    return WORDS(trial, "grew from %s to %s in %s, %s/s, in %zu of %zu windows", BYTES(trend->from),
                 BYTES(trend->until), DURATION_TEXT(trend->ended - trend->began), BYTES(trend->slope),
                 trend->rises, trend->windows - 1);
}

/*
 * What is shown is how often a verdict with such figures was right in a thousand series of each kind
 * (tests/judge/test-verdicts.c prints it): the further the slope lies above its error the surer, and short
 * looks are less sure than long ones.
 */
static double confidence_of(const Trend *trend)
{
    double t = MIN(fabs(trend->t), 60.0);
    double sure = 1 - 0.4 * exp(-(t - 4) / 6);
    double windows = (double)MIN(trend->windows, (size_t)24) / 24;
    return MIN(0.99, sure * (0.8 + 0.2 * windows));
}

/* --- One process ---------------------------------------------------------------------------------------- */

static void kin_add(Trial *trial, Job *job, VerdictId id, const ProcessTrack *track, const Kin *found)
{
    Kin *kin = &job->kin[id][track->last.role];
    size_t n = kin->n + 1;
    bool there = track_is_there(trial, track);
    double rate_of_all = kin->rate_of_all + (there ? found->rate : 0);
    double bound_of_all = kin->bound_of_all + (there ? found->bound_of_all : 0);
    if (!kin->worst || found->rate > kin->rate) {
        *kin = *found;
        kin->worst = track;
    }
    kin->n = n;
    kin->rate_of_all = rate_of_all;
    kin->bound_of_all = bound_of_all;
}

/* Where the warm-up ends. What a trainer does before its first worker is born is not training. */
static double warm_from(const Trial *trial, const Job *job, const ProcessTrack *track)
{
    double first = track->series.seconds[0];
    double until = track_until(track);
    double age = trial->history->began + first - track->last.started;
    if (age > until - first)
        return first + WARM_UP_ATTACHED * (until - first);
    if (track->last.role == ROLE_TRAINER && job->first_worker > first &&
        job->first_worker < first + 0.7 * (until - first))
        first = job->first_worker;
    return first + WARM_UP * (until - first);
}

/* Workers that live for an epoch are judged together: see workers_fold. */
static bool is_of_epoch(const Job *job, const ProcessTrack *track)
{
    if (track->last.role != ROLE_WORKER || !job->renewed)
        return false;
    return track_until(track) < job->newest_worker ||
           track_until(track) - track->first_seconds < 1.5 * job->worker_life;
}

typedef struct Trends {
    Trend own;      /* private memory */
    Trend copies;   /* USS */
    Trend shared;   /* segments that are held, or of which pages were touched: the one that grows more */
    Trend segments; /* their number */
    Trend file;
    Trend fds;
} Trends;

static Trends trends_of(const ProcessTrack *track, double from, double until)
{
    Trends trends;
    Figures own = private_figures(track);
    Figures copies = process_figures(track, PROCESS_USS);
    Figures held = process_figures(track, PROCESS_SHM);
    Figures touched = process_figures(track, PROCESS_SHMEM);
    Figures segments = process_figures(track, PROCESS_SEGMENTS);
    Figures file = process_figures(track, PROCESS_FILE);
    Figures fds = process_figures(track, PROCESS_FDS);
    trends.own = trend_of(&own, from, until);
    trends.copies = trend_of(&copies, track->series.seconds[0], until);
    trends.shared = trend_of(&touched, from, until);
    Trend other = trend_of(&held, from, until);
    bool better = other.kind == TREND_RISING || trends.shared.kind != TREND_RISING;
    if (other.kind != TREND_UNKNOWN && better && growth_of(&other) > growth_of(&trends.shared))
        trends.shared = other;
    trends.segments = trend_of(&segments, from, until);
    trends.file = trend_of(&file, from, until);
    trends.fds = trend_of(&fds, from, until);
    return trends;
}

static bool teeth_are_found(const Teeth *teeth)
{
    return teeth->cycles >= 2 && (double)teeth->gradual >= MAX(2.0, TEETH_GRADUAL * (double)teeth->cycles) &&
           is_worth(teeth->height, teeth->high, TEETH_LEAST);
}

/* An epoch may be a small part of a long recording: if the whole shows no teeth, its last parts may. */
static bool teeth_find(const ProcessTrack *track, double from, double until, Teeth *ret)
{
    Figures own = private_figures(track);
    for (double part = 1; part > 1.0 / 512; part /= 8) {
        Teeth teeth = teeth_of(&own, MAX(from, until - part * (until - from)), until);
        if (teeth_are_found(&teeth)) {
            *ret = teeth;
            return true;
        }
    }
    return false;
}

static void judge_leak(Trial *trial, Job *job, const ProcessTrack *track, const Trends *trends,
                       const Trend *own)
{
    double growth = growth_of(own);
    bool shadow =
        (grew(&trends->shared, SHARED_LEAST) && growth < SHADOW_SHARE * growth_of(&trends->shared)) ||
        (grows(&trends->fds, FDS_LEAST) && growth < SHADOW_PER_FD * growth_of(&trends->fds));
    if (!grows(own, LEAK_LEAST) || shadow)
        return;
    kin_add(trial, job, VERDICT_LEAK, track,
            &(Kin){.trend = *own, .metric = "private", .rate = own->slope, .confidence = confidence_of(own)});
}

/* Of what a worker shares with the trainer when it is forked, the part that it has made its own. */
static bool shared_at_fork(const ProcessTrack *track, double *ret_bytes)
{
    const Series *series = &track->series;
    for (size_t i = 0; i < series->n; i++) {
        uint64_t anon = series->values[PROCESS_ANON][i];
        uint64_t uss = series->values[PROCESS_USS][i];
        if (anon == U64_UNKNOWN || uss == U64_UNKNOWN)
            continue;
        *ret_bytes = anon > uss ? (double)(anon - uss) : 0;
        return true;
    }
    return false;
}

static bool is_copying(const Trend *copies, double own_growth, double shared)
{
    double growth = growth_of(copies);
    return (copies->kind == TREND_RISING || copies->kind == TREND_SETTLING ||
            copies->kind == TREND_STEPPED) &&
           is_worth(growth, shared, COPY_LEAST) && own_growth < COPY_OWN_SHARE * growth;
}

static void copies_add(Trial *trial, Job *job, const ProcessTrack *track, const Trend *copies, double shared)
{
    double left = MAX(shared - growth_of(copies), 0.0);
    double rate =
        copies->kind == TREND_RISING ? copies->slope : growth_of(copies) / 1e3 / MAX(copies->ended, 1.0);
    kin_add(trial, job, VERDICT_COPY_ON_WRITE, track,
            &(Kin){.trend = *copies,
                   .metric = "private",
                   .rate = rate,
                   .bound_of_all = left,
                   .confidence = confidence_of(copies),
                   .evidence = WORDS(
                       trial,
                       "Memory that only %s has %s, while its whole private memory stayed at %s: it "
                       "copies what it shared with the trainer at fork (%s). At most %s more can follow",
                       subject_words(trial, track), growth_words(trial, copies), BYTES(copies->from + shared),
                       BYTES(shared), BYTES(left))});
}

static void judge_process(Trial *trial, Job *job, const ProcessTrack *track)
{
    double from = warm_from(trial, job, track);
    double until = track_until(track);
    if (until - from < SECONDS_LEAST && track->last.role != ROLE_WORKER)
        return;
    Trends trends = trends_of(track, from, until);
    bool enough = trends.own.kind != TREND_UNKNOWN && trends.own.samples >= SAMPLES_LEAST &&
                  until - from >= SECONDS_LEAST;
    if (!enough)
        return;

    bool trainer = track->last.role == ROLE_TRAINER;
    bool before = job->judged && job->judged->last.role == ROLE_TRAINER;
    if (!job->judged || (trainer && !before) ||
        (trainer == before && trends.own.samples > job->judged_trend.samples)) {
        job->judged = track;
        job->judged_trend = trends.own;
    }

    bool of_epoch = is_of_epoch(job, track);
    Teeth teeth;
    if (of_epoch)
        ; /* its growth ends with it */
    else if (teeth_find(track, from, until, &teeth)) {
        bool rest = grows(&teeth.troughs, LEAK_LEAST);
        if (rest)
            judge_leak(trial, job, track, &trends, &teeth.troughs);
        else if (grows(&trends.own, LEAK_LEAST) && teeth.lows_rose > teeth.height / 2)
            judge_leak(trial, job, track, &trends, &trends.own);
        else
            kin_add(
                trial, job, VERDICT_SAWTOOTH, track,
                &(Kin){.trend = trends.own,
                       .metric = "private",
                       .rate = teeth.slope,
                       .confidence = MIN(0.95, 0.6 + 0.05 * (double)teeth.gradual) * (double)teeth.gradual /
                                     (double)teeth.cycles,
                       .evidence = WORDS(trial,
                                         "Private memory of %s rose from %s to %s and fell again, %zu times, "
                                         "every %s; it does not keep more each time",
                                         subject_words(trial, track), BYTES(teeth.low), BYTES(teeth.high),
                                         teeth.cycles, DURATION_TEXT(teeth.period))});
    } else
        judge_leak(trial, job, track, &trends, &trends.own);

    double shared = 0;
    if (!of_epoch && track->last.role == ROLE_WORKER && shared_at_fork(track, &shared) &&
        is_copying(&trends.copies, growth_of(&trends.own), shared))
        copies_add(trial, job, track, &trends.copies, shared);

    bool fds_grow = grows(&trends.fds, FDS_LEAST);
    bool with_segments =
        trends.segments.kind == TREND_RISING && growth_of(&trends.segments) > growth_of(&trends.fds) / 2;
    bool kept = trainer && trends.shared.kind == TREND_SETTLING && growth_of(&trends.shared) >= KEPT_LEAST &&
                trends.shared.until >= KEPT_RATIO * trends.shared.from;
    if (grows(&trends.shared, SHARED_LEAST) || kept || (fds_grow && with_segments)) {
        double rate = kept ? 0 : MAX(trends.shared.slope, 0.0);
        const char *fds = fds_grow ? WORDS(trial, ". Its open descriptors grew with it, from %.0f to %.0f",
                                           trends.fds.from, trends.fds.until)
                                   : "";
        kin_add(trial, job, VERDICT_BACKLOG, track,
                &(Kin){.trend = trends.shared,
                       .metric = "shared",
                       .rate = rate,
                       .confidence = confidence_of(
                           grows(&trends.shared, SHARED_LEAST) || kept ? &trends.shared : &trends.segments),
                       .evidence = WORDS(trial, "Shared memory that %s holds %s%s%s",
                                         subject_words(trial, track), growth_words(trial, &trends.shared),
                                         kept ? ", and stays: more than is in flight is kept" : "", fds)});
    } else if (fds_grow)
        kin_add(trial, job, VERDICT_FD_LEAK, track,
                &(Kin){.trend = trends.fds,
                       .metric = "descriptors",
                       .rate = trends.fds.slope,
                       .confidence = confidence_of(&trends.fds)});

    if (grew(&trends.file, FILE_LEAST))
        kin_add(trial, job, VERDICT_PAGE_CACHE, track,
                &(Kin){.trend = trends.file,
                       .metric = "file",
                       .rate = MAX(trends.file.slope, 0.0),
                       .confidence = confidence_of(&trends.file)});
}

/* --- Workers that live for an epoch ----------------------------------------------------------------------
 */

/* Medians of many workers' figures by the part of their life that had passed. */
static int fold(Trial *trial, const ProcessTrack *const *tracks, size_t n, ProcessMetric metric,
                size_t skipped, double life, Windows *ret)
{
    double *values = arena_alloc(trial->arena, n * sizeof *values);
    if (!values)
        return -ENOMEM;
    *ret = (Windows){0};
    for (size_t phase = skipped; phase < PHASES; phase++) {
        size_t known = 0;
        for (size_t i = 0; i < n; i++) {
            Figures figures =
                metric == PROCESS_ANON ? private_figures(tracks[i]) : process_figures(tracks[i], metric);
            double first = tracks[i]->series.seconds[0];
            double width = (track_until(tracks[i]) - first) / PHASES;
            Windows window;
            windows_make(&figures, first + width * (double)phase, first + width * (double)(phase + 1), 1,
                         &window);
            ret->samples += window.samples;
            if (window.n > 0)
                values[known++] = window.levels[0];
        }
        if (known == 0)
            continue;
        ret->seconds[ret->n] = life * ((double)phase + 0.5) / PHASES;
        ret->levels[ret->n++] = median_of(values, known);
    }
    return 0;
}

static void workers_judge(Trial *trial, Job *job, const ProcessTrack *const *tracks, size_t n)
{
    double lives[FOLDED_MOST];
    double shared[FOLDED_MOST];
    size_t n_shared = 0;
    for (size_t i = 0; i < n; i++) {
        lives[i] = track_until(tracks[i]) - tracks[i]->first_seconds;
        n_shared += shared_at_fork(tracks[i], &shared[n_shared]);
    }
    double life = median_of(lives, n);
    Windows own_windows;
    Windows copy_windows;
    trial->r = fold(trial, tracks, n, PROCESS_ANON, OWN_PHASES_SKIPPED, life, &own_windows);
    if (trial->r >= 0)
        trial->r = fold(trial, tracks, n, PROCESS_USS, COPY_PHASES_SKIPPED, life, &copy_windows);
    if (trial->r < 0)
        return;
    Trend own = trend_of_windows(&own_windows);
    Trend copies = trend_of_windows(&copy_windows);
    const ProcessTrack *newest = tracks[n - 1];
    if (grows(&own, SAW_LEAST)) {
        kin_add(trial, job, VERDICT_SAWTOOTH, newest,
                &(Kin){.trend = own,
                       .metric = "private",
                       .rate = own.slope,
                       .confidence = confidence_of(&own),
                       .evidence = WORDS(
                           trial,
                           "Private memory of a worker grows from %s to %s in its life of %s, %s/s, "
                           "and comes free when it ends with the epoch (median of %zu workers)",
                           BYTES(own.from), BYTES(own.until), DURATION_TEXT(life), BYTES(own.slope), n)});
        return;
    }
    double at_fork = n_shared > 0 ? median_of(shared, n_shared) : 0;
    if (n_shared > 0 && is_copying(&copies, growth_of(&own), at_fork))
        copies_add(trial, job, newest, &copies, at_fork);
}

/* Those that live long enough to be of the train loader rather than of a short validation, evenly chosen. */
static void workers_fold(Trial *trial, Job *job)
{
    const History *history = trial->history;
    const ProcessTrack *chosen[FOLDED_MOST];
    for (size_t stride = 1; trial->r >= 0; stride *= 2) {
        size_t n = 0;
        size_t met = 0;
        for (size_t i = 0; i < history->n_tracks; i++) {
            const ProcessTrack *track = &history->tracks[i];
            if (track->last.job != job->id || track->series.n < PHASES || !is_of_epoch(job, track) ||
                track_until(track) - track->first_seconds < job->worker_life / 2)
                continue;
            if (met++ % stride == 0 && n < FOLDED_MOST)
                chosen[n++] = track;
        }
        if (met > stride * FOLDED_MOST)
            continue;
        if (n > 1)
            workers_judge(trial, job, chosen, n);
        return;
    }
}

/* --- The job as a whole ----------------------------------------------------------------------------------
 */

static void verdict_add(Trial *trial, const Verdict *verdict)
{
    if (trial->r < 0)
        return;
    Verdicts *verdicts = &trial->verdicts;
    Verdict *slot = ARENA_PUSH(trial->arena, verdicts->items, verdicts->n, verdicts->capacity);
    if (!slot) {
        trial->r = -ENOMEM;
        return;
    }
    *slot = *verdict;
    trial->r = verdict_advise(slot->id, slot->role, trial->guarded, trial->arena, &slot->fixes);
}

/* Processes that are steady and become more and more: workers of loaders that were never let go of. */
static void judge_crowd(Trial *trial, const Job *job, double from)
{
    const History *history = trial->history;
    Windows bytes = {.n = WINDOWS_MAX};
    Windows heads = {.n = WINDOWS_MAX};
    for (size_t k = 0; k < WINDOWS_MAX; k++) {
        double at = from + (trial->end - from) * ((double)k + 0.5) / WINDOWS_MAX;
        bytes.seconds[k] = heads.seconds[k] = at;
        for (size_t i = 0; i < history->n_tracks; i++) {
            const ProcessTrack *track = &history->tracks[i];
            if (track->last.job != job->id || track->series.n == 0 || track->first_seconds > at ||
                track_until(track) < at)
                continue;
            Figures pss = process_figures(track, PROCESS_PSS);
            uint64_t value = value_at(&pss, at);
            bytes.levels[k] += value == U64_UNKNOWN ? 0 : (double)value;
            heads.levels[k] += 1;
        }
    }
    Trend trend = trend_of_windows(&bytes);
    Trend number = trend_of_windows(&heads);
    if (!grows(&trend, CROWD_LEAST) || number.kind != TREND_RISING || number.until < 1.5 * number.from ||
        number.until < number.from + 3)
        return;
    verdict_add(trial,
                &(Verdict){.id = VERDICT_LEAK,
                           .metric = "private",
                           .rate = trend.slope,
                           .confidence = 0.9 * confidence_of(&trend),
                           .exhausts_in = seconds_until(memory_room(trial, trial->end), trend.slope),
                           .evidence = WORDS(trial,
                                             "Memory of all processes together %s: none of them grows, but "
                                             "from %.0f they became %.0f",
                                             growth_words(trial, &trend), number.from, number.until)});
}

static void judge_shared(Trial *trial, double from)
{
    static const struct {
        size_t metric;
        const char *what;
    } figures[] = {
        {JOB_GUARD_BYTES, "Segments of the guard"},
        {JOB_KIND_BYTES + KIND_TORCH, "PyTorch's segments"},
        {JOB_KIND_BYTES + KIND_PYTHON, "Python's shared memory"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
        Figures series = job_figures(trial->history, figures[i].metric);
        Trend trend = trend_of(&series, from, trial->end);
        if (trend.samples < SAMPLES_LEAST / 2 || !grows(&trend, FILE_LEAST))
            continue;
        verdict_add(trial,
                    &(Verdict){.id = VERDICT_BACKLOG,
                               .metric = "shared",
                               .rate = trend.slope,
                               .confidence = 0.9 * confidence_of(&trend),
                               .exhausts_in = seconds_until(shared_room(trial, trial->end), trend.slope),
                               .evidence = WORDS(trial, "%s %s, over all processes of the job",
                                                 figures[i].what, growth_words(trial, &trend))});
        return;
    }
}

/* A control group that looks nearly full, of pages that the kernel can drop. Below that it is nobody's worry.
 */
static void judge_cache(Trial *trial, double from)
{
    Figures files = job_figures(trial->history, JOB_GROUP_FILE);
    Figures used = job_figures(trial->history, JOB_GROUP_USED);
    Trend file = trend_of(&files, from, trial->end);
    Trend all = trend_of(&used, from, trial->end);
    uint64_t limit = job_at(trial, JOB_GROUP_LIMIT, trial->end);
    if (limit == U64_UNKNOWN || !grew(&file, FILE_LEAST) || all.until < (double)limit / 2 ||
        growth_of(&file) < (double)limit / 20 || growth_of(&file) < 0.7 * growth_of(&all))
        return;
    verdict_add(
        trial, &(Verdict){.id = VERDICT_PAGE_CACHE,
                          .metric = "file",
                          .rate = MAX(file.slope, 0.0),
                          .confidence = 0.9 * confidence_of(&file),
                          .exhausts_in = INFINITY,
                          .evidence = WORDS(trial, "The control group uses %s of %s; pages of files in it %s",
                                            BYTES(all.until), SIZE_TEXT(limit), growth_words(trial, &file))});
}

static void job_learn_workers(Trial *trial, Job *job)
{
    const History *history = trial->history;
    double first_end = INFINITY;
    bool from_start = false;
    job->first_worker = INFINITY;
    for (size_t i = 0; i < history->n_tracks; i++) {
        const ProcessTrack *track = &history->tracks[i];
        if (track->last.job != job->id || track->last.role != ROLE_WORKER || track->series.n == 0)
            continue;
        from_start = from_start || track->first_seconds <= history->series.seconds[0];
        job->first_worker = MIN(job->first_worker, track->first_seconds);
        job->newest_worker = MAX(job->newest_worker, track->first_seconds);
        if (isfinite(track->ended_seconds)) {
            first_end = MIN(first_end, track_until(track));
            job->worker_life = MAX(job->worker_life, track_until(track) - track->first_seconds);
        }
    }
    if (from_start || isinf(job->first_worker))
        job->first_worker = 0;
    job->renewed = job->newest_worker > first_end;
}

static double kin_exhausts(const Trial *trial, VerdictId id, const Kin *kin)
{
    double at = track_until(kin->worst);
    double room = id == VERDICT_BACKLOG ? shared_room(trial, at) : memory_room(trial, at);
    switch (id) {
    case VERDICT_LEAK:
    case VERDICT_BACKLOG:
        return seconds_until(room, kin->rate_of_all);
    case VERDICT_COPY_ON_WRITE: /* it ends by itself, if there is room for it */
        return kin->bound_of_all > room ? seconds_until(room, kin->rate_of_all) : INFINITY;
    case VERDICT_STEADY:
    case VERDICT_SAWTOOTH:
    case VERDICT_FD_LEAK: /* the limit is not recorded */
    case VERDICT_PAGE_CACHE:
    case VERDICT_TOO_SHORT:
    case VERDICT_IDS:
        break;
    }
    return INFINITY;
}

static const char *kin_evidence(Trial *trial, VerdictId id, const Kin *kin)
{
    const char *who = subject_words(trial, kin->worst);
    const char *words = kin->evidence;
    if (!words && id == VERDICT_FD_LEAK)
        words =
            WORDS(trial, "Open descriptors of %s grew from %.0f to %.0f in %s, %.2g/s, in %zu of %zu windows",
                  who, kin->trend.from, kin->trend.until, DURATION_TEXT(kin->trend.ended - kin->trend.began),
                  kin->rate, kin->trend.rises, kin->trend.windows - 1);
    else if (!words)
        words = WORDS(trial, "%s of %s %s",
                      id == VERDICT_PAGE_CACHE ? "Resident pages of files" : "Private memory", who,
                      growth_words(trial, &kin->trend));
    if (kin->n <= 1)
        return WORDS(trial, "%s.", words);
    return WORDS(trial, "%s. %zu more like it do the same.", words, kin->n - 1);
}

static void kin_verdicts(Trial *trial, const Job *job)
{
    for (VerdictId id = 0; id < VERDICT_IDS; id++)
        for (size_t role = 0; role < ROLES; role++) {
            const Kin *kin = &job->kin[id][role];
            if (kin->n == 0)
                continue;
            verdict_add(trial, &(Verdict){.id = id,
                                          .pid = kin->worst->last.pid,
                                          .role = kin->worst->last.role,
                                          .metric = kin->metric,
                                          .rate = kin->rate,
                                          .confidence = kin->confidence,
                                          .evidence = kin_evidence(trial, id, kin),
                                          .exhausts_in = kin_exhausts(trial, id, kin)});
        }
}

static bool is_found(const Trial *trial, VerdictId id)
{
    for (size_t i = 0; i < trial->verdicts.n; i++)
        if (trial->verdicts.items[i].id == id)
            return true;
    return false;
}

static void job_judge(Trial *trial, Job *job)
{
    const History *history = trial->history;
    job_learn_workers(trial, job);
    for (size_t i = 0; trial->r >= 0 && i < history->n_tracks; i++)
        if (history->tracks[i].last.job == job->id && history->tracks[i].series.n >= WINDOWS_LEAST)
            judge_process(trial, job, &history->tracks[i]);
    if (job->renewed)
        workers_fold(trial, job);
    kin_verdicts(trial, job);
    double from = job->first_worker + WARM_UP * (trial->end - job->first_worker);
    if (job->id != 0 && trial->end - from >= SECONDS_LEAST && !is_found(trial, VERDICT_LEAK))
        judge_crowd(trial, job, from);
}

/* --- All -------------------------------------------------------------------------------------------------
 */

typedef struct Jobs {
    Job *items;
    size_t n;
    size_t capacity;
} Jobs;

static int jobs_list(const History *history, Arena *arena, Jobs *ret)
{
    for (size_t i = 0; i < history->n_tracks; i++) {
        int id = history->tracks[i].last.job;
        size_t k = 0;
        while (k < ret->n && ret->items[k].id != id)
            k++;
        if (k < ret->n)
            continue;
        Job *job = ARENA_PUSH(arena, ret->items, ret->n, ret->capacity);
        if (!job)
            return -ENOMEM;
        job->id = id;
    }
    return 0;
}

static void judge_steady(Trial *trial, const Job *job)
{
    const Trend *trend = &job->judged_trend;
    double span = trend->ended - trend->began;
    double seen = MAX(MAX(LEAK_LEAST.amount, LEAK_LEAST.share * trend->until) / span, 4 * trend->error);
    const char *rose = trend->kind == TREND_SETTLING  ? "settles at"
                       : trend->kind == TREND_STEPPED ? "rose once, to"
                                                      : "stayed at about";
    verdict_add(trial, &(Verdict){.id = VERDICT_STEADY,
                                  .pid = job->judged->last.pid,
                                  .role = job->judged->last.role,
                                  .metric = "private",
                                  .rate = trend->slope,
                                  .confidence = 0.5 + 0.45 * MIN(span / 600, 1.0),
                                  .exhausts_in = INFINITY,
                                  .evidence = WORDS(
                                      trial,
                                      "Private memory of %s %s %s for %s. Growth of %s a minute would have "
                                      "been seen; no other figure grows either.",
                                      subject_words(trial, job->judged), rose, BYTES(trend->until),
                                      DURATION_TEXT(span), BYTES(seen * 60))});
}

static void judge_too_short(Trial *trial)
{
    const History *history = trial->history;
    verdict_add(
        trial, &(Verdict){.id = VERDICT_TOO_SHORT,
                          .pid = history->pid,
                          .metric = "private",
                          .exhausts_in = INFINITY,
                          .evidence = WORDS(trial,
                                            "%zu samples in %s: no training process was seen for long enough "
                                            "after its start (%d samples and %.0f s at least).",
                                            history->series.n, DURATION_TEXT(trial->end), SAMPLES_LEAST,
                                            SECONDS_LEAST)});
}

static int verdict_compare(const void *a, const void *b)
{
    const Verdict *x = a;
    const Verdict *y = b;
    if (x->exhausts_in != y->exhausts_in)
        return x->exhausts_in < y->exhausts_in ? -1 : 1;
    return (x->confidence < y->confidence) - (x->confidence > y->confidence);
}

int verdicts_judge(const History *history, Arena *arena, Verdicts *ret)
{
    Trial trial = {.history = history, .arena = arena};
    if (history->series.n > 0) {
        trial.end = history->series.seconds[history->series.n - 1];
        trial.guarded = job_at(&trial, JOB_GUARD_BYTES, trial.end) != U64_UNKNOWN;
    }
    Jobs jobs = {0};
    trial.r = jobs_list(history, arena, &jobs);
    for (size_t i = 0; trial.r >= 0 && i < jobs.n; i++)
        job_judge(&trial, &jobs.items[i]);

    double from = WARM_UP * trial.end;
    if (trial.r >= 0 && trial.end - from >= SECONDS_LEAST) {
        if (!is_found(&trial, VERDICT_BACKLOG))
            judge_shared(&trial, from);
        if (!is_found(&trial, VERDICT_PAGE_CACHE))
            judge_cache(&trial, from);
    }
    bool found = trial.verdicts.n > 0;
    for (size_t i = 0; trial.r >= 0 && !found && i < jobs.n; i++)
        if (jobs.items[i].judged && (jobs.items[i].id != 0 || jobs.n == 1))
            judge_steady(&trial, &jobs.items[i]);
    if (trial.r >= 0 && trial.verdicts.n == 0)
        judge_too_short(&trial);
    if (trial.r < 0)
        return trial.r;
    qsort(trial.verdicts.items, trial.verdicts.n, sizeof *trial.verdicts.items, verdict_compare);
    *ret = trial.verdicts;
    return 0;
}

double trend_slope(const double *seconds, const uint64_t *values, size_t n)
{
    if (n == 0)
        return 0;
    Figures figures = {seconds, values, NULL, n};
    Trend trend = trend_of(&figures, seconds[0], seconds[n - 1]);
    bool moves = trend.kind == TREND_RISING || trend.kind == TREND_FALLING;
    return moves ? trend.slope : 0;
}
