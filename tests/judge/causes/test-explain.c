/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "clues.h"
#include "explain.h"
#include "fixes-mention.h"
#include "logged-death.h"

static void explainer_cleanup(Explainer **explainer)
{
    explainer_free(*explainer);
}
#define _cleanup_explainer_ _cleanup_(explainer_cleanup)

static void log_load(const char *name, Buffer *ret)
{
    char path[512];
    snprintf(path, sizeof path, "%s/logs/%s.log", TESTS_DIRECTORY, name);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail_msg("%s: %s", path, strerror(errno));
    buffer_clear(ret);
    assert_int_equal(buffer_read_fd(ret, fd, SIZE_MAX / 2), 0);
}

/* Feeds text in pieces of `step` bytes (0: all at once). */
static void explain_text(const char *text, size_t n, size_t step, const Machine *machine, Arena *arena,
                         Diagnosis *ret)
{
    _cleanup_explainer_ Explainer *explainer = explainer_new();
    assert_non_null(explainer);
    if (step == 0)
        assert_int_equal(explainer_feed(explainer, text, n), 0);
    else
        for (size_t at = 0; at < n; at += step)
            assert_int_equal(explainer_feed(explainer, text + at, MIN(step, n - at)), 0);
    assert_int_equal(explainer_finish(explainer, machine, NULL, arena, ret), 0);
}

static void assert_list_equal(const char **a, size_t n_a, const char **b, size_t n_b)
{
    assert_int_equal(n_a, n_b);
    for (size_t i = 0; i < n_a; i++)
        assert_string_equal(a[i], b[i]);
}

static void assert_same(const Diagnosis *a, const Diagnosis *b)
{
    assert_int_equal(a->cause.id, b->cause.id);
    assert_true(a->cause.confidence == b->cause.confidence);
    assert_int_equal(a->cause.pid, b->cause.pid);
    assert_string_equal(a->cause.summary, b->cause.summary);
    assert_list_equal(a->cause.evidence, a->cause.n_evidence, b->cause.evidence, b->cause.n_evidence);
    assert_list_equal(a->matched, a->n_matched, b->matched, b->n_matched);
    assert_list_equal(a->notes, a->n_notes, b->notes, b->n_notes);
}

static bool list_mentions(const char **items, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(items[i], what))
            return true;
    return false;
}

static bool answer_says(const Diagnosis *answer, const char *what)
{
    return strstr(answer->cause.summary, what) ||
           list_mentions(answer->cause.evidence, answer->cause.n_evidence, what) ||
           list_mentions(answer->matched, answer->n_matched, what);
}

typedef struct LogCase {
    const char *log;
    CauseId id;
    const char *detail;
    double least, most; /* of the confidence */
    int pid;
    const char *summary; /* a part of it */
    CauseId truth;       /* what really happened, if not id */
    bool fair;           /* id is an acceptable answer all the same */
} LogCase;

