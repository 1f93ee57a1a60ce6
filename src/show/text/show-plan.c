/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "show-plan.h"
#include "table.h"
#include "units.h"

static void label_wrap(const Terminal *terminal, const char *label, const char *text)
{
    terminal_label(terminal, label);
    terminal_wrap(terminal, LABEL_COLUMNS, LABEL_COLUMNS, text);
}

#define LABEL_PRINT(terminal, label, ...)                                                                    \
    do {                                                                                                     \
        _cleanup_buffer_ Buffer _words = {0};                                                                \
        (void)buffer_printf(&_words, __VA_ARGS__);                                                           \
        label_wrap((terminal), (label), buffer_text(&_words));                                               \
    } while (0)

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

typedef unsigned long long ull; /* what printf takes */

static void show_loader(const Terminal *terminal, const PlanLoader *loader, const LoaderNeed *need)
{
    LABEL_PRINT(terminal, "one batch", "%s in %llu tensor%s", SIZE_TEXT(need->batch_bytes),
                (ull)need->segments, plural(need->segments));
    LABEL_PRINT(terminal, "in flight",
                "%llu batch%s: %llu worker%s x prefetch %llu + %llu kept by the trainer",
                (ull)need->in_flight, need->in_flight == 1 ? "" : "es", (ull)loader->workers,
                plural(loader->workers), (ull)loader->prefetch, (ull)loader->held);
}

/* The processes of one role, and the largest of each peak. */
typedef struct RolePeaks {
    const char *name;
    uint64_t processes;
    ProcessPeak most;
} RolePeaks;

static void role_add(RolePeaks *peaks, const ProcessPeak *peak)
{
    if (peaks->processes++ == 0) {
        peaks->most = *peak;
        return;
    }
    u64_raise(&peaks->most.rss_bytes, peak->rss_bytes);
    u64_raise(&peaks->most.shm_bytes, peak->shm_bytes);
    u64_raise(&peaks->most.own_bytes, peak->own_bytes);
}

static void role_cell(const void *context, size_t row, size_t column, Buffer *out)
{
    const RolePeaks *peaks = &((const RolePeaks *)context)[row];
    const uint64_t sizes[] = {peaks->most.rss_bytes, peaks->most.shm_bytes, peaks->most.own_bytes};
    if (column == 0)
        (void)buffer_append_text(out, peaks->name);
    else if (column == 1)
        (void)buffer_printf(out, "%llu", (ull)peaks->processes);
    else
        (void)buffer_append_text(out, SIZE_TEXT(sizes[column - 2]));
}

static void show_processes(const Terminal *terminal, const PlanMeasured *measured)
{
    static const Column columns[] = {{"role"},
                                     {"processes", .right = true},
                                     {"memory", .right = true},
                                     {"shared", .right = true},
                                     {"its own", .right = true}};
    static const Role order[] = {ROLE_TRAINER, ROLE_WORKER, ROLE_MANAGER, ROLE_OTHER};
    RolePeaks roles[ARRAY_SIZE(order)] = {0};
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        roles[n] = (RolePeaks){.name = role_name(order[i])};
        for (size_t j = 0; j < measured->n_processes; j++)
            if (measured->processes[j].role == order[i])
                role_add(&roles[n], &measured->processes[j]);
        n += roles[n].processes > 0;
    }
    if (n == 0)
        return;
    Table table = {.columns = columns,
                   .n_columns = ARRAY_SIZE(columns),
                   .n_rows = n,
                   .cell = role_cell,
                   .context = roles};
    fprintf(terminal->out, "\nMeasured peaks, of the process with the largest:\n");
    table_print(terminal, &table);
    fputc('\n', terminal->out);
}

static void show_measured(const Terminal *terminal, const PlanMeasured *measured)
{
    _cleanup_buffer_ Buffer words = {0};
    (void)buffer_printf(&words, "%s %s", SIZE_TEXT(measured->peak_bytes), measured->now ? "now" : "at most");
    if (!measured->now)
        (void)buffer_printf(&words, " in %s", DURATION_TEXT(measured->seconds));
    (void)buffer_printf(&words, ", of %llu trainer%s", (ull)measured->trainers, plural(measured->trainers));
    if (measured->workers > 0)
        (void)buffer_printf(&words, " with %llu worker%s each", (ull)measured->workers,
                            plural(measured->workers));
    label_wrap(terminal, "measured", buffer_text(&words));
    show_processes(terminal, measured);
}

