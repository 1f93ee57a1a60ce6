/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli-text.h"
#include "command.h"
#include "measure.h"
#include "need.h"
#include "plan-parse.h"
#include "preload-library.h"
#include "progress.h"
#include "show-plan.h"

enum { KIND_NOT_GIVEN = -1, COLLECTIVES_NOT_GIVEN = -1, FOR_NOT_GIVEN = -1, FOR_SECONDS_DEFAULT = 60 };

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
    const char *nodes;
    const char *process_memory;
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
     .help = "a tensor of one sample, such as float32[3,224,224]; DTYPE alone is a single number; repeat the "
             "option for each tensor"},
    {OPTION_TEXT, 0, "batch", offsetof(PlanOptions, batch), "N", .help = "samples per batch"},
    {OPTION_TEXT, 0, "batch-bytes", offsetof(PlanOptions, batch_bytes), "SIZE",
     .help = "the size of a batch, instead of --sample"},
    {OPTION_TEXT, 0, "workers", offsetof(PlanOptions, workers), "N", .help = "the DataLoader's num_workers"},
    {OPTION_TEXT, 0, "prefetch", offsetof(PlanOptions, prefetch), "N",
     .help = "its prefetch_factor (default: 2)"},
    {OPTION_TEXT, 0, "held", offsetof(PlanOptions, held), "N",
     .help = "batches that the trainer keeps (default: 1)"},
    {OPTION_CHOICE, 0, "collate", offsetof(PlanOptions, collate), "HOW", collate_choices,
     "stack (one tensor for each field of a batch) or list (one for each sample) (default: stack)"},
    {OPTION_LIST, 0, "loader", offsetof(PlanOptions, loaders), "\"NAME=VALUE;...\"",
     .help =
         "one of several loaders that exist together, for example \"sample=int64;batch=64;workers=4\"; what "
         "it omits is taken from the options above"},
    {OPTION_CHOICE, 0, "strategy", offsetof(PlanOptions, strategy), "NAME", strategy_choices,
     "PyTorch's sharing strategy: file_descriptor or file_system (default: file_descriptor)"},
    {OPTION_TEXT, 0, "ranks", offsetof(PlanOptions, ranks), "N",
     .help = "trainers of a job on this node (default: 1)"},
    {OPTION_CHOICE, 0, "collectives", offsetof(PlanOptions, collectives), "NAME", plan_collectives_names,
     "how ranks communicate: none, nccl or gloo (default: nccl with several ranks)"},
    {OPTION_TEXT, 0, "jobs", offsetof(PlanOptions, jobs), "N",
     .help = "number of such jobs at the same time (default: 1)"},
    {OPTION_TEXT, 0, "gpus", offsetof(PlanOptions, gpus), "N",
     .help = "number of GPUs, with --per-gpu instead of --jobs"},
    {OPTION_TEXT, 0, "per-gpu", offsetof(PlanOptions, per_gpu), "N|A..B",
     .help = "jobs on each GPU; a range makes a table"},
    {OPTION_TEXT, 0, "per-process", offsetof(PlanOptions, per_process), "SIZE",
     .help = "what one trainer takes, if that is known"},
    {OPTION_CHOICE, 0, "kind", offsetof(PlanOptions, kind), "KIND", plan_kind_names,
     "a rule of thumb if nothing else is known: image, audio, video or multimodal"},
    {OPTION_FLAG, 0, "measure", offsetof(PlanOptions, measure),
     .help = "run COMMAND for a while and measure it; --workers and --batch then say what to scale to"},
    {OPTION_SECONDS, 0, "for", offsetof(PlanOptions, for_seconds), "SECONDS",
     .help = "how long to measure, from the first shared tensor on (default: 60s)"},
    {OPTION_TEXT, 0, "from-batch", offsetof(PlanOptions, from_batch), "N",
     .help = "the batch size that was measured, to scale from it to --batch"},
    {OPTION_PID, 'p', "pid", offsetof(PlanOptions, pid), "PID", .help = "measure a running job"},
    {OPTION_TEXT, 0, "margin", offsetof(PlanOptions, margin), "FACTOR",
     .help = "multiply the need by FACTOR (default: 1.3)"},
    {OPTION_TEXT, 0, "shm", offsetof(PlanOptions, shm), "SIZE",
     .help = "the room in /dev/shm (default: this machine's)"},
    {OPTION_TEXT, 0, "memory", offsetof(PlanOptions, memory), "SIZE",
     .help = "the memory (default: this machine's)"},
    {OPTION_TEXT, 0, "nodes", offsetof(PlanOptions, nodes), "FILE",
     .help =
         "say how many jobs fit on each node of a list: CSV or JSON lines of name, cpus, memory, shm, gpus "
         "and open_files, or the output of scontrol show nodes, sinfo or kubectl get nodes -o json; - is "
         "standard input; --shm and --memory are those of nodes that do not tell"},
    {OPTION_TEXT, 0, "process-memory", offsetof(PlanOptions, process_memory), "SIZE",
     .help = "with --nodes: the private memory of each process (default: not counted)"},
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
    uint64_t from_batch; /* that was measured; 0: not given */
    NodeList nodes;
    uint64_t process_bytes; /* 0: not given */
    bool ranks_given;
} Planning;