static const LogCase log_cases[] = {
    /* captured */
    {"torch-1.13-SIGABRT", CAUSE_UNKNOWN, "aborted", 0.25, 0.32, 18008, "aborted itself"},
    {"torch-1.13-SIGFPE", CAUSE_UNKNOWN, "floating-point-exception", 0.25, 0.32, 18027,
     "divided an integer by zero"},
    {"torch-1.13-SIGILL", CAUSE_UNKNOWN, "illegal-instruction", 0.25, 0.32, 18053, "another CPU"},
    {"torch-1.13-SIGKILL", CAUSE_KILLED, "sigkill", 0.55, 0.62, 17974, "this log does not show it"},
    {"torch-1.13-SIGTERM", CAUSE_KILLED, "sigterm", 0.55, 0.62, 17992, "It was not the OOM killer"},
    {"torch-1.13-attach", CAUSE_SEGMENTS_DELETED, "python-shared-memory", 0.70, 0.77, 0, "resource tracker"},
    {"torch-1.13-checkpoint", CAUSE_PYTHON_ERROR, "disk-full", 0.55, 0.62, 0, "torch.save"},
    {"torch-1.13-collate", CAUSE_PYTHON_ERROR, "collate-shapes", 0.85, 0.92, 0, "different shapes"},
    {"torch-1.13-cpu-memory", CAUSE_PYTHON_ERROR, "memory-error", 0.85, 0.92, 0, "neither /dev/shm nor"},
    {"torch-1.13-deleted", CAUSE_SEGMENTS_DELETED, NULL, 0.85, 0.92, 0, "were deleted from /dev/shm"},
    {"torch-1.13-faulthandler", CAUSE_SHM_EXHAUSTED, NULL, 0.65, 0.72, 0, "probably /dev/shm was full"},
    {"torch-1.13-feeder", CAUSE_SHM_EXHAUSTED, NULL, 0.92, 0.99, 17956, "Shared memory ran out"},
    {"torch-1.13-file", CAUSE_PYTHON_ERROR, "disk-full", 0.75, 0.82, 0, "if the file is below it"},
    {"torch-1.13-full", CAUSE_SHM_EXHAUSTED, "semaphore", 0.85, 0.92, 0, "created a lock"},
    {"torch-1.13-handle", CAUSE_PYTHON_ERROR, "not-picklable", 0.90, 0.97, 0, "pickle"},
    {"torch-1.13-inodes", CAUSE_SHM_EXHAUSTED, "inodes", 0.85, 0.92, 5328, "no inodes left"},
    {"torch-1.13-inodes-python", CAUSE_SHM_EXHAUSTED, "inodes", 0.85, 0.92, 0, "no inodes left"},
    {"torch-1.13-item", CAUSE_PYTHON_ERROR, NULL, 0.85, 0.92, 0,
     "A DataLoader worker raised ValueError: image 5 has 4 channels, expected 3, at /workspace/fail.py"},
    {"torch-1.13-lambda", CAUSE_PYTHON_ERROR, "not-picklable", 0.90, 0.97, 0, "pickle"},
    {"torch-1.13-leave", CAUSE_UNKNOWN, "worker-exited", 0.25, 0.32, 18091, "exited by itself"},
    {"torch-1.13-mapped", CAUSE_SHM_EXHAUSTED, NULL, 0.55, 0.62, 18233, "either /dev/shm was full"},
    {"torch-1.13-maps", CAUSE_MAPS_EXHAUSTED, NULL, 0.90, 0.97, 17889, "vm.max_map_count"},
    {"torch-1.13-nearly-full", CAUSE_SHM_EXHAUSTED, NULL, 0.80, 0.87, 17812, "/dev/shm was full"},
    {"torch-1.13-no-guard", CAUSE_PYTHON_ERROR, "main-guard-missing", 0.92, 0.99, 0, "__main__"},
    {"torch-1.13-null", CAUSE_SEGFAULT, NULL, 0.85, 0.92, 18071, "segmentation fault"},
    {"torch-1.13-numpy-memory", CAUSE_PYTHON_ERROR, "memory-error", 0.85, 0.92, 0, "RAM"},
    {"torch-1.13-open-files", CAUSE_FD_EXHAUSTED, NULL, 0.92, 0.99, 0, "file descriptors"},
    {"torch-1.13-open-files-worker", CAUSE_FD_EXHAUSTED, NULL, 0.92, 0.99, 17873, "file descriptors"},
    {"torch-1.13-shared_memory", CAUSE_UNKNOWN, NULL, 0.05, 0.12, 0, "without removing"},
    {"torch-1.13-shell", CAUSE_SHM_EXHAUSTED, NULL, 0.65, 0.72, 5356, "bus error"},
    {"torch-1.13-small-shm-fork-file_descriptor", CAUSE_SHM_EXHAUSTED, NULL, 0.80, 0.87, 17669,
     "/dev/shm was full"},
    {"torch-1.13-small-shm-fork-file_system", CAUSE_SHM_EXHAUSTED, NULL, 0.80, 0.87, 17720,
     "/dev/shm was full"},
    {"torch-1.13-small-shm-spawn-file_descriptor", CAUSE_SHM_EXHAUSTED, NULL, 0.80, 0.87, 17740,
     "/dev/shm was full"},
    {"torch-1.13-small-shm-spawn-file_system", CAUSE_SHM_EXHAUSTED, NULL, 0.80, 0.87, 17784,
     "/dev/shm was full"},
    {"torch-1.13-timeout", CAUSE_WORKER_HANG, NULL, 0.65, 0.72, 0, "No worker delivered"},
    {"torch-2.13-SIGABRT", CAUSE_UNKNOWN, "aborted", 0.25, 0.32, 18793, "aborted itself"},
    {"torch-2.13-SIGFPE", CAUSE_UNKNOWN, "floating-point-exception", 0.25, 0.32, 18836,
     "divided an integer by zero"},
    {"torch-2.13-SIGILL", CAUSE_UNKNOWN, "illegal-instruction", 0.25, 0.32, 18854, "another CPU"},
    {"torch-2.13-SIGKILL", CAUSE_KILLED, "sigkill", 0.55, 0.62, 18660, "this log does not show it"},
    {"torch-2.13-SIGTERM", CAUSE_KILLED, "sigterm", 0.55, 0.62, 18677, "It was not the OOM killer"},
    {"torch-2.13-attach", CAUSE_SEGMENTS_DELETED, "python-shared-memory", 0.70, 0.77, 0, "resource tracker"},
    {"torch-2.13-cgroup-oom", CAUSE_CGROUP_OOM, NULL, 0.92, 0.99, 19412, "pt_data_worker"},
    {"torch-2.13-checkpoint", CAUSE_PYTHON_ERROR, "disk-full", 0.55, 0.62, 0, "torch.save"},
    {"torch-2.13-collate", CAUSE_PYTHON_ERROR, "collate-shapes", 0.85, 0.92, 0, "different shapes"},
    {"torch-2.13-cpu-memory", CAUSE_PYTHON_ERROR, "memory-error", 0.85, 0.92, 0, "neither /dev/shm nor"},
    {"torch-2.13-deleted", CAUSE_SEGMENTS_DELETED, NULL, 0.80, 0.87, 0, "were deleted from /dev/shm"},
    {"torch-2.13-faulthandler", CAUSE_SHM_EXHAUSTED, NULL, 0.65, 0.72, 0, "probably /dev/shm was full"},
    {"torch-2.13-feeder", CAUSE_SHM_EXHAUSTED, NULL, 0.92, 0.99, 18643, "Shared memory ran out"},
    {"torch-2.13-file", CAUSE_PYTHON_ERROR, "disk-full", 0.75, 0.82, 0, "if the file is below it"},
    {"torch-2.13-full", CAUSE_SHM_EXHAUSTED, "semaphore", 0.85, 0.92, 0, "created a lock"},
    {"torch-2.13-handle", CAUSE_PYTHON_ERROR, "not-picklable", 0.90, 0.97, 0, "pickle"},
    {"torch-2.13-healthy", CAUSE_UNKNOWN, NULL, 0.00, 0.00, 0, "Nothing in this log"},
    {"torch-2.13-inodes", CAUSE_SHM_EXHAUSTED, "inodes", 0.85, 0.92, 5370, "no inodes left"},
    {"torch-2.13-inodes-python", CAUSE_SHM_EXHAUSTED, "inodes", 0.85, 0.92, 0, "no inodes left"},
    {"torch-2.13-item", CAUSE_PYTHON_ERROR, NULL, 0.85, 0.92, 0,
     "A DataLoader worker raised ValueError: image 5 has 4 channels, expected 3, at /workspace/fail.py"},
    {"torch-2.13-lambda", CAUSE_PYTHON_ERROR, "not-picklable", 0.90, 0.97, 0, "pickle"},
    {"torch-2.13-leave", CAUSE_UNKNOWN, "worker-exited", 0.25, 0.32, 18889, "exited by itself"},
    {"torch-2.13-mapped", CAUSE_SHM_EXHAUSTED, NULL, 0.55, 0.62, 19210, "either /dev/shm was full"},
    {"torch-2.13-maps", CAUSE_MAPS_EXHAUSTED, NULL, 0.90, 0.97, 18570, "vm.max_map_count"},
    {"torch-2.13-nearly-full", CAUSE_SHM_EXHAUSTED, NULL, 0.92, 0.99, 18456, "/dev/shm was full"},
    {"torch-2.13-no-guard", CAUSE_PYTHON_ERROR, "main-guard-missing", 0.92, 0.99, 0, "__main__"},
    {"torch-2.13-null", CAUSE_SEGFAULT, NULL, 0.85, 0.92, 18873, "segmentation fault"},
    {"torch-2.13-numpy-memory", CAUSE_PYTHON_ERROR, "memory-error", 0.85, 0.92, 0, "RAM"},
    {"torch-2.13-open-files", CAUSE_FD_EXHAUSTED, NULL, 0.92, 0.99, 0, "file descriptors"},
    {"torch-2.13-open-files-worker", CAUSE_FD_EXHAUSTED, NULL, 0.92, 0.99, 18557, "file descriptors"},
    {"torch-2.13-shared_memory", CAUSE_UNKNOWN, NULL, 0.05, 0.12, 0, "without removing"},
    {"torch-2.13-shell", CAUSE_SHM_EXHAUSTED, NULL, 0.65, 0.72, 5397, "bus error"},
    {"torch-2.13-small-shm-fork-file_descriptor", CAUSE_SHM_EXHAUSTED, NULL, 0.92, 0.99, 18372,
     "/dev/shm was full"},
    {"torch-2.13-small-shm-fork-file_system", CAUSE_SHM_EXHAUSTED, NULL, 0.92, 0.99, 18398,
     "/dev/shm was full"},
    {"torch-2.13-small-shm-spawn-file_descriptor", CAUSE_SHM_EXHAUSTED, NULL, 0.92, 0.99, 18417,
     "/dev/shm was full"},
    {"torch-2.13-small-shm-spawn-file_system", CAUSE_SHM_EXHAUSTED, NULL, 0.92, 0.99, 18437,
     "/dev/shm was full"},
    {"torch-2.13-timeout", CAUSE_WORKER_HANG, NULL, 0.65, 0.72, 0, "No worker delivered"},
    /* composed from the documented wording */
    {"accelerate-sigkill", CAUSE_KILLED, "sigkill", 0.45, 0.52, 0, "does not show which"},
    {"ancdata-rank", CAUSE_FD_EXHAUSTED, NULL, 0.92, 0.99, 0, "file descriptors"},
    {"beliefs", CAUSE_SHM_EXHAUSTED, NULL, 0.80, 0.87, 12902, "most likely /dev/shm was full"},
    {"bus-and-another-oom", CAUSE_SHM_EXHAUSTED, NULL, 0.80, 0.87, 12902, "bus error"},
    {"bus-but-oom", CAUSE_CGROUP_OOM, NULL, 0.92, 0.99, 12902, "at its memory limit"},
    {"bus-df", CAUSE_SHM_EXHAUSTED, NULL, 0.90, 0.97, 31, "/dev/shm was full"},
    {"bus-new-torch", CAUSE_SHM_EXHAUSTED, NULL, 0.55, 0.62, 31, "does not show which"},
    {"bus-storage", CAUSE_BUS_ERROR_FILE, NULL, 0.55, 0.62, 771, "truncated"},
    {"chain", CAUSE_PYTHON_ERROR, NULL, 0.75, 0.82, 0,
     "KeyError: 'resnet51', at /workspace/config.py line 11, in load"},
    {"connection-reset", CAUSE_UNKNOWN, NULL, 0.05, 0.12, 0, "only after-effects"},
    {"cpp-exception", CAUSE_PYTHON_ERROR, "cpp-exception", 0.45, 0.52, 0, "decoder: bad magic number"},
    {"cuda-assert", CAUSE_PYTHON_ERROR, "cuda-error", 0.65, 0.72, 0, "CUDA reports late"},
    {"cuda-fork", CAUSE_PYTHON_ERROR, "cuda-in-forked-worker", 0.92, 0.99, 0, "CUDA does not survive a fork"},
    {"cuda-fork-old", CAUSE_PYTHON_ERROR, "cuda-in-forked-worker", 0.60, 0.67, 0, "a forked worker"},
    {"daemonic", CAUSE_PYTHON_ERROR, "workers-in-a-worker", 0.90, 0.97, 0, "daemonic"},
    {"disk-full", CAUSE_PYTHON_ERROR, "disk-full", 0.75, 0.82, 0, "does not name /dev/shm"},
    {"docker-137", CAUSE_KILLED, "sigkill", 0.45, 0.52, 0, "docker stop"},
    {"docker-inspect", CAUSE_KILLED, "sigkill", 0.45, 0.52, 0, "SIGKILL"},
    {"fork-warning-timeout", CAUSE_WORKER_HANG, NULL, 0.65, 0.72, 0, "timeout"},
    {"gloo-closed", CAUSE_UNKNOWN, NULL, 0.05, 0.12, 0, "only after-effects"},
    {"gloo-timeout", CAUSE_WORKER_HANG, "collective-timeout", 0.35, 0.42, 0, "waited for one"},
    {"gpu-memory", CAUSE_PYTHON_ERROR, "gpu-out-of-memory", 0.92, 0.99, 0,
     "nothing to do with shared memory"},
    {"gpu-memory-old", CAUSE_PYTHON_ERROR, "gpu-out-of-memory", 0.92, 0.99, 0,
     "nothing to do with shared memory"},
    {"heap", CAUSE_SEGFAULT, "heap-corruption", 0.80, 0.87, 3216, "corrupted the heap"},
    {"jupyter", CAUSE_SHM_EXHAUSTED, NULL, 0.80, 0.87, 4242, "pid 4242"},
    {"kernel-oom-new", CAUSE_SYSTEM_OOM, NULL, 0.90, 0.97, 8112, "pid 8112, pt_main_thread"},
    {"kernel-oom-old", CAUSE_SYSTEM_OOM, NULL, 0.90, 0.97, 12902, "whole machine"},
    {"kernel-segfault", CAUSE_SEGFAULT, NULL, 0.85, 0.92, 0, "segmentation fault"},
    {"keyboard-interrupt", CAUSE_KILLED, "interrupted", 0.65, 0.72, 0, "interrupted"},
    {"kubernetes-emptydir", CAUSE_SHM_EXHAUSTED, "emptydir-limit", 0.85, 0.92, 0, "sizeLimit"},
    {"kubernetes-evicted", CAUSE_KILLED, "evicted", 0.85, 0.92, 0, "evicted"},
    {"kubernetes-oomkilled", CAUSE_CGROUP_OOM, "kubernetes", 0.90, 0.97, 0, "OOMKilled"},
    {"mp-spawn-sigsegv", CAUSE_SEGFAULT, NULL, 0.85, 0.92, 0, "segmentation fault"},
    {"nccl-attach", CAUSE_SEGMENTS_DELETED, "nccl", 0.45, 0.52, 0, "another rank"},
    {"nccl-cuda-failure", CAUSE_PYTHON_ERROR, "cuda-error", 0.65, 0.72, 0, "CUDA"},
    {"nccl-fallocate", CAUSE_SHM_EXHAUSTED, "nccl", 0.90, 0.97, 0, "NCCL"},
    {"nccl-last-error", CAUSE_SHM_EXHAUSTED, "nccl", 0.65, 0.72, 0, "most likely"},
    {"nccl-no-space", CAUSE_SHM_EXHAUSTED, "nccl", 0.90, 0.97, 0, "NCCL"},
    {"nccl-unknown", CAUSE_UNKNOWN, NULL, 0.15, 0.22, 0, "NCCL_DEBUG=INFO"},
    {"nccl-watchdog", CAUSE_WORKER_HANG, "collective-timeout", 0.35, 0.42, 0, "the log of that rank"},
    {"old-0.4-worker-exception", CAUSE_PYTHON_ERROR, NULL, 0.85, 0.92, 0,
     "FileNotFoundError: [Errno 2] No such file or directory: 'train/n01440764_18.JPEG', at "
     "/home/user/project/data.py"},
    {"old-0.4-write", CAUSE_SHM_EXHAUSTED, NULL, 0.80, 0.87, 71, "Shared memory ran out"},
    {"old-1.0-bus", CAUSE_SHM_EXHAUSTED, NULL, 0.80, 0.87, 325, "bus error"},
    {"old-1.1-memory", CAUSE_PYTHON_ERROR, "memory-error", 0.85, 0.92, 0, "RAM"},
    {"old-1.3-open", CAUSE_FD_EXHAUSTED, NULL, 0.50, 0.57, 0, "does not say why"},
    {"old-1.4-write-feeder", CAUSE_SHM_EXHAUSTED, NULL, 0.80, 0.87, 4396, "Shared memory ran out"},
    {"pickle-3.14", CAUSE_PYTHON_ERROR, "not-picklable", 0.90, 0.97, 0, "pickle"},
    {"pickle-h5py", CAUSE_PYTHON_ERROR, "not-picklable", 0.90, 0.97, 0, "pickle"},
    {"pickle-main-attribute", CAUSE_PYTHON_ERROR, "not-picklable", 0.85, 0.92, 0, "imports the script again"},
    {"pickle-old", CAUSE_PYTHON_ERROR, "not-picklable", 0.90, 0.97, 0, "pickle"},
    {"progress-bar", CAUSE_SHM_EXHAUSTED, NULL, 0.80, 0.87, 2991, "pid 2991"},
    {"rank-exception", CAUSE_PYTHON_ERROR, NULL, 0.75, 0.82, 0,
     "IndexError: Target 1000 is out of bounds, at /workspace/train.py line 64"},
    {"resource-tracker", CAUSE_UNKNOWN, NULL, 0.05, 0.12, 0, "does not say"},
    {"rich", CAUSE_UNKNOWN, NULL, 0.15, 0.22, 164244, "pid 164244"},
    {"shell-core-dumped", CAUSE_SHM_EXHAUSTED, NULL, 0.42, 0.49, 0, "truncated"},
    {"shell-killed", CAUSE_KILLED, "sigkill", 0.45, 0.52, 8156, "pid 8156"},
    {"shm-file-full", CAUSE_SHM_EXHAUSTED, NULL, 0.90, 0.97, 0, "/dev/shm was full"},
    {"slurm-cancelled", CAUSE_KILLED, "cancelled", 0.80, 0.87, 0, "scancel"},
    {"slurm-oom", CAUSE_CGROUP_OOM, "scheduler", 0.90, 0.97, 22048, "batch system"},
    {"slurm-oom-new", CAUSE_CGROUP_OOM, "scheduler", 0.90, 0.97, 0, "batch system"},
    {"slurm-preemption", CAUSE_KILLED, "preempted", 0.92, 0.99, 0, "make room"},
    {"slurm-time-limit", CAUSE_KILLED, "time-limit", 0.92, 0.99, 5120, "time limit"},
    {"threads", CAUSE_PYTHON_ERROR, "threads-exhausted", 0.85, 0.92, 0, "not because of memory"},
    {"timeout-after-exception", CAUSE_PYTHON_ERROR, NULL, 0.85, 0.92, 0,
     "The thread that sends a worker's batches raised ValueError: not to be sent"},
    {"timestamp-exception", CAUSE_PYTHON_ERROR, NULL, 0.75, 0.82, 0,
     "project.errors.CheckpointMismatch: 3 is not 4, at /workspace/train.py line 18"},
    {"torch-2.10-stale-errno", CAUSE_SHM_EXHAUSTED, NULL, 0.85, 0.92, 911, "a wrong reason"},
    {"torch-2.10-stale-errno-again", CAUSE_SHM_EXHAUSTED, NULL, 0.85, 0.92, 3021, "a wrong reason"},
    {"torch-write-full", CAUSE_SHM_EXHAUSTED, NULL, 0.92, 0.99, 31911, "Shared memory ran out"},
    {"torchrun-only", CAUSE_UNKNOWN, NULL, 0.05, 0.12, 0, "launcher"},
    {"torchrun-signal", CAUSE_KILLED, "sigterm", 0.40, 0.47, 2606, "look for an earlier failure"},
    {"torchrun-sigkill", CAUSE_KILLED, "sigkill", 0.45, 0.52, 2630, "pid 2630"},
    {"windows-line-ends", CAUSE_PYTHON_ERROR, NULL, 0.75, 0.82, 0, "ValueError: no such split: val, at C:"},
    /* composed in the formats of public reports */
    {"accelerate-wrapped", CAUSE_SHM_EXHAUSTED, NULL, 0.82, 0.89, 88, "most likely /dev/shm was full"},
    {"background-mapped", CAUSE_PYTHON_ERROR, NULL, 0.87, 0.94, 0,
     "A background worker raised ValueError: mmap length"},
    {"background-oom", CAUSE_CGROUP_OOM, NULL, 0.94, 1.01, 48213, "nnUNetv2_train"},
    {"background-workers", CAUSE_UNKNOWN, NULL, 0.17, 0.24, 0, "background worker"},
    {"background-workers-validation", CAUSE_UNKNOWN, NULL, 0.17, 0.24, 0, "background worker"},
    {"bash-job-control", CAUSE_KILLED, "sigkill", 0.47, 0.54, 0, "SIGKILL"},
    {"bash-line", CAUSE_KILLED, "sigkill", 0.47, 0.54, 901144, "pid 901144"},
    {"bus-df-free", CAUSE_SHM_EXHAUSTED, NULL, 0.52, 0.59, 640, "either /dev/shm was full",
     .truth = CAUSE_BUS_ERROR_FILE, .fair = true},
    {"bus-lmdb-free", CAUSE_BUS_ERROR_FILE, NULL, 0.57, 0.64, 5120, "truncated"},
    {"bus-memmap-fault", CAUSE_BUS_ERROR_FILE, NULL, 0.57, 0.64, 0, "truncated"},
    {"bus-ray-small-shm", CAUSE_SHM_EXHAUSTED, NULL, 0.87, 0.94, 2391, "pid 2391"},
    {"chinese-bus", CAUSE_SHM_EXHAUSTED, NULL, 0.42, 0.49, 0, "either /dev/shm was full"},
    {"chinese-killed", CAUSE_KILLED, "sigkill", 0.47, 0.54, 0, "SIGKILL"},
    {"chinese-memmap", CAUSE_SHM_EXHAUSTED, NULL, 0.52, 0.59, 0, "truncated", .truth = CAUSE_BUS_ERROR_FILE,
     .fair = true},
    {"deepspeed-killed", CAUSE_KILLED, "sigkill", 0.47, 0.54, 0, "SIGKILL"},
    {"deepspeed-wrapped", CAUSE_SEGFAULT, NULL, 0.87, 0.94, 0, "segmentation fault"},
    {"docker-events", CAUSE_CGROUP_OOM, "kubernetes", 0.92, 0.99, 0, "OOMKilled"},
    {"docker-ps", CAUSE_KILLED, "sigkill", 0.47, 0.54, 0, "SIGKILL"},
    {"exception-and-leftovers", CAUSE_PYTHON_ERROR, NULL, 0.77, 0.84, 0,
     "to match target batch_size (31), at /workspace/train.py line 120, in main. Nothing"},
    {"files-file-system", CAUSE_FD_EXHAUSTED, NULL, 0.94, 1.01, 2211, "file descriptors"},
    {"fish", CAUSE_SEGFAULT, NULL, 0.87, 0.94, 0, "segmentation fault"},
    {"job-container", CAUSE_UNKNOWN, "job-container", 0.47, 0.54, 0, "did not start there"},
    {"joblib-killed", CAUSE_KILLED, "sigkill", 0.47, 0.54, 0, "SIGKILL"},
    {"joblib-memmap-full", CAUSE_SHM_EXHAUSTED, "joblib", 0.72, 0.79, 0, "JOBLIB_TEMP_FOLDER"},
    {"joblib-only", CAUSE_UNKNOWN, NULL, 0.17, 0.24, 0, "background worker"},
    {"joblib-serial", CAUSE_SHM_EXHAUSTED, "semaphore", 0.87, 0.94, 0, "lock, queue or array"},
    {"kubernetes-evicted-storage", CAUSE_KILLED, "evicted", 0.87, 0.94, 0, "evicted"},
    {"mmap-checkpoint", CAUSE_PYTHON_ERROR, "memory-error", 0.82, 0.89, 0, "A file could not be mapped"},
    {"mpich-bus", CAUSE_SHM_EXHAUSTED, NULL, 0.42, 0.49, 0, "bus error"},
    {"mpich-killed", CAUSE_KILLED, "sigkill", 0.47, 0.54, 0, "SIGKILL"},
    {"mpirun-killed", CAUSE_KILLED, "sigkill", 0.47, 0.54, 20117, "pid 20117"},
    {"multiprocess-full", CAUSE_SHM_EXHAUSTED, "semaphore", 0.87, 0.94, 0, "The disk is not involved"},
    {"nccl-warn", CAUSE_UNKNOWN, "connection", 0.37, 0.44, 0, "could not reach"},
    {"openmpi-segfault", CAUSE_SEGFAULT, NULL, 0.87, 0.94, 0, "segmentation fault"},
    {"paddle-bus", CAUSE_SHM_EXHAUSTED, NULL, 0.82, 0.89, 0, "DataLoader worker"},
    {"parent-gone", CAUSE_UNKNOWN, NULL, 0.12, 0.19, 0, "gone already"},
    {"pickle-forkserver", CAUSE_PYTHON_ERROR, "not-picklable", 0.92, 0.99, 0, "since Python 3.14"},
    {"pin-memory-full", CAUSE_PYTHON_ERROR, "pinned-memory", 0.82, 0.89, 0, "not about the GPU's memory"},
    {"pin-memory-thread", CAUSE_UNKNOWN, NULL, 0.12, 0.19, 0, "pins memory"},
    {"progress-bar-killed", CAUSE_KILLED, "sigkill", 0.47, 0.54, 0, "SIGKILL"},
    {"ray-memory-wrapped", CAUSE_SYSTEM_OOM, "oom-daemon", 0.87, 0.94, 0, "memory was short"},
    {"ray-object-store", CAUSE_SHM_EXHAUSTED, "ray", 0.87, 0.94, 0, "Ray did not start"},
    {"ray-sigbus", CAUSE_SHM_EXHAUSTED, NULL, 0.57, 0.64, 30930, "pid 30930"},
    {"ray-slow-store", CAUSE_SHM_EXHAUSTED, "ray", 0.37, 0.44, 0, "uses /tmp", .truth = CAUSE_UNKNOWN,
     .fair = true},
    {"ray-worker-died", CAUSE_UNKNOWN, NULL, 0.17, 0.24, 0, "does not say why"},
    {"resource-tracker-key", CAUSE_UNKNOWN, NULL, 0.02, 0.09, 0, "harmless"},
    {"shm-unlink", CAUSE_UNKNOWN, NULL, 0.02, 0.09, 0, "harmless"},
    {"shutdown-reset", CAUSE_UNKNOWN, NULL, 0.02, 0.09, 0, "harmless"},
    {"slurm-killed", CAUSE_KILLED, "sigkill", 0.47, 0.54, 0, "SIGKILL"},
    {"storage-reset", CAUSE_UNKNOWN, NULL, 0.07, 0.14, 0, "only after-effects"},
    {"systemd-oom", CAUSE_SYSTEM_OOM, NULL, 0.52, 0.59, 0, "does not show whether", .truth = CAUSE_CGROUP_OOM,
     .fair = true},
    {"torchrun-bus", CAUSE_SHM_EXHAUSTED, NULL, 0.57, 0.64, 991, "pid 991"},
    {"torchrun-hangup", CAUSE_KILLED, "hangup", 0.72, 0.79, 2202014, "ssh session"},
    {"ucx-bus", CAUSE_SHM_EXHAUSTED, NULL, 0.57, 0.64, 0, "bus error"},
    {"ucx-full", CAUSE_SHM_EXHAUSTED, NULL, 0.92, 0.99, 0, "Shared memory ran out"},
    {"vllm-broadcast", CAUSE_WORKER_HANG, "broadcast-stall", 0.47, 0.54, 0, "/dev/shm is not full"},
    {"worker-threads", CAUSE_PYTHON_ERROR, "memory-error", 0.87, 0.94, 0, "RAM"},
    {"zsh-bus", CAUSE_SHM_EXHAUSTED, NULL, 0.67, 0.74, 0, "bus error"},
};

