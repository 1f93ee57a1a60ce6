/* SPDX-License-Identifier: Apache-2.0 */
#include "clues.h"

const ClueInfo clue_infos[CLUES] = {
    [CLUE_SHM_FULL] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SHM_EXHAUSTED,
            .confidence = 0.97,
            .evidence = "PyTorch found no room in /dev/shm for a segment",
            .summary =
                "Shared memory ran out: /dev/shm was full when a process{pid} wanted room for a tensor. "
                "It needs a larger /dev/shm, or fewer and smaller batches in flight.",
        },
    [CLUE_SHM_STALE_ERRNO] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SHM_EXHAUSTED,
            .confidence = 0.9,
            .evidence =
                "PyTorch could not reserve a segment; the reason it prints is left over from an earlier "
                "call (2.10 does so), the true one is nearly always that /dev/shm is full",
            .summary =
                "Shared memory ran out: /dev/shm was full when a process{pid} wanted room for a tensor. "
                "The reason in the message is not the true one.",
        },
    [CLUE_SHM_WRITE] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SHM_EXHAUSTED,
            .confidence = 0.85,
            .evidence =
                "an older PyTorch could not write the first byte of a segment, and does not say why; it "
                "is nearly always that /dev/shm is full",
            .summary =
                "Shared memory ran out: /dev/shm was full when a process{pid} wanted room for a tensor.",
        },
    [CLUE_SHM_FILE] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SHM_EXHAUSTED,
            .confidence = 0.95,
            .evidence = "a file in /dev/shm could not be written: no space left",
            .summary = "Shared memory ran out: /dev/shm was full when the program wrote a file there.",
        },
    [CLUE_SHM_PYTHON] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SHM_EXHAUSTED,
            .confidence = 0.95,
            .detail = "python-shared-memory",
            .evidence = "Python's multiprocessing.shared_memory found no room in /dev/shm",
            .summary = "Shared memory ran out: Python's shared_memory found /dev/shm full.",
        },
    [CLUE_SHM_SEMAPHORE] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SHM_EXHAUSTED,
            .confidence = 0.9,
            .detail = "semaphore",
            .evidence =
                "Python could not make a lock or queue: these are small files in /dev/shm, and it was full",
            .summary =
                "Shared memory ran out: /dev/shm was so full that Python could not even make a lock for "
                "its workers. Something else fills it.",
        },
    [CLUE_SHM_INODES] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SHM_EXHAUSTED,
            .confidence = 0.9,
            .detail = "inodes",
            .evidence =
                "a new file could not be made in /dev/shm, although an empty one takes no room: it had no "
                "inodes left",
            .summary = "/dev/shm had no inodes left: it holds too many files, whatever their sizes. A "
                       "larger size does not help, fewer files or more inodes do.",
            .fix = "Share fewer and larger tensors.",
        },
    [CLUE_SHM_NCCL] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SHM_EXHAUSTED,
            .confidence = 0.95,
            .detail = "nccl",
            .evidence = "NCCL found no room in /dev/shm for its buffers",
            .summary =
                "Shared memory ran out: NCCL found no room in /dev/shm for the buffers between the GPUs.",
        },
    [CLUE_NCCL_SEGMENT] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SHM_EXHAUSTED,
            .confidence = 0.7,
            .detail = "nccl",
            .evidence = "NCCL could not make a segment in /dev/shm; this version does not say why",
            .summary = "NCCL could not make a buffer in /dev/shm, most likely because /dev/shm is full or "
                       "too small.",
        },
    [CLUE_SHM_EMPTYDIR] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SHM_EXHAUSTED,
            .confidence = 0.9,
            .detail = "emptydir-limit",
            .evidence = "Kubernetes evicted the pod because its shared memory volume grew past its sizeLimit",
            .summary = "The pod was evicted because /dev/shm grew past the sizeLimit of its emptyDir volume.",
        },
    [CLUE_BUS_WORKER] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SHM_EXHAUSTED,
            .confidence = 0.85,
            .evidence = "a DataLoader worker died of a bus error",
            .summary = "A DataLoader worker{pid} died of a bus error: most likely /dev/shm was full when "
                       "it wrote a batch there.",
        },
    [CLUE_BUS] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SHM_EXHAUSTED,
            .confidence = 0.6,
            .evidence = "a process died of a bus error (SIGBUS)",
            .summary =
                "A process{pid} died of a bus error: probably /dev/shm was full, but a mapped file that "
                "was cut short ends the same way.",
        },
    [CLUE_FD] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_FD_EXHAUSTED,
            .confidence = 0.97,
            .evidence = "a process could open no more files or receive no more descriptors",
            .summary = "A process{pid} ran out of file descriptors. Each shared tensor that is still in "
                       "use takes one.",
            .fix = "Hold fewer tensors: keep numbers (loss.item()) and clones of what the loader gives, "
                   "not the batches themselves, and pack many small tensors into one.",
        },
    [CLUE_FD_SYSTEM] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_FD_EXHAUSTED,
            .confidence = 0.9,
            .detail = "whole-machine",
            .evidence = "the whole machine is at its limit of open files (fs.file-max)",
            .summary = "The whole machine ran out of open files, not this process alone.",
        },
    [CLUE_OPEN_FAILED] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_FD_EXHAUSTED,
            .confidence = 0.55,
            .evidence = "an older PyTorch could not open a segment and does not say why",
            .summary =
                "PyTorch could not open a shared segment. This version does not say why: probably it ran "
                "out of file descriptors; a segment that somebody deleted gives the same message.",
        },
    [CLUE_MAPS] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_MAPS_EXHAUSTED,
            .confidence = 0.85,
            .evidence = "a segment could not be mapped: cannot allocate memory",
            .summary = "A process{pid} reached the kernel's limit of memory mappings (vm.max_map_count): "
                       "it holds too many shared tensors at once.",
        },
    [CLUE_MMAP_MEMORY] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_MAPS_EXHAUSTED,
            .confidence = 0.55,
            .evidence = "an older PyTorch could not map memory and does not say why",
            .summary = "PyTorch could not map memory: the limit of mappings (vm.max_map_count), a limit "
                       "on address space (ulimit -v), or too little memory.",
        },
    [CLUE_SEGMENT_GONE] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SEGMENTS_DELETED,
            .confidence = 0.9,
            .evidence = "a segment that was to be opened by name was not in /dev/shm any more",
            .summary = "Somebody deleted PyTorch's segments from /dev/shm while they were in use: a "
                       "clean-up job, or logind when the user's last session ended (RemoveIPC).",
            .fix = "The default strategy, torch.multiprocessing.set_sharing_strategy('file_descriptor'), "
                   "needs no names in /dev/shm, so nobody can delete them.",
        },
    [CLUE_SEGMENT_UNLINK] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SEGMENTS_DELETED,
            .confidence = 0.85,
            .evidence = "PyTorch wanted to remove a segment that somebody else had removed already",
            .summary = "Somebody deleted PyTorch's segments from /dev/shm while they were in use: a "
                       "clean-up job, or logind when the user's last session ended (RemoveIPC).",
            .fix = "The default strategy, torch.multiprocessing.set_sharing_strategy('file_descriptor'), "
                   "needs no names in /dev/shm, so nobody can delete them.",
        },
    [CLUE_PYTHON_SEGMENT_GONE] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SEGMENTS_DELETED,
            .confidence = 0.75,
            .detail = "python-shared-memory",
            .evidence = "a segment of Python's shared_memory was not in /dev/shm any more",
            .summary = "A segment of Python's shared_memory is gone. Often Python itself removed it: "
                       "every process that attaches has a resource tracker, which deletes the segment "
                       "when that process ends.",
            .fix = "Attach with SharedMemory(name=…, track=False) (Python 3.13), or unregister the "
                   "segment from multiprocessing.resource_tracker in processes that only attach.",
        },
    [CLUE_NCCL_SEGMENT_GONE] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SEGMENTS_DELETED,
            .confidence = 0.5,
            .detail = "nccl",
            .evidence = "NCCL did not find the segment that another rank had made in /dev/shm",
            .summary =
                "NCCL did not find another rank's segment in /dev/shm: somebody deleted it, or the ranks "
                "do not share one /dev/shm (separate containers that look like one host).",
        },
    [CLUE_OOM_CGROUP] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_CGROUP_OOM,
            .confidence = 0.97,
            .evidence = "the kernel's OOM killer acted because a control group was at its memory limit",
            .summary =
                "The kernel killed a process{pid} because its control group (the container or job) was at "
                "its memory limit.",
        },
    [CLUE_OOM_SCHEDULER] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_CGROUP_OOM,
            .confidence = 0.95,
            .detail = "scheduler",
            .evidence = "the batch system says that the job went past the memory it had asked for",
            .summary =
                "The job used more memory than it had asked the batch system for, and was killed for it.",
        },
    [CLUE_OOM_KUBERNETES] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_CGROUP_OOM,
            .confidence = 0.95,
            .detail = "kubernetes",
            .evidence = "the container runtime says OOMKilled",
            .summary = "The container was killed because it went past its memory limit (OOMKilled).",
        },
    [CLUE_OOM_MACHINE] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SYSTEM_OOM,
            .confidence = 0.95,
            .evidence = "the kernel's OOM killer acted because the machine was out of memory",
            .summary = "The kernel killed a process{pid} because the whole machine was out of memory.",
        },
    [CLUE_OOM_DAEMON] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SYSTEM_OOM,
            .confidence = 0.9,
            .detail = "oom-daemon",
            .evidence =
                "a program that guards the machine's memory (systemd-oomd, earlyoom, Ray) killed something",
            .summary =
                "A program that guards the machine's memory killed a process{pid} because memory was short.",
        },
    [CLUE_OOM_SOME] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SYSTEM_OOM,
            .confidence = 0.6,
            .evidence =
                "the kernel's OOM killer acted; the line that says for want of what is not in the log",
            .summary =
                "The kernel's OOM killer killed a process{pid}. The log does not tell whether the machine "
                "or only its control group was out of memory.",
        },
    [CLUE_SIGKILL_WORKER] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_KILLED,
            .confidence = 0.6,
            .detail = "sigkill",
            .evidence = "a DataLoader worker was killed with SIGKILL",
            .summary =
                "Somebody killed a DataLoader worker{pid} with SIGKILL. Most often that is the kernel's "
                "OOM killer, but this log does not show it: the kernel's log does.",
        },
    [CLUE_SIGKILL] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_KILLED,
            .confidence = 0.5,
            .detail = "sigkill",
            .evidence = "a process ended by SIGKILL (exit code 137 or -9)",
            .summary = "A process{pid} was killed with SIGKILL. The OOM killer does that, but so do "
                       "`docker stop`, a batch system and people; this log does not tell which.",
        },
    [CLUE_TIME_LIMIT] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_KILLED,
            .confidence = 0.97,
            .detail = "time-limit",
            .evidence = "the batch system says that the job reached its time limit",
            .summary = "The batch system ended the job at its time limit. Nothing was wrong with memory.",
            .fix = "Ask for more time, or save checkpoints and resume from the last one.",
        },
    [CLUE_PREEMPTED] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_KILLED,
            .confidence = 0.97,
            .detail = "preempted",
            .evidence = "the batch system says that the job had to make room for another",
            .summary = "The batch system stopped the job to make room for another one. Nothing was wrong "
                       "with memory.",
            .fix = "Save checkpoints and let the job be requeued, or use a partition without preemption.",
        },
    [CLUE_NODE_FAILURE] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_KILLED,
            .confidence = 0.9,
            .detail = "node-failure",
            .evidence = "the batch system says that a node failed",
            .summary = "A node failed under the job; the batch system cancelled it.",
            .fix = "Start the job again, without that node if it happens twice, and tell the administrators.",
        },
    [CLUE_CANCELLED] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_KILLED,
            .confidence = 0.85,
            .detail = "cancelled",
            .evidence = "the batch system says that the job was cancelled, and gives no reason",
            .summary = "The job was cancelled (scancel, by its owner or an administrator).",
        },
    [CLUE_EVICTED] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_KILLED,
            .confidence = 0.9,
            .detail = "evicted",
            .evidence = "Kubernetes evicted the pod from its node",
            .summary = "Kubernetes evicted the pod: the node ran low on what the line names.",
            .fix = "Request what the pod really needs of the resource that the line names: pods above "
                   "their requests are evicted first.",
        },
    [CLUE_SEGFAULT] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SEGFAULT,
            .confidence = 0.9,
            .evidence = "a process died of a segmentation fault",
            .summary =
                "Native code crashed with a segmentation fault in a process{pid}: a bug in a library or "
                "extension, not a lack of memory.",
            .fix = "Run it with the fault handler on: it prints the Python line in which the crash happens.",
            .command = "export PYTHONFAULTHANDLER=1",
        },
    [CLUE_HEAP] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_SEGFAULT,
            .confidence = 0.85,
            .detail = "heap-corruption",
            .evidence = "the C library found its heap corrupted",
            .summary = "Native code wrote where it must not and corrupted the heap: a bug in a library or "
                       "extension, or two libraries that do not fit together. Not a lack of memory.",
            .fix =
                "Update or reinstall the packages with native code together; leave out the newest one first.",
        },
    [CLUE_CUDA_FORK] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.97,
            .detail = "cuda-in-forked-worker",
            .evidence = "a forked process used CUDA, which its parent had used before",
            .summary =
                "A worker made by fork used CUDA. CUDA does not survive a fork: return CPU tensors from "
                "the dataset and move them to the GPU in the training loop.",
            .fix = "Keep .cuda(), .to('cuda') and device= out of the dataset and collate_fn; or, if "
                   "workers must use the GPU, pass multiprocessing_context='spawn' to the DataLoader.",
        },
    [CLUE_CUDA_INIT] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.65,
            .detail = "cuda-in-forked-worker",
            .evidence =
                "CUDA could not be initialised; in a DataLoader worker older versions say so when the "
                "parent had used CUDA before the fork",
            .summary = "CUDA could not start in this process, most likely because it is a worker made by "
                       "fork. Return CPU tensors from the dataset and move them to the GPU in the "
                       "training loop.",
            .fix = "Keep .cuda(), .to('cuda') and device= out of the dataset and collate_fn; or, if "
                   "workers must use the GPU, pass multiprocessing_context='spawn' to the DataLoader.",
        },
    [CLUE_GPU_MEMORY] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.97,
            .detail = "gpu-out-of-memory",
            .evidence = "an allocation on the GPU failed",
            .summary =
                "The GPU ran out of its own memory. That has nothing to do with shared memory or /dev/shm.",
            .fix = "Make the batch smaller (with gradient accumulation, if results must not change), use "
                   "mixed precision or activation checkpointing.",
        },
    [CLUE_CUDA_ERROR] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.7,
            .detail = "cuda-error",
            .evidence = "CUDA reported an error",
            .summary = "A CUDA call or kernel failed. CUDA reports late, so the line in the traceback may "
                       "not be the guilty one.",
            .fix = "Run once with synchronous launches: the traceback then names the true line.",
            .command = "export CUDA_LAUNCH_BLOCKING=1",
        },
    [CLUE_NOT_PICKLABLE] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.95,
            .detail = "not-picklable",
            .evidence = "something that a worker needs cannot be pickled",
            .summary =
                "The dataset or one of the DataLoader's functions cannot be sent to a worker: spawn and "
                "forkserver (the default since Python 3.14) send it by pickle.",
            .fix = "Replace lambdas and inner functions by functions of a module, and open files, locks "
                   "and database handles in the worker (in __getitem__ or worker_init_fn) instead of in "
                   "__init__. Where fork does no harm, multiprocessing_context='fork' needs no pickling.",
        },
    [CLUE_MAIN_ATTRIBUTE] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.9,
            .detail = "not-picklable",
            .evidence = "a worker did not find a name of the main module",
            .summary =
                "A worker made by spawn did not find a class or function of the main script: it imports "
                "the script anew, and what notebooks or the __main__ block define is not there.",
            .fix = "Move the class or function into a module of its own and import it.",
        },
    [CLUE_MAIN_GUARD] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.97,
            .detail = "main-guard-missing",
            .evidence = "a new worker ran the main script again and tried to start workers itself",
            .summary = "The script starts its training while it is being imported. Under spawn every "
                       "worker imports it, so the start must stand below if __name__ == \"__main__\":.",
            .fix = "Put what starts the training into a function, and call it below if __name__ == "
                   "\"__main__\":.",
        },
    [CLUE_NESTED] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.95,
            .detail = "workers-in-a-worker",
            .evidence = "a worker tried to start processes of its own",
            .summary =
                "A worker tried to start processes of its own, which Python forbids to daemonic processes.",
            .fix = "Use num_workers=0 for the inner DataLoader, or threads inside of the workers.",
        },
    [CLUE_HOST_MEMORY] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.9,
            .detail = "memory-error",
            .evidence = "the process asked for more memory than it could get",
            .summary = "The process asked for more main memory (RAM) than it could get. This is neither "
                       "/dev/shm nor the GPU.",
        },
    [CLUE_THREADS] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.9,
            .detail = "threads-exhausted",
            .evidence = "the system granted no further thread or process",
            .summary =
                "The system granted no further thread or process: a limit (pids of the container, ulimit "
                "-u) was reached, not memory.",
            .fix = "Start fewer workers, or fewer threads in each.",
            .command = "export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1",
        },
    [CLUE_DISK_FULL] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.8,
            .detail = "disk-full",
            .evidence = "a file could not be written: no space left, or the quota is used up",
            .summary =
                "The file system that was written to is full (or the user's quota is used up). The "
                "message does not name /dev/shm; if the file is below it, shared memory is what ran out.",
            .fix = "Make room where checkpoints, logs and caches go, or write them elsewhere; keep fewer "
                   "checkpoints.",
            .command = "df -h",
        },
    [CLUE_DISK_WRITE] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.6,
            .detail = "disk-full",
            .evidence = "torch.save could not write all of its file",
            .summary =
                "torch.save could not write its file: most likely the file system is full or the quota is "
                "used up. PyTorch does not say why.",
            .fix = "Make room where the checkpoint goes. The file that was being written is not usable.",
            .command = "df -h",
        },
    [CLUE_COLLATE_SHAPES] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.9,
            .detail = "collate-shapes",
            .evidence = "items of different shapes cannot be stacked into one batch",
            .summary = "The items of one batch have different shapes, so they cannot be stacked. PyTorch "
                       "only passed the worker's exception on.",
            .fix = "Bring the items to one shape (resize, crop, pad), or give the DataLoader a collate_fn "
                   "that pads.",
        },
    [CLUE_COLLATE_STORAGE] =
        {
            .tier = TIER_CAUSE,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.85,
            .detail = "collate-shapes",
            .evidence = "the batch could not be put into one piece of shared memory",
            .summary =
                "The worker could not build a batch in shared memory: the items differ in size, or share "
                "memory that cannot be resized (from_numpy of a mapped file).",
            .fix = "Return tensors of one shape that own their memory: torch.tensor(x) or tensor.clone().",
        },
    [CLUE_TIMEOUT] =
        {
            .tier = TIER_FALLBACK,
            .cause = CAUSE_WORKER_HANG,
            .confidence = 0.7,
            .evidence = "no batch came within the DataLoader's timeout",
            .summary = "No worker delivered a batch within the DataLoader's timeout: a worker hangs or is "
                       "slower than that. Nothing else in this log says why.",
        },
    [CLUE_SIGTERM_WORKER] =
        {
            .tier = TIER_FALLBACK,
            .cause = CAUSE_KILLED,
            .confidence = 0.6,
            .detail = "sigterm",
            .evidence = "a DataLoader worker was told to end (SIGTERM)",
            .summary = "Somebody ended a DataLoader worker{pid} with SIGTERM: a batch system, a launcher "
                       "or a person. It was not the OOM killer, which sends SIGKILL.",
        },
    [CLUE_SIGTERM] =
        {
            .tier = TIER_FALLBACK,
            .cause = CAUSE_KILLED,
            .confidence = 0.45,
            .detail = "sigterm",
            .evidence = "a process ended by SIGTERM",
            .summary = "A process{pid} was told to end (SIGTERM). Launchers do that to the other ranks "
                       "after the first one failed, so look for an earlier failure, also in the logs of "
                       "the other ranks.",
        },
    [CLUE_INTERRUPTED] =
        {
            .tier = TIER_FALLBACK,
            .cause = CAUSE_KILLED,
            .confidence = 0.7,
            .detail = "interrupted",
            .evidence = "the program was interrupted (Ctrl-C, SIGINT)",
            .summary = "The program was interrupted (Ctrl-C or SIGINT).",
        },
    [CLUE_COLLECTIVE_TIMEOUT] =
        {
            .tier = TIER_FALLBACK,
            .cause = CAUSE_WORKER_HANG,
            .confidence = 0.4,
            .detail = "collective-timeout",
            .evidence = "a collective operation waited for a rank until it timed out",
            .summary =
                "The ranks waited for one that did not come: it died, hangs, or is still busy. This log "
                "does not tell which; the log of that rank does.",
        },
    [CLUE_BLOCKED] =
        {
            .tier = TIER_FALLBACK,
            .cause = CAUSE_WORKER_HANG,
            .confidence = 0.4,
            .detail = "blocked-io",
            .evidence = "the kernel says that a task was blocked for minutes",
            .summary =
                "A process was stuck in the kernel for minutes, most often because storage did not answer.",
            .fix = "Look at the storage (network file system, disk) that the dataset lies on.",
        },
    [CLUE_GPU_FAULT] =
        {
            .tier = TIER_FALLBACK,
            .cause = CAUSE_UNKNOWN,
            .confidence = 0.4,
            .detail = "gpu-fault",
            .evidence = "the NVIDIA driver reports an error of the GPU (Xid)",
            .summary = "The NVIDIA driver reports an error of the GPU (Xid). Its number says whether the "
                       "program, the driver or the hardware is to blame.",
            .fix = "Look the Xid number up in NVIDIA's list, and show the line to the administrators.",
        },
    [CLUE_ABORTED] =
        {
            .tier = TIER_FALLBACK,
            .cause = CAUSE_UNKNOWN,
            .confidence = 0.3,
            .detail = "aborted",
            .evidence = "a process aborted itself (SIGABRT)",
            .summary =
                "A process{pid} aborted itself. The reason is usually printed just before; this log does "
                "not have it.",
        },
    [CLUE_FPE] =
        {
            .tier = TIER_FALLBACK,
            .cause = CAUSE_UNKNOWN,
            .confidence = 0.3,
            .detail = "floating-point-exception",
            .evidence = "a process died of SIGFPE",
            .summary = "Native code in a process{pid} divided an integer by zero: a bug in a library or "
                       "extension, or an empty input to it. Not a lack of memory.",
        },
    [CLUE_ILLEGAL] =
        {
            .tier = TIER_FALLBACK,
            .cause = CAUSE_UNKNOWN,
            .confidence = 0.3,
            .detail = "illegal-instruction",
            .evidence = "a process died of SIGILL",
            .summary =
                "A process{pid} met an instruction that this CPU does not have: a package was built for "
                "another CPU. Not a lack of memory.",
            .fix = "Install a build for this CPU, or build the package here.",
        },
    [CLUE_CPP] =
        {
            .tier = TIER_FALLBACK,
            .cause = CAUSE_PYTHON_ERROR,
            .confidence = 0.5,
            .detail = "cpp-exception",
            .evidence = "a C++ exception that nobody caught ended the process",
            .summary = "A C++ exception that nobody caught ended the process.",
        },
    [CLUE_WORKER_EXITED] =
        {
            .tier = TIER_SYMPTOM,
            .cause = CAUSE_UNKNOWN,
            .confidence = 0.2,
            .evidence = "the trainer noticed that a worker was gone; this does not say why",
        },
    [CLUE_PEER_LOST] =
        {
            .tier = TIER_SYMPTOM,
            .cause = CAUSE_UNKNOWN,
            .confidence = 0.1,
            .evidence = "the process at the other end of a connection was gone; this does not say why",
        },
    [CLUE_CHILD_FAILED] =
        {
            .tier = TIER_SYMPTOM,
            .cause = CAUSE_UNKNOWN,
            .confidence = 0.1,
            .evidence = "the launcher noticed that a process had failed; this does not say why",
        },
    [CLUE_NCCL_ERROR] =
        {
            .tier = TIER_SYMPTOM,
            .cause = CAUSE_UNKNOWN,
            .confidence = 0.2,
            .evidence = "NCCL reports an error without its reason",
        },
    [CLUE_LEAKED] =
        {
            .tier = TIER_SYMPTOM,
            .cause = CAUSE_UNKNOWN,
            .confidence = 0.1,
            .evidence =
                "a process ended without removing its shared objects; that follows from its death, it is "
                "not the cause",
        },
    [CLUE_WRAPPED] = {.tier = TIER_CONTEXT},
    [CLUE_CPP_WHAT] = {.tier = TIER_CONTEXT},
    [CLUE_FORK_WARNING] =
        {
            .tier = TIER_CONTEXT,
            .evidence =
                "a process with several threads was forked, which can leave its children in a deadlock",
        },
    [CLUE_MAPPED_FILE] = {.tier = TIER_CONTEXT,
                          .evidence = "the log mentions files that are read through mmap"},
    [CLUE_STORAGE] = {.tier = TIER_CONTEXT, .evidence = "the log tells of failing storage or a cut file"},
    [CLUE_DF] = {.tier = TIER_CONTEXT, .evidence = "the log shows how full /dev/shm was"},
    [CLUE_VERSION] = {.tier = TIER_CONTEXT},
    [CLUE_CGROUP_USAGE] = {.tier = TIER_CONTEXT},
    [CLUE_SAYS_FILE_SYSTEM] = {.tier = TIER_CONTEXT},
    [CLUE_SAYS_PIN_MEMORY] = {.tier = TIER_CONTEXT},
    [CLUE_SAYS_GC] = {.tier = TIER_CONTEXT},
    [CLUE_SAYS_LS] = {.tier = TIER_CONTEXT},
    [CLUE_SAYS_RSS_SHMEM] = {.tier = TIER_CONTEXT},
};
