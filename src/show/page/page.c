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

int page_write(FILE *out, const ReportView *view)
{
    _cleanup_buffer_ Buffer page = {0};
    _cleanup_buffer_ Buffer data = {0};
    size_t room = PAGE_MOST_BYTES - MIN(page_template_size + PAGE_TEXTS_BYTES, (size_t)PAGE_MOST_BYTES / 2);
    int r = page_template_size == 0 ? -ENOSYS : data_fit(view, room, &data);
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
