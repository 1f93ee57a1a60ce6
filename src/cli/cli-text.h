/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program says on standard error. Each entry is one line without its newline, which follows the
 * program's name. A first %s before a colon is the name of a command (run, tune). "%s" at the end after a
 * colon, or in parentheses, is the system's own message (No space left on device).
 */
#pragma once

#define CLI_OUT_OF_MEMORY   "out of memory"
#define CLI_FAILED          "%s: %s"
#define CLI_JSON_FAILED     "the JSON could not be created: %s"
#define CLI_OUTPUT_FAILED   "the output could not be written: %s"
#define CLI_OUTPUT_PARTIAL  "the output could not be written completely"
#define CLI_NO_SUPERVISOR   "%s: cannot supervise a command here: %s"
#define CLI_INTERNAL_OPTION "%s is used by shmguard itself only"
#define CLI_LIBRARY_REFUSES "%s: %s is available on the command line only"

/* --- Commands and options ----------------------------------------------------------------------------- */

#define CLI_UNKNOWN_COMMAND      "unknown command \"%s\"; shmguard --help lists the commands"
#define CLI_UNKNOWN_COMMAND_NEAR "unknown command \"%s\"; did you mean %s?"
#define CLI_UNKNOWN_OPTION       "unknown option \"%s\"; shmguard --help lists the commands"
#define CLI_UNKNOWN_OPTION_NEAR  "unknown option \"%s\"; did you mean %s?"
#define CLI_EXTRA_ARGUMENT       "%s: unexpected argument \"%s\"; shmguard %s --help shows the usage"
#define CLI_NO_COMMAND           "%s: no command given; put it after --: shmguard %s -- python train.py"
#define CLI_NO_DASHES            "%s: put -- before the command: shmguard %s -- %s ..."

/* Of one command: these follow "ps: ". */
#define OPTION_UNKNOWN        "unknown option --%s; --help lists the options"
#define OPTION_UNKNOWN_NEAR   "unknown option --%s; did you mean --%s?"
#define OPTION_UNKNOWN_LETTER "unknown option -%s; --help lists the options"
#define OPTION_NO_VALUE       "--%s takes no value"
#define OPTION_NEEDS_VALUE    "--%s needs a value: --%s %s"
#define OPTION_TOO_OFTEN      "--%s can be given at most %d times"
/* The name of the option, and what was given. */
#define OPTION_TAKES_PID     "--%s takes a process id, not \"%s\""
#define OPTION_TAKES_COUNT   "--%s takes a whole number, not \"%s\""
#define OPTION_TAKES_SECONDS "--%s takes a time in seconds (30, 1.5s, 2min), not \"%s\""
#define OPTION_TAKES_SIZE    "--%s takes a size of at least 1 MiB (64M, 1.5GiB), auto or off, not \"%s\""
#define OPTION_TAKES_NAMES   "--%s takes %s, not \"%s\"" /* a list of names */
/* Between the last two names of a list. */
#define NAMES_OR  " or "
#define NAMES_AND " and "

/* --- The machine -------------------------------------------------------------------------------------- */

#define CLI_NO_PROC     "/proc is not mounted; mount it: mount -t proc proc /proc"
#define CLI_PROC_DENIED "/proc may not be read: %s"
#define CLI_NO_MEMINFO  "/proc/meminfo cannot be read: %s"
#define CLI_ROOT_FAILED "--root %s: %s; scripts/capture-root captures a tree"
#define CLI_ROOT_NO_TREE                                                                                     \
    "--root %s: this is not a captured tree (it has no proc); scripts/capture-root captures one"
#define CLI_ROOT_DENIED "--root %s: the tree may not be read (%s); become its owner, or copy it"
#define CLI_ROOT_DAMAGED                                                                                     \
    "--root %s: proc/meminfo is damaged (%s); capture the tree again with scripts/capture-root"
#define CLI_NO_PROCESS         "there is no process %d; shmguard ps lists the training processes"
#define CLI_NO_PROCESS_IN_TREE "there is no process %d in that tree; shmguard ps lists the training processes"
#define CLI_PROCESS_DENIED                                                                                   \
    "process %d belongs to another user (uid %u) and may not be read; run shmguard as that user or as root"
