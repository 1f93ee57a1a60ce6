/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "proc-statm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Text text = {(const char *)data, size};
    ProcStatm statm;
    (void)proc_statm_parse(text, 4096, &statm);
    return 0;
}
