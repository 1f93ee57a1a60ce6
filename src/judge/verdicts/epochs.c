/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "epochs.h"
#include "text.h"

/* Workers of one loader start together, and two successive loaders overlap for a moment. */
#define TOGETHER_SECONDS 2.0
#define TOGETHER_LOOKS   3

/* An epoch must be at least this many looks long, or some epochs were missed. */
#define LOOKS_LEAST 3

/* A trainer that was already this old when it was first seen may have had earlier epochs. */
#define AGE_MOST 10.0

/* --- The user's marks ----------------------------------------------------------------------------------- */

bool epoch_parse(const char *text, uint64_t *ret_number)
{
    static const char word[] = "epoch";
    if (strncasecmp(text, word, sizeof word - 1) != 0)
        return false;
    const char *at = text + sizeof word - 1;
    if (isalpha((unsigned char)*at))
        return false;
    while (*at != '\0' && !isalnum((unsigned char)*at))
        at++;
    uint64_t number = 0;
    Text digits = text_digits(text_of(at));
    *ret_number = text_u64(digits, 10, &number) < 0 ? EPOCH_UNNUMBERED : number;
    return true;
}

/* Each rank may set the same mark, and set it again at the epoch's end: the first one counts, until the
 * training is restarted. */
static bool is_new(const Epochs *epochs, size_t since, uint64_t number)
{
    enum { BACK = 256 }; /* the same number later than this is another epoch */
    since = epochs->n > since + BACK ? epochs->n - BACK : since;
    for (size_t i = epochs->n; number != EPOCH_UNNUMBERED && i-- > since;)
        if (epochs->items[i].number == number)
            return false;
    return true;
}

static int marks_find(const History *history, Arena *arena, Epochs *ret)
{
    size_t since = 0;
    for (size_t i = 0; i < history->n_events; i++) {
        const Event *event = &history->events[i];
        uint64_t number = 0;
        if (event->kind == EVENT_ATTEMPT)
            since = ret->n;
        if (event->kind != EVENT_MARK || !epoch_parse(event->text, &number) || !is_new(ret, since, number))
            continue;
        Epoch *epoch = ARENA_PUSH(arena, ret->items, ret->n, ret->capacity);
        if (!epoch)
            return -ENOMEM;
        *epoch = (Epoch){event->seconds, number, i};
    }
    return 0;
}

/* --- New workers ---------------------------------------------------------------------------------------- */

/* Workers of one trainer that started together. */
typedef struct Generation {
    double born;
    double last_born;
    double first_end; /* of any of them; INFINITY */
    double until;     /* when the last of them ended, or the end of the history */
    size_t n;
} Generation;

typedef struct Generations {
    Generation *items;
    size_t n;
    size_t capacity;
} Generations;

static double together_seconds(const History *history)
{
    return MAX(TOGETHER_SECONDS, TOGETHER_LOOKS * history->interval);
}

static int generations_find(const History *history, int trainer, Arena *arena, Generations *ret)
{
    double end = history->series.seconds[history->series.n - 1];
    for (size_t i = 0; i < history->n_tracks; i++) {
        const ProcessTrack *track = &history->tracks[i];
        double born = track->first_seconds;
        if (track->last.job != trainer || track->last.role != ROLE_WORKER)
            continue;
        Generation *newest = ret->n > 0 ? &ret->items[ret->n - 1] : NULL;
        if (!newest || born >= newest->first_end || born > newest->last_born + together_seconds(history)) {
            newest = ARENA_PUSH(arena, ret->items, ret->n, ret->capacity);
            if (!newest)
                return -ENOMEM;
            *newest = (Generation){.born = born, .first_end = INFINITY};
        }
        newest->last_born = MAX(newest->last_born, born);
        newest->first_end = MIN(newest->first_end, track->ended_seconds);
        newest->until = MAX(newest->until, MIN(track->ended_seconds, end));
        newest->n++;
    }
    return 0;
}

static double life_of(const Generation *generation)
{
    return generation->until - generation->born;
}

static int life_compare(const void *a, const void *b)
{
    double x = life_of(a);
    double y = life_of(b);
    return (x > y) - (x < y);
}

static int workers_compare(const void *a, const void *b)
{
    size_t x = ((const Generation *)a)->n;
    size_t y = ((const Generation *)b)->n;
    return (x > y) - (x < y);
}

static Generation *generations_sort(const Generations *all, Arena *arena,
                                    int (*compare)(const void *, const void *))
{
    Generation *sorted = arena_alloc(arena, all->n * sizeof *sorted);
    if (sorted) {
        memcpy(sorted, all->items, all->n * sizeof *sorted);
        qsort(sorted, all->n, sizeof *sorted, compare);
    }
    return sorted;
}

/*
 * Loaders with different numbers of workers are told apart by those: the one that takes most of the time is
 * kept. A number that was seen only once belongs to a generation of which some workers were missed.
 */