static const char *source_words(const PlanView *view)
{
    if (view->question->basis == BASIS_KIND)
        return "a rule of thumb";
    if (view->question->basis == BASIS_PER_PROCESS)
        return "as given";
    if (!view->measured)
        return "computed";
    return view->measured->scaled ? "measured, then scaled" : "measured";
}

static void show_need(const Terminal *terminal, const PlanView *view)
{
    const PlanQuestion *question = view->question;
    const Plan *plan = view->plan;
    LABEL_PRINT(terminal, "needed", "%s (%s): %llu trainer%s x %s", SIZE_TEXT(plan->base_bytes),
                source_words(view), (ull)plan->trainers, plural(plan->trainers),
                SIZE_TEXT(plan->per_trainer_bytes));
    if (plan->bound_bytes > plan->base_bytes)
        LABEL_PRINT(terminal, "for moments", "up to %s, where samples take no time to make",
                    SIZE_TEXT(plan->bound_bytes));
    if (plan->collective_bytes > 0)
        LABEL_PRINT(terminal, "besides", "%s for %s between the ranks (estimated)",
                    SIZE_TEXT(plan->collective_bytes), plan_collectives_names[question->collectives]);
    terminal_label(terminal, "recommended");
    terminal_print(terminal, STYLE_BOLD, "%s", SIZE_TEXT(plan->recommended_bytes));
    if (question->basis != BASIS_KIND)
        fprintf(terminal->out, " for /dev/shm (margin %.4g, then a round figure)\n", question->margin);
    else
        fputs(" for /dev/shm\n", terminal->out);
}

static void show_room(const Terminal *terminal, const PlanView *view)
{
    const PlanQuestion *question = view->question;
    const Plan *plan = view->plan;
    _cleanup_buffer_ Buffer words = {0};
    if (question->shm_bytes == U64_UNKNOWN)
        (void)buffer_append_text(&words, "/dev/shm without a known limit");
    else
        (void)buffer_printf(&words, "%s in /dev/shm", SIZE_TEXT(question->shm_bytes));
    if (question->memory_room_bytes != U64_UNKNOWN)
        (void)buffer_printf(&words, ", %s of memory", SIZE_TEXT(question->memory_room_bytes));
    label_wrap(terminal, "available", buffer_text(&words));

    bool unknown = plan->room_bytes == U64_UNKNOWN;
    terminal_label(terminal, "verdict");
    if (unknown)
        fputs("unknown: neither /dev/shm nor memory has a limit that can be read\n", terminal->out);
    else {
        terminal_print(terminal, plan->fits ? STYLE_GOOD : STYLE_BAD, "%s %s",
                       terminal_mark(terminal, plan->fits ? MARK_GOOD : MARK_BAD),
                       plan->fits ? "fits" : "does not fit");
        fprintf(terminal->out, question->basis == BASIS_KIND ? " (%s)\n" : " (%s with the margin)\n",
                SIZE_TEXT(plan->tight_bytes));
    }
}

static void append_count(Buffer *out, uint64_t n)
{
    if (n > 0)
        (void)buffer_printf(out, "%llu", (ull)n);
    else
        (void)buffer_append_text(out, "-");
}

static void ladder_cell(const void *context, size_t row, size_t column, Buffer *out)
{
    const PlanStep *step = &((const Plan *)context)->ladder[row];
    switch (column) {
    case 0:
        (void)buffer_append_text(out, step->name);
        break;
    case 1:
        (void)buffer_printf(out, "%.0f%%", 100 * step->share);
        break;
    case 2:
        append_count(out, step->workers);
        break;
    default:
        append_count(out, step->batch);
        break;
    }
}

