/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `doctor` and the check before a run say. A MEANING is the line of the documentation about a check; a
 * SKIPPED one says why a check could not look, and stands behind the id of the check and a colon. In "pid %d
 * (%s)", %s is a role, which is not translated. Every other %s is a size, unless a comment says otherwise.
 */
#pragma once

#include "language.h"

/* --- What several checks say ---------------------------------------------------------------------------- */

#define DOCTOR_SHM_LARGE       _("The size of /dev/shm is %s.")
#define DOCTOR_SHM_UNLIMITED   _("/dev/shm has no size limit.")
#define DOCTOR_CPUS_ONE        _("%.3g CPU is granted.")
#define DOCTOR_CPUS_MANY       _("%.3g CPUs are granted.")
#define DOCTOR_CPUS_QUOTA_ONE  _("%.3g CPU is granted by the control group's quota.")
#define DOCTOR_CPUS_QUOTA_MANY _("%.3g CPUs are granted by the control group's quota.")
#define DOCTOR_CPUS_SKIPPED    _("the number of granted CPUs is not known")
#define DOCTOR_DRY_RUN_FIX     _("See what would be removed.")
#define DOCTOR_CLEAN_FIX       _("Remove the segments that no process uses.")
#define DOCTOR_CLEAN_PRIVATE_FIX                                                                             \
    _("If no process outside this container uses its /dev/shm: see what could be removed then.")
#define DOCTOR_CLEAN_ALL_FIX _("Also remove the leftover segments of other users.")
#define DOCTOR_PID_SKIPPED   _("process %d belongs to no visible training; only the machine was examined")

/* --- /dev/shm ------------------------------------------------------------------------------------------- */

#define DOCTOR_SHM_MISSING_MEANING "/dev/shm does not exist, is not writable or is not a tmpfs."
#define DOCTOR_SHM_MISSING_TITLE   _("/dev/shm does not exist")
#define DOCTOR_SHM_MISSING                                                                                   \
    _("Measured: the directory does not exist. No DataLoader worker can start without it.")
#define DOCTOR_SHM_NOT_WRITABLE_TITLE _("/dev/shm is not writable")
#define DOCTOR_SHM_READ_ONLY          _("Measured: it is mounted read-only.")
#define DOCTOR_SHM_NO_ACCESS          _("Measured: this user may not create files in it.")
#define DOCTOR_SHM_NOT_TMPFS_TITLE    _("/dev/shm is not a tmpfs")
#define DOCTOR_SHM_NOT_TMPFS                                                                                 \
    _("Measured: it is a directory on another file system, so every batch is written to a disk or to the "   \
      "container's writable layer.")
#define DOCTOR_SHM_MISSING_SKIPPED _("/dev/shm could not be read, so its size and use are unknown")

#define DOCTOR_SHM_TOO_SMALL_MEANING    "/dev/shm is too small for the running jobs, or for a common one."
#define DOCTOR_SHM_TOO_SMALL_TITLE_ONE  _("/dev/shm is too small for the running job")
#define DOCTOR_SHM_TOO_SMALL_TITLE_MANY _("/dev/shm is too small for the running jobs")
#define DOCTOR_SHM_BARELY_TITLE_ONE     _("/dev/shm is barely large enough for the running job")
#define DOCTOR_SHM_BARELY_TITLE_MANY    _("/dev/shm is barely large enough for the running jobs")
#define DOCTOR_SHM_IDLE_TITLE           _("/dev/shm has only %s")
/* %d: workers, at least two; %llu: batches; the last %s: a batch. */
#define DOCTOR_SHM_IDLE                                                                                      \
    _("Measured: the size of /dev/shm is %s, and %s of it is used. Estimated: a DataLoader with %d workers " \
      "has up to %llu batches in memory at once, so batches larger than %s do not fit and cause a bus "      \
      "error.")
#define DOCTOR_SHM_ELSEWHERE_SKIPPED_ONE                                                                     \
    _("%zu job keeps its batches in its own /dev/shm, whose size is not visible from here")
#define DOCTOR_SHM_ELSEWHERE_SKIPPED_MANY                                                                    \
    _("%zu jobs keep their batches in their own /dev/shm, whose size is not visible from here")

/* What the running jobs need, sentence by sentence. */
#define DOCTOR_NEED_LARGE     _("Measured: the size of /dev/shm is %s.")
#define DOCTOR_NEED_UNLIMITED _("Measured: /dev/shm has no size limit.")
#define DOCTOR_NEED_OTHERS    _("%s of it is used, but not by the examined jobs.")
#define DOCTOR_NEED_HELD_ONE  _("The job of pid %d holds %s with %u worker.")
#define DOCTOR_NEED_HELD_MANY _("The job of pid %d holds %s with %u workers.")
#define DOCTOR_NEED_LEFT_ONE  _("There is %zu more job.")
#define DOCTOR_NEED_LEFT_MANY _("There are %zu more jobs.")
/* A batch, how many of them (%llu) are in memory, and what the job needs. */
#define DOCTOR_NEED_BATCHES                                                                                  \
    _("Estimated: a batch is %s and up to %llu are in memory at once, so the job needs %s.")
