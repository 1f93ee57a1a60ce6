#include <math.h>
#include <string.h>

#include "units.h"
#include "verdicts-case.h"
#include "verdicts-words.h"

#define STILL_THERE 0.05 /* of the history */

/* --- Figures -------------------------------------------------------------------------------------------- */

Figures process_figures(const ProcessTrack *track, ProcessMetric metric)
{
    return (Figures){track->series.seconds, track->series.values[metric], NULL, track->series.n};
}

Figures private_figures(const ProcessTrack *track)
{
    Figures figures = process_figures(track, PROCESS_ANON);
    figures.also = track->series.values[PROCESS_SWAP];
    return figures;
}

Figures job_figures(const History *history, size_t metric)
{
    return (Figures){history->series.seconds, history->series.values[metric], NULL, history->series.n};
}

double track_until(const ProcessTrack *track)
{
    return track->series.seconds[track->series.n - 1];
}

bool track_is_there(const Trial *trial, const ProcessTrack *track)
{
    return track_until(track) >= trial->end * (1 - STILL_THERE) - 3 * trial->history->interval;
}

uint64_t value_at(const Figures *figures, double seconds)
{
    size_t low = LOWER_BOUND(i, figures->n, figures->seconds[i] <= seconds);
    size_t oldest = low > 256 ? low - 256 : 0;
    for (size_t i = low; i > oldest; i--)
        if (figures->values[i - 1] != U64_UNKNOWN)
            return figures->values[i - 1];
    return U64_UNKNOWN;
}

uint64_t job_at(const Trial *trial, size_t metric, double seconds)
{
    Figures figures = job_figures(trial->history, metric);
    return value_at(&figures, seconds);
}

double growth_of(const Trend *trend)
{
    return trend->kind == TREND_UNKNOWN ? 0 : trend->until - trend->from;
}

double seconds_of(const Trend *trend)
{
    return trend->ended - trend->began;
}

Least least_after(Least least, double seconds)
{
    double times = MAX(least.seconds / MAX(seconds, 1e-3), 1.0);
    return (Least){least.amount * times, MAX(least.share, MIN(least.share * times, SHARE_MOST)), seconds};
}

static bool is_worth(double growth, double level, Least least)
{
    return growth >= least.amount && growth >= least.share * level;
}

Worth worth_of(double growth, double level, Least least, double seconds)
{
    if (!is_worth(growth, level, least))
        return WORTH_NOTHING;
    return is_worth(growth, level, least_after(least, seconds)) ? WORTH_NAMING : WORTH_WAITING;
}

Worth worth_growing(const Trend *trend, Least least)
{
    return trend->kind == TREND_RISING ? worth_of(growth_of(trend), trend->until, least, seconds_of(trend))
                                       : WORTH_NOTHING;
}

bool grows(const Trend *trend, Least least)
{
    return worth_growing(trend, least) == WORTH_NAMING;
}

bool grew(const Trend *trend, Least least)
{
    return (trend->kind == TREND_RISING || trend->kind == TREND_SETTLING) &&
           worth_of(growth_of(trend), trend->until, least, seconds_of(trend)) == WORTH_NAMING;
}

/* --- How long it can go on ------------------------------------------------------------------------------ */

static double room_between(uint64_t limit, uint64_t used)
{
    if (limit == U64_UNKNOWN || used == U64_UNKNOWN)
        return INFINITY;
    return limit > used ? (double)(limit - used) : 0;
}

/* Pages of files make room when it is needed. */
double memory_room(const Trial *trial, double seconds)
{
    double available = room_between(job_at(trial, JOB_MEMORY_AVAILABLE, seconds), 0);
    uint64_t used = job_at(trial, JOB_GROUP_USED, seconds);
    uint64_t file = job_at(trial, JOB_GROUP_FILE, seconds);
    if (used != U64_UNKNOWN && file != U64_UNKNOWN)
        used -= MIN(used, file);
    return MIN(available, room_between(job_at(trial, JOB_GROUP_LIMIT, seconds), used));
}

