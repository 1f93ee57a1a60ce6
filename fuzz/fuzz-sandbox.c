/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Text text = {(const char *)data, size};
    if (logind_parse_remove_ipc(text) != DONT_KNOW && !text_contains(text, "RemoveIPC"))
        __builtin_trap();
    return 0;
}
