/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "proc-status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Text text = {(const char *)data, size};
    ProcStatus status;
    (void)proc_status_parse(text, &status);
    (void)cpu_list_count(text);
    return 0;
}
