/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/pressure/memory (PSI): the share of time that tasks waited for memory. */
#pragma once

#include "root.h"

typedef struct Pressure {
    double some_avg10; /* per cent of the last 10 s in which at least one task waited */
    double some_avg60;
    double full_avg10; /* per cent in which all tasks waited */
    double full_avg60;
} Pressure;

/* -EBADMSG: the "some" line is missing. A missing "full" line (cpu before 5.13) gives zeros. */
int pressure_parse(Text text, Pressure *ret);
int pressure_read(const Root *root,
                  Pressure *ret); /* -ENOENT: kernel without PSI; -EOPNOTSUPP: switched off */
