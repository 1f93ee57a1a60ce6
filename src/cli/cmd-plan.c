/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "command.h"
#include "measure.h"
#include "need.h"
#include "plan-parse.h"
#include "preload-library.h"
#include "proc-status.h"
#include "show-plan.h"

enum { KIND_NOT_SAID = -1, COLLECTIVES_NOT_SAID = -1, FOR_NOT_SAID = -1, FOR_SECONDS_DEFAULT = 60 };

#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)

typedef struct PlanOptions {
    const char *batch_bytes;
    OptionList samples;
    const char *batch;
    OptionList loaders;
    const char *workers;
    const char *prefetch;
    const char *held;
    int collate;
    int strategy;
    const char *ranks;
    const char *jobs;
    int collectives;
    const char *per_process;
    const char *gpus;
    const char *per_gpu;
    const char *margin;
    const char *shm;
    const char *memory;
    bool measure;
    double for_seconds;
    const char *from_batch;
    int pid;
    int kind;
    bool json;
    const char *root;
    int color;
} PlanOptions;

static const char *const collate_choices[] = {"stack", "list", NULL};
static const char *const strategy_choices[] = {"file_descriptor", "file_system", NULL};

static const Option plan_options[] = {
    {OPTION_LIST, 0, "sample", offsetof(PlanOptions, samples), "DTYPE[D0,D1,...]",
     .help = "a tensor of one sample, as float32[3,224,224];\nDTYPE alone is a number; once for each tensor"},
    {OPTION_TEXT, 0, "batch", offsetof(PlanOptions, batch), "N", .help = "samples in a batch"},
    {OPTION_TEXT, 0, "batch-bytes", offsetof(PlanOptions, batch_bytes), "SIZE",
     .help = "the size of a batch, instead of samples"},
    {OPTION_TEXT, 0, "workers", offsetof(PlanOptions, workers), "N", .help = "the DataLoader's num_workers"},
    {OPTION_TEXT, 0, "prefetch", offsetof(PlanOptions, prefetch), "N", .help = "its prefetch_factor (2)"},
    {OPTION_TEXT, 0, "held", offsetof(PlanOptions, held), "N", .help = "batches that the trainer keeps (1)"},
    {OPTION_CHOICE, 0, "collate", offsetof(PlanOptions, collate), "HOW", collate_choices,
     "stack (one tensor for each field of a batch)\nor list (one for each sample)"},
    {OPTION_LIST, 0, "loader", offsetof(PlanOptions, loaders), "\"NAME=VALUE;...\"",
     .help = "one of several loaders alive together:\n\"sample=...;batch=...;workers=...;prefetch=...\";\n"
             "what it leaves out is as in the options above"},
    {OPTION_CHOICE, 0, "strategy", offsetof(PlanOptions, strategy), "NAME", strategy_choices,
     "PyTorch's sharing strategy: file_descriptor\nor file_system"},
    {OPTION_TEXT, 0, "ranks", offsetof(PlanOptions, ranks), "N",
     .help = "trainers of a job on this node (1)"},
    {OPTION_CHOICE, 0, "collectives", offsetof(PlanOptions, collectives), "NAME", plan_collectives_names,
     "what ranks talk through: none, nccl or gloo\n(nccl with several ranks)"},
    {OPTION_TEXT, 0, "jobs", offsetof(PlanOptions, jobs), "N", .help = "such jobs at the same time (1)"},
    {OPTION_TEXT, 0, "gpus", offsetof(PlanOptions, gpus), "N",
     .help = "instead of --jobs: GPUs, with --per-gpu"},
    {OPTION_TEXT, 0, "per-gpu", offsetof(PlanOptions, per_gpu), "N|A..B",
     .help = "jobs on each GPU; a range makes a table"},
    {OPTION_TEXT, 0, "per-process", offsetof(PlanOptions, per_process), "SIZE",
     .help = "what one trainer takes, where that is known"},
    {OPTION_CHOICE, 0, "kind", offsetof(PlanOptions, kind), "KIND", plan_kind_names,
     "when nothing is known, a rule of thumb:\nimage, audio, video or multimodal"},
    {OPTION_FLAG, 0, "measure", offsetof(PlanOptions, measure),
     .help = "run COMMAND for a while and measure; --workers\nand --batch then say what to scale to"},
    {OPTION_SECONDS, 0, "for", offsetof(PlanOptions, for_seconds), "SECONDS",
     .help = "how long to measure, from the first shared\ntensor on (60s)"},
    {OPTION_TEXT, 0, "from-batch", offsetof(PlanOptions, from_batch), "N",
     .help = "the batch size that was measured, to scale\nto --batch"},
    {OPTION_PID, 'p', "pid", offsetof(PlanOptions, pid), "PID", .help = "measure a job that runs"},
    {OPTION_TEXT, 0, "margin", offsetof(PlanOptions, margin), "FACTOR", .help = "on top of the need (1.3)"},
    {OPTION_TEXT, 0, "shm", offsetof(PlanOptions, shm), "SIZE",
     .help = "the room in /dev/shm, not this machine's"},
    {OPTION_TEXT, 0, "memory", offsetof(PlanOptions, memory), "SIZE",
     .help = "the memory, not this machine's"},
    OPTION_JSON(PlanOptions),
    OPTION_ROOT(PlanOptions),
    OPTION_COLOR(PlanOptions),
    {OPTION_END},
};