static void show_inverse(const Terminal *terminal, const PlanView *view)
{
    const Plan *plan = view->plan;
    if (plan->n_loaders == 0) {
        if (plan->largest_trainers != U64_UNKNOWN)
            LABEL_PRINT(terminal, "room for", "%llu trainer%s like this", (ull)plan->largest_trainers,
                        plural(plan->largest_trainers));
        return;
    }
    if (plan->room_bytes == U64_UNKNOWN)
        return;
    const PlanLoader *loader = &view->question->loaders[plan->largest_loader];
    if (!plan->has_largest)
        LABEL_PRINT(terminal, "largest fit", "none: not even %s",
                    loader->batch ? "one worker with batches of one sample fits" : "one worker fits");
    else if (plan->largest_batch)
        LABEL_PRINT(terminal, "largest fit", "batch size %llu with %llu worker%s", (ull)plan->largest_batch,
                    (ull)plan->largest_workers, plural(plan->largest_workers));
    else
        LABEL_PRINT(terminal, "largest fit", "%llu worker%s", (ull)plan->largest_workers,
                    plural(plan->largest_workers));
    if (plan->n_ladder == 0)
        return;

    char workers[64];
    char batch[64];
    snprintf(batch, sizeof batch, "batch with %llu worker%s", (ull)loader->workers, plural(loader->workers));
    snprintf(workers, sizeof workers, loader->batch ? "workers with batch %llu" : "workers",
             (ull)loader->batch);
    const Column columns[] = {
        {"setting"}, {"of the room", .right = true}, {workers, .right = true}, {batch, .right = true}};
    Table table = {.columns = columns,
                   .n_columns = ARRAY_SIZE(columns) - (loader->batch == 0),
                   .n_rows = plan->n_ladder,
                   .cell = ladder_cell,
                   .context = plan};
    fputs("\nSafe settings, one of the two at a time:\n", terminal->out);
    table_print(terminal, &table);
}

static void range_cell(const void *context, size_t row, size_t column, Buffer *out)
{
    const PlanRow *item = &((const Plan *)context)->table[row];
    switch (column) {
    case 0:
        append_count(out, item->per_gpu);
        break;
    case 1:
        append_count(out, item->processes);
        break;
    case 2:
        (void)buffer_append_text(out, SIZE_TEXT(item->base_bytes));
        break;
    default:
        (void)buffer_append_text(out, SIZE_TEXT(item->recommended_bytes));
        break;
    }
}

static void show_range(const Terminal *terminal, const Plan *plan)
{
    static const Column columns[] = {{"per GPU", .right = true},
                                     {"processes", .right = true},
                                     {"needed", .right = true},
                                     {"recommended", .right = true}};
    Table table = {.columns = columns,
                   .n_columns = ARRAY_SIZE(columns),
                   .n_rows = plan->n_table,
                   .cell = range_cell,
                   .context = plan};
    fputc('\n', terminal->out);
    table_print(terminal, &table);
}

static void show_flag(const Terminal *terminal, const char *label, const char *text)
{
    fprintf(terminal->out, "  %s:\n", label);
    terminal_verbatim(terminal, 4, text);
}

static void show_ways(const Terminal *terminal, const PlanView *view)
{
    const ShmFlags *flags = view->flags;
    if (!flags)
        return;
    fprintf(terminal->out, "\nTo have a /dev/shm of %s:\n", SIZE_TEXT(view->plan->recommended_bytes));
    show_flag(terminal, "docker run, podman run", flags->engine);
    show_flag(terminal, "compose", flags->compose);
    show_flag(terminal, "Kubernetes", flags->kubernetes);
    show_flag(terminal, "at once, until the next boot", flags->remount);
    show_flag(terminal, "at every boot, a line of /etc/fstab", flags->fstab);
    if (view->guard->ready) {
        _cleanup_buffer_ Buffer words = {0};
        (void)buffer_printf(
            &words,
            "Or leave it as it is: under \"shmguard run\" the size of /dev/shm no longer matters. RAM "
            "needed then: %s.",
            SIZE_TEXT(view->plan->guard_bytes));
        fputc('\n', terminal->out);
        terminal_wrap(terminal, 0, 0, buffer_text(&words));
        terminal_verbatim(terminal, 4, "shmguard run -- python train.py");
    }
}

void show_plan(const Terminal *terminal, const PlanView *view)
{
    const Plan *plan = view->plan;
    for (size_t i = 0; i < plan->n_loaders; i++) {
        if (plan->n_loaders > 1)
            LABEL_PRINT(terminal, "loader", "%zu", i + 1);
        show_loader(terminal, &view->question->loaders[i], &plan->loaders[i]);
    }
    if (view->measured)
        show_measured(terminal, view->measured);
    show_need(terminal, view);
    show_room(terminal, view);
    show_inverse(terminal, view);
    if (view->question->table)
        show_range(terminal, plan);
    if (plan->n_notes > 0)
        fputc('\n', terminal->out);
    for (size_t i = 0; i < plan->n_notes; i++) {
        const char *mark = terminal_mark(terminal, MARK_INFO);
        fprintf(terminal->out, "%s ", mark);
        terminal_wrap(terminal, (unsigned)text_columns(text_of(mark)) + 1, 2, plan->notes[i]);
    }
    show_ways(terminal, view);
}
