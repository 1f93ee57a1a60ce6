/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint.h"
#include "fuzz.h"

/* The first byte says how much stands before the rest in the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    Text text = {(const char *)data + 1, size - 1};
    uint64_t file_bytes = text.size + (data[0] < 128 ? data[0] : (uint64_t)data[0] << 32);
    uint64_t directory = 0;
    if (zip_end_parse(text, file_bytes, &directory) == 0 && directory > file_bytes)
        __builtin_trap();
    uint64_t bytes = 0;
    (void)safetensors_parse(text, &bytes);
    return 0;
}
