/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program says on standard error. Each entry is one line without its newline, which follows the
 * program's name. A first %s before a colon is the name of a command (run, tune). "%s" at the end after a
 * colon, or in parentheses, is the system's own message (No space left on device).
 */
#pragma once

#include "language.h"

#define CLI_OUT_OF_MEMORY   _("out of memory")
#define CLI_FAILED          _("%s: %s")
#define CLI_JSON_FAILED     _("the JSON could not be created: %s")
#define CLI_OUTPUT_FAILED   _("the output could not be written: %s")
#define CLI_OUTPUT_PARTIAL  _("the output could not be written completely")
#define CLI_NO_SUPERVISOR   _("%s: cannot supervise a command here: %s")
#define CLI_INTERNAL_OPTION _("%s is used by shmguard itself only")
#define CLI_LIBRARY_REFUSES _("%s: %s is available on the command line only")

/* --- Help ----------------------------------------------------------------------------------------------- */

#define CLI_USAGE    _("Usage: shmguard COMMAND [OPTION]...")
#define CLI_ABOUT    _("Shows how PyTorch training uses shared memory, what is wrong, and what to do.")
#define CLI_COMMANDS _("Commands:")
#define CLI_MORE_HELP                                                                                        \
    _("shmguard COMMAND --help shows the options of a command, shmguard --version the version.")
/* The name of a command, and what it takes besides options: "[FILE]". */
#define CLI_USAGE_OF      _("Usage: shmguard %s [OPTION]...")
#define CLI_USAGE_OF_WITH _("Usage: shmguard %s [OPTION]... %s")
#define CLI_OPTIONS       _("Options:")

#define CLI_LANG_HELP                                                                                        \
    N_("language of what people read: en or zh_CN (default: that of LC_ALL, LC_MESSAGES or LANG)")
#define CLI_HELP_HELP    N_("show this help")
#define CLI_LANG_MISSING _("--lang needs a value: --lang zh_CN")
#define CLI_LANG_UNKNOWN _("--lang takes en or zh_CN, not \"%s\"")

/* --- Commands and options ----------------------------------------------------------------------------- */

#define CLI_UNKNOWN_COMMAND      _("unknown command \"%s\"; shmguard --help lists the commands")
#define CLI_UNKNOWN_COMMAND_NEAR _("unknown command \"%s\"; did you mean %s?")
#define CLI_UNKNOWN_OPTION       _("unknown option \"%s\"; shmguard --help lists the commands")
#define CLI_UNKNOWN_OPTION_NEAR  _("unknown option \"%s\"; did you mean %s?")
#define CLI_EXTRA_ARGUMENT       _("%s: unexpected argument \"%s\"; shmguard %s --help shows the usage")
#define CLI_NO_COMMAND           _("%s: no command given; put it after --: shmguard %s -- python train.py")
#define CLI_NO_DASHES            _("%s: put -- before the command: shmguard %s -- %s ...")

/* Of one command: these follow "ps: ". */
#define OPTION_UNKNOWN        _("unknown option --%s; --help lists the options")
#define OPTION_UNKNOWN_NEAR   _("unknown option --%s; did you mean --%s?")
#define OPTION_UNKNOWN_LETTER _("unknown option -%s; --help lists the options")
#define OPTION_NO_VALUE       _("--%s takes no value")
#define OPTION_NEEDS_VALUE    _("--%s needs a value: --%s %s")
#define OPTION_TOO_OFTEN      _("--%s can be given at most %d times")
/* The name of the option, and what was given. */
#define OPTION_TAKES_PID     _("--%s takes a process id, not \"%s\"")
#define OPTION_TAKES_COUNT   _("--%s takes a whole number, not \"%s\"")
#define OPTION_TAKES_SECONDS _("--%s takes a time in seconds (30, 1.5s, 2min), not \"%s\"")
#define OPTION_TAKES_SIZE    _("--%s takes a size of at least 1 MiB (64M, 1.5GiB), auto or off, not \"%s\"")
#define OPTION_TAKES_NAMES   _("--%s takes %s, not \"%s\"") /* a list of names */
/* Between the names of a list, and between the last two. */
#define NAMES_COMMA _(", ")
#define NAMES_OR    _(" or ")
#define NAMES_AND   _(" and ")

/* --- The machine -------------------------------------------------------------------------------------- */

