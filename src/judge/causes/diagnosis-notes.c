/* SPDX-License-Identifier: Apache-2.0 */
#include "cause-context.h"
#include "causes-text.h"

#define OF(cause)  (1U << (cause))
#define ANY_OOM    (OF(CAUSE_CGROUP_OOM) | OF(CAUSE_SYSTEM_OOM))
#define SHM_OR_OOM (OF(CAUSE_SHM_EXHAUSTED) | ANY_OOM)

/* A common misconception, and when it matters. */
typedef struct Belief {
    unsigned causes; /* for which it matters */
    Clue shown_by;   /* the clue by which the log shows this belief; CLUES: not needed */
    Clue only_with;  /* the deciding clue; CLUES: any */
    Clue not_with;
    const char *text;
} Belief;

/* Only a few are shown, so beliefs that the log itself shows come first. */
static const Belief beliefs[] = {
    {ANY_OOM, CLUE_BUS_WORKER, CLUES, CLUES, NOTE_TORCH_GUESSES},
    {OF(CAUSE_SHM_EXHAUSTED), CLUE_SAYS_FILE_SYSTEM, CLUES, CLUES, NOTE_FILE_SYSTEM_FULL},
    {OF(CAUSE_SEGMENTS_DELETED), CLUE_SAYS_FILE_SYSTEM, CLUES, CLUES, NOTE_FILE_SYSTEM_NAMES},
    {OF(CAUSE_FD_EXHAUSTED), CLUES, CLUES, CLUES, NOTE_FILE_SYSTEM_FILES},
    {SHM_OR_OOM, CLUE_SAYS_PIN_MEMORY, CLUES, CLUES, NOTE_PIN_MEMORY},
    {SHM_OR_OOM, CLUE_SAYS_GC, CLUES, CLUES, NOTE_GC},
    {OF(CAUSE_SHM_EXHAUSTED), CLUE_SAYS_LS, CLUES, CLUES, NOTE_LS},
    {SHM_OR_OOM, CLUE_SAYS_RSS_SHMEM, CLUES, CLUES, NOTE_RSS_SHMEM},
    {SHM_OR_OOM | OF(CAUSE_PYTHON_ERROR), CLUE_WORKER_THREADS, CLUES, CLUES, NOTE_WORKER_THREADS},
    {OF(CAUSE_BUS_ERROR_FILE), CLUES, CLUES, CLUES, NOTE_EVERY_BUS_ERROR},
    {OF(CAUSE_SHM_EXHAUSTED), CLUES, CLUES, CLUES, NOTE_OOM_KILLER},
    {OF(CAUSE_SHM_EXHAUSTED), CLUES, CLUES, CLUE_SHM_INODES, NOTE_64_MB},
    {OF(CAUSE_SHM_EXHAUSTED), CLUES, CLUES, CLUE_SHM_INODES, NOTE_FILE_SYSTEM},
    {ANY_OOM, CLUES, CLUES, CLUES, NOTE_LARGER_SHM},
    {ANY_OOM, CLUES, CLUES, CLUES, NOTE_COPIES},
    {OF(CAUSE_PYTHON_ERROR), CLUES, CLUE_GPU_MEMORY, CLUES, NOTE_GPU_MEMORY},
};

void diagnosis_notes(CauseContext *context, Diagnosis *diagnosis)
{
    for (size_t i = 0; i < ARRAY_SIZE(beliefs); i++) {
        const Belief *belief = &beliefs[i];
        if ((belief->causes & OF(diagnosis->cause.id)) &&
            (belief->shown_by == CLUES || clue_is_seen(context, belief->shown_by)) &&
            (belief->only_with == CLUES || belief->only_with == context->clue) &&
            (belief->not_with == CLUES || belief->not_with != context->clue))
            diagnosis_note(context, diagnosis, _(belief->text));
    }
}
