/* SPDX-License-Identifier: Apache-2.0 */
#include "cause.h"
#include "causes-text.h"

static const struct {
    const char *name;
    const char *meaning;
} causes[CAUSE_IDS] = {
    [CAUSE_OK] = {"ok", CAUSE_OK_MEANING},
    [CAUSE_SHM_EXHAUSTED] = {"shm-exhausted", CAUSE_SHM_EXHAUSTED_MEANING},
    [CAUSE_BUDGET_EXCEEDED] = {"budget-exceeded", CAUSE_BUDGET_EXCEEDED_MEANING},
    [CAUSE_CGROUP_OOM] = {"cgroup-oom", CAUSE_CGROUP_OOM_MEANING},
    [CAUSE_SYSTEM_OOM] = {"system-oom", CAUSE_SYSTEM_OOM_MEANING},
    [CAUSE_KILLED] = {"killed", CAUSE_KILLED_MEANING},
    [CAUSE_SEGFAULT] = {"segfault", CAUSE_SEGFAULT_MEANING},
    [CAUSE_BUS_ERROR_FILE] = {"bus-error-file", CAUSE_BUS_ERROR_FILE_MEANING},
    [CAUSE_FD_EXHAUSTED] = {"fd-exhausted", CAUSE_FD_EXHAUSTED_MEANING},
    [CAUSE_MAPS_EXHAUSTED] = {"maps-exhausted", CAUSE_MAPS_EXHAUSTED_MEANING},
    [CAUSE_SEGMENTS_DELETED] = {"segments-deleted", CAUSE_SEGMENTS_DELETED_MEANING},
    [CAUSE_PYTHON_ERROR] = {"python-error", CAUSE_PYTHON_ERROR_MEANING},
    [CAUSE_WORKER_HANG] = {"worker-hang", CAUSE_WORKER_HANG_MEANING},
    [CAUSE_UNKNOWN] = {"unknown", CAUSE_UNKNOWN_MEANING},
};

static CauseId known(CauseId id)
{
    return (unsigned)id < CAUSE_IDS ? id : CAUSE_UNKNOWN;
}

const char *cause_name(CauseId id)
{
    return causes[known(id)].name;
}

const char *cause_meaning(CauseId id)
{
    return causes[known(id)].meaning;
}
