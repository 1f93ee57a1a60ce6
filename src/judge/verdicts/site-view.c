/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "site-view.h"
#include "sites-text.h"
#include "units.h"

/*
 * A line must explain LINE_SHARE of the growth to be named, and MAIN_SHARE of it in all, or the answer says
 * that more is hidden. ATTRIBUTE_BYTES: per minute. NAMED_MOST: lines of each kind that are named.
 * REPLACES_SHARE: lines that together keep so many times the growth replace memory that was freed.
 */
#define LINE_SHARE      0.05
#define MAIN_SHARE      0.5
#define ATTRIBUTE_BYTES 16384.0
#define REPLACES_SHARE  1.3

/* Of a verdict that is reached after some minutes: it outweighs what one window has seen. */
#define STEADY_CONFIDENCE 0.8
enum { NAMED_MOST = 6 };

/* Windows of one stage in processes of one role: what they found adds up. */
typedef struct SiteGroup {
    SiteStage stage;
    bool of_workers;
    bool deep;      /* only windows in which the callers were known */
    double seconds; /* of its windows that grow */
    double growth;
} SiteGroup;

static bool is_in_group(const SiteGroup *group, const SiteWindow *window)
{
    return window->stage == group->stage && (window->worker >= 0) == group->of_workers &&
           (!group->deep || window->deep) && site_window_grows(window);
}

static SiteGroup group_of(SiteWindows windows, SiteStage stage, bool of_workers)
{
    SiteGroup group = {.stage = stage, .of_workers = of_workers};
    for (size_t i = 0; i < windows.n; i++)
        group.deep |= windows.items[i].deep && is_in_group(&group, &windows.items[i]);
    for (size_t i = 0; i < windows.n; i++)
        if (is_in_group(&group, &windows.items[i])) {
            group.seconds += windows.items[i].duration;
            group.growth += (double)MAX(windows.items[i].growth, 0);
        }
    return group;
}

static bool is_same_site(const Site *a, const Site *b)
{
    return a->kind == b->kind && a->line == b->line && strcmp(a->file, b->file) == 0 &&
           strcmp(a->what, b->what) == 0;
}

/* The same site in all windows of the group. */
static LeakSite site_sum(SiteWindows windows, const SiteGroup *group, const Site *site)
{
    LeakSite sum = {.kind = site->kind,
                    .stage = group->stage,
                    .file = site->file,
                    .line = site->line,
                    .what = site->what,
                    .worker = -1};
    double bytes = 0;
    double count = 0;
    double most = -1;
    for (size_t i = 0; i < windows.n; i++) {
        const SiteWindow *window = &windows.items[i];
        if (!is_in_group(group, window))
            continue;
        for (size_t k = 0; k < window->n_sites; k++) {
            const Site *found = &window->sites[k];
            if (!is_same_site(found, site) || !site_goes_on(found))
                continue;
            bytes += (double)found->bytes;
            count += (double)found->count;
            if ((double)found->bytes <= most)
                continue;
            most = (double)found->bytes;
            sum.pid = window->pid;
            sum.worker = window->worker;
        }
    }
    for (size_t i = 0; i < windows.n; i++)
        if (is_in_group(group, &windows.items[i]) && windows.items[i].pid == sum.pid)
            sum.seconds += windows.items[i].duration;
    sum.bytes_per_minute = bytes / group->seconds * 60;
    sum.count_per_minute = count / group->seconds * 60;
    sum.samples = site->kind == SITE_NATIVE ? count : 0;
    sum.share = group->growth > 0 ? bytes / group->growth : 0;
    return sum;
}

static bool is_line(SiteKind kind)
{
    return kind == SITE_PYTHON || kind == SITE_NATIVE;
}

static bool is_worth_naming(const LeakSite *site, const SiteGroup *group)
{
    if (is_line(site->kind))
        return site->share >= LINE_SHARE || (group->growth <= 0 && site->bytes_per_minute > 0);
    return site->kind == SITE_TYPE || site->bytes_per_minute >= ATTRIBUTE_BYTES;
}

/* numpy reports to tracemalloc what it takes from the C library. */
static bool is_named(const SiteView *view, const LeakSite *site)
{
    for (size_t i = 0; i < view->n; i++) {
        const LeakSite *other = &view->items[i];
        bool same = other->line == site->line && strcmp(other->file, site->file) == 0;
        if (same && (is_line(site->kind) ? is_line(other->kind)
                                         : other->kind == site->kind && strcmp(other->what, site->what) == 0))
            return true;
    }
    return false;
}

