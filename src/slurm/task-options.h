/* SPDX-License-Identifier: Apache-2.0 */
/* The argument of `srun --shmguard=...`: options of `shmguard run`, with commas between them. Pure. */
#pragma once

#include "text.h"

enum { TASK_OPTIONS_MAX = 16, TASK_OPTION_SIZE = 48 };

typedef struct TaskOptions {
    char words[TASK_OPTIONS_MAX][TASK_OPTION_SIZE]; /* for the command line: "--budget=8G", "--where" */
    size_t n;
    bool off;       /* as without --shmguard */
    bool no_report; /* report=off */
    bool record;
    bool quiet;
} TaskOptions;

/* `text`: "budget=8G,where". On -EINVAL, error holds one escaped line that says what is wrong. */
int task_options_parse(Text text, TaskOptions *ret, Buffer *error);