/* What is no batch comes third. */
#define DOCTOR_NEED_BATCHES_OTHER                                                                            \
    _("Estimated: a batch is %s and up to %llu are in memory at once, besides %s of other shared memory, "   \
      "so the job needs %s.")
/* The estimate, and what the job holds. */
#define DOCTOR_NEED_HOLDS                                                                                    \
    _("Estimated: a batch is %s and up to %llu are in memory at once, which makes %s; the job already "      \
      "holds more (%s, measured), so it needs that.")
#define DOCTOR_NEED_HOLDS_OTHER                                                                              \
    _("Estimated: a batch is %s and up to %llu are in memory at once, besides %s of other shared memory, "   \
      "which makes %s; the job already holds more (%s, measured), so it needs that.")
#define DOCTOR_NEED_JOBS          _("Estimated: the jobs together need %s.")
#define DOCTOR_NEED_MARGIN        _("With a margin, this is %s.")
#define DOCTOR_NEED_MARGIN_OTHERS _("With a margin and what other processes use, this is %s.")

/* A batch; %llu: a number of workers; %u: per cent. */
#define DOCTOR_LESS_IN_FLIGHT_FIX                                                                            \
    _("Keep less in flight: batches of %s (estimated) fit with num_workers=%llu and prefetch_factor=1.")
#define DOCTOR_LESS_IN_FLIGHT_SMALLER_FIX                                                                    \
    _("Keep less in flight: batches of %s (estimated) fit with num_workers=%llu and prefetch_factor=1, or "  \
      "with a batch_size of at most %u%% of the current one.")
#define DOCTOR_NO_WORKERS_FIX                                                                                \
    _("Keep less in flight: batches of %s (estimated) do not fit with any worker; use num_workers=0.")
#define DOCTOR_NO_WORKERS_SMALLER_FIX                                                                        \
    _("Keep less in flight: batches of %s (estimated) do not fit with any worker; use num_workers=0, or a "  \
      "batch_size of at most %u%% of the current one.")

#define DOCTOR_SHM_NEED_MEANING    "How much of /dev/shm the running jobs need, where it is large enough."
#define DOCTOR_SHM_NEED_TITLE_ONE  _("/dev/shm is large enough for the running job")
#define DOCTOR_SHM_NEED_TITLE_MANY _("/dev/shm is large enough for the running jobs")
#define DOCTOR_SHM_NEED_SKIPPED_ONE                                                                          \
    _("%zu process may not be read; if it belongs to a job, its need is unknown")
#define DOCTOR_SHM_NEED_SKIPPED_MANY                                                                         \
    _("%zu processes may not be read; the needs of jobs among them are unknown")

#define DOCTOR_SHM_NEARLY_FULL_MEANING "/dev/shm is nearly full."
#define DOCTOR_SHM_NEARLY_FULL_TITLE   _("/dev/shm is %.0f%% full")
#define DOCTOR_SHM_NEARLY_FULL                                                                               \
    _("Measured: %s of %s is used: %s by visible processes, and %s by no process or by processes that are "  \
      "not visible.")
#define DOCTOR_HOLDERS_FIX _("See which processes hold it.")

#define DOCTOR_SHM_INODES_LOW_MEANING "/dev/shm has room for few more files."
#define DOCTOR_SHM_INODES_LOW_TITLE   _("/dev/shm has room for few more files")
#define DOCTOR_SHM_INODES_LOW                                                                                \
    _("Measured: %llu of %llu inodes are used. Each shared tensor takes one, however small it is.")
#define DOCTOR_SHM_INODES_LOW_SKIPPED _("the number of files in /dev/shm is not known")

#define DOCTOR_SHM_ORPHANS_MEANING "Shared memory that no process uses was left behind."
#define DOCTOR_SHM_ORPHANS_TITLE   _("%s of shared memory is used by no process")
#define DOCTOR_SHM_ORPHANS_ONE     _("Measured: %zu segment is open in no process and has not changed for %d s.")
#define DOCTOR_SHM_ORPHANS_MANY                                                                              \
    _("Measured: %zu segments are open in no process and have not changed for %d s.")
/* A size, and the name of a program. */
#define DOCTOR_SHM_ORPHANS_ORIGIN     _("%s of it has names that %s gives to its segments.")
#define DOCTOR_SHM_ORPHANS_OTHER_ONE  _("%zu more segment (%s) of unknown origin is not touched.")
#define DOCTOR_SHM_ORPHANS_OTHER_MANY _("%zu more segments (%s) of unknown origin are not touched.")
#define DOCTOR_SHM_ORPHANS_SKIPPED_ONE                                                                       \
    _("whether %zu segment (%s) is still needed cannot be determined from here; run shmguard ps --segments " \
      "to list it")
