/* SPDX-License-Identifier: Apache-2.0 */
/* From evidence to cause: every cause in several ways, alone and with facts that support or contradict it. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "causes.h"
#include "fixes-mention.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

enum { COMMAND = 100, WORKER = 101, SECOND = 102, HELPER = 103, ENDED_MOST = 4 };

/* In the table 0 stands for unknown, and K(n) for n. */
#define K(n) ((uint64_t)(n) + 1)

static uint64_t known(uint64_t value)
{
    return value == 0 ? U64_UNKNOWN : value - 1;
}

typedef struct CauseCase {
    const char *name;
    int code;
    int signal;
    int passed_on;
    Ended ended[ENDED_MOST]; /* up to pid 0; the command is added unless it is among them */
    const char *log;         /* a file of tests/logs that the command wrote */
    const char *said;        /* or this */
    uint64_t group_kills;
    uint64_t machine_kills;
    OomKill kill; /* in the kernel's log, pid 0: none */
    bool log_read;
    uint64_t limit, used, available;
    uint64_t shm, shm_free;
    uint64_t files, files_most;
    uint64_t maps, maps_most;
    uint64_t refused;
    uint64_t refused_bytes;
    bool for_want;
    double refused_seconds;
    bool served_after;
    Refusal refusals[2]; /* up to pid 0 */

    CauseId id;
    double least, most;
    int pid;
    const char *summary;  /* a part of it */
    const char *evidence; /* a part of one of its lines, or NULL */
} CauseCase;

#define HEARD(number, n)                                                                                     \
    {                                                                                                        \
        .pid = (number), .requests = (n), .most_bytes = 600 * MIB                                            \
    }
#define UNHEARD(number, n)                                                                                   \
    {                                                                                                        \
        .pid = (number), .requests = (n), .unheard = (n), .most_bytes = 600 * MIB                            \
    }
#define TOLD(number, n)                                                                                      \
    {                                                                                                        \
        .pid = (number), .requests = (n), .unheard = (n), .most_bytes = 600 * MIB, .told = true              \
    }
#define DIED(number, who, signo)                                                                             \
    {                                                                                                        \
        .pid = (number), .role = (who), .comm = "python", .seconds = 99, .has_status = true,                 \
        .signal = (signo)                                                                                    \
    }
#define EXITED(number, who, how)                                                                             \
    {                                                                                                        \
        .pid = (number), .role = (who), .comm = "python", .seconds = 99, .has_status = true, .code = (how)   \
    }
#define GONE(number, who)                                                                                    \
    {                                                                                                        \
        .pid = (number), .role = (who), .comm = "python", .seconds = 99                                      \
    }
