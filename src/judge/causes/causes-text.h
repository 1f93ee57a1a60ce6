/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue of the end of a job: what happened, what that rests on, what to do, and what people get
 * wrong.
 *
 * WHO_* name a process; they begin a sentence, those with _INSIDE stand within one. A %s at the beginning of
 * a sentence is one of them. Sizes come with their units.
 */
#pragma once

#define WHO_UNKNOWN              "A process of the job"
#define WHO_COMMAND              "The command (pid %d)"
#define WHO_WORKER               "DataLoader worker %d"
#define WHO_TRAINER              "Trainer %d"
#define WHO_PROCESS              "Process %d"
#define WHO_PROCESS_NAMED        "Process %d (%s)"
#define WHO_COMMAND_INSIDE       "the command (pid %d)"
#define WHO_TRAINER_INSIDE       "trainer %d"
#define WHO_PROCESS_INSIDE       "process %d"
#define WHO_PROCESS_NAMED_INSIDE "process %d (%s)"
#define WHO_TEXT                 "A process" /* of which only the error output is known */

/* --- The end of the command --- */

#define END_NOT_STARTED    "The command could not be started."
#define END_GOOD           "The command succeeded."
#define END_EXITED         "%s exited with code %d." /* the name of the program */
#define END_EXITED_COMMAND "The command exited with code %d."
#define END_LEFT           "%s exited with code %d by itself; no signal ended it."
#define END_STOPPED        "The command was asked to stop (%s), and did." /* SIGTERM */
#define END_INTERRUPTED    "The command was interrupted (%s)."            /* SIGQUIT */
#define END_CTRL_C         "The command was interrupted (%s, as from Ctrl-C)."
#define END_BEFORE         "%s Before that: %s" /* two summaries */

#define EVIDENCE_EXIT_CODE     "The exit code was %d."
#define EVIDENCE_EXIT_STANDS   "The exit code was %d, which stands for %s in a child process." /* SIGKILL */
#define EVIDENCE_THEN_EXITED   "The command then exited with code %d."
#define EVIDENCE_ENDED         "The command was ended by %s." /* a signal */
#define EVIDENCE_PASSED_ON     "shmguard was sent %s, and passed it on."
#define EVIDENCE_HAD_PASSED_ON "shmguard had been sent %s, and had passed it on."
#define EVIDENCE_SAID          "The error output says: %s"
#define EVIDENCE_NO_CRASH      "No process of the job had crashed before."

/* --- Limits --- */

#define EVIDENCE_FILES  "One process had %llu open files; its limit is %llu."
#define EVIDENCE_MAPS   "One process had %llu mappings; its limit is %llu."
#define EVIDENCE_SHM    "/dev/shm had %s free of %s when it was fullest (sampled once a second)."
#define EVIDENCE_SHM_AT "/dev/shm had %s free of %s at that moment."

#define LIMIT_SHM_WRITE                                                                                      \
    "A write failed for lack of space while /dev/shm was full: most likely shared memory ran out."
#define LIMIT_SHM   "/dev/shm was full, and nothing else explains the end."
#define LIMIT_FILES "A process was at its limit of open files, and nothing else explains the end."
#define LIMIT_MAPS                                                                                           \
    "A process was at the kernel's limit of memory mappings (vm.max_map_count), and nothing else explains "  \
    "the end."
#define LIMIT_MAPS_MEMORY                                                                                    \
    "A process got no more memory because it was at the kernel's limit of memory mappings "                  \
    "(vm.max_map_count): it holds too many shared tensors at once."
#define LIMIT_MAPS_DOUBTFUL                                                                                  \
    "A segment could not be mapped because of the limit of mappings (vm.max_map_count), a limit on address " \
    "space (ulimit -v), or a lack of memory. The number of mappings seen was far below its limit."
#define HANG_TIMEOUT                                                                                         \
    "No worker delivered a batch within the DataLoader's timeout, and none had crashed: a worker hangs or "  \
    "is too slow."

/* --- Deaths --- */

/* A process, a signal. */
#define DEATH_BY_SIGNAL      "%s was ended by %s."
#define DEATH_BY_SENT_SIGNAL "%s got %s from process %d."