static int loaders_part(Generations *all, Arena *arena)
{
    const Generation *sorted = generations_sort(all, arena, workers_compare);
    if (!sorted)
        return -ENOMEM;
    size_t usual = 0;
    double most = 0;
    for (size_t i = 0; i < all->n;) {
        double sum = 0;
        size_t from = i;
        for (; i < all->n && sorted[i].n == sorted[from].n; i++)
            sum += life_of(&sorted[i]);
        if (i - from > 1 && sum > most) {
            most = sum;
            usual = sorted[from].n;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < all->n; i++) {
        size_t workers = all->items[i].n;
        size_t from = LOWER_BOUND(k, all->n, sorted[k].n < workers);
        bool once = from + 1 == all->n || sorted[from + 1].n != workers;
        if (once || workers == usual)
            all->items[kept++] = all->items[i];
    }
    all->n = kept;
    return 0;
}

/* Half of all time was spent in generations that lived this long or longer: those of the training loader,
 * however many short validations there are, and however long the first epoch was. */
static int life_usual(const Generations *all, Arena *arena, double *ret)
{
    const Generation *sorted = generations_sort(all, arena, life_compare);
    if (!sorted)
        return -ENOMEM;
    double sum = 0;
    for (size_t i = 0; i < all->n; i++)
        sum += life_of(&sorted[i]);
    size_t i = all->n - 1;
    for (double longer = life_of(&sorted[i]); longer < sum / 2 && i > 0; i--)
        longer += life_of(&sorted[i - 1]);
    *ret = life_of(&sorted[i]);
    return 0;
}

/*
 * Keeps the generations that are epochs. The last one may be truncated: it counts, unless short ones have
 * come between the others before. A generation that begins while another one lives belongs to a second
 * loader.
 */
static int generations_choose(Generations *all, const History *history, Arena *arena)
{
    double usual = 0;
    if (all->n == 0)
        return 0;
    int r = loaders_part(all, arena);
    if (r >= 0)
        r = life_usual(all, arena, &usual);
    if (r < 0)
        return r;
    size_t kept = 0;
    size_t met = all->n;
    double until = -INFINITY;
    bool validates = false;
    for (size_t i = 0; i < met; i++) {
        Generation generation = all->items[i];
        bool is_short = life_of(&generation) < usual / 2;
        bool beside = generation.born + together_seconds(history) < until;
        bool last = i + 1 == met;
        if (beside || (is_short && (validates || !last))) {
            validates = validates || is_short;
            continue;
        }
        until = generation.until;
        all->items[kept++] = generation;
    }
    all->n = kept;
    return 0;
}

/* Whether the start of its first epoch was seen. */
static bool is_seen_from_start(const History *history, int trainer, double first_born)
{
    const ProcessTrack *track = history_track(history, trainer);
    return track && first_born > history->series.seconds[0] &&
           history->began + track->first_seconds - track->last.started <=
               MAX(AGE_MOST, TOGETHER_LOOKS * history->interval);
}

/* The longest time without a sample between two times: thinned samples lack processes that came and went in
 * between. */
static double gap_longest(const Series *series, double from, double until)
{
    double longest = 0;
    size_t i = LOWER_BOUND(k, series->n, series->seconds[k] < from);
    for (i = MAX(i, (size_t)1); i < series->n && series->seconds[i - 1] < until; i++)
        longest = MAX(longest, series->seconds[i] - series->seconds[i - 1]);
    return longest;
}

static int workers_find(const History *history, int trainer, Arena *arena, Epochs *ret)
{
    Generations all = {0};
    int r = generations_find(history, trainer, arena, &all);
    if (r >= 0)
        r = generations_choose(&all, history, arena);
    if (r < 0 || all.n < 2)
        return r;
    bool counted = is_seen_from_start(history, trainer, all.items[0].born);
    for (size_t i = 0; i < all.n; i++) {
        double born = all.items[i].born;
        if (i > 0) {
            double before = all.items[i - 1].born;
            counted = counted && gap_longest(&history->series, before, born) * LOOKS_LEAST <= born - before;
        }
        if (born <= history->series.seconds[0])
            continue; /* it was there from the start: its beginning was not seen */
        Epoch *epoch = ARENA_PUSH(arena, ret->items, ret->n, ret->capacity);
        if (!epoch)
            return -ENOMEM;
        *epoch = (Epoch){born, counted ? i + 1 : EPOCH_UNNUMBERED, SIZE_MAX};
    }
    return 0;
}

int epochs_find(const History *history, int trainer, Arena *arena, Epochs *ret)
{
    Epochs marked = {0};
    Epochs seen = {0};
    int r = marks_find(history, arena, &marked);
    /* A single mark is a remark about an epoch, not a count of epochs. */
    if (r >= 0 && marked.n < 2 && history->series.n > 0)
        r = workers_find(history, trainer, arena, &seen);
    if (r >= 0)
        *ret = marked.n < 2 ? seen : marked;
    return r;
}

/* --- Among the events ----------------------------------------------------------------------------------- */

enum { TRAINERS_MOST = 256, ALIKE_BACK = 64 };

/* An epoch that is reported. */
typedef struct Told {
    double seconds;
    uint64_t number;
    double length;   /* of its trainer's epochs */
    int trainer;     /* 0: several trainers in step */
    int last_merged; /* the trainer of the last epoch that was merged into this one */
} Told;

typedef struct Tale {
    Told *items;
    size_t n;
    size_t capacity;
} Tale;

static int told_compare(const void *a, const void *b)
{
    const Told *x = a;
    const Told *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? -1 : 1;
    return (x->trainer > y->trainer) - (x->trainer < y->trainer);
}

static int tale_add(Tale *tale, const Epochs *epochs, int trainer, Arena *arena)
{
    double length = epochs->n > 1 ? (epochs->items[epochs->n - 1].seconds - epochs->items[0].seconds) /
                                        (double)(epochs->n - 1)
                                  : 0;
    for (size_t i = 0; i < epochs->n; i++) {
        Told *told = ARENA_PUSH(arena, tale->items, tale->n, tale->capacity);
        if (!told)
            return -ENOMEM;
        *told = (Told){epochs->items[i].seconds, epochs->items[i].number, length, trainer, trainer};
    }
    return 0;
}

/* Ranks of one training enter the same epoch at about the same time. */
static void tale_merge(Tale *tale)
{
    size_t kept = 0;
    if (tale->n > 1)
        qsort(tale->items, tale->n, sizeof *tale->items, told_compare);
    for (size_t i = 0; i < tale->n; i++) {
        Told told = tale->items[i];
        size_t back = kept > ALIKE_BACK ? kept - ALIKE_BACK : 0;
        size_t same = kept;
        while (same > back) {
            const Told *other = &tale->items[same - 1];
            if (other->number == told.number && other->last_merged != told.trainer &&
                told.seconds - other->seconds <= MIN(other->length, told.length) / 4)
                break;
            same--;
        }
        if (same > back) {
            tale->items[same - 1].trainer = 0;
            tale->items[same - 1].last_merged = told.trainer;
        } else
            tale->items[kept++] = told;
    }
    tale->n = kept;
}

static int tale_make(const History *history, Arena *arena, Tale *ret)
{
    int trainers[TRAINERS_MOST];
    size_t n = 0;
    for (size_t i = 0; i < history->n_tracks && n < TRAINERS_MOST; i++) {
        const ProcessMoment *process = &history->tracks[i].last;
        size_t k = 0;
        while (k < n && trainers[k] != process->job)
            k++;
        if (process->role != ROLE_WORKER || process->job == 0 || k < n)
            continue;
        trainers[n++] = process->job;
        Epochs epochs = {0};
        int r = epochs_find(history, process->job, arena, &epochs);
        if (r >= 0)
            r = tale_add(ret, &epochs, process->job, arena);
        if (r < 0)
            return r;
    }
    tale_merge(ret);
    return 0;
}

static Event told_event(const Told *told)
{
    Event event = {.seconds = told->seconds, .kind = EVENT_EPOCH, .pid = told->trainer, .role = ROLE_TRAINER};
    if (told->number == EPOCH_UNNUMBERED)
        snprintf(event.text, sizeof event.text, "epoch (seen from new workers)");
    else
        snprintf(event.text, sizeof event.text, "epoch %llu (seen from new workers)",
                 (unsigned long long)told->number);
    return event;
}

/* If an epoch and an event come at the same time, the event is first. */
static int tale_merge_events(const History *history, const Tale *tale, Arena *arena, Event **ret,
                             size_t *ret_n)
{
    size_t n = 0;
    size_t next = 0;
    Event *all = arena_alloc(arena, MAX(history->n_events + tale->n, (size_t)1) * sizeof *all);
    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i <= history->n_events; i++) {
        double until = i < history->n_events ? history->events[i].seconds : INFINITY;
        for (; next < tale->n && tale->items[next].seconds < until; next++)
            all[n++] = told_event(&tale->items[next]);
        if (i < history->n_events)
            all[n++] = history->events[i];
    }
    *ret = all;
    *ret_n = n;
    return 0;
}

int epochs_tell(const History *history, Arena *arena, EventList *ret)
{
    Epochs marked = {0};
    Tale tale = {0};
    Event *all = NULL;
    size_t n = 0;
    int r = marks_find(history, arena, &marked);
    if (r >= 0 && marked.n < 2 && history->series.n > 0)
        r = tale_make(history, arena, &tale);
    if (r >= 0)
        r = tale_merge_events(history, &tale, arena, &all, &n);
    if (r < 0)
        return r;
    for (size_t i = 0; marked.n >= 2 && i < marked.n; i++)
        all[marked.items[i].mark].kind = EVENT_EPOCH; /* nothing was inserted: the places are the same */
    *ret = (EventList){all, n};
    return 0;
}
