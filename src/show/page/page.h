/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page: one HTML file with everything in it, including the recording. Its source is in web/; the result
 * of building that is linked into the program (page_template), and is empty where it could not be built.
 */
#pragma once

#include <stdio.h>

#include "report-view.h"

enum {
    PAGE_MOST_BYTES = 1900 << 10, /* of the whole page */
    PAGE_POINTS_MOST = 4000,      /* per series */
    PAGE_PROCESSES_MOST = 400,    /* the most important ones; the sums include all */
};

extern const char page_template[];
extern const size_t page_template_size; /* 0: the program was built without it */

/* 0, -ENOMEM, or -ENOSYS without a template. Errors of the stream are left to ferror. */
int page_write(FILE *out, const ReportView *view);

/* The data of the page as JSON without "<", so that it can stand in a script element. At most points_most
 * points per series. 0 or -ENOMEM. */
int page_data(const ReportView *view, size_t points_most, Buffer *out);
