/* SPDX-License-Identifier: Apache-2.0 */
/* What `report` shows of a recording: its history, the verdicts, and what is computed from them for text,
 * JSON and the page. */
#pragma once

#include "site-view.h"

/* Sums over all processes at one time. A figure that was not sampled at that time counts with its last known
 * value. */
typedef enum SumMetric {
    SUM_ANON, /* here and in SUM_FILE and SUM_SHMEM, a page of several processes counts once for each of them
               */
    SUM_FILE,
    SUM_SHMEM,
    SUM_RSS, /* SUM_ANON, SUM_FILE and SUM_SHMEM together */
    SUM_PSS, /* shared pages count once; an estimate, because processes take turns in being sampled for PSS */
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
    EventList events; /* the history's, with the epochs among them */
    SiteView sites;
    double seconds;          /* from the first sample to the last */
    const TrackView *tracks; /* in the order of history->tracks */
    Series sums;             /* of SUM_METRICS, at the times of history->series */
    uint64_t sum_peaks[SUM_METRICS];
    uint64_t job_peaks[JOB_METRICS];
    uint64_t memory_least; /* the minimum of JOB_MEMORY_AVAILABLE */
    uint64_t oom_kills;    /* during the recording */
} ReportView;

/* ret lives in arena and points to its sources. -ENOMEM. */
int report_view_make(const char *path, const History *history, const Verdicts *verdicts, Arena *arena,
                     ReportView *ret);

/* The anonymous, file and shared pages together, in sample i; U64_UNKNOWN when one of them is unknown. */
uint64_t track_rss(const ProcessTrack *track, size_t i);

/* Whether something grows, and its rate is known. */
bool verdict_grows(const Verdict *verdict);

/* "12.3 MiB/min", "4.0 descriptors/h": in the unit of time that makes it readable. 0 or -ENOMEM. */
int verdict_rate_words(const Verdict *verdict, Buffer *out);
