/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "page.h"
#include "text.h"

/* Where the data go. */
#define PLACE "@SHMGUARD_DATA@"

/* The densest data that fit; data that are too large are thinned in proportion. */
static int data_fit(const ReportView *view, size_t most_bytes, Buffer *ret)
{
    size_t points = PAGE_POINTS_MOST;
    for (;;) {
        buffer_clear(ret);
        int r = page_data(view, points, ret);
        if (r < 0 || ret->size <= most_bytes || points <= 2)
            return r;
        points = MAX((size_t)((double)points * 0.95 * (double)most_bytes / (double)ret->size), (size_t)2);
    }
}

int page_write(FILE *out, const ReportView *view)
{
    Text page = {page_template, page_template_size};
    Text rest;
    if (page_template_size == 0 || !text_after(page, PLACE, &rest))
        return -ENOSYS;
    _cleanup_buffer_ Buffer data = {0};
    int r = data_fit(view, PAGE_MOST_BYTES - page.size, &data);
    if (r < 0)
        return r;
    fwrite(page.data, 1, page.size - rest.size - strlen(PLACE), out);
    fwrite(buffer_text(&data), 1, data.size, out);
    fwrite(rest.data, 1, rest.size, out);
    return 0;
}