/* One line or two, as other programs print them. */
typedef struct FormatCase {
    const char *text;
    CauseId id;
    const char *detail;
    int pid;
} FormatCase;

static const FormatCase format_cases[] = {
    /* deaths by signal */
    {"Killed", CAUSE_KILLED, "sigkill", 0},
    {"Killed: 9", CAUSE_KILLED, "sigkill", 0},
    {"**Killed**", CAUSE_KILLED, "sigkill", 0},
    {"2026-01-24T20:22:28.106Z Killed", CAUSE_KILLED, "sigkill", 0},
    {"train-1  | Killed", CAUSE_KILLED, "sigkill", 0},
    {"Bus error (core dumped)", CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"./train.sh: line 1:  7364 Killed                  python3 train.py --name=D0", CAUSE_KILLED, "sigkill",
     7364},
    {"/bin/bash: line 27: 318 Killed sh start.sh", CAUSE_KILLED, "sigkill", 318},
    {"bash: line 1: 80675 Segmentation fault      ( python 1d.py --dir exp )", CAUSE_SEGFAULT, NULL, 80675},
    {"[2]-  Bus error               (core dumped) python train.py", CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"[1]+  Terminated              python train.py", CAUSE_KILLED, "sigterm", 0},
    {"zsh: killed     python train.py", CAUSE_KILLED, "sigkill", 0},
    {"zsh: segmentation fault (core dumped)  python train.py", CAUSE_SEGFAULT, NULL, 0},
    {"zsh: illegal hardware instruction  python train.py", CAUSE_UNKNOWN, "illegal-instruction", 0},
    {"[1]    75076 killed     python train.py", CAUSE_KILLED, "sigkill", 75076},
    {"[1]  + 75076 bus error  python train.py", CAUSE_SHM_EXHAUSTED, NULL, 75076},
    {"fish: Job 1, 'python train.py' terminated by signal SIGBUS (Misaligned address error)",
     CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"srun: error: gpu-12: tasks 0-3: Bus error (core dumped)", CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"srun: error: gpu-12: task 0: Exited with exit code 137", CAUSE_KILLED, "sigkill", 0},
    {"srun: error: gpu-12: task 0: Segmentation fault", CAUSE_SEGFAULT, NULL, 0},
    {"mpirun noticed that process rank 0 with PID 0 on node n1 exited on signal 4 (Illegal instruction).",
     CAUSE_UNKNOWN, "illegal-instruction", 0},
    {"mpirun noticed that process rank 1 with PID 812 on node n1 exited on signal 7 (Bus error).",
     CAUSE_SHM_EXHAUSTED, NULL, 812},
    {"=   EXIT CODE: 139", CAUSE_SEGFAULT, NULL, 0},
    {"=   EXIT CODE: 11", CAUSE_SEGFAULT, NULL, 0},
    {"=   EXIT CODE: 1", CAUSE_UNKNOWN, NULL, 0},
    {"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Terminated (signal 15)", CAUSE_KILLED, "sigterm", 0},
    {"[host:1] Signal: Bus error (7)", CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"[host:1] Signal: Aborted (6)", CAUSE_UNKNOWN, "aborted", 0},
    {"[n1:77724:0:78357] Caught signal 11 (Segmentation fault: address not mapped to object at address "
     "0x580)",
     CAUSE_SEGFAULT, NULL, 0},
    {"main.py exits with return code = -7", CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"main.py exits with return code = -2", CAUSE_UNKNOWN, NULL, 0},
    {"ChildProcessError: worker died (-9)", CAUSE_KILLED, "sigkill", 0},
    {"[ERROR] Worker (pid:54) was sent code 139!", CAUSE_SEGFAULT, NULL, 54},
    {"[ERROR] Worker (pid:8) was sent SIGKILL! Perhaps out of memory?", CAUSE_KILLED, "sigkill", 8},
    {"[signal SIGSEGV: segmentation violation code=0x1 addr=0x10 pc=0x15f3a2e]", CAUSE_SEGFAULT, NULL, 0},
    {"I get \"unexpected bus error encountered in worker\"", CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"subprocess.CalledProcessError: Command '['python', 'x.py']' died with <Signals.SIGABRT: 6>.",
     CAUSE_UNKNOWN, "aborted", 0},
    {"torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGBUS",
     CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with exit code 149",
     CAUSE_UNKNOWN, NULL, 0},
    {"  traceback : Signal 9 (SIGKILL) received by PID 411", CAUSE_KILLED, "sigkill", 411},
    {"SignalException: Process 5 got signal: 2", CAUSE_KILLED, "interrupted", 5},
    {"The exit codes of the workers are {SIGBUS(-7), SIGBUS(-7)}", CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"The exit codes of the workers are {EXIT(1)}", CAUSE_UNKNOWN, "worker-exited", 0},
    {"The exit codes of the workers are {EXIT(1), SIGKILL(-9)}", CAUSE_UNKNOWN, NULL, 0},
    {"ERROR: error code -9", CAUSE_KILLED, "sigkill", 0},
    {"clBuildProgram failed: error code -11", CAUSE_UNKNOWN, NULL, 0},
    {"W 7 api.py:900] Sending process 41 closing signal SIGHUP", CAUSE_KILLED, "hangup", 0},
    {"W 7 api.py:900] Sending process 41 closing signal SIGINT", CAUSE_KILLED, "interrupted", 0},
    {"Fatal Python error: Bus error", CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"Fatal Python error: Aborted", CAUSE_UNKNOWN, "aborted", 0},
    {"Fatal Python error: Floating point exception", CAUSE_UNKNOWN, "floating-point-exception", 0},
    {"Fatal Python error: Illegal instruction", CAUSE_UNKNOWN, "illegal-instruction", 0},
    {"Fatal Python error: none_dealloc: deallocating None", CAUSE_UNKNOWN, NULL, 0},
    {"(raylet) *** SIGSEGV (@0x0) received by PID 113 (TID 0x7fb67f7fe700) from PID 0; stack trace: ***",
     CAUSE_SEGFAULT, NULL, 113},
    {"[rank: 0] Received SIGTERM: 15", CAUSE_KILLED, "sigterm", 0},
    {"Program terminated with signal SIGBUS, Bus error.", CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"Thread 1 \"python\" received signal SIGSEGV, Segmentation fault.", CAUSE_SEGFAULT, NULL, 0},
    {"train.service: Main process exited, code=dumped, status=7/BUS", CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"段错误 (核心已转储)", CAUSE_SEGFAULT, NULL, 0},
    {"总线错误(吐核)", CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"train.sh: 行 3:  4711 已杀死               python train.py", CAUSE_KILLED, "sigkill", 4711},
    {"已终止", CAUSE_KILLED, "sigterm", 0},
    {"{\"termination\":{\"code\":11},\"exception\":{\"type\":\"X\",\"signal\":\"SIGSEGV\"}}", CAUSE_SEGFAULT,
     NULL, 0},
    {"Exception Type:        EXC_BAD_ACCESS (SIGSEGV)", CAUSE_SEGFAULT, NULL, 0},
    {"Exception Type:        EXC_CRASH (SIGABRT)", CAUSE_UNKNOWN, "aborted", 0},
    {"Termination Reason:    Namespace SIGNAL, Code 11 Segmentation fault: 11", CAUSE_SEGFAULT, NULL, 0},
    {"Process finished with exit code -1073741819 (0xC0000005)", CAUSE_SEGFAULT, NULL, 0},
    {"Process finished with exit code 3221225477", CAUSE_SEGFAULT, NULL, 0},
    {"DataLoader worker (pid(s) 7120) exited unexpectedly with exit code -1073741795", CAUSE_UNKNOWN,
     "illegal-instruction", 7120},
    {"=   EXIT CODE: 134\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Terminated (signal 15)",
     CAUSE_UNKNOWN, "aborted", 0},
    /* macOS has no /dev/shm */
    {"training on device: mps\n[1]    6120 bus error  python fit.py", CAUSE_UNKNOWN, NULL, 6120},
    {"python fit.py --device mps\nzsh: bus error  python fit.py --device mps", CAUSE_UNKNOWN, NULL, 0},
    {"/Users/anna/fit.sh: line 8: 991 Bus error: 10           python fit.py", CAUSE_UNKNOWN, NULL, 991},
    {"/Users/anna/venv/lib/python3.11/site-packages/x.py:3: UserWarning: y\nBus error", CAUSE_UNKNOWN, NULL,
     0},
    {"Library not loaded: libomp.dylib\nBus error", CAUSE_UNKNOWN, NULL, 0},
    {"/opt/homebrew/bin/python3 fit.py\nBus error", CAUSE_UNKNOWN, NULL, 0},
    {"The exit codes of the workers are {SIGBUS(-10)}", CAUSE_UNKNOWN, NULL, 0},
    {"docker run -v /Users/anna:/data fit\nBus error (core dumped)", CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"C:/Users/anna/fit.py\nBus error (core dumped)", CAUSE_SHM_EXHAUSTED, NULL, 0},
    /* words that are no deaths */
    {"Aborted!", CAUSE_UNKNOWN, NULL, 0},
    {"Filled", CAUSE_UNKNOWN, NULL, 0},
    {"the job was killed", CAUSE_UNKNOWN, NULL, 0},
    {"killed", CAUSE_UNKNOWN, NULL, 0},
    {"(1) The process is killed by SIGKILL by OOM killer due to high memory usage.", CAUSE_UNKNOWN, NULL, 0},
    {"*** 11 warnings ***", CAUSE_UNKNOWN, NULL, 0},
    {"Unexpected key(s) in state_dict", CAUSE_UNKNOWN, NULL, 0},
    {"received signal 99", CAUSE_UNKNOWN, NULL, 0},
    {"exit code -1", CAUSE_UNKNOWN, NULL, 0},
    {"exit code 1073741819", CAUSE_UNKNOWN, NULL, 0},
    {"*** Aborted at 1600000000 (unix time) try \"date -d @1600000000\" ***", CAUSE_UNKNOWN, NULL, 0},
    {"W 123] Sending process 7 closing signal SIGTERM", CAUSE_UNKNOWN, NULL, 0},
    /* messages that were wrapped, between words and in one */
    {"DataLoader worker (pid 9) is killed by signal:\nKilled.", CAUSE_KILLED, "sigkill", 9},
    {"RuntimeError: DataLoader worker (pid 9) is killed by signal:\nTerminated.", CAUSE_KILLED, "sigterm", 9},
    {"RuntimeError: unable to mmap 68 bytes from file </torch_9_1_63832>:\nCannot allocate memory (12)",
     CAUSE_MAPS_EXHAUSTED, NULL, 9},
    {"RuntimeError: unable to mmap 1048576 bytes from file <filename not specified>: Cannot allocate memory "
     "(12)",
     CAUSE_MAPS_EXHAUSTED, NULL, 0},
    {"unable to mmap 512 bytes from file</torch-31_77_40001>: Cannot allocate memory (12)",
     CAUSE_MAPS_EXHAUSTED, NULL, 31},
    {"unable to mmap 512 bytes from file `/torch_31_77_40001`: Cannot allocate memory (12)",
     CAUSE_MAPS_EXHAUSTED, NULL, 31},
    {"RuntimeError: unable to mmap 9000 bytes from file </srv/torch-2.1/w.bin>: Cannot allocate memory (12)",
     CAUSE_PYTHON_ERROR, "memory-error", 0},
    {"RuntimeError: unable to resize file ‹/torch_52_901› to the right size", CAUSE_SHM_EXHAUSTED, NULL, 52},
    {"RuntimeError: unable to resize file </torch_52_901> to the right size: Invalid argument (22)",
     CAUSE_PYTHON_ERROR, NULL, 0},
    {"RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus\nerror. It is", CAUSE_SHM_EXHAUSTED,
     NULL, 9},
    {"OSError: [Errno 24] Too many op\nen files", CAUSE_FD_EXHAUSTED, NULL, 0},
    {"ray: 2 Workers killed due to memory\npressure (OOM)", CAUSE_SYSTEM_OOM, "oom-daemon", 0},
    {"unable to write to file </torch_7_1_2>: No space left\n on device (28)", CAUSE_SHM_EXHAUSTED, NULL, 7},
    /* messages without their newlines or their ends */
    {"0/4 [00:00<?, ?it/s]WARNING:api:Sending process 31 closing signal SIGTERM          ERROR:api:failed "
     "(exitcode: "
     "-9) local_rank: 2 (pid: 33) of binary: /usr/bin/python          Traceback (most recent call last):     "
     "File "
     "\"/usr/bin/torchrun\", line 8, in <module>",
     CAUSE_KILLED, "sigkill", 33},
    {"IndexError: Caught IndexError in DataLoader worker process 3.\nOriginal Traceback (most recent call "
     "last):\n"
     "  File \"/srv/data.py\", line 40, in __getitem__\n    x = self.items[",
     CAUSE_PYTHON_ERROR, NULL, 0},
    {"ValueError: Caught ValueError in pin memory thread for device 1.\nOriginal Traceback (most recent call "
     "last):",
     CAUSE_PYTHON_ERROR, NULL, 0},
    {"  File \"/usr/lib/python3.9/multiprocessing/reduction.py\", line 164, in recvfds\n"
     "    raise RuntimeError('received %d items of ancdata' %",
     CAUSE_FD_EXHAUSTED, NULL, 0},
    {"  File \"/usr/lib/python3.9/site-packages/batchgenerators/a.py\", line 9, in results_loop\n"
     "    raise RuntimeError(\"One or more background workers are no longer alive. Exiting.\")\n"
     "RuntimeError: One or more backgr",
     CAUSE_UNKNOWN, NULL, 0},
    {"^CTraceback (most recent call last):\n  File \"/srv/train.py\", line 7, in <module>\n", CAUSE_KILLED,
     "interrupted", 0},
    {"OSERROR: [Errno 24] too many files", CAUSE_FD_EXHAUSTED, NULL, 0},
    {"it says ''no space left on device''", CAUSE_PYTHON_ERROR, "disk-full", 0},
    {"Worker timed out after 90 seconds. This might be caused by", CAUSE_WORKER_HANG, NULL, 0},
    /* shared memory, and what only looks like a full disk */
    {"RuntimeError: unable to resize file </torch_5_1_2> to the right size: No space left on device (28)",
     CAUSE_SHM_EXHAUSTED, NULL, 5},
    {"  File \"/usr/lib/python3.9/multiprocessing/heap.py\", line 83, in __init__\n"
     "    os.ftruncate(self.fd, size)\nOSError: [Errno 28] No space left on device",
     CAUSE_SHM_EXHAUSTED, "semaphore", 0},
    {"_multiprocessing.SemLock(OSError: [Errno 28] No space left on device", CAUSE_SHM_EXHAUSTED, "semaphore",
     0},
    {"[Errno 28] No space left on device: '/tmp/joblib_memmapping_folder_61/x.pkl'", CAUSE_SHM_EXHAUSTED,
     "joblib", 0},
    {"RuntimeError:unable to write to file </torch>.....", CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"  File \"/srv/venv/lib/python3.9/site-packages/torch/serialization.py\", line 297, in _save\n"
     "RuntimeError: write(): fd 7 failed with Input/output error",
     CAUSE_PYTHON_ERROR, "disk-full", 0},
    {"  File \"/srv/venv/lib/python3.9/site-packages/torch/serialization.py\", line 287, in __init__\n"
     "RuntimeError: File out/epoch_3.pt cannot be opened.",
     CAUSE_PYTHON_ERROR, "disk-full", 0},
    {"OSError: [Errno 122] Disk quota exceeded: 'last.ckpt'", CAUSE_PYTHON_ERROR, "disk-full", 0},
    {"OSError: [Errno 23] Too many open files in system", CAUSE_FD_EXHAUSTED, "whole-machine", 0},
    {"RuntimeError: could not duplicate a shared memory file descriptor: Bad file descriptor",
     CAUSE_FD_EXHAUSTED, NULL, 0},
    {"RuntimeError: $ Torch: unable to mmap memory: you tried to mmap 9GB. at THAllocator.c:317",
     CAUSE_MAPS_EXHAUSTED, NULL, 0},
    {"  File \"/usr/lib/python3.9/multiprocessing/synchronize.py\", line 57, in __init__\n"
     "    sl = self._semlock = _multiprocessing.SemLock(\nPermissionError: [Errno 13] Permission denied",
     CAUSE_PYTHON_ERROR, "shm-not-writable", 0},
    {"  File \"/usr/lib/python3.12/multiprocessing/synchronize.py\", line 57, in __init__\n"
     "    sl = self._semlock = _multiprocessing.SemLock(\nFileNotFoundError: [Errno 2] No such file or "
     "directory",
     CAUSE_PYTHON_ERROR, "shm-not-writable", 0},
    {"RuntimeError: unable to open shared memory object </torch_8_1> in read-write mode: Permission denied "
     "(13)",
     CAUSE_PYTHON_ERROR, "shm-not-writable", 0},
    {"n8:27106:27302 [0] include/shm.h:27 NCCL WARN Call to shm_open failed : Permission denied\n"
     "n8:27106:27302 [0] include/shm.h:48 NCCL WARN Error while creating shared memory segment "
     "nccl-shm-recv-b7",
     CAUSE_PYTHON_ERROR, "shm-not-writable", 0},
    {"NCCL WARN Error while creating shared memory segment /dev/shm/nccl-a (size 7), error: Permission "
     "denied (13)",
     CAUSE_PYTHON_ERROR, "shm-not-writable", 0},
    /* memory */
    {"Memory on the node was 1436GB / 1511GB (0.950089), which exceeds the memory usage threshold of 0.95. "
     "Ray "
     "killed this worker",
     CAUSE_SYSTEM_OOM, "oom-daemon", 0},
    {"Your session crashed after using all available RAM.", CAUSE_CGROUP_OOM, "kubernetes", 0},
    {"Your notebook tried to allocate more memory than is available. It has restarted.", CAUSE_CGROUP_OOM,
     "kubernetes", 0},
    {"distributed.nanny - WARNING - Worker exceeded 95% memory budget. Restarting", CAUSE_SYSTEM_OOM,
     "oom-daemon", 0},
    {"cv2.error: OpenCV(4.6.0) alloc.cpp:73: error: (-4:Insufficient memory) Failed to allocate 4672512 "
     "bytes",
     CAUSE_PYTHON_ERROR, "memory-error", 0},
    {"WARNING: ran out of memory with exception: CUDA out o\nf memory. Tried to allocate 354.00 MiB",
     CAUSE_PYTHON_ERROR, "gpu-out-of-memory", 0},
    {"OSError: [WinError 1455] The paging file is too small for this operation to complete.",
     CAUSE_PYTHON_ERROR, "memory-error", 0},
    {"ImportError: DLL load failed: 页面文件太小，无法完成操作。", CAUSE_PYTHON_ERROR, "memory-error", 0},
    {"kernel: Task in /docker/8f2c killed as a result of limit of /docker/8f2c", CAUSE_CGROUP_OOM, NULL, 0},
    {"systemd-oomd[812]: Killed /user.slice/train.scope due to memory pressure", CAUSE_SYSTEM_OOM,
     "oom-daemon", 0},
    {"earlyoom[700]: sending SIGTERM to process 4242 \"python\": badness 900", CAUSE_SYSTEM_OOM, "oom-daemon",
     4242},
    {"ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
     CAUSE_SYSTEM_OOM, "oom-daemon", 0},
    {"(raylet) node_manager.cc:3069: 1 Workers (tasks / actors) killed due to memory pressure (OOM)",
     CAUSE_SYSTEM_OOM, "oom-daemon", 0},
    {"771204.batch  OUT_OF_ME+    0:125", CAUSE_CGROUP_OOM, "scheduler", 0},
    {"slurmstepd: error: Exceeded job memory limit", CAUSE_CGROUP_OOM, "scheduler", 0},
    {"slurmstepd: error: Exceeded step memory limit at some point.", CAUSE_CGROUP_OOM, "scheduler", 0},
    {"slurmstepd: error: Job 7 exceeded memory limit (5 > 4), being killed", CAUSE_CGROUP_OOM, "scheduler",
     0},
    {"TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", CAUSE_CGROUP_OOM, "scheduler", 0},
    {"=>> PBS: job killed: mem 4200000kb exceeded limit 4194304kb", CAUSE_CGROUP_OOM, "scheduler", 0},
    {"=>> PBS: job killed: vmem 9000000kb exceeded limit 8388608kb", CAUSE_CGROUP_OOM, "scheduler", 0},
    {"OSError: [Errno 12] Cannot allocate memory", CAUSE_PYTHON_ERROR, "memory-error", 0},
    {"  File \"/usr/lib/python3.9/multiprocessing/popen_fork.py\", line 66, in _launch\n"
     "    self.pid = os.fork()\nOSError: [Errno 12] Cannot allocate memory",
     CAUSE_PYTHON_ERROR, "memory-error", 0},
    {"terminate called after throwing an instance of 'std::bad_alloc'", CAUSE_PYTHON_ERROR, "memory-error",
     0},
    {"W device_host_allocator.h:46] could not allocate pinned host memory of size: 34359738368",
     CAUSE_PYTHON_ERROR, "pinned-memory", 0},
    {"E cuda_driver.cc:802] failed to alloc 34359738368 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of "
     "memory",
     CAUSE_PYTHON_ERROR, "pinned-memory", 0},
    {"failed to allocate 17.79G from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory", CAUSE_PYTHON_ERROR,
     "gpu-out-of-memory", 0},
    {"torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.", CAUSE_PYTHON_ERROR,
     "gpu-out-of-memory", 0},
    {"n1:5:9 [0] init.cc:388 NCCL WARN Cuda failure 'out of memory'", CAUSE_PYTHON_ERROR, "gpu-out-of-memory",
     0},
    /* ended from outside */
    {"=>> PBS: job killed: walltime 3660 exceeded limit 3600", CAUSE_KILLED, "time-limit", 0},
    {"TERM_RUNLIMIT: job killed after reaching LSF run time limit.", CAUSE_KILLED, "time-limit", 0},
    {"slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T01:01:01 DUE TO JOB REQUEUE ***",
     CAUSE_KILLED, "requeued", 0},
    {"slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T01:01:01 DUE TO NODE FAILURE ***",
     CAUSE_KILLED, "node-failure", 0},
    /* crashes and exceptions */
    {"malloc(): memory corruption\nRuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error.",
     CAUSE_SEGFAULT, "heap-corruption", 9},
    {"double free or corruption (!prev)", CAUSE_SEGFAULT, "heap-corruption", 0},
    {"free(): invalid pointer", CAUSE_SEGFAULT, "heap-corruption", 0},
    {"corrupted size vs. prev_size", CAUSE_SEGFAULT, "heap-corruption", 0},
    {"munmap_chunk(): invalid pointer", CAUSE_SEGFAULT, "heap-corruption", 0},
    {"NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", CAUSE_UNKNOWN, "gpu-fault", 0},
    {"Unable to determine the device handle for GPU 0000:0D:00.0: GPU is lost.", CAUSE_UNKNOWN, "gpu-fault",
     0},
    {"RuntimeError: CUDA error (3): initialization error", CAUSE_PYTHON_ERROR, "cuda-in-forked-worker", 0},
    {"RuntimeError: cuda runtime error (3) : initialization error at THCGeneral.cpp:51", CAUSE_PYTHON_ERROR,
     "cuda-in-forked-worker", 0},
    {"OpenBLAS blas_thread_init: Thread creation failed: Resource temporarily unavailable",
     CAUSE_PYTHON_ERROR, "threads-exhausted", 0},
    {"  File \"/usr/lib/python3.9/multiprocessing/popen_fork.py\", line 66, in _launch\n"
     "    self.pid = os.fork()\nBlockingIOError: [Errno 11] Resource temporarily unavailable",
     CAUSE_PYTHON_ERROR, "threads-exhausted", 0},
    {"runtime: failed to create new OS thread (have 2 already; errno=11)", CAUSE_PYTHON_ERROR,
     "threads-exhausted", 0},
    {"RuntimeError: each element in list of batch should be of equal size", CAUSE_PYTHON_ERROR,
     "collate-shapes", 0},
    {"RuntimeError: Trying to resize storage that is not resizable", CAUSE_PYTHON_ERROR, "collate-shapes", 0},
    {"kernel: INFO: task python:811 blocked for more than 120 seconds.", CAUSE_WORKER_HANG, "blocked-io", 0},
    /* after-effects */
    {"RuntimeError: One of the subprocesses has abruptly died during map operation.", CAUSE_UNKNOWN, NULL, 0},
    {"distributed.scheduler.KilledWorker: ('train-0', <WorkerState>)", CAUSE_UNKNOWN, NULL, 0},
    {"[shm_broadcast.py:456] No available shared memory broadcast block found in 60 second.\n"
     "[multiproc_executor.py:140] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.",
     CAUSE_UNKNOWN, NULL, 0},
    {"Received sigquit from a child process. It usually means the child failed.", CAUSE_UNKNOWN, NULL, 0},
    {"  File \"/usr/lib/python3.8/multiprocessing/spawn.py\", line 116, in spawn_main\n"
     "_pickle.UnpicklingError: pickle data was truncated",
     CAUSE_UNKNOWN, NULL, 0},
    {"  File \"/usr/lib/python3.8/multiprocessing/spawn.py\", line 116, in spawn_main\n"
     "EOFError: Ran out of input",
     CAUSE_UNKNOWN, NULL, 0},
    {"RuntimeError: failed to recv, got 0 bytes", CAUSE_UNKNOWN, NULL, 0},
    {"sendBytes failed on SocketImpl: Broken pipe", CAUSE_UNKNOWN, NULL, 0},
    {"torch.distributed.DistStoreError: Socket Timeout", CAUSE_WORKER_HANG, "collective-timeout", 0},
    {"RuntimeError: Timed out initializing process group in store based barrier on rank: 0",
     CAUSE_WORKER_HANG, "collective-timeout", 0},
    {"torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:275", CAUSE_UNKNOWN, NULL, 0},
    {"RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:825, unhandled cuda error, NCCL version 2.7.8",
     CAUSE_UNKNOWN, NULL, 0},
    {"RuntimeError: Engine core initialization failed. See root cause above.", CAUSE_UNKNOWN, NULL, 0},
    {"vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", CAUSE_UNKNOWN, NULL, 0},
    {"Horovod has been shut down. This was caused by an exception on one of the ranks", CAUSE_UNKNOWN, NULL,
     0},
    {"Fatal Python error: could not acquire lock for <_io.BufferedWriter name='<stdout>'> at interpreter "
     "shutdown, possibly due to daemon threads",
     CAUSE_UNKNOWN, NULL, 0},
    {"ConnectionRefusedError: [Errno 111] Connection refused", CAUSE_UNKNOWN, NULL, 0},
    {"EOFError", CAUSE_UNKNOWN, NULL, 0},
    {"concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly",
     CAUSE_UNKNOWN, NULL, 0},
    {"The kernel appears to have died. It will restart automatically.", CAUSE_UNKNOWN, NULL, 0},
    {"The kernel has died, and the automatic restart has failed.", CAUSE_UNKNOWN, NULL, 0},
    {"The Kernel crashed while executing code in the current cell or a previous cell.", CAUSE_UNKNOWN, NULL,
     0},
    {"ncclInternalError: Internal check failed.", CAUSE_UNKNOWN, NULL, 0},
    {"ncclRemoteError: A call failed possibly due to a network error.", CAUSE_UNKNOWN, NULL, 0},
    {"[E901 ProcessGroupGloo.cpp:98] Gloo connectFullMesh failed with [pair.cc:99] no error", CAUSE_UNKNOWN,
     "connection", 0},
    {"n3:71:90 [0] NCCL WARN Connect to 10.1.0.9<3001> failed : Connection refused", CAUSE_UNKNOWN,
     "connection", 0},
    {"[launch.py:315:sigkill_handler] Killing subprocess 3301", CAUSE_UNKNOWN, NULL, 0},
    {"['python', 'fit.py'] exits with return code = 1", CAUSE_UNKNOWN, NULL, 0},
    {"RuntimeError: Rank 2 scheduler died during initialization (exit code: -3).", CAUSE_UNKNOWN, NULL, 0},
    {"RuntimeError: DataLoader worker (pid 61) exited unexpectedly with exit code 1.", CAUSE_UNKNOWN,
     "worker-exited", 61},
    {"Some of the step tasks have been OOM Killed.", CAUSE_CGROUP_OOM, "scheduler", 0},
    {"To adjust the kill threshold, set the environment variable", CAUSE_SYSTEM_OOM, "oom-daemon", 0},
    {"[Rank 2] Some NCCL operations have failed or timed out.", CAUSE_WORKER_HANG, "collective-timeout", 0},
    {"ncclSystemError: System call failed.\nLast error:\nsocketStartConnect: Connect to 10.1.0.9<3001> "
     "failed "
     ": No route to host",
     CAUSE_UNKNOWN, "connection", 0},
    {"ncclInternalError: Internal check failed.\nLast error:\nNet : Connection closed by remote peer n3<41>",
     CAUSE_UNKNOWN, "connection", 0},
    /* the message stands above the traceback that it belongs to */
    {"I get: No space left on device (28)\nTraceback (most recent call last):\n"
     "  File \"/usr/lib/python3.9/multiprocessing/reduction.py\", line 51, in dumps\n",
     CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"OSError: [Errno 28] No space left on device\n"
     "  File \"/usr/lib/python3/dist-packages/joblib/pool.py\", line 371, in send\n",
     CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"OSError: [Errno 28] No space left on device\n"
     "  File \"/usr/lib/python3.9/multiprocessing/queues.py\", line 81, in put\n",
     CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"OSError: [Errno 28] No space left on device\n  File \"fit.py\", line 3, in save\n", CAUSE_PYTHON_ERROR,
     "disk-full", 0},
    /* it waited for another process or thread */
    {"  File \"/usr/lib/python3.9/multiprocessing/popen_fork.py\", line 28, in poll\nKeyboardInterrupt",
     CAUSE_KILLED, "interrupted", 0},
    {"  File \"/usr/lib/python3.9/threading.py\", line 1027, in _wait_for_tstate_lock\nKeyboardInterrupt",
     CAUSE_KILLED, "interrupted", 0},
    {"  File \"/v/torch/utils/data/dataloader.py\", line 9, in _try_get_data\nKeyboardInterrupt",
     CAUSE_KILLED, "interrupted", 0},
    /* noise after the end */
    {"Training of run 7 is done\nConnectionResetError: [Errno 104] Connection reset by peer", CAUSE_UNKNOWN,
     NULL, 0},
    {"Training complete\nConnectionResetError: [Errno 104] Connection reset by peer", CAUSE_UNKNOWN, NULL, 0},
    /* the end of an exception is missing */
    {"Traceback (most recent call last):\n  File \"fit.py\", line 3, in f\n    raise ValueError(text_of",
     CAUSE_PYTHON_ERROR, NULL, 0},
    /* a server ends itself after an exception */
    {"Traceback (most recent call last):\n  File \"serve.py\", line 3, in warm\nAssertionError: "
     "403\n\nKilled",
     CAUSE_PYTHON_ERROR, NULL, 0},
    {"Traceback (most recent call last):\n  File \"serve.py\", line 3, in warm\nAssertionError: 403\n"
     "1\n2\n3\nKilled",
     CAUSE_KILLED, "sigkill", 0},
    {"--- Logging error ---\nTraceback (most recent call last):\n  File \"fit.py\", line 3, in f\n"
     "Message: 'Received sigquit from a child proces.'\nArguments: ()",
     CAUSE_UNKNOWN, NULL, 0},
    /* where it ran */
    {"root@3f0c92d1ab47:/workspace# python fit.py\n  host      : 3f0c92d1ab47\nBus error (core dumped)",
     CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"  File \"C:\\Users\\anna\\env\\lib\\site-packages\\torch\\x.py\", line 3, in f\nMemoryError",
     CAUSE_PYTHON_ERROR, "memory-error", 0},
    {"- Insufficient shared_memory if `timeout` is large enough.", CAUSE_UNKNOWN, NULL, 0},
    /* background: it changes how a bus error is read */
    {"np.load(path, mmap_mode='r')\nBus error (core dumped)\ntorch==2.12.0", CAUSE_BUS_ERROR_FILE, NULL, 0},
    {"OSError: [Errno 5] Input/output error\nBus error (core dumped)", CAUSE_BUS_ERROR_FILE, NULL, 0},
    {"nfs: server store1 not responding\nBus error (core dumped)", CAUSE_BUS_ERROR_FILE, NULL, 0},
    {"cp: Stale file handle\nBus error (core dumped)", CAUSE_BUS_ERROR_FILE, NULL, 0},
    {"warning: the file is truncated\nBus error (core dumped)", CAUSE_BUS_ERROR_FILE, NULL, 0},
    {"lmdb: truncated file\nBus error (core dumped)", CAUSE_BUS_ERROR_FILE, NULL, 0},
    {"*** SIGBUS (@0x7f0011aa2000) received by PID 310 (TID 0x7f00) from PID 3; stack trace: ***\n"
     "    @     0x7f00aa0011ca net::db::LMDBCursor::Next()",
     CAUSE_BUS_ERROR_FILE, NULL, 310},
    {"[box:00077] Signal: Bus error (7)\n[box:00077] [ 1] "
     "/srv/venv/lib/python3.8/site-packages/lmdb/cpython.cpython-38-x86_64-linux-gnu.so(+0x9c0)[0x7f]",
     CAUSE_BUS_ERROR_FILE, NULL, 0},
    {"Program terminated with signal SIGBUS, Bus error.\n#1  0x00007f in mdb_node_search () from "
     "liblmdb.so.0",
     CAUSE_BUS_ERROR_FILE, NULL, 0},
    {"loading imdb_reviews\nBus error (core dumped)", CAUSE_SHM_EXHAUSTED, NULL, 0},
    {"DeprecationWarning: use of fork() may lead to deadlocks in the child\nRuntimeError: DataLoader timed "
     "out "
     "after 60 seconds",
     CAUSE_WORKER_HANG, NULL, 0},
    {"DataLoader(d, worker_method='thread')\nMemoryError", CAUSE_PYTHON_ERROR, "memory-error", 0},
    {"FROM nvcr.io/nvidia/pytorch\nSLURM_JOB_ID=7\nKilled", CAUSE_KILLED, "sigkill", 0},
    {"gc.collect()\n$ ls /dev/shm\n$ ls -l /dev/shm\n$ ls -la /dev/shm\nRssShmem: 7 kB\nBus error (core "
     "dumped)",
     CAUSE_SHM_EXHAUSTED, NULL, 0},
};