#define CLI_NO_PROC     _("/proc is not mounted; mount it: mount -t proc proc /proc")
#define CLI_PROC_DENIED _("/proc may not be read: %s")
#define CLI_NO_MEMINFO  _("/proc/meminfo cannot be read: %s")
#define CLI_ROOT_FAILED _("--root %s: %s; scripts/capture-root captures a tree")
#define CLI_ROOT_NO_TREE                                                                                     \
    _("--root %s: this is not a captured tree (it has no proc); scripts/capture-root captures one")
#define CLI_ROOT_DENIED _("--root %s: the tree may not be read (%s); become its owner, or copy it")
#define CLI_ROOT_DAMAGED                                                                                     \
    _("--root %s: proc/meminfo is damaged (%s); capture the tree again with scripts/capture-root")
#define CLI_NO_PROCESS _("there is no process %d; shmguard ps lists the training processes")
#define CLI_NO_PROCESS_IN_TREE                                                                               \
    _("there is no process %d in that tree; shmguard ps lists the training processes")
#define CLI_PROCESS_DENIED                                                                                   \
    _("process %d belongs to another user (uid %u) and may not be read; run shmguard as that user or as "    \
      "root")
#define CLI_PROCESS_SANDBOXED                                                                                \
    _("process %d (uid %u) may not be read from here, not even by root; run shmguard where the process was " \
      "started, outside this container or sandbox")

/* --- The user's command ------------------------------------------------------------------------------- */

#define CLI_NO_FORK _("%s: cannot create a process: %s")
#define CLI_SHM_REFUSED                                                                                      \
    _("%s: --shm: mounting the private /dev/shm worked in a test but failed for the job: %s")
#define CLI_NOT_FOUND     _("%s: %s: command not found")
#define CLI_NOT_STARTED   _("%s: %s: %s")
#define CLI_GUARD_MISSING _("this build has no preload library; running without the guard")
#define CLI_GUARD_PATH                                                                                       \
    _("%s: LD_PRELOAD cannot take a path with a colon or a blank; running without the guard")
#define CLI_GUARD_REFUSED _("memory for the guard is refused here (%s); running without the guard")

/* --- Recordings --------------------------------------------------------------------------------------- */

/* The name of a command, perhaps with an option, and of a file. */
#define CLI_FILE_IS_DIRECTORY _("%s: %s is a directory; give the name of a file")
#define CLI_FILE_NO_RECORDING                                                                                \
    _("%s: %s exists and is not a recording; it was left unchanged, give another name")
#define CLI_FILE_OLD_EXISTS                                                                                  \
    _("%s: %s.old exists and is not a recording; it was left unchanged, give another name")
#define CLI_FILE_BUSY    _("%s: %s is in use, most likely by another recorder; give another name")
#define CLI_FILE_NO_NAME _("%s: the name of the file is empty; give one, such as run.db")
#define CLI_FILE_NO_DIRECTORY                                                                                \
    _("%s: %s cannot be created, because its directory does not exist; create the directory, or give "       \
      "another name")
#define CLI_FILE_UNSUITABLE _("%s: %s: this file system cannot hold a recording; give a file on a local one")
#define CLI_FILE_DENIED     _("%s: %s may not be written: %s")
#define CLI_FILE_FAILED     _("%s: %s: %s")

#define CLI_RECORDING_HANGS _("the disk of %s does not respond; the end of the recording may be missing")
#define CLI_RECORDING_LOST_ONE                                                                               \
    _("another program kept %s locked for so long that %llu sample was lost; end your transactions with "    \
      "COMMIT")
#define CLI_RECORDING_LOST_MANY                                                                              \
    _("another program kept %s locked for so long that %llu samples were lost; end your transactions with "  \
      "COMMIT")
#define CLI_RECORDING_STOPPED _("the recording stopped, the training continues: %s: %s")
#define CLI_RECORDING_STOPPED_GONE                                                                           \
    _("the recording stopped, the training continues: %s was removed or replaced")
#define CLI_RECORDING_STOPPED_FOREIGN                                                                        \
    _("the recording stopped, the training continues: another program has written to %s")
/* Numbers of samples and of processes, a file, its size, and the file. */
#define CLI_WROTE_ONE_ONE   _("wrote %llu sample of %llu process to %s (%s); next: shmguard report %s")
#define CLI_WROTE_ONE_MANY  _("wrote %llu sample of %llu processes to %s (%s); next: shmguard report %s")
#define CLI_WROTE_MANY_ONE  _("wrote %llu samples of %llu process to %s (%s); next: shmguard report %s")
#define CLI_WROTE_MANY_MANY _("wrote %llu samples of %llu processes to %s (%s); next: shmguard report %s")