#define CLI_PROCESS_SANDBOXED                                                                                \
    "process %d (uid %u) may not be read from here, not even by root; run shmguard where the process was "   \
    "started, outside this container or sandbox"

/* --- The user's command ------------------------------------------------------------------------------- */

#define CLI_NO_FORK       "%s: cannot create a process: %s"
#define CLI_SHM_REFUSED   "%s: --shm: mounting the private /dev/shm worked in a test but failed for the job: %s"
#define CLI_NOT_FOUND     "%s: %s: command not found"
#define CLI_NOT_STARTED   "%s: %s: %s"
#define CLI_GUARD_MISSING "this build has no preload library; running without the guard"
#define CLI_GUARD_PATH    "%s: LD_PRELOAD cannot take a path with a colon or a blank; running without the guard"
#define CLI_GUARD_REFUSED "memory for the guard is refused here (%s); running without the guard"

/* --- Recordings --------------------------------------------------------------------------------------- */

/* The name of a command, perhaps with an option, and of a file. */
#define CLI_FILE_IS_DIRECTORY "%s: %s is a directory; give the name of a file"
#define CLI_FILE_NO_RECORDING "%s: %s exists and is not a recording; it was left unchanged, give another name"
#define CLI_FILE_OLD_EXISTS                                                                                  \
    "%s: %s.old exists and is not a recording; it was left unchanged, give another name"
#define CLI_FILE_BUSY    "%s: %s is in use, most likely by another recorder; give another name"
#define CLI_FILE_NO_NAME "%s: the name of the file is empty; give one, such as run.db"
#define CLI_FILE_NO_DIRECTORY                                                                                \
    "%s: %s cannot be created, because its directory does not exist; create the directory, or give another " \
    "name"
#define CLI_FILE_UNSUITABLE "%s: %s: this file system cannot hold a recording; give a file on a local one"
#define CLI_FILE_DENIED     "%s: %s may not be written: %s"
#define CLI_FILE_FAILED     "%s: %s: %s"

#define CLI_RECORDING_HANGS "the disk of %s does not respond; the end of the recording may be missing"
#define CLI_RECORDING_LOST_ONE                                                                               \
    "another program kept %s locked for so long that %llu sample was lost; end your transactions with "      \
    "COMMIT"
#define CLI_RECORDING_LOST_MANY                                                                              \
    "another program kept %s locked for so long that %llu samples were lost; end your transactions with "    \
    "COMMIT"
#define CLI_RECORDING_STOPPED      "the recording stopped, the training continues: %s: %s"
#define CLI_RECORDING_STOPPED_GONE "the recording stopped, the training continues: %s was removed or replaced"
#define CLI_RECORDING_STOPPED_FOREIGN                                                                        \
    "the recording stopped, the training continues: another program has written to %s"
/* Numbers of samples and of processes, a file, its size, and the file. */
#define CLI_WROTE_ONE_ONE   "wrote %llu sample of %llu process to %s (%s); next: shmguard report %s"
#define CLI_WROTE_ONE_MANY  "wrote %llu sample of %llu processes to %s (%s); next: shmguard report %s"
#define CLI_WROTE_MANY_ONE  "wrote %llu samples of %llu process to %s (%s); next: shmguard report %s"
#define CLI_WROTE_MANY_MANY "wrote %llu samples of %llu processes to %s (%s); next: shmguard report %s"

#define CLI_READ_DENIED  "%s: %s: %s; only its owner may read a recording: ask for a copy"
#define CLI_READ_LATER   "%s: %s was recorded by a later version of shmguard; use that version or a later one"
#define CLI_READ_DAMAGED "%s: %s is not a recording, or is damaged; shmguard record -o FILE creates one"
#define CLI_READ_EMPTY                                                                                       \
    "%s: %s has no samples; record again, for longer than the interval, or, if this is a copy, copy %s-wal " \
    "as well"
#define CLI_READ_UNFINISHED                                                                                  \
    "%s: %s was not closed properly, and reading it requires write access to its directory; copy it and "    \
    "%s-wal to a writable directory"
#define CLI_READ_FAILED "%s: %s: %s; give a file that shmguard record has written"

