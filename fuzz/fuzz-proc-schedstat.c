/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "proc-schedstat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ProcSchedstat stat;
    (void)proc_schedstat_parse((Text){(const char *)data, size}, &stat);
    return 0;
}