#define DOCTOR_SHM_ORPHANS_SKIPPED_MANY                                                                      \
    _("whether %zu segments (%s) are still needed cannot be determined from here; run shmguard ps "          \
      "--segments to list them")

/* The same in a container. */
#define DOCTOR_SHM_ORPHANS_INSIDE_ONE                                                                        \
    _("whether %zu segment (%s) is still needed cannot be determined inside this container; if no other "    \
      "container uses its /dev/shm, run shmguard clean --private --dry-run")
#define DOCTOR_SHM_ORPHANS_INSIDE_MANY                                                                       \
    _("whether %zu segments (%s) are still needed cannot be determined inside this container; if no other "  \
      "container uses its /dev/shm, run shmguard clean --private --dry-run")

#define DOCTOR_SHM_SHARE_MEANING "The batches in flight would take more than a quarter of the memory."
#define DOCTOR_SHM_SHARE_GROUP_TITLE_ONE                                                                     \
    _("Shared memory of the job would take over a quarter of the control group's memory")
#define DOCTOR_SHM_SHARE_GROUP_TITLE_MANY                                                                    \
    _("Shared memory of the jobs would take over a quarter of the control group's memory")
#define DOCTOR_SHM_SHARE_TITLE_ONE                                                                           \
    _("Shared memory of the job would take over a quarter of the machine's memory")
#define DOCTOR_SHM_SHARE_TITLE_MANY                                                                          \
    _("Shared memory of the jobs would take over a quarter of the machine's memory")
/* What there is, what the batches need, and that with a margin, which is also given in per cent. */
#define DOCTOR_SHM_SHARE_GROUP                                                                               \
    _("Measured: the control group may use %s. Estimated: the batches in flight need %s of it, or %s with "  \
      "a margin (%.0f%%); /dev/shm is memory too and counts in full.")
#define DOCTOR_SHM_SHARE                                                                                     \
    _("Measured: the machine has %s of memory. Estimated: the batches in flight need %s of it, or %s with "  \
      "a margin (%.0f%%); /dev/shm is memory too and counts in full.")
#define DOCTOR_SHM_SHARE_SKIPPED _("neither the machine's memory nor a limit of the control group is known")

#define DOCTOR_SHM_HUGE_PAGES_MEANING "/dev/shm uses huge pages, which wastes memory on small tensors."
#define DOCTOR_SHM_HUGE_PAGES_TITLE                                                                          \
    _("/dev/shm uses huge pages: small tensors take more memory than they need")
#define DOCTOR_SHM_HUGE_PAGES                                                                                \
    _("Measured: the mount is %s large and has the option huge=always, which rounds the memory of each "     \
      "tensor up to 2 MiB.")

#define DOCTOR_SHM_OF_POD_MEANING "/dev/shm is an emptyDir in memory: over its sizeLimit, the pod is evicted."
#define DOCTOR_SHM_OF_POD_TITLE   _("/dev/shm is a volume of the pod: an emptyDir in memory")
/* The used and the whole size. */
#define DOCTOR_SHM_OF_POD _("Measured: %s of %s is used, in a tmpfs that the kubelet has mounted.")
#define DOCTOR_SHM_OF_POD_SIZED                                                                              \
    _("At its size, writing fails with a bus error; if the volume's sizeLimit is smaller, the kubelet "      \
      "evicts the pod as soon as the files exceed it.")
#define DOCTOR_SHM_OF_POD_UNSIZED                                                                            \
    _("The tmpfs has the kernel's default size, so it does not hold the files within the volume's "          \
      "sizeLimit: if there is one, the kubelet evicts the pod as soon as they exceed it.")
#define DOCTOR_SHM_OF_POD_COUNTS                                                                             \
    _("The files count against the memory limit of the container that wrote them, and stay when a "          \
      "container restarts.")
#define DOCTOR_SHM_OF_POD_FIX                                                                                \
    _("Set sizeLimit to what the job needs with a margin, and a memory limit that has room for it besides "  \
      "the processes.")
#define DOCTOR_SHM_OF_POD_CLEAN_FIX                                                                          \
    _("If only one container mounts it, remove what a crash has left before the next start: put this "       \
      "before the container's command.")

#define DOCTOR_SHM_OF_JOB_MEANING "/dev/shm belongs to this Slurm job alone (job_container/tmpfs)."
#define DOCTOR_SHM_OF_JOB_TITLE   _("/dev/shm belongs to this Slurm job alone")
/* A size. */
#define DOCTOR_SHM_OF_JOB                                                                                    \
    _("Measured: the job has its own mounts (job_container/tmpfs), and a /dev/shm of %s. Other jobs "        \
      "neither see nor fill it, and its files are removed when the job ends. They count against the memory " \
      "of the job (--mem).")

