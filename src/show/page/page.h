/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page: one HTML file with everything in it, including the recording. Its source is in web/; the result
 * of building that is linked into the program (page_template), and is empty where it could not be built.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "fleet.h"

enum {
    PAGE_MOST_BYTES = 1900 << 10, /* of the whole page */
    PAGE_POINTS_MOST = 4000,      /* per series */
    PAGE_RECORDINGS_MOST = 24,    /* those with late ranks first; the rows of all ranks are there */
    PAGE_PROCESSES_MOST = 400,    /* the most important ones; the sums include all */
};

extern const char page_template[];
extern const size_t page_template_size; /* 0: the program was built without it */
extern const char page_policy[];        /* Content-Security-Policy, as a header, of the live page */

/* Of several recordings, the page shows one at a time below what they say together. 0, -ENOMEM, or -ENOSYS
 * without a template. Errors of the stream are left to ferror. */
int page_write(FILE *out, const FleetView *fleet);

/* The page without data: it shows what a stream of events sends it (page_live_history, then
 * page_live_sample after each sample). Appends to out. 0, -ENOMEM, or -ENOSYS without a template. */
int page_live(Buffer *out);

/* All that is known so far. keep_seconds: how much of the past the page shows. 0 or -ENOMEM. */
int page_live_history(const ReportView *view, double keep_seconds, Buffer *out);

/* The newest moment, which the history has; with the verdicts if they were judged again. 0 or -ENOMEM. */
int page_live_sample(const History *history, const Moment *moment, const ReportView *judged, Buffer *out);

/* The data of the page as JSON without "<", so that it can stand in a script element. At most points_most
 * points per series. 0 or -ENOMEM. */
int page_data(const ReportView *view, size_t points_most, Buffer *out);

/* The ranks and nodes of all recordings, as page_data. `shown`: the recordings that the page has. */
int page_fleet(const FleetView *fleet, const size_t *shown, size_t n_shown, Buffer *out);

/* What the page has of a job besides the kinds of its segments; all in bytes. */
enum { PAGE_JOB_METRICS = 9 };
extern const JobMetric page_job_metrics[PAGE_JOB_METRICS];

/* A command as the page shows it: escaped, and shortened in the middle. */
json_t *page_command(const char *command);