#define CLI_READ_DENIED _("%s: %s: %s; only its owner may read a recording: ask for a copy")
#define CLI_READ_LATER                                                                                       \
    _("%s: %s was recorded by a later version of shmguard; use that version or a later one")
#define CLI_READ_DAMAGED _("%s: %s is not a recording, or is damaged; shmguard record -o FILE creates one")
#define CLI_READ_EMPTY                                                                                       \
    _("%s: %s has no samples; record again, for longer than the interval, or, if this is a copy, copy "      \
      "%s-wal as well")
#define CLI_READ_UNFINISHED                                                                                  \
    _("%s: %s was not closed properly, and reading it requires write access to its directory; copy it and "  \
      "%s-wal to a writable directory")
#define CLI_READ_FAILED _("%s: %s: %s; give a file that shmguard record has written")

/* --- kernel ------------------------------------------------------------------------------------------- */

#define CLI_BUGREPORT_NO_PYTHON                                                                              \
    _("bugreport: there is no python3 in PATH; install it, or activate your environment")

#define CLI_KERNEL_WHAT _("kernel: say what to do: shmguard kernel install")
#define CLI_KERNEL_NAME                                                                                      \
    _("kernel: --name takes letters, digits, dots, dashes and underscores, and no dot at the start, not "    \
      "\"%s\"")
#define CLI_KERNEL_NO_IPYKERNEL                                                                              \
    _("kernel: %s has no ipykernel; install it: %s -m pip install ipykernel, or name another Python with "   \
      "--python")
#define CLI_KERNEL_NO_HOME _("kernel: HOME is not set; say where to install: --prefix DIR")
#define CLI_KERNEL_FAILED  _("kernel: %s: %s")
/* A file, and the two names of the kernel. */
#define CLI_KERNEL_INSTALLED                                                                                 \
    _("wrote %s; choose \"%s\" as the kernel of a notebook. To remove it: jupyter kernelspec remove %s")

/* --- doctor ------------------------------------------------------------------------------------------- */

/* What was given, and an id. */
#define CLI_DOCTOR_ID                                                                                        \
    _("doctor: --only: there is no finding \"%s\"; man shmguard lists the ids under FINDINGS")
#define CLI_DOCTOR_ID_NEAR _("doctor: --only: there is no finding \"%s\"; did you mean %s?")

/* --- clean -------------------------------------------------------------------------------------------- */

#define CLI_CLEAN_NOT_TMPFS  _("/dev/shm is not a tmpfs; shmguard doctor says what to do")
#define CLI_CLEAN_NO_SHM     _("there is no /dev/shm; shmguard doctor says what to do")
#define CLI_CLEAN_UNREADABLE _("/dev/shm could not be read; shmguard doctor says what to do")
#define CLI_CLEAN_STOPPED    _("cleaning stopped: %s")
/* A number of segments, and the name of one. */
#define CLI_CLEAN_READ_ONLY_ONE                                                                              \
    _("%zu orphan (%s) could not be removed: /dev/shm is mounted read-only; as root: mount -o remount,rw "   \
      "/dev/shm")
#define CLI_CLEAN_READ_ONLY_MANY                                                                             \
    _("%zu orphans (%s, for example) could not be removed: /dev/shm is mounted read-only; as root: mount "   \
      "-o remount,rw /dev/shm")
#define CLI_CLEAN_DENIED_ONE                                                                                 \
    _("%zu orphan (%s) could not be removed for lack of permission; run shmguard clean as root or as its "   \
      "owner (uid %u)")
#define CLI_CLEAN_DENIED_MANY                                                                                \
    _("%zu orphans (%s, for example) could not be removed for lack of permission; run shmguard clean as "    \
      "root or as the owner (uid %u)")
/* Why a segment was kept. */
#define CLI_KEPT_GONE    _("another process has already removed it")
#define CLI_KEPT_FAILED  _("it could not be removed: %s (its owner is uid %u)")
#define CLI_KEPT_OPENED  _("another process has opened it in the meantime")
#define CLI_KEPT_CHANGED _("it has changed in the meantime")
#define CLI_KEPT_UNSURE  _("the kernel no longer says whether any process has it open")
#define CLI_KEPT_OTHER   _("it is not of a kind that shmguard knows")