/* A process, a signal, an address; then an offset, a path and the size of the file. */
#define FAULT_EVIDENCE            "%s got %s at address 0x%llx."
#define FAULT_EVIDENCE_NOT_MAPPED "%s got %s at address 0x%llx, where nothing is mapped."
#define FAULT_EVIDENCE_OWN        "%s got %s at address 0x%llx, in its own memory (heap, stack)."
#define FAULT_EVIDENCE_FILE       "%s got %s at address 0x%llx, at offset %llu of %s."
#define FAULT_EVIDENCE_FILE_SIZE  "%s got %s at address 0x%llx, at offset %llu of %s, which has %llu bytes."
#define FAULT_EVIDENCE_DELETED                                                                               \
    "%s got %s at address 0x%llx, at offset %llu of %s (deleted), which has %llu bytes."
#define FAULT_UNKNOWN_MEMFD  "a memfd" /* in place of a path */
#define FAULT_UNKNOWN_FILE   "a file"
#define FAULT_UNKNOWN_MAPPED "a mapped file"

#define EVIDENCE_LAST_SAMPLE "In its last sample it used %s of memory, %s of it shared."

#define BUS_SHM "%s died of a bus error: /dev/shm was full when it wrote there."
#define BUS_SHM_ROOM                                                                                         \
    "%s died of a bus error in a segment of /dev/shm. Most likely /dev/shm was full for a moment; it had "   \
    "room again when it was checked."
#define BUS_FILE_LIKELY                                                                                      \
    "%s died of a bus error in %s: most likely the file was truncated while it was mapped. Shared memory "   \
    "is not involved."
#define BUS_FILE_BEYOND                                                                                      \
    "%s read or wrote %s beyond its end: the file was truncated while it was mapped. Shared memory is not "  \
    "involved."
#define BUS_FILE_INSIDE                                                                                      \
    "%s died of a bus error inside %s: the storage failed, its file system was full, or the file was "       \
    "truncated for a moment."
#define BUS_SEGMENT_BEYOND                                                                                   \
    "%s used a shared segment beyond its end: the segment was truncated while it was mapped. This is not a " \
    "lack of shared memory."
#define BUS_MEMFD                                                                                            \
    "%s died of a bus error in a memfd, inside its size. Running out of memory would have ended in "         \
    "SIGKILL; a failure of huge pages, swap or RAM ends like this."
#define BUS_OWN                                                                                              \
    "%s died of a bus error in its own memory. Neither a full /dev/shm nor a file causes that; a failure "   \
    "of huge pages, swap or RAM does."
#define BUS_HARDWARE   "%s died of a hardware memory error. Report this to the administrator of the machine."
#define BUS_WHILE_FULL "%s died of a bus error while /dev/shm was full: most likely it wrote a batch there."
#define BUS_PROBABLY_SHM                                                                                     \
    "%s died of a bus error: most likely /dev/shm was full for a moment. A mapped file that is truncated "   \
    "has the same effect."
#define BUS_UNKNOWN                                                                                          \
    "%s died of a bus error (SIGBUS). Whether shared memory ran out or a mapped file was truncated could "   \
    "not be determined."
#define EVIDENCE_GROUP_USED "The control group used at most %s of its limit of %s."

#define KILL_GROUP                                                                                           \
    "%s was killed by the kernel because its control group (the container or job) was at its memory limit."
#define KILL_MACHINE "%s was killed by the kernel because the machine was out of memory."
#define KILL_OUTSIDE                                                                                         \
    "%s was killed from outside (SIGKILL): by a person, a scheduler or another program. Nothing shows a "    \
    "lack of memory."
#define KILL_UNKNOWN                                                                                         \
    "%s was killed (SIGKILL): by a person, a scheduler, or the kernel for lack of memory. Which of these "   \
    "it "                                                                                                    \
    "was could not be determined."
#define EVIDENCE_KILL_LOGGED "The kernel's log says that its OOM killer killed process %d."
#define EVIDENCE_GROUP_KILLS_ONE                                                                             \
    "The OOM killer killed %llu process in the job's control group while the job ran."