static void planning_free(Planning *planning)
{
    arena_free(&planning->arena);
}

/* --- Options -------------------------------------------------------------------------------------------- */

static bool value_wrong(const char *option, const Buffer *error, int *ret_code)
{
    *ret_code = complain(EX_USAGE, CLI_PLAN_VALUE, option, buffer_text(error));
    return false;
}

/* An option that was not given leaves the value as it is. */
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
        *ret_code = complain(EX_USAGE, CLI_PLAN_NO_WORKERS);
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
            *ret_code = r == -ENOMEM ? complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY)
                                     : complain(EX_USAGE, CLI_PLAN_SAMPLE, buffer_text(&error));
            return false;
        }
    }
    return true;
}

static bool question_take(Planning *planning, int *ret_code)
{
    const PlanOptions *options = &planning->options;
    PlanQuestion *question = &planning->question;
    planning->ranks_given = options->ranks;
    question->file_system = options->strategy == 1;
    if (!count_take("ranks", options->ranks, PLAN_COUNT_MOST, &question->ranks, ret_code) ||
        !count_take("jobs", options->jobs, PLAN_COUNT_MOST, &question->jobs, ret_code) ||
        !count_take("from-batch", options->from_batch, PLAN_BATCH_MOST, &planning->from_batch, ret_code) ||
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
    const char *wrong = options->per_gpu && !options->gpus   ? CLI_PLAN_GPUS_MISSING
                        : options->gpus && !options->per_gpu ? CLI_PLAN_PER_GPU_MISSING
                        : options->gpus && options->jobs     ? CLI_PLAN_JOBS
                                                             : NULL;
    if (wrong)
        *ret_code = complain(EX_USAGE, "%s", wrong);
    return !wrong;
}

/* A loader is complete when the size of a batch and the number of workers are known. number: of the --loader,
 * from 1 on; 0: it is made from the other options. */
static bool loader_check(const PlanLoader *loader, size_t number, int *ret_code)
{
    bool given = number > 0;
    if (loader->n_fields == 0 && loader->batch_bytes == 0)
        *ret_code = given ? complain(EX_USAGE, CLI_PLAN_LOADER_NO_BATCH, number)
                          : complain(EX_USAGE, CLI_PLAN_NO_BATCH);
    else if (loader->n_fields > 0 && loader->batch_bytes > 0)
        *ret_code = given ? complain(EX_USAGE, CLI_PLAN_LOADER_TWO_BATCHES, number)
                          : complain(EX_USAGE, CLI_PLAN_TWO_BATCHES);
    else if (loader->n_fields > 0 && loader->batch == 0)
        *ret_code = given ? complain(EX_USAGE, CLI_PLAN_LOADER_NO_SAMPLES, number)
                          : complain(EX_USAGE, CLI_PLAN_NO_SAMPLES);
    else if (loader->workers == 0)
        *ret_code = given ? complain(EX_USAGE, CLI_PLAN_LOADER_NO_COUNT, number)
                          : complain(EX_USAGE, CLI_PLAN_NO_COUNT);
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
            *ret_code = r == -ENOMEM ? complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY)
                                     : complain(EX_USAGE, CLI_PLAN_LOADER, i + 1, buffer_text(&error));
            return false;
        }
        if (!loader_check(loader, texts->n > 0 ? i + 1 : 0, ret_code))
            return false;
    }
    planning->question.loaders = planning->loaders;
    planning->question.n_loaders = planning->n_loaders;
    return true;
}