static void test_formats(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(format_cases); i++) {
        const FormatCase *c = &format_cases[i];
        _cleanup_arena_ Arena arena = {0};
        Diagnosis got;
        explain_text(c->text, strlen(c->text), 0, NULL, &arena, &got);
        if (got.cause.id != c->id || got.cause.pid != c->pid ||
            (c->detail ? !got.detail || strcmp(got.detail, c->detail) != 0 : got.detail != NULL))
            fail_msg("%s: %s (%s) %.2f, pid %d: %s", c->text, cause_name(got.cause.id),
                     got.detail ? got.detail : "-", got.cause.confidence, got.cause.pid, got.cause.summary);
    }
}

/* How the answers compare with what really happened. An answer may be less than the truth, but never wrong.
 */
static void test_how_many_are_right(void **state)
{
    (void)state;
    size_t right = ARRAY_SIZE(format_cases); /* test_formats */
    size_t acceptable = 0;
    size_t unknown = 0;
    size_t wrong = 0;
    for (size_t i = 0; i < ARRAY_SIZE(log_cases); i++) { /* test_logs has compared the id */
        const LogCase *c = &log_cases[i];
        if (c->truth == CAUSE_OK || c->truth == c->id)
            right++;
        else if (c->fair)
            acceptable++;
        else if (c->id == CAUSE_UNKNOWN)
            unknown++;
        else
            wrong++;
        /* What is only acceptable must not sound certain. */
        if (c->fair)
            assert_true(c->most < 0.6);
    }
    size_t all = right + acceptable + unknown + wrong;
    print_message("%zu logs: %zu right, %zu acceptable, %zu unknown, %zu wrong\n", all, right, acceptable,
                  unknown, wrong);
    assert_int_equal(wrong, 0);
    assert_true((right + acceptable) * 100 >= all * 95);
}

