/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/pressure/{memory,io} (PSI): the share of time that tasks waited for memory, or for a disk. */
#pragma once

#include "root.h"

typedef struct Pressure {
    double some_avg10; /* per cent of the last 10 s in which at least one task waited */
    double some_avg60;
    double full_avg10; /* per cent in which all tasks waited */
    double full_avg60;
    uint64_t some_usec; /* since boot, in which at least one task waited */
} Pressure;

/* -EBADMSG: the "some" line is missing. A missing "full" line (cpu before 5.13) gives zeros. */
int pressure_parse(Text text, Pressure *ret);

/* what: "memory" or "io". -ENOENT: kernel without PSI; -EOPNOTSUPP: switched off. */
int pressure_read(const Root *root, const char *what, Pressure *ret);