#define EVIDENCE_GROUP_KILLS_MANY                                                                            \
    "The OOM killer killed %llu processes in the job's control group while the job ran."
#define EVIDENCE_MACHINE_KILLS_ONE  "The OOM killer killed %llu process on this machine while the job ran."
#define EVIDENCE_MACHINE_KILLS_MANY "The OOM killer killed %llu processes on this machine while the job ran."
#define EVIDENCE_NO_KILLS           "The OOM killer killed no process while the job ran."
#define EVIDENCE_KILLS_ELSEWHERE                                                                             \
    "The OOM killer killed a process on this machine, but none in the job's control group."
#define EVIDENCE_KILLS_OTHERS "The kernel's log has OOM kills, but of other processes."
#define EVIDENCE_KILLS_UNKNOWN                                                                               \
    "The OOM killer's counters could not be read, so the kernel may have killed it for lack of memory."
#define EVIDENCE_GROUP_LIMIT "The control group's memory limit is %s."
#define EVIDENCE_GROUP_LIMIT_USED                                                                            \
    "The control group's memory limit is %s; at most %s was in use (sampled once a second)."
#define EVIDENCE_AVAILABLE "The machine's available memory fell to %s (sampled once a second)."

#define CRASH_NATIVE                                                                                         \
    "%s crashed in native code (SIGSEGV): a bug in a library or extension, not a lack of memory."
#define CRASH_NULL                                                                                           \
    "%s crashed in native code (SIGSEGV, a null pointer): a bug in a library or extension, not a lack of "   \
    "memory."
#define TERM_COMMAND   "%s was asked to stop (SIGTERM), and did. The sender could not be determined."
#define TERM_PROCESS   "%s was asked to stop (SIGTERM), and did. A launcher, a scheduler or a person does that."
#define SIGNAL_SENT    "%s was ended by %s, which process %d sent. It did not crash by itself."
#define SIGNAL_ABORTED "%s aborted itself (SIGABRT). Its last output may say why."
#define SIGNAL_DIVIDED                                                                                       \
    "%s divided an integer by zero in native code (SIGFPE): a bug in a library or extension, or an empty "   \
    "input to it. It is not a lack of memory."
#define SIGNAL_ILLEGAL                                                                                       \
    "%s used an instruction that this CPU does not support (SIGILL): a package was built for another CPU."
#define SIGNAL_INTERRUPTED "%s was interrupted (SIGINT, as from Ctrl-C)."
#define SIGNAL_HANGUP      "%s was ended because its terminal or session went away (SIGHUP)."
#define SIGNAL_CPU_TIME    "%s used up its limit of CPU time (SIGXCPU, ulimit -t)."
#define SIGNAL_FILE_SIZE   "%s wrote a file beyond its size limit (SIGXFSZ, ulimit -f)."
#define SIGNAL_FORBIDDEN   "%s made a system call that is forbidden here (SIGSYS, seccomp)."
#define SIGNAL_PIPE        "%s wrote to a pipe that no process reads any more (SIGPIPE)."

/* --- Refused requests for shared memory. Each text is a whole sentence; several follow each other. --- */

#define BUDGET_NO_MEMORY                                                                                     \
    "The job asked for more shared memory than the machine or its control group had at that moment. The "    \
    "guard refused it, so that no process was killed."
#define BUDGET_TOO_LARGE                                                                                     \
    "A tensor of %s is larger than the whole budget for shared memory, %s, and was refused."
