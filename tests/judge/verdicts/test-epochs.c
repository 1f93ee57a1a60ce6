/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "epochs.h"

enum { TRAINER = 100, PEOPLE_MOST = 64, MARKS_MOST = 16, EPOCHS_MOST = 16 };

/* Workers of one loader, from time to time. */
typedef struct Loader {
    int trainer; /* 0: the usual one */
    unsigned workers;
    double first;  /* when they come */
    double period; /* 0: once */
    double life;
    double until;      /* no new ones after this */
    double first_life; /* of the first ones; 0: as the others */
} Loader;

typedef struct Case {
    const char *name;
    double seconds;
    double interval; /* 0: 1 */
    double age;      /* of the trainer at the first look */
    double gap;      /* without a look, in the middle; 0: none */
    Loader loaders[4];
    struct {
        double seconds;
        const char *text;
        bool attempt;
    } marks[MARKS_MOST];
    struct {
        double seconds;
        const char *text;
        int pid; /* -1: of no matter */
    } epochs[EPOCHS_MOST];
} Case;

#define SEEN " (seen from new workers)"

static const Case cases[] = {
    {"three epochs", 100, .loaders = {{.workers = 2, .first = 5, .period = 30, .life = 29, .until = 90}},
     .epochs = {{5, "epoch 1" SEEN, TRAINER}, {35, "epoch 2" SEEN, TRAINER}, {65, "epoch 3" SEEN, TRAINER}}},
    {"one epoch so far", 50, .loaders = {{.workers = 2, .first = 5, .life = 100}}},
    {"persistent workers", 100, .loaders = {{.workers = 8, .first = 5, .life = 90}}},
    {"no workers", 100},
    {"train and validation, as many workers", 100,
     .loaders = {{.workers = 2, .first = 5, .period = 30, .life = 20, .until = 90},
                 {.workers = 2, .first = 25, .period = 30, .life = 8, .until = 90}},
     .epochs = {{5, "epoch 1" SEEN, TRAINER}, {35, "epoch 2" SEEN, TRAINER}, {65, "epoch 3" SEEN, TRAINER}}},
    {"train and a validation as long, with fewer workers", 100,
     .loaders = {{.workers = 4, .first = 5, .period = 30, .life = 16, .until = 90},
                 {.workers = 2, .first = 21, .period = 30, .life = 13, .until = 90}},
     .epochs = {{5, "epoch 1" SEEN, TRAINER}, {35, "epoch 2" SEEN, TRAINER}, {65, "epoch 3" SEEN, TRAINER}}},
    {"five validations after each epoch", 200,
     .loaders = {{.workers = 2, .first = 5, .period = 60, .life = 29, .until = 180},
                 {.workers = 2, .first = 35, .period = 5, .life = 4, .until = 60},
                 {.workers = 2, .first = 95, .period = 5, .life = 4, .until = 120},
                 {.workers = 2, .first = 155, .period = 5, .life = 4, .until = 180}},
     .epochs = {{5, "epoch 1" SEEN, TRAINER}, {65, "epoch 2" SEEN, TRAINER}, {125, "epoch 3" SEEN, TRAINER}}},
    {"validations in the middle of each epoch", 100,
     .loaders = {{.workers = 2, .first = 5, .period = 30, .life = 29, .until = 90},
                 {.workers = 2, .first = 12, .period = 10, .life = 3, .until = 90}},
     .epochs = {{5, "epoch 1" SEEN, TRAINER}, {35, "epoch 2" SEEN, TRAINER}, {65, "epoch 3" SEEN, TRAINER}}},
    {"persistent workers beside validations", 100,
     .loaders = {{.workers = 2, .first = 5, .life = 90},
                 {.workers = 2, .first = 25, .period = 20, .life = 8, .until = 90}}},
    {"persistent workers and a first validation that goes on", 40,
     .loaders = {{.workers = 2, .first = 5, .life = 90}, {.workers = 2, .first = 35, .life = 90}}},
    {"a check of the validation comes first", 100,
     .loaders = {{.workers = 2, .first = 2, .life = 3},
                 {.workers = 2, .first = 6, .period = 30, .life = 29, .until = 90}},
     .epochs = {{6, "epoch 1" SEEN, TRAINER}, {36, "epoch 2" SEEN, TRAINER}, {66, "epoch 3" SEEN, TRAINER}}},
    {"a validation is what goes on at the end", 59,
     .loaders = {{.workers = 2, .first = 5, .period = 30, .life = 20, .until = 60},
                 {.workers = 2, .first = 25, .period = 30, .life = 8, .until = 90}},
     .epochs = {{5, "epoch 1" SEEN, TRAINER}, {35, "epoch 2" SEEN, TRAINER}}},
    {"an epoch that has just begun", 70,
     .loaders = {{.workers = 2, .first = 5, .period = 30, .life = 29, .until = 90}},
     .epochs = {{5, "epoch 1" SEEN, TRAINER}, {35, "epoch 2" SEEN, TRAINER}, {65, "epoch 3" SEEN, TRAINER}}},
    {"the first epoch takes longer", 250,
     .loaders = {{.workers = 2, .first = 5, .life = 90},
                 {.workers = 2, .first = 96, .period = 30, .life = 29, .until = 240}},
     .epochs = {{5, "epoch 1" SEEN, TRAINER},
                {96, "epoch 2" SEEN, TRAINER},
                {126, "epoch 3" SEEN, TRAINER},
                {156, "epoch 4" SEEN, TRAINER},
                {186, "epoch 5" SEEN, TRAINER},
                {216, "epoch 6" SEEN, TRAINER}}},
    {"a training that ran already", 100, .age = 1000,
     .loaders = {{.workers = 2, .first = 0, .period = 30, .life = 29, .until = 90}},
     .epochs = {{30, "epoch" SEEN, TRAINER}, {60, "epoch" SEEN, TRAINER}}},
    {"epochs shorter than what is left of the looks", 200, .gap = 40,
     .loaders = {{.workers = 2, .first = 5, .period = 30, .life = 29, .until = 180}},
     .epochs = {{5, "epoch 1" SEEN, TRAINER},
                {35, "epoch 2" SEEN, TRAINER},
                {65, "epoch 3" SEEN, TRAINER},
                {125, "epoch" SEEN, TRAINER},
                {155, "epoch" SEEN, TRAINER}}},
    {"ranks that keep step", 100,
     .loaders = {{.workers = 2, .first = 5, .period = 30, .life = 29, .until = 90},
                 {.trainer = 200, .workers = 2, .first = 6, .period = 30, .life = 28, .until = 90}},
     .epochs = {{5, "epoch 1" SEEN, 0}, {35, "epoch 2" SEEN, 0}, {65, "epoch 3" SEEN, 0}}},
    {"trainings that do not", 100,
     .loaders = {{.workers = 2, .first = 5, .period = 40, .life = 39, .until = 80},
                 {.trainer = 200, .workers = 2, .first = 30, .period = 30, .life = 29, .until = 80}},
     .epochs = {{5, "epoch 1" SEEN, TRAINER},
                {30, "epoch 1" SEEN, 200},
                {45, "epoch 2" SEEN, TRAINER},
                {60, "epoch 2" SEEN, 200}}},
    {"the user's marks, of two ranks, again after an attempt", 100,
     .loaders = {{.workers = 2, .first = 5, .period = 10, .life = 9, .until = 90}},
     .marks = {{5, "epoch 0", false},
               {5, "epoch 0", false},
               {20, "Epoch: [1/90]", false},
               {21, "epoch 1", false},
               {22, "saved", false},
               {30, "epoch 1 ends", false},
               {40, "2: batch=16", true},
               {50, "epoch 1", false}},
     .epochs = {{5, "epoch 0", -1}, {20, "Epoch: [1/90]", -1}, {50, "epoch 1", -1}}},
    {"one word about an epoch", 100,
     .loaders = {{.workers = 2, .first = 5, .period = 30, .life = 29, .until = 90}},
     .marks = {{40, "epoch 2 looks odd", false}, {50, "epochal", false}},
     .epochs = {{5, "epoch 1" SEEN, TRAINER}, {35, "epoch 2" SEEN, TRAINER}, {65, "epoch 3" SEEN, TRAINER}}},
    {"marks without a number, no workers", 100,
     .marks = {{10, "epoch", false}, {20, "EPOCH", false}, {30, "epoch", false}},
     .epochs = {{10, "epoch", -1}, {20, "EPOCH", -1}, {30, "epoch", -1}}},
};

