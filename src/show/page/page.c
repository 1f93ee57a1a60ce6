/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "page.h"
#include "text.h"

/* Where the data go, and what the page may connect to: an offline page to nothing. */
#define PLACE         "@SHMGUARD_DATA@"
#define CONNECT_PLACE "@SHMGUARD_CONNECT@"
#define CONNECT_NONE  "'none'"
#define CONNECT_SELF  "'self'"

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

typedef struct PageParts {
    Text head;   /* up to what it may connect to */
    Text middle; /* up to the data */
    Text tail;
} PageParts;

static bool page_split(PageParts *ret)
{
    Text page = {page_template, page_template_size};
    if (page_template_size == 0 || !text_after(page, CONNECT_PLACE, &ret->middle) ||
        !text_after(ret->middle, PLACE, &ret->tail))
        return false;
    ret->head = (Text){page.data, page.size - ret->middle.size - strlen(CONNECT_PLACE)};
    ret->middle.size -= ret->tail.size + strlen(PLACE);
    return true;
}

static void part_write(FILE *out, Text part)
{
    fwrite(part.data, 1, part.size, out);
}

/* Those of late ranks first, then in the order given. */
static size_t recordings_choose(const FleetView *fleet, size_t shown[static PAGE_RECORDINGS_MOST])
{
    size_t n = 0;
    for (int late = 1; late >= 0; late--)
        for (size_t i = 0; i < fleet->n_ranks + fleet->n_sources && n < PAGE_RECORDINGS_MOST; i++) {
            bool of_rank = i < fleet->n_ranks;
            size_t source = of_rank ? fleet->ranks[i].source : i - fleet->n_ranks;
            bool wanted = of_rank ? fleet->ranks[i].late == late : late == 0;
            size_t before = 0;
            while (before < n && shown[before] != source)
                before++;
            if (wanted && before == n)
                shown[n++] = source;
        }
    return n;
}

/* One recording: its data. Several: {"fleet": …, "recordings": […]}. */
static int fleet_data(const FleetView *fleet, size_t most_bytes, Buffer *out)
{
    if (fleet->n_sources == 1 && fleet->n_ranks < 2)
        return data_fit(fleet->sources[0].report, most_bytes, out);
    size_t shown[PAGE_RECORDINGS_MOST];
    size_t n = recordings_choose(fleet, shown);
    int r = buffer_append_text(out, "{\"fleet\":");
    if (r >= 0)
        r = page_fleet(fleet, shown, n, out);
    if (r >= 0)
        r = buffer_append_text(out, ",\"recordings\":[");
    size_t room = most_bytes > out->size ? most_bytes - out->size : 0;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        _cleanup_buffer_ Buffer data = {0};
        r = data_fit(fleet->sources[shown[i]].report, room / n, &data);
        if (r >= 0 && i > 0)
            r = buffer_append_text(out, ",");
        if (r >= 0)
            r = buffer_append(out, buffer_text(&data), data.size);
    }
    return r < 0 ? r : buffer_append_text(out, "]}");
}

int page_write(FILE *out, const FleetView *fleet)
{
    PageParts parts;
    if (!page_split(&parts))
        return -ENOSYS;
    _cleanup_buffer_ Buffer data = {0};
    int r = fleet_data(fleet, PAGE_MOST_BYTES - page_template_size, &data);
    if (r < 0)
        return r;
    part_write(out, parts.head);
    fputs(CONNECT_NONE, out);
    part_write(out, parts.middle);
    fwrite(buffer_text(&data), 1, data.size, out);
    part_write(out, parts.tail);
    return 0;
}

int page_live(Buffer *out)
{
    PageParts parts;
    if (!page_split(&parts))
        return -ENOSYS;
    const Text all[] = {parts.head, TEXT(CONNECT_SELF), parts.middle, TEXT("null"), parts.tail};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        if (buffer_append(out, all[i].data, all[i].size) < 0)
            return -ENOMEM;
    return 0;
}

int page_live_history(const ReportView *view, double keep_seconds, Buffer *out)
{
    _cleanup_buffer_ Buffer data = {0};
    int r = data_fit(view, PAGE_MOST_BYTES, &data);
    if (r >= 0)
        r = buffer_printf(out, "{\"keep\":%.0f,\"data\":", keep_seconds);
    if (r >= 0)
        r = buffer_append(out, buffer_text(&data), data.size);
    return r < 0 ? r : buffer_append_text(out, "}");
}