#define DOCTOR_REMOVE_IPC_MEANING "systemd deletes a user's shared memory at logout."
#define DOCTOR_REMOVE_IPC_TITLE   _("Logging out deletes the shared memory of running trainings")
#define DOCTOR_REMOVE_IPC                                                                                    \
    _("Measured: logind has RemoveIPC=yes, which deletes all files of a user in /dev/shm when their last "   \
      "session ends.")
#define DOCTOR_REMOVE_IPC_ONE     _("%zu segment of the examined jobs would be deleted.")
#define DOCTOR_REMOVE_IPC_MANY    _("%zu segments of the examined jobs would be deleted.")
#define DOCTOR_REMOVE_IPC_NONE    _("The examined jobs have no files there now.")
#define DOCTOR_REMOVE_IPC_SKIPPED _("logind's settings could not be read")

#define DOCTOR_GUARD_UNAVAILABLE_MEANING "shmguard run cannot guard a training here."
#define DOCTOR_GUARD_UNAVAILABLE_TITLE   _("shmguard run cannot guard a training here")
#define DOCTOR_GUARD_UNAVAILABLE         _("Measured: %s.") /* a reason */
#define DOCTOR_GUARD_UNAVAILABLE_WHY     _("The reason is unknown.")

/* --- Memory and disk ------------------------------------------------------------------------------------ */

#define DOCTOR_MEMORY_LOW_MEANING "The machine is nearly out of memory."
#define DOCTOR_MEMORY_LOW_TITLE   _("The machine is nearly out of memory")
#define DOCTOR_MEMORY_LOW                                                                                    \
    _("Measured: %s of %s is available (%.1f%%); shared memory takes %s, and %s of swap is free.")
#define DOCTOR_MEMORY_LOW_FIX _("See which processes use it.")
/* By the Python of the jobs: not known, 3.12 to 3.14, another one (3.%u). */
#define DOCTOR_COPIES_FREEZE                                                                                 \
    N_("If workers copy a dataset of Python objects (shmguard report says so: copy-on-write), run the job "  \
       "under the guard: it makes the dataset immortal before workers are forked.")
#define DOCTOR_COPIES_SHARE                                                                                  \
    _("If workers copy a dataset of Python objects (shmguard report says so: copy-on-write), keep it in a "  \
      "shmguard.SharedList or SharedDict, or in arrays. Python 3.%u cannot make it immortal; 3.12 to 3.14 "  \
      "can.")
#define DOCTOR_COPIES_FIX                                                                                    \
    N_("If workers copy a dataset of Python objects (shmguard report says so: copy-on-write), run the job "  \
       "under the guard with Python 3.12 to 3.14, which makes the dataset immortal; with another Python, "   \
       "or "                                                                                                 \
       "workers that are not forked, keep it in a shmguard.SharedList or SharedDict, or in arrays.")
#define DOCTOR_MEMORY_LOW_SKIPPED _("the machine's free memory is not known")

#define DOCTOR_CGROUP_MEANING "The control group is near its memory limit."
#define DOCTOR_CGROUP_TITLE   _("The control group is near its memory limit")
#define DOCTOR_CGROUP                                                                                        \
    _("Measured: %s of %s is used, not counting file pages that the kernel can drop; %s of it is shared "    \
      "memory.")
#define DOCTOR_CGROUP_LIMITED_BY   _("The limit is that of %s.") /* a control group */
#define DOCTOR_CGROUP_NAMELESS     _("Which control group sets the limit is unknown.")
#define DOCTOR_CGROUP_SKIPPED      _("no memory control group is visible")
#define DOCTOR_CGROUP_USED_SKIPPED _("the memory use of the control group is not known")

#define DOCTOR_MEMORY_PRESSURE_MEANING "Processes wait for memory."
#define DOCTOR_MEMORY_PRESSURE_TITLE   _("Processes wait for memory")
#define DOCTOR_MEMORY_PRESSURE                                                                               \
    _("Measured: in the last minute, at least one process waited for memory %.0f%% of the time, and all of " \
      "them at once %.0f%%.")
#define DOCTOR_MEMORY_PRESSURE_SKIPPED _("the kernel does not report how long tasks wait for memory (PSI)")

#define DOCTOR_SWAP_LOW_MEANING    "Swap is nearly full, or memory is short and there is no swap."
#define DOCTOR_SWAP_LOW_TITLE      _("Swap is nearly full")
#define DOCTOR_SWAP_LOW_NONE_TITLE _("Memory is getting short, and there is no swap")
#define DOCTOR_SWAP_LOW            _("Measured: %s of %s of swap and %s of %s of memory are free.")
#define DOCTOR_SWAP_LOW_SKIPPED    _("the amount of free swap is not known")