/* One `plan`, from its options to its answer. */
typedef struct Planning {
    PlanOptions options;
    char **command; /* NULL: none */
    Arena arena;
    PlanLoader *loaders;
    size_t n_loaders;
    size_t loaders_capacity;
    PlanLoader usual;
    PlanQuestion question;
    PlanMeasured measured;
    bool ranks_said;
    int command_code;
} Planning;

static void planning_free(Planning *planning)
{
    arena_free(&planning->arena);
}

/* --- Options -------------------------------------------------------------------------------------------- */

static bool value_wrong(const char *option, const Buffer *error, int *ret_code)
{
    *ret_code = complain(EX_USAGE, "plan: --%s %s", option, buffer_text(error));
    return false;
}

/* What was not said stays as it is. */
static bool count_take(const char *option, const char *text, uint64_t most, uint64_t *value, int *ret_code)
{
    _cleanup_buffer_ Buffer error = {0};
    return !text || plan_count_parse(text_of(text), most, value, &error) >= 0 ||
           value_wrong(option, &error, ret_code);
}

static bool size_take(const char *option, const char *text, uint64_t *value, int *ret_code)
{
    _cleanup_buffer_ Buffer error = {0};
    return !text || plan_size_parse(text_of(text), value, &error) >= 0 ||
           value_wrong(option, &error, ret_code);
}

static bool margin_take(Planning *planning, int *ret_code)
{
    _cleanup_buffer_ Buffer error = {0};
    const char *text = planning->options.margin;
    return !text || plan_margin_parse(text_of(text), &planning->question.margin, &error) >= 0 ||
           value_wrong("margin", &error, ret_code);
}

static bool usual_take(Planning *planning, int *ret_code)
{
    const PlanOptions *options = &planning->options;
    PlanLoader *usual = &planning->usual;
    usual->list = options->collate == 1;
    if (options->workers && strcmp(options->workers, "0") == 0) {
        *ret_code =
            complain(EX_USAGE, "plan: --workers 0: without workers the trainer loads by itself and needs no "
                               "shared memory");
        return false;
    }
    if (!count_take("batch", options->batch, PLAN_BATCH_MOST, &usual->batch, ret_code) ||
        !size_take("batch-bytes", options->batch_bytes, &usual->batch_bytes, ret_code) ||
        !count_take("workers", options->workers, PLAN_COUNT_MOST, &usual->workers, ret_code) ||
        !count_take("prefetch", options->prefetch, PLAN_COUNT_MOST, &usual->prefetch, ret_code) ||
        !count_take("held", options->held, PLAN_COUNT_MOST, &usual->held, ret_code))
        return false;
    for (size_t i = 0; i < options->samples.n; i++) {
        _cleanup_buffer_ Buffer error = {0};
        int r = plan_loader_add(usual, text_of(options->samples.items[i]), &planning->arena, &error);
        if (r < 0) {
            *ret_code = r == -ENOMEM ? complain(EX_SOFTWARE, "out of memory")
                                     : complain(EX_USAGE, "plan: --sample: %s", buffer_text(&error));
            return false;
        }
    }
    return true;
}

