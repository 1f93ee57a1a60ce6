/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "message.h"
#include "plan-text.h"
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

typedef unsigned long long ull; /* what printf takes */

static void show_loader(const Terminal *terminal, const PlanLoader *loader, const LoaderNeed *need)
{
    LABEL_PRINT(terminal, PLAN_LABEL_BATCH, PLURAL(need->segments, PLAN_BATCH_ONE, PLAN_BATCH_MANY),
                SIZE_TEXT(need->batch_bytes), (ull)need->segments);
    LABEL_PRINT(terminal, PLAN_LABEL_IN_FLIGHT, PLAN_IN_FLIGHT, (ull)need->in_flight, (ull)loader->workers,
                (ull)loader->prefetch, (ull)loader->held);
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
    static const Column columns[] = {{PLAN_HEAD_ROLE},
                                     {PLAN_HEAD_PROCESSES, .right = true},
                                     {PLAN_HEAD_MEMORY, .right = true},
                                     {PLAN_HEAD_SHARED, .right = true},
                                     {PLAN_HEAD_PRIVATE, .right = true}};
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
    fprintf(terminal->out, "\n%s\n", PLAN_PEAKS);
    table_print(terminal, &table);
    fputc('\n', terminal->out);
}

static void show_measured(const Terminal *terminal, const PlanMeasured *measured)
{
    _cleanup_buffer_ Buffer words = {0};
    if (measured->now)
        message_add(&words, ", ", PLAN_MEASURED_NOW, SIZE_TEXT(measured->peak_bytes));
    else
        message_add(&words, ", ", PLAN_MEASURED_PEAK, SIZE_TEXT(measured->peak_bytes),
                    DURATION_TEXT(measured->seconds));
    message_add(&words, ", ", PLAN_MEASURED_TRAINERS, (ull)measured->trainers);
    if (measured->workers > 0)
        message_add(&words, ", ", PLAN_MEASURED_WORKERS, (ull)measured->workers);
    label_wrap(terminal, PLAN_LABEL_MEASURED, buffer_text(&words));
    show_processes(terminal, measured);
}

static const char *source_words(const PlanView *view)
{
    if (view->question->basis == BASIS_KIND)
        return PLAN_SOURCE_KIND;
    if (view->question->basis == BASIS_PER_PROCESS)
        return PLAN_SOURCE_GIVEN;
    if (!view->measured)
        return PLAN_SOURCE_COMPUTED;
    return view->measured->scaled ? PLAN_SOURCE_SCALED : PLAN_SOURCE_MEASURED;
}

static void show_need(const Terminal *terminal, const PlanView *view)
{
    const PlanQuestion *question = view->question;
    const Plan *plan = view->plan;
    LABEL_PRINT(terminal, PLAN_LABEL_NEEDED, PLURAL(plan->trainers, PLAN_NEEDED_ONE, PLAN_NEEDED_MANY),
                SIZE_TEXT(plan->base_bytes), source_words(view), (ull)plan->trainers,
                SIZE_TEXT(plan->per_trainer_bytes));
    if (plan->bound_bytes > plan->base_bytes)
        LABEL_PRINT(terminal, PLAN_LABEL_BOUND, PLAN_BOUND, SIZE_TEXT(plan->bound_bytes));
    if (plan->collective_bytes > 0)
        LABEL_PRINT(terminal, PLAN_LABEL_COLLECTIVES, PLAN_COLLECTIVES, SIZE_TEXT(plan->collective_bytes),
                    plan_collectives_names[question->collectives]);
    terminal_label(terminal, PLAN_LABEL_RECOMMENDED);
    if (question->basis != BASIS_KIND)
        terminal_print(terminal, STYLE_BOLD, PLAN_RECOMMENDED, SIZE_TEXT(plan->recommended_bytes),
                       question->margin);
    else
        terminal_print(terminal, STYLE_BOLD, PLAN_RECOMMENDED_KIND, SIZE_TEXT(plan->recommended_bytes));
    fputc('\n', terminal->out);
}

static void show_verdict(const Terminal *terminal, const Plan *plan, bool kind)
{
    Style style = plan->fits ? STYLE_GOOD : STYLE_BAD;
    terminal_label(terminal, PLAN_LABEL_VERDICT);
    terminal_print(terminal, style, "%s ", terminal_mark(terminal, plan->fits ? MARK_GOOD : MARK_BAD));
    terminal_print(terminal, style,
                   plan->fits ? kind ? PLAN_FITS_KIND : PLAN_FITS
                   : kind     ? PLAN_FITS_NOT_KIND
                              : PLAN_FITS_NOT,
                   SIZE_TEXT(plan->tight_bytes));
    fputc('\n', terminal->out);
}

