/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue of the clues in a log: what the matching line means (EVIDENCE, shown after its line number),
 * what happened (SUMMARY) and a change to the training itself (FIX).
 *
 * {pid} identifies the process where it is known, as " (pid 7)" or " (pid 7, python)", and is empty
 * otherwise.
 */
#pragma once

#include "language.h"

#define SUMMARY_PID      _(" (pid %d)")
#define SUMMARY_PID_NAME _(" (pid %d, %s)")

/* --- /dev/shm is full --- */

#define CLUE_SHM_FULL_EVIDENCE N_("PyTorch found no space in /dev/shm for a segment.")
#define CLUE_SHM_FULL_SUMMARY                                                                                \
    N_("Shared memory ran out: /dev/shm was full when a process{pid} needed space for a tensor. The "        \
       "training needs a larger /dev/shm, or fewer and smaller batches in flight.")

#define CLUE_SHM_STALE_ERRNO_EVIDENCE                                                                        \
    N_("PyTorch could not reserve a segment. The reason it prints is left over from an earlier call, as in " \
       "PyTorch 2.10; the real one is nearly always that /dev/shm is full.")
#define CLUE_SHM_STALE_ERRNO_SUMMARY                                                                         \
    N_("Shared memory ran out: /dev/shm was full when a process{pid} needed space for a tensor. The "        \
       "message "                                                                                            \
       "gives a wrong reason.")

#define CLUE_SHM_WRITE_EVIDENCE                                                                              \
    N_("An older PyTorch could not write the first byte of a segment, and does not say why. The reason is "  \
       "nearly always that /dev/shm is full.")
#define CLUE_SHM_WRITE_SUMMARY                                                                               \
    N_("Shared memory ran out: /dev/shm was full when a process{pid} needed space for a tensor.")

#define CLUE_SHM_RESIZE_EVIDENCE                                                                             \
    N_("An older PyTorch could not give a segment its size, and does not say why.")
#define CLUE_SHM_RESIZE_SUMMARY                                                                              \
    N_("A process{pid} could not give a segment in /dev/shm the size of its tensor: most likely /dev/shm "   \
       "is "                                                                                                 \
       "full or too small. The message does not tell.")

#define CLUE_SHM_FILE_EVIDENCE N_("A file in /dev/shm could not be written because no space was left.")
#define CLUE_SHM_FILE_SUMMARY                                                                                \
    N_("Shared memory ran out: /dev/shm was full when the program wrote a file there.")

#define CLUE_SHM_FILE_FIX                                                                                    \
    N_("Free some space in /dev/shm, or let the program write its files elsewhere (its cache or temporary "  \
       "directory).")

#define CLUE_SHM_PYTHON_EVIDENCE N_("Python's multiprocessing.shared_memory found no space in /dev/shm.")
#define CLUE_SHM_PYTHON_SUMMARY  N_("Shared memory ran out: Python's shared_memory found /dev/shm full.")

#define CLUE_SHM_SEMAPHORE_EVIDENCE                                                                          \
    N_("Python could not create a lock, queue or array: these are files in /dev/shm, and it was full.")
#define CLUE_SHM_SEMAPHORE_SUMMARY                                                                           \
    N_("Shared memory ran out: /dev/shm was full when Python created a lock, queue or array for its "        \
       "workers. The disk is not involved.")

#define CLUE_SHM_JOBLIB_EVIDENCE N_("joblib found no space for the arrays that it shares with its workers.")
#define CLUE_SHM_JOBLIB_SUMMARY                                                                              \
    N_("joblib found no space for the arrays that it shares with its workers. It writes them to /dev/shm, "  \
       "unless JOBLIB_TEMP_FOLDER names another directory.")
#define CLUE_SHM_JOBLIB_FIX N_("Let joblib use a directory on a disk with enough space.")

#define CLUE_SHM_OBJECT_STORE_EVIDENCE N_("Ray refused an object store that is larger than /dev/shm.")
#define CLUE_SHM_OBJECT_STORE_SUMMARY                                                                        \
    N_("Ray did not start: /dev/shm is smaller than the object store it was asked for.")

#define CLUE_SHM_INODES_EVIDENCE                                                                             \
    N_("A new file could not be created in /dev/shm, although an empty file takes no space: no inodes were " \
       "left.")
#define CLUE_SHM_INODES_SUMMARY                                                                              \
    N_("/dev/shm had no inodes left: it holds too many files, whatever their sizes. Fewer files or more "    \
       "inodes help; a larger size does not.")
#define CLUE_SHM_INODES_FIX N_("Share fewer and larger tensors.")

#define CLUE_SHM_NCCL_EVIDENCE N_("NCCL found no space in /dev/shm for its buffers.")
#define CLUE_SHM_NCCL_SUMMARY                                                                                \
    N_("Shared memory ran out: NCCL found no space in /dev/shm for the buffers between the GPUs.")

#define CLUE_NCCL_SEGMENT_EVIDENCE                                                                           \
    N_("NCCL could not create a segment in /dev/shm. This version does not say why.")
#define CLUE_NCCL_SEGMENT_SUMMARY                                                                            \
    N_("NCCL could not create a buffer in /dev/shm, most likely because /dev/shm is full or too small.")

#define CLUE_SHM_EMPTYDIR_EVIDENCE                                                                           \
    N_("Kubernetes evicted the pod because its shared memory volume exceeded its sizeLimit.")
#define CLUE_SHM_EMPTYDIR_SUMMARY                                                                            \
    N_("The pod was evicted because /dev/shm exceeded the sizeLimit of its emptyDir volume.")

/* --- Bus errors --- */