/* --- explain ------------------------------------------------------------------------------------------ */

#define CLI_EXPLAIN_INPUT  _("%s: %s; give a file with the traceback or log, or pipe it in")
#define CLI_STANDARD_INPUT _("standard input")
#define CLI_EXPLAIN_PROMPT _("Paste the traceback or log, then press Enter and Ctrl-D.")

/* --- plan --------------------------------------------------------------------------------------------- */

/* An option's name, and what the parser says about its value. */
#define CLI_PLAN_VALUE  _("plan: --%s %s")
#define CLI_PLAN_SAMPLE _("plan: --sample: %s")
#define CLI_PLAN_LOADER _("plan: --loader %zu: %s")
#define CLI_PLAN_NO_WORKERS                                                                                  \
    _("plan: --workers 0: without workers the trainer loads its own batches and needs no shared memory")
#define CLI_PLAN_GPUS_MISSING    _("plan: --per-gpu needs --gpus N")
#define CLI_PLAN_PER_GPU_MISSING _("plan: --gpus needs --per-gpu N or A..B")
#define CLI_PLAN_JOBS            _("plan: --jobs follows from --gpus and --per-gpu; remove it")
#define CLI_PLAN_NO_BATCH                                                                                    \
    _("plan: the size of a batch is missing; give --sample float32[3,224,224] --batch 64, or --batch-bytes " \
      "32MiB")
#define CLI_PLAN_TWO_BATCHES                                                                                 \
    _("plan: --sample and --batch-bytes both give the size of a batch; remove one of them")
#define CLI_PLAN_NO_SAMPLES _("plan: the number of samples in a batch is missing; give --batch 64")
#define CLI_PLAN_NO_COUNT   _("plan: the number of workers is missing; give --workers 4")
/* The same of one --loader, which has a number. */
#define CLI_PLAN_LOADER_NO_BATCH                                                                             \
    _("plan: --loader %zu: the size of a batch is missing; give sample=float32[3,224,224];batch=64, or "     \
      "bytes=32MiB")
#define CLI_PLAN_LOADER_TWO_BATCHES                                                                          \
    _("plan: --loader %zu: both samples and bytes give the size of a batch; remove one of them")
#define CLI_PLAN_LOADER_NO_SAMPLES                                                                           \
    _("plan: --loader %zu: the number of samples in a batch is missing; give batch=64")
#define CLI_PLAN_LOADER_NO_COUNT _("plan: --loader %zu: the number of workers is missing; give workers=4")
/* An option, and the one that is the source of the figures. */
#define CLI_PLAN_NO_EFFECT                                                                                   \
    _("plan: --%s has no effect together with %s; remove it, or give --sample, --batch and --workers")
#define CLI_PLAN_TWO_SOURCES _("plan: give either %s or %s, not both: each of them determines the need")
#define CLI_PLAN_MEASURE_NOTHING                                                                             \
    _("plan: --measure needs a command: shmguard plan --measure -- python train.py")
#define CLI_PLAN_COMMAND_IDLE                                                                                \
    _("plan: a command is run only with --measure: shmguard plan --measure -- python train.py")
#define CLI_PLAN_MEASURE_ROOT _("plan: --measure runs a command on this machine; remove --root")
#define CLI_PLAN_FOR_IDLE     _("plan: --for needs --measure and a command")
#define CLI_PLAN_FOR_SHORT    _("plan: --for takes at least 1 second")
#define CLI_PLAN_FROM_MISSING                                                                                \
    _("plan: --batch scales what was measured; give the batch size that was measured as --from-batch N")
#define CLI_PLAN_FROM_IDLE _("plan: --from-batch needs --batch, and --measure or --pid")
#define CLI_PLAN_FAILED    _("plan: --measure: %s")
#define CLI_PLAN_UNGUARDED                                                                                   \
    _("the guard cannot work here: /dev/shm is sampled %d times a second, and shorter peaks are missed")
/* Seconds, and the exit code of the command. */
#define CLI_PLAN_NOTHING_MEASURED                                                                            \
    _("plan: --measure: the command used no shared memory in %.0f seconds (its exit code is %d); does its "  \
      "DataLoader have workers?")