/* The literals stand in one line of the text; `above` in an earlier one. */
static bool pattern_is_in(const Pattern *pattern, Text text)
{
    bool above = pattern->above == NULL;
    TEXT_FOR_EACH_LINE (line, text) {
        above = above || text_contains(line, pattern->above);
        if (above && text_contains(line, pattern->needle) &&
            (!pattern->also || text_contains(line, pattern->also)) &&
            (!pattern->unless || !text_contains(line, pattern->unless)))
            return true;
    }
    return false;
}

static void test_every_pattern_has_a_log(void **state)
{
    (void)state;
    _cleanup_free_ bool *found = calloc(n_patterns, sizeof *found);
    assert_non_null(found);
    _cleanup_buffer_ Buffer text = {0};
    for (size_t k = 0; k < ARRAY_SIZE(log_cases) + ARRAY_SIZE(format_cases); k++) {
        Text log;
        if (k < ARRAY_SIZE(log_cases)) {
            log_load(log_cases[k].log, &text);
            log = (Text){buffer_text(&text), text.size};
        } else
            log = text_of(format_cases[k - ARRAY_SIZE(log_cases)].text);
        for (size_t i = 0; i < n_patterns; i++)
            found[i] = found[i] || !patterns[i].needle || pattern_is_in(&patterns[i], log);
    }
    size_t missing = 0;
    for (size_t i = 0; i < n_patterns; i++)
        if (!found[i]) {
            print_message("no log has: %s + %s below %s\n", patterns[i].needle,
                          patterns[i].also ? patterns[i].also : "-",
                          patterns[i].above ? patterns[i].above : "-");
            missing++;
        }
    assert_int_equal(missing, 0);
}