static int group_add(SiteWindows windows, const SiteGroup *group, Arena *arena, SiteView *view)
{
    for (size_t i = 0; i < windows.n; i++) {
        const SiteWindow *window = &windows.items[i];
        if (!is_in_group(group, window))
            continue;
        for (size_t k = 0; k < window->n_sites; k++) {
            LeakSite site = site_sum(windows, group, &window->sites[k]);
            if (site.pid == 0 || !is_worth_naming(&site, group) || is_named(view, &site))
                continue;
            LeakSite *slot = ARENA_PUSH(arena, view->items, view->n, view->capacity);
            if (!slot)
                return -ENOMEM;
            *slot = site;
        }
    }
    return 0;
}

/* Of the lines from `first` on, which are one group's. */
static void shares_limit(SiteView *view, size_t first)
{
    double all = 0;
    for (size_t i = first; i < view->n; i++)
        all += is_line(view->items[i].kind) ? view->items[i].share : 0;
    for (size_t i = first; i < view->n; i++) {
        LeakSite *site = &view->items[i];
        site->replaces = is_line(site->kind) && all > REPLACES_SHARE;
        site->share = MIN(site->share, 1.0);
        view->replaces |= site->replaces;
    }
}

static int site_order(const void *a, const void *b)
{
    const LeakSite *left = a;
    const LeakSite *right = b;
    int rank_left = is_line(left->kind) ? 0 : left->kind == SITE_ATTRIBUTE ? 1 : 2;
    int rank_right = is_line(right->kind) ? 0 : right->kind == SITE_ATTRIBUTE ? 1 : 2;
    if (rank_left != rank_right)
        return rank_left - rank_right;
    double of_left = left->kind == SITE_TYPE ? left->count_per_minute : left->bytes_per_minute;
    double of_right = left->kind == SITE_TYPE ? right->count_per_minute : right->bytes_per_minute;
    return (of_left < of_right) - (of_left > of_right);
}

/* --- Words -------------------------------------------------------------------------------------------- */

static size_t tail_start(const char *path, size_t n)
{
    while (n > 0 && path[n - 1] != '/')
        n--;
    return n;
}

/* The end of the path that says which of these files it is; a name that many files have is not enough. */
static const char *file_shown(const SiteView *view, const char *file)
{
    size_t start = tail_start(file, strlen(file));
    for (bool alone = false; !alone && start > 0;) {
        alone = strcmp(file + start, "__init__.py") != 0 && strcmp(file + start, "__main__.py") != 0;
        for (size_t i = 0; alone && i < view->n; i++) {
            const char *other = view->items[i].file;
            size_t n = strlen(other);
            size_t tail = strlen(file + start);
            alone = strcmp(other, file) == 0 || n < tail || strcmp(other + n - tail, file + start) != 0 ||
                    (n > tail && other[n - tail - 1] != '/');
        }
        if (!alone)
            start = tail_start(file, start - 1);
    }
    return file + start;
}

static const char *words_of(const SiteView *view, const LeakSite *site, Arena *arena)
{
    const char *file = file_shown(view, site->file);
    char who[32];
    char count[32];
    if (site->worker < 0)
        snprintf(who, sizeof who, "%s", SITES_TRAINER);
    else
        snprintf(who, sizeof who, SITES_WORKER, site->worker);
    snprintf(count, sizeof count, "%.0f", site->count_per_minute);
    const char *rate = SIZE_TEXT((uint64_t)MIN(site->bytes_per_minute, 0x1p62));
    const char *over = DURATION_TEXT(site->seconds);
    bool few = site->kind == SITE_NATIVE && site->samples < SITE_SAMPLES_LEAST;
    const char *about = few ? SITES_ABOUT : "";
    const char *end =
        few || site->replaces ? SITES_NO_SHARE : arena_printf(arena, SITES_SHARE, site->share * 100);
    if (!end)
        return NULL;
    switch (site->kind) {
    case SITE_ATTRIBUTE:
        return arena_printf(arena, SITES_ATTRIBUTE, site->what, count, rate, who, over);
    case SITE_TYPE:
        return arena_printf(arena, SITES_TYPE, site->what, count, who, over);
    case SITE_NATIVE:
        return site->file[0] ? arena_printf(arena, SITES_NATIVE, file, site->line, site->what, about, rate,
                                            who, over, end)
                             : arena_printf(arena, SITES_NATIVE_UNKNOWN, about, rate, who, over, end);
    case SITE_PYTHON:
    case SITE_KINDS:
        break;
    }
    return site->what[0] ? arena_printf(arena, SITES_LINE, file, site->line, site->what, rate, who, over, end)
                         : arena_printf(arena, SITES_LINE_NAMELESS, file, site->line, rate, who, over, end);
}

static int note(SiteView *view, Arena *arena, const char *words)
{
    const char **slot = words ? ARENA_PUSH(arena, view->notes, view->n_notes, view->notes_capacity) : NULL;
    if (!slot)
        return -ENOMEM;
    *slot = words;
    return 0;
}

static bool has_verdict(const Verdicts *verdicts, VerdictId id)
{
    for (size_t i = 0; verdicts && i < verdicts->n; i++)
        if (verdicts->items[i].id == id)
            return true;
    return false;
}

