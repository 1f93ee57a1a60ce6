/* SPDX-License-Identifier: Apache-2.0 */
#include "cause.h"

const char *cause_name(CauseId id)
{
    static const char *const names[CAUSE_IDS] = {
        [CAUSE_OK] = "ok",
        [CAUSE_SHM_EXHAUSTED] = "shm-exhausted",
        [CAUSE_BUDGET_EXCEEDED] = "budget-exceeded",
        [CAUSE_CGROUP_OOM] = "cgroup-oom",
        [CAUSE_SYSTEM_OOM] = "system-oom",
        [CAUSE_KILLED] = "killed",
        [CAUSE_SEGFAULT] = "segfault",
        [CAUSE_BUS_ERROR_FILE] = "bus-error-file",
        [CAUSE_FD_EXHAUSTED] = "fd-exhausted",
        [CAUSE_MAPS_EXHAUSTED] = "maps-exhausted",
        [CAUSE_SEGMENTS_DELETED] = "segments-deleted",
        [CAUSE_PYTHON_ERROR] = "python-error",
        [CAUSE_WORKER_HANG] = "worker-hang",
        [CAUSE_UNKNOWN] = "unknown",
    };
    return (unsigned)id < CAUSE_IDS ? names[id] : "unknown";
}