/* Refuses options that would not change the answer: the user would believe that they had. True: none was
 * given. */
static bool loader_options_refuse(const PlanOptions *options, const char *source, int *ret_code)
{
    const struct {
        bool given;
        const char *name;
    } parts[] = {
        {options->batch, "batch"}, {options->workers, "workers"}, {options->prefetch, "prefetch"},
        {options->held, "held"},   {options->collate, "collate"}, {options->strategy, "strategy"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (parts[i].given) {
            *ret_code = complain(EX_USAGE, CLI_PLAN_NO_EFFECT, parts[i].name, source);
            return false;
        }
    return true;
}

/* Finds the one source of the figures. */
static bool basis_take(Planning *planning, int *ret_code)
{
    const PlanOptions *options = &planning->options;
    bool loaders = options->samples.n > 0 || options->batch_bytes || options->loaders.n > 0;
    const struct {
        bool given;
        const char *name;
        PlanBasis basis;
    } sources[] = {
        {loaders,
         options->samples.n > 0 ? "--sample"
         : options->batch_bytes ? "--batch-bytes"
                                : "--loader",
         BASIS_LOADERS},
        {options->per_process, "--per-process", BASIS_PER_PROCESS},
        {options->kind != KIND_NOT_GIVEN, "--kind", BASIS_KIND},
        {options->measure, "--measure", BASIS_COMMAND},
        {options->pid, "--pid", BASIS_PROCESS},
    };
    size_t first = ARRAY_SIZE(sources);
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        if (sources[i].given && first < ARRAY_SIZE(sources)) {
            *ret_code = complain(EX_USAGE, CLI_PLAN_TWO_SOURCES, sources[first].name, sources[i].name);
            return false;
        }
        first = sources[i].given ? i : first;
    }
    planning->question.basis = first < ARRAY_SIZE(sources) ? sources[first].basis : BASIS_LOADERS;
    planning->question.kind = options->kind == KIND_NOT_GIVEN ? PLAN_IMAGE : (PlanKind)options->kind;
    if (planning->question.basis == BASIS_LOADERS)
        return loaders_take(planning, ret_code);
    bool given = planning->question.basis == BASIS_PER_PROCESS || planning->question.basis == BASIS_KIND;
    return !given || loader_options_refuse(options, sources[first].name, ret_code);
}

static bool measure_check(const Planning *planning, int *ret_code)
{
    const PlanOptions *options = &planning->options;
    if (options->measure && output_is_collected()) {
        *ret_code = complain(EX_USAGE, CLI_LIBRARY_REFUSES, "plan", "--measure");
        return false;
    }
    bool measures = options->measure || options->pid;
    const char *wrong = NULL;
    if (options->measure && !planning->command)
        wrong = CLI_PLAN_MEASURE_NOTHING;
    else if (!options->measure && planning->command)
        wrong = CLI_PLAN_COMMAND_IDLE;
    else if (options->measure && options->root)
        wrong = CLI_PLAN_MEASURE_ROOT;
    else if (options->for_seconds >= 0 && !options->measure)
        wrong = CLI_PLAN_FOR_IDLE;
    else if (options->measure && options->for_seconds >= 0 && !(options->for_seconds >= 1))
        wrong = CLI_PLAN_FOR_SHORT;
    else if (measures && options->batch && !options->from_batch)
        wrong = CLI_PLAN_FROM_MISSING;
    else if (options->from_batch && !(measures && options->batch))
        wrong = CLI_PLAN_FROM_IDLE;
    if (wrong)
        *ret_code = complain(EX_USAGE, "%s", wrong);
    return !wrong;
}

/* --- Nodes ---------------------------------------------------------------------------------------------- */

#define NODES_MOST_BYTES (UINT64_C(256) << 20)

/* EX_OK, or the exit code for what went wrong, which was said. */
static int nodes_read(const char *path, const char *safe, Buffer *ret)
{
    char block[1 << 16];
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "re");
    int code = EX_OK;
    size_t n = 0;
    if (!file)
        return complain(errno == EACCES ? EX_NOPERM : EX_DATAERR, CLI_PLAN_NODES_READ, safe, strerror(errno));
    while (code == EX_OK && (n = fread(block, 1, sizeof block, file)) > 0)
        if (ret->size + n > NODES_MOST_BYTES)
            code = complain(EX_DATAERR, CLI_PLAN_NODES_LARGE, safe, SIZE_TEXT(NODES_MOST_BYTES));
        else if (buffer_append(ret, block, n) < 0)
            code = complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    if (code == EX_OK && ferror(file))
        code = complain(EX_DATAERR, CLI_PLAN_NODES_READ, safe, strerror(errno));
    if (!is_stdin)
        fclose(file);
    return code;
}