#define FAULTED(number, who, signo, ...)                                                                     \
    {                                                                                                        \
        .pid = (number), .role = (who), .comm = "python", .seconds = 99, .has_status = true,                 \
        .signal = (signo), .has_fault = true, .fault = {                                                     \
            .signal = (signo),                                                                               \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

#define SHM_64(left) .shm_size_bytes = 64 * MIB, .shm_free_bytes = (left)
#define SHM_UNSEEN   .shm_size_bytes = U64_UNKNOWN, .shm_free_bytes = U64_UNKNOWN
#define IN_SEGMENT(o)                                                                                        \
    .code = BUS_ADRERR, .address = 0x7f0000001000, .place = PLACE_SHM, .offset = (o),                        \
    .path = "/dev/shm/torch_101_1_2", .file_bytes = 8 * MIB
#define IN_MEMFD(o)                                                                                          \
    .code = BUS_ADRERR, .address = 0x7f0000001000, .place = PLACE_MEMFD, .offset = (o),                      \
    .path = "/memfd:torch", .file_bytes = 8 * MIB
#define IN_FILE(o, size)                                                                                     \
    .code = BUS_ADRERR, .address = 0x7f0000001000, .place = PLACE_FILE, .offset = (o),                       \
    .path = "/data/train\033.bin", .file_bytes = (size)

#define BUS_TEXT                                                                                             \
    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory " \
    "(shm).\n"                                                                                               \
    "RuntimeError: DataLoader worker (pid 101) is killed by signal: Bus error. It is possible that "         \
    "dataloader's workers are out of shared memory.\n"
#define KILLED_TEXT "RuntimeError: DataLoader worker (pid 101) is killed by signal: Killed. \n"
#define EXITED_TEXT "RuntimeError: DataLoader worker (pid(s) 101) exited unexpectedly\n"
#define VALUE_TEXT                                                                                           \
    "Traceback (most recent call last):\n  File \"train.py\", line 12, in <module>\n    step()\n  File "     \
    "\"train.py\", line 7, in step\n    raise ValueError('bad label 7')\nValueError: bad label 7\n"
#define FULL_TEXT                                                                                            \
    "RuntimeError: unable to allocate shared memory(shm) for file </torch_101_1_2>: No space left on "       \
    "device (28)\n"
#define INDEX_TEXT                                                                                           \
    "Traceback (most recent call last):\n  File \"train.py\", line 12, in <module>\n    print(batches[0])\n" \
    "IndexError: list index out of range\n"
#define IMPORT_TEXT                                                                                          \
    "Traceback (most recent call last):\n  File \"train.py\", line 12, in <module>\n    import wandb\n"      \
    "ModuleNotFoundError: No module named 'wandb'\n"
#define FILES_TEXT "OSError: [Errno 24] Too many open files\n"
#define MAPS_TEXT                                                                                            \
    "RuntimeError: unable to mmap 68 bytes from file </torch_101_2_500>: Cannot allocate memory (12)\n"
#define STACK                                                                                                \
    "Stack (most recent call first):\n  File \"load.py\", line 9 in read\n  File \"train.py\", line 3 in "   \
    "f\n"

static const CauseCase cases[] = {
    /* ended well */
    {"plain good", .id = CAUSE_OK, .least = 1, .most = 1, .summary = "The command succeeded",
     .evidence = "The exit code was 0."},
    {"good, workers killed by the trainer at its end", .ended = {DIED(WORKER, ROLE_WORKER, SIGKILL)},
     .group_kills = K(1), .id = CAUSE_OK, .least = 1, .most = 1, .summary = "The command succeeded"},
    {"good, although asked to end", .passed_on = SIGTERM, .id = CAUSE_OK, .least = 1, .most = 1,
     .summary = "The command succeeded"},
    {"good, with an exception that it survived", .said = VALUE_TEXT, .id = CAUSE_OK, .least = 1, .most = 1,
     .summary = "The command succeeded"},

    /* the mount was full */
    {"bus error in a segment, mount full", .code = 1,
     .ended = {FAULTED(WORKER, ROLE_WORKER, SIGBUS, IN_SEGMENT(4096), SHM_64(0))}, .said = BUS_TEXT,
     .id = CAUSE_SHM_EXHAUSTED, .least = 0.97, .most = 1, .pid = WORKER, .summary = "/dev/shm was full",
     .evidence = "0 B free of 64.0 MiB"},
    {"bus error in a segment, mount nearly full", .code = 1,
     .ended = {FAULTED(WORKER, ROLE_WORKER, SIGBUS, IN_SEGMENT(4096), SHM_64(200000))},
     .id = CAUSE_SHM_EXHAUSTED, .least = 0.85, .most = 0.95, .pid = WORKER, .summary = "/dev/shm was full"},
    {"bus error in a segment, mount had room, had been full", .code = 1,
     .ended = {FAULTED(WORKER, ROLE_WORKER, SIGBUS, IN_SEGMENT(4096), SHM_64(32 * MIB))}, .shm = K(64 * MIB),
     .shm_free = K(0), .id = CAUSE_SHM_EXHAUSTED, .least = 0.6, .most = 0.85, .pid = WORKER,
     .summary = "for a moment"},
    {"bus error in a segment, mount had room always", .code = 1,
     .ended = {FAULTED(WORKER, ROLE_WORKER, SIGBUS, IN_SEGMENT(4096), SHM_64(60 * MIB))}, .shm = K(64 * MIB),
     .shm_free = K(60 * MIB), .id = CAUSE_SHM_EXHAUSTED, .least = 0.3, .most = 0.55, .pid = WORKER,
     .summary = "for a moment"},
    {"several bus errors: the first counts", .code = 1,
     .ended = {FAULTED(SECOND, ROLE_WORKER, SIGBUS, IN_SEGMENT(4096), SHM_64(0)),
               FAULTED(WORKER, ROLE_WORKER, SIGBUS, IN_SEGMENT(4096), SHM_64(0))},
     .said = BUS_TEXT, .id = CAUSE_SHM_EXHAUSTED, .least = 0.97, .most = 1, .pid = SECOND,
     .summary = "DataLoader worker 102"},
    {"bus error without a place, mount seen full", .code = 1, .ended = {DIED(WORKER, ROLE_WORKER, SIGBUS)},
     .said = BUS_TEXT, .shm = K(64 * MIB), .shm_free = K(0), .id = CAUSE_SHM_EXHAUSTED, .least = 0.7,
     .most = 0.85, .pid = WORKER, .summary = "while /dev/shm was full"},
    {"bus error without a place, small mount not seen full", .code = 1,
     .ended = {DIED(WORKER, ROLE_WORKER, SIGBUS)}, .said = BUS_TEXT, .shm = K(64 * MIB),
     .shm_free = K(40 * MIB), .id = CAUSE_SHM_EXHAUSTED, .least = 0.6, .most = 0.8, .pid = WORKER,
     .summary = "most likely /dev/shm was full"},
    {"bus error without a place, huge empty mount", .code = 1, .ended = {DIED(WORKER, ROLE_WORKER, SIGBUS)},
     .said = BUS_TEXT, .shm = K(32 * GIB), .shm_free = K(31 * GIB), .id = CAUSE_UNKNOWN, .most = 0.3,
     .pid = WORKER, .summary = "could not be determined"},
    {"a command that sends itself SIGBUS", .code = 135, .signal = SIGBUS,
     .ended = {FAULTED(COMMAND, ROLE_OTHER, SIGBUS, .code = SI_USER, .sender = COMMAND, SHM_64(60 * MIB))},
     .shm = K(64 * MIB), .shm_free = K(60 * MIB), .id = CAUSE_UNKNOWN, .most = 0.3, .pid = COMMAND,
     .summary = "SIGBUS"},
    {"bus error of a worker that only the trainer tells of", .code = 1, .said = BUS_TEXT, .shm = K(64 * MIB),
     .shm_free = K(0), .id = CAUSE_SHM_EXHAUSTED, .least = 0.6, .most = 0.8, .pid = WORKER,
     .summary = "Process 101"},
    {"no space for a segment", .code = 1, .said = FULL_TEXT, .id = CAUSE_SHM_EXHAUSTED, .least = 0.9,
     .most = 0.98, .pid = WORKER, .summary = "Shared memory ran out", .evidence = "The error output says"},
    {"no space for a segment, mount full", .code = 1, .said = FULL_TEXT, .shm = K(64 * MIB),
     .shm_free = K(4096), .id = CAUSE_SHM_EXHAUSTED, .least = 0.98, .most = 1, .pid = WORKER,
     .summary = "Shared memory ran out", .evidence = "when it was fullest"},
    {"no space somewhere, mount full", .code = 1, .said = "OSError: [Errno 28] No space left on device\n",
     .shm = K(64 * MIB), .shm_free = K(0), .id = CAUSE_SHM_EXHAUSTED, .least = 0.6, .most = 0.8,
     .summary = "lack of space"},
    {"stale errno of 2.10", .code = 1, .log = "torch-2.10-stale-errno", .id = CAUSE_SHM_EXHAUSTED,
     .least = 0.85, .most = 0.97, .pid = -1, .summary = "Shared memory ran out"},
    {"the feeder found no room, the trainer timed out", .code = 1, .log = "torch-2.13-feeder",
     .id = CAUSE_SHM_EXHAUSTED, .least = 0.85, .most = 1, .pid = -1, .summary = "Shared memory ran out"},
    {"1.13, small mount, SIGBUS", .code = 1, .log = "torch-1.13-small-shm-fork-file_descriptor",
     .ended = {DIED(WORKER, ROLE_WORKER, SIGBUS)}, .shm = K(64 * MIB), .shm_free = K(12 * MIB),
     .id = CAUSE_SHM_EXHAUSTED, .least = 0.6, .most = 0.9, .pid = WORKER, .summary = "/dev/shm"},
    {"a worker vanished, mount full", .code = 1, .ended = {GONE(WORKER, ROLE_WORKER)}, .said = EXITED_TEXT,
     .shm = K(64 * MIB), .shm_free = K(0), .id = CAUSE_SHM_EXHAUSTED, .least = 0.4, .most = 0.6,
     .pid = WORKER, .summary = "nothing else explains"},

    /* the budget */
    {"refused, and PyTorch says no space", .code = 1, .said = FULL_TEXT, .refused = 1,
     .refused_bytes = 600 * MIB, .id = CAUSE_BUDGET_EXCEEDED, .least = 0.95, .most = 1, .pid = WORKER,
     .summary = "larger than the whole budget",
     .evidence = "1 request for 600.0 MiB of shared memory was refused."},
    {"refused for want of memory", .code = 1, .said = FULL_TEXT, .refused = 1, .refused_bytes = 8 * MIB,
     .for_want = true, .id = CAUSE_BUDGET_EXCEEDED, .least = 0.95, .most = 1, .pid = WORKER,
     .summary = "had at that moment"},
    {"refused, but the mount was full too", .code = 1, .said = FULL_TEXT, .refused = 1,
     .refused_bytes = 8 * MIB, .shm = K(64 * MIB), .shm_free = K(0), .id = CAUSE_BUDGET_EXCEEDED,
     .least = 0.6, .most = 0.85, .pid = WORKER, .summary = "budget"},
    {"refused in the feeder, the trainer timed out", .code = 1, .log = "torch-2.13-timeout", .refused = 1,
     .refused_bytes = 8 * MIB, .id = CAUSE_BUDGET_EXCEEDED, .least = 0.7, .most = 0.9, .pid = WORKER,
     .summary = "budget"},
    {"refused, nobody told", .code = 1, .refused = 1, .refused_bytes = 8 * MIB, .id = CAUSE_BUDGET_EXCEEDED,
     .least = 0.5, .most = 0.8, .pid = WORKER, .summary = "budget"},
    {"refused once, but died of an exception of its own", .code = 1, .said = VALUE_TEXT, .refused = 1,
     .refused_bytes = 8 * MIB, .id = CAUSE_PYTHON_ERROR, .least = 0.6, .most = 0.9, .pid = COMMAND,
     .summary = "bad label 7"},

    /* batches that were lost, and what hides it */
    {"lost in a queue's thread, exit code 0", .refused = 3, .refused_bytes = 600 * MIB, .served_after = true,
     .refusals = {UNHEARD(WORKER, 3)}, .id = CAUSE_BUDGET_EXCEEDED, .least = 0.9, .most = 1, .pid = WORKER,
     .summary = "batches were lost. A tensor of 600.0 MiB is larger than the whole budget of 512.0 MiB. The "
                "command exited with code 0",
     .evidence =
         "3 requests for shared memory were refused, the largest for 600.0 MiB. 3 came from process 101."},
    {"lost for want of memory, exit code 0", .refused = 1, .refused_bytes = 8 * MIB, .for_want = true,
     .refusals = {UNHEARD(WORKER, 1)}, .id = CAUSE_BUDGET_EXCEEDED, .least = 0.9, .most = 1, .pid = WORKER,
     .summary = "had no memory left"},
    {"the process that was refused ended with its exception", .refused = 1, .refused_bytes = 600 * MIB,
     .ended = {EXITED(WORKER, ROLE_OTHER, 1)}, .served_after = true, .refusals = {HEARD(WORKER, 1)},
     .id = CAUSE_BUDGET_EXCEEDED, .least = 0.9, .most = 1, .pid = WORKER, .summary = "batches were lost"},
    {"a worker that was ended for it, and nothing followed", .refused = 2, .refused_bytes = 600 * MIB,
     .refusals = {TOLD(WORKER, 2)}, .id = CAUSE_BUDGET_EXCEEDED, .least = 0.9, .most = 1, .pid = WORKER,
     .summary = "batches were lost"},
    {"a worker that was ended for it, and the trainer went on", .refused = 2, .refused_bytes = 600 * MIB,
     .served_after = true, .refusals = {TOLD(WORKER, 2)}, .id = CAUSE_OK, .least = 1, .most = 1,
     .summary = "The command succeeded"},
    {"one of two workers was gone before it could be ended", .refused = 4, .refused_bytes = 600 * MIB,
     .served_after = true, .refusals = {TOLD(WORKER, 2), UNHEARD(SECOND, 2)}, .id = CAUSE_BUDGET_EXCEEDED,
     .least = 0.9, .most = 1, .pid = WORKER, .summary = "batches were lost"},
    {"caught, and tried with less", .refused = 2, .refused_bytes = 600 * MIB, .served_after = true,
     .refusals = {HEARD(COMMAND, 2)}, .id = CAUSE_OK, .least = 1, .most = 1,
     .summary = "The command succeeded"},
    {"caught, and nothing followed", .refused = 1, .refused_bytes = 600 * MIB,
     .refusals = {HEARD(COMMAND, 1)}, .id = CAUSE_BUDGET_EXCEEDED, .least = 0.5, .most = 0.7, .pid = WORKER,
     .summary = "may be missing"},
    {"more processes were refused than are known", .refused = 9, .refused_bytes = 600 * MIB,
     .served_after = true, .refusals = {HEARD(WORKER, 2)}, .id = CAUSE_BUDGET_EXCEEDED, .least = 0.5,
     .most = 0.7, .pid = WORKER, .summary = "may be missing"},
    {"lost, and then missing", .code = 1, .said = INDEX_TEXT, .refused = 4, .refused_bytes = 600 * MIB,
     .refused_seconds = 98, .refusals = {UNHEARD(WORKER, 4)}, .id = CAUSE_BUDGET_EXCEEDED, .least = 0.8,
     .most = 0.9, .pid = WORKER, .summary = "batches were lost", .evidence = "IndexError"},
    {"lost long before the exception", .code = 1, .said = INDEX_TEXT, .refused = 4,
     .refused_bytes = 600 * MIB, .refused_seconds = 3, .refusals = {UNHEARD(WORKER, 4)},
     .id = CAUSE_BUDGET_EXCEEDED, .least = 0.5, .most = 0.7, .pid = WORKER, .summary = "batches were lost"},
    {"lost, but the exception is about something else", .code = 1, .said = IMPORT_TEXT, .refused = 4,
     .refused_bytes = 600 * MIB, .refused_seconds = 98, .refusals = {UNHEARD(WORKER, 4)},
     .id = CAUSE_PYTHON_ERROR, .least = 0.6, .most = 1, .pid = COMMAND, .summary = "wandb"},
    {"handled, and an exception of its own", .code = 1, .said = VALUE_TEXT, .refused = 1,
     .refused_bytes = 600 * MIB, .refused_seconds = 98, .served_after = true, .refusals = {HEARD(WORKER, 1)},
     .id = CAUSE_PYTHON_ERROR, .least = 0.6, .most = 1, .pid = COMMAND, .summary = "bad label 7"},
    {"a worker left before it could be ended", .code = 1, .ended = {EXITED(WORKER, ROLE_WORKER, 0)},
     .said = EXITED_TEXT, .refused = 2, .refused_bytes = 600 * MIB, .refusals = {UNHEARD(WORKER, 2)},
     .id = CAUSE_BUDGET_EXCEEDED, .least = 0.8, .most = 0.9, .pid = WORKER, .summary = "budget"},

    /* the OOM killer */
    {"killed, counted and logged", .code = 1, .ended = {DIED(WORKER, ROLE_WORKER, SIGKILL)},
     .said = KILLED_TEXT, .group_kills = K(1), .machine_kills = K(1),
     .kill = {.pid = WORKER, .scope = OOM_SCOPE_CGROUP}, .log_read = true, .limit = K(2 * GIB),
     .id = CAUSE_CGROUP_OOM, .least = 0.99, .most = 0.99, .pid = WORKER, .summary = "at its memory limit",
     .evidence = "log says"},
    {"killed and counted", .code = 1, .ended = {DIED(WORKER, ROLE_WORKER, SIGKILL)}, .said = KILLED_TEXT,
     .group_kills = K(1), .limit = K(2 * GIB), .id = CAUSE_CGROUP_OOM, .least = 0.9, .most = 0.92,
     .pid = WORKER, .summary = "DataLoader worker 101 was killed by the kernel"},
    {"killed and counted, group at its limit", .code = 137, .signal = SIGKILL, .group_kills = K(1),
     .limit = K(2 * GIB), .used = K(2 * GIB - MIB), .id = CAUSE_CGROUP_OOM, .least = 0.93, .most = 0.97,
     .pid = COMMAND, .summary = "The command (pid 100)", .evidence = "limit is 2.0 GiB"},
    {"killed and counted, the log names another", .code = 1, .ended = {DIED(WORKER, ROLE_WORKER, SIGKILL)},
     .group_kills = K(1), .kill = {.pid = 7, .comm = "java", .scope = OOM_SCOPE_CGROUP}, .log_read = true,
     .limit = K(2 * GIB), .id = CAUSE_CGROUP_OOM, .least = 0.6, .most = 0.75, .pid = WORKER,
     .summary = "at its memory limit"},
    {"killed and counted, but the group has no limit and the machine was short", .code = 1,
     .ended = {DIED(WORKER, ROLE_WORKER, SIGKILL)}, .group_kills = K(1), .available = K(20 * MIB),
     .id = CAUSE_SYSTEM_OOM, .least = 0.7, .most = 0.9, .pid = WORKER, .summary = "machine was out of memory",
     .evidence = "available memory fell to 20.0 MiB"},
    {"logged, machine scope", .code = 1, .ended = {DIED(WORKER, ROLE_WORKER, SIGKILL)}, .machine_kills = K(2),
     .kill = {.pid = WORKER, .scope = OOM_SCOPE_MACHINE}, .log_read = true, .id = CAUSE_SYSTEM_OOM,
     .least = 0.99, .most = 0.99, .pid = WORKER, .summary = "machine was out of memory"},
    {"only the machine's counter rose", .code = 137, .signal = SIGKILL, .machine_kills = K(1),
     .id = CAUSE_SYSTEM_OOM, .least = 0.55, .most = 0.65, .pid = COMMAND, .summary = "machine was out"},
    {"the machine's counter rose, but the log names others", .code = 137, .signal = SIGKILL,
     .machine_kills = K(1), .kill = {.pid = 7, .comm = "java", .scope = OOM_SCOPE_MACHINE}, .log_read = true,
     .id = CAUSE_KILLED, .least = 0.5, .most = 0.7, .pid = COMMAND, .summary = "from outside",
     .evidence = "of other processes"},
    {"the machine's counter rose, but not the group's", .code = 137, .signal = SIGKILL, .machine_kills = K(1),
     .group_kills = K(0), .id = CAUSE_KILLED, .least = 0.6, .most = 0.8, .pid = COMMAND,
     .summary = "from outside", .evidence = "none in the job's control group"},
    {"a worker vanished, and the log names it", .code = 1, .ended = {GONE(WORKER, ROLE_WORKER)},
     .said = EXITED_TEXT, .kill = {.pid = WORKER, .scope = OOM_SCOPE_CGROUP}, .log_read = true,
     .group_kills = K(1), .id = CAUSE_CGROUP_OOM, .least = 0.95, .most = 1, .pid = WORKER,
     .summary = "DataLoader worker 101"},
    {"a worker vanished, and the counter rose", .code = 1, .ended = {GONE(WORKER, ROLE_WORKER)},
     .said = EXITED_TEXT, .group_kills = K(1), .limit = K(GIB), .id = CAUSE_CGROUP_OOM, .least = 0.65,
     .most = 0.85, .pid = WORKER, .summary = "at its memory limit"},
    {"the trainer alone tells that a worker was killed", .code = 1, .said = KILLED_TEXT, .group_kills = K(1),
     .limit = K(GIB), .id = CAUSE_CGROUP_OOM, .least = 0.85, .most = 0.95, .pid = WORKER,
     .summary = "Process 101"},
    {"a shell tells of a kill below it, and the counter rose", .code = 137, .group_kills = K(1),
     .limit = K(GIB), .id = CAUSE_CGROUP_OOM, .least = 0.5, .most = 0.7, .summary = "at its memory limit",
     .evidence = "stands for SIGKILL"},
    {"an OOM kill before an exception that is about something else", .code = 1,
     .ended = {DIED(WORKER, ROLE_WORKER, SIGKILL)}, .said = VALUE_TEXT, .group_kills = K(1), .limit = K(GIB),
     .id = CAUSE_CGROUP_OOM, .least = 0.6, .most = 0.95, .pid = WORKER, .summary = "at its memory limit"},

    /* killed */
    {"a worker was killed, no OOM", .code = 1, .ended = {DIED(WORKER, ROLE_WORKER, SIGKILL)},
     .said = KILLED_TEXT, .group_kills = K(0), .machine_kills = K(0), .id = CAUSE_KILLED, .least = 0.9,
     .most = 0.97, .pid = WORKER, .summary = "from outside", .evidence = "killed no process"},
    {"the command was killed, nothing known", .code = 137, .signal = SIGKILL, .id = CAUSE_KILLED,
     .least = 0.3, .most = 0.6, .pid = COMMAND, .summary = "could not be determined",
     .evidence = "could not be read"},
    {"asked to end, through us", .code = 143, .signal = SIGTERM, .passed_on = SIGTERM, .id = CAUSE_KILLED,
     .least = 0.9, .most = 1, .pid = COMMAND, .summary = "asked to stop", .evidence = "passed it on"},
    {"asked to end, by others", .code = 143, .signal = SIGTERM, .id = CAUSE_KILLED, .least = 0.6,
     .most = 0.85, .pid = COMMAND, .summary = "asked to stop"},
    {"asked to end through us, ended by a code of its own", .code = 3, .passed_on = SIGTERM,
     .said = VALUE_TEXT, .id = CAUSE_KILLED, .least = 0.5, .most = 0.8, .pid = COMMAND,
     .summary = "asked to stop"},
    {"a shell tells of SIGTERM", .code = 143, .id = CAUSE_KILLED, .least = 0.25, .most = 0.6,
     .summary = "asked to stop", .evidence = "The exit code was 143"},
    {"a worker got SIGTERM, and the trainer says so", .code = 1,
     .ended = {DIED(WORKER, ROLE_WORKER, SIGTERM)},
     .said = "RuntimeError: DataLoader worker (pid 101) is killed by signal: Terminated.\n",
     .id = CAUSE_KILLED, .least = 0.75, .most = 0.9, .pid = WORKER, .summary = "SIGTERM"},
    {"a helper was killed, and the command ended by itself", .code = 5,
     .ended = {DIED(103, ROLE_OTHER, SIGKILL)}, .group_kills = K(0), .machine_kills = K(0),
     .id = CAUSE_KILLED, .least = 0.3, .most = 0.6, .pid = 103, .summary = "killed from outside",
     .evidence = "then exited with code 5"},
    {"a worker that left by itself", .code = 1, .ended = {EXITED(WORKER, ROLE_WORKER, 7)},
     .said = EXITED_TEXT, .id = CAUSE_UNKNOWN, .most = 0.3, .pid = WORKER,
     .summary = "exited with code 7 by itself"},
    {"a worker that left by itself, of which only the connection tells", .code = 1,
     .ended = {{.pid = WORKER, .ppid = COMMAND, .seconds = 99, .has_status = true, .code = 7}},
     .said = "ConnectionResetError: [Errno 104] Connection reset by peer\n", .id = CAUSE_UNKNOWN, .most = 0.3,
     .pid = WORKER, .summary = "exited with code 7 by itself"},
    {"a child that succeeded, and a lost connection", .code = 1,
     .ended = {{.pid = WORKER, .ppid = COMMAND, .seconds = 99, .has_status = true}},
     .said = "ConnectionResetError: [Errno 104] Connection reset by peer\n", .id = CAUSE_UNKNOWN, .most = 0.3,
     .pid = COMMAND, .summary = "only after-effects"},
    {"killed, but by us", .code = 1,
     .ended = {{.pid = WORKER, .role = ROLE_WORKER, .has_status = true, .signal = SIGKILL, .by_us = true}},
     .group_kills = K(0), .id = CAUSE_UNKNOWN, .most = 0.3, .pid = COMMAND,
     .summary = "The command exited with code"},
    {"a full mount before the end, but we were asked to end it", .code = 143, .signal = SIGTERM,
     .passed_on = SIGTERM,
     .ended = {{.pid = WORKER,
                .role = ROLE_WORKER,
                .seconds = 50,
                .has_status = true,
                .signal = SIGBUS,
                .has_fault = true,
                .fault = {.signal = SIGBUS, IN_SEGMENT(0), SHM_64(0)}}},
     .id = CAUSE_KILLED, .least = 0.9, .most = 1, .pid = COMMAND,
     .summary = "Before that: DataLoader worker 101 died of a bus error", .evidence = "0 B free"},
    {"time limit", .code = 143, .signal = SIGTERM, .log = "slurm-time-limit", .id = CAUSE_KILLED,
     .least = 0.6, .most = 1, .pid = -1, .summary = ""},

    /* crashes */
    {"segfault in the command", .code = 139, .signal = SIGSEGV,
     .ended = {FAULTED(COMMAND, ROLE_TRAINER, SIGSEGV, .code = SEGV_MAPERR, .address = 8,
                       .place = PLACE_NOT_MAPPED, SHM_UNSEEN, .stack = STACK)},
     .id = CAUSE_SEGFAULT, .least = 0.95, .most = 1, .pid = COMMAND, .summary = "a null pointer",
     .evidence = "address 0x8"},
    {"segfault in a worker", .code = 1,
     .ended = {FAULTED(WORKER, ROLE_WORKER, SIGSEGV, .code = SEGV_ACCERR, .address = 0x7f0000000000,
                       .place = PLACE_FILE, .path = "/usr/lib/libx.so", .file_bytes = U64_UNKNOWN,
                       SHM_64(0))},
     .shm = K(64 * MIB), .shm_free = K(0), .id = CAUSE_SEGFAULT, .least = 0.95, .most = 1, .pid = WORKER,
     .summary = "DataLoader worker 101 crashed"},
    {"segfault that nobody recorded", .code = 139, .signal = SIGSEGV, .id = CAUSE_SEGFAULT, .least = 0.8,
     .most = 0.95, .pid = COMMAND, .summary = "SIGSEGV"},
    {"a shell tells of a segfault", .code = 139, .id = CAUSE_SEGFAULT, .least = 0.4, .most = 0.6,
     .summary = "SIGSEGV", .evidence = "The exit code was 139"},
    {"SIGSEGV that somebody sent", .code = 139, .signal = SIGSEGV,
     .ended = {FAULTED(COMMAND, ROLE_OTHER, SIGSEGV, .code = SI_USER, .sender = 55, SHM_UNSEEN)},
     .id = CAUSE_UNKNOWN, .most = 0.4, .pid = COMMAND, .summary = "process 55 sent"},
    {"SIGSEGV that it sent itself", .code = 139, .signal = SIGSEGV,
     .ended = {FAULTED(COMMAND, ROLE_OTHER, SIGSEGV, .code = SI_USER, .sender = COMMAND, SHM_UNSEEN)},
     .id = CAUSE_SEGFAULT, .least = 0.8, .most = 0.95, .pid = COMMAND, .summary = "SIGSEGV"},
    {"an exception, then a segfault at the end", .code = 139, .signal = SIGSEGV, .said = VALUE_TEXT,
     .ended = {FAULTED(COMMAND, ROLE_TRAINER, SIGSEGV, .code = SEGV_MAPERR, .address = 0x10000, SHM_UNSEEN)},
     .id = CAUSE_SEGFAULT, .least = 0.6, .most = 0.85, .pid = COMMAND, .summary = "SIGSEGV",
     .evidence = "bad label 7"},
    {"a helper crashed long ago, the training raised", .code = 1, .said = VALUE_TEXT,
     .ended = {{.pid = HELPER, .seconds = 10, .has_status = true, .signal = SIGSEGV}},
     .id = CAUSE_PYTHON_ERROR, .least = 0.7, .most = 0.9, .pid = COMMAND, .summary = "bad label 7"},
    {"a fault that was handled, then an exception", .code = 1, .said = VALUE_TEXT,
     .ended = {{.pid = COMMAND,
                .role = ROLE_TRAINER,
                .seconds = 99,
                .has_status = true,
                .code = 1,
                .has_fault = true,
                .fault = {.signal = SIGSEGV, .code = SEGV_MAPERR}}},
     .id = CAUSE_PYTHON_ERROR, .least = 0.7, .most = 0.9, .pid = COMMAND, .summary = "bad label 7"},
    {"abort, and the heap was corrupt", .code = 134, .signal = SIGABRT,
     .ended = {FAULTED(COMMAND, ROLE_TRAINER, SIGABRT, .code = SI_TKILL, .sender = COMMAND, SHM_UNSEEN)},
     .said = "double free or corruption (!prev)\n", .id = CAUSE_SEGFAULT, .least = 0.7, .most = 0.95,
     .pid = COMMAND, .summary = "corrupted the heap"},
    {"abort for a C++ exception", .code = 134, .signal = SIGABRT,
     .said = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  bad magic\n",
     .id = CAUSE_PYTHON_ERROR, .least = 0.4, .most = 0.7, .pid = COMMAND, .summary = "bad magic"},
    {"abort for segments that were gone", .code = 134, .signal = SIGABRT,
     .said = "terminate called after throwing an instance of 'std::runtime_error'\n"
             "  what():  could not unlink the shared memory file /torch_100_1_1: No such file or directory "
             "(2)\n",
     .id = CAUSE_SEGMENTS_DELETED, .least = 0.8, .most = 0.95, .pid = COMMAND, .summary = "deleted"},
    {"abort, nothing said", .code = 134, .signal = SIGABRT, .id = CAUSE_UNKNOWN, .most = 0.4, .pid = COMMAND,
     .summary = "aborted itself"},
    {"division by zero", .code = 136, .signal = SIGFPE,
     .ended = {FAULTED(COMMAND, ROLE_TRAINER, SIGFPE, .code = FPE_INTDIV, .address = 0x4000, SHM_UNSEEN)},
     .said = VALUE_TEXT, .id = CAUSE_UNKNOWN, .most = 0.5, .pid = COMMAND, .summary = "by zero"},

    /* mapped files */
    {"a file that was cut short", .code = 1,
     .ended = {FAULTED(WORKER, ROLE_WORKER, SIGBUS, IN_FILE(8192, 4096), SHM_64(60 * MIB))}, .said = BUS_TEXT,
     .id = CAUSE_BUS_ERROR_FILE, .least = 0.95, .most = 1, .pid = WORKER,
     .summary = "/data/train\\x1b.bin beyond its end", .evidence = "offset 8192"},
    {"a file that was cut short, although the mount is full", .code = 135, .signal = SIGBUS,
     .ended = {FAULTED(COMMAND, ROLE_TRAINER, SIGBUS, IN_FILE(8192, 0), SHM_64(0))}, .shm = K(64 * MIB),
     .shm_free = K(0), .id = CAUSE_BUS_ERROR_FILE, .least = 0.95, .most = 1, .pid = COMMAND,
     .summary = "the file was truncated"},
    {"a file, its size unknown", .code = 1,
     .ended = {FAULTED(WORKER, ROLE_WORKER, SIGBUS, IN_FILE(8192, U64_UNKNOWN), SHM_UNSEEN)},
     .id = CAUSE_BUS_ERROR_FILE, .least = 0.6, .most = 0.8, .pid = WORKER, .summary = "most likely"},
    {"inside of a file", .code = 1,
     .ended = {FAULTED(WORKER, ROLE_WORKER, SIGBUS, IN_FILE(8192, MIB), SHM_UNSEEN)},
     .id = CAUSE_BUS_ERROR_FILE, .least = 0.4, .most = 0.6, .pid = WORKER, .summary = "storage failed"},
    {"a segment that was cut short", .code = 1,
     .ended = {FAULTED(WORKER, ROLE_WORKER, SIGBUS, IN_SEGMENT(8 * MIB), SHM_64(60 * MIB))},
     .id = CAUSE_BUS_ERROR_FILE, .least = 0.7, .most = 0.9, .pid = WORKER, .summary = "shared segment"},
    {"a memfd that was cut short", .code = 1,
     .ended = {FAULTED(WORKER, ROLE_WORKER, SIGBUS, IN_MEMFD(9 * MIB), SHM_64(0))},
     .id = CAUSE_BUS_ERROR_FILE, .least = 0.7, .most = 0.9, .pid = WORKER, .summary = "shared segment"},
    {"inside of a memfd, the group at its limit", .code = 1,
     .ended = {FAULTED(WORKER, ROLE_WORKER, SIGBUS, IN_MEMFD(4096), SHM_64(0))}, .said = BUS_TEXT,
     .limit = K(GIB), .used = K(GIB), .id = CAUSE_UNKNOWN, .most = 0.4, .pid = WORKER, .summary = "memfd",
     .evidence = "control group used at most 1.0 GiB"},
    {"broken RAM", .code = 135, .signal = SIGBUS,
     .ended = {FAULTED(COMMAND, ROLE_TRAINER, SIGBUS, .code = BUS_MCEERR_AR, .place = PLACE_ANONYMOUS,
                       SHM_64(0))},
     .id = CAUSE_UNKNOWN, .most = 0.6, .pid = COMMAND, .summary = "hardware memory error"},

    /* descriptors and mappings */
    {"too many open files, at the limit", .code = 1, .said = FILES_TEXT, .files = K(1024),
     .files_most = K(1020), .id = CAUSE_FD_EXHAUSTED, .least = 0.99, .most = 1, .summary = "file descriptors",
     .evidence = "1020 open files; its limit is 1024"},
    {"ancdata", .code = 1, .said = "RuntimeError: received 0 items of ancdata\n", .id = CAUSE_FD_EXHAUSTED,
     .least = 0.9, .most = 0.98, .summary = "file descriptors"},
    {"too many open files, never seen near", .code = 1, .said = FILES_TEXT, .files = K(65536),
     .files_most = K(90), .id = CAUSE_FD_EXHAUSTED, .least = 0.7, .most = 0.92,
     .summary = "file descriptors"},
    {"at the limit of open files, and a symptom", .code = 1, .said = "ConnectionResetError: [Errno 104]\n",
     .files = K(1024), .files_most = K(1024), .id = CAUSE_FD_EXHAUSTED, .least = 0.4, .most = 0.65,
     .summary = "nothing else explains"},
    {"no mapping, at the limit", .code = 1, .said = MAPS_TEXT, .maps = K(65530), .maps_most = K(65500),
     .id = CAUSE_MAPS_EXHAUSTED, .least = 0.99, .most = 1, .pid = -1, .summary = "vm.max_map_count"},
    {"no mapping, far from the limit", .code = 1, .said = MAPS_TEXT, .maps = K(65530), .maps_most = K(300),
     .id = CAUSE_MAPS_EXHAUSTED, .least = 0.2, .most = 0.65, .pid = -1, .summary = "far below its limit"},
    {"no memory, at the limit of mappings", .code = 1, .log = "torch-1.13-numpy-memory", .maps = K(65530),
     .maps_most = K(65530), .id = CAUSE_MAPS_EXHAUSTED, .least = 0.6, .most = 0.85, .pid = -1,
     .summary = "limit of memory mappings"},

    /* segments deleted */
    {"2.13, deleted", .code = 1, .log = "torch-2.13-deleted", .id = CAUSE_SEGMENTS_DELETED, .least = 0.7,
     .most = 1, .pid = -1, .summary = "deleted"},
    {"1.13, deleted", .code = 1, .log = "torch-1.13-deleted", .id = CAUSE_SEGMENTS_DELETED, .least = 0.7,
     .most = 1, .pid = -1, .summary = "deleted"},

    /* exceptions */
    {"in the main loop", .code = 1, .said = VALUE_TEXT, .id = CAUSE_PYTHON_ERROR, .least = 0.7, .most = 0.9,
     .pid = COMMAND, .summary = "ValueError: bad label 7, at train.py line 7, in step"},
    {"in __getitem__, 2.13", .code = 1, .log = "torch-2.13-item", .id = CAUSE_PYTHON_ERROR, .least = 0.8,
     .most = 1, .pid = COMMAND, .summary = "worker"},
    {"in collate, 1.13", .code = 1, .log = "torch-1.13-collate", .id = CAUSE_PYTHON_ERROR, .least = 0.7,
     .most = 1, .pid = COMMAND, .summary = ""},
    {"an exception, and workers killed when the trainer tidied up", .code = 1, .said = VALUE_TEXT,
     .ended = {DIED(WORKER, ROLE_WORKER, SIGKILL), DIED(SECOND, ROLE_WORKER, SIGTERM)}, .group_kills = K(0),
     .id = CAUSE_PYTHON_ERROR, .least = 0.6, .most = 0.85, .pid = COMMAND, .summary = "bad label 7",
     .evidence = "was ended by SIGKILL"},
    {"a worker raised, and the others got SIGTERM", .code = 1, .log = "torch-2.13-item",
     .ended = {DIED(WORKER, ROLE_WORKER, SIGTERM), EXITED(SECOND, ROLE_WORKER, 1)}, .id = CAUSE_PYTHON_ERROR,
     .least = 0.8, .most = 1, .pid = COMMAND, .summary = "worker"},
    {"the disk was full, not the mount", .code = 1, .said = "OSError: [Errno 28] No space left on device\n",
     .shm = K(64 * MIB), .shm_free = K(60 * MIB), .id = CAUSE_PYTHON_ERROR, .least = 0.6, .most = 0.9,
     .pid = COMMAND, .summary = "full"},

    /* hangs */
    {"a loader that timed out", .code = 1, .log = "torch-2.13-timeout", .id = CAUSE_WORKER_HANG, .least = 0.8,
     .most = 0.95, .summary = "timeout", .evidence = "No process of the job had crashed"},
    {"a loader that timed out because a worker had crashed", .code = 1, .log = "torch-2.13-timeout",
     .ended = {FAULTED(WORKER, ROLE_WORKER, SIGSEGV, .code = SEGV_MAPERR, SHM_UNSEEN)}, .id = CAUSE_SEGFAULT,
     .least = 0.8, .most = 1, .pid = WORKER, .summary = "DataLoader worker 101"},

    /* nothing */
    {"a plain exit code", .code = 3, .id = CAUSE_UNKNOWN, .most = 0, .pid = COMMAND,
     .summary = "The command exited with code", .evidence = "The exit code was 3."},
    {"an exit code that stands for nothing", .code = 255, .id = CAUSE_UNKNOWN, .most = 0, .pid = COMMAND,
     .summary = "The command exited with code"},
    {"Ctrl-C", .code = 130, .signal = SIGINT, .passed_on = SIGINT, .log = "keyboard-interrupt",
     .id = CAUSE_UNKNOWN, .most = 0, .pid = COMMAND, .summary = "Ctrl-C", .evidence = "passed it on"},
    {"an interrupt from elsewhere", .code = 130, .signal = SIGINT, .log = "keyboard-interrupt",
     .id = CAUSE_UNKNOWN, .most = 0, .pid = COMMAND, .summary = "Ctrl-C"},
    {"an odd signal", .code = 128 + 40, .signal = 40, .id = CAUSE_UNKNOWN, .most = 0, .pid = COMMAND,
     .summary = "ended by SIGRTMIN+", .evidence = "SIGRTMIN+"},
    {"a worker vanished, nothing was short", .code = 1, .ended = {GONE(WORKER, ROLE_WORKER)},
     .said = EXITED_TEXT, .group_kills = K(0), .shm = K(64 * MIB), .shm_free = K(60 * MIB),
     .id = CAUSE_UNKNOWN, .most = 0.3, .pid = WORKER, .summary = "died"},
};

static void log_load(const char *name, Buffer *ret)
{
    char path[512];
    snprintf(path, sizeof path, "%s/logs/%s.log", TESTS_DIRECTORY, name);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail_msg("%s: %s", path, strerror(errno));
    assert_int_equal(buffer_read_fd(ret, fd, SIZE_MAX / 2), 0);
}

/* `ended` has room for one more than the case names. */
static Evidence evidence_of(const CauseCase *it, Ended *ended, OomKill *kill, const Buffer *log)
{
    size_t n = 0;
    Ended *command = NULL;
    for (; n < ENDED_MOST && it->ended[n].pid != 0; n++) {
        ended[n] = it->ended[n];
        if (ended[n].pid == COMMAND)
            command = &ended[n];
    }
    if (!command) {
        command = &ended[n++];
        *command = (Ended){.pid = COMMAND,
                           .role = it->said || it->log ? ROLE_TRAINER : ROLE_OTHER,
                           .seconds = 100,
                           .has_status = true,
                           .signal = it->signal,
                           .code = it->code};
    }
    command->said = it->log ? (Text){buffer_text(log), log->size} : text_of(it->said);

    *kill = it->kill;
    Evidence evidence = EVIDENCE_NONE;
    evidence.pid = COMMAND;
    evidence.code = it->code;
    evidence.signal = it->signal;
    evidence.passed_on = it->passed_on;
    evidence.seconds = 100;
    evidence.ended = ended;
    evidence.n_ended = n;
    evidence.group_kills = known(it->group_kills);
    evidence.machine_kills = known(it->machine_kills);
    evidence.kills = (OomKills){.items = kill, .n = kill->pid != 0};
    evidence.kills_error = it->log_read ? 0 : -EPERM;
    evidence.group_limit_bytes = known(it->limit);
    evidence.group_used_most_bytes = known(it->used);
    evidence.available_least_bytes = known(it->available);
    evidence.shm_size_bytes = known(it->shm);
    evidence.shm_free_least_bytes = known(it->shm_free);
    evidence.open_files_soft = known(it->files);
    evidence.fds_most = known(it->files_most);
    evidence.max_map_count = known(it->maps);
    evidence.maps_most = known(it->maps_most);
    evidence.guarded = it->refused > 0;
    evidence.budget_bytes = it->refused > 0 ? 512 * MIB : U64_UNKNOWN;
    evidence.refused = it->refused;
    evidence.refused_bytes = it->refused_bytes;
    evidence.refused_pid = it->refused > 0 ? WORKER : 0;
    evidence.refused_for_want = it->for_want;
    evidence.refused_seconds = it->refused_seconds;
    evidence.served_after = it->served_after;
    for (size_t i = 0; i < ARRAY_SIZE(it->refusals) && it->refusals[i].pid != 0; i++)
        evidence.refusals[evidence.n_refusals++] = it->refusals[i];
    return evidence;
}

static bool evidence_mentions(const Cause *cause, const char *part)
{
    for (size_t i = 0; i < cause->n_evidence; i++)
        if (strstr(cause->evidence[i], part))
            return true;
    return false;
}

static void case_check(const CauseCase *it)
{
    _cleanup_arena_ Arena arena = {0};
    _cleanup_buffer_ Buffer log = {0};
    Ended ended[ENDED_MOST + 1];
    OomKill kill;
    if (it->log)
        log_load(it->log, &log);
    Evidence evidence = evidence_of(it, ended, &kill, &log);
    Diagnosis judged;
    const GuardOffer guard = {.ready = true};
    assert_int_equal(cause_judge(&evidence, NULL, &guard, &arena, &judged), 0);
    const Cause *cause = &judged.cause;
    if (cause->id != it->id || cause->confidence < it->least || cause->confidence > it->most ||
        (it->pid >= 0 && cause->pid != it->pid) || !cause->summary || !strstr(cause->summary, it->summary) ||
        (it->evidence && !evidence_mentions(cause, it->evidence))) {
        print_error("%s: %s %.2f pid %d: %s\n", it->name, cause_name(cause->id), cause->confidence,
                    cause->pid, cause->summary ? cause->summary : "(no summary)");
        for (size_t i = 0; i < cause->n_evidence; i++)
            print_error("  %s\n", cause->evidence[i]);
        fail();
    }
    assert_true(cause->n_evidence > 0 && cause->n_evidence <= 8);
    if (cause->id == CAUSE_OK)
        assert_int_equal(judged.fixes.n, 0);
    else if (cause->id != CAUSE_UNKNOWN && it->passed_on == 0)
        assert_true(judged.fixes.n > 0 || cause->id == CAUSE_PYTHON_ERROR || cause->id == CAUSE_KILLED);
}

static void test_cases(void **state)
{
    (void)state;
    bool seen[CAUSE_IDS] = {0};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        case_check(&cases[i]);
        seen[cases[i].id] = true;
    }
    for (CauseId id = 0; id < CAUSE_IDS; id++)
        if (!seen[id])
            fail_msg("no case for %s", cause_name(id));
}

/* A mistyped name or a wrong option: the program has printed its reason, and we do not guess. */
static void test_plain_exit(void **state)
{
    (void)state;
    static const char *const said[] = {
        "",
        "python3: can't open file '/home/me/trian.py': [Errno 2] No such file or directory\n",
        "usage: train.py [-h] --data DIR\ntrain.py: error: the following arguments are required: --data\n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
        _cleanup_arena_ Arena arena = {0};
        Ended ended = {.pid = COMMAND, .seconds = 1, .has_status = true, .code = 2, .said = text_of(said[i])};
        Evidence evidence = EVIDENCE_NONE;
        evidence.pid = COMMAND;
        evidence.code = 2;
        evidence.command = "pyth\non3";
        evidence.ended = &ended;
        evidence.n_ended = 1;
        Diagnosis judged;
        const GuardOffer guard = {.ready = true};
        assert_int_equal(cause_judge(&evidence, NULL, &guard, &arena, &judged), 0);
        assert_int_equal(judged.cause.id, CAUSE_UNKNOWN);
        assert_string_equal(judged.cause.summary, "pyth\\non3 exited with code 2.");
        assert_int_equal(judged.cause.n_evidence, 1);
        assert_int_equal(judged.fixes.n, 0);
    }
}

static void test_no_start(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Evidence evidence = EVIDENCE_NONE;
    evidence.start_error = ENOENT;
    evidence.command = "py\nthon";
    Diagnosis judged;
    assert_int_equal(cause_judge(&evidence, NULL, NULL, &arena, &judged), 0);
    assert_int_equal(judged.cause.id, CAUSE_UNKNOWN);
    assert_int_equal(judged.cause.n_evidence, 1);
    assert_string_equal(judged.cause.evidence[0], "py\\nthon: No such file or directory");
}

static void test_stack(void **state)
{
    (void)state;
    static const struct {
        const char *stack;
        const char *frame;
    } stacks[] = {
        {STACK, "load.py line 9, in read"},
        {"Thread 0x00007f (most recent call first):\n  File \"wait.py\", line 1 in wait\n\n"
         "Current thread 0x00008f [python] (most recent call first):\n  File \"a\001.py\", line 2 in g\n",
         "a\\x01.py line 2, in g"},
        {"Stack (most recent call first):\n  <no Python frame>\n", NULL},
        {"", NULL},
        {"\xff\xff  File \"", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(stacks); i++) {
        _cleanup_arena_ Arena arena = {0};
        Ended ended = FAULTED(COMMAND, ROLE_TRAINER, SIGSEGV, .code = SEGV_MAPERR, SHM_UNSEEN);
        ended.fault.stack = stacks[i].stack;
        Evidence evidence = EVIDENCE_NONE;
        evidence.pid = COMMAND;
        evidence.code = 139;
        evidence.signal = SIGSEGV;
        evidence.ended = &ended;
        evidence.n_ended = 1;
        Diagnosis judged;
        assert_int_equal(cause_judge(&evidence, NULL, NULL, &arena, &judged), 0);
        assert_string_equal(judged.stack, stacks[i].stack);
        if (stacks[i].frame)
            assert_string_equal(judged.frame, stacks[i].frame);
        else
            assert_null(judged.frame);
    }
}

/* The guard is only offered where it was not in use, and the other fixes suit the machine. */
static void test_fixes(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Ended ended = FAULTED(WORKER, ROLE_WORKER, SIGBUS, IN_SEGMENT(0), SHM_64(0));
    Evidence evidence = EVIDENCE_NONE;
    evidence.pid = COMMAND;
    evidence.code = 1;
    evidence.ended = &ended;
    evidence.n_ended = 1;
    Machine machine = {.memory = {.total_bytes = 16 * GIB},
                       .shm = {.state = SHM_OK, .size_bytes = 64 * MIB},
                       .cgroup = {.memory_limit_bytes = 8 * GIB},
                       .sandbox = {.kind = ENVIRONMENT_DOCKER}};
    const GuardOffer ready = {.ready = true};
    const GuardOffer not_ready = {.ready = false, .why_not = "it is not there"};
    Diagnosis judged;
    assert_int_equal(cause_judge(&evidence, &machine, &ready, &arena, &judged), 0);
    assert_true(fixes_mention(&judged.fixes, "without --no-guard"));
    assert_true(fixes_mention(&judged.fixes, "--shm-size"));
    assert_int_equal(cause_judge(&evidence, &machine, &not_ready, &arena, &judged), 0);
    assert_false(fixes_mention(&judged.fixes, "without --no-guard"));
    evidence.guarded = true;
    assert_int_equal(cause_judge(&evidence, &machine, &ready, &arena, &judged), 0);
    assert_false(fixes_mention(&judged.fixes, "without --no-guard"));
    assert_true(fixes_mention(&judged.fixes, "shmguard ps"));

    ended = (Ended)DIED(WORKER, ROLE_WORKER, SIGKILL);
    evidence.group_kills = 1;
    evidence.group_limit_bytes = 8 * GIB;
    assert_int_equal(cause_judge(&evidence, &machine, &ready, &arena, &judged), 0);
    assert_int_equal(judged.cause.id, CAUSE_CGROUP_OOM);
    assert_true(fixes_mention(&judged.fixes, "--memory"));
}

/* In a container the kernel's log has the host's pids: neither a match nor a difference proves anything, only
 * names hint. */
static void test_container_log(void **state)
{
    (void)state;
    static const struct {
        uint64_t group_kills;
        OomKill kill;
        CauseId id;
        double least, most;
    } logs[] = {
        {1, {.pid = 40101, .comm = "python", .scope = OOM_SCOPE_CGROUP}, CAUSE_CGROUP_OOM, 0.9, 0.95},
        {1, {.pid = 40101, .comm = "java", .scope = OOM_SCOPE_CGROUP}, CAUSE_CGROUP_OOM, 0.6, 0.75},
        {U64_UNKNOWN,
         {.pid = 40101, .comm = "python", .scope = OOM_SCOPE_MACHINE},
         CAUSE_SYSTEM_OOM,
         0.55,
         0.8},
        {U64_UNKNOWN, {.pid = WORKER, .comm = "java", .scope = OOM_SCOPE_MACHINE}, CAUSE_KILLED, 0.5, 0.7},
    };
    for (size_t i = 0; i < ARRAY_SIZE(logs); i++) {
        _cleanup_arena_ Arena arena = {0};
        Machine machine = {.memory = {.total_bytes = 16 * GIB}, .sandbox = {.initial_pidns = false}};
        Ended ended = DIED(WORKER, ROLE_WORKER, SIGKILL);
        OomKill kill = logs[i].kill;
        Evidence evidence = EVIDENCE_NONE;
        evidence.pid = COMMAND;
        evidence.code = 1;
        evidence.ended = &ended;
        evidence.n_ended = 1;
        evidence.group_kills = logs[i].group_kills;
        evidence.machine_kills = 1;
        evidence.group_limit_bytes = GIB;
        evidence.kills = (OomKills){.items = &kill, .n = 1};
        evidence.kills_error = 0;
        Diagnosis judged;
        assert_int_equal(cause_judge(&evidence, &machine, NULL, &arena, &judged), 0);
        assert_int_equal(judged.cause.id, logs[i].id);
        if (judged.cause.confidence < logs[i].least || judged.cause.confidence > logs[i].most)
            fail_msg("log %zu: confidence %f", i, judged.cause.confidence);
    }
}

static void test_helped(void **state)
{
    (void)state;
    static const CauseId helped[] = {CAUSE_SHM_EXHAUSTED, CAUSE_BUDGET_EXCEEDED, CAUSE_CGROUP_OOM,
                                     CAUSE_SYSTEM_OOM,    CAUSE_FD_EXHAUSTED,    CAUSE_MAPS_EXHAUSTED,
                                     CAUSE_WORKER_HANG};
    size_t n = 0;
    for (CauseId id = 0; id < CAUSE_IDS; id++)
        n += cause_helped_by_less(id);
    assert_int_equal(n, ARRAY_SIZE(helped));
    for (size_t i = 0; i < ARRAY_SIZE(helped); i++)
        assert_true(cause_helped_by_less(helped[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),    cmocka_unit_test(test_plain_exit),
        cmocka_unit_test(test_no_start), cmocka_unit_test(test_stack),
        cmocka_unit_test(test_fixes),    cmocka_unit_test(test_container_log),
        cmocka_unit_test(test_helped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