#define DOCTOR_OOM_MEANING "The kernel killed processes to free memory."
/* The name of a process and its pid; then for how long it has been dead. */
#define DOCTOR_OOM_TITLE          _("The kernel killed %s (pid %d) %s ago to free memory")
#define DOCTOR_OOM_TIMELESS_TITLE _("The kernel killed %s (pid %d) at an unknown time to free memory")
#define DOCTOR_OOM_GROUP          _("Kernel log: the control group %s was at its limit.")
#define DOCTOR_OOM_OTHER_GROUP    _("Kernel log: the control group %s was at its limit, which is not the job's.")
#define DOCTOR_OOM_NAMELESS_GROUP _("Kernel log: a control group was at its limit (which one is unknown).")
#define DOCTOR_OOM_MACHINE        _("Kernel log: the machine was out of memory.")
#define DOCTOR_OOM_UNKNOWN                                                                                   \
    _("Kernel log: whether the control group or the machine was out of memory is unknown.")
#define DOCTOR_OOM_VICTIM        _("The process had %s, of which %s was shared memory.")
#define DOCTOR_OOM_VICTIM_LEAST  _("The process had at least %s, of which %s was shared memory.")
#define DOCTOR_OOM_VICTIM_SHARED _("The process had %s; how much of it was shared memory is unknown.")
#define DOCTOR_OOM_VICTIM_SHARED_LEAST                                                                       \
    _("The process had at least %s; how much of it was shared memory is unknown.")
#define DOCTOR_OOM_VICTIM_UNKNOWN    _("How much memory the process had is unknown.")
#define DOCTOR_OOM_MORE              _("The log has %zu kills in total.") /* at least two */
#define DOCTOR_OOM_COUNT_GROUP_TITLE _("The kernel has killed processes of this control group to free memory")
#define DOCTOR_OOM_COUNT_TITLE       _("The kernel has killed processes of this machine to free memory")
#define DOCTOR_OOM_COUNT_GROUP_ONE   _("Measured: %llu process was killed since the control group was created.")
#define DOCTOR_OOM_COUNT_GROUP_MANY                                                                          \
    _("Measured: %llu processes were killed since the control group was created.")
#define DOCTOR_OOM_COUNT_ONE  _("Measured: %llu process was killed since the machine started.")
#define DOCTOR_OOM_COUNT_MANY _("Measured: %llu processes were killed since the machine started.")
#define DOCTOR_OOM_FORGOTTEN  _("Unknown: which and when, because the kernel log no longer shows it.")
#define DOCTOR_OOM_UNREADABLE                                                                                \
    _("Unknown: which and when, because the kernel log may not be read (%s).") /* an error */
#define DOCTOR_OOM_LOG_FIX      _("Find the killed process in the kernel log.")
#define DOCTOR_OOM_HOST_LOG_FIX _("Ask an administrator which process the host's kernel log names.")
#define DOCTOR_OOM_SKIPPED                                                                                   \
    _("the kernel log may not be read (%s), and no counter of kills is visible") /* an error */

#define DOCTOR_DISK_LOW_MEANING      "There is little space where checkpoints are written."
#define DOCTOR_DISK_LOW_TITLE        _("There is little disk space where checkpoints are written")
#define DOCTOR_DISK_LOW_INODES_TITLE _("There is room for few more files where checkpoints are written")
/* The last %s is a path. */
#define DOCTOR_DISK_LOW                                                                                      \
    _("Measured: %s of %s is available at %s, the working directory. Assumed: checkpoints are written "      \
      "there.")
#define DOCTOR_DISK_LOW_INODES                                                                               \
    _("Measured: %s of %s and %llu of %llu inodes are available at %s, the working directory. Assumed: "     \
      "checkpoints are written there.")
#define DOCTOR_DISK_LOW_FIX           _("Write checkpoints somewhere else, or keep fewer of them.")
#define DOCTOR_DISK_USAGE_FIX         _("See what takes the space.")
#define DOCTOR_DISK_LOW_SKIPPED       _("the file system of the working directory could not be read")
#define DOCTOR_DISK_READ_ONLY_SKIPPED _("the working directory is on a file system that cannot store files")

/* --- The jobs ------------------------------------------------------------------------------------------- */

#define DOCTOR_OPEN_FILES_LOW_MEANING                                                                        \
    "A training process is nearly out of file descriptors, or the limit is low."
#define DOCTOR_OPEN_FILES_LOW_TITLE _("A training process is nearly out of file descriptors")
#define DOCTOR_OPEN_FILES_LOW                                                                                \
    _("Measured: pid %d (%s) has %u of %llu files open. With the file_descriptor strategy, each shared "     \
      "tensor takes one.")
#define DOCTOR_OPEN_FILES_IDLE_TITLE _("The limit of open files is low")
#define DOCTOR_OPEN_FILES_IDLE                                                                               \
    _("Measured: a process started here may have %llu files open, where %d is usual. With the "              \
      "file_descriptor strategy, each shared tensor takes one.")
