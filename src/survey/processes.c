/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "maps.h"
#include "proc-path.h"
#include "proc-stat.h"
#include "proc-status.h"
#include "python-version.h"
#include "threads.h"

enum { COMMAND_MAX = 1024 }; /* enough to identify a program; an argument list may have 2 MiB */

int command_read(const Root *root, int pid, const char *comm, Buffer *out)
{
    int r = root_read(root, PROC_PATH(pid, "cmdline"), COMMAND_MAX, out);
    if (r == -ENOMEM)
        return r;
    size_t n = r < 0 ? 0 : out->size;
    while (n > 0 && out->data[n - 1] == '\0')
        n--;
    if (n == 0) {
        buffer_clear(out);
        return buffer_printf(out, "[%s]", comm);
    }
    out->size = n;
    for (size_t i = 0; i < n; i++)
        if (out->data[i] == '\0')
            out->data[i] = ' ';
    return 0;
}

static int read_command(const Root *root, int pid, Buffer *scratch, Survey *survey, Process *process)
{
    int r = command_read(root, pid, process->comm, scratch);
    if (r < 0)
        return r;
    char *command = arena_copy(&survey->arena, scratch->data, scratch->size);
    process->command = (Text){command, scratch->size};
    return command ? 0 : -ENOMEM;
}

/* libtorch_cpu.so, libtorch.so, libc10.so: in wheels, conda and distributions. */
static int visit_library(const MapEntry *entry, void *context)
{
    uint64_t *found_at = context;
    const char *slash = memrchr(entry->path.data, '/', entry->path.size);
    if (!slash)
        return 0;
    Text name = {slash + 1, entry->path.size - (size_t)(slash + 1 - entry->path.data)};
    if (!text_starts(name, "libtorch") && !text_starts(name, "libc10.so"))
        return 0;
    *found_at = entry->start;
    return 1;
}

int torch_is_at(const Root *root, int pid, uint64_t at, Buffer *scratch)
{
    return maps_visit_at(root, pid, MAPS_EXECUTABLE_FILES, at, scratch, visit_library, &at);
}

int torch_find(const Root *root, int pid, Buffer *scratch, uint64_t *ret_at)
{
    return maps_visit(root, pid, MAPS_EXECUTABLE_FILES, scratch, visit_library, ret_at);
}

static int visit_thread(Text name, void *context)
{
    static const char *const training[] = {"pt_autograd", "pt_gloo", "gloo_", "pt_nccl", "cuda"};
    ThreadSigns *signs = context;
    signs->loaders += text_starts(name, "pt_thread_data"); /* names are truncated to 15 characters */
    for (size_t i = 0; i < ARRAY_SIZE(training); i++)
        signs->train = signs->train || text_starts(name, training[i]);
    return 0;
}

ThreadSigns thread_signs_read(const Root *root, int pid)
{
    ThreadSigns signs = {0};
    (void)threads_visit(root, pid, visit_thread, &signs);
    return signs;
}

/* Fills torch and torch_at; negative errno when the process cannot be read. */
static int find_torch(const Root *root, const Survey *survey, Buffer *scratch, Process *process)
{
    const Process *parent = process_find(survey, process->ppid);
    uint64_t at = parent ? parent->torch_at : 0;
    int r = at == 0 ? 0 : torch_is_at(root, process->pid, at, scratch);
    if (r == 0)
        r = torch_find(root, process->pid, scratch, &at);
    process->torch = r > 0;
    process->torch_at = r > 0 && root->live ? at : 0;
    return MIN(r, 0);
}

static int process_order(const void *a, const void *b)
{
    const Process *left = a;
    const Process *right = b;
    return (left->pid > right->pid) - (left->pid < right->pid);
}

Process *process_find(const Survey *survey, int pid)
{
    Process key = {.pid = pid};
    return survey->n_processes == 0
               ? NULL
               : bsearch(&key, survey->processes, survey->n_processes, sizeof key, process_order);
}

const Process *survey_process(const Survey *survey, int pid)
{
    return process_find(survey, pid);
}