double shared_room(const Trial *trial, double seconds)
{
    double room =
        trial->guarded
            ? room_between(job_at(trial, JOB_GUARD_BUDGET, seconds), job_at(trial, JOB_GUARD_BYTES, seconds))
            : room_between(job_at(trial, JOB_SHM_SIZE, seconds), job_at(trial, JOB_SHM_USED, seconds));
    return MIN(room, memory_room(trial, seconds));
}

double seconds_until(double room, double rate)
{
    return rate > 0 && isfinite(room) ? room / rate : INFINITY;
}

/* --- Words ---------------------------------------------------------------------------------------------- */

const char *words_made(Trial *trial, const char *words)
{
    if (!words)
        trial->r = -ENOMEM;
    return words ? words : "";
}

const char *subject_words(Trial *trial, const ProcessTrack *track)
{
    Role role = track->last.role;
    return WORDS(trial, "%s %d", role == ROLE_OTHER ? "process" : role_name(role), track->last.pid);
}

const char *growth_words(Trial *trial, const Trend *trend)
{
    return WORDS(trial, "grew from %s to %s in %s, %s/s, in %zu of %zu windows", BYTES(trend->from),
                 BYTES(trend->until), DURATION_TEXT(trend->ended - trend->began), BYTES(trend->slope),
                 trend->rises, trend->windows - 1);
}

/*
 * The further the slope lies above its error the surer, and few windows are less sure than many. Of the
 * series in tests/judge/test-verdicts.c, which prints it, at least such a part was judged rightly. A curve
 * that rises and stays has no slope to speak of: its shape alone is less.
 */
double confidence_of(const Trend *trend)
{
    double t = MIN(fabs(trend->t), 60.0);
    double sure = trend->kind == TREND_RISING ? 1 - 0.4 * exp(-(t - 4) / 6) : 0.8;
    double windows = (double)MIN(trend->windows, (size_t)24) / 24;
    double minutes = MIN((trend->ended - trend->began) / 60, 2.0);
    return MIN(0.99, sure * (0.8 + 0.2 * windows) * (0.8 + 0.1 * minutes));
}

/* --- Findings ------------------------------------------------------------------------------------------ */

void kin_add(Trial *trial, Job *job, VerdictId id, const ProcessTrack *track, const Kin *found)
{
    Kin *kin = &job->kin[id][track->last.role];
    size_t n = kin->n + 1;
    bool there = track_is_there(trial, track);
    double rate_of_all = kin->rate_of_all + (there ? found->rate : 0);
    double left_of_all = kin->left_of_all + (there ? found->left_of_all : 0);
    if (!kin->worst || found->rate > kin->rate) {
        *kin = *found;
        kin->worst = track;
    }
    kin->n = n;
    kin->rate_of_all = rate_of_all;
    kin->left_of_all = left_of_all;
}

void cache_add(Trial *trial, Job *job, const ProcessTrack *track, const Trend *file)
{
    kin_add(trial, job, VERDICT_PAGE_CACHE, track,
            &(Kin){.trend = *file,
                   .metric = "file",
                   .rate = MAX(file->slope, 0.0),
                   .confidence = confidence_of(file)});
}

/* Twice as long as must be watched: a part of it will be warm-up again. */
void unripe_add(Trial *trial, Job *job, const ProcessTrack *track, const char *what, const char *metric,
                const Trend *trend, Least least)
{
    double growth = growth_of(trend);
    double seconds = seconds_of(trend);
    double times = growth / least_after(least, seconds).amount;
    if (job->unripe.track && job->unripe.times >= times)
        return;
    bool counted = strcmp(metric, "descriptors") == 0;
    const char *amount = counted ? WORDS(trial, "%.0f", growth) : WORDS(trial, "%s", BYTES(growth));
    job->unripe =
        (Unripe){.track = track,
                 .metric = metric,
                 .rate = trend->slope,
                 .times = times,
                 .evidence = WORDS(trial,
                                   "%s of %s grew by %s in %s: too little in too short a time to tell what "
                                   "goes on growing from what fills once, as pools and caches do. Record for "
                                   "%s or longer.",
                                   what, subject_words(trial, track), amount, DURATION_TEXT(seconds),
                                   DURATION_TEXT(2 * least.seconds))};
}

void verdict_add(Trial *trial, const Verdict *verdict)
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
    trial->r = verdict_advise(slot, trial->guarded, trial->arena);
}
