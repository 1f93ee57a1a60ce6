/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <signal.h>

#include "log-reader.h"

#define NO_SPACE "No space left on device"
#define NO_FILE  "No such file or directory"

/*
 * A MultiSearch holds a limited number of literals. The table counts its own at compile time, needles by the
 * rows and the others by these macros, and does not compile if there are too many. A literal that appears
 * twice counts twice, which errs on the safe side.
 */
enum { COUNTED_BEFORE = __COUNTER__ };
#define COUNTED(literal) (&(literal)[0 * __COUNTER__])
#define ALSO(literal)    .also = COUNTED(literal)
#define ABOVE(literal)   .above = COUNTED(literal)
#define UNLESS(literal)  .unless = COUNTED(literal)

const Pattern patterns[] = {
    /* /dev/shm full. NCCL's lines come before the general ones: "nccl" names its segments in every version.
     */
    {CLUE_SHM_NCCL, NO_SPACE, ALSO("nccl")},
    {CLUE_SHM_NCCL, NO_SPACE, ALSO("NCCL")},
    {CLUE_SHM_NCCL, "failed to extend /dev/shm/nccl"},
    {CLUE_NCCL_SEGMENT, "Error while creating shared memory segment"},
    {CLUE_SHM_FULL, "unable to allocate shared memory(shm) for file", ALSO(NO_SPACE), .pid = PID_FILE},
    {CLUE_SHM_STALE_ERRNO, "unable to allocate shared memory(shm) for file", .pid = PID_FILE},
    {CLUE_SHM_FULL, "unable to write to file <", ALSO(NO_SPACE), .pid = PID_FILE},
    {CLUE_SHM_WRITE, "unable to write to file </torch_", .pid = PID_FILE},
    {CLUE_SHM_FULL, "unable to resize file <", ALSO(NO_SPACE), .pid = PID_FILE},
    {CLUE_SHM_INODES, NO_SPACE, ALSO("unable to open shared memory object"), .pid = PID_FILE},
    {CLUE_SHM_INODES, NO_SPACE, ALSO("'/psm_")},
    {CLUE_SHM_PYTHON, NO_SPACE, ABOVE("multiprocessing/shared_memory.py")},
    {CLUE_SHM_SEMAPHORE, NO_SPACE, ABOVE("multiprocessing/synchronize.py")},
    {CLUE_SHM_FILE, NO_SPACE, ALSO("/dev/shm")},
    {CLUE_SHM_FILE, NO_SPACE, ALSO("shared memory")},
    {CLUE_SHM_EMPTYDIR, "Usage of EmptyDir volume", ALSO("shm")},
    {CLUE_DISK_FULL, NO_SPACE},
    {CLUE_DISK_FULL, "Disk quota exceeded"},
    {CLUE_DISK_WRITE, "PytorchStreamWriter failed writing file"},
    {CLUE_DISK_WRITE, "unexpected pos ", ALSO("inline_container")},

    /* descriptors, mappings, deleted segments */
    {CLUE_FD_SYSTEM, "Too many open files in system"},
    {CLUE_FD, "unable to open shared memory object", ALSO("Too many open files"), .pid = PID_FILE},
    {CLUE_FD, "Too many open files"},
    {CLUE_FD, "received 0 items of ancdata"},
    {CLUE_FD, "could not duplicate a shared memory file descriptor"},
    {CLUE_SEGMENT_GONE, "unable to open shared memory object", ALSO(NO_FILE)},
    {CLUE_OPEN_FAILED, "unable to open shared memory object", UNLESS(" mode: ")},
    {CLUE_MAPS, "unable to mmap ", ALSO("Cannot allocate memory"), .pid = PID_FILE},
    {CLUE_MMAP_MEMORY, "unable to mmap memory: you tried to mmap"},
    {CLUE_SEGMENT_UNLINK, "could not unlink the shared memory file"},
    {CLUE_LEAKED, "resource_tracker: ", ALSO(NO_FILE)},
    {CLUE_PYTHON_SEGMENT_GONE, NO_FILE, ALSO("/psm_")},
    {CLUE_NCCL_SEGMENT_GONE, "Error while attaching to shared memory segment", ALSO(NO_FILE)},

    /* out of memory: the kernel, batch systems, containers, daemons */
    {CLUE_OOM_CGROUP, "Memory cgroup out of memory", .pid = PID_LINE},
    {CLUE_OOM_CGROUP, "constraint=CONSTRAINT_MEMCG", .pid = PID_LINE},
    {CLUE_OOM_CGROUP, "killed as a result of limit of"},
    {CLUE_OOM_CGROUP, "mem_cgroup_out_of_memory"},
    {CLUE_OOM_MACHINE, "Out of memory: Kill", .pid = PID_LINE},
    {CLUE_OOM_MACHINE, "oom-kill:constraint=", .pid = PID_LINE},
    {CLUE_OOM_DAEMON, "systemd-oomd", ALSO("Killed"), .pid = PID_LINE},
    {CLUE_OOM_DAEMON, "earlyoom", ALSO("sending SIG"), .pid = PID_LINE},
    {CLUE_OOM_DAEMON, "Task was killed due to the node running low on memory"},
    {CLUE_OOM_SOME, "invoked oom-killer"},
    {CLUE_OOM_SOME, "oom_reaper: reaped process", .pid = PID_LINE},
    {CLUE_OOM_SOME, "Killed process ", ALSO("total-vm:"), .pid = PID_LINE}, /* a separate line before 5.0 */
    {CLUE_OOM_SCHEDULER, "oom-kill event"},
    {CLUE_OOM_SCHEDULER, "oom_kill event"},
    {CLUE_OOM_SCHEDULER, "Out Of Memory", ALSO("srun: error")},
    {CLUE_OOM_SCHEDULER, " OUT_OF_ME"}, /* a state as sacct prints it; not CUDA_ERROR_OUT_OF_MEMORY */
    {CLUE_OOM_SCHEDULER, "Exceeded job memory limit"},
    {CLUE_OOM_SCHEDULER, "Exceeded step memory limit"},
    {CLUE_OOM_SCHEDULER, "exceeded memory limit", ALSO("being killed")},
    {CLUE_OOM_SCHEDULER, "TERM_MEMLIMIT"},
    {CLUE_OOM_SCHEDULER, "PBS: job killed: mem"},
    {CLUE_OOM_SCHEDULER, "PBS: job killed: vmem"},
    {CLUE_OOM_KUBERNETES, "OOMKilled", UNLESS("false")},

    /* ended from outside */
    {CLUE_TIME_LIMIT, "DUE TO TIME LIMIT"},
    {CLUE_TIME_LIMIT, "PBS: job killed: walltime"},
    {CLUE_TIME_LIMIT, "TERM_RUNLIMIT"},
    {CLUE_PREEMPTED, "DUE TO PREEMPTION"},
    {CLUE_PREEMPTED, "DUE TO JOB REQUEUE"},
    {CLUE_NODE_FAILURE, "DUE TO NODE FAILURE"},
    {CLUE_CANCELLED, "CANCELLED AT", ALSO("slurmstepd: ")},
    {CLUE_EVICTED, "The node was low on resource"},
    {CLUE_EVICTED, "Usage of EmptyDir volume"},
    {CLUE_SIGKILL_WORKER, "is killed by signal: Killed", .pid = PID_LINE},
    {CLUE_SIGTERM_WORKER, "is killed by signal: Terminated", .pid = PID_LINE},
    {CLUE_SIGTERM, "got signal: 15", .pid = PID_LINE}, /* torchrun's SignalException */
    {CLUE_INTERRUPTED, "KeyboardInterrupt", .place = PLACE_EXCEPTION},

    /* crashes */
    {CLUE_BUS_WORKER, "Unexpected bus error encountered in worker"},
    {CLUE_BUS_WORKER, "is killed by signal: Bus error", .pid = PID_LINE},
    {CLUE_BUS, "Fatal Python error: Bus error"},
    {CLUE_SEGFAULT, "Unexpected segmentation fault encountered in worker"},
    {CLUE_SEGFAULT, "is killed by signal: Segmentation fault", .pid = PID_LINE},
    {CLUE_SEGFAULT, "Fatal Python error: Segmentation fault"},
    {CLUE_SEGFAULT, " segfault at ", ALSO(" ip ")},
    {CLUE_HEAP, "double free or corruption"},
    {CLUE_HEAP, "free(): invalid"},
    {CLUE_HEAP, "malloc(): "},
    {CLUE_HEAP, "corrupted size vs. prev_size"},
    {CLUE_HEAP, "munmap_chunk(): invalid pointer"},
    {CLUE_FPE, "Unexpected floating-point exception encountered in worker"},
    {CLUE_FPE, "is killed by signal: Floating point exception", .pid = PID_LINE},
    {CLUE_ILLEGAL, "is killed by signal: Illegal instruction", .pid = PID_LINE},
    {CLUE_ABORTED, "is killed by signal: Aborted", .pid = PID_LINE},
    {CLUE_ABORTED, "Fatal Python error: Aborted"},
    {CLUE_CPP, "terminate called after throwing"},
    {CLUE_GPU_FAULT, "NVRM: Xid"},

    /* CUDA, pickling and the like */
    {CLUE_CUDA_FORK, "in forked subprocess", ALSO("Cannot re-initialize")},
    {CLUE_CUDA_INIT, "CUDA error: initialization error"},
    {CLUE_CUDA_INIT, "CUDA error (3): initialization error"},
    {CLUE_CUDA_INIT, "cuda runtime error (3)"},
    {CLUE_GPU_MEMORY, "CUDA out of memory"},
    {CLUE_GPU_MEMORY, "HIP out of memory"},
    {CLUE_GPU_MEMORY, "CUDA error: out of memory"},
    {CLUE_GPU_MEMORY, "cuda runtime error (2)"},
    {CLUE_GPU_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {CLUE_CUDA_ERROR, "CUDA error: "},
    {CLUE_CUDA_ERROR, "device-side assert triggered"},
    {CLUE_CUDA_ERROR, "Cuda failure"},
    {CLUE_NOT_PICKLABLE, "Can't pickle "},
    {CLUE_NOT_PICKLABLE, "can't pickle "},
    {CLUE_NOT_PICKLABLE, "cannot pickle "},
    {CLUE_NOT_PICKLABLE, "cannot be pickled"},
    {CLUE_NOT_PICKLABLE, "Can't get local object"},
    {CLUE_NOT_PICKLABLE, "Got pickle error when attempting to start a worker"},
    {CLUE_MAIN_ATTRIBUTE, "Can't get attribute ", ALSO("__main__")},
    {CLUE_MAIN_GUARD, "An attempt has been made to start a new process before the"},
    {CLUE_NESTED, "daemonic processes are not allowed to have children"},
    {CLUE_HOST_MEMORY, "DefaultCPUAllocator: "},
    {CLUE_HOST_MEMORY, "not enough memory: you tried to allocate"},
    {CLUE_HOST_MEMORY, "Unable to allocate", ALSO("for an array with shape")},
    {CLUE_HOST_MEMORY, "MemoryError", .place = PLACE_EXCEPTION},
    {CLUE_HOST_MEMORY, "[Errno 12] Cannot allocate memory"},
    {CLUE_HOST_MEMORY, "std::bad_alloc"},
    {CLUE_THREADS, "can't start new thread"},
    {CLUE_THREADS, "Thread creation failed: Resource temporarily unavailable"},
    {CLUE_THREADS, "pthread_create failed"},
    {CLUE_THREADS, "[Errno 11] Resource temporarily unavailable", ABOVE("os.fork()")},
    {CLUE_COLLATE_SHAPES, "stack expects each tensor to be equal size"},
    {CLUE_COLLATE_SHAPES, "each element in list of batch should be of equal size"},
    {CLUE_COLLATE_STORAGE, "Trying to resize storage that is not resizable"},

    /* waits */
    {CLUE_TIMEOUT, "DataLoader timed out after"},
    {CLUE_COLLECTIVE_TIMEOUT, "Watchdog caught collective operation timeout"},
    {CLUE_COLLECTIVE_TIMEOUT, "Timed out waiting ", ALSO("operation to complete")},
    {CLUE_BLOCKED, "blocked for more than", ALSO("task ")},

    /* after-effects */
    {CLUE_WORKER_EXITED, "exited unexpectedly", ALSO("DataLoader worker"), .pid = PID_LINE},
    {CLUE_WORKER_EXITED, "Pin memory thread exited unexpectedly"},
    {CLUE_PEER_LOST, "ConnectionResetError"},
    {CLUE_PEER_LOST, "ConnectionRefusedError"},
    {CLUE_PEER_LOST, "BrokenPipeError"},
    {CLUE_PEER_LOST, "Connection closed by peer"},
    {CLUE_PEER_LOST, "Connection reset by peer"},
    {CLUE_PEER_LOST, "EOFError", UNLESS("Ran out of input"), .place = PLACE_EXCEPTION},
    {CLUE_LEAKED, "to clean up at shutdown", ALSO("leaked ")},

    /* deaths by signal as reported by exit codes, launchers and shells; after the lines that name a cause */
    {CLUE_BUS, .place = PLACE_EXIT, .pid = PID_LINE, .signal = SIGBUS},
    {CLUE_SEGFAULT, .place = PLACE_EXIT, .pid = PID_LINE, .signal = SIGSEGV},
    {CLUE_SIGKILL, .place = PLACE_EXIT, .pid = PID_LINE, .signal = SIGKILL},
    {CLUE_SIGTERM, .place = PLACE_EXIT, .pid = PID_LINE, .signal = SIGTERM},
    {CLUE_ABORTED, .place = PLACE_EXIT, .pid = PID_LINE, .signal = SIGABRT},
    {CLUE_FPE, .place = PLACE_EXIT, .pid = PID_LINE, .signal = SIGFPE},
    {CLUE_ILLEGAL, .place = PLACE_EXIT, .pid = PID_LINE, .signal = SIGILL},
    {CLUE_BUS, "Bus error", .place = PLACE_SHELL},
    {CLUE_SEGFAULT, "Segmentation fault", .place = PLACE_SHELL},
    {CLUE_SIGKILL, "Killed", .place = PLACE_SHELL},
    {CLUE_SIGTERM, "Terminated", .place = PLACE_SHELL},
    {CLUE_ABORTED, "Aborted", .place = PLACE_SHELL},
    {CLUE_FPE, "Floating point exception", .place = PLACE_SHELL},
    {CLUE_ILLEGAL, "Illegal instruction", .place = PLACE_SHELL},
    {CLUE_CHILD_FAILED, "ChildFailedError"},
    {CLUE_CHILD_FAILED, "ProcessExitedException"},
    {CLUE_CHILD_FAILED, "BrokenProcessPool"},
    {CLUE_CHILD_FAILED, "closing signal SIGTERM"},
    {CLUE_CHILD_FAILED, "CalledProcessError", .place = PLACE_EXCEPTION},
    {CLUE_NCCL_ERROR, "ncclSystemError"},
    {CLUE_NCCL_ERROR, "ncclInternalError"},
    {CLUE_NCCL_ERROR, "ncclRemoteError"},
    {CLUE_NCCL_ERROR, "unhandled system error", ALSO("NCCL")},

    /* background */
    {CLUE_WRAPPED, ": Caught ", ALSO(" in DataLoader worker process")},
    {CLUE_CPP_WHAT, "what():"},
    {CLUE_FORK_WARNING, "The current process just got forked, after parallelism has already been used"},
    {CLUE_FORK_WARNING, "use of fork() may lead to deadlocks in the child"},
    {CLUE_MAPPED_FILE, "memmap"},
    {CLUE_MAPPED_FILE, "mmap_mode"},
    {CLUE_MAPPED_FILE, "mmap.mmap("},
    {CLUE_MAPPED_FILE, "h5py"},
    {CLUE_MAPPED_FILE, "lmdb"},
    {CLUE_STORAGE, "Input/output error"},
    {CLUE_STORAGE, "I/O error"},
    {CLUE_STORAGE, "Stale file handle"},
    {CLUE_STORAGE, "file is truncated"},
    {CLUE_STORAGE, "truncated file"},
    {CLUE_STORAGE, "nfs: server", ALSO("not responding")},
    {CLUE_DF, "% /dev/shm"},
    {CLUE_VERSION, "PyTorch version: "},
    {CLUE_VERSION, "torch=="},
    {CLUE_CGROUP_USAGE, "memory: usage ", ALSO("limit ")},
    {CLUE_SAYS_FILE_SYSTEM, "set_sharing_strategy", ALSO("file_system"), UNLESS("ulimit -n")},
    {CLUE_SAYS_PIN_MEMORY, "pin_memory="},
    {CLUE_SAYS_GC, "gc.collect"},
    {CLUE_SAYS_LS, "ls /dev/shm"},
    {CLUE_SAYS_LS, "ls -l /dev/shm"},
    {CLUE_SAYS_LS, "ls -la /dev/shm"},
    {CLUE_SAYS_RSS_SHMEM, "RssShmem"},
};

enum { LITERALS_COUNTED = __COUNTER__ - COUNTED_BEFORE - 1 };
static_assert(TRACEBACK_NEEDLES + EXIT_NEEDLES + ARRAY_SIZE(patterns) + LITERALS_COUNTED <= NEEDLES_MAX,
              "the patterns have more literals than a MultiSearch holds: raise NEEDLES_MAX");

const size_t n_patterns = ARRAY_SIZE(patterns);
