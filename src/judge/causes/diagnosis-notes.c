/* SPDX-License-Identifier: Apache-2.0 */
#include "cause-context.h"

#define OF(cause)   (1U << (cause))
#define ANY_OOM     (OF(CAUSE_CGROUP_OOM) | OF(CAUSE_SYSTEM_OOM))
#define SHM_OR_OOM  (OF(CAUSE_SHM_EXHAUSTED) | ANY_OOM)
#define FILE_SYSTEM "\"The strategy 'file_system' avoids shared memory\": "

/* Each is a belief, in quotation marks, and what is true instead. */
typedef struct Belief {
    unsigned causes; /* with which it matters */
    Clue shown_by;   /* the log shows that somebody holds it; CLUES: no need to */
    Clue only_with;  /* matters only when this decided; CLUES: with any */
    Clue not_with;
    const char *text;
} Belief;

/* There is room for few: what the log itself shows somebody to believe comes first. */
static const Belief beliefs[] = {
    {ANY_OOM, CLUE_BUS_WORKER, CLUES, CLUES,
     "\"The workers are out of shared memory\": PyTorch prints that guess with every bus error. The "
     "kernel's log is the better witness."},
    {OF(CAUSE_SHM_EXHAUSTED), CLUE_SAYS_FILE_SYSTEM, CLUES, CLUES,
     FILE_SYSTEM
     "it uses the same /dev/shm and fails the same way when that is full. It only saves descriptors."},
    {OF(CAUSE_SEGMENTS_DELETED), CLUE_SAYS_FILE_SYSTEM, CLUES, CLUES,
     FILE_SYSTEM "it uses the same /dev/shm, under names that others can delete."},
    {OF(CAUSE_FD_EXHAUSTED), CLUES, CLUES, CLUES,
     FILE_SYSTEM
     "it needs no descriptor a tensor, but the same room in /dev/shm, and it leaves files behind when a "
     "job is killed."},
    {SHM_OR_OOM, CLUE_SAYS_PIN_MEMORY, CLUES, CLUES,
     "\"pin_memory=False halves the shared memory\": pinned buffers are not in /dev/shm, and pinning lets "
     "go of the shared batch sooner."},
    {SHM_OR_OOM, CLUE_SAYS_GC, CLUES, CLUES,
     "\"gc.collect() in __getitem__ is the cure\": it slows the workers down, which hides a backlog. "
     "Bound what is in flight instead."},
    {OF(CAUSE_SHM_EXHAUSTED), CLUE_SAYS_LS, CLUES, CLUES,
     "\"An empty `ls /dev/shm` means that it is unused\": PyTorch removes the names at once. `shmguard "
     "ps` shows what is held."},
    {SHM_OR_OOM, CLUE_SAYS_RSS_SHMEM, CLUES, CLUES,
     "\"RssShmem includes library files\": those are RssFile. RssShmem is shared memory that was touched."},
    {OF(CAUSE_BUS_ERROR_FILE), CLUES, CLUES, CLUES,
     "\"Every bus error is about shared memory\": a mapped file that shrank and failing storage raise it "
     "too."},
    {OF(CAUSE_SHM_EXHAUSTED), CLUES, CLUES, CLUES,
     "\"The OOM killer strikes when /dev/shm is full\": a full /dev/shm ends in a bus error or an "
     "exception. The OOM killer sends SIGKILL and is about RAM."},
    {OF(CAUSE_SHM_EXHAUSTED), CLUES, CLUES, CLUE_SHM_INODES,
     "\"/dev/shm is 64 MB\": only in containers, unless they are told otherwise. On a plain machine it is "
     "half of the RAM."},
    {OF(CAUSE_SHM_EXHAUSTED), CLUES, CLUES, CLUE_SHM_INODES, FILE_SYSTEM "it uses the same /dev/shm."},
    {ANY_OOM, CLUES, CLUES, CLUES, "\"A larger /dev/shm helps\": what lies in it counts as memory too."},
    {ANY_OOM, CLUES, CLUES, CLUES,
     "\"Memory that grows in the workers is a leak\": often it is not. Touching Python objects copies "
     "pages that were shared at fork, until the whole dataset is copied; arrays instead of lists of "
     "objects stop that."},
    {OF(CAUSE_PYTHON_ERROR), CLUES, CLUE_GPU_MEMORY, CLUES,
     "\"More shared memory helps\": GPU memory, RAM and shared memory are three things, and a larger "
     "/dev/shm gives the GPU nothing."},
};

void diagnosis_notes(CauseContext *context, Diagnosis *diagnosis)
{
    for (size_t i = 0; i < ARRAY_SIZE(beliefs); i++) {
        const Belief *belief = &beliefs[i];
        if ((belief->causes & OF(diagnosis->cause.id)) &&
            (belief->shown_by == CLUES || clue_is_seen(context, belief->shown_by)) &&
            (belief->only_with == CLUES || belief->only_with == context->clue) &&
            (belief->not_with == CLUES || belief->not_with != context->clue))
            diagnosis_note(context, diagnosis, belief->text);
    }
}