#define CLUE_BUS_WORKER_EVIDENCE N_("A DataLoader worker died of a bus error.")
#define CLUE_BUS_WORKER_SUMMARY                                                                              \
    N_("A DataLoader worker{pid} died of a bus error: most likely /dev/shm was full when it wrote a batch "  \
       "there.")

#define CLUE_BUS_EVIDENCE N_("A process died of a bus error (SIGBUS).")
#define CLUE_BUS_SUMMARY                                                                                     \
    N_("A process{pid} died of a bus error: probably /dev/shm was full, but a mapped file that is "          \
       "truncated "                                                                                          \
       "has the same effect.")

#define BUS_FILE_SUMMARY                                                                                     \
    _("A process{pid} died of a bus error, and the log mentions mapped files or failing storage: most "      \
      "likely a file that it had mapped was truncated or could not be read. PyTorch only guesses that "      \
      "shared memory is to blame.")
#define DISK_SHM_SUMMARY                                                                                     \
    _("Most likely shared memory ran out: no space was left, and the traceback is in code that shares "      \
      "objects between processes, which needs /dev/shm. If /dev/shm has room, a disk was full.")
#define BUS_READER_SUMMARY                                                                                   \
    _("A process{pid} died of a bus error in a library that reads mapped files: most likely such a file "    \
      "was truncated, lies on a full disk or could not be read.")
#define BUS_DOUBTFUL_SUMMARY                                                                                 \
    _("A process{pid} died of a bus error: either /dev/shm was full, or a file that it had mapped was "      \
      "truncated or lies on a full disk. The log does not show which.")
#define BUS_MACOS_SUMMARY                                                                                    \
    _("A process{pid} died of a bus error on macOS. There is no /dev/shm there, so shared memory is not to " \
      "blame: either native code crashed, or a file that it had mapped was truncated or lies on a full "     \
      "disk.")

/* --- Descriptors, mappings, deleted segments --- */

#define CLUE_FD_EVIDENCE N_("A process could not open more files or receive more descriptors.")
#define CLUE_FD_SUMMARY                                                                                      \
    N_("A process{pid} ran out of file descriptors. Each shared tensor that is still in use takes one.")
#define CLUE_FD_FIX                                                                                          \
    N_("Hold fewer tensors: keep numbers (loss.item()) and clones of what the loader returns instead of "    \
       "the "                                                                                                \
       "batches themselves, and pack many small tensors into one.")

#define CLUE_FD_SYSTEM_EVIDENCE N_("The whole machine is at its limit of open files (fs.file-max).")
#define CLUE_FD_SYSTEM_SUMMARY  N_("The whole machine ran out of open files, not just this process.")

#define CLUE_OPEN_FAILED_EVIDENCE N_("An older PyTorch could not open a segment, and does not say why.")
#define CLUE_OPEN_FAILED_SUMMARY                                                                             \
    N_("PyTorch could not open a shared segment. This version does not say why: probably it ran out of "     \
       "file "                                                                                               \
       "descriptors. A segment that was deleted causes the same message.")

#define CLUE_MAPS_EVIDENCE N_("A segment could not be mapped: cannot allocate memory.")
#define CLUE_MAPS_SUMMARY                                                                                    \
    N_("A process{pid} reached the kernel's limit of memory mappings (vm.max_map_count): it holds too many " \
       "shared tensors at once.")

#define CLUE_MMAP_MEMORY_EVIDENCE N_("An older PyTorch could not map memory, and does not say why.")
#define CLUE_MMAP_MEMORY_SUMMARY                                                                             \
    N_("PyTorch could not map memory because of the limit of mappings (vm.max_map_count), a limit on "       \
       "address space (ulimit -v), or a lack of memory.")

#define MAPS_DOUBTFUL_SUMMARY                                                                                \
    _("A process{pid} could not map a shared segment because of the limit of mappings (vm.max_map_count), "  \
      "a limit on address space (ulimit -v), or a lack of memory.")

#define CLUE_MMAP_FILE_EVIDENCE N_("A file could not be mapped: cannot allocate memory.")
#define CLUE_MMAP_FILE_SUMMARY                                                                               \
    N_("A file could not be mapped: a limit on address space (ulimit -v), a kernel that commits no more "    \
       "memory than it has (vm.overcommit_memory=2), or a lack of RAM. Shared memory is not involved.")
#define CLUE_MMAP_FILE_FIX                                                                                   \
    N_("See which limit applies. Without one, load the file in parts, or where there is more RAM.")

#define CLUE_SEGMENT_GONE_EVIDENCE N_("A segment was no longer in /dev/shm when a process opened it by name.")
#define CLUE_SEGMENT_GONE_SUMMARY                                                                            \
    N_("PyTorch's segments were deleted from /dev/shm while they were in use: by a clean-up job, by logind " \
       "when the user's last session ended (RemoveIPC), or because the worker that made them ended first.")
#define CLUE_SEGMENT_GONE_FIX                                                                                \
    N_("Use the default strategy, torch.multiprocessing.set_sharing_strategy('file_descriptor'): it leaves " \
       "no names in /dev/shm that could be deleted.")

#define CLUE_SEGMENT_UNLINK_EVIDENCE N_("PyTorch tried to remove a segment that was already removed.")

#define CLUE_PYTHON_SEGMENT_GONE_EVIDENCE N_("A segment of Python's shared_memory was no longer in /dev/shm.")
#define CLUE_PYTHON_SEGMENT_GONE_SUMMARY                                                                     \
    N_("A segment of Python's shared_memory is gone. Often Python itself removed it: every process that "    \
       "attaches has a resource tracker, which deletes the segment when that process ends.")
#define CLUE_PYTHON_SEGMENT_GONE_FIX                                                                         \
    N_("Attach with SharedMemory(name=…, track=False) (Python 3.13), or unregister the segment from "      \
       "multiprocessing.resource_tracker in processes that only attach.")