#define REFUSED_ONE                "%llu request for shared memory was refused."
#define REFUSED_MANY               "%llu requests for shared memory were refused."
#define LOST_ONE                   "%llu request for shared memory was refused, and batches were lost."
#define LOST_MANY                  "%llu requests for shared memory were refused, and batches were lost."
#define REFUSED_NO_MEMORY          "The machine or its control group had no memory left."
#define REFUSED_TOO_LARGE          "A tensor of %s is larger than the whole budget of %s."
#define REFUSED_MAYBE_LOST         "No shared tensor was made after that, so batches may be missing."
#define REFUSED_EXIT_CODE          "The command exited with code 0 all the same; shmguard exits with 1."
#define EVIDENCE_REFUSED_ONE       "1 request for %s of shared memory was refused."
#define EVIDENCE_REFUSED_MANY      "%llu requests for shared memory were refused, the largest for %s."
#define EVIDENCE_REFUSED_FROM      "It came from %s."   /* WHO_*_INSIDE */
#define EVIDENCE_REFUSED_BY        "%llu came from %s." /* how many of them; WHO_*_INSIDE */
#define EVIDENCE_REFUSED_BY_OTHERS "The rest came from other processes."
#define EVIDENCE_BUDGET            "The job's budget was %s."
#define EVIDENCE_BUDGET_MACHINE                                                                              \
    "The job's budget was %s, three quarters of the memory that the machine could spare at the start."
#define EVIDENCE_BUDGET_GROUP                                                                                \
    "The job's budget was %s, three quarters of the memory that its control group could spare at the start."
#define EVIDENCE_BUDGET_SLURM                                                                                \
    "The job's budget was %s, three quarters of the memory that Slurm has allotted to the task."

/* --- What to do --- */

#define FIX_DROP_NO_GUARD_SHM                                                                                \
    "Run it without --no-guard: the batches are then kept outside /dev/shm, whose size no longer matters."
#define FIX_DROP_NO_GUARD_NAMES                                                                              \
    "Run it without --no-guard: the supervisor then keeps the names, and no other program can delete them."
#define FIX_FIND_WHAT_FILLS                                                                                  \
    "The guard keeps PyTorch's tensors out of /dev/shm, so something else fills it (NCCL, other jobs, "      \
    "leftovers): find out what while the job runs."
#define FIX_MORE_INODES "Ask for a /dev/shm that is mounted with more inodes (option nr_inodes)."
#define FIX_DOCTOR_LARGE                                                                                     \
    "Run `shmguard doctor` while the job runs: /dev/shm is large on this machine, so either the log comes "  \
    "from another machine, or the job has a lot in flight."
#define FIX_DOCTOR_MEASURE                                                                                   \
    "Run `shmguard doctor` on the machine of the job while it runs: it measures how much the job needs. A "  \
    "log does not show that; %s is a first estimate."
#define FIX_DOCTOR_KILLS                                                                                     \
    "Run `shmguard doctor` on the machine where it happened: it looks for OOM kills in the kernel's log."
#define FIX_LARGER_SHM "Start the container or job with a larger /dev/shm."
#define FIX_REMOUNT    "If it runs on a plain machine, make /dev/shm larger there, until the next boot."
#define FIX_EMPTYDIR                                                                                         \
    "Raise the sizeLimit of that emptyDir volume, and limits.memory of the container, against which its "    \
    "contents count."
#define FIX_SEE_HOLDERS   "See which processes hold shared memory now."
#define FIX_SEE_LEFTOVERS "See whether dead jobs left segments behind that can be removed."
#define FIX_NCCL_NO_SHM                                                                                      \
    "Or let NCCL do without shared memory, which is slower where GPUs cannot reach each other directly."
#define FIX_KEEP_FILES                                                                                       \
    "Do not change or truncate files while a training has them mapped: write a new file and rename it."
#define FIX_COMPARE_SIZES "Compare the sizes of the dataset's files with what they should be."
#define FIX_COMPARE_SIZE  "Compare the file's size with what it should be, and look for I/O errors."
#define FIX_MAPPED_DISK                                                                                      \
    "See whether the disk of the mapped files is full: a new file with holes in it (np.memmap) leads to a "  \
    "bus error when the disk has no room to fill them."
#define FIX_KERNEL_LOG       "Look for I/O errors in the kernel's log."
#define FIX_KERNEL_LOG_ADMIN "Ask an administrator to look for I/O errors in the host's kernel log."
#define FIX_LESS_MEMORY                                                                                      \
    "Use less memory: lower num_workers first, because each worker has its own memory; then batch_size and " \
    "prefetch_factor. Keep the dataset in arrays instead of lists of objects."
#define FIX_MORE_MEMORY "Ask for more memory for the container or job."
#define FIX_MACHINE_MEMORY                                                                                   \
    "Run fewer jobs at a time, add swap, or use a machine with more RAM. Where the whole machine is short "  \
    "of memory, a higher limit for this job does not help."