static void test_logs(void **state)
{
    (void)state;
    _cleanup_buffer_ Buffer text = {0};
    for (size_t i = 0; i < ARRAY_SIZE(log_cases); i++) {
        const LogCase *c = &log_cases[i];
        _cleanup_arena_ Arena arena = {0};
        Diagnosis got;
        log_load(c->log, &text);
        explain_text(buffer_text(&text), text.size, 0, NULL, &arena, &got);
        if (got.cause.id != c->id || got.cause.confidence < c->least || got.cause.confidence > c->most ||
            got.cause.pid != c->pid || !strstr(got.cause.summary, c->summary) ||
            (c->detail ? !got.detail || strcmp(got.detail, c->detail) != 0 : got.detail != NULL))
            fail_msg("%s: %s (%s) %.2f, pid %d: %s", c->log, cause_name(got.cause.id),
                     got.detail ? got.detail : "-", got.cause.confidence, got.cause.pid, got.cause.summary);
        bool told = got.cause.confidence > 0;
        assert_true(told == (got.n_matched > 0));
        assert_true(told == (got.cause.n_evidence > 0));
        assert_true(got.n_matched <= 12);
        assert_true(got.n_notes <= 3);
        assert_true(got.fixes.n > 0 || c->id == CAUSE_OK);
    }
}

static void test_every_log_is_in_the_table(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/logs", TESTS_DIRECTORY);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    size_t logs = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        logs += text_ends(text_of(entry->d_name), ".log");
    closedir(dir);
    assert_int_equal(logs, ARRAY_SIZE(log_cases));
}

/* A clue has patterns, and a row that says what they mean. */
static void test_every_clue_is_in_the_tables(void **state)
{
    (void)state;
    for (Clue clue = 0; clue < CLUES; clue++) {
        const ClueInfo *info = &clue_infos[clue];
        bool decides = info->tier == TIER_CAUSE || info->tier == TIER_FALLBACK;
        if ((!info->evidence && info->tier != TIER_CONTEXT) || (!info->summary && decides))
            fail_msg("clue %d lacks its row, its evidence or its summary in clues.c", (int)clue);
        size_t n = 0;
        for (size_t i = 0; i < n_patterns; i++)
            n += patterns[i].clue == clue && patterns[i].needle;
        if (n == 0 && !logged_death_tells(clue))
            fail_msg("clue %d has no pattern in patterns.c", (int)clue);
    }
}

static void test_pieces_of_any_size(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 7, 512, 4096};
    _cleanup_buffer_ Buffer text = {0};
    for (size_t i = 0; i < ARRAY_SIZE(log_cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        Diagnosis whole;
        log_load(log_cases[i].log, &text);
        explain_text(buffer_text(&text), text.size, 0, NULL, &arena, &whole);
        for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
            Diagnosis pieces;
            explain_text(buffer_text(&text), text.size, steps[k], NULL, &arena, &pieces);
            assert_same(&whole, &pieces);
        }
    }
}

static uint64_t random_next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void test_junk_in_front(void **state)
{
    (void)state;
    size_t n = (size_t)10 << 20;
    _cleanup_buffer_ Buffer text = {0};
    _cleanup_free_ char *junk = malloc(n);
    assert_non_null(junk);
    uint64_t seed = 88172645463325252;
    for (size_t i = 0; i < n; i++)
        junk[i] = (char)random_next(&seed);
    static const char *const names[] = {"torch-2.13-cgroup-oom", "torch-2.13-item", "jupyter",
                                        "torch-2.13-healthy"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        _cleanup_arena_ Arena arena = {0};
        _cleanup_explainer_ Explainer *explainer = explainer_new();
        Diagnosis plain;
        Diagnosis got;
        log_load(names[i], &text);
        explain_text(buffer_text(&text), text.size, 0, NULL, &arena, &plain);
        assert_int_equal(explainer_feed(explainer, junk, n), 0);
        assert_int_equal(explainer_feed(explainer, "\n", 1), 0);
        assert_int_equal(explainer_feed(explainer, buffer_text(&text), text.size), 0);
        assert_int_equal(explainer_finish(explainer, NULL, NULL, &arena, &got), 0);
        assert_int_equal(got.cause.id, plain.cause.id);
        assert_int_equal(got.cause.pid, plain.cause.pid);
        assert_string_equal(got.cause.summary, plain.cause.summary);
    }
}

static const char bus_line[] =
    "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. It is possible";

static void test_one_line_of_50_mb(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    _cleanup_explainer_ Explainer *explainer = explainer_new();
    Diagnosis got;
    char x[65536];
    memset(x, 'x', sizeof x);
    for (size_t i = 0; i < 800; i++) {
        assert_int_equal(explainer_feed(explainer, x, sizeof x), 0);
        if (i == 400)
            assert_int_equal(explainer_feed(explainer, bus_line, strlen(bus_line)), 0);
    }
    assert_int_equal(explainer_finish(explainer, NULL, NULL, &arena, &got), 0);
    assert_int_equal(got.cause.id, CAUSE_SHM_EXHAUSTED);
    assert_int_equal(got.cause.pid, 77);
    assert_int_equal(got.n_matched, 1);
    assert_non_null(strstr(got.matched[0], "is killed by signal: Bus error"));
    assert_true(strlen(got.matched[0]) < 500);
}

/* Lines are cut after 8192 bytes: the message must be found wherever the cut falls, and count once. */
static void test_cut_of_a_long_line(void **state)
{
    (void)state;
    static char text[20000];
    for (size_t at = 8192 - 2 * sizeof bus_line; at < 8192 + 64; at++) {
        _cleanup_arena_ Arena arena = {0};
        Diagnosis got;
        memset(text, ' ', sizeof text);
        memcpy(text + at, bus_line, sizeof bus_line - 1);
        explain_text(text, sizeof text, 0, NULL, &arena, &got);
        assert_int_equal(got.cause.id, CAUSE_SHM_EXHAUSTED);
        assert_int_equal(got.cause.pid, 77);
        assert_int_equal(got.n_matched, 1);
        assert_false(list_mentions(got.cause.evidence, got.cause.n_evidence, "first of"));
    }
}

static void test_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n\n\n", "hello", "\x1b[", "\x1b", "\r\r"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        _cleanup_arena_ Arena arena = {0};
        Diagnosis got;
        explain_text(texts[i], strlen(texts[i]), 0, NULL, &arena, &got);
        assert_int_equal(got.cause.id, CAUSE_UNKNOWN);
        assert_true(got.cause.confidence == 0);
        assert_int_equal(got.n_matched, 0);
        assert_non_null(strstr(got.cause.summary, texts[i][0] ? "Nothing in this log" : "The log is empty"));
    }
}

static void test_hostile_lines(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "File \"",
        "File \"x\", line ",
        "\", line 99999999999999999999, in",
        "  File \"\", line 1, in ",
        "Error",
        "Error:",
        ".Error: x",
        "_: Error",
        "X.: Error",
        "RuntimeError: Caught  in ",
        "RuntimeError: Traceback (most recent call last):",
        "Traceback (most recent call last)",
        "% /dev/shm",
        "a b c d 101% /dev/shm",
        "a 99999999999999999999T c d 9% /dev/shm",
        "tmpfs 64 1 1 99% /dev/shm",
        "PyTorch version: ",
        "PyTorch version: 99999999999.1",
        "torch==0.",
        "torch==2.",
        "memory: usage , limit 99999999999999999999kB",
        "memory: usage 1kB, limit 9999999999999999999kB",
        "oom-kill:constraint=CONSTRAINT_MEMCG,task=,pid=",
        "oom-kill:constraint=CONSTRAINT_MEMCG,task=a\\b,pid=7,x",
        "Memory cgroup out of memory: Killed process 7 (a) (b) anon-rss:99999999999999999999kB",
        "unable to mmap ",
        "unable to mmap 1 Cannot allocate memory",
        "unable to mmap x bytes Cannot allocate memory __>",
        "exit code",
        "exit code -",
        "exit code 99999999999",
        "exit code 128",
        "exit code 191",
        "exit code -64",
        "died with <Signals.",
        "died with <Signals.X: 77>",
        "terminated with signal SIG",
        "Killed",
        " 7 Killed  ",
        "99999999999 Killed  x",
        "Killed (core dumped)",
        "(pid 99999999999) is killed by signal: Killed",
        "(pid -1) is killed by signal: Killed",
        "what():",
        "terminate called after throwing",
        "Current thread 0x",
        "File \"x\", line 3 in f",
        "raise raise Raise",
        "unable to write to file </torch_",
        "[rank",
        "[rank1]: ",
    };
    _cleanup_buffer_ Buffer all = {0};
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        _cleanup_arena_ Arena arena = {0};
        Diagnosis got;
        explain_text(lines[i], strlen(lines[i]), 0, NULL, &arena, &got);
        assert_non_null(got.cause.summary);
        assert_int_equal(buffer_printf(&all, "%s\n", lines[i]), 0);
    }
    _cleanup_arena_ Arena arena = {0};
    Diagnosis got;
    explain_text(buffer_text(&all), all.size, 0, NULL, &arena, &got);
    assert_true(got.n_matched <= 12);
}

