#include "explain-case.h"

/* What the log itself shows somebody to believe comes first: there is room for few notes. */
void case_notes(Case *it)
{
    CauseId id = it->out->cause.id;
    bool shm = id == CAUSE_SHM_EXHAUSTED;
    bool oom = id == CAUSE_CGROUP_OOM || id == CAUSE_SYSTEM_OOM;

    if (oom && case_has(it, CLUE_BUS_WORKER))
        case_note(
            it, "PyTorch's message speaks of shared memory; that is a guess it prints with every bus error. "
                "The kernel's log is the better witness.");
    if (case_has(it, CLUE_SAYS_FILE_SYSTEM) && (shm || id == CAUSE_SEGMENTS_DELETED))
        case_note(
            it, "The sharing strategy 'file_system' uses the same /dev/shm as the default one and fails the "
                "same way when it is full; it only saves descriptors, and leaves names that others can "
                "delete.");
    if (id == CAUSE_FD_EXHAUSTED)
        case_note(
            it,
            "The sharing strategy 'file_system', which PyTorch suggests, needs no descriptor a tensor, but "
            "the same room in /dev/shm, and it leaves files behind when a job is killed.");
    if (case_has(it, CLUE_SAYS_PIN_MEMORY) && (shm || oom))
        case_note(
            it,
            "pin_memory=False saves no shared memory: pinned buffers are not in /dev/shm, and pinning lets "
            "go of the shared batch sooner.");
    if (case_has(it, CLUE_SAYS_GC) && (shm || oom))
        case_note(it,
                  "gc.collect() in __getitem__ is no cure: it slows the workers down, which hides a backlog. "
                  "Bound what is in flight: fewer workers or a smaller prefetch_factor.");
    if (case_has(it, CLUE_SAYS_LS) && shm)
        case_note(
            it, "An empty `ls /dev/shm` does not mean that it is unused: PyTorch removes the names at once. "
                "`shmguard ps` shows what is held.");
    if (case_has(it, CLUE_SAYS_RSS_SHMEM) && (shm || oom))
        case_note(it,
                  "RssShmem does not count library files: those are RssFile. It is shared memory that was "
                  "touched.");
    if (id == CAUSE_BUS_ERROR_FILE)
        case_note(it,
                  "Not every bus error is about shared memory: a mapped file that shrank and failing storage "
                  "raise it too.");
    if (shm) {
        case_note(it,
                  "This is not the OOM killer: a full /dev/shm ends in a bus error or an exception, the OOM "
                  "killer sends SIGKILL and is about RAM.");
        case_note(
            it, "Only containers begin with a /dev/shm of 64 MB; on a plain machine it is half of the RAM.");
        if (!case_has(it, CLUE_SAYS_FILE_SYSTEM))
            case_note(it, "set_sharing_strategy('file_system') does not help: it uses the same /dev/shm.");
    }
    if (oom) {
        case_note(it, "A larger /dev/shm does not help here: what lies in it counts as memory too.");
        case_note(it,
                  "Memory that grows in the workers need not be a leak: touching Python objects copies pages "
                  "that were shared at fork, until the whole dataset is copied. Arrays instead of lists of "
                  "objects stop that.");
    }
    if (it->clue == CLUE_GPU_MEMORY)
        case_note(
            it,
            "GPU memory, RAM and shared memory are three things: a larger /dev/shm gives the GPU nothing.");
}