static bool question_take(Planning *planning, int *ret_code)
{
    const PlanOptions *options = &planning->options;
    PlanQuestion *question = &planning->question;
    planning->ranks_said = options->ranks;
    question->file_system = options->strategy == 1;
    if (!count_take("ranks", options->ranks, PLAN_COUNT_MOST, &question->ranks, ret_code) ||
        !count_take("jobs", options->jobs, PLAN_COUNT_MOST, &question->jobs, ret_code) ||
        !count_take("gpus", options->gpus, PLAN_COUNT_MOST, &question->gpus, ret_code) ||
        !size_take("per-process", options->per_process, &question->per_process_bytes, ret_code) ||
        !margin_take(planning, ret_code))
        return false;
    if (options->per_gpu) {
        _cleanup_buffer_ Buffer error = {0};
        if (plan_range_parse(text_of(options->per_gpu), &question->per_gpu_first, &question->per_gpu_last,
                             &error) < 0)
            return value_wrong("per-gpu", &error, ret_code);
        question->table = strstr(options->per_gpu, "..");
    }
    const char *missing = options->per_gpu && !options->gpus   ? "plan: --per-gpu needs --gpus N"
                          : options->gpus && !options->per_gpu ? "plan: --gpus needs --per-gpu N or A..B"
                          : options->gpus && options->jobs
                              ? "plan: --jobs follows from --gpus and --per-gpu; leave it out"
                              : NULL;
    if (missing)
        *ret_code = complain(EX_USAGE, "%s", missing);
    return !missing;
}

/* A loader is whole when the size of a batch and the number of workers are known. number: 0, or which one. */
static bool loader_check(const PlanLoader *loader, size_t number, int *ret_code)
{
    char which[32] = "";
    if (number > 0)
        snprintf(which, sizeof which, "loader %zu: ", number);
    if (loader->n_fields == 0 && loader->batch_bytes == 0)
        *ret_code = complain(EX_USAGE,
                             "plan: %ssay what a batch holds: --sample float32[3,224,224] --batch 64, or "
                             "--batch-bytes 32MiB",
                             which);
    else if (loader->n_fields > 0 && loader->batch_bytes > 0)
        *ret_code =
            complain(EX_USAGE,
                     "plan: %sboth --sample and --batch-bytes; one of them tells the size of a batch", which);
    else if (loader->n_fields > 0 && loader->batch == 0)
        *ret_code = complain(EX_USAGE, "plan: %ssay how many samples a batch has: --batch 64", which);
    else if (loader->workers == 0)
        *ret_code = complain(EX_USAGE, "plan: %ssay how many workers the loader has: --workers 4", which);
    else
        return true;
    return false;
}

static bool loaders_take(Planning *planning, int *ret_code)
{
    const OptionList *texts = &planning->options.loaders;
    for (size_t i = 0; i < MAX(texts->n, (size_t)1); i++) {
        _cleanup_buffer_ Buffer error = {0};
        PlanLoader *loader =
            ARENA_PUSH(&planning->arena, planning->loaders, planning->n_loaders, planning->loaders_capacity);
        int r = !loader ? -ENOMEM : 0;
        if (r >= 0 && texts->n > 0)
            r = plan_loader_parse(text_of(texts->items[i]), &planning->usual, &planning->arena, loader,
                                  &error);
        else if (r >= 0)
            *loader = planning->usual;
        if (r < 0) {
            *ret_code = r == -ENOMEM
                            ? complain(EX_SOFTWARE, "out of memory")
                            : complain(EX_USAGE, "plan: --loader %zu: %s", i + 1, buffer_text(&error));
            return false;
        }
        if (!loader_check(loader, texts->n > 0 ? i + 1 : 0, ret_code))
            return false;
    }
    planning->question.loaders = planning->loaders;
    planning->question.n_loaders = planning->n_loaders;
    return true;
}