#define CLUE_NCCL_SEGMENT_GONE_EVIDENCE                                                                      \
    N_("NCCL did not find the segment that another rank had created in /dev/shm.")
#define CLUE_NCCL_SEGMENT_GONE_SUMMARY                                                                       \
    N_("NCCL did not find another rank's segment in /dev/shm: it was deleted, or the ranks do not share "    \
       "one "                                                                                                \
       "/dev/shm (separate containers that look like one host).")

#define CLUE_NCCL_SEGMENT_GONE_FIX                                                                           \
    N_("Give all ranks of a host one /dev/shm (one container, or --ipc=host), or let NCCL do without it.")

/* --- Out of memory --- */

#define CLUE_OOM_CGROUP_EVIDENCE                                                                             \
    N_("The kernel's OOM killer acted because a control group was at its memory limit.")
#define CLUE_OOM_CGROUP_SUMMARY                                                                              \
    N_("The kernel killed a process{pid} because its control group (the container or job) was at its "       \
       "memory "                                                                                             \
       "limit.")

#define CLUE_OOM_SCHEDULER_EVIDENCE                                                                          \
    N_("The batch system says that the job used more memory than it had requested.")
#define CLUE_OOM_SCHEDULER_SUMMARY                                                                           \
    N_("The job used more memory than it had requested from the batch system, and was killed for it.")

#define CLUE_OOM_KUBERNETES_EVIDENCE N_("The container runtime says OOMKilled.")
#define CLUE_OOM_KUBERNETES_SUMMARY                                                                          \
    N_("The container was killed because it exceeded its memory limit (OOMKilled).")

#define CLUE_OOM_MACHINE_EVIDENCE N_("The kernel's OOM killer acted because the machine was out of memory.")
#define CLUE_OOM_MACHINE_SUMMARY                                                                             \
    N_("The kernel killed a process{pid} because the whole machine was out of memory.")

#define CLUE_OOM_DAEMON_EVIDENCE                                                                             \
    N_("A program that protects the machine's memory (systemd-oomd, earlyoom, Ray) killed a process.")
#define CLUE_OOM_DAEMON_SUMMARY                                                                              \
    N_("A program that protects the machine's memory killed a process{pid} because memory was short.")

#define CLUE_OOM_RAY_EVIDENCE N_("Ray killed a process because the memory of its node was nearly used up.")
#define CLUE_OOM_RAY_SUMMARY                                                                                 \
    N_("Ray killed a process{pid} because memory was short on its node. It does so at a threshold, before "  \
       "the kernel would.")
#define CLUE_OOM_RAY_FIX                                                                                     \
    N_("Let fewer tasks run at a time, by a higher num_cpus or memory for each of them. Ray's log says "     \
       "which tasks used the memory; RAY_memory_usage_threshold moves the threshold.")

#define CLUE_OOM_SOME_FIX                                                                                    \
    N_("See in the kernel's log whose memory was short, that of the machine or of a control group.")
#define CLUE_OOM_SOME_EVIDENCE                                                                               \
    N_("The kernel's OOM killer acted. The log line that says whose memory was short is missing.")
#define CLUE_OOM_SOME_SUMMARY                                                                                \
    N_("The kernel's OOM killer killed a process{pid}. The log does not show whether the machine or only "   \
       "its control group was out of memory.")

/* --- Ended from outside --- */

#define CLUE_SIGKILL_WORKER_EVIDENCE N_("A DataLoader worker was killed with SIGKILL.")
#define CLUE_SIGKILL_WORKER_SUMMARY                                                                          \
    N_("A DataLoader worker{pid} was killed with SIGKILL. Most often the kernel's OOM killer does that, "    \
       "but "                                                                                                \
       "this log does not show it; the kernel's log does.")

#define CLUE_SIGKILL_EVIDENCE N_("A process was ended by SIGKILL (exit code 137 or -9).")
#define CLUE_SIGKILL_SUMMARY                                                                                 \
    N_("A process{pid} was killed with SIGKILL. The OOM killer does that, but so do `docker stop`, a batch " \
       "system and people. The log does not show which.")

#define CLUE_TIME_LIMIT_EVIDENCE N_("The batch system says that the job reached its time limit.")
#define CLUE_TIME_LIMIT_SUMMARY                                                                              \
    N_("The batch system ended the job at its time limit. Memory is not involved.")
#define CLUE_TIME_LIMIT_FIX N_("Ask for more time, or save checkpoints and resume from the last one.")

#define CLUE_PREEMPTED_EVIDENCE N_("The batch system says that the job had to make room for another.")
#define CLUE_PREEMPTED_SUMMARY                                                                               \
    N_("The batch system stopped the job to make room for another one. Memory is not involved.")
#define CLUE_PREEMPTED_FIX                                                                                   \
    N_("Save checkpoints and let the job be requeued, or use a partition without preemption.")

#define CLUE_REQUEUED_EVIDENCE N_("The batch system says that the job was put back into its queue.")
#define CLUE_REQUEUED_SUMMARY                                                                                \
    N_("The batch system stopped the job and put it back into its queue: to make room for another one, or "  \
       "because an administrator or the job itself asked for it. Memory is not involved.")
#define CLUE_REQUEUED_FIX                                                                                    \
    N_("Let the job continue from its last checkpoint when it starts again, and look at its earlier "        \
       "attempts.")

#define CLUE_NODE_FAILURE_EVIDENCE N_("The batch system says that a node failed.")
#define CLUE_NODE_FAILURE_SUMMARY                                                                            \
    N_("A node that the job ran on failed, and the batch system cancelled the job.")
#define CLUE_NODE_FAILURE_FIX                                                                                \
    N_("Start the job again. If it happens twice, leave that node out and report it to the administrators.")