#define FIX_PAGING_FILE                                                                                      \
    "Make the paging file of Windows larger (System, Advanced, Performance, Virtual memory): each worker "   \
    "loads all libraries again, and Windows reserves room for them."
#define FIX_MEMORY_SLURM                                                                                     \
    "Ask Slurm for more memory than the job used: --mem for each node, or --mem-per-cpu. The job's files "   \
    "in "                                                                                                    \
    "/dev/shm count against it."
#define FIX_MEMORY_KUBERNETES "Give the container of the pod a higher limits.memory."
#define FIX_MEMORY_DOCKER     "Start the container again with a higher memory limit."
#define FIX_MEMORY_SOMEWHERE                                                                                 \
    "Raise the memory limit where it is set: --mem (Slurm), limits.memory (Kubernetes), --memory (Docker), " \
    "MemoryMax= (systemd)."
#define FIX_POD_KILLED     "Ask Kubernetes whether it was the pod's memory limit: the reason is then OOMKilled."
#define COMMAND_POD_KILLED "kubectl describe pod POD"
#define FIX_CONTAINER_KILLED                                                                                 \
    "If it ran in a container, ask Docker whether it was the container's memory limit."
#define FIX_IF_MEMORY                                                                                        \
    "If it was the OOM killer, use less memory (lower num_workers first, then batch_size), or raise the "    \
    "limit: --mem (Slurm), limits.memory (Kubernetes), --memory (Docker)."
#define FIX_FILES_DOCKER "If it runs in a container, start that again with a higher limit of open files."
#define FIX_BUDGET       "Raise --budget to several times the largest batch (%s), or remove --budget."
#define FIX_SMALLER      "Or make the batches smaller: lower batch_size."
#define FIX_OPEN_FILES   "Raise the limit of open files in the shell that starts the training."
#define FIX_HOLD_FEWER                                                                                       \
    "Hold fewer shared tensors: each takes a mapping, however small it is. Pack many into one."
#define FIX_MAPS       "Raise the kernel's limit of mappings."
#define FIX_REMOVE_IPC "Set RemoveIPC=no in /etc/systemd/logind.conf, and stop jobs that clear /dev/shm."
#define FIX_FIND_SENDER                                                                                      \
    "Find out what ended it: look at the scheduler's log (time limit, preemption) and the container's "      \
    "events, and ask colleagues. Save checkpoints so that nothing is lost."
#define FIX_UPDATE_ONE                                                                                       \
    "Update or reinstall the package that the Python line calls, together with the other packages that "     \
    "have native code."
#define FIX_UPDATE_ALL                                                                                       \
    "Update or reinstall the packages that have native code, all together; suspect the newest one first."
#define FIX_RANKS        "Look at the output of every rank for the one that stopped first."
#define FIX_PY_SPY_RANKS "While it hangs, dump the stack of every rank: one of them waits elsewhere."
#define FIX_GROUP_TIMEOUT                                                                                    \
    "If a rank is only slow (it prepares data or saves a checkpoint alone), give the process group more "    \
    "time."
#define FIX_PY_SPY  "Find where the worker waits: dump its stack while it hangs."
#define FIX_TIMEOUT "If items are only slow, raise the DataLoader's timeout= or add workers."
#define FIX_FORK_HANG                                                                                        \
    "If it hangs at once, libraries with threads (OpenCV, tokenizers, OpenMP) may not survive fork: give "   \
    "the DataLoader multiprocessing_context='spawn', or switch their threads off."
#define FIX_WORKER_EXCEPTION                                                                                 \
    "Fix the dataset, transform or collate_fn at the line shown above. With num_workers=0 a debugger can "   \
    "stop there."
#define FIX_EXCEPTION "Fix the exception at the line shown above."
#define FIX_EXCEPTION_LIBRARY                                                                                \
    "The line is in a library: look for the message among the issues of that library, try another version "  \
    "of it, and run it once with num_workers=0 and pin_memory=False."