#define CLI_PLAN_NO_TRAINING                                                                                 \
    _("plan: process %d is not a training with shared tensors; shmguard ps lists the trainings")
#define CLI_PLAN_FILE_SYSTEM                                                                                 \
    _("With file_system, the batches of a loop that ends early stay in /dev/shm until the training ends: "   \
      "each early end needs as much again.")
#define CLI_PLAN_NODES_LINE _("plan: %s:%zu: %s") /* a file, a line, what is wrong with it */
#define CLI_PLAN_NODES      _("plan: %s: %s")
#define CLI_PLAN_NODES_READ                                                                                  \
    _("plan: --nodes %s: %s; give a file with a list of nodes, or - for standard input")
#define CLI_PLAN_NODES_LARGE  _("plan: --nodes %s is larger than %s; give the nodes as CSV")
#define CLI_PLAN_PRIVATE_IDLE _("plan: --process-memory needs --nodes FILE")
#define CLI_PLAN_NODES_KIND                                                                                  \
    _("plan: --kind and --nodes cannot be combined: a rule of thumb says too little; give --sample, "        \
      "--batch and --workers")
#define CLI_PLAN_TOO_MUCH _("plan: this is more than any machine has; check the numbers")

/* --- ps ----------------------------------------------------------------------------------------------- */

/* Two lists of names, with what was given between them. */
#define CLI_PS_SORT          _("ps: --sort takes %s, not \"%s\"; with --segments: %s")
#define CLI_PS_SORT_SEGMENTS _("ps: --sort takes %s, not \"%s\"; without --segments: %s")

/* --- record ------------------------------------------------------------------------------------------- */

#define CLI_RECORD_NO_FILE _("record: the output file is missing; give one: shmguard record -o run.db -- ...")
#define CLI_RECORD_NO_FILE_PID                                                                               \
    _("record: the output file is missing; give one: shmguard record -o run.db --pid PID")
#define CLI_RECORD_TWO _("record: give either --pid or a command, not both")
#define CLI_RECORD_NOTHING                                                                                   \
    _("record: there is nothing to record; give --pid PID, or a command after --: shmguard record -o "       \
      "run.db -- python train.py")
#define CLI_RECORD_WHERE                                                                                     \
    _("record: --where needs a command, because its processes must have the guard; for a training that was " \
      "started by shmguard run: shmguard where %d")
#define CLI_RECORD_WHERE_OUTER                                                                               \
    _("record: --where is ignored, because this job belongs to the shmguard run of pid %d, whose guard can " \
      "look: shmguard where %d")
#define CLI_RECORD_INTERVAL _("record: --interval takes 0.05 s to 1 h")
#define CLI_RECORD_PROGRESS _("recording (samples: %llu, processes: %llu); press Ctrl-C to stop")

/* --- where -------------------------------------------------------------------------------------------- */

#define CLI_WHERE_NO_PID     _("where: which training? Name one of its processes: shmguard where PID")
#define CLI_WHERE_WRONG_PID  _("where: a process id is needed, not \"%s\"; shmguard ps lists the processes")
#define CLI_WHERE_NO_PROCESS _("where: there is no process %d; shmguard ps lists the processes")
#define CLI_WHERE_DENIED                                                                                     \
    _("where: process %d belongs to another user; run shmguard where as that user, or as root")
#define CLI_WHERE_NOT_GUARDED                                                                                \
    _("where: process %d has no guard, which would have to look, and no CPython 3.14, which can be asked "   \
      "without it; start the training with: shmguard run --where -- python train.py")
#define CLI_WHERE_REMOTE_DENIED                                                                              \
    _("where: the kernel does not let this user look into process %d (another user's, or "                   \
      "kernel.yama.ptrace_scope); run shmguard where as root, or start the training with: shmguard run "     \
      "--where -- python train.py")
#define CLI_WHERE_REMOTE_VERSION                                                                             \
    _("where: process %d has no guard and runs CPython 3.%d; without the guard only a release of 3.14 can "  \
      "be asked; start the training with: shmguard run --where -- python train.py")
#define CLI_WHERE_REMOTE_THREADED                                                                            \
    _("where: process %d runs a free-threaded or 32-bit build of Python, which cannot be looked at; use an " \
      "ordinary build of CPython 3.9 to 3.14")
