/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "macro.h"
#include "where.h"

/*
 * HALF_LEAST, HALF_MOST: half a window. A leak that fills memory within the hour shows in a short one; slower
 * ones need longer. REPORTS: how long after the end of a window processes may still say what they found: each
 * does when it next waits for a batch. FIRST: workers and the first batches come before the first census.
 * EXPLAINED: a stage that explains this share of the growth is the last one.
 */
#define HALF_LEAST     5.0
#define HALF_MOST      30.0
#define REPORTS_LEAST  3.0
#define FIRST_SECONDS  3.0
#define FOUND_SECONDS  600.0
#define STEADY_SECONDS 120.0
#define EXPLAINED      0.8

/* A job that was asked while it ran has had time to start. */
enum { UNHEARD_MOST = 3 };

/* Of a stage: each process says one thing, and workers of short epochs take turns. More is not to be
 * believed, and would push what was found out of the recording. */
enum { TOLD_MOST = 512 };

static void word_set(Where *where, WhereStage stage, WherePhase phase, double until)
{
    where->stage = stage;
    where->phase = phase;
    where->phase_until = until;
    where->number++;
    atomic_store_explicit(&where->counters->where, where_word(where->number, stage, phase),
                          memory_order_release);
}

static void stage_begin(Where *where, WhereStage stage, double now)
{
    int pid = where->n_targets > 0 ? where->targets[where->target] : 0;
    where->last = (SiteWindow){0};
    where->refused = false;
    where->told = 0;
    atomic_store_explicit(&where->counters->where_worker, 0, memory_order_relaxed);
    atomic_store_explicit(&where->counters->where_pid, pid, memory_order_relaxed);
    word_set(where, stage, WHERE_BEGIN, now + where->half);
}

static void census_begin(Where *where, double now)
{
    where->n_targets = where->target = 0;
    where->worker_rate = where->trainer_rate = 0;
    where->worker_pid = where->trainer_pid = 0;
    if (where->heard) /* a process could look since */
        where->failed[0] = '\0';
    where->found_any = where->heard = false;
    stage_begin(where, WHERE_CENSUS, now);
}

void where_ask(Where *where, bool again, double now)
{
    where->asked++;
    where->again |= again;
    if (where->stage != WHERE_OFF)
        return;
    where->half = HALF_LEAST;
    where->unheard = 0;
    where->next = now + (again ? FIRST_SECONDS : 0);
}

void where_stop(Where *where)
{
    where->next = 0;
    where->again = false;
    where->rounds = where->asked;
    if (where->stage != WHERE_OFF)
        word_set(where, WHERE_OFF, WHERE_BEGIN, 0);
}

/* A job that has not started its workers yet is asked again, for as long as before. */
static void unheard_end(Where *where, double now)
{
    word_set(where, WHERE_OFF, WHERE_BEGIN, 0);
    bool over = !where->again && ++where->unheard == UNHEARD_MOST;
    where->next = over ? 0 : now;
    if (over)
        where->rounds = where->asked;
}

static void round_end(Where *where, double now)
{
    bool longer = !where->found_any && where->half < HALF_MOST;
    word_set(where, WHERE_OFF, WHERE_BEGIN, 0);
    if (longer) {
        where->half = MIN(where->half * 2, HALF_MOST);
        where->next = now;
        return;
    }
    where->rounds = where->asked;
    where->next = !where->again ? 0 : now + (where->found_any ? FOUND_SECONDS : STEADY_SECONDS);
}

/* --- What comes next ---------------------------------------------------------------------------------- */

static void targets_choose(Where *where)
{
    bool worker_first = where->worker_rate >= where->trainer_rate;
    for (int i = 0; i < WHERE_TARGETS_MOST; i++) {
        bool worker = (i == 0) == worker_first;
        if ((worker ? where->worker_rate : where->trainer_rate) <= 0)
            continue;
        int pid = !worker ? where->trainer_pid : where->worker_lasted ? where->worker_pid : 0;
        where->targets[where->n_targets++] = pid;
    }
}

static void census_end(Where *where, double now)
{
    targets_choose(where);
    if (!where->heard)
        unheard_end(where, now);
    else if (where->n_targets > 0)
        stage_begin(where, WHERE_PYTHON, now);
    else
        round_end(where, now);
}

static bool is_explained(const SiteWindow *window)
{
    return (double)site_window_explained(window) >= EXPLAINED * (double)MAX(window->growth, 1);
}