/* --- kernel ------------------------------------------------------------------------------------------- */

#define CLI_BUGREPORT_NO_PYTHON                                                                              \
    "bugreport: there is no python3 in PATH; install it, or activate your environment"

#define CLI_KERNEL_WHAT "kernel: say what to do: shmguard kernel install"
#define CLI_KERNEL_NAME                                                                                      \
    "kernel: --name takes letters, digits, dots, dashes and underscores, and no dot at the start, not "      \
    "\"%s\""
#define CLI_KERNEL_NO_IPYKERNEL                                                                              \
    "kernel: %s has no ipykernel; install it: %s -m pip install ipykernel, or name another Python with "     \
    "--python"
#define CLI_KERNEL_NO_HOME "kernel: HOME is not set; say where to install: --prefix DIR"
#define CLI_KERNEL_FAILED  "kernel: %s: %s"
/* A file, and the two names of the kernel. */
#define CLI_KERNEL_INSTALLED                                                                                 \
    "wrote %s; choose \"%s\" as the kernel of a notebook. To remove it: jupyter kernelspec remove %s"

/* --- doctor ------------------------------------------------------------------------------------------- */

/* What was given, and an id. */
#define CLI_DOCTOR_ID      "doctor: --only: there is no finding \"%s\"; man shmguard lists the ids under FINDINGS"
#define CLI_DOCTOR_ID_NEAR "doctor: --only: there is no finding \"%s\"; did you mean %s?"

/* --- clean -------------------------------------------------------------------------------------------- */

#define CLI_CLEAN_NOT_TMPFS  "/dev/shm is not a tmpfs; shmguard doctor says what to do"
#define CLI_CLEAN_NO_SHM     "there is no /dev/shm; shmguard doctor says what to do"
#define CLI_CLEAN_UNREADABLE "/dev/shm could not be read; shmguard doctor says what to do"
#define CLI_CLEAN_STOPPED    "cleaning stopped: %s"
/* A number of segments, and the name of one. */
#define CLI_CLEAN_READ_ONLY_ONE                                                                              \
    "%zu orphan (%s) could not be removed: /dev/shm is mounted read-only; as root: "                         \
    "mount -o remount,rw /dev/shm"
#define CLI_CLEAN_READ_ONLY_MANY                                                                             \
    "%zu orphans (%s, for example) could not be removed: /dev/shm is mounted read-only; as root: "           \
    "mount -o remount,rw /dev/shm"
#define CLI_CLEAN_DENIED_ONE                                                                                 \
    "%zu orphan (%s) could not be removed for lack of permission; run shmguard clean as root or as its "     \
    "owner (uid %u)"
#define CLI_CLEAN_DENIED_MANY                                                                                \
    "%zu orphans (%s, for example) could not be removed for lack of permission; run shmguard clean as root " \
    "or as the owner (uid %u)"
/* Why a segment was kept. */
#define CLI_KEPT_GONE    "another process has already removed it"
#define CLI_KEPT_FAILED  "it could not be removed: %s (its owner is uid %u)"
#define CLI_KEPT_OPENED  "another process has opened it in the meantime"
#define CLI_KEPT_CHANGED "it has changed in the meantime"
#define CLI_KEPT_UNSURE  "the kernel no longer says whether any process has it open"
#define CLI_KEPT_OTHER   "it is not of a kind that shmguard knows"

/* --- explain ------------------------------------------------------------------------------------------ */

#define CLI_EXPLAIN_INPUT  "%s: %s; give a file with the traceback or log, or pipe it in"
#define CLI_STANDARD_INPUT "standard input"
#define CLI_EXPLAIN_PROMPT "Paste the traceback or log, then press Enter and Ctrl-D."

/* --- plan --------------------------------------------------------------------------------------------- */

/* An option's name, and what the parser says about its value. */
#define CLI_PLAN_VALUE  "plan: --%s %s"
#define CLI_PLAN_SAMPLE "plan: --sample: %s"
#define CLI_PLAN_LOADER "plan: --loader %zu: %s"
#define CLI_PLAN_NO_WORKERS                                                                                  \
    "plan: --workers 0: without workers the trainer loads its own batches and needs no shared memory"
