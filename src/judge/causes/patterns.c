/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

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
    {CLUE_SHM_DENIED, "shm_open failed", ALSO("Permission denied")},
    {CLUE_SHM_DENIED, "Error while creating shared memory segment", ALSO("Permission denied")},
    {CLUE_NCCL_SEGMENT, "Error while creating shared memory segment"},
    {CLUE_SHM_FULL, "unable to allocate shared memory(shm) for file", ALSO(NO_SPACE), .pid = PID_FILE},
    {CLUE_SHM_STALE_ERRNO, "unable to allocate shared memory(shm) for file", .pid = PID_FILE},
    {CLUE_SHM_FULL, "unable to write to file", ALSO(NO_SPACE), .pid = PID_FILE},
    {CLUE_SHM_WRITE, "unable to write to file", ALSO("/torch"), .pid = PID_FILE},
    {CLUE_SHM_FULL, "unable to resize file", ALSO(NO_SPACE), .pid = PID_FILE},
    {CLUE_SHM_RESIZE, "unable to resize file", UNLESS("right size:"), .place = PLACE_SEGMENT,
     .pid = PID_FILE}, /* newer versions add the reason */
    {CLUE_SHM_INODES, NO_SPACE, ALSO("unable to open shared memory object"), .pid = PID_FILE},
    {CLUE_SHM_INODES, NO_SPACE, ALSO("'/psm_")},
    {CLUE_SHM_PYTHON, NO_SPACE, ABOVE("/shared_memory.py")},
    /* multiprocessing, the package multiprocess and loky have the same files */
    {CLUE_SHM_SEMAPHORE, NO_SPACE, ABOVE("/synchronize.py")},
    {CLUE_SHM_SEMAPHORE, NO_SPACE, ABOVE("/heap.py")},
    {CLUE_SHM_SEMAPHORE, NO_SPACE, ABOVE("SemLock")},
    {CLUE_SHM_SEMAPHORE, NO_SPACE, ALSO("SemLock")},
    {CLUE_SHM_SEMAPHORE, NO_SPACE, ALSO("joblib will operate in serial mode")},
    {CLUE_SHM_JOBLIB, NO_SPACE, ABOVE("_memmapping_reducer.py")},
    {CLUE_SHM_JOBLIB, NO_SPACE, ALSO("joblib_memmapping_folder")},
    {CLUE_SHM_OBJECT_STORE, "exceeds /dev/shm size"},
    {CLUE_OBJECT_STORE_SLOW, "because /dev/shm has only"},
    {CLUE_SHM_FILE, "Please check that /dev/shm"}, /* UCX */
    {CLUE_SHM_FILE, NO_SPACE, ALSO("/dev/shm")},
    {CLUE_SHM_FILE, NO_SPACE, ALSO("shared memory")},
    {CLUE_SHM_EMPTYDIR, "Usage of EmptyDir volume", ALSO("shm")},
    {CLUE_EVICTED, "Usage of EmptyDir volume"},
    {CLUE_DISK_FULL, NO_SPACE},
    {CLUE_DISK_FULL, "no space left on device"},
    {CLUE_DISK_FULL, "Disk quota exceeded"},
    {CLUE_DISK_WRITE, "PytorchStreamWriter failed writing file"},
    {CLUE_DISK_WRITE, "failed with Input/output error", ABOVE("/serialization.py")},
    {CLUE_DISK_WRITE, " cannot be opened", ABOVE("/serialization.py")},
    {CLUE_DISK_WRITE, "unexpected pos ", ALSO("inline_container")},

    /* descriptors, mappings, deleted segments */
    {CLUE_FD_SYSTEM, "Too many open files in system"},
    {CLUE_FD, "unable to open shared memory object", ALSO("Too many open files"), .pid = PID_FILE},
    {CLUE_FD, "Too many open files"},
    {CLUE_FD, "[Errno 24]"},
    {CLUE_FD, "items of ancdata"},
    {CLUE_FD, "could not duplicate a shared memory file descriptor"},
    {CLUE_SEGMENT_GONE, "unable to open shared memory object", ALSO(NO_FILE)},
    {CLUE_OPEN_FAILED, "unable to open shared memory object", UNLESS(" mode: ")},
    {CLUE_MAPS, "unable to mmap ", ALSO("Cannot allocate memory"), .place = PLACE_SEGMENT, .pid = PID_FILE},
    {CLUE_MAPS, "bytes from file <filename not specified>",
     ALSO("Cannot allocate memory")}, /* by descriptor */
    {CLUE_MMAP_FILE, "unable to mmap ", ALSO("Cannot allocate memory")},
    {CLUE_MMAP_MEMORY, "unable to mmap memory: you tried to mmap"},
    {CLUE_SEGMENT_UNLINK, "could not unlink the shared memory file"},
    {CLUE_LEAKED, "resource_tracker: ", ALSO(NO_FILE)},
    {CLUE_TEARDOWN, NO_FILE, ABOVE("shm_unlink")},
    {CLUE_PARENT_GONE, NO_FILE, ABOVE("SemLock._rebuild")},
    {CLUE_PARENT_GONE, "pickle data was truncated", ABOVE("in spawn_main")},
    {CLUE_PARENT_GONE, "Ran out of input", ABOVE("in spawn_main")},
    {CLUE_SHM_DENIED, "Permission denied", ABOVE("SemLock")},
    {CLUE_SHM_DENIED, NO_FILE, ABOVE("SemLock(")},
    {CLUE_SHM_DENIED, "unable to open shared memory object", ALSO("Permission denied")},
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
    {CLUE_OOM_RAY, "killed due to the node running low on memory"}, /* Ray */
    {CLUE_OOM_RAY, "killed due to memory pressure"},
    {CLUE_OOM_RAY, "exceeds the memory usage threshold"},
    {CLUE_OOM_RAY, "To adjust the kill threshold"},
    {CLUE_OOM_DAEMON, "exceeded 95% memory budget"}, /* Dask */
    {CLUE_OOM_SOME, "killed by the OOM killer"},     /* systemd */
    {CLUE_OOM_SOME, "result 'oom-kill'"},
    {CLUE_OOM_SOME, "invoked oom-killer"},
    {CLUE_OOM_SOME, "oom_reaper: reaped process", .pid = PID_LINE},
    {CLUE_OOM_SOME, "Killed process ", ALSO("total-vm:"), .pid = PID_LINE}, /* a separate line before 5.0 */
    {CLUE_OOM_SCHEDULER, "oom-kill event"},
    {CLUE_OOM_SCHEDULER, "oom_kill event"},
    {CLUE_OOM_SCHEDULER, "Out Of Memory", ALSO("srun: error")},
    {CLUE_OOM_SCHEDULER, "step tasks have been OOM Killed"},
    {CLUE_OOM_SCHEDULER, " OUT_OF_ME"}, /* a state as sacct prints it; not CUDA_ERROR_OUT_OF_MEMORY */
    {CLUE_OOM_SCHEDULER, "Exceeded job memory limit"},
    {CLUE_OOM_SCHEDULER, "Exceeded step memory limit"},
    {CLUE_OOM_SCHEDULER, "exceeded memory limit", ALSO("being killed")},
    {CLUE_OOM_SCHEDULER, "TERM_MEMLIMIT"},
    {CLUE_OOM_SCHEDULER, "PBS: job killed: mem"},
    {CLUE_OOM_SCHEDULER, "PBS: job killed: vmem"},
    {CLUE_OOM_KUBERNETES, "OOMKilled", UNLESS("false")},
    {CLUE_OOM_KUBERNETES, " container oom "},                        /* docker events */
    {CLUE_OOM_KUBERNETES, "after using all available RAM"},          /* Colab */
    {CLUE_OOM_KUBERNETES, "allocate more memory than is available"}, /* Kaggle */

    /* ended from outside */
    {CLUE_TIME_LIMIT, "DUE TO TIME LIMIT"},
    {CLUE_TIME_LIMIT, "PBS: job killed: walltime"},
    {CLUE_TIME_LIMIT, "TERM_RUNLIMIT"},
    {CLUE_PREEMPTED, "DUE TO PREEMPTION"},
    {CLUE_REQUEUED, "DUE TO JOB REQUEUE"},
    {CLUE_NODE_FAILURE, "DUE TO NODE FAILURE"},
    {CLUE_CANCELLED, "CANCELLED AT", ALSO("slurmstepd: ")},
    {CLUE_EVICTED, "The node was low on resource"},
    {CLUE_EVICTED, "local storage usage exceeds"},
    {CLUE_JOB_CONTAINER, "container_g_join failed"},
    {CLUE_JOB_CONTAINER, "container_p_join"},
    {CLUE_HANGUP, "closing signal SIGHUP"}, /* torchrun passes on what it received */
    {CLUE_INTERRUPTED, "closing signal SIGINT"},
    {CLUE_INTERRUPTED, "^CTraceback"},
    {CLUE_INTERRUPTED, "KeyboardInterrupt", .place = PLACE_EXCEPTION},

    /* crashes */
    {CLUE_SEGFAULT, " segfault at ", ALSO(" ip ")},
    {CLUE_HEAP, "double free or corruption"},
    {CLUE_HEAP, "free(): invalid"},
    {CLUE_HEAP, "malloc(): "},
    {CLUE_HEAP, "corrupted size vs. prev_size"},
    {CLUE_HEAP, "munmap_chunk(): invalid pointer"},
    {CLUE_HOST_MEMORY, "std::bad_alloc"},
    {CLUE_CPP, "terminate called after throwing"},
    {CLUE_GPU_FAULT, "NVRM: Xid"},
    {CLUE_GPU_FAULT, "GPU is lost"},

    /* CUDA, pickling and the like */
    {CLUE_CUDA_FORK, "in forked subprocess", ALSO("Cannot re-initialize")},
    {CLUE_CUDA_INIT, "CUDA error: initialization error"},
    {CLUE_CUDA_INIT, "CUDA error (3): initialization error"},
    {CLUE_CUDA_INIT, "cuda runtime error (3)"},
    {CLUE_PINNED_MEMORY, "out of memory", ABOVE("pin_memory")},
    {CLUE_PINNED_MEMORY, "could not allocate pinned host memory"},
    {CLUE_PINNED_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", ALSO("on host")},
    {CLUE_GPU_MEMORY, "CUDA out of memory"},
    {CLUE_GPU_MEMORY, "HIP out of memory"},
    {CLUE_GPU_MEMORY, "CUDA error: out of memory"},
    {CLUE_GPU_MEMORY, "cuda runtime error (2)"},
    {CLUE_GPU_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {CLUE_GPU_MEMORY, "Cuda failure", ALSO("out of memory")},
    {CLUE_CUDA_ERROR, "CUDA error: "},
    {CLUE_CUDA_ERROR, "device-side assert triggered"},
    {CLUE_NCCL_CUDA, "Cuda failure"},
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
    {CLUE_FORK_MEMORY, "[Errno 12] Cannot allocate memory", ABOVE("os.fork()")},
    {CLUE_HOST_MEMORY, "[Errno 12] Cannot allocate memory"},
    {CLUE_HOST_MEMORY, "Insufficient memory) Failed to allocate"}, /* OpenCV */
    {CLUE_HOST_MEMORY, "paging file is too small"},
    {CLUE_HOST_MEMORY, "页面文件太小"},
    {CLUE_THREADS, "can't start new thread"},
    {CLUE_THREADS, "Thread creation failed: Resource temporarily unavailable"},
    {CLUE_THREADS, "pthread_create failed"},
    {CLUE_THREADS, "failed to create new OS thread"}, /* Go */
    {CLUE_THREADS, "[Errno 11] Resource temporarily unavailable", ABOVE("os.fork()")},
    {CLUE_COLLATE_SHAPES, "stack expects each tensor to be equal size"},
    {CLUE_COLLATE_SHAPES, "each element in list of batch should be of equal size"},
    {CLUE_COLLATE_STORAGE, "Trying to resize storage that is not resizable"},

    /* waits */
    {CLUE_TIMEOUT, "DataLoader timed out after"},
    {CLUE_TIMEOUT, "Worker timed out after"}, /* MXNet */
    {CLUE_COLLECTIVE_TIMEOUT, "Watchdog caught collective operation timeout"},
    {CLUE_COLLECTIVE_TIMEOUT, "Timed out waiting ", ALSO("operation to complete")},
    {CLUE_COLLECTIVE_TIMEOUT, "operations have failed or timed out"},
    {CLUE_COLLECTIVE_TIMEOUT, "DistStoreError"},
    {CLUE_COLLECTIVE_TIMEOUT, "Timed out initializing process group"},
    {CLUE_CONNECT, "connectFullMesh failed"}, /* Gloo */
    {CLUE_CONNECT, "Connect to ", ALSO("NCCL WARN")},
    {CLUE_CONNECT, "Connect: Connect to "}, /* NCCL, its last error */
    {CLUE_CONNECT, "Connection closed by remote peer"},
    {CLUE_BROADCAST, "No available shared memory broadcast block"},
    {CLUE_BLOCKED, "blocked for more than", ALSO("task ")},

    /* deaths by signal, in the words of whatever program reports them; after the lines that name a cause */
    {.place = PLACE_DEATH, .pid = PID_LINE},

    /* after-effects */
    {CLUE_WORKER_LEFT, "exited unexpectedly with exit code", UNLESS("exit code -"), .pid = PID_LINE},
    {CLUE_WORKER_LEFT, "codes of the workers are {EXIT(", UNLESS(", SIG")}, /* loky */
    {CLUE_WORKER_EXITED, "exited unexpectedly", ALSO("DataLoader worker"), .pid = PID_LINE},
    {CLUE_PIN_THREAD, "Pin memory thread exited unexpectedly"},
    {CLUE_TEARDOWN, "KeyError", ABOVE("resource_tracker.py"), .place = PLACE_EXCEPTION},
    {CLUE_TEARDOWN, "Error", ABOVE("_shutdown_workers"), .place = PLACE_EXCEPTION},
    {CLUE_TEARDOWN, "can only test a child process"},
    {CLUE_TEARDOWN, "at interpreter shutdown, possibly due to daemon threads"},
    {CLUE_PEER_LOST, "ConnectionResetError"},
    {CLUE_PEER_LOST, "ConnectionRefusedError"},
    {CLUE_PEER_LOST, "BrokenPipeError"},
    {CLUE_PEER_LOST, "Broken pipe"},
    {CLUE_PEER_LOST, "failed to recv, got 0 bytes"},
    {CLUE_PEER_LOST, "Connection closed by peer"},
    {CLUE_PEER_LOST, "Connection reset by peer"},
    {CLUE_PEER_LOST, "EOFError", UNLESS("Ran out of input"), .place = PLACE_EXCEPTION},
    {CLUE_LEAKED, "to clean up at shutdown", ALSO("leaked ")},
    {CLUE_POOL_BROKEN, "background workers are no longer alive"},
    {CLUE_POOL_BROKEN, "RuntimeError", ABOVE("background workers are no longer alive"),
     .place = PLACE_EXCEPTION}, /* cut, but the line that raised it is there */
    {CLUE_POOL_BROKEN, "TerminatedWorkerError"},
    {CLUE_POOL_BROKEN, "subprocesses has abruptly died"},       /* datasets */
    {CLUE_POOL_BROKEN, "KilledWorker"},                         /* Dask */
    {CLUE_POOL_BROKEN, "died unexpectedly"},                    /* vLLM, Ray */
    {CLUE_POOL_BROKEN, "Received sigquit from a child proces"}, /* sglang */
    {CLUE_POOL_BROKEN, "died during initialization"},
    {CLUE_POOL_BROKEN, "BrokenProcessPool"},
    {CLUE_POOL_BROKEN, "worker died or was killed"}, /* Ray */
    {CLUE_POOL_BROKEN, "Worker exit type: SYSTEM_ERROR"},
    {CLUE_CHILD_FAILED, "ernel appears to have died"}, /* Jupyter */
    {CLUE_CHILD_FAILED, "ernel has died"},
    {CLUE_CHILD_FAILED, "ernel crashed while executing code"},
    {CLUE_CHILD_FAILED, "ChildFailedError"},
    {CLUE_CHILD_FAILED, "ProcessExitedException"},
    {CLUE_CHILD_FAILED, "Horovod has been shut down"},
    {CLUE_CHILD_FAILED, "root cause above"}, /* vLLM */
    {CLUE_CHILD_FAILED, "EngineDeadError"},
    {CLUE_CHILD_FAILED, "closing signal SIG"},
    {CLUE_CHILD_FAILED, "Killing subprocess"}, /* DeepSpeed, torch.distributed.launch */
    {CLUE_CHILD_FAILED, "exits with return code"},
    {CLUE_CHILD_FAILED, "CalledProcessError", .place = PLACE_EXCEPTION},
    {CLUE_NCCL_ERROR, "ncclSystemError"},
    {CLUE_NCCL_ERROR, "ncclInternalError"},
    {CLUE_NCCL_ERROR, "ncclRemoteError"},
    {CLUE_NCCL_ERROR, "unhandled system error", ALSO("NCCL")},
    {CLUE_NCCL_ERROR, "unhandled cuda error", ALSO("NCCL")},
    {CLUE_NCCL_ERROR, "DistBackendError"},

    /* background */
    {CLUE_CPP_WHAT, "what():"},
    {CLUE_FORK_WARNING, "The current process just got forked, after parallelism has already been used"},
    {CLUE_FORK_WARNING, "use of fork() may lead to deadlocks in the child"},
    {CLUE_SHARING_CODE, "/queues.py"},
    {CLUE_SHARING_CODE, "/synchronize.py"},
    {CLUE_SHARING_CODE, "/heap.py"},
    {CLUE_SHARING_CODE, "multiprocessing/reduction.py"},
    {CLUE_SHARING_CODE, "joblib/pool.py"},
    {CLUE_SHARING_CODE, "_memmapping_reducer.py"},
    {CLUE_FINISHED, "raining finished"},
    {CLUE_FINISHED, "raining complete"},
    {CLUE_FINISHED, "raining of ", ALSO(" is done")},
    {CLUE_FINISHED, "Exception ignored in", ALSO("DataLoaderIter.__del__")},
    {CLUE_WAITING, "in _try_get_"}, /* the DataLoader, for a batch */
    {CLUE_WAITING, "popen_fork.py"},
    {CLUE_WAITING, "in _wait_for_tstate_lock"},
    {CLUE_ROOT_CAUSE, "Root Cause (first observed failure)"},
    {CLUE_MAPPED_FILE, "memmap"},
    {CLUE_MAPPED_FILE, "mmap_mode"},
    {CLUE_MAPPED_FILE, "mmap.mmap("},
    {CLUE_MAPPED_FILE, "h5py"},
    {CLUE_MAPPED_FILE, "lmdb"},
    {CLUE_MAPPED_READER, "LMDBCursor"}, /* frames of native stacks */
    {CLUE_MAPPED_READER, "lmdb/cpython"},
    {CLUE_MAPPED_READER, "liblmdb"},
    {CLUE_MAPPED_READER, " mdb_"},
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
    {CLUE_NO_OOM, "OOMKilled", ALSO("false")},
    {CLUE_NCCL_WARN, "NCCL WARN"},
    {CLUE_WORKER_THREADS, "in DataLoader worker thread"},
    {CLUE_WORKER_THREADS, "worker_method='thread'"},
    {CLUE_WORKER_THREADS, "worker_method=\"thread\""},
    {CLUE_IN_DOCKER, "docker", .place = PLACE_AFFIRMED},
    {CLUE_IN_DOCKER, "nvcr.io/"},
    {CLUE_IN_DOCKER, " container oom "},
    {CLUE_IN_DOCKER, "root@", .place = PLACE_HOST},
    {CLUE_IN_DOCKER, "host      : ", .place = PLACE_HOST}, /* torchrun */
    {CLUE_IN_KUBERNETES, "kube"},
    {CLUE_IN_KUBERNETES, "OOMKilled"},
    {CLUE_IN_SLURM, "slurm"},
    {CLUE_IN_SLURM, "SLURM_"},
    {CLUE_IN_SLURM, "srun: "},
    {CLUE_IN_MACOS, "/Users/", UNLESS(":/Users/")}, /* C:/Users/ is Windows */
    {CLUE_IN_MACOS, "/opt/homebrew/"},
    {CLUE_IN_MACOS, ".dylib"},
    {CLUE_IN_MACOS, "us error: 10"}, /* SIGBUS has the number 10 only there */
    {CLUE_IN_MACOS, "SIGBUS(-10)"},
    {CLUE_IN_MACOS, "device: mps"},
    {CLUE_IN_MACOS, "device mps"},
    {CLUE_IN_MACOS, "EXC_BAD_ACCESS"},
    {CLUE_IN_WINDOWS, ":\\Users\\"},
    {CLUE_IN_WINDOWS, "\\site-packages\\"},
    {CLUE_IN_WINDOWS, "\\lib\\"},
    {CLUE_IN_WINDOWS, "WinError"},
    {CLUE_PYTORCH, "torch"},
    {CLUE_PYTORCH, "DataLoader"},
    {CLUE_PYTORCH, "error encountered in worker"},
    {CLUE_PYTORCH, "NCCL"},
    {CLUE_PYTORCH, "raylet"},
    {CLUE_FILE_SYSTEM_USED, "rebuild_storage_filename"},
    {CLUE_FILE_SYSTEM_USED, "_share_filename"},
    {CLUE_SAYS_FILE_SYSTEM, "set_sharing_strategy", ALSO("file_system"), UNLESS("ulimit -n")},
    {CLUE_SAYS_PIN_MEMORY, "pin_memory="},
    {CLUE_SAYS_GC, "gc.collect"},
    {CLUE_SAYS_SHM, "Insufficient shared_memory"}, /* MXNet */
    {CLUE_SAYS_LS, "ls /dev/shm"},
    {CLUE_SAYS_LS, "ls -l /dev/shm"},
    {CLUE_SAYS_LS, "ls -la /dev/shm"},
    {CLUE_SAYS_RSS_SHMEM, "RssShmem"},
};

enum { LITERALS_COUNTED = __COUNTER__ - COUNTED_BEFORE - 1 };
static_assert(TRACEBACK_NEEDLES + DEATH_NEEDLES + ARRAY_SIZE(patterns) + LITERALS_COUNTED <= NEEDLES_MAX,
              "the patterns have more literals than a MultiSearch holds: raise NEEDLES_MAX");

const size_t n_patterns = ARRAY_SIZE(patterns);