/* The largest line is in a library: whoever calls it is more interesting. */
static bool is_in_library(const SiteWindow *window)
{
    return window->n_sites > 0 && site_is_library(&window->sites[0]) &&
           (double)window->sites[0].bytes * 4 >= (double)window->growth;
}

static void target_end(Where *where, double now)
{
    if (++where->target < where->n_targets)
        stage_begin(where, WHERE_PYTHON, now);
    else
        round_end(where, now);
}

static void stage_end(Where *where, double now)
{
    const SiteWindow *last = &where->last;
    bool grows = last->duration > 0 && site_window_grows(last);
    where->found_any |= grows || (where->refused && where->without_native); /* more cannot be found */
    /* Refused: the program uses tracemalloc itself. */
    bool native = !where->without_native && where->stage != WHERE_NATIVE &&
                  ((where->refused && where->stage == WHERE_PYTHON) || (grows && !is_explained(last)));
    if (!where->refused && grows && where->stage == WHERE_PYTHON && is_in_library(last))
        stage_begin(where, WHERE_PYTHON_DEEP, now);
    else if (native)
        stage_begin(where, WHERE_NATIVE, now);
    else
        target_end(where, now);
}

void where_tick(Where *where, double now)
{
    if (where->stage == WHERE_OFF) {
        if (where->next > 0 && now >= where->next)
            census_begin(where, now);
        return;
    }
    bool done = where->phase == WHERE_END && where->stage != WHERE_CENSUS &&
                (where->last.duration > 0 || where->refused);
    if (now < where->phase_until && !done)
        return;
    if (where->phase == WHERE_BEGIN)
        word_set(where, where->stage, WHERE_MIDDLE, now + where->half);
    else if (where->phase == WHERE_MIDDLE)
        word_set(where, where->stage, WHERE_END, now + MAX(REPORTS_LEAST, where->half / 2));
    else if (where->stage == WHERE_CENSUS)
        census_end(where, now);
    else
        stage_end(where, now);
}

/* --- What processes say ------------------------------------------------------------------------------- */

static void census_note(Where *where, const SiteWindow *window)
{
    double rate = (double)MAX(window->growth, 1) / window->duration;
    where->heard = true;
    if (!site_window_grows(window))
        return;
    if (window->worker < 0 && rate > where->trainer_rate) {
        where->trainer_rate = rate;
        where->trainer_pid = window->pid;
    } else if (window->worker >= 0 && rate > where->worker_rate) {
        where->worker_rate = rate;
        where->worker_pid = window->pid;
        where->worker_lasted = window->late_growth != INT64_MIN && window->duration >= where->half * 1.5;
    }
}

/* Of several workers, one after another: one that grows, and was seen for longest. */
static bool is_better(const SiteWindow *a, const SiteWindow *b)
{
    bool grows = site_window_grows(a);
    return b->duration <= 0 || grows > site_window_grows(b) ||
           (grows == site_window_grows(b) && a->duration > b->duration);
}

static SiteStage stage_shown(WhereStage stage)
{
    return stage == WHERE_CENSUS   ? SITE_STAGE_CENSUS
           : stage == WHERE_NATIVE ? SITE_STAGE_NATIVE
                                   : SITE_STAGE_PYTHON;
}

int where_take(Where *where, int pid, Text text, double now)
{
    Text why;
    SiteWindow window;
    if (where->asked == 0 || where->told >= TOLD_MOST)
        return 0;
    where->told++;
    if (text_after(text, "failed\t", &why) && text_starts(text, "failed\t")) {
        _cleanup_buffer_ Buffer safe = {0};
        (void)text_escape_prose(text_trim(why), &safe);
        snprintf(where->failed, sizeof where->failed, "%.*s", (int)MIN(safe.size, sizeof where->failed - 1),
                 buffer_text(&safe));
        where->refused = true;
        where->failures++;
        return 0;
    }
    int r = site_window_parse(text, &window);
    if (r < 0)
        return r;
    window.pid = pid;
    window.seconds = now;
    /* A worker of the last epoch may report a little too late: it counts for whoever reads it. */
    if (where->stage != WHERE_OFF && window.stage == stage_shown(where->stage)) {
        if (window.stage == SITE_STAGE_CENSUS)
            census_note(where, &window);
        else if (is_better(&window, &where->last))
            where->last = window;
    }
    if (where->found)
        where->found(where->context, &window);
    return 0;
}