#define CLUE_CANCELLED_EVIDENCE N_("The batch system says that the job was cancelled, and gives no reason.")
#define CLUE_CANCELLED_SUMMARY  N_("The job was cancelled (scancel, by its owner or an administrator).")
#define CLUE_CANCELLED_FIX      N_("See what Slurm recorded about the job, and ask who cancelled it.")

#define CLUE_EVICTED_EVIDENCE N_("Kubernetes evicted the pod from its node.")
#define CLUE_EVICTED_SUMMARY                                                                                 \
    N_("Kubernetes evicted the pod: the node ran low on the resource that the log line names, or the pod "   \
       "used more of it than its limit.")
#define EVICTED_RESOURCE_SUMMARY                                                                             \
    _("Kubernetes evicted the pod because its node ran low on %s.") /* "memory" */
#define CLUE_EVICTED_FIX                                                                                     \
    N_("Request as much of that resource (requests.memory, requests.ephemeral-storage) as the pod really "   \
       "needs: pods above their requests are evicted first.")

#define CLUE_SIGTERM_WORKER_EVIDENCE N_("A DataLoader worker was asked to end (SIGTERM).")
#define CLUE_SIGTERM_WORKER_SUMMARY                                                                          \
    N_("A DataLoader worker{pid} was ended with SIGTERM, by a batch system, a launcher or a person. It was " \
       "not the OOM killer, which sends SIGKILL.")

#define CLUE_SIGTERM_EVIDENCE N_("A process was ended by SIGTERM.")
#define CLUE_SIGTERM_SUMMARY                                                                                 \
    N_("A process{pid} was asked to end (SIGTERM). Launchers do that to the other ranks after the first "    \
       "one "                                                                                                \
       "failed, so look for an earlier failure, also in the logs of the other ranks.")

#define CLUE_SIGTERM_FIX                                                                                     \
    N_("Look at what came before: the scheduler's log (time limit, preemption), the container's events, "    \
       "and "                                                                                                \
       "the output of the other ranks.")

#define CLUE_HANGUP_EVIDENCE N_("A process was ended because its terminal or session went away (SIGHUP).")
#define CLUE_HANGUP_SUMMARY                                                                                  \
    N_("The terminal or ssh session that the job was started from ended, and took the job with it "          \
       "(SIGHUP). "                                                                                          \
       "Memory is not involved.")
#define CLUE_HANGUP_FIX                                                                                      \
    N_("Start the job so that it survives the session: with tmux, a batch system, or nohup.")

#define CLUE_INTERRUPTED_EVIDENCE N_("The program was interrupted (Ctrl-C, SIGINT).")
#define CLUE_INTERRUPTED_SUMMARY  N_("The program was interrupted (Ctrl-C or SIGINT).")
#define CLUE_INTERRUPTED_FIX                                                                                 \
    N_("Start it again, from the last checkpoint. If it hung, dump the stacks of its processes while it "    \
       "hangs (py-spy dump --pid PID). If nobody pressed Ctrl-C, look for what sent SIGINT: a launcher, a "  \
       "notebook or a batch system.")
#define INTERRUPTED_WAITING_FIX                                                                              \
    _("It was waiting for another process or thread when it was interrupted. If it hung, start it again "    \
      "and dump the stacks of all of its processes while it hangs.")

/* --- Crashes --- */

#define CLUE_SEGFAULT_EVIDENCE N_("A process died of a segmentation fault.")
#define CLUE_SEGFAULT_SUMMARY                                                                                \
    N_("Native code crashed with a segmentation fault in a process{pid}: a bug in a library or extension, "  \
       "not a lack of memory.")
#define SEGFAULT_WORKER_SUMMARY                                                                              \
    _("Native code crashed with a segmentation fault in a DataLoader worker{pid}: a bug in a library or "    \
      "extension that the dataset uses, not a lack of memory.")
#define CLUE_SEGFAULT_FIX N_("Run it with the fault handler enabled: it prints the Python line of the crash.")

#define CLUE_HEAP_EVIDENCE N_("The C library found its heap corrupted.")
#define CLUE_HEAP_SUMMARY                                                                                    \
    N_("Native code wrote to the wrong memory and corrupted the heap: a bug in a library or extension, or "  \
       "two libraries that do not fit together. It is not a lack of memory.")
#define CLUE_HEAP_FIX                                                                                        \
    N_("Update or reinstall the packages with native code together. Suspect the newest one first.")

#define CLUE_ABORTED_EVIDENCE N_("A process aborted itself (SIGABRT).")
#define CLUE_ABORTED_SUMMARY                                                                                 \
    N_("A process{pid} aborted itself. The reason is usually printed just before, but it is not in this "    \
       "log.")

#define CLUE_FPE_EVIDENCE N_("A process died of SIGFPE.")
#define CLUE_FPE_SUMMARY                                                                                     \
    N_("Native code in a process{pid} divided an integer by zero: a bug in a library or extension, or an "   \
       "empty input to it. It is not a lack of memory.")

#define CLUE_ILLEGAL_EVIDENCE N_("A process died of SIGILL.")
#define CLUE_ILLEGAL_SUMMARY                                                                                 \
    N_("A process{pid} used an instruction that this CPU does not support: a package was built for another " \
       "CPU. It is not a lack of memory.")
#define CLUE_ILLEGAL_FIX N_("Install a build for this CPU, or build the package here.")

#define CLUE_CPP_EVIDENCE N_("An uncaught C++ exception ended the process.")
#define CLUE_CPP_SUMMARY  N_("An uncaught C++ exception ended the process.")
#define CPP_WHAT_SUMMARY  _("An uncaught C++ exception ended the process: %s") /* its message */