#define FIX_NCCL_DEBUG "Run it again with NCCL's own log, and look at the output of every rank."
#define FIX_EXIT_CALLS                                                                                       \
    "Look in the dataset and the libraries that it uses for calls of exit (sys.exit, os._exit, exit in C): " \
    "they end the worker without a message."
#define FIX_NO_WORKERS                                                                                       \
    "Run it once without workers (num_workers=0; n_jobs=1; nnUNet_n_proc_DA=0): an exception then shows "    \
    "its "                                                                                                   \
    "own traceback."
#define FIX_CRASH_NO_WORKERS "Run it once with num_workers=0, to see whether it only crashes in a worker."
#define FIX_CORE             "Look at the native stack of the crash in its core file."
#define FIX_HARMLESS                                                                                         \
    "If the training ended as it should, there is nothing to do. If not, look at what it wrote before "      \
    "these lines, and at its exit code."
#define FIX_TRY_SHM                                                                                          \
    "If it runs in a container, try it with a larger /dev/shm, or with --ipc=host: a worker that finds it "  \
    "full dies of a bus error."

/* --- Common misconceptions: what people believe, in quotation marks, and what is true instead --- */

#define NOTE_TORCH_GUESSES                                                                                   \
    "\"The workers are out of shared memory\": PyTorch prints that guess with every bus error. The "         \
    "kernel's "                                                                                              \
    "log is the better witness."
#define NOTE_FILE_SYSTEM_FULL                                                                                \
    "\"The strategy 'file_system' avoids shared memory\": it uses the same /dev/shm and fails the same way " \
    "when that is full. It only saves descriptors."
#define NOTE_FILE_SYSTEM_NAMES                                                                               \
    "\"The strategy 'file_system' avoids shared memory\": it uses the same /dev/shm, under names that "      \
    "other "                                                                                                 \
    "programs can delete."
#define NOTE_FILE_SYSTEM_FILES                                                                               \
    "\"The strategy 'file_system' avoids shared memory\": it needs no descriptor per tensor, but the same "  \
    "space in /dev/shm, and it leaves files behind when a job is killed."
#define NOTE_FILE_SYSTEM "\"The strategy 'file_system' avoids shared memory\": it uses the same /dev/shm."
#define NOTE_PIN_MEMORY                                                                                      \
    "\"pin_memory=False halves the shared memory\": pinned buffers are not in /dev/shm, and pinning "        \
    "releases the shared batch sooner."
#define NOTE_GC                                                                                              \
    "\"gc.collect() in __getitem__ is the cure\": it slows the workers down, which hides a backlog. Limit "  \
    "what is in flight instead."
#define NOTE_LS                                                                                              \
    "\"An empty `ls /dev/shm` means that it is unused\": PyTorch removes the names at once. `shmguard ps` "  \
    "shows what is held."
#define NOTE_RSS_SHMEM                                                                                       \
    "\"RssShmem includes library files\": those are RssFile. RssShmem is shared memory that was touched."
#define NOTE_WORKER_THREADS                                                                                  \
    "\"The workers put their batches into /dev/shm\": these workers are threads of the trainer and share "   \
    "its "                                                                                                   \
    "memory, so there is nothing to guard."
#define NOTE_EVERY_BUS_ERROR                                                                                 \
    "\"Every bus error is about shared memory\": a mapped file that shrank and failing storage cause it "    \
    "too."
#define NOTE_OOM_KILLER                                                                                      \
    "\"The OOM killer strikes when /dev/shm is full\": a full /dev/shm ends in a bus error or an "           \
    "exception. "                                                                                            \
    "The OOM killer sends SIGKILL and is about RAM."
#define NOTE_64_MB                                                                                           \
    "\"/dev/shm is 64 MB\": that is only the default in containers. On a plain machine it is half of the "   \
    "RAM."
#define NOTE_LARGER_SHM "\"A larger /dev/shm helps\": its contents count as memory too."
#define NOTE_COPIES                                                                                          \
    "\"Memory that grows in the workers is a leak\": often it is not. Touching Python objects copies pages " \
    "that were shared at fork, until the whole dataset is copied. Arrays instead of lists of objects stop "  \
    "that."
