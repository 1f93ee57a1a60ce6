/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "macro.h"
#include "proc-environ.h"
#include "proc-path.h"

/* The most telling first. An id of Slurm names the job on all nodes; torchrun's is "none" unless it was
 * given.
 */
static const char *const job_names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "TORCHELASTIC_RUN_ID"};
static const char *const rank_names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                         "SLURM_PROCID"};

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

/* The place of the setting's name in the list, or `n`. */
static size_t name_place(const char *const *names, size_t n, Text setting, Text *ret_value)
{
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(names[i]);
        if (text_starts(setting, names[i]) && setting.size > length && setting.data[length] == '=') {
            *ret_value = text_skip(setting, length + 1);
            return i;
        }
    }
    return n;
}

static void value_copy(Text value, char *ret)
{
    memcpy(ret, value.data, value.size);
    ret[value.size] = '\0';
}

LauncherNames launcher_names_parse(Text environment)
{
    LauncherNames names = {0};
    size_t job = ARRAY_SIZE(job_names);
    size_t rank = ARRAY_SIZE(rank_names);
    Text setting;
    while (text_until(&environment, '\0', &setting)) {
        Text value = {0};
        size_t place = name_place(job_names, job, setting, &value);
        if (place < job && is_id(value)) {
            value_copy(value, names.job);
            job = place;
        }
        place = name_place(rank_names, rank, setting, &value);
        if (place < rank && is_rank(value)) {
            value_copy(value, names.rank);
            rank = place;
        }
    }
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