#define CLI_WHERE_REMOTE_OFF                                                                                 \
    _("where: process %d has no guard, and cannot be asked without it, because its Python has remote "       \
      "debugging switched off (PYTHON_DISABLE_REMOTE_DEBUG or -X disable-remote-debug); start the training " \
      "with: shmguard run --where -- python train.py")
#define CLI_WHERE_REMOTE_ENDS                                                                                \
    _("where: the interpreter of process %d is starting or ending; ask again while it trains")
#define CLI_WHERE_REMOTE_NOTHING                                                                             \
    _("where: no process could look: one with PyTorch's DataLoader is needed that runs Python code now and " \
      "then, and a directory for files (/tmp, /var/tmp or /dev/shm) that it sees; or start the training "    \
      "with: shmguard run --where -- python train.py")
#define CLI_WHERE_NO_SUPERVISOR                                                                              \
    _("where: the shmguard run of process %d has ended, or does not answer; start the training again with: " \
      "shmguard run --where -- python train.py")
#define CLI_WHERE_PROGRESS _("looking for the line that leaks (windows: %zu); press Ctrl-C to stop")
#define CLI_WHERE_FAILED                                                                                     \
    _("where: the processes could not look: %s; CPython 3.9 to 3.14 with PyTorch is needed")
#define CLI_WHERE_NOTHING                                                                                    \
    _("where: no process could look; a trainer and its workers with PyTorch are needed, and batches that "   \
      "workers load")

/* --- report ------------------------------------------------------------------------------------------- */

#define CLI_REPORT_NO_FILE _("report: the recording is missing; give its file: shmguard report FILE")
#define CLI_REPORT_NO_RECORDINGS                                                                             \
    _("report: there is no recording in the directory %s; give the directory that shmguard run --record "    \
      "DIR/NAME.db wrote into, or the files")
#define CLI_REPORT_DIRECTORY_DENIED _("report: the directory %s may not be read; ask its owner")
#define CLI_REPORT_MANY             _("report: %s has more than %d recordings; give some of the files")
#define CLI_REPORT_NO_NAME          _("report: -o needs the name of a file, for example -o report.html")
#define CLI_REPORT_TWICE            _("report: the page and --json cannot both go to standard output; give -o a file")
#define CLI_REPORT_NO_PAGE                                                                                   \
    _("report: this program was built without the page; in its source directory, make page installs nodejs " \
      "and npm and builds it; or remove -o")
#define CLI_REPORT_SAME _("report: -o %s is the recording itself; give the page another name")
#define CLI_REPORT_DATABASE                                                                                  \
    _("report: -o %s is a database, most likely another recording; give the page another name")
#define CLI_REPORT_FAILED   _("report: %s: %s; give -o a file that can be written")
#define CLI_STANDARD_OUTPUT _("standard output")
#define CLI_REPORT_WRITTEN                                                                                   \
    _("wrote %s, whose verdict is %s; open it in any browser") /* the id of a verdict */

/* --- run ---------------------------------------------------------------------------------------------- */

/* --retry where another program restarts the job, or nobody can. The launcher's name comes first. */
#define CLI_RUN_RESTARTS_COMMAND                                                                             \
    _("run: %s restarts the whole job itself (up to %llu times), so --retry makes no further attempts; to "  \
      "leave that to shmguard, start it without --max-restarts")
#define CLI_RUN_RESTARTS_LAUNCHER                                                                            \
    _("run: %s, which started this as rank %llu of %llu, restarts the whole job (up to %llu times), so "     \
      "--retry makes no further attempts")
#define CLI_RUN_RESTARTS_NOBODY                                                                              \
    _("run: this is rank %llu of %llu that %s started, and one rank cannot be restarted alone, so --retry "  \
      "makes no further attempts; start the whole job with: shmguard run --retry N -- %s ...")

/* What the parser says about the value. */
#define CLI_RUN_DEGRADE      _("run: --degrade: %s")
#define CLI_RUN_RESUME       _("run: --resume: %s")
#define CLI_RUN_NEEDS_GUARD  _("run: --%s needs the guard; remove --%s or --no-guard")
#define CLI_RUN_NEEDS_RETRY  _("run: --%s needs --retry N, the number of further attempts")
#define CLI_RUN_FORKED       _("run: --forked starts the command once and as it is; remove --%s")
#define CLI_RUN_FORKED_NONE  _("run: --forked %d: no child of this process waits there")
#define CLI_RUN_FORKED_PLAIN _("run: the command goes on without shmguard")
#define CLI_RUN_REPORT       _("run: --report %s: %s; the command was not started")
#define CLI_RUN_REPORT_LOST  _("the report could not be written: %s")
/* Why, as private-shm.h has it. */
#define CLI_RUN_NO_SHM     _("run: --shm: %s; the command was not started")
#define CLI_RUN_SHARED_SHM _("the job has no /dev/shm of its own: %s")
#define CLI_RUN_JOINED     _("joined the outer shmguard run (pid %d); its budget and options apply")
#define CLI_RUN_JOINED_ONE                                                                                   \
    _("joined the outer shmguard run (pid %d); its budget and options apply; %s has no effect here")