static void process_push(ProcessMoment *people, size_t *n, int pid, int trainer, double started)
{
    assert_true(*n < PEOPLE_MOST);
    people[*n] = (ProcessMoment){.pid = pid,
                                 .ppid = pid == trainer ? 1 : trainer,
                                 .start_ticks = (uint64_t)pid,
                                 .started = 1e9 + started,
                                 .role = pid == trainer ? ROLE_TRAINER : ROLE_WORKER,
                                 .job = trainer,
                                 .command = "python train.py"};
    memset(people[*n].values, 0xFF, sizeof people[*n].values); /* U64_UNKNOWN */
    ++*n;
}

static int pid_compare(const void *a, const void *b)
{
    return ((const ProcessMoment *)a)->pid - ((const ProcessMoment *)b)->pid;
}

static void people_at(const Case *made, double now, ProcessMoment *people, size_t *n)
{
    process_push(people, n, TRAINER, TRAINER, -made->age);
    for (size_t i = 0; i < 4; i++) {
        const Loader *loader = &made->loaders[i];
        int trainer = loader->trainer ? loader->trainer : TRAINER;
        if (loader->trainer)
            process_push(people, n, trainer, trainer, 0);
        for (unsigned k = 0; loader->workers > 0; k++) {
            double born = loader->first + k * loader->period;
            if (born > now || (k > 0 && (loader->period <= 0 || born >= loader->until)))
                break;
            for (unsigned worker = 0; worker < loader->workers && now < born + loader->life; worker++)
                process_push(people, n, (int)(1000 + i * 10000 + k * 100 + worker), trainer, born);
        }
    }
    qsort(people, *n, sizeof *people, pid_compare);
}