/* What the list does not tell is as --shm and --memory say. */
static void nodes_complete(NodeList *nodes, uint64_t shm_bytes, uint64_t memory_bytes)
{
    for (size_t i = 0; i < nodes->n; i++) {
        NodeRoom *room = &nodes->items[i];
        room->shm_bytes = room->shm_bytes == U64_UNKNOWN ? shm_bytes : room->shm_bytes;
        room->memory_bytes = room->memory_bytes == U64_UNKNOWN ? memory_bytes : room->memory_bytes;
    }
}

static bool nodes_take(Planning *planning, int *ret_code)
{
    const PlanOptions *options = &planning->options;
    uint64_t shm_bytes = U64_UNKNOWN;
    uint64_t memory_bytes = U64_UNKNOWN;
    size_t line = 0;
    _cleanup_buffer_ Buffer text = {0};
    _cleanup_buffer_ Buffer safe = {0};
    _cleanup_buffer_ Buffer error = {0};
    if (!size_take("process-memory", options->process_memory, &planning->process_bytes, ret_code))
        return false;
    if (!options->nodes && options->process_memory)
        *ret_code = complain(EX_USAGE, CLI_PLAN_PRIVATE_IDLE);
    if (!options->nodes)
        return !options->process_memory;
    if (planning->question.basis == BASIS_KIND) {
        *ret_code = complain(EX_USAGE, CLI_PLAN_NODES_KIND);
        return false;
    }
    if (!size_take("shm", options->shm, &shm_bytes, ret_code) ||
        !size_take("memory", options->memory, &memory_bytes, ret_code))
        return false;
    (void)text_escape(text_of(options->nodes), &safe);
    *ret_code = nodes_read(options->nodes, buffer_text(&safe), &text);
    if (*ret_code != EX_OK)
        return false;
    int r = node_list_parse((Text){buffer_text(&text), text.size}, &planning->arena, &planning->nodes, &line,
                            &error);
    if (r == -ENOMEM)
        *ret_code = complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    else if (r < 0 && line > 0)
        *ret_code = complain(EX_DATAERR, CLI_PLAN_NODES_LINE, buffer_text(&safe), line, buffer_text(&error));
    else if (r < 0)
        *ret_code = complain(EX_DATAERR, CLI_PLAN_NODES, buffer_text(&safe), buffer_text(&error));
    else
        nodes_complete(&planning->nodes, shm_bytes, memory_bytes);
    return r >= 0;
}

static bool planning_parse(const Command *command, int argc, char **argv, Planning *planning, int *ret_code)
{
    Operands operands;
    int place = command_place(argc, argv);
    planning->command = place + 1 < argc ? argv + place + 1 : NULL;
    argv[place] = NULL;
    return command_parse(command, place, argv, &planning->options, &operands, ret_code) &&
           usual_take(planning, ret_code) && question_take(planning, ret_code) &&
           measure_check(planning, ret_code) && basis_take(planning, ret_code) &&
           nodes_take(planning, ret_code);
}

