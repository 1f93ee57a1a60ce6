/* SPDX-License-Identifier: Apache-2.0 */
/* What no single process shows: the job as a whole, and its control group. */
#include <math.h>

#include "units.h"
#include "verdict-context.h"
#include "verdicts-text.h"

static double job_warm(const VerdictContext *context, double from)
{
    return from + WARM_UP * (context->end - from);
}

/* Processes that are steady but grow in number: workers of loaders that were never deleted. */
void crowd_judge(VerdictContext *context, const JudgedJob *job)
{
    double from = job_warm(context, job->first_worker);
    if (context->end - from < SECONDS_LEAST)
        return;
    const History *history = context->history;
    Windows bytes = {.n = WINDOWS_MAX};
    Windows heads = {.n = WINDOWS_MAX};
    for (size_t k = 0; k < WINDOWS_MAX; k++) {
        double at = from + (context->end - from) * ((double)k + 0.5) / WINDOWS_MAX;
        bytes.seconds[k] = heads.seconds[k] = at;
        for (size_t i = 0; i < history->n_tracks; i++) {
            const ProcessTrack *track = &history->tracks[i];
            if (track->last.job != job->id || track->series.n == 0 || track->first_seconds > at ||
                track_until(track) < at)
                continue;
            ValueSeries pss = process_figures(track, PROCESS_PSS);
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
    verdict_add(context,
                &(Verdict){.id = VERDICT_LEAK,
                           .metric = "private",
                           .rate = trend.slope,
                           .confidence = 0.9 * confidence_of(&trend),
                           .exhausts_in = seconds_until(memory_room(context, context->end), trend.slope),
                           .evidence = WORDS(context, VERDICT_LEAK_CROWD_GREW, GROWTH(&trend), number.from,
                                             number.until)});
}

void shared_judge(VerdictContext *context)
{
    double from = job_warm(context, 0);
    if (context->end - from < SECONDS_LEAST)
        return;
    static const size_t metrics[] = {JOB_GUARD_BYTES, JOB_KIND_BYTES + KIND_TORCH,
                                     JOB_KIND_BYTES + KIND_PYTHON};
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
        ValueSeries series = job_figures(context->history, metrics[i]);
        Trend trend = trend_of(&series, from, context->end);
        if (trend.samples < SAMPLES_LEAST / 2 || !grows(&trend, FILE_LEAST))
            continue;
        verdict_add(context,
                    &(Verdict){.id = VERDICT_BACKLOG,
                               .metric = "shared",
                               .rate = trend.slope,
                               .confidence = 0.9 * confidence_of(&trend),
                               .exhausts_in = seconds_until(shared_room(context, context->end), trend.slope),
                               .evidence = WORDS(context,
                                                 metrics[i] == JOB_GUARD_BYTES ? VERDICT_BACKLOG_GUARD_GREW
                                                 : metrics[i] == JOB_KIND_BYTES + KIND_TORCH
                                                     ? VERDICT_BACKLOG_TORCH_GREW
                                                     : VERDICT_BACKLOG_PYTHON_GREW,
                                                 GROWTH(&trend))});
        return;
    }
}

/* A control group that looks nearly full because of pages that the kernel can drop. A group with more room
 * worries nobody. */
void cache_judge(VerdictContext *context)
{
    double from = job_warm(context, 0);
    if (context->end - from < SECONDS_LEAST)
        return;
    ValueSeries files = job_figures(context->history, JOB_GROUP_FILE);
    ValueSeries used = job_figures(context->history, JOB_GROUP_USED);
    Trend file = trend_of(&files, from, context->end);
    Trend all = trend_of(&used, from, context->end);
    uint64_t limit = job_at(context, JOB_GROUP_LIMIT, context->end);
    if (limit == U64_UNKNOWN || !grew(&file, FILE_LEAST) || all.until < (double)limit / 2 ||
        growth_of(&file) < (double)limit / 20 || growth_of(&file) < 0.7 * growth_of(&all))
        return;
    verdict_add(context, &(Verdict){.id = VERDICT_PAGE_CACHE,
                                    .metric = "file",
                                    .rate = MAX(file.slope, 0.0),
                                    .confidence = 0.9 * confidence_of(&file),
                                    .exhausts_in = INFINITY,
                                    .evidence = WORDS(context, VERDICT_PAGE_CACHE_GROUP_GREW,
                                                      BYTES(all.until), SIZE_TEXT(limit), GROWTH(&file))});
}