#define CLUE_GPU_FAULT_EVIDENCE N_("The NVIDIA driver reports a GPU error.")
#define CLUE_GPU_FAULT_SUMMARY                                                                               \
    N_("The NVIDIA driver reports a GPU error. Its number (Xid, in the kernel's log) says whether the "      \
       "program, the driver or the hardware is to blame.")
#define CLUE_GPU_FAULT_FIX                                                                                   \
    N_("Look up the Xid number in NVIDIA's list, and show the log line to the administrators.")

/* --- Exceptions --- */

#define CLUE_CUDA_FORK_EVIDENCE N_("A forked process used CUDA, which its parent had used before.")
#define CLUE_CUDA_FORK_SUMMARY                                                                               \
    N_("A forked worker used CUDA. CUDA does not survive a fork: return CPU tensors from the dataset and "   \
       "move them to the GPU in the training loop.")
#define CLUE_CUDA_FORK_FIX                                                                                   \
    N_("Keep .cuda(), .to('cuda') and device= out of the dataset and collate_fn. If workers must use the "   \
       "GPU, pass multiprocessing_context='spawn' to the DataLoader.")

#define CLUE_CUDA_INIT_EVIDENCE                                                                              \
    N_("CUDA could not be initialised. In a DataLoader worker, older versions say so when the parent had "   \
       "used CUDA before the fork.")
#define CLUE_CUDA_INIT_SUMMARY                                                                               \
    N_("CUDA could not start in this process, most likely because it is a forked worker. Return CPU "        \
       "tensors "                                                                                            \
       "from the dataset and move them to the GPU in the training loop.")

#define CLUE_GPU_MEMORY_EVIDENCE N_("An allocation on the GPU failed.")
#define CLUE_GPU_MEMORY_SUMMARY                                                                              \
    N_("The GPU ran out of its own memory. That has nothing to do with shared memory or /dev/shm.")
#define CLUE_GPU_MEMORY_FIX                                                                                  \
    N_("Make the batch smaller (with gradient accumulation, if results must not change), or use mixed "      \
       "precision or activation checkpointing.")

#define CLUE_CUDA_ERROR_EVIDENCE N_("CUDA reported an error.")
#define CLUE_CUDA_ERROR_SUMMARY                                                                              \
    N_("A CUDA call or kernel failed. CUDA reports late, so the line in the traceback may be the wrong "     \
       "one.")
#define CLUE_CUDA_ERROR_FIX                                                                                  \
    N_("Run it once with synchronous launches: the traceback then names the right line.")

#define CLUE_NCCL_CUDA_EVIDENCE N_("CUDA refused a call of NCCL.")
#define CLUE_NCCL_CUDA_SUMMARY                                                                               \
    N_("CUDA refused a call of NCCL. The log line names CUDA's reason; a driver and an NCCL that do not "    \
       "fit "                                                                                                \
       "together are a common one.")
#define CLUE_NCCL_CUDA_FIX                                                                                   \
    N_("Install an NCCL that fits the driver. Until then, let NCCL do without memory that it shares "        \
       "through "                                                                                            \
       "CUDA, which may be slower.")

#define CLUE_NOT_PICKLABLE_EVIDENCE N_("An object that a worker needs cannot be pickled.")
#define CLUE_NOT_PICKLABLE_SUMMARY                                                                           \
    N_("The dataset or one of the DataLoader's functions cannot be sent to a worker: spawn and forkserver "  \
       "(the default since Python 3.14) send it by pickle.")
#define CLUE_NOT_PICKLABLE_FIX                                                                               \
    N_("Replace lambdas and inner functions with functions of a module, and open files, locks and database " \
       "handles in the worker (in __getitem__ or worker_init_fn) instead of in __init__. Where fork does "   \
       "no "                                                                                                 \
       "harm, multiprocessing_context='fork' needs no pickling.")
#define NOT_PICKLABLE_WINDOWS_FIX                                                                            \
    _("Replace lambdas and inner functions with functions of a module, and open files, locks and database "  \
      "handles in the worker (in __getitem__ or worker_init_fn) instead of in __init__. With num_workers=0 " \
      "nothing is pickled.")

#define CLUE_MAIN_ATTRIBUTE_EVIDENCE N_("A worker did not find a name of the main module.")
#define CLUE_MAIN_ATTRIBUTE_SUMMARY                                                                          \
    N_("A spawned worker did not find a class or function of the main script: it imports the script again, " \
       "and what notebooks or the __main__ block define is not there.")
#define CLUE_MAIN_ATTRIBUTE_FIX N_("Move the class or function into its own module and import it.")

#define CLUE_MAIN_GUARD_EVIDENCE                                                                             \
    N_("A new worker ran the main script again and tried to start workers itself.")
#define CLUE_MAIN_GUARD_SUMMARY                                                                              \
    N_("The script starts its training while it is being imported. With spawn every worker imports it, so "  \
       "the training must start below if __name__ == \"__main__\":.")
#define CLUE_MAIN_GUARD_FIX                                                                                  \
    N_("Put the code that starts the training into a function, and call it below if __name__ == "            \
       "\"__main__\":.")

#define CLUE_NESTED_EVIDENCE N_("A worker tried to start child processes.")
#define CLUE_NESTED_SUMMARY                                                                                  \
    N_("A worker tried to start child processes, which Python does not allow in daemonic processes.")
#define CLUE_NESTED_FIX N_("Use num_workers=0 for the inner DataLoader, or threads inside the workers.")

#define CLUE_FORK_MEMORY_EVIDENCE N_("The kernel refused a fork for lack of memory.")
#define CLUE_FORK_MEMORY_SUMMARY                                                                             \
    N_("A process could not be forked: the kernel would have had to promise its child as much memory as "    \
       "the "                                                                                                \
       "parent has, and it was short of RAM or may not overcommit (vm.overcommit_memory).")