/* --- Measuring ------------------------------------------------------------------------------------------ */

typedef struct MeasureProgress {
    Measuring *measuring;
    Progress line;
} MeasureProgress;

static void measure_tick(void *context, const RunTick *tick)
{
    MeasureProgress *progress = context;
    const GuardFigures *guard = &tick->guard;
    ProgressFigures figures = {
        .seconds = tick->seconds,
        .tensors = guard->segments_created + guard->segments_reused + guard->small_backed,
        .batches = guard->batches,
        .bytes_backed = guard->bytes_backed,
        .bytes_now = guard->bytes_now,
        .budget_bytes = U64_UNKNOWN,
    };
    if (tick->over) {
        progress_erase(&progress->line, !guard->line); /* unless the job has erased it */
        if (guard->unfinished)
            fputc('\n', stderr);
    } else
        progress_draw(&progress->line, &figures, tick->pid, tick->wrote);
    run_line(progress->measuring->run, progress_terminal(&progress->line), progress->line.drawn);
}

/* EX_OK, or the exit code for what went wrong, which was said. */
static int measuring_run(Planning *planning, Measuring *measuring, uint64_t shm_used_bytes)
{
    Terminal terminal = terminal_of(stderr, COLOR_AUTO);
    MeasureProgress progress = {measuring, progress_open(&terminal, STDERR_FILENO, planning->options.json)};
    ChildStage stage = CHILD_NONE;
    RunResult result = {0};
    int code = EX_OK;
    measuring_on_tick(measuring, measure_tick, &progress);
    run_line(measuring->run, progress_terminal(&progress.line), false);
    int r = measuring_start(measuring, planning->command, &stage);
    if (r < 0)
        code = start_complain("plan", planning->command[0], stage, -r);
    else {
        r = measuring_finish(measuring, shm_used_bytes, &planning->arena, &planning->measured, &result);
        if (r < 0)
            code = complain(EX_SOFTWARE, CLI_PLAN_FAILED, strerror(-r));
    }
    progress_close(&progress.line);
    if (code != EX_OK)
        return code;
    if (result.typed)
        run_die();
    return result.told_to_end ? 128 + result.told_to_end : EX_OK; /* the user wants an end, not an answer */
}

static int command_measure(Planning *planning, uint64_t shm_used_bytes)
{
    double seconds = planning->options.for_seconds >= 0 ? planning->options.for_seconds : FOR_SECONDS_DEFAULT;
    _cleanup_(measuring_close) Measuring measuring;
    int r = measuring_open(seconds, &measuring);
    if (r < 0)
        return complain(EX_SOFTWARE, CLI_NO_SUPERVISOR, "plan", strerror(-r));
    if (!measuring.guarded)
        complain(0, CLI_PLAN_UNGUARDED, PEEKS_PER_SECOND);
    int code = measuring_run(planning, &measuring, shm_used_bytes);
    if (code == EX_OK && planning->measured.peak_bytes == 0)
        code = complain(EX_DATAERR, CLI_PLAN_NOTHING_MEASURED, planning->measured.seconds,
                        planning->measured.code);
    return code;
}

static int process_measure(Planning *planning, const OpenedSurvey *opened)
{
    int pid = planning->options.pid;
    int r = measured_sample(&opened->root, &opened->survey, pid, &planning->arena, &planning->measured);
    if (r == -ENODATA)
        return complain(EX_DATAERR, CLI_PLAN_NO_TRAINING, pid);
    return r < 0 ? complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY) : EX_OK;
}