/* A log may end anywhere. */
static void test_truncated_logs(void **state)
{
    (void)state;
    static const char *const names[] = {"torch-2.13-item", "torch-2.13-cgroup-oom", "jupyter",
                                        "nccl-last-error"};
    _cleanup_buffer_ Buffer text = {0};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        log_load(names[i], &text);
        for (size_t n = 0; n < text.size; n += 61) {
            _cleanup_arena_ Arena arena = {0};
            _cleanup_free_ char *copy =
                malloc(n + 1); /* of the exact size, so that the sanitizer sees a read beyond it */
            assert_non_null(copy);
            memcpy(copy, buffer_text(&text), n);
            Diagnosis got;
            explain_text(copy, n, 0, NULL, &arena, &got);
            assert_non_null(got.cause.summary);
        }
    }
}

static void test_repeats_are_counted(void **state)
{
    (void)state;
    _cleanup_buffer_ Buffer text = {0};
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(buffer_printf(&text, "OSError: [Errno 24] Too many open files\nstep %zu\n", i), 0);
    _cleanup_arena_ Arena arena = {0};
    Diagnosis got;
    explain_text(buffer_text(&text), text.size, 0, NULL, &arena, &got);
    assert_int_equal(got.cause.id, CAUSE_FD_EXHAUSTED);
    assert_int_equal(got.n_matched, 1);
    assert_true(list_mentions(got.cause.evidence, got.cause.n_evidence, "(first of 1000)"));
}

/* A crash after an exception may only be how the interpreter ended. */
static void test_crash_after_an_exception(void **state)
{
    (void)state;
    static const char text[] = "Traceback (most recent call last):\n"
                               "  File \"train.py\", line 7, in main\n"
                               "    model = build(cfg)\n"
                               "KeyError: 'depth'\n"
                               "Segmentation fault (core dumped)\n";
    _cleanup_arena_ Arena arena = {0};
    Diagnosis got;
    explain_text(text, sizeof text - 1, 0, NULL, &arena, &got);
    assert_int_equal(got.cause.id, CAUSE_SEGFAULT);
    assert_true(got.cause.confidence <= 0.6);
    assert_true(list_mentions(got.cause.evidence, got.cause.n_evidence, "KeyError was raised before"));
}

/* A program that ran out of GPU memory, went on, and died of something else. */
static void test_survived_clue(void **state)
{
    (void)state;
    _cleanup_buffer_ Buffer text = {0};
    assert_int_equal(buffer_append_text(&text, "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n"),
                     0);
    for (size_t i = 0; i < 2000; i++)
        assert_int_equal(buffer_printf(&text, "step %zu\n", i), 0);
    assert_int_equal(buffer_printf(&text, "%s\n", bus_line), 0);
    _cleanup_arena_ Arena arena = {0};
    Diagnosis got;
    explain_text(buffer_text(&text), text.size, 0, NULL, &arena, &got);
    assert_int_equal(got.cause.id, CAUSE_SHM_EXHAUSTED);
}

static void test_survived_exception(void **state)
{
    (void)state;
    _cleanup_buffer_ Buffer text = {0};
    log_load("timestamp-exception", &text);
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(buffer_printf(&text, "step %zu\n", i), 0);
    _cleanup_arena_ Arena arena = {0};
    Diagnosis got;
    explain_text(buffer_text(&text), text.size, 0, NULL, &arena, &got);
    assert_int_equal(got.cause.id, CAUSE_PYTHON_ERROR);
    assert_true(got.cause.confidence <= 0.5);
    assert_true(list_mentions(got.cause.evidence, got.cause.n_evidence, "survived"));
}

static void test_notes_fit_the_log(void **state)
{
    (void)state;
    static const struct {
        const char *log;
        const char *note; /* NULL: no notes at all */
    } cases[] = {
        {"beliefs", "'file_system' avoids shared memory"},
        {"beliefs", "pin_memory=False halves"},
        {"bus-but-oom", "guess with every bus error"},
        {"bus-storage", "Every bus error is about"},
        {"torch-2.13-small-shm-fork-file_system", "The OOM killer strikes"},
        {"torch-2.13-cgroup-oom", "A larger /dev/shm helps"},
        {"torch-2.13-open-files", "needs no descriptor per tensor"},
        {"gpu-memory", "three different things"},
        {"torch-2.13-item", NULL},
        {"torch-2.13-healthy", NULL},
        {"slurm-time-limit", NULL},
    };
    _cleanup_buffer_ Buffer text = {0};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        Diagnosis got;
        log_load(cases[i].log, &text);
        explain_text(buffer_text(&text), text.size, 0, NULL, &arena, &got);
        if (cases[i].note)
            assert_true(list_mentions(got.notes, got.n_notes, cases[i].note));
        else
            assert_int_equal(got.n_notes, 0);
    }
}

/* The log may come from another machine than this one, which is bare and large. */
static void test_fixes_fit_the_log(void **state)
{
    (void)state;
    static const struct {
        const char *log;
        const char *fix;
        const char *not_this; /* or NULL */
    } cases[] = {
        {"bus-ray-small-shm", "--shm-size=8g", NULL},
        {"bus-ray-small-shm", "--ipc=host", NULL},
        {"bus-ray-small-shm", "emptyDir", NULL},
        {"torch-2.13-small-shm-fork-file_system", "--shm-size=8g", NULL},
        {"background-workers", "--shm-size=8g", NULL},
        {"background-workers", "nnUNet_n_proc_DA=0", NULL},
        {"torch-2.13-leave", "num_workers=0", "OOM"},
        {"background-workers", "OOM", NULL},
        {"shell-core-dumped", "df -h", NULL},
        {"shell-core-dumped", "mount -o remount,size=8g /dev/shm", NULL},
        {"bus-ray-small-shm", "--shm-size=8g", "remount"},
        {"kubernetes-emptydir", "Raise the sizeLimit", "shm-size"},
        {"kernel-oom-new", "Run fewer jobs", "limits.memory"},
        {"torch-2.13-cpu-memory", "--mem (Slurm)", NULL},
        {"ray-memory-wrapped", "ray logs", NULL},
        {"mp-spawn-sigsegv", "num_workers=0", NULL},
        {"mp-spawn-sigsegv", "coredumpctl", NULL},
        {"shm-file-full", "elsewhere", "batch_size"},
        {"resource-tracker-key", "nothing to do", "OOM"},
        {"nccl-warn", "NCCL_SOCKET_IFNAME", "OOM"},
        {"nccl-attach", "--ipc=host", NULL},
        {"torch-2.13-healthy", "shmguard doctor", "--shm-size"},
        {"slurm-oom", "sbatch --mem=", "limits.memory"},
        {"kubernetes-oomkilled", "limits:\n    memory:", "--mem "},
        {"docker-events", "docker run --memory=", NULL},
        {"torch-2.13-cgroup-oom", "--mem (Slurm), limits.memory (Kubernetes), --memory (Docker)", NULL},
        {"progress-bar-killed", "--mem (Slurm), limits.memory (Kubernetes), --memory (Docker)", NULL},
        {"torch-2.13-open-files", "ulimit -n", NULL},
        {"torch-2.13-open-files", "set_sharing_strategy('file_system')", NULL},
        {"files-file-system", "ulimit -n", "set_sharing_strategy('file_system')"},
        {"worker-threads", "num_workers", "shmguard run"},
        {"joblib-memmap-full", "JOBLIB_TEMP_FOLDER", NULL},
    };
    const Machine machine = {
        .shm = {.state = SHM_OK, .size_bytes = UINT64_C(64) << 30, .mounted = true},
        .memory = {.total_bytes = UINT64_C(128) << 30},
        .cgroup = {.memory_limit_bytes = U64_UNKNOWN},
        .limits = {.open_files_soft = 1 << 20, .open_files_hard = 1 << 20},
        .sandbox = {.kind = ENVIRONMENT_BARE},
    };
    _cleanup_buffer_ Buffer text = {0};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        Diagnosis got;
        log_load(cases[i].log, &text);
        explain_text(buffer_text(&text), text.size, 0, &machine, &arena, &got);
        if (!fixes_mention(&got.fixes, cases[i].fix) ||
            (cases[i].not_this && fixes_mention(&got.fixes, cases[i].not_this)))
            fail_msg("%s: no fix says %s, or one says %s", cases[i].log, cases[i].fix,
                     cases[i].not_this ? cases[i].not_this : "-");
    }
}

/* What the log shows about the machine comes first, and what does not exist there not at all. */
static void test_fixes_fit_the_system(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *fix;
        const char *first;    /* in the first one, or NULL */
        const char *not_this; /* or NULL */
    } cases[] = {
        {"root@3f0c92d1ab47:/w# python fit.py\nBus error (core dumped)", "df -h", "--shm-size=8g", "remount"},
        {"root@gpu-server-01:/w# python fit.py\nBus error (core dumped)", "remount", NULL, NULL},
        {"Warning Evicted kubelet Usage of EmptyDir volume \"shm\" exceeds the limit \"2Gi\".",
         "sizeLimit: 8Gi", "sizeLimit: 8Gi", "docker"},
        {"/Users/anna/fit.sh: line 8: 991 Bus error: 10           python fit.py", "df -h", NULL, "doctor"},
        {"OSError: [WinError 1455] The paging file is too small", "paging file", NULL, "--mem"},
        {"  File \"D:\\env\\lib\\site-packages\\loky\\x.py\", line 3, in f\nBrokenProcessPool: x",
         "set PYTHONFAULTHANDLER=1", NULL, "docker"},
        {"  File \"/v/lib/python3.9/site-packages/torch/x.py\", line 3, in f\nValueError: x", "in a library",
         NULL, "Fix the exception"},
        {"Worker timed out after 90 seconds.\n - Insufficient shared_memory", "--shm-size=8g", NULL, NULL},
        {"I do not use docker\nBus error (core dumped)", "remount", NULL, NULL},
        {"OSError: [Errno 24] Too many open files", "docker run --ulimit nofile=65536:65536", NULL, NULL},
        {"[Rank 2] Some NCCL operations have failed or timed out.", "init_process_group(timeout=", NULL,
         NULL},
        {"[Rank 2] Some NCCL operations have failed or timed out.", "py-spy dump", NULL, NULL},
        {"  File \"/usr/lib/python3.9/multiprocessing/popen_fork.py\", line 28, in poll\nKeyboardInterrupt",
         "last checkpoint", "py-spy dump", NULL},
        {"  File \"fit.py\", line 28, in step\nKeyboardInterrupt", "last checkpoint", "last checkpoint",
         "It was waiting"},
        {"exit code 137", "docker inspect", NULL, "kubectl"},
        {"kubelet: exit code 137", "kubectl describe pod", NULL, "docker inspect"},
        {"我没有使用docker\nBus error (core dumped)", "remount", NULL, NULL},
        {"docker does not help\nBus error (core dumped)", "df -h", "--shm-size=8g", "remount"},
        {"  File \"D:\\env\\lib\\site-packages\\x.py\", line 3, in f\nAttributeError: Can't pickle local "
         "object "
         "'f'",
         "num_workers=0", NULL, "'fork'"},
        {"Training finished.\nConnectionResetError: [Errno 104] Connection reset by peer", "nothing to do",
         NULL, "OOM"},
        {"Net : Connection closed by remote peer n3<41>\nncclInternalError", "NCCL_SOCKET_IFNAME", NULL,
         "shm"},
        {"OSError: [Errno 28] No space left on device\n"
         "  File \"/usr/lib/python3.9/multiprocessing/queues.py\", line 81, in put\n",
         "--shm-size=8g", NULL, "checkpoints"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        Diagnosis got;
        explain_text(cases[i].text, strlen(cases[i].text), 0, NULL, &arena, &got);
        const Fixes first = {got.fixes.items, MIN(got.fixes.n, (size_t)1), 0};
        if (!fixes_mention(&got.fixes, cases[i].fix) ||
            (cases[i].first && !fixes_mention(&first, cases[i].first)) ||
            (cases[i].not_this && fixes_mention(&got.fixes, cases[i].not_this)))
            fail_msg("%s: %s", cases[i].text, cases[i].fix);
    }
}

/* The reaper's line comes after the kill, and says what is left of the process. */
static void test_victim_keeps_its_memory(void **state)
{
    (void)state;
    _cleanup_buffer_ Buffer text = {0};
    _cleanup_arena_ Arena arena = {0};
    Diagnosis got;
    log_load("background-oom", &text);
    explain_text(buffer_text(&text), text.size, 0, NULL, &arena, &got);
    assert_true(list_mentions(got.cause.evidence, got.cause.n_evidence, "had 28.7 GiB of private"));
}

