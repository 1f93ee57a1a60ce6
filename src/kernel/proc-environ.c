/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "macro.h"
#include "proc-environ.h"
#include "proc-path.h"

enum { NAMES_MOST = 5 };

/*
 * The most telling first. An id of Slurm names the job on all nodes; torchrun's is "none" unless it was
 * given, and Open MPI's has the name or number of its mpirun. GROUP_RANK is torchrun's number of the node.
 * SLURM_NTASKS is what was asked for; a batch script has it, too, and is one process.
 */
static const struct {
    size_t offset;
    bool number;
    const char *names[NAMES_MOST];
} fields[] = {
    {offsetof(LauncherNames, job),
     false,
     {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"}},
    {offsetof(LauncherNames, rank),
     true,
     {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}},
    {offsetof(LauncherNames, node), false, {"SLURMD_NODENAME"}},
    {offsetof(LauncherNames, node_number), true, {"GROUP_RANK", "SLURM_NODEID"}},
    {offsetof(LauncherNames, ranks),
     true,
     {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}},
    {offsetof(LauncherNames, restarts), true, {"TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"}},
    {offsetof(LauncherNames, restarts_most), true, {"TORCHELASTIC_MAX_RESTARTS"}},
};

/* By the place of the name that the rank came from. */
enum { FIELD_RANK = 1 };
static const Launcher launchers[NAMES_MOST] = {LAUNCHER_TORCHRUN, LAUNCHER_MPIRUN, LAUNCHER_MPIRUN,
                                               LAUNCHER_MPIRUN, LAUNCHER_SRUN};

/* What may stand in a label, in a file name and in a URL without further thought. */
static bool is_id(Text value)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:@[]";
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] == '\0' || !strchr(letters, value.data[i]))
            return false;
    return value.size > 0 && value.size < LAUNCHER_JOB_MAX && !text_equal(value, "none");
}

static bool is_rank(Text value)
{
    return value.size > 0 && value.size < LAUNCHER_RANK_MAX && text_digits(value).size == value.size;
}

/* The place of the setting's name in the list, or NAMES_MOST. */
static size_t name_place(const char *const *names, Text setting, Text *ret_value)
{
    for (size_t i = 0; i < NAMES_MOST && names[i]; i++) {
        size_t length = strlen(names[i]);
        if (text_starts(setting, names[i]) && setting.size > length && setting.data[length] == '=') {
            *ret_value = text_skip(setting, length + 1);
            return i;
        }
    }
    return NAMES_MOST;
}

LauncherNames launcher_names_parse(Text environment)
{
    LauncherNames names = {0};
    size_t places[ARRAY_SIZE(fields)];
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        places[i] = NAMES_MOST;
    for (Text setting; text_until(&environment, '\0', &setting);)
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
            Text value = {0};
            size_t place = name_place(fields[i].names, setting, &value);
            if (place >= places[i] || !(fields[i].number ? is_rank(value) : is_id(value)))
                continue;
            char *name = (char *)&names + fields[i].offset;
            memcpy(name, value.data, value.size);
            name[value.size] = '\0';
            places[i] = place;
        }
    names.launcher = places[FIELD_RANK] < NAMES_MOST ? launchers[places[FIELD_RANK]] : LAUNCHER_NONE;
    return names;
}

int launcher_names_read(const Root *root, int pid, LauncherNames *ret)
{
    _cleanup_buffer_ Buffer buffer = {0};
    int r = proc_read(root, pid, "environ", &buffer);
    if (r < 0)
        return r;
    *ret = launcher_names_parse((Text){buffer.data, buffer.size});
    return 0;
}

uint64_t launcher_number(const char *name)
{
    uint64_t number = U64_UNKNOWN;
    return text_u64(text_of(name), 10, &number) < 0 ? U64_UNKNOWN : number;
}

const char *launcher_name(Launcher launcher)
{
    static const char *const names[LAUNCHERS] = {"", "torchrun", "mpirun", "srun"};
    return names[launcher];
}