#define NOTE_GPU_MEMORY                                                                                      \
    "\"More shared memory helps\": GPU memory, RAM and shared memory are three different things, and a "     \
    "larger /dev/shm gives the GPU nothing."

/* --- Why there is no further attempt: after a colon --- */

#define RETRY_WORDS_ASKED    "it was asked to stop"
#define RETRY_WORDS_NO_START "it could not be started"
#define RETRY_WORDS_ERROR    "the same exception would occur again"
#define RETRY_WORDS_NOT_LESS                                                                                 \
    "smaller values do not help against this; with --resume it would continue with the same values"

/* --- Why the guard is not in a process, and what to do. The sentence before names the process. --- */

#define ABSENT_UNKNOWN "Why it did not load the library could not be determined."
#define ABSENT_OFF     "SHMGUARD=off was in its environment. Remove that to have it guarded."
#define ABSENT_NO_PRELOAD                                                                                    \
    "It was started without LD_PRELOAD, by a program that the guard cannot enter (a static or set-user-ID "  \
    "program, for example). Let that program start shmguard: LAUNCHER shmguard run -- python train.py"
#define ABSENT_OTHER_PRELOAD                                                                                 \
    "It was started with another LD_PRELOAD, by a program that the guard cannot enter (a static or "         \
    "set-user-ID program, for example). Let that program start shmguard: LAUNCHER shmguard run -- python "   \
    "train.py"
#define ABSENT_NO_SOCKET                                                                                     \
    "It was started without SHMGUARD_SOCKET, by a program that the guard cannot enter, so it had neither "   \
    "names nor a budget. Let that program start shmguard: LAUNCHER shmguard run -- python train.py"
#define ABSENT_STATIC                                                                                        \
    "It is a static program, which loads no libraries. Use a Python that is linked dynamically."
#define ABSENT_FOREIGN                                                                                       \
    "Its C library is not glibc, or it is a 32-bit program, so it cannot load the guard. Use a Python that " \
    "is built for glibc."
#define ABSENT_SECURE                                                                                        \
    "It gained rights when it was started (set-user-ID or file capabilities), so it ignores LD_PRELOAD. "    \
    "Start Python without them."
#define ABSENT_UNREADABLE_LIBRARY                                                                            \
    "Its user cannot read the guard's library. Install shmguard where every user can read it."
#define ABSENT_USER                                                                                          \
    "Only a shmguard that runs as root serves other users. Start shmguard as root, or after the change of "  \
    "user."
#define ABSENT_INNER_RUN          "Another shmguard within this one served it."
#define ABSENT_UNREADABLE_PROCESS "shmguard may not look into it; that requires CAP_SYS_PTRACE."

/* --- The causes, for the documentation --- */

#define CAUSE_OK_MEANING               "The command succeeded, and no batch was lost."
#define CAUSE_SHM_EXHAUSTED_MEANING    "/dev/shm was full."
#define CAUSE_BUDGET_EXCEEDED_MEANING  "The guard refused shared memory, and batches were lost."
#define CAUSE_CGROUP_OOM_MEANING       "The kernel killed a process at the memory limit of its control group."
#define CAUSE_SYSTEM_OOM_MEANING       "The kernel killed a process because the machine was out of memory."
#define CAUSE_KILLED_MEANING           "A process was killed or told to end from outside (SIGKILL or SIGTERM)."
#define CAUSE_SEGFAULT_MEANING         "A process crashed in native code."
#define CAUSE_BUS_ERROR_FILE_MEANING   "A process read a mapped file that had been truncated."
#define CAUSE_FD_EXHAUSTED_MEANING     "A process ran out of file descriptors."
#define CAUSE_MAPS_EXHAUSTED_MEANING   "A process had as many mappings as the kernel allows."
#define CAUSE_SEGMENTS_DELETED_MEANING "Shared memory was deleted while it was in use, or could not be found."
#define CAUSE_PYTHON_ERROR_MEANING     "An exception ended the training or a worker."
#define CAUSE_WORKER_HANG_MEANING      "A worker or a rank did not answer in time."
#define CAUSE_UNKNOWN_MEANING          "The evidence does not show the cause."
