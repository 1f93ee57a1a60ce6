/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "language.h"
#include "page.h"
#include "text.h"

/* What the program fills in, in the order of the page. An offline page may connect to nothing. */
typedef enum PagePlace {
    PLACE_LANGUAGE,
    PLACE_CONNECT,
    PLACE_TEXTS,
    PLACE_DATA,
    PAGE_PLACES,
} PagePlace;

#define CONNECT_NONE "'none'"
#define CONNECT_SELF "'self'"

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

/* The page with these values at its places. */
static int page_fill(const Text values[static PAGE_PLACES], Buffer *out)
{
    static const char *const places[PAGE_PLACES] = {
        [PLACE_LANGUAGE] = "@SHMGUARD_LANGUAGE@",
        [PLACE_CONNECT] = "@SHMGUARD_CONNECT@",
        [PLACE_TEXTS] = "@SHMGUARD_TEXTS@",
        [PLACE_DATA] = "@SHMGUARD_DATA@",
    };
    Text rest = {page_template, page_template_size};
    int r = page_template_size == 0 ? -ENOSYS : 0;
    for (size_t i = 0; r >= 0 && i < PAGE_PLACES; i++) {
        Text after;
        if (!text_after(rest, places[i], &after))
            return -ENOSYS;
        r = buffer_append(out, rest.data, rest.size - after.size - strlen(places[i]));
        if (r >= 0)
            r = buffer_append(out, values[i].data, values[i].size);
        rest = after;
    }
    return r < 0 ? r : buffer_append(out, rest.data, rest.size);
}

static int page_make(const char *connect, Text data, Buffer *out)
{
    _cleanup_buffer_ Buffer texts = {0};
    int r = page_texts(&texts);
    return r < 0
               ? r
               : page_fill((const Text[PAGE_PLACES]){[PLACE_LANGUAGE] = text_of(language_tag(language_now())),
                                                     [PLACE_CONNECT] = text_of(connect),
                                                     [PLACE_TEXTS] = {buffer_text(&texts), texts.size},
                                                     [PLACE_DATA] = data},
                           out);
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
    _cleanup_buffer_ Buffer page = {0};
    _cleanup_buffer_ Buffer data = {0};
    size_t room = PAGE_MOST_BYTES - MIN(page_template_size + PAGE_TEXTS_BYTES, (size_t)PAGE_MOST_BYTES / 2);
    int r = page_template_size == 0 ? -ENOSYS : fleet_data(fleet, room, &data);
    if (r >= 0)
        r = page_make(CONNECT_NONE, (Text){buffer_text(&data), data.size}, &page);
    if (r >= 0)
        fwrite(page.data, 1, page.size, out);
    return r;
}

int page_live(Buffer *out)
{
    return page_make(CONNECT_SELF, TEXT("null"), out);
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