#define CLUE_FORK_MEMORY_FIX                                                                                 \
    N_("Start the workers before the parent grows, or with multiprocessing_context='spawn'. With 2 here, "   \
       "the kernel promises no more memory than there is; 1 lets every fork succeed.")

#define CLUE_HOST_MEMORY_EVIDENCE N_("The process asked for more memory than it could get.")
#define CLUE_HOST_MEMORY_SUMMARY                                                                             \
    N_("The process asked for more main memory (RAM) than it could get. This is neither /dev/shm nor the "   \
       "GPU.")

#define CLUE_SHM_DENIED_EVIDENCE N_("Python, PyTorch or NCCL may not create files in /dev/shm.")
#define CLUE_SHM_DENIED_SUMMARY                                                                              \
    N_("The process could not create anything in /dev/shm: it may not write there, or the directory is not " \
       "there. It is not full.")
#define CLUE_SHM_DENIED_FIX                                                                                  \
    N_("Let every user write to /dev/shm: it must be a tmpfs with mode 1777 (drwxrwxrwt), also in a "        \
       "container.")

#define CLUE_PINNED_MEMORY_EVIDENCE N_("Main memory could not be pinned for transfers to the GPU.")
#define CLUE_PINNED_MEMORY_SUMMARY                                                                           \
    N_("The process could not pin more main memory (RAM) for transfers to the GPU. CUDA calls that out of "  \
       "memory too, but it is not about the GPU's memory.")
#define CLUE_PINNED_MEMORY_FIX                                                                               \
    N_("Give the DataLoader pin_memory=False, or pin less: lower batch_size, prefetch_factor and "           \
       "num_workers.")

#define CLUE_THREADS_EVIDENCE N_("The system refused to create another thread or process.")
#define CLUE_THREADS_SUMMARY                                                                                 \
    N_("The system refused to create another thread or process because a limit (pids of the container, "     \
       "ulimit -u) was reached, not because of memory.")
#define CLUE_THREADS_FIX N_("Start fewer workers, or fewer threads in each.")

#define CLUE_DISK_FULL_EVIDENCE                                                                              \
    N_("A file could not be written because no space was left or the quota was used up.")
#define CLUE_DISK_FULL_SUMMARY                                                                               \
    N_("The file system that was written to is full, or the user's quota is used up. The message does not "  \
       "name /dev/shm; if the file is below it, shared memory ran out.")
#define CLUE_DISK_FULL_FIX                                                                                   \
    N_("Free some space where checkpoints, logs and caches go, or write them elsewhere; keep fewer "         \
       "checkpoints.")

#define CLUE_DISK_WRITE_EVIDENCE N_("torch.save could not write all of its file.")
#define CLUE_DISK_WRITE_SUMMARY                                                                              \
    N_("torch.save could not write its file: most likely the file system is full or the quota is used up. "  \
       "PyTorch does not say why.")
#define CLUE_DISK_WRITE_FIX                                                                                  \
    N_("Free some space where the checkpoint goes, and check that you may write there. The file that was "   \
       "being written is not usable.")

#define CLUE_COLLATE_SHAPES_EVIDENCE N_("Items of different shapes cannot be stacked into one batch.")
#define CLUE_COLLATE_SHAPES_SUMMARY                                                                          \
    N_("The items of one batch have different shapes, so they cannot be stacked. PyTorch only passed the "   \
       "worker's exception on.")
#define CLUE_COLLATE_SHAPES_FIX                                                                              \
    N_("Bring the items to one shape (resize, crop, pad), or give the DataLoader a collate_fn that pads.")

#define CLUE_COLLATE_STORAGE_EVIDENCE N_("The batch could not be put into one piece of shared memory.")
#define CLUE_COLLATE_STORAGE_SUMMARY                                                                         \
    N_("The worker could not build a batch in shared memory: the items differ in size, or share memory "     \
       "that "                                                                                               \
       "cannot be resized (from_numpy of a mapped file).")
#define CLUE_COLLATE_STORAGE_FIX                                                                             \
    N_("Return tensors of one shape that own their memory: torch.tensor(x) or tensor.clone().")

/* --- Waiting --- */

#define CLUE_TIMEOUT_EVIDENCE N_("No batch arrived within the DataLoader's timeout.")
#define CLUE_TIMEOUT_SUMMARY                                                                                 \
    N_("No worker delivered a batch within the DataLoader's timeout: a worker hangs or is too slow. "        \
       "Nothing "                                                                                            \
       "else in this log says why.")

#define CLUE_COLLECTIVE_TIMEOUT_EVIDENCE N_("A collective operation waited for a rank until it timed out.")
#define CLUE_COLLECTIVE_TIMEOUT_SUMMARY                                                                      \
    N_("The ranks waited for one that did not arrive: it died, hangs, or is still busy. This log does not "  \
       "show which; the log of that rank does.")

#define CLUE_BROADCAST_EVIDENCE N_("vLLM waited a minute for its processes to read a message.")
#define CLUE_BROADCAST_SUMMARY                                                                               \
    N_("A process of vLLM has not read its messages for a minute: it hangs, or is busy (loading, "           \
       "compiling). The message is about a queue in shared memory that nobody empties; /dev/shm is not "     \
       "full.")
#define CLUE_BROADCAST_FIX                                                                                   \
    N_("If it does not continue by itself, find the process that waits: dump its stack while it hangs.")

#define CLUE_CONNECT_EVIDENCE N_("A rank could not reach another one.")
#define CLUE_CONNECT_SUMMARY                                                                                 \
    N_("A rank could not reach another one: it used the wrong network interface, a firewall is in between, " \
       "or the other rank had ended already. Memory is not involved.")