#define CLI_PLAN_GPUS_MISSING    "plan: --per-gpu needs --gpus N"
#define CLI_PLAN_PER_GPU_MISSING "plan: --gpus needs --per-gpu N or A..B"
#define CLI_PLAN_JOBS            "plan: --jobs follows from --gpus and --per-gpu; remove it"
#define CLI_PLAN_NO_BATCH                                                                                    \
    "plan: the size of a batch is missing; give --sample float32[3,224,224] --batch 64, or "                 \
    "--batch-bytes 32MiB"
#define CLI_PLAN_TWO_BATCHES                                                                                 \
    "plan: --sample and --batch-bytes both give the size of a batch; remove one of them"
#define CLI_PLAN_NO_SAMPLES "plan: the number of samples in a batch is missing; give --batch 64"
#define CLI_PLAN_NO_COUNT   "plan: the number of workers is missing; give --workers 4"
/* The same of one --loader, which has a number. */
#define CLI_PLAN_LOADER_NO_BATCH                                                                             \
    "plan: --loader %zu: the size of a batch is missing; give sample=float32[3,224,224];batch=64, or "       \
    "bytes=32MiB"
#define CLI_PLAN_LOADER_TWO_BATCHES                                                                          \
    "plan: --loader %zu: both samples and bytes give the size of a batch; remove one of them"
#define CLI_PLAN_LOADER_NO_SAMPLES                                                                           \
    "plan: --loader %zu: the number of samples in a batch is missing; give batch=64"
#define CLI_PLAN_LOADER_NO_COUNT "plan: --loader %zu: the number of workers is missing; give workers=4"
/* An option, and the one that is the source of the figures. */
#define CLI_PLAN_NO_EFFECT                                                                                   \
    "plan: --%s has no effect together with %s; remove it, or give --sample, --batch and --workers"
#define CLI_PLAN_TWO_SOURCES     "plan: give either %s or %s, not both: each of them determines the need"
#define CLI_PLAN_MEASURE_NOTHING "plan: --measure needs a command: shmguard plan --measure -- python train.py"
#define CLI_PLAN_COMMAND_IDLE                                                                                \
    "plan: a command is run only with --measure: shmguard plan --measure -- python train.py"
#define CLI_PLAN_MEASURE_ROOT "plan: --measure runs a command on this machine; remove --root"
#define CLI_PLAN_FOR_IDLE     "plan: --for needs --measure and a command"
#define CLI_PLAN_FOR_SHORT    "plan: --for takes at least 1 second"
#define CLI_PLAN_FROM_MISSING                                                                                \
    "plan: --batch scales what was measured; give the batch size that was measured as --from-batch N"
#define CLI_PLAN_FROM_IDLE "plan: --from-batch needs --batch, and --measure or --pid"
#define CLI_PLAN_FAILED    "plan: --measure: %s"
#define CLI_PLAN_UNGUARDED                                                                                   \
    "the guard cannot work here: /dev/shm is sampled %d times a second, and shorter peaks are missed"
/* Seconds, and the exit code of the command. */
#define CLI_PLAN_NOTHING_MEASURED                                                                            \
    "plan: --measure: the command used no shared memory in %.0f seconds (its exit code is %d); does its "    \
    "DataLoader have workers?"
#define CLI_PLAN_NO_TRAINING                                                                                 \
    "plan: process %d is not a training with shared tensors; shmguard ps lists the trainings"
#define CLI_PLAN_FILE_SYSTEM                                                                                 \
    "With file_system, the batches of a loop that ends early stay in /dev/shm until the training ends: "     \
    "each early end needs as much again."
#define CLI_PLAN_TOO_MUCH "plan: this is more than any machine has; check the numbers"

/* --- ps ----------------------------------------------------------------------------------------------- */

/* Two lists of names, with what was given between them. */
#define CLI_PS_SORT          "ps: --sort takes %s, not \"%s\"; with --segments: %s"
#define CLI_PS_SORT_SEGMENTS "ps: --sort takes %s, not \"%s\"; without --segments: %s"

/* --- record ------------------------------------------------------------------------------------------- */

#define CLI_RECORD_NO_FILE "record: the output file is missing; give one: shmguard record -o run.db -- ..."
#define CLI_RECORD_NO_FILE_PID                                                                               \
    "record: the output file is missing; give one: shmguard record -o run.db --pid PID"