#define CLI_RUN_JOINED_MANY                                                                                  \
    _("joined the outer shmguard run (pid %d); its budget and options apply; %s have no effect here")

/* --- serve -------------------------------------------------------------------------------------------- */

#define CLI_SERVE_NO_LIBRARY                                                                                 \
    _("serve: this program was built without libmicrohttpd; install its development files (Debian: "         \
      "libmicrohttpd-dev) and build again, or use --textfile DIR")
#define CLI_SERVE_INTERVAL  _("serve: --interval takes 0.1 s to 1 h; 1s is usual")
#define CLI_SERVE_PROCESSES _("serve: --processes takes 0 to %d")
#define CLI_SERVE_LISTEN                                                                                     \
    _("serve: --listen takes an IP address and a port, such as 127.0.0.1:9477, [::1]:9477 or 0.0.0.0:9477, " \
      "not \"%s\"")
#define CLI_SERVE_BOTH    _("serve: --token-file and --no-auth exclude each other; remove one of them")
#define CLI_SERVE_NO_PORT _("serve: --%s needs --listen: with --textfile alone, no port is opened")
/* An address, and why not. */
#define CLI_SERVE_CANNOT_LISTEN                                                                              \
    _("serve: cannot listen on %s: %s; give another address or port with --listen")
/* A file, and why not. */
#define CLI_SERVE_NO_TOKEN _("serve: --token-file %s: %s; make one: (umask 077; openssl rand -hex 16 >FILE)")
#define CLI_SERVE_BAD_TOKEN                                                                                  \
    _("serve: --token-file %s: the file must hold one word of 16 to 256 letters and digits; make one: "      \
      "(umask 077; openssl rand -hex 16 >FILE)")
#define CLI_SERVE_TEXTFILE      _("serve: --textfile %s: %s; give the directory that node_exporter reads")
#define CLI_SERVE_TEXTFILE_LOST _("serve: the metrics could not be written: %s; trying again")
#define CLI_SERVE_FAILED        _("serve: the machine cannot be read: %s")
/* An address, and a token. */
#define CLI_SERVE_READY       _("serving on http://%s/; press Ctrl-C to stop")
#define CLI_SERVE_READY_TOKEN _("serving on http://%s/?token=%s; press Ctrl-C to stop")
/* A directory. */
#define CLI_SERVE_WRITING       _("writing the metrics to %s/%s; press Ctrl-C to stop")
#define CLI_SERVE_TEXTFILE_NAME "shmguard.prom"
#define CLI_SERVE_OPEN                                                                                       \
    _("anybody who can connect to %s can see the processes of this machine and their commands")

/* --- tune --------------------------------------------------------------------------------------------- */

#define CLI_TUNE_TRIAL  _("tune: --trial takes 1 second to 1 day")
#define CLI_TUNE_START  _("tune: --start takes at least 1 second")
#define CLI_TUNE_TRIALS _("tune: --trials takes 1 to %d")
#define CLI_TUNE_SAMPLE _("tune: --sample: %s")
#define CLI_TUNE_SAMPLE_IDLE                                                                                 \
    _("tune: --sample has no effect without {batch} in the command, and --vary batch=16,32,64")
#define CLI_TUNE_RATE _("tune: --rate: %s")
#define CLI_TUNE_VARY _("tune: --vary: %s")
/* A name and a value. */
#define CLI_VARY_TWICE     _("tune: --vary %s: \"%s\" is given twice; remove one of them")
#define CLI_VARY_BACKWARDS _("tune: --vary %s: \"%s\" goes backwards; give the smaller number first")
#define CLI_VARY_LONG      _("tune: --vary %s: \"%s\" has more than 64 values; give only those that matter")
#define CLI_VARY_BATCH     _("tune: --vary %s: \"%s\" is not a batch size; give whole numbers of at least 1")
#define CLI_VARY_WORKERS   _("tune: --vary %s: \"%s\" is not a number of workers; give 0 or more")
#define CLI_VARY_NO_WORKERS                                                                                  \
    _("tune: --vary %s: with \"%s\" workers nothing is shared that could be counted; remove it, or use "     \
      "--rate")