#define CLUE_CONNECT_FIX                                                                                     \
    N_("Name the interface that connects the nodes (here eth0) for Gloo and NCCL, and look at the output "   \
       "of "                                                                                                 \
       "every rank for the one that ended first.")

#define CLUE_WORKER_LEFT_EVIDENCE                                                                            \
    N_("The program noticed that a worker had exited by itself, with an error code.")
#define CLUE_WORKER_LEFT_SUMMARY                                                                             \
    N_("A worker{pid} exited by itself, with an error code: an exception or sys.exit() in the worker, "      \
       "whose "                                                                                              \
       "own output is not in this log. No signal ended it.")

#define CLUE_OBJECT_STORE_SLOW_EVIDENCE N_("Ray found /dev/shm too small for its object store.")
#define CLUE_OBJECT_STORE_SLOW_SUMMARY                                                                       \
    N_("Ray found /dev/shm too small for its object store and uses /tmp, which is slow. This alone does "    \
       "not "                                                                                                \
       "end a training; if it died, the reason may be the same small /dev/shm.")

#define CLUE_JOB_CONTAINER_EVIDENCE N_("Slurm could not enter the job's private namespace.")
#define CLUE_JOB_CONTAINER_SUMMARY                                                                           \
    N_("Slurm could not give the job its private /tmp and /dev/shm on a node (job_container/tmpfs), so the " \
       "job did not start there. The node is at fault, not the training.")
#define CLUE_JOB_CONTAINER_FIX                                                                               \
    N_("Submit the job again without that node, and report it to the administrators.")

#define CLUE_BLOCKED_EVIDENCE N_("The kernel says that a task was blocked for minutes.")
#define CLUE_BLOCKED_SUMMARY                                                                                 \
    N_("A process was stuck in the kernel for minutes, most often because storage did not respond.")
#define CLUE_BLOCKED_FIX N_("Check the storage (network file system, disk) that holds the dataset.")

/* --- After-effects and background: no summary of their own --- */

#define CLUE_WORKER_EXITED_EVIDENCE N_("The trainer noticed that a worker was gone. This does not say why.")
#define CLUE_POOL_BROKEN_EVIDENCE                                                                            \
    N_("A pool of workers noticed that one of them was gone. This does not say why.")
#define CLUE_PIN_THREAD_EVIDENCE                                                                             \
    N_("The trainer noticed that its thread for pinning memory had ended. This does not say why.")
#define CLUE_PARENT_GONE_EVIDENCE                                                                            \
    N_("A new worker did not get from the process that started it what it needs: that process had failed, "  \
       "or was gone already.")
#define CLUE_PEER_LOST_EVIDENCE                                                                              \
    N_("The process at the other end of a connection was gone. This does not say why.")
#define CLUE_CHILD_FAILED_EVIDENCE                                                                           \
    N_("The launcher noticed that a process had failed. This does not say why.")
#define CLUE_NCCL_ERROR_EVIDENCE N_("NCCL reports an error without its reason.")
#define CLUE_LEAKED_EVIDENCE                                                                                 \
    N_("Python removed shared objects that a process had not removed by its end. That is not the cause of "  \
       "a "                                                                                                  \
       "failure.")
#define CLUE_TEARDOWN_EVIDENCE  N_("Python cleaned up at its end. This is harmless, and not the cause.")
#define CLUE_NCCL_WARN_EVIDENCE N_("NCCL warns of an error.")
#define CLUE_FORK_WARNING_EVIDENCE                                                                           \
    N_("A process with several threads was forked, which can leave its children in a deadlock.")
#define CLUE_MAPPED_FILE_EVIDENCE N_("The log mentions files that are read through mmap.")
#define CLUE_MAPPED_READER_EVIDENCE                                                                          \
    N_("A library that reads mapped files (LMDB) is in the stack of the crash.")
#define CLUE_NO_OOM_EVIDENCE                                                                                 \
    N_("The container runtime says that it was not the memory limit of the container (OOMKilled: false).")
#define CLUE_STORAGE_EVIDENCE N_("The log mentions failing storage or a truncated file.")
#define CLUE_DF_EVIDENCE      N_("The log shows how full /dev/shm was.")

/* --- A log with nothing but after-effects, or not even that --- */

#define LOG_EMPTY_SUMMARY                                                                                    \
    _("The log is empty. Pass the training's error output (stderr) and, if a process was killed, the "       \
      "kernel's log (dmesg).")
#define LOG_NOTHING_SUMMARY                                                                                  \
    _("Nothing in this log matches a known failure. Try the last lines of the training's error output "      \
      "(stderr), or the kernel's log (dmesg).")
#define LOG_WORKER_EXITED_SUMMARY                                                                            \
    _("A DataLoader worker{pid} died, but this log does not say why: it may have been killed, have "         \
      "crashed, or have exited by itself.")
#define LOG_POOL_BROKEN_SUMMARY                                                                              \
    _("A background worker of the program died, and this log does not say why. If its own message is not "   \
      "above, it was most likely killed, often for lack of memory; the kernel's log shows that.")
#define LOG_PIN_THREAD_SUMMARY                                                                               \
    _("The thread that pins memory for the GPU ended, and this log does not say why. Its own traceback, if " \
      "any, is further up.")
#define LOG_PARENT_GONE_SUMMARY                                                                              \
    _("A worker could not start, because the process that started it had failed or was gone already. The "   \
      "reason is in the output of that process, which is not in this log.")
#define LOG_TEARDOWN_SUMMARY                                                                                 \
    _("The log shows only messages from the end of a program, which are harmless. If the training failed, "  \
      "its reason is not in this log.")