#define DOCTOR_OPEN_FILES_FIX          _("Raise the limit of the running processes now.")
#define DOCTOR_OPEN_FILES_SKIPPED_ONE  _("the open files of %zu training process may not be read")
#define DOCTOR_OPEN_FILES_SKIPPED_MANY _("the open files of %zu training processes may not be read")
#define DOCTOR_OPEN_FILES_IDLE_SKIPPED _("the limit of open files is not known")

#define DOCTOR_MAX_MAP_COUNT_MEANING "A training process nearly has as many mappings as the kernel allows."
#define DOCTOR_MAX_MAP_COUNT_TITLE   _("A training process has nearly as many mappings as the kernel allows")
#define DOCTOR_MAX_MAP_COUNT                                                                                 \
    _("Measured: pid %d (%s) has %llu mappings, and vm.max_map_count is %llu. Each shared tensor takes "     \
      "one.")
#define DOCTOR_MAX_MAP_COUNT_SKIPPED _("vm.max_map_count could not be read")
#define DOCTOR_MAPS_SKIPPED          _("the mappings of the training processes could not be counted")

#define DOCTOR_WORKERS_MEANING "There are more DataLoader workers than CPUs."
#define DOCTOR_WORKERS_TITLE   _("There are more DataLoader workers than CPUs")
/* Workers, at least two, and trainers. */
#define DOCTOR_WORKERS_ONE  _("Measured: %u workers of %zu trainer are running.")
#define DOCTOR_WORKERS_MANY _("Measured: %u workers of %zu trainers are running.")
#define DOCTOR_WORKERS_FIX                                                                                   \
    _("Use num_workers=%.0f for each trainer, unless the workers mostly wait for a disk or the network.")

#define DOCTOR_THREADS_MEANING "The training processes have many more threads than CPUs."
#define DOCTOR_THREADS_TITLE   _("The training processes have many more threads than CPUs")
#define DOCTOR_THREADS_ONE     _("Measured: there are %llu threads in %llu process.")
#define DOCTOR_THREADS_MANY    _("Measured: there are %llu threads in %llu processes.")
#define DOCTOR_THREADS_POOLS_ONE                                                                             \
    _("Estimated: %llu thread belongs to a pool (OpenMP, MKL, OpenBLAS, OpenCV). Unknown: how many run at "  \
      "once.")
#define DOCTOR_THREADS_POOLS_MANY                                                                            \
    _("Estimated: %llu threads belong to pools (OpenMP, MKL, OpenBLAS, OpenCV). Unknown: how many run at "   \
      "once.")
#define DOCTOR_THREADS_FIX                                                                                   \
    _("Start the training with one thread per pool; PyTorch's workers need no more. The setting also "       \
      "applies to the trainer: a trainer that computes on the CPU becomes slower; give it more threads.")
#define DOCTOR_THREADS_OPENCV_FIX                                                                            \
    _("If the dataset uses OpenCV, switch its thread pool off at the top of the script.")

#define DOCTOR_FORK_CUDA_MEANING "Workers were forked from a trainer that uses CUDA."
#define DOCTOR_FORK_CUDA_TITLE   _("Workers were forked from a trainer that uses CUDA")
#define DOCTOR_FORK_CUDA_ONE                                                                                 \
    _("Measured: %zu worker was forked from a trainer that has a CUDA device open. This works as long as "   \
      "the dataset's code does not use CUDA, which cannot be initialised again in a forked process.")
#define DOCTOR_FORK_CUDA_MANY                                                                                \
    _("Measured: %zu workers were forked from a trainer that has a CUDA device open. This works as long as " \
      "the dataset's code does not use CUDA, which cannot be initialised again in a forked process.")
#define DOCTOR_FORK_CUDA_FIX                                                                                 \
    _("Keep CUDA out of the dataset and of collate_fn, or spawn the workers: give the DataLoader "           \
      "multiprocessing_context='spawn'.")

#define DOCTOR_WORKERS_ARE_THREADS_MEANING "DataLoader workers are threads: there is nothing to guard."
#define DOCTOR_WORKERS_ARE_THREADS_TITLE   _("DataLoader workers are threads of the training process")
#define DOCTOR_WORKERS_ARE_THREADS_ONE                                                                       \
    _("Measured: pid %d has %u thread that PyTorch names as a DataLoader worker.")
#define DOCTOR_WORKERS_ARE_THREADS_MANY                                                                      \
    _("Measured: pid %d has %u threads that PyTorch names as DataLoader workers.")
#define DOCTOR_WORKERS_ARE_THREADS                                                                           \
    _("They share its memory, so their batches take nothing of /dev/shm, and there is nothing to guard.")
#define DOCTOR_WORKERS_ARE_ALSO_PROCESSES                                                                    \
    _("They share its memory, so their batches take nothing of /dev/shm; those of its worker processes do.")