static int notes_of_verdicts(SiteView *view, const Verdicts *verdicts, Arena *arena)
{
    static const struct {
        VerdictId id;
        const char *words;
    } without_line[] = {
        {VERDICT_COPY_ON_WRITE, SITES_NOT_COPY_ON_WRITE},
        {VERDICT_BACKLOG, SITES_NOT_BACKLOG},
        {VERDICT_PAGE_CACHE, SITES_NOT_PAGE_CACHE},
    };
    int r = 0;
    for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(without_line); i++)
        if (has_verdict(verdicts, without_line[i].id))
            r = note(view, arena, _(without_line[i].words));
    return r;
}

/* Which process was traced longest. */
static int note_of_cost(SiteView *view, SiteWindows windows, Arena *arena)
{
    const SiteWindow *most = NULL;
    for (size_t i = 0; i < windows.n; i++)
        if (windows.items[i].stage == SITE_STAGE_PYTHON &&
            (!most || windows.items[i].duration > most->duration))
            most = &windows.items[i];
    if (!most)
        return 0;
    char who[32];
    if (most->worker < 0)
        snprintf(who, sizeof who, "%s", SITES_TRAINER);
    else
        snprintf(who, sizeof who, SITES_WORKER, most->worker);
    return note(view, arena, arena_printf(arena, SITES_TRACED, who, DURATION_TEXT(most->duration)));
}

static int notes_make(SiteView *view, SiteWindows windows, const Verdicts *verdicts, bool grows, Arena *arena)
{
    const char *rate = SIZE_TEXT((uint64_t)MIN(view->growth_per_minute, 0x1p62));
    size_t lines = 0;
    while (lines < view->n && is_line(view->items[lines].kind))
        lines++;
    bool little = lines > 0 && view->growth_per_minute > 0 && view->explained < MAIN_SHARE;
    int r = 0;
    if (!grows)
        r = note(view, arena, SITES_STEADY);
    else if (lines == 0)
        r = note(view, arena, arena_printf(arena, SITES_NO_LINE, rate));
    else if (little)
        r = note(view, arena, arena_printf(arena, SITES_LITTLE, view->explained * 100));
    if (r >= 0 && view->replaces)
        r = note(view, arena, SITES_REPLACED);
    if (r >= 0 && grows && (lines == 0 || little))
        r = note(view, arena, windows.unguarded ? SITES_TRY_GUARD : SITES_TRY);
    if (r >= 0)
        r = notes_of_verdicts(view, verdicts, arena);
    return r < 0 || !grows ? r : note_of_cost(view, windows, arena);
}

/* Of each kind, the first few. */
static void named_limit(SiteView *view)
{
    size_t kept = 0;
    size_t counts[SITE_KINDS] = {0};
    for (size_t i = 0; i < view->n; i++)
        if (counts[view->items[i].kind]++ < NAMED_MOST)
            view->items[kept++] = view->items[i];
    view->n = kept;
}

int site_view_make(SiteWindows windows, const Verdicts *verdicts, Arena *arena, SiteView *ret)
{
    static const SiteStage stages[] = {SITE_STAGE_PYTHON, SITE_STAGE_NATIVE, SITE_STAGE_CENSUS};
    SiteView view = {.sought = windows.n > 0};
    /* What a minute of windows has seen, hours have not. */
    bool steady = verdicts && verdicts->items[0].id == VERDICT_STEADY &&
                  verdicts->items[0].confidence >= STEADY_CONFIDENCE;
    bool grows = false;
    for (size_t i = 0; !steady && i < ARRAY_SIZE(stages); i++)
        for (int of_workers = 0; of_workers < 2; of_workers++) {
            SiteGroup group = group_of(windows, stages[i], of_workers != 0);
            if (group.seconds <= 0)
                continue;
            grows = true;
            view.growth_per_minute = MAX(view.growth_per_minute, group.growth / group.seconds * 60);
            size_t first = view.n;
            if (group_add(windows, &group, arena, &view) < 0)
                return -ENOMEM;
            shares_limit(&view, first);
        }
    if (view.n > 1)
        qsort(view.items, view.n, sizeof *view.items, site_order);
    double explained[2] = {0};
    for (size_t i = 0; i < view.n; i++)
        if (is_line(view.items[i].kind))
            explained[view.items[i].worker >= 0] += view.items[i].share;
    view.explained = MIN(MAX(explained[0], explained[1]), 1.0);
    named_limit(&view);
    for (size_t i = 0; i < view.n; i++) {
        view.items[i].words = words_of(&view, &view.items[i], arena);
        if (!view.items[i].words)
            return -ENOMEM;
    }
    if (view.sought && notes_make(&view, windows, verdicts, grows, arena) < 0)
        return -ENOMEM;
    *ret = view;
    return 0;
}