#define LOG_NCCL_WARN_SUMMARY _("NCCL failed. Its first warning says: %s") /* the text of the warning */
#define LOG_NCCL_ERROR_SUMMARY                                                                               \
    _("NCCL failed, and this log does not say why. Too little space in /dev/shm is a common reason; with "   \
      "NCCL_DEBUG=INFO, NCCL prints it.")
#define LOG_CHILD_FAILED_SUMMARY                                                                             \
    _("A launcher found that one of its processes had failed. The reason is in that process's own output, "  \
      "which is not in this log.")
#define LOG_LEAKED_SUMMARY                                                                                   \
    _("A process ended without removing its shared objects, and Python removed them. That alone is "         \
      "harmless: it happens at a normal end, too. If the training died, this log does not say why; the "     \
      "line that the shell printed (\"Bus error\", \"Killed\") would.")
#define LOG_AFTER_EFFECTS_SUMMARY                                                                            \
    _("This log contains only after-effects: a process was gone when another one talked to it. It does not " \
      "say why.")

/* --- Exceptions that no pattern knows. The first %s is the exception as Python prints it, "ValueError: bad
 * label 7"; the second one is EXPLAIN_FRAME. --- */

#define EXCEPTION_FEEDER                _("The thread that sends a worker's batches raised %s.")
#define EXCEPTION_FEEDER_AT             _("The thread that sends a worker's batches raised %s, at %s.")
#define EXCEPTION_WORKER                _("A DataLoader worker raised %s.")
#define EXCEPTION_WORKER_AT             _("A DataLoader worker raised %s, at %s.")
#define EXCEPTION_PROGRAM               _("The program raised %s.")
#define EXCEPTION_PROGRAM_AT            _("The program raised %s, at %s.")
#define EXCEPTION_FEEDER_MEANING        _("That batch is lost, and the trainer waits for it forever.")
#define EXCEPTION_BACKGROUND            _("A background worker raised %s.")
#define EXCEPTION_BACKGROUND_AT         _("A background worker raised %s, at %s.")
#define EXCEPTION_WORKER_MEANING        _("PyTorch only passed it on.")
#define EXCEPTION_WORKER_ALONE_MEANING  _("PyTorch only passed it on. Nothing in the log points to memory.")
#define EXCEPTION_PROGRAM_ALONE_MEANING _("Nothing in the log points to memory.")

/* --- Evidence. The first %llu is the number of a line. --- */

#define EXPLAIN_FRAME    _("%s line %u, in %s") /* file, line, function */
#define EXPLAIN_FRAME_AT _("%s line %u")

/* The %s is the EVIDENCE of a clue, the second %llu the number of lines that say the same. */
#define EXPLAIN_LINE           _("Line %llu: %s")
#define EXPLAIN_LINES          _("Line %llu (first of %llu): %s")
#define EXPLAIN_SEPARATE_LINE  _("Line %llu (a separate problem): %s")
#define EXPLAIN_SEPARATE_LINES _("Line %llu (first of %llu, a separate problem): %s")

#define EXPLAIN_RAISED           _("Line %llu: %s was raised.") /* the type of an exception */
#define EXPLAIN_RAISED_AT        _("Line %llu: %s was raised at %s.")
#define EXPLAIN_RAISED_WORKER    _("Line %llu: %s was raised in a worker.")
#define EXPLAIN_RAISED_WORKER_AT _("Line %llu: %s was raised in a worker, at %s.")
#define EXPLAIN_RAISED_BEFORE                                                                                \
    _("Line %llu: %s was raised before. If the program was ending because of it, the crash is a "            \
      "consequence.")
#define EXPLAIN_LED_TO _("It led to the %s later in the log.") /* the type of an exception */
#define EXPLAIN_SURVIVED                                                                                     \
    _("The log continues for %llu lines after the exception: the program may have survived it, and ended "   \
      "for another reason.")
#define EXPLAIN_HAPPENED_AT _("It happened at %s.") /* EXPLAIN_FRAME */
#define EXPLAIN_KERNEL_KILLED                                                                                \
    _("This machine's kernel log says that the OOM killer killed process %d. If this log comes from "        \
      "another machine, that is a coincidence.")
#define EXPLAIN_SHM_FULL _("The log shows /dev/shm %u%% full (size %s).")
#define EXPLAIN_SHM_FREE                                                                                     \
    _("The log shows /dev/shm only %u%% full (size %s), which speaks against a lack of shared memory, "      \
      "unless that was after the crash.")
#define EXPLAIN_TORCH_RESERVES                                                                               \
    _("PyTorch %u.%u reserves shared memory before it writes: a full /dev/shm raises an exception there, "   \
      "so this bus error may have another reason.")
#define EXPLAIN_BUS_AMBIGUOUS                                                                                \
    _("A mapped file that is truncated or lies on a full disk leads to the same message; the log alone "     \
      "cannot tell them apart.")
#define EXPLAIN_CGROUP_LIMIT _("The control group's memory limit was %s.")
#define EXPLAIN_VICTIM       _("Process %d had %s of private and %s of shared memory.")
#define EXPLAIN_SEGMENT_NUMBER                                                                               \
    _("It was segment number %llu of this process, with %s; the kernel's default limit is 65530 mappings.")
#define EXPLAIN_MAPS_AMBIGUOUS                                                                               \
    _("A limit on address space (ulimit -v) and a real lack of memory lead to the same message.")

/* This machine as it is now; the log may come from another. */
#define EXPLAIN_SHM_HERE                                                                                     \
    _("/dev/shm on this machine now has %s, of which %s is used (measured; the log may come from another "   \
      "machine).")
#define EXPLAIN_MAPS_HERE                                                                                    \
    _("vm.max_map_count on this machine is %llu (the log may come from another machine).")
#define EXPLAIN_FILES_HERE                                                                                   \
    _("A process on this machine may open %llu files (the log may come from another machine).")
