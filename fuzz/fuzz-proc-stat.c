/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "proc-stat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Text text = {(const char *)data, size};
    ProcStat stat;
    if (proc_stat_parse(text, &stat) == 0 && (stat.pid <= 0 || stat.comm[COMM_MAX - 1] != '\0'))
        __builtin_trap();
    return 0;
}
