/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page: one HTML file with everything in it, the recording included. Its source is web/; what that builds
 * is linked into the program (page_template), or is empty where it could not be built.
 */
#pragma once

#include <stdio.h>

#include "report-view.h"

enum {
    PAGE_MOST_BYTES = 1900 << 10, /* with everything in it */
    PAGE_POINTS_MOST = 4000,      /* of a series */
    PAGE_PROCESSES_MOST = 400,    /* those that matter most; the sums have all */
};

extern const char page_template[];
extern const size_t page_template_size; /* 0: the program was built without it */

/* 0, -ENOMEM, or -ENOSYS without a template. Errors of the stream are the stream's. */
int page_write(FILE *out, const ReportView *view);

/* What the page draws, as JSON that can stand in a script element: it has no "<". At most points_most points
 * a series. 0 or -ENOMEM. */
int page_data(const ReportView *view, size_t points_most, Buffer *out);