#define DOCTOR_WORKERS_CUDA_MEANING "DataLoader workers use the GPU themselves."
#define DOCTOR_WORKERS_CUDA_TITLE   _("DataLoader workers use the GPU themselves")
#define DOCTOR_WORKERS_CUDA_ONE                                                                              \
    _("Measured: %zu spawned worker has a CUDA device open. Its context takes memory on the GPU; how much "  \
      "is unknown.")
#define DOCTOR_WORKERS_CUDA_MANY                                                                             \
    _("Measured: %zu spawned workers have a CUDA device open. Each has its own context, which takes memory " \
      "on the GPU; how much is unknown.")
#define DOCTOR_WORKERS_CUDA_FIX                                                                              \
    _("Load data on the CPU in the workers and move batches to the GPU in the trainer, with "                \
      "pin_memory=True.")

/* What workers have, and what there is. */
#define DOCTOR_COPIES_MEASURED_ONE  _("Measured: %zu worker has %s of private memory, out of %s.")
#define DOCTOR_COPIES_MEASURED_MANY _("Measured: %zu workers together have %s of private memory, out of %s.")
#define DOCTOR_COPIES_ESTIMATED_ONE                                                                          \
    _("Estimated from resident memory: %zu worker has %s of private memory, out of %s.")
#define DOCTOR_COPIES_ESTIMATED_MANY                                                                         \
    _("Estimated from resident memory: %zu workers together have %s of private memory, out of %s.")
#define DOCTOR_COPIES_SKIPPED_ONE  _("the private memory of %zu worker was not measured")
#define DOCTOR_COPIES_SKIPPED_MANY _("the private memory of %zu workers was not measured")

#define DOCTOR_SPAWN_COPIES_MEANING                                                                          \
    "Spawned workers have much private memory: each has a copy of the dataset."
#define DOCTOR_SPAWN_COPIES_TITLE _("Spawned workers have much private memory")
#define DOCTOR_SPAWN_COPIES       _("With spawn and forkserver, each worker has its own copy of the dataset.")
#define DOCTOR_SPAWN_COPIES_FIX                                                                              \
    _("Let the dataset open its data in the worker (memory-mapped files, a database) instead of carrying "   \
      "it along, or use fewer workers.")

#define DOCTOR_FORK_COPIES_MEANING                                                                           \
    "Forked workers have much private memory, often copies of the dataset made by reference counts."
#define DOCTOR_FORK_COPIES_TITLE _("Forked workers have much private memory")
#define DOCTOR_FORK_COPIES                                                                                   \
    _("Often it is the dataset, copied page by page as reference counts change; this growth ends at the "    \
      "size of the dataset. A recording shows whether it grows without end.")
#define DOCTOR_FORK_COPIES_FIX                                                                               \
    _("Keep the dataset's index in NumPy arrays or tensors instead of lists and dicts of Python objects, "   \
      "whose reference counts make pages private.")
#define DOCTOR_FORK_COPIES_FREEZE                                                                            \
    N_("Run the job under the guard: it makes the dataset's Python objects immortal before workers are "     \
       "forked, and reading those makes no page private.")
#define DOCTOR_FORK_COPIES_SHARE                                                                             \
    _("Or keep the dataset's records in a shmguard.SharedList or SharedDict: there is one copy for all "     \
      "workers.")

/* --- The page of doctor --------------------------------------------------------------------------------- */

#define DOCTOR_LABEL_ENVIRONMENT _("environment")
#define DOCTOR_LABEL_GUARD       _("guard")
#define DOCTOR_LABEL_MEMORY      _("memory")
#define DOCTOR_LABEL_GROUP       _("control group")
#define DOCTOR_LABEL_LIMITS      _("limits")

/* The facts about the environment are a list: these, with commas between them. */
#define DOCTOR_NO_CONTAINER      _("no container")
#define DOCTOR_UNKNOWN_CONTAINER _("container of unknown kind")
#define DOCTOR_SLURM             _("in a Slurm job")
#define DOCTOR_OWN_SHM           _("with its own /dev/shm")
#define DOCTOR_ROOT              _("root")
#define DOCTOR_NOT_ROOT          _("not root")
#define DOCTOR_MAY_RESIZE        _("may resize /dev/shm")
#define DOCTOR_MAY_NOT_RESIZE    _("may not resize /dev/shm")

#define DOCTOR_GUARD_READY     _("ready")
#define DOCTOR_GUARD_NOT_READY _("not ready: %s") /* a reason */

#define DOCTOR_MEMORY         _("%s, %s available, %s of swap free")
#define DOCTOR_GROUP_NONE     _("not visible")
#define DOCTOR_GROUP_NO_LIMIT _("no memory limit")
#define DOCTOR_GROUP_LIMIT    _("limit %s, %s used")

