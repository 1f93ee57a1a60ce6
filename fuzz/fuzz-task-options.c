/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "task-options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_buffer_ Buffer error = {0};
    TaskOptions options;
    int r = task_options_parse((Text){(const char *)data, size}, &options, &error);
    if ((r < 0) != (error.size > 0))
        __builtin_trap();
    return 0;
}