#define CLI_RECORD_TWO "record: give either --pid or a command, not both"
#define CLI_RECORD_NOTHING                                                                                   \
    "record: there is nothing to record; give --pid PID, or a command after --: "                            \
    "shmguard record -o run.db -- python train.py"
#define CLI_RECORD_WHERE                                                                                     \
    "record: --where needs a command, because its processes must have the guard; for a training that was "   \
    "started by shmguard run: shmguard where %d"
#define CLI_RECORD_WHERE_OUTER                                                                               \
    "record: --where is ignored, because this job belongs to the shmguard run of pid %d, whose guard can "   \
    "look: shmguard where %d"
#define CLI_RECORD_INTERVAL "record: --interval takes 0.05 s to 1 h"
#define CLI_RECORD_PROGRESS "recording (samples: %llu, processes: %llu); press Ctrl-C to stop"

/* --- where -------------------------------------------------------------------------------------------- */

#define CLI_WHERE_NO_PID     "where: which training? Name one of its processes: shmguard where PID"
#define CLI_WHERE_WRONG_PID  "where: a process id is needed, not \"%s\"; shmguard ps lists the processes"
#define CLI_WHERE_NO_PROCESS "where: there is no process %d; shmguard ps lists the processes"
#define CLI_WHERE_DENIED                                                                                     \
    "where: process %d belongs to another user; run shmguard where as that user, or as root"
#define CLI_WHERE_NOT_GUARDED                                                                                \
    "where: process %d has no guard, which would have to look; start the training with: shmguard run "       \
    "--where -- python train.py"
#define CLI_WHERE_NO_SUPERVISOR                                                                              \
    "where: the shmguard run of process %d has ended, or does not answer; start the training again with: "   \
    "shmguard run --where -- python train.py"
#define CLI_WHERE_PROGRESS "looking for the line that leaks (windows: %zu); press Ctrl-C to stop"
#define CLI_WHERE_FAILED   "where: the processes could not look: %s; CPython 3.9 to 3.13 with PyTorch is needed"
#define CLI_WHERE_NOTHING                                                                                    \
    "where: no process could look; a trainer and its workers with PyTorch are needed, and batches that "     \
    "workers load"

/* --- report ------------------------------------------------------------------------------------------- */

#define CLI_REPORT_NO_FILE "report: the recording is missing; give its file: shmguard report FILE"
#define CLI_REPORT_NO_NAME "report: -o needs the name of a file, for example -o report.html"
#define CLI_REPORT_TWICE   "report: the page and --json cannot both go to standard output; give -o a file"
#define CLI_REPORT_NO_PAGE                                                                                   \
    "report: this program was built without the page; in its source directory, make page installs nodejs "   \
    "and npm and builds it; or remove -o"
#define CLI_REPORT_SAME "report: -o %s is the recording itself; give the page another name"
#define CLI_REPORT_DATABASE                                                                                  \
    "report: -o %s is a database, most likely another recording; give the page another name"
#define CLI_REPORT_FAILED   "report: %s: %s; give -o a file that can be written"
#define CLI_STANDARD_OUTPUT "standard output"
#define CLI_REPORT_WRITTEN  "The page is in %s; open it in any browser."

/* --- run ---------------------------------------------------------------------------------------------- */

/* What the parser says about the value. */
#define CLI_RUN_DEGRADE      "run: --degrade: %s"
#define CLI_RUN_RESUME       "run: --resume: %s"
#define CLI_RUN_NEEDS_GUARD  "run: --%s needs the guard; remove --%s or --no-guard"
#define CLI_RUN_NEEDS_RETRY  "run: --%s needs --retry N, the number of further attempts"
#define CLI_RUN_FORKED       "run: --forked starts the command once and as it is; remove --%s"
#define CLI_RUN_FORKED_NONE  "run: --forked %d: no child of this process waits there"
#define CLI_RUN_FORKED_PLAIN "run: the command goes on without shmguard"
#define CLI_RUN_REPORT       "run: --report %s: %s; the command was not started"
#define CLI_RUN_REPORT_LOST  "the report could not be written: %s"
/* Why, as private-shm.h has it. */
#define CLI_RUN_NO_SHM     "run: --shm: %s; the command was not started"
#define CLI_RUN_SHARED_SHM "the job has no /dev/shm of its own: %s"
#define CLI_RUN_JOINED     "joined the outer shmguard run (pid %d); its budget and options apply"
#define CLI_RUN_JOINED_ONE                                                                                   \
    "joined the outer shmguard run (pid %d); its budget and options apply; %s has no effect here"