/* What changes nothing about the answer would be taken to have changed it. True: there is none. */
static bool loader_options_refuse(const PlanOptions *options, const char *source, int *ret_code)
{
    const struct {
        bool said;
        const char *name;
    } parts[] = {
        {options->batch, "batch"}, {options->workers, "workers"}, {options->prefetch, "prefetch"},
        {options->held, "held"},   {options->collate, "collate"}, {options->strategy, "strategy"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (parts[i].said) {
            *ret_code = complain(EX_USAGE,
                                 "plan: --%s has no part in what %s says; leave it out, or give "
                                 "--sample, --batch and --workers",
                                 parts[i].name, source);
            return false;
        }
    return true;
}

/* The one source that the figures come from. */
static bool basis_take(Planning *planning, int *ret_code)
{
    const PlanOptions *options = &planning->options;
    bool loaders = options->samples.n > 0 || options->batch_bytes || options->loaders.n > 0;
    const struct {
        bool said;
        const char *name;
        PlanBasis basis;
    } sources[] = {
        {loaders,
         options->samples.n > 0 ? "--sample"
         : options->batch_bytes ? "--batch-bytes"
                                : "--loader",
         BASIS_LOADERS},
        {options->per_process, "--per-process", BASIS_PER_PROCESS},
        {options->kind != KIND_NOT_SAID, "--kind", BASIS_KIND},
        {options->measure, "--measure", BASIS_COMMAND},
        {options->pid, "--pid", BASIS_PROCESS},
    };
    size_t first = ARRAY_SIZE(sources);
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        if (sources[i].said && first < ARRAY_SIZE(sources)) {
            *ret_code = complain(EX_USAGE, "plan: either %s or %s, not both: each of them tells the need",
                                 sources[first].name, sources[i].name);
            return false;
        }
        first = sources[i].said ? i : first;
    }
    planning->question.basis = first < ARRAY_SIZE(sources) ? sources[first].basis : BASIS_LOADERS;
    planning->question.kind = options->kind == KIND_NOT_SAID ? PLAN_IMAGE : (PlanKind)options->kind;
    if (planning->question.basis == BASIS_LOADERS)
        return loaders_take(planning, ret_code);
    bool given = planning->question.basis == BASIS_PER_PROCESS || planning->question.basis == BASIS_KIND;
    return !given || loader_options_refuse(options, sources[first].name, ret_code);
}

static bool measure_check(const Planning *planning, int *ret_code)
{
    const PlanOptions *options = &planning->options;
    bool measures = options->measure || options->pid;
    const char *wrong = NULL;
    if (options->measure && !planning->command)
        wrong = "--measure needs a command: shmguard plan --measure -- python train.py";
    else if (!options->measure && planning->command)
        wrong = "a command is run only with --measure: shmguard plan --measure -- python train.py";
    else if (options->measure && options->root)
        wrong = "--measure runs a command here; --root is of another machine";
    else if (options->for_seconds >= 0 && !options->measure)
        wrong = "--for tells how long to measure; say --measure, and a command";
    else if (options->measure && options->for_seconds >= 0 && !(options->for_seconds >= 1))
        wrong = "--for takes a second at least";
    else if (measures && options->batch && !options->from_batch)
        wrong = "--batch scales what was measured; say with --from-batch N which batch size that is";
    else if (options->from_batch && !(measures && options->batch))
        wrong = "--from-batch is for --measure or --pid together with --batch";
    if (wrong)
        *ret_code = complain(EX_USAGE, "plan: %s", wrong);
    return !wrong;
}

static bool planning_parse(const Command *command, int argc, char **argv, Planning *planning, int *ret_code)
{
    Operands operands;
    int place = command_place(argc, argv);
    planning->command = place + 1 < argc ? argv + place + 1 : NULL;
    argv[place] = NULL;
    return command_parse(command, place, argv, &planning->options, &operands, ret_code) &&
           usual_take(planning, ret_code) && question_take(planning, ret_code) &&
           measure_check(planning, ret_code) && basis_take(planning, ret_code);
}

/* --- Measuring ------------------------------------------------------------------------------------------ */

/* From what was measured to one trainer with the setting that was asked for. */
static int measured_scale(Planning *planning)
{
    PlanMeasured *measured = &planning->measured;
    PlanQuestion *question = &planning->question;
    const PlanLoader *usual = &planning->usual;
    uint64_t bytes =
        measured->peak_bytes / measured->trainers + (measured->peak_bytes % measured->trainers != 0);
    if (!planning->ranks_said)
        question->ranks = measured->trainers;
    if (measured->workers == 0) {
        question->per_process_bytes = bytes;
        return 0;
    }
    PlanSetting from = {measured->batch, measured->workers, usual->prefetch, usual->held, measured->guarded};
    PlanSetting to = {usual->batch, usual->workers ? usual->workers : measured->workers, usual->prefetch,
                      usual->held, false};
    int r = plan_scale(bytes, &from, &to, &question->per_process_bytes);
    if (r >= 0 && measured->guarded) {
        to.guarded = true;
        r = plan_scale(bytes, &from, &to, &question->per_process_guard_bytes);
    }
    measured->scaled =
        measured->guarded || from.workers != to.workers || (from.batch && to.batch && from.batch != to.batch);
    return r;
}

/* The most that a process of this role has had for itself; 0: unknown. */
static uint64_t own_most(const PlanMeasured *measured, Role role)
{
    uint64_t most = 0;
    for (size_t i = 0; i < measured->n_processes; i++)
        if (measured->processes[i].role == role && measured->processes[i].own_bytes != U64_UNKNOWN)
            most = MAX(most, measured->processes[i].own_bytes);
    return most;
}

/* Besides shared memory. */
static int own_note(const Planning *planning, Arena *arena, Plan *plan)
{
    const PlanMeasured *measured = &planning->measured;
    uint64_t workers = planning->usual.workers ? planning->usual.workers : measured->workers;
    uint64_t trainer = own_most(measured, ROLE_TRAINER);
    uint64_t worker = own_most(measured, ROLE_WORKER);
    if (trainer == 0)
        return 0;
    uint64_t each = bytes_add(trainer, bytes_scale(worker, (double)workers));
    return plan_note(
        plan, arena,
        arena_printf(arena,
                     "Besides shared memory a trainer had %s at most and a worker %s (measured). "
                     "For %llu trainer%s with %llu worker%s that is up to %s of RAM (scaled; "
                     "pages that they share are counted in each).",
                     SIZE_TEXT(trainer), SIZE_TEXT(worker), (unsigned long long)plan->trainers,
                     plan->trainers == 1 ? "" : "s", (unsigned long long)workers, workers == 1 ? "" : "s",
                     SIZE_TEXT(bytes_scale(each, (double)plan->trainers))));
}

static int measured_notes(const Planning *planning, Arena *arena, Plan *plan)
{
    const PlanMeasured *measured = &planning->measured;
    const PlanLoader *usual = &planning->usual;
    int r = 0;
    if (measured->guarded && measured->workers > 0)
        r = plan_note(
            plan, arena,
            arena_printf(
                arena,
                "Measured under the guard, whose pools keep segments for the next batch. Scaled to what "
                "lies in /dev/shm without it, for prefetch_factor=%llu and %llu kept by the trainer.",
                (unsigned long long)usual->prefetch, (unsigned long long)usual->held));
    if (r >= 0 && measured->now)
        r = plan_note(
            plan, arena,
            "The job holds this much now; the need is estimated from the size of its batches and the "
            "number of its workers.");
    if (r >= 0 && measured->workers > 0 && usual->workers > 0 && usual->workers != measured->workers)
        r = plan_note(plan, arena,
                      arena_printf(arena, "Measured with %llu workers, scaled to %llu.",
                                   (unsigned long long)measured->workers,
                                   (unsigned long long)usual->workers));
    if (r >= 0 && measured->batch && usual->batch && measured->batch != usual->batch)
        r = plan_note(plan, arena,
                      arena_printf(arena, "Measured with batches of %llu, scaled to %llu.",
                                   (unsigned long long)measured->batch, (unsigned long long)usual->batch));
    if (r >= 0)
        r = own_note(planning, arena, plan);
    if (r >= 0 && planning->command_code != 0)
        r = plan_note(plan, arena,
                      arena_printf(arena,
                                   "The command ended by itself with code %d; what it would have taken later "
                                   "is unknown.",
                                   planning->command_code));
    return r;
}

static int command_measure(Planning *planning)
{
    MeasureWish wish = {.command = planning->command,
                        .seconds = planning->options.for_seconds >= 0 ? planning->options.for_seconds
                                                                      : FOR_SECONDS_DEFAULT,
                        .quiet = planning->options.json};
    int code = measure_run(&wish, &planning->arena, &planning->measured, &planning->command_code);
    if (code != EX_OK)
        return code;
    if (planning->measured.peak_bytes == 0)
        return complain(
            EX_DATAERR,
            "plan: --measure: the command took no shared memory in %.0f seconds (its exit code is %d); does "
            "its DataLoader have workers?",
            planning->measured.seconds, planning->command_code);
    return EX_OK;
}

/* The processes of a job as they are; the kernel also knows the most that each has had. */
static int processes_take(Planning *planning, const OpenedSurvey *opened, int trainer, size_t *capacity)
{
    PlanMeasured *measured = &planning->measured;
    for (size_t i = 0; i < opened->survey.n_processes; i++) {
        const Process *process = &opened->survey.processes[i];
        ProcStatus status;
        if (process->job != trainer)
            continue;
        ProcessPeak *peak =
            ARENA_PUSH(&planning->arena, measured->processes, measured->n_processes, *capacity);
        if (!peak)
            return -ENOMEM;
        bool known = process->rss_bytes != U64_UNKNOWN && process->rss_shmem_bytes != U64_UNKNOWN;
        *peak = (ProcessPeak){
            .pid = process->pid,
            .role = process->role,
            .rss_bytes = process->rss_bytes,
            .shm_bytes = process->rss_shmem_bytes,
            .own_bytes =
                known ? process->rss_bytes - MIN(process->rss_shmem_bytes, process->rss_bytes) : U64_UNKNOWN,
        };
        memcpy(peak->comm, process->comm, sizeof peak->comm);
        if (proc_status_read(&opened->root, process->pid, &status) >= 0)
            u64_raise(&peak->rss_bytes, status.rss_peak_bytes);
    }
    return 0;
}

/* The jobs of the process, of a launcher those below it. */
static int process_measure(Planning *planning, const OpenedSurvey *opened)
{
    const Survey *survey = &opened->survey;
    size_t capacity = 0;
    int r = 0;
    PlanMeasured *measured = &planning->measured;
    const Process *asked = survey_process(survey, planning->options.pid);
    uint64_t need = 0;
    uint64_t workers = 0;
    for (size_t i = 0; r >= 0 && i < survey->n_processes; i++) {
        const Process *process = &survey->processes[i];
        if (process->role != ROLE_TRAINER ||
            !(process->pid == asked->job || process_is_below(survey, process, asked->pid)))
            continue;
        JobNeed job;
        job_need(survey, process->pid, &job);
        measured->trainers++;
        measured->peak_bytes = bytes_add(measured->peak_bytes, job.held_bytes);
        need = bytes_add(need, job.need_bytes);
        workers += job.workers;
        r = processes_take(planning, opened, process->pid, &capacity);
    }
    if (r < 0)
        return complain(EX_SOFTWARE, "out of memory");
    if (measured->trainers == 0 || measured->peak_bytes == 0)
        return complain(EX_DATAERR,
                        "plan: process %d is no training with shared tensors; shmguard ps lists those that "
                        "are",
                        planning->options.pid);
    measured->now = true;
    measured->workers = (workers + measured->trainers - 1) / measured->trainers;
    uint64_t held = measured->peak_bytes;
    measured->peak_bytes = need; /* for the scaling, which knows one figure */
    r = measured_scale(planning);
    measured->peak_bytes = held;
    measured->scaled = measured->scaled || need != held;
    return r < 0 ? complain(EX_USAGE, "plan: more than any machine has; look at the numbers once more")
                 : EX_OK;
}

/* --- The answer ----------------------------------------------------------------------------------------- */

static bool room_take(const Planning *planning, const Machine *machine, PlanQuestion *question, int *ret_code)
{
    const ShmMount *shm = &machine->shm;
    question->page_bytes = shm->state == SHM_OK && shm->huge ? HUGE_PAGE_BYTES : 4096;
    question->shm_bytes = shm->state != SHM_OK   ? 0
                          : shm->size_bytes == 0 ? U64_UNKNOWN
                                                 : shm->available_bytes;
    question->memory_bytes = memory_granted_bytes(machine);
    question->memory_room_bytes = memory_room_bytes(machine);
    if (planning->options.memory) {
        if (!size_take("memory", planning->options.memory, &question->memory_bytes, ret_code))
            return false;
        question->memory_room_bytes = question->memory_bytes;
    }
    if (!size_take("shm", planning->options.shm, &question->shm_bytes, ret_code))
        return false;
    /* A size that was given is judged as it is; one beyond our memory is of another machine. */
    if (planning->options.shm && !planning->options.memory) {
        question->memory_room_bytes = U64_UNKNOWN;
        if (question->shm_bytes > question->memory_bytes)
            question->memory_bytes = U64_UNKNOWN;
    }
    return true;
}

static int plan_answer(Planning *planning, const Machine *machine)
{
    PlanQuestion *question = &planning->question;
    Plan plan = {0};
    ShmFlags flags;
    question->collectives =
        planning->options.collectives != COLLECTIVES_NOT_SAID ? (PlanCollectives)planning->options.collectives
        : question->basis == BASIS_LOADERS                    ? COLLECTIVES_NCCL
                                           : COLLECTIVES_NONE; /* the figure has them in it */
    int r = plan_make(question, &planning->arena, &plan);
    bool measured = planning->measured.trainers > 0;
    if (r >= 0 && measured)
        r = measured_notes(planning, &planning->arena, &plan);
    if (r >= 0 && question->file_system && question->basis == BASIS_LOADERS)
        r = plan_note(&plan, &planning->arena,
                      "With file_system the batches of a loop that is left early stay in /dev/shm until the "
                      "training ends: each such loop takes as much again.");
    if (r >= 0 && plan.recommended_bytes > 0)
        r = shm_flags_make(machine, plan.recommended_bytes, &planning->arena, &flags);
    if (r == -EOVERFLOW)
        return complain(EX_USAGE, "plan: more than any machine has; look at the numbers once more");
    if (r < 0)
        return complain(EX_SOFTWARE, "out of memory");

    GuardOffer guard = guard_offer_find(machine);
    PlanView view = {question, &plan, plan.recommended_bytes > 0 ? &flags : NULL, &guard,
                     measured ? &planning->measured : NULL};
    Terminal terminal = terminal_of(stdout, (ColorMode)planning->options.color);
    if (planning->options.json)
        return json_finish(json_plan(stdout, terminal.is_tty, &view));
    show_plan(&terminal, &view);
    return EX_OK;
}

static int plan_run(const Command *command, int argc, char **argv)
{
    _cleanup_(planning_free) Planning planning = {
        .options = {.kind = KIND_NOT_SAID, .collectives = COLLECTIVES_NOT_SAID, .for_seconds = FOR_NOT_SAID},
        .usual = {.prefetch = PREFETCH_DEFAULT, .held = HELD_DEFAULT},
        .question = {.ranks = 1, .jobs = 1, .margin = NEED_MARGIN, .per_gpu_last = 1},
    };
    const PlanOptions *options = &planning.options;
    int code = EX_OK;
    if (!planning_parse(command, argc, argv, &planning, &code) ||
        !count_take("from-batch", options->from_batch, PLAN_BATCH_MOST, &planning.measured.batch, &code))
        return code;

    _cleanup_opened_survey_ OpenedSurvey opened = {0};
    Machine machine;
    if (options->pid) {
        code = survey_open(options->root, options->pid, 0, &opened);
        machine = opened.survey.machine;
    } else
        code = machine_open(options->root, &planning.arena, &machine);
    if (code != EX_OK || !room_take(&planning, &machine, &planning.question, &code))
        return code;
    uint64_t batch = planning.measured.batch;
    if (options->measure)
        code = command_measure(&planning);
    planning.measured.batch = batch;
    if (code == EX_OK && options->pid)
        code = process_measure(&planning, &opened);
    else if (code == EX_OK && options->measure && measured_scale(&planning) < 0)
        code = complain(EX_USAGE, "plan: more than any machine has; look at the numbers once more");
    return code == EX_OK ? plan_answer(&planning, &machine) : code;
}

const Command command_plan = {
    .name = "plan",
    .summary = "how much shared memory a job needs, and what fits here",
    .operands = "[-- COMMAND [ARGUMENT]...]",
    .operands_most = 0,
    .about = "Computes the shared memory of a training from its samples, batch size and workers,\n"
             "or measures it, and says what /dev/shm must have, how to get it, and which\n"
             "settings fit what is there.",
    .options = plan_options,
    .run = plan_run,
};