#define CLI_VARY_MANY_VALUES _("tune: --vary %s: at most %d values can be given")
#define CLI_VARY_MANY_NAMES  _("tune: --vary can be given for at most %d names")
#define CLI_VARY_NOTHING                                                                                     \
    _("tune: nothing varies in the command; put {batch} or {workers} in it, for example --workers "          \
      "{workers}, and give --vary workers=1,2,4")
#define CLI_VARY_NO_PLACE _("tune: {%s} is not in the command; put it where its value goes")
#define CLI_TUNE_TOO_MANY _("tune: %zu settings are too many; at most %d can be compared")
#define CLI_TUNE_TOO_FEW  _("tune: there is only one setting; give --vary several values")
/* A file, and what is wrong with it. */
#define CLI_TUNE_STATE      _("tune: --state %s: %s")
#define CLI_TUNE_STATE_BAD  _("tune: --state %s: %s; give another file, or remove this one to start again")
#define CLI_TUNE_STATE_LOST _("tune: the state could not be written: %s")
/* Why not. */
#define CLI_TUNE_NO_GUARD                                                                                    \
    _("tune: the guard, which counts the batches, cannot work here (%s); use --rate and let the training "   \
      "print its rate")
#define CLI_TUNE_NO_LIBRARY                                                                                  \
    _("tune: this build has no preload library, so the guard cannot count the batches; use --rate and let "  \
      "the training print its rate")
/* A setting (batch=64 workers=4), and what happened in a whole sentence. */
#define CLI_TUNE_FIRST_FAILED _("tune: the first trial failed, %s: %s")
#define CLI_TUNE_ALL_FAILED   _("tune: no trial could be measured; the last one (%s) failed: %s")
/* A size, a setting, and what it needs. */
#define CLI_TUNE_NONE_FITS                                                                                   \
    _("tune: none of the settings fits in %s: the smallest, %s, needs %s of shared memory alone "            \
      "(computed); try smaller values")
#define CLI_TUNE_NONE_SAFE     _("tune: none of the settings is safe; try smaller values")
#define CLI_TUNE_NONE_MEASURED _("tune: no trial could be measured")
#define CLI_TUNE_INTERRUPTED   _("tune: stopped before the first trial ended")
/* The number of the trial, of all, and how it went. */
#define CLI_TUNE_TRIAL_ENDED _("trial %zu of at most %zu: %s")
/* The number of the trial, of all, a duration, a setting, and a rate. */
#define CLI_TUNE_PROGRESS          _("shmguard: trial %zu/%zu, about %s left: %s, %s")
#define CLI_TUNE_PROGRESS_STARTING _("shmguard: trial %zu/%zu, about %s left: %s, starting")
#define CLI_TUNE_PROGRESS_WARMING  _("shmguard: trial %zu/%zu, about %s left: %s, warming up")

/* --- watch -------------------------------------------------------------------------------------------- */

#define CLI_WATCH_INTERVAL  _("watch: --interval takes 0.1 s to 1 h; 1s is usual")
#define CLI_WATCH_BOTH      _("watch: --replay shows a whole recording; remove --pid")
#define CLI_WATCH_NO_INPUT  _("watch: standard input is not a terminal; --once prints one picture")
#define CLI_WATCH_NO_OUTPUT _("watch: standard output is not a terminal; --once prints one picture")
#define CLI_WATCH_FAILED    _("watch: the machine cannot be read: %s")
#define CLI_WATCH_NO_TERM   _("watch: TERM is not set, so the terminal is not known; try TERM=xterm, or --once")
#define CLI_WATCH_TERM      _("watch: the terminal \"%s\" (TERM) is not known here; try TERM=xterm, or --once")
#define CLI_WATCH_DUMB                                                                                       \
    _("watch: the terminal \"%s\" (TERM) cannot move its cursor; --once prints one picture")
#define CLI_WATCH_SCREEN _("watch: the terminal cannot be used; --once prints one picture")