#define CLI_RUN_JOINED_MANY                                                                                  \
    "joined the outer shmguard run (pid %d); its budget and options apply; %s have no effect here"

/* --- serve -------------------------------------------------------------------------------------------- */

#define CLI_SERVE_NO_LIBRARY                                                                                 \
    "serve: this program was built without libmicrohttpd; install its development files (Debian: "           \
    "libmicrohttpd-dev) and build again, or use --textfile DIR"
#define CLI_SERVE_INTERVAL  "serve: --interval takes 0.1 s to 1 h; 1s is usual"
#define CLI_SERVE_PROCESSES "serve: --processes takes 0 to %d"
#define CLI_SERVE_LISTEN                                                                                     \
    "serve: --listen takes an IP address and a port, such as 127.0.0.1:9477, [::1]:9477 or 0.0.0.0:9477, "   \
    "not \"%s\""
#define CLI_SERVE_BOTH    "serve: --token-file and --no-auth exclude each other; remove one of them"
#define CLI_SERVE_NO_PORT "serve: --%s needs --listen: with --textfile alone, no port is opened"
/* An address, and why not. */
#define CLI_SERVE_CANNOT_LISTEN "serve: cannot listen on %s: %s; give another address or port with --listen"
/* A file, and why not. */
#define CLI_SERVE_NO_TOKEN "serve: --token-file %s: %s; make one: (umask 077; openssl rand -hex 16 >FILE)"
#define CLI_SERVE_BAD_TOKEN                                                                                  \
    "serve: --token-file %s: the file must hold one word of 16 to 256 letters and digits; make one: "        \
    "(umask 077; openssl rand -hex 16 >FILE)"
#define CLI_SERVE_TEXTFILE      "serve: --textfile %s: %s; give the directory that node_exporter reads"
#define CLI_SERVE_TEXTFILE_LOST "serve: the metrics could not be written: %s; trying again"
#define CLI_SERVE_FAILED        "serve: the machine cannot be read: %s"
/* An address, and a token. */
#define CLI_SERVE_READY       "serving on http://%s/; press Ctrl-C to stop"
#define CLI_SERVE_READY_TOKEN "serving on http://%s/?token=%s; press Ctrl-C to stop"
/* A directory. */
#define CLI_SERVE_WRITING       "writing the metrics to %s/" CLI_SERVE_TEXTFILE_NAME "; press Ctrl-C to stop"
#define CLI_SERVE_TEXTFILE_NAME "shmguard.prom"
#define CLI_SERVE_OPEN                                                                                       \
    "anybody who can connect to %s can see the processes of this machine and their commands"

/* --- tune --------------------------------------------------------------------------------------------- */

#define CLI_TUNE_TRIAL  "tune: --trial takes 1 second to 1 day"
#define CLI_TUNE_START  "tune: --start takes at least 1 second"
#define CLI_TUNE_TRIALS "tune: --trials takes 1 to %d"
#define CLI_TUNE_SAMPLE "tune: --sample: %s"
#define CLI_TUNE_SAMPLE_IDLE                                                                                 \
    "tune: --sample has no effect without {batch} in the command, and --vary batch=16,32,64"
#define CLI_TUNE_RATE "tune: --rate: %s"
#define CLI_TUNE_VARY "tune: --vary: %s"
/* A name and a value. */
#define CLI_VARY_TWICE     "tune: --vary %s: \"%s\" is given twice; remove one of them"
#define CLI_VARY_BACKWARDS "tune: --vary %s: \"%s\" goes backwards; give the smaller number first"
#define CLI_VARY_LONG      "tune: --vary %s: \"%s\" has more than 64 values; give only those that matter"
#define CLI_VARY_BATCH     "tune: --vary %s: \"%s\" is not a batch size; give whole numbers of at least 1"
#define CLI_VARY_WORKERS   "tune: --vary %s: \"%s\" is not a number of workers; give 0 or more"
#define CLI_VARY_NO_WORKERS                                                                                  \
    "tune: --vary %s: with \"%s\" workers nothing is shared that could be counted; remove it, or use --rate"