/* A process that ends meanwhile is left out: -ESRCH or -ENOENT. */
static int read_process(const Root *root, int pid, Buffer *scratch, Survey *survey, Process *ret)
{
    ProcStat stat;
    ProcStatus status;
    int r = proc_stat_read(root, pid, &stat);
    if (r < 0)
        return r;
    r = proc_status_read(root, pid, &status);
    if (r < 0)
        return r;

    const Machine *machine = &survey->machine;
    Process process = {
        .pid = pid,
        .inner_pid = status.inner_pid,
        .ppid = stat.ppid,
        .uid = status.euid,
        .started =
            machine->realtime - machine->boottime + (double)stat.start_ticks / (double)sysconf(_SC_CLK_TCK),
        .signals_caught = status.signals_caught,
        .rss_bytes = status.rss_bytes,
        .rss_shmem_bytes = status.rss_shmem_bytes,
        .pss_bytes = U64_UNKNOWN,
        .uss_bytes = U64_UNKNOWN,
        .threads = status.threads,
        .open_files_soft = U64_UNKNOWN,
        .open_files_hard = U64_UNKNOWN,
        .maps = U64_UNKNOWN,
        /* A process whose first thread has ended looks like a zombie and still has memory, which its files do
         * not show. */
        .has_memory =
            !status.kernel_thread && ((stat.state != 'Z' && stat.state != 'X') || status.threads > 1),
    };
    memcpy(process.comm, stat.comm, sizeof process.comm);
    r = read_command(root, pid, scratch, survey, &process);
    if (r < 0)
        return r;
    if (process.has_memory) {
        r = find_torch(root, survey, scratch, &process);
        if (r == -ENOMEM)
            return r;
        process.readable = r >= 0;
        if (process.torch)
            process.signs = thread_signs_read(root, pid);
    }
    *ret = process;
    return 0;
}

static void read_limits(const Root *root, Process *process)
{
    RLimits limits;
    if (rlimits_read(root, process->pid, &limits) < 0)
        return;
    process->open_files_soft = limits.open_files_soft;
    process->open_files_hard = limits.open_files_hard;
}

/* Whether it is in another container. Unknown counts as no. */
static bool has_shm_elsewhere(const Root *root, const ShmMount *shm, int pid)
{
    FileStat stat;
    return shm->state == SHM_OK && root_stat(root, PROC_PATH(pid, "root/dev/shm"), &stat) >= 0 &&
           !device_equal(stat.device, shm->device);
}

int processes_list(const Root *root, Survey *survey)
{
    DIR *dir = root_list(root, "proc");
    if (!dir)
        return -errno;
    _cleanup_buffer_ Buffer scratch = {0};
    int r = 0;
    for (struct dirent *entry; r >= 0 && (entry = readdir(dir));) {
        int pid = 0;
        Process process;
        if (text_pid(text_of(entry->d_name), &pid) < 0)
            continue;
        r = read_process(root, pid, &scratch, survey, &process);
        if (r == -ENOMEM)
            break;
        if (r < 0) { /* gone, or garbage in a captured tree */
            r = 0;
            continue;
        }
        Process *slot =
            ARENA_PUSH(&survey->arena, survey->processes, survey->n_processes, survey->processes_capacity);
        r = slot ? 0 : -ENOMEM;
        if (slot)
            *slot = process;
    }
    closedir(dir);
    if (r < 0)
        return r;
    if (survey->n_processes > 0)
        qsort(survey->processes, survey->n_processes, sizeof *survey->processes, process_order);

    processes_assign_roles(survey);
    for (size_t i = 0; i < survey->n_processes; i++) {
        Process *process = &survey->processes[i];
        if (process->role != ROLE_OTHER) {
            read_limits(root, process);
            process->python = python_version_read(root, process->pid);
        }
        bool contained = process->inner_pid > 0 && process->inner_pid != process->pid;
        if (process->role == ROLE_MANAGER || contained)
            process->shm_elsewhere = has_shm_elsewhere(root, &survey->machine.shm, process->pid);
    }
    return 0;
}

bool process_is_below(const Survey *survey, const Process *process, int pid)
{
    for (size_t steps = 0; process && steps <= survey->n_processes;
         steps++) { /* a captured tree may have a cycle */
        if (process->ppid == pid)
            return true;
        process = process_find(survey, process->ppid);
    }
    return false;
}

bool process_is_listed(const Process *process)
{
    return process->role != ROLE_OTHER || process->segments > 0;
}