static void show_room(const Terminal *terminal, const PlanView *view)
{
    const PlanQuestion *question = view->question;
    const Plan *plan = view->plan;
    _cleanup_buffer_ Buffer words = {0};
    if (question->shm_bytes == U64_UNKNOWN)
        message_add(&words, ", ", PLAN_AVAILABLE_ANY);
    else
        message_add(&words, ", ", PLAN_AVAILABLE_SHM, SIZE_TEXT(question->shm_bytes));
    if (question->memory_room_bytes != U64_UNKNOWN)
        message_add(&words, ", ", PLAN_AVAILABLE_MEMORY, SIZE_TEXT(question->memory_room_bytes));
    label_wrap(terminal, PLAN_LABEL_AVAILABLE, buffer_text(&words));
    if (plan->room_bytes == U64_UNKNOWN)
        label_wrap(terminal, PLAN_LABEL_VERDICT, PLAN_FITS_UNKNOWN);
    else
        show_verdict(terminal, plan, question->basis == BASIS_KIND);
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
            LABEL_PRINT(terminal, PLAN_LABEL_ROOM,
                        PLURAL(plan->largest_trainers, PLAN_ROOM_ONE, PLAN_ROOM_MANY),
                        (ull)plan->largest_trainers);
        return;
    }
    if (plan->room_bytes == U64_UNKNOWN)
        return;
    const PlanLoader *loader = &view->question->loaders[plan->largest_loader];
    if (!plan->has_largest)
        label_wrap(terminal, PLAN_LABEL_LARGEST,
                   loader->batch ? PLAN_LARGEST_NONE_SAMPLE : PLAN_LARGEST_NONE);
    else if (plan->largest_batch)
        LABEL_PRINT(terminal, PLAN_LABEL_LARGEST,
                    PLURAL(plan->largest_workers, PLAN_LARGEST_BATCH_ONE, PLAN_LARGEST_BATCH_MANY),
                    (ull)plan->largest_batch, (ull)plan->largest_workers);
    else
        LABEL_PRINT(terminal, PLAN_LABEL_LARGEST,
                    PLURAL(plan->largest_workers, PLAN_LARGEST_ONE, PLAN_LARGEST_MANY),
                    (ull)plan->largest_workers);
    if (plan->n_ladder == 0)
        return;

    char workers[64] = PLAN_HEAD_WORKERS;
    char batch[64];
    if (loader->batch)
        snprintf(workers, sizeof workers, PLAN_HEAD_WORKERS_WITH, (ull)loader->batch);
    snprintf(batch, sizeof batch, PLURAL(loader->workers, PLAN_HEAD_BATCH_ONE, PLAN_HEAD_BATCH_MANY),
             (ull)loader->workers);
    const Column columns[] = {{PLAN_HEAD_SETTING},
                              {PLAN_HEAD_SHARE, .right = true},
                              {workers, .right = true},
                              {batch, .right = true}};
    Table table = {.columns = columns,
                   .n_columns = ARRAY_SIZE(columns) - (loader->batch == 0),
                   .n_rows = plan->n_ladder,
                   .cell = ladder_cell,
                   .context = plan};
    fprintf(terminal->out, "\n%s\n", PLAN_LADDER_TITLE);
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
    static const Column columns[] = {{PLAN_HEAD_PER_GPU, .right = true},
                                     {PLAN_HEAD_PROCESSES, .right = true},
                                     {PLAN_HEAD_NEEDED, .right = true},
                                     {PLAN_HEAD_RECOMMENDED, .right = true}};
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
    fprintf(terminal->out, "  %s\n", label);
    terminal_verbatim(terminal, 4, text);
}

static void show_ways(const Terminal *terminal, const PlanView *view)
{
    const ShmFlags *flags = view->flags;
    if (!flags)
        return;
    fprintf(terminal->out, "\n" PLAN_WAYS "\n", SIZE_TEXT(view->plan->recommended_bytes));
    show_flag(terminal, PLAN_WAY_ENGINE, flags->engine);
    show_flag(terminal, PLAN_WAY_COMPOSE, flags->compose);
    show_flag(terminal, PLAN_WAY_KUBERNETES, flags->kubernetes);
    show_flag(terminal, PLAN_WAY_REMOUNT, flags->remount);
    show_flag(terminal, PLAN_WAY_FSTAB, flags->fstab);
    if (view->guard->ready) {
        _cleanup_buffer_ Buffer words = {0};
        (void)buffer_printf(&words, PLAN_WAY_GUARD, SIZE_TEXT(view->plan->guard_bytes));
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
            LABEL_PRINT(terminal, PLAN_LABEL_LOADER, "%zu", i + 1);
        show_loader(terminal, &view->question->loaders[i], &plan->loaders[i]);
    }
    if (view->measured)
        show_measured(terminal, view->measured);
    show_need(terminal, view);
    if (view->nodes)
        show_nodes(terminal, view->nodes, view->question->jobs);
    else {
        show_room(terminal, view);
        show_inverse(terminal, view);
    }
    if (view->question->table)
        show_range(terminal, plan);
    if (plan->n_notes > 0)
        fputc('\n', terminal->out);
    for (size_t i = 0; i < plan->n_notes; i++) {
        const char *mark = terminal_mark(terminal, MARK_INFO);
        fprintf(terminal->out, "%s ", mark);
        terminal_wrap(terminal, (unsigned)text_columns(text_of(mark)) + 1, 2, plan->notes[i]);
    }
    if (!view->nodes)
        show_ways(terminal, view);
}
