/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "macro.h"
#include "sites.h"

/*
 * GROWTH_BYTES, GROWTH_FDS: below this, a window is noise of the allocator. GOES_ON: of what grew in a
 * window, at least a quarter must have come in its second half: a cache that fills has come to an end by
 * then, or is followed by a longer window. Of fewer than SITE_SAMPLES_LEAST samples it is chance how many are
 * in the second half (of 7 that could be in both, at most one is there in 6 of 100 cases): then one is
 * enough.
 */
enum { GROWTH_BYTES = 1 << 20, GROWTH_FDS = 12, GOES_ON = 4 };

/* No window and no process is larger; sums of them fit in an int64_t. */
#define BYTES_MOST (INT64_C(1) << 48)
#define MSEC_MOST  (UINT64_C(1) << 32)

static const char *const kind_names[SITE_KINDS] = {"attribute", "type", "python", "native"};

const char *site_kind_name(SiteKind kind)
{
    return kind_names[kind];
}

static bool field_u64(Text *rest, uint64_t most, uint64_t *ret)
{
    Text field;
    uint64_t value = 0;
    if (!text_until(rest, '\t', &field) || text_u64(field, 10, &value) < 0 || value > most)
        return false;
    *ret = value;
    return true;
}

/* "?" gives `unknown`. */
static bool field_i64(Text *rest, int64_t unknown, int64_t *ret)
{
    Text field;
    uint64_t value = 0;
    if (!text_until(rest, '\t', &field))
        return false;
    if (text_equal(field, "?")) {
        *ret = unknown;
        return true;
    }
    bool negative = text_starts(field, "-");
    if (text_u64(text_skip(field, negative), 10, &value) < 0 || value > (uint64_t)BYTES_MOST)
        return false;
    *ret = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static bool is_continued(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Valid UTF-8 that fits, without a partial character. What is too long loses its end, or its beginning. */
static int field_text(Text *rest, bool keep_end, char *ret, size_t size)
{
    Text field;
    _cleanup_buffer_ Buffer text = {0};
    if (!text_until(rest, '\t', &field))
        field = TEXT("");
    int r = text_escape_prose(field, &text);
    if (r < 0)
        return r;
    size_t n = MIN(text.size, size - 1);
    size_t start = keep_end ? text.size - n : 0;
    for (; start > 0 && n > 0 && is_continued(text.data[start]); start++)
        n--;
    while (start == 0 && n > 0 && n < text.size && is_continued(text.data[n]))
        n--;
    memcpy(ret, buffer_text(&text) + start, n);
    ret[n] = '\0';
    return 0;
}

static int site_parse(Text rest, Site *ret)
{
    Text name;
    Site site = {.kind = SITE_KINDS};
    uint64_t line = 0;
    int64_t late = 0;
    if (!text_until(&rest, '\t', &name))
        return -EBADMSG;
    for (SiteKind kind = 0; kind < SITE_KINDS; kind++)
        if (text_equal(name, kind_names[kind]))
            site.kind = kind;
    if (site.kind == SITE_KINDS || !field_u64(&rest, UINT32_MAX, &line) ||
        !field_u64(&rest, (uint64_t)BYTES_MOST, &site.bytes) || !field_i64(&rest, -1, &late) ||
        !field_u64(&rest, (uint64_t)BYTES_MOST, &site.count))
        return -EBADMSG;
    site.line = (uint32_t)line;
    site.late_bytes = late < 0 ? U64_UNKNOWN : (uint64_t)late;
    int r = field_text(&rest, true, site.file, sizeof site.file);
    if (r >= 0)
        r = field_text(&rest, false, site.what, sizeof site.what);
    *ret = site;
    return r;
}

enum { WIRE_DEEP = 3 }; /* as the numbers of python/where.py */

static SiteStage stage_of(uint64_t wire)
{
    static const SiteStage stages[] = {SITE_STAGES_END, SITE_STAGE_CENSUS, SITE_STAGE_PYTHON,
                                       SITE_STAGE_PYTHON, SITE_STAGE_NATIVE};
    return wire < ARRAY_SIZE(stages) ? stages[wire] : SITE_STAGES_END;
}

static bool head_parse(Text rest, SiteWindow *ret)
{
    uint64_t stage = 0;
    int64_t worker = 0;
    uint64_t msec = 0;
    uint64_t cost = 0;
    SiteWindow window = {0};
    if (!field_u64(&rest, UINT8_MAX, &stage) || !field_i64(&rest, -1, &worker) ||
        !field_u64(&rest, MSEC_MOST, &msec) || !field_i64(&rest, 0, &window.growth) ||
        !field_i64(&rest, INT64_MIN, &window.late_growth) || !field_i64(&rest, 0, &window.descriptors) ||
        !field_u64(&rest, MSEC_MOST, &cost) || worker < -1 || worker > INT32_MAX || msec == 0)
        return false;
    window.stage = stage_of(stage);
    window.deep = stage == WIRE_DEEP;
    window.worker = (int)worker;
    window.duration = (double)msec / 1000;
    window.cost_seconds = (double)cost / 1000;
    if (window.stage == SITE_STAGES_END)
        return false;
    *ret = window;
    return true;
}

int site_window_parse(Text text, SiteWindow *ret)
{
    Text line;
    Text word;
    if (!text_line(&text, &line) || !text_until(&line, '\t', &word) || !text_equal(word, "window") ||
        !head_parse(line, ret))
        return -EBADMSG;
    while (text_line(&text, &line) && ret->n_sites < SITES_MOST) {
        if (!text_until(&line, '\t', &word) || !text_equal(word, "site"))
            return -EBADMSG;
        int r = site_parse(line, &ret->sites[ret->n_sites]);
        if (r < 0)
            return r;
        ret->n_sites++;
    }
    return 0;
}

bool site_window_grows(const SiteWindow *window)
{
    bool goes_on = window->late_growth == INT64_MIN || window->late_growth >= window->growth / GOES_ON;
    return (window->growth >= GROWTH_BYTES && goes_on) || window->descriptors >= GROWTH_FDS;
}

bool site_goes_on(const Site *site)
{
    bool few = site->kind == SITE_NATIVE && site->count < SITE_SAMPLES_LEAST;
    return site->late_bytes == U64_UNKNOWN ||
           (few ? site->late_bytes > 0 : site->late_bytes >= site->bytes / GOES_ON);
}

bool site_is_library(const Site *site)
{
    static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib/python3", "<"};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (strstr(site->file, parts[i]))
            return true;
    return site->file[0] == '\0';
}

uint64_t site_window_explained(const SiteWindow *window)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < window->n_sites; i++) {
        const Site *site = &window->sites[i];
        if ((site->kind == SITE_PYTHON || site->kind == SITE_NATIVE) && site_goes_on(site))
            bytes += site->bytes;
    }
    return bytes;
}