#define CLI_VARY_MANY_VALUES "tune: --vary %s: at most %d values can be given"
#define CLI_VARY_MANY_NAMES  "tune: --vary can be given for at most %d names"
#define CLI_VARY_NOTHING                                                                                     \
    "tune: nothing varies in the command; put {batch} or {workers} in it, for example --workers {workers}, " \
    "and give --vary workers=1,2,4"
#define CLI_VARY_NO_PLACE "tune: {%s} is not in the command; put it where its value goes"
#define CLI_TUNE_TOO_MANY "tune: %zu settings are too many; at most %d can be compared"
#define CLI_TUNE_TOO_FEW  "tune: there is only one setting; give --vary several values"
/* A file, and what is wrong with it. */
#define CLI_TUNE_STATE      "tune: --state %s: %s"
#define CLI_TUNE_STATE_BAD  "tune: --state %s: %s; give another file, or remove this one to start again"
#define CLI_TUNE_STATE_LOST "tune: the state could not be written: %s"
/* Why not. */
#define CLI_TUNE_NO_GUARD                                                                                    \
    "tune: the guard, which counts the batches, cannot work here (%s); use --rate and let the training "     \
    "print its rate"
#define CLI_TUNE_NO_LIBRARY                                                                                  \
    "tune: this build has no preload library, so the guard cannot count the batches; use --rate and let "    \
    "the training print its rate"
/* A setting (batch=64 workers=4), and what happened in a whole sentence. */
#define CLI_TUNE_FIRST_FAILED "tune: the first trial failed, %s: %s"
#define CLI_TUNE_ALL_FAILED   "tune: no trial could be measured; the last one (%s) failed: %s"
/* A size, a setting, and what it needs. */
#define CLI_TUNE_NONE_FITS                                                                                   \
    "tune: none of the settings fits in %s: the smallest, %s, needs %s of shared memory alone (computed); "  \
    "try smaller values"
#define CLI_TUNE_NONE_SAFE     "tune: none of the settings is safe; try smaller values"
#define CLI_TUNE_NONE_MEASURED "tune: no trial could be measured"
#define CLI_TUNE_INTERRUPTED   "tune: stopped before the first trial ended"
/* The number of the trial, of all, and how it went. */
#define CLI_TUNE_TRIAL_ENDED "trial %zu of at most %zu: %s"
/* The number of the trial, of all, a duration, a setting, and a rate. */
#define CLI_TUNE_PROGRESS          "shmguard: trial %zu/%zu, about %s left: %s, %s"
#define CLI_TUNE_PROGRESS_STARTING "shmguard: trial %zu/%zu, about %s left: %s, starting"
#define CLI_TUNE_PROGRESS_WARMING  "shmguard: trial %zu/%zu, about %s left: %s, warming up"

/* --- watch -------------------------------------------------------------------------------------------- */

#define CLI_WATCH_INTERVAL  "watch: --interval takes 0.1 s to 1 h; 1s is usual"
#define CLI_WATCH_BOTH      "watch: --replay shows a whole recording; remove --pid"
#define CLI_WATCH_NO_INPUT  "watch: standard input is not a terminal; --once prints one picture"
#define CLI_WATCH_NO_OUTPUT "watch: standard output is not a terminal; --once prints one picture"
#define CLI_WATCH_FAILED    "watch: the machine cannot be read: %s"
#define CLI_WATCH_NO_TERM   "watch: TERM is not set, so the terminal is not known; try TERM=xterm, or --once"
#define CLI_WATCH_TERM      "watch: the terminal \"%s\" (TERM) is not known here; try TERM=xterm, or --once"
#define CLI_WATCH_DUMB      "watch: the terminal \"%s\" (TERM) cannot move its cursor; --once prints one picture"
#define CLI_WATCH_SCREEN    "watch: the terminal cannot be used; --once prints one picture"
