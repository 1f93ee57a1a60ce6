/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last sample as metrics, in OpenMetrics or in Prometheus' older text format, without timestamps.
 *
 * The number of time series is bounded: only the largest processes have series of their own (pid), the rest
 * is summed up by role, as pid="rest". A job is named as its launcher names it, or else by its trainer's pid.
 */
#pragma once

#include "sampler-thread.h"

typedef enum MetricsFormat {
    METRICS_OPENMETRICS,
    METRICS_PROMETHEUS,
} MetricsFormat;

enum { METRICS_PROCESSES_MOST = 1000 };

/* The processes that were listed last. They stay listed until others are clearly larger, so that processes of
 * one size do not take turns in having series. {0}: none. */
typedef struct MetricsChoice {
    int pids[METRICS_PROCESSES_MOST];
    size_t n;
} MetricsChoice;

typedef struct MetricsView {
    const History *history; /* its last moment counts */
    const Survey *segments; /* as SampleResult has it; NULL: not looked at yet */
    uint64_t orphan_bytes;  /* U64_UNKNOWN, like all that follow */
    uint64_t orphans;
    const GuardedRun *runs;
    size_t n_runs;
    GuardTotals totals;
    const JobFacts *facts;
    size_t n_facts;
    const char *node;
    size_t processes_most; /* with series of their own */
    uint64_t streams;
    double own_cpu_seconds;
    uint64_t own_bytes;
} MetricsView;

/* Appends to out. -ENOMEM. */
int metrics_write(const MetricsView *view, MetricsFormat format, MetricsChoice *choice, Buffer *out);

typedef struct Metric {
    const char *name;   /* "shmguard_oom_kills_total" */
    const char *unit;   /* of OpenMetrics; "" */
    const char *labels; /* "kind, backing"; "" */
    const char *help;
    bool counter; /* otherwise a gauge */
} Metric;

/* NULL behind the last. */
const Metric *metric_at(size_t i);