/* Measures where the options ask for it. */
static int need_measure(Planning *planning, const OpenedSurvey *opened, const Machine *machine)
{
    if (!planning->options.measure && !planning->options.pid)
        return EX_OK;
    int code = planning->options.pid ? process_measure(planning, opened)
                                     : command_measure(planning, machine->shm.used_bytes);
    if (code != EX_OK)
        return code;
    planning->measured.batch = planning->from_batch;
    int r = measured_scale(&planning->measured, &planning->usual, planning->ranks_given, &planning->question);
    return r < 0 ? complain(EX_USAGE, CLI_PLAN_TOO_MUCH) : EX_OK;
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
    if (planning->nodes.n > 0) { /* it is not this machine that is asked about */
        question->shm_bytes = question->memory_bytes = question->memory_room_bytes = U64_UNKNOWN;
        return true;
    }
    if (planning->options.memory) {
        if (!size_take("memory", planning->options.memory, &question->memory_bytes, ret_code))
            return false;
        question->memory_room_bytes = question->memory_bytes;
    }
    if (!size_take("shm", planning->options.shm, &question->shm_bytes, ret_code))
        return false;
    /* A given size is taken as it is; one beyond our memory belongs to another machine. */
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
    NodesPlan nodes = {0};
    ShmFlags flags;
    question->collectives = planning->options.collectives != COLLECTIVES_NOT_GIVEN
                                ? (PlanCollectives)planning->options.collectives
                            : question->basis == BASIS_LOADERS
                                ? COLLECTIVES_NCCL
                                : COLLECTIVES_NONE; /* the figure includes them */
    int r = plan_make(question, &planning->arena, &plan);
    bool measured = planning->measured.trainers > 0;
    if (r >= 0 && measured)
        r = measured_notes(&planning->measured, &planning->usual, &planning->arena, &plan);
    if (r >= 0 && question->file_system && question->basis == BASIS_LOADERS)
        r = plan_note(&plan, &planning->arena, CLI_PLAN_FILE_SYSTEM);
    if (r >= 0 && planning->nodes.n > 0)
        r = plan_nodes_make(question, &plan, &planning->nodes, planning->process_bytes, &planning->arena,
                            &nodes);
    if (r >= 0 && plan.recommended_bytes > 0)
        r = shm_flags_make(machine, plan.recommended_bytes, &planning->arena, &flags);
    if (r == -EOVERFLOW)
        return complain(EX_USAGE, CLI_PLAN_TOO_MUCH);
    if (r < 0)
        return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);

    GuardOffer guard = guard_offer_find(machine);
    PlanView view = {question,
                     &plan,
                     plan.recommended_bytes > 0 ? &flags : NULL,
                     &guard,
                     measured ? &planning->measured : NULL,
                     planning->nodes.n > 0 ? &nodes : NULL};
    Terminal terminal = terminal_of(result_stream(), (ColorMode)planning->options.color);
    if (planning->options.json)
        return json_finish(json_plan(terminal.out, terminal.is_tty, &view));
    show_plan(&terminal, &view);
    return EX_OK;
}

static int plan_run(const Command *command, int argc, char **argv)
{
    _cleanup_(planning_free) Planning planning = {
        .options = {.kind = KIND_NOT_GIVEN,
                    .collectives = COLLECTIVES_NOT_GIVEN,
                    .for_seconds = FOR_NOT_GIVEN},
        .usual = {.prefetch = PREFETCH_DEFAULT, .held = HELD_DEFAULT},
        .question = {.ranks = 1, .jobs = 1, .margin = NEED_MARGIN, .per_gpu_last = 1},
    };
    const PlanOptions *options = &planning.options;
    int code = EX_OK;
    if (!planning_parse(command, argc, argv, &planning, &code))
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
    code = need_measure(&planning, &opened, &machine);
    return code == EX_OK ? plan_answer(&planning, &machine) : code;
}

const Command command_plan = {
    .name = "plan",
    .summary = "compute how much shared memory a job needs, and what fits here",
    .operands = "[-- COMMAND [ARGUMENT]...]",
    .operands_most = 0,
    .about =
        "Computes the shared memory of a training from its samples, batch size and workers, or measures it, "
        "and says how large /dev/shm must be, how to get there, and which settings fit into what is there.",
    .options = plan_options,
    .run = plan_run,
};