/* Limits of open files (soft and hard) and of mappings, as numbers. */
#define DOCTOR_LIMITS      _("open files %s (hard limit %s), mappings %s")
#define DOCTOR_LIMITS_CPUS _("open files %s (hard limit %s), mappings %s, CPUs %.4g")
#define DOCTOR_UNLIMITED   _("unlimited")

#define DOCTOR_SKIPPED       _("Could not check:")
#define DOCTOR_LABEL_VERDICT _("verdict: ")
#define DOCTOR_CRITICAL_ONE  _("%zu critical finding")
#define DOCTOR_CRITICAL_MANY _("%zu critical findings")
#define DOCTOR_WARNING_ONE   _("%zu warning")
#define DOCTOR_WARNING_MANY  _("%zu warnings")
#define DOCTOR_NOTE_ONE      _("%zu note")
#define DOCTOR_NOTE_MANY     _("%zu notes")

/* --- Whether a segment is an orphan: why, or why not ---------------------------------------------------- */

#define ORPHAN_WHY_HELD      _("held by pid %d")
#define ORPHAN_WHY_HELD_MANY _("held by pid %d and other processes")
#define ORPHAN_WHY_FUTURE    _("its time of change lies in the future")
#define ORPHAN_WHY_CHANGED   _("changed %s ago; try again when a minute has passed") /* a time */
#define ORPHAN_WHY_INVISIBLE                                                                                 \
    _("processes that are not visible from here may share this /dev/shm and open it by name")
#define ORPHAN_WHY_OPEN       _("open in a process that does not show it")
#define ORPHAN_WHY_CANNOT_ASK _("the kernel tells only its owner or root whether a process has it open")
#define ORPHAN_WHY_NO_LEASE                                                                                  \
    _("the kernel tells only its owner (uid %u) whether a process has it open: root has no CAP_LEASE here")
#define ORPHAN_WHY_SEMAPHORE _("a named semaphore may be opened again by its program")
#define ORPHAN_WHY_MANAGER   _("torch_shm_manager (pid %d) is alive and may still hand it out")
#define ORPHAN_WHY_MAKER     _("its creator (pid %d) is alive and may still hand it out")
#define ORPHAN_WHY_YES       _("no process holds it, unchanged for %s") /* a time */

/* --- Before a run: a threat without a full stop, and what to do about it -------------------------------- */

#define PREFLIGHT_SHM_MISSING _("/dev/shm does not exist, and DataLoader workers cannot start without it")
#define PREFLIGHT_SHM_NOT_WRITABLE                                                                           \
    _("/dev/shm is not writable, and DataLoader workers cannot start without it")
#define PREFLIGHT_SHM_NOT_TMPFS   _("/dev/shm is not a tmpfs: batches would be written to a disk")
#define PREFLIGHT_SHM_TOO_SMALL   _("/dev/shm has only %s for all batches in flight")
#define PREFLIGHT_SHM_NEARLY_FULL _("/dev/shm has only %s free")
#define PREFLIGHT_SHM_NEARLY_FULL_GUARDED                                                                    \
    _("/dev/shm has only %s free; tensors do not need it, but NCCL and Python's queues do")
#define PREFLIGHT_SHM_INODES_ONE  _("/dev/shm has room for only %llu more file")
#define PREFLIGHT_SHM_INODES_MANY _("/dev/shm has room for only %llu more files")
#define PREFLIGHT_MEMORY_LOW      _("only %s of the machine's %s of memory is available")
#define PREFLIGHT_CGROUP          _("the control group has used %s of its %s of memory")
#define PREFLIGHT_PRESSURE        _("processes here waited for memory during %.0f%% of the last minute")
#define PREFLIGHT_SWAP_LOW        _("memory is short and swap is nearly full: only %s is free")
#define PREFLIGHT_OPEN_FILES_ONE  _("a process may have only %llu file open")
#define PREFLIGHT_OPEN_FILES_MANY _("a process may have only %llu files open")
#define PREFLIGHT_DISK_LOW        _("only %s is free on the disk of the working directory, where checkpoints may go")
#define PREFLIGHT_DISK_LOW_INODES                                                                            \
    _("only %s and %llu inodes are free on the disk of the working directory, where checkpoints may go")
#define PREFLIGHT_BUDGET      _("the budget is %s, but only %s of memory is left")
#define PREFLIGHT_PRIVATE_SHM _("the job's /dev/shm may take %s, but only %s of memory is left")

#define PREFLIGHT_REMOVE_NO_GUARD     _("Remove --no-guard: the guard keeps tensors out of it.")
#define PREFLIGHT_USE_SHM_AUTO        _("Use --shm auto to give the job its own.")
#define PREFLIGHT_RUN_DOCTOR          _("Run shmguard doctor to see what can be done.")
#define PREFLIGHT_SMALLER_BUDGET      _("Use --budget auto or a smaller size.")
#define PREFLIGHT_SMALLER_PRIVATE_SHM _("Use --shm auto or a smaller size.")
