/* SPDX-License-Identifier: Apache-2.0 */
/* What to do after a job's end. */
#include <string.h>

#include "cause-context.h"
#include "units.h"

typedef struct Advice {
    CauseContext *context;
    const Diagnosis *diagnosis;
    Fixes *fixes;
} Advice;

static void advise(Advice *advice, FixNeeds needs, const char *what, const char *command)
{
    CauseContext *context = advice->context;
    if (context->r >= 0)
        context->r = fix_add(context->arena, advice->fixes, needs, what, command);
}

/* Keeps the error that an advise_* function returned. */
static void advised(Advice *advice, int r)
{
    if (advice->context->r >= 0 && r < 0)
        advice->context->r = r;
}

/* The explanation's own, which are about the very lines that told. */
static void advise_text(Advice *advice)
{
    const Fixes *text = &advice->context->text.fixes;
    for (size_t i = 0; advice->diagnosis->from_text && i < text->n; i++)
        advise(advice, text->items[i].needs, text->items[i].what, text->items[i].command);
}

static void advise_guarded(Advice *advice, const char *what)
{
    if (!advice->context->evidence->guarded && advice->context->guard->ready)
        advise(advice, NEEDS_NOTHING, what, NULL);
}

static void advise_shm(Advice *advice)
{
    CauseContext *context = advice->context;
    uint64_t size = context->evidence->shm_size_bytes;
    bool inodes = advice->diagnosis->detail && strcmp(advice->diagnosis->detail, "inodes") == 0;
    advise_guarded(advice, "Run it without --no-guard: the batches are then kept outside /dev/shm, whose "
                           "size no longer matters.");
    if (context->evidence->guarded)
        advise(advice, NEEDS_NOTHING,
               "The guard keeps PyTorch's tensors out of /dev/shm, so something else fills it (NCCL, other "
               "jobs, leftovers): find out what while the job runs.",
               "shmguard ps --segments");
    if (inodes && context->machine) {
        advised(advice, advise_shm_inodes(context->machine, context->arena, advice->fixes));
        return;
    }
    advised(advice, advise_smaller_batches(context->arena, advice->fixes));
    uint64_t wanted = MAX(size < UINT64_MAX / 2 ? size * 2 : 0, GIB);
    if (context->machine)
        advised(advice, advise_shm_mount(context->machine, wanted, context->arena, advice->fixes));
    else
        advise(advice, NEEDS_RESTART, "Start the container or job with a larger /dev/shm.", NULL);
}

static void advise_memory(Advice *advice)
{
    CauseContext *context = advice->context;
    if (context->machine) {
        advised(advice, advise_less_memory(context->machine, context->arena, advice->fixes));
        return;
    }
    advise(advice, NEEDS_NOTHING,
           "Lower num_workers first, because each worker has its own memory; then batch_size and "
           "prefetch_factor.",
           NULL);
    advise(advice, NEEDS_RESTART, "Ask for more memory for the container or job.", NULL);
}

static void advise_budget(Advice *advice)
{
    CauseContext *context = advice->context;
    const Evidence *evidence = context->evidence;
    if (evidence->refused_for_want) {
        advise_memory(advice);
        return;
    }
    advise(advice, NEEDS_NOTHING,
           cause_printf(context,
                        "Raise --budget to several times the largest batch (%s), or remove --budget.",
                        SIZE_TEXT(refused_most_bytes(evidence))),
           NULL);
    advise(advice, NEEDS_NOTHING, "Or make the batches smaller: lower batch_size.", NULL);
}

static void advise_files(Advice *advice)
{
    CauseContext *context = advice->context;
    advise(advice, NEEDS_NOTHING,
           "Hold fewer tensors: keep numbers (loss.item()) and clones of what the loader gives, not the "
           "batches themselves, and pack many small tensors into one.",
           NULL);
    if (context->machine)
        advised(advice, advise_open_files(context->machine, context->arena, advice->fixes));
    else
        advise(advice, NEEDS_NOTHING, "Raise the limit of open files in the shell that starts the training.",
               "ulimit -n $(ulimit -Hn)");
}