/* What stands beside the cause must be true as well. */
static void test_facts_beside_the_cause(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *says;     /* in the summary, the evidence or the matching lines; or NULL */
        const char *not_this; /* nowhere among them; or NULL */
    } cases[] = {
        /* before 5.0 the kernel names a candidate, and may kill its child */
        {"kernel: Memory cgroup out of memory: Kill process 410 (server) score 950 or sacrifice child\n"
         "kernel: Killed process 512 (helper), UID 0, total-vm:9000000kB, anon-rss:4194304kB, file-rss:0kB, "
         "shmem-rss:0kB",
         "(pid 512, helper)", "pid 410"},
        {"kernel: Memory cgroup out of memory: Kill process 410 (server) score 950 or sacrifice child\n"
         "kernel: Killed process 512 (helper), UID 0, total-vm:9000000kB, anon-rss:4194304kB, file-rss:0kB, "
         "shmem-rss:0kB",
         "512 had 4.0 GiB", NULL},
        {"Out of memory: Killed process 71 (python) total-vm:1,000,000kB, anon-rss:900,000kB, shmem-rss:0kB",
         "pid 71", "of private"},
        {"*** Aborted at 1600000000 (unix time) ***\n*** SIGBUS (@0x7f) received by PID 5; stack trace: ***",
         "bus error", "SIGABRT"},
        {"  File \"/usr/lib/python3.8/multiprocessing/spawn.py\", line 116, in spawn_main\n"
         "_pickle.UnpicklingError: pickle data was truncated",
         "had failed", "locks"},
        {"  File \"/usr/lib/python3.9/multiprocessing/synchronize.py\", line 57, in __init__\n"
         "OSError: [Errno 28] No space left on device\nOSError\n[Errno 28] No space left on device",
         "lock, queue", "separate"},
        {"[1] shmutils.cc:80 NCCL WARN Cuda failure 'invalid argument'\n"
         "[1] shmutils.cc:91 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-a (size 7)",
         "CUDA", "separate"},
        {"tmpfs 8.0G 40M 7.9G 1% /dev/shm\ntmpfs 8.0G 7.8G 200M 98% /dev/shm\ntmpfs 8.0G 1.0G 7.0G 13% "
         "/dev/shm\n"
         "RuntimeError: DataLoader worker (pid 13) is killed by signal: Bus error.",
         "tmpfs 8.0G 7.8G 200M 98% /dev/shm", "40M"},
        {"malloc(): memory corruption\nRuntimeError: DataLoader worker (pid 9) is killed by signal: Bus "
         "error.",
         "bus error", "separate"},
        {"UserWarning: resource_tracker: There appear to be 2 leaked shared_memory objects to clean up at "
         "shutdown",
         "harmless", "death"},
        {"[box:00077] Signal: Bus error (7)\n[box:00077] [ 1] /srv/lmdb/cpython.cpython-38.so(+0x9c0)[0x7f]",
         "in a library that reads mapped files", "PyTorch"},
        {"Failures:\n  exitcode  : -7 (pid: 71)\n  traceback : Signal 7 (SIGBUS) received by PID 71\n"
         "Root Cause (first observed failure):\n  exitcode  : -7 (pid: 70)\n",
         "pid 70", "pid 71)."},
        {"  File \"D:\\env\\fit.py\", line 3, in f\nValueError: x", "at D:\\env\\fit.py line 3", NULL},
        {"Training of run 7 is done\nConnectionResetError: [Errno 104] Connection reset by peer", "harmless",
         NULL},
        {"Training finished.\nConnectionResetError: [Errno 104] Connection reset by peer", "harmless", NULL},
        {"Training complete\nConnectionResetError: [Errno 104] Connection reset by peer", "harmless", NULL},
        {"ConnectionResetError: [Errno 104] Connection reset by peer\n"
         "Exception ignored in: <bound method _DataLoaderIter.__del__ of <x>>",
         "harmless", NULL},
        {"ConnectionResetError: [Errno 104] Connection reset by peer", "does not say why", "harmless"},
        {"Traceback (most recent call last):\n  File \"serve.py\", line 3, in warm\nAssertionError: "
         "403\n\nKilled",
         "AssertionError: 403", "Nothing in the log"},
        {"Traceback (most recent call last):\n  File \"fit.py\", line 3, in f\n    raise ValueError(text_of",
         "raised ValueError, at fit.py line 3", "Nothing in the log"},
        {"RuntimeError: unable to resize file </torch_52_901> to the right size: Invalid argument (22)",
         "Invalid argument", "Nothing in the log"},
        {"The node was low on resource: memory. Container x was using 7Ki", "ran low on memory.", NULL},
        {"RuntimeError: DataLoader worker (pid 9) is killed by signal: Segmentation fault.",
         "in a DataLoader worker (pid 9)", NULL},
        {"\"OOMKilled\": false,\n\"ExitCode\": 137,", "was not the memory limit", NULL},
        {"  File \"/usr/lib/python3.9/multiprocessing/reduction.py\", line 164, in recvfds\n"
         "    raise RuntimeError('received %d items of ancdata' %\n\n",
         "Line 2: ", NULL},
        {"Exception Type:  EXC_BAD_ACCESS (SIGSEGV)\n"
         "Termination Reason:    Namespace SIGNAL, Code 11 Segmentation fault: 11",
         "segmentation fault", "pid 11"},
        {"IndexError: Caught IndexError in DataLoader worker process 3.\n"
         "Original Traceback (most recent call last):\n  File \"/srv/data.py\", line 40, in __getitem__\n",
         "A DataLoader worker raised IndexError, at /srv/data.py line 40", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        Diagnosis got;
        explain_text(cases[i].text, strlen(cases[i].text), 0, NULL, &arena, &got);
        const char *const parts[] = {cases[i].says, cases[i].not_this};
        for (size_t k = 0; k < ARRAY_SIZE(parts); k++)
            if (parts[k] && answer_says(&got, parts[k]) != (k == 0))
                fail_msg("%s\n%s: %s", cases[i].text, k == 0 ? "not said" : "said", parts[k]);
    }
}

/* An answer says that it does not know only where it does not sound certain. */
static void test_doubt_is_not_called_likely(void **state)
{
    (void)state;
    static const char *const doubts[] = {"does not show which", "does not show whether", "does not show it",
                                         "does not tell"};
    _cleanup_buffer_ Buffer text = {0};
    for (size_t i = 0; i < ARRAY_SIZE(log_cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        Diagnosis got;
        log_load(log_cases[i].log, &text);
        explain_text(buffer_text(&text), text.size, 0, NULL, &arena, &got);
        for (size_t k = 0; k < ARRAY_SIZE(doubts); k++)
            if (strstr(got.cause.summary, doubts[k]) && got.cause.confidence >= 0.6)
                fail_msg("%s: %.2f: %s", log_cases[i].log, got.cause.confidence, got.cause.summary);
    }
}

static void test_what_is_shown_is_harmless(void **state)
{
    (void)state;
    static const char text[] = "ValueError: a\x1b]0;title\x07 b\xff\xe2\x80\xae c\n";
    _cleanup_arena_ Arena arena = {0};
    Diagnosis got;
    explain_text(text, sizeof text - 1, 0, NULL, &arena, &got);
    assert_int_equal(got.cause.id, CAUSE_PYTHON_ERROR);
    for (const char *c = got.cause.summary; *c; c++)
        assert_true((unsigned char)*c >= 0x20 && (unsigned char)*c < 0x7F);
    assert_string_equal(got.matched[0], "ValueError: a]0;title\\x07 b\\xff\\xe2\\x80\\xae c");
}

/* This machine's kernel log names the worker of which the log only says that it was killed. */
static void test_machine_knows_the_victim(void **state)
{
    (void)state;
    OomKill kills[] = {{.pid = 1, .scope = OOM_SCOPE_MACHINE},
                       {.pid = 18660, .comm = "pt_data_worker", .scope = OOM_SCOPE_CGROUP}};
    Machine machine = {
        .kills = {kills, ARRAY_SIZE(kills), ARRAY_SIZE(kills)},
        .shm = {.state = SHM_OK, .size_bytes = 64 << 20, .used_bytes = 1 << 20},
        .memory = {.total_bytes = UINT64_C(32) << 30},
        .max_map_count = 65530,
    };
    _cleanup_buffer_ Buffer text = {0};
    _cleanup_arena_ Arena arena = {0};
    Diagnosis got;
    log_load("torch-2.13-SIGKILL", &text);
    explain_text(buffer_text(&text), text.size, 0, &machine, &arena, &got);
    assert_int_equal(got.cause.id, CAUSE_CGROUP_OOM);
    assert_int_equal(got.cause.pid, 18660);
    assert_null(got.detail);
    assert_non_null(strstr(got.cause.summary, "pt_data_worker"));
    assert_true(got.fixes.n > 0);

    log_load("torch-1.13-SIGKILL", &text);
    explain_text(buffer_text(&text), text.size, 0, &machine, &arena, &got);
    assert_int_equal(got.cause.id, CAUSE_KILLED);

    log_load("torch-1.13-small-shm-fork-file_system", &text);
    explain_text(buffer_text(&text), text.size, 0, &machine, &arena, &got);
    assert_int_equal(got.cause.id, CAUSE_SHM_EXHAUSTED);
    assert_true(got.cause.confidence >= 0.9);
    assert_true(list_mentions(got.cause.evidence, got.cause.n_evidence, "64.0 MiB"));
    for (size_t i = 1; i < got.fixes.n; i++)
        assert_true(got.fixes.items[i - 1].needs <= got.fixes.items[i].needs);
}

/* A user who may not read the kernel's log is told who may. */
static void test_kernel_log_is_for_whom(void **state)
{
    (void)state;
    static const struct {
        int error;
        EnvironmentKind kind;
        bool root;
        FixNeeds needs;
        const char *command;
    } cases[] = {
        {0, ENVIRONMENT_BARE, false, NEEDS_NOTHING, "dmesg | grep -i error"},
        {-EPERM, ENVIRONMENT_BARE, false, NEEDS_ROOT, "sudo dmesg | grep -i error"},
        {-EPERM, ENVIRONMENT_BARE, true, NEEDS_ROOT, "dmesg | grep -i error"},
        {-EPERM, ENVIRONMENT_DOCKER, true, NEEDS_ADMIN, "sudo dmesg | grep -i error"},
        {-EPERM, ENVIRONMENT_DOCKER, false, NEEDS_ADMIN, "sudo dmesg | grep -i error"},
    };
    _cleanup_buffer_ Buffer text = {0};
    log_load("bus-storage", &text);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Machine machine = {
            .kills_error = cases[i].error,
            .sandbox = {.kind = cases[i].kind, .root = cases[i].root, .initial_userns = true},
            .memory = {.total_bytes = UINT64_C(32) << 30},
        };
        _cleanup_arena_ Arena arena = {0};
        Diagnosis got;
        explain_text(buffer_text(&text), text.size, 0, &machine, &arena, &got);
        const Fix *last = &got.fixes.items[got.fixes.n - 1];
        assert_non_null(strstr(last->what, "I/O errors"));
        assert_int_equal(last->needs, cases[i].needs);
        assert_string_equal(last->command, cases[i].command);
    }
}

/* Prints the speed. It is not asserted, because it depends on the machine. */
static void test_speed(void **state)
{
    (void)state;
    _cleanup_buffer_ Buffer text = {0};
    for (size_t i = 0; text.size < (size_t)1 << 20; i++)
        assert_int_equal(
            buffer_printf(&text,
                          "2026-04-15 03:12:%02zu,118 INFO trainer step %zu loss 0.%04zu lr 0.0003 it/s 12.4 "
                          "data 0.003s mem 31.2G rank 0\n",
                          i % 60, i, i * 7919 % 10000),
            0);
    _cleanup_arena_ Arena arena = {0};
    _cleanup_explainer_ Explainer *explainer = explainer_new();
    Diagnosis got;
    struct timespec before;
    struct timespec after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (size_t i = 0; i < 200; i++)
        assert_int_equal(explainer_feed(explainer, buffer_text(&text), text.size), 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_int_equal(explainer_finish(explainer, NULL, NULL, &arena, &got), 0);
    assert_int_equal(got.cause.id, CAUSE_UNKNOWN);
    double seconds = (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
    print_message("200 MiB in %.2f s: %.0f MiB/s\n", seconds, 200 / seconds);
}

static void test_cause_names(void **state)
{
    (void)state;
    for (int id = 0; id < CAUSE_IDS; id++)
        assert_true(cause_name((CauseId)id)[0] != '\0');
    assert_string_equal(cause_name(CAUSE_BUS_ERROR_FILE), "bus-error-file");
    assert_string_equal(cause_name(CAUSE_IDS), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logs),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_how_many_are_right),
        cmocka_unit_test(test_every_log_is_in_the_table),
        cmocka_unit_test(test_every_pattern_has_a_log),
        cmocka_unit_test(test_every_clue_is_in_the_tables),
        cmocka_unit_test(test_pieces_of_any_size),
        cmocka_unit_test(test_junk_in_front),
        cmocka_unit_test(test_one_line_of_50_mb),
        cmocka_unit_test(test_cut_of_a_long_line),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_hostile_lines),
        cmocka_unit_test(test_truncated_logs),
        cmocka_unit_test(test_repeats_are_counted),
        cmocka_unit_test(test_crash_after_an_exception),
        cmocka_unit_test(test_survived_clue),
        cmocka_unit_test(test_survived_exception),
        cmocka_unit_test(test_notes_fit_the_log),
        cmocka_unit_test(test_fixes_fit_the_log),
        cmocka_unit_test(test_fixes_fit_the_system),
        cmocka_unit_test(test_victim_keeps_its_memory),
        cmocka_unit_test(test_facts_beside_the_cause),
        cmocka_unit_test(test_doubt_is_not_called_likely),
        cmocka_unit_test(test_what_is_shown_is_harmless),
        cmocka_unit_test(test_machine_knows_the_victim),
        cmocka_unit_test(test_kernel_log_is_for_whom),
        cmocka_unit_test(test_speed),
        cmocka_unit_test(test_cause_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
