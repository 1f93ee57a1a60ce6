/* SPDX-License-Identifier: Apache-2.0 */
/* Why a training died: one of a fixed list of causes, with a confidence and the reasons. Scripts rely on the
 * names. */
#pragma once

#include <stddef.h>

typedef enum CauseId {
    CAUSE_OK,
    CAUSE_SHM_EXHAUSTED,
    CAUSE_BUDGET_EXCEEDED,
    CAUSE_CGROUP_OOM,
    CAUSE_SYSTEM_OOM,
    CAUSE_KILLED,
    CAUSE_SEGFAULT,
    CAUSE_BUS_ERROR_FILE,
    CAUSE_FD_EXHAUSTED,
    CAUSE_MAPS_EXHAUSTED,
    CAUSE_SEGMENTS_DELETED,
    CAUSE_PYTHON_ERROR,
    CAUSE_WORKER_HANG,
    CAUSE_UNKNOWN,
    CAUSE_IDS,
} CauseId;

typedef struct Cause {
    CauseId id;
    double confidence;     /* 0…1 */
    const char *summary;   /* one or two sentences for a tired person */
    const char **evidence; /* the reasons */
    size_t n_evidence;
    size_t evidence_capacity;
    int pid; /* of the process that died first; 0: unknown */
} Cause;

const char *cause_name(CauseId id);
const char *cause_meaning(CauseId id); /* one sentence, for the documentation */