static void advise_maps(Advice *advice)
{
    CauseContext *context = advice->context;
    if (context->machine) {
        advised(advice, advise_max_map_count(context->machine, context->arena, advice->fixes));
        return;
    }
    advise(advice, NEEDS_NOTHING,
           "Hold fewer shared tensors: each takes a mapping, however small it is. Pack many into one.", NULL);
    advise(advice, NEEDS_ROOT, "Raise the kernel's limit of mappings.", "sysctl -w vm.max_map_count=262144");
}

static void advise_deleted(Advice *advice)
{
    CauseContext *context = advice->context;
    advise_guarded(advice, "Run it without --no-guard: the supervisor then keeps the names, and no other "
                           "program can delete them.");
    advise_text(advice);
    if (context->machine)
        advised(advice, advise_remove_ipc(context->machine, context->arena, advice->fixes));
}

static void advise_mapped_file(Advice *advice)
{
    advise(
        advice, NEEDS_NOTHING,
        "Do not change or truncate files while a training has them mapped: write a new file and rename it.",
        NULL);
    advise(advice, NEEDS_NOTHING, "Compare the file's size with what it should be, and look for I/O errors.",
           "dmesg | grep -i error");
}

static void advise_crash(Advice *advice)
{
    const Ended *ended = advice->diagnosis->ended;
    if (ended && ended->has_fault && ended->fault.stack)
        advise(advice, NEEDS_NOTHING,
               "Update or reinstall the package that the Python line calls, together with the other packages "
               "that have native code.",
               NULL);
    else {
        advise(advice, NEEDS_NOTHING,
               "Run it with the fault handler enabled: it prints the Python line of the crash.",
               "export PYTHONFAULTHANDLER=1");
        advise(advice, NEEDS_NOTHING,
               "Update or reinstall the packages that have native code, all together; suspect the newest one "
               "first.",
               NULL);
    }
}

static void advise_killed(Advice *advice)
{
    if (advice->diagnosis->from_text)
        advise_text(advice);
    else if (advice->context->evidence->passed_on == 0)
        advise(advice, NEEDS_NOTHING,
               "Find out what ended it: look at the scheduler's log (time limit, preemption) and the "
               "container's events, and ask colleagues. Save checkpoints so that nothing is lost.",
               NULL);
}

void diagnosis_fixes(CauseContext *context, const Diagnosis *diagnosis, Fixes *fixes)
{
    Advice advice = {context, diagnosis, fixes};
    switch (diagnosis->cause.id) {
    case CAUSE_SHM_EXHAUSTED:
        advise_shm(&advice);
        break;
    case CAUSE_BUDGET_EXCEEDED:
        advise_budget(&advice);
        break;
    case CAUSE_CGROUP_OOM:
    case CAUSE_SYSTEM_OOM:
        advise_memory(&advice);
        break;
    case CAUSE_KILLED:
        advise_killed(&advice);
        break;
    case CAUSE_SEGFAULT:
        if (diagnosis->from_text)
            advise_text(&advice);
        else
            advise_crash(&advice);
        break;
    case CAUSE_BUS_ERROR_FILE:
        advise_mapped_file(&advice);
        break;
    case CAUSE_FD_EXHAUSTED:
        advise_files(&advice);
        break;
    case CAUSE_MAPS_EXHAUSTED:
        advise_maps(&advice);
        break;
    case CAUSE_SEGMENTS_DELETED:
        advise_deleted(&advice);
        break;
    case CAUSE_PYTHON_ERROR:
    case CAUSE_WORKER_HANG:
    case CAUSE_UNKNOWN:
        advise_text(&advice);
        break;
    case CAUSE_OK:
    case CAUSE_IDS:
        break;
    }
    fixes_rank(fixes);
}
