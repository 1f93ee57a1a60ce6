/* SPDX-License-Identifier: Apache-2.0 */
/* What `report` shows of a recording: its history, the verdicts, and what is reckoned from them for text,
 * JSON and the page alike. */
#pragma once

#include "verdicts.h"

/* Over all processes at one time. What a process was not asked for in that moment counts as when it was asked
 * last. */
typedef enum SumMetric {
    SUM_ANON, /* as the next two: pages that several processes have count once for each of them */
    SUM_FILE,
    SUM_SHMEM,
    SUM_RSS, /* the three together */
    SUM_PSS, /* shared pages count once; an estimate, since PSS is looked at in turns */
    SUM_FDS,
    SUM_PROCESSES,
    SUM_METRICS,
} SumMetric;

typedef struct TrackView {
    const ProcessTrack *track;
    uint64_t peaks[PROCESS_METRICS];
    uint64_t rss_peak;
} TrackView;

typedef struct ReportView {
    const char *path; /* of the recording */
    const History *history;
    const Verdicts *verdicts;
    EventList events;        /* the history's, with the epochs among them */
    double seconds;          /* from the first look to the last */
    const TrackView *tracks; /* as history->tracks */
    Series sums;             /* of SUM_METRICS, at the times of history->series */
    uint64_t sum_peaks[SUM_METRICS];
    uint64_t job_peaks[JOB_METRICS];
    uint64_t memory_least; /* of JOB_MEMORY_AVAILABLE */
    uint64_t oom_kills;    /* while it was recorded */
} ReportView;

/* ret lives in arena and points to what it is made from. -ENOMEM. */
int report_view_make(const char *path, const History *history, const Verdicts *verdicts, Arena *arena,
                     ReportView *ret);

/* Its anonymous, file and shared pages together, in sample i of its series; unknown when one of them is. */
uint64_t track_rss(const ProcessTrack *track, size_t i);

/* Whether something grows, and its rate is known. */
bool verdict_grows(const Verdict *verdict);

/* "12.3 MiB/min", "4.0 descriptors/h": in the unit of time that makes it readable. 0 or -ENOMEM. */
int verdict_rate_words(const Verdict *verdict, Buffer *out);