static void case_play(const Case *made, History *ret)
{
    double interval = made->interval > 0 ? made->interval : 1;
    size_t mark = 0;
    assert_int_equal(history_init(ret, "python train.py", TRAINER, 1e9, interval), 0);
    for (double now = 0; now <= made->seconds; now += interval) {
        ProcessMoment people[PEOPLE_MOST];
        Event events[MARKS_MOST];
        Moment moment = {.seconds = now, .processes = people, .events = events};
        if (made->gap > 0 && now > 80 && now < 80 + made->gap)
            continue;
        memset(moment.values, 0xFF, sizeof moment.values);
        people_at(made, now, people, &moment.n_processes);
        for (; mark < MARKS_MOST && made->marks[mark].text && made->marks[mark].seconds <= now; mark++) {
            Event *event = &events[moment.n_events++];
            *event = (Event){.seconds = made->marks[mark].seconds,
                             .kind = made->marks[mark].attempt ? EVENT_ATTEMPT : EVENT_MARK};
            (void)strcpy(event->text, made->marks[mark].text);
        }
        assert_int_equal(history_add(ret, &moment), 0);
    }
}

static void case_check(const Case *made, const EventList *events)
{
    size_t n = 0;
    size_t marks = 0;
    double before = -1;
    for (size_t i = 0; i < events->n; i++) {
        const Event *event = &events->items[i];
        assert_true(event->seconds >= before);
        before = event->seconds;
        marks += event->kind == EVENT_MARK || event->kind == EVENT_ATTEMPT;
        if (event->kind != EVENT_EPOCH)
            continue;
        if (n == EPOCHS_MOST || !made->epochs[n].text)
            fail_msg("%s: also \"%s\" at %g", made->name, event->text, event->seconds);
        if (strcmp(event->text, made->epochs[n].text) != 0 || event->seconds != made->epochs[n].seconds ||
            (made->epochs[n].pid >= 0 && event->pid != made->epochs[n].pid))
            fail_msg("%s: \"%s\" of %d at %g, not \"%s\"", made->name, event->text, event->pid,
                     event->seconds, made->epochs[n].text);
        marks += made->epochs[n].pid < 0;
        n++;
    }
    if (n < EPOCHS_MOST && made->epochs[n].text)
        fail_msg("%s: no \"%s\"", made->name, made->epochs[n].text);
    size_t expected = 0;
    while (expected < MARKS_MOST && made->marks[expected].text)
        expected++;
    assert_int_equal(marks, expected); /* none of the user's words is lost */
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        _cleanup_history_ History history = {0};
        _cleanup_arena_ Arena arena = {0};
        case_play(&cases[i], &history);
        size_t before = history.n_events;
        EventList events;
        assert_int_equal(epochs_tell(&history, &arena, &events), 0);
        case_check(&cases[i], &events);
        assert_int_equal(history.n_events, before);
        for (size_t k = 0; k < before; k++)
            assert_int_not_equal(history.events[k].kind, EVENT_EPOCH);
    }
}

/* What a broken recording holds: no looks at all, a trainer that is not there, times that run backwards. */
static void test_absurd(void **state)
{
    (void)state;
    _cleanup_history_ History empty = {0};
    assert_int_equal(history_init(&empty, "", 0, 0, 1), 0);
    _cleanup_arena_ Arena arena = {0};
    EventList events;
    assert_int_equal(epochs_tell(&empty, &arena, &events), 0);
    assert_int_equal(events.n, 0);

    _cleanup_history_ History history = {0};
    case_play(&cases[0], &history);
    for (size_t i = 0; i < history.n_tracks; i++) {
        history.tracks[i].last.job = 77;
        history.tracks[i].first_seconds = -(double)i;
        history.tracks[i].ended_seconds = i % 2 ? -1e12 : 1e12;
    }
    assert_int_equal(epochs_tell(&history, &arena, &events), 0);
}

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is;
        uint64_t number;
    } texts[] = {
        {"epoch 3", true, 3},
        {"Epoch: [12/90]", true, 12},
        {"epoch=0", true, 0},
        {"EPOCH_7", true, 7},
        {"epoch", true, EPOCH_UNNUMBERED},
        {"epoch two", true, EPOCH_UNNUMBERED},
        {"epoch 99999999999999999999", true, EPOCH_UNNUMBERED},
        {"epoch \xff\x01 4", true, 4},
        {"epochs", false, 0},
        {" epoch 3", false, 0},
        {"end of epoch 3", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        uint64_t number = 0;
        assert_int_equal(epoch_parse(texts[i].text, &number), texts[i].is);
        assert_true(number == texts[i].number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_absurd),
        cmocka_unit_test(test_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
